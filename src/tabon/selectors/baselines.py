"""Selectors that look at nothing but length, place, chance or the generator's own confidence.

None needs a prior or looks at the bank. What such a rule reaches is what a
method has to beat. A draft without the section is behind those that have it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite, nan
from typing import Any

import numpy as np

from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.selectors.scorer import Batch, Distances, Scores
from tabon.text.records import Query
from tabon.text.reports import Section

LOG_PROBABILITY_KEYS = ("logprob", "log_probability")
TOKENS_KEYS = ("tokens",)

Rule = Callable[[Batch, Section], Distances]


@dataclass(frozen=True, slots=True)
class Plain:
    """A rule of thumb as a scorer; made by the functions of this module."""

    name: str
    rule: Rule
    worst: float | None = None  # the distance of a draft without the section; None: behind all others

    needs_prior = False
    uses_prior = False

    @property
    def settings(self) -> Mapping[str, str]:
        """Return nothing: the name says it all."""
        return {}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return the rule's distances for the drafts that have the section."""
        distances = np.where(batch.has_draft(section), self.rule(batch, section), np.nan)
        return Scores(distances, worst=self.worst)


def longest(_: TransitionBank, variant: str) -> Plain:
    """Return the rule that prefers many words; a missing section has none."""
    return Plain(without_variants("longest", variant), lambda *of: -_words(*of), worst=0.0)


def shortest(_: TransitionBank, variant: str) -> Plain:
    """Return the rule that prefers few words; a missing section is not a short one."""
    return Plain(without_variants("shortest", variant), _words)


def first(_: TransitionBank, variant: str) -> Plain:
    """Return the rule that takes drafts as they come."""

    def places(batch: Batch, _: Section) -> Distances:
        found: Distances = (np.arange(len(batch.drafts)) - batch.starts[batch.owner]).astype(np.float64)
        return found

    return Plain(without_variants("first", variant), places)


def random(_: TransitionBank, variant: str) -> Plain:
    """Return the rule that draws a number for each draft, from a seed (0) and the query's id."""
    if not (variant or "0").isdecimal():
        raise BadInputError(f"random takes a whole number as its seed, got {variant!r}; say random:0")
    seed = int(variant or 0)

    def draws(query: Query) -> Distances:  # in [0, 1); other queries have no say
        identity = sha256(query.id.encode("utf-8", "surrogatepass")).digest()
        rng = np.random.default_rng([seed, int.from_bytes(identity, "big")])
        return rng.random(len(query.candidates))

    return Plain(f"random:{seed}", lambda batch, _: _by_query(batch, draws))


def log_probability(_: TransitionBank, variant: str) -> Plain:
    """Return the rule that prefers what the generator found likely.

    Read from `logprob` or `log_probability` beside a draft's text. Where every such
    draft of a query has `tokens` too, it is the mean per token. A draft without it
    cannot be compared.
    """
    name = without_variants("log-probability", variant)
    return Plain(name, lambda batch, _: -_by_query(batch, _log_probabilities))


def without_variants(name: str, variant: str) -> str:
    """Return the name, if nothing follows its colon."""
    if variant:
        raise BadInputError(f"{name} has no variants, got {variant!r}; say {name}")
    return name


def _words(batch: Batch, section: Section) -> Distances:
    """Count the words of each draft's section."""
    counts = [len(batch.draft_text(row, section).split()) for row in range(len(batch.drafts))]
    return np.array(counts, dtype=np.float64)


def _by_query(batch: Batch, values: Callable[[Query], Distances]) -> Distances:
    """Put the values of each query's drafts one after another."""
    return np.concatenate([np.zeros(0), *map(values, batch.queries)])


def _log_probabilities(query: Query) -> Distances:
    """Return each draft's log-probability, per token if all can; NaN if it is not given."""
    facts = [*query.draft_facts, *({} for _ in query.candidates)][: len(query.candidates)]
    sums = np.array([_number(fact, LOG_PROBABILITY_KEYS) for fact in facts], dtype=np.float64)
    tokens = np.array([_number(fact, TOKENS_KEYS) for fact in facts], dtype=np.float64)
    known = ~np.isnan(sums)
    if not (tokens[known] > 0).all():
        return sums
    means: Distances = np.divide(sums, tokens, out=np.full(len(sums), nan), where=known)
    return means


def _number(facts: Mapping[str, Any], keys: tuple[str, ...]) -> float:
    """Return the first of these facts that is a number; NaN if none is."""
    for key in keys:
        value = facts.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            return float(value)
    return nan
