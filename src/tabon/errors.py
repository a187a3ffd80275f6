"""Everything tabon raises on purpose.

A message names the thing, the value and the way out. Ids and lengths may stand
in it, report text may not.

* TabonError
  - BadInputError        (ValueError)    a file, line or value does not fit its contract
  - EmptySectionError    (ValueError)    a set distance was asked for an empty set
  - BankMismatchError    (ValueError)    the bank was built with other settings
  - BankDamagedError     (ValueError)    the bank's bytes are not what was written
  - EncoderError         (RuntimeError)  an encoder is missing or answered nonsense
  - TransportError       (RuntimeError)  the transport solver did not reach the optimum
  - SearchServiceError   (RuntimeError)  a search service is away, or its answer cannot be trusted
  - EngineError          (RuntimeError)  the engine that does the work is away, or unlike this machine
  - UnknownNameError     (LookupError)   no such distance, encoder or policy
  - MetricUnavailableError (RuntimeError) a metric cannot be measured on this machine
  - MissingExtraError    (ImportError)   an optional dependency is not installed
"""

from collections.abc import Iterable
from difflib import get_close_matches


class TabonError(Exception):
    """The root of all errors that tabon raises on purpose."""


class BadInputError(TabonError, ValueError):
    """A file, a line or a value does not fit its contract."""


class EmptySectionError(TabonError, ValueError):
    """A set distance was asked for an empty sentence set."""


class BankMismatchError(TabonError, ValueError):
    """The bank was built with other settings than the ones in use."""

    def __init__(self, field: str, *, bank: object, here: object) -> None:
        """Name the differing field and both of its values."""
        super().__init__(
            f"the bank was built with {field} {bank!r}, here it is {here!r}; "
            "rebuild the bank with `tabon bank build` or use the settings it was built with"
        )
        self.field = field


class BankDamagedError(TabonError, ValueError):
    """The bank's bytes are not the bytes that were written."""

    def __init__(self, path: object, what: str) -> None:
        """Name the file and what is wrong with it."""
        super().__init__(f"{path} is not a whole tabon bank: {what}; rebuild it or copy it again")


class EncoderError(TabonError, RuntimeError):
    """An encoder is missing, or what it returned cannot be used."""


class TransportError(TabonError, RuntimeError):
    """The transport solver stopped before the optimum."""


class SearchServiceError(TabonError, RuntimeError):
    """A search service cannot be reached, or its answer cannot be trusted."""


class EngineError(TabonError, RuntimeError):
    """The engine that does the work cannot be reached, lost a piece, or is not like this machine."""


class UnknownNameError(TabonError, LookupError):
    """No such distance, encoder or policy."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        """Name the nearest known name, then all of them."""
        names = sorted(known)
        close = get_close_matches(name, names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(f"unknown {kind} {name!r}.{hint} Known: {', '.join(names)}")


class MissingExtraError(TabonError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        """Name the feature and the command that adds it."""
        super().__init__(f"{feature} is not installed; add it with: pip install 'tabon[{extra}]'")


class MetricUnavailableError(TabonError, RuntimeError):
    """A metric cannot be measured here: its weights or packages are missing."""

    def __init__(self, metric: str, reason: str, remedy: str) -> None:
        """Say why, and the command or option that mends it."""
        super().__init__(f"{metric} is not measured: {reason}; {remedy}")
        self.metric, self.reason, self.remedy = metric, reason, remedy
