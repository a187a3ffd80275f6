"""From the name of a model to the generator that asks it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from tabon._internal.registry import check_name
from tabon.errors import BadInputError
from tabon.generation.protocol import BatchProvider, Generator
from tabon.generation.providers.command import CommandGenerator
from tabon.generation.providers.gemini import GeminiBatch, GeminiGenerator
from tabon.generation.providers.http_generator import is_loopback
from tabon.generation.providers.hugging_face import HuggingFaceGenerator
from tabon.generation.providers.mistral import MistralBatch, MistralGenerator
from tabon.generation.providers.openai_compatible import OpenAICompatibleGenerator
from tabon.generation.providers.smollm2 import SmolLM2Generator
from tabon.generation.replay import replay_journal

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "mistral": ("MISTRAL_API_KEY",),
        "openai": ("OPENAI_API_KEY",),
    }
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelOptions:
    """What a model may need beside its name; keys never show in a representation."""

    api_key: str | None = None
    base_url: str | None = None
    command: tuple[str, ...] = ()
    timeout: float = 120.0


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
        names = " or ".join(KEY_VARIABLES[kind])
        raise BadInputError(f"no key for {kind}; put it in the environment variable {names}")
    return options.api_key


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
