"""What the site shows and in which order: a hook of mkdocs.

A page has the path that it has in the repository, so that every link holds, also those that leave docs/.
The order is that of the reader's index, docs/README.md, which becomes llms.txt, too.
"""

import re
import sys
from pathlib import Path
from typing import Any

import jupytext
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))

import notebooks  # noqa: E402

START, INDEX, DECISIONS = "README.md", "docs/README.md", "docs/decisions/README.md"
STYLE = "docs/site.css"
NOTEBOOKS = "examples/notebooks/"
PLACES = ("*.md", "docs/**/*.md", "experiments/**/*.md", "examples/**/*.md", f"{NOTEBOOKS}*.py")
BOOSTS = {"docs/guide/": 2, START: 2, "docs/reference/": 1.5}  # in the search; 1 for all other pages
BLOCK = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)\s#]+)[^)\s]*\)")


def pages() -> list[str]:
    """Return the paths of all pages."""
    return sorted(path.relative_to(ROOT).as_posix() for place in PLACES for path in ROOT.glob(place))


def linked(page: str, text: str) -> list[str]:
    """Return the paths of the files that a part of a page links to."""
    folder = (ROOT / page).parent
    return [(folder / to).resolve().relative_to(ROOT).as_posix() for to in LINK.findall(BLOCK.sub("", text))]


def navigation() -> list[Any]:
    """Return the pages by reader; one that several readers need is under the first of them."""
    decisions = [
        page
        for page in linked(DECISIONS, (ROOT / DECISIONS).read_text(encoding="utf-8"))
        if page.startswith("docs/decisions/")
    ]
    shown = {START, INDEX, DECISIONS}
    found: list[Any] = [START, INDEX]
    _, *parts = re.split(r"^## ", (ROOT / INDEX).read_text(encoding="utf-8"), flags=re.MULTILINE)
    for part in parts:
        title, _, text = part.partition("\n")
        new = [page for page in dict.fromkeys(linked(INDEX, text)) if page not in shown]
        shown.update(new)
        found.append({title: new})
    found.insert(-1, {"Decisions": [DECISIONS, *decisions]})
    return found


class NotebookPage(File):
    """A page that is made of a notebook, at the notebook's own path."""

    def is_documentation_page(self) -> bool:
        """Say that it is one, though it is no Markdown."""
        return True


def made_of(path: str, config: MkDocsConfig) -> list[File]:
    """Return what the site has of a file: a notebook is run, and becomes a page and what Jupyter opens."""
    place = (path, str(ROOT), config.site_dir, config.use_directory_urls)
    if not (path.startswith(NOTEBOOKS) and path.endswith(".py")):
        return [File(*place)]
    notebook = notebooks.executed(ROOT / path)
    stem = Path(path).stem
    taken = (
        f'<a href="{stem}.ipynb" download>As a notebook</a>, <a href="{stem}.py" download>as a script</a>.'
    )
    title, _, text = notebooks.markdown(notebook).partition("\n")
    page = NotebookPage(*place)
    page.content_string = f"{title}\n\n{taken}\n{text}"
    opened = path.removesuffix("py") + "ipynb"
    return [page, File.generated(config, opened, content=jupytext.writes(notebook, fmt="ipynb"))]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the order of the pages."""
    config.nav = navigation()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the pages from the whole repository, and the files that they link to."""
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in pages()}
    to = (path for page, text in texts.items() for path in linked(page, text))
    paths = dict.fromkeys([*texts, *to, STYLE])
    theme = [file for file in files if not Path(file.abs_src_path or "").is_relative_to(ROOT / "docs")]
    own = [file for path in paths for file in made_of(path, config)]
    return Files([*theme, *own])


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let the search prefer pages that say how to do a job."""
    boosts = [boost for place, boost in BOOSTS.items() if page.file.src_uri.startswith(place)]
    page.meta["search"] = {"boost": boosts[0] if boosts else 1}
    return markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Put the pages' Markdown beside them, and llms.txt, the index of it."""
    site = Path(config.site_dir)
    for page in pages():
        (site / page).write_bytes((ROOT / page).read_bytes())
    text = (ROOT / INDEX).read_text(encoding="utf-8").partition("\n")[2]
    rooted = LINK.sub(lambda link: link[0].replace(link[1], linked(INDEX, link[0])[0], 1), text)
    head = f"# {config.site_name}\n\n> {config.site_description}\n"
    (site / "llms.txt").write_text(head + rooted, encoding="utf-8")
