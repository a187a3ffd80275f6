"""The words of an HTML page, without what a reader does not see."""

import re
from html.parser import HTMLParser

from tabon.errors import BadInputError

MAX_HTML = 2_000_000  # characters of one page; a hostile one takes about 4 s for each million


def _words(text: str) -> frozenset[str]:
    """Return the words of a line as a set."""
    return frozenset(text.split())


_UNSEEN = _words(
    "applet audio canvas embed head iframe math noembed noframes noscript object script style svg template"
    " textarea title video xmp"
)
_VOID = _words("area base br col embed hr img input link meta param source track wbr")
_BLOCKS = _words(
    "address article aside blockquote body br caption center dd div dl dt fieldset figure footer form h1 h2"
    " h3 h4 h5 h6 header hr html li main nav ol p pre section table tbody tfoot thead tr ul"
)
_END = "tabon-end"  # a tag behind the page, which is not seen where something swallows it
_CELLS = frozenset({"td", "th"})
_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0|opacity\s*:\s*0(?![.\d])",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[ \t\r\f\v\xa0]+")
_EMPTY_LINES = re.compile(r"\n{3,}")


class _SeenText(HTMLParser):
    """Gathers the text that a reader sees."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.unseen: str | None = None  # the element whose content is left out
        self.depth = 0  # of elements of that name inside each other
        self.preformatted = 0
        self.last = ""  # start tag that was seen

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Break the line before a block; begin to leave out what is not seen."""
        self.last = tag
        if self.unseen is not None:
            self.depth += tag == self.unseen
        elif tag not in _VOID and (tag in _UNSEEN or _is_hidden(attrs)):
            self.unseen, self.depth = tag, 1
        else:
            self.preformatted += tag == "pre"
            self._break(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Break the line at `<br/>`; an empty element has no content to leave out."""
        if self.unseen is None:
            self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        """Break the line after a block; end what is left out."""
        if self.unseen is None:
            self.preformatted = max(0, self.preformatted - (tag == "pre"))
            self._break(tag)
        elif tag == self.unseen:
            self.depth -= 1
            self.unseen = self.unseen if self.depth else None

    def handle_data(self, data: str) -> None:
        """Keep the words that are seen; a line end outside `<pre>` is a blank."""
        if self.unseen is None:
            self.parts.append(data if self.preformatted else data.replace("\n", " "))

    def _break(self, tag: str) -> None:
        """Keep what stood apart on the page apart in the text."""
        if tag in _BLOCKS:
            self.parts.append("\n")
        elif tag in _CELLS:
            self.parts.append(" ")


def _is_hidden(attributes: list[tuple[str, str | None]]) -> bool:
    """Whether an element says that it is not shown."""
    return any(
        name == "hidden" or (name == "style" and _HIDING.search(value or "") is not None)
        for name, value in attributes
    )


def html_text(html: str, name: str) -> str:
    r"""Return the words that a reader of the page sees, with a line for each block.

    The parser is never asked to guess what an unfinished tag means: that
    guessing takes time that grows with the square of a hostile page.

    Raises:
        BadInputError: the page is too long, or ends inside a tag, a comment or a script.

    >>> html_text("<h2>Findings</h2><script>x()</script><p>Lungs &amp; pleura clear.</p>", "a page")
    'Findings\n\nLungs & pleura clear.'
    """
    if len(html) > MAX_HTML:
        raise BadInputError(f"{name} has over {MAX_HTML:,} characters of HTML; give the report as plain text")
    page = _SeenText()
    try:
        page.feed(f"{html}<{_END}>")
    except AssertionError:  # the standard parser's word for a marked section that is none
        raise BadInputError(f"{name} has HTML with a broken declaration; repair it") from None
    if page.rawdata or page.unseen is not None or page.last != _END:
        raise BadInputError(f"{name} has HTML that ends inside a tag or a hidden part; repair or complete it")
    lines = (_BLANKS.sub(" ", line).strip() for line in "".join(page.parts).split("\n"))
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()
