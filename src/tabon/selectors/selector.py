"""The selector: a bank and a scorer, asked for the best draft.

What holds for every scorer stands here: drafts that lack a section, sections
that cannot be compared, several priors, ties, and when nothing is chosen.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import numpy as np

from tabon.encoders import ENCODERS, Encoder, SentenceEncoder, load_built_in, load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError, EncoderError
from tabon.method.bank import TransitionBank
from tabon.method.scoring import Aggregate, ZeroPolicy
from tabon.method.selection import EMPTY_POLICY, Note, SectionDistances, Selection, select
from tabon.method.signature import Fingerprint, Signature
from tabon.selectors.names import load_scorer
from tabon.selectors.prepared import Batch, make_batch, one_prior_each
from tabon.selectors.scorer import Distances, Scorer, Scores
from tabon.selectors.transition import Transition
from tabon.selectors.weights import who
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Report, Section, report_from_record

LONG_SECTION = 20_000  # characters; longer than any real section
LONGEST_NAME = 100  # characters of an encoder's name that a message repeats


@dataclass(frozen=True, slots=True)
class _Judged:
    """One query's drafts in one section; NaN where a draft cannot be compared."""

    distances: Distances
    parts: Mapping[str, Distances]
    scores: Scores
    rows: range  # of its newest prior's drafts in the batch


