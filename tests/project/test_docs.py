"""What the documents say is so.

The console blocks of README, and those of the guide that use `demo-output`, are run in order in one empty
folder, exactly as printed, with two stand-ins: the encoder named `minilm` is the hashing encoder (no weights
to load), and `make demo` is `tabon demo` with few patients. Other `make` words are only looked up in the
Makefile.
"""

import ast
import doctest
import re
import shlex
import sys
from dataclasses import fields
from functools import cache, reduce
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import tabon
from tabon.cli import main
from tabon.encoders import load as loading
from tabon.method.selection import ABSTENTIONS, Signature
from tabon.method.sentence_sets import Fingerprint

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

from cli_reference import reference  # noqa: E402

PAGES = sorted(
    page
    for place in (
        "*.md",
        "docs/**/*.md",
        "experiments/*/README.md",
        "examples/*/README.md",
        "packages/*/README.md",
    )
    for page in ROOT.glob(place)
)
DECISIONS = sorted(page for page in ROOT.glob("docs/decisions/*.md") if page.name != "README.md")
MARKED = {"signature": Signature, "fingerprint": Fingerprint}
INDEX = ROOT / "docs/README.md"
USER_PAGES = [*ROOT.glob("docs/guide/*.md"), *ROOT.glob("docs/reference/*.md")]
DIARY = r"\b(tried without|used to|by hand|(earlier|later|last) (run|session)s?|until now)\b"
PRIVATE_WORDS = {
    r"doors?": "interface, endpoint",
    r"fence[sd]?": "guard, limit, mark",
    r"lots?": "batch",
    r"told|hears?": "notified, mentioned",
    r"bought|buys?": "generated, paid for",
    r"say(s|ing)? nothing|said no": "abstain, error",
    r"strange(r|st)?": "implausible, least plausible",
    r"(in|whatever the) company": "whatever else is in the batch",
    r"ways? out": "hint",
    r"(is|are) worth": "scores",
}
WRITTEN = [page for page in PAGES if page.name != "CHANGELOG.md"]
WORST_WORDS = r"doors?|fences?|lots?|hears?|bought|buy|strange(r|st)?|way_out|ways? out|said no"
SOURCES = sorted(path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".js", ".html"))
FENCED = {"prompts.py", "chat_request.py"}  # a prompt's fence is the word of the field


def name(page):
    """Return a page's path for test ids."""
    return str(page.relative_to(ROOT))


def prose(page):
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def commands(page, about=""):
    """Return the commands of a page's console blocks, or of those blocks that name something."""
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [
        line[2:] for block in blocks if about in block for line in block.splitlines() if line.startswith("$ ")
    ]


def links(page):
    """Return the files that a page links to."""
    targets = re.findall(r"\]\(([^)\s#]+)", prose(page))
    return {(page.parent / target).resolve() for target in targets if "://" not in target}


def anchors(page):
    """Return the anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def functions_in(path):
    """Return the names of the functions in a file, without importing it."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def named_tests(page):
    """Return (file, test or empty) for each test that a page names."""
    return re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text())


def test_the_command_line_page_is_fresh():
    """docs/reference/cli.md is what `make docs` would write now."""
    assert (ROOT / "docs/reference/cli.md").read_text() == reference()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_examples_run(page):
    """Every `>>>` in a page gives what the page says."""
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def test_readme_shows_python():
    """README has an example of ten prompts or so that the test above runs."""
    assert 10 <= (ROOT / "README.md").read_text().count(">>> ") <= 12


def test_documented_commands_run(tmp_path, monkeypatch):
    """The console commands of README and of the guide's demo blocks work, one after another, as printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    stand_in = {**loading.ENCODERS, "minilm": loading.ENCODERS["hashing"]}
    monkeypatch.setattr(loading, "ENCODERS", stand_in)
    shown = commands(ROOT / "README.md")
    assert {"make demo", "make test", "tabon doctor"} <= set(shown)
    guides = sorted(ROOT.glob("docs/guide/*.md"), key=lambda page: page.name != "first-steps.md")
    shown += [command for page in guides for command in commands(page, about="demo-output")]
    for command in dict.fromkeys(shown):
        program, *arguments = shlex.split(command)
        if command == "make demo":
            program, arguments = "tabon", ["demo", "--patients", "120"]
        if program == "tabon":
            result = CliRunner().invoke(main, arguments)
            assert result.exit_code == 0, (command, result.output)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_make_words_exist(page):
    """Each `make WORD` in a page is a word of the Makefile."""
    words = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    said = re.findall(r"^(?:\$ | {4})make ([a-z-]+)|`make ([a-z-]+)`", page.read_text(), flags=re.MULTILINE)
    assert {word for pair in said for word in pair if word} <= words


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_tabon_commands_exist(page):
    """Each `tabon COMMAND` in a page is a command."""
    for words in re.findall(r"(?:`|^\$ )tabon ([a-z]+(?: [a-z]+)?)", page.read_text(), flags=re.MULTILINE):
        first, *rest = words.split()
        assert main.get_command(None, first), words
        if rest and first == "bank":
            assert main.get_command(None, first).get_command(None, rest[0]), words


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_documented_options_exist(page):
    """Each option of a `tabon` command in a console block is one that the command has."""
    for line in commands(page):
        program, *words = shlex.split(line, comments=True)
        command = main
        while program == "tabon" and words and isinstance(command, click.Group):
            command = command.get_command(None, words.pop(0))
        known = {option for parameter in command.params for option in parameter.opts}
        said = {word.split("=")[0] for word in words if word.startswith("--")}
        assert program != "tabon" or said <= known, line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_resolve(page):
    """Each relative link leads to a file, and each anchor to a heading."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.is_file(), target
        assert not anchor or anchor in anchors(there), target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_named_tests_exist(page):
    """Each test that a page names is there."""
    for file, test in named_tests(page):
        assert (ROOT / file).is_file(), file
        assert not test or test in functions_in(ROOT / file), f"{file}::{test}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_named_functions_exist(page):
    """Each module:function that a page names can be imported."""
    for module, function in re.findall(r"`(tabon(?:\.\w+)*):([\w.]+)`", page.read_text()):
        assert callable(reduce(getattr, function.split("."), import_module(module)))


