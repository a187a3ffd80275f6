"""Common mistakes: each is answered in at most three lines that say what is wrong and show no report."""

import gzip
import json
import shlex
from dataclasses import replace
from difflib import get_close_matches

import pytest

from commands import tabon
from draft_records import KEY, line
from tabon import Selector, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.errors import closest
from tabon.text.records import query_from_record, read_query_lines

SETTINGS = SimulationSettings(patients=60)
CANARY = "Quokka"  # stands in every report of every file
BANK = "--bank bank.tabon"
SELECT = f"select queries.jsonl {BANK}"
EVALUATE = "evaluate queries.jsonl --selections chosen.jsonl --out new"
MISTAKES = [  # the command, its exit status, a part of what it says
    # a file of another kind
    (f"select transitions.jsonl {BANK}", 1, "transitions.jsonl looks like transitions, not queries; "),
    ("select queries.jsonl --bank transitions.jsonl", 1, "build a bank of them with `tabon bank build`"),
    ("select bank.tabon --bank queries.jsonl", 1, "if the two were swapped, write QUERIES --bank BANK"),
    (f"select bank.tabon {BANK}", 1, "bank.tabon looks like a bank, not queries; "),
    (
        "select queries.jsonl --bank .",
        1,
        ". is a folder, not a bank; give the file that `tabon bank build` made",
    ),
    ("select queries.jsonl --bank missing.tabon", 1, "there is no bank at missing.tabon; make one with"),
    (f"select chosen.jsonl {BANK}", 1, "chosen.jsonl looks like selections, not queries; "),
    (
        f"select journal.jsonl {BANK}",
        1,
        "a journal of drafts, not queries; join it with its cohort by `tabon drafts`",
    ),
    (
        f"select visits.csv {BANK}",
        1,
        "looks like a table (CSV), not queries; bring visits and drafts in with `tabon import`",
    ),
    (
        f"select pretty.json {BANK}",
        1,
        "looks like JSON over several lines, not queries; write one object a line",
    ),
    (f"select list.json {BANK}", 1, "looks like a JSON list, not queries; write one object a line"),
    (f"select queries.jsonl.gz {BANK}", 1, "looks like a gzip file, not queries; unpack it first"),
    (f"select empty.jsonl {BANK}", 1, "the file holds no queries; write one JSON object a line"),
    (f"select missing.jsonl {BANK}", 2, "'missing.jsonl': No such file or directory"),
    (f"select . {BANK}", 2, "'.': Is a directory"),
    ("bank build queries.jsonl --out new", 1, "queries.jsonl looks like queries, not transitions; "),
    (
        "bank build visits.csv --out new",
        1,
        "looks like a table (CSV), not transitions; bring visits and drafts in with",
    ),
    ("bank info queries.jsonl", 1, "queries.jsonl looks like queries, not a bank; "),
    (
        f"report transitions.jsonl {BANK} --html new",
        1,
        "transitions.jsonl looks like transitions, not queries; ",
    ),
    (f"explain transitions.jsonl {BANK}", 1, "transitions.jsonl looks like transitions, not queries; "),
    (
        "flags queries.jsonl --selections queries.jsonl",
        1,
        "queries.jsonl looks like queries, not selections; ",
    ),
    (
        "evaluate queries.jsonl --selections queries.jsonl --metrics rouge --out new",
        1,
        "not selections; give what",
    ),
    (
        "evaluate chosen.jsonl --selections queries.jsonl --metrics rouge --out new",
        1,
        "selections, not queries; ",
    ),
    (
        "compare queries.jsonl --bank queries.jsonl --selector fused --out new",
        1,
        "looks like queries, not transitions",
    ),
    (
        "drafts queries.jsonl --cohort cohort --out new",
        1,
        "looks like queries, not a journal of drafts; give what",
    ),
    ("import queries.jsonl --out new", 1, "queries.jsonl looks like queries, not visits; "),
    ("table queries.jsonl", 1, "queries.jsonl is not a whole results file (no JSON); evaluate again"),
    # a misspelt name
    (f"selct queries.jsonl {BANK}", 2, "No such command 'selct'. Did you mean 'select'?"),
    ("bank inf bank.tabon", 2, "No such command 'inf'. Did you mean 'info'?"),
    ("select queries.jsonl --bnak bank.tabon", 2, "No such option '--bnak'. Did you mean '--bank'?"),
    (f"compare queries.jsonl {BANK} --selector fused,paper --out new", 2, "give each its own --selector"),
    (
        "compare queries.jsonl --bank missing.jsonl --selector fused --out new",
        1,
        "missing.jsonl cannot be read (No such file or directory); check its name",
    ),
    ("import visits.csv --drafts visits.csv --out new", 2, "visits and drafts are one file"),
    (f"{SELECT} --selector fusd", 1, "unknown selector 'fusd'. Did you mean 'fused'?"),
    (f"{SELECT} --selector consensus:rogue-l", 1, "Did you mean 'rouge-l-f'?"),
    (f"{SELECT} --distance noveltey", 1, "unknown distance 'noveltey'. Did you mean 'novelty'?"),
    (f"{SELECT} --aggregate kn", 1, "unknown aggregation 'kn'. Did you mean 'knn'?"),
    (f"{SELECT} --encoder hashin", 1, "unknown encoder 'hashin'. Did you mean 'hashing'?"),
    (f"{EVALUATE} --metrics rogue", 1, "unknown metric 'rogue'. Did you mean 'rouge'?"),
    (f"{EVALUATE} --metrics rouge --show ROUGE-L", 1, "unknown score 'ROUGE-L'. Did you mean 'rouge-l-f'?"),
    (
        f"{EVALUATE} --metrics rouge --headline rouge-f",
        1,
        "unknown score 'rouge-f'. Did you mean 'rouge-1-f'?",
    ),
    ("risk queries.jsonl --selections chosen.jsonl --section finding", 2, "Did you mean 'findings'?"),
    ("cohort mimic . --out new", 1, "unknown data set 'mimic'. Did you mean 'mimic-cxr'?"),
    (
        f"controls queries.jsonl {BANK} --condition prio --out new",
        1,
        "unknown condition 'prio'. Did you mean 'prior'?",
    ),
    ("generate cohort --model gemni:x --out new", 1, "Did you mean 'gemini'?"),
    ("table results.json --format latx", 2, "Did you mean 'latex'?"),
    # an option that is missing, has no meaning here, or an impossible value
    ("select queries.jsonl", 2, "Missing option '--bank'."),
    (f"report queries.jsonl {BANK}", 2, "Missing option '--html'."),
    (
        f"{SELECT} --selector fused --distance novelty",
        1,
        "--distance does not count for the selector fused; ",
    ),
    (f"{SELECT} -k 0", 1, "k = 0 neighbours were asked for; give 1 or more"),
    (f"{SELECT} -k many", 2, "'many' is not a valid integer."),
    (f"{SELECT} --abstain 2", 1, "the abstention rate is 2.0; give a number from 0 to below 1"),
    (f"{SELECT} --out cohort", 2, "File 'cohort' is a directory."),
    (
        f"{SELECT} --calibration bank.tabon",
        1,
        "bank.tabon is not a whole calibration (no JSON); make it again",
    ),
    (
        f"compare queries.jsonl {BANK} --selector mbr --selector consensus --out new",
        1,
        "a selector is named twice",
    ),
    (f"explain queries.jsonl {BANK} --id nope", 1, "queries.jsonl has no query 'nope'; check --id"),
    (f"explain queries.jsonl {BANK} --draft 99", 1, "was asked for; it has drafts 0 to 4"),
    (
        f"fit queries.jsonl {BANK} --selector paper --out new",
        1,
        "unknown fitted selector 'paper'. Known: fused, learnt",
    ),
    ("table results.json --only nope", 1, "no table's label holds 'nope'; there are tab:avg-"),
    ("cohort generic visits.csv --out new", 1, "the data set 'generic' needs --columns, such as patient=PID"),
    ("simulate --out new -n 0", 2, "'-n' / '--num-drafts': 0 is not in the range x>=1."),
    (f"serve {BANK} -n 3", 1, "--num-drafts belongs to a gateway; give --upstream too"),
    (
        f"serve {BANK} --upstream-max-drafts 16",
        1,
        "--upstream-max-drafts belongs to a gateway; give --upstream too",
    ),
    (f"serve {BANK} --upstream-timeout 9", 1, "--upstream-timeout belongs to a gateway; give --upstream too"),
    (f"serve {BANK} --prune-points 16,32", 1, "--prune-points belongs to a gateway; give --upstream too"),
    (
        f"serve {BANK} --upstream http://127.0.0.1:1/v1 --prune-points 8",
        1,
        "does not count without --prune; ",
    ),
    (f"serve {BANK} --score bleu-4", 1, "--score belongs to the page; give --queries too"),
    # what is in a file
    (f"select both.jsonl {BANK}", 1, "'candidates' and 'drafts' are two names of one key; give one of them"),
    (f"select keyless.jsonl {BANK}", 1, "line 1, query 'x': no key 'candidates'; add it"),
    (f"select text.jsonl {BANK}", 1, "line 1, query 'x': 'drafts' is a string; give a list of drafts"),
    (
        "evaluate bare.jsonl --selections chosen.jsonl --metrics rouge --out new",
        1,
        "no query with a 'reference'",
    ),
    (
        "evaluate others.jsonl --selections chosen.jsonl --metrics rouge --out new",
        1,
        "answers none of the queries",
    ),
    (
        "import years.csv --out new",
        1,
        "with all four digits of the year",
    ),
    (
        "import nopatient.csv --out new",
        1,
        "nopatient.csv has no column for patient; its columns are date, report; ",
    ),
    ("import visits.csv --drafts queries.jsonl --out new", 1, "no draft joins a visit: "),
    (
        "generate . --model command:x --command cat --out new",
        1,
        "make it with `tabon cohort` or `tabon simulate`",
    ),
]


