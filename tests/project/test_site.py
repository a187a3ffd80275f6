"""The documentation site: built offline without a warning, searched and looked at as a reader does."""

import fcntl
import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from threading import Thread

import nbformat
import pytest

import tabon
from browser import PHONE, WIDE, chromium, opened, sideways

ROOT = Path(__file__).parents[2]
OFFLINE = """
import socket, sys
def refuse(self, address):
    raise AssertionError(f"the site asks for {address[0]}")
socket.socket.connect = refuse
from mkdocs.__main__ import cli
cli()
"""
QUESTIONS = {  # of a newcomer, and the page that answers
    "how do I install tabon": "index.html",
    "how do I start": "docs/guide/first-steps.html",
    "use my own drafts from a csv file": "docs/guide/own-files.html",
    "which selector should I use": "docs/guide/selectors.html",
    "is it better than a random pick": "docs/reference/evidence.html",
    "what is a transition": "docs/reference/glossary.html",
    "when does it abstain": "docs/guide/selectors.html",
    "compare two selectors with a confidence interval": "docs/guide/evaluation.html",
    "latex table for my paper": "docs/guide/tables.html",
    "fields of the results file": "docs/reference/file-formats.html",
    "run the service in docker": "docs/guide/container.html",
    "openai api best of n": "docs/guide/gateway.html",
    "is patient data logged": "docs/guide/service.html",
    "millions of transitions on a gpu": "docs/guide/search.html",
    "reward for GRPO training": "docs/guide/rewards.html",
    "add my own encoder": "CONTRIBUTING.html",
}
NOTEBOOKS = ("own_drafts", "results_file", "service")
LOOKED_AT = (
    "index.html",
    "docs/reference/api.html",
    "docs/reference/cli.html",
    "experiments/openi/KINDS.html",
    *(f"examples/notebooks/{name}.html" for name in NOTEBOOKS),
)
COUNT = ".md-search-result__meta"
FOUND = "(links) => links.map((link) => new URL(link.href).pathname.slice(1))"


