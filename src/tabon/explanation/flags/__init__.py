"""Flags: what in a draft a reader should look at, each with the sentences concerned.

What they are worth on the simulated cohort is in `docs/guide/flags.md`.
"""

from tabon.explanation.flags.check import draft_flags, query_flags
from tabon.explanation.flags.rules import FLAG_KINDS, Flag, FlagKind
from tabon.text.findings import is_lasting

__all__ = ["FLAG_KINDS", "Flag", "FlagKind", "draft_flags", "is_lasting", "query_flags"]
