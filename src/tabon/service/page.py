"""A page of the service: its files, as they are served, and as one file that needs no server.

    page_parts/ (shared) + the page's own folder ─▶ one style, one script ─▶ routes, or one file

Text is in JSON strings only, with every sign escaped that HTML could take for its own.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from tabon.errors import TabonError
from tabon.service.app import answer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ESCAPED: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
SCRIPT_HEAD: Final = '(() => {\n"use strict";\n'
_TITLE = re.compile(r"<title>[^<]*</title>")


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its HTML, which links NAME.css and NAME.js, its style and its one script."""

    html: str
    css: str
    js: str
    name: str

    @property
    def style_link(self) -> str:
        """Return how the page asks for its style."""
        return f'<link rel="stylesheet" href="{self.name}.css">'

    @property
    def script_link(self) -> str:
        """Return how the page asks for its script."""
        return f'<script src="{self.name}.js" defer></script>'


def read_parts(folder: str, names: Iterable[str]) -> dict[str, str]:
    """Read scripts or styles, such as `list.js`, by name and in order; `folder` is the page's own.

    What is not in the folder is one of the parts that pages share, in `page_parts`.
    """
    own, shared = files("tabon.service") / folder, files("tabon.service") / "page_parts"
    places = {name: own / name if (own / name).is_file() else shared / name for name in names}
    return {name: place.read_text(encoding="utf-8") for name, place in places.items()}


def page_routes(page: Page) -> list["Route"]:
    """Return the routes of a page's files; no data are in them, so they are asked for without a token."""
    from starlette.routing import Route

    def route(path: str, text: str, media: str) -> Route:
        async def give(_: "Request") -> "Response":
            return answer(text, media=media, headers={"Content-Security-Policy": PAGE_POLICY})

        return Route(path, give)

    return [
        route("/", page.html, "text/html"),
        route(f"/{page.name}.css", page.css, "text/css"),
        route(f"/{page.name}.js", page.js, "text/javascript"),
    ]


def as_json(record: Any) -> str:  # noqa: ANN401  # anything that JSON can say
    r"""Return JSON that is data inside HTML too: ASCII, and without <, > and &.

    >>> as_json({"a": "</script>\u2028"})
    '{"a":"\\u003c/script\\u003e\\u2028"}'
    """
    return json.dumps(record, allow_nan=False, separators=(",", ":")).translate(_ESCAPED)


def joined(scripts: Iterable[str]) -> str:
    """Return one script whose names are its own."""
    return "".join((SCRIPT_HEAD, *scripts, "})();\n"))


def content_policy(page: Page) -> str:
    """Return what a browser may run and load in the file: its one script, its one style, no more."""
    return (
        f"default-src 'none'; script-src {_hash(page.js)}; style-src {_hash(page.css)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def frame(page: Page, title: str) -> tuple[str, str]:
    """Return the page as one file: what is before its data, and what is after."""
    for text, end in ((page.css, "style"), (page.js, "script")):
        if f"</{end}" in text.lower() or "<!--" in text:
            raise TabonError(f"the page's {end} cannot stand inside HTML; install tabon anew")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{escape(content_policy(page))}">'
    html = _once(page.html, page.style_link, f"<style>{page.css}</style>")
    html = _once(html, page.script_link, "")
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
