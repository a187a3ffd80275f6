"""Cohort folders: files, audit, egress, all or nothing, memory, and the commands that make them."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from memory import peak
from tabon.cli import main
from tabon.data.cohort.build import PAPER, build_cohort, write_simulated
from tabon.data.cohort.link import Rules
from tabon.data.cohort.visits import DataSet, Excluded, Source
from tabon.data.simulate import SimulationSettings
from tabon.errors import BadInputError
from tabon.text.records import read_query_lines, read_transitions
from visits import REPORTS, visit


def patients(count, *, visits=3, split=lambda _: "train"):
    """Rows of some patients, dealt visit by visit so that no patient's rows are adjacent."""
    for day in range(1, visits + 1):
        for number in range(count):
            patient = f"p{number}"
            yield visit(
                f"{patient}-{day}",
                10 * day,
                report=REPORTS[(number + day) % 2],
                split=split(number),
                patient=patient,
            )


def dataset(rows, **changes):
    """A data set that yields given rows."""
    settings = {"name": "mine", "read": lambda _: iter(rows), "egress": "none", "order": "dates", **changes}
    return DataSet(**settings)


SPLIT = lambda number: ("train", "valid", "test")[number % 3]  # noqa: E731


def test_a_cohort_folder_has_all_its_parts(tmp_path):
    """Transitions per split, exclusions, rules with the egress policy, and the audit."""
    rows = [*patients(6, split=SPLIT), Excluded(Source("rows.csv", 7), "bad-date", "s")]
    audit = build_cohort(dataset(rows), tmp_path, tmp_path / "out", Rules())
    for split in ("train", "valid", "test"):
        with (tmp_path / "out" / split / "transitions.jsonl").open("rb") as file:
            transitions = list(read_transitions(file, name=split))
        counts = audit["splits"][split]
        assert len(transitions) == counts["transitions"] == counts["visits"] - counts["patients"] == 4
        assert counts["paper"]["transitions"] == PAPER[split][2]
        assert counts["days_between_visits"]["median"] == 10
    assert json.loads((tmp_path / "out" / "audit.json").read_text()) == audit
    assert json.loads((tmp_path / "out" / "cohort.json").read_text())["egress"] == "none"
    excluded = list(map(json.loads, (tmp_path / "out" / "excluded.jsonl").read_text().splitlines()))
    assert excluded == [{"source": {"file": "rows.csv", "line": 7}, "reason": "bad-date", "study": "s"}]
    assert audit["excluded"] == {"bad-date": 1}


def test_visits_minus_patients_is_transitions(tmp_path):
    """The identity that the paper's table obeys holds for any cohort."""
    rows = [one for count in (2, 3, 5) for one in patients(7, visits=count, split=SPLIT)]
    rows = [replace(one, patient=f"{one.patient}-{number % 4}") for number, one in enumerate(rows)]
    rows = [replace(one, split="train") for one in rows]
    audit = build_cohort(dataset(rows), tmp_path, tmp_path / "out", Rules())
    for counts in audit["splits"].values():
        assert counts["visits"] - counts["patients"] == counts["transitions"]


def test_identical_pairs_and_overlap_are_counted(tmp_path):
    """Word-for-word repeats, and test reports that stand in the training split too."""
    rows = [
        visit(f"{p}{day}", day, patient=p, split=split)
        for p, split in (("a", "train"), ("b", "test"))
        for day in (1, 2)
    ]
    audit = build_cohort(dataset(rows), tmp_path, tmp_path / "out", Rules())
    assert audit["splits"]["train"]["identical_share"] == 1.0
    assert audit["test_references_also_in_the_bank"] == {"count": 1, "of": 1, "share": 1.0}


def test_a_patient_in_two_splits_publishes_nothing(tmp_path):
    """Leakage is an error, and no file appears."""
    rows = [visit("a", 1), visit("b", 2, split="test")]
    with pytest.raises(BadInputError, match="is in the splits"):
        build_cohort(dataset(rows), tmp_path, tmp_path / "out", Rules())
    assert not (tmp_path / "out").exists()


def test_a_reader_that_fails_leaves_the_old_cohort(tmp_path):
    """A truncated file half way leaves what was there before."""
    build_cohort(dataset(list(patients(3))), tmp_path, tmp_path / "out", Rules())
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}

    def broken(_):
        yield from patients(2)
        raise BadInputError("rows.csv is truncated")

    with pytest.raises(BadInputError, match="truncated"):
        build_cohort(dataset([], read=broken), tmp_path, tmp_path / "out", Rules())
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before


