"""A table as a value, and its five written forms.

A `Table` holds text that is already rounded; a renderer only marks it up. The
same table gives the same bytes: no date, no dictionary order, no locale.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby
from types import MappingProxyType

from tabon.errors import BadInputError, UnknownNameError

_LABEL = re.compile(r"[A-Za-z0-9:.-]+")
_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """The content of one place of a table."""

    text: str
    subscript: str = ""  # "+3.0%", shown in brackets
    bold: bool = False
    italic: bool = False
    small_caps: bool = False  # a method's name: LaTeX sets the words around " / " in small capitals
    span: int = 1  # how many columns it covers


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The head of a column; neighbours of one group share a head above theirs."""

    text: str
    group: str = ""
    align: str = "c"  # l, c or r

    def whole(self) -> str:
        """Return the name in one line, for the forms with one line of heads."""
        return ": ".join(part for part in (self.group, self.text) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A line of a table; `ruled` draws a thin line above it."""

    cells: tuple[TableCell, ...]
    ruled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Rows that belong together, under a heading of their own or none."""

    rows: tuple[TableRow, ...]
    heading: TableCell | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table, ready to be written; every row covers every column."""

    label: str  # "tab:avg-impressions"
    title: str  # set in bold before the caption
    caption: str
    headings: tuple[Heading, ...]
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse ragged rows and labels that LaTeX cannot carry."""
        if not _LABEL.fullmatch(self.label):
            raise BadInputError(f"{self.label!r} is no label; use letters, digits, ':', '.' and '-'")
        widths = {sum(cell.span for cell in row.cells) for block in self.blocks for row in block.rows}
        if widths - {len(self.headings)}:
            raise BadInputError(f"{self.label} has {len(self.headings)} columns and rows of {sorted(widths)}")

    def groups(self) -> tuple[tuple[str, int], ...]:
        """Return the groups over the columns from left to right, each with its number of columns."""
        return tuple((name, len(list(heads))) for name, heads in groupby(self.headings, lambda h: h.group))


def render(table: Table, form: str) -> str:
    r"""Write a table in one of FORMS; the text ends with a newline.

    >>> head = (Heading(text="Method", align="l"), Heading(text="BLEU-1"))
    >>> row = TableRow(cells=(TableCell(text="a|b"), TableCell(text="0.163", subscript="+3.0%", bold=True)))
    >>> rows = (Block(rows=(row,)),)
    >>> table = Table(label="tab:x", title="Findings", caption="", headings=head, blocks=rows)
    >>> print(render(table, "markdown"))
    **Findings**
    <BLANKLINE>
    | Method | BLEU-1 |
    | :--- | :---: |
    | a\|b | **0.163<sub>(+3.0%)</sub>** |
    <BLANKLINE>
    """
    if form not in FORMS:
        raise UnknownNameError("table form", form, tuple(FORMS))
    return FORMS[form](table)


def _full_caption(table: Table, bold: Callable[[str], str], dash: str, mark: Callable[[str], str]) -> str:
    """Return title and caption, marked up."""
    title = bold(mark(table.title))
    return f"{title} {dash} {mark(table.caption)}" if table.caption else title


# Text


def _text(table: Table) -> str:
    """Write aligned columns for a terminal, the title above and notes below; best values have a *."""
    lines = [[head.whole() for head in table.headings]]
    for block in table.blocks:
        if block.heading:
            lines.append([block.heading.text] + [""] * (len(table.headings) - 1))
        lines += [
            [text for cell in row.cells for text in (_text_cell(cell), *[""] * (cell.span - 1))]
            for row in block.rows
        ]
    lines = [[_BREAKS.sub(" ", text) for text in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [[line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines]
    first, *others = ["  ".join(line).rstrip() for line in padded]
    title = _full_caption(table, lambda text: text, "–", lambda text: _BREAKS.sub(" ", text))
    notes = ["", *(_BREAKS.sub(" ", note) for note in table.notes)] if table.notes else []
    return "\n".join([title, "", first, "-" * (sum(widths) + 2 * len(widths) - 2), *others, *notes]) + "\n"


def _text_cell(cell: TableCell) -> str:
    """Return a cell's text; a bold number has a * before it."""
    mark = "*" if cell.bold and _NUMERIC.fullmatch(cell.text) else ""
    return f"{mark}{cell.text}" + (f" ({cell.subscript})" if cell.subscript else "")


# Markdown


def _markdown_text(text: str) -> str:
    """Escape what Markdown would read as a mark; a line break becomes a blank."""
    return re.sub(r"([\\`*_\[\]<>|&~$])", r"\\\1", _BREAKS.sub(" ", text)).strip()


def _markdown_cell(cell: TableCell) -> str:
    """Mark up a cell; what a span covers stays empty."""
    text = _markdown_text(cell.text)
    if cell.subscript:
        text += f"<sub>({_markdown_text(cell.subscript)})</sub>"
    if text and cell.italic:
        text = f"*{text}*"
    if text and cell.bold:
        text = f"**{text}**"
    return " | ".join([text] + [""] * (cell.span - 1))


def _markdown(table: Table) -> str:
    """Write GitHub's tables: one line of heads, notes as a list below."""
    marks = {"l": ":---", "c": ":---:", "r": "---:"}
    lines = [_full_caption(table, lambda title: f"**{title}**", "–", _markdown_text), ""]
    lines.append(_markdown_line(_markdown_text(head.whole()) for head in table.headings))
    lines.append(_markdown_line(marks[head.align] for head in table.headings))
    for block in table.blocks:
        if block.heading:
            lines.append(_markdown_line([_markdown_cell(block.heading)] + [""] * (len(table.headings) - 1)))
        lines += [_markdown_line(map(_markdown_cell, row.cells)) for row in block.rows]
    if table.notes:
        lines += ["", *(f"- {_markdown_text(note)}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def _markdown_line(cells: Iterator[str] | list[str]) -> str:
    """Join the cells of a line."""
    return f"| {' | '.join(cells)} |"


# LaTeX

_LATEX = {
    "\\": r"\textbackslash{}",
    "|": r"\textbar{}\allowbreak{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "`": r"\textasciigrave{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": r"\textendash{}",
    "Δ": r"$\Delta$",
    "×": r"$\times$",
    **{mark: f"\\{mark}" for mark in "{}$&#_%"},
}
_LATEX_MARKS = re.compile("|".join(map(re.escape, _LATEX)))
_LIGATURES = re.compile(r"(?<=-)-|(?<=')'|(?<=,),")  # "--" would become a dash, "''" and ",," quotes
_NUMERIC = re.compile(r"[-+\d.,\[\]()%/* ]+")


def _latex_text(text: str) -> str:
    """Escape what LaTeX would read as a mark; a line break becomes a blank."""
    apart = _LIGATURES.sub(lambda found: f"\0{found[0]}", _BREAKS.sub(" ", text.replace("\0", "")))
    return _LATEX_MARKS.sub(lambda found: _LATEX[found[0]], apart).replace("\0", "{}").strip()


def _latex_cell(cell: TableCell) -> str:
    """Mark up a cell as the paper does: names in small capitals, the subscript inside the bold."""
    text = _latex_text(cell.text)
    if cell.small_caps:
        text = " / ".join(rf"\textsc{{{_latex_text(word)}}}" for word in cell.text.split(" / "))
    elif _NUMERIC.fullmatch(cell.text):  # signs of numbers as in mathematics
        text = re.sub(r"(?<!\d)([-+])(?=\d)", r"$\1$", text)
    if text.startswith(("[", "*")):
        text = f"{{}}{text}"  # else the \\ before it takes them
    if cell.subscript:
        text += rf"\textsubscript{{({_latex_text(cell.subscript)})}}"
    if cell.italic:
        text = rf"\textit{{{text}}}"
    if cell.bold:
        text = rf"\textbf{{{text}}}"
    return text if cell.span == 1 else rf"\multicolumn{{{cell.span}}}{{l}}{{{text}}}"


def _latex(table: Table) -> str:
    """Write a floating booktabs table as in the paper, notes in small print below."""
    caption = _full_caption(table, lambda title: rf"\textbf{{{title}}}", "--", _latex_text)
    lines = [
        r"\begin{table}[t]",
        rf"  \caption{{{caption}}}",
        rf"  \label{{{table.label}}}",
        r"  \centering",
        r"  \setlength{\tabcolsep}{3pt}",
        rf"  \begin{{tabular}}{{{''.join(head.align for head in table.headings)}}}",
        *(f"    {line}" for line in _latex_lines(table)),
        r"  \end{tabular}",
    ]
    if table.notes:
        notes = "\\par\n  ".join(map(_latex_text, table.notes))
        lines += [r"  \vspace{1pt}\par\raggedright", rf"  \scriptsize {notes}\par"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _latex_lines(table: Table) -> Iterator[str]:
    """Yield the lines between the top and the bottom rule."""
    yield r"\toprule"
    if any(head.group for head in table.headings):  # thin rules below the groups
        heads = (rf"\multicolumn{{{width}}}{{c}}{{{_latex_text(name)}}}" for name, width in table.groups())
        yield " & ".join(heads) + r" \\"
        end = 0
        for name, width in table.groups():
            start, end = end + 1, end + width
            if name:
                yield rf"\cmidrule(lr){{{start}-{end}}}"
    yield " & ".join(_latex_text(head.text) for head in table.headings) + r" \\"
    for block in table.blocks:
        yield r"\midrule"
        if block.heading:
            yield rf"\multicolumn{{{len(table.headings)}}}{{l}}{{{_latex_cell(block.heading)}}} \\"
        for row in block.rows:
            if row.ruled:
                yield rf"\cmidrule(lr){{1-{len(table.headings)}}}"
            yield " & ".join(map(_latex_cell, row.cells)) + r" \\"
    yield r"\bottomrule"


# CSV


_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?%?\**")  # with the stars of a test
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def _csv_field(text: str) -> str:
    """Quote a field where it must be; what a spreadsheet would take for a formula gets a "'" before it.

    Not `csv.writer`: before Python 3.13 it leaves a lone carriage return unquoted.

    >>> [_csv_field(text) for text in ("=1+1", "-0.003", "+3.0%", "@me", "a,b")]
    ["'=1+1", '-0.003', '+3.0%', "'@me", '"a,b"']
    """
    if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",\r\n]', text) else text


def _csv(table: Table) -> str:
    """Write one line a row; a column with subscripts gets a second one, notes come last after "# "."""
    lines = []
    for block in table.blocks:
        for row in block.rows:
            line = [block.heading.text if block.heading else ""]
            for cell in row.cells:
                line += [cell.text, cell.subscript] + ["", ""] * (cell.span - 1)
            lines.append(line)
    width = len(table.headings)
    changed = [any(line[2 * place + 2] for line in lines) for place in range(width)]
    named = any(block.heading for block in table.blocks)
    heads = ["block", *(part for head in table.headings for part in (head.whole(), f"{head.whole()} change"))]
    kept = [named, *(keep for change in changed for keep in (True, change))]
    caption = f"{table.title} – {table.caption}" if table.caption else table.title
    rows = [[text for text, keep in zip(line, kept, strict=True) if keep] for line in (heads, *lines)]
    notes = [[f"# {note}"] + [""] * (len(rows[0]) - 1) for note in (caption, *table.notes)]
    return "".join(",".join(map(_csv_field, row)) + "\n" for row in (*rows, *notes))


# HTML

_SIDES = {"l": "left", "c": "center", "r": "right"}


def _html(table: Table) -> str:
    """Write a figure element to put into a page: classes, but no style, no script, no link."""
    caption = _full_caption(table, lambda title: f"<b>{title}</b>", "–", escape)
    notes = "".join(f"<li>{escape(note)}</li>\n" for note in table.notes)
    return (
        f'<figure id="{table.label}">\n<table>\n<caption>{caption}</caption>\n'
        f"<thead>\n{_html_heads(table)}</thead>\n"
        + "".join(_html_block(table, block) for block in table.blocks)
        + "</table>\n"
        + (f"<ul>\n{notes}</ul>\n" if notes else "")
        + "</figure>\n"
    )


def _html_heads(table: Table) -> str:
    """Write the groups, where there are any, and the heads."""
    groups = "".join(
        f'<th scope="colgroup" colspan="{width}">{escape(name)}</th>'
        if name
        else f'<td colspan="{width}"></td>'
        for name, width in table.groups()
    )
    heads = "".join(
        f'<th scope="col" class="{_SIDES[head.align]}">{escape(head.text)}</th>' for head in table.headings
    )
    grouped = any(head.group for head in table.headings)
    return (f"<tr>{groups}</tr>\n" if grouped else "") + f"<tr>{heads}</tr>\n"


def _html_block(table: Table, block: Block) -> str:
    """Write the rows that belong together; the first cell of a row is its head."""
    sides = [_SIDES[head.align] for head in table.headings]
    lines = []
    if block.heading:
        text = _html_cell(block.heading)
        lines.append(f'<tr><th scope="rowgroup" colspan="{len(table.headings)}">{text}</th></tr>\n')
    for row in block.rows:
        column, places = 0, ""
        for cell in row.cells:
            opened, closed = ("<td", "</td>") if places else ('<th scope="row"', "</th>")
            span = f' colspan="{cell.span}"' if cell.span > 1 else ""
            places += f'{opened} class="{sides[column]}"{span}>{_html_cell(cell)}{closed}'
            column += cell.span
        ruled = ' class="ruled"' if row.ruled else ""
        lines.append(f"<tr{ruled}>{places}</tr>\n")
    return f"<tbody>\n{''.join(lines)}</tbody>\n"


def _html_cell(cell: TableCell) -> str:
    """Mark up a cell."""
    text = escape(cell.text)
    if cell.subscript:
        text += f"<sub>({escape(cell.subscript)})</sub>"
    if cell.italic:
        text = f"<i>{text}</i>"
    return f"<b>{text}</b>" if cell.bold else text


FORMS: Mapping[str, Callable[[Table], str]] = MappingProxyType(
    {"text": _text, "markdown": _markdown, "latex": _latex, "csv": _csv, "html": _html}
)