def marked(value):
    """Return a record with the canary in every report."""
    if isinstance(value, dict):
        return {key: marked(part) for key, part in value.items()}
    if isinstance(value, list):
        return [marked(part) for part in value]
    return f"{value} {CANARY} sign." if isinstance(value, str) and value.endswith(".") else value


QUERIES = [marked(query) for query in simulate_queries(SETTINGS, "test")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every file that the commands name."""
    place = tmp_path_factory.mktemp("mistakes")
    transitions = [marked(record) for record in simulate_transitions(SETTINGS, "train")]
    records = {
        "queries.jsonl": QUERIES,
        "transitions.jsonl": transitions,
        "both.jsonl": [{**QUERIES[0], "drafts": []}],
        "keyless.jsonl": [{"id": "x", "prior": CANARY}],
        "text.jsonl": [{"id": "x", "prior": CANARY, "drafts": CANARY}],
        "bare.jsonl": [{**query, "reference": None} for query in QUERIES],
        "others.jsonl": [{**query, "id": f"other {query['id']}"} for query in QUERIES],
        "empty.jsonl": [],
    }
    for name, found in records.items():
        (place / name).write_text("".join(json.dumps(record) + "\n" for record in found))
    (place / "queries.jsonl.gz").write_bytes(gzip.compress((place / "queries.jsonl").read_bytes(), mtime=0))
    (place / "pretty.json").write_text(json.dumps(QUERIES[0], indent=2))
    (place / "list.json").write_text(json.dumps(QUERIES))
    (place / "journal.jsonl").write_bytes(line(KEY, text=CANARY))
    rows = f"p1,2019-01-02,{CANARY} sign.\np1,2019-02-02,{CANARY} sign.\n"
    (place / "visits.csv").write_text(f"patient,date,report\n{rows}")
    (place / "years.csv").write_text(
        f"patient,date,report\n{rows}".replace("2019-01-02", "3/4/19").replace("2019-02-02", "5/6/19")
    )
    (place / "nopatient.csv").write_text(f"date,report\n2019-01-02,{CANARY} sign.\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        for command in (
            "simulate --patients 40 --out cohort",
            "bank build transitions.jsonl --encoder hashing --out bank.tabon",
            f"{SELECT} --out chosen.jsonl",
            f"{EVALUATE.replace('new', 'results.json')} --metrics rouge --resamples 50",
        ):
            done = tabon(*shlex.split(command))
            assert done.exit_code == 0, (command, done.output)
    return place


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """Go to the folder, and check that a refused command leaves no file there."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = sorted(folder.rglob("*"))
    yield folder
    assert sorted(folder.rglob("*")) == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("command", "status", "words"), MISTAKES, ids=[mistake[0] for mistake in MISTAKES])
