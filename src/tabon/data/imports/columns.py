"""Which column of a table says what: by a map, or by the usual spellings.

>>> from tabon.data.imports.source_rows import read_rows
>>> rows = read_rows([{"Patient ID": 7, "Study_Date": "2019-04-03", "REPORT": "Clear."}])
>>> find_columns(rows, VISIT_SPELLINGS, {}, option="--columns")
{'patient': 'Patient ID', 'date': 'Study_Date', 'report': 'REPORT'}
"""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from tabon._internal.registry import check_name
from tabon.data.imports.source_rows import IN_PYTHON, KEY_COLUMN, SourceRows
from tabon.errors import BadInputError

UNUSED = "-"  # in a map: no column has this role
_NAME = re.compile(
    r"[^\W\d](?:[\w /()#:-]|[.](?=[\w-])|(?<!\w{4})(?<!\d)[.]){0,39}|\(key\)|"
)  # a frame's index has no name
_REPEATED = re.compile(r" \(\d+\)$")
MOST_WORDS = 4  # of a column's name

_KEYS = {
    "patient": (
        *("patient", "patientid", "pid", "subject", "subjectid", "mrn", "patid", "deidpatientid"),
        *("patientno", "patientnr", "patientnumber"),
    ),
    "study": (
        *("study", "studyid", "studyuid", "studyinstanceuid", "accession", "accessionnumber"),
        *("accessionid", "visit", "visitid", "examid", "reportid", "key"),
    ),
    "date": (
        *("date", "studydate", "examdate", "visitdate", "reportdate", "when", "day", "datetime"),
        *("studydatetime", "examdatetime", "visitdatetime", "studydatedicom", "acquisitiondate"),
        *("examinationdate", "dateofexam", "dateofstudy", "completeddate", "examcompleteddate"),
    ),
    "time": ("time", "studytime", "examtime", "visittime", "acquisitiontime"),
    "findings": ("findings", "finding", "sectionfindings", "findingstext"),
    "impression": ("impression", "impressions", "sectionimpression", "impressiontext", "conclusion"),
}
VISIT_SPELLINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **_KEYS,
        "report": ("report", "reporttext", "text", "fullreport", "rawreport", "fulltext", "narrative"),
        "view": (
            "view",
            "viewposition",
            "vp",
            "projection",
            "appa",
            "imageviewposition",
            "viewpositiondicom",
        ),
        "image": ("image", "imagepath", "imagefile", "path", "filename", "keyimagepath", "pathtoimage"),
        "split": ("split", "set", "subset", "partition"),
    }
)
DRAFT_SPELLINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **_KEYS,
        "drafts": ("drafts", "candidates", "samples", "generations", "predictions", "outputs"),
        "prediction": (
            *("prediction", "modelprediction", "generated", "generatedreport", "generatedtext", "draft"),
            *("candidate", "generation", "output", "completion", "hypothesis", "response"),
        ),
        "text": ("text", "report", "reporttext", "drafttext", "candidatetext"),
        "number": (
            *("number", "draftnumber", "draftno", "draftid", "draftindex", "sample", "sampleid"),
            *("sampleindex", "candidateid", "candidateindex", "k", "n"),
        ),
        "model": ("model", "modelname", "generator", "system"),
    }
)


def role_map(text: str, roles: Collection[str]) -> dict[str, str]:
    """Read a map such as "patient=PID,date=ExamDate".

    Raises:
        BadInputError: a part is no key=column, or a key comes twice.
        UnknownNameError: there is no such key.
    """
    columns: dict[str, str] = {}
    for part in filter(str.strip, text.split(",")):
        key, sign, column = (piece.strip() for piece in part.partition("="))
        if not (key and sign and column):
            raise BadInputError(f"{part.strip()!r} of the column map is not written as key=column")
        check_name("key of the column map", tuple(roles), key)
        if key in columns:
            raise BadInputError(f"{key} stands twice in the column map; name one column")
        columns[key] = column
    return columns


def find_columns(
    rows: SourceRows, spellings: Mapping[str, tuple[str, ...]], given: Mapping[str, str], *, option: str
) -> dict[str, str]:
    """Return the column of each role that a table has.

    A role's own name goes before its other spellings, and the map before both.

    Raises:
        BadInputError: a column of the map is not there, or two columns could be meant.
    """
    found: dict[str, str] = {}
    for role, spelled in spellings.items():
        spellings_of = {name: _spelling(name, rows) for name in rows.columns if name not in given.values()}
        names = [name for name, spelling in spellings_of.items() if spelling in spelled]
        names = [name for name in names if spellings_of[name] == role or name == KEY_COLUMN] or names
        if role in given:
            names = [given[role]] if given[role] != UNUSED else []
            if names and names[0] not in rows.columns:
                raise BadInputError(
                    f"{rows.name} has no column {names[0]!r} for {role}; its columns are {listed(rows)}"
                )
        if len(names) > 1:
            raise BadInputError(
                f"{rows.name} has several columns for {role} ({', '.join(names)}); "
                f"name one with {_naming(rows, option, role)}"
            )
        if names:
            found[role] = names[0]
    return found


def missing(rows: SourceRows, roles: str, *, option: str) -> BadInputError:
    """Say that a table lacks a role, what it has, and how to name the column."""
    role = roles.split(maxsplit=1)[0]
    return BadInputError(
        f"{rows.name} has no column for {roles}; its columns are {listed(rows)}; "
        f"name it with {_naming(rows, option, role)}"
    )


def _naming(rows: SourceRows, option: str, role: str) -> str:
    """Write how a column is named: by an option, or of rows in Python by an argument."""
    if rows.kind == IN_PYTHON:
        return f"{option.removeprefix('--').replace('-', '_')}={{{role!r}: NAME}}"
    return f"{option} {role}=NAME"


def _spelling(name: str, rows: SourceRows) -> str:
    """Return a column's plain name; the second of two of one name, "Date (2)", has theirs."""
    first = _REPEATED.sub("", name)
    return plain(first if first in rows.columns else name)


def listed(rows: SourceRows) -> str:
    """Name the columns; not if they seem to be a row of values, which may be report text."""
    named = all(_NAME.fullmatch(name) and len(name.split()) <= MOST_WORDS for name in rows.columns)
    if not named:
        return "not named in its first line, it seems (add a line of names)"
    names = list(filter(None, rows.columns))
    alone = " alone (if a title stands above the line of names, delete it)" if len(names) == 1 else ""
    return f"{', '.join(names) or 'none'}{alone}"


def plain(name: str) -> str:
    """Return a name without case, blanks, underscores and the like."""
    return "".join(character for character in name.casefold() if character.isalnum())
