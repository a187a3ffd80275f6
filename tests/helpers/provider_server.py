"""An HTTP server on loopback that answers like Gemini, Mistral and OpenAI, and checks what it is asked.

In a test: `with ProviderServer(script=[status(429, retry_after="2")]) as server: server.url("gemini")`.
As a process: `python provider_server.py --port 0 --latency 0.05 --billing FILE` prints its port;
the addresses are `url_of("gemini" | "mistral" | "openai", port)`. A call is billed (a line in FILE,
tab-separated: provider, model, seed, hash of the prompt) when the server commits to an answer, that is
before the latency: a client that dies while it waits has still bought the draft.
"""

import argparse
import asyncio
import json
import os
import socket
import struct
import threading
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

KEY = "canary-key-7Q4XWZ"
OK_TEXT = "Findings: Clear lungs, seed {seed}.\nImpression: Normal {seed}."
MAGIC = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
PATHS = {"gemini": "/gemini", "mistral": "/mistral", "openai": "/openai/v1"}
INPUT_TOKENS, OUTPUT_TOKENS, THOUGHT_TOKENS = 270, 17, 5
REASONS = {
    400: ("Bad Request", "INVALID_ARGUMENT", "invalid_request_error"),
    401: ("Unauthorized", "UNAUTHENTICATED", "invalid_api_key"),
    403: ("Forbidden", "PERMISSION_DENIED", "permission_denied"),
    404: ("Not Found", "NOT_FOUND", "model_not_found"),
    429: ("Too Many Requests", "RESOURCE_EXHAUSTED", "rate_limit_exceeded"),
    503: ("Service Unavailable", "UNAVAILABLE", "overloaded"),
}


def url_of(provider: str, port: int) -> str:
    """Return the base URL that this provider's client is given."""
    return f"http://127.0.0.1:{port}{PATHS[provider]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What the server does with one call."""

    kind: str = "ok"  # ok, status, body, hang, reset, cut
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None  # sent as it stands
    text: str | None = None  # None: the default text
    finish: str | None = None  # None: the provider's "all is well"
    refusal: str | None = None
    blocked: str | None = None  # Gemini's promptFeedback.blockReason
    retry_delay: str | None = None  # Gemini's RetryInfo, such as "2s"
    code: str | None = None  # the error's code, instead of the usual one


def status(code, *, retry_after=None, retry_delay=None, error=None):
    """Fail with an HTTP status, and perhaps a time to wait."""
    headers = (("Retry-After", retry_after),) if retry_after is not None else ()
    return Behaviour(kind="status", status=code, headers=headers, retry_delay=retry_delay, code=error)


def body(data, *, code=200, content_type="application/json"):
    """Send these bytes, whatever they are."""
    return Behaviour(kind="body", status=code, body=data, headers=(("Content-Type", content_type),))


def finish(reason, *, text=None):
    """Answer, with this finish reason."""
    return Behaviour(finish=reason, text=text)


OK = Behaviour()
HANG = Behaviour(kind="hang")
RESET = Behaviour(kind="reset")
CUT = Behaviour(kind="cut")
EMPTY = Behaviour(text="")
REFUSAL = Behaviour(text="", refusal="I cannot help with that.")
MALFORMED = body(b'{"candidates": [')
NAMED = {
    "ok": OK,
    "hang": HANG,
    "reset": RESET,
    "cut": CUT,
    "empty": EMPTY,
    "refusal": REFUSAL,
    "malformed": MALFORMED,
}


def behaviour_of(name):
    """Read a behaviour from a word: ok, hang, 500, 429=0.1 (Retry-After), finish=length."""
    word, _, value = name.partition("=")
    if word.isdecimal():
        return status(int(word), retry_after=value or None)
    return finish(value) if word == "finish" else NAMED[word]


@dataclass(slots=True)
class Asked:
    """One request, taken apart."""

    provider: str
    model: str
    key: str | None
    seed: Any
    temperature: Any
    top_p: Any
    max_tokens: Any
    count: Any
    kinds: list[str]  # the parts of the message in order
    prompt: str
    media_type: str | None = None
    image: bytes | None = None
    thinking: Any = None  # how much the model may think, where that is asked


def take_gemini(path, headers, body):
    """Take a generateContent request apart."""
    config = body["generationConfig"]
    parts = [part for content in body["contents"] for part in content["parts"]]
    asked = Asked(
        provider="gemini",
        model=path.rpartition("/models/")[2].removesuffix(":generateContent"),
        key=headers.get("x-goog-api-key"),
        seed=config.get("seed"),
        temperature=config.get("temperature"),
        top_p=config.get("topP"),
        max_tokens=config.get("maxOutputTokens"),
        count=config.get("candidateCount"),
        kinds=["text" if "text" in part else "image" for part in parts],
        prompt="".join(part.get("text", "") for part in parts),
        thinking=config.get("thinkingConfig"),
    )
    for part in parts:
        if data := part.get("inlineData"):  # both spellings are protocol buffers' JSON
            asked.media_type = data.get("mimeType") or data.get("mime_type")
            asked.image = urlsafe_b64decode(data["data"])
    return asked


