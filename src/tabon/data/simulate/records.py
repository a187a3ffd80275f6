"""The cohort as records: transitions to fill a bank with, queries to select in.

Patients come one at a time and none is kept, so a cohort of any size streams.
"""

from collections.abc import Iterator
from itertools import pairwise

from tabon.data.simulate.drafts import Exam, write_draft
from tabon.data.simulate.draws import Draws
from tabon.data.simulate.evidence import gather
from tabon.data.simulate.patients import Patient, simulate_patient
from tabon.data.simulate.report_text import draw_reader, spoken
from tabon.data.simulate.sections import NOTHING, write_report
from tabon.data.simulate.settings import SPLITS, SimulationSettings, Split, split_of
from tabon.data.simulate.state import facts
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
    for patient in _patients(settings, split):
        for prior, current in pairwise(_exams(settings.seed, patient)):
            yield {
                "id": _id(patient, current),
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
    for patient in _patients(settings, split):
        for prior, current in pairwise(_exams(settings.seed, patient)):
            path, number = (settings.seed, patient.index), current.visit.number
            draws = Draws(*path, EVIDENCE_STREAM, number)
            evidence = gather(draws, prior.visit, current.visit, patient.health)
            streams = (Draws(*path, DRAFT_STREAM, number, j) for j in range(settings.num_candidates))
            yield {
                "id": _id(patient, current),
                "patient": patient.name,
                "prior": prior.writing.record(),
                "candidates": [write_draft(evidence, prior, stream, settings).record() for stream in streams],
                "reference": current.writing.record(),
                "state": facts(current.visit.findings),
            }


def _patients(settings: SimulationSettings, split: Split) -> Iterator[Patient]:
    """The patients of a split, one at a time."""
    if split not in SPLITS:
        raise BadInputError(f"split is {split!r}; give one of {', '.join(SPLITS)}")
    for index in range(settings.patients):
        if split_of(index, settings.splits) == split:
            yield simulate_patient(settings.seed, index)


def _exams(seed: int, patient: Patient) -> Iterator[Exam]:
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


def _id(patient: Patient, current: Exam) -> str:
    """The id of the transition into a visit."""
    return f"{patient.name}-{current.visit.number}"
