"""What an upstream answers: drafts out of one completion, or out of server-sent events with chunks.

A draft keeps the upstream's message as it came, so that tool calls, refusals and
fields that tabon does not know reach the client.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from math import isfinite
from typing import Any, Final

from tabon.errors import UpstreamError
from tabon.service.parsing import LARGEST, depth_of

FACTS: Final = ("id", "created", "model", "system_fingerprint", "service_tier")  # of a completion
WHOLE: Final = frozenset({"role", "id", "type", "name"})  # keys of deltas that are not cut into pieces
MOST_TOOL_CALLS: Final = 128
DEPTH: Final = 64  # of lists and objects inside each other
SHALLOW: Final = 1000  # bytes that cannot be dangerously deep


@dataclass(frozen=True, slots=True)
class Draft:
    """One choice of the upstream."""

    message: Mapping[str, Any]
    finish_reason: str | None = None
    logprobs: Any = None

    @property
    def text(self) -> str:
        """Return the report that it is; empty for a tool call, a refusal and what a filter cut."""
        calls = self.message.get("tool_calls") or self.message.get("function_call")
        if calls or self.message.get("refusal") or self.finish_reason == "content_filter":
            return ""
        return text_of(self.message.get("content"))


@dataclass(frozen=True, slots=True)
class Reply:
    """What one call brought: its drafts by index, None if one did not come to its end."""

    drafts: tuple[Draft | None, ...]
    usage: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    broken: bool = False  # the stream ended before its end

    @property
    def came(self) -> int:
        """Count the drafts."""
        return sum(draft is not None for draft in self.drafts)


def malformed() -> UpstreamError:
    """Return the error for an answer that is none."""
    return UpstreamError(502, "the upstream's answer cannot be read; check --upstream", again=True)


def read_json(data: bytes) -> Any:  # noqa: ANN401  # any JSON
    """Return JSON, or None if it is none or too deep; a number that is not finite becomes null."""
    if len(data) > SHALLOW and depth_of(data) > DEPTH:
        return None
    try:
        return json.loads(data, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        return None


def reply_of(data: bytes, most: int) -> Reply:
    """Read a completion; what is not one is an error."""
    record = read_json(data)
    choices = record.get("choices") if isinstance(record, dict) else None
    if not isinstance(choices, list):
        raise malformed()
    drafts = []
    for choice in choices[:most]:
        if isinstance(choice, dict):
            message, reason = choice.get("message"), choice.get("finish_reason")
            if not isinstance(message, dict):
                raise malformed()
            drafts.append(Draft(message, reason if isinstance(reason, str) else None, choice.get("logprobs")))
    if not drafts:
        raise malformed()
    return Reply(tuple(drafts), _object(record.get("usage")), _facts(record))


class EventReader:
    r"""Puts server-sent events together from portions of bytes, however they are cut.

    >>> reader = EventReader()
    >>> list(reader.feed(b": hello\n\nda")), list(reader.feed(b"ta: 1\r\n\r\ndata: 2"))
    ([], [b'1'])
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._parts: list[bytes] = []  # of the line that is not whole yet
        self._data: list[bytes] = []
        self._after_cr = False

    def feed(self, portion: bytes) -> Iterator[bytes]:
        """Yield the data of each event that a portion completes; an unfinished last one never comes."""
        for line in self._lines(portion):
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data = []

    def _lines(self, portion: bytes) -> Iterator[bytes]:
        """Yield the lines that end here, in LF, CR LF or CR."""
        if not portion:
            return
        if self._after_cr and portion.startswith(b"\n"):
            portion = portion[1:]
        self._after_cr = portion.endswith(b"\r")
        first, *others = portion.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._parts.append(first)
        for line in others:
            yield b"".join(self._parts)
            self._parts = [line]


