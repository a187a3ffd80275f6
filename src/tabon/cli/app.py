"""The `tabon` command and how its errors leave the process."""

import click

from tabon.cli.bank import bank
from tabon.cli.calibrate import calibrate
from tabon.cli.cohort import cohort
from tabon.cli.controls import controls_command
from tabon.cli.convert import convert
from tabon.cli.demo import demo
from tabon.cli.doctor import doctor
from tabon.cli.drafts import drafts
from tabon.cli.evaluate import evaluate_command
from tabon.cli.explain import explain
from tabon.cli.fit import fit_command
from tabon.cli.flags import flags_command
from tabon.cli.generate import generate
from tabon.cli.report import report
from tabon.cli.reproduce import reproduce_command
from tabon.cli.risk import risk
from tabon.cli.select import select
from tabon.cli.serve import serve_command
from tabon.cli.simulate import simulate
from tabon.cli.table import table


@click.group(epilog="Research use only. Not a medical device.")
@click.version_option(package_name="tabon")
def main() -> None:
    """Pick the best of N generated chest X-ray reports by its change from the prior report.

    Data goes to standard output, talk to standard error; `-` is a standard
    stream. Exit status: 0 done, 1 an error (in one sentence), 2 usage.
    """


COMMANDS = (
    bank,
    cohort,
    generate,
    drafts,
    select,
    explain,
    report,
    serve_command,
    flags_command,
    calibrate,
    fit_command,
    evaluate_command,
    table,
    risk,
    controls_command,
    convert,
    reproduce_command,
    simulate,
    demo,
    doctor,
)

for command in COMMANDS:
    main.add_command(command)
