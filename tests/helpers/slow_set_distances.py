"""Set distances typed from their formulas, in whole numbers of 2⁻⁴⁰ and fractions: nothing rounds twice."""

from fractions import Fraction
from math import fsum, sqrt

import numpy as np
import ot
from scipy.optimize import linear_sum_assignment

STEPS = 2**40  # a cost is a whole number of these


def cost(u, v):
    """d(u, v) = (1 - u.v)/2 in steps; 0 for equal rows, at least one step for others."""
    if tuple(u) == tuple(v):
        return 0
    dot = fsum(float(x) * float(y) for x, y in zip(u, v, strict=True))
    return min(max(round((1.0 - dot) / 2.0 * STEPS), 1), STEPS)


def chamfer(costs):
    """½(mean_a min_b + mean_b min_a)."""
    there = Fraction(sum(min(row) for row in costs), len(costs))
    back = Fraction(sum(min(column) for column in zip(*costs, strict=True)), len(costs[0]))
    return (there + back) / (2 * STEPS)


def hausdorff(costs):
    """max(max_a min_b, max_b min_a)."""
    there = max(min(row) for row in costs)
    back = max(min(column) for column in zip(*costs, strict=True))
    return Fraction(max(there, back), STEPS)


def transport(costs):
    """POT's own `emd2`; the optimum is a whole number of steps over n·m, so its rounding can be undone."""
    n, m = len(costs), len(costs[0])
    value = ot.emd2(np.full(n, 1 / n), np.full(m, 1 / m), np.array(costs) / STEPS)
    return Fraction(round(float(value) * n * m * STEPS), n * m * STEPS)


def hungarian(costs):
    """Pairs by scipy; ½ for each sentence without a partner; over the larger size."""
    n, m = len(costs), len(costs[0])
    paired = sum(costs[i][j] for i, j in zip(*linear_sum_assignment(np.array(costs)), strict=True))
    return (Fraction(paired, STEPS) + Fraction(abs(n - m), 2)) / max(n, m)


def mean(left, right):
    """D of the mean embeddings, each divided by its norm."""
    a, b = (_direction(rows) for rows in (left, right))
    dot = fsum(x * y for x, y in zip(a, b, strict=True))
    return Fraction(min(max(round((1.0 - dot) / 2.0 * STEPS), 0), STEPS), STEPS)


BY_COST = {"chamfer": chamfer, "hausdorff": hausdorff, "transport": transport, "hungarian": hungarian}


def set_distance(name, left, right):
    """D(A, B) of two lists of rows as a fraction."""
    if name == "mean":
        return mean(left, right)
    return BY_COST[name]([[cost(a, b) for b in right] for a in left])


def _direction(rows):
    """Sum, then divide by the norm."""
    total = [fsum(map(float, column)) for column in zip(*rows, strict=True)]
    norm = sqrt(fsum(x * x for x in total))
    return [x / norm for x in total]