class Selector:
    """Picks the draft with the smallest distance: by the paper's method, or by any other scorer."""

    def __init__(  # noqa: PLR0913  # each is a named setting of the method
        self,
        bank: TransitionBank,
        scorer: str | Scorer = "transition",
        *,
        distance: str | None = None,
        aggregate: Aggregate | None = None,
        num_neighbours: int | None = None,
        zero: ZeroPolicy | None = None,
        history: float = 0.0,
        encoder: str | Path | SentenceEncoder | Encoder | None = None,
        store: SentenceStore | None = None,
        allow_bank_patients: bool = False,
    ) -> None:
        """Refuse settings that do not fit the bank or the scorer; load the encoder that built the bank.

        Args:
            bank: the training transitions.
            scorer: what gives drafts their distances: the paper's method, a name such as `fused` or
                `consensus:rouge-l-f`, or an object of your own.
            distance: the set distance of eq. 2-5; novelty where it is left out.
            aggregate: `min` or `knn` (eq. 10); min where it is left out.
            num_neighbours: the k of `knn`; 10 where it is left out.
            zero: how a draft without change is scored; neutral where it is left out.
            history: the weight of each prior against the next newer one; 0 looks at the newest only.
            encoder: the one that built the bank; found by name where it is left out.
            store: embeddings on disk.
            allow_bank_patients: answer queries of patients who are in the bank.
        """
        options = {
            "distance": distance,
            "aggregate": aggregate,
            "num_neighbours": num_neighbours,
            "zero": zero,
        }
        given = {name: value for name, value in options.items() if value is not None}
        self.bank, self.scorer, self.history = bank, load_scorer(scorer, bank, **given), history
        if not 0 <= history <= 1:
            raise BadInputError(f"history is {history}; give a number from 0 (newest prior only) to 1")
        if history and not self.scorer.uses_prior:
            raise BadInputError(
                f"history does not count for {self.scorer.name}, which looks at no prior; leave one out"
            )
        self.encoder = bank_encoder(bank, encoder)
        Fingerprint.of(self.encoder).check(bank.fingerprint)
        self.store, self._allow_bank_patients = store, allow_bank_patients

    def select(
        self, prior: Report | str, candidates: Sequence[Report | str], *, patient: str | None = None
    ) -> Selection:
        """Choose among drafts of one visit, given the patient's prior report."""
        if isinstance(candidates, str | Mapping):
            raise BadInputError("candidates is one draft; give a list of drafts")
        drafts = tuple(map(_report, candidates))
        query = Query(id="", priors=(_report(prior),), candidates=drafts, patient=patient)
        return self.select_many([query])[0]

    def select_many(self, queries: Sequence[Query]) -> list[Selection]:
        """Choose for many queries at once; each result is as if it had been asked alone."""
        asked = list(one_prior_each(queries)) if self.history else list(queries)
        batch = self.batch(asked)
        scored = {section: self.scorer.score(batch, section) for section in SECTIONS}
        return [
            self._choose(query, batch, places, scored)
            for query, places in zip(queries, _places(queries, asked), strict=True)
        ]

    def batch(self, queries: Sequence[Query]) -> Batch:
        """Split and embed the reports of some queries."""
        return make_batch(queries, self.bank, self.encoder, self.store)

    @cached_property
    def signature(self) -> str:
        """Return the line that goes under every number this selector gives."""
        fingerprint = self.bank.fingerprint
        known = {
            "encoder": f"{fingerprint['encoder']}@{fingerprint['weights'][:12]}",
            "splitter": fingerprint["splitter"],
            "parser": fingerprint["parser"],
            "sets": fingerprint["sets"],
            "empty": EMPTY_POLICY,
        }
        history = {"history": f"{self.history:g}"} if self.history else {}
        if isinstance(self.scorer, Transition):
            name = self.bank.name_under(self.scorer.distance)
            line = str(Signature(**known, **self.scorer.settings, bank=name))
            return "|".join([line, *(f"{name}:{value}" for name, value in history.items())])
        last = {"bank": self.bank.sha256[:12], "tabon": version("tabon")}
        parts = {"selector": self.scorer.name, **self.scorer.settings, **history, **known, **last}
        return "|".join(f"{name}:{value}" for name, value in parts.items())

    def _choose(
        self, query: Query, batch: Batch, places: Sequence[int], scored: Mapping[Section, Scores]
    ) -> Selection:
        """Put one query's sections together (eq. 11-12), or say why nothing is chosen."""
        flags = tuple(self._flags(query, batch, places, scored))
        reason = self._reason_to_abstain(query, batch, places)
        if reason is not None:
            return Selection(selected=None, flags=flags, abstained=reason, signature=self.signature)
        judged = {name: self._judge(batch, places, scores) for name, scores in scored.items()}
        sections = {
            name: _section_distances(part)
            for name, part in judged.items()
            if not np.isnan(part.distances).all()
        }
        if not sections:
            return Selection(
                selected=None, flags=flags, abstained="nothing-to-compare", signature=self.signature
            )
        return select(sections, flags=flags, signature=self.signature)

    def _judge(self, batch: Batch, places: Sequence[int], scores: Scores) -> _Judged:
        """Weigh a query's priors by how new they are; those without a value are left out."""
        rows = batch.rows(places[-1])
        ages = np.arange(len(places), dtype=np.float64)[::-1]
        weights: Distances = np.power(self.history, ages) if len(places) > 1 else np.ones(1)
        stacks = [batch.rows(place) for place in places]
        distances = _weighted(weights, [scores.distances[list(row)] for row in stacks])
        parts = {
            name: _weighted(weights, [values[list(row)] for row in stacks])
            for name, values in scores.parts.items()
        }
        return _Judged(distances, parts, scores, rows)

    def _reason_to_abstain(self, query: Query, batch: Batch, places: Sequence[int]) -> str | None:
        """Return why a query cannot be answered, before any distance is looked at."""
        if query.patient in self.bank.patients and not self._allow_bank_patients:
            return "patient-in-bank"
        if who(query) in getattr(self.scorer, "trained_on", ()):
            return "trained-on"
        if not query.candidates:
            return "no-drafts"
        if self.scorer.needs_prior and not any(any(batch.priors[place].values()) for place in places):
            return "empty-prior"
        drafts = [batch.drafts[row] for row in batch.rows(places[-1])]
        return None if any(any(draft.values()) for draft in drafts) else "all-drafts-empty"

    def _flags(
        self, query: Query, batch: Batch, places: Sequence[int], scored: Mapping[Section, Scores]
    ) -> Iterator[Note]:
        """Yield what a reader should know."""
        rows = batch.rows(places[-1])
        for section, scores in scored.items():
            if self.scorer.needs_prior and not any(batch.priors[place][section] for place in places):
                yield Note("prior-lacks", section)
            elif scores.bank_is_empty and any(batch.drafts[row][section] for row in rows):
                yield Note("bank-lacks", section)
            if len(query.prior.section(section)) > LONG_SECTION:
                yield Note("long-section", section)
            for number, row in enumerate(rows):
                if not batch.drafts[row][section]:
                    yield Note("draft-lacks", section, number)
                if len(query.candidates[number].section(section)) > LONG_SECTION:
                    yield Note("long-section", section, number)
            changeless = (number for number, row in enumerate(rows) if row in scores.unchanged)
            yield from (Note("no-change", section, number) for number in changeless)


