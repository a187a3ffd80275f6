"""`tabon doctor`."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from tabon.cli.doctor_checks import Finding, examine
from tabon.cli.shared_options import default_store, reports_errors, store_option

COMMANDS = ("pip", "hf", "rm")  # how a remedy begins that can be pasted into a shell


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines instead.")
@store_option
@reports_errors
def doctor(as_json: bool, store: Path | None) -> None:  # noqa: FBT001  # a click flag
    """Say what is installed, which encoders and metrics work offline, and what adds the rest.

    Exit status 1 when something is missing that the main job needs.
    """
    findings = list(examine(store or default_store()))
    for finding in findings:
        click.echo(json.dumps(asdict(finding)) if as_json else line(finding))
    if any(finding.needed and not finding.works for finding in findings):
        raise click.exceptions.Exit(1)


def line(finding: Finding) -> str:
    """Write one finding for a person.

    >>> line(Finding("package torch", False, "not installed", "pip install torch"))
    'missing  package torch: not installed; add it with: pip install torch'
    """
    mark = "ok     " if finding.works else "missing"
    lead = "add it with: " if finding.remedy.partition(" ")[0] in COMMANDS else ""
    remedy = f"; {lead}{finding.remedy}" if finding.remedy else ""
    return f"{mark}  {finding.what}: {finding.detail}{remedy}"
