"""What a file is, read off its first line, so that a file of another kind is refused with a hint.

Only kinds are named, never a key or a word of the file: they may be report text.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tabon.errors import BadInputError

LONGEST_LINE = 1 << 20  # bytes that are looked at
BANK = "a bank"
TABLE = "a table (CSV)"
MANY_LINES = "JSON over several lines"
LIST = "a JSON list"
JOURNAL = "a journal of drafts"
# how a file begins that is not text: its kind
MARKS: Mapping[bytes, str] = MappingProxyType(
    {
        b"TABONBK1": BANK,
        b"PAR1": "a Parquet table",
        b"PK\x03\x04": "a spreadsheet or zip file",
        b"\x1f\x8b": "a gzip file",
    }
)
# the keys that a record of a kind has; of keys between bars it has one
RECORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "queries": ("id", "prior", "candidates|drafts"),
        "transitions": ("id", "prior", "current"),
        "selections": ("id", "selected"),
        JOURNAL: ("study", "prompt", "sample", "text"),
    }
)
HINTS: Mapping[str, str] = MappingProxyType(
    {  # by what was found: what to do with it; else by what is wanted
        TABLE: "bring visits and drafts in with `tabon import`",
        "a Parquet table": "bring visits and drafts in with `tabon import`",
        MANY_LINES: "write one object a line (`jq -c .`), or bring it in with `tabon import`",
        LIST: "write one object a line (`jq -c '.[]'`), or bring it in with `tabon import`",
        "a spreadsheet or zip file": "bring visits and drafts in with `tabon import`",
        "a gzip file": "unpack it first",
        JOURNAL: "join it with its cohort by `tabon drafts`",
    }
)
WANTED: Mapping[str, str] = MappingProxyType(
    {
        JOURNAL: "give what `tabon generate` wrote",
        "queries": "give queries, which `tabon import` and `tabon drafts` write",
        "transitions": "give transitions, which `tabon import` and `tabon cohort` write",
        "selections": "give what `tabon select` printed",
        BANK: "give a bank, which `tabon bank build` makes of transitions",
    }
)


MIXED_UP: Mapping[tuple[str, str], str] = MappingProxyType(
    {  # by what was found and what is wanted
        ("transitions", BANK): "build a bank of them with `tabon bank build`",
        ("queries", BANK): "if the two were swapped, write QUERIES --bank BANK",
        (BANK, "queries"): "if the two were swapped, write QUERIES --bank BANK",
    }
)


def check_kind(line: bytes, wanted: str, name: str) -> None:
    """Refuse a file whose first line is that of another kind.

    >>> check_kind(b'{"id": 1, "prior": "Clear.", "current": "Clear."}', "transitions", "t.jsonl")
    >>> check_kind(b"patient,date,report", "queries", "visits.csv")
    Traceback (most recent call last):
    tabon.errors.BadInputError: visits.csv looks like a table (CSV), not queries; bring visits ...
    """
    found = kind_of(line, wanted)
    if found != wanted:
        hint = MIXED_UP.get((found, wanted)) or HINTS.get(found) or WANTED[wanted]
        raise BadInputError(f"{name} looks like {found}, not {wanted}; {hint}")


def first_line(path: Path) -> bytes:
    """Return the first line of a file, or the beginning of a very long one."""
    try:
        with path.open("rb") as file:
            return file.readline(LONGEST_LINE)
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}); check its name") from None


def kind_of(line: bytes, wanted: str) -> str:
    """Return what a file with this first line is; what is `wanted` where nothing else is known."""
    for mark, kind in MARKS.items():
        if line.startswith(mark):
            return kind
    text = line.strip().removeprefix(b"\xef\xbb\xbf")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return _kind_of_text(text) or wanted
    if isinstance(record, dict):
        kinds = [kind for kind, keys in RECORDS.items() if all(_has(record, key) for key in keys)]
        return wanted if wanted in kinds or not kinds else kinds[0]
    return LIST if isinstance(record, list) and all(isinstance(one, dict) for one in record) else wanted


def _has(record: Mapping[str, object], key: str) -> bool:
    """Say whether a record has a key, or one of several."""
    return any(one in record for one in key.split("|"))


def _kind_of_text(text: bytes) -> str | None:
    """Return what a line that is no JSON may be the first of."""
    if text[:1] in (b"{", b"["):
        return MANY_LINES if text[-1:] in (b"{", b"[", b",") else None
    is_text = b"\x00" not in text and not text.startswith((b"\xff\xfe", b"\xfe\xff"))
    return TABLE if is_text and any(mark in text for mark in (b",", b"\t", b";")) else None
