"""The report page: one file, whole, escaped, and readable without pictures."""

import re
from base64 import b64decode
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from tabon.errors import UnknownNameError
from tabon.evaluation.results import MEAN_RUN, RANDOM, Cell, Results, Run
from tabon.reporting.page import GROUPS, NO_PICTURES, OPEN_TABLES, POLICY, Fragment, report_page
from tabon.reporting.plots import Picture
from tabon.service.explorer.export import read_page

VOID = {"meta", "img", "br", "link", "input", "hr"}
COLUMNS = {"BLEU-1": "bleu-1", "RadGraph": "radgraph-f1"}
SVG = '<svg viewBox="0 0 300 150" xmlns="http://www.w3.org/2000/svg"><title>t</title></svg>'
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>&amp;'


@dataclass(frozen=True)
class Drawn:
    """A drawing that is there already."""

    svg: str


class Reader(HTMLParser):
    """Reads a page strictly: every element that opens closes in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.words, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        """Note an element and its attributes."""
        self.seen.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        """Close the element that was opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Keep what is read."""
        self.words.append(data)

    def text(self):
        """Return all words with single spaces."""
        return " ".join(" ".join(self.words).split())


def read(page):
    """Read a page; it must be closed at the end."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def cells_of(name, section="findings"):
    """Return one method's cells in the mean: clear of random, below it, and in between."""
    ends = {"bleu-1": (0.01, 0.03), "radgraph-f1": (-0.03, 0.01)}
    return tuple(
        Cell(
            run=MEAN_RUN,
            section=section,
            method=name,
            score=score,
            value=0.2,
            n=20,
            delta_low=low,
            delta_high=high,
        )
        for score, (low, high) in ends.items()
    )


def example(name="novelty/min", **changes):
    """Return results of two runs; `name` stands wherever a name can stand."""
    runs = tuple(
        Run(
            name=f"{name} {number}",
            model=name,
            prompt=name,
            queries="ab" * 32,
            studies=1000 + number,
            patients=900,
            drafts=5000,
            short=3,
            abstained={name: 2, "other": 0},
        )
        for number in (1, 2)
    )
    facts = {
        "cells": cells_of(name),
        "runs": runs,
        "scores": {"bleu-1": f"bleu|{name}", "radgraph-f1": "radgraph|x"},
        "missing": {"comet": f"no weights {name}"},
        "methods": {name: f"distance:{name}"},
        "headline": ("bleu-1",),
        "settings": {"seed": 7, "versions": {"tabon": "9.8.7", name: "1"}},
    }
    return Results(**{**facts, **changes})


def page_of(results=None, tables=(), pictures=None, title="A title", columns=None):
    """Return a page."""
    return report_page(
        results or example(), tables, columns=columns or COLUMNS, title=title, pictures=pictures
    )


def test_the_page_is_whole_and_asks_nobody_for_anything():
    """Its elements close, its policy forbids all loading, every address is inside the page."""
    tables = [Fragment("t", group, "<table><tr><td>1</td></tr></table>") for group in GROUPS]
    page = page_of(tables=tables, pictures=[Picture(name="p", drawing=Drawn(SVG), alt="words")])
    reader = read(page)
    tags = [tag for tag, _ in reader.seen]
    assert not {"script", "link", "iframe", "object", "form", "base"} & set(tags)
    policies = [at["content"] for tag, at in reader.seen if at.get("http-equiv") == "Content-Security-Policy"]
    assert policies == [POLICY]
    assert POLICY.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in page
    assert "@import" not in page
    addresses = [at[key] for _, at in reader.seen for key in ("src", "href") if key in at]
    assert addresses
    assert all(address.startswith(("#", "data:image/svg+xml;base64,")) for address in addresses)


def test_every_link_leads_to_a_part():
    """The parts stand in order and each is linked once."""
    tables = [Fragment("t", group, "<table></table>") for group in GROUPS]
    reader = read(page_of(tables=tables))
    links = [at["href"].removeprefix("#") for tag, at in reader.seen if tag == "a"]
    sections = [at["id"] for tag, at in reader.seen if tag == "section"]
    assert links == sections
    assert sections == [
        "headline",
        "figures",
        "pairs",
        "subgroups",
        "per-run",
        "deltas",
        "statistics",
        "cohort",
        "paper",
        "missing",
        "settings",
    ]
    assert len(set(reader.ids)) == len(reader.ids)


def test_what_it_is_and_is_not_is_said_first():
    """Counts, purpose and the warning stand above the tables."""
    text = read(page_of()).text()
    top = text.partition("Signatures and settings")[0]
    assert "Research use only; not a medical device." in top
    for fact in ("runs 2", "studies a run 1,001–1,002", "patients a run 900", "drafts in all 10,000", "0–2"):
        assert fact in top


def test_pairs_that_are_told_apart_are_counted_by_their_intervals():
    """Intervals clear of zero are counted by side; references and scores that are not shown are not."""
    results = example()
    more = replace(results.cells[0], method=RANDOM), replace(results.cells[0], score="other")
    below = replace(results.cells[0], section="impression", delta_low=-0.2, delta_high=-0.1)
    text = read(page_of(replace(results, cells=(*results.cells, *more, below)))).text()
    assert "Findings : of 2 pairs of method and score, 1 lie above random" in text
    assert "Impressions : of 1 pairs of method and score, 0 lie above" in text
    assert "clear of it, 1 below, 0 cannot be told apart" in text


