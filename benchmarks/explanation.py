"""One explanation on a bank of the paper's size against one on a bank of 1,000 transitions."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from time import process_time

from tabon import Selector, TransitionBank, load_encoder
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.explanation import explain
from tabon.text.records import query_from_record, transition_from_record
from timing import Line, best_of, share


def explain_lines(*, quick: bool) -> Iterator[Line]:
    """Time `explain` with the embedded encoder: of its work only the exact search grows with the bank."""
    small, large, patients = (100, 300, 400) if quick else (1_000, 22_745, 23_500)
    encoder = load_encoder("hashing" if quick else "minilm")
    settings = SimulationSettings(patients=patients)
    query = query_from_record(next(simulate_queries(settings)))
    selectors = []
    for count in (small, large):
        records = map(transition_from_record, islice(simulate_transitions(settings, "train"), count))
        selectors.append(Selector(TransitionBank.build(records, encoder=encoder), encoder=encoder))
    for selector in selectors:
        explain(selector, query)  # the section banks are made once
    works = [partial(explain, selector, query) for selector in selectors]
    few, many = best_of(1 if quick else 20, *works, clock=process_time)
    yield share(f"explain on {large:,} transitions", many, few, f"on {small:,}", "≤ 1.2")
