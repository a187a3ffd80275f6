"""Where a method gains and where it loses: every run beside every method."""

from typing import TYPE_CHECKING, Any

from tabon.evaluation.results import MEAN_RUN, Cell, Number, Results
from tabon.reporting.plots.drawing import (
    FAINT,
    GAIN,
    INK,
    LOSS,
    RULE,
    canvas,
    label,
    new_figure,
    room_for,
    split_name,
    svg,
    titled,
)
from tabon.reporting.tables.places import section_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

EVEN = 0.209  # the luminance on which white and ink are read equally well
GAP_ROWS = 0.25  # between the runs and their mean


def run_heat_map(results: Results, section: str, score: str, *, heading: str | None = None) -> str:
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
        _frame(axes, runs, list(results.methods))
        note = "in points (hundredths of the score); bold: the 95 % interval leaves 0 out"
        titled(figure, title, f"{note}\n{lost} not measured (hatched)" if lost else note)
        return svg(figure, title)


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


def _frame(axes: "Axes", runs: list[str], methods: list[str]) -> None:
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
    """Return where a row begins; the mean stands a little apart."""
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
