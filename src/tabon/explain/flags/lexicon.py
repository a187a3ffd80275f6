"""The findings that flags know: the labeller's observations and those of `findings.toml`."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

GENERIC_DEVICE = "support devices"


@dataclass(frozen=True, slots=True)
class Kind:
    """One finding of `findings.toml`."""

    name: str
    hides: bool  # its words are taken out before the labeller looks
    device: bool


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All findings, their words and how they hang together."""

    words: re.Pattern[str]  # group k<i> is kind i
    kinds: tuple[Kind, ...]
    lasting: frozenset[str]
    minor: frozenset[str]
    umbrella: frozenset[str]
    akin: Mapping[str, frozenset[str]]  # names that may stand for each other; none is its own

    def kind_of(self, found: re.Match[str]) -> Kind:
        """Return the kind whose words were found."""
        return self.kinds[int((found.lastgroup or "k0")[1:])]

    def akin_to(self, name: str) -> frozenset[str]:
        """Return the other names that a reader may use for this finding."""
        return self.akin.get(name, frozenset())


@cache
def lexicon() -> Lexicon:
    """Read and compile the lexicon, once."""
    book = tomllib.loads(files("tabon.explain.flags").joinpath("findings.toml").read_text(encoding="utf-8"))
    rows = book["findings"]
    groups = (f"(?P<k{index}>{'|'.join(row['words'])})" for index, row in enumerate(rows))
    kinds = tuple(Kind(row["name"], row.get("hides", False), row.get("device", False)) for row in rows)
    devices = [[GENERIC_DEVICE, kind.name] for kind in kinds if kind.device and kind.name != GENERIC_DEVICE]
    return Lexicon(
        words=re.compile(rf"\b(?:{'|'.join(groups)})"),
        kinds=kinds,
        lasting=_marked(rows, "lasting").union(book["lasting"]),
        minor=_marked(rows, "minor"),
        umbrella=frozenset(book["umbrella"]),
        akin=_akin(book["akin"] + devices),
    )


def _marked(rows: Iterable[Mapping[str, Any]], mark: str) -> frozenset[str]:
    """Return the names of the rows with a mark."""
    return frozenset(row["name"] for row in rows if row.get(mark, False))


def _akin(groups: Iterable[Iterable[str]]) -> Mapping[str, frozenset[str]]:
    """Turn groups of names into each name's relatives."""
    relatives: dict[str, set[str]] = {}
    for group in map(set, groups):
        for name in group:
            relatives.setdefault(name, set()).update(group - {name})
    return MappingProxyType({name: frozenset(others) for name, others in relatives.items()})


def is_lasting(name: str) -> bool:
    """Whether a finding does not go away by itself, so that silence about it is no recovery.

    >>> is_lasting("scoliosis"), is_lasting("Cardiomegaly"), is_lasting("Pleural Effusion")
    (True, True, False)
    """
    return name in lexicon().lasting
