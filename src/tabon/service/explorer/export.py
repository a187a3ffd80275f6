"""Studies as JSON, and the explorer as one file: page, style, script and data, for any browser and no server.

Studies are counted from 0, and so are drafts.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tabon._internal.atomic_files import replacing
from tabon.errors import BadInputError
from tabon.explanation.evidence import evidence_lines
from tabon.explanation.flags import FLAG_KINDS
from tabon.explanation.text import flag_lines
from tabon.service.explorer.studies import Note, Studies, Study, StudyDraft, StudyLine
from tabon.service.page import Page, as_json, frame, joined, read_parts
from tabon.service.parsing import NOTICE
from tabon.service.report_records import Record, line_record, number, report_record

FOLDER: Final = "explorer/page"
SCRIPTS: Final = (  # joined in this order; the last one starts the page
    "words.js",
    "elements.js",
    "numbers.js",
    "state.js",
    "requests.js",
    "theme.js",
    "wording.js",
    "data.js",
    "list.js",
    "alignment.js",
    "comparison.js",
    "panels.js",
    "decision.js",
    "distances.js",
    "map.js",
    "study.js",
    "keys.js",
    "page.js",
)
STYLES: Final = ("frame.css", "wording.css", "explorer.css")
DATA_START: Final = '<script type="application/json" id="explorer-data">'


def overview_record(studies: Studies, lines: Sequence[StudyLine] | None = None) -> Record:
    """Return what the page shows of all studies; `lines` where they were made already."""
    bank, score = studies.bank, studies.settings.score
    shown = studies.lines if lines is None else lines
    return {
        "notice": NOTICE,
        "title": studies.settings.title,
        "signature": studies.signature,
        "bank": {"transitions": len(bank), "patients": len(bank.patients), "sha256": bank.sha256},
        "score": None if score is None or all(line.scores is None for line in shown) else score.name,
        "cited": studies.cited,
        "parts_add_up": studies.parts_add_up,
        "flag_kinds": list(FLAG_KINDS),
        "map": {
            section: {
                "bank": list(map(list, found.bank)),
                "explained": list(found.explained),
                "total": found.total,
            }
            for section, found in studies.maps.items()
        },
        "studies": [
            {
                **_head(line),
                "drafts": len(line.query.candidates),
                "flags": list(dict.fromkeys(flag.kind for flag in line.flags)),
                "has_image": line.has_image,
            }
            for line in shown
        ],
    }


def study_record(study: Study, image: str | None) -> Record:
    """Return one study; `image` is an address that the page may show."""
    line, query = study.line, study.line.query
    return {
        **_head(line),
        "prior": report_record(query.prior),
        "notes": list(flag_lines(line.selection.flags)),
        "older_priors": max(0, len(query.priors) - 1),
        "reference": None if study.reference is None else report_record(study.reference),
        "drafts": [_draft_record(draft) for draft in study.drafts],
        "map": {
            section: {
                "drafts": [point and list(point) for point in placed.drafts],
                "nearest": [point and list(point) for point in placed.nearest],
            }
            for section, placed in study.places.items()
        },
        "image": image,
    }


def _head(line: StudyLine) -> Record:
    """Return what the list and the study have in common."""
    selection = line.selection
    return {
        "number": line.number,
        "id": line.query.id,
        "patient": line.query.patient,
        "selected": selection.selected,
        "margin": number(selection.margin),
        "tied": selection.tied,
        "abstained": selection.abstained,
        "p": number(selection.p),
        "gain": number(line.gain),
    }


def _draft_record(draft: StudyDraft) -> Record:
    """Return one draft."""
    distances = draft.distances
    return {
        "number": draft.number,
        "rank": draft.rank,
        "total": None if distances is None else number(distances.total),
        "sections": {} if distances is None else _numbers(distances.sections),
        "lacks": [] if distances is None else list(distances.lacks),
        "parts": {} if distances is None else {name: _numbers(own) for name, own in distances.parts.items()},
        "verdict": draft.explanation.verdict,
        "against": draft.explanation.against,
        "decision": [
            {
                "section": one.section,
                "part": one.part,
                "adds": number(one.adds),
                "share": number(one.share),
            }
            for one in draft.explanation.decision
        ],
        "evidence": {
            name: list(evidence_lines(part.evidence, part.current))
            for name, part in draft.explanation.sections.items()
        },
        "report": report_record(draft.report),
        "score": number(draft.score),
        "flags": [asdict(flag) for flag in draft.flags],
        "alignment": {
            name: [
                {**line_record(pair, part.prior, part.current), "share": number(part.share_of(pair))}
                for pair in part.alignment
            ]
            for name, part in draft.explanation.sections.items()
        },
        "nearest": {
            name: [
                {
                    "id": one.id,
                    "distance": number(one.distance),
                    "prior_distance": number(one.prior_distance),
                    "prior": list(one.prior),
                    "current": list(one.current),
                }
                for one in found
            ]
            for name, found in draft.nearest.items()
        },
    }


def _numbers(values: Mapping[Any, float | None]) -> Record:
    """Round the numbers of a mapping."""
    return {str(name): number(value) for name, value in values.items()}


def read_page() -> Page:
    """Read the page's files and join its styles and its scripts."""
    [html] = read_parts(FOLDER, ["explorer.html"]).values()
    return Page(
        html, "".join(read_parts(FOLDER, STYLES).values()), joined(read_scripts().values()), "explorer"
    )


def read_scripts() -> dict[str, str]:
    """Read the files of the script, by name and in order."""
    return read_parts(FOLDER, SCRIPTS)


def write_report(
    studies: Studies,
    path: Path,
    *,
    page: Page | None = None,
    note: Note = lambda _: None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write the whole page in one step and return its bytes.

    Studies are worked out and written one batch after another. `note` is called for images that
    are left out, `on_progress` with the number of studies that are written.
    """
    with replacing(path) as file:
        for part in report_parts(studies, read_page() if page is None else page, note, on_progress):
            file.write(part.encode())
        return file.tell()


def report_parts(
    studies: Studies, page: Page, note: Note, on_progress: Callable[[int], None] = lambda _: None
) -> Iterator[str]:
    """Yield the page piece by piece; the data stand in one element, which is never run."""
    before, after = frame(page, studies.settings.title)
    yield before
    yield DATA_START + '{"studies":['
    lines: list[StudyLine] = []
    for study in studies.all():
        yield ("," if lines else "") + as_json(study_record(study, _data_url(studies, study, note)))
        lines.append(study.line.listed())
        on_progress(len(lines))
    yield '],"overview":' + as_json(overview_record(studies, lines)) + "}</script>\n"
    yield after


def _data_url(studies: Studies, study: Study, note: Note) -> str | None:
    """Return a study's image inside its own address; a broken one is left out and named."""
    images = studies.settings.images
    if images is None:
        return None
    try:
        image = images.read(study.line.query)
    except BadInputError as error:
        note(f"study {study.line.query.id!r}: {error}")
        return None
    return None if image is None else f"data:{image.media_type};base64,{b64encode(image.data).decode()}"
