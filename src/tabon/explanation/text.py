"""An explanation as plain text, 80 columns wide: words and symbols, no colour."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import wrap

from tabon.explanation.alignment import Aligned, Kind
from tabon.explanation.evidence import evidence_lines
from tabon.explanation.explanation import DraftDistances, Explanation, SectionExplanation, TrainingChange
from tabon.explanation.flags import Flag
from tabon.method.selection import Note

WIDTH = 80
RESEARCH_USE = "Research use only; not a medical device."
MARKS: Mapping[Kind, str] = {"same": "=", "reworded": "~", "new": "+", "dropped": "-"}
FLAGS: Mapping[str, str] = {  # kind of flag: what it says of a section and of the reports concerned
    "prior-lacks": "the prior has no {section}; it is left out",
    "bank-lacks": "the bank has no {section}; it is left out",
    "draft-lacks": "no {section} in {reports}",
    "no-change": "no change of the {section} in {reports}",
    "long-section": "{section} longer than any real one in {reports}",
}


def explanations_text(explanations: Sequence[Explanation]) -> str:
    """Return explanations one below the other, then what their numbers rest on."""
    parts = [explanation_text(explanation) for explanation in explanations]
    signatures = dict.fromkeys(explanation.signature for explanation in explanations)
    for signature in filter(None, signatures):  # broken between its fields, and nowhere else
        lines = wrap(plain(signature).replace("|", "| "), WIDTH, break_on_hyphens=False)
        parts.append("\n".join(lines).replace("| ", "|"))
    return f"\n\n{'-' * WIDTH}\n\n".join(parts) + f"\n\n{RESEARCH_USE}"


def explanation_text(explanation: Explanation) -> str:
    """Return one explanation as lines of text.

    >>> print(explanation_text(Explanation(id="q1", draft=None, selected=None, num_candidates=0)))
    q1: no draft was chosen
    """
    return "\n".join(line.rstrip() for line in _lines(explanation))


def plain(text: str) -> str:
    r"""Return text without what could steer a terminal or cannot be written: controls, lone surrogates.

    >>> plain("Clear.\x1b[2J")
    'Clear.?[2J'
    """
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def flag_lines(flags: Iterable[Note | Flag], *, first: int = 0) -> tuple[str, ...]:
    """Say flags in words, drafts with one trouble together; a note that is not known stays as it is.

    Drafts are counted from `first`.

    >>> same = [Note("no-change", "findings", draft) for draft in (0, 3)]
    >>> flag_lines([*same, Note("stopped", draft=1)])
    ('no change of the findings in drafts 0, 3', 'stopped:1')
    """
    grouped: dict[Note | Flag, list[str]] = {}
    for flag in flags:
        if isinstance(flag, Note) and flag.kind in FLAGS:
            grouped.setdefault(replace(flag, draft=None), []).extend(
                [] if flag.draft is None else [str(flag.draft + first)]
            )
        else:
            grouped[flag] = []
    return tuple(
        FLAGS.get(about.kind, "{about}").format(
            about=about,
            section=about.section,
            reports=f"draft{'s' if len(drafts) > 1 else ''} {', '.join(drafts)}" if drafts else "the prior",
        )
        for about, drafts in grouped.items()
    )


def why_no_shares(explanation: Explanation, section: SectionExplanation) -> str:
    """Say why a section has no shares; nothing if it has, or where the selector never has."""
    if not explanation.distance or section.shares is not None:
        return ""
    if not section.prior:
        return "The prior lacks this section: there is no change to share out."
    if not section.current:
        return "The draft lacks this section: there is no change to share out."
    return "The change has no direction: there is nothing to share out."


def percent(share: float | None) -> str:
    """Write a share with its sign; nothing if there is none.

    >>> percent(0.4996), percent(-0.0001), percent(None)
    ('+50%', '0%', '')
    """
    if share is None:
        return ""
    return f"{round(100 * share):+d}%".replace("+0%", "0%")


def number(value: float | None) -> str:
    """Write a distance; a dash if there is none."""
    return "-" if value is None else f"{value:.4f}"


def _lines(explanation: Explanation) -> Iterator[str]:
    """Yield the lines of an explanation."""
    yield from _wrapped(f"{plain(explanation.id)}: {explanation.verdict}", "")
    if explanation.draft not in (None, explanation.selected):
        behind = "" if explanation.behind is None else f", {explanation.behind:.4f} behind the chosen one"
        yield from _wrapped(f"explained here: draft {explanation.draft}{behind}", "  ")
    for line in flag_lines(explanation.flags):
        yield from _wrapped(plain(line), "  ! ")
    if explanation.decision:
        yield from ("", *_decision(explanation))
    if explanation.drafts:
        yield from ("", "Distances, lower is better", *_drafts(explanation))
    for name, section in explanation.sections.items():
        yield from ("", *_section(name, section, explanation))


def _decision(explanation: Explanation) -> Iterator[str]:
    """Yield the table of what decided; parts without a say are left out."""
    yield f"What decided, draft {explanation.selected} against draft {explanation.against}"
    rows = [
        (f"{each.section} {plain(each.part)}", f"{each.adds:+.4f}", percent(each.share) or "-")
        for each in explanation.decision
        if percent(each.share) != "0%"
    ]
    yield from _table(("part", "adds", "share"), rows)


def _drafts(explanation: Explanation) -> Iterator[str]:
    """Yield the table of drafts, and one of parts for each section that has them."""
    drafts = explanation.drafts
    sections = list(drafts[0].sections)
    rows = [
        (
            _name(explanation, draft),
            *(number(draft.sections[name]) + ("*" if name in draft.lacks else " ") for name in sections),
            number(draft.total),
        )
        for draft in drafts
    ]
    yield from _table(("draft", *(f"{name} " for name in sections), "total"), rows)
    if any(draft.lacks for draft in drafts):
        yield "  * the draft lacks this section"
    for name in drafts[0].parts:
        parts = list(drafts[0].parts[name])
        values = [(_name(explanation, draft), *map(number, draft.parts[name].values())) for draft in drafts]
        heading = "Parts of" if explanation.parts_add_up else "Measured beside"
        yield from ("", f"{heading} the {name} distance", *_table(("draft", *map(plain, parts)), values))


def _name(explanation: Explanation, draft: DraftDistances) -> str:
    """Return a draft's number with what became of it: chosen, runner-up, explained, or nothing."""
    if draft.draft == explanation.selected:
        return f"{draft.draft} chosen"
    words = {"runner-up": explanation.runner_up, "explained": explanation.draft}
    return f"{draft.draft} {', '.join(word for word, number in words.items() if number == draft.draft)}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table; columns that do not fit stand below, with the first column again."""
    widths = [2 + max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    start = 1
    while start < len(heads):
        stop = start + 1
        while stop < len(heads) and widths[0] + sum(widths[start : stop + 1]) <= WIDTH:
            stop += 1
        for row in (heads, *rows):
            cells = (f"{row[at]:>{widths[at]}}" for at in range(start, stop))
            yield f"  {row[0]:<{widths[0] - 2}}{''.join(cells)}"
        start = stop


def _section(name: str, section: SectionExplanation, explanation: Explanation) -> Iterator[str]:
    """Yield one section: its aligned sentences with their shares, and the nearest training changes."""
    where = "not compared" if section.distance is None else f"distance {section.distance:.4f}"
    yield f"{name.capitalize()} of draft {explanation.draft} beside the prior: {where}"
    if section.shares is not None:
        yield f"  {'':<10}  share  (of the {explanation.distance} change; all lines add up to 100%)"
    if why := why_no_shares(explanation, section):
        yield f"  {why}"
    for pair in section.alignment:
        yield from _pair(pair, section)
    for place, line in enumerate(evidence_lines(section.evidence, section.current)):
        yield from ([] if place else ["", "  What speaks for and against it"])
        yield from _wrapped(plain(line), "  . ")
    if section.nearest:
        yield from ("", f"  {explanation.cited}")
    for place, change in enumerate(section.nearest, start=1):
        looked_up = "" if change.prior_distance is None else f"prior {change.prior_distance:.4f} away, "
        yield from _wrapped(f"{plain(change.id)}, {looked_up}distance {change.distance:.4f}", f"  {place}. ")
        for mark, text in changed_sentences(change):
            yield from _wrapped(plain(text), f"     {mark:<3} ")


def _pair(pair: Aligned, section: SectionExplanation) -> Iterator[str]:
    """Yield a sentence with its mark, its share and how near its partner is; below, what it was."""
    text = section.current[pair.current] if pair.current is not None else section.prior[pair.prior or 0]
    remark = ""
    if pair.kind != "same" and pair.distance is not None:
        near = "distance" if pair.kind == "reworded" else "nearest"
        turned = f"; says otherwise of {', '.join(pair.turned)}" if pair.turned else ""
        remark = f" ({near} {pair.distance:.2f}{turned})"
    if pair.kind != "reworded" or section.shares is None:
        share = section.share_of(pair)
    else:
        share = section.shares.current[pair.current or 0]
    mark = f"{MARKS[pair.kind]} {pair.kind}"
    yield from _wrapped(f"{plain(text)}{remark}", f"  {mark:<10}  {percent(share):>5}  ")
    if pair.kind == "reworded" and pair.prior is not None:
        share = None if section.shares is None else section.shares.prior[pair.prior]
        yield from _wrapped(plain(section.prior[pair.prior]), f"  {'  was':<10}  {percent(share):>5}  ")


def changed_sentences(change: TrainingChange) -> Iterator[tuple[str, str]]:
    """Yield the sentences that changed, each behind its mark; those that did not are counted."""
    same = sum(pair.kind == "same" for pair in change.alignment)
    if same:
        yield MARKS["same"], f"{same} sentence{'s' if same > 1 else ''} unchanged"
    for pair in change.alignment:
        if pair.kind != "same" and pair.current is not None:
            yield MARKS[pair.kind], change.current[pair.current]
        if pair.kind != "same" and pair.prior is not None:
            yield ("was" if pair.kind == "reworded" else MARKS[pair.kind]), change.prior[pair.prior]


def _wrapped(text: str, start: str) -> Iterator[str]:
    """Yield lines of at most 80 columns; those after the first are indented as far."""
    lines = wrap(text, WIDTH - len(start)) or [""]
    yield f"{start}{lines[0]}"
    yield from (f"{'':<{len(start)}}{line}" for line in lines[1:])
