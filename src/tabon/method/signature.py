"""What identifies a bank, and the line that goes under every number."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from typing import Any

from tabon.encoders import Encoder, EncoderFingerprint
from tabon.errors import BankMismatchError
from tabon.method.sentence_sets import SET_MODE
from tabon.text.reports import PARSER
from tabon.text.sentences import SPLITTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint(EncoderFingerprint):
    """All that went into a bank's vectors; a bank made with other values is refused."""

    splitter: str
    parser: str
    sets: str

    @classmethod
    def of(cls, encoder: Encoder) -> "Fingerprint":
        """Return the fingerprint that a bank built here and now would have."""
        return cls(**asdict(encoder.fingerprint), splitter=SPLITTER, parser=PARSER, sets=SET_MODE)

    def check(self, bank: Mapping[str, Any]) -> None:
        """Refuse a bank by the name of the first field that differs.

        Other batches change last bits alone, so a bank made on a GPU serves a processor.
        """
        here = asdict(self)
        for field in [*here, *(bank.keys() - here.keys())]:
            if field != "batching" and bank.get(field) != here.get(field):
                raise BankMismatchError(field, bank=bank.get(field), here=here.get(field))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """All that changes a selection, in one line that fits under a table."""

    distance: str
    aggregate: str  # min, knn10
    encoder: str  # name@weights
    splitter: str
    parser: str
    sets: str
    zero: str
    empty: str
    solver: str
    bank: str  # first 12 hex digits of the bank's sha256
    tabon: str = version("tabon")

    def __str__(self) -> str:
        """Write name:value, joined by bars."""
        return "|".join(f"{field.name}:{getattr(self, field.name)}" for field in fields(self))


def differences(one: str, other: str) -> tuple[str, str]:
    """Return what each of two signatures says that the other does not.

    >>> differences("distance:novelty|zero:match", "distance:cost-ot|zero:match")
    ('distance:novelty', 'distance:cost-ot')
    """
    left, right = (set(signature.split("|")) for signature in (one, other))
    return ", ".join(sorted(left - right)), ", ".join(sorted(right - left))
