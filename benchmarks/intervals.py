"""How often 95 % intervals hold the truth, by the number of patients: three ways on simulated studies.

    python benchmarks/intervals.py [--repetitions 2000]

A patient has one to three studies. `difference` is the mean of a paired difference, `gap closed` a ratio of
means, `micro F1` the difference of two methods' F1 of five labels, three of them rare, `mostly ties` a
difference that is 0 in 70 % of the studies and skewed in the others. The second table is about drawing
anew the drafts of each drawn study, too.
"""

import argparse
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from tabon.evaluation.statistics import bootstrap_weights, effective_number, interval, sum_by_patient

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, NDArray[np.intp]], Array]  # (repetitions, studies, sums)
PATIENTS, RESAMPLES, AT_ONCE, MANY = (10, 20, 40, 80, 200), 1000, 250, 10**9
FEWER = 300  # resamples of the second table, of a fifth of the repetitions
SHARES = np.array([0.3, 0.2, 0.1, 0.05, 0.03])  # how common each label is


def drafts(rng: np.random.Generator, repetitions: int, rows: NDArray[np.intp]) -> Array:
    """Return scores of four drafts, the second better than the first by 0.05, patient by patient."""
    size = (repetitions, len(rows))
    of_patient = rng.normal(size=(repetitions, rows.max() + 1))
    scores = rng.uniform(0, 0.5, size=(*size, 4)) + 0.1 * of_patient[:, rows, None]
    other = rng.normal(size=(repetitions, rows.max() + 1))[:, rows]
    scores[..., 1] = scores[..., 0] + 0.05 + 0.1 * other + 0.05 * rng.normal(size=size)
    return scores


def difference(rng: np.random.Generator, repetitions: int, rows: NDArray[np.intp]) -> Array:
    """Return the second draft less the first, and the count."""
    scores = drafts(rng, repetitions, rows)
    return np.stack([scores[..., 1] - scores[..., 0], np.ones(scores.shape[:2])], axis=-1)


def gap_closed(rng: np.random.Generator, repetitions: int, rows: NDArray[np.intp]) -> Array:
    """Return the second draft less the mean, and the best less the mean."""
    scores = drafts(rng, repetitions, rows)
    random = scores.mean(axis=-1)
    return np.stack([scores[..., 1] - random, scores.max(axis=-1) - random], axis=-1)


def micro_f1(rng: np.random.Generator, repetitions: int, rows: NDArray[np.intp]) -> Array:
    """Return twice the hits, and the labels said or true, of a better and a worse method."""
    true = rng.uniform(size=(repetitions, len(rows), len(SHARES))) < SHARES
    sums = []
    for right in (0.8, 0.7):
        said = np.where(rng.uniform(size=true.shape) < right, true, rng.uniform(size=true.shape) < 0.1)
        sums += [2.0 * (said & true).sum(axis=-1), 1.0 * said.sum(axis=-1) + true.sum(axis=-1)]
    return np.stack(sums, axis=-1)


def mostly_ties(rng: np.random.Generator, repetitions: int, rows: NDArray[np.intp]) -> Array:
    """Return a difference that is mostly 0, and the count."""
    size = (repetitions, len(rows))
    ahead = np.where(rng.uniform(size=size) < 0.7, 0.0, rng.exponential(size=size) - 0.8)
    return np.stack([ahead, np.ones(size)], axis=-1)


KINDS: Mapping[str, Draw] = {
    "difference": difference,
    "gap closed": gap_closed,
    "micro F1": micro_f1,
    "mostly ties": mostly_ties,
}


def value(sums: Array) -> Array:
    """Return a ratio, or the difference of two."""
    parts = np.divide(
        sums[..., ::2], sums[..., 1::2], where=sums[..., 1::2] != 0, out=np.zeros_like(sums[..., ::2])
    )
    found: Array = parts[..., 0] if parts.shape[-1] == 1 else parts[..., 0] - parts[..., 1]
    return found


def accelerated(found: Array, draws: Array, left_out: Array) -> tuple[Array, Array]:
    """Return Efron's BCa interval of each column, from the values with each patient left out."""
    apart = left_out.mean(axis=0) - left_out
    spread = np.maximum((apart**2).sum(axis=0), 1e-30)
    speed = (apart**3).sum(axis=0) / (6 * spread**1.5)
    below = (draws < found).mean(axis=0) + (draws == found).mean(axis=0) / 2
    bias = norm.ppf(np.clip(below, 1 / len(draws), 1 - 1 / len(draws)))
    ends = []
    for reach in (norm.ppf(0.025), norm.ppf(0.975)):
        share = norm.cdf(bias + (bias + reach) / (1 - speed * (bias + reach)))
        ends.append(np.array([np.quantile(*each) for each in zip(draws.T, share, strict=True)]))
    return ends[0], ends[1]


