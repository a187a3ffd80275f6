"""`tabon risk`."""

from pathlib import Path
from typing import IO

import click

from tabon._internal.atomic_files import replacing
from tabon._internal.registry import check_name
from tabon.cli.evaluate import read_named_picks, read_outside, scores_option
from tabon.cli.help import Command
from tabon.cli.shared_options import FILE, OneOf, name_of, reports_errors, takes
from tabon.evaluation import read_cases
from tabon.evaluation.curves import measured_for_risk, risk_of
from tabon.evaluation.draft_scores import STATE, eligible
from tabon.evaluation.inputs import NOTHING, check_picks
from tabon.evaluation.outside_scores import OutsideScore
from tabon.metrics import load_scores
from tabon.reporting.controls_table import written
from tabon.reporting.plots import FIGURE_FORMS
from tabon.reporting.plots.curves import risk_plot
from tabon.text.reports import Section


@click.command("risk", cls=Command, example="tabon risk queries.jsonl --selections fused=chosen.jsonl")
@click.argument("queries", type=click.File("rb"))
@click.option(
    "--selections",
    multiple=True,
    required=True,
    help="[NAME=]FILE, what `tabon select` printed for QUERIES; may be given many times.",
)
@click.option(
    "--score",
    default="rouge-l-f",
    show_default=True,
    help=f"The score, {STATE} (simulated), or one of --scores.",
)
@scores_option
@click.option(
    "--section",
    type=OneOf(["findings", "impression"]),
    default="findings",
    show_default=True,
    help="The section that is scored.",
)
@click.option("--figure", type=FILE, help=f"Draw the curves to this file too: .{', .'.join(FIGURE_FORMS)}.")
@reports_errors
@takes(outside=read_outside)
def risk(
    *,
    queries: IO[bytes],
    selections: tuple[str, ...],
    figure: Path | None,
    score: str,
    outside: tuple[OutsideScore, ...],
    section: Section,
) -> None:
    """Print the risk of what is kept when the least plausible picks are left out.

    Rows are selectors, columns the share of the picks that is kept; a cell is the
    mean loss (1 - score) of the picks that are kept. The last column is the mean
    over these (AURC) with its 95 % interval, patients resampled. A useful distance
    makes the risk fall to the left.
    """
    if figure is not None:
        check_name("figure form", FIGURE_FORMS, figure.suffix.lower().lstrip("."))
    cases = read_cases(queries, name=name_of(queries)).cases
    if outside:
        by_name = {each.name: each for each in outside}
        check_name("score of --scores", tuple(by_name), score)
        measured = by_name[score].measure(eligible(cases, "report"))
    else:
        metric = None if score == STATE else load_scores([score], also=(STATE,))[score][0]
        measured = measured_for_risk(cases, "report" if metric is None else section, metric)
    rows, curves = [], {}
    for text in selections:
        picks = read_named_picks(text)
        check_picks(picks, cases, name=text)
        found = risk_of(picks, measured, score)
        curves[picks.method] = found.curve
        rows.append(
            [picks.method, *(f"{value:.3f}" for value in found.curve.risk), written(found.area, ".3f")]
        )
        silent = int((picks.rows(measured.cases) == NOTHING).sum())
        if silent:
            click.echo(f"{picks.method}: {silent} of {len(measured.cases)} studies have no pick", err=True)
    heads = ["selector", *(f"{10 * tenth} %" for tenth in range(1, 11)), "area"]
    click.echo(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows:
        click.echo(f"| {' | '.join(row)} |")
    if figure is not None:
        drawn = risk_plot(curves, score).saved(figure.suffix.lower().lstrip("."))
        with replacing(figure) as file:
            file.write(drawn)
