"""Gemini models, through Google's own client, draft by draft or by the batch."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from io import BytesIO
from types import MappingProxyType
from typing import Any

from tabon._internal.extras import require
from tabon.generation.protocol import Answer, JobState, Outcome, Reach, Request, token_count
from tabon.generation.providers.failures import Provider, outcome_of
from tabon.generation.providers.http_generator import (
    HttpGenerator,
    answer_from,
    call,
    read_rows,
    trusts_no_one,
)

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
LEAST_THINKING: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"gemini-2.5": {"thinkingBudget": 0}, "gemini-3": {"thinkingLevel": "MINIMAL"}}
)
STATES: Mapping[str, JobState] = MappingProxyType(
    {
        "JOB_STATE_SUCCEEDED": "done",
        "JOB_STATE_PARTIALLY_SUCCEEDED": "done",
        "JOB_STATE_FAILED": "failed",
        "JOB_STATE_CANCELLED": "cancelled",
        "JOB_STATE_EXPIRED": "expired",
    }
)
WHAT_IS_READ: Mapping[str, Any] = MappingProxyType(  # the client's types refuse fields that are new to them
    {
        "candidates": [{"content": {"parts": [{"text": ..., "thought": ...}]}, "finishReason": ...}],
        "promptFeedback": {"blockReason": ...},
        "usageMetadata": {"promptTokenCount": ..., "candidatesTokenCount": ..., "thoughtsTokenCount": ...},
        "modelVersion": ...,
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


def thinking_config(model_id: str) -> dict[str, Any]:
    """Return the least thinking that a model can be set to: its thoughts count against the output tokens.

    Flash models of 2.5 can leave it out, those of 3 cannot quite; of others nothing is said.

    >>> thinking_config("gemini-2.5-flash-lite"), thinking_config("gemini-3.1-flash-lite")
    ({'thinkingConfig': {'thinkingBudget': 0}}, {'thinkingConfig': {'thinkingLevel': 'MINIMAL'}})
    """
    for start, least in LEAST_THINKING.items():
        if model_id.startswith(start) and "flash" in model_id:
            return {"thinkingConfig": dict(least)}
    return {}


def generation_config(model_id: str, request: Request) -> dict[str, Any]:
    """Return how a draft is drawn, as Gemini's REST interface names it."""
    drawn = request.parameters
    return {
        **thinking_config(model_id),
        "seed": request.seed % SEEDS,
        "temperature": drawn.temperature,
        "topP": drawn.top_p,
        "maxOutputTokens": drawn.max_tokens,
        "candidateCount": 1,
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
        types = self._types
        contents: list[Any] = [request.prompt]
        if request.image is not None:
            image = types.Part.from_bytes(data=request.image.data, mime_type=request.image.media_type)
            contents.insert(0, image)
        return await self._client.aio.models.generate_content(
            model=self._model_id,
            contents=contents,
            config=types.GenerateContentConfig(
                **generation_config(self._model_id, request),
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            ),
        )


class GeminiBatch(GeminiGenerator):
    """A Gemini model behind Google's batch interface.

    A file of keyed requests goes up, a file of keyed responses comes down. Inlined requests end at
    20 MB, a few dozen images, and their responses do not always carry the key.
    """

    async def submit(self, name: str, requests: Sequence[tuple[str, Request]]) -> str:
        """Send the file up, then start a job with our name; return the job's id."""
        lines = []
        for key, request in requests:
            parts: list[dict[str, Any]] = [{"text": request.prompt}]
            if request.image is not None:
                image = b64encode(request.image.data).decode("ascii")
                parts.insert(0, {"inlineData": {"mimeType": request.image.media_type, "data": image}})
            contents = [{"role": "user", "parts": parts}]
            body = {"contents": contents, "generationConfig": generation_config(self._model_id, request)}
            lines.append(json.dumps({"key": key, "request": body}))
        data = "\n".join([*lines, ""]).encode()
        upload = self._types.UploadFileConfig(display_name=name, mime_type="application/jsonl")
        file = await call(
            self._provider.for_files(),
            lambda: self._client.aio.files.upload(file=BytesIO(data), config=upload),
        )
        job = await call(
            self._provider.for_jobs(),
            lambda: self._client.aio.batches.create(
                model=self._model_id,
                src=self._types.BatchJobSource(file_name=file.name),
                config=self._types.CreateBatchJobConfig(display_name=name),
            ),
        )
        return str(job.name)

    async def find(self, name: str) -> str | None:
        """Look through the jobs of this account for our name."""

        async def search() -> Any:  # noqa: ANN401  # an optional import's type
            """Go through the pages until the name turns up."""
            pages = await self._client.aio.batches.list(config={"page_size": 100})
            async for job in pages:
                if job.display_name == name:
                    return job.name
            return None

        found = await call(self._provider.for_files(), search)
        return None if found is None else str(found)

    async def state(self, job_id: str) -> JobState:
        """Return how far a job is."""
        job = await self._job(job_id)
        return STATES.get(job.state.value if job.state else "", "running")

    async def results(self, job_id: str) -> list[tuple[str, Answer]]:
        """Fetch the finished rows by key; rows that failed are left out."""
        job = await self._job(job_id)
        if job.dest is None or not job.dest.file_name:
            return []
        data = await call(
            self._provider.for_files(), lambda: self._client.aio.files.download(file=str(job.dest.file_name))
        )
        parse = self._types.GenerateContentResponse.model_validate
        return [
            (
                str(row.get("key")),
                answer_from(row["response"], lambda body: read(parse(only(WHAT_IS_READ, body)))),
            )
            for row in read_rows(self._provider, data)
            if "response" in row
        ]

    async def _job(self, job_id: str) -> Any:  # noqa: ANN401  # an optional import's type
        """Ask after a job."""
        return await call(self._provider.for_jobs(), lambda: self._client.aio.batches.get(name=job_id))


def only(shape: Any, value: Any) -> Any:  # noqa: ANN401  # any JSON
    """Return the parts of a value that have a place in a shape.

    >>> only({"a": [{"b": ...}]}, {"a": [{"b": 1, "new": 2}], "newer": 3})
    {'a': [{'b': 1}]}
    """
    if isinstance(shape, Mapping) and isinstance(value, dict):
        return {name: only(part, value[name]) for name, part in shape.items() if name in value}
    if isinstance(shape, list) and isinstance(value, list):
        return [only(shape[0], item) for item in value]
    return value
