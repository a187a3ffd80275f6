"""`tabon explain`, `tabon flags` and `tabon report`: what a reader looks at."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO

import click

from tabon.cli.evaluate import read_named_picks
from tabon.cli.help import Command
from tabon.cli.select import method_options, takes_selection
from tabon.cli.shared_options import (
    FILE,
    SELECTOR,
    abstain_option,
    bank_option,
    calibration_option,
    embedding_options,
    images_option,
    json_option,
    name_of,
    no_bank_text_option,
    reports_errors,
    search_option,
    show_progress,
)
from tabon.errors import BadInputError
from tabon.evaluation.inputs import NOTHING
from tabon.explanation.explanation import NEIGHBOURS, explain_many
from tabon.explanation.flags import query_flags
from tabon.explanation.text import explanations_text
from tabon.method.bank import TransitionBank
from tabon.selectors.setup import SelectionSettings, make_selector
from tabon.service.explorer.export import write_report
from tabon.service.explorer.films import open_folder
from tabon.service.explorer.scores import DEFAULT_SCORE, score_named
from tabon.service.explorer.studies import MOST_STUDIES, ExplorerSettings, Studies, check_count, explorer_of
from tabon.service.explorer.studies import NEIGHBOURS as NEIGHBOURS_ON_A_PAGE
from tabon.service.parsing import NOTICE
from tabon.text.records import BadLine, Query, read_query_lines, whole_query

page_score_option = click.option(
    "--score",
    default=DEFAULT_SCORE,
    show_default=True,
    help="What a page measures gain in, where queries have a reference; none measures nothing.",
)
beside_option = click.option(
    "--beside",
    type=SELECTOR,
    metavar="SELECTOR",
    help="Show what a second selector picks too, and where the two differ.",
)
title_option = click.option("--title", help="Stands over the page. Default: the name of the queries' file.")
ON_A_TERMINAL, ON_A_PAGE = 5, 100  # queries that are explained if none is named


@click.command(cls=Command, example="tabon explain queries.jsonl --bank bank.tabon --selector fused")
@click.argument("queries", type=click.File("rb"))
@bank_option
@click.option("--id", "ids", multiple=True, help="Explain the query of this id; may be repeated.")
@click.option("--draft", type=int, help="Explain this draft, numbered from 0, instead of the chosen one.")
@method_options
@click.option(
    "--changes",
    "show",
    type=click.IntRange(min=0),
    default=NEIGHBOURS,
    show_default=True,
    help="Training changes to show of each draft, at most -k.",
)
@no_bank_text_option
@click.option("--html", type=FILE, help="Write the page here, in one step.")
@json_option
@embedding_options
@reports_errors
@takes_selection()
def explain(  # noqa: PLR0913  # each is an option
    *,
    queries: IO[bytes],
    bank: Path,
    ids: tuple[str, ...],
    html: Path | None,
    draft: int | None,
    show: int,
    settings: SelectionSettings,
    as_json: bool,
    no_bank_text: bool,
) -> None:
    """Say why a draft was chosen, for each query of QUERIES (JSON Lines; `-` reads standard input).

    Shows the draft's sentences beside the prior's (= same, ~ reworded, + new,
    - dropped), the share of each in the change that was compared, the nearest
    changes in the bank as text, and the distances of all drafts. Prints text,
    which holds report text, to standard output.
    """
    found = _asked_for(list(read_query_lines(queries, name=name_of(queries))), ids, name_of(queries))
    shown = found if ids or (as_json and html is None) else found[: ON_A_PAGE if html else ON_A_TERMINAL]
    loaded = TransitionBank.load(bank)
    if html is not None:
        if draft is not None and not as_json:
            raise BadInputError("--draft does not count beside --html, which shows every draft; leave it out")
        how = ExplorerSettings(title="Why this draft", neighbours=show, bank_text=not no_bank_text)
        write_report(explorer_of(loaded, settings, shown, how), html)
        click.echo(f"wrote {html}", err=True)
    if as_json or html is None:
        selector = make_selector(loaded, settings)
        explained = explain_many(selector, shown, draft=draft, neighbours=show, bank_text=not no_bank_text)
        if as_json:
            for one in explained:
                click.echo(json.dumps(one.as_record()))
        else:
            click.echo(explanations_text(explained))
    if len(shown) < len(found):
        click.echo(f"{len(shown)} of {len(found):,} queries are explained; name others with --id", err=True)


def _asked_for(found: Sequence[Query | BadLine], ids: tuple[str, ...], name: str) -> list[Query]:
    """Return the queries that were asked for, all if none is named; a bad line among them is an error."""
    if not found:
        raise BadInputError("the file holds no queries; write one JSON object a line")
    wanted = [whole_query(line, name=name) for line in found if not ids or line.id in ids]
    known = {query.id for query in wanted}
    for identity in ids:
        if identity not in known:
            raise BadInputError(f"{name} has no query {identity!r}; check --id")
    return wanted


@click.command("flags", cls=Command, example="tabon flags queries.jsonl --selections chosen.jsonl")
@click.argument("queries", type=click.File("rb"))
@click.option(
    "--selections",
    help="Look at the chosen drafts alone: what `tabon select` printed for QUERIES.",
)
@reports_errors
def flags_command(queries: IO[bytes], selections: str | None) -> None:
    """Print what a reader should look at in each draft of QUERIES.

    One JSON object a draft that has flags: dropped or denied findings, findings
    that few drafts support, change words that contradict the prior, sides that
    flip, copied priors, empty or chatty drafts; each with the sentences
    concerned, counted from 0. No report text is printed.
    """
    picks = None if selections is None else read_named_picks(selections)
    chosen = None if picks is None else picks.chosen
    count = answered = 0
    name = name_of(queries)
    for line in read_query_lines(queries, name=name):
        query = whole_query(line, name=name)
        count += 1
        answered += chosen is not None and query.id in chosen
        only = None if chosen is None else chosen.get(query.id, NOTHING)
        for draft in range(len(query.candidates)):
            if only in (None, draft) and (flags := query_flags(query, draft)):
                record = {"id": query.id, "draft": draft, "flags": [asdict(flag) for flag in flags]}
                click.echo(json.dumps(record))
    if count == 0:
        raise BadInputError(f"{name} holds no queries; write one JSON object a line")
    if chosen is not None and answered == 0:
        raise BadInputError(f"{selections} answers none of the queries; give the selections made for them")


Note = Callable[[str], None]
STUDIES_ON_A_PAGE = 500  # studies on a page unless --limit says otherwise; some 16 kB each, and their images


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """What the options say of a page of studies."""

    title: str | None
    images: Path | None
    score: str
    no_bank_text: bool
    beside: str | None = None
    show: int = NEIGHBOURS_ON_A_PAGE

    def settings(self, queries: Iterable[Query], name: str, note: Note) -> ExplorerSettings:
        """Return how to show these queries of a file; `note` gets a line on what is not shown."""
        score = None
        if self.score != "none" and any(query.reference is not None for query in queries):
            try:
                score = score_named(self.score)
            except BadInputError as error:  # only a score that nobody named may be missing
                source = click.get_current_context().get_parameter_source("score")
                if source != click.core.ParameterSource.DEFAULT:
                    raise
                note(f"gain is not shown: {error}")
        return ExplorerSettings(
            title=Path(name).name if self.title is None else self.title,
            neighbours=self.show,
            bank_text=not self.no_bank_text,
            score=score,
            images=None if self.images is None else open_folder(self.images),
        )


@click.command(
    cls=Command, example="tabon report queries.jsonl --bank bank.tabon --selector fused --html studies.html"
)
@click.argument("queries", type=click.File("rb"))
@bank_option
@click.option("--html", required=True, type=FILE, help="Write the page here, in one step.")
@method_options
@abstain_option
@calibration_option
@page_score_option
@beside_option
@images_option
@title_option
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_STUDIES),
    default=STUDIES_ON_A_PAGE,
    show_default=True,
    help="Studies on the page, the first ones of the file.",
)
@click.option(
    "--changes",
    "show",
    type=click.IntRange(min=0),
    default=NEIGHBOURS_ON_A_PAGE,
    show_default=True,
    help="Training changes to show of each draft, at most -k.",
)
@no_bank_text_option
@search_option
@embedding_options
@reports_errors
@takes_selection(page=PageOptions)
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
    studies = explorer_of(TransitionBank.load(bank), settings, shown, how, beside=page.beside)
    size = write_report(
        studies,
        html,
        note=note,
        on_progress=lambda count: show_progress(f"{count:,} of {len(studies):,} studies"),
    )
    click.echo(f"wrote {html}: {len(studies):,} studies, {size / 1e6:.1f} MB. {NOTICE}", err=True)
    if more:
        click.echo(f"only the first {len(studies):,} studies are shown; --limit shows more", err=True)


def first_queries(lines: IO[bytes], most: int) -> tuple[list[Query], bool]:
    """Return the first queries of a file, and whether there are more; a bad line is an error."""
    name = name_of(lines)
    found = [whole_query(query, name=name) for query in islice(read_query_lines(lines, name=name), most + 1)]
    check_count(len(found[:most]))
    return found[:most], len(found) > most


def open_studies(
    queries: IO[bytes], bank: TransitionBank, selection: SelectionSettings, page: PageOptions, note: Note
) -> Studies:
    """Return the studies of a whole file with every query answered: what `tabon serve --queries` shows."""
    shown, more = first_queries(queries, MOST_STUDIES)
    check_count(len(shown) + more)
    how = page.settings(shown, name_of(queries), note)
    studies = explorer_of(bank, selection, shown, how, beside=page.beside)
    note(f"the explorer shows {studies.prepare():,} studies")
    return studies