def take_chat(provider, headers, body):
    """Take a chat completion request apart, Mistral's or OpenAI's."""
    parts = [part for message in body["messages"] for part in message["content"]]
    asked = Asked(
        provider=provider,
        model=body["model"],
        key=headers.get("authorization", "").removeprefix("Bearer "),
        seed=body.get("random_seed" if provider == "mistral" else "seed"),
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        max_tokens=body.get("max_tokens"),
        count=body.get("n"),
        kinds=["text" if part["type"] == "text" else "image" for part in parts],
        prompt="".join(part.get("text", "") for part in parts),
    )
    for part in parts:
        if part["type"] == "image_url":
            url = part["image_url"] if isinstance(part["image_url"], str) else part["image_url"]["url"]
            kind, _, data = url.removeprefix("data:").partition(";base64,")
            asked.media_type, asked.image = kind, urlsafe_b64decode(data.translate({43: "-", 47: "_"}))
    return asked


def take_apart(path, headers, data):
    """Find the provider a request is meant for and take it apart."""
    body = json.loads(data)
    if path.startswith("/gemini/v1beta/models/") and path.endswith(":generateContent"):
        return take_gemini(path, headers, body)
    provider = {"/mistral/v1/chat/completions": "mistral", "/openai/v1/chat/completions": "openai"}[path]
    return take_chat(provider, headers, body)


def faults(asked, *, image):
    """Yield what is wrong with a request."""
    if not isinstance(asked.seed, int) or not 0 <= asked.seed < 2**31:
        yield f"seed {asked.seed!r}"
    if not isinstance(asked.temperature, int | float) or not isinstance(asked.top_p, int | float):
        yield f"temperature {asked.temperature!r}, top_p {asked.top_p!r}"
    if not isinstance(asked.max_tokens, int) or asked.count != 1:
        yield f"max tokens {asked.max_tokens!r}, candidates {asked.count!r}"
    if not asked.prompt:
        yield "no prompt"
    if image and asked.kinds != ["image", "text"]:
        yield f"parts {asked.kinds}"
    if image and not (asked.image or b"").startswith(MAGIC.get(asked.media_type, b"no such image type")):
        yield f"the image is no {asked.media_type}"


