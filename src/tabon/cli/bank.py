"""`tabon bank build|info|verify`."""

import json
from pathlib import Path
from typing import Any

import click

from tabon.bank import TransitionBank
from tabon.cli.shared_options import (
    encoder_option,
    name_of,
    no_store_option,
    open_store,
    progress_bar,
    says_no,
    store_option,
)
from tabon.distances import DISTANCES
from tabon.errors import BadInputError
from tabon.records import read_transitions
from tabon.search import open_search

bank_argument = click.argument("bank_path", metavar="BANK", type=click.Path(path_type=Path))


@click.group()
def bank() -> None:
    """Build and look at transition banks."""


@bank.command()
@click.argument("transitions", type=click.File("rb"))
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The bank file to write."
)
@encoder_option
@store_option
@no_store_option
@says_no
def build(transitions: Any, out: Path, encoder: str | None, store: Path | None, no_store: bool) -> None:  # noqa: ANN401, FBT001
    """Build a bank from TRANSITIONS (JSON Lines; `-` reads standard input).

    The file at --out appears whole or not at all.
    """
    if str(out) == "-":
        raise BadInputError("a bank cannot go to standard output; give --out the name of a file")
    with progress_bar("embedding sentences") as progress:
        built = TransitionBank.build(
            read_transitions(transitions, name=name_of(transitions)),
            encoder=encoder or "minilm",
            store=open_store(store, no_store=no_store),
            progress=progress,
        )
    built.save(out)
    click.echo(f"{out}: {len(built)} transitions, {len(built.table.sentences)} distinct sentences", err=True)


@bank.command()
@bank_argument
@click.option("--search", required=True, help="The engine to fill, by URL; `tabon select --search` asks it.")
@click.option(
    "--distance",
    "distances",
    multiple=True,
    default=["novelty"],
    show_default=True,
    help=f"One of {', '.join(DISTANCES)}; may be given several times.",
)
@says_no
def index(bank_path: Path, search: str, distances: tuple[str, ...]) -> None:
    """Fill a search engine with the transitions of BANK."""
    engine = open_search(search)
    with progress_bar("indexing transitions") as progress:
        engine.prepare(TransitionBank.load(bank_path), distances, progress=progress)


@bank.command()
@bank_argument
@says_no
def info(bank_path: Path) -> None:
    """Print what a bank is made of, as JSON."""
    click.echo(json.dumps(bank_info(TransitionBank.load(bank_path)), indent=2))


@bank.command()
@bank_argument
@says_no
def verify(bank_path: Path) -> None:
    """Check every byte of a bank."""
    loaded = TransitionBank.load(bank_path)
    click.echo(f"{bank_path}: whole, {len(loaded)} transitions, sha256 {loaded.sha256}")


def bank_info(loaded: TransitionBank) -> dict[str, Any]:
    """Return a bank's counts, fingerprint and shares of zero transitions."""
    return {
        "transitions": len(loaded),
        "patients": len(loaded.patients),
        "distinct_sentences": len(loaded.table.sentences),
        "section_transitions": {section: len(pairs.present()) for section, pairs in loaded.pairs.items()},
        "zero_shares": loaded.zero_shares,
        "fingerprint": loaded.fingerprint,
        "sha256": loaded.sha256,
    }
