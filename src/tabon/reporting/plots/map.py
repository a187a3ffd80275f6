"""The method in one picture: a query's drafts among real transitions, and the one that is chosen."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tabon.reporting.plots.drawing import FAINT, INK, RULE, Drawing, canvas, finished, label, new_figure
from tabon.reporting.tables.places import DISTANCE_NAMES, section_name
from tabon.reporting.transition_map import Point, TransitionMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BANK, NEAR, DRAFT, PICK = "#b3bac6", "#4c5263", "#D55E00", "#E6A700"
MARGIN = 0.22  # around the drafts in the close view, of its side
SMALLEST = 0.06  # side of the close view, of the whole map's: drafts in one point are not blown up for ever
WIDTH = 8.6  # inches


@dataclass(frozen=True, slots=True)
class Window:
    """A square of the map."""

    x: float  # of the middle
    y: float
    side: float

    def holds(self, point: Point) -> bool:
        """Say whether a point lies inside."""
        return max(abs(point[0] - self.x), abs(point[1] - self.y)) <= self.side / 2

    def corners(self) -> tuple[Point, Point]:
        """Return the lowest and the highest corner."""
        half = self.side / 2
        return (self.x - half, self.y - half), (self.x + half, self.y + half)


def transition_map_plot(shown: TransitionMap) -> Drawing:
    """Draw the whole map at the left and the drafts from near at the right.

    Squares are training transitions, diamonds drafts, the hexagon the chosen
    one; each draft is linked with its nearest training transition. The study is
    not named, because pictures are passed on.
    """
    title = f"Drafts of one study among training transitions: {label(section_name(shown.section))}, "
    title += label(DISTANCE_NAMES.get(shown.distance, shown.distance))
    placed = [point for point in shown.drafts if point is not None]
    dots = [*shown.bank, *placed]
    smallest = SMALLEST * _around(dots, smallest=0.0, margin=0.0).side
    near = sorted({row for row in shown.nearest if row is not None})
    focus = placed + [shown.bank[row] for row in near] or list(shown.bank)
    close = _around(focus, smallest=smallest, margin=MARGIN)
    everything = _around([*dots, *close.corners()], smallest=0.0, margin=0.04)
    with canvas():
        from matplotlib.patches import Rectangle

        figure = new_figure(WIDTH, WIDTH / 2 + 1.2)
        left, right = figure.subplots(1, 2)
        _draw_view(left, shown, everything, "map")
        box = Rectangle(close.corners()[0], close.side, close.side, fill=False, edgecolor=INK, linewidth=0.8)
        box.set_gid("map-window")  # which part the close view is
        left.add_patch(box)
        _draw_view(right, shown, close, "close")
        left.set_title("all that is shown")
        right.set_title("the drafts from near")
        left.set_xlabel(f"axis 1: {shown.explained[0]:.0%} of the spread")
        left.set_ylabel(f"axis 2: {shown.explained[1]:.0%} of the spread")
        _legend(right, shown)
        return finished(figure, title, _note(shown))


def _around(points: list[Point], *, smallest: float, margin: float) -> Window:
    """Return the square around points, with a margin."""
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    side = max(float((high - low).max()) * (1 + 2 * margin), smallest) or 1.0
    middle = (low + high) / 2
    return Window(float(middle[0]), float(middle[1]), side)


def _draw_view(axes: "Axes", shown: TransitionMap, window: Window, view: str) -> None:
    """Draw bank, links and drafts as far as the window shows them."""
    (left, bottom), (right, top) = window.corners()
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(visible=True, color=RULE)
    close = view == "close"
    near = sorted({row for row in shown.nearest if row is not None})
    rows = [row for row, point in enumerate(shown.bank) if row not in near and window.holds(point)]
    _squares(axes, [shown.bank[row] for row in rows], BANK, 16 if close else 7, f"{view}-bank")
    _squares(axes, [shown.bank[row] for row in near], NEAR, 28 if close else 9, f"{view}-nearest")
    if close:
        _links(axes, shown)
        _numbers(axes, shown)
    for number, place in enumerate(shown.drafts):
        if place is None:
            continue
        chosen = number == shown.picked  # on top
        mark = _mark_of(chosen=chosen, size=(13.0 if chosen else 8.5) * (1.0 if close else 0.6))
        (drawn,) = axes.plot(*place, linestyle="none", zorder=4 if chosen else 3, **mark)
        drawn.set_gid(f"{view}-{'pick' if chosen else 'draft'}-{number}")


def _squares(axes: "Axes", places: list[Point], colour: str, size: float, name: str) -> None:
    """Draw training transitions."""
    if places:
        xs, ys = zip(*places, strict=True)
        axes.scatter(xs, ys, s=size, marker="s", color=colour, linewidths=0, alpha=0.75, gid=name)


def _links(axes: "Axes", shown: TransitionMap) -> None:
    """Link each draft with its nearest transition; the chosen one's link is solid."""
    for number, (place, row) in enumerate(zip(shown.drafts, shown.nearest, strict=True)):
        if place is None or row is None:
            continue
        chosen = number == shown.picked
        xs, ys = zip(place, shown.bank[row], strict=True)
        (line,) = axes.plot(xs, ys, color=PICK if chosen else FAINT, zorder=2)
        line.set(linestyle="-" if chosen else ":", linewidth=2.2 if chosen else 1.0, gid=f"link-{number}")


