"""Each method's gain: how much of the way from a random pick to the best draft, and run by run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tabon.evaluation.results import MEAN_RUN, Cell, Number, Results
from tabon.reporting.plots.drawing import (
    BAND,
    FAINT,
    GAIN,
    INK,
    LOSS,
    RULE,
    Drawing,
    Look,
    canvas,
    finished,
    label,
    looks,
    new_figure,
    percent,
    room_for,
    split_name,
)
from tabon.reporting.tables.places import method_name, section_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap


ACROSS = 4  # panels in a row
MOST_TIMES_AS_WIDE = 4  # panels of one axis; beyond that one wide interval would make dots of the others
LONGEST_HEADING = 22  # characters over a panel
GAP, RELATIVE = "share of the gap to the best draft closed", "change relative to random"
EVEN = 0.209  # the luminance on which white and ink are read equally well
GAP_ROWS = 0.25  # between the runs and their mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain(Number):
    """One method's gain over random."""

    method: str

    @classmethod
    def of(cls, method: str, cell: Cell | None, unit: str) -> "Gain":
        """Read a gain; the interval of a relative change is that of the difference over the random value."""
        if cell is None:
            return cls(method=method)
        if unit == GAP:
            return cls(method=method, value=cell.gap, low=cell.gap_low, high=cell.gap_high)
        if cell.relative is None or cell.value is None or not cell.delta or cell.value == cell.delta:
            return cls(method=method, value=cell.relative)
        random = cell.value - cell.delta
        low, high = (None if end is None else end / random for end in (cell.delta_low, cell.delta_high))
        return cls(method=method, value=cell.relative, low=low, high=high)


@dataclass(frozen=True, slots=True)
class Panel:
    """The gains of all methods on one score."""

    heading: str
    unit: str  # GAP or RELATIVE
    gains: tuple[Gain, ...]

    def measured(self) -> tuple[Gain, ...]:
        """Return the gains that are known."""
        return tuple(gain for gain in self.gains if gain.value is not None)

    def reach(self) -> float:
        """Return how far from 0 its gains and their intervals go."""
        ends = (end for gain in self.measured() for end in (gain.value, gain.low, gain.high))
        return max((abs(end) for end in ends if end is not None), default=0.0)


def on_one_axis(panels: Sequence[Panel]) -> bool:
    """Say whether panels can share their x axis: one unit, and none much wider than another."""
    reaches = [panel.reach() for panel in panels if panel.reach()]
    one_unit = len({panel.unit for panel in panels}) == 1
    return one_unit and (not reaches or max(reaches) <= MOST_TIMES_AS_WIDE * min(reaches))


def panel_of(results: Results, section: str, score: str, heading: str) -> Panel:
    """Read one score's gains: the share of the gap where it is known, else the relative change."""
    run = results.main_run()
    cells = {
        cell.method: cell
        for cell in results.cells
        if (cell.run, cell.section, cell.score) == (run, section, score)
    }
    known = any(cell.gap is not None for name, cell in cells.items() if name in results.methods)
    unit = GAP if known else RELATIVE
    return Panel(heading, unit, tuple(Gain.of(name, cells.get(name), unit) for name in results.methods))


