"""`tabon cohort` and `tabon simulate`: cohort folders from data sets and from the simulator."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import click

from tabon._internal.registry import check_name
from tabon.cli.help import Command
from tabon.cli.shared_options import (
    FOLDER,
    PATIENTS_HELP,
    OneOf,
    json_option,
    num_drafts_option,
    reports_errors,
    show_progress,
    takes,
)
from tabon.data.cohort.build import audit_table, build_cohort, write_simulated
from tabon.data.cohort.datasets import GENERIC, get_dataset
from tabon.data.cohort.link import Rules
from tabon.data.cohort.visits import DataSet, Egress
from tabon.data.simulate import PROMPTS, SimulationSettings
from tabon.errors import BadInputError

folder_option = click.option("--out", required=True, type=FOLDER, help="The cohort folder.")
sections_option = click.option(
    "--sections",
    type=OneOf(["any", "both"]),
    default="any",
    show_default=True,
    help="What a visit must have.",
)
priors_option = click.option(
    "--priors", "history", default=1, show_default=True, help="Earlier visits kept as priors; 0 keeps all."
)


def read_shares(shares: str) -> tuple[float, float, float]:
    """Read three shares.

    >>> read_shares("0.8,0.1,0.1")
    (0.8, 0.1, 0.1)
    """
    try:
        train, valid, test = map(float, shares.split(","))
    except ValueError:
        raise BadInputError(f"--shares is {shares!r}; give three numbers such as 0.8,0.1,0.1") from None
    return train, valid, test


@click.command(
    cls=Command,
    example="tabon cohort generic visits.csv --columns patient=PatientID,date=StudyDate,report=ReportText "
    "--out linked",
)
@click.argument("dataset")
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@folder_option
@click.option("--seed", default=0, show_default=True, help="Chooses the view of a patient who has both.")
@sections_option
@priors_option
@click.option(
    "--shares",
    default="0.872,0.063,0.065",
    show_default=True,
    help="Train, valid and test shares if splits are drawn.",
)
@click.option(
    "--columns", help="For `generic`, which column is which: patient=PID,date=When,report=Text,view=View."
)
@click.option(
    "--egress", help="Where the reports may be sent: none, zero-retention or any. You answer for it."
)
@json_option
@reports_errors
@takes(shares=read_shares, rules=Rules)
def cohort(  # noqa: PLR0913  # each is an option
    *,
    dataset: str,
    folder: Path,
    out: Path,
    columns: str | None,
    egress: Egress | None,
    rules: Rules,
    as_json: bool,
) -> None:
    """Link the visits of DATASET in FOLDER into transitions, in strict order of time.

    DATASET is rexgradient, mimic-cxr, chexpert-plus, padchest, padchest-gr,
    covid-chestxray or generic. Writes train, valid and test transitions, every
    row that was left out with its reason, the rules and the audit.
    """
    chosen = choose(dataset, columns)
    if egress is not None:
        check_name("egress policy", get_args(Egress), egress)
    audit = build_cohort(
        chosen, folder, out, rules, egress=egress, progress=lambda rows: show_progress(f"{rows:,} rows")
    )
    print_audit(audit, as_json=as_json)
    if chosen.note:
        click.echo(f"note: {chosen.note}", err=True)


def choose(name: str, columns: str | None) -> DataSet:
    """Return the data set of that name, or any table with its column map."""
    if name != GENERIC:
        if columns is not None:
            raise BadInputError(
                f"--columns goes with the data set {GENERIC!r}; {name!r} has columns of its own"
            )
        return get_dataset(name)
    if columns is None:
        raise BadInputError(
            "the data set 'generic' needs --columns, such as patient=PID,date=When,report=Text"
        )
    from tabon.data.cohort.datasets.generic import column_map, generic

    return generic(column_map(columns))


@click.command(cls=Command, example="tabon simulate --out simulated --patients 400")
@folder_option
@click.option("--patients", default=1000, show_default=True, help=PATIENTS_HELP)
@num_drafts_option("num_candidates")
@click.option(
    "--prompt",
    type=OneOf(PROMPTS, case_sensitive=False),
    default="p3",
    show_default=True,
    help="How drafts were asked for.",
)
@click.option("--noise", default=0.5, show_default=True, help="0 for faultless drafts, 1 for the worst.")
@click.option("--seed", default=0, show_default=True, help="Names the cohort.")
@json_option
@reports_errors
@takes(settings=SimulationSettings)
def simulate(*, out: Path, settings: SimulationSettings, as_json: bool) -> None:
    """Write a simulated cohort: patients with known states, reports, drafts with known errors.

    The same seed gives the same bytes on every machine.
    """
    print_audit(write_simulated(out, settings), as_json=as_json)


def print_audit(audit: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a cohort is made of."""
    click.echo(json.dumps(audit, indent=2) if as_json else "\n".join(audit_table(audit)))
