"""The selector: a bank and a scorer, asked for the best draft.

What holds for every scorer stands here: drafts that lack a section, sections
that cannot be compared, several priors, ties, and when nothing is chosen.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import numpy as np

from tabon.encoders import ENCODERS, Encoder, SentenceEncoder, load_built_in, load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError, EncoderError
from tabon.method.bank import TransitionBank
from tabon.method.distances import DistanceName
from tabon.method.nearest import Aggregate, ZeroPolicy
from tabon.method.selection import EMPTY_POLICY, Note, SectionDistances, Selection, Signature, select
from tabon.method.sentence_sets import Fingerprint
from tabon.selectors.scorer import Batch, Distances, Scorer, Scores, load_scorer, make_batch
from tabon.selectors.transition import Transition
from tabon.selectors.weights import who
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, ReportLike, Section

LONG_SECTION = 20_000  # characters; longer than any real section
LONGEST_NAME = 100  # characters of an encoder's name that a message repeats


class Selector:
    """Picks the draft with the smallest distance: by the paper's method, or by any other scorer.

    Args:
        bank: the training transitions.
        scorer: what gives drafts their distances: the paper's method, a name such as `fused` or
            `consensus:rouge-l-f`, or an object of your own.
        distance: the set distance of eq. 2-5; novelty if it is left out.
        aggregate: `min` or `knn` (eq. 10); min if it is left out.
        num_neighbours: the k of `knn`; 10 if it is left out.
        zero: how a draft without change is scored; match if it is left out (neutral for `two-sided`).
        history: the weight of each prior against the next newer one; 0 looks at the newest only.
        encoder: the one that built the bank; found by name if it is left out.
        store: embeddings on disk.
        allow_bank_patients: answer queries of patients who are in the bank.

    >>> from tabon.method.bank import TransitionBank
    >>> from tabon.text.records import Transition
    >>> moves = [Transition(prior="Clear lungs.", current="Clear lungs. New effusion.", patient="p1")]
    >>> bank = TransitionBank.build(moves, encoder="hashing")
    >>> chooser = Selector(bank, distance="mean-shift")
    >>> chooser.select("Clear lungs.", ["Rib fractures.", "New effusion."], patient="p2")
    Selection(selected=1, drafts=2, margin=0.25)
    """

    def __init__(  # noqa: PLR0913  # each is a named setting of the method
        self,
        bank: TransitionBank,
        scorer: str | Scorer = "transition",
        *,
        distance: DistanceName | None = None,
        aggregate: Aggregate | None = None,
        num_neighbours: int | None = None,
        zero: ZeroPolicy | None = None,
        history: float = 0.0,
        encoder: str | Path | SentenceEncoder | Encoder | None = None,
        store: SentenceStore | None = None,
        allow_bank_patients: bool = False,
    ) -> None:
        """Refuse settings that do not fit the bank or the scorer; load the encoder that built the bank."""
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

    def __repr__(self) -> str:
        """Name the method and the bank."""
        return f"Selector({self.scorer.name!r}, {self.bank!r})"

    def select(
        self,
        prior: ReportLike | Sequence[ReportLike] | None,
        drafts: Sequence[ReportLike],
        *,
        patient: str | int | None = None,
    ) -> Selection:
        """Choose among drafts of one visit, given the patient's prior report.

        Args:
            prior: the last report, or all before, oldest first; as text, as a `Report` or as a record.
            drafts: what to choose from.
            patient: whose they are; without it nobody sees that the bank holds the answer.
        """
        return self.select_many([Query(prior=prior, candidates=drafts, patient=patient)])[0]

    def select_many(self, queries: Iterable[Query]) -> list[Selection]:
        """Choose for many queries at once; each result is as if it had been asked alone.

        Args:
            queries: from `read_visits`, `read_queries` or `simulate`, or made by hand.
        """
        return self.choose(self.batch(list(queries)))

    def batch(self, queries: Sequence[Query]) -> Batch:
        """Split and embed the reports of some queries: of every prior where history counts."""
        return make_batch(queries, self.bank, self.encoder, self.store, each_prior=self.history > 0)

    def choose(self, batch: Batch) -> list[Selection]:
        """Choose for each query of a batch (eq. 11-12), or say why nothing is chosen."""
        scored = {section: self.scorer.score(batch, section) for section in SECTIONS}
        found = []
        for places in batch.places:
            notes = tuple(self._notes(batch, places, scored))
            reason = self._reason_to_abstain(batch, places)
            if reason is None:
                compared = ((name, self._compared(batch, places, scores)) for name, scores in scored.items())
                sections = {name: part for name, part in compared if part is not None}
                found.append(select(sections, flags=notes, signature=self.signature))
            else:
                found.append(
                    Selection(selected=None, flags=notes, abstained=reason, signature=self.signature)
                )
        return found

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

    def _compared(self, batch: Batch, places: range, scores: Scores) -> SectionDistances | None:
        """Return one query's distances in one section; None if no draft can be compared.

        Priors count by how new they are. A draft that lacks the section is behind all that have it.
        """
        weights = np.power(self.history, np.arange(len(places), dtype=np.float64)[::-1])
        rows = [list(batch.rows(place)) for place in places]
        distances = _weighted(weights, [scores.distances[each] for each in rows])
        known = ~np.isnan(distances)
        if not known.any():
            return None
        behind = 1.0 + float(distances[known].max()) if scores.worst is None else scores.worst
        parts = {
            name: _weighted(weights, [values[each] for each in rows]) for name, values in scores.parts.items()
        }
        return SectionDistances(
            distances=tuple(np.where(known, distances, behind).tolist()),
            nearest=tuple(scores.nearest[row] if scores.nearest else () for row in rows[-1]),
            parts={
                name: tuple(None if np.isnan(value) else float(value) for value in values)
                for name, values in parts.items()
            },
            compared=tuple(known.tolist()),
        )

    def _reason_to_abstain(self, batch: Batch, places: range) -> str | None:
        """Return why a query cannot be answered, before any distance is looked at."""
        query = batch.queries[places[-1]]
        if query.patient in self.bank.patients and not self._allow_bank_patients:
            return "patient-in-bank"
        trained_on = getattr(self.scorer, "trained_on", ())
        if trained_on and who(query) in trained_on:
            return "trained-on"
        if not query.candidates:
            return "no-drafts"
        if self.scorer.needs_prior and not any(any(batch.priors[place].values()) for place in places):
            return "empty-prior"
        drafts = [batch.drafts[row] for row in batch.rows(places[-1])]
        return None if any(any(draft.values()) for draft in drafts) else "all-drafts-empty"

    def _notes(self, batch: Batch, places: range, scored: Mapping[Section, Scores]) -> Iterator[Note]:
        """Yield what a reader should know."""
        query, rows = batch.queries[places[-1]], batch.rows(places[-1])
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


def _weighted(weights: Distances, rows: Sequence[Distances]) -> Distances:
    """Return the weighted mean over priors, of the defined values; NaN if none is."""
    if len(rows) == 1:
        return rows[0]
    stack = np.stack(rows)
    there = ~np.isnan(stack) * weights[:, None]
    total = there.sum(axis=0)
    sums: Distances = (np.where(np.isnan(stack), 0.0, stack) * there).sum(axis=0)
    means: Distances = np.divide(sums, total, out=np.full(len(sums), np.nan), where=total > 0)
    return means


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
