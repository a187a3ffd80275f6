"""From the name of a model to the generator that asks it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tabon._internal.registry import lookup
from tabon.errors import BadInputError
from tabon.generation.batches import BatchProvider
from tabon.generation.protocol import Generator
from tabon.generation.providers.failures import is_loopback

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "gemini": "tabon.generation.providers.gemini:GeminiGenerator",
        "mistral": "tabon.generation.providers.mistral:MistralGenerator",
        "openai": "tabon.generation.providers.names:make_openai",
        "hf": "tabon.generation.providers.names:make_hugging_face",
        "command": "tabon.generation.providers.names:make_command",
        "smollm2": "tabon.generation.providers.names:make_smollm2",
        "replay": "tabon.generation.providers.names:make_replay",
    }
)
BATCH_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "gemini": "tabon.generation.providers.gemini_batch:GeminiBatch",
        "mistral": "tabon.generation.providers.mistral_batch:MistralBatch",
    }
)
KEY_VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "mistral": ("MISTRAL_API_KEY",),
        "openai": ("OPENAI_API_KEY",),
    }
)


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
    make = lookup("kind of model", KINDS, kind)
    if kind != "smollm2" and not name:
        raise BadInputError(f"the model {spec!r} has no name; write {kind}:NAME")
    generator: Generator = _hosted(make, spec, options) if kind in BATCH_KINDS else make(name, options)
    return generator


def make_batch(spec: str, options: ModelOptions) -> BatchProvider:
    """Return a provider's batch mode: cheaper, slower, for Gemini and Mistral."""
    make = lookup("kind of model with a batch mode", BATCH_KINDS, spec.partition(":")[0])
    provider: BatchProvider = _hosted(make, spec, options)
    return provider


def _hosted(make: Callable[..., Any], spec: str, options: ModelOptions) -> Any:  # noqa: ANN401
    """Make what asks a model of Gemini or Mistral, which have an address of their own and need a key."""
    kind, _, name = spec.partition(":")
    return make(name, api_key=_key(kind, options), base_url=options.base_url, timeout=options.timeout)


def make_openai(name: str, options: ModelOptions) -> Generator:
    """Return a model behind any OpenAI-compatible server; on loopback it needs no key."""
    from tabon.generation.providers.openai_compatible import OpenAICompatibleGenerator

    if options.base_url is None:
        raise BadInputError("an OpenAI-compatible model needs --base-url, such as http://127.0.0.1:8000/v1")
    local = is_loopback(options.base_url)
    key = options.api_key or "none" if local else _key("openai", options)
    return OpenAICompatibleGenerator(name, base_url=options.base_url, api_key=key, timeout=options.timeout)


def make_hugging_face(name: str, _: ModelOptions) -> Generator:
    """Return a local vision-language model, by folder or name@revision."""
    from tabon.generation.providers.hugging_face import HuggingFaceGenerator

    return HuggingFaceGenerator(name)


def make_command(name: str, options: ModelOptions) -> Generator:
    """Return a model behind an external command."""
    from tabon.generation.providers.command import CommandGenerator

    if not options.command:
        raise BadInputError("a command model needs --command, such as --command 'python my_model.py'")
    return CommandGenerator(list(options.command), name=name, timeout=options.timeout)


def make_smollm2(_: str, __: ModelOptions) -> Generator:
    """Return the embedded small language model."""
    from tabon.generation.providers.smollm2 import SmolLM2Generator

    return SmolLM2Generator()


def make_replay(name: str, _: ModelOptions) -> Generator:
    """Return the drafts of a journal, asked again without a model."""
    from tabon.generation.replay import replay_journal

    return replay_journal(Path(name))


def _key(kind: str, options: ModelOptions) -> str:
    """Return the key, or say where it is looked for."""
    if not options.api_key:
        names = " or ".join(KEY_VARIABLES[kind])
        raise BadInputError(f"no key for {kind}; put it in the environment variable {names}")
    return options.api_key
