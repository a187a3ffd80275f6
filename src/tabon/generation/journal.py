"""The journal of drafts: append-only, on disk before it counts, found again by key.

Drafts cost money and models are retired, so the journal is the artefact. One line is one response.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from tabon._internal.record_file import RecordFile, misfit, read_records, record_line
from tabon.errors import BadInputError
from tabon.generation.protocol import Answer, Parameters

MAX_LEVELS = 100  # of lists and objects inside each other in a body that is kept
MOST_DOLLARS = 1e12  # a cost beyond it, below 0 or not a number counts as unknown
NEW_FIELDS = frozenset({"seed", "source"})  # of a key; records of the first version were keyed without them


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftKey:
    """What makes a draft the draft that was asked for; any change is another draft."""

    study: str
    model: str
    source: str | None  # the server, revision or command behind the model's name; None: its only one
    prompt: str  # its name
    prompt_sha256: str  # of the prompt as sent
    image_sha256: str | None
    parameters: Parameters
    sample: int
    seed: int

    def digest(self) -> str:
        """Return the key under which the draft is kept."""
        return _digest(asdict(self))

    def old_digest(self) -> str:
        """Return the key that the first version gave to this draft, whatever its seed and source."""
        return _digest({name: value for name, value in asdict(self).items() if name not in NEW_FIELDS})


def _digest(key: Mapping[str, Any]) -> str:
    """Hash the fields of a key."""
    return sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()


class Kept:
    """Which drafts a journal holds, and what they cost."""

    def __init__(self) -> None:
        """Start with none."""
        self._keys: set[bytes] = set()
        self._unnamed: set[bytes] = set()  # of records that do not say which server wrote them
        self.cost = 0.0

    def __contains__(self, key: DraftKey) -> bool:
        """Whether this draft is there.

        Raises:
            BadInputError: it may be there, by a version of tabon that did not note its server.
        """
        if bytes.fromhex(key.digest()) in self._keys:
            return True
        if (
            self._unnamed
            and key.source is not None
            and bytes.fromhex(replace(key, source=None).digest()) in self._unnamed
        ):
            raise BadInputError(
                f"the journal holds drafts of {key.model} by a version of tabon that did not note which "
                "server, revision or command wrote them; write to another --out"
            )
        return False

    def __len__(self) -> int:
        """Count the drafts."""
        return len(self._keys)

    def add(self, record: Mapping[str, Any]) -> None:
        """Index one record; one of the first version by its fields, with the seed it was drawn with."""
        if "source" in record:
            self._keys.add(bytes.fromhex(record["key"]))
        else:
            names = [field.name for field in fields(DraftKey) if field.name != "source"]
            known = {name: record[name] for name in names} | {"study": str(record["study"]), "source": None}
            digest = bytes.fromhex(_digest(known))
            self._keys.add(digest)
            self._unnamed.add(digest)
        cost = record.get("cost")
        if isinstance(cost, int | float) and 0 <= cost <= MOST_DOLLARS:
            self.cost += cost


class Journal(Kept, RecordFile):
    """An open journal: what is in it, and the end where more is written."""

    BEGIN = b'{"key": "'
    FIRST = re.compile(rb'\{"key": "[0-9a-f]{64}", "study": ')

    def __init__(self, path: Path) -> None:
        """Open or create a journal, drop a cut-off end, and index what is there."""
        Kept.__init__(self)
        RecordFile.__init__(self, path)

    def _remember(self, record: Mapping[str, Any]) -> None:
        """Index one record."""
        if not _fits(record):
            raise ValueError("not the record of a draft")
        self.add(record)


def draft_line(key: DraftKey, answer: Answer, *, cost: float | None, time: str) -> bytes:
    """Return the line of one response."""
    return record_line(
        {
            "key": key.digest(),
            **asdict(key),
            "outcome": answer.outcome,
            "text": answer.text,
            "finish_reason": answer.finish_reason,
            "model_version": answer.model_version,
            "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens,
            "cost": cost,
            "time": time,
            "raw": answer.raw if _is_shallow(answer.raw, MAX_LEVELS) else "nested too deeply to be kept",
        }
    )


def can_be_kept(key: DraftKey) -> bool:
    """Whether a draft under this key could be read again."""
    return _fits(json.loads(draft_line(key, Answer(outcome="malformed"), cost=None, time="")))


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a journal, oldest first; a cut-off end is left out."""
    if not Path(path).is_file():
        raise BadInputError(f"there is no journal at {path}; make one with `tabon generate`")
    for number, _, record in read_records(Path(path), Journal):
        if not _fits(record):
            raise misfit(path, number)
        yield record


def _fits(record: Mapping[str, Any]) -> bool:
    """Whether a record has the fields of a draft; its cost is looked at where costs are added up."""
    names = ("finish_reason", "model_version", "input_tokens", "output_tokens", "cost", "raw", "parameters")
    texts = ("key", "model", "prompt", "prompt_sha256", "outcome", "text")
    image, source, sample = (record.get(name) for name in ("image_sha256", "source", "sample"))
    return (
        all(name in record for name in names)
        and all(isinstance(record.get(name), str) for name in texts)
        and re.fullmatch("[0-9a-f]{64}", record["key"]) is not None
        and isinstance(record.get("study"), str | int)
        and isinstance(record.get("seed"), int)
        and isinstance(image, str | None)
        and isinstance(source, str | None)
        and isinstance(sample, int)
        and sample >= 0
    )


def _is_shallow(value: object, levels: int) -> bool:
    """Whether a JSON value can be written and read again, however deep the stack is."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(part, levels - 1) for part in parts)
