"""Dates and times as people write them, and whether the day or the month comes first.

>>> read_date("3-Apr-2019 9:30 pm")
WrittenDate(year=2019, first=4, second=3, has_order=True, clock='9:30 pm')
>>> moment_of(read_date("3/4/2019"), None, "day-first") == moment_of(read_date("20190403"), None, None)
True
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Literal

from tabon.data.cohort.visits import Moment, said
from tabon.errors import BadInputError

Order = Literal["day-first", "month-first"]

FORMS = "2019-04-03, 20190403, 3/4/2019, 03.04.2019 or 3-Apr-2019, with all four digits of the year"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NUM_MONTHS = len(MONTHS)
NOON = 12  # hours
_DATE = re.compile(
    r"""(?: (?P<y>\d{4}) (?P<mark>[-/.]) (?P<m>\d{1,2}) (?P=mark) (?P<d>\d{1,2})
    | (?P<y8>\d{4}) (?P<m8>\d\d) (?P<d8>\d\d) (?:\.0)?
    | (?P<one>\d{1,2}) (?P<sign>[-/.]) (?P<two>\d{1,2}) (?P=sign) (?P<year>\d{4})
    | (?P<day>\d{1,2}) [-/.\ ]* (?P<month>[a-z]{3,9}) [-/.,\ ]* (?P<named_year>\d{4})
    | (?P<us_month>[a-z]{3,9}) [-.\ ]* (?P<us_day>\d{1,2}) [-,\ ]+ (?P<us_year>\d{4})
    ) (?: [t,\ ]\s* (?P<clock>\S.*))?""",
    re.VERBOSE | re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?P<h>\d{1,2}):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d(?:[.]\d*)?|60))?\s*(?P<half>[ap])?[.]?(?(half)m[.]?)"
    r"\s*(?:z|utc|[-+]\d\d:?\d\d)?|(?P<hhmmss>\d{1,6})(?P<part>[.]\d*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class WrittenDate:
    """The parts of a date; if its form has no order, the month may be either of two."""

    year: int
    first: int  # the month, if the form has an order
    second: int
    has_order: bool
    clock: str  # what is written behind the date


def read_date(value: object) -> WrittenDate | None:
    """Take a written date apart; None for what is none."""
    found = _DATE.fullmatch(said(value))
    if found is None:
        return None
    clock = found["clock"] or ""
    if found["one"]:
        return WrittenDate(int(found["year"]), int(found["one"]), int(found["two"]), False, clock)
    if found["y"] or found["y8"]:
        year, month, day = (found[key] or found[f"{key}8"] for key in "ymd")
        return WrittenDate(int(year), int(month), int(day), True, clock)
    word = (found["month"] or found["us_month"]).lower()[:3]
    if word not in MONTHS:
        return None
    day, year = found["day"] or found["us_day"], found["named_year"] or found["us_year"]
    return WrittenDate(int(year), MONTHS.index(word) + 1, int(day), True, clock)


def find_order(
    dates: Iterable[tuple[str, WrittenDate | None]], *, default: Order | None = None
) -> tuple[Order | None, str]:
    """Read off a column whether the day or the month comes first, and say from where.

    Args:
        dates: each with its place, which messages name.
        default: what holds if nothing in the column decides it.

    Raises:
        BadInputError: nothing decides it, or two rows contradict each other.
    """
    places: dict[Order | None, str] = {}
    for place, written in dates:
        if written is not None and not written.has_order and written.first != written.second:
            is_day_first, is_month_first = written.first > NUM_MONTHS, written.second > NUM_MONTHS
            order: Order | None = "day-first" if is_day_first else "month-first" if is_month_first else None
            places.setdefault(order, place)
    if "day-first" in places and "month-first" in places:
        raise BadInputError(
            f"the day comes first in {places['day-first']} and the month in {places['month-first']}; "
            "write all dates in one form, or say --day-first or --month-first and the others are left out"
        )
    for order in ("day-first", "month-first"):
        if order in places:
            return order, f"as {places[order]} shows"
    if places and default is None:
        raise BadInputError(
            f"no date says whether the day or the month comes first (see {places[None]}); "
            "say --day-first or --month-first"
        )
    return (default if places else None), ""


def moment_of(written: WrittenDate | None, time: object, order: Order | None) -> Moment | str:
    """Return when a visit was, or why that is not known: bad-date or bad-time.

    A time behind the date counts unless it is midnight, as which a mere date is stored.
    """
    if written is None:
        return "bad-date"
    month, day = written.first, written.second
    if not written.has_order and order == "day-first":
        month, day = day, month
    try:
        number = date(written.year, month, day).toordinal()
    except ValueError:
        return "bad-date"
    clock = said(time)
    second = _second(clock or written.clock)
    if second is None and (clock or written.clock):
        return "bad-time"
    return Moment(number, second if clock else second or None)


def _second(clock: str) -> float | None:
    """Return the second of the day of 9:30, 09:30:15, 9:30 pm or 093015; None for none."""
    found = _CLOCK.fullmatch(clock)
    if found is None:
        return None
    digits = (found["hhmmss"] or "").zfill(6)
    hour, minute = int(found["h"] or digits[:2]), int(found["m"] or digits[2:4])
    if found["half"]:
        if not 1 <= hour <= NOON:
            return None
        hour = hour % NOON + (NOON if found["half"].lower() == "p" else 0)
    second = float(found["s"] or 0) if found["h"] else float(digits[4:] + (found["part"] or ""))
    fits = hour < 2 * NOON and minute < 60 and second < 61  # noqa: PLR2004  # of a clock
    return hour * 3600 + minute * 60 + second if fits else None
