"""Explanations on one page: one file, no script, nothing from elsewhere, every text escaped."""

from collections.abc import Iterator, Sequence
from html import escape
from string import Template

from tabon.explain.alignment import Aligned
from tabon.explain.explanation import Explanation, SectionExplanation, TrainingChange
from tabon.explain.text import (
    MARKS,
    RESEARCH_USE,
    explained,
    flag_lines,
    how_near,
    number,
    percent,
    plain,
    status,
    verdict,
    why_no_shares,
)

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
CSS = """
:root{--ink:#1b1f2a;--faint:#566072;--page:#fff;--card:#f6f8fb;--rule:#d9dfe8;--accent:#0b6796;
  --warn:#8a4b00;--warn-card:#fff6e8;--new:#0b6b3a;--new-card:#e9f6ee;--gone:#a3301c;--gone-card:#fcefec;
  --other:#5b3fa0;--other-card:#f2eefb;--best:#e7f2f9;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--ink:#e7eaf0;--faint:#a3adbd;--page:#12151c;--card:#1b202a;
  --rule:#343c4a;--accent:#6bbbe6;--warn:#f2c078;--warn-card:#2a2216;--new:#7ed6a2;--new-card:#15281d;
  --gone:#f2a08f;--gone-card:#2e1a17;--other:#bba9f0;--other-card:#221d33;--best:#17303f}}
*{box-sizing:border-box}
html{scroll-padding-top:3.2rem}
body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);
  overflow-wrap:anywhere}
header,main,footer{max-width:64rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:2rem}
h1{font-size:clamp(1.5rem,1.1rem + 2vw,2.2rem);line-height:1.2;margin:0 0 .4rem}
h2{font-size:1.3rem;line-height:1.25;margin:0 0 .3rem}
h3{font-size:1.05rem;margin:1.5rem 0 .4rem}
h3 small{font-weight:400;white-space:nowrap}
h4{font-size:.94rem;margin:1.1rem 0 .3rem;color:var(--faint)}
p{margin:.4rem 0 .7rem;max-width:46rem}
.lead,.how{color:var(--faint)}
.how,small{font-size:.9rem}
small{color:var(--faint)}
.notice{border-left:.28rem solid var(--warn);background:var(--warn-card);padding:.6rem .9rem;
  border-radius:0 .4rem .4rem 0;max-width:none}
.flags{list-style:none;padding:0;margin:.4rem 0}
.flags li{color:var(--warn)}
nav{position:sticky;top:0;z-index:2;background:var(--page);border-bottom:1px solid var(--rule);
  margin-top:1rem}
nav ul{max-width:64rem;margin:0 auto;padding:0 1.25rem;display:flex;gap:1.1rem;list-style:none;
  overflow-x:auto;white-space:nowrap}
nav a{display:block;padding:.6rem 0;color:var(--accent);text-decoration:none;font-size:.92rem}
nav a:hover,nav a:focus-visible{text-decoration:underline}
article{border-top:1px solid var(--rule);margin-top:2.2rem;padding-top:1.4rem}
article:first-child{border:0;margin-top:0}
.scroll{overflow-x:auto;border:1px solid var(--rule);border-radius:.5rem;margin:.4rem 0 1rem}
.scroll:focus-visible,summary:focus-visible,nav a:focus-visible{outline:2px solid var(--accent);
  outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.34rem .7rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
thead th{background:var(--card);font-weight:650}
tr>:first-child{text-align:left}
tbody th{font-weight:500}
tbody tr:last-child>*{border-bottom:0}
tr.chosen>*{background:var(--best);font-weight:650}
.lines{list-style:none;padding:0;margin:.3rem 0}
.lines li{display:grid;grid-template-columns:7.2rem minmax(0,1fr) 9.5rem;gap:.2rem .9rem;align-items:baseline;
  padding:.4rem .7rem;border-left:.3rem solid var(--rule);border-bottom:1px solid var(--rule)}
.lines.bare li{grid-template-columns:7.2rem minmax(0,1fr)}
.lines b{font-weight:650;white-space:nowrap;font-size:.9rem}
.lines q{quotes:none;unicode-bidi:isolate}
.lines .was{color:var(--faint);font-size:.92rem;grid-column:2}
.new{border-left-color:var(--new)!important;background:var(--new-card)}.new b{color:var(--new)}
.dropped{border-left-color:var(--gone)!important;background:var(--gone-card)}.dropped b{color:var(--gone)}
.reworded{border-left-color:var(--other)!important;background:var(--other-card)}
.reworded b{color:var(--other)}
.share{display:flex;gap:.5rem;align-items:center;justify-content:flex-end;font-variant-numeric:tabular-nums;
  font-size:.9rem}
.share i{display:block;height:.6rem;background:var(--accent);border-radius:.15rem}
.share i.minus{background:none;border:1px solid var(--accent)}
.share span{min-width:3.3rem;text-align:right}
details{border:1px solid var(--rule);border-radius:.5rem;margin:.4rem 0;padding:0 .8rem}
summary{cursor:pointer;color:var(--accent);padding:.45rem 0}
details .lines{margin:0 0 .7rem}
code{font:.84em/1.5 ui-monospace,monospace}
footer{color:var(--faint);font-size:.88rem;padding-top:2rem;padding-bottom:3rem}
@media(max-width:40rem){body{font-size:15px}header{padding-top:1.2rem}
  .lines li,.lines.bare li{grid-template-columns:minmax(0,1fr) auto}
  .lines .now,.lines .was{grid-column:1/-1}
  .lines .share{grid-row:1;grid-column:2}.lines b{grid-row:1}th,td{padding:.3rem .5rem}}
@media print{nav{display:none}.scroll{overflow:visible}li,tr{break-inside:avoid}}
"""
PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Why this draft</title>
<style>$css</style></head><body>
<header><h1>Why this draft</h1>
<p class="lead">What each chosen draft says beside the patient's prior report, what its change is made of, and
which changes in training reports it is near to.</p>
<p class="notice"><strong>$research</strong> An explanation says how the choice was made, not that the
draft is right.</p>
$how</header>
$nav
<main>
$articles
</main>
<footer>$signatures
This page is one file; it loads nothing from elsewhere.</footer>
</body></html>
""")
HOW = """<p class="how"><b>= same</b>: stands in the prior too. <b>~ reworded</b>: near one prior sentence;
read both, near is not always equal in meaning. <b>+ new</b>: no prior sentence is its partner.
<b>- dropped</b>: only in the prior. A small number is the distance to the partner, or to the nearest sentence
of the other report. Distances: lower is better.</p>
"""
SHARES = """<p class="how">The percentage is a line's exact share of the change that was compared with the
bank. The lines of a section add up to 100 %; a share below zero (an empty bar) pulls the other way.</p>
"""
BAR = 5.0  # rem, for the largest share of a section


def explain_page(explanations: Sequence[Explanation]) -> str:
    """Return the page as HTML."""
    links = "".join(
        f'<li><a href="#query-{place}">{_text(one.id)}</a></li>' for place, one in enumerate(explanations)
    )
    nav = f'<nav aria-label="Queries"><ul>{links}</ul></nav>' if len(explanations) > 1 else ""
    signatures = dict.fromkeys(one.signature for one in explanations if one.signature)
    return PAGE.substitute(
        policy=escape(POLICY),
        css=CSS,
        research=escape(RESEARCH_USE),
        how=HOW + (SHARES if any(one.distance for one in explanations) else ""),
        nav=nav,
        articles="\n".join(_article(place, one) for place, one in enumerate(explanations)),
        signatures="".join(f"<p><code>{_text(line)}</code></p>" for line in signatures),
    )


def _text(text: str) -> str:
    """Return text that can stand anywhere in the page."""
    return escape(plain(text))


def _article(place: int, explanation: Explanation) -> str:
    """Return one query."""
    flags = "".join(f"<li>! {_text(line)}</li>" for line in flag_lines(explanation.flags))
    told = explained(explanation)
    said = f"{_sentence_case(verdict(explanation))}." + (f" {_sentence_case(told)}." if told else "")
    parts = (
        f"<h2>{_text(explanation.id)}</h2><p>{_text(said)}</p>",
        f'<ul class="flags">{flags}</ul>' if flags else "",
        *_tables(explanation),
        *(_section(name, part, explanation) for name, part in explanation.sections.items()),
    )
    return f'<article id="query-{place}">{"".join(parts)}</article>'


def _sentence_case(text: str) -> str:
    """Begin a sentence with a capital."""
    return text[:1].upper() + text[1:]


def _tables(explanation: Explanation) -> Iterator[str]:
    """Yield the distances of all drafts, and their parts where the selector has them."""
    if not explanation.drafts:
        return
    sections = list(explanation.drafts[0].sections)
    rows = [
        [
            *(number(one.sections[name]) + (" (lacks it)" if name in one.lacks else "") for name in sections),
            number(one.total),
        ]
        for one in explanation.drafts
    ]
    yield _table("Distances", [*sections, "total"], rows, explanation)
    for name, parts in explanation.drafts[0].parts.items():
        rows = [[number(one.parts[name][part]) for part in parts] for one in explanation.drafts]
        yield f"<h4>Parts of the {_text(name)} distance</h4>"
        yield _table(f"Parts of the {name} distance", list(parts), rows, explanation)


def _table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]], explanation: Explanation) -> str:
    """Return a table with a row for each draft, in a box that scrolls by itself."""
    top = "".join(f'<th scope="col">{_text(head)}</th>' for head in ("draft", *heads))
    chosen = ' class="chosen"'
    body = "".join(
        f'<tr{chosen if one.draft == explanation.selected else ""}><th scope="row">{one.draft} '
        f"{status(explanation, one.draft)}</th>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>"
        for one, row in zip(explanation.drafts, rows, strict=True)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(name)}"><table><thead><tr>{top}'
        f"</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _section(name: str, section: SectionExplanation, explanation: Explanation) -> str:
    """Return one section: aligned sentences with their shares, and the nearest training changes."""
    where = "not compared" if section.distance is None else f"distance {number(section.distance)}"
    why = why_no_shares(explanation, section)
    kind = "lines" if section.shares is not None else "lines bare"
    shares = [abs(section.share_of(pair) or 0.0) for pair in section.alignment]
    scale = BAR / max([*shares, 1e-9])
    lines = "".join(_line(pair, section, scale) for pair in section.alignment)
    near = "".join(_training(place, change) for place, change in enumerate(section.nearest, start=1))
    return (
        f"<h3>{_text(name.capitalize())} of draft {explanation.draft} beside the prior "
        f"<small>{where}</small></h3>"
        + (f'<p class="how">{why}</p>' if why else "")
        + f'<ul class="{kind}">{lines}</ul>'
        + (f"<h4>Nearest changes in training reports</h4>{near}" if near else "")
    )


def _line(pair: Aligned, section: SectionExplanation, scale: float) -> str:
    """Return one line of the alignment with its share."""
    share = section.share_of(pair)
    return _pair(pair, section.prior, section.current, "" if share is None else _share(share, scale))


def _share(share: float, scale: float) -> str:
    """Return a share as a bar and a number; a negative one is an empty bar."""
    kind = ' class="minus"' if share < 0 else ""
    bar = f'<i{kind} style="width:{abs(share) * scale:.2f}rem" aria-hidden="true"></i>'
    return f'<div class="share">{bar}<span>{percent(share)}</span></div>'


def _pair(pair: Aligned, prior: Sequence[str], current: Sequence[str], bar: str = "") -> str:
    """Return a sentence behind its mark; below it what it was."""
    text = current[pair.current] if pair.current is not None else prior[pair.prior or 0]
    near = how_near(pair)
    remark = f" <small>{_text(near)}</small>" if near else ""
    was = ""
    if pair.kind == "reworded" and pair.prior is not None:
        was = f'<div class="was">was: <q>{_text(prior[pair.prior])}</q></div>'
    mark = f"<b>{MARKS[pair.kind]} {pair.kind}</b>"
    return f'<li class="{pair.kind}">{mark}<div class="now"><q>{_text(text)}</q>{remark}</div>{bar}{was}</li>'


def _training(place: int, change: TrainingChange) -> str:
    """Return a training transition; its sentences open when asked for, the nearest at once."""
    head = f"{place}. {_text(change.id)}, distance {number(change.distance)}"
    if not change.alignment:
        return f"<p>{head}</p>"
    lines = "".join(_pair(pair, change.prior, change.current) for pair in change.alignment)
    opened = " open" if place == 1 else ""
    return f'<details{opened}><summary>{head}</summary><ul class="lines bare">{lines}</ul></details>'
