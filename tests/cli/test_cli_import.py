"""`tabon import`: a new user's path, messy files, and nothing lost, written or shown that should not be."""

import csv
import io
import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.cli import main
from tabon.encoders import load as loading

CANARY = "Zqxwv"
PAGE = Path(__file__).parents[2] / "docs/guide/own-files.md"
VISITS = [
    {"patient": f"p{patient}", "date": f"2019-0{month}-{10 + patient}",
     "findings": f"{CANARY} \u00e9panchement {patient}.", "impression": f"Effusion in month {month}."}
    for patient in range(1, 7)
    for month in (3, 4, 5)
]  # fmt: skip
DRAFTS = [
    {"patient": visit["patient"], "date": visit["date"], "draft": number,
     "text": f"FINDINGS: {CANARY} effusion {number}. IMPRESSION: Effusion."}
    for visit in VISITS
    if visit["patient"] in {"p1", "p2"} and not visit["date"].startswith("2019-03")
    for number in (1, 2)
]  # fmt: skip


def table(rows, mark=","):
    """Write rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=mark)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def renamed(rows, **names):
    """Give columns other names; None leaves one out."""
    return [{names.get(key, key): value for key, value in row.items() if names.get(key, key)} for row in rows]


def changed(rows, **makers):
    """Change the values of columns."""
    return [{**row, **{key: make(row) for key, make in makers.items()}} for row in rows]


def wide():
    """Return the drafts with a column for each number."""
    rows = {}
    for row in DRAFTS:
        key = {"patient": row["patient"], "date": row["date"]}
        rows.setdefault(tuple(key.values()), key)[f"draft_{row['draft']}"] = row["text"]
    return list(rows.values())


def run(folder, visits=None, drafts=None, options="", names=("visits.csv", "drafts.csv")):
    """Import files of a folder; the texts or bytes are written first."""
    arguments = ["import", str(folder / names[0]), "--out", str(folder / "out"), *shlex.split(options)]
    for name, data in zip(names, (visits, drafts), strict=True):
        if data is not None:
            (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
            arguments += ["--drafts", str(folder / name)] if name == names[1] else []
    result = CliRunner().invoke(main, arguments)
    assert CANARY not in result.output
    assert not isinstance(result.exception, Exception), result.exception
    return result


def lines(path):
    """Read JSON Lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def contents(folder):
    """Return every file of a cohort but the facts, which name columns."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))
    }


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """Return what clean files give."""
    folder = tmp_path_factory.mktemp("clean")
    assert run(folder, table(VISITS), table(DRAFTS)).exit_code == 0
    return contents(folder / "out")


# --- the new user ---------------------------------------------------------------------


def test_from_two_files_to_numbers(tmp_path, monkeypatch):
    """A table of four columns and a file of drafts: import, then the commands that it names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run(tmp_path, table(VISITS), table(DRAFTS)).exit_code == 0
    for command in (
        "bank build out/train/transitions.jsonl --encoder hashing --no-store --out bank.tabon",
        "select out/test/queries.jsonl --bank bank.tabon --no-store --out picks.jsonl",
        "evaluate out/test/queries.jsonl --selections picks.jsonl --metrics rouge --resamples 9 --out r.json",
    ):
        result = CliRunner().invoke(main, shlex.split(command))
        assert result.exit_code == 0, (command, result.output)
    assert [pick["id"] for pick in lines(tmp_path / "picks.jsonl")] == [
        "p1-2019-04-11", "p1-2019-05-11", "p2-2019-04-12", "p2-2019-05-12",
    ]  # fmt: skip
    assert json.loads((tmp_path / "r.json").read_text())["runs"][0]["drafts"] == 8


def test_what_is_written(tmp_path):
    """Patients with drafts are the test split; a query has all that an evaluation needs."""
    result = run(tmp_path, table(VISITS), table(DRAFTS))
    out = tmp_path / "out"
    train, test = (lines(out / split / "transitions.jsonl") for split in ("train", "test"))
    assert {row["patient"] for row in train} == {"p3", "p4", "p5", "p6"}
    assert {row["patient"] for row in test} == {"p1", "p2"}
    first = lines(out / "test/queries.jsonl")[0]
    assert first | {"prior": 0, "candidates": 0, "reference": 0} == {
        "id": "p1-2019-04-11", "patient": "p1", "prior": 0, "candidates": 0, "reference": 0, "expected": 2,
        "prior_date": "2019-03-11", "current_date": "2019-04-11",
    }  # fmt: skip
    assert first["prior"]["impression"] == "Effusion in month 3."
    assert first["reference"]["impression"] == "Effusion in month 4."
    assert [draft["sample"] for draft in first["candidates"]] == ["1", "2"]
    facts, audit = (json.loads((out / name).read_text()) for name in ("cohort.json", "audit.json"))
    assert (facts["dataset"], facts["egress"], facts["rules"]["views"]) == ("imported", "none", "any")
    assert (audit["views"], facts["queries"], audit["splits"]["train"]["transitions"]) == (
        "any",
        {"test": 4},
        8,
    )
    assert "  date" in result.output
    assert f"next: tabon compare {out}/test/queries.jsonl --bank {out}/train/transi" in result.output


