"""What a cohort is made of, in numbers: counts, exclusions, days, repeats, overlap."""

import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate
from typing import Any, Literal

from tabon.data.cohort.link import SPLITS
from tabon.data.cohort.visits import Excluded

PAPER = {  # patients, visits, transitions: table "Multi-visit cohort" of the paper's appendix
    "train": (19_492, 42_237, 22_745),
    "valid": (1_411, 3_090, 1_679),
    "test": (1_459, 3_186, 1_727),
}
QUANTILES = {"least": 0.0, "quarter": 0.25, "median": 0.5, "three_quarters": 0.75, "most": 1.0}


@dataclass
class SplitCounts:
    """The sums of one split."""

    patients: int = 0
    visits: int = 0
    transitions: int = 0
    identical: int = 0  # pairs whose two reports are word for word the same
    days: Counter[int] = field(default_factory=Counter)


class Audit:
    """Adds up while a cohort is written; memory does not grow with it."""

    def __init__(self, *, views: Literal["ap-pa", "any"] = "ap-pa") -> None:
        """Start from nothing; texts are remembered as hashes, on disk."""
        self.views = views  # the rule by which visits are linked
        self.splits = {split: SplitCounts() for split in SPLITS}
        self.excluded: Counter[str] = Counter()
        self._texts = sqlite3.connect("", isolation_level=None)
        self._texts.execute("BEGIN")
        self._texts.execute("CREATE TABLE bank (text INTEGER PRIMARY KEY)")
        self._texts.execute("CREATE TABLE test (text INTEGER)")

    def exclude(self, excluded: Excluded) -> None:
        """Count a row that is left out."""
        self.excluded[excluded.reason] += 1

    def patient(self, split: str, visits: int) -> None:
        """Count a patient and the visits of the chain."""
        self.splits[split].patients += 1
        self.splits[split].visits += visits

    def transition(self, record: Mapping[str, Any], days: int | None) -> None:
        """Count a transition."""
        split = record["split"]
        counts = self.splits[split]
        prior = record["prior"][-1] if isinstance(record["prior"], list) else record["prior"]
        counts.transitions += 1
        current = _text_hash(record["current"])
        counts.identical += _text_hash(prior) == current
        if days is not None:
            counts.days[days] += 1
        if split == "train":
            self._texts.execute("INSERT OR IGNORE INTO bank VALUES (?)", [current])
        elif split == "test":
            self._texts.execute("INSERT INTO test VALUES (?)", [current])

    def close(self) -> dict[str, Any]:
        """Return the audit as it goes into audit.json."""
        query = "SELECT count(*), count(bank.text) FROM test LEFT JOIN bank USING (text)"
        references, seen = self._texts.execute(query).fetchone()
        self._texts.close()
        return {
            "splits": {
                split: {
                    "patients": counts.patients,
                    "visits": counts.visits,
                    "transitions": counts.transitions,
                    "paper": dict(zip(("patients", "visits", "transitions"), PAPER[split], strict=True)),
                    "identical_share": _share(counts.identical, counts.transitions),
                    "days_between_visits": _quantiles(counts.days),
                }
                for split, counts in self.splits.items()
            },
            "views": self.views,
            "excluded": dict(sorted(self.excluded.items())),
            "test_references_also_in_the_bank": {
                "count": seen,
                "of": references,
                "share": _share(seen, references),
            },
        }


def audit_table(record: Mapping[str, Any], *, paper: bool = True) -> Iterator[str]:
    """Yield the lines that a person reads, the paper's counts beside ours if wanted."""
    yield f"{'split':<8}{'patients':>10}{'visits':>10}{'transitions':>13}" + "   the paper's" * paper
    for split, counts in record["splits"].items():
        theirs = "   " + "  ".join(f"{number:,}" for number in PAPER[split])
        ours = f"{counts['patients']:>10,}{counts['visits']:>10,}{counts['transitions']:>13,}"
        yield f"{split:<8}{ours}" + theirs * paper
    if record["views"] == "any":
        yield "views are not known: all visits of a patient form one chain"
    for split, counts in record["splits"].items():
        if counts["transitions"]:
            days = counts["days_between_visits"]
            when = f", days between visits: median {days['median']}" if days else ""
            yield f"{split}: {counts['identical_share']:.1%} of pairs are word for word the same{when}"
    overlap = record["test_references_also_in_the_bank"]
    yield f"test reports that also stand in the training split: {overlap['count']:,} of {overlap['of']:,}"
    for reason, count in record["excluded"].items():
        yield f"left out, {reason}: {count:,}"


def _quantiles(counted: Counter[int]) -> dict[str, int]:
    """Return some quantiles of counted numbers, the number at or above each rank; nothing for none."""
    numbers = sorted(counted)
    passed = list(accumulate(counted[number] for number in numbers))
    return {
        name: numbers[bisect_right(passed, share * (passed[-1] - 1))]
        for name, share in QUANTILES.items()
        if numbers
    }


def _share(part: int, whole: int) -> float:
    """Return a share; 0 of nothing."""
    return part / whole if whole else 0.0


def _text_hash(report: Mapping[str, str]) -> int:
    """Return 63 bits that stand for a report's words."""
    words = " ".join(f"{report['findings']} \0 {report['impression']}".lower().split())
    return int.from_bytes(sha256(words.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1
