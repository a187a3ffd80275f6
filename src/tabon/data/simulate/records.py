"""The cohort as records: transitions to fill a bank with, queries to select in, and figures of both.

Patients come one at a time and none is kept, so a cohort of any size streams.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from tabon.data.simulate.drafts import Exam, gather, write_draft
from tabon.data.simulate.patients import Patient, facts, simulate_patient
from tabon.data.simulate.report_text import NOTHING, draw_reader, spoken, write_report
from tabon.data.simulate.settings import SPLITS, Draws, SimulationSettings, Split, split_of
from tabon.errors import BadInputError

HOME = 0.4  # how often a visit is read by the patient's first reader
ECHO_OWN, ECHO_OTHER = 0.3, 0.1  # how often a reader takes over an own, or a colleague's, sentence
WORDS_STREAM, EVIDENCE_STREAM, DRAFT_STREAM = 1, 2, 3  # 0 is the patient's history

Record = dict[str, object]


def simulate_transitions(settings: SimulationSettings, split: Split) -> Iterator[Record]:
    """All transitions of a split: consecutive visits of one patient, with their true states.

    >>> record = next(simulate_transitions(SimulationSettings(patients=10), "train"))
    >>> list(record)[:4], record["patient"]
    (['id', 'patient', 'prior', 'current'], 'sim-000000')
    """
    for patient in patients(settings, split):
        for prior, current in pairwise(exams(settings.seed, patient)):
            yield {
                "id": f"{patient.name}-{current.visit.number}",
                "patient": patient.name,
                "prior": prior.writing.record(),
                "current": current.writing.record(),
                "prior_date": prior.visit.day.isoformat(),
                "current_date": current.visit.day.isoformat(),
                "view": patient.view,
                "split": split,
                "state": {"prior": facts(prior.visit.findings), "current": facts(current.visit.findings)},
            }


def simulate_queries(settings: SimulationSettings, split: Split = "test") -> Iterator[Record]:
    """All queries of a split: a prior, K drafts with their errors and states, the reference.

    >>> settings = SimulationSettings(patients=30, num_candidates=3)
    >>> query = next(simulate_queries(settings))
    >>> len(query["candidates"]), sorted(query["candidates"][0])
    (3, ['errors', 'state', 'text'])
    """
    for patient in patients(settings, split):
        for prior, current in pairwise(exams(settings.seed, patient)):
            path, number = (settings.seed, patient.index), current.visit.number
            draws = Draws(*path, EVIDENCE_STREAM, number)
            evidence = gather(draws, prior.visit, current.visit, patient.health)
            streams = (Draws(*path, DRAFT_STREAM, number, j) for j in range(settings.num_candidates))
            yield {
                "id": f"{patient.name}-{current.visit.number}",
                "patient": patient.name,
                "prior": prior.writing.record(),
                "candidates": [write_draft(evidence, prior, stream, settings).record() for stream in streams],
                "reference": current.writing.record(),
                "state": facts(current.visit.findings),
            }


def patients(settings: SimulationSettings, split: Split) -> Iterator[Patient]:
    """The patients of a split, one at a time."""
    if split not in SPLITS:
        raise BadInputError(f"split is {split!r}; give one of {', '.join(SPLITS)}")
    for index in range(settings.patients):
        if split_of(index, settings.splits) == split:
            yield simulate_patient(settings.seed, index)


def exams(seed: int, patient: Patient) -> Iterator[Exam]:
    """The patient's visits as they were read and written, in order, each with the last report at hand."""
    draws = Draws(seed, patient.index, WORDS_STREAM)
    home = draw_reader(draws, seed)
    last: Exam | None = None
    for visit in patient.visits:
        reader = home if last is None or draws.chance(HOME) else draw_reader(draws, seed)
        echoes = NOTHING if last is None else last.writing.echoes()
        echo = ECHO_OWN if last is not None and last.reader == reader else ECHO_OTHER
        findings = spoken(visit.findings, draws)
        last = Exam(visit, reader, write_report(findings, reader, draws, echoes=echoes, echo=echo))
        yield last


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
        findings_sentences=sum(times * len(sentences(text)) for (text, _), times in whole.items()) / count,
        impression_sentences=sum(times * len(sentences(text)) for (_, text), times in whole.items()) / count,
        findings_words=sum(times * len(text.split()) for (text, _), times in whole.items()) / count,
        impression_words=sum(times * len(text.split()) for (_, text), times in whole.items()) / count,
        repeated_reports=1 - len(whole) / count if whole else 0.0,
        twin_reports=sum(times for times in whole.values() if times > 1) / count,
        change_words=sum(times for report, times in whole.items() if _CHANGE.search(" ".join(report)))
        / count,
        distinct_sentences=len(said) / max(said.total(), 1),
        top_sentences=sum(times for _, times in said.most_common(100)) / max(said.total(), 1),
    )