def test_a_mistake_is_answered(command, status, words):
    """The status says that it failed, at most three lines say why, and no report is quoted."""
    done = tabon(*shlex.split(command))
    said = [text for text in done.stderr.splitlines() if text]
    assert (done.exit_code, done.stdout) == (status, "")
    assert words in said[-1] or words in said[0]
    assert len(said) <= 3
    assert CANARY.lower() not in done.output.lower()


def test_the_table_is_long_enough():
    """There are at least forty mistakes, each once."""
    assert len({command for command, *_ in MISTAKES}) == len(MISTAKES) >= 40


@pytest.mark.usefixtures("here")
def test_a_flood_of_equal_messages_is_counted():
    """Of many queries with one reason ten are named; the rest is a number; another reason is said."""
    lines = [json.dumps({"id": f"q{number}", "prior": "Clear."}) for number in range(40)]
    lines += [json.dumps({**QUERIES[0], "id": "odd", "drafts": []}), json.dumps(QUERIES[1])]
    done = tabon("select", "-", "--bank", "bank.tabon", stdin="\n".join(lines).encode())
    said = done.stderr.splitlines()
    assert [json.loads(text)["id"] for text in done.stdout.splitlines()] == [QUERIES[1]["id"]]
    assert [text.partition(":")[0] for text in said[:10]] == [
        f"line {n + 1}, query 'q{n}'" for n in range(10)
    ]
    assert "'odd'" in said[10]
    assert said[11:] == [
        "and 30 more queries: no key 'candidates'; add it",
        "Error: 41 of the queries in standard input were not answered; see the lines above",
    ]


