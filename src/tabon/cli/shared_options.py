"""Options and behaviour that several commands have, and options that variables and a TOML file set."""

import errno
import os
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import reduce, wraps
from inspect import signature
from pathlib import Path
from time import monotonic
from typing import IO, Any, ParamSpec, TypeVar

import click

from tabon._internal.typed_values import MisfitError, check_keys
from tabon.cli.help import Command, long_name
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError, TabonError, closest
from tabon.method.sentence_sets import Progress
from tabon.metrics.protocol import MeasurementStore
from tabon.selectors.scorer import full_name

SECONDS_BETWEEN_LINES = 60.0  # of progress in a log; a command that is done sooner writes none
LAST_LINE = "tabon.last_line_of_progress"  # in click's context

P = ParamSpec("P")
R = TypeVar("R")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


class OneOf(click.Choice[str]):
    """A choice that names the value that was probably meant."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value, or refuse it with the closest one."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            close = closest(str(value), self.choices)
            hint = f" Did you mean {close!r}?" if close else ""
            self.fail(f"{error.message}{hint}", param, ctx)


POSITIVE = click.IntRange(min=1)
SECONDS = click.FloatRange(min=0, min_open=True)
PATIENTS_HELP = "Simulated patients, all splits together."


def option_group(*options: Decorator) -> Decorator:
    """Return one decorator that adds several options, which `--help` lists in this order."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def out_option(what: str) -> Decorator:
    """Return the option that names the file to write."""
    return click.option("--out", required=True, type=FILE, help=what)


def num_drafts_option(parameter: str) -> Decorator:
    """Return the option that says how many drafts are wanted; a command may call its value otherwise."""
    return click.option(
        "-n",
        "--num-drafts",
        parameter,
        type=POSITIVE,
        default=5,
        show_default=True,
        help="Drafts of each study (the paper's K).",
    )


def names(text: str) -> tuple[str, ...]:
    """Read a list of names with commas between them."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def one_selector(text: str) -> str:
    """Return a selector's own name; a list of selectors is refused."""
    if "," in text.partition(":")[0]:
        raise click.BadParameter(f"{text!r} names several selectors; give each its own --selector")
    return full_name(text)