# --- messy files ----------------------------------------------------------------------

OTHER_NAMES = {
    "patient": "Subject ID",
    "date": "Exam_Date",
    "findings": "FINDINGS",
    "impression": "Conclusion",
}
DOTS = {"date": lambda row: "{2}.{1}.{0}".format(*row["date"].split("-"))}
SLASHES = {"date": lambda row: "{1}/{2}/{0}".format(*(str(int(part)) for part in row["date"].split("-")))}
WHOLE = [
    {"patient": row["patient"], "date": row["date"],
     "report": f"FINDINGS: {row['findings']}\nIMPRESSION: {row['impression']}"}
    for row in VISITS
]  # fmt: skip
EXCEL = {  # dates with midnight, ids that keep their zeros
    "date": lambda row: "{2}.{1}.{0} 00:00:00".format(*row["date"].split("-")),
    "patient": lambda row: f'="{row["patient"]}"',
}
TWICE = [{**row, "impression (1)": "Addendum."} for row in VISITS]  # a column's name twice, mended below
SAME = {  # files that mean what the clean ones mean
    "other column names": (table(renamed(VISITS, **OTHER_NAMES)), table(DRAFTS), ""),
    "columns by a map": (
        table(renamed(VISITS, patient="Nr", date="Datum")),
        table(DRAFTS),
        "--columns patient=Nr,date=Datum",
    ),
    "dates as 13.04.2019": (table(changed(VISITS, **DOTS)), table(changed(DRAFTS, **DOTS)), ""),
    "dates as 4/13/2019": (table(changed(VISITS, **SLASHES)), table(DRAFTS), ""),
    "semicolons": (table(VISITS, ";"), table(DRAFTS, ";"), ""),
    "byte order mark": (table(VISITS).encode("utf-8-sig"), table(DRAFTS).encode("utf-16"), ""),
    "Latin-1": (table(VISITS).encode("latin-1"), table(DRAFTS), ""),
    "whole reports": (table(WHOLE), table(DRAFTS), ""),
    "views that say nothing": (table([{**row, "view": "chest"} for row in VISITS]), table(DRAFTS), ""),
    "one view": (table([{**row, "view": "AP"} for row in VISITS]), table(DRAFTS), ""),
    "wide drafts": (table(VISITS), table(wide()), ""),
    "sorted otherwise": (table(VISITS[::-1]), table(DRAFTS[::-1]), ""),
    "as Excel saves": (
        ("sep=;\n" + table(changed(VISITS, **EXCEL), ";") + ";;;\n;;;\n").replace("\n", "\r\n"),
        table(changed(DRAFTS, **EXCEL)),
        "",
    ),
    "blank columns at the end": (
        table(VISITS, ";").replace("\r\n", ";;\r\n"),
        table(DRAFTS).replace("\r\n", ", \r\n"),
        "",
    ),
    "a column twice, one named": (
        table(TWICE).replace(" (1)", "", 1),
        table(DRAFTS),
        "--columns impression=impression",
    ),
    "an index column": (table([{"": n, **row} for n, row in enumerate(VISITS)]), table(DRAFTS), ""),
}


@pytest.mark.parametrize("case", SAME)
def test_messy_files_that_are_understood(tmp_path, clean, case):
    """Other names, dates, encodings and forms give the clean files' cohort, byte for byte."""
    visits, drafts, options = SAME[case]
    result = run(tmp_path, visits, drafts, options)
    assert result.exit_code == 0, result.output
    found = contents(tmp_path / "out")
    if case == "one view":
        found = {name: data.replace(b'"view": "AP"', b'"view": null') for name, data in found.items()}
    assert found == clean