def test_drafts_is_another_name_of_candidates():
    """A query with either key is the same query, and neither is passed through."""
    other = {("drafts" if key == "candidates" else key): value for key, value in QUERIES[0].items()}
    one, two = (query_from_record(record) for record in (QUERIES[0], other))
    assert one == two
    assert "drafts" not in two.facts
    [read] = read_query_lines([json.dumps(other).encode()])
    assert replace(read) == one


@pytest.mark.parametrize(
    ("alias", "name"),
    [("mbr", "consensus"), ("mbr:rouge-l-f", "consensus:rouge-l-f"), ("sdr", "report-space")],
)
def test_an_alias_is_the_selector(here, alias, name):
    """Records and signatures carry the selector's own name, on the command line and in Python."""
    found = [
        tabon("select", "queries.jsonl", "--bank", "bank.tabon", "--selector", word).stdout
        for word in (alias, name)
    ]
    assert found[0] == found[1] != ""
    assert f"selector:{name.partition(':')[0]}" in found[0]
    bank = TransitionBank.load(here / "bank.tabon")
    assert Selector(bank, alias).signature == Selector(bank, name).signature


def test_ties_between_close_names_go_to_the_first():
    """`closest` names what difflib would, but prefers the first of equals."""
    known = ["rouge-l-p", "rouge-l-f", "rouge-l-r", "bleu-4"]
    assert closest("rouge-l", known) == "rouge-l-f"
    assert closest("bleu4", known) == get_close_matches("bleu4", known, n=1)[0]
    assert closest("entirely other", known) is None
    assert closest("x", []) is None
