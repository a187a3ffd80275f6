"""Damaged and hostile data sets of every kind: a cohort, or one sentence, and never a row's text."""

import json
import shutil

import pytest

import cohort_layouts
import cohort_layouts_b
import hostile
from budgets import budget, seeded
from hostile import CANARY, check, run

GENERIC = "patient=PID,study=Study,date=When,report=Text,view=View,split=Split"
ROWS = [
    {"PID": f"p{number // 3}", "Study": f"s{number}", "When": f"2020-01-{1 + number:02d}", "View": "AP",
     "Text": f"FINDINGS: {CANARY} {number}.", "Split": "train"}
    for number in range(12)
]  # fmt: skip


def covid(folder):
    """Write covid-chestxray with patients who come twice."""
    days = [("2", 0), ("2", 3), ("3", -2), ("3", 1), ("4", 5)]
    rows = [cohort_layouts.covid_row(who, day, clinical_notes=f"{CANARY} on day {day}.") for who, day in days]
    cohort_layouts.write_covid_chestxray(folder, rows)


def generic_csv(folder):
    """Write a table of any hospital."""
    folder.mkdir()
    data = cohort_layouts.csv_bytes(list(ROWS[0]), ROWS)
    (folder / "visits.csv").write_bytes(data)


def generic_lines(folder):
    """Write the same as JSON Lines."""
    folder.mkdir()
    (folder / "visits.jsonl").write_text("\n".join(map(json.dumps, ROWS)) + "\n", encoding="utf-8")


def chexpert_plus(folder):
    """Write CheXpert Plus with a patient who comes three times."""
    rows = [
        cohort_layouts.chexpert_plus_row("patient00001", order, section_findings=f"{CANARY} {order}.")
        for order in (1, 2, 3)
    ]
    cohort_layouts.write_chexpert_plus(folder, [*rows, *cohort_layouts.chexpert_plus_rows()[1:]])


def mimic(folder):
    """Write MIMIC-CXR with a patient who comes twice in one view."""
    later = ("3a2277a9-b0ded155", 10000032, 50300001, "PA", "21800726", "93015.5", "train")
    cohort_layouts_b.mimic(folder, [*cohort_layouts_b.MIMIC_IMAGES, later])


LATER = ("s5_abcdef.png", "12", "20160102", "s5", "p1", "", "PA", f"sin cambi {CANARY} .")


def padchest(folder):
    """Write PadChest with a patient who comes twice in one view."""
    cohort_layouts_b.padchest(folder, [*cohort_layouts_b.PADCHEST_IMAGES, LATER])


def padchest_gr(folder):
    """Write PadChest-GR beside the table of PadChest, which knows the views."""
    later = ("s5", "s5_abcdef.png", "Normal", "p1", "20160102", "train")
    item = {"StudyID": "s5", "ImageID": "s5_abcdef.png", "findings": [{"sentence_en": f"{CANARY}."}]}
    rows, items = [*cohort_layouts_b.GR_ROWS, later], [*cohort_layouts_b.GR_ITEMS, item]
    cohort_layouts_b.padchest_gr(folder, rows, items)
    padchest(folder)


LAYOUTS = {
    "rexgradient": ("rexgradient", cohort_layouts.write_rexgradient),
    "chexpert-plus": ("chexpert-plus", chexpert_plus),
    "covid-chestxray": ("covid-chestxray", covid),
    "mimic-cxr": ("mimic-cxr", mimic),
    "padchest": ("padchest", padchest),
    "padchest-gr": ("padchest-gr", padchest_gr),
    "generic csv": ("generic", generic_csv),
    "generic lines": ("generic", generic_lines),
}


def hostile_file(draw, path):
    """Damage one file: bytes of it, or one value of its table."""
    data = path.read_bytes()
    if draw.randrange(2) or path.suffix in {".gz", ".zst", ".zip"}:
        return hostile.damaged(draw, data)
    odd = draw.choice(
        (str(hostile.value(draw)), hostile.text(draw, 4), "9" * 5000, "-1", "1e300", "0001-01-01")
    )
    lines = data.split(b"\n")
    at = draw.randrange(len(lines))
    cells = lines[at].split(b",")
    cells[draw.randrange(len(cells))] = odd.encode("utf-8", "surrogatepass")
    lines[at] = b",".join(cells)
    return b"\n".join(lines)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_damaged_data_set_gives_a_cohort_or_a_sentence(name, tmp_path):
    """Cut, flipped and hostile files of every kind: no traceback, no text of a report."""
    draw, (dataset, write) = seeded(f"cohorts {name}"), LAYOUTS[name]
    write(tmp_path / "data")
    files = sorted(path for path in (tmp_path / "data").rglob("*") if path.is_file())
    columns = ("--columns", GENERIC) if dataset == "generic" else ()
    folder = files[0] if dataset == "generic" else tmp_path / "data"
    for _ in range(budget(12, 400)):
        path = draw.choice(files)
        kept = path.read_bytes()
        path.write_bytes(hostile_file(draw, path))
        check(run("cohort", dataset, folder, *columns, "--out", tmp_path / "out"), path.name)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        path.write_bytes(kept)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_whole_data_set_gives_transitions(name, tmp_path):
    """What the fuzzer damages is whole before, so that every step is reached."""
    dataset, write = LAYOUTS[name]
    write(tmp_path / "data")
    folder = next((tmp_path / "data").iterdir()) if dataset == "generic" else tmp_path / "data"
    columns = ("--columns", GENERIC) if dataset == "generic" else ()
    assert check(run("cohort", dataset, folder, *columns, "--out", tmp_path / "out")).exit_code == 0
