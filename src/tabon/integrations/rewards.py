"""Rewards for reinforcement learning, called the way TRL's GRPO trainer calls a reward function.

A trainer hands over a batch of completions and, for each, the row of the data
set that it answers; a reward gives back one number each, higher is better, or
None where the row cannot be scored. A completion is never an error: one that
holds no report gets the worst reward. A data set that does not fit is an error.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabon.encoders import Encoder, SentenceEncoder
from tabon.encoders.sentence_store import CachingEncoder, SentenceStore
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.method.distances import DistanceName
from tabon.method.nearest import Aggregate, ZeroPolicy
from tabon.method.selection import WORST
from tabon.method.sentence_sets import Ids
from tabon.selectors import Selector
from tabon.selectors.selector import bank_encoder
from tabon.selectors.transition import Transition
from tabon.text.records import Query, is_too_long
from tabon.text.reports import SECTIONS, Report, Section, parse_report, report_from_record
from tabon.text.sentences import split_sentences

REMEMBERED = 50_000  # sentences; 77 MB with rows of 384 numbers
PATIENT = "patient"  # looked at where the data set has it
Reader = Callable[[object], str]
Rewards = list[float | None]


def completion_text(completion: object) -> str:
    """Return the text of a completion: a string, or the last assistant message of a conversation.

    A message is a string or a list of text blocks. Anything else holds no text.

    >>> completion_text([{"role": "assistant", "content": "Findings: Clear."}])
    'Findings: Clear.'
    >>> completion_text(None)
    ''
    """
    if isinstance(completion, str):
        return completion
    messages = [message for message in _listed(completion) if isinstance(message, Mapping)]
    said = [message for message in messages if message.get("role", "assistant") == "assistant"]
    content = said[-1].get("content") if said else ""
    if isinstance(content, str):
        return content
    texts = [block.get("text") for block in _listed(content) if isinstance(block, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _listed(value: object) -> Sequence[object]:
    """Return a list as it is, and nothing for anything else."""
    return value if isinstance(value, list | tuple) else ()


@dataclass(frozen=True, slots=True)
class _Asked:
    """One completion with what its row of the data set says."""

    priors: tuple[Report, ...]
    draft: Report
    patient: str | None

    @property
    def prior(self) -> Report:
        """Return the newest prior; an empty report where there is none."""
        return self.priors[-1] if self.priors else Report()


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which columns of the data set are looked at, and how a completion is read."""

    prior: str | None  # None: no prior is looked at
    patient: str
    read: Reader

    def asked(self, completions: Sequence[object], columns: Mapping[str, object]) -> list[_Asked]:
        """Put each completion beside its prior and its patient."""
        count = len(completions)
        priors = [()] * count if self.prior is None else column(columns, self.prior, count)
        known = self.patient in columns or self.patient != PATIENT  # a name that was given must be there
        patients = column(columns, self.patient, count) if known else [None] * count
        rows, read = [], cache(_draft)  # a group often holds a completion twice
        for row, (prior, completion, patient) in enumerate(zip(priors, completions, patients, strict=True)):
            cells = prior if isinstance(prior, list | tuple) else () if prior is None else (prior,)
            try:
                reports = tuple(map(_report, cells))
            except BadInputError as error:
                raise BadInputError(f"row {row} of the column {self.prior!r}: {error}") from None
            known_as = None if patient is None else str(patient)  # 7 and "7" are the same
            rows.append(_Asked(reports, read(self.read(completion)), known_as))
        return rows


def _draft(text: str) -> Report:
    """Read a completion; one that never came to its end holds no report."""
    draft = parse_report(text)
    return Report() if is_too_long(draft) else draft


def column(columns: Mapping[str, object], name: str, count: int) -> Sequence[object]:
    """Return a column of the batch; it must be there and as long as the completions."""
    if name not in columns:
        raise BadInputError(
            f"the reward was called without the column {name!r}; add it to the data set, "
            "keep unused columns, or name another"
        )
    values = _listed(columns[name])
    if len(values) != count:
        raise BadInputError(
            f"the column {name!r} has {len(values)} rows for {count} completions; give one a completion"
        )
    return values


