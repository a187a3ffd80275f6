"""What choosing among more drafts costs with the fused selector."""

from collections.abc import Iterator

from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.method.bank import TransitionBank
from tabon.selectors import Selector
from tabon.text.records import Query, query_from_record, transition_from_record
from timing import Line, best_of, share

FEW, MANY = 16, 64


def fused_lines(*, quick: bool) -> Iterator[Line]:
    """Time per draft with 64 drafts against 16, embeddings included."""
    patients, queries = (150, 2) if quick else (1500, 12)
    encoder = load_encoder("hashing")
    training = simulate_transitions(SimulationSettings(patients=patients), "train")
    bank = TransitionBank.build(map(transition_from_record, training), encoder=encoder)
    selector = Selector(bank, "fused", encoder=encoder)
    few, many = (pool(count, queries) for count in (FEW, MANY))
    selector.select_many(few)  # warm: spreads and samples of the bank
    one, four = best_of(
        1 if quick else 3, lambda: selector.select_many(few), lambda: selector.select_many(many)
    )
    yield share(
        f"fused, seconds a draft × 1000, {MANY} drafts a query, bank of {len(bank)}",
        1000 * four / (MANY * queries),
        1000 * one / (FEW * queries),
        f"{FEW} drafts a query",
        "≤ 3",
    )


def pool(count: int, queries: int) -> list[Query]:
    """Return queries with that many drafts."""
    settings = SimulationSettings(patients=2000, num_candidates=count)
    records = simulate_queries(settings, "test")
    return [query_from_record(record) for record, _ in zip(records, range(queries), strict=False)]
