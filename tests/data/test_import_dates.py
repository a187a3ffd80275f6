"""Dates as people write them: every usual form, and who decides between day and month."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.data.cohort.visits import Moment
from tabon.data.imports.dates import find_order, moment_of, read_date
from tabon.errors import BadInputError

APRIL_3 = date(2019, 4, 3).toordinal()
HALF_PAST_NINE = 9 * 3600 + 30 * 60


def column(*texts):
    """Return the dates of a column with their places."""
    return [(f"x.csv line {line}", read_date(text)) for line, text in enumerate(texts, start=2)]


@pytest.mark.parametrize(
    "text",
    ["2019-04-03", "20190403", "20190403.0", 20190403, "2019/4/3", "2019.04.03", "3/4/2019", "03.04.2019",
     "3-4-2019", "3-Apr-2019", "03 april 2019", "3Apr2019", "Apr 3, 2019", "April 3 2019", date(2019, 4, 3),
     "2019-04-03 00:00:00", "2019-04-03T00:00:00.000"],
)  # fmt: skip
def test_the_usual_forms_are_one_day(text):
    """ISO, digits alone, parts with the day first and names of months all mean the 3rd of April."""
    assert moment_of(read_date(text), None, "day-first") == Moment(APRIL_3)


@pytest.mark.parametrize(
    ("text", "time", "second"),
    [
        ("3/4/2019 9:30", None, HALF_PAST_NINE),
        ("2019-04-03T09:30:15Z", None, HALF_PAST_NINE + 15),
        ("2019-04-03 09:30:15.5+02:00", None, HALF_PAST_NINE + 15.5),
        ("3-Apr-2019 9:30 PM", None, HALF_PAST_NINE + 12 * 3600),
        ("3-Apr-2019, 12:05 a.m.", None, 300),
        ("20190403", "93015", HALF_PAST_NINE + 15),
        ("20190403", "093015.5", HALF_PAST_NINE + 15.5),
        ("20190403", "00:00", 0),
        ("20190403", float("nan"), None),
    ],
)
def test_times_stand_with_the_date_or_apart(text, time, second):
    """A time is read in its forms; midnight counts only in a column of its own."""
    assert moment_of(read_date(text), time, "day-first") == Moment(APRIL_3, second)


@pytest.mark.parametrize(
    ("text", "time", "reason"),
    [
        ("soon", None, "bad-date"),
        ("3/4/19", None, "bad-date"),
        ("31/2/2019", None, "bad-date"),
        ("43558", None, "bad-date"),
        ("3-Foo-2019", None, "bad-date"),
        ("2019-04-03", "25:00", "bad-time"),
        ("2019-04-03", "13:00 pm", "bad-time"),
        ("2019-04-03 later", None, "bad-time"),
    ],
)
def test_what_is_no_date_has_a_reason(text, time, reason):
    """Two-digit years, days that no month has and serial numbers are no dates."""
    assert moment_of(read_date(text), time, "day-first") == reason


def test_a_part_above_twelve_decides_for_the_column():
    """One date is enough, and dates of a form with an order say nothing."""
    assert find_order(column("3/4/2019", "2019-12-31", "13/4/2019"))[0] == "day-first"
    assert find_order(column("3/4/2019", "3/14/2019")) == ("month-first", "as x.csv line 3 shows")
    assert find_order(column("2019-04-03", "3-Apr-2019", "nothing")) == (None, "")
    assert find_order(column("3/3/2019", "4/4/2019")) == (None, "")


def test_a_column_that_leaves_it_open_is_refused():
    """The message names a row and both options; a default, such as the visits' order, stands in."""
    with pytest.raises(BadInputError, match=r"see x\.csv line 2.*--day-first or --month-first"):
        find_order(column("3/4/2019", "5/6/2019"))
    assert find_order(column("3/4/2019"), default="month-first")[0] == "month-first"


def test_a_column_that_contradicts_itself_is_refused():
    """Two rows are named, one for each order."""
    with pytest.raises(BadInputError, match=r"first in x\.csv line 3 and the month in x\.csv line 4"):
        find_order(column("3/4/2019", "13/4/2019", "4/13/2019"))


@given(st.lists(st.dates(date(1900, 1, 1), date(2100, 1, 1)), min_size=1), st.booleans())
def test_a_column_is_read_back_as_it_was_meant(days, day_first):
    """Whatever the column: read as written, or refused because nothing decides it."""
    order = "%d/%m/%Y" if day_first else "%m/%d/%Y"
    dates = column(*(day.strftime(order) for day in days))
    if all(day.day <= 12 for day in days) and any(day.day != day.month for day in days):
        with pytest.raises(BadInputError):
            find_order(dates)
    else:
        found = find_order(dates)[0]
        assert [moment_of(one, None, found) for _, one in dates] == [Moment(day.toordinal()) for day in days]