class StreamReader:
    """Puts the chunks of a stream together."""

    def __init__(self, most: int) -> None:
        """Expect so many choices at most."""
        self.done = False
        self._messages: list[dict[str, Any]] = [{} for _ in range(most)]
        self._reasons: list[str | None] = [None] * most
        self._logprobs: list[dict[str, Any] | None] = [None] * most
        self._usage: Mapping[str, Any] | None = None
        self._facts: dict[str, Any] = {}

    def add(self, data: bytes) -> Iterator[tuple[int, str]]:
        """Take one event; yield the text that it adds to which choice."""
        if data.strip() == b"[DONE]":
            self.done = True
            return
        chunk = read_json(data)
        if not isinstance(chunk, dict) or "error" in chunk:
            raise malformed()
        self._facts = {**_facts(chunk), **self._facts}
        self._usage = _object(chunk.get("usage")) or self._usage
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            index = choice.get("index", 0) if isinstance(choice, dict) else None
            if isinstance(index, int) and 0 <= index < len(self._messages):
                yield index, self._extend(index, choice)

    def reply(self) -> Reply:
        """Return the drafts that came to their end: with a reason, or as the stream is done."""
        drafts: list[Draft | None] = []
        for parts, reason, logprobs in zip(self._messages, self._reasons, self._logprobs, strict=True):
            message = {"role": "assistant", "content": None, **joined(parts)}
            whole = reason is not None or (self.done and parts)
            drafts.append(Draft(message, reason, joined(logprobs)) if whole else None)
        while drafts and drafts[-1] is None:
            drafts.pop()
        broken = not self.done and any(reason is None for reason in self._reasons)
        return Reply(tuple(drafts), self._usage, self._facts, broken)

    def _extend(self, index: int, choice: Mapping[str, Any]) -> str:
        """Add one piece to a choice; return its text."""
        delta = _object(choice.get("delta")) or _object(choice.get("message")) or {}
        extend(self._messages[index], delta)
        if isinstance(choice.get("finish_reason"), str):
            self._reasons[index] = choice["finish_reason"]
        if isinstance(choice.get("logprobs"), dict):
            self._logprobs[index] = found = self._logprobs[index] or {}
            extend(found, choice["logprobs"], flat=True)
        text = delta.get("content")
        return text if isinstance(text, str) else ""


def extend(found: dict[str, Any], delta: Mapping[str, Any], *, flat: bool = False) -> None:
    """Add a delta in place and in linear time: strings and lists grow, parts with an index find their own.

    >>> found = {"content": "Cl", "role": "assistant"}
    >>> extend(found, {"content": "ear.", "role": "assistant"})
    >>> joined(found)
    {'content': 'Clear.', 'role': 'assistant'}
    """
    for key, value in delta.items():
        old = found.get(key)
        if isinstance(value, str) and isinstance(old, str | StringIO) and key not in WHOLE:
            if isinstance(old, str):
                found[key] = StringIO()
                found[key].write(old)
            found[key].write(value)
        elif isinstance(value, list) and isinstance(old, list | None):
            found[key] = parts = [] if old is None else old
            if flat:
                parts.extend(value)
            else:
                _extend_parts(parts, value)
        elif isinstance(old, dict) and isinstance(value, dict):
            extend(old, value)
        elif value is not None or key not in found:
            found[key] = value


def _extend_parts(parts: list[Any], new: Sequence[Any]) -> None:
    """Merge lists of tool calls by their index; other parts follow each other."""
    for part in new:
        index = part.get("index") if isinstance(part, dict) else None
        if not isinstance(index, int) or not 0 <= index < MOST_TOOL_CALLS:
            parts.append(part)
            continue
        parts += [{} for _ in range(index + 1 - len(parts))]
        parts[index] = parts[index] if isinstance(parts[index], dict) else {}
        extend(parts[index], part)


def joined(value: Any) -> Any:  # noqa: ANN401  # any JSON
    """Return what `extend` made as plain JSON."""
    if isinstance(value, StringIO):
        return value.getvalue()
    if isinstance(value, dict):
        return {key: joined(one) for key, one in value.items()}
    return [joined(one) for one in value] if isinstance(value, list) else value


def total_usage(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up what several calls used, details too; a number that no count can be is left out.

    >>> total_usage([{"total": 2, "d": {"x": 1}}, {"total": 3, "d": None}, {"total": 1e308}])
    {'total': 5, 'd': {'x': 1}}
    """
    found: dict[str, Any] = {}
    for usage in usages:
        for key, value in usage.items():
            old = found.get(key)
            if isinstance(value, dict):
                found[key] = total_usage([old if isinstance(old, dict) else {}, value])
            elif isinstance(value, int | float) and not 0 <= value <= LARGEST:
                continue
            elif isinstance(value, int | float) and isinstance(old, int | float):
                found[key] = old + value
            elif old is None:
                found[key] = value
    return found


def _finite(digits: str) -> float | None:
    """Read a number; what JSON cannot say again becomes nothing."""
    number = float(digits)
    return number if isfinite(number) else None


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a completion says of itself."""
    return {key: record[key] for key in FACTS if isinstance(record.get(key), str | int)}


def _object(value: Any) -> dict[str, Any] | None:  # noqa: ANN401  # any JSON
    """Return an object, or None."""
    return value if isinstance(value, dict) else None


def text_of(content: Any) -> str:  # noqa: ANN401  # any JSON
    """Return the text of a message: a string, or the text parts of a list."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""
