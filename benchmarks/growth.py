"""How time and memory grow: with the bank, with drafts, with sentences: `--out docs/reference/growth.png`.

Everything runs on one thread, and time is the processor's: a slope says how the
work grows, not how busy the machine is. A slope is fitted on log-log axes to the
larger half of the sizes, where fixed costs no longer count. Memory is the most
that Python and numpy hold at once during the work; torch's own is not counted.
"""

import argparse
import csv
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))

from fused_pool import pool
from openi_text import sentence_lists
from tabon.data.simulate import SimulationSettings, simulate_transitions
from tabon.encoders import load_encoder
from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES, get_distance
from tabon.method.nearest import ExactIndex
from tabon.method.sentence_sets import RaggedSets, embed
from tabon.method.transitions import transitions
from tabon.reporting.plots.drawing import COLOURS, FAINT, MARKERS, RULE, canvas, finished, new_figure
from tabon.selectors import Selector
from tabon.text.records import transition_from_record
from top_k import K, unit

DIMENSION = 384
QUERIES, PAIRS = 64, 1024  # searched at once; pairs of reports at once, several stacks of them
LEAST_SECONDS = 0.02  # shorter works are done several times over
LONG_SECONDS = 1.0  # longer ones once
REPETITIONS = 3
THOUSAND, MILLION = 1e3, 1e6
Work = Callable[[], object]


@dataclass(frozen=True)
class Curve:
    """Time and memory of one piece of work at growing sizes."""

    against: str
    what: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    megabytes: tuple[float, ...]


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Fit the exponent of growth to the larger half of the sizes, three at least.

    >>> round(slope([1, 2, 4, 8], [5.0, 5.0, 20.0, 80.0]), 6)
    2.0
    """
    first = min(len(sizes) // 2, max(0, len(sizes) - 3))
    return float(np.polyfit(np.log(sizes[first:]), np.log(values[first:]), 1)[0])


def seconds_of(work: Work) -> float:
    """Processor time of one call: the best of some rounds."""
    start = process_time()
    work()
    rounds = [process_time() - start]
    if rounds[0] > LONG_SECONDS:
        return rounds[0]
    calls = max(1, int(LEAST_SECONDS / max(rounds[0], 1e-6)))
    for _ in range(REPETITIONS):
        start = process_time()
        for _ in range(calls):
            work()
        rounds.append((process_time() - start) / calls)
    return min(rounds)


def megabytes_of(work: Work) -> float:
    """The most memory that one call holds at once, its result included."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / MILLION
    finally:
        tracemalloc.stop()


def measured(against: str, what: str, sizes: Sequence[int], work_of: Callable[[int], Work]) -> Curve:
    """Measure one piece of work at every size."""
    seconds, megabytes = [], []
    for size in sizes:
        work = work_of(size)
        seconds.append(seconds_of(work))
        megabytes.append(megabytes_of(work))
    return Curve(against, what, tuple(sizes), tuple(seconds), tuple(megabytes))


def doubling(first: int, last: int, step: int = 2) -> list[int]:
    """Return sizes from the first to the last, each some times the one before."""
    return [first * step**i for i in range(100) if first * step**i <= last]


def bank_curves(*, quick: bool) -> Iterator[Curve]:
    """Search and indexing against the rows of the bank."""
    sizes = doubling(256, 1024) if quick else doubling(1000, 256_000)
    rng = np.random.default_rng(0)
    rows, queries = unit(rng, sizes[-1], DIMENSION), unit(rng, QUERIES, DIMENSION)

    def search(size: int) -> Work:
        return partial(ExactIndex(rows[:size]).search, queries, K)

    against = "bank rows"
    yield measured(against, f"search of {QUERIES} queries", sizes, search)
    yield measured(against, "making the index", sizes, lambda size: partial(ExactIndex, rows[:size]))


def draft_curves(*, quick: bool) -> Iterator[Curve]:
    """Choosing among more drafts, embeddings included."""
    sizes = [2, 4, 8] if quick else doubling(2, 64)
    encoder = load_encoder("hashing")
    training = simulate_transitions(SimulationSettings(patients=60 if quick else 600), "train")
    bank = TransitionBank.build(map(transition_from_record, training), encoder=encoder)
    for name in ("transition:cost-ot/knn", "consensus:chamfer", "consensus:rouge-l-f", "fused"):
        selector = Selector(bank, name, encoder=encoder)
        selector.select_many(pool(2, 1))  # warm: the bank's own view
        work = partial(_selection, selector, 1 if quick else 4)
        yield measured("drafts a query", name, sizes, work)


def _selection(selector: Selector, queries: int, drafts: int) -> Work:
    """Select among that many drafts."""
    return partial(selector.select_many, pool(drafts, queries))


def sentence_curves(*, quick: bool) -> Iterator[Curve]:
    """Transition vectors against the sentences on each side."""
    sizes = [2, 4, 8] if quick else doubling(2, 32)
    rng = np.random.default_rng(0)
    vectors = unit(rng, 2000, DIMENSION)

    def work(names: list[str], size: int) -> Work:
        prior, current = (RaggedSets.of(rng.integers(2000, size=(PAIRS, size)).tolist()) for _ in "ab")
        return partial(transitions, [get_distance(n) for n in names], vectors, prior=prior, current=current)

    others = [name for name in DISTANCES if name != "cost-ot"]
    for what, names in (("the other three distances", others), ("Cost-OT", ["cost-ot"])):
        yield measured(f"sentences a report, {PAIRS} pairs", what, sizes, partial(work, names))


