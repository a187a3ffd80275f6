"""Any selector under changed circumstances: reports cut into other pieces than sentences."""

from collections.abc import Callable, Sequence

from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.method.bank import TransitionBank
from tabon.method.selection import Selection
from tabon.selectors import Batch, Scorer, Selector
from tabon.selectors.scorer import Sentences, make_batch
from tabon.text.records import Query

QUERIES_AT_ONCE = 256

Split = Callable[[str], Sentences]  # a section's text to its pieces


class ControlSelector(Selector):
    """A selector that is told how to cut texts; `bank` must be cut the same way."""

    def __init__(  # noqa: PLR0913  # what a selector has, and how texts are cut
        self,
        bank: TransitionBank,
        scorer: Scorer,
        *,
        encoder: Encoder,
        split: Split,
        history: float = 0.0,
        store: SentenceStore | None = None,
        allow_bank_patients: bool = False,
    ) -> None:
        """Keep how texts are cut."""
        super().__init__(
            bank,
            scorer,
            history=history,
            encoder=encoder,
            store=store,
            allow_bank_patients=allow_bank_patients,
        )
        self._split = split

    def batch(self, queries: Sequence[Query]) -> Batch:
        """Cut and embed every report."""
        return make_batch(
            queries,
            self.bank,
            self.encoder,
            self.store,
            each_prior=self.history > 0,
            split=self._split,
        )


def select_in_batches(selector: Selector, queries: Sequence[Query]) -> list[Selection]:
    """Choose for many queries, some hundred at a time."""
    starts = range(0, len(queries), QUERIES_AT_ONCE)
    return [one for start in starts for one in selector.select_many(queries[start : start + QUERIES_AT_ONCE])]
