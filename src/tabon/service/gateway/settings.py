"""Where drafts come from, how many, and how hard the upstream may be asked."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tabon._internal.secret_files import LONGEST, read_secret
from tabon.errors import BadInputError
from tabon.generation.providers.http_generator import is_loopback
from tabon.selectors.streaming.rules import check_rule


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """How the gateway asks its upstream."""

    upstream: str  # the base URL that an OpenAI client would be given; it mostly ends in /v1
    key: str | None = field(default=None, repr=False)  # sent to the upstream; never logged
    pass_key: bool = False  # send the client's Authorization header on instead
    allow_plain: bool = False  # http to another machine
    drafts: int = 5  # N, where a request does not say
    most_drafts: int = 16
    prune: bool = False  # stop weak drafts while they are written
    prune_points: tuple[int, ...] = (16, 32)  # words after which the better half goes on
    timeout: float = 120.0  # seconds for all drafts of one request, retries included
    retries: int = 2  # of one call, after the first attempt
    first_wait: float = 0.5  # seconds before the first retry; doubles
    requests: int = 32  # at the same time; more are refused
    calls: int = 64  # to the upstream at the same time; more wait
    draft_bytes: int = 2_000_000  # of an answer, for each draft in it
    keep_alive: float = 5.0  # seconds between comments in a stream that has nothing to say yet

    def __post_init__(self) -> None:
        """Refuse what sends text or keys where they do not belong, and limits that let nothing through."""
        _check_address(self.upstream, allow_plain=self.allow_plain)
        if self.key is not None and self.pass_key:
            raise BadInputError(
                "the upstream's key comes from a file or from the client; leave one of them out"
            )
        if not 1 <= self.drafts <= self.most_drafts:
            raise BadInputError(f"{self.drafts} drafts are asked for; give 1 to {self.most_drafts}")
        check_rule(self.prune_points, "words", keep=1)
        if min(self.timeout, self.requests, self.calls, self.draft_bytes, self.keep_alive) <= 0:
            raise BadInputError("a limit of the gateway is not above 0; raise it")

    def url(self, path: str) -> str:
        """Return the address of one of the upstream's routes."""
        return f"{self.upstream.rstrip('/')}/{path}"


def gateway_settings(
    upstream: str,
    *,
    key_file: Path | None = None,
    pass_key: bool = False,
    has_token: bool = False,
    **others: Any,  # noqa: ANN401  # fields of GatewaySettings
) -> GatewaySettings:
    """Return settings with the key that a file holds.

    Args:
        upstream: the upstream's base URL.
        key_file: holds the upstream's key, one line.
        pass_key: send the client's Authorization header on.
        has_token: whether the service asks its own clients for a token in that header.
        others: further fields of `GatewaySettings`.
    """
    if pass_key and has_token:
        raise BadInputError(
            "clients send this service's token as Authorization, which the upstream must not see; "
            "give the upstream's key with --upstream-key-file"
        )
    key = None if key_file is None else read_key(key_file)
    return GatewaySettings(upstream=upstream, key=key, pass_key=pass_key, **others)


def read_key(path: Path) -> str:
    """Return the key in a file: one line of visible ASCII."""
    key = read_secret(path)
    if not 0 < len(key) <= LONGEST or not all(33 <= byte <= 126 for byte in key):  # noqa: PLR2004
        raise BadInputError(f"{path} does not hold a key; write the upstream's key into it, on one line")
    return key.decode()


def _check_address(url: str, *, allow_plain: bool) -> None:
    """Refuse an address that is none, that carries a password, or that text would travel to in the clear."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or not url.isascii() or not url.isprintable() or " " in url:
        raise BadInputError("the upstream is not an http(s) address; write https://HOST/v1")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise BadInputError(
            "the upstream's address holds more than host and path; give a key with --upstream-key-file"
        )
    if parts.scheme == "http" and not is_loopback(url) and not allow_plain:
        raise BadInputError(
            "reports and keys would travel to the upstream unencrypted; use https, or say "
            "--allow-plain-upstream where the network is yours"
        )
