"""`tabon study`: make a reader study, take its answers in, and say what it found."""

import secrets
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import IO, cast

import click

from tabon._internal.atomic_files import replacing
from tabon.cli.evaluate import read_named_picks
from tabon.cli.help import Group
from tabon.cli.shared_options import (
    FILE,
    FOLDER,
    NAMES,
    OneOf,
    images_option,
    json_option,
    name_of,
    reports_errors,
    takes,
)
from tabon.cli.tables import TableForm, figure_forms, figures_option, table_options
from tabon.errors import BadInputError
from tabon.evaluation.inputs import Case, check_picks
from tabon.generation.images import encode_image
from tabon.reporting.study import write_study_report
from tabon.reporting.study_tables import study_tables
from tabon.service import NOTICE
from tabon.service.explorer.films import MAX_SIDE, open_folder
from tabon.service.study.export import read_collected, write_export
from tabon.study.answers import AnswerJournal, read_answers
from tabon.study.comparison import Resampling
from tabon.study.design import DESIGNS, Design, StudyPlan
from tabon.study.folder import make_study, new_token, read_key, read_reader, read_study
from tabon.study.results import study_results
from tabon.text.records import Query, read_query_lines, whole_query
from tabon.text.reports import Report

SEEDS = 10**15  # as many as a study's seed may be
selections_option = click.option(
    "--selections",
    multiple=True,
    help="[NAME=]FILE, what `tabon select` printed for QUERIES; may be given many times.",
)
folder_argument = click.argument("folder", metavar="FOLDER", type=FOLDER)
reader_option = click.option("--reader", required=True, help="One of the study's readers.")


@click.group(cls=Group)
def study() -> None:
    """Run a reader study: blinded cases, answers that are never lost, agreement and preference."""


def _share(repeat: str) -> float:
    """Read a share: 10% or 0.1."""
    try:
        return float(repeat.removesuffix("%")) / (100 if repeat.endswith("%") else 1)
    except ValueError:
        raise BadInputError(f"--repeat {repeat!r} is no share; write one like 10% or 0.1") from None


def _plan(  # noqa: PLR0913  # each is an option
    *,
    design: str,
    readers: tuple[str, ...],
    cases: int,
    repeat: str,
    seed: int | None,
    show_reference: bool,
    title: str | None,
    question: str,
) -> StudyPlan:
    """Return what is asked for; a seed that is not given is drawn, so that nobody can work the key out."""
    return StudyPlan(
        design=cast("Design", design),  # one of them, as the option says
        readers=readers,
        cases=cases,
        repeat=_share(repeat),
        seed=secrets.randbelow(SEEDS) if seed is None else seed,
        reference=show_reference,
        title=title or "Reader study",
        question=question,
    )


@study.command(
    example="tabon study init queries.jsonl --readers a,b --design rating --cases 3 --out study",
)
@click.argument("queries", type=click.File("rb"))
@selections_option
@click.option("--readers", type=NAMES, required=True, help="Names of the readers: a,b,c.")
@click.option(
    "--design",
    type=OneOf(DESIGNS),
    default="pairwise",
    show_default=True,
    help="Two picks side by side, one draft to rate from 1 to 5, or several drafts to rank.",
)
@click.option("--cases", type=int, required=True, help="Queries that every reader sees.")
@click.option("--repeat", default="10%", show_default=True, help="Share of them that is shown twice.")
@click.option(
    "--seed", type=int, help="Draws cases, orders and sides.  [default: drawn, and kept in the key]"
)
@click.option("--show-reference", is_flag=True, help="Show what the radiologist wrote, too.")
@images_option
@click.option("--title", help="Stands over the page. Default: Reader study.")
@click.option("--question", default="", help="What readers are asked.  [default: by design]")
@click.option("--tokens", type=FILE, help="Write the tokens here, for you alone, instead of printing them.")
@click.option("--out", required=True, type=FOLDER, help="The folder of the study, which is new.")
@reports_errors
@takes(plan=_plan)
def init(
    queries: IO[bytes],
    selections: tuple[str, ...],
    images: Path | None,
    tokens: Path | None,
    out: Path,
    plan: StudyPlan,
) -> None:
    """Draw a reader study from QUERIES: who sees which case, and where on the screen.

    Readers see neither the selector nor the distance nor which draft it is; what
    leads back stands in FOLDER/key.json, which the service never opens. Each
    reader has a token, printed once: `tabon serve --study FOLDER` asks for it.
    """
    lines = queries.readlines()
    name = name_of(queries)
    found = [whole_query(query, name=name) for query in read_query_lines(lines, name=name)]
    if not found:
        raise BadInputError(f"{name} holds no queries; write one JSON object a line")
    picks = tuple(read_named_picks(text) for text in selections)
    for one, text in zip(picks, selections, strict=True):
        check_picks(one, [Case(query, Report()) for query in found], name=text)
    if len({one.method for one in picks}) < len(picks):
        raise BadInputError("two --selections have one name; write --selections NAME=FILE")
    if tokens is not None and tokens.exists():
        raise BadInputError(f"{tokens} is there already; give --tokens the name of a new file")
    shown = None if images is None else open_folder(images)

    def image_of(query: Query) -> tuple[str, bytes] | None:
        path = None if shown is None else shown.path_of(query)
        image = None if path is None else encode_image(path, max_side=MAX_SIDE)
        return None if image is None else (image.media_type.partition("/")[2], image.data)

    raw = (line.rstrip(b"\r\n") + b"\n" for line in lines if line.strip())
    by_id = {query.id: line for query, line in zip(found, raw, strict=True)}
    made, given = make_study(out, found, picks, plan, lines=by_id, image_of=image_of)
    text = "".join(f"{reader}\t{token}\n" for reader, token in given.items())
    if tokens is None:
        click.echo(text, nl=False)
    else:
        with replacing(tokens) as file:
            file.write(text.encode())
    click.echo(
        f"wrote {out}: {made.cases} cases, {made.readers[0].readings} readings for each reader", err=True
    )