def gains_plot(results: Results, section: str, columns: Mapping[str, str]) -> Drawing:
    """Draw the gain over random of each method, one panel per score; bars are 95 % intervals."""
    panels = [panel_of(results, section, score, heading) for heading, score in columns.items()]
    across = max(1, min(ACROSS, len(panels)))
    down = max(1, -(-len(panels) // across))
    height = 0.26 * len(results.methods) + 0.75
    run = results.main_run()
    named = f"mean of {len(results.runs)} runs" if run == MEAN_RUN else label(run)
    title = f"Gain over a random pick: {label(section_name(section))}, {named}"
    names = [label(method_name(method)) for method in results.methods]
    with canvas():
        figure = new_figure(0.7 + room_for(names) + 1.95 * across, down * height + 0.9)
        grid = figure.subplots(down, across, sharex=on_one_axis(panels), squeeze=False)
        for number, axes in enumerate(grid.flat):
            if number < len(panels):
                _draw(axes, panels[number], number, labelled=number % across == 0)
            else:
                axes.set_axis_off()
        return finished(figure, title, _note(panels))


def _draw(axes: "Axes", panel: Panel, number: int, *, labelled: bool) -> None:
    """Draw one panel; the first method is at the top."""
    methods = [gain.method for gain in panel.gains]
    styles = looks(methods)
    top = 0  # every second distance is shaded, so that a row is easily followed
    for band, (_, group) in enumerate(groupby(methods, key=lambda name: split_name(name)[0])):
        rows = len(list(group))
        if band % 2 == 0:
            axes.axhspan(top - 0.5, top + rows - 0.5, color=BAND, linewidth=0, zorder=0)
        top += rows
    axes.axvline(0.0, color=FAINT, linewidth=0.9, zorder=1)
    for row, gain in enumerate(panel.gains):
        _mark(axes, gain, row, styles[gain.method], f"{number}-{row}")
    axes.set_title(label(panel.heading, LONGEST_HEADING))
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_yticks(range(len(methods)), [label(method_name(name)) if labelled else "" for name in methods])
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelbottom=True)
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter(lambda value, _: percent(value).replace(".0%", "%"))
    axes.margins(x=0.08)


def _mark(axes: "Axes", gain: Gain, row: int, look: Look, place: str) -> None:
    """Draw one gain and its interval, or say that there is none."""
    if gain.value is None:
        text = axes.text(0.5, row, "not measured", transform=axes.get_yaxis_transform())
        text.set(ha="center", va="center", fontsize=7.5, color=FAINT, style="italic", gid=f"missing-{place}")
        return
    if gain.low is not None and gain.high is not None:
        (line,) = axes.plot([gain.low, gain.high], [row, row], color=look.colour, linewidth=1.8, zorder=2)
        line.set_gid(f"interval-{place}")
    fill = look.colour if gain.clear() else "white"
    (mark,) = axes.plot([gain.value], [row], look.marker, color=look.colour, markerfacecolor=fill, zorder=3)
    mark.set(gid=f"gain-{place}", markersize=5.0 if look.marker == "D" else 6.0, markeredgewidth=1.4)


def _note(panels: Sequence[Panel]) -> str:
    """Say what is drawn, and what is not."""
    parts = []
    for unit in dict.fromkeys(panel.unit for panel in panels):
        names = ", ".join(label(panel.heading) for panel in panels if panel.unit == unit)
        parts.append(unit if len({panel.unit for panel in panels}) == 1 else f"{names}: {unit}")
    lost = sum(len(panel.gains) - len(panel.measured()) for panel in panels)
    bare = sum(gain.low is None or gain.high is None for panel in panels for gain in panel.measured())
    notes = ["x: " + "; ".join(parts) if parts else "nothing was asked for"]
    notes += [] if on_one_axis(panels) else ["each panel has its own x axis"]
    notes.append("bar: 95 % interval; filled mark: the interval leaves 0 out")
    notes += [f"{lost} not measured"] * bool(lost) + [f"{bare} without an interval"] * bool(bare)
    return "\n".join([notes[0], "; ".join(notes[1:])])


def run_heat_map(results: Results, section: str, score: str, *, heading: str | None = None) -> Drawing:
    """Draw the difference from random of each method in each run, in points (hundredths).

    Colours are centred at zero: blue is a gain, orange a loss.
    """
    cells = {
        (cell.run, cell.method): cell
        for cell in results.cells
        if (cell.section, cell.score) == (section, score)
    }
    runs = results.run_names()
    widest = max((abs(cell.delta) for cell in cells.values() if cell.delta is not None), default=0.0) or 1.0
    title = f"{label(heading or score)} in each run: {label(section_name(section))}, "
    title += "difference from a random pick"
    with canvas():
        from matplotlib.colors import LinearSegmentedColormap

        wide = max(0.86, room_for(part for method in results.methods for part in split_name(method)))
        left = max(1.2, room_for(map(label, runs)))
        figure = new_figure(0.7 + left + wide * len(results.methods), 1.5 + 0.31 * len(runs))
        axes = figure.subplots()
        colours = LinearSegmentedColormap.from_list("loss to gain", [LOSS, "#f8f8f6", GAIN])
        lost = 0
        for row, run in enumerate(runs):
            for column, method in enumerate(results.methods):
                cell = cells.get((run, method))
                lost += cell is None or cell.delta is None
                _draw_cell(axes, cell, (column, _top(row, run)), f"{row}-{column}", widest, colours)
        _frame_cells(axes, runs, list(results.methods))
        note = "in points (hundredths of the score); bold: the 95 % interval leaves 0 out"
        return finished(figure, title, f"{note}\n{lost} not measured (hatched)" if lost else note)


def _draw_cell(
    axes: "Axes", cell: Cell | None, place: tuple[float, float], name: str, widest: float, colours: "Colormap"
) -> None:
    """Draw one cell with its number; a missing one is hatched."""
    from matplotlib.patches import Rectangle

    left, top = place
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8.5}
    if cell is None or cell.delta is None:
        box = Rectangle((left, top), 1, 1, facecolor="white", edgecolor=RULE, hatch="////", linewidth=0)
        box.set_gid(f"missing-{name}")
        axes.text(left + 0.5, top + 0.5, "–", color=FAINT, **middle)
    else:
        share = cell.delta / widest
        fill = colours(0.5 + share / 2)
        box = Rectangle((left, top), 1, 1, facecolor=fill, edgecolor="white", linewidth=1.5)
        box.set_gid(f"cell-{name}")
        ink = "white" if _luminance(fill) < EVEN else INK
        weight = "bold" if Number(low=cell.delta_low, high=cell.delta_high).clear() else "normal"
        axes.text(left + 0.5, top + 0.5, _points(cell.delta), color=ink, fontweight=weight, **middle)
    axes.add_patch(box)