NAMES = click.types.FuncParamType(names)
NAMES.name = "text"  # in `--help`
SELECTOR = click.types.FuncParamType(one_selector)
SELECTOR.name = "text"


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
ENCODER_HELP = (
    "minilm (embedded), all-mpnet-base-v2, hashing, a model folder or owner/model@revision; behind it "
    "may stand ?device=cuda&precision=float16, or ?precision=bfloat16 for a processor that has it."
)
encoder_option = click.option("--encoder", help=ENCODER_HELP)
store_option = click.option(
    "--store",
    type=FILE,
    help="Where sentence embeddings are kept between runs. Default: the user's cache folder.",
)
store_options = option_group(
    store_option,
    click.option("--no-store", is_flag=True, help="Keep no sentence embeddings between runs."),
)
embedding_options = option_group(encoder_option, store_options)
measurements_options = option_group(
    click.option(
        "--measurements",
        type=FILE,
        help="Where statistics are kept between runs. Default: the user's cache folder.",
    ),
    click.option("--no-measurements", is_flag=True, help="Keep no statistics between runs."),
)
abstain_option = click.option(
    "--abstain",
    type=float,
    help="Choose nothing where the pick's p is at most this: about the share of similar cases left out.",
)
calibration_option = click.option(
    "--calibration",
    type=FILE,
    help="Made by `tabon calibrate`; without it the bank's own transitions calibrate (paper only).",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Write nothing; say what would be done.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
images_option = click.option(
    "--images",
    type=click.Path(path_type=Path),
    help="The folder that the `image` of a query is relative to.",
)
no_bank_text_option = click.option(
    "--no-bank-text", is_flag=True, help="Show ids of training changes, not their text."
)


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
    """Give a command values that are made of its options: those that the makers name as parameters.

    A value takes the place of an option of its name, for the makers after it and for the command.
    """

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        own = signature(command).parameters
        needed = {name: signature(maker).parameters for name, maker in makers.items()}

        @wraps(command)
        def wrapped(**options: object) -> R:
            for name, maker in makers.items():
                options[name] = maker(**{one: options[one] for one in needed[name] if one in options})
            return command(**{name: value for name, value in options.items() if name in own})

        return wrapped

    return decorate


def name_of(stream: IO[bytes]) -> str:
    """Return what a message calls an input: its path, or standard input."""
    name = str(getattr(stream, "name", "<stdin>"))
    return "standard input" if name == "<stdin>" else name


def open_store(store: Path | None, *, no_store: bool) -> SentenceStore | None:
    """Open the sentence store that the options ask for."""
    place = store_path(store, no_store=no_store)
    return None if place is None else SentenceStore(place)


def store_path(store: Path | None, *, no_store: bool | None = None) -> Path | None:
    """Return where embeddings are kept; a command without a `--no-store` uses a named store alone."""
    return store or default_store() if no_store is False else None if no_store else store


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
    """Show work on standard error: a bar if a person is watching, else a line now and then."""
    if not sys.stderr.isatty():
        yield lambda done, total: show_progress(f"{label}: {done:,} of {total:,}")
        return
    start = monotonic()
    with click.progressbar(length=0, label=label, file=sys.stderr, show_pos=True) as bar:

        def advance(done: int, total: int) -> None:
            bar.length = total
            bar.label = f"{label} ({done / max(monotonic() - start, 1e-3):,.0f}/s)"
            bar.update(done - bar.pos)

        yield advance


def show_progress(line: str) -> None:
    """Write how far a long piece of work is: on one line if a person is watching, else now and then."""
    if sys.stderr.isatty():
        click.echo(f"\r{line:<70}", err=True, nl=False)
        return
    meta = click.get_current_context().meta
    if monotonic() - meta.setdefault(LAST_LINE, monotonic()) >= SECONDS_BETWEEN_LINES:
        meta[LAST_LINE] = monotonic()
        click.echo(line, err=True)


class ConfiguredCommand(Command):
    """A command whose options may be set by TABON_COMMAND_OPTION and by the keys of a --config file.

    The command line beats a variable, a variable beats the file, and the file beats the default.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401  # those of click
        """Add --config, and give each option its variable."""
        super().__init__(*args, **settings)
        self.options = {
            long_name(option).lstrip("-"): option
            for option in self.params
            if isinstance(option, click.Option)
        }
        config = click.Option(
            ["--config"],
            type=click.Path(dir_okay=False, path_type=Path),
            is_eager=True,
            expose_value=False,
            callback=self._configure,
            help="A TOML file whose keys are names of options: port = 8765.",
        )
        self.params.append(config)
        self._prefix = f"TABON_{str(self.name).upper()}_"
        self._variables = [name.upper().replace("-", "_") for name in (*self.options, "config")]
        for variable, option in zip(self._variables, (*self.options.values(), config), strict=True):
            option.envvar = self._prefix + variable

    @reports_errors
    def _configure(self, context: click.Context, _: click.Parameter, path: Path | None) -> None:
        """Refuse variables that set nothing, and let the file set defaults."""
        for variable in os.environ:
            rest = variable.removeprefix(self._prefix)
            if rest != variable and rest not in self._variables:
                close = get_close_matches(rest, self._variables, n=1)
                hint = f"did you mean {self._prefix}{close[0]}?" if close else "see --help"
                raise BadInputError(f"the variable {variable} names no option of tabon {self.name}; {hint}")
        if path is None:
            return
        table = read_toml(path)
        try:
            check_keys(table, tuple(self.options), str(path))
        except MisfitError as error:
            raise BadInputError(str(error)) from None
        context.default_map = {
            str(self.options[key].name): as_typed(self.options[key], f"{path}: {key}", value)
            for key, value in table.items()
        }


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}); name a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInputError(f"{path} is not TOML ({error}); mend that line") from None
    except (RecursionError, ValueError):  # nested too deeply, other bytes than UTF-8, a number without end
        raise BadInputError(f"{path} is not TOML that can be read; write plain keys and values") from None


def as_typed(option: click.Option, place: str, value: object) -> bool | str | list[str]:
    """Return a value of a file as it would be typed behind its option, which then checks it."""
    if option.is_flag:
        if isinstance(value, bool):
            return value
        raise BadInputError(f"{place} is a flag; write true or false")
    values = value if option.multiple and isinstance(value, list) else [value]
    if any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in values):
        raise BadInputError(f"{place} is neither a text nor a number; write one as behind the option")
    texts = [str(one) for one in values]
    return texts if option.multiple else texts[0]
