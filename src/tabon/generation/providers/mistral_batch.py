"""Mistral's batch mode: a file of requests with our ids goes up, a file of responses comes down."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tabon._internal.extras import require
from tabon.generation.batches import State, answer_from, call, read_rows
from tabon.generation.protocol import Answer, Request
from tabon.generation.providers.failures import TRANSFER_TIMEOUT
from tabon.generation.providers.mistral import MistralGenerator, read
from tabon.generation.providers.openai_compatible import content_of

ENDPOINT = "/v1/chat/completions"
NAME = "tabon_name"  # in a job's metadata
PAGE = 100
HOURS = 24  # after so many a job expires
FINE = 200
MILLISECONDS = int(TRANSFER_TIMEOUT * 1000)
STATES: Mapping[str, State] = MappingProxyType(
    {"SUCCESS": "done", "FAILED": "failed", "TIMEOUT_EXCEEDED": "expired", "CANCELLED": "cancelled"}
)


def request_body(request: Request) -> dict[str, Any]:
    """Write a request as Mistral's REST interface takes it; the job names the model."""
    drawn = request.parameters
    return {
        "messages": [{"role": "user", "content": content_of(request)}],
        "random_seed": request.seed,
        "temperature": drawn.temperature,
        "top_p": drawn.top_p,
        "max_tokens": drawn.max_tokens,
        "n": 1,
    }


def response_body(row: Mapping[str, Any]) -> object | None:
    """Return the completion in a row of results; None where the row failed."""
    response = row.get("response")
    if row.get("error") or not isinstance(response, dict) or response.get("status_code", FINE) != FINE:
        return None
    return response.get("body")


class MistralBatch(MistralGenerator):
    """A Mistral model behind Mistral's batch interface."""

    async def submit(self, name: str, requests: Sequence[tuple[str, Request]]) -> str:
        """Send the file up, then start a job with our name; return the job's id."""
        lines = [json.dumps({"custom_id": key, "body": request_body(request)}) for key, request in requests]
        content = "\n".join([*lines, ""]).encode()
        file = await call(
            self._provider.for_files(),
            lambda: self._client.files.upload_async(
                file={"file_name": f"{name}.jsonl", "content": content},
                purpose="batch",
                timeout_ms=MILLISECONDS,
            ),
        )
        job = await call(
            self._provider.for_jobs(),
            lambda: self._client.batch.jobs.create_async(
                endpoint=ENDPOINT,
                input_files=[file.id],
                model=self._model_id,
                metadata={NAME: name},
                timeout_hours=HOURS,
            ),
        )
        return str(job.id)

    async def find(self, name: str) -> str | None:
        """Look through the jobs of this account for our name, the newest first."""
        page, seen, total = 0, 0, 1
        while seen < total:
            number = page
            listed = await call(
                self._provider.for_jobs(),
                lambda: self._client.batch.jobs.list_async(page=number, page_size=PAGE),  # noqa: B023
            )
            jobs = listed.data or []
            for job in jobs:
                if (job.metadata or {}).get(NAME) == name:
                    return str(job.id)
            page, seen, total = page + 1, seen + len(jobs), listed.total if jobs else 0
        return None

    async def state(self, job_id: str) -> State:
        """Return how far a job is."""
        return STATES.get(str((await self._job(job_id)).status), "running")

    async def results(self, job_id: str) -> list[tuple[str, Answer]]:
        """Fetch the finished rows by key; rows that failed are left out."""
        job = await self._job(job_id)
        if not job.output_file:
            return []

        async def download() -> bytes:
            """Fetch the file whole."""
            file = str(job.output_file)
            response = await self._client.files.download_async(file_id=file, timeout_ms=MILLISECONDS)
            data: bytes = await response.aread()
            return data

        rows = read_rows(self._provider, await call(self._provider.for_files(), download))
        models = require("mistralai.client.models", extra="mistral", feature="the Mistral client")
        parse = models.ChatCompletionResponse.model_validate
        bodies = [(str(row.get("custom_id")), response_body(row)) for row in rows]
        return [
            (key, answer_from(body, lambda body: read(parse(body))))
            for key, body in bodies
            if body is not None
        ]

    async def _job(self, job_id: str) -> Any:  # noqa: ANN401  # an optional import's type
        """Ask after a job."""
        return await call(self._provider.for_jobs(), lambda: self._client.batch.jobs.get_async(job_id=job_id))
