"""The four written forms of a table: any text survives them, and nothing is ragged."""

import csv
import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tabon.errors import BadInputError, UnknownNameError
from tabon.reporting.tables.render import FORMS, Block, Heading, Table, TableCell, TableRow, render

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
MARKS = st.text("\\|*_`<>&~$#%^{}[]'\"-,;:!? \n\r\tab–Δ", max_size=12)
TEXTS = ANY_TEXT | MARKS
BREAKS = "[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]+"
ESCAPED = {
    "textbackslash": "\\",
    "textbar": "|",
    "textasciitilde": "~",
    "textasciicircum": "^",
    "textasciigrave": "`",
    "textless": "<",
    "textgreater": ">",
    "textendash": "–",
    "allowbreak": "",
}


def table_of(*names, **changes):
    """A table with a heading, a row and a note for each of the names."""
    rows = tuple(TableRow(cells=(TableCell(text=name), TableCell(text="0.5"))) for name in names)
    fields = {
        "label": "tab:x",
        "title": names[0],
        "caption": names[-1],
        "headings": (Heading(text="Method", align="l"), Heading(text=names[0], group=names[-1])),
        "blocks": (Block(rows=rows, heading=TableCell(text=names[0], bold=True)),),
        "notes": names,
    }
    return Table(**{**fields, **changes})


def one_line(text):
    """What Markdown and LaTeX keep of a text: line breaks are blanks there."""
    return re.sub(BREAKS, " ", text).strip()


class Places(HTMLParser):
    """Collects the texts of a page by element and sees that elements are closed in order."""

    def __init__(self):
        """Start with nothing open."""
        super().__init__()
        self.open, self.texts = [], {}

    def handle_starttag(self, tag, attrs):
        """Open an element with an empty text."""
        name = dict(attrs).get("scope") or tag
        self.open.append((tag, name))
        self.texts.setdefault(name, []).append("")

    def handle_endtag(self, tag):
        """Close the element that was opened last."""
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        """Add to the innermost open element."""
        if self.open:
            self.texts[self.open[-1][1]][-1] += data


@given(TEXTS, TEXTS)
def test_any_text_survives_html(first, second):
    """A page's parser reads every name back, and every element is closed."""
    page = Places()
    page.feed(render(table_of(first, second), "html"))
    page.close()
    assert page.open == []
    assert page.texts["row"] == [first, second]
    assert page.texts["li"] == [first, second]
    assert page.texts["col"] == ["Method", first]


@given(TEXTS, TEXTS)
@example("a\rb", 'say "x", y')
def test_any_text_survives_csv(first, second):
    """A CSV reader reads every name back; all lines have the same number of fields."""
    text = render(table_of(first, second), "csv")
    lines = list(csv.reader(io.StringIO(text, newline="")))
    assert {len(line) for line in lines} == {3}
    assert [line[1].removeprefix("'") for line in lines[1:3]] == [
        name.removeprefix("'") for name in (first, second)
    ]
    assert [line[0] for line in lines[-2:]] == [f"# {first}", f"# {second}"]


@pytest.mark.parametrize(
    "name", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "\r=1", "\uff1d1", "-"]
)
def test_no_cell_is_a_formula(name):
    """A name that a spreadsheet would run is text in every place of the table."""
    lines = list(csv.reader(io.StringIO(render(table_of(name, name), "csv"), newline="")))
    fields = [field for line in lines for field in line if name in field]
    assert len(fields) >= 8
    assert not [field for field in fields if field.startswith(name)]


@pytest.mark.parametrize("number", ["-0.003", "+0.012***", "+3.0%", "0.5", "-12"])
def test_a_number_stays_a_number(number):
    """Signs of differences are not taken for formulas."""
    row = TableRow(cells=(TableCell(text="a"), TableCell(text=number, subscript="-1.0%")))
    assert f"\na,{number},-1.0%\n" in render(table_of("a", "b", blocks=(Block(rows=(row,)),)), "csv")


@settings(max_examples=50)
@given(TEXTS, TEXTS)
@example("\\", "\\|")
@example("<b>&amp;", "a|b\nc")
def test_any_text_survives_markdown(first, second):
    """A Markdown reader of another make sees the names as they are, in cells and in notes."""
    reader = pytest.importorskip("markdown_it", reason="no second reader of Markdown is installed")
    names = [f"x{first}x", f"x{second}x"]  # a list item of marks only would be a list in a list
    tokens = reader.MarkdownIt("commonmark").enable("table").parse(render(table_of(*names), "markdown"))
    shown = ["".join(child.content for child in t.children) for t in tokens if t.type == "inline"]
    head, cells, notes = shown[1:3], shown[3:9], shown[9:]
    assert head == ["Method", f"{one_line(names[1])}: {one_line(names[0])}"]
    assert cells == [one_line(names[0]), "", one_line(names[0]), "0.5", one_line(names[1]), "0.5"]
    assert notes == list(map(one_line, names))


