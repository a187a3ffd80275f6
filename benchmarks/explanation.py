"""One explanation on a bank of the paper's size against one on a bank of 1,000 transitions."""

from collections.abc import Iterator
from functools import partial
from itertools import islice

from tabon import Selector, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.explanation import explain
from tabon.text.records import query_from_record, transition_from_record
from timing import Line, best_of, share


def explain_lines(*, quick: bool) -> Iterator[Line]:
    """Time `explain` with the `hashing` encoder: what grows with the bank is the search alone."""
    small, large, patients = (100, 300, 400) if quick else (1_000, 22_745, 23_500)
    settings = SimulationSettings(patients=patients)
    query = query_from_record(next(simulate_queries(settings)))
    selectors = []
    for count in (small, large):
        records = map(transition_from_record, islice(simulate_transitions(settings, "train"), count))
        selectors.append(Selector(TransitionBank.build(records, encoder="hashing")))
    for selector in selectors:
        explain(selector, query)  # the section banks are made once
    few, many, few_picks, many_picks = best_of(
        1 if quick else 20,
        *(partial(explain, selector, query) for selector in selectors),
        *(partial(selector.select_many, [query]) for selector in selectors),
    )
    yield share(f"explain on {large:,} transitions", many, few, f"on {small:,}", "≤ 1.2")
    own, few_own = many - many_picks, few - few_picks
    yield share(
        f"explain on {large:,} transitions, less its selection", own, few_own, f"on {small:,}", "≤ 1.2"
    )
