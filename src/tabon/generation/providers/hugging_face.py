"""Vision-language models in this process, through transformers.

A draft is drawn by the request alone: every row of a batch has a random generator of its own, and
the sampling settings that a model folder may carry (top-k, repetition penalty, beams) are set aside.
One thread draws. With `batch` above 1, waiting requests that differ in the seed alone (the K drafts
of one visit) go through the model together; a batch always has exactly that many rows, because its
shape decides the last bits.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import file_digest, sha256
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any

from tabon._internal.extras import require
from tabon.errors import BadInputError, GenerationError
from tabon.generation.protocol import Answer, Outcome, Parameters, Reach, Request

EXTRA = "hf"
NOT_FETCHED = ["*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack", "onnx/*", "*.gguf", "*.py"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A loaded model, and how it reads requests and writes drafts."""

    network: Any
    read: Callable[[Request], Mapping[str, Any]]  # the tensors of one row
    write: Callable[[list[int]], str]
    stops: frozenset[int]  # token ids that end a draft
    limit: int | None  # tokens that fit, prompt and draft together
    version: str
    notes: Mapping[str, Any] = field(default_factory=dict)  # goes into every answer's raw body


class SeededRows:
    """Draw the next token of each row with the row's own generator (a logits processor)."""

    def __init__(self, seeds: Sequence[int], parameters: Parameters) -> None:
        """Seed one generator per row."""
        self._torch = require("torch", extra=EXTRA, feature="torch")
        self._rows = [self._torch.Generator().manual_seed(seed % 2**63) for seed in seeds]
        self._parameters = parameters

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ANN401  # tensors of an optional import
        """Leave only the drawn token possible, so that greedy decoding takes it."""
        del input_ids
        chances = self._torch.softmax(scores.detach().float().cpu() / self._parameters.temperature, dim=-1)
        drawn = []
        for row, generator in zip(chances, self._rows, strict=True):
            if self._parameters.top_p < 1.0:  # the fewest likeliest tokens that hold so much of the chance
                ordered, places = row.sort(descending=True, stable=True)
                beyond = ordered.cumsum(0) - ordered >= self._parameters.top_p
                beyond[0] = False
                row = row.index_fill(0, places[beyond], 0.0)  # noqa: PLW2901
            drawn.append(int(self._torch.multinomial(row, 1, generator=generator)))
        forced = self._torch.full_like(scores, -float("inf"))
        forced[range(len(drawn)), drawn] = 0.0
        return forced


def draw(local: LocalModel, requests: Sequence[Request], *, rows: int) -> list[Answer]:
    """Answer requests that differ in nothing but the seed, in one batch of `rows` rows."""
    torch = require("torch", extra=EXTRA, feature="torch")
    parameters = requests[0].parameters
    prompt = local.read(requests[0])
    length = int(prompt["input_ids"].shape[1])
    room = parameters.max_tokens if local.limit is None else min(parameters.max_tokens, local.limit - length)
    if room < 1:
        raise GenerationError(
            f"the prompt has {length} tokens, the model reads {local.limit} in all; "
            "use a shorter prompt or another model"
        )
    seeds = [request.seed for request in requests]
    seeds += seeds[-1:] * (rows - len(seeds))
    with torch.inference_mode():
        tokens = local.network.generate(
            **{name: torch.cat([tensor] * rows) for name, tensor in prompt.items()},
            logits_processor=[SeededRows(seeds, parameters)] if parameters.temperature > 0 else [],
            do_sample=False,
            max_new_tokens=room,
        )
    start = 1 if local.network.config.is_encoder_decoder else length
    drafts = tokens[: len(requests), start:].tolist()
    return [_answer(local, draft, input_tokens=length) for draft in drafts]


def _answer(local: LocalModel, tokens: list[int], *, input_tokens: int) -> Answer:
    """Cut a row after its first stop token and say how it ended."""
    end = next((place for place, token in enumerate(tokens) if token in local.stops), None)
    kept = tokens if end is None else tokens[:end]
    count = len(tokens) if end is None else end + 1
    text = local.write(kept).strip()
    ended: Outcome = "ok" if text else "empty"
    return Answer(
        outcome="truncated" if end is None else ended,
        text=text,
        finish_reason="length" if end is None else "stop",
        model_version=local.version,
        input_tokens=input_tokens,
        output_tokens=count,
        raw={"text": text, "tokens": tokens[:count], **local.notes},
    )


@dataclass(slots=True, eq=False)
class _Ticket:
    """A waiting request, and its answer once it is there."""

    request: Request
    answer: Answer | None = None


