"""Made-up drafts of several kinds: real reports that were found, or real reports with sentences changed.

How far a draft is from the reference depends on the noise, which differs from
draft to draft. Every sentence is one that somebody wrote.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from linking import Corpus, Rows, Visits, noisy_ranking
from plan import Setting
from reading import OpeniReport

from tabon.errors import BadInputError
from tabon.text.reports import SECTIONS, Section

SHARED = 0.75  # how many of the drafts make an error that is shared by most
Sentences = tuple[str, ...]
Change = Sentences | None  # what stands in a sentence's place; None: the sentence stays


@dataclass(frozen=True, slots=True, eq=False)
class DraftMaker:
    """Makes the drafts of one visit after another; all of one stream of random numbers."""

    corpus: Corpus
    pool: Rows
    setting: Setting
    rng: np.random.Generator

    def drafts(self, visits: Visits) -> list[list[OpeniReport]]:
        """Return the drafts of each visit."""
        make = {
            "retrieved": self._retrieved,
            "independent": self._independent,
            "shared": self._shared,
            "copies": self._copies,
            "mixed": self._mixed,
        }[self.setting.kind]
        return [list(make(*pair)) for pair in zip(visits.prior, visits.current, strict=True)]

    def _retrieved(self, prior: np.intp, reference: np.intp, count: int = -1) -> Iterator[OpeniReport]:
        """Yield pool reports that are similar to the reference, each under fresh noise, no text twice."""
        value = self.corpus.likeness[reference, self.pool]
        if self.setting.text_weight:
            value = value + self.setting.text_weight * self.corpus.text_likeness[reference, self.pool]
        texts = self.corpus.texts
        used = {texts[reference], texts[prior]}
        for _ in range(self.setting.drafts if count < 0 else count):
            ranked = self.pool[noisy_ranking(value, self._rate(), self.rng)]
            found = next((report for report in ranked if texts[report] not in used), None)
            if found is None:
                raise BadInputError("the draft pool has too few different texts; lower `drafts` or the sizes")
            used.add(texts[found])
            yield self.corpus.reports[found]

    def _independent(self, prior: np.intp, reference: np.intp) -> Iterator[OpeniReport]:
        """Yield partial truths: every draft makes its own errors."""
        del prior
        for _ in range(self.setting.drafts):
            yield self._with_errors(self.corpus.reports[reference], self._rate())

    def _shared(self, prior: np.intp, reference: np.intp) -> Iterator[OpeniReport]:
        """Yield partial truths: most drafts make the same errors, one in each section at least."""
        del prior
        truth = self.corpus.reports[reference]
        errors = {section: self._errors(truth, section, self.setting.noise) for section in SECTIONS}
        for section, found in errors.items():
            if all(change is None for change in found):
                found[self.rng.integers(len(found))] = (self._sentence(section),)
        for _ in range(self.setting.drafts):
            made = {
                section: [change if self.rng.random() < SHARED else None for change in found]
                for section, found in errors.items()
            }
            yield self._with_errors(self._changed(truth, made), self._rate() / 4)

    def _copies(self, prior: np.intp, reference: np.intp) -> Iterator[OpeniReport]:
        """Yield the prior with sentences lost, made the reference's, or made anybody's."""
        truth = self.corpus.reports[reference]
        for _ in range(self.setting.drafts):
            rate, edits = self._rate(), {}
            for section in SECTIONS:
                own = truth.sentences(section)
                edits[section] = [
                    ((), (own[self.rng.integers(len(own))],), (self._sentence(section),))[
                        self.rng.integers(3)
                    ]
                    if self.rng.random() < rate
                    else None
                    for _ in self.corpus.reports[prior].sentences(section)
                ]
            yield self._changed(self.corpus.reports[prior], edits)

    def _mixed(self, prior: np.intp, reference: np.intp) -> Iterator[OpeniReport]:
        """Yield one partial truth, one report of anybody, and reports found by codes, in any order."""
        drafts = [
            self._with_errors(self.corpus.reports[reference], self.setting.noise),
            self.corpus.reports[self.pool[self.rng.integers(len(self.pool))]],
            *self._retrieved(prior, reference, self.setting.drafts - 2),
        ]
        yield from (drafts[place] for place in self.rng.permutation(len(drafts)))

    def _rate(self) -> float:
        """Draw how much noise one draft has."""
        return float(2 * self.setting.noise * self.rng.random())

    def _with_errors(self, report: OpeniReport, rate: float) -> OpeniReport:
        """Lose or replace each sentence at a rate."""
        return self._changed(report, {section: self._errors(report, section, rate) for section in SECTIONS})

    def _errors(self, report: OpeniReport, section: Section, rate: float) -> list[Change]:
        """Draw what becomes of each sentence: it stays, or at a rate is lost or anybody's, both alike."""
        return [
            (() if self.rng.random() < 1 / 2 else (self._sentence(section),))
            if self.rng.random() < rate
            else None
            for _ in report.sentences(section)
        ]

    def _sentence(self, section: Section) -> str:
        """Draw a sentence of the draft pool."""
        sentences = self.corpus.reports[self.pool[self.rng.integers(len(self.pool))]].sentences(section)
        return sentences[self.rng.integers(len(sentences))]

    def _changed(self, report: OpeniReport, changes: dict[Section, list[Change]]) -> OpeniReport:
        """Return a report after changes; a section that lost everything says one thing that anybody said."""
        texts = {}
        for section, found in changes.items():
            kept = zip(report.sentences(section), found, strict=True)
            sentences = [text for own, change in kept for text in ((own,) if change is None else change)]
            texts[section] = " ".join(sentences or [self._sentence(section)])
        return replace(report, **texts)
