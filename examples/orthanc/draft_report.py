"""Choose a draft for a study of a DICOMweb archive, and store it there as an unverified document.

    study ─▶ the patient's newest report before it ─▶ tabon ─▶ DICOM SR ─▶ archive ─▶ shown
    QIDO     QIDO, WADO                                        STOW                  WADO

Research use only; not a medical device.
"""

import json
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import click
import pydicom
import requests
from archive import TIMEOUT, Archive, Study

from tabon._internal.atomic_files import replacing
from tabon.cli.shared_options import reports_errors
from tabon.data.formats import DISCLAIMER, read_sr, write_sr
from tabon.errors import BadInputError, TabonError
from tabon.method.bank import TransitionBank
from tabon.method.selection import ABSTENTIONS
from tabon.selectors import Selector
from tabon.text.records import query_from_record
from tabon.text.reports import Report

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class NothingChosenError(TabonError):
    """No draft is chosen, so nothing is stored."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which draft was chosen, and the signature of the choice."""

    index: int
    signature: str


@click.command(epilog=DISCLAIMER)
@click.option("--dicomweb", required=True, help="The archive, such as http://127.0.0.1:8042/dicom-web")
@click.option("--study", "uid", required=True, help="Study Instance UID of what the drafts are about.")
@click.option("--drafts", type=_FILE, required=True, help="JSON: a list, or a query with candidates.")
@click.option("--service", help="A running `tabon serve`, such as http://127.0.0.1:8765")
@click.option("--bank", type=click.Path(path_type=Path), help="Choose in this process, with this bank.")
@click.option("--login", type=_FILE, help="Holds USER:PASSWORD of the archive.")
@click.option("--token-file", type=_FILE, help="Holds the token of the service.")
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the query, the image and the stored document in this folder.",
)
@reports_errors
def draft_report(dicomweb: str, uid: str, drafts: Path, keep: Path | None, **options: Any) -> None:  # noqa: ANN401
    """Choose among drafts by the patient's newest earlier report, and store the choice in the archive.

    The document is marked as partial, unverified and preliminary, and shown as
    the archive gives it back. Where nothing is chosen nothing is stored.
    """
    if (options["service"] is None) == (options["bank"] is None):
        raise click.UsageError("give one of --service and --bank")
    click.echo(DISCLAIMER, err=True)
    candidates = read_drafts(drafts)
    archive = Archive(dicomweb, _login(options["login"]))
    study = archive.study(uid)
    record = query_record(study, prior_in(archive, study), candidates)
    chosen = query_from_record(record).candidates
    choice = choice_of(_selection(record, options), len(chosen))
    stored = _store(archive, study, chosen[choice.index], choice.signature)
    click.echo(f"draft {choice.index} of {len(chosen)}, counted from 0, is stored in study {uid}", err=True)
    _show(stored)
    if keep is not None:
        _keep(keep, record, stored, archive.fetch(study.header) if study.has_image else None)


def read_drafts(path: Path) -> list[Any]:
    """Return the drafts of a JSON file as they stand."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise BadInputError(f"{path} is not JSON; give a list of drafts") from None
    candidates = found.get("candidates") if isinstance(found, dict) else found
    if not isinstance(candidates, list) or not candidates:
        raise BadInputError(f"{path} has no drafts; give a list, or a query with candidates")
    return candidates


def prior_in(archive: Archive, study: Study) -> Report:
    """Return the patient's newest earlier report; without one there is nothing to compare drafts with."""
    prior = archive.prior_of(study)
    for reason in prior.left_out:
        click.echo(f"left out: {reason}", err=True)
    if prior.received is None:
        raise NothingChosenError(
            f"the archive has no finished report of this patient before study {study.uid}; "
            "nothing was chosen and nothing stored"
        )
    click.echo(f"the prior is {prior.received.id} of {prior.received.date}", err=True)
    return prior.received.report


