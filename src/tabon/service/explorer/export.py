"""Studies as JSON, and the explorer as one file: page, style, script and data, for any browser and no server.

Studies are counted from 0, and so are drafts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tabon._internal.atomic_files import replacing
from tabon.explanation.evidence import evidence_lines
from tabon.explanation.flags import FLAG_KINDS
from tabon.explanation.text import flag_lines
from tabon.method.selection import Selection
from tabon.service.explorer.films import ImageFolder
from tabon.service.explorer.references import SectionAlignments, Sentences
from tabon.service.explorer.studies import Note, Studies, Study, StudyDraft, StudyLine
from tabon.service.page import Page, as_json, frame, joined, read_parts
from tabon.service.parsing import NOTICE
from tabon.service.report_records import Record, line_record, number, report_record
from tabon.text.records import Query

FOLDER: Final = "explorer/page"
SCRIPTS: Final = (  # joined in this order; the last one starts the page
    "words.js",
    "elements.js",
    "svg.js",
    "numbers.js",
    "state.js",
    "requests.js",
    "theme.js",
    "wording.js",
    "terms.js",
    "films.js",
    "data.js",
    "filters.js",
    "rows.js",
    "histogram.js",
    "selectors.js",
    "list.js",
    "alignment.js",
    "comparison.js",
    "reference.js",
    "panels.js",
    "decision.js",
    "distances.js",
    "map.js",
    "study.js",
    "keys.js",
    "page.js",
)
STYLES: Final = ("frame.css", "wording.css", "terms.css", "films.css", "explorer.css")
LONGEST_PREVIEW: Final = 240  # characters of a pick that the list shows


def overview_record(studies: Studies) -> Record:
    """Return what the page shows of all studies."""
    bank, score, beside = studies.bank, studies.settings.score, studies.beside
    return {
        "notice": NOTICE,
        "title": studies.settings.title,
        "signature": studies.signature,
        "selector": studies.selector_name,
        "beside": None if beside is None else {"selector": beside.scorer.name, "signature": beside.signature},
        "bank": {"transitions": len(bank), "patients": len(bank.patients), "sha256": bank.sha256},
        "score": None if score is None or all(line.scores is None for line in studies.lines) else score.name,
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
                "preview": _preview(line),
                "flags": list(dict.fromkeys(flag.kind for flag in line.flags)),
                "has_image": line.has_image,
            }
            for line in studies.lines
        ],
    }


def study_record(study: Study, films: Record | None) -> Record:
    """Return one study; `films` are its images, or null if it has none or they are asked for alone."""
    line, query, reference = study.line, study.line.query, study.reference
    return {
        **_head(line),
        "has_image": line.has_image,
        "prior": report_record(query.prior),
        "notes": list(flag_lines(line.selection.flags, first=1)),
        "older_priors": max(0, len(query.priors) - 1),
        "reference": None
        if reference is None
        else {
            **report_record(reference.report),
            "alignment": _alignments(reference.beside_prior, study.prior_sentences, reference.sentences),
        },
        "why": study.why,
        "beside_why": study.beside_why,
        "drafts": [_draft_record(draft, study) for draft in study.drafts],
        "map": {
            section: {
                "drafts": [point and list(point) for point in placed.drafts],
                "nearest": [point and list(point) for point in placed.nearest],
            }
            for section, placed in study.places.items()
        },
        "films": films,
    }


def _head(line: StudyLine) -> Record:
    """Return what the list and the study have in common."""
    return {
        "number": line.number,
        "id": line.query.id,
        "patient": line.query.patient,
        **_choice(line, line.selection),
        "p": number(line.selection.p),
        "best": None if line.scores is None else number(max(line.scores)),
        "beside": None if line.beside is None else _choice(line, line.beside),
    }


def _choice(line: StudyLine, selection: Selection) -> Record:
    """Return what one selector chose."""
    return {
        "selected": selection.selected,
        "margin": number(selection.margin),
        "tied": selection.tied,
        "abstained": selection.abstained,
        "score": number(line.score(selection)),
        "gain": number(line.gain(selection)),
    }


def _beside_total(line: StudyLine, draft: int) -> float | None:
    """Return a draft's total distance under the second selector."""
    totals = () if line.beside is None else line.beside.total_distances
    return number(totals[draft]) if totals else None


def _preview(line: StudyLine) -> str:
    """Return the first words of what was chosen, else of the prior: of the impression if there is one."""
    picked = line.selection.selected
    report = line.query.prior if picked is None else line.query.candidates[picked]
    words = " ".join((report.impression or report.findings).split())
    return words if len(words) <= LONGEST_PREVIEW else words[:LONGEST_PREVIEW].rstrip() + "\u2026"


def _alignments(found: SectionAlignments, prior: Sentences, current: Sentences) -> Record:
    """Return alignments by section, those that have a line."""
    return {
        section: [line_record(pair, prior[section], current[section]) for pair in pairs]
        for section, pairs in found.items()
        if pairs
    }


def _draft_record(draft: StudyDraft, study: Study) -> Record:
    """Return one draft; its verdict counts drafts from 1."""
    distances, reference = draft.distances, study.reference
    return {
        "number": draft.number,
        "rank": draft.rank,
        "total": None if distances is None else number(distances.total),
        "sections": {} if distances is None else _numbers(distances.sections),
        "lacks": [] if distances is None else list(distances.lacks),
        "parts": {} if distances is None else {name: _numbers(own) for name, own in distances.parts.items()},
        "verdict": draft.explanation.verdict_from(1),
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
        "beside_reference": None
        if reference is None
        else _alignments(reference.drafts[draft.number], reference.sentences, draft.sentences),
        "beside_total": _beside_total(study.line, draft.number),
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
    """Yield the page piece by piece; studies are worked out as they are written."""

    def records() -> Iterator[Record]:
        for done, study in enumerate(studies.all(), start=1):
            yield study_record(study, _films(studies, study, note))
            on_progress(done)

    yield from page_parts(page, overview_record(studies), records())


def page_parts(page: Page, overview: Record, studies: Iterable[Record]) -> Iterator[str]:
    """Yield the page with these data: list and script first, then one element a study, which is never run.

    The list is shown while a browser still reads the studies, and a study is read when it is opened.
    """
    before, after = frame(page, overview["title"])
    script, end, rest = after.rpartition("</body>")
    yield before
    yield _data("overview-data", overview)
    yield script
    for study in studies:
        yield _data(f"study-data-{study['number']}", study)
    yield end + rest


def _data(name: str, record: Record) -> str:
    """Return an element that holds data."""
    return f'<script type="application/json" id="{name}">{as_json(record)}</script>\n'


def _films(studies: Studies, study: Study, note: Note) -> Record | None:
    """Return a study's images; a broken one is left out and named."""
    images = studies.settings.images
    return None if images is None else films_record(images, study.line.query, note)


def films_record(images: ImageFolder, query: Query, note: Note = lambda _: None) -> Record | None:
    """Return the images of a study that can be shown, prior and current; null if none can."""
    return {name: film.record() for name, film in images.read(query, note).items()} or None