def test_every_equation_has_a_function_and_a_test():
    """The table of docs/reference/method.md has a row for each of eq. 1-12, with both."""
    rows = re.findall(
        r"^\| (\d+) \| .*`tabon\.[\w.]+:.*`tests/[\w/]+\.py::.*$",
        (ROOT / "docs/reference/method.md").read_text(),
        re.MULTILINE,
    )
    assert [int(row) for row in rows] == list(range(1, 13))


@pytest.mark.parametrize("page", DECISIONS, ids=name)
def test_a_decision_says_what_why_and_what_holds_it(page):
    """Each decision has its question, its answer, its reason, a test and a place in the signature."""
    text = page.read_text()
    for part in ("**The question.**", "**What we do.**", "**Why", "**Held by**"):
        assert part in text, part
    assert named_tests(page)
    assert re.search(r"^\*\*In the (?:signature|fingerprint)\*\*:", text, flags=re.MULTILINE)
    assert f"]({page.name})" in (page.parent / "README.md").read_text()


@pytest.mark.parametrize("page", DECISIONS, ids=name)
def test_named_fields_exist(page):
    """The field that a decision names is one of the signature or of the fingerprint."""
    marks = re.findall(r"^\*\*In the (\w+)\*\*: (?:`(\w+)`|nothing)", page.read_text(), flags=re.MULTILINE)
    assert marks
    for kind, field in marks:
        assert not field or field in {known.name for known in fields(MARKED[kind])}


def test_file_formats_names_every_field_code_and_flag():
    """docs/reference/file-formats.md has each field of signature and fingerprint, and each abstention."""
    text = (ROOT / "docs/reference/file-formats.md").read_text()
    known = [field.name for kind in MARKED.values() for field in fields(kind)]
    assert [word for word in [*known, *ABSTENTIONS] if f"`{word}`" not in text] == []


def test_versions_agree():
    """The changelog and the citation speak of the version that is installed."""
    assert f"## {tabon.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {tabon.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_signature_in_readme_is_current():
    """README's run was made with the fields, weights, splitter, parser and version of today."""

    def parts(line):
        return dict(part.split(":", 1) for part in line.split("|"))

    shown = parts(re.search(r"^selector:fused.*$", (ROOT / "README.md").read_text(), flags=re.MULTILINE)[0])
    move = tabon.Transition(id="t", prior=tabon.Report("Clear.", ""), current=tabon.Report("Fluid.", ""))
    bank = tabon.TransitionBank.build([move], encoder="hashing")
    today = parts(tabon.Selector(bank, "fused").signature)
    assert list(shown) == list(today)
    of_the_run = ("encoder", "bank")
    assert all(shown[name] == value for name, value in today.items() if name not in of_the_run)


def test_every_page_is_reachable_from_the_index():
    """Links lead from docs/README.md to every page of docs."""
    seen, open_pages = {INDEX}, [INDEX]
    while open_pages:
        found = {page for page in links(open_pages.pop()) if page.suffix == ".md"} - seen
        seen |= found
        open_pages += found
    assert set(ROOT.glob("docs/**/*.md")) <= seen


@pytest.mark.parametrize("page", USER_PAGES, ids=name)
def test_no_user_page_holds_a_diary(page):
    """What was tried and past figures are in dated notes, not in the guide or the reference."""
    assert not re.search(DIARY, prose(page), flags=re.IGNORECASE)


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_no_private_words(page):
    """The pages use words that practitioners know; code and names of tests are left alone."""
    text = re.sub(r"`[^`]*`", "", prose(page))
    found = [
        (word, use) for word, use in PRIVATE_WORDS.items() if re.search(rf"\b({word})\b", text, re.IGNORECASE)
    ]
    assert found == []


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_private_words_in_the_source(path):
    """Names, comments, help and messages of the source keep to the words of the field, too."""
    found = re.findall(rf"\b(?:{WORST_WORDS})\b", path.read_text(encoding="utf-8"), re.IGNORECASE)
    assert not found or path.name in FENCED, path


def test_notes_are_dated():
    """Each note begins with the date of its measurement."""
    notes = [page.name for page in ROOT.glob("docs/notes/*.md")]
    assert notes
    assert all(re.match(r"\d{4}-\d\d-\d\d-", note) for note in notes)
