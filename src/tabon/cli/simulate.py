"""`tabon simulate`."""

import json
from pathlib import Path

import click

from tabon.cli.shared_options import reports_errors
from tabon.data.cohort.audit import audit_table
from tabon.data.cohort.datasets.simulated import write_simulated
from tabon.data.simulate import PROMPTS, Prompt, SimulationSettings


@click.command()
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="The cohort folder."
)
@click.option("--patients", default=1000, show_default=True, help="22362 make a cohort of the paper's size.")
@click.option("--candidates", default=5, show_default=True, help="Drafts for each query (the paper's K).")
@click.option(
    "--prompt", type=click.Choice(PROMPTS), default="p3", show_default=True, help="How drafts were asked for."
)
@click.option("--noise", default=0.5, show_default=True, help="0 for faultless drafts, 1 for the worst.")
@click.option("--seed", default=0, show_default=True, help="Names the cohort.")
@click.option("--json", "as_json", is_flag=True, help="Print the audit as JSON instead.")
@reports_errors
def simulate(  # noqa: PLR0913  # each is an option
    *,
    out: Path,
    patients: int,
    candidates: int,
    prompt: Prompt,
    noise: float,
    seed: int,
    as_json: bool,
) -> None:
    """Write a simulated cohort: patients with known states, reports, drafts with known errors.

    The same seed gives the same bytes on every machine.
    """
    settings = SimulationSettings(
        seed=seed,
        patients=patients,
        num_candidates=candidates,
        prompt=prompt,
        noise=noise,
    )
    audit = write_simulated(out, settings)
    click.echo(json.dumps(audit, indent=2) if as_json else "\n".join(audit_table(audit)))
