"""Mistral models, through Mistral's own client."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tabon._internal.extras import require
from tabon.generation.protocol import Answer, Outcome, Reach, Request
from tabon.generation.providers.failures import (
    Provider,
    ask,
    check_address,
    check_key,
    http_client,
    outcome_of,
    source_of,
    unused_client,
)
from tabon.generation.providers.openai_compatible import content_of

BASE_URL = "https://api.mistral.ai"
KEY_NAME = "MISTRAL_API_KEY"
FINISH_REASONS: Mapping[str, Outcome] = MappingProxyType(
    {"stop": "ok", "length": "truncated", "model_length": "truncated", "error": "malformed"}
)


class _Silent:
    """A log that keeps nothing: with MISTRAL_DEBUG set, the client would log whole prompts."""

    def debug(self, msg: str, *args: object, **kwargs: object) -> None:
        """Drop the line."""


def _text(content: Any) -> str:  # noqa: ANN401  # an optional import's type
    """Join the text of a message, which is a string or a list of chunks."""
    if isinstance(content, list):
        return "".join(chunk.text for chunk in content if chunk.type == "text")
    return content if isinstance(content, str) else ""


def read(result: Any) -> Mapping[str, Any]:  # noqa: ANN401  # an optional import's type
    """Take a ChatCompletionResponse apart into the fields of an answer."""
    choice = result.choices[0]
    text = _text(choice.message.content) if choice.message else ""
    return {
        "outcome": outcome_of(choice.finish_reason, text, FINISH_REASONS),
        "text": text,
        "finish_reason": choice.finish_reason,
        "model_version": result.model,
        "input_tokens": result.usage.prompt_tokens,
        "output_tokens": result.usage.completion_tokens,
    }


class MistralGenerator:
    """A Mistral model behind Mistral's API."""

    reach: Reach = "any"

    def __init__(
        self, model_id: str, *, api_key: str, base_url: str | None = None, timeout: float = 120.0
    ) -> None:
        """Make the client; nothing is sent yet."""
        sdk = require("mistralai.client", extra="mistral", feature="the Mistral client")
        errors = require("mistralai.client.errors", extra="mistral", feature="the Mistral client")
        httpx2 = require("httpx2", extra="mistral", feature="the HTTP client")
        self.model = f"mistral:{model_id}"
        self._model_id = model_id
        address = base_url or BASE_URL
        check_address(self.model, address)
        check_key(self.model, api_key, KEY_NAME)
        self.source = None if source_of(address) == BASE_URL else source_of(address)
        self._provider = Provider(
            model=self.model,
            base_url=address,
            key_name=KEY_NAME,
            timeout=timeout,
            lost=(httpx2.TransportError, errors.NoResponseError),
            failed=(errors.MistralError, httpx2.HTTPError),
            missing="it may be retired; check the model id",
        )
        self._http = http_client(address, extra="mistral")
        self._unused = unused_client(extra="mistral")
        self._client = sdk.Mistral(
            api_key=api_key,
            server_url=address,
            client=self._unused,
            async_client=self._http,
            retry_config=None,  # the runner asks again, not the client
            debug_logger=_Silent(),
        )

    async def generate(self, request: Request) -> Answer:
        """Write one draft; raises TryAgainError or GenerationError."""
        return await ask(self._provider, lambda: self._send(request), read)

    async def _send(self, request: Request) -> Any:  # noqa: ANN401  # an optional import's type
        """Send the image, then the prompt."""
        drawn = request.parameters
        return await self._client.chat.complete_async(
            model=self._model_id,
            messages=[{"role": "user", "content": content_of(request)}],
            random_seed=request.seed,
            temperature=drawn.temperature,
            top_p=drawn.top_p,
            max_tokens=drawn.max_tokens,
            n=1,
        )

    async def close(self) -> None:
        """Let the connections go."""
        self._unused.close()
        await self._http.aclose()
