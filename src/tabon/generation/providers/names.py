"""From the name of a model to the generator that asks it; the name of a journal replays its drafts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from tabon._internal.registry import check_name
from tabon.errors import BadInputError, GenerationError
from tabon.generation.journal import read_journal
from tabon.generation.protocol import Answer, BatchProvider, Generator, Reach, Request
from tabon.generation.providers.command import CommandGenerator
from tabon.generation.providers.gemini import GeminiBatch, GeminiGenerator
from tabon.generation.providers.http_generator import is_loopback
from tabon.generation.providers.hugging_face import HuggingFaceGenerator
from tabon.generation.providers.mistral import MistralBatch, MistralGenerator
from tabon.generation.providers.openai_compatible import OpenAICompatibleGenerator
from tabon.generation.providers.smollm2 import SmolLM2Generator

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "mistral": ("MISTRAL_API_KEY",),
        "openai": ("OPENAI_API_KEY",),
    }
)
DraftId = tuple[str, str | None, int]  # sha256 of the filled prompt and of the image, and the seed
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelOptions:
    """What a model may need beside its name; keys never show in a representation."""

    api_key: str | None = None
    base_url: str | None = None
    command: tuple[str, ...] = ()
    timeout: float = 120.0


class ReplayGenerator:
    """Answers from an archive, and only from there.

    What is looked up holds neither the model nor the sampling settings: an
    archive is the drafts of one model under one setting.
    """

    reach: Reach = "local"

    def __init__(self, answers: Mapping[DraftId, Answer], *, name: str, source: str | None = None) -> None:
        """Take the answers."""
        self.model, self.source, self._answers = f"replay:{name}", source, answers

    async def generate(self, request: Request) -> Answer:
        """Give the answer that was given then."""
        prompt = sha256(request.prompt.encode("utf-8", "surrogatepass")).hexdigest()
        answer = self._answers.get((prompt, request.image.sha256 if request.image else None, request.seed))
        if answer is None:
            raise GenerationError(
                f"the draft of prompt {prompt[:12]} with seed {request.seed} is not in the archive; "
                "generate it with its model first"
            )
        return answer

    async def close(self) -> None:
        """Nothing to let go."""


def replay_journal(path: Path) -> ReplayGenerator:
    """Return a generator that answers from a journal of one model, without a model and without money."""
    names = ("outcome", "text", "finish_reason", "model_version", "input_tokens", "output_tokens", "raw")
    answers: dict[DraftId, Answer] = {}
    models: set[tuple[str, str | None]] = set()
    for record in read_journal(path):
        models.add((record["model"], record.get("source")))
        draft = record["prompt_sha256"], record["image_sha256"], record["seed"]
        answers[draft] = Answer(**{name: record[name] for name in names})
    if len(models) != 1:
        shown = ", ".join(sorted(f"{name} at {source or 'its own address'}" for name, source in models))
        raise BadInputError(
            f"{path} holds drafts of several models or none ({shown or 'none'}); replay one at a time"
        )
    ((name, source),) = models
    return ReplayGenerator(answers, name=name, source=source)


def make_generator(spec: str, options: ModelOptions) -> Generator:
    """Return the generator of KIND:NAME, such as gemini:gemini-2.5-flash-lite or smollm2."""
    kind, _, name = spec.partition(":")
    check_name("kind of model", tuple(KINDS), kind)
    if kind != "smollm2" and not name:
        raise BadInputError(f"the model {spec!r} has no name; write {kind}:NAME")
    return KINDS[kind](name, options)


def make_batch(spec: str, options: ModelOptions) -> BatchProvider:
    """Return a provider's batch mode: cheaper, slower, for Gemini and Mistral."""
    kind, _, name = spec.partition(":")
    check_name("kind of model with a batch mode", tuple(BATCH_KINDS), kind)
    return BATCH_KINDS[kind](name, options)


def _hosted(kind: str, make: Callable[..., T]) -> Callable[[str, ModelOptions], T]:
    """Return what makes a model of Gemini or Mistral, which have an address of their own and need a key."""
    return lambda name, options: make(
        name, api_key=_key(kind, options), base_url=options.base_url, timeout=options.timeout
    )


def _openai(name: str, options: ModelOptions) -> Generator:
    """Return a model behind any OpenAI-compatible server; on loopback it needs no key."""
    if options.base_url is None:
        raise BadInputError("an OpenAI-compatible model needs --base-url, such as http://127.0.0.1:8000/v1")
    local = is_loopback(options.base_url)
    key = options.api_key or "none" if local else _key("openai", options)
    return OpenAICompatibleGenerator(name, base_url=options.base_url, api_key=key, timeout=options.timeout)


def _command(name: str, options: ModelOptions) -> Generator:
    """Return a model behind an external command."""
    if not options.command:
        raise BadInputError("a command model needs --command, such as --command 'python my_model.py'")
    return CommandGenerator(list(options.command), name=name, timeout=options.timeout)


def _key(kind: str, options: ModelOptions) -> str:
    """Return the key, or say where it is looked for."""
    if not options.api_key:
        raise BadInputError(_no_key(kind))
    return options.api_key


def _no_key(kind: str) -> str:
    """Say where a key is looked for."""
    return f"no key for {kind}; put it in the environment variable {' or '.join(KEY_VARIABLES[kind])}"


def missing_key(spec: str, options: ModelOptions) -> str | None:
    """Say which key a model lacks here; None if it has one or needs none."""
    kind = spec.partition(":")[0]
    at_home = kind == "openai" and options.base_url is not None and is_loopback(options.base_url)
    return None if kind not in KEY_VARIABLES or options.api_key or at_home else _no_key(kind)


KINDS: Mapping[str, Callable[[str, ModelOptions], Generator]] = MappingProxyType(
    {
        "gemini": _hosted("gemini", GeminiGenerator),
        "mistral": _hosted("mistral", MistralGenerator),
        "openai": _openai,
        "hf": lambda name, _: HuggingFaceGenerator(name),
        "command": _command,
        "smollm2": lambda *_: SmolLM2Generator(),
        "replay": lambda name, _: replay_journal(Path(name)),
    }
)
BATCH_KINDS: Mapping[str, Callable[[str, ModelOptions], BatchProvider]] = MappingProxyType(
    {"gemini": _hosted("gemini", GeminiBatch), "mistral": _hosted("mistral", MistralBatch)}
)
