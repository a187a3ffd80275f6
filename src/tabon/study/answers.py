"""The journal of answers: on disk before it is acknowledged, none twice, none lost.

An answer that amends another names it. Of two windows that answer one reading at the same time the second
is refused, so that a reading has one history; the last answer of it counts.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from tabon._internal.record_file import RecordFile, misfit, read_records, record_line
from tabon._internal.typed_values import fitting
from tabon.errors import BadInputError
from tabon.study.design import Answer, Study
from tabon.study.folder import ANSWERS

Outcome = Literal["kept", "known", "superseded"]
_FIELDS: Final = tuple(field.name for field in fields(Answer))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord(Answer):
    """An answer as the journal holds it."""

    study: str
    reader: str
    time: str  # when it was kept, in UTC

    def answer(self) -> Answer:
        """Return the answer alone."""
        return Answer(**{name: getattr(self, name) for name in _FIELDS})


class Given:
    """The answers that were given so far."""

    def __init__(self) -> None:
        """Begin with none."""
        self._keys: dict[str, AnswerRecord] = {}
        self._last: dict[tuple[str, str], AnswerRecord] = {}
        self.amended: Counter[str] = Counter()  # by reader

    def __copy__(self) -> "Given":
        """Return the same answers, to be added to apart."""
        other = Given()
        other._keys, other._last = dict(self._keys), dict(self._last)
        other.amended = Counter(self.amended)
        return other

    def add(self, record: AnswerRecord) -> None:
        """Take the next line of the journal; it must go on from the answer that it names."""
        before = self._last.get((record.reader, record.reading))
        if record.key in self._keys or record.after != (None if before is None else before.key):
            raise ValueError("an answer that does not follow the one before")
        self._keys[record.key] = self._last[record.reader, record.reading] = record
        self.amended[record.reader] += before is not None

    def outcome(self, reader: str, answer: Answer) -> Outcome:
        """Say what becomes of an answer: it is new, it is here already, or another one was faster."""
        known = self._keys.get(answer.key)
        if known is not None:
            same = replace(known.answer(), after=answer.after) == answer and known.reader == reader
            return "known" if same else "superseded"
        return "kept" if answer.after == self.last_key(reader, answer.reading) else "superseded"

    def last_key(self, reader: str, reading: str) -> str | None:
        """Return the key of the answer to a reading that counts."""
        record = self._last.get((reader, reading))
        return None if record is None else record.key

    def last(self, reader: str) -> dict[str, AnswerRecord]:
        """Return a reader's answers that count, by reading."""
        return {reading: record for (name, reading), record in self._last.items() if name == reader}


class AnswerJournal(RecordFile):
    """The open journal of a study."""

    BEGIN = b'{"study": "'
    FIRST = re.compile(rb'\{"study": "[0-9a-f]{16}", "reader": "')

    def __init__(self, folder: Path, study: Study) -> None:
        """Open or begin the journal of a study; that of another study is refused."""
        self.given = Given()
        self._study = study
        _check_study(folder / ANSWERS, study)
        super().__init__(folder / ANSWERS)

    def keep(self, reader: str, answer: Answer) -> Outcome:
        """Keep an answer; when this returns "kept" or "known" it is on disk."""
        outcome = self.given.outcome(reader, answer)
        if outcome == "kept":
            self.append([_line(self._study, reader, answer)])
        return outcome

    def keep_all(self, reader: str, answers: Sequence[Answer], *, over: bool = False) -> list[Outcome]:
        """Keep the answers of a file that are new; all of them, or none if one was superseded.

        With `over` an answer that was superseded is kept as one that amends the newer.
        """
        tried, lines, outcomes = copy(self.given), list[bytes](), list[Outcome]()
        for answer in answers:
            outcome = tried.outcome(reader, answer)
            if outcome == "superseded" and over:
                outcome, answer = "kept", replace(answer, after=tried.last_key(reader, answer.reading))  # noqa: PLW2901
            if outcome == "kept":
                lines.append(_line(self._study, reader, answer))
                tried.add(_read(json.loads(lines[-1])))
            outcomes.append(outcome)
        if lines and "superseded" not in outcomes:
            self.append(lines)
        return outcomes

    def _remember(self, record: Mapping[str, Any]) -> None:
        """Index one record."""
        self.given.add(_read(record))


def read_answers(folder: Path, study: Study) -> Given:
    """Read the journal of a study, which may be open elsewhere; a study without answers has none."""
    path, given = folder / ANSWERS, Given()
    _check_study(path, study)
    for number, _, record in _records(path):
        try:
            given.add(_read(record))
        except (KeyError, ValueError):
            raise misfit(path, number) from None
    return given


def _line(study: Study, reader: str, answer: Answer) -> bytes:
    """Return the line of an answer."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    return record_line({"study": study.study, "reader": reader, **asdict(answer), "time": time})


def _read(record: Mapping[str, Any]) -> AnswerRecord:
    """Read a line of the journal."""
    found: AnswerRecord = fitting(AnswerRecord, {key: value for key, value in record.items() if key != "crc"})
    return found


def _records(path: Path) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """Yield the lines of a journal, if there is one."""
    if path.is_file():
        yield from read_records(path, AnswerJournal)


def _check_study(path: Path, study: Study) -> None:
    """Refuse a journal of another study."""
    for _, _, record in _records(path):
        if record.get("study") != study.study:
            raise BadInputError(
                f"{path} holds the answers of another study; put the journal of this one in its place"
            )
