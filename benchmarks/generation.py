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
from tabon.generation.protocol import Parameters, Request
from tabon.generation.providers.names import ModelOptions, make_generator
from tabon.generation.runner import FREE, Budget, Limits, Run, Task
from timing import Line, share

PATHS = {"openai": "/openai/v1", "gemini": "/gemini", "mistral": "/mistral"}  # each provider's own client
SERVER = Path(__file__).parent.parent / "tests" / "helpers" / "provider_server.py"
KEY, LATENCY, CONCURRENCY = "benchmark-key", 0.05, Limits().concurrency


@contextmanager
def server() -> Iterator[str]:
    """Start the loopback provider in its own process and give its address."""
    command = [sys.executable, SERVER, "--latency", str(LATENCY), "--key", KEY, "--no-image"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            port = re.search(r"\d+", process.stdout.readline()).group()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def tasks(count: int) -> Iterator[Task]:
    """Drafts of one prompt."""
    for sample in range(count):
        request = Request(prompt="Write a report.", image=None, seed=sample, parameters=Parameters())
        yield Task(
            DraftKey(
                study="s",
                model="openai:m",
                source=None,
                prompt="P1",
                prompt_sha256="",
                image_sha256=None,
                parameters=request.parameters,
                sample=sample,
                seed=sample,
            ),
            request,
        )


async def finished(provider: str, address: str, path: Path, count: int) -> float:
    """Buy drafts with the provider's own client and the real journal; return the seconds it took."""
    options = ModelOptions(base_url=address + PATHS[provider], api_key=KEY)
    generator, journal = make_generator(f"{provider}:m", options), Journal(path)
    start = perf_counter()
    try:
        run = Run(generator, journal, Budget(FREE, spent=0.0, cap=None), Limits(concurrency=CONCURRENCY))
        kept = (await run.generate(tasks(count))).kept
    finally:
        await generator.close()
        journal.close()
    if kept != count:
        raise SystemExit(f"{kept} of {count} drafts were kept")
    return perf_counter() - start


def generation_lines(*, quick: bool) -> Iterator[Line]:
    """From the first request to the last line on disk."""
    count = 64 if quick else 1000
    ideal = count * LATENCY / CONCURRENCY
    with server() as address, TemporaryDirectory() as folder:
        for provider in PATHS:
            asyncio.run(finished(provider, address, Path(folder) / f"{provider}-warm", CONCURRENCY))
            ours = asyncio.run(finished(provider, address, Path(folder) / provider, count))
            what = (
                f"{count} drafts, {LATENCY * 1000:.0f} ms latency, {CONCURRENCY} in flight, {provider} client"
            )
            yield share(what, ours, ideal, "drafts × latency ÷ concurrency", "≤ 1.3")