def test_a_folder_without_transitions_says_why(tmp_path):
    """The reasons for leaving out stand in the error."""
    with pytest.raises(BadInputError, match="fewer-than-two-visits: 2"):
        build_cohort(dataset(list(patients(2, visits=1))), tmp_path, tmp_path / "out", Rules())


def test_the_egress_policy_is_the_data_set_s_unless_the_user_answers_for_another(tmp_path):
    """An override is written down as one."""
    build_cohort(dataset(list(patients(2))), tmp_path, tmp_path / "out", Rules(), egress="any")
    facts = json.loads((tmp_path / "out" / "cohort.json").read_text())
    assert (facts["egress"], facts["egress_is_the_data_sets_own"]) == ("any", False)


def test_memory_does_not_grow_with_the_cohort(tmp_path):
    """Ten times the visits need hardly more memory: far less than holding them would take."""

    def build(count):
        reader = dataset([], read=lambda _: patients(count))
        return lambda: build_cohort(reader, tmp_path, tmp_path / "out", Rules())

    few, many, held = peak(build(300)), peak(build(3_000)), peak(lambda: list(patients(3_000)))
    assert many - few < held / 4


def test_the_command_writes_a_cohort_that_the_others_read(tmp_path):
    """`tabon cohort generic` from a table, then `tabon bank build` from its training split."""
    rows = (
        f"p{number},s{number}-{day},2020010{day},Findings: Day {day}. Impression: Same.,PA"
        for number in range(4)
        for day in (1, 2, 3)
    )
    lines = ["PID,Study,When,Text,View", *rows]
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    columns = "patient=PID,study=Study,date=When,report=Text,view=View"
    runner = CliRunner()
    command = [
        "cohort",
        "generic",
        str(tmp_path / "visits.csv"),
        "--out",
        str(tmp_path / "c"),
        "--columns",
        columns,
    ]
    done = runner.invoke(main, [*command, "--shares", "1,0,0", "--priors", "0"])
    assert done.exit_code == 0, done.output
    assert "train" in done.stdout
    built = runner.invoke(
        main,
        ["bank", "build", str(tmp_path / "c" / "train" / "transitions.jsonl"), "--out", str(tmp_path / "b"),
         "--encoder", "hashing", "--no-store"],
    )  # fmt: skip
    assert built.exit_code == 0, built.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rexgradiant", "."], "Did you mean 'rexgradient'"),
        (["generic", "."], "needs --columns"),
        (["rexgradient", ".", "--columns", "a=b"], "--columns goes with the data set 'generic'"),
        (["rexgradient", ".", "--shares", "1,2"], "give three numbers"),
        (["rexgradient", ".", "--egress", "all"], "unknown egress policy"),
        (["rexgradient", ".", "--priors", "-2"], "or 0 for all"),
    ],
)
def test_bad_options_get_one_sentence(tmp_path, arguments, message):
    """Exit status 1, one sentence with the way out, and no folder."""
    done = CliRunner().invoke(main, ["cohort", *arguments, "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_simulated_cohort_is_a_cohort(tmp_path):
    """`tabon simulate` writes the same files, with drafts, and the same bytes for the same seed."""
    for name in ("a", "b"):
        done = CliRunner().invoke(
            main, ["simulate", "--out", str(tmp_path / name), "--patients", "80", "--seed", "3"]
        )
        assert done.exit_code == 0, done.output
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert [str(path) for path in files] == [
        "audit.json", "cohort.json", "excluded.jsonl", "test/queries.jsonl", "test/transitions.jsonl",
        "train/transitions.jsonl", "valid/queries.jsonl", "valid/transitions.jsonl",
    ]  # fmt: skip
    for path in files:
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes()
    with (tmp_path / "a" / "test" / "queries.jsonl").open("rb") as file:
        assert all(len(query.candidates) == 5 for query in read_query_lines(file))


def test_the_simulated_audit_counts_what_is_written(tmp_path):
    """Visits minus patients is transitions, and there are as many queries as test transitions."""
    audit = write_simulated(tmp_path, SimulationSettings(patients=120))
    for split, counts in audit["splits"].items():
        lines = (tmp_path / split / "transitions.jsonl").read_text().count("\n")
        assert counts["visits"] - counts["patients"] == counts["transitions"] == lines
    queries = (tmp_path / "test" / "queries.jsonl").read_text().count("\n")
    assert queries == audit["splits"]["test"]["transitions"]
