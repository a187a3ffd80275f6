"""What choosing with the fused selector costs: among more drafts, and beside the paper's method."""

from collections.abc import Iterator
from itertools import islice
from time import process_time

from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.method.bank import TransitionBank
from tabon.selectors import Selector
from tabon.text.records import Query, query_from_record, transition_from_record
from timing import Line, best_of, share

FEW, MANY = 16, 64
PAPER_BANK = 22_745


def fused_lines(*, quick: bool) -> Iterator[Line]:
    """Time per draft with 64 drafts against 16, embeddings included; CPU time against `cost-ot/knn`."""
    queries, repetitions = (2, 1) if quick else (12, 3)
    bank = simulated_bank(100 if quick else 1538)
    selector = Selector(bank, "fused")
    few, many = (pool(count, queries) for count in (FEW, MANY))
    selector.select_many(few)  # warm: spreads and samples of the bank
    one, four = best_of(repetitions, lambda: selector.select_many(few), lambda: selector.select_many(many))
    yield share(
        f"fused, seconds a draft × 1000, {MANY} drafts a query, bank of {len(bank)}",
        1000 * four / (MANY * queries),
        1000 * one / (FEW * queries),
        f"{FEW} drafts a query",
        "≤ 3",
    )
    bank, asked = simulated_bank(100 if quick else PAPER_BANK), pool(5, 2 if quick else 1000)
    fused, paper = Selector(bank, "fused"), Selector(bank, distance="cost-ot", aggregate="knn")
    for each in (fused, paper):
        each.select_many(asked[:2])
    ours, other = best_of(
        repetitions, lambda: fused.select_many(asked), lambda: paper.select_many(asked), clock=process_time
    )
    what = f"fused, CPU seconds of {len(asked)} queries × 5 drafts, bank of {len(bank)}"
    yield share(what, ours, other, "cost-ot/knn", "≤ 5")


def simulated_bank(size: int) -> TransitionBank:
    """Return a bank of that many transitions."""
    records = simulate_transitions(SimulationSettings(patients=max(2 * size, 150)), "train")
    training = map(transition_from_record, islice(records, size))
    return TransitionBank.build(training, encoder=load_encoder("hashing"))


def pool(count: int, queries: int) -> list[Query]:
    """Return queries with that many drafts."""
    settings = SimulationSettings(
        patients=2 * queries + 100, num_candidates=count, splits=(0.1, 0.1, 0.8), seed=1
    )
    return list(map(query_from_record, islice(simulate_queries(settings, "test"), queries)))
