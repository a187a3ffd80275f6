"""`tabon report`: one page, or one sentence and exit status 1."""

import json

import pytest
from click.testing import CliRunner

from explorer_cases import HOSTILE, bank, data_of, json_lines, odd, read, simulated
from tabon.cli.explain import PageOptions, explain, open_studies, report
from tabon.cli.select import select
from tabon.errors import BadInputError
from tabon.selectors.setup import SelectionSettings
from tabon.service.parsing import NOTICE


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a bank and queries."""
    folder = tmp_path_factory.mktemp("report")
    bank().save(folder / "bank.tabon")
    (folder / "queries.jsonl").write_text(json_lines([*simulated(), *odd()]))
    return folder


def asked(command, place, *options, queries="queries.jsonl"):
    """Run a command on the queries of a folder."""
    arguments = [str(place / queries), "--bank", str(place / "bank.tabon"), "--no-store", *map(str, options)]
    return CliRunner().invoke(command, arguments)


def page(place, tmp_path, *options, queries="queries.jsonl"):
    """Write a page and return the result and its data."""
    path = tmp_path / "page.html"
    done = asked(report, place, "--html", path, *options, queries=queries)
    assert done.exit_code == 0, done.output
    return done, data_of(path.read_text(encoding="utf-8"))


def test_the_page_holds_what_select_and_explain_print(place, tmp_path):
    """Picks, distances, margins and alignments are those of the other two commands."""
    options = ("--aggregate", "knn", "-k", "4", "--distance", "mean-shift")
    done, data = page(place, tmp_path, *options)
    assert done.stdout == ""
    assert NOTICE in done.stderr
    assert "MB" in done.stderr
    selected = asked(select, place, *options)
    explained = asked(explain, place, "--json", "--draft", "0", "--id", simulated()[0]["id"], *options)
    chosen = [json.loads(line) for line in selected.stdout.splitlines()]
    assert [study["id"] for study in data["studies"]] == [one["id"] for one in chosen]
    for study, line, one in zip(data["studies"], data["overview"]["studies"], chosen, strict=True):
        for key in ("selected", "tied", "abstained"):
            assert study[key] == line[key] == one[key]
        assert study["margin"] == (None if one["margin"] is None else round(one["margin"], 6))
        for number, total in enumerate(one["total_distances"]):
            assert study["drafts"][number]["total"] == round(total, 6)
        if one["selected"] is not None:
            near = study["drafts"][one["selected"]]["nearest"]
            for section, found in one["nearest"].items():
                assert [change["id"] for change in near[section]] == [change["id"] for change in found[:3]]
    assert data["overview"]["signature"] == chosen[0]["signature"]
    sections = json.loads(explained.stdout)["sections"]
    for section, lines in data["studies"][0]["drafts"][0]["alignment"].items():
        assert [(line["kind"], line["prior"], line["current"]) for line in lines] == [
            (line["kind"], line["prior"], line["current"]) for line in sections[section]["alignment"]
        ]


def test_options_change_what_is_shown(place, tmp_path):
    """Title, limit, neighbours, bank text and score are as asked for."""
    done, data = page(
        place,
        tmp_path,
        "--limit",
        2,
        "--title",
        HOSTILE[1],
        "--changes",
        1,
        "--no-bank-text",
        "--score",
        "bleu-1",
    )
    assert "only the first 2 studies" in done.stderr
    assert len(data["studies"]) == len(data["overview"]["studies"]) == 2
    assert (data["overview"]["title"], data["overview"]["score"]) == (HOSTILE[1], "bleu-1")
    near = [
        part for study in data["studies"] for draft in study["drafts"] for part in draft["nearest"].values()
    ]
    assert {len(part) for part in near} == {0, 1}  # a draft without change has none
    assert all(one["prior"] == one["current"] == [] for part in near for one in part)
    texts = read((tmp_path / "page.html").read_text()).texts
    assert [text for tag, _, text in texts if tag == "title"] == [HOSTILE[1]]


def test_what_nobody_asked_for_may_be_missing(place, tmp_path):
    """Without references, or with --score none, gain is null; silence shows."""
    _, data = page(place, tmp_path, "--score", "none", "--abstain", "0.2", "--limit", "8")
    assert data["overview"]["score"] is None
    assert data["overview"]["title"] == "queries.jsonl"
    assert {line["gain"] for line in data["overview"]["studies"]} == {None}
    assert "implausible" in {line["abstained"] for line in data["overview"]["studies"]}
    plain = [{key: simulated()[0][key] for key in ("id", "prior", "candidates")}]
    (place / "plain.jsonl").write_text(json_lines(plain))
    _, data = page(place, tmp_path, queries="plain.jsonl")
    assert data["overview"]["score"] is None


@pytest.mark.parametrize(
    ("lines", "options", "said"),
    [
        ("", (), "holds no queries"),
        ("not JSON\n", (), "line 1"),
        (json_lines([simulated()[0], {"id": "x", "prior": "A."}]), (), "line 2"),
        (json_lines([simulated()[0], simulated()[0]]), (), "occurred before"),
        (json_lines([{**simulated()[0], "reference": 7}]), (), "'reference'"),
        (json_lines(simulated()[:1]), ("--score", "rouge-l-ff"), "Did you mean 'rouge-l-f'"),
        (json_lines(simulated()[:1]), ("--images", "no-such-folder"), "not a folder"),
        (json_lines(simulated()[:1]), ("--distance", "far"), "unknown distance"),
        (json_lines(simulated()[:1]), ("--selector", "consensus", "-k", "3"), "does not count"),
    ],
)
def test_bad_input_is_one_sentence_and_no_file(place, tmp_path, lines, options, said):
    """Exit status 1, one line on standard error, and what was there stays as it was."""
    (tmp_path / "bad.jsonl").write_text(lines)
    path = tmp_path / "out" / "page.html"
    path.parent.mkdir()
    path.write_text("old")
    arguments = [str(tmp_path / "bad.jsonl"), "--bank", str(place / "bank.tabon"), "--no-store"]
    done = CliRunner().invoke(report, [*arguments, "--html", str(path), *options])
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert path.read_text() == "old"
    assert [one.name for one in path.parent.iterdir()] == ["page.html"]


def test_a_served_file_is_answered_at_start(place, monkeypatch):
    """The studies that a service shows are all answered before it is ready; too many are refused."""
    notes = []
    options = PageOptions(title=None, images=None, score="none", no_bank_text=False)
    settings = SelectionSettings(encoder="hashing")
    with (place / "queries.jsonl").open("rb") as file:
        studies = open_studies(file, bank(), settings, options, notes.append)
    assert len(studies) == len(studies.lines) == len([*simulated(), *odd()])
    assert notes == [f"the explorer shows {len(studies)} studies"]
    monkeypatch.setattr("tabon.service.explorer.studies.MOST_STUDIES", 3)
    with (place / "queries.jsonl").open("rb") as file, pytest.raises(BadInputError, match="at most 3"):
        open_studies(file, bank(), settings, options, notes.append)


def test_a_broken_image_is_named_and_the_page_stands(place, tmp_path):
    """One broken image costs one line on standard error and nothing else."""
    pytest.importorskip("PIL", reason="the extra `images` is not installed")
    (tmp_path / "film.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (place / "image.jsonl").write_text(json_lines([{**simulated()[0], "image": "film.png"}]))
    done, data = page(place, tmp_path, "--images", tmp_path, queries="image.jsonl")
    assert data["studies"][0]["films"] is None
    assert "film.png" in done.stderr
    assert len(done.stderr.splitlines()) == 2