def _report(value: object) -> Report:
    """Read one prior; keys that hold null are taken as not there, since tables fill records up with them."""
    if isinstance(value, Report):
        return value
    if isinstance(value, Mapping):
        value = {key: part for key, part in value.items() if part is not None}
        if not value:
            return Report()
    return report_from_record(value)


@dataclass(frozen=True, slots=True, eq=False)
class DraftDistances:
    """The total distance of each draft from its own prior, whatever else is asked beside it."""

    totals: NDArray[np.float64]  # 𝔇(ŷ), eq. 11; lower is better; 0 where nothing counts
    sections: Ids  # how many sections count: those that the prior and the bank have

    def rewards(self) -> Rewards:
        """Return 1 - 𝔇(ŷ) / sections, in [0, 1]; None where no section counts."""
        pairs = zip(self.totals.tolist(), self.sections.tolist(), strict=True)
        return [1.0 - total / count if count else None for total, count in pairs]


class _Reward:
    """What the rewards share: a selector, and how rows of the data set are read."""

    def __init__(self, selector: Selector, columns: _Columns, name: str) -> None:
        """Take the parts; the trainer reads `__name__`."""
        self.selector, self._columns, self.__name__ = selector, columns, name

    @property
    def signature(self) -> str:
        """Return the line that goes under every number this reward gives."""
        return self.selector.signature

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the data set that are looked at."""
        return tuple(name for name in (self._columns.prior, self._columns.patient) if name is not None)


class TransitionReward(_Reward):
    """How much a completion's change from the prior looks like changes in the bank, in [0, 1]."""

    def __init__(  # noqa: PLR0913  # each is a named setting
        self,
        bank: TransitionBank | str | Path,
        *,
        distance: DistanceName = "novelty",
        aggregate: Aggregate = "min",
        num_neighbours: int = 10,
        zero: ZeroPolicy = "neutral",
        prior: str = "prior",
        patient: str = PATIENT,
        encoder: str | Path | SentenceEncoder | Encoder | None = None,
        store: SentenceStore | None = None,
        cache: int = REMEMBERED,
        allow_bank_patients: bool = False,
        read: Reader = completion_text,
        name: str = "transition_reward",
    ) -> None:
        """Refuse settings that do not fit the bank; load the encoder that built it.

        Args:
            bank: the training transitions, or the path of a bank file.
            distance: the set distance of eq. 2-5.
            aggregate: `min` or `knn` (eq. 10).
            num_neighbours: the k of `knn`.
            zero: how a draft that changes nothing is scored.
            prior: the column with the prior: a raw report, a record with "findings" and "impression",
                or a list of these, newest last.
            patient: the column with the patient, where the data set has one.
            encoder: the one that built the bank; found by name where it is left out.
            store: embeddings on disk.
            cache: sentences whose embeddings are kept in memory from step to step.
            allow_bank_patients: score completions of patients who are in the bank.
            read: what takes the report out of a completion.
            name: what the trainer calls the reward in its logs.
        """
        opened = _opened(bank)
        self._scorer = Transition(
            opened, distance=distance, aggregate=aggregate, num_neighbours=num_neighbours, zero=zero
        )
        embedded = CachingEncoder(bank_encoder(opened, encoder), cache)
        selector = Selector(opened, self._scorer, encoder=embedded, store=store)
        super().__init__(selector, _Columns(prior, patient, read), name)
        self._allow_bank_patients = allow_bank_patients

    def __call__(self, completions: Sequence[object], **columns: object) -> Rewards:
        """Return each completion's reward; None where the prior is empty or the patient is in the bank."""
        asked = self._columns.asked(completions, columns)
        rows = [row for row, one in enumerate(asked) if self._may_be_scored(one)]
        scored = self.distances([asked[row].prior for row in rows], [asked[row].draft for row in rows])
        rewards: Rewards = [None] * len(asked)
        for row, reward in zip(rows, scored.rewards(), strict=True):
            rewards[row] = reward
        return rewards

    def can_score(self, row: Mapping[str, object]) -> bool:
        """Say whether completions of this row of a data set get a number; else they get None."""
        [asked] = self._columns.asked([""], {name: [value] for name, value in row.items()})
        has = any(split_sentences(asked.prior.section(section)) for section in self._counted())
        return has and self._may_be_scored(asked)

    def distances(self, priors: Sequence[Report], drafts: Sequence[Report]) -> DraftDistances:
        """Return each draft's total distance from its own prior, in one embedding pass and one search.

        A section counts where the prior and the bank have it; a draft that lacks it has distance 1
        there. So a draft's number does not depend on the other drafts.
        """
        totals, sections = np.zeros(len(drafts)), np.zeros(len(drafts), dtype=np.int64)
        if not drafts:
            return DraftDistances(totals, sections)
        groups: dict[Report, tuple[int, dict[Report, int]]] = {}  # the distinct drafts of each distinct prior
        places = []
        for prior, draft in zip(priors, drafts, strict=True):
            number, group = groups.setdefault(prior, (len(groups), {}))
            places.append((number, group.setdefault(draft, len(group))))
        batch = self.selector.batch(
            [
                Query(id=str(number), prior=prior, candidates=tuple(group))
                for prior, (number, group) in groups.items()
            ]
        )
        query, place = np.array(places).T
        order = batch.starts[query] + place
        for section in self._counted():
            has_prior, found = batch.has_prior(section), self._scorer.distances(batch, section)
            sections += has_prior[order]
            totals += np.where(np.isnan(found), np.where(has_prior, WORST, 0.0), found)[order]  # eq. 8-10
        return DraftDistances(totals, sections)

    def _counted(self) -> list[Section]:
        """Return the sections that the bank has."""
        return [section for section in SECTIONS if len(self.selector.bank.pairs[section].present())]

    def _may_be_scored(self, asked: _Asked) -> bool:
        """Say whether the bank holds nothing of the patient's own, or that was allowed."""
        return self._allow_bank_patients or asked.patient not in self.selector.bank.patients


