"""The tables, pictures and the page of a reader study: what the results say, and nothing that runs."""

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest

from browser import CONTRAST, HOSTILE, ODD_ELEMENTS, chromium, opened, sideways
from study_cases import SELECTORS, fill_study, write_study
from tabon.reporting.study import write_study_report
from tabon.reporting.study_tables import comments_table, study_tables
from tabon.reporting.tables.render import render
from tabon.study.answers import read_answers
from tabon.study.comparison import Resampling
from tabon.study.folder import read_key, read_study
from tabon.study.results import study_results

THREE = ("first", "second", "third")


def results_of(folder, **facts):
    """Make a study, answer it at random and work it out."""
    comment = facts.pop("comment", "")
    write_study(folder, **{"cases": 9, **facts})
    fill_study(folder, comment=comment)
    study = read_study(folder)
    return study_results(
        study, read_key(folder, study), read_answers(folder, study), Resampling(resamples=200)
    )


@pytest.mark.parametrize(
    ("facts", "labels"),
    [
        ({}, ["preference", "errors", "agreement", "readers"]),
        ({"names": THREE}, ["preference", "strength", "errors", "agreement", "readers"]),
        ({"design": "rating"}, ["rating", "errors", "agreement", "readers"]),
        ({"design": "ranking", "names": ()}, ["errors", "agreement", "readers"]),
    ],
)
def test_each_design_has_its_tables(tmp_path, facts, labels):
    """Only tables with something in them, in every form."""
    tables = study_tables(results_of(tmp_path, **facts))
    assert [table.label.removeprefix("tab:study-") for table in tables] == labels
    for table in tables:
        for form in ("text", "markdown", "latex", "csv", "html"):
            assert "nan" not in render(table, form).lower().replace("finance", "")


def test_the_numbers_of_a_table_are_those_of_the_results(tmp_path):
    """Share, intervals, counts, how often picks differ: rounded here and nowhere else."""
    found = results_of(tmp_path)
    [one] = found.preferences
    row = next(csv.reader(StringIO(render(study_tables(found)[0], "csv").splitlines()[1])))
    percent = [f"{100 * end:.0f}" for end in (one.value, one.low, one.high, one.these_low, one.these_high)]
    assert row == [
        f"{SELECTORS[0]} over {SELECTORS[1]}", "9", f"{one.wins} / {one.ties} / {one.losses}", "11 of 11",
        f"{percent[0]} %", f"[{percent[1]}, {percent[2]}]", f"[{percent[3]}, {percent[4]}]",
    ]  # fmt: skip


def test_what_is_not_known_is_a_dash(tmp_path):
    """One reader: no agreement with others; two cases of one patient: no interval."""
    found = results_of(tmp_path, readers=("ann",), cases=3, repeat=0)
    assert [table.label for table in study_tables(found)] == [
        f"tab:study-{name}" for name in ("preference", "errors", "readers")
    ]
    empty = replace(found, preferences=(replace(found.preferences[0], low=None, these_low=None),))
    assert render(study_tables(empty)[0], "text").splitlines()[-1].split()[-2:] == ["–", "–"]


def test_the_files_are_made_again_byte_for_byte(tmp_path):
    """Page, tables, figures and numbers hold no date and no order of chance."""
    found = results_of(tmp_path / "study", design="rating", comment="fine")
    for name in ("one", "two"):
        write_study_report(found, tmp_path / name, figures=("svg", "pdf", "png"))
    one, two = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("one", "two")
    )
    assert one == two
    names = {path.as_posix() for path in one}
    assert {"scores.jsonl", "comments.csv", "report.html", "results.json", "tables/rating.tex"} <= names
    assert {f"figures/{name}.png" for name in ("ratings", "time")} <= names
    lines = [json.loads(line) for line in (tmp_path / "one/scores.jsonl").read_text().splitlines()]
    assert set(lines[0]) == {"id", "draft", "name", "value", "direction"}


class Scripts(HTMLParser):
    """Collects what could run."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        """Note elements and attributes that run."""
        if tag in {"script", "iframe", "object", "embed", "base", "form", "link"}:
            self.found.append(tag)
        self.found += [name for name, _ in attributes if name.startswith("on")]


def test_hostile_text_is_text_on_the_page_and_in_tables(tmp_path):
    """Title, question, selectors and comments of markup and formulas: nothing runs, in a browser too."""
    texts = [text.format(number) for number, text in enumerate(HOSTILE)]
    comment = f"=1+1 {' '.join(texts)}"[:3000]
    facts = {"title": texts[1], "question": texts[2], "names": (texts[3], texts[9]), "comment": comment}
    found = results_of(tmp_path / "study", **facts)
    write_study_report(found, tmp_path / "out")
    page = (tmp_path / "out/report.html").read_text()
    parser = Scripts()
    parser.feed(page)
    assert parser.found == []
    assert "default-src &#x27;none&#x27;" in page
    assert "'=1+1" in render(comments_table(found), "csv")
    with chromium() as browser, opened(browser, (tmp_path / "out/report.html").as_uri()) as shown:
        odd = [one for one in shown.evaluate(ODD_ELEMENTS) if "style=" not in one]
        assert odd == []
        assert texts[3] in shown.locator("main").inner_text()


@pytest.mark.parametrize(
    ("scheme", "size"), [("light", (1440, 900)), ("dark", (1440, 900)), ("light", (390, 844))]
)
def test_the_page_can_be_read_by_everyone(tmp_path, scheme, size):
    """Contrast of 4.5, no sideways scroll, every picture with words, light, dark and on a phone."""
    found = results_of(tmp_path / "study", names=THREE, comment="A long comment. " * 40)
    write_study_report(found, tmp_path / "out")
    with chromium() as browser:
        address = (tmp_path / "out/report.html").as_uri()
        with opened(browser, address, size=size, color_scheme=scheme) as page:
            assert [one for one in page.evaluate(CONTRAST) if one[0] < 4.5] == []
            assert sideways(page) == 0
            alts = page.locator("img").evaluate_all("(images) => images.map((one) => one.alt)")
            assert len(alts) >= 2
            assert all(re.search(r"\d", alt) for alt in alts)