def _frame_cells(axes: "Axes", runs: list[str], methods: list[str]) -> None:
    """Name the rows and columns, and take the axes' own lines away."""
    tops = [_top(row, run) for row, run in enumerate(runs)]
    names = [f"mean of {len(runs) - 1} runs" if run == MEAN_RUN else label(run) for run in runs]
    axes.set_yticks([top + 0.5 for top in tops], names)
    axes.set_xticks([number + 0.5 for number in range(len(methods))])
    axes.set_xticklabels(["\n".join(filter(None, split_name(method))) for method in methods], color=INK)
    axes.tick_params(length=0, labelsize=8.5, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.set_xlim(0, max(1, len(methods)))
    axes.set_ylim(tops[-1] + 1, 0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _top(row: int, run: str) -> float:
    """Return where a row begins; the mean is a little apart."""
    return row + (GAP_ROWS if run == MEAN_RUN else 0.0)


def _points(delta: float) -> str:
    r"""Write a difference in points, signed.

    >>> _points(0.01234), _points(-0.00001), ascii(_points(-0.0005))
    ('+1.23', '0.00', "'\\u22120.05'")
    """
    text = f"{100 * delta:+.2f}".replace("-", "\u2212")
    return "0.00" if text[1:] == "0.00" else text


def _luminance(colour: tuple[float, ...]) -> float:
    """Return how light a colour is (WCAG's relative luminance).

    >>> round(_luminance((1.0, 1.0, 1.0)), 6), _luminance((0.0, 0.0, 0.0))
    (1.0, 0.0)
    """
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3])  # noqa: PLR2004
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
