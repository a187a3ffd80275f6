"""`tabon convert`: reports from and to FHIR and DICOM SR, picks to ReXrank's JSON."""

import json
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import click

from tabon._internal.atomic_files import replacing
from tabon.cli.help import Group
from tabon.cli.shared_options import OneOf, name_of, reports_errors
from tabon.data.formats import DISCLAIMER, MAX_FILE, Received, patient_of, read_any, write_fhir, write_sr
from tabon.data.formats.rexrank import Studies, parse_studies, study_record, submission
from tabon.errors import BadInputError
from tabon.evaluation.inputs import NOTHING, Case, check_picks, read_picks
from tabon.text.records import Query, query_from_record, read_query_lines, reference_of, whole_query
from tabon.text.reports import Report

TARGETS = ("fhir-r4", "fhir-r5", "dicom-sr")
WITHDRAWN = frozenset({"entered-in-error", "cancelled"})
UNFINISHED = frozenset({"registered", "partial", "preliminary", "PARTIAL UNVERIFIED"})
_DAY = 10  # characters of YYYY-MM-DD

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUT = click.Path(dir_okay=False, allow_dash=True, path_type=Path)


@click.group(cls=Group, epilog=DISCLAIMER)
def convert() -> None:
    """Read priors and drafts from FHIR or DICOM SR, and write a chosen draft back; write ReXrank's JSON."""


@convert.command(
    example="tabon convert query --id s1 --prior prior.json --drafts drafts.jsonl --out query.jsonl"
)
@click.option("--id", "identity", required=True, help="The query's id.")
@click.option("--prior", "priors", type=_FILE, multiple=True, required=True, help="FHIR JSON or DICOM SR.")
@click.option("--draft-file", "drafts", type=_FILE, multiple=True, help="A draft as FHIR JSON or DICOM SR.")
@click.option("--drafts", "lines", type=click.File("rb"), help="Drafts as JSON Lines: strings or objects.")
@click.option("--patient", help="Whose reports these are; without it the files must name one patient.")
@click.option("--out", type=_OUT, default="-", help="Write here instead, in one step.")
@reports_errors
def query(  # each is an option
    *,
    identity: str,
    priors: tuple[Path, ...],
    drafts: tuple[Path, ...],
    lines: IO[bytes] | None,
    patient: str | None,
    out: Path,
) -> None:
    """Make one line of queries for `tabon select`, with the newest prior last."""
    before = in_order([report for path in priors for report in read_any(_bytes(path), name=str(path))])
    given = [report for path in drafts for report in read_any(_bytes(path), name=str(path))]
    for received in before:
        if received.status in WITHDRAWN:
            raise BadInputError(f"the prior {received.id} is {received.status}; leave it out")
        if received.status in UNFINISHED:
            click.echo(f"the prior {received.id} is {received.status}: no one may have verified it", err=True)
    record: dict[str, Any] = {
        "id": identity,
        "prior": [received.report.sections() for received in before],
        "candidates": [
            *(received.report.sections() for received in given),
            *(value for _, value in _json_lines(lines or BytesIO())),
        ],
        "prior_sources": [{"id": received.id, "date": received.date} for received in before],
    }
    named = {report.patient for report in (*before, *given) if report.patient} if not patient else {patient}
    if len(named) > 1:
        raise BadInputError(
            f"the files name {len(named)} patients; give the files of one, or say --patient where one "
            "patient has several ids"
        )
    if named:
        record["patient"] = named.pop()
    query_from_record(record)  # what `tabon select` would refuse is refused here
    _write(json.dumps(record).encode() + b"\n", out)


@convert.command(
    example="tabon convert draft queries.jsonl chosen.jsonl --id s1 --about prior.json --to fhir-r5 "
    "--out draft.json"
)
@click.argument("queries", type=click.File("rb"))
@click.argument("selections", type=click.File("rb"))
@click.option("--id", "identity", required=True, help="The query whose chosen draft is written.")
@click.option(
    "--about",
    type=_FILE,
    required=True,
    help="Whom and what the draft is about: FHIR JSON, or any DICOM file of the study for dicom-sr.",
)
@click.option("--to", "target", type=OneOf(TARGETS), required=True, help="The format to write.")
@click.option("--uid-seed", "seed", help="A text that the new DICOM UIDs follow from.")
@click.option("--same-patient", is_flag=True, help="The query and --about name one patient differently.")
@click.option("--out", type=_OUT, required=True, help="Written in one step; `-` is standard output.")
@reports_errors
def draft(  # noqa: PLR0913  # each is an option
    *,
    queries: IO[bytes],
    selections: IO[bytes],
    identity: str,
    about: Path,
    target: str,
    seed: str | None,
    same_patient: bool,
    out: Path,
) -> None:
    """Write the draft that SELECTIONS chose of QUERIES, marked preliminary and unverified."""
    asked = find_query(queries, identity)
    index, signature = find_selection(selections, identity, len(asked.candidates))
    context, name = _bytes(about), str(about)
    patient = None if same_patient else patient_of(context, name=name)
    if None not in (asked.patient, patient) and asked.patient != patient:
        raise BadInputError(
            f"query {asked.id!r} and --about name different patients; give the right file, or say "
            "--same-patient where the two ids mean one"
        )
    chosen = asked.candidates[index]
    if target == "dicom-sr":
        data = write_sr(chosen, signature=signature, about=context, seed=seed, name=name)
    else:
        version: Any = target.rpartition("-")[2].upper()
        data = write_fhir(chosen, signature=signature, about=context, fhir_version=version, name=name)
    _write(data, out)