def read_latex(text):
    """Undo the escapes: what a reader of the print sees."""
    text = re.sub(r"\\(text\w+|allowbreak)\{\}", lambda found: f"\0{ord(ESCAPED[found[1]] or chr(1))};", text)
    text = text.replace(r"$\Delta$", "Δ").replace(r"$\times$", "×")
    text = re.sub(r"\\([{}$&#_%])", lambda found: f"\0{ord(found[1])};", text)
    assert not re.search(r"[\\$&#_%~^<>`|]|--|''|,,", text), text
    return re.sub(r"\0(\d+);", lambda found: chr(int(found[1])).strip("\1"), text.replace("{}", ""))


@given(TEXTS)
@example("a--b''c,,d")
@example("[x] *y")
@example("–-")
def test_any_text_survives_latex(name):
    """Undoing the escapes gives the name; no mark and no ligature is left over."""
    name = f"x{name}x"
    lines = render(table_of(name, "Mean"), "latex").splitlines()
    row = next(number for number, line in enumerate(lines) if line.startswith(r"    \multicolumn{2}{l}")) + 1
    assert read_latex(lines[row].removesuffix(r" & 0.5 \\").strip()) == one_line(name)


@pytest.mark.parametrize("name", ["[1pt] drafts", "*drafts"])
def test_a_row_cannot_be_taken_for_an_argument(name):
    r"""A name that begins with a bracket or a star is shielded from the \\ before it."""
    assert f"    {{}}{name} & 0.5" in render(table_of(name), "latex")


def test_marks_of_a_cell_in_each_form():
    """Bold, italics, subscript and small capitals are written as the paper writes them."""
    cells = (
        TableCell(text="Cost-OT / min", small_caps=True),
        TableCell(text="0.064", subscript="+13.2%", bold=True),
    )
    italic = (TableCell(text="random", italic=True), TableCell(text="-0.001"))
    blocks = (Block(rows=(TableRow(cells=cells), TableRow(cells=italic, ruled=True))),)
    table = table_of("a", blocks=blocks)
    latex = render(table, "latex")
    assert r"    \textsc{Cost-OT} / \textsc{min} & \textbf{0.064\textsubscript{(+13.2\%)}} \\" in latex
    assert "    \\cmidrule(lr){1-2}\n    \\textit{random} & $-$0.001 \\\\" in latex
    assert "| Cost-OT / min | **0.064<sub>(+13.2%)</sub>** |\n| *random* |" in render(table, "markdown")
    html = render(table, "html")
    assert '<td class="center"><b>0.064<sub>(+13.2%)</sub></b></td>' in html
    assert '<tr class="ruled"><th scope="row" class="left"><i>random</i></th>' in html
    assert "\nCost-OT / min,0.064,+13.2%\nrandom,-0.001,\n" in render(table, "csv")


def test_a_span_covers_its_columns_in_each_form():
    """A cell over two columns leaves the table rectangular."""
    table = table_of("a", blocks=(Block(rows=(TableRow(cells=(TableCell(text="mean", span=2),)),)),))
    assert r"\multicolumn{2}{l}{mean} \\" in render(table, "latex")
    assert "\n| mean |  |\n" in render(table, "markdown")
    assert '<th scope="row" class="left" colspan="2">mean</th></tr>' in render(table, "html")
    assert "\nmean,\n" in render(table, "csv")


def test_groups_stand_over_their_columns():
    """Neighbours of one group share a head; a group of no name draws no rule."""
    heads = (Heading(text="Run"), Heading(text="a", group="G"), Heading(text="b", group="G"))
    row = TableRow(cells=tuple(TableCell(text=text) for text in "xyz"))
    table = table_of("a", headings=heads, blocks=(Block(rows=(row,)),))
    latex = render(table, "latex")
    assert "\\multicolumn{1}{c}{} & \\multicolumn{2}{c}{G} \\\\\n    \\cmidrule(lr){2-3}\n" in latex
    assert '<td colspan="1"></td><th scope="colgroup" colspan="2">G</th>' in render(table, "html")
    assert "| Run | G: a | G: b |" in render(table, "markdown")
    assert render(table, "csv").startswith("Run,G: a,G: b\n")


@pytest.mark.parametrize("form", FORMS)
def test_the_same_table_is_the_same_text_and_ends_with_a_newline(form):
    """Nothing but the table is in the text."""
    assert render(table_of("a", "b"), form) == render(table_of("a", "b"), form)
    assert render(table_of("a", "b"), form).endswith("\n")


def test_a_ragged_table_is_refused():
    """A row that does not cover the columns is no row."""
    with pytest.raises(BadInputError, match="2 columns and rows of"):
        table_of("a", blocks=(Block(rows=(TableRow(cells=(TableCell(text="x"),)),)),))


def test_a_label_that_latex_cannot_carry_is_refused():
    """Braces and blanks stay out of labels."""
    with pytest.raises(BadInputError, match="is no label"):
        table_of("a", label="tab:a b}")


def test_an_unknown_form_is_named():
    """The message lists the forms."""
    with pytest.raises(UnknownNameError, match="unknown table form 'word'"):
        render(table_of("a"), "word")
