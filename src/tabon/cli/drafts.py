"""`tabon drafts`."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import click

from tabon._internal.atomic_files import replacing
from tabon.cli.shared_options import reports_errors
from tabon.errors import BadInputError
from tabon.generation.journal import read_journal
from tabon.generation.queries import JoinCounts, queries_from
from tabon.generation.tasks import read_split


@click.command()
@click.argument("journal", type=click.Path(path_type=Path))
@click.option("--cohort", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--model", help="Of which model, where the journal has several.")
@click.option("--prompt", help="Under which prompt, where the journal has several.")
@click.option(
    "-n", "--samples", type=click.IntRange(min=1), default=5, show_default=True, help="Drafts a study (K)."
)
@click.option("--split", default="test", show_default=True, help="The split that was asked for.")
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The queries to write."
)
@reports_errors
def drafts(  # noqa: PLR0913  # each is an option
    *,
    journal: Path,
    cohort: Path,
    out: Path,
    model: str | None,
    prompt: str | None,
    samples: int,
    split: str,
) -> None:
    """Join a JOURNAL of drafts with its cohort into queries for `tabon select`."""
    chosen = choose(journal, model, prompt)
    by_study: dict[str, list[dict[str, Any]]] = {}
    for record in read_journal(journal):
        if (record["model"], record["prompt"]) == chosen:
            kept = {name: record[name] for name in ("model", "prompt", "sample", "outcome", "text")}
            by_study.setdefault(str(record["study"]), []).append(kept)
    counts = JoinCounts()
    with replacing(out) as file:
        for query in queries_from(
            read_split(cohort, split),
            lambda study: by_study.get(study, []),
            expected=samples,
            counts=counts,
            model=chosen[0],
            prompt=chosen[1],
        ):
            file.write(json.dumps(query).encode() + b"\n")
    click.echo(json.dumps(counts.record()))


def choose(journal: Path, model: str | None, prompt: str | None) -> tuple[str, str]:
    """Return the one configuration that is meant."""
    found = Counter((record["model"], record["prompt"]) for record in read_journal(journal))
    meant = [pair for pair in found if model in (None, pair[0]) and prompt in (None, pair[1])]
    if len(meant) != 1:
        shown = "; ".join(f"--model {name} --prompt {text}" for name, text in sorted(found)) or "nothing"
        raise BadInputError(f"{journal} holds {shown}; choose one of them")
    return meant[0]
