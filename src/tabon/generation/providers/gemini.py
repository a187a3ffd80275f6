"""Gemini models, through Google's own client."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tabon._internal.extras import require
from tabon.generation.protocol import Outcome, Reach, Request, token_count
from tabon.generation.providers.failures import Provider, outcome_of, trusts_no_one, unused_client
from tabon.generation.providers.http_generator import HttpGenerator

BASE_URL = "https://generativelanguage.googleapis.com"
KEY_NAME = "GEMINI_API_KEY"
SEEDS = 2**31  # a seed is an int32 there
FINISH_REASONS: Mapping[str, Outcome] = MappingProxyType(
    {
        "STOP": "ok",
        "MAX_TOKENS": "truncated",
        "CONTINUATION": "truncated",
        "SAFETY": "blocked",
        "RECITATION": "blocked",
        "BLOCKLIST": "blocked",
        "PROHIBITED_CONTENT": "blocked",
        "SPII": "blocked",
        "IMAGE_SAFETY": "blocked",
        "IMAGE_PROHIBITED_CONTENT": "blocked",
    }
)
RETIRED: Mapping[str, str] = MappingProxyType(
    {
        "gemini-3.1-flash-lite-preview": "the preview has ended; its successor is gemini-3.1-flash-lite",
        "gemini-2.5-flash-lite": "it is being shut down; use a current model, such as gemini-3.1-flash-lite",
    }
)


def read(result: Any) -> Mapping[str, Any]:  # noqa: ANN401  # an optional import's type
    """Take a GenerateContentResponse apart into the fields of an answer."""
    usage, feedback = result.usage_metadata, result.prompt_feedback
    fields: dict[str, Any] = {"model_version": result.model_version}
    if usage is not None:
        fields["input_tokens"] = usage.prompt_token_count
        made = [usage.candidates_token_count, usage.thoughts_token_count]  # thoughts are billed as output
        counts = [token_count(count) for count in made if count is not None]
        fields["output_tokens"] = sum(counts) if counts and None not in counts else None
    if feedback is not None and feedback.block_reason is not None:
        return fields | {"outcome": "blocked", "finish_reason": feedback.block_reason.value}
    candidate = result.candidates[0]
    reason = candidate.finish_reason.value if candidate.finish_reason is not None else None
    parts = (candidate.content.parts if candidate.content else None) or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    return fields | {
        "outcome": outcome_of(reason, text, FINISH_REASONS),
        "text": text,
        "finish_reason": reason,
    }


class GeminiGenerator(HttpGenerator):
    """A Gemini model behind Google's API."""

    reach: Reach = "any"

    def __init__(
        self, model_id: str, *, api_key: str, base_url: str | None = None, timeout: float = 120.0
    ) -> None:
        """Make the client; nothing is sent yet."""
        genai = require("google.genai", extra="gemini", feature="the Gemini client")
        httpx2 = require("httpx2", extra="gemini", feature="the HTTP client")
        self._model_id, self._types = model_id, genai.types
        address = base_url or BASE_URL
        provider = Provider(
            model=f"gemini:{model_id}",
            base_url=address,
            key_name=KEY_NAME,
            timeout=timeout,
            lost=(httpx2.TransportError,),
            failed=(genai.errors.APIError, httpx2.HTTPError),
            missing=RETIRED.get(model_id, "it may be retired; check the model id"),
        )
        super().__init__(provider, read, api_key=api_key, extra="gemini", own_address=BASE_URL)
        self._unused = unused_client(extra="gemini")
        self._client = genai.Client(
            api_key=api_key,
            vertexai=False,
            http_options=self._types.HttpOptions(
                base_url=address,
                api_version="v1beta",
                httpx_client=self._unused,
                httpx_async_client=self._http,
                async_client_args={"ssl": trusts_no_one()},  # for web sockets, which are never opened
                retry_options=self._types.HttpRetryOptions(attempts=1),  # the runner asks again
            ),
        )

    async def _send(self, request: Request) -> Any:  # noqa: ANN401  # an optional import's type
        """Send the image, then the prompt."""
        types, drawn = self._types, request.parameters
        contents: list[Any] = [request.prompt]
        if request.image is not None:
            image = types.Part.from_bytes(data=request.image.data, mime_type=request.image.media_type)
            contents.insert(0, image)
        return await self._client.aio.models.generate_content(
            model=self._model_id,
            contents=contents,
            config=types.GenerateContentConfig(
                seed=request.seed % SEEDS,
                temperature=drawn.temperature,
                top_p=drawn.top_p,
                max_output_tokens=drawn.max_tokens,
                candidate_count=1,
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            ),
        )

    async def close(self) -> None:
        """Let the connections go."""
        self._unused.close()
        await super().close()
