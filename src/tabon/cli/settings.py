"""Options of a command that come from variables and from a TOML file too."""

import os
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from tabon._internal.typed_values import MisfitError, check_keys
from tabon.cli.shared_options import reports_errors
from tabon.errors import BadInputError


class ConfiguredCommand(click.Command):
    """A command whose options may be set by TABON_COMMAND_OPTION and by the keys of a --config file.

    The command line beats a variable, a variable beats the file, and the file beats the default.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401  # those of click
        """Add --config, and give each option its variable."""
        super().__init__(*args, **settings)
        self.options = {
            max(option.opts, key=len).lstrip("-"): option
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