def _mark_of(*, chosen: bool, size: float) -> dict[str, Any]:
    """Return the paper's mark: a gold hexagon for the pick, an orange diamond for the others."""
    shape = {"marker": "h", "color": PICK} if chosen else {"marker": "D", "color": DRAFT}
    return {
        **shape,
        "markersize": size,
        "markeredgecolor": INK if chosen else "white",
        "markeredgewidth": 0.9,
    }


def _numbers(axes: "Axes", shown: TransitionMap) -> None:
    """Write the drafts' numbers, away from the middle; drafts in one place share a label."""
    places: dict[Point, list[int]] = {}
    for number, place in enumerate(shown.drafts):
        if place is not None:
            places.setdefault(place, []).append(number)
    middle = np.mean([point for point in shown.drafts if point is not None] or [(0.0, 0.0)], axis=0)
    for place, numbers in places.items():
        away = np.subtract(place, middle)
        length = float(np.linalg.norm(away))
        x, y = 13 * away / length if length > 0 else (0.0, 13.0)
        text = axes.annotate(
            ", ".join(map(str, numbers)), place, (float(x), float(y)), textcoords="offset points"
        )
        text.set(ha="center", va="center", fontsize=9.5, fontweight="bold", zorder=5)
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6})
        text.set_gid(f"number-{numbers[0]}")


def _legend(axes: "Axes", shown: TransitionMap) -> None:
    """Name the marks below a view."""
    from matplotlib.lines import Line2D

    marks: dict[str, dict[str, Any]] = {
        "training transition": {"marker": "s", "color": BANK, "markersize": 5},
        "nearest one": {"marker": "s", "color": NEAR, "markersize": 6},
        "draft": _mark_of(chosen=False, size=8.0),
    }
    if shown.picked is not None:
        marks[f"chosen draft ({shown.picked})"] = _mark_of(chosen=True, size=11.0)
    handles = [Line2D([], [], linestyle="none", label=name, **mark) for name, mark in marks.items()]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.0, 0.0), ncols=2, handletextpad=0.3)


def _note(shown: TransitionMap) -> str:
    """Say what the map hides."""
    lost = [str(number) for number, place in enumerate(shown.drafts) if place is None]
    shares = f"{len(shown.bank):,} of {shown.total:,} training transitions on the two widest axes"
    notes = [f"{shares}; nearest is measured in the whole space, so it may look far"]
    if shown.picked is not None:
        notes.append("the chosen draft is the nearest over both sections together")
    if lost:
        notes.append(f"no direction of change, so no place: draft {', '.join(lost)}")
    if shown.picked is None:
        notes.append("no draft was chosen")
    return "\n".join(notes)
