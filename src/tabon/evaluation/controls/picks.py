"""Any selector under changed circumstances; texts are split and embedded once for all of them."""

from collections.abc import Iterator, Sequence

from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.evaluation.controls.banks import Recut, Sentences
from tabon.method.bank import TransitionBank
from tabon.method.selection import Selection
from tabon.selectors import Batch, Scorer, Selector, make_batch
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Report, Section
from tabon.text.sentences import split_sentences

QUERIES_AT_ONCE = 256


class Reader:
    """Splits no text twice."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._sentences: dict[str, Sentences] = {}

    def sections(self, report: Report, cut: Recut) -> dict[Section, Sentences]:
        """Return both sections of a report in pieces."""
        return {section: cut(self._split(report.section(section))) for section in SECTIONS}

    def _split(self, text: str) -> Sentences:
        """Return a section's sentences."""
        if text not in self._sentences:
            self._sentences[text] = split_sentences(text)
        return self._sentences[text]


class ControlSelector(Selector):
    """A selector whose reports are cut into other pieces than sentences.

    `bank` must be cut the same way.
    """

    def __init__(  # noqa: PLR0913  # what a pool selector has, and how texts are read
        self,
        bank: TransitionBank,
        scorer: Scorer,
        *,
        encoder: Encoder,
        reader: Reader,
        cut: Recut,
        history: float = 0.0,
        store: SentenceStore | None = None,
        allow_bank_patients: bool = False,
    ) -> None:
        """Keep how texts are read."""
        super().__init__(
            bank,
            scorer,
            history=history,
            encoder=encoder,
            store=store,
            allow_bank_patients=allow_bank_patients,
        )
        self._reader, self._cut = reader, cut

    def select_many(self, queries: Sequence[Query]) -> list[Selection]:
        """Choose for many queries, some hundred at a time."""
        return [
            selection
            for batch in in_batches(queries)
            for selection in super(ControlSelector, self).select_many(batch)
        ]

    def batch(self, queries: Sequence[Query]) -> Batch:
        """Cut and embed every report."""
        return make_batch(
            queries,
            self.bank,
            self.encoder,
            self.store,
            each_prior=self.history > 0,
            split=lambda report: self._reader.sections(report, self._cut),
        )


def as_split(sentences: Sentences) -> Sentences:
    """Return sentences as they are."""
    return sentences


def in_batches(queries: Sequence[Query]) -> Iterator[Sequence[Query]]:
    """Cut queries into batches of bounded size."""
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        yield queries[start : start + QUERIES_AT_ONCE]