def coverage(kind: str, patients: int, repetitions: int, rng: np.random.Generator) -> list[float]:
    """Return how often the plain percentiles, tabon's and BCa's interval hold the truth."""
    draw, held = KINDS[kind], []
    truth = value(draw(rng, 20, np.arange(20_000)).sum(axis=(0, 1)))
    for _ in range(repetitions // AT_ONCE):
        rows = np.repeat(np.arange(patients), rng.integers(1, 4, size=patients))
        starts = np.r_[0, np.flatnonzero(np.diff(rows)) + 1]
        sums = np.add.reduceat(draw(rng, AT_ONCE, rows), starts, axis=1)
        weights = bootstrap_weights(patients, RESAMPLES, rng)
        draws = value(np.einsum("bp,rpc->brc", weights, sums, optimize=True))
        total = sums.sum(axis=1)
        left_out = value(np.moveaxis(total[:, None] - sums, 1, 0))
        ways = (
            interval(draws, MANY),
            interval(draws, effective_number(np.bincount(rows).astype(np.float64))),
            accelerated(value(total), draws, left_out),
        )
        held.append([np.mean((low <= truth) & (truth <= high)) for low, high in ways])
    return [float(share) for share in np.mean(held, axis=0)]


def pick_and_best(scores: Array, distances: Array) -> Array:
    """Return the nearest draft less the mean, the best less the mean, and the count."""
    random, nearest = scores.mean(axis=1), np.take_along_axis(scores, distances.argmin(axis=1)[:, None], 1)
    return np.stack([nearest[:, 0] - random, scores.max(axis=1) - random, np.ones(len(scores))], axis=1)


def picked_studies(
    rng: np.random.Generator, patients: int, count: int
) -> tuple[NDArray[np.intp], Array, Array]:
    """Return each study's patient, the scores of its drafts and distances that know something of them."""
    rows = np.repeat(np.arange(patients), rng.integers(1, 4, size=patients))
    scores = 0.1 * rng.normal(size=patients)[rows, None] + rng.normal(size=(len(rows), count))
    return rows, scores, rng.normal(size=scores.shape) - 0.7 * scores


def two_levels(rows: NDArray[np.intp], scores: Array, distances: Array, rng: np.random.Generator) -> Array:
    """Return the sums of resamples of patients, in which the drafts of each study are drawn again, too."""
    of_patient = [np.flatnonzero(rows == patient) for patient in range(rows.max() + 1)]
    sums = []
    for _ in range(FEWER):
        drawn = np.concatenate(
            [of_patient[one] for one in rng.integers(len(of_patient), size=len(of_patient))]
        )
        again = rng.integers(scores.shape[1], size=(len(drawn), scores.shape[1]))
        found = (np.take_along_axis(part[drawn], again, axis=1) for part in (scores, distances))
        sums.append(pick_and_best(*found).sum(axis=0))
    return np.array(sums)


def coverage_of_levels(patients: int, count: int, repetitions: int, rng: np.random.Generator) -> list[str]:
    """Return how often intervals of one and of two levels hold the truth, and the mean of their draws."""
    truth = shares_of(pick_and_best(*picked_studies(rng, 100_000, count)[1:]).sum(axis=0))
    held, middles = [], []
    for _ in range(repetitions):
        rows, scores, distances = picked_studies(rng, patients, count)
        sums = sum_by_patient(pick_and_best(scores, distances), rows, patients)
        number = effective_number(sums[:, 2])
        levels = (
            bootstrap_weights(patients, FEWER, rng) @ sums,
            two_levels(rows, scores, distances, rng),
        )
        draws = np.stack([shares_of(level) for level in levels], axis=1)  # (resamples, levels, shares)
        low, high = interval(draws, number)
        held.append((low <= truth) & (truth <= high))
        middles.append(draws.mean(axis=0))
    cells = zip(np.mean(held, axis=0).T, np.mean(middles, axis=0).T, truth, strict=True)
    return [
        f"{true:.2f} | "
        + " | ".join(f"{100 * each:.1f} %, {middle:.2f}" for each, middle in zip(*both, strict=True))
        for *both, true in cells
    ]


def shares_of(sums: Array) -> Array:
    """Return the mean difference to a random pick, and the share of the gap closed."""
    found: Array = np.stack([sums[..., 0] / sums[..., 2], sums[..., 0] / sums[..., 1]], axis=-1)
    return found


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--repetitions", type=int, default=2000)
    repetitions = options.parse_args().repetitions
    rng = np.random.default_rng(0)
    print("| kind | patients | percentiles | tabon | BCa |\n|---|---|---|---|---|")
    for kind in KINDS:
        for patients in PATIENTS:
            shares = coverage(kind, patients, repetitions, rng)
            print(
                f"| {kind} | {patients} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |",
                flush=True,
            )
    print("\n| what | drafts | patients | truth | patients drawn | drafts drawn, too |")
    print("|---" * 6 + "|")
    rng = np.random.default_rng(0)
    for count, patients in ((5, 20), (5, 80), (16, 20), (16, 80)):
        found = coverage_of_levels(patients, count, repetitions // 5, rng)
        for what, cells in zip(("difference", "gap closed"), found, strict=True):
            print(f"| {what} | {count} | {patients} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
