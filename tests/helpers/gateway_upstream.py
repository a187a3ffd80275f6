"""A loopback upstream that speaks OpenAI's chat completions: the only fake in the gateway's tests.

It writes the texts that it was given. Draft number `seed` (of the request, plus the choice's index) is
text number `seed`, so that a test knows which call wrote what. A script says what happens to each call
in turn; when it is used up calls are answered. It sees when a client hangs up, and counts words.
"""

import asyncio
import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from service_server import PATIENCE, query_service, serving
from tabon.service import guarded_app
from tabon.service.gateway import GatewaySettings, gateway_module
from tabon.service.guard import guard_settings
from tabon.text.reports import report_from_record
from waiting import until_async

TEXT = "Findings: Clear lungs, draft {number}. No effusion.\nImpression: Normal, draft {number}."
USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 7,
    "total_tokens": 17,
    "prompt_tokens_details": {"cached_tokens": 2},
}
CHUNK = {"id": "chatcmpl-up", "object": "chat.completion.chunk", "created": 5, "model": "up-1"}


@dataclass(frozen=True)
class Act:
    """What happens to one call."""

    kind: str = "answer"  # or status, body, raw, hang, reset; in a stream cut, stall, garbage, error-event
    status: int = 200  # 0: the body is all that is sent, head included
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    after: int = 3  # words before a cut, a hang in the middle or an error event


OK, HANG, RESET = Act(), Act("hang"), Act("reset")


def fails(status, *, retry_after=None, body=b'{"error": {"message": "no", "code": "some_code"}}'):
    """Answer with a status."""
    headers = () if retry_after is None else (("Retry-After", retry_after),)
    return Act("status", status, headers, body)