def query_record(study: Study, prior: Report, candidates: list[Any]) -> dict[str, Any]:
    """Return one object of the queries contract."""
    return {
        "id": study.uid,
        "patient": study.patient,
        "prior": {"findings": prior.findings, "impression": prior.impression},
        "candidates": candidates,
    }


def choice_of(selection: Any, drafts: int) -> Choice:  # noqa: ANN401
    """Return what a selection record chose."""
    index, reason = (selection.get(key) for key in ("selected", "abstained"))
    if index is None and reason in ABSTENTIONS:
        raise NothingChosenError(f"nothing was chosen and nothing stored: {ABSTENTIONS[reason]}")
    if type(index) is not int or not 0 <= index < drafts:
        raise BadInputError("the service answered with what is not a selection; check --service")
    return Choice(index, str(selection.get("signature", "")))


def _selection(record: dict[str, Any], options: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the selection record, from a bank or from a running service."""
    if options["bank"] is not None:
        [selection] = Selector(TransitionBank.load(options["bank"])).select_many([query_from_record(record)])
        return selection.as_record(record["id"])
    token = options["token_file"]
    headers = {} if token is None else {"Authorization": f"Bearer {token.read_text().strip()}"}
    return _ask(f"{options['service'].rstrip('/')}/v1/select", record, headers)


def _ask(url: str, record: dict[str, Any], headers: dict[str, str]) -> Any:  # noqa: ANN401
    """Let a running service choose."""
    session = requests.Session()
    session.trust_env = False  # no proxy
    try:
        answer = session.post(url, json=record, headers=headers, timeout=2 * TIMEOUT, allow_redirects=False)
        found = answer.json()
    except requests.RequestException:
        raise BadInputError(
            "the service does not answer as `tabon serve` does; start it, or check --service"
        ) from None
    if answer.status_code == requests.codes.ok and isinstance(found, dict):
        return found
    error = found.get("error") if isinstance(found, dict) else None
    said = [error.get("message"), error.get("hint")] if isinstance(error, dict) else []
    reason = "; ".join(filter(None, said)) or "check --service"
    raise BadInputError(f"the service answered {answer.status_code}: {reason}")


def _store(archive: Archive, study: Study, draft: Report, signature: str) -> bytes:
    """Store a draft and return it as the archive gives it back; the same draft twice is one document."""
    written = write_sr(draft, signature=signature, about=study.as_file(), seed=study.uid, name="the study")
    archive.store(written)
    stored = archive.fetch(pydicom.dcmread(BytesIO(written)))
    read = [read_sr(data, name="the stored document") for data in (written, stored)]
    if read[0] != read[1]:
        raise BadInputError("the archive gives back another document than was stored; look at its log")
    return stored


def _show(data: bytes) -> None:
    """Print a stored document."""
    document = read_sr(data, name="the stored document")
    click.echo(f"{document.id} {document.status}\n\n{document.report.other}")
    for heading, text in (("Findings", document.report.findings), ("Impression", document.report.impression)):
        if text:
            click.echo(f"\n{heading}: {text}")


def _keep(folder: Path, record: dict[str, Any], stored: bytes, image: bytes | None) -> None:
    """Write what `tabon select`, `explain` and `report` need to show the choice again."""
    folder.mkdir(parents=True, exist_ok=True)
    query = record if image is None else {**record, "image": "image.dcm"}
    files = {"query.jsonl": json.dumps(query).encode() + b"\n", "image.dcm": image, "chosen.dcm": stored}
    for name, data in files.items():
        if data is not None:
            with replacing(folder / name) as file:
                file.write(data)


def _login(path: Path | None) -> tuple[str, str] | None:
    """Read the user and the password of the archive."""
    if path is None:
        return None
    user, colon, password = path.read_text().strip().partition(":")
    if not colon:
        raise BadInputError(f"{path} does not hold USER:PASSWORD; write them on one line")
    return user, password


if __name__ == "__main__":
    draft_report()
