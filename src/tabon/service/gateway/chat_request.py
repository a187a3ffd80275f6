"""What a client asks for: the body to forward, the number of drafts, and the prior.

The prior is in the request, or in a prompt between the marks of ours (docs/reference/prompts.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from tabon.errors import GatewayError, ServiceError
from tabon.generation.prompts import PROMPTS, get_prompt
from tabon.selectors.scorer import full_name
from tabon.service.gateway.replies import text_of
from tabon.service.gateway.settings import GatewaySettings
from tabon.service.parsing import SHORT, Limits, bounded_query, load_of, object_from_body
from tabon.text.records import Query
from tabon.text.reports import Report, parse_report

OWN: Final = frozenset({"tabon", "n", "stream", "stream_options"})  # not forwarded as they stand
FIELDS: Final = frozenset({"prior", "patient", "drafts", "selector"})  # of the request's `tabon`
MARK: Final = "@tabon"  # behind a model's name, and then -SELECTOR or nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One request for a completion."""

    body: Mapping[str, Any]  # for the upstream, less what the gateway says itself
    model: str  # as the upstream knows it
    selector: str | None  # None: the service's own
    choices: int  # that the client wants back
    drafts: int
    stream: bool
    usage: bool  # whether a stream ends with the usage
    query: Query  # the prior and the patient; no drafts yet


def asked_of(body: bytes, limits: Limits, settings: GatewaySettings) -> ChatRequest:
    """Read a request, or say in one sentence why it cannot be answered."""
    try:
        record = object_from_body(body, limits)
    except ServiceError as error:
        raise bad_request(f"{error.message}; {error.hint}") from None
    most = min(settings.most_drafts, limits.drafts)
    own = _own_field(record)
    choices = _number(record.get("n"), "n", 1, most)
    drafts = _number(own.get("drafts"), "tabon.drafts", min(settings.drafts, most), most)
    stream = _switch(record.get("stream"), "stream")
    _check_prompt(record)
    model, selector = model_and_selector(record["model"], own.get("selector"))
    options = record.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise bad_request("'stream_options' is not an object; change it", "stream_options")
    return ChatRequest(
        body={**{key: value for key, value in record.items() if key not in OWN}, "model": model},
        model=model,
        selector=selector,
        choices=choices,
        drafts=max(choices, drafts),
        stream=stream,
        usage=_switch((options or {}).get("include_usage"), "stream_options.include_usage"),
        query=_query(record, own, limits),
    )


