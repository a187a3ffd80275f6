"""What a generator is asked, what it answers, and how it may fail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Outcome = Literal["ok", "truncated", "blocked", "refused", "empty", "malformed"]
Reach = Literal["local", "zero-retention", "any"]  # where a generator sends what it is asked
JobState = Literal["running", "done", "failed", "expired", "cancelled"]
MOST_TOKENS = 10_000_000  # a count beyond it is no count
MOST_CHARACTERS = 1_000_000  # of a draft; a longer text is no report


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image as it is sent."""

    data: bytes
    media_type: str  # image/png or image/jpeg
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How a draft is drawn."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One draft to be written."""

    prompt: str
    image: EncodedImage | None
    seed: int
    parameters: Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, as what it is."""

    outcome: Outcome
    text: str = ""
    finish_reason: str | None = None
    model_version: str | None = None  # as the provider names what it ran
    input_tokens: int | None = None
    output_tokens: int | None = None
    raw: Any = field(default=None, repr=False)  # the provider's body, JSON


def answer_of(fields: Mapping[str, Any], raw: Any) -> Answer:  # noqa: ANN401  # any JSON
    """Return an answer from what a provider sent; counts and names that cannot be are left out.

    >>> answer_of({"outcome": "ok", "text": "Clear.", "output_tokens": -5}, None).output_tokens is None
    True
    """
    text, finish, version = (fields.get(name) for name in ("text", "finish_reason", "model_version"))
    outcome = fields["outcome"]
    if text is not None and len(text) > MOST_CHARACTERS:
        outcome, text, raw = "malformed", "", f"a text of {len(text)} characters was not kept"
    return Answer(
        outcome=outcome,
        text=text or "",
        finish_reason=finish if isinstance(finish, str) else None,
        model_version=version if isinstance(version, str) else None,
        input_tokens=token_count(fields.get("input_tokens")),
        output_tokens=token_count(fields.get("output_tokens")),
        raw=raw,
    )


def token_count(value: object) -> int | None:
    """Return a number of tokens, None for anything that is none."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= MOST_TOKENS else None  # type: ignore[operator,return-value]


class Endpoint(Protocol):
    """Something that requests go to."""

    model: str  # the name it is journaled under, such as gemini:gemini-2.5-flash-lite
    source: str | None  # which server, revision or command is behind the name; None if there is only one
    reach: Reach  # where requests go; a cohort's egress policy is held against it

    async def close(self) -> None:
        """Let connections and processes go."""


class Generator(Endpoint, Protocol):
    """A model that writes drafts."""

    async def generate(self, request: Request) -> Answer:
        """Write one draft; raises TryAgainError or GenerationError."""


class BatchProvider(Endpoint, Protocol):
    """A model that writes drafts by the batch."""

    async def submit(self, name: str, requests: Sequence[tuple[str, Request]]) -> str:
        """Start a job under a name, one row for each (key, request); return its id."""

    async def find(self, name: str) -> str | None:
        """Return the id of the job that was submitted under a name, if there is one."""

    async def state(self, job_id: str) -> JobState:
        """Return how far a job is."""

    async def results(self, job_id: str) -> list[tuple[str, Answer]]:
        """Return the finished rows by key, in any order; rows that failed are left out."""
