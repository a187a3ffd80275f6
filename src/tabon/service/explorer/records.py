"""Studies as what JSON can hold; the page reads nothing else.

Numbers have six digits, and what is not a number is null. Text stands in JSON
strings only, with every sign escaped that HTML could take for its own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any, Final

from tabon.explain.explanation import SectionExplanation, TrainingChange
from tabon.explain.flags import FLAG_KINDS
from tabon.explain.text import flag_lines
from tabon.service.explorer.studies import Studies, Study, StudyDraft, StudyLine
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

NOTICE: Final = "Research use only. Not a medical device."
DIGITS: Final = 6
Record = dict[str, Any]
_ESCAPED: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def as_json(record: Any) -> str:  # noqa: ANN401  # anything that JSON can say
    r"""Return JSON that is data inside HTML too: ASCII, and without <, > and &.

    >>> as_json({"a": "</script>\u2028"})
    '{"a":"\\u003c/script\\u003e\\u2028"}'
    """
    return json.dumps(record, allow_nan=False, separators=(",", ":")).translate(_ESCAPED)


def overview_record(studies: Studies, lines: Sequence[StudyLine] | None = None) -> Record:
    """Return what the page shows of all studies; `lines` where they were made already."""
    bank, score = studies.bank, studies.settings.score
    shown = studies.lines if lines is None else lines
    return {
        "notice": NOTICE,
        "title": studies.settings.title,
        "signature": studies.signature,
        "bank": {"transitions": len(bank), "patients": len(bank.patients), "sha256": bank.sha256},
        "score": None if score is None or all(line.scores is None for line in shown) else score.name,
        "flag_kinds": list(FLAG_KINDS),
        "map": {
            section: {
                "bank": list(map(list, found.bank)),
                "explained": list(found.explained),
                "total": found.total,
            }
            for section, found in studies.maps.items()
        },
        "studies": [
            {
                **_head(line),
                "drafts": len(line.query.candidates),
                "flags": list(dict.fromkeys(flag.kind for flag in line.flags)),
                "has_image": line.has_image,
            }
            for line in shown
        ],
    }


def study_record(study: Study, image: str | None) -> Record:
    """Return one study; `image` is an address that the page may show."""
    line, query = study.line, study.line.query
    return {
        **_head(line),
        "prior": _report_record(query.prior),
        "notes": list(flag_lines(line.selection.flags)),
        "older_priors": max(0, len(query.priors) - 1),
        "reference": None if study.reference is None else _report_record(study.reference),
        "drafts": [_draft_record(draft) for draft in study.drafts],
        "map": {
            section: {
                "drafts": list(map(_place, placed.drafts)),
                "nearest": list(map(_place, placed.nearest)),
            }
            for section, placed in study.places.items()
        },
        "image": image,
    }


def _head(line: StudyLine) -> Record:
    """Return what the list and the study have in common."""
    selection = line.selection
    return {
        "number": line.number,
        "id": line.query.id,
        "patient": line.query.patient,
        "selected": selection.selected,
        "margin": _number(selection.margin),
        "tied": selection.tied,
        "abstained": selection.abstained,
        "p": _number(selection.p),
        "gain": _number(line.gain),
    }


def _draft_record(draft: StudyDraft) -> Record:
    """Return one draft."""
    distances = draft.distances
    return {
        "number": draft.number,
        "rank": draft.rank,
        "total": None if distances is None else _number(distances.total),
        "sections": {} if distances is None else _numbers(distances.sections),
        "lacks": [] if distances is None else list(distances.lacks),
        "parts": {} if distances is None else {name: _numbers(own) for name, own in distances.parts.items()},
        "report": _report_record(draft.report),
        "score": _number(draft.score),
        "flags": [asdict(flag) for flag in draft.flags],
        "alignment": {name: _alignment(part) for name, part in draft.explanation.sections.items()},
        "nearest": {name: list(map(_change_record, found)) for name, found in draft.nearest.items()},
    }


def _alignment(part: SectionExplanation) -> list[Record]:
    """Return the lines of an alignment, each with its share of the change."""
    return [
        {
            "kind": pair.kind,
            "prior": pair.prior,
            "current": pair.current,
            "distance": _number(pair.distance),
            "share": _number(part.share_of(pair)),
            "turned": list(pair.turned),
        }
        for pair in part.alignment
    ]


def _change_record(found: TrainingChange) -> Record:
    """Return a training transition."""
    return {
        "id": found.id,
        "distance": _number(found.distance),
        "prior": list(found.prior),
        "current": list(found.current),
    }


def _report_record(report: Report) -> Record:
    """Return a report as sentences; they are those that flags and alignments point at."""
    return {
        **{section: list(split_sentences(report.section(section))) for section in SECTIONS},
        "other": report.other,
    }


def _place(point: tuple[float, float] | None) -> list[float] | None:
    """Return a place on the map."""
    return None if point is None else list(point)


def _numbers(values: Mapping[Any, float | None]) -> Record:
    """Round the numbers of a mapping."""
    return {str(name): _number(value) for name, value in values.items()}


def _number(value: float | None) -> float | None:
    """Round a number; NaN and infinity are not numbers in JSON.

    >>> [_number(value) for value in (0.12345678, float("nan"), None, -0.0)]
    [0.123457, None, None, 0.0]
    """
    return None if value is None or not isfinite(value) else round(float(value), DIGITS) + 0.0