class LocalGenerator:
    """A model that draws in a thread of this process; loaded once, at the first request."""

    reach: Reach = "local"
    source: str | None = None

    def __init__(self, model: str, load: Callable[[], LocalModel], *, batch: int = 1) -> None:
        """Keep how to load the model; nothing is loaded yet."""
        if batch < 1:
            raise BadInputError(f"batch is {batch}; give 1 or more")
        self.model = model
        self._load = load
        self._batch = batch
        self._loaded: LocalModel | None = None
        self._closed = False
        self._waiting: list[_Ticket] = []
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tabon-draw")

    async def generate(self, request: Request) -> Answer:
        """Draw one draft; the same request gives the same draft."""
        if self._closed:
            raise GenerationError(f"{self.model} is closed")
        ticket = _Ticket(request)
        with self._lock:
            self._waiting.append(ticket)
        try:
            return await asyncio.wrap_future(self._thread.submit(self._serve, ticket))
        finally:
            with self._lock:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)

    def _serve(self, ticket: _Ticket) -> Answer:
        """Draw a ticket, with others that differ in the seed alone, unless it was drawn with another."""
        if ticket.answer is not None:
            return ticket.answer
        if self._loaded is None:
            self._loaded = self._load()
        with self._lock:
            asked = ticket.request
            alike = [one for one in self._waiting if replace(one.request, seed=asked.seed) == asked]
            group = [ticket, *(one for one in alike if one is not ticket)][: self._batch]
            self._waiting = [one for one in self._waiting if one not in group]
        try:
            answers = draw(self._loaded, [one.request for one in group], rows=self._batch)
        except GenerationError:
            raise
        except (RuntimeError, ValueError, IndexError, TypeError, OSError) as error:
            raise GenerationError(  # without report text, which the libraries may show
                f"{self.model} failed on a prompt of {len(ticket.request.prompt)} characters "
                f"({type(error).__name__})"
            ) from None
        for one, answer in zip(group, answers, strict=True):
            one.answer = answer
        return answers[0]

    async def close(self) -> None:
        """Let the thread and the model go."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)
        self._loaded = None


class HuggingFaceGenerator(LocalGenerator):
    """A local vision-language model: a folder, or a Hub name with its revision (`owner/model@revision`)."""

    def __init__(
        self, folder_or_name: str | Path, *, device: str = "cpu", dtype: str = "auto", batch: int = 1
    ) -> None:
        """Keep which model it is; the weights are read (a Hub model: fetched) at the first request."""
        if Path(folder_or_name).is_dir():
            folder = Path(folder_or_name)
            name, revision = folder.resolve().name, folder_hash(folder)
            super().__init__(f"hf:{name}", lambda: load_folder(folder, device, dtype), batch=batch)
        else:
            name, revision = pinned(str(folder_or_name))
            super().__init__(f"hf:{name}", lambda: load_from_hub(name, revision, device, dtype), batch=batch)
        self.source = revision


def pinned(name: str) -> tuple[str, str]:
    """Split `owner/model@revision`; without a revision tomorrow's drafts would be another model's.

    >>> pinned("llava-hf/llava-1.5-7b-hf@b234b80")
    ('llava-hf/llava-1.5-7b-hf', 'b234b80')
    """
    repository, _, revision = name.partition("@")
    if not revision or repository.count("/") != 1 or repository.startswith((".", "/")):
        raise BadInputError(
            f"{name!r} is neither a folder nor a model with its revision; write owner/model@revision"
        )
    return repository, revision


def load_from_hub(name: str, revision: str, device: str, dtype: str) -> LocalModel:
    """Load a Hub model at one revision; what is in the local cache is not asked for again."""
    hub = require("huggingface_hub", extra=EXTRA, feature="the Hugging Face Hub client")
    errors = require("huggingface_hub.errors", extra=EXTRA, feature="the Hugging Face Hub client")
    wanted = {"repo_id": name, "revision": revision, "ignore_patterns": NOT_FETCHED}
    try:
        folder = Path(hub.snapshot_download(**wanted, local_files_only=True))
    except errors.HFValidationError:
        raise GenerationError(f"{name!r} is not a name of a Hub model; write owner/model@revision") from None
    except errors.LocalEntryNotFoundError:
        try:
            folder = Path(hub.snapshot_download(**wanted))
        except (OSError, errors.HfHubHTTPError, errors.LocalEntryNotFoundError) as error:
            raise GenerationError(
                f"{name} at revision {revision} is not on this machine and could not be fetched "
                f"({type(error).__name__}); download that revision elsewhere and pass its folder"
            ) from None
    return replace(load_folder(folder, device, dtype), version=folder.name)


def load_folder(folder: Path, device: str, dtype: str) -> LocalModel:
    """Load a model folder: no network, no remote code, no pickle."""
    torch = require("torch", extra=EXTRA, feature="torch")
    library = require("transformers", extra=EXTRA, feature="transformers")
    version = short_hash(sorted(folder.glob("*.safetensors")), folder.name)
    try:
        with quiet_loading():
            processor = library.AutoProcessor.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
            network = library.AutoModelForImageTextToText.from_pretrained(
                str(folder),
                dtype=dtype if dtype == "auto" else getattr(torch, dtype),
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
            )
            network = network.to(device).eval()
    except (OSError, ValueError, KeyError, RuntimeError, AttributeError) as error:
        raise GenerationError(
            f"{folder.name} could not be loaded as a vision-language model on {device} as {dtype} "
            f"({type(error).__name__}); check that the folder is whole"
        ) from error
    tokenizer = processor.tokenizer
    return LocalModel(
        network=network,
        read=lambda request: _read(processor, network, request),
        write=lambda tokens: str(tokenizer.decode(tokens, skip_special_tokens=True)),
        stops=plain_settings(network, tokenizer),
        limit=getattr(network.config.get_text_config(), "max_position_embeddings", None),
        version=version,
    )


def folder_hash(folder: Path) -> str:
    """Return a hash of a model folder's files, without what is not loaded: code, pickles, hidden files."""
    digest = sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parts)
        if hidden or any(name.match(pattern) for pattern in NOT_FETCHED):
            continue
        digest.update(f"{name.as_posix()}\0".encode("utf-8", "surrogateescape"))
        with path.open("rb") as file:
            digest.update(file_digest(file, "sha256").digest())
    return digest.hexdigest()


