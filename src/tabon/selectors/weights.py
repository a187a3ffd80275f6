"""Weights learnt on some queries: how they are fitted, kept, and kept away from those queries."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabon._internal.atomic_files import replacing
from tabon._internal.typed_values import read_typed
from tabon.errors import BadInputError
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Section

FORMAT = "tabon-weights/1"
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedWeights:
    """What `tabon fit` learnt, for which bank, and from whom."""

    selector: str  # "fused" or "learnt"
    target: str  # the score it was taught, with its metric's signature
    bank: str  # sha256 of the bank it was fitted with
    weights: Mapping[Section, Mapping[str, float]]
    trained_on: tuple[str, ...]  # who: hashed patients, or queries where no patient is named
    queries: int

    @property
    def named(self) -> str:
        """Return what a signature calls these weights."""
        text = json.dumps({section: dict(values) for section, values in self.weights.items()}, sort_keys=True)
        return f"fitted-{sha256(text.encode()).hexdigest()[:12]}"


def who(query: Query) -> str:
    """Return whom a query is of, hashed."""
    name = f"query:{query.id}" if query.patient is None else f"patient:{query.patient}"
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def fit_ridge(parts: Array, target: Array, owner: NDArray[np.int64], *, penalty: float) -> Array:
    """Fit weights that put the drafts of each query in the target's order, (parts,).

    Args:
        parts: (drafts, parts); rows with NaN are left out.
        target: (drafts,), higher is better.
        owner: the query of each draft; only differences inside a query count.
        penalty: of the squared weights, per draft and per pooled spread of a part.
    """
    known = ~(np.isnan(parts).any(axis=1) | np.isnan(target))
    columns = centred(parts[known], owner[known])
    wanted = centred(target[known, None], owner[known])[:, 0]
    spread = np.sqrt((columns**2).mean(axis=0)) if len(columns) else np.ones(parts.shape[1])
    spread[spread < 1e-12] = 1.0  # noqa: PLR2004  # a part that never differs teaches nothing
    design = columns / spread
    ridge = penalty * max(len(design), 1) * np.eye(design.shape[1])
    weights: Array = np.linalg.solve(design.T @ design + ridge, design.T @ wanted) / spread
    return weights


def fit_from(start: Array, parts: Array, target: Array, owner: NDArray[np.int64], *, penalty: float) -> Array:
    """Shrink towards a multiple of known weights: what they leave unexplained is fitted by ridge."""
    known = ~(np.isnan(parts).any(axis=1) | np.isnan(target))
    columns = centred(parts[known], owner[known])
    wanted = centred(target[known, None], owner[known])[:, 0]
    told = columns @ start
    multiple = max(float(told @ wanted) / max(float(told @ told), 1e-12), 0.0)
    left = np.full(len(target), np.nan)
    left[known] = wanted - multiple * told
    return multiple * start + fit_ridge(parts, left, owner, penalty=penalty)


def centred(values: Array, owner: NDArray[np.int64]) -> Array:
    """Take each query's mean off its drafts.

    >>> centred(np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 1])).tolist()
    [[-1.0], [1.0], [0.0]]
    """
    groups, rows = np.unique(owner, return_inverse=True)
    sums = np.zeros((len(groups), values.shape[1]))
    np.add.at(sums, rows, values)
    counts = np.bincount(rows, minlength=len(groups))[:, None]
    means: Array = (sums / np.maximum(counts, 1))[rows]
    return values - means


def one_scale(weights: Array, parts: Array, owner: NDArray[np.int64], *, like: Array) -> Array:
    """Let the drafts of a query differ as they do under other weights: a section keeps its say.

    Args:
        weights: what is scaled.
        parts: (drafts, parts); rows with NaN are left out.
        owner: the query of each draft.
        like: the other weights; where they are 0, drafts differ by 1 on average.
    """
    known = ~np.isnan(parts).any(axis=1)
    columns = centred(parts[known], owner[known])
    found, wanted = (
        float(np.sqrt(((columns @ each) ** 2).sum() / max(len(columns), 1))) for each in (weights, like)
    )
    return weights * ((wanted or 1.0) / found) if found > 0 else weights


def write_weights(path: Path, fitted: FittedWeights) -> None:
    """Write weights in one step."""
    with replacing(path) as file:
        file.write(json.dumps({"format": FORMAT, **asdict(fitted)}, indent=1).encode() + b"\n")


def read_weights(path: Path, *, selector: str, names: Iterable[str], bank: str) -> FittedWeights:
    """Read weights back; a damaged file, another selector's or another bank's is refused."""
    fitted = read_typed(
        FittedWeights, path, form=FORMAT, what="weights file", hint="make it with `tabon fit`"
    )
    wanted = set(names)
    whole = all(fitted.weights.get(section, {}).keys() == wanted for section in SECTIONS)
    if not whole or fitted.selector != selector:
        raise BadInputError(f"{path} holds no whole weights for {selector!r}; make it with `tabon fit`")
    if fitted.bank != bank:
        raise BadInputError(f"the weights in {path} were fitted with another bank; fit them again")
    return fitted
