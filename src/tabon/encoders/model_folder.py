"""A sentence-transformers folder: checked before the library sees it, hashed, and loaded.

A model folder is data. What would make it run code, or read what its fingerprint
does not cover, is refused here, whatever the installed library would do with it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, NamedTuple

from tabon._internal.extras import require
from tabon.errors import EncoderError, TabonError

LIBRARY = "sentence_transformers."
CLASS_KEYS = {"auto_map", "type", "types", "tokenizer_class", "activation_function"}  # name classes to import
IMPORTED_FROM = (LIBRARY, "torch.nn.")
NO_CLASSES = {"tokenizer.json", "vocab.json", "data_config.json"}  # are large and name none
PICKLED = {".bin", ".pt", ".pth", ".ckpt", ".pkl"}
SAFE_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")  # read instead of a pickle beside them
NOT_SETTINGS = {"README.md", "data_config.json"}
NEVER_READ = PICKLED | {"", ".safetensors", ".py", ".md", ".h5", ".msgpack", ".ot", ".onnx", ".gguf"}


def _sha256(paths: list[Path]) -> str:
    """Hash the bytes of these files, one after another."""
    digest = sha256()
    for path in paths:
        with path.open("rb") as file:
            file_digest(file, lambda: digest)
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
    """Return the sha256 of every file but the weights that the library may read for a vector."""
    read = (path for path in _files(folder) if path.suffix not in NEVER_READ)
    return _sha256([path for path in read if path.name not in NOT_SETTINGS])


def _files(folder: Path) -> list[Path]:
    """Return the files of a model folder and of its modules' folders; other folders are not read."""
    places = {folder / module.path for module in modules(folder)} - {folder}
    found = {*folder.iterdir(), *(path for place in places for path in place.rglob("*"))}
    if linked := [path.name for path in found if path.is_symlink() and path.is_dir()]:
        raise EncoderError(f"{linked[0]} in {folder.name} is a link to another folder; copy that one there")
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


class Module(NamedTuple):
    """One step of a model: the name of its class, and the folder with its files."""

    kind: str
    path: str


def modules(folder: Path) -> list[Module]:
    """Return a model's modules in their order; a bare transformers folder is one without a name."""
    if not (folder / "modules.json").is_file():
        return [Module("", "")]
    found = read_json(folder / "modules.json")
    if not isinstance(found, list) or not all(map(_is_module, found)):
        raise EncoderError(
            f"modules.json in {folder.name} names a module that is not part of sentence-transformers; "
            "a model folder that brings its own code is not loaded"
        )
    return [Module(module["type"].rpartition(".")[2], module["path"]) for module in found]


def _is_module(module: object) -> bool:
    """Say whether an entry of modules.json is a class of the library with files inside the folder."""
    match module:
        case {"type": str(kind), "path": str(path)}:
            return kind.startswith(LIBRARY) and _inside(path)
    return False


def _inside(path: str) -> bool:
    """Say whether a relative path stays below where it begins."""
    return not Path(path).is_absolute() and ".." not in Path(path).parts


def check_folder(folder: Path) -> None:
    """Refuse a folder that names code of its own, or weights that are pickled or lie elsewhere."""
    for path in _files(folder):
        if path.suffix in PICKLED and not any((path.parent / name).is_file() for name in SAFE_WEIGHTS):
            raise EncoderError(
                f"{path.relative_to(folder)} in {folder.name} holds pickled weights; save the model as "
                ".safetensors (tabon does not load pickled weights)"
            )
        if path.name == "adapter_config.json":
            raise EncoderError(
                f"{folder.name} is an adapter of another model; merge both and save the result"
            )
        settings = path.suffix == ".json" and path.name not in NO_CLASSES
        for key, value in _texts(read_json(path)) if settings else ():
            foreign = key in CLASS_KEYS and "." in value and not value.startswith(IMPORTED_FROM)
            if key == "auto_map" or foreign:
                raise EncoderError(
                    f"{path.relative_to(folder)} in {folder.name} names code to run ({key}); "
                    "a model folder that brings its own code is not loaded"
                )
            if value.endswith(".safetensors") and not _inside(value):
                raise EncoderError(
                    f"{path.relative_to(folder)} names weights outside of {folder.name}; copy them there"
                )


def _texts(value: object) -> Iterator[tuple[str, str]]:
    """Yield every text in a JSON value with its key; what is below one of `CLASS_KEYS` has that one.

    >>> list(_texts({"types": {"0_Dense": "evil.Dense"}, "size": 3}))
    [('types', 'evil.Dense')]
    """
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, list):
            waiting.extend((key, inner) for inner in value)
        elif isinstance(value, dict):
            waiting.extend((key if key in CLASS_KEYS else name, inner) for name, inner in value.items())


def read_json(path: Path) -> Any:  # noqa: ANN401
    """Read a JSON file of a model folder."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise EncoderError(
            f"{path.name} in {path.parent.name} is not whole JSON ({type(error).__name__}); fetch it again"
        ) from error


def load_model(folder: Path) -> Any:  # noqa: ANN401  # a SentenceTransformer, an optional import
    """Load a sentence-transformers folder on the CPU in float32: no network, no remote code, no pickle."""
    library = require("sentence_transformers", extra="torch", feature="sentence-transformers")
    check_folder(folder)
    with reading(folder), _quiet():
        loaded = library.SentenceTransformer(
            str(folder),
            device="cpu",
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True},
        )
        missing = _missing_tensors(folder, loaded)
    if missing:
        raise EncoderError(
            f"{folder.name} lacks {len(missing)} tensors of its model, {missing[0]} first, which would be "
            "random; check that the folder is whole"
        )
    return loaded.float()  # however they are stored


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Turn whatever the libraries raise over a damaged model folder into one sentence."""
    try:
        yield
    except TabonError:
        raise
    except Exception as error:  # tokenizers raises nothing narrower
        raise EncoderError(
            f"{folder.name} could not be loaded as a sentence-transformers model "
            f"({type(error).__name__}); check that the folder is whole"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Switch the progress bars and loading reports of transformers off for a while."""
    logging = require("transformers.utils.logging", extra="torch", feature="transformers")
    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


def _missing_tensors(folder: Path, model: Any) -> list[str]:  # noqa: ANN401
    """Return the tensors that transformers did not find and made up; a pooler's are not used.

    If a name is not in the files, the library says whether it is there under another one.
    """
    safetensors = require("safetensors", extra="torch", feature="safetensors")
    found: list[str] = []
    for (_, path), module in zip(modules(folder), model, strict=False):
        inner = getattr(module, "auto_model", None)
        stored: set[str] = set()
        for file in (folder / path).glob("*.safetensors"):
            with safetensors.safe_open(file, "pt") as tensors:
                stored.update(tensors.keys())
        if inner is None or stored.issuperset(inner.state_dict()):
            continue
        _, seen = type(inner).from_pretrained(
            str(folder / path),
            config=inner.config,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
        found += sorted(name for name in seen["missing_keys"] if "pooler" not in name)
    return found
