"""Drafts from a provider with latency, against the ideal of drafts × latency ÷ concurrency."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tabon.generation.journal import DraftKey, Journal
from tabon.generation.models import ModelOptions, make_generator
from tabon.generation.prices import FREE, Budget
from tabon.generation.protocol import Parameters, Request
from tabon.generation.running import Limits, Run, Task
from timing import Line, share

SERVER = Path(__file__).parent.parent / "tests" / "provider_server.py"
KEY, LATENCY, CONCURRENCY = "benchmark-key", 0.05, Limits().concurrency


@contextmanager
def provider() -> Iterator[str]:
    """Start the loopback provider in its own process and give its address."""
    command = [sys.executable, SERVER, "--latency", str(LATENCY), "--key", KEY, "--no-image"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        port = re.search(r"\d+", process.stdout.readline()).group()
        yield f"http://127.0.0.1:{port}/openai/v1"
        process.kill()


def tasks(count: int) -> Iterator[Task]:
    """Drafts of one prompt."""
    for sample in range(count):
        request = Request(prompt="Write a report.", image=None, seed=sample, parameters=Parameters())
        yield Task(
            DraftKey(
                study="s",
                model="openai:m",
                prompt="P1",
                prompt_sha256="",
                image_sha256=None,
                parameters=request.parameters,
                sample=sample,
            ),
            request,
        )


async def bought(url: str, journal: Journal, count: int) -> int:
    """Buy drafts with the real client and the real journal."""
    generator = make_generator("openai:m", ModelOptions(base_url=url, api_key=KEY))
    try:
        run = Run(generator, journal, Budget(FREE, spent=0.0, cap=None), Limits(concurrency=CONCURRENCY))
        return (await run.buy(tasks(count))).kept
    finally:
        await generator.close()


def generation_lines(*, quick: bool) -> Iterator[Line]:
    """From the first request to the last line on disk."""
    count = 64 if quick else 1000
    with provider() as url, TemporaryDirectory() as folder:
        asyncio.run(bought(url, Journal(Path(folder) / "warm"), CONCURRENCY))
        start = perf_counter()
        kept = asyncio.run(bought(url, Journal(Path(folder) / "drafts"), count))
        ours = perf_counter() - start
    if kept != count:
        raise SystemExit(f"{kept} of {count} drafts were kept")
    ideal = count * LATENCY / CONCURRENCY
    what = f"{count} drafts, {LATENCY * 1000:.0f} ms latency, {CONCURRENCY} in flight, openai client"
    yield share(what, ours, ideal, "drafts × latency ÷ concurrency", "≤ 1.3")
