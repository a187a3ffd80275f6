"""What splitting every section costs, against asking every rule about every text."""

from collections.abc import Iterator
from time import process_time

from openi_text import reports
from tabon.text.reports import SECTIONS
from tabon.text.sentences import split_sentences
from timing import Line, best_of, faster


def splitting_lines(*, quick: bool) -> Iterator[Line]:
    """Time the splitter with and without its shortcuts on texts that it sees for the first time."""
    from every_rule import every_rule

    source, known = reports()
    texts = [report.section(section) for report in known[:: 20 if quick else 1] for section in SECTIONS]

    def split() -> list[tuple[str, ...]]:
        split_sentences.cache_clear()
        return [split_sentences(text) for text in texts]

    def split_by_every_rule() -> list[tuple[str, ...]]:
        with every_rule():
            return split()

    if split() != split_by_every_rule():
        raise AssertionError("the shortcuts change sentences")
    ours, other = best_of(1 if quick else 7, split, split_by_every_rule, clock=process_time)
    what = f"sentences of {source}, {len(texts)} sections, {len(set(texts))} distinct, CPU seconds"
    yield faster(what, ours, other, "every rule asked about every text", "≥ 3")
