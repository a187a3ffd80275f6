"""The reference report of a study beside the prior, and each draft beside the reference.

What a draft says and the reference does not is invented (`new`), what it leaves out is missed (`dropped`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tabon.explanation.alignment import Aligned
from tabon.explanation.evidence import align_rows
from tabon.method.sentence_sets import Ids, SentenceTable, embed
from tabon.selectors import Batch, Selector
from tabon.text.records import reference_of
from tabon.text.reports import SECTIONS, Report, Section
from tabon.text.sentences import split_sentences

SectionAlignments = Mapping[Section, tuple[Aligned, ...]]
Sentences = Mapping[Section, tuple[str, ...]]


@dataclass(frozen=True, slots=True, repr=False)
class AlignedReference:
    """A reference report, sentence by sentence."""

    report: Report
    sentences: Sentences
    beside_prior: SectionAlignments
    drafts: tuple[SectionAlignments, ...]  # of each draft, beside the reference as its prior


def aligned_references(selector: Selector, batch: Batch) -> list[AlignedReference | None]:
    """Align the reference of each query of a batch; None if it has none."""
    asked = [places[-1] for places in batch.places]
    reports = [reference_of(batch.queries[place]) for place in asked]
    written = [None if report is None else _sentences(report) for report in reports]
    texts = {text for found in written if found for section in found.values() for text in section}
    table = _table(selector, batch, texts)
    row = {sentence: number for number, sentence in enumerate(table.sentences)}

    def align(prior: Sentences, current: Sentences) -> SectionAlignments:
        def rows(side: Sentences, section: Section) -> Ids:
            return np.array([row[text] for text in side[section]], dtype=np.int64)

        return {
            section: align_rows(table, rows(prior, section), rows(current, section)) for section in SECTIONS
        }

    return [
        None
        if report is None or sentences is None
        else AlignedReference(
            report=report,
            sentences=sentences,
            beside_prior=align(batch.priors[place], sentences),
            drafts=tuple(align(sentences, batch.drafts[draft]) for draft in batch.rows(place)),
        )
        for place, report, sentences in zip(asked, reports, written, strict=True)
    ]


def _sentences(report: Report) -> Sentences:
    """Return the sentences of both sections."""
    return {section: split_sentences(report.section(section)) for section in SECTIONS}


def _table(selector: Selector, batch: Batch, texts: set[str]) -> SentenceTable:
    """Return the table of a batch with the sentences of the references in it too."""
    known = dict(zip(batch.table.sentences, batch.table.vectors, strict=True))
    bank = selector.bank.known_sentences
    known |= {text: bank[text] for text in texts if text in bank}
    return embed({*batch.table.sentences, *texts}, selector.encoder, known=known, store=selector.store)
