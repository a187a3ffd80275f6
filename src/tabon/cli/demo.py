"""`tabon demo`."""

from pathlib import Path

import click

from tabon.cli.demo_run import DemoResult, run_demo
from tabon.cli.shared_options import no_store_option, open_store, progress_bar, reports_errors, store_option
from tabon.data.simulate import SimulationSettings


@click.command()
@click.option(
    "--out",
    default="demo-output",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write to.",
)
@click.option("--patients", default=2500, show_default=True, help="Simulated patients, all splits together.")
@click.option("--seed", default=0, show_default=True, help="Names the cohort.")
@click.option("--encoder", default="minilm", show_default=True, help="As in `tabon bank build`.")
@store_option
@no_store_option
@reports_errors
def demo(out: Path, patients: int, seed: int, encoder: str, store: Path | None, no_store: bool) -> None:  # noqa: FBT001
    """Run the method end to end on a simulated cohort and show what it is worth.

    Builds a bank from the training split, selects for the test queries with all
    eight methods of the paper, prints a table and writes the bank, the queries,
    the selections and a page to look at.
    """
    settings = SimulationSettings(patients=patients, seed=seed)
    with progress_bar("embedding sentences") as progress:
        result = run_demo(
            out, settings, encoder=encoder, store=open_store(store, no_store=no_store), progress=progress
        )
    click.echo(table(result))
    click.echo(f"wrote {', '.join(map(str, result.files))}", err=True)


def table(result: DemoResult) -> str:
    """Lay the rows out for a terminal."""
    lines = [f"{'method':<22} {'state-F1':>8} {'gap closed':>12}"]
    lines += [f"{row.method:<22} {row.state_f1:>8.3f} {row.gap():>12}" for row in result.rows]
    lines += [
        "",
        f"{result.queries} queries against {result.transitions} training transitions, simulated cohort",
        result.signature,
    ]
    return "\n".join(lines)
