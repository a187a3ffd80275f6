"""What a cohort is made of, in numbers: counts, exclusions, days, repeats, overlap."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

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

    def __init__(self) -> None:
        """Start from nothing; texts are remembered as hashes, on disk."""
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
        counts.identical += _text_hash(prior) == _text_hash(record["current"])
        if days is not None:
            counts.days[days] += 1
        self._remember(split, record["current"])

    def _remember(self, split: str, report: Mapping[str, str]) -> None:
        """Keep the hash of a bank's or a test's current report."""
        if split == "train":
            self._texts.execute("INSERT OR IGNORE INTO bank VALUES (?)", [_text_hash(report)])
        elif split == "test":
            self._texts.execute("INSERT INTO test VALUES (?)", [_text_hash(report)])

    def close(self) -> dict[str, Any]:
        """Return the audit as it goes into audit.json."""
        query = "SELECT count(*), count(bank.text) FROM test LEFT JOIN bank USING (text)"
        references, seen = self._texts.execute(query).fetchone()
        self._texts.close()
        return {
            "splits": {split: _split_record(split, counts) for split, counts in self.splits.items()},
            "excluded": dict(sorted(self.excluded.items())),
            "test_references_also_in_the_bank": {
                "count": seen,
                "of": references,
                "share": _share(seen, references),
            },
        }


def audit_table(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that a person reads, the paper's counts beside ours."""
    yield f"{'split':<8}{'patients':>10}{'visits':>10}{'transitions':>13}   the paper's"
    for split, counts in record["splits"].items():
        paper = "  ".join(f"{number:,}" for number in PAPER[split])
        ours = f"{counts['patients']:>10,}{counts['visits']:>10,}{counts['transitions']:>13,}"
        yield f"{split:<8}{ours}   {paper}"
    for split, counts in record["splits"].items():
        if counts["transitions"]:
            days = counts["days_between_visits"]
            when = f", days between visits: median {days['median']}" if days else ""
            yield f"{split}: {counts['identical_share']:.1%} of pairs are word for word the same{when}"
    overlap = record["test_references_also_in_the_bank"]
    yield f"test reports that also stand in the training split: {overlap['count']:,} of {overlap['of']:,}"
    for reason, count in record["excluded"].items():
        yield f"left out, {reason}: {count:,}"


def _split_record(split: str, counts: SplitCounts) -> dict[str, Any]:
    """Return one split's numbers beside the paper's."""
    patients, visits, transitions = PAPER[split]
    return {
        "patients": counts.patients,
        "visits": counts.visits,
        "transitions": counts.transitions,
        "paper": {"patients": patients, "visits": visits, "transitions": transitions},
        "identical_share": _share(counts.identical, counts.transitions),
        "days_between_visits": _quantiles(counts.days),
    }


def _quantiles(counted: Counter[int]) -> dict[str, int]:
    """Return some quantiles of counted numbers; nothing where there are none."""
    total = sum(counted.values())
    return (
        {name: _quantile(counted, share * (total - 1)) for name, share in QUANTILES.items()} if total else {}
    )


def _quantile(counted: Counter[int], rank: float) -> int:
    """Return the number at a rank, counted from 0."""
    passed = 0
    for number in sorted(counted):
        passed += counted[number]
        if passed > rank:
            return number
    return max(counted)


def _share(part: int, whole: int) -> float:
    """Return a share; 0 of nothing."""
    return part / whole if whole else 0.0


def _text_hash(report: Mapping[str, str]) -> int:
    """Return 63 bits that stand for a report's words."""
    words = " ".join(f"{report['findings']} \0 {report['impression']}".lower().split())
    return int.from_bytes(sha256(words.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1