@dataclass
class Upstream:
    """The upstream; use it as a context manager."""

    texts: list = field(default_factory=list)
    script: list = field(default_factory=list)
    knows_n: object = True  # True, or a status, or "fewer": one choice whatever n says
    pause: float = 0.0  # seconds before each word of a stream
    together: int = 0  # streams go on when so many calls have run at the same time
    refuses: object = None  # a function of the body: whether it is answered with 400
    message: dict | None = None  # sent instead of a text
    usage: dict = field(default_factory=lambda: USAGE)
    ignores_stream: bool = False
    tls: object = None  # an ssl.SSLContext
    calls: list = field(default_factory=list)  # (path, headers, body) as they came
    closed: int = 0  # clients that hung up before the end
    words: int = 0  # that were sent in streams
    running: int = 0
    most_running: int = 0
    _done: set = field(default_factory=set)

    def __enter__(self):
        """Start."""
        self._loop = asyncio.new_event_loop()
        self._let_go = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls), self._loop
        ).result(PATIENCE)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/v1"
        return self

    def __exit__(self, *_):
        """Stop, and drop whoever is still connected."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def let_go(self):
        """End all that hangs: those connections are reset."""
        self._loop.call_soon_threadsafe(self._let_go.set)

    async def _stop(self):
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader, writer):
        """Answer one request on one connection; it runs from when all of it has come."""
        came = False
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            data = await reader.readexactly(int(headers.get("content-length", 0)))
            path, body = head[0].split()[1], json.loads(data) if data else None
            raw = dict(line.split(": ", 1) for line in head[1:] if line)
            self.calls.append((path, raw, body))
            came = True
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            answering = asyncio.create_task(self._answer(writer, path, body))
            gone = asyncio.create_task(reader.read(1))
            await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
            gone_early = not answering.done() or isinstance(answering.exception(), ConnectionError)
            self.closed += gone_early and writer not in self._done
            answering.cancel()
            gone.cancel()
            await asyncio.gather(answering, gone, return_exceptions=True)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.running -= came
            with suppress(ConnectionError):
                writer.close()

    async def _answer(self, writer, path, body):
        """Do what the script says."""
        if path == "/v1/models":
            await self._json(writer, {"object": "list", "data": [{"id": "up-1", "object": "model"}]})
            return
        act = self.script.pop(0) if self.script else OK
        if act.kind == "reset":
            writer.transport.abort()
        elif act.kind == "hang":
            await self._let_go.wait()
            writer.transport.abort()
        elif act.kind in {"status", "body", "raw"}:
            await self._send(writer, act.status, act.body, act.headers)
        elif self.refuses is not None and self.refuses(body):
            await self._send(writer, 400, b'{"error": {"message": "not these parameters"}}')
        elif body.get("n", 1) > 1 and isinstance(self.knows_n, int) and self.knows_n is not True:
            await self._send(
                writer, self.knows_n, b'{"error": {"message": "n is not supported", "param": "n"}}'
            )
        elif body.get("stream") and not self.ignores_stream:
            await self._stream(writer, body, act)
        else:
            await self._json(writer, self._completion(body))

    def _count(self, body):
        return 1 if self.knows_n == "fewer" else body.get("n", 1)

    def _text(self, body, index):
        number = body.get("seed", 0) + index
        return self.texts[number % len(self.texts)] if self.texts else TEXT.format(number=number)

    def _completion(self, body):
        choices = []
        for index in range(self._count(body)):
            message = self.message or {"role": "assistant", "content": self._text(body, index)}
            reason = "tool_calls" if "tool_calls" in message else "stop"
            choices.append({"index": index, "message": message, "finish_reason": reason, "logprobs": None})
        return {**CHUNK, "object": "chat.completion", "choices": choices, "usage": self.usage}

    async def _json(self, writer, record):
        await self._send(writer, 200, json.dumps(record).encode())

    async def _send(self, writer, status, body, headers=()):
        lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers]
        head = "\r\n".join([*lines, "Connection: close", "", ""]).encode() if status else b""
        writer.write(head + body)
        await writer.drain()

    async def _stream(self, writer, body, act):
        """Send words in turn, one choice after the other at each."""
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode())
        count = self._count(body)
        pieces = [self._text(body, index).split(" ") for index in range(count)]
        for index in range(count):
            await self._event(writer, self._choice(index, {"role": "assistant", "content": ""}))
        await until_async(lambda: self.most_running >= self.together, "enough calls run at the same time")
        for step in range(max(map(len, pieces))):
            await asyncio.sleep(self.pause)
            if await self._broken(writer, act, step):
                return
            for index, words in enumerate(pieces):
                if step < len(words):
                    self.words += 1
                    text = words[step] + (" " if step < len(words) - 1 else "")
                    await self._event(writer, self._choice(index, {"content": text}))
                if step == len(words) - 1:
                    await self._event(writer, self._choice(index, {}, "stop"))
        if (body.get("stream_options") or {}).get("include_usage"):
            await self._event(writer, {**CHUNK, "choices": [], "usage": self.usage})
        self._done.add(writer)  # who hangs up now has all that there is
        await self._event(writer, None)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _broken(self, writer, act, step):
        """Break a stream where the script says so."""
        if step < act.after or act.kind == "answer":
            return False
        if act.kind == "stall":
            await self._let_go.wait()
        if act.kind == "error-event":
            await self._event(writer, {"error": {"message": "it broke", "code": "server_error"}})
            writer.write(b"0\r\n\r\n")
        if act.kind == "garbage":
            await self._event(writer, "no chunk")
        await writer.drain()
        return True  # "cut": the connection ends without an end of the body

    def _choice(self, index, delta, reason=None):
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**CHUNK, "choices": [choice]}

    async def _event(self, writer, record):
        data = b"data: " + (b"[DONE]" if record is None else json.dumps(record).encode()) + b"\n\n"
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()


@contextmanager
def gateway(up, *, answers=None, token=None, **settings):
    """Run the real service with the real gateway in front of an upstream, and yield its address."""
    answers = query_service() if answers is None else answers
    chosen = {"first_wait": 0.02, "timeout": PATIENCE, **settings}
    route_module = gateway_module(
        answers, GatewaySettings(upstream=up if isinstance(up, str) else up.url, **chosen)
    )
    guard = guard_settings("127.0.0.1", token=token, allowed=(), body=1_000_000)
    guard = replace(guard, body_seconds=PATIENCE)
    with serving(guarded_app(answers, guard, [route_module])) as address:
        yield address


def written(record):
    """Write the drafts of a simulated query as a model would."""
    reports = map(report_from_record, record["candidates"])
    return [f"Findings: {report.findings}\nImpression: {report.impression}" for report in reports]
