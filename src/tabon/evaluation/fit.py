"""Learn a selector's weights on a validation split, and say whether they beat the training-free ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tabon._internal.registry import check_name
from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError
from tabon.evaluation.draft_scores import measure_section
from tabon.evaluation.inputs import Case
from tabon.method.bank import TransitionBank
from tabon.method.sentence_sets import Fingerprint, Ids
from tabon.metrics import Metric
from tabon.selectors.fused.scorer import Fused
from tabon.selectors.fused.trust import PARTS
from tabon.selectors.learnt import sides
from tabon.selectors.scorer import make_batch
from tabon.selectors.selector import bank_encoder
from tabon.selectors.weights import Array, FittedWeights, fit_from, one_scale, who
from tabon.text.reports import SECTIONS, Section

FITTED = ("fused", "learnt")
PENALTIES = {"fused": 0.3, "learnt": 3.0}
FOLDS = 5


@dataclass(frozen=True, slots=True)
class FitCheck:
    """What weights close of the target's gap on studies that they were not fitted on, beside `fused`."""

    fitted: float  # share of the gap between a random pick and the best
    training_free: float
    chance: float  # a lead that is smaller says nothing: two standard errors
    queries: int

    def __str__(self) -> str:
        """Return one sentence with the figures and one with what follows."""
        lead = self.fitted - self.training_free
        verdict = (
            "the fitted weights are better"
            if lead > self.chance
            else "the fitted weights do not beat the training-free selector: use --selector fused"
        )
        return (
            f"{FOLDS}-fold cross-validation on {self.queries} queries: fitted {self.fitted:.1%} of the gap, "
            f"training-free fused {self.training_free:.1%}, lead {lead:+.1%} ± {self.chance:.1%}; {verdict}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """A validation split as numbers: what a selector sees of every draft, and the draft's score."""

    selector: str
    target: str
    bank: str  # sha256
    people: tuple[str, ...]  # of each query, hashed
    owner: Ids  # the query of each draft
    parts: Mapping[Section, Array]  # (drafts, parts)
    start: Mapping[Section, Array]  # what each part is known to add to a draft's worth, (parts,)
    worth: Mapping[Section, Array]  # (drafts,); NaN where the reference lacks the section
    training_free: Array  # the distance that `fused` gives each draft

    def fit(self) -> FittedWeights:
        """Fit the weights to all studies."""
        everybody = np.ones(len(self.people), dtype=bool)
        names: Sequence[str] = PARTS
        weights = {section: -self._rewards(section, everybody) for section in SECTIONS}
        if self.selector == "learnt":  # its parts are no distances
            names = tuple(map(str, range(len(weights["findings"]))))
            weights = {section: -found for section, found in weights.items()}
        return FittedWeights(
            selector=self.selector,
            target=self.target,
            bank=self.bank,
            weights={name: dict(zip(names, found.tolist(), strict=True)) for name, found in weights.items()},
            trained_on=tuple(sorted(set(self.people))),
            queries=len(self.people),
        )

    def check(self) -> FitCheck:
        """Fit on four fifths of the patients, pick on the others, five times over."""
        fold = np.array([int(person, 16) % FOLDS for person in self.people])
        rewards = np.zeros(len(self.owner))
        for number, section in product(np.unique(fold), SECTIONS):
            asked = (fold == number)[self.owner]
            known = np.nan_to_num(self.parts[section][asked])
            rewards[asked] += known @ self._rewards(section, fold != number)
        worth = np.sum([np.nan_to_num(values) for values in self.worth.values()], axis=0)
        found = []
        for query in np.unique(self.owner):
            rows = np.flatnonzero(self.owner == query)
            picks = rows[rewards[rows].argmax()], rows[self.training_free[rows].argmin()]
            found.append([worth[rows].mean(), worth[rows].max(), *worth[list(picks)]])
        chance, best, ours, free = np.array(found).T
        gap = max(float((best - chance).mean()), float(np.finfo(np.float64).tiny))
        return FitCheck(
            fitted=float((ours - chance).mean()) / gap,
            training_free=float((free - chance).mean()) / gap,
            chance=2.0 * float(np.std(ours - free)) / np.sqrt(len(ours)) / gap,
            queries=len(ours),
        )

    def _rewards(self, section: Section, taught: NDArray[np.bool_]) -> Array:
        """Fit one section to some of the queries: what each part adds to a draft's worth."""
        rows, penalty, start = taught[self.owner], PENALTIES[self.selector], self.start[section]
        parts, worth, owner = self.parts[section][rows], self.worth[section][rows], self.owner[rows]
        found = fit_from(start, parts, worth, owner, penalty=penalty)
        return one_scale(found, parts, owner, like=start)


def read_lesson(  # what is fitted, on what, for what
    selector: str,
    bank: TransitionBank,
    cases: Sequence[Case],
    targets: Mapping[str, Metric],
    *,
    encoder: Encoder | None = None,
    store: SentenceStore | None = None,
) -> Lesson:
    """Measure what `fused` or `learnt` sees of a validation split's drafts, and what they score.

    `targets` are the scores to agree with and the metrics that measure them; several are added, each in
    units of its own spread. The encoder is the one that built the bank.
    """
    check_name("fitted selector", FITTED, selector)
    if len(cases) < 2:  # noqa: PLR2004
        raise BadInputError(f"there are {len(cases)} studies to learn from; give a validation split")
    inside = sum(case.query.patient in bank.patients for case in cases)
    if inside:
        raise BadInputError(
            f"{inside} of the studies are of patients in the bank, who would look up their own reports; "
            "fit on patients who are not in it"
        )
    loaded = bank_encoder(bank, encoder)
    Fingerprint.of(loaded).check(bank.fingerprint)
    batch, fused = make_batch([case.query for case in cases], bank, loaded, store), Fused(bank)
    parts, start, worth, free = {}, {}, {}, np.zeros(len(batch.drafts))
    for section in SECTIONS:
        worth[section] = _worth(cases, section, targets)
        free += np.nan_to_num(fused.score(batch, section).distances, nan=np.inf)
        if selector == "fused":
            measured = fused.measured(batch, section)
            parts[section] = np.stack([measured[name] for name in PARTS], axis=1)
            start[section] = -np.ones(len(PARTS))
        else:
            parts[section] = sides(batch, section)
            start[section] = np.zeros(parts[section].shape[1])
        known = ~(np.isnan(parts[section]).any(axis=1) | np.isnan(worth[section]))
        if np.bincount(batch.owner[known], minlength=1).max(initial=0) < 2:  # noqa: PLR2004
            raise BadInputError(
                f"no study teaches anything about {section}: give studies with a prior, a reference and two "
                "drafts that have it"
            )
    return Lesson(
        selector=selector,
        target="+".join([*targets, *sorted({metric.signature for metric in targets.values()})]),
        bank=bank.sha256,
        people=tuple(who(case.query) for case in cases),
        owner=batch.owner,
        parts=parts,
        start=start,
        worth=worth,
        training_free=free,
    )


def _worth(cases: Sequence[Case], section: Section, targets: Mapping[str, Metric]) -> Array:
    """Return each draft's score in one section; NaN where the reference has none."""
    counts = [len(case.query.candidates) for case in cases]
    total = np.zeros(sum(counts))
    silent = np.repeat([not case.has(section) for case in cases], counts)
    for name, metric in targets.items():
        measured = measure_section(metric, cases, section)
        column = [score.name for score in metric.scores].index(name)
        values = measured.per_draft()[..., column][measured.there]
        spread = float(np.nanstd(values[~silent])) if (~silent).any() else 1.0
        total += values / (spread or 1.0)
    return np.where(silent, np.nan, total)