EXTRA = {"patient": "p9", "date": "2019-04-11", "draft": 1, "text": CANARY}
LEFT_OUT = {  # files with rows that are left out, by name
    "a visit twice": (table([*VISITS, VISITS[0]]), table(DRAFTS), [("visits.csv", 20, "duplicate-row")]),
    "a draft twice": (table(VISITS), table([*DRAFTS, DRAFTS[0]]), [("drafts.csv", 10, "duplicate-draft")]),
    "a draft for an unknown visit": (
        table(VISITS),
        table([*DRAFTS, EXTRA]),
        [("drafts.csv", 10, "draft-for-unknown-visit")],
    ),
    "a draft for a first visit": (
        table(VISITS),
        table([*DRAFTS, {**EXTRA, "patient": "p1", "date": "2019-03-11"}]),
        [("drafts.csv", 10, "draft-for-first-visit")],
    ),
    "a draft without text": (
        table(VISITS),
        table([*DRAFTS, {**EXTRA, "text": ""}]),
        [("drafts.csv", 10, "draft-without-text")],
    ),
    "a date that is none": (
        table([*VISITS, {**VISITS[0], "date": CANARY}]),
        table(DRAFTS),
        [("visits.csv", 20, "bad-date")],
    ),
    "a row with a comma too many": (
        table(VISITS) + f"p1,2019-09-09,{CANARY},b,c\n",
        table(DRAFTS),
        [("visits.csv", 20, "wrong-field-count")],
    ),
    "a patient who came once": (
        table([*VISITS, {**VISITS[0], "patient": "p9"}]),
        table(DRAFTS),
        [("visits.csv", 20, "fewer-than-two-visits")],
    ),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_rows_that_are_left_out_are_named(tmp_path, clean, case):
    """The rest is as the clean files' cohort; the row is in excluded.jsonl and on the screen."""
    visits, drafts, named = LEFT_OUT[case]
    result = run(tmp_path, visits, drafts)
    assert result.exit_code == 0, result.output
    found = contents(tmp_path / "out")
    excluded = [json.loads(line) for line in found.pop("excluded.jsonl").splitlines()]
    assert [(row["source"]["file"], row["source"]["line"], row["reason"]) for row in excluded] == named
    assert all(f"{file}:{line} {reason}" in result.output for file, line, reason in named)
    assert found == {name: data for name, data in clean.items() if name != "excluded.jsonl"}


EARLY = {"date": lambda row: row["date"].replace("-1", "-0")}  # all days below 13
OPEN = changed(changed(VISITS, **EARLY), **SLASHES)
REFUSED = {  # files that leave a doubt: the message
    "dates as 3/4/2019": (
        table(OPEN),
        None,
        "",
        r"see visits.csv line 2\); say --day-first or --month-first",
    ),
    "dates of two orders": (
        table([*changed(VISITS, **SLASHES), {**VISITS[0], "date": "13/4/2019"}]),
        None,
        "",
        "the day comes first in visits.csv line 20 and the month in visits.csv line 8",
    ),
    "no dates": (
        table(renamed(VISITS, date=None)),
        None,
        "",
        "no column for date; its columns are patient, findings",
    ),
    "unknown names": (table(renamed(VISITS, patient="Nr")), None, "", "--columns patient=NAME"),
    "abbreviated names": (
        table(renamed(VISITS, patient="Pat.-Nr.")),
        None,
        "",
        "its columns are Pat.-Nr., date, findings, impression; name it with --columns patient=NAME",
    ),
    "two patients' columns": (
        table([{**row, "MRN": 1, "pid": 2} for row in renamed(VISITS, patient=None)]),
        None,
        "",
        r"several columns for patient \(MRN, pid\)",
    ),
    "a column twice": (
        table(TWICE).replace(" (1)", "", 1),
        None,
        "",
        r"several columns for impression \(impression, impression \(2\)\); name one with --columns",
    ),
    "a title above the names": (
        "Export of 2019\n" + table(VISITS),
        None,
        "",
        "Export of 2019 alone .if a title stands above the line of names, delete it",
    ),
    "rounded ids": (
        table(changed(VISITS, patient=lambda row: f"1.23E+1{row['patient'][1]}")),
        None,
        "",
        "visits.csv line 2: the patient id is a rounded number",
    ),
    "years of two digits": (
        table(changed(VISITS, date=lambda row: row["date"][2:].replace("-", "."))),
        None,
        "",
        "with all four digits of the year",
    ),
    "no names": ("\n".join(table(VISITS).splitlines()[1:]), None, "", "add a line of names"),
    "cut off": (table(VISITS)[:-40], None, "", "visits.csv line 19"),
    "a quote left open": (
        table(VISITS) + f'p1,2019-09-09,"{CANARY}',
        None,
        "",
        "line 20: a quote is not closed",
    ),
    "other ids": (
        table(VISITS),
        table(changed(DRAFTS, patient=lambda row: row["patient"].upper())),
        "",
        "drafts are for 'P1 on 2019-04-11', .* visits are 'p1-2019-03-11'",
    ),
    "drafts of first visits": (
        table(VISITS),
        table(changed(DRAFTS, date=lambda _: "2019-03-11")[:2]),
        "",
        r"can be a query \(draft-for-first-visit: 2\)",
    ),
    "two texts for a draft": (
        table(VISITS),
        table([*DRAFTS, {**DRAFTS[0], "text": "Other."}]),
        "",
        "drafts.csv line 2 and line 10 have different texts for draft 1",
    ),
    "no second visit": (
        table(VISITS[::3]),
        None,
        "",
        r"fewer-than-two-visits: 6\); a transition needs two visits",
    ),
    "no dates that are dates": (
        table(changed(VISITS, date=lambda _: "19")),
        None,
        "",
        r"no visit \(bad-date: 18\); write dates as 2019",
    ),
    "a patient in two splits": (
        table([{**row, "split": ("train", "test")[n % 2]} for n, row in enumerate(VISITS)]),
        None,
        "",
        "patient 'p1' is in the splits test, train",
    ),
    "a misspelt role": (table(VISITS), None, "--columns finding=x", "Did you mean 'findings'"),
    "another encoding": (table(VISITS), None, "--encoding utf-99", "no encoding"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_messy_files_that_are_refused(tmp_path, case):
    """One sentence with the row and what to do, exit status 1, and no folder."""
    visits, drafts, options, message = REFUSED[case]
    result = run(tmp_path, visits, drafts, options)
    assert result.exit_code == 1, result.output
    assert re.search(message, result.output), result.output
    assert result.output.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_option_decides_what_dates_leave_open(tmp_path):
    """With --day-first 3/4/2019 is in April, with --month-first in March."""
    for option, day in (("--day-first", "2019-01-04"), ("--month-first", "2019-04-01")):
        result = run(tmp_path, table(OPEN), None, f"{option} --shares 1,0,0")
        assert result.exit_code == 0, result.output
        assert lines(tmp_path / "out/train/transitions.jsonl")[0]["current_date"] == day


@pytest.mark.parametrize("options", ["--shares 1,0,0", "--day-first --sections none", "--drafts nothing.csv"])
def test_usage(tmp_path, options):
    """Options that cannot be followed are usage errors."""
    assert run(tmp_path, table(VISITS), table(DRAFTS), options).exit_code == 2


def test_study_ids_join_drafts(tmp_path):
    """By the study's id, with the patient's if several patients have a study of one name."""
    visits = [{**row, "visit": row["date"][5:7]} for row in VISITS]
    drafts = [{"patient": "p1", "visit": "04", "text": "Clear."}]
    assert run(tmp_path, table(visits), table(drafts)).exit_code == 0
    assert [query["id"] for query in lines(tmp_path / "out/test/queries.jsonl")] == ["p1-04"]
    unique = changed(visits, visit=lambda row: row["patient"] + row["visit"])
    assert run(tmp_path, table(unique), table([{"id": "p104", "text": "Clear."}])).exit_code == 0
    assert [query["id"] for query in lines(tmp_path / "out/test/queries.jsonl")] == ["p104"]


def test_two_visits_of_a_day_need_a_time(tmp_path):
    """A draft that fits two visits is refused with its line; with a time it is joined."""
    visits = [{**row, "time": "09:00"} for row in VISITS]
    visits += [{**row, "time": "17:00"} for row in VISITS if row["date"] == "2019-04-11"]
    result = run(tmp_path, table(visits), table(DRAFTS))
    assert result.exit_code == 1
    assert "drafts.csv 2: 2 visits are of 'p1 on 2019-04-11'; add a study id or a time" in result.output
    assert run(tmp_path, table(visits), table([{**row, "time": "17:00"} for row in DRAFTS])).exit_code == 0
    ids = [query["id"] for query in lines(tmp_path / "out/test/queries.jsonl")]
    assert ids[:2] == ["p1-2019-04-11T17:00:00", "p1-2019-05-11T09:00:00"]


def test_given_splits_are_kept(tmp_path):
    """Drafts of a patient of the training split are left out; those of valid and test have a file each."""
    split = {"p1": "test", "p2": "val"}
    visits = [{**row, "split": split.get(row["patient"], "train")} for row in VISITS]
    extra = [{**EXTRA, "patient": "p3", "date": "2019-04-13"}]
    assert run(tmp_path, table(visits), table(DRAFTS + extra)).exit_code == 0
    found = {name: len(lines(tmp_path / "out" / name / "queries.jsonl")) for name in ("valid", "test")}
    assert found == {"valid": 2, "test": 2}
    assert [row["reason"] for row in lines(tmp_path / "out/excluded.jsonl")] == ["draft-for-training-visit"]


def test_without_drafts_splits_are_drawn(tmp_path):
    """Without drafts there are no queries, and those of an older import go."""
    run(tmp_path, table(VISITS), table(DRAFTS))
    result = run(tmp_path, table(VISITS), None, "--shares 0.5,0.25,0.25 --seed 3")
    assert "drawn by patient: (0.5, 0.25, 0.25), seed 3" in result.output
    assert not (tmp_path / "out/test/queries.jsonl").exists()
    assert f"next: tabon bank build {tmp_path}/out/train/transitions.jsonl" in result.output


def test_a_training_split_without_patients_is_noted(tmp_path):
    """If every patient has drafts there is no bank to build, and the user is warned."""
    result = run(tmp_path, table(VISITS[:6]), table(DRAFTS))
    assert result.exit_code == 0
    assert "note: the training split is empty" in result.output


def test_drafts_that_are_the_report_are_noted(tmp_path):
    """What was really written, taken for drafts by a column's name, is counted, and the user is warned."""
    copies = [
        {"patient": row["patient"], "date": row["date"],
         "report": f"FINDINGS: {row['findings']}\nIMPRESSION: {row['impression']} "}
        for row in VISITS
        if row["patient"] == "p1"
    ]  # fmt: skip
    result = run(tmp_path, table(VISITS), table(copies))
    assert "drafts that are word for word the report: 2 of 2" in result.stdout
    assert "note: most drafts are word for word what was really written; check which column" in result.stderr
    result = run(tmp_path, table(VISITS), table(DRAFTS))
    assert "drafts that are word for word the report: 0 of 8" in result.stdout
    assert "note" not in result.stderr


def test_a_dry_run_writes_nothing_and_says_the_same(tmp_path):
    """Neither the folder nor anything in it; the table is the real one's."""
    files = table([*VISITS, VISITS[0]]), table(DRAFTS)
    dry = run(tmp_path, *files, "--dry-run")
    assert (dry.exit_code, (tmp_path / "out").exists()) == (0, False)
    assert {path.name for path in tmp_path.iterdir()} == {"visits.csv", "drafts.csv"}
    assert run(tmp_path, *files).stdout == dry.stdout
    assert run(tmp_path, *files, "--dry-run --json").exit_code == 0


def test_json_says_everything(tmp_path):
    """Guesses, the audit and every row that was left out."""
    found = json.loads(run(tmp_path, table([*VISITS, VISITS[0]]), table(DRAFTS), "--json").stdout)
    assert {"what": "splits", "found": "patients with drafts are test, all others train"} in found["guesses"]
    assert found["audit"] == json.loads((tmp_path / "out/audit.json").read_text())
    assert [row["reason"] for row in found["excluded"]] == ["duplicate-row"]


def test_every_row_is_written_or_named(tmp_path):
    """Visits in chains and rows in excluded.jsonl are all rows, also beyond those that are shown."""
    once = [{**VISITS[0], "patient": f"once{number}"} for number in range(15)]
    result = run(tmp_path, table(VISITS + once))
    excluded = lines(tmp_path / "out/excluded.jsonl")
    audit = json.loads((tmp_path / "out/audit.json").read_text())
    kept = sum(counts["visits"] for counts in audit["splits"].values())
    assert (kept, len(excluded)) == (len(VISITS), len(once))
    assert "and 5 more, all in excluded.jsonl" in result.output


@settings(max_examples=10)
@given(st.randoms(use_true_random=False))
def test_shuffled_rows_give_the_same_cohort(clean, tmp_path_factory, random):
    """However both files are sorted, every transition and every query is the same."""
    folder = tmp_path_factory.mktemp("shuffled")
    visits, drafts = (table(random.sample(rows, len(rows))) for rows in (VISITS, DRAFTS))
    assert run(folder, visits, drafts).exit_code == 0
    assert contents(folder / "out") == clean


# --- the page -------------------------------------------------------------------------


def test_the_page_s_commands_run(tmp_path, monkeypatch):
    """The files that docs/guide/own-files.md shows are written, and its commands run, as printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(loading, "ENCODERS", {**loading.ENCODERS, "minilm": loading.ENCODERS["hashing"]})
    text = PAGE.read_text()
    for name, shown in re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        Path(name).write_text(shown)
    commands = re.findall(r"^\$ tabon (.*)$", text, flags=re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        result = CliRunner().invoke(main, shlex.split(command))
        assert result.exit_code == 0, (command, result.output)