def _own_field(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the request says to the gateway."""
    own = record.get("tabon")
    if own is None:
        return {}
    if not isinstance(own, dict):
        raise bad_request("'tabon' is not an object; see docs/guide/gateway.md", "tabon")
    if not own.keys() <= FIELDS:
        raise bad_request(
            f"'tabon' has a key that is not known; it may hold {', '.join(sorted(FIELDS))}", "tabon"
        )
    return own


def _number(value: Any, name: str, usual: int, most: int) -> int:  # noqa: ANN401  # any JSON
    """Return a whole number from 1 on; 2.0 is one in JSON Schema."""
    if value is None:
        return usual
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise bad_request(f"'{name}' is not a whole number from 1 to {most}; change it", name)
    return value


def _switch(value: Any, name: str) -> bool:  # noqa: ANN401  # any JSON
    """Return true or false; nothing is false."""
    if value is not None and not isinstance(value, bool):
        raise bad_request(f"'{name}' is neither true nor false; change it", name)
    return bool(value)


def _check_prompt(record: Mapping[str, Any]) -> None:
    """Refuse messages and models that are none; what messages hold is the upstream's business."""
    messages, model = record.get("messages"), record.get("model")
    if not isinstance(messages, list) or not messages:
        raise bad_request("'messages' is not a list of messages; send at least one", "messages")
    if not all(isinstance(one, dict) and isinstance(one.get("role"), str) for one in messages):
        raise bad_request("'messages' holds what is no message; each has a role", "messages")
    if not isinstance(model, str) or not 0 < len(model) <= SHORT:
        raise bad_request(f"'model' is not a name of 1 to {SHORT} characters; see GET /v1/models", "model")


def model_and_selector(model: str, selector: Any = None) -> tuple[str, str | None]:  # noqa: ANN401
    """Take `@tabon` or `@tabon-SELECTOR` off a model's name; `selector` is what `tabon.selector` says.

    >>> model_and_selector("up-1@tabon-consensus:rouge-l-f"), model_and_selector("up-1@tabon")
    (('up-1', 'consensus:rouge-l-f'), ('up-1', None))
    >>> model_and_selector("up@q4"), model_and_selector("up@tabon2", "fused")
    (('up@q4', None), ('up@tabon2', 'fused'))
    """
    if selector is not None and (not isinstance(selector, str) or not 0 < len(selector) <= SHORT):
        raise bad_request("'tabon.selector' is not the name of a selector; leave it out", "tabon.selector")
    name, mark, rest = model.rpartition(MARK)
    if not mark or rest[:1] not in {"", "-"}:
        return model, selector
    if not name or rest == "-":
        raise bad_request(f"'model' is not MODEL{MARK} or MODEL{MARK}-SELECTOR; see GET /v1/models", "model")
    named = rest[1:] or None
    if named is not None and selector is not None and full_name(named) != full_name(selector):
        raise bad_request("'model' and 'tabon.selector' name two selectors; leave one out", "tabon.selector")
    return name, named or selector


def _query(record: Mapping[str, Any], own: Mapping[str, Any], limits: Limits) -> Query:
    """Return the query that the drafts will be put into, with the limits of the service."""
    prior = own.get("prior")
    users = [message.get("content") for message in record["messages"] if message["role"] == "user"]
    if "prior" not in own and users and (shown := prior_in(text_of(users[-1]))) is not None:
        prior = {"findings": shown.findings, "impression": shown.impression}
    asked: dict[str, Any] = {"id": "gateway", "patient": own.get("patient"), "prior": prior, "candidates": []}
    try:
        query = bounded_query(asked, limits)
    except ServiceError as error:
        raise bad_request(f"{error.message}; see docs/guide/gateway.md", "tabon") from None
    load_of(query, limits)  # here no draft is paid for yet
    return query


def bad_request(message: str, param: str | None = None) -> GatewayError:
    """Return the refusal of a request that does not fit."""
    return GatewayError(400, message, param=param, code="invalid_value")


class Marks(NamedTuple):
    """The lines before and after a prior report."""

    before: str
    after: str


def prior_in(prompt: str) -> Report | None:
    r"""Return the prior report that a prompt shows between the marks of P3 or of its hardened form.

    It reaches from the first mark to the last one, so that a mark inside a report does not cut it.

    >>> prior_in("<<<PRIOR\nFindings: Clear.\nImpression: Normal.\nPRIOR>>>").sections()
    {'findings': 'Clear.', 'impression': 'Normal.'}
    >>> prior_in("Findings: Clear.") is None
    True
    """
    lines = prompt.replace("\r\n", "\n").split("\n")
    bare = [line.strip() for line in lines]
    for marks in known_marks():
        if marks.before in bare and marks.after in bare:
            first, last = bare.index(marks.before), len(bare) - 1 - bare[::-1].index(marks.after)
            if first < last:
                text = "\n".join(lines[first + 1 : last]).strip()
                findings, between, impression = text.partition("\nImpression:")
                if between and findings.startswith("Findings:"):  # as tabon writes it
                    return Report(findings.removeprefix("Findings:"), impression)
                return parse_report(text)
    return None


@cache
def known_marks() -> tuple[Marks, ...]:
    """Return the marks of the prompts that show a prior, the fenced one first.

    >>> known_marks()[0]
    Marks(before='<<<PRIOR', after='PRIOR>>>')
    """
    prompts = [get_prompt(name) for name in PROMPTS]
    guarded_first = sorted((prompt for prompt in prompts if prompt.needs_prior), key=lambda one: one.profile)
    found = []
    for prompt in guarded_first:  # the lines around the placeholders
        before, _, rest = prompt.text.partition("Findings: {prior_findings}")
        after = rest.partition("{prior_impression}")[2]
        found.append(Marks(before.strip().rpartition("\n")[2], after.strip().partition("\n")[0]))
    return tuple(found)
