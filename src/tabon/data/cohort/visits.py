"""What a data set's reader yields: visits, and rows that could not become one."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

from tabon.data.cohort.tables import find_file, read_csv
from tabon.errors import BadInputError
from tabon.text.reports import Report

Egress = Literal["none", "zero-retention", "any"]
Order = Literal["dates", "days", "ordinals"]  # days: counted from an event of the patient, 0 and less too
View = Literal["AP", "PA"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a row was read."""

    file: str  # relative to the data set's folder
    line: int | None = None  # from 1; None where the format has no lines


@dataclass(frozen=True, slots=True)
class Moment:
    """When a visit was: a day, and the time of day where the data set has it.

    Data sets without dates have a count of days or an ordinal number in the day's place.
    """

    day: int
    second: float | None = None  # of the day

    def precedes(self, other: "Moment") -> bool:
        """Whether this visit is known to be the earlier one.

        >>> Moment(3).precedes(Moment(4)), Moment(3).precedes(Moment(3))
        (True, False)
        >>> Moment(3, 60.0).precedes(Moment(3, 90.0))
        True
        """
        if self.day != other.day:
            return self.day < other.day
        return None not in (self.second, other.second) and self.second < other.second  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class Image:
    """One radiograph of a visit."""

    path: str  # relative to the data set's folder; may be empty
    view: View | None  # None where it is neither AP nor PA, or not said


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One study of a patient with its report."""

    study: str
    patient: str
    moment: Moment
    report: Report
    images: tuple[Image, ...]
    split: str | None  # train, valid or test; None where the data set has no splits
    source: Source

    @classmethod
    def from_record(cls, values: dict[str, Any]) -> "Visit":
        """Read back what `dataclasses.asdict` made of a visit."""
        values |= {
            "moment": Moment(**values["moment"]),
            "report": Report(**values["report"]),
            "images": tuple(Image(**image) for image in values["images"]),
            "source": Source(**values["source"]),
        }
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Excluded:
    """A row that is left out, and the named reason."""

    source: Source
    reason: str
    study: str | None = None


def visit_or_excluded(  # noqa: PLR0913  # the fields of a visit
    source: Source,
    needed: Mapping[str, object],
    *,
    study: str,
    patient: str,
    moment: Moment | str,
    report: Report | str,
    images: Iterable[Image],
    split: str | None = None,
) -> Visit | Excluded:
    """Make a visit, or leave it out for the first reason whose value is missing.

    A moment or a report that is a text is a reason too.
    """
    reasons = [reason for reason, value in needed.items() if not value]
    reasons += [value for value in (moment, report) if isinstance(value, str)]
    if reasons or isinstance(moment, str) or isinstance(report, str):
        return Excluded(source, reasons[0], study or None)
    if report.is_empty:
        return Excluded(source, "no-report", study)
    return Visit(
        study=study,
        patient=patient,
        moment=moment,
        report=report,
        images=tuple(images),
        split=split,
        source=source,
    )


Reader = Callable[[Path], Iterator[Visit | Excluded]]


def csv_reader(
    names: Iterable[str],
    columns: Iterable[str],
    visit: Callable[[Mapping[str, str], Source], Visit | Excluded],
) -> Reader:
    """Return a reader of the first CSV file of these names that makes a visit of each whole row."""

    def read(folder: Path) -> Iterator[Visit | Excluded]:
        """Yield a visit per row."""
        path = find_file(folder, *names)
        for row in read_csv(path, columns):
            source = Source(path.name, row.line)
            yield visit(row.values, source) if row.whole else Excluded(source, "wrong-field-count")

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A data set that tabon can read."""

    name: str
    read: Reader
    egress: Egress  # where its reports may be sent
    order: Order  # what the day of a moment is
    note: str = ""  # what a user must know, printed with the audit
    has_views: bool = True  # else all visits of a patient form one chain


AP_SPELLINGS = frozenset({"AP", "ANTEROPOSTERIOR", "APSUPINE", "APERECT", "APPORTABLE", "APHORIZONTAL"})
PA_SPELLINGS = frozenset({"PA", "POSTEROANTERIOR", "PAERECT"})