def gemini_body(asked, act, text):
    """Write a GenerateContentResponse."""
    usage = {"promptTokenCount": INPUT_TOKENS, "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS}
    if act.blocked:
        return {"promptFeedback": {"blockReason": act.blocked}, "usageMetadata": usage}
    parts = [{"text": "thinking...", "thought": True}, {"text": text}] if text else []
    content = {"role": "model", "parts": parts} if parts else {"role": "model"}
    return {
        "candidates": [{"content": content, "finishReason": act.finish or "STOP", "index": 0}],
        "usageMetadata": usage
        | {"candidatesTokenCount": OUTPUT_TOKENS - THOUGHT_TOKENS, "thoughtsTokenCount": THOUGHT_TOKENS},
        "modelVersion": f"{asked.model}-001",
        "responseId": f"answer-{asked.seed}",
    }


def chat_body(asked, act, text):
    """Write a chat completion."""
    message = {"role": "assistant", "content": text}
    if asked.provider == "openai":
        message["refusal"] = act.refusal
    return {
        "id": f"answer-{asked.seed}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": f"{asked.model}-001",
        "choices": [{"index": 0, "message": message, "finish_reason": act.finish or "stop"}],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def error_body(asked, act):
    """Write an error as the provider does; its prose repeats the prompt and the key, as real ones do."""
    _, google, code = REASONS.get(act.status, ("", "INTERNAL", "server_error"))
    prose = f"cannot do that with {asked.key}: {asked.prompt}"
    if asked.provider == "gemini":
        details = []
        if act.retry_delay:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            details.append({"@type": kind, "retryDelay": act.retry_delay})
        if act.code:
            details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": act.code})
        error = {"code": act.status, "message": prose, "status": google, "details": details}
        return {"error": error}
    if asked.provider == "mistral" and act.status == 422:
        return {"detail": [{"type": "missing", "loc": ["body"], "msg": prose, "input": asked.prompt}]}
    if asked.provider == "mistral":
        return {"object": "error", "message": prose, "type": act.code or code, "code": "1500"}
    return {"error": {"message": prose, "type": act.code or code, "param": None, "code": act.code or code}}


def packed(code, payload, headers=()):
    """Write an HTTP response."""
    reason = REASONS.get(code, ("OK" if code < 300 else "Internal Server Error",))[0]
    named = {name.lower() for name, _ in headers}
    lines = [f"HTTP/1.1 {code} {reason}", f"Content-Length: {len(payload)}"]
    lines += [] if "content-type" in named else ["Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii") + payload


@dataclass(eq=False)
class ProviderServer:
    """The server; `script` holds what it does with the first calls, after that all is well."""

    script: Sequence[Behaviour] = ()
    latency: float = 0.0
    key: str = KEY
    models: frozenset[str] | None = None  # None: every model is known
    image: bool = True  # every request must carry an image
    billing: str | None = None  # a file that gets a line for each billed call
    record: bool = True  # keep every request
    gate: int = 0  # hold every answer back until so many calls have come
    port: int = 0
    calls: int = 0
    billed: int = 0
    violations: list[str] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    def url(self, provider):
        """Return the base URL for a provider's client."""
        return url_of(provider, self.port)

    def __enter__(self):
        """Serve from a thread; the port is known on return."""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve(self._ready.set)))
        self._thread.start()
        assert self._ready.wait(120)
        return self

    def __exit__(self, *_):
        """Cut every connection and stop."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def serve(self, ready):
        """Serve until stopped; `ready` is called as soon as the port is open."""
        self._loop, self._stop, self._handlers = asyncio.get_running_loop(), asyncio.Event(), set()
        self._open = asyncio.Event()
        self._bill = os.open(self.billing, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if self.billing else None
        server = await asyncio.start_server(
            self._connection, "127.0.0.1", self.port, limit=1 << 24, backlog=2048
        )
        self.port = server.sockets[0].getsockname()[1]
        ready()
        await self._stop.wait()
        server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        if self._bill is not None:
            os.close(self._bill)

    async def _connection(self, reader, writer):
        """Answer the calls of one connection, one after another."""
        task = asyncio.current_task()
        self._handlers.add(task)
        try:
            while await self._call(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or the server is being stopped
        finally:
            self._handlers.discard(task)
            writer.close()

    async def _call(self, reader, writer):
        """Read one request and do what the script says; false ends the connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        began = self._loop.time()
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
        }
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        act, reply = self._reply(head[0], headers, data)
        if act.kind == "hang":
            await asyncio.sleep(3600)
        if self.calls >= self.gate:
            self._open.set()
        await self._open.wait()
        await asyncio.sleep(max(0.0, self.latency - (self._loop.time() - began)))
        if act.kind == "reset":
            linger = struct.pack("ii", 1, 0)  # closing sends RST
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            return False
        writer.write(reply[:-20] if act.kind == "cut" else reply)
        await writer.drain()
        return act.kind != "cut"

    def _reply(self, line, headers, data):
        """Check a request and write the answer to it."""
        target = line.split(" ")[1]
        act = self.script[self.calls] if self.calls < len(self.script) else OK
        self.calls += 1
        try:
            asked = take_apart(target, headers, data)
        except (KeyError, ValueError, TypeError) as error:
            self.violations.append(f"{line}: {type(error).__name__} {error}")
            return Behaviour(kind="status", status=404), packed(404, b'{"error": {"code": "unknown_path"}}')
        act = self._check(target, asked, act)
        if act.kind == "status":
            return act, packed(act.status, json.dumps(error_body(asked, act)).encode(), act.headers)
        if act.status == 200:
            self._commit(asked)
        if act.body is not None:
            return act, packed(act.status, act.body, act.headers)
        text = OK_TEXT.format(seed=asked.seed) if act.text is None else act.text
        write = gemini_body if asked.provider == "gemini" else chat_body
        return act, packed(200, json.dumps(write(asked, act, text)).encode(), act.headers)

    def _check(self, target, asked, act):
        """Note what is wrong with a request; a wrong key or model fails as it does at the provider."""
        if self.record:
            self.asked.append(asked)
        self.violations += faults(asked, image=self.image)
        if self.key in target or (asked.key and asked.key in target):
            self.violations.append("the key is in the URL")
        if asked.key != self.key:
            self.violations.append("the key header is missing or wrong")
            gemini = asked.provider == "gemini"
            return status(400, error="API_KEY_INVALID") if gemini else status(401)
        if self.models is not None and asked.model not in self.models:
            self.violations.append(f"unknown model {asked.model!r}")
            return status(404)
        return act

    def _commit(self, asked):
        """Bill a call."""
        self.billed += 1
        if self._bill is not None:
            prompt = sha256(asked.prompt.encode()).hexdigest()[:12]
            os.write(self._bill, f"{asked.provider}\t{asked.model}\t{asked.seed}\t{prompt}\n".encode())


def main():
    """Serve as a process until it is ended."""
    parser = argparse.ArgumentParser(description="A loopback server that speaks three providers' protocols.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--billing")
    parser.add_argument("--key", default=KEY)
    parser.add_argument("--script", default="", help="behaviours of the first calls, such as 429=0.1,500,ok")
    parser.add_argument("--no-image", action="store_true", help="requests need not carry an image")
    options = parser.parse_args()
    server = ProviderServer(
        script=[behaviour_of(name) for name in options.script.split(",") if name],
        latency=options.latency,
        key=options.key,
        image=not options.no_image,
        billing=options.billing,
        record=False,
        port=options.port,
    )
    asyncio.run(server.serve(lambda: print(server.port, flush=True)))  # noqa: T201


if __name__ == "__main__":
    main()
