"""The pictures of a reader study: preferences, ratings, errors and time."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tabon.reporting.plots.drawing import (
    BAND,
    COLOURS,
    FAINT,
    GAIN,
    LOSS,
    Drawing,
    canvas,
    finished,
    label,
    new_figure,
    room_for,
)
from tabon.reporting.plots.pictures import Picture
from tabon.study.design import ERROR_KINDS
from tabon.study.estimates import Estimate
from tabon.study.results import StudyResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOTH = "thick bar: 95 % interval for new cases of these readers; thin bar: for new readers too"
EVEN = 0.5


def study_pictures(results: StudyResults) -> tuple[Picture, ...]:
    """Draw what the study found."""
    return tuple(picture for picture in _pictures(results))


def _pictures(results: StudyResults) -> Iterator[Picture]:
    """Yield the pictures that have something in them."""
    shares = [(f"{one.selector} over {one.other}", one) for one in results.preferences]
    if shares:
        drawing = _forest("Share of answers that prefer the first", shares, middle=EVEN, percent=True)
        yield Picture(name="preferences", drawing=drawing, alt=f"Preferences: {_said(shares, percent=True)}.")
    ratings = [(one.selector, one) for one in results.numbers if one.what == "rating" and one.other is None]
    if ratings:
        drawing = _forest("Mean rating of the picks, 1 to 5", ratings)
        yield Picture(name="ratings", drawing=drawing, alt=f"Ratings: {_said(ratings)}.")
    if any(one.what == "errors" and one.value for one in results.numbers):
        yield _errors(results)
    if any(one.seconds for one in results.readers):
        yield _time(results)


def _said(rows: Sequence[tuple[str, Estimate]], *, percent: bool = False) -> str:
    """Say the numbers of a picture."""
    known = [(name, one.value) for name, one in rows if one.value is not None]
    return "; ".join(
        f"{name} {100 * value:.0f} %" if percent else f"{name} {value:.2f}" for name, value in known
    )


def _forest(
    title: str, rows: Sequence[tuple[str, Estimate]], *, middle: float | None = None, percent: bool = False
) -> Drawing:
    """Draw numbers below each other, each with both intervals."""
    names = [label(name) for name, _ in rows]
    with canvas():
        figure = new_figure(4.2 + room_for(names), 1.1 + 0.34 * len(rows))
        axes = figure.subplots()
        _frame(axes, names)
        if middle is not None:
            axes.axvline(middle, color=FAINT, linewidth=0.9, zorder=1)
        for place, (_, one) in enumerate(rows):
            colour = COLOURS[0]
            for low, high, width in ((one.low, one.high, 1.2), (one.these_low, one.these_high, 3.4)):
                if low is not None and high is not None:
                    axes.plot((low, high), (place, place), color=colour, linewidth=width, zorder=2)
            if one.value is not None:
                axes.plot([one.value], [place], "o", color=colour, markersize=6.5, zorder=3)
        if percent:
            axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        axes.margins(x=0.08)
        return finished(figure, title, BOTH)


def _frame(axes: "Axes", names: Sequence[str]) -> None:
    """Name the rows, the first at the top, and shade every second one."""
    for place in range(0, len(names), 2):
        axes.axhspan(place - 0.5, place + 0.5, color=BAND, linewidth=0, zorder=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _errors(results: StudyResults) -> Picture:
    """Draw the errors per draft by kind and selector, significant ones filled."""
    found = {(one.selector, one.what): one.value or 0.0 for one in results.numbers}
    selectors = list(dict.fromkeys(one.selector for one in results.numbers if one.what == "errors"))
    names = list(ERROR_KINDS.values())
    thick = 0.8 / len(selectors)
    with canvas():
        figure = new_figure(4.2 + room_for(names), 1.2 + 0.3 * len(names) * max(1.0, 0.55 * len(selectors)))
        axes = figure.subplots()
        _frame(axes, names)
        for number, selector in enumerate(selectors):
            colour = COLOURS[number % len(COLOURS)]
            places = [row - 0.4 + thick * (number + 0.5) for row in range(len(names))]
            every = [found[selector, kind] for kind in ERROR_KINDS]
            much = [found[selector, f"significant {kind}"] for kind in ERROR_KINDS]
            axes.barh(
                places, every, height=0.85 * thick, color="white", edgecolor=colour, linewidth=1.2, zorder=2
            )
            axes.barh(places, much, height=0.85 * thick, color=colour, zorder=3, label=label(selector))
        axes.set_xlim(left=0)
        axes.legend(loc="lower right")
        drawing = finished(figure, "Errors per draft", "filled: significant ones")
    totals = "; ".join(
        f"{selector} {found[selector, 'errors']:.2f}, significant {found[selector, 'significant errors']:.2f}"
        for selector in selectors
    )
    return Picture(name="errors", drawing=drawing, alt=f"Errors per draft: {totals}.")


def _time(results: StudyResults) -> Picture:
    """Draw the median time of a case and its quartiles, reader by reader."""
    found = [
        (one.reader, one.seconds, (one.seconds_low, one.seconds_high))
        for one in results.readers
        if one.seconds is not None and one.seconds_low is not None and one.seconds_high is not None
    ]
    names = [label(reader) for reader, *_ in found]
    with canvas():
        figure = new_figure(4.2 + room_for(names), 1.1 + 0.34 * len(names))
        axes = figure.subplots()
        _frame(axes, names)
        for place, (_, median, quartiles) in enumerate(found):
            axes.plot(quartiles, [place, place], color=GAIN, linewidth=3.4, zorder=2)
            axes.plot([median], [place], "o", color=LOSS, markersize=6.5, zorder=3)
        axes.set_xlim(left=0)
        drawing = finished(figure, "Seconds of a case", "dot: median; bar: quartiles; breaks are left out")
    medians = "; ".join(f"{reader} {median:.0f}" for reader, median, _ in found)
    return Picture(name="time", drawing=drawing, alt=f"Median seconds of a case: {medians}.")
