"""Readers with known tastes and known skill: what they answer, and what is true of all such readers.

A draft's worth is its selector's, plus the case's own; a reader adds a taste of his own, and noise that is
less the more skilled he is. Two drafts that seem nearly alike are called equal.
"""

from dataclasses import dataclass

import numpy as np

from tabon.evaluation.inputs import Picks
from tabon.study.answers import AnswerRecord, Given
from tabon.study.assignment import assign, count_pairs, draw_cases
from tabon.study.design import Key, Reader, Study, StudyPlan
from tabon.text.records import Query
from tabon.text.reports import Report

DRAWN = 100_000  # pairs of a new case and a new reader behind each truth


@dataclass(frozen=True)
class World:
    """How selectors, cases and readers are."""

    worth: tuple[float, ...]  # of each selector
    case: float = 0.8  # spread of a draft's worth between cases
    taste: float = 0.4  # spread of what readers think of a selector
    skill: float = 1.0  # one over the scale of a reader's noise
    equal: float = 0.4  # what seems nearer than this is called equal

    @property
    def names(self):
        """Return the selectors."""
        return tuple(f"s{number}" for number in range(len(self.worth)))

    def draws(self, rng, cases, readers):
        """Return worths of drafts (cases, selectors) and tastes (readers, selectors)."""
        worth = np.array(self.worth) + rng.normal(0, self.case, (cases, len(self.worth)))
        return worth, rng.normal(0, self.taste, (readers, len(self.worth)))

    def seen(self, rng, worth, taste):
        """Return what a draft seems to be."""
        return worth + taste + rng.logistic(0, 1 / self.skill, np.shape(worth))

    def ranks(self, seen):
        """Return the ranks of what is seen; what is nearly alike shares one."""
        order = np.argsort(-seen)
        ranks, rank = np.zeros(len(seen), int), 1
        for before, after in zip([None, *order], order, strict=False):
            rank += before is not None and seen[before] - seen[after] > self.equal
            ranks[after] = rank
        return tuple(ranks.tolist())

    def rating(self, seen):
        """Return the rating of what is seen."""
        return np.clip(np.round(3 + seen), 1, 5).astype(int)


def queries_of(cases, selectors):
    """Return queries with a draft for each selector, and picks that take them."""
    queries = [
        Query(
            id=f"q{number}",
            prior="FINDINGS: Clear.",
            candidates=[f"FINDINGS: Draft {number} {draft}." for draft in range(selectors)],
            patient=f"p{number}",
            reference=Report(findings="Clear."),
        )
        for number in range(cases)
    ]
    picks = [
        Picks(method=f"s{draft}", signature=f"s{draft}", distances={}, chosen={q.id: draft for q in queries})
        for draft in range(selectors)
    ]
    return queries, picks


def simulated_study(world, design, *, cases, readers, seed=0, repeat=0.0):
    """Return a study, its key and the answers of readers, with the tastes of these readers."""
    rng = np.random.default_rng([seed, 1])
    queries, picks = queries_of(cases, len(world.worth))
    plan = StudyPlan(
        design=design, readers=tuple(f"r{n}" for n in range(readers)), cases=cases, repeat=repeat, seed=seed
    )
    assigned = assign(draw_cases(queries, picks, plan), plan, {})
    worth, taste = world.draws(rng, cases, readers)
    given = Given()
    for number, (reader, found) in enumerate(assigned.items()):
        for place, one in enumerate(found):
            case, shown = int(one.key.query[1:]), [each.drafts[0] for each in one.key.shown]
            seen = world.seen(rng, worth[case, shown], taste[number, shown])
            values = world.rating(seen).tolist() if design == "rating" else world.ranks(seen)
            given.add(
                AnswerRecord(
                    study="0" * 16, reader=reader, time="", key=f"{number:016x}{place:016x}", after=None,
                    reading=one.key.id, values=tuple(values), seconds=float(rng.exponential(60)),
                )
            )  # fmt: skip
    study = Study(
        study="0" * 16, title="Simulated", design=design, question="?", cases=cases,
        readers=tuple(
            Reader(name=name, token_sha256="", readings=len(found), sha256="")
            for name, found in assigned.items()
        ),
    )  # fmt: skip
    key = Key(
        study="0" * 16, seed=seed, selectors={name: name for name in world.names}, queries_sha256="",
        pairs=count_pairs(queries, picks),
        readings={name: tuple(one.key for one in found) for name, found in assigned.items()},
    )  # fmt: skip
    return study, key, given, taste


def true_preferences(world, rng, taste=None):
    """Return the share of each pair of selectors for new cases and readers, or readers of these tastes."""
    worth, anyone = world.draws(rng, DRAWN, DRAWN)
    tastes = anyone if taste is None else taste[rng.integers(len(taste), size=DRAWN)]
    seen = [world.seen(rng, worth[:, one], tastes[:, one]) for one in range(len(world.worth))]
    return {
        (world.names[one], world.names[other]): float(
            np.mean(
                (seen[one] - seen[other] > world.equal) + 0.5 * (abs(seen[one] - seen[other]) <= world.equal)
            )
        )
        for one in range(len(seen))
        for other in range(one + 1, len(seen))
    }


def true_ratings(world, rng, taste=None):
    """Return the mean rating of each selector's drafts, for new readers or for those with these tastes."""
    worth, anyone = world.draws(rng, DRAWN, DRAWN)
    tastes = anyone if taste is None else taste[rng.integers(len(taste), size=DRAWN)]
    return {
        name: float(world.rating(world.seen(rng, worth[:, one], tastes[:, one])).mean())
        for one, name in enumerate(world.names)
    }