@pytest.fixture(scope="module")
def site(tmp_path_factory, worker_id):
    """Build the site once, whichever of the processes of this run comes first."""
    pytest.importorskip("mkdocs")
    shared = tmp_path_factory.getbasetemp()
    shared = shared if worker_id == "master" else shared.parent
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "site").exists():
            command = [sys.executable, "-c", OFFLINE, "build", "--strict", "--site-dir", shared / "built"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            assert "WARNING" not in done.stderr
            (shared / "built").rename(shared / "site")
    return shared / "site"


@pytest.fixture(scope="module")
def address(site):
    """Serve the site on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join(10)


def article(text):
    """Return what a page says, without the navigation around it."""
    return text[text.index("<article") : text.index("</article>")]


def links(site, page, part):
    """Return the pages of the site that a part of a page links to."""
    targets = re.findall(r'href="([^"#?]+)', part((site / page).read_text()))
    paths = [(site / page).parent / target for target in targets if "://" not in target]
    return {path.resolve().relative_to(site).as_posix() for path in paths if path.suffix == ".html"}


@pytest.mark.parametrize(("start", "part"), [("index.html", str), ("docs/index.html", article)])
def test_every_page_is_within_two_clicks(site, start, part):
    """From the start page with its navigation, and from the reader's index by what it says alone."""
    first = links(site, start, part)
    near = {start, *first, *(page for one in first for page in links(site, one, part))}
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")} - {"404.html"}
    assert len(pages) > 90
    assert pages - near == set()


def test_nothing_is_loaded_from_elsewhere(site):
    """No page and no style sheet names a script, a style, a font or a picture of another host."""
    for path in site.rglob("*.html"):
        text = path.read_text()
        loaded = re.findall(r'\ssrc(?:set)?="([^"]*)"', text)
        for tag in re.findall(r"<link\b[^>]*>", text):
            loaded += re.findall(r'href="([^"]*)"', tag)
        assert [url for url in loaded if re.match(r"(?:\w+:)?//", url)] == [], path
    for path in site.rglob("*.css"):
        assert re.findall(r"(?:@import\s*|url\()[\"']?(?:https?:)?//[^)]*", path.read_text()) == [], path


def test_lists_and_tables_are_shown_as_such(site):
    """No paragraph swallows a list or a table because the blank line before it is missing."""
    for path in site.rglob("*.html"):
        text = re.sub(r"<pre.*?</pre>", "", path.read_text(), flags=re.DOTALL)
        paragraphs = re.findall(r"<p>(.*?)</p>", text, flags=re.DOTALL)
        assert [one for one in paragraphs if re.search(r"\n(?:[-*] |\d\. |\|[-: |]+\|)", one)] == [], path


def test_the_python_reference_names_every_public_name(site):
    """docs/reference/api.md asks for each name of `tabon.__all__` once, and the site has its docstring."""
    text = (ROOT / "docs/reference/api.md").read_text()
    asked = re.findall(r"^::: tabon\.(\w+)$", text, flags=re.MULTILINE)
    assert sorted(asked) == sorted(set(tabon.__all__) - {"__version__"})
    shown = (site / "docs/reference/api.html").read_text()
    for name in asked:
        summary = getattr(tabon, name).__doc__.splitlines()[0]
        assert f'id="tabon.{name}"' in shown
        assert re.sub(r"[`'<>&].*", "", summary) in shown


def test_the_index_for_language_models_leads_to_markdown(site):
    """llms.txt has title, description and lists of links; each leads to Markdown or a file of the site."""
    text = (site / "llms.txt").read_text()
    assert re.match(r"# tabon\n\n> .+\n", text)
    targets = re.findall(r"\]\(([^)#]+)", text)
    assert len(targets) > 50
    assert [target for target in targets if not (site / target).is_file()] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_shown_as_it_ran(site, name):
    """Its page has each cell with what it showed, and both files that a reader may take along."""
    folder = site / "examples/notebooks"
    notebook = nbformat.read(folder / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    shown = article((folder / f"{name}.html").read_text())
    assert shown.count('<div class="highlight"') == len(cells)
    assert len(re.findall(r'class="[^"]*\boutput\b', shown)) == sum(len(cell.outputs) for cell in cells) > 5
    assert (folder / f"{name}.py").read_bytes() == (ROOT / f"examples/notebooks/{name}.py").read_bytes()


def asked(page, question):
    """Type a question into the search, and return the pages that it shows, best first."""
    field = page.locator(".md-search__input")
    for words, answer in (("", "Type to start searching"), (question, "matching document")):
        field.fill(words)
        field.press("End")  # the search listens to keys
        page.locator(COUNT).filter(has_text=answer).wait_for()
    return page.locator(".md-search-result__item > a:first-child").evaluate_all(FOUND)


def test_a_newcomers_questions_find_their_page(address):
    """The search of the site, in a browser, has the right page among its first three."""
    with chromium() as browser, opened(browser, address) as page:
        page.locator(".md-search__input").click()
        found = {question: asked(page, question)[:3] for question in QUESTIONS}
    assert {question: pages for question, pages in found.items() if QUESTIONS[question] not in pages} == {}


def test_pages_fit_their_window(address):
    """Wide and light, on a phone and dark: nothing scrolls sideways, nothing is asked of another host."""
    with chromium() as browser:
        for name, (size, scheme) in product(LOOKED_AT, ((WIDE, "light"), (PHONE, "dark"))):
            with opened(browser, f"{address}{name}", size=size, color_scheme=scheme) as page:
                assert sideways(page) == 0, (name, size)


def test_a_command_is_copied_without_its_prompt(address):
    """The button beside a block of commands gives what a shell takes."""
    allowed = ["clipboard-read", "clipboard-write"]
    with chromium() as browser, opened(browser, address, permissions=allowed) as page:
        block = page.locator(".highlight").filter(has_text="$ make demo").first
        block.hover()
        block.get_by_title("Copy").click()
        page.locator(".md-dialog--active").wait_for()
        assert page.evaluate("() => navigator.clipboard.readText()") == "make demo\nmake test"
