"""The exact search with its matrix product on a GPU: `cuda`, or `cuda:1`.

The GPU only pre-selects, in float32 and by the same rule as the processor does;
what it keeps is measured again by `nearest.pair_distances`. So neighbours and
distances are those of the exact search, to the last bit.
"""

from threading import Semaphore

import numpy as np

from tabon._internal.extras import require
from tabon.encoders.protocol import Matrix, Placement, devices_of
from tabon.errors import BadInputError, EncoderError
from tabon.method.bank import SectionBank, TransitionBank, section_bank
from tabon.method.nearest import ABSENT, FOLD, ExactIndex, rounding_slack
from tabon.method.sentence_sets import Ids
from tabon.text.reports import Section

SIMILARITIES = 100_000_000  # numbers of one block on the device: 400 MB
UNDER_WAY = 2  # blocks on the device
MOST_WORKERS = 8  # blocks that are measured again at once: more only wait for the interpreter's lock


class TorchIndex(ExactIndex):
    """Distinct unit rows of a bank, on a torch device."""

    most_workers = MOST_WORKERS

    def __init__(self, rows: Matrix, device: str) -> None:
        """Copy the distinct rows to the device."""
        super().__init__(rows)
        self._torch = require("torch", extra="torch", feature="torch")
        self._rows = self._torch.from_numpy(self._distinct).to(device)
        self._free = Semaphore(UNDER_WAY)
        self.block = max(16, SIMILARITIES // len(self._distinct))

    def _candidates(self, queries: Matrix, k: int) -> tuple[Ids, Ids]:
        """Return (query, column) of all that can be among the k nearest, by query."""
        if k > self._groups:
            return super()._candidates(queries, k)
        with self._free, self._torch.inference_mode():
            asked = self._torch.from_numpy(np.ascontiguousarray(queries)).to(self._rows.device)
            similarity = asked @ self._rows.T
            similarity[:, self._count :] = float(ABSENT)
            folded = similarity.view(len(queries), FOLD, self._groups)
            best = folded.amax(dim=1)
            bound = best.topk(k, dim=1).values[:, -1] - rounding_slack(asked.shape[1])
            query, group = (best >= bound[:, None]).nonzero(as_tuple=True)
            hit, fold = (folded[query, :, group] >= bound[query, None]).nonzero(as_tuple=True)
            column = fold * self._groups + group[hit]
            return query[hit].cpu().numpy(), column.cpu().numpy()


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
