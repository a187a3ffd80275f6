"""What `--help` shows: whole summaries, options under headings, an example for each command."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import click

UNCUT = 1_000  # characters of a summary
MANY = 10  # options; a command with more shows them under headings
# An option name means one thing in all commands, so it has one heading; what is in none comes first.
HEADINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "How files are read": (
            "--columns", "--draft-columns", "--day-first", "--month-first", "--encoding", "--shares",
            "--sections", "--priors",
        ),
        "The method": (
            "--selector", "--condition", "--distance", "--aggregate", "--neighbours", "--zero", "--history",
            "--abstain", "--calibration", "--allow-bank-patients",
        ),
        "Readers and cases": (
            "--readers", "--design", "--cases", "--repeat", "--show-reference", "--question", "--tokens",
        ),
        "Drafts and the model that writes them": (
            "--model", "--prompt", "--num-drafts", "--split", "--temperature", "--top-p",
            "--max-tokens", "--base-url", "--command", "--upstream", "--upstream-key-file", "--pass-key",
            "--allow-plain-upstream", "--upstream-max-drafts", "--upstream-timeout", "--prune",
            "--prune-points",
        ),
        "Scores and tests": (
            "--metrics", "--metric-files", "--scores", "--headline", "--resamples",
            "--random-seeds", "--shuffles", "--other-encoder",
        ),
        "What is shown": (
            "--score", "--show", "--id", "--draft", "--queries", "--study", "--title", "--limit", "--changes",
            "--no-bank-text", "--html", "--format", "--no-notes", "--figures", "--json",
        ),
        "Address and access": ("--host", "--port", "--token-file", "--allow-host", "--log-format"),
        "Limits and cost": (
            "--price", "--cap", "--rate", "--concurrency", "--batch", "--timeout", "--max-body",
            "--max-drafts", "--queue", "--batch-size", "--cache",
        ),
        "Where it runs, and what is kept": (
            "--engine", "--search", "--encoder", "--store", "--no-store", "--measurements",
            "--no-measurements",
        ),
    }
)  # fmt: skip
HEADING_OF = {name: heading for heading, names in HEADINGS.items() for name in names}


class Command(click.Command):
    """A command whose help ends with an example, its options under headings if there are many."""

    def __init__(self, *args: Any, example: str, **settings: Any) -> None:  # noqa: ANN401  # those of click
        """Keep the example: a command line that works on files of these names."""
        super().__init__(*args, **settings)
        self.example = example

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of a command line; if one is wrong, close what those before it opened."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError:
            ctx.close()
            raise

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, then the example on a line of its own."""
        super().format_help_text(ctx, formatter)
        with formatter.section("Example"):
            formatter.write(f"{'':>{formatter.current_indent}}{self.example}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options; under headings where they are many."""
        found: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Options", *HEADINGS)}
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        for option in options:
            heading = HEADING_OF.get(long_name(option), "Options") if len(options) > MANY else "Options"
            record = option.get_help_record(ctx)
            found[heading] += [] if record is None else [record]
        for heading, records in found.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class Group(click.Group):
    """A group whose list of commands cuts no summary."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands; no summary is cut."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, member.get_short_help_str(limit=UNCUT)) for name, member in self.commands.items()]
            )


def long_name(option: click.Option) -> str:
    """Return the name that an option is known by.

    >>> long_name(click.Option(["-k", "--neighbours"]))
    '--neighbours'
    """
    return max(option.opts, key=len)
