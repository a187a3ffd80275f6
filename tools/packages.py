"""The packages that tabon is pinned to, installed or locked, and who needs whom."""

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
LOCKS = tuple(ROOT / "locks" / f"{name}.txt" for name in ("build", "light", "packages"))


def normal(name: str) -> str:
    """Return the name by which packages are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> dict[str, Distribution]:
    """Return what is installed here by name; of two copies the first on the path, as Python does."""
    found: dict[str, Distribution] = {}
    for one in distributions():
        found.setdefault(normal(one.name), one)
    return dict(sorted(found.items()))


def pins() -> dict[str, str]:
    """Return the versions in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if not line.startswith("#"))
    return {normal(name): version for name, version in pairs}


def locked() -> dict[tuple[str, str], str]:
    """Return the sha256 of each locked name and version."""
    found = {}
    for path in LOCKS:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                continue
            pin, hashed = line.split(" --hash=sha256:")
            name, version = pin.split("==")
            found[normal(name), version] = hashed
    return found


def needs(package: Distribution, extras: frozenset[str] = frozenset()) -> Iterator[Requirement]:
    """Give what a package requires on this machine with some of its extras."""
    for line in package.requires or ():
        wanted = Requirement(line)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": one}) for one in ("", *extras)):
            yield wanted


def closure(package: Distribution, extras: frozenset[str]) -> set[str]:
    """Return the names of all that a package with these extras brings along."""
    known, seen, todo = installed(), set(), [(package, extras)]
    while todo:
        one, chosen = todo.pop()
        for wanted in needs(one, chosen):
            name = normal(wanted.name)
            if name in known and (name, frozenset(wanted.extras)) not in seen:
                seen.add((name, frozenset(wanted.extras)))
                todo.append((known[name], frozenset(wanted.extras)))
    return {name for name, _ in seen}
