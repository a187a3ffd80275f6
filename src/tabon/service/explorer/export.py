"""The explorer as one file: the page, its style, its script and the data, for any browser and no server."""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Final

from tabon._internal.atomic_files import replacing
from tabon.errors import BadInputError, TabonError
from tabon.service.explorer.images import Note
from tabon.service.explorer.records import as_json, overview_record, study_record
from tabon.service.explorer.studies import Studies, Study, StudyLine

STYLE_LINK: Final = '<link rel="stylesheet" href="explorer.css">'
SCRIPT_LINK: Final = '<script src="explorer.js" defer></script>'
SCRIPTS: Final = (  # joined in this order; the last one starts the page
    "words",
    "elements",
    "numbers",
    "state",
    "data",
    "list",
    "alignment",
    "comparison",
    "panels",
    "distances",
    "map",
    "study",
    "keys",
    "page",
)
SCRIPT_HEAD: Final = '(() => {\n"use strict";\n'
DATA_START: Final = '<script type="application/json" id="explorer-data">'
_TITLE = re.compile(r"<title>[^<]*</title>")


@dataclass(frozen=True, slots=True)
class Page:
    """The page: its HTML, its style and its one script."""

    html: str
    css: str
    js: str


def read_page() -> Page:
    """Read the page's files and join its scripts."""
    folder = files("tabon.service.explorer") / "page"
    html, css = ((folder / f"explorer.{end}").read_text(encoding="utf-8") for end in ("html", "css"))
    return Page(html, css, joined(read_scripts().values()))


def read_scripts() -> dict[str, str]:
    """Read the files of the script, by name and in order."""
    folder = files("tabon.service.explorer") / "page"
    return {f"{name}.js": (folder / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS}


def joined(scripts: Iterable[str]) -> str:
    """Return one script whose names are its own."""
    return "".join((SCRIPT_HEAD, *scripts, "})();\n"))


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
    before, after = _frame(page, studies.settings.title)
    yield before
    yield DATA_START + '{"studies":['
    lines: list[StudyLine] = []
    for study in studies.all():
        yield ("," if lines else "") + as_json(study_record(study, _data_url(studies, study, note)))
        lines.append(study.line.listed())
        on_progress(len(lines))
    yield '],"overview":' + as_json(overview_record(studies, lines)) + "}</script>\n"
    yield after


def content_policy(page: Page) -> str:
    """Return what a browser may run and load in the file: its one script, its one style, no more."""
    return (
        f"default-src 'none'; script-src {_hash(page.js)}; style-src {_hash(page.css)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _frame(page: Page, title: str) -> tuple[str, str]:
    """Return the page before the data and after it."""
    for text, end in ((page.css, "style"), (page.js, "script")):
        if f"</{end}" in text.lower() or "<!--" in text:
            raise TabonError(f"the page's {end} cannot stand inside HTML; install tabon anew")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{escape(content_policy(page))}">'
    html = _once(page.html, STYLE_LINK, f"<style>{page.css}</style>")
    html = _once(html, SCRIPT_LINK, "")
    html = _once(html, "<head>", f"<head>\n{policy}")
    heading = escape(title.encode("utf-8", "replace").decode())
    html = _TITLE.sub(lambda _: f"<title>{heading}</title>", html, count=1)
    before, body, after = html.rpartition("</body>")
    return before, f"<script>{page.js}</script>\n{body}{after}"


def _once(html: str, old: str, new: str) -> str:
    """Replace what stands there exactly once."""
    if html.count(old) != 1:
        raise TabonError(f"the page has not exactly one {old}; install tabon anew")
    return html.replace(old, new)


def _hash(text: str) -> str:
    """Return what a content policy calls a script or a style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


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
