"""docs/reference/cli.md, made from the commands' own help: `python tools/cli_reference.py`."""

from collections.abc import Iterator

import click

from tabon.cli.app import main

INTRODUCTION = (
    "# The command line\n\nMade by `make docs` from the commands' own `--help`; a test holds it fresh.\n"
)


def sections(command: click.Command, path: str) -> Iterator[str]:
    """Yield one section a command, groups before their members."""
    context = click.Context(command, info_name=path, terminal_width=100, max_content_width=100)
    yield f"## `{path}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            if member is not None:
                yield from sections(member, f"{path} {name}")


def reference() -> str:
    """Return the whole page."""
    return "\n".join([INTRODUCTION, *sections(main, "tabon")])


if __name__ == "__main__":
    click.echo(reference(), nl=False)
