"""A model in an environment of its own: a command that reads and writes JSON lines.

The command is started once and kept. For each request it finds one line on its
standard input:

    {"id", "prompt", "image": base64 or null, "media_type", "seed", "temperature", "top_p", "max_tokens"}

and writes one line, in whatever order, to its standard output:

    {"id", "text", "finish_reason"?, "usage"?: {"input_tokens", "output_tokens"}, "model_version"?}
    {"id", "error", "retry"?: true, or seconds to wait}

It ends when its input ends. What goes wrong, and what becomes of it:

* a line that is no JSON object with the id of a waiting request is passed over,
  because libraries chat on standard output; MAX_JUNK of them in a row end the command;
* a line with a known id, but without a text or an error, is a malformed answer;
* a command that dies takes its waiting requests with it (TryAgainError) and is
  started again by the next one, MAX_STARTS times in a row without any answer;
* a command that is silent for `timeout` seconds while requests wait is killed, the
  same way; a slow command that answers one request after the other is not;
* standard error goes nowhere, and neither an answer nor the text of an error, which
  may quote the report, is in a message: an error of one word is.
"""

import asyncio
import json
import os
import re
import shlex
import signal
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import count
from typing import Any, TypeVar

from tabon.errors import BadInputError, GenerationError, TryAgainError
from tabon.generation.protocol import Answer, Outcome, Reach, Request, answer_of

Step = TypeVar("Step")

MAX_LINE = 64 * 2**20  # bytes of one answer
MAX_JUNK = 1000
MAX_STARTS = 3
MOST_SECONDS = 1e9  # that a command may ask to wait
GRACE = 5.0  # seconds that a command has to end once its input has ended

ENDINGS: Mapping[str, Outcome] = {
    "length": "truncated",
    "max_tokens": "truncated",
    "content_filter": "blocked",
    "safety": "blocked",
    "blocked": "blocked",
    "refusal": "refused",
    "refused": "refused",
}


def words_of(command: str) -> tuple[str, ...]:
    """Split a command line as a shell would.

    >>> words_of("python 'my model.py'")
    ('python', 'my model.py')
    """
    try:
        return tuple(shlex.split(command))
    except ValueError:
        raise BadInputError("'command' has an open quotation mark; close it") from None


def request_line(number: str, request: Request) -> bytes:
    """Write a request as the line that the command reads."""
    image = request.image
    record = {
        "id": number,
        "prompt": request.prompt,
        "image": b64encode(image.data).decode("ascii") if image else None,
        "media_type": image.media_type if image else None,
        "seed": request.seed,
        "temperature": request.parameters.temperature,
        "top_p": request.parameters.top_p,
        "max_tokens": request.parameters.max_tokens,
    }
    return json.dumps(record).encode("ascii") + b"\n"


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Read a line of the command; None for whatever is not a JSON object with an id."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("id"), str) else None


def answer_from(record: Mapping[str, Any], *, model: str) -> Answer:
    """Turn the command's line into an answer, or into the error that it reports.

    >>> answer_from({"id": "1", "text": "Clear lungs.", "finish_reason": "length"}, model="m").outcome
    'truncated'
    """
    if record.get("error") is not None:
        raise _reported(record, model)
    text, finish, version = (record.get(name) for name in ("text", "finish_reason", "model_version"))
    raw = {name: value for name, value in record.items() if name != "id"}
    if not isinstance(text, str):
        return Answer(outcome="malformed", raw=raw)
    usage = record.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    fields = {
        "outcome": ENDINGS.get(str(finish).lower(), "ok" if text.strip() else "empty"),
        "text": text,
        "finish_reason": finish,
        "model_version": version,
        "input_tokens": usage.get("input_tokens", usage.get("prompt_tokens")),
        "output_tokens": usage.get("output_tokens", usage.get("completion_tokens")),
    }
    return answer_of(fields, raw)


def _reported(record: Mapping[str, Any], model: str) -> GenerationError | TryAgainError:
    """Make the error that the command reports; only a single word of it is repeated."""
    said = str(record["error"])
    what = said if re.fullmatch(r"[\w.:-]{1,64}", said) else f"an error of {len(said)} characters"
    retry = record.get("retry", False)
    if retry is False or retry is None:
        return GenerationError(f"{model} answered: {what}")
    is_number = isinstance(retry, int | float) and retry is not True and retry >= 0
    wait = float(min(retry, MOST_SECONDS)) if is_number else None
    return TryAgainError(f"{model} answered: {what}", retry_after=wait)


