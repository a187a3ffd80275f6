"""`tabon serve`."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import click

from tabon.cli.explain import PageOptions, beside_option, open_studies, page_score_option, title_option
from tabon.cli.select import method_options, takes_selection
from tabon.cli.shared_options import (
    FILE,
    FOLDER,
    POSITIVE,
    SECONDS,
    SELECTOR,
    ConfiguredCommand,
    OneOf,
    abstain_option,
    calibration_option,
    encoder_option,
    images_option,
    no_bank_text_option,
    num_drafts_option,
    reports_errors,
    search_option,
)
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.selectors.setup import SelectionSettings
from tabon.service import (
    NOTICE,
    AnswerSettings,
    Limits,
    RouteModule,
    ServeSettings,
    allowed_settings,
    listening,
    query_service_of,
    serve,
)
from tabon.service.batcher import BatchSettings
from tabon.service.explorer_routes import explorer_module
from tabon.service.gateway import GatewaySettings, gateway_module, gateway_settings
from tabon.service.guard import guard_settings, read_token
from tabon.service.server import FORMATS, address_of, announcing, server_of
from tabon.service.study.routes import study_app
from tabon.study.folder import read_study

GATEWAY_OPTIONS = (  # as parameters
    "upstream_key_file",
    "pass_key",
    "allow_plain_upstream",
    "drafts",
    "most_drafts",
    "upstream_timeout",
    "prune",
    "prune_points",
)
WITH_STUDY = frozenset(("study_folder", "host", "port", "allowed_hosts", "max_body", "log_format", "config"))
LIMITS, BATCHES, ANSWERS = Limits(), BatchSettings(), AnswerSettings()
GATEWAY_SELECTOR = "fused"  # ahead in the mean over all kinds of drafts: experiments/openi/KINDS.md
HEARD = ("tabon.service", "tabon.service.gateway", "uvicorn.error")  # loggers that may speak
log = logging.getLogger("tabon.service")


bank_unless_study_option = click.option(
    "--bank",
    type=click.Path(path_type=Path),
    help="A bank made by `tabon bank build`; needed unless --study is given.",
)


def _where(
    *,
    host: str,
    port: int,
    token_file: Path | None,
    allowed_hosts: tuple[str, ...],
    max_body: int,
    study_folder: Path | None,
) -> ServeSettings:
    """Return where to listen; a public address without a token is refused before the bank is read."""
    token = None if token_file is None else read_token(token_file)
    guard_settings(host, token=token, allowed=(), body=max_body, has_readers=study_folder is not None)
    return ServeSettings(host=host, port=port, token_file=token_file, allowed_hosts=allowed_hosts)


def _gateway(  # noqa: PLR0913  # each is an option
    *,
    upstream: str | None,
    upstream_key_file: Path | None,
    pass_key: bool,
    allow_plain_upstream: bool,
    token_file: Path | None,
    drafts: int,
    most_drafts: int,
    upstream_timeout: float,
    prune: bool,
    prune_points: str,
) -> GatewaySettings | None:
    """Return how to ask the upstream; options of a gateway without one are refused."""
    if upstream is None:
        _refuse(GATEWAY_OPTIONS, "belongs to a gateway; give --upstream too")
        return None
    if not prune:
        _refuse(("prune_points",), "does not count without --prune; give it too, or leave this out")
    try:
        points = tuple(int(part) for part in prune_points.split(","))
    except ValueError:
        raise BadInputError(
            f"--prune-points {prune_points!r} are not numbers of words; write them like 16,32"
        ) from None
    return gateway_settings(
        upstream,
        key_file=upstream_key_file,
        pass_key=pass_key,
        has_token=token_file is not None,
        allow_plain=allow_plain_upstream,
        drafts=drafts,
        most_drafts=most_drafts,
        timeout=upstream_timeout,
        prune=prune,
        prune_points=points,
    )


def _refuse(parameters: Iterable[str], reason: str) -> None:
    """Refuse an option that was given although it cannot have an effect."""
    context = click.get_current_context()
    for option in context.command.params:
        is_given = context.get_parameter_source(str(option.name)) != click.core.ParameterSource.DEFAULT
        if option.name in parameters and is_given and context.params[option.name]:
            raise BadInputError(f"{max(option.opts, key=len)} {reason}")


def _limits(max_body: int, max_drafts: int) -> Limits:
    """Return how large a request may be."""
    return Limits(body=max_body, drafts=max_drafts)


def _bank_text(*, no_bank_text: bool) -> bool:
    """Say whether the sentences of training changes are shown."""
    return not no_bank_text


@click.command(
    "serve",
    cls=ConfiguredCommand,
    example="tabon serve --bank bank.tabon --queries queries.jsonl --selector fused",
)
@bank_unless_study_option
@method_options
@click.option(
    "--allow-selector",
    "allowed_selectors",
    type=SELECTOR,
    multiple=True,
    help="One more selector that a request may name; none of the options of the paper's method hold for it.",
)
@click.option("--require-prior", is_flag=True, help="Refuse requests without a prior report.")
@abstain_option
@calibration_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind; others need a token.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any free one."
)
@click.option(
    "--token-file",
    type=FILE,
    help="Holds the token that clients send as `Authorization: Bearer TOKEN`.",
)
@click.option(
    "--allow-host", "allowed_hosts", multiple=True, help="One more name that Host headers may have."
)
@click.option("--max-body", type=POSITIVE, default=LIMITS.body, show_default=True, help="Bytes.")
@click.option("--max-drafts", type=POSITIVE, default=LIMITS.drafts, show_default=True, help="Of one query.")
@click.option("--queue", type=POSITIVE, default=BATCHES.queue, show_default=True, help="Requests that wait.")
@click.option(
    "--batch-size",
    "size",
    type=POSITIVE,
    default=BATCHES.size,
    show_default=True,
    help="Of requests.",
)
@click.option(
    "--timeout",
    type=SECONDS,
    default=ANSWERS.timeout,
    show_default=True,
    help="Seconds until a request is given up.",
)
@click.option(
    "--cache",
    "cached_sentences",
    type=click.IntRange(min=0),
    default=ANSWERS.cached_sentences,
    show_default=True,
    help="Sentences kept in memory; not used beside --store.",
)
@no_bank_text_option
@click.option(
    "--queries", type=click.File("rb"), help="Show the studies of this file at /, as `tabon report` does."
)
@images_option
@page_score_option
@beside_option
@title_option
@click.option(
    "--study",
    "study_folder",
    type=FOLDER,
    help="Show the reader study of this folder at /, and nothing else; each reader has a token.",
)
@click.option(
    "--upstream",
    metavar="URL",
    help="Base URL of an OpenAI-compatible server; adds /v1/chat/completions, which picks the best draft.",
)
@click.option("--upstream-key-file", type=FILE, help="Holds the upstream's key.")
@click.option("--pass-key", is_flag=True, help="Send the client's Authorization header on to the upstream.")
@click.option(
    "--allow-plain-upstream", is_flag=True, help="Let text and keys travel to another machine over http."
)
@num_drafts_option("drafts")
@click.option(
    "--upstream-max-drafts",
    "most_drafts",
    type=POSITIVE,
    default=16,
    show_default=True,
    help="Drafts that one request may ask for.",
)
@click.option(
    "--upstream-timeout",
    type=SECONDS,
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
@click.option("--store", type=FILE, help="Keep sentence embeddings here between runs, instead of in memory.")
@click.option(
    "--log-format",
    type=OneOf(list(FORMATS)),
    default="text",
    show_default=True,
    help="json: one object a line.",
)
@reports_errors
@takes_selection(
    where=_where,
    gateway=_gateway,
    page=PageOptions,
    limits=_limits,
    batches=BatchSettings,
    bank_text=_bank_text,
    answers=AnswerSettings,
)
def serve_command(  # noqa: PLR0913  # each is made of options
    *,
    bank: Path | None,
    queries: IO[bytes] | None,
    study_folder: Path | None,
    where: ServeSettings,
    gateway: GatewaySettings | None,
    page: PageOptions,
    settings: SelectionSettings,
    allowed_selectors: tuple[str, ...],
    answers: AnswerSettings,
    log_format: str,
) -> None:
    """Answer queries over HTTP on this machine: /v1/select, /v1/explain, /v1/rerank, /v1/bank.

    --queries adds a page that shows studies, --upstream a best-of-N gateway
    for OpenAI clients, which chooses by fused unless the options name a method.
    --study shows a reader study instead of all that.

    Binds 127.0.0.1 unless --host says otherwise, which needs --token-file.
    The port is taken first; who asks while the bank is loaded waits. The log
    goes to standard error and holds no report text. SIGTERM ends the service
    after the requests in flight.

    Every option can also be set by a variable (--max-body: TABON_SERVE_MAX_BODY)
    or in the file of --config (max-body = 1000000). The command line beats a
    variable, a variable beats the file.
    """
    if study_folder is not None:
        _serve_study(study_folder, where, answers.limits.body, FORMATS[log_format])
        return
    if bank is None:
        raise click.UsageError("Missing option '--bank'.")
    if queries is None:
        _refuse(("images", "title", "score", "beside"), "belongs to the page; give --queries too")
    if gateway is not None and not _names_method(settings):
        settings = replace(settings, selector=GATEWAY_SELECTOR)
    others = allowed_settings(settings, allowed_selectors)
    with _speaking(FORMATS[log_format]), listening(where) as sockets:
        log.info(NOTICE)
        if gateway is not None:
            log.info("the gateway chooses by %s; --selector names another", settings.selector)
        log.info("listening on %s; who asks waits until all is loaded", address_of(sockets))
        loaded = TransitionBank.load(bank, in_memory=True)
        query_service = query_service_of(loaded, settings, answers, others)
        route_modules: list[RouteModule] = []
        if queries is not None:
            route_modules.append(explorer_module(open_studies(queries, loaded, settings, page, log.info)))
        if gateway is not None:
            route_modules.append(gateway_module(query_service, gateway))
        patience = 0.0 if gateway is None else gateway.timeout
        serve(query_service, where, route_modules, sockets=sockets, patience=patience)


def _serve_study(folder: Path, where: ServeSettings, body: int, formatter: logging.Formatter) -> None:
    """Show a reader study; who could ask a selector too would not be blinded."""
    context = click.get_current_context()
    others = {str(option.name) for option in context.command.params} - WITH_STUDY
    _refuse(others, "does not go with --study, which shows the study and nothing else; leave it out")
    read_study(folder)  # before the port is taken
    guard = guard_settings(where.host, token=None, allowed=where.allowed_hosts, body=body, has_readers=True)
    with _speaking(formatter), listening(where) as sockets:
        log.info(NOTICE)
        app = study_app(folder, guard, [announcing(sockets)])
        server_of(app, where, patience=0.0).run(list(sockets))


def _names_method(settings: SelectionSettings) -> bool:
    """Say whether the options name a method, or one of them is the paper's alone."""
    source = click.get_current_context().get_parameter_source("selector")
    theirs = (settings.distance, settings.aggregate, settings.neighbours, settings.zero, settings.search)
    calibrated = (settings.abstain, settings.calibration)
    named = any(value is not None for value in (*theirs, *calibrated))
    return named or source != click.core.ParameterSource.DEFAULT


@contextmanager
def _speaking(formatter: logging.Formatter) -> Iterator[None]:
    """Write the service's own log lines to standard error, and those of no other library."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    loggers = [logging.getLogger(name) for name in HEARD]
    before = [(logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (level, propagate) in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate
