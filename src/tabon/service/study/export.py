"""A reader's study as one file: page, style, script and cases, for a browser without a network.

Its answers stay in the browser until the reader saves them as a file, which `tabon study collect` reads.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from mimetypes import guess_type
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from tabon._internal.atomic_files import replacing
from tabon._internal.typed_values import MisfitError, fitting, read_typed
from tabon.errors import BadInputError
from tabon.service.page import Page, as_json, frame, joined, read_parts
from tabon.service.parsing import NOTICE
from tabon.study.design import ERROR_KINDS, Answer, ReaderFile, Study, check_answer
from tabon.study.folder import IMAGES
from tabon.text.reports import Report

ANSWERS_FORMAT: Final = "tabon-study-answers/1"
FOLDER: Final = "study/page"
SCRIPTS: Final = (  # joined in this order; the last one starts the page
    "words.js",
    "elements.js",
    "store.js",
    "theme.js",
    "data.js",
    "sending.js",
    "form.js",
    "case.js",
    "keys.js",
    "page.js",
)
STYLES: Final = ("frame.css", "study.css")
DATA: Final = '<script type="application/json" id="study-data">'


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersFile:
    """What the page without a network hands out."""

    study: str
    reader: str
    answers: str  # JSON
    crc: int


def read_page() -> Page:
    """Read the page's files and join its styles and its scripts."""
    [html] = read_parts(FOLDER, ["study.html"]).values()
    return Page(html, "".join(read_parts(FOLDER, STYLES).values()), joined(read_scripts().values()), "study")


def read_scripts() -> dict[str, str]:
    """Read the files of the script, by name and in order."""
    return read_parts(FOLDER, SCRIPTS)


def study_record(study: Study, shown: ReaderFile) -> dict[str, Any]:
    """Return what the page shows to one reader; of an image only whether there is one."""
    return {
        "notice": NOTICE,
        "study": study.study,
        "title": study.title,
        "design": study.design,
        "question": study.question,
        "kinds": dict(ERROR_KINDS),
        "reader": shown.reader,
        "readings": [
            {
                "id": reading.id,
                "priors": [_report(report) for report in reading.priors],
                "drafts": [_report(report) for report in reading.drafts],
                "reference": None if reading.reference is None else _report(reading.reference),
                "image": reading.image is not None,
            }
            for reading in shown.readings
        ],
    }


def _report(report: Report) -> dict[str, str]:
    """Return a report as the page shows it."""
    return asdict(report)


def write_export(study: Study, shown: ReaderFile, folder: Path, path: Path) -> int:
    """Write the page with all that one reader is shown, in one step, and return its bytes."""
    record = {**study_record(study, shown), "offline": True}
    for reading, one in zip(record["readings"], shown.readings, strict=True):
        reading["image"] = None if one.image is None else data_address(image_path(folder, one.image))
    before, after = frame(read_page(), study.title)
    with replacing(path) as file:
        file.write(f"{before}{DATA}{as_json(record)}</script>\n{after}".encode())
        return file.tell()


def image_path(folder: Path, name: str) -> Path:
    """Return the file of an image; a name that leads elsewhere is refused."""
    if Path(name).name != name:
        raise BadInputError(f"{folder} names an image outside of it; restore the folder from a copy")
    return folder / IMAGES / name


def data_address(path: Path) -> str:
    """Return an image inside its own address."""
    return f"data:{guess_type(path.name)[0]};base64,{b64encode(path.read_bytes()).decode()}"


def read_collected(path: Path, study: Study, shown: Mapping[str, ReaderFile]) -> tuple[str, list[Answer]]:
    """Read the file that the page handed out; return its reader and all answers, oldest first.

    It must be whole, of this study and of one of its readers.
    """
    hint = "ask the reader to save it again"
    found = read_typed(AnswersFile, path, form=ANSWERS_FORMAT, what="file of answers", hint=hint)
    if found.study != study.study:
        raise BadInputError(f"{path} holds the answers of another study; give the folder of that one")
    name = study.reader(found.reader).name
    if found.crc != crc32(f"{found.study} {found.reader} {found.answers}".encode()):
        raise BadInputError(f"{path} was damaged on its way; {hint}")
    readings = {reading.id: reading for reading in shown[name].readings}
    try:
        answers: tuple[Answer, ...] = fitting(tuple[Answer, ...], json.loads(found.answers))
        for answer in answers:
            check_answer(answer, study.design, readings[answer.reading])
    except (BadInputError, KeyError, MisfitError, ValueError, RecursionError):
        raise BadInputError(f"{path} holds something else than answers to these cases; {hint}") from None
    return name, list(answers)
