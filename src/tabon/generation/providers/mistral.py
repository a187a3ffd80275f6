"""Mistral models, through Mistral's own client."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tabon._internal.extras import require
from tabon.generation.protocol import Outcome, Reach, Request
from tabon.generation.providers.failures import Provider, outcome_of, unused_client
from tabon.generation.providers.http_generator import HttpGenerator
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


def read(result: Any) -> Mapping[str, Any]:  # noqa: ANN401  # an optional import's type
    """Take a ChatCompletionResponse apart into the fields of an answer."""
    choice = result.choices[0]
    text = choice.message.content if choice.message else ""
    if isinstance(text, list):  # of chunks
        text = "".join(chunk.text for chunk in text if chunk.type == "text")
    text = text if isinstance(text, str) else ""
    return {
        "outcome": outcome_of(choice.finish_reason, text, FINISH_REASONS),
        "text": text,
        "finish_reason": choice.finish_reason,
        "model_version": result.model,
        "input_tokens": result.usage.prompt_tokens,
        "output_tokens": result.usage.completion_tokens,
    }


class MistralGenerator(HttpGenerator):
    """A Mistral model behind Mistral's API."""

    reach: Reach = "any"

    def __init__(
        self, model_id: str, *, api_key: str, base_url: str | None = None, timeout: float = 120.0
    ) -> None:
        """Make the client; nothing is sent yet."""
        sdk = require("mistralai.client", extra="mistral", feature="the Mistral client")
        errors = require("mistralai.client.errors", extra="mistral", feature="the Mistral client")
        httpx2 = require("httpx2", extra="mistral", feature="the HTTP client")
        self._model_id = model_id
        address = base_url or BASE_URL
        provider = Provider(
            model=f"mistral:{model_id}",
            base_url=address,
            key_name=KEY_NAME,
            timeout=timeout,
            lost=(httpx2.TransportError, errors.NoResponseError),
            failed=(errors.MistralError, httpx2.HTTPError),
            missing="it may be retired; check the model id",
        )
        super().__init__(provider, read, api_key=api_key, extra="mistral", own_address=BASE_URL)
        self._unused = unused_client(extra="mistral")
        self._client = sdk.Mistral(
            api_key=api_key,
            server_url=address,
            client=self._unused,
            async_client=self._http,
            retry_config=None,  # the runner asks again, not the client
            debug_logger=_Silent(),
        )

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
        await super().close()
