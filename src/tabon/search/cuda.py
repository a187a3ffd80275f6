"""The exact search on a GPU: `cuda`, or `cuda:1`.

The GPU takes the processor's steps: it pre-selects by the same rule, and measures what it keeps again in the
order of numpy's additions. So neighbours and distances are those of the exact search, to the last bit; where
a processor's numpy adds in another order, the processor measures (docs/decisions/exact-search.md).
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.encoders.protocol import Matrix, Placement, devices_of
from tabon.errors import BadInputError, EncoderError
from tabon.method.bank import TransitionBank, section_bank
from tabon.method.nearest import ABSENT, CLOSE, FOLD, ExactIndex, SectionBank, rounding_slack
from tabon.method.sentence_sets import Ids
from tabon.text.reports import Section

SIMILARITIES = 400_000_000  # numbers of one block on the device: 1.6 GB
SHARE = 1 / 16  # of the device's memory, at most
UNDER_WAY = 2  # blocks on the device
MOST_WORKERS = 3  # threads: one more than blocks on the device, so that none is waited for
LANES, UNROLLED = 4, 4  # numpy's einsum adds four numbers at a time, and four of these from last to first
TRIED = 256  # pairs whose bits are compared
Tensor = Any  # torch.Tensor, an optional import


class TorchIndex(ExactIndex):
    """Distinct unit rows of a bank, on a torch device."""

    most_workers = MOST_WORKERS

    def __init__(self, rows: Matrix, device: str) -> None:
        """Copy the distinct rows to the device, and find out whether it adds as the processor does."""
        super().__init__(rows)
        self._torch = require("torch", extra="torch", feature="torch")
        self._rows, self._copies_there, self._starts_there, self._sizes_there = (
            self._torch.from_numpy(each).to(device)
            for each in (self._distinct, self._copies, self._starts, self._sizes)
        )
        self._streams: SimpleQueue[Any] = SimpleQueue()
        numbers = SIMILARITIES
        if self._rows.is_cuda:
            numbers = min(numbers, int(self._torch.cuda.mem_get_info(device)[1] * SHARE) // 4)
            high, low = split(self._rows)
            self._split = self._torch.cat([high, low, high], dim=1)
        for _ in range(UNDER_WAY):
            self._streams.put(self._torch.cuda.Stream(device) if self._rows.is_cuda else None)
        self.block = max(16, numbers // len(self._distinct))
        self._adds_alike = self._same_bits(rows.shape[1])

    def _same_bits(self, dimension: int) -> bool:
        """Compare the device's products of pairs with the processor's, bit by bit."""
        if dimension % (LANES * UNROLLED):
            return False
        a, b = np.random.default_rng(0).standard_normal((2, TRIED, dimension), dtype=np.float32)
        tried = (self._torch.from_numpy(one).to(self._rows.device) for one in (a, b))
        return bool(np.array_equal(pair_products(*tried).cpu().numpy(), np.einsum("pd,pd->p", a, b)))

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """Wait until the device has room for one more block, which gets a queue of its own there."""
        stream = self._streams.get()
        try:
            with self._torch.inference_mode(), self._torch.cuda.stream(stream) if stream else nullcontext():
                yield
        finally:
            self._streams.put(stream)

    def _search_block(self, queries: Matrix, k: int) -> tuple[NDArray[np.float64], Ids]:
        """Search one block of queries: the processor's steps, on the device."""
        queries = np.ascontiguousarray(queries)
        if not self._adds_alike or min(k, self._count) > self._groups:
            return super()._search_block(queries, k)
        with self._under_way():
            asked = self._torch.from_numpy(queries).to(self._rows.device)
            query, column = self._kept(asked, min(k, self._count))
            cosine = self._cosines(asked[query], self._rows[column]).double()
            distance = (0.5 * (1.0 - cosine)).clamp(0.0, 1.0)
            counts = self._sizes_there[column]
            ends = counts.cumsum(0)
            first_copy = (self._starts_there[column] - ends + counts).repeat_interleave(counts)
            row = self._copies_there[first_copy + self._torch.arange(len(first_copy), device=asked.device)]
            query, distance = query.repeat_interleave(counts), distance.repeat_interleave(counts)
            order = row.argsort(stable=True)
            for key in (distance, query):
                order = order[key[order].argsort(stable=True)]
            every = self._torch.arange(max(k, len(asked)), device=asked.device)
            first = self._torch.searchsorted(query[order], every[: len(asked)])
            best = order[first[:, None] + every[:k]]
            return distance[best].cpu().numpy(), row[best].cpu().numpy()

    def _candidates(self, queries: Matrix, k: int) -> tuple[Ids, Ids]:
        """Return (query, column) of all that can be among the k nearest, for the processor to measure."""
        if k > self._groups:
            return super()._candidates(queries, k)
        with self._under_way():
            query, column = self._kept(self._torch.from_numpy(queries).to(self._rows.device), k)
            return query.cpu().numpy(), column.cpu().numpy()

    def _kept(self, asked: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return (query, column) of what rounding cannot exclude, as `ExactIndex._candidates` does."""
        similarity, slack = self._similarity(asked)
        similarity[:, self._count :] = float(ABSENT)
        folded = similarity.view(len(asked), FOLD, self._groups)
        best = folded.amax(dim=1)
        bound = best.topk(k, dim=1).values[:, -1] - slack
        query, group = (best >= bound[:, None]).nonzero(as_tuple=True)
        hit, fold = (folded[query, :, group] >= bound[query, None]).nonzero(as_tuple=True)
        return query[hit], fold * self._groups + group[hit]

    def _similarity(self, asked: Tensor) -> tuple[Tensor, float]:
        """Return all products, and how far two of them can be out of order by rounding alone."""
        dimension = asked.shape[1]
        if not asked.is_cuda:
            return asked @ self._rows.T, rounding_slack(dimension)
        high, low = split(asked)
        thirds = self._torch.cat([high, high, low], dim=1)
        product = self._torch.mm(thirds, self._split.T, out_dtype=self._torch.float32)
        return product, split_slack(dimension)

    def _cosines(self, asked: Tensor, found: Tensor) -> Tensor:
        """Return the products of pairs as `nearest.pair_distances` does: equal rows have 1."""
        similar = pair_products(asked, found)
        close = (similar > CLOSE).nonzero(as_tuple=True)[0]
        similar[close[(asked[close] == found[close]).all(dim=1)]] = 1.0
        return similar


def split(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows as the sum of two in bfloat16, for tensor cores; what is lost is 2⁻¹⁶ of a number."""
    high = rows.bfloat16()
    return high, (rows - high.float()).bfloat16()


def split_slack(dimension: int) -> float:
    """Return how far a product of split unit rows and one of float32 can be out of order by rounding alone.

    The first lacks low·low and what split rows lack, and adds 3d numbers: docs/decisions/exact-search.md.
    """
    split_product = 4 * 2.0**-16 + 3 * dimension * 2.0**-23
    return 2 * (split_product + dimension * 2.0**-24)


def pair_products(asked: Tensor, found: Tensor) -> Tensor:
    """Return the product of each pair of rows, added in the order of numpy's `einsum("pd,pd->p")`.

    Their length is a multiple of 16.
    """
    steps = (asked * found).unflatten(1, (-1, UNROLLED, LANES))
    total = steps.new_zeros((len(steps), LANES))
    for step in range(steps.shape[1]):
        for place in reversed(range(UNROLLED)):
            total += steps[:, step, place]
    return (total[:, 0] + total[:, 1]) + (total[:, 2] + total[:, 3])


class CudaSearch:
    """Searches a bank on one GPU; nothing can be prepared."""

    def __init__(self, url: str) -> None:
        """Refuse a device that is not there."""
        try:
            [self._device] = devices_of(Placement(device=url))
        except (EncoderError, ValueError):
            raise BadInputError(
                f"{url!r} is not one GPU of this machine; leave --search out, or name another engine"
            ) from None

    def prepare(self, *_: object, **__: object) -> None:
        """Say that there is nothing to do: the bank goes to the GPU when it is first asked."""
        raise BadInputError("a GPU needs no index; ask it at once with `tabon select --search cuda`")

    def section(self, bank: TransitionBank, section: Section, distance: str) -> SectionBank:
        """Return one section's bank under one distance (eq. 7), on the GPU."""
        found = section_bank(bank, section, distance)
        if not isinstance(found.index, ExactIndex):
            return found
        return SectionBank(TorchIndex(found.index.rows(), self._device), found.rows, found.zero_rows)
