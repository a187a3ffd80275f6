"""Gemini's batch mode: a file of keyed requests goes up, a file of keyed responses comes down.

Files rather than inlined requests: those end at 20 MB, which is a few dozen
images, and their responses do not always carry the key.
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from io import BytesIO
from types import MappingProxyType
from typing import Any

from tabon.generation.batches import State, answer_from, call, read_rows
from tabon.generation.protocol import Answer, Request
from tabon.generation.providers.gemini import SEEDS, GeminiGenerator, read

STATES: Mapping[str, State] = MappingProxyType(
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


def request_body(request: Request) -> dict[str, Any]:
    """Write a request as Gemini's REST interface takes it: the image, then the prompt."""
    parts: list[dict[str, Any]] = [{"text": request.prompt}]
    if request.image is not None:
        data = b64encode(request.image.data).decode("ascii")
        parts.insert(0, {"inlineData": {"mimeType": request.image.media_type, "data": data}})
    drawn = request.parameters
    return {
        "contents": [{"role": "user", "parts": parts}],
        "generationConfig": {
            "seed": request.seed % SEEDS,
            "temperature": drawn.temperature,
            "topP": drawn.top_p,
            "maxOutputTokens": drawn.max_tokens,
            "candidateCount": 1,
        },
    }


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


class GeminiBatch(GeminiGenerator):
    """A Gemini model behind Google's batch interface."""

    async def submit(self, name: str, requests: Sequence[tuple[str, Request]]) -> str:
        """Send the file up, then start a job with our name; return the job's id."""
        lines = [json.dumps({"key": key, "request": request_body(request)}) for key, request in requests]
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

    async def state(self, job_id: str) -> State:
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
