"""Learn a selector's weights on a validation split, for a target metric."""

from collections.abc import Mapping, Sequence

import numpy as np

from tabon._internal.registry import check_name
from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError
from tabon.evaluation.cases import Case
from tabon.evaluation.draft_scores import measure_section
from tabon.method.bank import TransitionBank
from tabon.method.signature import Fingerprint
from tabon.metrics import Metric
from tabon.selectors.fused.scorer import PARTS, Fused
from tabon.selectors.learnt import sides
from tabon.selectors.prepared import Batch, make_batch
from tabon.selectors.selector import bank_encoder
from tabon.selectors.weights import Array, FittedWeights, fit_from, fit_ridge, one_scale, who
from tabon.text.reports import SECTIONS, Section

FITTED = ("fused", "learnt")
PENALTIES = {"fused": 0.3, "learnt": 3.0}


def fit(  # what is fitted, on what, for what
    selector: str,
    bank: TransitionBank,
    cases: Sequence[Case],
    targets: Mapping[str, Metric],
    *,
    encoder: Encoder | None = None,
    store: SentenceStore | None = None,
) -> FittedWeights:
    """Fit a selector so that better drafts by the target come first.

    Args:
        selector: `fused` (weights of its parts) or `learnt` (a directional encoder).
        bank: the one that it will be used with.
        cases: studies of the validation split, with references.
        targets: the score to agree with, and the metric that measures it; several are added, each
            in units of its own spread.
        encoder: the one that built the bank.
        store: embeddings on disk.
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
    batch = make_batch([case.query for case in cases], bank, loaded, store)
    weights = {
        section: _section_weights(selector, bank, batch, section, _target(cases, section, targets))
        for section in SECTIONS
    }
    signatures = {metric.signature for metric in targets.values()}
    return FittedWeights(
        selector=selector,
        target="+".join([*targets, *sorted(signatures)]),
        bank=bank.sha256,
        weights=weights,
        trained_on=tuple(sorted({who(case.query) for case in cases})),
        queries=len(cases),
    )


def _section_weights(
    selector: str, bank: TransitionBank, batch: Batch, section: Section, target: Array
) -> dict[str, float]:
    """Fit one section."""
    penalty = PENALTIES[selector]
    if selector == "learnt":
        parts = sides(batch, section)
        _check_taught(parts, target, batch, section)
        found = one_scale(fit_ridge(parts, target, batch.owner, penalty=penalty), parts, batch.owner)
        return {str(place): float(value) for place, value in enumerate(found)}
    fused = Fused(bank)
    measured = fused.measured(batch, section)
    parts = np.stack([measured[name] for name in PARTS], axis=1)
    _check_taught(parts, target, batch, section)
    start = np.array([fused.weights[section][name] for name in PARTS])
    found = fit_from(-start, parts, target, batch.owner, penalty=penalty)  # parts are distances
    return dict(zip(PARTS, (-one_scale(found, parts, batch.owner)).tolist(), strict=True))


def _check_taught(parts: Array, target: Array, batch: Batch, section: Section) -> None:
    """Refuse studies that teach nothing: no query has two drafts that can be told apart."""
    known = ~(np.isnan(parts).any(axis=1) | np.isnan(target))
    if np.bincount(batch.owner[known], minlength=1).max(initial=0) < 2:  # noqa: PLR2004
        raise BadInputError(
            f"no study teaches anything about {section}: give studies with a prior, a reference and two "
            "drafts that have it"
        )


def _target(cases: Sequence[Case], section: Section, targets: Mapping[str, Metric]) -> Array:
    """Return what each draft is worth in one section; NaN where the reference has none."""
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
