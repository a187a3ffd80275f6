"""BERT-like networks of metrics: found on this machine, read without running them, run bit-stably.

Nothing here reaches the network. A batch holds texts of one token length without padding and runs on
one thread; how many it holds follows from the length (docs/decisions/bit-stable-encoding.md).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.errors import BadInputError, MetricUnavailableError

if TYPE_CHECKING:
    import torch


EXTRA = "metric-models"
PIN = "@sha256:"  # behind a folder's name: what the sum of its weights must be
TOKENS = 256  # a batch holds as many texts of one length as fit into this, and at least one
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "vocab.txt")
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
    """Return the folder that holds all `files` of a metric's model, named relative to it, the weights first.

    Without a local folder `model` (`FOLDER@sha256:SUM` pins its weights) they come from the local Hub
    cache: at a commit, or with None what "main" was when fetched; `published` has the sums that are known.

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
        pinned = ["--revision", revision] if revision else []
        raise MetricUnavailableError(
            metric,
            f"{', '.join(missing)} of {repository} is not in the local Hub cache",
            f"fetch it with: {' '.join(['hf', 'download', repository, *missing, *pinned])}, "
            f"or name a folder that holds it: --metric-files {metric}=FOLDER",
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
            f"put it there or name another folder: --metric-files {metric}=FOLDER",
        )
    if pinned and not re.fullmatch("[0-9a-fA-F]{64}", expected):
        raise BadInputError(f"the sum behind {PIN} for {metric} is not a sha256; write its 64 hex digits")
    if pinned:
        check_sum(folder / files[0], expected.lower())
    return folder


def check_sum(path: Path, expected: str) -> None:
    """Refuse a file whose sha256 is another."""
    found = file_sha256(path)
    if found != expected:
        raise BadInputError(
            f"{path.name} has sha256 {found}, expected {expected}; fetch it again, or name a folder that "
            "you trust with --metric-files"
        )


def load_tensors(path: Path) -> "dict[str, torch.Tensor]":
    """Read the named tensors of a checkpoint onto the CPU; its pickled objects are never built.

    A .safetensors file, or anything else that torch saved. Where the tensors lie
    under "model_state_dict" or "state_dict", that is what is returned.

    Raises:
        BadInputError: the file is cut short, damaged, or holds more than tensors and plain values.
    """
    torch = require("torch", extra=EXTRA, feature="torch")
    try:
        content: Any
        if path.suffix == ".safetensors":
            content = require("safetensors.torch", extra=EXTRA, feature="safetensors").load_file(str(path))
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except reading_errors(path) as error:
        raise BadInputError(
            f"{path.name} ({path.stat().st_size} bytes) is not a whole checkpoint "
            f"({type(error).__name__}); fetch it again"
        ) from error
    for wrapper in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    entries = content.items() if isinstance(content, Mapping) else ()
    tensors = {name: value for name, value in entries if isinstance(value, torch.Tensor)}
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


def digest(*paths: Path) -> str:
    """Return the first 12 hex digits of the sha256 of a file, or of several one after another."""
    return file_sha256(*paths)[:12]


def file_sha256(*paths: Path) -> str:
    """Return the sha256 of a file, or of several one after another."""
    found = sha256()
    for path in paths:
        with path.open("rb") as file:
            file_digest(file, lambda: found)
    return found.hexdigest()


@contextmanager
def quiet() -> Iterator[Any]:
    """Give `transformers` without its progress bars and loading reports; both are put back."""
    library = require("transformers", extra=EXTRA, feature="transformers")
    logging = library.utils.logging
    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield library
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


def load_config(folder: Path) -> Any:  # noqa: ANN401  # a PretrainedConfig, an optional import
    """Read a model's config.json."""
    try:
        with quiet() as library:
            return library.AutoConfig.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
    except (OSError, ValueError, KeyError) as error:
        raise BadInputError(
            f"config.json in {folder} cannot be used ({type(error).__name__}); fetch it again"
        ) from error


def load_tokenizer(folder: Path, **settings: Any) -> Any:  # noqa: ANN401  # a tokenizer, an optional import
    """Read a model's tokenizer."""
    try:
        with quiet() as library:
            return library.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False, **settings
            )
    except Exception as error:  # a damaged tokenizer.json raises a bare Exception
        raise BadInputError(
            f"the tokenizer in {folder} cannot be used ({type(error).__name__}); fetch its files again: "
            f"{', '.join(TOKENIZER_FILES)}, those that the model has"
        ) from error


def load_encoder(
    source: Path,
    config: Any,  # noqa: ANN401  # a PretrainedConfig, an optional import
    *,
    tensors: dict[str, Any] | None = None,
) -> Any:  # noqa: ANN401  # a PreTrainedModel, an optional import
    """Load an encoder in float32 from the folder `source`, or from the tensors that were read from it.

    Raises:
        BadInputError: the weights are damaged or some that `config` asks for are not there.
    """
    torch = require("torch", extra=EXTRA, feature="torch")
    try:
        with quiet() as library:
            kind = library.AutoModel if tensors is None else library.BertModel
            model, seen = kind.from_pretrained(
                str(source) if tensors is None else None,
                config=config,
                state_dict=tensors,
                dtype=torch.float32,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
    except reading_errors(source / "model.safetensors") as error:
        raise BadInputError(
            f"the weights in {source} are not whole ({type(error).__name__}); fetch them again"
        ) from error
    missing = sorted(name for name in seen["missing_keys"] if "pooler" not in name)
    if missing:
        raise BadInputError(
            f"{source} lacks {len(missing)} tensors of its model, {missing[0]} first; fetch it again"
        )
    return model.eval()


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files of a folder that say how text becomes tokens."""
    return [folder / name for name in TOKENIZER_FILES if (folder / name).is_file()]


def batches_of_one_length(lengths: Sequence[int], size: Callable[[int], int]) -> Iterator[list[int]]:
    """Yield positions in groups whose lengths are equal, at most `size(length)` in each.

    >>> list(batches_of_one_length([5, 7, 5, 5], lambda _: 2))
    [[0, 2], [3], [1]]
    """
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    for length, positions in sorted(by_length.items()):
        for start in range(0, len(positions), size(length)):
            yield positions[start : start + size(length)]


def on_one_thread_each(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Run `work` on items side by side, each with one thread of torch; yield results in order."""
    torch = require("torch", extra=EXTRA, feature="torch")
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield from pool.map(work, items)
    finally:
        torch.set_num_threads(threads)


def encode_rows(rows: Sequence[Sequence[int]], forward: Callable[[Any], Any]) -> list[NDArray[np.float32]]:
    """Return what `forward` makes of each row of token ids: one array per row, which depends on it alone.

    `forward` takes a tensor (texts, tokens) of ids and returns a tensor (texts, …). A batch is filled
    up with copies of its last row.
    """
    torch = require("torch", extra=EXTRA, feature="torch")

    def size(length: int) -> int:
        return max(1, TOKENS // length)

    groups = batches_of_one_length([len(row) for row in rows], size)
    batches = [batch + batch[-1:] * (size(len(rows[batch[0]])) - len(batch)) for batch in groups]
    found: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(rows)

    def run(batch: list[int]) -> NDArray[np.float32]:
        with torch.inference_mode():
            output: NDArray[np.float32] = forward(torch.tensor([list(rows[i]) for i in batch])).numpy()
        return output

    for batch, outputs in zip(batches, on_one_thread_each(run, batches), strict=True):
        for position, output in zip(batch, outputs, strict=True):
            found[position] = output
    return found
