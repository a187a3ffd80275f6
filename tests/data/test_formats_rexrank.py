"""ReXrank's JSON in and out: a submission has what its programs read, and comes back as drafts."""

import json

import pytest

from commands import finished
from tabon.data.formats.rexrank import parse_studies, report_text, study_record, submission
from tabon.errors import BadInputError
from tabon.text.records import read_query_lines
from tabon.text.reports import Report

VISITS = "patient,study,date,findings,impression\n" + "".join(
    f"p{number},s{number}-{visit},2019-0{visit}-01,{text},Normal chest.\n"
    for number in (1, 2, 3)
    for visit, text in ((1, "Lungs are clear."), (2, "New left effusion."))
)
STUDY = {  # the fields of the published files, text made up
    "key_image_path": "s/0.png",
    "image_path": ["s/0.png", "s/1.png"],
    "report": "Findings: New left effusion. Impression: Normal chest.",
    "section_findings": "New left effusion.",
    "section_impression": "Normal chest.",
    "split": "test",
    "frontal_lateral": ["Frontal", "Lateral"],
    "context": "Age:50-60.Gender:M.Indication: Cough. Comparison: None.",
}
MODELS = (
    "Findings:Small left effusion.Impression:Left effusion.",
    "Findings: The lungs are clear. Impression: No disease.",
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with visits, two models' predictions in ReXrank's form, and ReXrank's file of studies."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(VISITS)
    for number, text in enumerate(MODELS):
        drafts = {study: {**STUDY, "model_prediction": text} for study in ("s1-2", "s2-2")}
        (tmp_path / f"model{number}.json").write_text(json.dumps(drafts, indent=4))
    studies = {study: {**STUDY, "split": study} for study in ("s9-2", "s2-2", "s1-2")}
    (tmp_path / "studies.json").write_text(json.dumps(studies))
    done("import visits.csv --drafts model0.json --drafts model1.json --out cohort")
    return tmp_path


def done(command):
    """Run a command that must succeed and return its result."""
    result = finished(command)
    assert result.exit_code == 0, result.stderr
    return result


def selections(folder, chosen):
    """Write a selections file."""
    lines = [json.dumps({"id": q, "selected": s, "signature": "selector:mine"}) for q, s in chosen.items()]
    (folder / "picks.jsonl").write_text("\n".join(lines) + "\n")


CONVERT = "convert rexrank cohort/test/queries.jsonl picks.jsonl"


def test_predictions_of_models_are_drafts(place):
    """Each model's file is one draft per study; a header that follows a full stop at once is a header."""
    with (place / "cohort/test/queries.jsonl").open("rb") as lines:
        queries = list(read_query_lines(lines))
    assert [query.id for query in queries] == ["s1-2", "s2-2"]
    assert queries[0].candidates == (
        Report(findings="Small left effusion.", impression="Left effusion."),
        Report(findings="The lungs are clear.", impression="No disease."),
    )


def test_a_submission_has_the_picks_beside_rexrank_s_own_fields(place):
    """Order and fields are the file's; the pick is added; a study without one is left out and counted."""
    selections(place, {"s1-2": 0, "s2-2": 1})
    result = done(f"{CONVERT} --studies studies.json --out submission.json")
    found = json.loads((place / "submission.json").read_text())
    assert list(found) == ["s2-2", "s1-2"]
    assert found["s1-2"] == {
        **STUDY,
        "split": "s1-2",
        "model_prediction": "Findings: Small left effusion. Impression: Left effusion.",
    }
    assert "1 of 3 studies have no pick and are left out" in result.stderr


def test_without_rexrank_s_file_the_references_are_written(place):
    """What its programs read: both sections and the whole report."""
    selections(place, {"s1-2": 1, "s2-2": None})
    result = done(CONVERT)
    found = json.loads(result.stdout)
    assert found == {
        "s1-2": {
            **{key: STUDY[key] for key in ("section_findings", "section_impression", "report")},
            "model_prediction": MODELS[1],
        }
    }
    assert "1 of 2 studies have no pick" in result.stderr


def test_a_submission_comes_back_as_drafts(place):
    """Out, in, and out again: the same predictions."""
    selections(place, {"s1-2": 1, "s2-2": 1})
    done(f"{CONVERT} --out first.json")
    done("import visits.csv --drafts first.json --out again")
    selections(place, {"s1-2": 0, "s2-2": 0})
    done("convert rexrank again/test/queries.jsonl picks.jsonl --out second.json")
    assert (place / "second.json").read_bytes() == (place / "first.json").read_bytes()


def test_other_ids_are_refused(place):
    """Picks for other studies than the file's: one sentence with both, no file."""
    selections(place, {"s1-2": 0, "s2-2": 0})
    (place / "studies.json").write_text(json.dumps({"50414267": STUDY}))
    result = finished(f"{CONVERT} --studies studies.json --out submission.json")
    assert result.exit_code == 1
    assert "picks are for 's1-2', 's2-2', studies are '50414267'; give both the same ids" in result.stderr
    assert not (place / "submission.json").exists()


@pytest.mark.parametrize("data", [b"", b"[]", b'{"s1": "text"}', b"\xff", b"[" * 100_000])
def test_what_is_not_rexrank_s_json_is_refused(data):
    """The file is named and nothing of it is shown."""
    with pytest.raises(BadInputError, match=r"^studies\.json is not ReXrank's JSON; give one object"):
        parse_studies(data, name="studies.json")


def test_empty_sections_are_null_and_left_out_of_the_text():
    """ReXrank reads a missing section as null."""
    only = Report(impression="Normal.")
    assert report_text(only) == "Impression: Normal."
    assert study_record(only)["section_findings"] is None
    assert study_record(None) == {"section_findings": None, "section_impression": None, "report": ""}
    assert submission({"a": only}, {"b": {}, "a": {"x": 1}}) == {
        "a": {"x": 1, "model_prediction": "Impression: Normal."}
    }