def test_every_table_stands_in_its_part_once():
    """Long parts fold what comes after the first few, and lose nothing."""
    tables = [
        Fragment(f"title {group} {number}", group, f"<table><tr><td>{group}-{number}</td></tr></table>")
        for number in range(OPEN_TABLES + 2)
        for group in GROUPS
    ]
    page = page_of(tables=tables)
    for table in tables:
        part = page.partition(f'<section id="{table.group}">')[2].partition("</section>")[0]
        assert part.count(table.html) == page.count(table.html) == 1
        assert table.title in part
    assert page.count("<details>") == 1 + 2 * len(GROUPS)
    read(page)


def test_a_part_without_tables_is_left_out():
    """No heading stands over nothing."""
    sections = [at["id"] for tag, at in read(page_of()).seen if tag == "section"]
    assert sections == ["figures", "missing", "settings"]


def test_an_unknown_group_is_refused_by_name():
    """A table cannot be lost by a misspelt group."""
    with pytest.raises(UnknownNameError, match="Did you mean 'headline'"):
        Fragment("t", "headlines", "<table></table>")


def test_pictures_are_shown_with_their_words_and_sizes():
    """The SVG is inside, as it was; folded ones open together."""
    pictures = [
        Picture(name=f"p{number}", drawing=Drawn(SVG), alt=f"words {number}", folded=number > 0)
        for number in range(3)
    ]
    page = page_of(pictures=pictures)
    images = [at for tag, at in read(page).seen if tag == "img"]
    assert [image["alt"] for image in images] == ["words 0", "words 1", "words 2"]
    assert {(image["width"], image["height"]) for image in images} == {("400", "200")}
    assert {b64decode(image["src"].partition(",")[2]).decode() for image in images} == {SVG}
    assert page.count("2 more like this") == 1


def test_without_pictures_a_sentence_stands_for_them():
    """Where nothing can draw, the extra is named; where there is nothing to draw, that is said."""
    assert NO_PICTURES in read(page_of(pictures=None)).text()
    assert "tabon[plots]" in NO_PICTURES
    assert "There is nothing to draw." in read(page_of(pictures=[])).text()


def test_what_is_not_measured_is_told_with_its_reason():
    """Metrics with a reason, columns without one, and single cells."""
    missing = {"radgraph": "no weights here"}
    hole = replace(example().cells[0], value=None)
    results = example(missing=missing, scores={"bleu-1": "b"}, cells=(hole,))
    text = read(page_of(results, columns={**COLUMNS, "COMET": "comet"})).text()
    assert "radgraph no weights here" in text
    assert "COMET the results have no score comet" in text
    assert "the results have no score radgraph-f1" not in text
    assert "Cells without a number: 1" in text
    assert "Every score that was asked for is measured." in read(page_of(example(missing={}))).text()


def test_signatures_and_settings_are_all_there():
    """Nested settings have dotted names; the headline's scores are marked."""
    text = read(page_of()).text()
    for words in (
        "BLEU-1 (bleu-1) headline bleu|novelty/min",
        "RadGraph (radgraph-f1) radgraph|x",
        "novelty/min distance:novelty/min",
        "seed 7",
        "versions.tabon 9.8.7",
        "ab" * 32,
        "Measured with tabon 9.8.7.",
    ):
        assert words in text


def test_hostile_names_are_only_words():
    """A name that is markup adds no element, wherever it stands."""
    picture = Picture(name=HOSTILE, drawing=Drawn(SVG), alt=HOSTILE)
    plain = read(
        page_of(
            tables=[Fragment("t", "headline", "<p>x</p>")], pictures=[replace(picture, name="p", alt="a")]
        )
    )
    page = page_of(
        example(HOSTILE),
        [Fragment(HOSTILE, "headline", "<p>x</p>")],
        pictures=[picture],
        title=HOSTILE,
        columns={HOSTILE: "bleu-1", "RadGraph": "radgraph-f1"},
    )
    hostile = read(page)
    assert [tag for tag, _ in hostile.seen] == [tag for tag, _ in plain.seen]
    assert hostile.text().count("<script>alert(1)</script>") >= 10
    assert not re.search(r"<script|onerror=alert\(2\)>", page)


def test_dollar_signs_and_nothing_at_all_are_fine():
    """The template takes names as they are; an empty evaluation makes a page too."""
    empty = Results(
        cells=(), runs=example().runs[:1], scores={}, missing={}, methods={}, headline=(), settings={}
    )
    page = report_page(empty, [], columns={}, title="$title ${css}", pictures=())
    assert "<h1>$title ${css}</h1>" in page
    read(page)


def test_the_same_results_give_the_same_page():
    """No date and no order of chance is in it."""
    assert page_of() == page_of()


def test_wide_things_scroll_by_themselves_and_by_keyboard():
    """Every table and picture lies in a focusable box with a name or words."""
    tables = [Fragment("wide", "headline", "<table><tr><td>1</td></tr></table>")]
    reader = read(page_of(tables=tables, pictures=[Picture(name="p", drawing=Drawn(SVG), alt="words")]))
    boxes = [at for _, at in reader.seen if "scroll" in (at.get("class") or "").split()]
    inside = sum(tag in {"table", "img"} for tag, _ in reader.seen)
    assert len(boxes) == inside
    assert all(box.get("tabindex") == "0" for box in boxes)


def test_its_colours_are_the_explorers():
    """Each named colour has the value that the explorer's page gives it, in the light and in the dark."""
    named = re.compile(r"(--[\w-]+):\s*(#\w+)")
    here = named.findall((files("tabon.reporting") / "page.css").read_text(encoding="utf-8"))
    assert len(here) == 2 * len(dict(here))
    assert set(here) <= set(named.findall(read_page().css))
