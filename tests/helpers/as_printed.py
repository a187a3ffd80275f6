"""Equations 2-12 typed from the paper as loops in float64; shares nothing with src/.

Sets are lists of unit rows in canonical order; ties go to the first row.
"""

import numpy as np
from scipy.optimize import linprog

NORM_FLOOR = 1e-6


def d(u, v):
    """Cosine distance of two unit vectors; a vector has no distance to itself."""
    if np.array_equal(u, v):
        return 0.0
    return max(0.5 * (1.0 - float(np.dot(u, v))), 1e-15)


def nn(prior, b):
    """NN_A(b), the first of equals."""
    return min(prior, key=lambda a: d(b, a))


def mean_shift(prior, current):
    """Eq. 2."""
    return sum(current) / len(current) - sum(prior) / len(prior)


def novelty(prior, current):
    """Eq. 3."""
    total = np.zeros(len(prior[0]))
    for b in current:
        total += b - nn(prior, b)
    return total / len(current)


def dir_hausdorff(prior, current):
    """Eq. 4."""
    b_star = max(current, key=lambda b: min(d(b, a) for a in prior))
    return b_star - nn(prior, b_star)


def cost_matrix(prior, current):
    """M_ij of eq. 5."""
    return np.array([[d(a, b) for b in current] for a in prior])


def plan_by_linear_programming(cost):
    """An optimal plan and the optimal cost, from a general LP solver."""
    n, m = cost.shape
    rows = [np.eye(n)[i][:, None].repeat(m, 1).ravel() for i in range(n)]
    columns = [np.eye(m)[j][None, :].repeat(n, 0).ravel() for j in range(m)]
    marginals = [1 / n] * n + [1 / m] * m
    found = linprog(cost.ravel(), A_eq=np.array(rows + columns), b_eq=marginals, method="highs")
    return found.x.reshape(n, m), found.fun


def displacement(plan, cost, prior, current):
    """The double sum of eq. 5 for a given plan."""
    total = np.zeros(len(prior[0]))
    for i, a in enumerate(prior):
        for j, b in enumerate(current):
            total += plan[i, j] * cost[i, j] * (b - a)
    return total


def cost_ot(prior, current):
    """Eq. 5."""
    cost = cost_matrix(prior, current)
    plan, _ = plan_by_linear_programming(cost)
    return displacement(plan, cost, prior, current)


DISTANCES = {
    "mean-shift": mean_shift,
    "novelty": novelty,
    "dir-hausdorff": dir_hausdorff,
    "cost-ot": cost_ot,
}


def per_bank_distance(candidate, row):
    """Eq. 9; no change is like no change, and half way from any change: the policy `match`."""
    lengths = np.linalg.norm(candidate), np.linalg.norm(row)
    if max(lengths) < NORM_FLOOR:
        return 0.0
    if min(lengths) < NORM_FLOOR:
        return 0.5
    return 0.5 * (1.0 - float(np.dot(candidate, row)) / (lengths[0] * lengths[1]))


def section_distance(candidate, bank, aggregate, k):
    """Eq. 10."""
    distances = sorted(per_bank_distance(candidate, row) for row in bank)
    return distances[0] if aggregate == "min" else sum(distances[:k]) / k


def total_distances(prior, drafts, bank, distance, aggregate, k):
    """Eq. 8 and 11 for each draft.

    `prior` and each of `drafts` map a section to its set (or an empty list),
    `bank` maps a section to its training transition vectors (eq. 7).
    """
    totals = []
    for draft in drafts:
        total = 0.0
        for section, rows in bank.items():
            if not prior[section]:
                continue
            if not draft[section]:
                total += 1.0
                continue
            g_hat = DISTANCES[distance](prior[section], draft[section])
            total += section_distance(g_hat, rows, aggregate, k)
        totals.append(total)
    return totals
