"""The files that a metric's model is made of: found on this machine, read without running them.

Nothing here reaches the network. A folder is what the user named, or the
snapshot of a repository in the local Hugging Face cache.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tabon._internal.extras import require
from tabon.errors import BadInputError, MetricUnavailableError

if TYPE_CHECKING:
    import torch

EXTRA = "metric-models"
PIN = "@sha256:"  # behind a folder's name: what the sum of its weights must be
WRAPPERS = ("model_state_dict", "state_dict")  # where training scripts put the tensors of a checkpoint


def find_folder(
    metric: str,
    repository: str,
    files: tuple[str, ...],
    *,
    revision: str | None,
    model: Path | None,
    published: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Return the folder that holds all `files` of a metric's model.

    Args:
        metric: its name, for the message.
        repository: where the files are on the Hub: "StanfordAIMI/RRG_scorers".
        files: names relative to the folder, all needed; the weights first.
        revision: the commit to take from the local Hub cache; None is what "main" was when fetched.
        model: a local folder to use instead of the Hub cache; `FOLDER@sha256:SUM` pins its weights.
        published: the sha256 of files of the Hub, where it is known.

    Raises:
        MetricUnavailableError: a file is missing; it is named, and so is the way to get it.
        BadInputError: a file has another sha256 than the published or the pinned one.
    """
    if model is not None:
        return _given(metric, files, model)
    hub = require("huggingface_hub", extra=EXTRA, feature="huggingface-hub")
    try:
        found = {name: hub.try_to_load_from_cache(repository, name, revision=revision) for name in files}
    except ValueError:  # no name that the Hub could have
        found = dict.fromkeys(files)
    missing = [name for name, path in found.items() if not isinstance(path, str) or not Path(path).is_file()]
    if missing:
        raise MetricUnavailableError(
            metric,
            f"{', '.join(missing)} of {repository} is not in the local Hub cache",
            f"fetch it with: {_command(repository, missing, revision)}, "
            f"or name a folder that holds it: --model {metric}=FOLDER",
        )
    folder = Path(str(found[files[0]])).parents[files[0].count("/")]
    for name, expected in published.items():
        check_sum(folder / name, expected)
    return folder


def _given(metric: str, files: tuple[str, ...], model: Path) -> Path:
    """Return the user's folder if all files are in it and the weights have the sum that it is pinned to."""
    name, pinned, expected = str(model).partition(PIN)
    folder = Path(name)
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise MetricUnavailableError(
            metric,
            f"{', '.join(missing)} is not in {folder}",
            f"put it there or name another folder: --model {metric}=FOLDER",
        )
    if pinned and not re.fullmatch("[0-9a-fA-F]{64}", expected):
        raise BadInputError(f"the sum behind {PIN} for {metric} is not a sha256; write its 64 hex digits")
    if pinned:
        check_sum(folder / files[0], expected.lower())
    return folder


def check_sum(path: Path, expected: str) -> None:
    """Refuse a file whose sha256 is another."""
    found = _sha256(path)
    if found != expected:
        raise BadInputError(
            f"{path.name} has sha256 {found}, expected {expected}; fetch it again, or name a folder that "
            "you trust with --model"
        )


def _command(repository: str, files: list[str], revision: str | None) -> str:
    """Write the command that fetches files into the local Hub cache.

    >>> _command("owner/name", ["a.pth"], None)
    'hf download owner/name a.pth'
    """
    pinned = ["--revision", revision] if revision else []
    return " ".join(["hf", "download", repository, *files, *pinned])


def load_tensors(path: Path) -> "dict[str, torch.Tensor]":
    """Read the named tensors of a checkpoint onto the CPU; its pickled objects are never built.

    A .safetensors file, or anything else that torch saved. Where the tensors lie
    under "model_state_dict" or "state_dict", that is what is returned.

    Raises:
        BadInputError: the file is cut short, damaged, or holds more than tensors and plain values.
    """
    try:
        tensors = _read(path)
    except reading_errors(path) as error:
        raise BadInputError(
            f"{path.name} ({path.stat().st_size} bytes) is not a whole checkpoint "
            f"({type(error).__name__}); fetch it again"
        ) from error
    if not tensors:
        raise BadInputError(f"{path.name} holds no tensors; fetch it again")
    return tensors


def reading_errors(path: Path) -> tuple[type[Exception], ...]:
    """Return what a damaged checkpoint raises when it is read."""
    torch = require("torch", extra=EXTRA, feature="torch")
    usual = (RuntimeError, EOFError, OSError, LookupError, ValueError, torch.serialization.pickle.PickleError)
    if path.suffix != ".safetensors":
        return usual
    return (*usual, require("safetensors", extra=EXTRA, feature="safetensors").SafetensorError)


def _read(path: Path) -> "dict[str, torch.Tensor]":
    """Read a checkpoint of either kind and unwrap it."""
    torch = require("torch", extra=EXTRA, feature="torch")
    if path.suffix == ".safetensors":
        safe = require("safetensors.torch", extra=EXTRA, feature="safetensors")
        content: Any = safe.load_file(str(path))
        return dict(content)
    content = torch.load(path, map_location="cpu", weights_only=True)
    for wrapper in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    entries = content.items() if isinstance(content, Mapping) else ()
    return {name: value for name, value in entries if isinstance(value, torch.Tensor)}


def digest(*paths: Path) -> str:
    """Return the first 12 hex digits of the sha256 of a file, or of several one after another."""
    return _sha256(*paths)[:12]


def _sha256(*paths: Path) -> str:
    """Return the sha256 of a file, or of several one after another."""
    found = sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                found.update(block)
    return found.hexdigest()
