"""`tabon cohort`."""

import json
from pathlib import Path
from typing import Literal, get_args

import click

from tabon._internal.registry import check_name
from tabon.cli.shared_options import reports_errors, takes, tell
from tabon.data.cohort.audit import audit_table
from tabon.data.cohort.build import build_cohort
from tabon.data.cohort.datasets import GENERIC, get_dataset
from tabon.data.cohort.link import Rules
from tabon.data.cohort.visits import DataSet, Egress
from tabon.errors import BadInputError


def shares_of(text: str) -> tuple[float, float, float]:
    """Read three shares.

    >>> shares_of("0.8,0.1,0.1")
    (0.8, 0.1, 0.1)
    """
    try:
        train, valid, test = map(float, text.split(","))
    except ValueError:
        raise BadInputError(f"--shares is {text!r}; give three numbers such as 0.8,0.1,0.1") from None
    return train, valid, test


def _rules(seed: int, sections: Literal["any", "both"], history: int, shares: str) -> Rules:
    """Return how visits are linked."""
    return Rules(seed=seed, sections=sections, history=history, shares=shares_of(shares))


@click.command()
@click.argument("dataset")
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="The cohort folder."
)
@click.option("--seed", default=0, show_default=True, help="Chooses the view of a patient who has both.")
@click.option(
    "--sections",
    type=click.Choice(["any", "both"]),
    default="any",
    show_default=True,
    help="What a visit must have.",
)
@click.option("--history", default=1, show_default=True, help="Earlier visits kept as priors; 0 keeps all.")
@click.option(
    "--shares",
    default="0.872,0.063,0.065",
    show_default=True,
    help="Train, valid and test shares for a data set without splits.",
)
@click.option(
    "--columns", help="For `generic`: the column map, such as patient=PID,date=When,report=Text,view=View."
)
@click.option(
    "--egress", help="Where the reports may be sent: none, zero-retention or any. You answer for it."
)
@click.option("--json", "as_json", is_flag=True, help="Print the audit as JSON instead.")
@reports_errors
@takes(rules=_rules)
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
        chosen, folder, out, rules, egress=egress, progress=lambda rows: tell(f"{rows:,} rows")
    )
    click.echo(json.dumps(audit, indent=2) if as_json else "\n".join(audit_table(audit)))
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
