"""A bank's card: what it holds and how it was made, and what its author must add."""

from collections import Counter
from collections.abc import Iterable, Iterator

from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES
from tabon.reporting.cards.facts import plain
from tabon.text.reports import SECTIONS

ABOUT = (
    "Transitions between consecutive chest X-ray reports, for tabon. Research use only; not a medical "
    "device. A bank holds the sentences of its reports: treat it like them."
)
AUTHOR = (
    "Source of the reports, and the licence or agreement that they are under",
    "Who may use this bank, and under which licence: it holds the sentences of its reports",
    "How the reports were de-identified",
    "Language, hospitals, scanners, and whom the patients represent",
    "Intended use, and uses to be avoided",
    "Contact",
)


def bank_card(bank: TransitionBank) -> str:
    """Return the card as Markdown: counts, dates, encoder, splits; no text of a report."""
    made = bank.fingerprint
    lines = [
        "# Bank card",
        "",
        ABOUT,
        "",
        "## What it holds",
        "",
        f"- {len(bank):,} transitions of {len(bank.patients):,} patients",
        f"- {len(bank.table.sentences):,} distinct sentences",
        *(f"- {section}: {len(bank.pairs[section].present()):,} transitions" for section in SECTIONS),
        *(f"- {line}" for line in _provenance(bank)),
        f"- sha256 `{bank.sha256}`",
        "",
        "## How it was made",
        "",
        *(f"- {name}: {plain(made[name])}" for name in sorted(made)),
        "",
        "## Share of transitions without a direction",
        "",
        f"| section | {' | '.join(DISTANCES)} |",
        f"|---|{'---|' * len(DISTANCES)}",
        *(_zero_row(bank, section) for section in SECTIONS),
        "",
        "## To be filled in by the author",
        "",
        *(f"- [ ] {item}:" for item in AUTHOR),
    ]
    return "\n".join(lines) + "\n"


def _zero_row(bank: TransitionBank, section: str) -> str:
    """Return a row of the table of zero transitions."""
    shares = bank.zero_shares[section]
    return f"| {section} | {' | '.join(f'{shares[name]:.1%}' for name in DISTANCES)} |"


def _provenance(bank: TransitionBank) -> Iterator[str]:
    """Yield the splits, the views and the span of dates that the transitions name."""
    counted: dict[str, Counter[str]] = {"split": Counter(), "view": Counter()}
    days: list[str] = []
    for row in bank.provenance:
        for name, counts in counted.items():
            counts[plain(row.get(name) or "not named")] += 1
        days += _dates(row.get(name) for name in ("prior_date", "current_date"))
    for name, counts in counted.items():
        yield f"{name}: {', '.join(f'{value} {count:,}' for value, count in sorted(counts.items()))}"
    yield f"dates: {min(days)} to {max(days)} as the data set gives them" if days else "dates: none are named"


def _dates(values: Iterable[object]) -> list[str]:
    """Return the dates as they are written, what is no text left out."""
    return [plain(value) for value in values if isinstance(value, str) and value]