def _report(value: Report | str) -> Report:
    """Take a report as it is, or read it from text or a record."""
    return value if isinstance(value, Report) else report_from_record(value)


def _places(queries: Sequence[Query], asked: Sequence[Query]) -> Iterator[list[int]]:
    """Yield where in the batch each query stands, once for each prior, newest last."""
    if len(queries) == len(asked):
        yield from ([place] for place in range(len(queries)))
        return
    owners = [row for row, query in enumerate(queries) for _ in range(max(1, len(query.priors)))]
    for _, group in groupby(enumerate(owners), key=lambda pair: pair[1]):
        yield [place for place, _ in group]


def _weighted(weights: Distances, rows: Sequence[Distances]) -> Distances:
    """Return the weighted mean over priors, of the defined values; NaN where none is."""
    if len(rows) == 1:
        return rows[0]
    stack = np.stack(rows)
    there = ~np.isnan(stack) * weights[:, None]
    total = there.sum(axis=0)
    sums: Distances = (np.where(np.isnan(stack), 0.0, stack) * there).sum(axis=0)
    means: Distances = np.divide(sums, total, out=np.full(len(sums), np.nan), where=total > 0)
    return means


def _section_distances(judged: _Judged) -> SectionDistances:
    """Give drafts that lack the section a distance behind all that have it."""
    known = ~np.isnan(judged.distances)
    worst = judged.scores.worst
    behind = 1.0 + float(judged.distances[known].max()) if worst is None else worst
    nearest = judged.scores.nearest
    return SectionDistances(
        distances=tuple(np.where(known, judged.distances, behind).tolist()),
        nearest=tuple(nearest[row] if nearest else () for row in judged.rows),
        parts={
            name: tuple(None if np.isnan(value) else float(value) for value in values)
            for name, values in judged.parts.items()
        },
        compared=tuple(known.tolist()),
    )


def bank_encoder(
    bank: TransitionBank, encoder: str | Path | SentenceEncoder | Encoder | None = None
) -> Encoder:
    """Load the encoder that the user names, else the built-in one that the bank names.

    A bank may come from anyone, so its text alone loads no folder and fetches nothing.
    """
    return load_built_in(encoder_of(bank)) if encoder is None else load_encoder(encoder)


def encoder_of(bank: TransitionBank) -> str:
    """Return the name of the built-in encoder that built the bank, and where it ran."""
    name, revision = (str(bank.fingerprint[field])[:LONGEST_NAME] for field in ("encoder", "revision"))
    if name not in ENCODERS:
        raise EncoderError(
            f"the bank was built with the encoder {name!r} (revision {revision!r}), which is not built in; "
            "pass that encoder yourself: --encoder FOLDER or --encoder owner/model@revision"
        )
    precision = str(bank.fingerprint["precision"]).partition(" ")[0]
    device = "&device=cuda" if "cuda" in str(bank.fingerprint.get("batching")) else ""
    return name if precision == "float32" else f"{name}?precision={precision}{device}"