@study.command(example="tabon study results study --out found")
@folder_argument
@click.option("--out", type=FOLDER, help="Write numbers, tables, figures, scores of drafts and a page here.")
@json_option
@click.option(
    "--resamples",
    type=click.IntRange(min=100),
    default=2_000,
    show_default=True,
    help="Of cases and readers.",
)
@click.option("--seed", default=0, show_default=True, help="Draws the resamples.")
@figures_option
@table_options
@reports_errors
@takes(chance=Resampling, form=TableForm, figures=figure_forms)
def results(
    folder: Path,
    out: Path | None,
    chance: Resampling,
    form: TableForm,
    figures: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    """Say what the answers in FOLDER say: agreement, preference, ratings, errors, time.

    Works while readers are at it, too: what is there counts. OUT/scores.jsonl
    is for `tabon evaluate FOLDER/queries.jsonl --scores`, where drafts were
    rated or ranked. Comments are written to OUT alone.
    """
    if out is None and figures:
        raise BadInputError("--figures does not count without --out; give it too, or leave this out")
    known = read_study(folder)
    found = study_results(known, read_key(folder, known), read_answers(folder, known), chance)
    if not any(reader.answered for reader in found.readers):
        raise BadInputError(f"{folder} holds no answers yet; readers give them by `tabon serve --study`")
    if out is not None:
        written = write_study_report(found, out, notes=not form.no_notes, figures=figures)
        click.echo(f"wrote {len(written)} files, {out / 'report.html'}", err=True)
    if as_json:
        click.echo(found.as_json(), nl=False)
        return
    for table in study_tables(found):
        form.show(table)


@study.command(example="tabon study export study --reader a --html reader-a.html")
@folder_argument
@reader_option
@click.option("--html", required=True, type=FILE, help="Write the page here, in one step.")
@reports_errors
def export(folder: Path, reader: str, html: Path) -> None:
    """Write what one reader is shown as one page that works without a network.

    The reader saves the answers as a file, which `tabon study collect` takes in.
    The page holds report text, and images: keep it as you keep the reports.
    """
    known = read_study(folder)
    size = write_export(known, read_reader(folder, known, reader), folder, html)
    click.echo(
        f"wrote {html}: {known.reader(reader).readings} readings, {size / 1e6:.1f} MB. {NOTICE}", err=True
    )


@study.command(example="tabon study collect study answers.json")
@folder_argument
@click.argument("answers", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--replace", "over", is_flag=True, help="Let the file's answers count where others are newer.")
@reports_errors
def collect(folder: Path, answers: Path, *, over: bool) -> None:
    """Take the ANSWERS that a reader saved in the page without a network into the journal.

    The file is checked whole first. Taken in twice, nothing is there twice.
    """
    known = read_study(folder)
    shown = {reader.name: read_reader(folder, known, reader.name) for reader in known.readers}
    reader, found = read_collected(answers, known, shown)
    with closing(AnswerJournal(folder, known)) as journal:
        outcomes = Counter(journal.keep_all(reader, found, over=over))
    if lost := outcomes["superseded"]:
        raise BadInputError(
            f"{lost} of the answers in {answers} are to cases that {reader} answered otherwise later; ask "
            "which ones hold, and give --replace for those of the file"
        )
    click.echo(
        f"{reader}: {outcomes['kept']} answers taken in, {outcomes['known']} were here already", err=True
    )


@study.command(example="tabon study token study --reader a")
@folder_argument
@reader_option
@reports_errors
def token(folder: Path, reader: str) -> None:
    """Print another token for a reader who lost the first, which counts no more.

    A service that runs takes it when it is started again.
    """
    click.echo(new_token(folder, reader))
