"""BERT-like encoders of metrics: loaded quietly from disk, run so that a row depends on its text alone.

As in `tabon.encoders.torch_engine.encoder`, a batch holds texts of one token
length without padding and runs on one thread. How many it holds follows from the
length, so shapes are a property of the text, and so are the bits.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.errors import BadInputError
from tabon.metrics.models.weights import EXTRA, reading_errors

TOKENS = 256  # a batch holds as many texts of one length as fit into this, and at least one
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "vocab.txt")
Rows = Sequence[Sequence[int]]  # token ids of each text


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


def batches_by_tokens(lengths: Sequence[int], tokens: int = TOKENS) -> Iterator[list[int]]:
    """Yield positions of equal length, as many as fit into `tokens`, filled up with copies of the last.

    >>> list(batches_by_tokens([5, 7, 5, 5], tokens=10))
    [[0, 2], [3, 3], [1]]
    """
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    for length, positions in sorted(by_length.items()):
        size = max(1, tokens // length)
        for start in range(0, len(positions), size):
            batch = positions[start : start + size]
            yield batch + batch[-1:] * (size - len(batch))


def on_one_thread_each(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Run `work` on items side by side, each with one thread of torch; yield results in order."""
    torch = require("torch", extra=EXTRA, feature="torch")
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield from pool.map(work, items)
    finally:
        torch.set_num_threads(threads)


def encode_rows(rows: Rows, forward: Callable[[Any], Any]) -> list[NDArray[np.float32]]:
    """Return what `forward` makes of each row of token ids: one array a row, same bits in any company.

    `forward` takes a tensor (texts, tokens) of ids and returns a tensor (texts, …).
    """
    torch = require("torch", extra=EXTRA, feature="torch")
    batches = list(batches_by_tokens([len(row) for row in rows]))
    found: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(rows)

    def run(batch: list[int]) -> NDArray[np.float32]:
        with torch.inference_mode():
            output: NDArray[np.float32] = forward(torch.tensor([list(rows[i]) for i in batch])).numpy()
        return output

    for batch, outputs in zip(batches, on_one_thread_each(run, batches), strict=True):
        for position, output in zip(batch, outputs, strict=True):
            found[position] = output
    return found
