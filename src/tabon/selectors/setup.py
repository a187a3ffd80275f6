"""From settings to a selector, and from a batch of queries to lines of an output file."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError, EncoderError, TransportError
from tabon.method.bank import TransitionBank
from tabon.method.distances import DistanceName
from tabon.method.nearest import Aggregate, ZeroPolicy
from tabon.method.selection import ABSTENTIONS, Selection
from tabon.search import open_search
from tabon.selectors import Selector
from tabon.selectors.abstention import Calibration, abstaining, from_bank
from tabon.selectors.scorer import PAPER, AnySelector, Batch
from tabon.text.records import BadLine, Query

CHARACTERS_AT_ONCE = 2_000_000  # twice what 256 usual queries have


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionSettings:
    """The method that `tabon select` uses; the defaults are its own."""

    selector: str = PAPER
    distance: DistanceName | None = None  # None: the selector's own
    aggregate: Aggregate | None = None
    neighbours: int | None = None
    zero: ZeroPolicy | None = None
    history: float = 0.0
    allow_bank_patients: bool = False
    abstain: float | None = None
    calibration: Calibration | None = field(default=None, hash=False)
    encoder: str | None = None
    search: str | None = None
    store: Path | None = None  # on the machine that answers


class AbstainingSelector:
    """A selector that abstains where the pick is implausible."""

    def __init__(self, selector: Selector, calibration: Calibration | None, rate: float) -> None:
        """Take a calibration, or make one from the bank."""
        self._selector, self._rate = selector, rate
        self.encoder, self.signature = selector.encoder, selector.signature
        self._calibration = from_bank(selector) if calibration is None else calibration

    def select_many(self, queries: Sequence[Query], /) -> list[Selection]:
        """Choose, or abstain."""
        return self.choose(self._selector.batch(queries))

    def choose(self, batch: Batch) -> list[Selection]:
        """Choose for each query of a batch, or abstain."""
        return abstaining(self._selector.choose(batch), self._calibration, self._rate)


def may_abstain(selector: Selector, settings: SelectionSettings) -> Selector | AbstainingSelector:
    """Return a selector that abstains where the settings ask for that."""
    if settings.abstain is None and settings.calibration is None:
        return selector
    return AbstainingSelector(selector, settings.calibration, settings.abstain or 0.0)


def make_selector(
    bank: TransitionBank, settings: SelectionSettings, encoder: Encoder | None = None
) -> Selector:
    """Return the selector that gives the distances; `encoder` takes the place of the one that is named."""
    if settings.search is not None:
        if settings.selector.partition(":")[0] not in (PAPER, "transition"):
            raise BadInputError(
                f"--search does not count beside --selector {settings.selector}, which does not search "
                "transitions; leave one of them out"
            )
        bank = bank.with_search(open_search(settings.search))
    store = None if settings.store is None else SentenceStore(settings.store)
    return Selector(
        bank,
        settings.selector,
        distance=settings.distance,
        aggregate=settings.aggregate,
        num_neighbours=settings.neighbours,
        zero=settings.zero,
        history=settings.history,
        encoder=settings.encoder if encoder is None else encoder,
        store=store,
        allow_bank_patients=settings.allow_bank_patients,
    )


def in_batches(queries: Iterator[Query | BadLine], size: int) -> Iterator[list[Query | BadLine]]:
    """Cut a stream into lists that are answered at once; long reports make them shorter."""
    batch: list[Query | BadLine] = []
    characters = 0
    for query in queries:
        batch.append(query)
        reports = (*query.priors, *query.candidates) if isinstance(query, Query) else ()
        characters += sum(len(report.findings) + len(report.impression) for report in reports)
        if len(batch) == size or characters > CHARACTERS_AT_ONCE:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


class Complaint(NamedTuple):
    """Why a query has no answer; many queries may have the same reason."""

    place: str  # line 3, query 'q1'
    reason: str

    def __str__(self) -> str:
        """Write one line.

        >>> print(Complaint("line 3", "not JSON at column 1; fix or remove the line"))
        line 3: not JSON at column 1; fix or remove the line
        """
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Answered:
    """A batch of queries with its answers: lines for the output, and lines for people."""

    selections: bytes  # JSON Lines
    complaints: tuple[Complaint, ...]  # one for each query that has no answer
    queries: int


def answer(selector: AnySelector, batch: Sequence[Query | BadLine]) -> Answered:
    """Answer a batch of queries; one that cannot be answered does not stop the others."""
    complaints = [
        Complaint(f"line {line.number}{'' if line.id is None else f', query {line.id!r}'}", line.message)
        for line in batch
        if isinstance(line, BadLine)
    ]
    lines = []
    for query, found in _answers(selector, [query for query in batch if isinstance(query, Query)]):
        reason: object = found
        if isinstance(found, Selection):
            lines.append(json.dumps({**query.facts, **found.as_record(query.id)}).encode() + b"\n")
            abstained = None if found.abstained == "implausible" else found.abstained  # that is an answer
            reason = None if abstained is None else ABSTENTIONS[abstained]
        complaints += [] if reason is None else [Complaint(f"query {query.id!r}", str(reason))]
    return Answered(b"".join(lines), tuple(complaints), len(batch))


def _answers(selector: AnySelector, queries: list[Query]) -> Iterator[tuple[Query, Selection | Exception]]:
    """Answer a batch at once; if that fails, one by one, so that one query cannot stop the others."""
    try:
        selections = selector.select_many(queries)
    except (EncoderError, TransportError) as error:
        if len(queries) == 1:
            yield queries[0], error
            return
        for query in queries:
            yield from _answers(selector, [query])
    else:
        yield from zip(queries, selections, strict=True)