def normal_view(spelling: str | None) -> View | None:
    """Return AP or PA for their many spellings, None for everything else.

    >>> [normal_view(text) for text in ("POSTERO_ANTERIOR", "ap", "AP AXIAL", "LATERAL", None)]
    ['PA', 'AP', None, None, None]
    """
    letters = "".join(character for character in (spelling or "").upper() if character.isalpha())
    if letters in AP_SPELLINGS:
        return "AP"
    return "PA" if letters in PA_SPELLINGS else None


SPLIT_SPELLINGS = {
    "train": {"train", "training"},
    "valid": {"valid", "validate", "validation", "val", "dev"},
    "test": {"test", "testing"},
}


def normal_split(spelling: str | None) -> str | None:
    """Return train, valid or test for their spellings, None for everything else.

    >>> [normal_split(text) for text in ("Train", "validate", "test ", "holdout", None)]
    ['train', 'valid', 'test', None, None]
    """
    word = (spelling or "").strip().lower()
    return next((split for split, spellings in SPLIT_SPELLINGS.items() if word in spellings), None)


def split_files(place: Path, kind: Callable[[Path], str | None]) -> list[tuple[Path, str | None]]:
    """Return the one table, or the tables of a folder with the splits that they are named after.

    Args:
        place: a file or a folder.
        kind: tells what kind of table a file is; nothing for one that is none.
    """
    if not place.is_dir():
        return [(place, None)]
    paths = sorted(path for path in place.iterdir() if path.is_file() and kind(path))
    splits = [normal_split(path.name.partition(".")[0]) for path in paths]
    if len(paths) != 1 and (not paths or None in splits or len(set(splits)) < len(splits)):
        names = ", ".join(path.name for path in paths[:8]) or "none"
        raise BadInputError(
            f"{place} needs one table, or one for each of train, valid and test by name; it has: {names}"
        )
    return list(zip(paths, splits if len(paths) > 1 else [None], strict=True))


def id_text(value: object) -> str:
    """Return an id as text; 7.0 is 7, and lists and the like are no ids.

    >>> [id_text(value) for value in (7, 7.0, "7.0", " a ", None, [7])]
    ['7', '7', '7', 'a', '', '']
    """
    if isinstance(value, bool | list | tuple | dict):
        return ""
    text = said(value)
    return text.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", text) else text


def said(value: object) -> str:
    """Return a field as text; the empty string where it only says that there is nothing.

    >>> [said(value) for value in (" x ", "None", "nan", None, 3)]
    ['x', '', '', '', '3']
    """
    text = "" if value is None else str(value).strip()
    return "" if text.lower() in {"none", "nan", "nat", "null", "<na>"} else text


def moment_or_reason(day: object, time: object = None) -> Moment | str:
    """Read a moment, or return why a row has none: no-date, bad-date or bad-time.

    >>> moment_or_reason("20120101") == moment_from("20120101"), moment_or_reason("2012")
    (True, 'bad-date')
    """
    if not said(day):
        return "no-date"
    try:
        moment_from(said(day))
    except BadInputError:
        return "bad-date"
    try:
        return moment_from(said(day), said(time))
    except BadInputError:
        return "bad-time"


TIME = re.compile(r"([01][0-9]|2[0-3])([0-5][0-9])((?:[0-5][0-9]|60)[.][0-9]*)")


def moment_from(day: object, time: object = None) -> Moment:
    """Read a date as YYYYMMDD or ISO, and a time as HHMMSS(.fff), padded on the left.

    >>> moment_from("20120101", "93015.5") == moment_from("2012-01-01", "093015.5")
    True
    """
    text = str(day).strip().removesuffix(".0")
    try:
        if len(text) == 8 and text.isdigit():  # noqa: PLR2004  # YYYYMMDD
            found = date(int(text[:4]), int(text[4:6]), int(text[6:]))
        else:
            found = datetime.fromisoformat(text).date()
    except ValueError:
        raise BadInputError(f"a date of {len(text)} characters is neither YYYYMMDD nor ISO") from None
    clock = "" if time is None else str(time).strip()
    if not clock or clock.lower() == "nan":
        return Moment(found.toordinal())
    whole, _, fraction = clock.partition(".")
    parts = TIME.fullmatch(whole.zfill(6) + "." + fraction)
    if parts is None:
        raise BadInputError(f"a time of {len(clock)} characters is not HHMMSS")
    return Moment(found.toordinal(), int(parts[1]) * 3600 + int(parts[2]) * 60 + float(parts[3] + "0"))
