"""Options and behaviour that several commands have."""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from pathlib import Path
from time import monotonic
from typing import IO, ParamSpec, TypeVar

import click

from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError, TabonError
from tabon.method.sentence_sets import Progress
from tabon.metrics.protocol import MeasurementStore

SECONDS_BETWEEN_LINES = 60.0  # of progress in a log; a command that is done sooner says nothing
LAST_LINE = "tabon.last_line_of_progress"  # in click's context

P = ParamSpec("P")
R = TypeVar("R")

bank_option = click.option(
    "--bank", required=True, type=click.Path(path_type=Path), help="A bank made by `tabon bank build`."
)
search_option = click.option(
    "--search",
    help="The engine that searches the bank: cuda, or what `tabon bank index` has filled (index:FOLDER, "
    "milvus://…, postgresql://…). Default: exact, in memory.",
)
engine_option = click.option(
    "--engine",
    default="local",
    show_default=True,
    help="Where the work is done: local, ray:auto, ray:HOST:PORT (as a driver) or ray://HOST:PORT (as a "
    "client), with ?cpus=N&gpus=N of one piece.",
)
encoder_option = click.option(
    "--encoder",
    help="minilm (embedded), all-mpnet-base-v2, hashing, a model folder or owner/model@revision; behind it "
    "may stand ?device=cuda&precision=float16, or ?precision=bfloat16 for a processor that has it.",
)
store_option = click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where sentence embeddings are kept between runs. Default: the user's cache folder.",
)
measurements_option = click.option(
    "--measurements",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where statistics are kept between runs. Default: the user's cache folder.",
)
no_measurements_option = click.option(
    "--no-measurements", is_flag=True, help="Keep no statistics between runs."
)
no_store_option = click.option("--no-store", is_flag=True, help="Keep no sentence embeddings between runs.")


def reports_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn a TabonError, or a disk that refuses, into one sentence on standard error and exit status 1."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except TabonError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of a pipe has left: click ends quietly
                raise
            raise click.ClickException(
                f"reading or writing failed ({error.strerror}); make room or use another place"
            ) from error

    return wrapped


def takes(**makers: Callable[..., object]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command values that are made of its options: those that the makers name as parameters."""

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        own = signature(command).parameters
        needed = {name: signature(maker).parameters for name, maker in makers.items()}

        @wraps(command)
        def wrapped(**options: object) -> R:
            made = {
                name: maker(**{one: options[one] for one in needed[name] if one in options})
                for name, maker in makers.items()
            }
            return command(**{name: value for name, value in {**options, **made}.items() if name in own})

        return wrapped

    return decorate


def name_of(stream: IO[bytes]) -> str:
    """Return what a message calls an input: its path, or standard input."""
    name = str(getattr(stream, "name", "<stdin>"))
    return "standard input" if name == "<stdin>" else name


def open_store(store: Path | None, *, no_store: bool) -> SentenceStore | None:
    """Open the sentence store that the options ask for."""
    return None if no_store else SentenceStore(store or default_store())


def open_measurements(measurements: Path | None, *, no_measurements: bool) -> MeasurementStore | None:
    """Open the store of statistics that the options ask for."""
    place = measurements or default_cache() / "measurements.sqlite"
    return None if no_measurements else MeasurementStore(place)


def default_store() -> Path:
    """Return the store in the user's cache folder."""
    return default_cache() / "sentences.sqlite"


def default_cache() -> Path:
    """Return tabon's folder in the user's cache folder."""
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a home, as in some containers
        raise BadInputError("this user has no home folder; name a --store or say --no-store") from None
    return Path(cache) / "tabon"


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Show work on standard error: a bar where a person is watching, else a line now and then."""
    if not sys.stderr.isatty():
        yield lambda done, total: tell(f"{label}: {done:,} of {total:,}")
        return
    start = monotonic()
    with click.progressbar(length=0, label=label, file=sys.stderr, show_pos=True) as bar:

        def advance(done: int, total: int) -> None:
            bar.length = total
            bar.label = f"{label} ({done / max(monotonic() - start, 1e-3):,.0f}/s)"
            bar.update(done - bar.pos)

        yield advance


def tell(line: str) -> None:
    """Say how far a long piece of work is: on one line where a person is watching, else now and then."""
    if sys.stderr.isatty():
        click.echo(f"\r{line:<70}", err=True, nl=False)
        return
    told = click.get_current_context().meta
    if monotonic() - told.setdefault(LAST_LINE, monotonic()) >= SECONDS_BETWEEN_LINES:
        told[LAST_LINE] = monotonic()
        click.echo(line, err=True)
