"""Made-up visits: reports dealt into parts, each linked to the most alike report of its part.

Open-i has one report a patient. A "next visit" is a report of the same part with
much the same MeSH facts, chosen with noise, never the same text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from likeness import Square, fact_f1, text_cosine
from numpy.typing import NDArray
from plan import Splits, Stage
from reading import OpeniReport

from tabon.errors import BadInputError

Rows = NDArray[np.intp]  # places in a corpus


@dataclass(frozen=True, eq=False)
class Corpus:
    """The reports and how alike they are."""

    reports: tuple[OpeniReport, ...]
    likeness: Square  # F1 of the MeSH facts of each pair
    texts: Rows  # number of each report's text: exact duplicates share one

    @cached_property
    def text_likeness(self) -> Square:
        """Return the tf-idf cosine of each pair."""
        return text_cosine([report.text for report in self.reports])


@dataclass(frozen=True, slots=True, eq=False)
class Deal:
    """The reports of each part of one seed; no report is in two."""

    bank: Rows
    valid: Rows
    test: Rows
    pool: Rows


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """Priors, each once, and what came next."""

    prior: Rows
    current: Rows


def make_corpus(reports: Sequence[OpeniReport]) -> Corpus:
    """Compare all reports."""
    number = {text: row for row, text in enumerate(dict.fromkeys(report.text for report in reports))}
    texts = np.array([number[report.text] for report in reports], dtype=np.intp)
    return Corpus(tuple(reports), fact_f1([report.facts for report in reports]), texts)


def deal_final(count: int, splits: Splits, stage: Stage, rng: np.random.Generator) -> Deal:
    """Take queries from the reserved reports, bank and draft pool from the others."""
    reserved, others = _reserved(count, splits)
    _check_size(len(reserved), stage.valid + stage.test, "reserved reports")
    _check_size(len(others), stage.bank + 1, "other reports")
    valid, test, _ = np.split(rng.permutation(reserved), np.cumsum([stage.valid, stage.test]))
    bank, pool = np.split(rng.permutation(others), [stage.bank])
    return Deal(bank=bank, valid=valid, test=test, pool=pool)


def deal_dev(count: int, splits: Splits, stage: Stage, rng: np.random.Generator) -> Deal:
    """Take every part from the reports that are not reserved."""
    _, others = _reserved(count, splits)
    sizes = [stage.bank, stage.valid, stage.test]
    _check_size(len(others), sum(sizes) + 1, "other reports")
    bank, valid, test, pool = np.split(rng.permutation(others), np.cumsum(sizes))
    return Deal(bank=bank, valid=valid, test=test, pool=pool)


def link(corpus: Corpus, part: Rows, noise: float, rng: np.random.Generator) -> Visits:
    """Give each report of a part its next visit: the most alike of the part, with Gumbel noise."""
    current = np.empty_like(part)
    for place, report in enumerate(part):
        likeness = corpus.likeness[report, part].astype(np.float64)
        likeness[corpus.texts[part] == corpus.texts[report]] = -np.inf
        current[place] = part[noisy_ranking(likeness, noise, rng)[0]]
    return Visits(prior=part, current=current)


def noisy_ranking(values: NDArray[np.floating], scale: float, rng: np.random.Generator) -> Rows:
    """Return places by value plus Gumbel noise, largest first."""
    return np.argsort(-(values + scale * rng.gumbel(size=values.shape)), kind="stable")


def _reserved(count: int, splits: Splits) -> tuple[Rows, Rows]:
    """Return the reserved reports and the others; the same for every seed."""
    order = np.random.default_rng(splits.reserved_seed).permutation(count)
    return order[: splits.reserved], order[splits.reserved :]


def _check_size(there: int, needed: int, what: str) -> None:
    """Refuse parts that there are too few reports for."""
    if there < needed:
        raise BadInputError(
            f"{needed} {what} are needed, the archive gives {there}; lower the sizes in experiment.toml"
        )