class _Child:
    """A running command and the requests that wait for it."""

    def __init__(self, process: asyncio.subprocess.Process, model: str) -> None:
        """Begin to read what it writes."""
        self._process, self._model = process, model
        self._stdin: asyncio.StreamWriter = process.stdin  # type: ignore[assignment]  # both are pipes
        self._stdout: asyncio.StreamReader = process.stdout  # type: ignore[assignment]
        self.waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.last_answer = asyncio.get_running_loop().time()
        self.gone = False
        self._reading = asyncio.create_task(self._read())

    async def send(self, line: bytes) -> None:
        """Hand it a request; a command that no longer reads is found out by its end."""
        self._stdin.write(line)
        with suppress(ConnectionError):
            await self._stdin.drain()

    async def _read(self) -> None:
        """Match lines to requests until the command ends, kill what is left, and fail whoever waits."""
        try:
            error = await self._read_lines()
        finally:
            self.gone = True
            self._kill()
            self._stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):  # its output is read to the end, so that its pipes close
                    while await self._stdout.read(2**16):
                        pass
                    await self._process.wait()
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(type(error)(str(error)))  # each one its own
        self.waiting.clear()

    async def _read_lines(self) -> GenerationError | TryAgainError:
        """Give each answer to the request that waits for it; returns why there are no more."""
        junk = 0
        while junk < MAX_JUNK:
            try:
                line = await self._stdout.readline()
            except ValueError:
                return GenerationError(f"{self._model} wrote a line of more than {MAX_LINE} bytes")
            if not line:
                return TryAgainError(f"{self._model} ended with {len(self.waiting)} requests waiting")
            record = parse_line(line)
            future = self.waiting.pop(record["id"], None) if record else None
            if record is None or future is None:
                junk += 1
                continue
            junk, self.last_answer = 0, asyncio.get_running_loop().time()
            if not future.done():
                future.set_result(record)
        return GenerationError(f"{self._model} wrote {junk} lines in a row that are not answers")

    def _kill(self) -> None:
        """Kill the command and what it has started; one that has ended is left alone."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def stop(self, *, grace: float) -> None:
        """End its input, wait a little, kill it; afterwards nothing of it is left."""
        self.gone = True
        self._stdin.close()
        done, _ = await asyncio.wait({self._reading}, timeout=grace)
        if not done:
            self._kill()
            await asyncio.wait({self._reading})


class CommandGenerator:
    """A model behind a command that speaks JSON lines; several requests are in flight at once."""

    reach: Reach = "local"

    def __init__(self, argv: Sequence[str], *, name: str, timeout: float = 600.0) -> None:
        """Keep the command, which the first request starts without a shell; `timeout` is of silence, in s."""
        if isinstance(argv, str) or not argv:
            raise BadInputError("a command is a list: the program and its arguments")
        if timeout <= 0:
            raise BadInputError(f"timeout is {timeout} s; give more than 0")
        self.model = f"command:{name}"
        words = "\0".join(argv).encode("utf-8", "surrogateescape")
        self.source: str | None = sha256(words).hexdigest()  # they may hold a key
        self._argv = tuple(argv)
        self._timeout = timeout
        self._numbers = count(1)
        self._child: _Child | None = None
        self._starting = asyncio.Lock()
        self._starts = 0
        self._closed = False

    async def generate(self, request: Request) -> Answer:
        """Send a request and wait for the line that answers it."""
        child = await self._running()
        loop = asyncio.get_running_loop()
        number = str(next(self._numbers))
        child.waiting[number] = future = loop.create_future()
        try:
            await self._patiently(child, loop.create_task(child.send(request_line(number, request))))
            record = await self._patiently(child, future)
        finally:
            child.waiting.pop(number, None)
            if not future.cancel() and not future.cancelled():
                future.exception()  # seen, even if another error was first
        self._starts = 0
        return answer_from(record, model=self.model)

    async def _patiently(self, child: _Child, step: "asyncio.Future[Step]") -> Step:
        """Wait for one step as long as the command says something now and then."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            while not step.done():
                left = max(begun, child.last_answer) + self._timeout - loop.time()
                if left <= 0:
                    await child.stop(grace=0.0)
                    raise TryAgainError(f"{self.model} was silent for {self._timeout:g} s and was killed")
                await asyncio.wait({step}, timeout=left)
            return step.result()
        finally:
            step.cancel()

    async def _running(self) -> _Child:
        """Return the running command; start it if there is none, unless it has died too often."""
        async with self._starting:
            if self._closed:
                raise GenerationError(f"{self.model} is closed")
            if self._child is not None:
                if not self._child.gone:
                    return self._child
                await self._child.stop(grace=0.0)
            if self._starts >= MAX_STARTS:
                raise GenerationError(
                    f"{self.model} was started {self._starts} times and never answered; "
                    "run the command by hand to see why"
                )
            self._starts += 1
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._argv,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    limit=MAX_LINE,
                    start_new_session=True,
                )
            except OSError as error:
                raise GenerationError(
                    f"{self.model} could not be started ({type(error).__name__}); check the program's path"
                ) from None
            self._child = _Child(process, self.model)
            return self._child

    async def close(self) -> None:
        """End the command; it has a few seconds to do so itself."""
        async with self._starting:
            self._closed = True
            if self._child is not None:
                await self._child.stop(grace=GRACE)
                self._child = None
