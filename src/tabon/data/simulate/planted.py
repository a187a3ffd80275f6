"""Pairs of drafts that differ in one known error, to see what notices it.

    a visit + one finding ─▶ the reference, and the same facts by another reader ─▶ that draft with one error

Only the sentences about the one finding differ between the two drafts, and these only in the error.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType

from tabon.data.simulate.drafts import Exam, other_course, other_severity, other_side
from tabon.data.simulate.patients import EITHER, KINDS, Course, Finding, begin
from tabon.data.simulate.phrases import phrase_book
from tabon.data.simulate.records import exams, patients
from tabon.data.simulate.report_text import NOTHING, Pen, Sentence, Voice, Writing, draw_reader, write_report
from tabon.data.simulate.settings import Draws, SimulationSettings

PLANTED = (
    "finding invented",
    "finding dropped",
    "negation flipped",
    "side swapped",
    "change word false",
    "number changed",
    "severity changed",
)
PLANTED_STREAM = 4  # after those of the records
TARGETS = ("consolidation", "atelectasis", "interstitial opacity", "pleural effusion", "pneumothorax")
MEASURED = "lung nodule"
COURSES: tuple[Course, ...] = ("new", "improved", "worse", "stable")
TIMES = 3  # a false number is so many times the true one
_MM = re.compile(r"\b(\d+) mm\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedError:
    """Two drafts of a visit: one right in other words, one with an error of this kind."""

    id: str
    patient: str
    kind: str
    prior: Mapping[str, str]
    reference: Mapping[str, str]
    right: Mapping[str, str]
    wrong: Mapping[str, str]


def planted_errors(settings: SimulationSettings) -> Iterator[PlantedError]:
    """Yield the cases of the test patients, at most one of each kind for a visit.

    >>> case = next(planted_errors(SimulationSettings(patients=30)))
    >>> case.kind, case.right == case.wrong
    ('finding invented', False)
    """
    for patient in patients(settings, "test"):
        for prior, current in pairwise(exams(settings.seed, patient)):
            draws = Draws(settings.seed, patient.index, PLANTED_STREAM, current.visit.number)
            reader = draw_reader(draws, settings.seed)
            for kinds, courses, planted in PLANS:
                known = {finding.kind for finding in current.visit.findings}
                free = [kind for kind in kinds if kind not in known]
                if not free:
                    continue
                target = begin(draws, KINDS[draws.pick(free)], onset=current.visit.number)
                target = replace(target, side=draws.pick(EITHER), course=draws.pick(courses))
                said = (*current.writing.said(), target)
                facts = tuple(sorted(said, key=lambda finding: list(KINDS).index(finding.kind)))
                visit = _Visit(target, Voice(reader, draws, loyalty=0.0), draws.below(2**31))
                reference = write_report(facts, current.reader, draws)
                right = visit.restated(write_report(facts, reader, draws), target)
                for kind, texts in planted(visit, reference, right):
                    yield _case(prior, current, patient.name, kind, texts)


Texts = tuple[Writing, Writing, Writing]  # reference, right, wrong


@dataclass(frozen=True, slots=True)
class _Visit:
    """One visit with the finding that the errors are about."""

    target: Finding
    voice: Voice
    words: int  # the seed of the words about the target: the same in both drafts

    def restated(self, writing: Writing, target: Finding) -> Writing:
        """Say what is said of the target in the words of this visit."""
        pen = Pen(replace(self.voice, draws=Draws(self.words)), self.voice, NOTHING, 0.0)
        return self.changed(writing, lambda section, _: pen.state(section, target))

    def changed(self, writing: Writing, change: Callable[[str, Sentence], Sentence | None]) -> Writing:
        """Change each sentence about the target, or leave it out; no section stays empty."""
        sections = {}
        for section in ("findings", "impression"):
            sentences = [
                change(section, sentence)
                if sentence.about and sentence.about.kind == self.target.kind
                else sentence
                for sentence in getattr(writing, section)
            ]
            kept = tuple(sentence for sentence in sentences if sentence)
            sections[section] = kept or (Sentence("impression", "No acute disease."),)
        return Writing(**sections)

    def measured(self, writing: Writing, size: int) -> Writing:
        """Give the target this length, in mm, where it has one."""
        return self.changed(
            writing, lambda _, sentence: replace(sentence, text=_MM.sub(f"{size} mm", sentence.text))
        )


def _errors_about(visit: _Visit, reference: Writing, right: Writing) -> Iterator[tuple[str, Texts]]:
    """Yield the errors about a finding with a side, a grade and a change."""
    target, which = visit.target, visit.voice.draws.unit()
    silent_reference, silent = (visit.changed(text, lambda *_: None) for text in (reference, right))
    noun = visit.voice.speak(phrase_book().kinds[target.kind].noun)
    yield "finding invented", (silent_reference, silent, right)
    yield "finding dropped", (reference, right, silent)
    denied = visit.changed(right, lambda section, _: Sentence(section, f"No {noun}."))
    yield "negation flipped", (reference, right, denied)
    false = {
        "side swapped": replace(target, side=other_side(target.side, which)),
        "change word false": replace(target, course=other_course(target, which)),
        "severity changed": replace(target, severity=other_severity(target.severity, which)),
    }
    for kind, finding in false.items():
        if finding != target:
            yield kind, (reference, right, visit.restated(right, finding))


def _number_changed(visit: _Visit, reference: Writing, right: Writing) -> Iterator[tuple[str, Texts]]:
    """Yield a false length of a finding that both texts measure."""
    stated = [sentence.text for sentence in reference.findings if _MM.search(sentence.text)]
    measured = _MM.search(" ".join(stated))
    if measured is None:
        return
    true, false = (visit.measured(right, size) for size in (int(measured[1]), TIMES * int(measured[1])))
    if true != false:
        yield "number changed", (reference, true, false)


PLANS: tuple[tuple[tuple[str, ...], tuple[Course, ...], Callable[..., Iterator[tuple[str, Texts]]]], ...] = (
    (TARGETS, COURSES, _errors_about),
    ((MEASURED,), ("",), _number_changed),  # a changed nodule is not measured by the phrase book
)


def _case(prior: Exam, current: Exam, patient: str, kind: str, texts: Texts) -> PlantedError:
    """Return a case as records."""
    reference, right, wrong = (MappingProxyType(writing.record()) for writing in texts)
    return PlantedError(
        id=f"{patient}-{current.visit.number}-{kind.replace(' ', '-')}",
        patient=patient,
        kind=kind,
        prior=prior.writing.record(),
        reference=reference,
        right=right,
        wrong=wrong,
    )
