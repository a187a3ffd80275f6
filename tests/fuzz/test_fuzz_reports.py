"""Any text through the section parser, the splitter, the labeller and the flags: no error, no lost word."""

import hostile
from budgets import budget, seeded
from hostile import CANARY
from tabon.explanation.flags import draft_flags
from tabon.text.change_words import change_words
from tabon.text.observations import label_text, mentions
from tabon.text.reports import parse_report, pieces
from tabon.text.sentences import most_sentences, split_sentences

FLAGGED = 10  # every so many texts the flags are asked for as well: they read many reports at once


def test_any_report_is_read_and_no_word_is_lost():
    """Every text has its sections, sentences, observations and flags; the canary is in all of them."""
    draw, before = seeded("reports"), [parse_report("Clear lungs."), parse_report("")]
    for number in range(budget(2_000, 100_000)):
        text = hostile.text(draw, 40)
        assert "".join(piece.header + piece.body for piece in pieces(text)) == text, ascii(text)
        report, count = parse_report(text), text.count(CANARY)
        kept = report.findings + report.impression + report.other
        assert kept.count(CANARY) >= count, ascii(text)
        sentences = split_sentences(text)
        assert sum(sentence.count(CANARY) for sentence in sentences) == count, ascii(text)
        assert len(sentences) <= most_sentences(text), ascii(text)
        label_text(report.findings)
        mentions(report.impression)
        change_words(report.findings)
        if number % FLAGGED == 0:
            draft_flags(before[0], report, [report, *before], has_prior=True)
            before = [before[1], report]
