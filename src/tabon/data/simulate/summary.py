"""A few figures of a pile of reports, so that a simulated one can be laid beside a real one."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

_STOP = re.compile(r"(?<=[.?!])\s+")
_NUMBER = re.compile(r"\d+[.)]")  # of a list, no sentence
_CHANGE = re.compile(
    r"\b(stable|unchanged|new|improv\w+|wors\w+|increas\w+|decreas\w+|resol\w+|interval|no change)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CohortSummary:
    """Figures of reports that have both sections; shares are in [0, 1]."""

    reports: int
    findings_sentences: float  # mean per report
    impression_sentences: float
    findings_words: float
    impression_words: float
    repeated_reports: float  # share of reports that repeat an earlier one word for word
    twin_reports: float  # share of reports that some other report equals
    change_words: float  # share of reports with a word of change (stable, new, worse, …)
    distinct_sentences: float  # distinct over all sentences
    top_sentences: float  # share of all sentences that are one of the commonest hundred


def sentences(text: str) -> list[str]:
    """Cut at stops followed by space, and leave out list numbers: enough for counting.

    >>> sentences("1. Tip is 3.5 cm above. 2. No effusion.")
    ['Tip is 3.5 cm above.', 'No effusion.']
    """
    return [
        sentence for sentence in _STOP.split(text.strip()) if sentence and not _NUMBER.fullmatch(sentence)
    ]


def summarise(reports: Iterable[Mapping[str, str]]) -> CohortSummary:
    """Count; reports that lack a section are passed over.

    >>> report = {"findings": "Clear lungs. Normal heart.", "impression": "Normal chest."}
    >>> summary = summarise([report, report])
    >>> summary.findings_sentences, summary.repeated_reports, summary.twin_reports
    (2.0, 0.5, 1.0)
    """
    whole: Counter[tuple[str, str]] = Counter()
    for record in reports:
        if record["findings"] and record["impression"]:
            whole[record["findings"], record["impression"]] += 1
    count = max(whole.total(), 1)
    said: Counter[str] = Counter()  # how often each sentence was written
    for report, times in whole.items():
        for section in report:
            for sentence in sentences(section):
                said[sentence] += times
    return CohortSummary(
        reports=whole.total(),
        findings_sentences=_mean(whole, 0, lambda text: len(sentences(text))),
        impression_sentences=_mean(whole, 1, lambda text: len(sentences(text))),
        findings_words=_mean(whole, 0, lambda text: len(text.split())),
        impression_words=_mean(whole, 1, lambda text: len(text.split())),
        repeated_reports=1 - len(whole) / count if whole else 0.0,
        twin_reports=sum(times for times in whole.values() if times > 1) / count,
        change_words=sum(times for report, times in whole.items() if _CHANGE.search(" ".join(report)))
        / count,
        distinct_sentences=len(said) / max(said.total(), 1),
        top_sentences=sum(times for _, times in said.most_common(100)) / max(said.total(), 1),
    )


def _mean(whole: Counter[tuple[str, str]], section: int, measure: Callable[[str], int]) -> float:
    """The mean of a measure of one section over all reports."""
    total = sum(times * measure(report[section]) for report, times in whole.items())
    return total / max(whole.total(), 1)