def short_hash(weights: Sequence[Path], name: str) -> str:
    """Return the first 12 hex digits of the weights' sha256."""
    if not weights:
        raise GenerationError(
            f"{name} holds no .safetensors weights; save the model in that format "
            "(tabon does not load pickled weights)"
        )
    digest = sha256()
    for path in weights:
        with path.open("rb") as file:
            file_digest(file, lambda: digest)
    return digest.hexdigest()[:12]


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Hide transformers' progress bars for the length of a `with` block."""
    bars = require("transformers.utils.logging", extra=EXTRA, feature="transformers")
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


def plain_settings(network: Any, tokenizer: Any) -> frozenset[int]:  # noqa: ANN401
    """Replace a model's own sampling settings by its token ids; returns the ids that end a draft."""
    library = require("transformers", extra=EXTRA, feature="transformers")
    own = network.generation_config
    ends = own.eos_token_id if own.eos_token_id is not None else tokenizer.eos_token_id
    stops = frozenset(ends if isinstance(ends, list) else [] if ends is None else [ends])
    padding = own.pad_token_id if own.pad_token_id is not None else tokenizer.pad_token_id
    network.generation_config = library.GenerationConfig(
        bos_token_id=own.bos_token_id,
        eos_token_id=sorted(stops) or None,
        pad_token_id=padding if padding is not None else min(stops, default=0),
        decoder_start_token_id=own.decoder_start_token_id,
    )
    return stops


def _read(processor: Any, network: Any, request: Request) -> Mapping[str, Any]:  # noqa: ANN401
    """Turn a request into tensors: the processor's chat template, or the image token and the prompt."""
    token = getattr(processor, "image_token", None) or ""
    if token and token in request.prompt:
        raise GenerationError(f"the prompt holds the model's image token {token!r}; take it out")
    pictures = [_picture(request.image.data)] if request.image else []
    if getattr(processor, "chat_template", None):
        shown = [{"type": "image", "image": picture} for picture in pictures]
        said = {"role": "user", "content": [*shown, {"type": "text", "text": request.prompt}]}
        tensors = processor.apply_chat_template(
            [said], add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )
    else:
        text = f"{token}\n{request.prompt}" if pictures and token else request.prompt
        tensors = processor(text=text, images=pictures or None, return_tensors="pt")
    return {
        name: tensor.to(network.device, network.dtype if tensor.is_floating_point() else None)
        for name, tensor in tensors.items()
    }


def _picture(data: bytes) -> Any:  # noqa: ANN401  # a PIL image, an optional import
    """Decode a PNG or JPEG into RGB."""
    library = require("PIL.Image", extra=EXTRA, feature="Pillow")
    try:
        with library.open(BytesIO(data), formats=("PNG", "JPEG")) as picture:
            return picture.convert("RGB")
    except (OSError, ValueError, SyntaxError, library.DecompressionBombError) as error:
        raise GenerationError(
            f"an image of {len(data)} bytes is not a readable PNG or JPEG ({type(error).__name__})"
        ) from None
