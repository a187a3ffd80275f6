"""ReXGradient-160K: one JSON object a split, keyed by study, with reports and views.

The views are only in `metadata/{split}_metadata_view_position.json`; the CSV
files and the older JSON files beside it have none, so they are not enough.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from pathlib import Path

from tabon.data.cohort.tables import find_file, read_json_object
from tabon.data.cohort.visits import (
    DataSet,
    Excluded,
    Image,
    Source,
    Visit,
    moment_or_reason,
    normal_view,
    said,
    visit_or_excluded,
)
from tabon.errors import BadInputError
from tabon.text.reports import Report

SPLITS = ("train", "valid", "test")
PACKINGS = ("", ".gz", ".zst")
TEXTS = ("StudyDate", "Findings", "Impression")
KEYS = (*TEXTS, "ImagePath", "ImageViewPosition")


def read(folder: Path) -> Iterator[Visit | Excluded]:
    """Yield the studies of all three splits; a key that no study of a file has is an error."""
    files = [(split, _metadata(folder, split)) for split in SPLITS]  # all are there before one is read
    for split, path in files:
        source, missing = Source(path.relative_to(folder).as_posix()), set(KEYS)
        for study, entry in read_json_object(path):
            if isinstance(entry, Mapping):
                missing.difference_update(entry)
                yield _visit(study, entry, source, split)
            else:
                yield Excluded(source, "not-an-object", study)
        for key in sorted(missing, key=KEYS.index):
            raise BadInputError(f"no study of {path} has {key!r}; check its version")


def _metadata(folder: Path, split: str) -> Path:
    """Return the file with the views of a split."""
    name, others = f"metadata/{split}_metadata_view_position.json", f"metadata/{split}_metadata"
    try:
        return find_file(folder, *(name + packing for packing in PACKINGS))
    except BadInputError:
        lesser = (others + kind + packing for kind in (".csv", ".json") for packing in PACKINGS)
        there = next((file for file in lesser if (folder / file).is_file()), None)
        if there is None:
            raise
        raise BadInputError(
            f"{folder} has {there}, which has no views, but not {name}; download that file too "
            "(huggingface.co/datasets/rajpurkarlab/ReXGradient-160K)"
        ) from None


def _visit(study: str, entry: Mapping[str, object], source: Source, split: str) -> Visit | Excluded:
    """Make a visit of an entry, or say why it is none.

    The patient's id begins the study's id, with a `p` before it. The list of views may be shorter than
    that of images.
    """
    before, underscore, _ = study.partition("_")
    patient = (_text(entry.get("PatientID")) or (before if underscore else "")).removeprefix("p")
    are_texts = not any(isinstance(entry.get(key), list | dict) for key in TEXTS)
    views = chain(_list(entry.get("ImageViewPosition")), repeat(None))
    images = zip(_list(entry.get("ImagePath")), views, strict=False)
    return visit_or_excluded(
        source,
        {"not-text": are_texts, "no-patient": patient},
        study=study,
        patient=patient,
        moment=moment_or_reason(_text(entry.get("StudyDate"))),
        report=Report(findings=_text(entry.get("Findings")), impression=_text(entry.get("Impression"))),
        images=(Image(_text(path).removeprefix("../"), normal_view(_text(view))) for path, view in images),
        split=split,
    )


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
    return said(value) if isinstance(value, str | int | float) else ""


DATASET = DataSet(
    name="rexgradient",
    read=read,
    egress="none",
    order="dates",
    note=(
        "ReXGradient-160K has dates without times, so two studies of one day have no order. Its "
        "Non-Commercial Data Access and Use Agreement (v.1, April 2025) forbids disclosure to any third "
        "party: reports stay on your machines unless you hold a permission that says otherwise."
    ),
)
