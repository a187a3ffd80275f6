"""What a file says is of the kind that a field wants, or it is refused with the field's name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from tabon._internal.typed_values import MisfitError, fitting, read_typed
from tabon.errors import BadInputError


@dataclass(frozen=True)
class Part:
    """A part of a file."""

    name: str
    value: float | None = None


@dataclass(frozen=True)
class File:
    """A file of all kinds."""

    parts: tuple[Part, ...]
    count: int = 0
    on: bool = False
    side: Literal["left", "right"] = "left"
    place: tuple[float, float] = (0.0, 0.0)
    names: Mapping[str, int] | None = None
    facts: Any = None


def test_what_fits_is_taken():
    """Objects become dataclasses, lists tuples; numbers stay as they are."""
    record = {"parts": [{"name": "a", "value": 1}], "names": {"x": 2}, "facts": {"y": [1, None]}}
    made = fitting(File, record)
    assert made == File(parts=(Part("a", 1),), names={"x": 2}, facts={"y": [1, None]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parts": {}}, "parts is an object instead of a list"),
        ({"parts": [3]}, r"parts\[0\] is a whole number instead of an object"),
        ({"parts": [{}]}, r"parts\[0\] has no key 'name'"),
        ({"parts": [{"name": None}]}, r"parts\[0\].name is null instead of a string"),
        ({"parts": [{"name": "a", "value": True}]}, r"parts\[0\].value is true or false instead of a number"),
        ({"parts": [{"name": "a", "value": 1e308}]}, r"parts\[0\].value is no number below"),
        ({"parts": [{"name": "a", "value": float("nan")}]}, r"parts\[0\].value is no number below"),
        ({"count": 10**400}, "count is no number below"),
        ({"count": 1.0}, "count is a number instead of a whole number"),
        ({"count": False}, "count is true or false instead of a whole number"),
        ({"on": 1}, "on is a whole number instead of true or false"),
        ({"side": "up"}, "side is none of left, right"),
        ({"side": []}, "side is none of left, right"),
        ({"place": [1]}, "place has 1 items instead of 2"),
        ({"names": {"x": "y"}}, "names.x is a string instead of a whole number"),
        ({"names": {"The lungs are clear.\n": "y"}}, r"names.\(a key\) is a string"),
        ({"facts": [1e300]}, r"facts\[0\] is no number below"),
        ({"parts": [{"name": "i\ud800"}]}, r"parts\[0\].name holds half a character"),
        ({"names": {"i\ud800": 1}}, "a key of names holds half a character"),
        ({"facts": {"x": ["\ud83d"]}}, r"facts.x\[0\] holds half a character"),
        ({"cuont": 1}, "it has the unknown key cuont: did you mean 'count'"),
        ({"The lungs are clear.\n": 1}, r"it has the unknown key \(a key\): known are parts, "),
    ],
)
def test_what_does_not_fit_is_named_by_its_field(change, message):
    """The place and both kinds are named, never the value."""
    with pytest.raises(MisfitError, match=message) as caught:
        fitting(File, {"parts": [], **change})
    assert "lungs" not in str(caught.value)


def test_what_may_be_of_any_kind_has_an_end():
    """Nesting without an end is refused before Python gives up."""
    endless = []
    for _ in range(500):
        endless = [endless]
    with pytest.raises(MisfitError, match="nested more than 32 levels deep"):
        fitting(File, {"parts": [], "facts": endless})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", r"is not a whole list \(no JSON\); make it again"),
        (b"\xff", r"is not a whole list \(no JSON\); make it again"),
        (b"[" * 100_000, r"is not a whole list \(no JSON\); make it again"),
        (b"9" * 5_000, r"is not a whole list \(no JSON\); make it again"),
        (b"[]", r"is not a whole list \(it is a list instead of an object\); make it again"),
        (b'{"format": "tabon-list/2"}', "is of another format than tabon-list/1; make it again"),
        (b'{"format": "tabon-list/1"}', r"is not a whole list \(it has no key 'parts'\); make it again"),
    ],
)
def test_a_file_that_is_not_whole_is_refused_by_name(tmp_path, content, message):
    """One sentence: the file, the field, the way out."""
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match=rf"x\.json {message}"):
        read_typed(File, path, form="tabon-list/1", what="list", hint="make it again")
