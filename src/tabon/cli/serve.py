"""`tabon serve`."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tabon.cli.report import open_studies
from tabon.cli.select import method_options, settings_of
from tabon.cli.shared_options import bank_option, encoder_option, reports_errors, search_option
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.selectors.setup import SelectionSettings
from tabon.service import (
    NOTICE,
    AnswerSettings,
    Limits,
    QueryService,
    RouteModule,
    ServeSettings,
    query_service_of,
    serve,
)
from tabon.service.batcher import BatchSettings
from tabon.service.explorer.scores import DEFAULT_SCORE
from tabon.service.explorer_routes import explorer_module
from tabon.service.gateway import GatewaySettings, gateway_module, gateway_settings
from tabon.service.guard import guard_settings, read_token

LIMITS, BATCHES, ANSWERS = Limits(), BatchSettings(), AnswerSettings()
HEARD = ("tabon.service", "tabon.service.gateway", "uvicorn.error")  # loggers that may speak


@click.command("serve")
@bank_option
@method_options
@click.option(
    "--abstain", type=float, help="Choose nothing where the pick's p is at most this, as in `tabon select`."
)
@click.option(
    "--calibration",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Made by `tabon calibrate`.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind; others need a token.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any free one."
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Holds the token that clients send as `Authorization: Bearer TOKEN`.",
)
@click.option(
    "--allow-host", "allowed_hosts", multiple=True, help="One more name that Host headers may have."
)
@click.option("--max-body", type=click.IntRange(min=1), default=LIMITS.body, show_default=True, help="Bytes.")
@click.option(
    "--max-drafts", type=click.IntRange(min=1), default=LIMITS.drafts, show_default=True, help="Of one query."
)
@click.option(
    "--queue",
    type=click.IntRange(min=1),
    default=BATCHES.queue,
    show_default=True,
    help="Requests that wait.",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=BATCHES.size,
    show_default=True,
    help="Requests in a batch.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=ANSWERS.timeout,
    show_default=True,
    help="Seconds until a request is given up.",
)
@click.option(
    "--cache",
    type=click.IntRange(min=0),
    default=ANSWERS.cached_sentences,
    show_default=True,
    help="Sentences kept in memory; not used beside --store.",
)
@click.option("--no-bank-text", is_flag=True, help="Show ids of training changes, not their text.")
@click.option(
    "--queries", type=click.File("rb"), help="Show the studies of this file at /, as `tabon report` does."
)
@click.option(
    "--images",
    type=click.Path(path_type=Path),
    help="The folder that the `image` of a query is relative to.",
)
@click.option(
    "--score",
    default=DEFAULT_SCORE,
    show_default=True,
    help="What the page measures gain in, where queries have a reference; none measures nothing.",
)
@click.option("--title", help="Stands over the page. Default: the name of the queries' file.")
@click.option(
    "--upstream",
    metavar="URL",
    help="Base URL of an OpenAI-compatible server; adds /v1/chat/completions, which picks the best draft.",
)
@click.option(
    "--upstream-key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Holds the upstream's key.",
)
@click.option("--pass-key", is_flag=True, help="Send the client's Authorization header on to the upstream.")
@click.option(
    "--allow-plain-upstream", is_flag=True, help="Let text and keys travel to another machine over http."
)
@click.option("--drafts", type=int, default=5, show_default=True, help="To ask the upstream for.")
@click.option("--most-drafts", type=int, default=16, show_default=True, help="That one request may ask for.")
@click.option(
    "--upstream-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    help="Seconds for all drafts of one request.",
)
@click.option("--prune", is_flag=True, help="Stop weak drafts while they are written.")
@click.option(
    "--prune-points",
    default="16,32",
    show_default=True,
    metavar="WORDS",
    help="Numbers of words after which the better half goes on.",
)
@search_option
@encoder_option
@click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep sentence embeddings here between runs, instead of in memory.",
)
@reports_errors
def serve_command(bank: Path, **options: Any) -> None:  # noqa: ANN401
    """Answer queries over HTTP on this machine: /v1/select, /v1/explain, /v1/bank.

    --queries adds a page that shows studies, --upstream a best-of-N gateway
    for OpenAI clients.

    Binds 127.0.0.1 unless --host says otherwise, which needs --token-file.
    The log goes to standard error and holds no report text. SIGTERM ends the
    service after the requests in flight.
    """
    where, gateway = _where(options), _gateway(options)
    _check_page(options)
    options["no_store"] = options["store"] is None
    loaded, selection = TransitionBank.load(bank, in_memory=True), settings_of(options)
    query_service = query_service_of(loaded, selection, _answer_settings(options))
    route_modules = list(_route_modules(query_service, loaded, selection, gateway, options))
    _speak()
    click.echo(NOTICE, err=True)
    serve(query_service, where, route_modules, patience=0.0 if gateway is None else gateway.timeout)


def _check_page(options: dict[str, Any]) -> None:
    """Refuse options of a page where there is none."""
    for name in ("images", "title"):
        if options["queries"] is None and options[name]:
            raise BadInputError(f"--{name} belongs to the page; give --queries too")


def _route_modules(
    query_service: QueryService,
    bank: TransitionBank,
    selection: SelectionSettings,
    gateway: GatewaySettings | None,
    options: dict[str, Any],
) -> Iterator[RouteModule]:
    """Yield what adds the page and the gateway, where they are asked for."""
    if options["queries"] is not None:
        yield explorer_module(open_studies(options["queries"], bank, selection, options))
    if gateway is not None:
        yield gateway_module(query_service, gateway)


def _gateway(options: dict[str, Any]) -> GatewaySettings | None:
    """Return how to ask the upstream; options of a gateway without one are refused."""
    if options["upstream"] is None:
        for name in ("upstream_key_file", "pass_key", "allow_plain_upstream", "prune"):
            if options[name]:
                raise BadInputError(f"--{name.replace('_', '-')} belongs to a gateway; give --upstream too")
        return None
    return gateway_settings(
        options["upstream"],
        key_file=options["upstream_key_file"],
        pass_key=options["pass_key"],
        has_token=options["token_file"] is not None,
        allow_plain=options["allow_plain_upstream"],
        drafts=options["drafts"],
        most_drafts=options["most_drafts"],
        timeout=options["upstream_timeout"],
        prune=options["prune"],
        prune_points=_points(options["prune_points"]),
    )


def _points(text: str) -> tuple[int, ...]:
    """Read numbers of words, with commas between them."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise BadInputError(
            f"--prune-points {text!r} are not numbers of words; write them like 16,32"
        ) from None


def _where(options: dict[str, Any]) -> ServeSettings:
    """Return where to listen; a public address without a token is refused before the bank is read."""
    token = None if options["token_file"] is None else read_token(options["token_file"])
    guard_settings(options["host"], token=token, allowed=(), body=options["max_body"])
    return ServeSettings(
        host=options["host"],
        port=options["port"],
        token_file=options["token_file"],
        allowed_hosts=options["allowed_hosts"],
    )


def _answer_settings(options: dict[str, Any]) -> AnswerSettings:
    """Return what the options say of answering."""
    return AnswerSettings(
        limits=Limits(body=options["max_body"], drafts=options["max_drafts"]),
        batches=BatchSettings(queue=options["queue"], size=options["batch"]),
        timeout=options["timeout"],
        cached_sentences=options["cache"],
        bank_text=not options["no_bank_text"],
    )


def _speak() -> None:
    """Write the service's own log lines to standard error, and those of no other library."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    for name in HEARD:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