def encoding_curves(*, quick: bool) -> Iterator[Curve]:
    """Embedding against the number of distinct sentences."""
    distinct = sorted({sentence for sentences in sentence_lists() for sentence in sentences})
    np.random.default_rng(0).shuffle(distinct)
    most = {"hashing": 128} if quick else {"hashing": 8192, "minilm": 2048}
    for name, last in most.items():
        encoder = load_encoder(name)
        sizes = doubling(last // 64 if last > 128 else 32, last)
        embed(distinct[:8], encoder)  # warm
        yield measured(
            "distinct sentences",
            f"encoder {name}",
            sizes,
            lambda size: partial(embed, distinct[:size], encoder),  # noqa: B023
        )


def growth_curves(*, quick: bool) -> Iterator[Curve]:
    """Measure all curves on one thread."""
    with threadpool_limits(limits=1):
        for curves in (bank_curves, draft_curves, sentence_curves, encoding_curves):
            yield from curves(quick=quick)


def write_csv(curves: Sequence[Curve], path: Path) -> None:
    """Write one line for each size of each curve."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["against", "what", "size", "cpu_seconds", "megabytes"])
        for curve in curves:
            for size, second, megabyte in zip(curve.sizes, curve.seconds, curve.megabytes, strict=True):
                table.writerow([curve.against, curve.what, size, f"{second:.6g}", f"{megabyte:.6g}"])


def plain(value: float, _place: int = 0) -> str:
    """Write a number of an axis: no powers, no formulas.

    >>> plain(0.05), plain(64), plain(256_000)
    ('0.05', '64', '256k')
    """
    return f"{value / THOUSAND:g}k" if value >= 10 * THOUSAND else f"{value:g}"


def labels_between(low: float, high: float) -> list[float]:
    """Return the round numbers on a logarithmic axis: 1, 2 and 5 times powers of ten, or the powers alone.

    >>> labels_between(0.9, 6.0), labels_between(0.5, 2000.0)
    ([1.0, 2.0, 5.0], [1.0, 10.0, 100.0, 1000.0])
    """
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    steps = (1,) if high / low > THOUSAND else (1, 2, 5)
    return [float(step * power) for power in powers for step in steps if low <= step * power <= high]


def a_decade_at_least(low: float, high: float) -> tuple[float, float]:
    """Widen the limits of a logarithmic axis, so that what hardly grows looks flat.

    >>> a_decade_at_least(1.0, 1000.0)
    (1.0, 1000.0)
    >>> [round(limit, 2) for limit in a_decade_at_least(5.0, 20.0)]
    [3.16, 31.62]
    """
    middle = (low * high) ** 0.5
    return min(low, middle / 10**0.5), max(high, middle * 10**0.5)


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Draw a column for each thing that grows: time above, memory below."""
    grown = list(dict.fromkeys(curve.against for curve in curves))
    with canvas():
        figure = new_figure(4.1 * len(grown), 8.2)
        axes = figure.subplots(2, len(grown), squeeze=False)
        for column, against in enumerate(grown):
            group = [curve for curve in curves if curve.against == against]
            milliseconds = [[THOUSAND * second for second in curve.seconds] for curve in group]
            draw_panel(axes[0, column], group, milliseconds, "processor time, ms")
            draw_panel(axes[1, column], group, [curve.megabytes for curve in group], "most memory held, MB")
        note = "Slopes are fitted on log-log axes to the larger half of the sizes."
    path.write_bytes(finished(figure, "How cost grows", note).saved("png"))


def draw_panel(axis: object, curves: Sequence[Curve], values: Sequence[Sequence[float]], unit: str) -> None:
    """Draw one panel; its legend says the slopes."""
    for number, (curve, points) in enumerate(zip(curves, values, strict=True)):
        text = f"{curve.what}: slope {slope(curve.sizes, points):.2f}"
        look = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        axis.plot(curve.sizes, points, **look, markersize=4, label=text)
    ticks = sorted({size for curve in curves for size in curve.sizes})
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(ticks[:: -(-len(ticks) // 6)], minor=False)
    axis.minorticks_off()
    axis.xaxis.set_major_formatter(plain)
    axis.yaxis.set_major_formatter(plain)
    axis.set_ylim(a_decade_at_least(*axis.get_ylim()))
    axis.set_yticks(labels_between(*axis.get_ylim()))
    axis.set_xlabel(curves[0].against, color=FAINT)
    axis.set_ylabel(unit, color=FAINT)
    axis.grid(visible=True, color=RULE, linewidth=0.5)
    axis.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)


def read_arguments(description: str | None) -> argparse.Namespace:
    """Read where the picture goes, and whether sizes are small."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--out", type=Path, required=True, help="the picture; a .csv of that name goes beside it"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs")
    return parser.parse_args()


def main() -> None:
    """Measure, write the picture and a table beside it, and print the slopes."""
    arguments = read_arguments(__doc__)
    curves = []
    print("| against | what | time, slope | memory, slope |\n|---|---|---|---|")
    for curve in growth_curves(quick=arguments.quick):
        curves.append(curve)
        time, memory = slope(curve.sizes, curve.seconds), slope(curve.sizes, curve.megabytes)
        print(f"| {curve.against} | {curve.what} | {time:.2f} | {memory:.2f} |", flush=True)
    write_csv(curves, arguments.out.with_suffix(".csv"))
    draw(curves, arguments.out)


if __name__ == "__main__":
    main()
