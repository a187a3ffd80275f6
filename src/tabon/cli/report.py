"""`tabon report`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO

import click

from tabon.cli.select import method_options, selection_settings
from tabon.cli.shared_options import (
    bank_option,
    encoder_option,
    name_of,
    no_store_option,
    reports_errors,
    search_option,
    store_option,
    takes,
    tell,
)
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.selectors.setup import SelectionSettings
from tabon.service.explorer.export import write_report
from tabon.service.explorer.studies import (
    DEFAULT_SCORE,
    MOST_STUDIES,
    NEIGHBOURS,
    DraftScore,
    ExplorerSettings,
    Studies,
    check_count,
    explorer_of,
    open_folder,
    score_named,
)
from tabon.service.parsing import NOTICE
from tabon.text.records import Query, read_queries, whole_query

Note = Callable[[str], None]
PAGEFUL = 500  # studies on a page unless --limit says otherwise; some 16 kB each, and their images


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """What the options say of a page of studies."""

    title: str | None
    images: Path | None
    score: str
    no_bank_text: bool
    show: int = NEIGHBOURS

    def settings(self, queries: Iterable[Query], name: str, note: Note) -> ExplorerSettings:
        """Return how to show these queries of a file; `note` tells a person what is not shown."""
        return ExplorerSettings(
            title=Path(name).name if self.title is None else self.title,
            neighbours=self.show,
            bank_text=not self.no_bank_text,
            score=self._draft_score(queries, note),
            images=None if self.images is None else open_folder(self.images),
        )

    def _draft_score(self, queries: Iterable[Query], note: Note) -> DraftScore | None:
        """Return the score that was asked for; one that nobody named may be missing."""
        if self.score == "none" or all(query.reference is None for query in queries):
            return None
        try:
            return score_named(self.score)
        except BadInputError as error:
            source = click.get_current_context().get_parameter_source("score")
            if source != click.core.ParameterSource.DEFAULT:
                raise
            note(f"gain is not shown: {error}")
            return None


@click.command()
@click.argument("queries", type=click.File("rb"))
@bank_option
@click.option(
    "--html",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page here, in one step.",
)
@method_options
@click.option("--abstain", type=float, help="Choose nothing where the pick's p is at most this.")
@click.option(
    "--calibration",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Made by `tabon calibrate`.",
)
@click.option(
    "--score",
    default=DEFAULT_SCORE,
    show_default=True,
    help="What gain is measured in, where queries have a reference; none measures nothing.",
)
@click.option(
    "--images",
    type=click.Path(path_type=Path),
    help="The folder that the `image` of a query is relative to.",
)
@click.option("--title", help="Stands over the page. Default: the name of QUERIES.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_STUDIES),
    default=PAGEFUL,
    show_default=True,
    help="Studies on the page, the first ones of the file.",
)
@click.option(
    "--show",
    type=click.IntRange(min=0),
    default=NEIGHBOURS,
    show_default=True,
    help="Training changes to show of each draft, at most -k.",
)
@click.option("--no-bank-text", is_flag=True, help="Show ids of training changes, not their text.")
@search_option
@encoder_option
@store_option
@no_store_option
@reports_errors
@takes(settings=selection_settings, page=PageOptions)
def report(  # each is an option
    queries: IO[bytes],
    bank: Path,
    html: Path,
    limit: int,
    settings: SelectionSettings,
    page: PageOptions,
) -> None:
    """Write the studies of QUERIES, with their drafts and picks, as one page (`-` reads standard input).

    The page is one file that works without a network or a server. It holds
    report text, and images with --images: keep it as you keep the reports.
    """
    shown, more = first_queries(queries, limit)
    note = partial(click.echo, err=True)
    how = page.settings(shown, name_of(queries), note)
    studies = explorer_of(TransitionBank.load(bank), settings, shown, how)
    size = write_report(
        studies, html, note=note, on_progress=lambda count: tell(f"{count:,} of {len(studies):,} studies")
    )
    click.echo(f"wrote {html}: {len(studies):,} studies, {size / 1e6:.1f} MB. {NOTICE}", err=True)
    if more:
        click.echo(f"only the first {len(studies):,} studies are shown; --limit shows more", err=True)


def first_queries(lines: IO[bytes], most: int) -> tuple[list[Query], bool]:
    """Return the first queries of a file, and whether there are more; a bad line is an error."""
    found = [whole_query(query, name=name_of(lines)) for query in islice(read_queries(lines), most + 1)]
    check_count(len(found[:most]))
    return found[:most], len(found) > most


def open_studies(
    queries: IO[bytes], bank: TransitionBank, selection: SelectionSettings, page: PageOptions, note: Note
) -> Studies:
    """Return the studies of a whole file with every query answered: what `tabon serve --queries` shows."""
    shown, more = first_queries(queries, MOST_STUDIES)
    check_count(len(shown) + more)
    studies = explorer_of(bank, selection, shown, page.settings(shown, name_of(queries), note))
    note(f"the explorer shows {len(studies.lines):,} studies")
    return studies
