"""ReXGradient-160K: one JSON object a split, keyed by study, with reports and views.

The views stand only in `metadata/{split}_metadata_view_position.json`; the CSV
files and the older JSON files beside it have none, so they are not enough.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from pathlib import Path

from tabon.data.cohort.tables import find_file, read_json_object
from tabon.data.cohort.visits import DataSet, Excluded, Image, Moment, Source, Visit, moment_from, normal_view
from tabon.errors import BadInputError
from tabon.text.reports import Report

SPLITS = ("train", "valid", "test")
PACKINGS = ("", ".gz", ".zst")
TEXTS = ("StudyDate", "Findings", "Impression")
KEYS = (*TEXTS, "ImagePath", "ImageViewPosition")


def read(folder: Path) -> Iterator[Visit | Excluded]:
    """Yield the studies of all three splits."""
    files = [(split, _metadata(folder, split)) for split in SPLITS]  # all are there before one is read
    for split, path in files:
        yield from _read_split(path, Source(path.relative_to(folder).as_posix()), split)


def _metadata(folder: Path, split: str) -> Path:
    """Return the file with the views of a split."""
    name = f"metadata/{split}_metadata_view_position.json"
    lesser = (
        f"metadata/{split}_metadata{kind}{packing}" for kind in (".csv", ".json") for packing in PACKINGS
    )
    try:
        return find_file(folder, *(name + packing for packing in PACKINGS))
    except BadInputError:
        there = next((file for file in lesser if (folder / file).is_file()), None)
        if there is None:
            raise
        raise BadInputError(
            f"{folder} has {there}, which has no views, but not {name}; download that file too "
            "(huggingface.co/datasets/rajpurkarlab/ReXGradient-160K)"
        ) from None


def _read_split(path: Path, source: Source, split: str) -> Iterator[Visit | Excluded]:
    """Yield the studies of one file; a key that no study has is an error."""
    missing = set(KEYS)
    for study, entry in read_json_object(path):
        if isinstance(entry, Mapping):
            missing.difference_update(entry)
            yield _visit(study, entry, source, split)
        else:
            yield Excluded(source, "not-an-object", study)
    for key in KEYS:
        if key in missing:
            raise BadInputError(f"no study of {path} has {key!r}; check its version")


def _visit(study: str, entry: Mapping[str, object], source: Source, split: str) -> Visit | Excluded:
    """Return the visit of one entry, or why there is none."""
    patient = _patient(study, entry)
    moment = _moment(entry.get("StudyDate"))
    report = Report(findings=_text(entry.get("Findings")), impression=_text(entry.get("Impression")))
    if any(isinstance(entry.get(key), list | dict) for key in TEXTS):
        return Excluded(source, "not-text", study)
    if not patient:
        return Excluded(source, "no-patient", study)
    if isinstance(moment, str):
        return Excluded(source, moment, study)
    if report.is_empty:
        return Excluded(source, "no-report", study)
    return Visit(
        study=study,
        patient=patient,
        moment=moment,
        report=report,
        images=tuple(_images(entry)),
        split=split,
        source=source,
    )


def _patient(study: str, entry: Mapping[str, object]) -> str:
    """Return the patient's id, which begins the study's id with a `p` before it."""
    before, underscore, _ = study.partition("_")
    return (_text(entry.get("PatientID")) or (before if underscore else "")).removeprefix("p")


def _moment(day: object) -> Moment | str:
    """Return the day of a study, or why there is none."""
    text = _text(day)
    try:
        return moment_from(text) if text else "no-date"
    except BadInputError:
        return "bad-date"


def _images(entry: Mapping[str, object]) -> Iterator[Image]:
    """Yield the images; the list of views may be the shorter one."""
    views = chain(_list(entry.get("ImageViewPosition")), repeat(None))
    for path, view in zip(_list(entry.get("ImagePath")), views, strict=False):
        yield Image(_text(path).removeprefix("../"), normal_view(_text(view)))


def _list(value: object) -> list[object]:
    """Return a list as it is, one text as a list of it, everything else as no list."""
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, str) else []


def _text(value: object) -> str:
    """Return a text or a number as text; nothing for null, NaN and their spellings.

    >>> [_text(value) for value in (20120101, " None ", float("nan"), None, "Clear.")]
    ['20120101', '', '', '', 'Clear.']
    """
    if isinstance(value, float) and math.isnan(value):
        return ""
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    return "" if text.lower() in {"none", "nan"} else text


DATASET = DataSet(
    name="rexgradient",
    read=read,
    egress="none",
    dated=True,
    note=(
        "ReXGradient-160K has dates without times, so two studies of one day have no order. Its "
        "Non-Commercial Data Access and Use Agreement (v.1, April 2025) forbids disclosure to any third "
        "party: reports stay on your machines unless you hold a permission that says otherwise."
    ),
)
