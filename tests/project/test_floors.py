"""The oldest versions that pyproject.toml allows are versions that were tested."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
FLOORS = sorted(
    {
        (found[1], found[2])
        for needed in [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]
        if (found := re.match(r"([\w.-]+)(?:\[.*?\])?>=([\w.]+)", needed))
    }
)


def plain(name):
    """Write a package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


PINNED = {
    plain(found[1]): found[2]
    for found in re.finditer(r"^([\w.-]+)==([^\s;\\]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
}


@pytest.mark.parametrize(("name", "floor"), FLOORS, ids=[name for name, _ in FLOORS])
def test_a_floor_is_what_was_tested(name, floor):
    """The floor of a package is its pinned version, or the beginning of that."""
    pinned = PINNED[plain(name)].split(".")
    assert pinned[: floor.count(".") + 1] == floor.split("."), f"{name}: pinned {PINNED[plain(name)]}"


def test_a_library_that_trusts_local_folders_is_not_allowed():
    """Before 6.0 sentence-transformers runs the code in a local folder, whatever it is told."""
    assert int(dict(FLOORS)["sentence-transformers"].partition(".")[0]) >= 6
