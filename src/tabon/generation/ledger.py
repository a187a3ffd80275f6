"""The ledger of batch jobs: which drafts were asked for in which job, under the journal's crash rules."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

from tabon.generation.journal import NEW_FIELDS, DraftKey, RecordFile, can_be_kept, record_line
from tabon.generation.protocol import Parameters


@dataclass(frozen=True, slots=True)
class Ordered:
    """A draft that was asked for in a job."""

    key: DraftKey
    most: float  # dollars promised for it


@dataclass(slots=True)
class DraftBatch:
    """The drafts of one job."""

    name: str
    model: str
    source: str | None
    drafts: dict[str, Ordered]  # by the digest of their key, which is sent along
    at: float  # when it was written down, in seconds since 1970
    job: str | None = None

    def intent(self) -> dict[str, Any]:
        """Return what is written down before the job is submitted."""
        drafts = [asdict(ordered) for ordered in self.drafts.values()]
        facts = {"name": self.name, "model": self.model, "source": self.source, "at": self.at}
        return {"step": "intent", **facts, "drafts": drafts}


class Ledger(RecordFile):
    """The jobs that are open; an append-only file under the journal's crash rules."""

    BEGIN = b'{"step": "'
    FIRST = re.compile(rb'\{"step": "intent", "name": "tabon-[0-9a-f]{32}"')

    def __init__(self, path: Path) -> None:
        """Open or create a ledger and read which jobs are open."""
        self.open: dict[str, DraftBatch] = {}
        super().__init__(path)

    def __contains__(self, key: DraftKey) -> bool:
        """Whether a draft is being waited for."""
        digests = {key.digest()} | ({key.old_digest()} if key.source is None else set())
        return any(not digests.isdisjoint(batch.drafts) for batch in self.open.values())

    def __len__(self) -> int:
        """Count the open jobs."""
        return len(self.open)

    def write(self, record: Mapping[str, Any]) -> None:
        """Write one line; when this returns it is on disk."""
        self.append([record_line(record)])

    def _remember(self, record: Mapping[str, Any]) -> None:
        """Follow one line: an intent opens a batch, a job numbers it, an end closes it."""
        if record["step"] == "intent":
            by_key = dict(_ordered(draft) for draft in record["drafts"])
            facts = record["name"], record["model"], record.get("source")
            self.open[record["name"]] = DraftBatch(*facts, by_key, float(record["at"]))
        elif record["step"] == "job":
            self.open[record["name"]].job = record["job"]
        else:
            self.open.pop(record["name"], None)


def _ordered(draft: Mapping[str, Any]) -> tuple[str, Ordered]:
    """Read a draft of a batch, and the digest that it was sent under."""
    fields = {"seed": draft.get("seed"), "source": None, **draft["key"]}
    key = DraftKey(**fields | {"parameters": Parameters(**fields["parameters"])})
    if not can_be_kept(key) or not 0 <= draft["most"] < inf:
        raise ValueError("not a draft with its amount of money")
    is_new = draft["key"].keys() >= NEW_FIELDS
    return key.digest() if is_new else key.old_digest(), Ordered(key, float(draft["most"]))
