"""Mistral models, through Mistral's own client, draft by draft or by the batch."""

import json
from collections.abc import Mapping, Sequence
from logging import CRITICAL, Logger
from types import MappingProxyType
from typing import Any

from tabon._internal.extras import require
from tabon.generation.protocol import Answer, JobState, Outcome, Reach, Request
from tabon.generation.providers.failures import TRANSFER_TIMEOUT, Provider, outcome_of
from tabon.generation.providers.http_generator import HttpGenerator, answer_from, call, read_rows
from tabon.generation.providers.openai_compatible import chat_body

SILENT = Logger("silent", CRITICAL)  # noqa: LOG001  # with MISTRAL_DEBUG set, whole prompts would be logged
BASE_URL = "https://api.mistral.ai"
KEY_NAME = "MISTRAL_API_KEY"
FINISH_REASONS: Mapping[str, Outcome] = MappingProxyType(
    {"stop": "ok", "length": "truncated", "model_length": "truncated", "error": "malformed"}
)
ENDPOINT = "/v1/chat/completions"
NAME = "tabon_name"  # in a job's metadata
PAGE = 100
HOURS = 24  # after so many a job expires
FINE = 200
MILLISECONDS = int(TRANSFER_TIMEOUT * 1000)
STATES: Mapping[str, JobState] = MappingProxyType(
    {"SUCCESS": "done", "FAILED": "failed", "TIMEOUT_EXCEEDED": "expired", "CANCELLED": "cancelled"}
)


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
        self._client = sdk.Mistral(
            api_key=api_key,
            server_url=address,
            client=self._unused,
            async_client=self._http,
            retry_config=None,  # the runner asks again, not the client
            debug_logger=SILENT,
        )

    async def _send(self, request: Request) -> Any:  # noqa: ANN401  # an optional import's type
        """Send the image, then the prompt."""
        body = chat_body(request, seed="random_seed")
        return await self._client.chat.complete_async(model=self._model_id, **body)


class MistralBatch(MistralGenerator):
    """A Mistral model behind Mistral's batch interface: files of requests and responses with our ids."""

    async def submit(self, name: str, requests: Sequence[tuple[str, Request]]) -> str:
        """Send the file up, then start a job with our name; return the job's id."""
        bodies = [(key, chat_body(request, seed="random_seed")) for key, request in requests]
        lines = [json.dumps({"custom_id": key, "body": body}) for key, body in bodies]
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

    async def state(self, job_id: str) -> JobState:
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
        answers = []
        for row in rows:
            response = row.get("response")
            if row.get("error") or not isinstance(response, dict):
                continue
            if response.get("status_code", FINE) == FINE and response.get("body") is not None:
                answer = answer_from(response["body"], lambda body: read(parse(body)))
                answers.append((str(row.get("custom_id")), answer))
        return answers

    async def _job(self, job_id: str) -> Any:  # noqa: ANN401  # an optional import's type
        """Ask after a job."""
        return await call(self._provider.for_jobs(), lambda: self._client.batch.jobs.get_async(job_id=job_id))
