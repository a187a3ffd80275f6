"""Any server that speaks OpenAI's chat protocol: vLLM, llama.cpp, LM Studio, Ollama."""

from base64 import b64encode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tabon._internal.extras import require
from tabon.generation.protocol import Outcome, Reach, Request
from tabon.generation.providers.failures import Provider, outcome_of
from tabon.generation.providers.http_generator import HttpGenerator, is_loopback

KEY_NAME = "OPENAI_API_KEY"
FINISH_REASONS: Mapping[str, Outcome] = MappingProxyType(
    {"stop": "ok", "length": "truncated", "content_filter": "blocked"}
)


def chat_body(request: Request, *, seed: str) -> dict[str, Any]:
    """Write a request as a chat completion: the image as a data URL, then the prompt; `seed` is its key."""
    content: list[dict[str, Any]] = [{"type": "text", "text": request.prompt}]
    if request.image is not None:
        data = b64encode(request.image.data).decode("ascii")
        url = f"data:{request.image.media_type};base64,{data}"
        content.insert(0, {"type": "image_url", "image_url": {"url": url}})
    return {
        "messages": [{"role": "user", "content": content}],
        seed: request.seed,
        "temperature": request.parameters.temperature,
        "top_p": request.parameters.top_p,
        "max_tokens": request.parameters.max_tokens,
        "n": 1,
    }


def read(result: Any) -> Mapping[str, Any]:  # noqa: ANN401  # an optional import's type
    """Take a ChatCompletion apart into the fields of an answer."""
    choice, usage = result.choices[0], result.usage
    text, refusal = choice.message.content or "", choice.message.refusal
    if not isinstance(text, str):
        raise TypeError("the content of a message is text")
    return {
        "outcome": "refused" if refusal else outcome_of(choice.finish_reason, text, FINISH_REASONS),
        "text": text,
        "finish_reason": choice.finish_reason,
        "model_version": result.model,
        "input_tokens": usage.prompt_tokens if usage else None,
        "output_tokens": usage.completion_tokens if usage else None,
    }


class OpenAICompatibleGenerator(HttpGenerator):
    """A model behind OpenAI's chat protocol."""

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str,
        api_key: str = "none",
        reach: Reach | None = None,
        timeout: float = 120.0,
    ) -> None:
        """Make the client; nothing is sent yet. Without `reach`, a server on loopback is local."""
        openai = require("openai", extra="openai", feature="the OpenAI client")
        httpx2 = require("httpx2", extra="openai", feature="the HTTP client")
        self._model_id = model_id
        self.reach: Reach = reach or ("local" if is_loopback(base_url) else "any")
        provider = Provider(
            model=f"openai:{model_id}",
            base_url=base_url,
            key_name=KEY_NAME,
            timeout=timeout,
            lost=(httpx2.TransportError, openai.APIConnectionError),
            failed=(openai.OpenAIError, httpx2.HTTPError),
            missing="check the model id and the base URL (it mostly ends in /v1)",
        )
        super().__init__(provider, read, api_key=api_key, extra="openai")
        self._client = openai.AsyncOpenAI(
            api_key=api_key,
            base_url=base_url,
            max_retries=0,  # the runner asks again, not the client
            timeout=None,
            http_client=self._http,
        )

    async def _send(self, request: Request) -> Any:  # noqa: ANN401  # an optional import's type
        """Send the image, then the prompt."""
        body = chat_body(request, seed="seed")
        return await self._client.chat.completions.create(model=self._model_id, **body)
