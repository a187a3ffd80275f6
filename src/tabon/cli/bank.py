"""`tabon bank build|index|info|verify`."""

import json
from contextlib import closing
from pathlib import Path
from typing import IO

import click

from tabon.cli.help import Group
from tabon.cli.shared_options import (
    embedding_options,
    engine_option,
    name_of,
    open_store,
    out_option,
    progress_bar,
    reports_errors,
    takes,
)
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError
from tabon.integrations.engines import open_engine
from tabon.method.bank import TransitionBank, build_bank_file
from tabon.method.distances import DISTANCES
from tabon.reporting.cards.bank import bank_card
from tabon.search import StoredSearch, open_search
from tabon.text.records import read_transitions

bank_argument = click.argument("bank_path", metavar="BANK", type=click.Path(path_type=Path))

stored_search_option = click.option(
    "--search",
    help="An index made by `tabon bank index`, such as index:FOLDER, to look at too.",
)


@click.group(cls=Group)
def bank() -> None:
    """Build and look at transition banks."""


@bank.command(example="tabon bank build transitions.jsonl --out bank.tabon")
@click.argument("transitions", type=click.File("rb"))
@out_option("The bank file to write.")
@engine_option
@embedding_options
@reports_errors
@takes(store=open_store)
def build(
    transitions: IO[bytes], out: Path, engine: str, encoder: str | None, store: SentenceStore | None
) -> None:
    """Build a bank from TRANSITIONS (JSON Lines; `-` reads standard input).

    The file at --out appears whole or not at all.
    """
    if str(out) == "-" or (out.exists() and not out.is_file()):
        raise BadInputError(
            "a bank cannot go to standard output, a pipe or a device; give --out the name of a file"
        )
    with closing(open_engine(engine)) as where, progress_bar("embedding sentences") as progress:
        built = build_bank_file(
            read_transitions(transitions, name=name_of(transitions)),
            out,
            encoder=where.encoder(encoder or "minilm"),
            store=store,
            progress=progress,
        )
    click.echo(f"{out}: {len(built)} transitions, {len(built.table.sentences)} distinct sentences", err=True)


@bank.command(example="tabon bank index bank.tabon --search index:bank-index --distance novelty")
@bank_argument
@click.option(
    "--search",
    required=True,
    help="The engine to fill: index:FOLDER (with ?ivf=always or ?ivf=never), milvus://… or postgresql://….",
)
@click.option(
    "--distance",
    "distances",
    multiple=True,
    default=["novelty"],
    show_default=True,
    help=f"One of {', '.join(DISTANCES)}; may be repeated.",
)
@reports_errors
def index(bank_path: Path, search: str, distances: tuple[str, ...]) -> None:
    """Fill a search engine with the transitions of BANK."""
    engine = open_search(search)
    with progress_bar("indexing transitions") as progress:
        loaded = TransitionBank.load(bank_path)
        engine.prepare(loaded, distances, progress=progress)
    click.echo(f"{len(loaded)} transitions can be searched under {', '.join(distances)}", err=True)


@bank.command(example="tabon bank info bank.tabon")
@bank_argument
@stored_search_option
@click.option("--card", is_flag=True, help="Print a card in Markdown instead, for its author to complete.")
@reports_errors
def info(bank_path: Path, search: str | None, *, card: bool) -> None:
    """Print what a bank is made of, as JSON."""
    loaded = TransitionBank.load(bank_path)
    if card:
        click.echo(bank_card(loaded), nl=False)
        return
    stored = {} if search is None else {"search": stored_search(search).describe(loaded)}
    click.echo(json.dumps({**loaded.info(), **stored}, indent=2))


@bank.command(example="tabon bank verify bank.tabon")
@bank_argument
@stored_search_option
@reports_errors
def verify(bank_path: Path, search: str | None) -> None:
    """Check every byte of a bank, and that what is in it can be a bank."""
    loaded = TransitionBank.load(bank_path)
    loaded.check_provenance()
    found = [] if search is None else stored_search(search).verify(loaded)
    click.echo(f"{bank_path}: whole, {len(loaded)} transitions, sha256 {loaded.sha256}")
    for line in found:
        click.echo(line)


def stored_search(url: str) -> StoredSearch:
    """Return the engine that a URL names, if it keeps files that can be looked at."""
    engine = open_search(url)
    if not isinstance(engine, StoredSearch):
        raise BadInputError(f"{url.partition(':')[0]} keeps no files to look at; leave --search out")
    return engine
