"""An HTTP server on loopback that speaks Gemini's and Mistral's batch protocols.

`with BatchServer(plans=[Plan(state="expired", finished=3)]) as server: server.url("gemini")`. Jobs come
out in another order than they went in; a row is billed, under its job, when it is finished.
"""

import json
import random
import re
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from provider_server import KEY, OK, OK_TEXT, Behaviour, chat_body, error_body, faults, gemini_body
from provider_server import take_chat as chat_taken
from provider_server import take_gemini as gemini_taken

GEMINI_STATES = {
    "running": "BATCH_STATE_RUNNING",
    "done": "BATCH_STATE_SUCCEEDED",
    "failed": "BATCH_STATE_FAILED",
    "expired": "BATCH_STATE_EXPIRED",
    "cancelled": "BATCH_STATE_CANCELLED",
}
MISTRAL_STATES = {
    "running": "RUNNING",
    "done": "SUCCESS",
    "failed": "FAILED",
    "expired": "TIMEOUT_EXCEEDED",
    "cancelled": "CANCELLED",
}
ROUTES = [
    ("POST", r"/gemini/upload/v1beta/files", "gemini_start_upload"),
    ("POST", r"/gemini/put/(\w+)", "gemini_upload"),
    ("POST", r"/gemini/v1beta/models/(.+):batchGenerateContent", "gemini_create"),
    ("GET", r"/gemini/v1beta/batches", "gemini_list"),
    ("GET", r"/gemini/v1beta/batches/([\w-]+)", "gemini_get"),
    ("GET", r"/gemini/v1beta/files/([\w-]+):download", "gemini_download"),
    ("POST", r"/mistral/v1/files", "mistral_upload"),
    ("POST", r"/mistral/v1/batch/jobs", "mistral_create"),
    ("GET", r"/mistral/v1/batch/jobs", "mistral_list"),
    ("GET", r"/mistral/v1/batch/jobs/([\w-]+)", "mistral_get"),
    ("GET", r"/mistral/v1/files/([\w-]+)/content", "mistral_download"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What becomes of one job."""

    state: str = "done"
    looks: int = 1  # how often it is still running when asked after
    finished: int | None = None  # rows that get an answer; None: all
    errors: int = 0  # of the others, rows that come back with an error
    twice: bool = False  # every row comes back two times
    stranger: bool = False  # a row comes back that nobody sent


@dataclass(slots=True)
class Job:
    """One job as the server keeps it."""

    id: str
    name: str
    model: str
    rows: list[tuple[str, dict]]  # key, request
    plan: Plan
    looks: int = 0

    @property
    def state(self):
        """How far it is."""
        return "running" if self.looks <= self.plan.looks else self.plan.state


@dataclass(eq=False)
class BatchServer:
    """The server; `plans` says what becomes of the first jobs, `fail` which statuses a route gives first."""

    plans: Sequence[Plan] = ()
    fail: dict[str, list[int]] = field(default_factory=dict)
    page: int = 2
    key: str = KEY
    jobs: dict[str, Job] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    billed: dict[str, Counter] = field(default_factory=dict)  # for each job, how often each key
    calls: Counter = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def url(self, provider):
        """Return the base URL for a provider's client."""
        return f"http://127.0.0.1:{self.port}/{provider}"

    def __enter__(self):
        """Serve from a thread."""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # head and body leave together

            def answer(self):
                """Answer one call."""
                data = self.rfile.read(int(self.headers.get("content-length") or 0))
                code, headers, payload = owner.reply(self.command, self.path, self.headers, data)
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_POST = answer  # noqa: N815

            def log_message(self, *_):
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_):
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def reply(self, method, target, headers, data):
        """Find the route of a call and take it; a wrong key or a planned failure comes first."""
        parts = urlsplit(target)
        for verb, pattern, route in ROUTES:
            match = re.fullmatch(pattern, parts.path)
            if verb != method or match is None:
                continue
            self.calls[route] += 1
            sent = headers.get("x-goog-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
            if sent != self.key and route != "gemini_upload":  # its address is secret already
                return self._failure(route, 401)
            if self.fail.get(route):
                return self._failure(route, self.fail[route].pop(0))
            found = getattr(self, f"_{route}")(*match.groups(), headers=headers, data=data, query=parts.query)
            return found if isinstance(found, tuple) else (200, JSON, json.dumps(found).encode())
        self.violations.append(f"{method} {target}")
        return 404, JSON, b"{}"

    def _failure(self, route, code):
        """Write an error as the provider does: its prose repeats the key."""
        provider = route.partition("_")[0]
        asked = chat_taken(provider, {"authorization": f"Bearer {self.key}"}, {"messages": [], "model": "m"})
        return code, JSON, json.dumps(error_body(asked, Behaviour(status=code))).encode()

    def _start(self, name, model, rows):
        """Accept a job."""
        plan = self.plans[len(self.jobs)] if len(self.jobs) < len(self.plans) else Plan()
        job = Job(f"job-{len(self.jobs)}", name, model, rows, plan)
        self.jobs[job.id] = job
        return job

    def _finish(self, job, write):
        """Write a job's file of results in another order; bill what is finished, once."""
        count = len(job.rows) if job.plan.finished is None else job.plan.finished
        lines = [write(key, body) for key, body in job.rows[:count]]
        lines += [write(key, None) for key, _ in job.rows[count : count + job.plan.errors]]
        if job.plan.stranger:
            lines.append(write("stranger", job.rows[0][1]))
        lines *= 2 if job.plan.twice else 1
        random.Random(job.id).shuffle(lines)
        self.files[f"out-{job.id}"] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        self.billed.setdefault(job.id, Counter({key: 1 for key, _ in job.rows[:count]}))
        return count > 0

    # Gemini

    def _gemini_start_upload(self, *, headers, **_):
        """Say where a file may be sent."""
        kind, command = headers["x-goog-upload-header-content-type"], headers["x-goog-upload-command"]
        if (command, kind) != ("start", "application/jsonl"):
            self.violations.append(f"an upload that does not start: {command} {kind}")
        file = f"in{len(self.files)}"
        self.files[file] = b""
        return 200, JSON | {"X-Goog-Upload-URL": f"{self.url('gemini')}/put/{file}"}, b"{}"

    def _gemini_upload(self, file, *, headers, data, **_):
        """Take a piece of a file."""
        self.files[file] += data
        final = "finalize" in headers["x-goog-upload-command"]
        body = {"file": {"name": f"files/{file}", "uri": "u", "mimeType": "application/jsonl"}}
        return (
            200,
            JSON | {"X-Goog-Upload-Status": "final" if final else "active"},
            json.dumps(body).encode(),
        )

    def _gemini_create(self, model, *, data, **_):
        """Start a job over a file."""
        batch = json.loads(data)["batch"]
        file = self.files[batch["inputConfig"]["fileName"].removeprefix("files/")]
        rows = [(row["key"], row["request"]) for row in map(json.loads, file.splitlines())]
        return self._gemini_job(self._start(batch["displayName"], model, rows))

    def _gemini_list(self, *, query, **_):
        """List jobs, newest first, a page at a time."""
        start = int(parse_qs(query).get("pageToken", ["0"])[0])
        jobs = list(reversed(self.jobs.values()))
        more = {"nextPageToken": str(start + self.page)} if start + self.page < len(jobs) else {}
        return {"operations": [self._gemini_job(job) for job in jobs[start : start + self.page]]} | more

    def _gemini_get(self, name, **_):
        """Say how far a job is."""
        if name not in self.jobs:
            return self._failure("gemini_get", 404)
        self.jobs[name].looks += 1
        return self._gemini_job(self.jobs[name])

    def _gemini_download(self, file, **_):
        """Send a file of results."""
        return 200, {"Content-Type": "application/octet-stream"}, self.files[file]

    def _gemini_job(self, job):
        """Write a job as an operation."""
        about = {"displayName": job.name, "state": GEMINI_STATES[job.state], "model": f"models/{job.model}"}
        about |= {"createTime": "2026-01-01T00:00:00Z", "batchStats": {"requestCount": str(len(job.rows))}}
        if job.state != "running" and self._finish(job, lambda *row: self._gemini_row(job, *row)):
            about["output"] = {"responsesFile": f"files/out-{job.id}"}
        return {"name": f"batches/{job.id}", "metadata": about, "done": job.state != "running"}

    def _gemini_row(self, job, key, body):
        """Write one row of results, with a field that no client knows yet."""
        if body is None:
            return {"key": key, "error": {"code": 13, "message": f"failed with {self.key}"}}
        asked = gemini_taken(f"/models/{job.model}:generateContent", {"x-goog-api-key": self.key}, body)
        self.violations += faults(asked, image=False)
        text = OK_TEXT.format(seed=asked.seed)
        return {"key": key, "response": gemini_body(asked, OK, text) | {"aFieldFromTheFuture": 1}}

    # Mistral

    def _mistral_upload(self, *, headers, data, **_):
        """Take a file."""
        head = f"Content-Type: {headers['content-type']}\r\n\r\n".encode()
        parts = BytesParser().parsebytes(head + data).get_payload()
        named = {part.get_param("name", header="content-disposition"): part for part in parts}
        if named["purpose"].get_payload() != "batch":
            self.violations.append("a file that is not for a batch")
        file = f"in{len(self.files)}"
        self.files[file] = named["file"].get_payload(decode=True)
        about = {"id": file, "object": "file", "bytes": len(self.files[file]), "created_at": 1}
        return about | {
            "filename": named["file"].get_filename(),
            "purpose": "batch",
            "sample_type": "batch_request",
            "source": "upload",
        }

    def _mistral_create(self, *, data, **_):
        """Start a job over a file."""
        body = json.loads(data)
        if body["endpoint"] != "/v1/chat/completions":
            self.violations.append(f"endpoint {body['endpoint']}")
        file = self.files[body["input_files"][0]]
        rows = [(row["custom_id"], row["body"]) for row in map(json.loads, file.splitlines())]
        return self._mistral_job(self._start(body["metadata"]["tabon_name"], body["model"], rows))

    def _mistral_list(self, *, query, **_):
        """List jobs, newest first, a page at a time (smaller than asked for)."""
        start = int(parse_qs(query).get("page", ["0"])[0]) * self.page
        jobs = list(reversed(self.jobs.values()))
        data = [self._mistral_job(job) for job in jobs[start : start + self.page]]
        return {"object": "list", "total": len(jobs), "data": data}

    def _mistral_get(self, name, **_):
        """Say how far a job is."""
        if name not in self.jobs:
            return self._failure("mistral_get", 404)
        self.jobs[name].looks += 1
        return self._mistral_job(self.jobs[name])

    def _mistral_download(self, file, **_):
        """Send a file of results."""
        return 200, {"Content-Type": "application/octet-stream"}, self.files[file]

    def _mistral_job(self, job):
        """Write a job."""
        output = None
        if job.state != "running" and self._finish(job, lambda *row: self._mistral_row(job, *row)):
            output = f"out-{job.id}"
        return {
            "id": job.id,
            "object": "batch",
            "input_files": [],
            "metadata": {"tabon_name": job.name},
            "endpoint": "/v1/chat/completions",
            "model": job.model,
            "output_file": output,
            "errors": [],
            "status": MISTRAL_STATES[job.state],
            "created_at": 1,
            "total_requests": len(job.rows),
            "completed_requests": 0,
            "succeeded_requests": 0,
            "failed_requests": 0,
        }

    def _mistral_row(self, job, key, body):
        """Write one row of results."""
        if body is None:
            return {
                "custom_id": key,
                "response": {"status_code": 500, "body": {"message": f"failed with {self.key}"}},
            }
        asked = chat_taken("mistral", {}, body | {"model": job.model})
        self.violations += faults(asked, image=False)
        answer = chat_body(asked, OK, OK_TEXT.format(seed=asked.seed))
        return {"id": f"r-{key}", "custom_id": key, "response": {"status_code": 200, "body": answer}}


JSON = {"Content-Type": "application/json"}