@convert.command(example="tabon convert rexrank queries.jsonl chosen.jsonl --out submission.json")
@click.argument("queries", type=click.File("rb"))
@click.argument("selections", type=click.File("rb"))
@click.option("--studies", type=_FILE, help="ReXrank's own file of these studies; its fields are kept.")
@click.option("--out", type=_OUT, default="-", help="Write here instead, in one step.")
@reports_errors
def rexrank(queries: IO[bytes], selections: IO[bytes], studies: Path | None, out: Path) -> None:
    """Write the drafts that SELECTIONS chose of QUERIES as a submission to ReXrank.

    One JSON object, study ids to `model_prediction` beside what ReXrank's programs
    read. Studies without a pick are left out and counted.
    """
    name = name_of(queries)
    asked = [whole_query(found, name=name) for found in read_query_lines(queries, name=name)]
    picks = read_picks(selections, name=name_of(selections))
    check_picks(picks, [Case(found, Report()) for found in asked], name=name_of(selections))
    index = {found.id: picks.chosen.get(found.id, NOTHING) for found in asked}
    chosen = {found.id: found.candidates[index[found.id]] for found in asked if index[found.id] != NOTHING}
    known: Studies = {found.id: study_record(reference_of(found)) for found in asked}
    if studies:
        known = parse_studies(studies.read_bytes(), name=str(studies))
    record = submission(chosen, known)
    if lacking := len(known) - len(record):
        click.echo(f"{lacking} of {len(known)} studies have no pick and are left out", err=True)
    _write(json.dumps(record, indent=4).encode() + b"\n", out)


def in_order(received: list[Received]) -> list[Received]:
    """Return reports with the newest last, where all of them have a date; else as they were given."""
    if all(report.date for report in received):
        return sorted(received, key=lambda report: (report.date or "")[:_DAY])
    return received


def find_query(stream: IO[bytes], identity: str) -> Query:
    """Return the query of this id."""
    name = name_of(stream)
    for found in read_query_lines(stream, name=name):
        if found.id == identity:
            return whole_query(found, name=name)
    raise BadInputError(f"{name} has no query {identity!r}; give the id of one")


def find_selection(stream: IO[bytes], identity: str, drafts: int) -> tuple[int, str]:
    """Return which draft was chosen for this id, and the selection's signature."""
    name = name_of(stream)
    for number, record in _json_lines(stream):
        if not isinstance(record, dict) or str(record.get("id")) != identity:
            continue
        index = record.get("selected")
        if index is None:
            raise BadInputError(
                f"{name} line {number}: no draft was chosen for {identity!r}; none is written"
            )
        if type(index) is not int or not 0 <= index < drafts:
            raise BadInputError(f"{name} line {number}: 'selected' is not one of the {drafts} drafts")
        return index, str(record.get("signature", ""))
    raise BadInputError(f"{name} has no selection for {identity!r}; run `tabon select` on its query")


def _json_lines(stream: IO[bytes]) -> Iterator[tuple[int, Any]]:
    """Yield the numbered values of a JSON Lines file."""
    for number, line in enumerate(stream, start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                raise BadInputError(f"{name_of(stream)} line {number} is not JSON; repair it") from None


def _bytes(path: Path) -> bytes:
    """Return a file's bytes, up to one more than may be read."""
    with path.open("rb") as file:
        return file.read(MAX_FILE + 1)


def _write(data: bytes, out: Path) -> None:
    """Write to standard output or, in one step, to a file."""
    if str(out) == "-":
        sys.stdout.buffer.write(data)
        return
    with replacing(out) as file:
        file.write(data)
