"""A sentence-transformers folder: what it is made of, and loading it."""

from hashlib import sha256
from pathlib import Path
from typing import Any

from tabon._extras import require
from tabon.errors import EncoderError

SETTINGS_FILES = ("*.json", "*.txt", "*.model", "*_Pooling/*.json", "*_Dense/*.json", "*_Normalize/*.json")
NOT_SETTINGS = {"README.md", "data_config.json"}


def _sha256(paths: list[Path]) -> str:
    """Hash the bytes of these files, one after another."""
    digest = sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def weights_hash(folder: Path) -> str:
    """Return the sha256 of a model folder's safetensors (pickled weights are not read)."""
    paths = sorted(folder.rglob("*.safetensors"))
    if not paths:
        raise EncoderError(
            f"{folder.name} holds no .safetensors weights; save the model in that format "
            "(tabon does not load pickled weights)"
        )
    return _sha256(paths)


def settings_hash(folder: Path) -> str:
    """Return the sha256 of the tokenizer, pooling and model settings in a model folder."""
    found = {path for pattern in SETTINGS_FILES for path in folder.glob(pattern)}
    return _sha256(sorted(path for path in found if path.name not in NOT_SETTINGS))


def load_model(folder: Path) -> Any:  # noqa: ANN401  # a SentenceTransformer, an optional import
    """Load a sentence-transformers folder on the CPU in float32: no network, no remote code, no pickle."""
    library = require("sentence_transformers", extra="minilm", feature="sentence-transformers")
    progress = require("transformers.utils.logging", extra="minilm", feature="transformers")
    shown = progress.is_progress_bar_enabled()
    progress.disable_progress_bar()
    try:
        loaded = library.SentenceTransformer(
            str(folder),
            device="cpu",
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True},
        )
        return loaded.float()  # however they are stored
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise EncoderError(
            f"{folder.name} could not be loaded as a sentence-transformers model "
            f"({type(error).__name__}); check that the folder is whole"
        ) from error
    finally:
        if shown:
            progress.enable_progress_bar()
