"""Between bytes on the wire and values: queries in, records out, errors without text.

What could take much time or memory is refused here, before it is queued. No
message repeats what was sent.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Final

import numpy as np

from tabon.errors import (
    BadInputError,
    EncoderError,
    SearchServiceError,
    ServiceError,
    TransportError,
)
from tabon.explanation.explanation import Explanation
from tabon.method.selection import Selection
from tabon.text.records import DRAFTS, TEXT_KEYS, Query, query_from_record
from tabon.text.reports import Report
from tabon.text.sentences import split_sentences

NOTICE: Final = "Research use only. Not a medical device."
LARGEST: Final = 2**53 - 1  # whole number that every JSON reader keeps exactly
SHORT: Final = 256  # characters of an id or a patient
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)  # possessive: linear whatever the bytes
_MARK = re.compile(r"[^\w\s,\-]|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")
_PIECE = re.compile(r"[A-Za-z]{1,4}|[^\sA-Za-z]")  # about a token of a language model
LONGEST_SENTENCE: Final = 512  # tokens of a sentence that an encoder reads
PAIRS: Final = 2_000_000  # of sentences that a batch compares: bounds its memory
_STEP = np.zeros(256, dtype=np.int8)
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large one request may be."""

    body: int = 1_000_000  # bytes
    drafts: int = 64
    priors: int = 16
    text: int = 20_000  # characters of one section; longer than a real one
    marks: int = 600  # punctuation marks and line ends of one report: bounds its sentences
    all_marks: int = 6000  # the same of a whole query: bounds its memory
    pieces: int = 12_000  # about the tokens of its distinct sentences: bounds its time
    depth: int = 32  # of lists and objects inside each other


def query_from_body(body: bytes, limits: Limits) -> Query:
    """Read the one query of a request, or say in one sentence why it cannot be answered."""
    return bounded_query(object_from_body(body, limits), limits)


def bounded_query(record: Mapping[str, Any], limits: Limits) -> Query:
    """Return the query of a record that is within the limits."""
    _check_sizes(record, limits)
    names = _names(record)
    try:
        query = query_from_record({**record, **names})
    except BadInputError as error:
        message = re.sub(r" \(or rename .*\)\Z", "", str(error), flags=re.DOTALL)  # the client's own keys
        raise ServiceError(422, message, "see docs/reference/file-formats.md, Queries") from None
    all_marks = 0
    for place, report in _places(query):
        marks = _marks(report)
        all_marks += marks
        if marks > limits.marks:
            raise ServiceError(
                422, f"{place} has more than {limits.marks} punctuation marks and line ends", "shorten it"
            )
    if all_marks > limits.all_marks:
        raise ServiceError(
            422,
            f"the query has more than {limits.all_marks} punctuation marks and line ends",
            "send fewer drafts",
        )
    return query


def load_of(query: Query, limits: Limits) -> float:
    """Return the share of a batch that a query fills; refuse one that would keep the worker for long.

    Time grows with the tokens that are encoded, memory with the pairs of sentences that are compared.
    """
    texts = [text for _, report in _places(query) for text in (report.findings, report.impression)]
    pieces = sum(map(_pieces, texts))
    if pieces > limits.pieces:
        pieces = _distinct_pieces(texts, limits.pieces)
    before = _marks(query.prior) + 1
    pairs = sum(before * (_marks(draft) + 1) for draft in query.candidates)
    return max(pieces / limits.pieces, pairs / PAIRS)


def selection_body(query: Query, selection: Selection) -> bytes:
    """Return the line that `tabon select` writes, without its end."""
    return json.dumps({**query.facts, **selection.as_record(query.id)}).encode()


def explanation_body(explanation: Explanation) -> bytes:
    """Return the line that `tabon explain --json` prints, without its end."""
    return json.dumps(explanation.as_record()).encode()


def choice_record(selection: Selection) -> dict[str, Any]:
    """Return what both the reranker and the gateway say of a pick."""
    return {
        "selected": selection.selected,
        "margin": selection.margin,
        "tied": selection.tied,
        "abstained": selection.abstained,
        "p": selection.p,
        "signature": selection.signature,
        "notice": NOTICE,
    }


def choice_headers(query: Query, selection: Selection | None = None) -> dict[str, str]:
    """Return what a client that reads no field of ours can see: no prior, nothing picked."""
    prior = {"X-Tabon-Prior": "none"} if query.prior.is_empty else {}
    abstained = None if selection is None else selection.abstained
    return prior | ({} if abstained is None else {"X-Tabon-Abstained": abstained})


def ranking(selection: Selection, came: Iterable[int]) -> tuple[int, ...]:
    """Return the places from best to worst, the pick first; as they came if nothing was picked.

    >>> ranking(Selection(selected=2, total_distances=(0.3, 0.2, 0.1)), [0, 1, 2])
    (2, 1, 0)
    """
    if selection.selected is None:
        return tuple(came)
    best, distances = selection.selected, selection.total_distances
    return tuple(sorted(came, key=lambda place: (place != best, distances[place], place)))


