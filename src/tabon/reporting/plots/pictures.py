"""All pictures of an evaluation, with words for readers who cannot see them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tabon.evaluation.results import MEAN_RUN, Results
from tabon.reporting.plots.curves import curve_plot, curves_of
from tabon.reporting.plots.drawing import Drawing, percent
from tabon.reporting.plots.gains import GAP, gains_plot, panel_of, run_heat_map
from tabon.reporting.plots.map import transition_map_plot
from tabon.reporting.tables.places import method_name, section_name, slug
from tabon.reporting.transition_map import TransitionMap


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Picture:
    """One picture, and its words for a reader who cannot see it."""

    name: str  # fit for a file: "gains-impressions"
    drawing: Drawing
    alt: str
    folded: bool = False  # shown only when asked for

    def __repr__(self) -> str:
        """Name it."""
        return f"Picture({self.name!r})"

    def _repr_svg_(self) -> str:
        """Show it in a notebook."""
        return self.drawing.svg


def pictures(results: Results, columns: Mapping[str, str]) -> tuple[Picture, ...]:
    """Draw gains, curves, maps and runs; `columns` are headings and the scores to show, in order."""
    return (*_gains(results, columns), *_curves(results, columns), *_maps(results), *_runs(results, columns))


def _measured(results: Results, section: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns with something to draw in a section."""
    found = {
        cell.score
        for cell in results.cells
        if cell.section == section and cell.value is not None and cell.method in results.methods
    }
    return {heading: score for heading, score in columns.items() if score in found}


def _gains(results: Results, columns: Mapping[str, str]) -> Iterator[Picture]:
    """Draw the gains of each section, and name the best method on each score."""
    for section in results.sections():
        shown = _measured(results, section, columns)
        if not shown:
            continue
        parts = []
        for heading, score in shown.items():
            panel = panel_of(results, section, score, heading)
            best = max(panel.measured(), key=lambda gain: gain.value or 0.0, default=None)
            if best is not None and best.value is not None:
                what = "of the gap closed" if panel.unit == GAP else "over random"
                parts.append(f"{heading}, {method_name(best.method)} with {percent(best.value)} {what}")
        best_of = f"Highest on each score: {'; '.join(parts)}."
        alt = f"Gains over a random pick in {section_name(section)}. {best_of}"
        name = f"gains-{slug(section_name(section))}"
        yield Picture(name=name, drawing=gains_plot(results, section, shown), alt=alt)


def _curves(results: Results, columns: Mapping[str, str]) -> Iterator[Picture]:
    """Draw the curves, and say where each line begins and ends."""
    headings = {score: heading for heading, score in columns.items()}
    for curve in curves_of(results):
        heading = headings.get(curve.score, curve.score)
        ends = []
        for line in curve.lines:
            points = [(point.x, point.gap) for point in line.points if point.gap is not None]
            if points:
                (first, low), (last, high) = points[0], points[-1]
                way = f"from {percent(low)} at {first:g} to {percent(high)} at {last:g}"
                ends.append(f"{method_name(line.method)} {way}")
        what = f"{curve.name}, {heading} in {section_name(curve.section)}"
        alt = f"{what}, share of the gap closed against {curve.x}: {'; '.join(ends)}."
        yield Picture(
            name=f"gap-by-{slug(curve.x)}-{slug(section_name(curve.section))}-{slug(curve.score)}",
            drawing=curve_plot(curve, heading=heading),
            alt=alt,
        )


def maps_of(results: Results) -> tuple[TransitionMap, ...]:
    """Read the transition maps of an evaluation."""
    return tuple(map(TransitionMap.from_record, results.listed_facts("maps")))


def _maps(results: Results) -> Iterator[Picture]:
    """Draw the transition maps."""
    for number, points in enumerate(maps_of(results)):
        chosen = "none is chosen" if points.picked is None else f"draft {points.picked} is chosen"
        alt = (
            f"Map of {len(points.bank)} training transitions ({points.section}, {points.distance}) "
            f"and the {len(points.drafts)} drafts of one study; {chosen}."
        )
        yield Picture(name=f"transition-map-{number}", drawing=transition_map_plot(points), alt=alt)


def _runs(results: Results, columns: Mapping[str, str]) -> Iterator[Picture]:
    """Draw runs beside methods where there are several runs; all but the first of a section are folded."""
    if len(results.runs) < 2:  # noqa: PLR2004
        return
    for section in results.sections():
        for number, (heading, score) in enumerate(_measured(results, section, columns).items()):
            drawn = run_heat_map(results, section, score, heading=heading)
            deltas = [
                cell.delta
                for cell in results.cells
                if (cell.section, cell.score) == (section, score)
                and cell.run != MEAN_RUN
                and cell.method in results.methods
                and cell.delta is not None
            ]
            pairs = f"{sum(delta > 0 for delta in deltas)} of {len(deltas)} pairs of run and method"
            alt = f"{heading} in {section_name(section)}: {pairs} are above a random pick."
            yield Picture(
                name=f"runs-{slug(section_name(section))}-{slug(heading)}",
                drawing=drawn,
                alt=alt,
                folded=number > 0,
            )
