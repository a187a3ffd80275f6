"""Reporting checklists: items as published, in short words, answered as far as the facts go.

One template per checklist, `NAME.toml` beside this file. What files cannot know is left to the author, named.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from tabon._internal.typed_values import fitting
from tabon.reporting.cards.facts import Facts, source_of

CHECKLISTS = ("mi-clear-llm", "tripod-llm", "claim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item of a checklist."""

    number: str  # as published
    section: str
    asks: str  # in our words
    facts: tuple[str, ...] = ()  # which facts answer it, in whole or in part
    tabon: str = ""  # what holds of every study with drafts and picks of tabon
    author: str = ""  # what only the author can say; "" if the rest is enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Checklist:
    """A published checklist."""

    title: str
    source: str
    items: tuple[Item, ...]


def read_checklist(name: str) -> Checklist:
    """Read the template of one of CHECKLISTS."""
    text = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    found: Checklist = fitting(Checklist, tomllib.loads(text))
    return found


def write_checklist(checklist: Checklist, facts: Facts) -> str:
    """Return the checklist as Markdown; what is left to the author is named at each item and at the end."""
    lines = [f"# {checklist.title}", ""]
    lines += [f"Numbers are those of {checklist.source}. The wording here is shorter: check against it."]
    section = None
    for item in checklist.items:
        if item.section != section:
            section = item.section
            lines += ["", f"## {section}"]
        lines += ["", f"**{item.number}** {item.asks}", "", *_answers(item, facts)]
    left = [item.number for item in checklist.items if item.author or _lacking(item, facts)]
    lines += [
        "",
        f"**Left to the author, in whole or in part** ({len(left)} of {len(checklist.items)} items): ",
    ]
    lines[-1] += f"{', '.join(left)}."
    return "\n".join(lines) + "\n"


def _answers(item: Item, facts: Facts) -> Iterator[str]:
    """Yield what the facts say to an item, what could say more, and what the author must say."""
    for fact in item.facts:
        if fact in facts:
            yield from (f"- {fact}: {sentence}" for sentence in facts[fact] or ("none",))
    if item.tabon:
        yield f"- tabon: {item.tabon}"
    lacking = _lacking(item, facts)
    if lacking:
        options = " and ".join(f"--{source}" for source in dict.fromkeys(map(source_of, lacking)))
        yield f"- **author**: {', '.join(lacking)}; or give {options}"
    if item.author:
        yield f"- **author**: {item.author}"


def _lacking(item: Item, facts: Facts) -> list[str]:
    """Return the facts that are not known because their source was not given."""
    return [fact for fact in item.facts if fact not in facts]