def whole_number(text: str, name: str, most: float = inf) -> int:
    """Read a parameter of a request: a whole number from 0 on; of a very long one the beginning.

    >>> whole_number("007", "draft", 63)
    7
    """
    digits = text.lstrip("0")[:20] or "0"
    if not (text.isascii() and text.isdecimal()) or int(digits) > most:
        raise ServiceError(422, f"{name} has a value that is not taken", "see /openapi.json")
    return int(digits)


def service_error(error: BaseException) -> ServiceError:
    """Return what a client is told of a failure; only tabon's own sentences are passed on."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, SearchServiceError):
        return ServiceError(503, str(error), "try again later", retry_after=5)
    if isinstance(error, BadInputError):
        return ServiceError(422, str(error))
    if isinstance(error, EncoderError | TransportError):
        return ServiceError(500, str(error))
    return ServiceError(500, "the query could not be answered", "the log names the kind of error")


def depth_of(body: bytes) -> int:
    """Return how deep lists and objects stand inside each other, in linear time and without recursion.

    >>> depth_of(b'{"a": [1, "[[["]}')
    2
    """
    steps = _STEP[np.frombuffer(_STRING.sub(b"", body), dtype=np.uint8)]
    return int(np.cumsum(steps, dtype=np.int64).max(initial=0))


def object_from_body(body: bytes, limits: Limits) -> Mapping[str, Any]:
    """Parse a body into an object that other programs can read too."""
    if depth_of(body) > limits.depth:
        raise ServiceError(400, f"the JSON is nested more than {limits.depth} levels deep", "flatten it")
    try:
        record = json.loads(body.decode("utf-8"), parse_constant=_finite, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise ServiceError(400, f"the body is not UTF-8 at byte {error.start}", "send UTF-8") from None
    except json.JSONDecodeError as error:
        raise ServiceError(400, f"the body is not JSON at character {error.pos}", "send one object") from None
    except (ValueError, RecursionError):  # a number of thousands of digits
        raise ServiceError(400, "the JSON holds what cannot be read as a number", "send a string") from None
    if not isinstance(record, dict):
        raise ServiceError(
            422, "the body is not an object", "send one query, see docs/reference/file-formats.md"
        )
    return record


def _finite(digits: str) -> float:
    """Refuse NaN and infinity, which are not JSON, and a number beyond all that a float holds."""
    number = float(digits)
    if not isfinite(number):
        raise ValueError(digits)
    return number


def _check_sizes(record: Mapping[str, Any], limits: Limits) -> None:
    """Refuse more reports than are answered, and a text that is longer than any real one, blanks included."""
    for key, most, what in (
        ("candidates", limits.drafts, "drafts"),
        (DRAFTS, limits.drafts, "drafts"),
        ("prior", limits.priors, "priors"),
    ):
        found = record.get(key)
        if isinstance(found, list) and len(found) > most:
            raise ServiceError(
                422, f"the query has {len(found)} {what}; at most {most} are answered", "send fewer"
            )
        for report in found if isinstance(found, list) else [found]:
            parts = map(report.get, TEXT_KEYS) if isinstance(report, dict) else [report]
            longest = max((len(part) for part in parts if isinstance(part, str)), default=0)
            if longest > limits.text:
                raise ServiceError(
                    422,
                    f"{key} has a text of {longest} characters; at most {limits.text} are taken",
                    "shorten it",
                )


def _names(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the id and the patient, where they are there; 7.0 is a whole number in JSON Schema."""
    names = {key: record[key] for key in ("id", "patient") if key in record}
    for key, value in names.items():
        if isinstance(value, str) and len(value) > SHORT:
            raise ServiceError(
                422, f"'{key}' has {len(value)} characters; at most {SHORT} are taken", "shorten it"
            )
        if isinstance(value, int | float) and abs(value) > LARGEST:
            raise ServiceError(422, f"'{key}' is too large a number", "send a string")
        if isinstance(value, float) and value.is_integer():
            names[key] = int(value)
    return names


def _places(query: Query) -> Iterator[tuple[str, Report]]:
    """Yield each report with its place in the query."""
    yield from (("the prior", report) for report in query.priors)
    yield from ((f"draft {number}", report) for number, report in enumerate(query.candidates))


def _marks(report: Report) -> int:
    """Count what could end a sentence in the sections that are compared."""
    return sum(1 for text in (report.findings, report.impression) for _ in _MARK.finditer(text))


def _pieces(text: str) -> int:
    """Estimate the tokens of a text: four letters, or one of anything else."""
    return sum(1 for _ in _PIECE.finditer(text))


def _distinct_pieces(texts: Iterable[str], most: int) -> int:
    """Estimate the tokens that are encoded: a sentence that several drafts share counts once."""
    seen: set[str] = set()
    found = 0
    for sentence in (sentence for text in texts for sentence in split_sentences(text)):
        found += 0 if sentence in seen else min(_pieces(sentence), LONGEST_SENTENCE)
        seen.add(sentence)
        if found > most:
            raise ServiceError(
                413,
                f"the distinct sentences of the query have more than about {most} tokens",
                "send fewer or shorter drafts",
            )
    return found
