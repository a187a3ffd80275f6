"""What the fuzzers share: hostile values and texts, changes of JSON and bytes, and the allowed outcomes."""

import copy
import json
import re

from click.testing import CliRunner

from tabon.cli import main

CANARY = "Zzyzxcanary"  # stands in every report text; must never come to standard error

WORDS = (
    *("The", "lungs", "are", "clear", "no", "effusion", "opacity", "new", "left", "right", "stable", CANARY),
    *("FINDINGS:", "Findings", "IMPRESSION:", "**Impression:**", "findings and impression -", "COMPARISON:"),
    *("1.", "2)", "(a)", "-", "\u2022", "#", "Dr.", "approx.", "vs.", "3.5 cm", "XXXX", "[**Name**]", "___"),
    *(".", "..", "...", "?", "!", ";", ":", "\u3002", "\u0964", ",", "\\", "'", '"', "`", "|", "&amp;"),
    *("\n", "\r\n", "\r", "\t", "\v", "\x00", "\x1b[31m", "\x85", "\u2028", "\u202e", "\u200b", "\ufeff"),
    *("\ud800", "\udfff", "\xe9", "e\u0301", "\ufb01", "\u2168", "\u80ba\u91ce", "\U0001fac1", "\u0661"),
    *("<script>", "</td>", "{{x}}", "${x}", "%s", "=1+1", "None", "N/A", ""),
)
VALUES = (
    *(None, True, False, 0, -1, 1, 3, 2**31, 2**63, 2**64, 10**30, 10**400, -(10**400)),
    *(0.5, -0.0, 1e-320, 1e15, 1e16, 1e100, 1e308, -1e308, float("nan"), float("inf"), float("-inf")),
    *("", " ", "x", "3", "nan", "null", "../../etc", "\x00", "\ud800", "a" * 5000, "=1+1", "<b>", "é\u202e"),
    *([], [[]], [None], [1, "a", {}], {}, {"": 0}, {"a": {"b": [1]}}, {"x": 1, "gap": 1e308}),
)
BYTES = (
    *(b"", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\n", b"}", b'"', b"[" * 3000, b"9" * 5000),
    *(b"NaN", b"null", b"1e999", b"\\ud800"),
)


def text(draw, most=30):
    """Return words, marks and signs in any order, glued or not."""
    glue = draw.choice(("", " ", " ", "\n"))
    return glue.join(draw.choices(WORDS, k=draw.randrange(most)))


def value(draw):
    """Return something that hardly any field expects."""
    return copy.deepcopy(draw.choice(VALUES))


def deep(levels=100_000):
    """Return JSON that no parser follows to its end."""
    return b'{"a":' * levels + b"1" + b"}" * levels


def changed(draw, record, times=1):
    """Return a copy of JSON in which something was replaced, removed, added, or put in another place."""
    record = copy.deepcopy(record)
    for _ in range(times):
        places = [(where, key) for where, key, _ in _places(record)]
        where, key = _any_depth(draw, record)
        what = draw.randrange(4)
        if what == 0 and isinstance(where, dict):
            where[draw.choice(("x", "", "format", key if isinstance(key, str) else "id"))] = value(draw)
        elif what == 1:
            del where[key]
        elif what == 2:
            other, from_key = draw.choice(places)
            where[key] = copy.deepcopy(other[from_key]) if from_key in _keys(other) else value(draw)
        else:
            where[key] = value(draw)
        if not record:
            break
    return record


def damaged(draw, data):
    """Return bytes that were cut, flipped, or had something put into them."""
    at = draw.randrange(len(data) + 1)
    what = draw.randrange(4)
    if what == 0:
        return data[:at]
    if what == 1 and data:
        at = min(at, len(data) - 1)
        return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
    if what == 2:
        return data[:at] + draw.choice(BYTES) + data[at:]
    end = min(len(data), at + draw.randrange(1, 200))
    return data[:at] + data[end:]


def written(record):
    """Write JSON as a program might that minds nothing: NaN and lone surrogates included."""
    return json.dumps(record).encode()


def _any_depth(draw, record):
    """Choose a place: first how deep, since most places are deep."""
    places = list(_places(record))
    depth = draw.randrange(1 + max(depth for *_, depth in places))
    return draw.choice([(where, key) for where, key, at in places if at == depth])


def _places(record, depth=0):
    """Yield every place of nested lists and objects as (container, key, depth)."""
    for key in _keys(record):
        yield record, key, depth
        if isinstance(record[key], dict | list):
            yield from _places(record[key], depth + 1)


def _keys(record):
    """Return the keys of an object or the places of a list."""
    return (
        list(record) if isinstance(record, dict) else range(len(record)) if isinstance(record, list) else ()
    )


def run(*arguments, stdin=b""):
    """Run a command in this process."""
    return CliRunner().invoke(main, [*map(str, arguments)], input=stdin)


def check(result, case=""):
    """Check that a command did its work or said no in a sentence: no traceback, no report text."""
    said_no = result.exception is None or isinstance(result.exception, SystemExit)
    assert said_no, f"{case}: {result.exception!r}"
    assert result.exit_code in {0, 1, 2}, f"{case}: exit status {result.exit_code}"
    assert CANARY not in result.stderr, case
    if result.exit_code == 1:
        last = result.stderr.rstrip("\n").splitlines()[-1:]
        assert last, case
        assert re.match(r"Error: \S", last[0]), f"{case}: {last[0]!r}"
    return result
