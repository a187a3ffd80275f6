"""The `tabon` command: its commands by task, each imported when it is run."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any
from warnings import catch_warnings, simplefilter

import click
from click.shell_completion import CompletionItem

from tabon.errors import NoPatientsWarning, closest


@dataclass(frozen=True, slots=True)
class Entry:
    """A command in the list of `tabon --help`."""

    task: str
    place: str  # module:attribute in `tabon.cli`
    help: str


COMMANDS = MappingProxyType(
    {
        "demo": Entry("Start", "demo:demo", "Run the whole method on a simulated cohort."),
        "doctor": Entry("Start", "doctor:doctor", "Say what works here, and what adds the rest."),
        "import": Entry(
            "Data", "import_files:import_command", "Make a cohort of your own visits and drafts."
        ),
        "cohort": Entry("Data", "cohort:cohort", "Link the visits of a data set into transitions."),
        "convert": Entry("Data", "convert:convert", "Read and write FHIR, DICOM SR, ReXrank's JSON."),
        "simulate": Entry("Data", "cohort:simulate", "Write a simulated cohort with known truth."),
        "generate": Entry("Drafts", "generate:generate", "Generate drafts with a model, into a journal."),
        "drafts": Entry("Drafts", "generate:drafts", "Join a journal with its cohort into queries."),
        "bank": Entry("Select", "bank:bank", "Build and look at transition banks."),
        "select": Entry("Select", "select:select", "Pick one draft for each query."),
        "explain": Entry("Select", "explain:explain", "Say why a draft was chosen."),
        "flags": Entry("Select", "explain:flags_command", "Say what to look at in each draft."),
        "report": Entry("Select", "explain:report", "Write studies, drafts and picks as one page."),
        "serve": Entry("Select", "serve:serve_command", "Answer queries over HTTP."),
        "calibrate": Entry("Tune", "tune:calibrate", "Learn when to abstain."),
        "fit": Entry("Tune", "tune:fit_command", "Learn a selector's weights."),
        "compare": Entry("Evaluate", "compare:compare_command", "Select, score and compare selectors."),
        "evaluate": Entry("Evaluate", "evaluate:evaluate_command", "Score selections against references."),
        "table": Entry("Evaluate", "reproduce:table", "Make tables from results."),
        "card": Entry("Evaluate", "card:card", "Print a results card or a reporting checklist."),
        "risk": Entry("Evaluate", "risk:risk", "Print the risk of what is kept when some abstain."),
        "controls": Entry("Evaluate", "evaluate:controls_command", "Change one thing at a time, and score."),
        "study": Entry("Evaluate", "study:study", "Run a reader study, and say what readers prefer."),
        "reproduce": Entry("Evaluate", "reproduce:reproduce_command", "Run the experiment of a folder."),
    }
)


class LazyGroup(click.Group):
    """Imports a command when it is run, so that `--help` waits for none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of the tasks."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].place.partition(":")
        found: click.Command = getattr(import_module(f"tabon.cli.{module}"), attribute)
        return found

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; what Python would print as a warning is a line for people."""
        with warnings_as_lines():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; of an unknown one say which was probably meant."""
        if not args[0].startswith("-") and args[0] not in COMMANDS and not ctx.resilient_parsing:
            close = closest(args[0], COMMANDS)
            hint = f" Did you mean {close!r}?" if close else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name; none is imported for it."""
        found = [
            CompletionItem(name, help=entry.help)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands of each task."""
        for task in dict.fromkeys(entry.task for entry in COMMANDS.values()):
            with formatter.section(task):
                formatter.write_dl(
                    [(f"{name:<9}", entry.help) for name, entry in COMMANDS.items() if entry.task == task]
                )


IMPORTED_BY_POT = (
    "PYTORCH",
    "JAX",
    "CUPY",
    "TENSORFLOW",
)  # where they are installed, and used for none of ours


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Write each warning of tabon's own once, as one line on standard error."""
    said: set[str] = set()
    with catch_warnings():
        simplefilter("always", NoPatientsWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:  # noqa: ANN401
            if not issubclass(category, NoPatientsWarning):
                usual(message, category, *place, **more)
            elif str(message) not in said:
                said.add(str(message))
                click.echo(f"note: {message}", err=True)

        warnings.showwarning = show
        yield


@click.group(cls=LazyGroup, epilog="Research use only. Not a medical device.")
@click.version_option(package_name="tabon")
def main() -> None:
    """Pick the best of N generated chest X-ray reports by its change from the prior report.

    Data goes to standard output, talk to standard error; `-` is a standard
    stream. Exit status: 0 done, 1 an error (in one sentence), 2 usage.
    """
    for library in IMPORTED_BY_POT:
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{library}", "1")
