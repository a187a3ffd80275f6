"""Lines: how the gain grows with the number of drafts or of neighbours, and the risk with what is kept."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tabon._internal.typed_values import MisfitError, fitting
from tabon.errors import BadInputError
from tabon.evaluation.results import Results
from tabon.reporting.plots.drawing import (
    FAINT,
    RULE,
    Drawing,
    Look,
    canvas,
    finished,
    label,
    looks,
    new_figure,
    percent,
)
from tabon.reporting.tables.places import method_name, section_name
from tabon.selectors.abstention import RiskCoverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAR = 16  # from this ratio of the largest x to the smallest on, the axis is logarithmic


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The share of the gap closed at one x, and its 95 % interval; None where not known."""

    x: float
    gap: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRecord:
    """A curve as results keep it."""

    name: str
    x: str
    score: str
    method: str
    section: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class CurveLine:
    """One method's points."""

    method: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One picture's lines: a score of a section against x."""

    name: str  # "K-curve"
    x: str  # what x is, "drafts K"
    score: str
    section: str
    lines: tuple[CurveLine, ...]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Curve":
        """Read one method's curve from a results file; what is not whole is refused."""
        try:
            found: CurveRecord = fitting(CurveRecord, record, "curves")
        except MisfitError as error:
            raise BadInputError(f"a curve is not whole ({error}); evaluate again") from None
        line = CurveLine(found.method, tuple(sorted(found.points, key=lambda point: point.x)))
        return cls(name=found.name, x=found.x, score=found.score, section=found.section, lines=(line,))


def joined(curves: Iterable[Curve]) -> tuple[Curve, ...]:
    """Put the methods of one curve together, in order of appearance."""
    groups: dict[tuple[str, str, str, str], Curve] = {}
    for curve in curves:
        key = (curve.name, curve.x, curve.score, curve.section)
        seen = groups.get(key)
        groups[key] = curve if seen is None else replace(seen, lines=(*seen.lines, *curve.lines))
    return tuple(groups.values())


def curves_of(results: Results) -> tuple[Curve, ...]:
    """Read the curves of an evaluation, one for each name, score and section."""
    return joined(map(Curve.from_record, results.listed_facts("curves")))


def curve_plot(curve: Curve, *, heading: str | None = None) -> Drawing:
    """Draw the lines of a curve with their interval bands; an unknown point leaves a gap."""
    title = f"{label(curve.name)}: {label(heading or curve.score)}, {label(section_name(curve.section))}"
    styles = looks(line.method for line in curve.lines)
    points = [point for line in curve.lines for point in line.points]
    lost = sum(point.gap is None for point in points)
    bare = sum(point.gap is not None and None in (point.low, point.high) for point in points)
    note = "0%: a random pick, +100%: the best draft each time; band: 95 % interval"
    parts = [f"{lost} not measured"] * bool(lost) + [f"{bare} without an interval"] * bool(bare)
    with canvas():
        figure = new_figure(6.4, 3.7)
        axes = figure.subplots()
        axes.axhline(0.0, color=FAINT, linewidth=0.9, zorder=1)
        for number, line in enumerate(curve.lines):
            _draw(axes, line, styles[line.method], number)
        xs = sorted({point.x for point in points})
        if xs and xs[0] > 0 and xs[-1] / xs[0] >= FAR:
            axes.set_xscale("log")
        axes.set_xticks(xs, [f"{x:g}" for x in xs])  # one at each measured place
        axes.set_xticks([], minor=True)
        axes.set_xlabel(label(curve.x))
        axes.set_ylabel("share of the gap closed")
        axes.yaxis.set_major_formatter(lambda value, _: percent(value).replace(".0%", "%"))
        _frame(axes)
        return finished(figure, title, "\n".join(filter(None, [note, "; ".join(parts)])))


def risk_plot(curves: Mapping[str, RiskCoverage], score: str) -> Drawing:
    """Draw one line per selector: the mean loss of the picks that are kept against their share."""
    title = f"Risk and coverage: {label(score)}"
    styles = looks(curves)
    with canvas():
        figure = new_figure(6.4, 3.7)
        axes = figure.subplots()
        for number, (method, curve) in enumerate(curves.items()):
            _line(axes, curve.coverage, curve.risk, method, styles[method], number)
        axes.set(
            xlabel="share of the picks that is kept", ylabel="mean loss (1 less the score)", xlim=(0, 1.02)
        )
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        _frame(axes)
        note = "the most plausible picks are kept first: a useful distance makes the line rise"
        return finished(figure, title, note)


def _draw(axes: "Axes", line: CurveLine, look: Look, number: int) -> None:
    """Draw one method: its band, its line, its marks."""
    nothing = float("nan")
    xs = [point.x for point in line.points]
    values = [nothing if point.gap is None else point.gap for point in line.points]
    whole = [None not in (point.gap, point.low, point.high) for point in line.points]
    ends = [
        (point.low, point.high) if ok else (nothing, nothing)
        for point, ok in zip(line.points, whole, strict=True)
    ]
    if any(whole):
        lows, highs = zip(*ends, strict=True)
        band = axes.fill_between(xs, lows, highs, where=whole, color=look.colour, alpha=0.13, linewidth=0)
        band.set_gid(f"band-{number}")
    _line(axes, xs, values, line.method, look, number)


def _line(  # where, and how it looks
    axes: "Axes", xs: Sequence[float], ys: Sequence[float], method: str, look: Look, number: int
) -> None:
    """Draw one method's line."""
    (drawn,) = axes.plot(xs, ys, color=look.colour, linestyle=look.dashes, marker=look.marker)
    drawn.set(gid=f"line-{number}", label=label(method_name(method)), markersize=5, linewidth=1.6)


def _frame(axes: "Axes") -> None:
    """Draw a quiet grid, and name the lines beside them."""
    axes.tick_params(axis="y", labelcolor=FAINT, labelsize=8)
    axes.grid(visible=True, axis="y", color=RULE, linewidth=0.5, alpha=0.6)
    axes.set_axisbelow(True)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=3)