class GroupReward(_Reward):
    """Minus a completion's distance among the completions of the same prompt, under any selector."""

    def __init__(  # noqa: PLR0913  # each is a named setting
        self,
        bank: TransitionBank | str | Path,
        *,
        selector: str = "fused",
        prior: str | None = "prior",
        patient: str = PATIENT,
        group: str | None = None,
        encoder: str | Path | SentenceEncoder | Encoder | None = None,
        store: SentenceStore | None = None,
        cache: int = REMEMBERED,
        allow_bank_patients: bool = False,
        read: Reader = completion_text,
        name: str | None = None,
    ) -> None:
        """Refuse settings that do not fit the bank; load the encoder that built it.

        `selector` is a name of `tabon.selectors`, such as `fused` or `consensus:chamfer`; `prior` is None
        for a data set without priors. `group` is the column that says which completions belong together:
        by default those of equal prompts, needed if prompts hold images. For the others see
        `TransitionReward`.
        """
        opened = _opened(bank)
        embedded = CachingEncoder(bank_encoder(opened, encoder), cache)
        chooser = Selector(
            opened, selector, encoder=embedded, store=store, allow_bank_patients=allow_bank_patients
        )
        super().__init__(
            chooser, _Columns(prior, patient, read), f"{selector}_reward" if name is None else name
        )
        self._group = group

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the data set that are looked at."""
        return (*super().columns, self._group or "prompts")

    def __call__(self, completions: Sequence[object], **columns: object) -> Rewards:
        """Return minus each completion's total distance in its group; None where the selector abstains."""
        asked = self._columns.asked(completions, columns)
        marks = column(columns, self._group or "prompts", len(asked))
        groups: dict[object, list[int]] = {}
        for row, (one, mark) in enumerate(zip(asked, marks, strict=True)):
            groups.setdefault((repr(mark), one.priors, one.patient), []).append(row)
        rewards: Rewards = [None] * len(asked)
        queries = [
            Query(
                id="",
                prior=asked[rows[0]].priors,
                candidates=tuple(asked[row].draft for row in rows),
                patient=asked[rows[0]].patient,
            )
            for rows in groups.values()
        ]
        for rows, chosen in zip(groups.values(), self.selector.select_many(queries), strict=True):
            for row, total in zip(rows, chosen.total_distances, strict=False):  # none where it abstains
                rewards[row] = -total
        return rewards


def _opened(bank: TransitionBank | str | Path) -> TransitionBank:
    """Return the bank, from its file where a path was given."""
    return bank if isinstance(bank, TransitionBank) else TransitionBank.load(bank)
