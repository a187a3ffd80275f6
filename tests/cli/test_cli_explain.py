"""`tabon explain`: text for a terminal, a page, JSON; 0 or one sentence and 1."""

import json
import re

import pytest

from commands import assert_refused, bank_file, tabon
from explorer_cases import data_of, read
from tabon import Selector, TransitionBank
from tabon.cli.explain import ON_A_TERMINAL
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.explanation.explanation import explain_many
from tabon.explanation.text import RESEARCH_USE, explanation_text, explanations_text, flag_lines
from tabon.method.selection import Note
from tabon.text.records import query_from_record
from tabon.text.sentences import split_sentences

SETTINGS = SimulationSettings(patients=120)
TRANSITIONS = list(simulate_transitions(SETTINGS, "train"))
QUERIES = list(simulate_queries(SETTINGS, "test"))
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>&amp; \x1b[2J \u202e \ud800.'
ODD = {
    "id": HOSTILE,
    "prior": f"Clear lungs. {HOSTILE}",
    "candidates": [f"Big heart. {HOSTILE} A.", "Clear lungs."],
}


def json_lines(records):
    """Write records as JSON Lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """Return a bank file."""
    return bank_file(tmp_path_factory.mktemp("bank"), TRANSITIONS)


@pytest.fixture
def ask(bank):
    """Return a function that runs the command on queries."""

    def run(*arguments, queries=QUERIES):
        return tabon("explain", "-", "--bank", bank, "--no-store", *arguments, stdin=json_lines(queries))

    return run


def explanations(bank, queries, **settings):
    """Return explanations without the command line."""
    return explain_many(
        Selector(TransitionBank.load(bank), **settings), list(map(query_from_record, queries))
    )


def test_a_few_queries_are_explained_and_the_rest_is_mentioned(ask):
    """Without an id the first ones are shown, stderr says so, and the last line is the warning."""
    result = ask()
    assert result.exit_code == 0
    shown = [query["id"] for query in QUERIES if re.search(rf"^{query['id']}: ", result.stdout, re.MULTILINE)]
    assert shown == [query["id"] for query in QUERIES[:ON_A_TERMINAL]]
    assert (
        result.stderr == f"{ON_A_TERMINAL} of {len(QUERIES)} queries are explained; name others with --id\n"
    )
    assert result.stdout.endswith(f"\n{RESEARCH_USE}\n")
    assert ask(queries=QUERIES[:ON_A_TERMINAL]).stderr == ""


def test_named_queries_are_explained_and_unknown_ones_refused(ask):
    """--id picks, in the order of the file, however many; a wrong id is one sentence."""
    two = [QUERIES[3]["id"], QUERIES[1]["id"]]
    result = ask("--id", two[0], "--id", two[1], "--json")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == two[::-1]
    assert result.stderr == ""
    assert_refused(ask("--id", "nobody"), "standard input has no query 'nobody'")


def test_the_command_explains_as_the_python_interface_does(ask, bank):
    """JSON is one record a query, all of them; the text is that of the same values."""
    found = explanations(bank, QUERIES, distance="cost-ot", aggregate="knn", num_neighbours=4)
    method = ("--distance", "cost-ot", "--aggregate", "knn", "-k", 4)
    records = [json.loads(line) for line in ask("--json", *method).stdout.splitlines()]
    assert records == [json.loads(json.dumps(one.as_record())) for one in found]
    assert ask(*method).stdout == explanations_text(found[:ON_A_TERMINAL]) + "\n"


def test_text_is_80_columns_of_words_and_symbols(bank):
    """No line is longer, and none ends in spaces; each kind of sentence has its mark and its word."""
    text = explanations_text(explanations(bank, QUERIES[:8]))
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r" $", text, re.MULTILINE)
    for mark in ("= same", "~ reworded", "+ new", "- dropped"):
        assert f"  {mark} " in text
    assert text.count("distance:novelty|") == 1


def test_every_sentence_of_prior_and_draft_is_in_the_text(bank):
    """Nothing is left out: each sentence stands in the text of its query, and so does every distance."""
    for query, one in zip(QUERIES[:4], explanations(bank, QUERIES[:4]), strict=True):
        text = " ".join(explanation_text(one).split())
        chosen = query_from_record(query).candidates[one.selected]
        prior = query_from_record(query).prior
        for report in (prior, chosen):
            for sentence in (*split_sentences(report.findings), *split_sentences(report.impression)):
                assert sentence in text
        assert all(f"{draft.total:.4f}" in text for draft in one.drafts)


def test_another_draft_and_bare_ids(ask):
    """--draft says that it is not the chosen one; --no-bank-text leaves ids; --changes limits them."""
    query = QUERIES[0]
    picked = json.loads(ask("--id", query["id"], "--json").stdout)
    other = picked["runner_up"]
    result = ask("--id", query["id"], "--draft", other, "--no-bank-text", "--changes", 2)
    assert f"explained here: draft {other}, {picked['margin']:.4f} behind the chosen one" in result.stdout
    assert f"{other} runner-up, explained" in result.stdout
    own = {text for report in (query["prior"], *query["candidates"]) for text in sentences_of(report)}
    known = {
        text for record in TRANSITIONS for side in ("prior", "current") for text in sentences_of(record[side])
    }
    shown = {text for text in known - own if text in result.stdout and len(text) > 30}
    assert not {text for text in shown if not any(text in mine for mine in own)}
    assert re.findall(r"^  (\d)\. ", result.stdout, re.MULTILINE) == ["1", "2", "1", "2"]


def sentences_of(report):
    """Return the sentences of a report as it stands in a file."""
    return {text for value in report.values() if isinstance(value, str) for text in split_sentences(value)}


def test_nothing_chosen_is_explained_too(ask):
    """A query without drafts has its reason in words, and exit status 0: that is the explanation."""
    result = ask(queries=[{"id": "a", "prior": "Clear.", "candidates": []}])
    assert result.exit_code == 0
    assert "a: no draft was chosen: there are no drafts to choose from; give at least one" in result.stdout


@pytest.mark.parametrize(
    ("queries", "arguments", "words"),
    [
        ([], (), "holds no queries"),
        ([QUERIES[0]], ("--draft", 9), "it has drafts 0 to 4"),
        ([{"id": "x", "prior": "Clear."}], (), "line 1: no key 'candidates'"),
        ([QUERIES[0]], ("--distance", "novel"), "Did you mean 'novelty'"),
        ([QUERIES[0]], ("--selector", "fuzed"), "unknown selector 'fuzed'"),
        ([QUERIES[0]], ("--bank", "nowhere"), "nowhere"),
    ],
)
def test_bad_input_is_one_sentence(ask, queries, arguments, words):
    """What does not fit is said in one line, with exit status 1."""
    assert_refused(ask(*arguments, queries=queries), words)


def test_a_bad_line_does_not_matter_to_a_query_that_is_named(ask):
    """Only what was asked for has to be readable."""
    result = ask("--id", QUERIES[0]["id"], queries=[{"id": "bad"}, QUERIES[0]])
    assert (result.exit_code, result.stderr) == (0, "")


def test_other_selectors_show_parts(ask):
    """What a selector measured beside its distance is a table for each section, without shares."""
    result = ask("--selector", "two-sided:min", "--id", QUERIES[0]["id"])
    assert result.exit_code == 0, result.output
    assert "Measured beside the findings distance" in result.stdout
    assert "all lines add up" not in result.stdout


def test_the_page_is_the_explorers(ask, tmp_path):
    """It holds every query with all drafts, and as many training changes as were asked for."""
    path = tmp_path / "new" / "page.html"
    result = ask("--html", path, "--changes", 2)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"wrote {path}\n")
    data = data_of(path.read_text(encoding="utf-8"))
    assert data["overview"]["title"] == "Why this draft"
    assert [study["id"] for study in data["studies"]] == [query["id"] for query in QUERIES]
    told = [json.loads(line) for line in ask("--json").stdout.splitlines()]
    for study, query, one in zip(data["studies"], QUERIES, told, strict=True):
        assert (study["selected"], len(study["drafts"])) == (one["selected"], len(query["candidates"]))
        chosen = study["drafts"][study["selected"]]
        for section, found in chosen["nearest"].items():
            no_change = f"no-change:{section}:{study['selected']}" in one["flags"]
            assert len(found) == (0 if no_change else 2)


def test_the_page_keeps_the_text_of_the_bank_to_itself(ask, tmp_path):
    """With --no-bank-text it has the ids of training changes, and no sentence of them."""
    path = tmp_path / "page.html"
    assert ask("--html", path, "--no-bank-text", "--id", QUERIES[0]["id"]).exit_code == 0
    [study] = data_of(path.read_text(encoding="utf-8"))["studies"]
    changes = [one for draft in study["drafts"] for found in draft["nearest"].values() for one in found]
    assert changes
    assert not any(one["prior"] or one["current"] for one in changes)


def test_a_draft_is_not_asked_for_on_a_page(ask, tmp_path):
    """The page shows every draft, so --draft beside it is refused, except for the JSON beside it."""
    path, one = tmp_path / "page.html", ("--id", QUERIES[0]["id"], "--draft", 0)
    refused = ask("--html", path, *one)
    assert (refused.exit_code, path.exists()) == (1, False)
    assert "--draft does not count beside --html" in refused.stderr
    both = ask("--html", path, "--json", *one)
    assert (both.exit_code, json.loads(both.stdout)["draft"]) == (0, 0)


def test_page_and_json_may_be_asked_for_together(ask, tmp_path):
    """The page goes to its file, the records to stdout."""
    result = ask("--html", tmp_path / "page.html", "--json", "--id", QUERIES[0]["id"])
    assert json.loads(result.stdout)["id"] == QUERIES[0]["id"]
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize("selector", ["paper", "two-sided:min"])
def test_hostile_text_stays_text(ask, tmp_path, selector):
    """Markup, terminal controls, bidi signs and lone surrogates in ids and reports are shown, not obeyed."""
    method = ("--selector", selector)
    result = ask(*method, queries=[ODD])
    assert result.exit_code == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e\ud800]", result.stdout)
    assert ask(*method, "--html", tmp_path / "page.html", queries=[ODD]).exit_code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not {"img", "iframe"} & {tag for tag, _ in read(page).elements}
    assert data_of(page)["studies"][0]["id"] == HOSTILE
    assert json.loads(ask(*method, "--json", queries=[ODD]).stdout)["id"] == HOSTILE


def test_flags_are_said_in_words_and_together():
    """Drafts with one trouble share a line; what is not known is passed on as it is."""
    flags = [
        Note("prior-lacks", "impression"),
        Note("draft-lacks", "findings", 1),
        Note("draft-lacks", "findings", 12),
        Note("long-section", "findings"),
    ]
    assert flag_lines([*flags, Note("other", "findings", 2)]) == (
        "the prior has no impression; it is left out",
        "no findings in drafts 1, 12",
        "findings longer than any real one in the prior",
        "other:findings:2",
    )
