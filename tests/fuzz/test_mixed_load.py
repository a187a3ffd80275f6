"""Fifty clients at once, valid and hostile requests mixed, on a real process."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from budgets import budget, seeded

httpx = pytest.importorskip("httpx", reason="the service's tests speak HTTP with httpx")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from service_server import PATIENCE, bank, get, http, program, queries, until  # noqa: E402

CANARY = "Zqxwv"
CLIENTS = 50
JSON = {"content-type": "application/json"}
MARKED = {"id": "q", "prior": f"FINDINGS: {CANARY} clear.", "candidates": [f"FINDINGS: {CANARY} edema."]}
MUCH = [" ".join(f"{CANARY} d{draft} at l{line}." for line in range(90)) for draft in range(64)]
HOSTILE = [  # body, headers, status
    (b"[" * 100_000, JSON, 400),
    (b'"' + b'\\"' * 50_000, JSON, 400),
    (json.dumps(MARKED).encode()[:60], JSON, 400),
    (CANARY.encode() * 99, JSON, 400),
    (json.dumps({**MARKED, "candidates": [CANARY] * 999}).encode(), JSON, 422),
    (json.dumps({**MARKED, "candidates": [CANARY * 9000]}).encode(), JSON, 422),
    (json.dumps({**MARKED, "candidates": MUCH}).encode(), JSON, 413),
    (b" " * 1_100_000, JSON, 413),
    (json.dumps(MARKED).encode(), {"content-type": "text/plain"}, 415),
    (json.dumps(MARKED).encode(), {**JSON, "host": "[::1]evil"}, 403),
    (json.dumps(MARKED).encode(), {**JSON, "origin": f"http://{CANARY}"}, 403),
]
BY_DESIGN = {429, 503, 504}


def memory(process):
    """Return the megabytes that a process holds."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def one_request(client, chance, number):
    """Send one request; return whether it was answered as it should be, and what it got."""
    if chance.random() < 0.4:
        body, headers, status = chance.choice(HOSTILE)
        found = client.post(chance.choice(["/v1/select", "/v1/explain"]), content=body, headers=headers)
        return found.status_code == status or found.status_code in BY_DESIGN, found.status_code
    if chance.random() < 0.2:
        path = chance.choice(["/healthz", "/v1/bank", "/metrics", "/readyz"])
        found = client.get(path)
        return found.status_code == 200 or found.status_code in BY_DESIGN, found.status_code
    record = {**chance.choice(queries()), "id": f"q{number}"}
    found = client.post(chance.choice(["/v1/select"] * 4 + ["/v1/explain"]), json=record)
    right = found.status_code == 200 and found.json()["id"] == record["id"]
    return right or found.status_code in BY_DESIGN, found.status_code


def test_fifty_clients_are_all_answered(tmp_path):
    """No answer is lost or wrong, no failure but those by design, no text in the log, memory stays."""
    bank().save(tmp_path / "bank")
    code = "from tabon.cli.serve import serve_command; serve_command()"
    command = ["-c", code, "--bank", str(tmp_path / "bank"), "--port", "0", "--cache", "500"]
    command += ["--timeout", str(PATIENCE)]
    each, seconds = budget(3, 10**9), budget(PATIENCE, 60)
    counts, held = [0] * CLIENTS, []
    everyone = threading.Barrier(CLIENTS)

    def ask(place, address):
        chance, wrong = seeded(f"client {place}"), []
        with http(base_url=address) as client:
            everyone.wait(PATIENCE)
            end = time.monotonic() + seconds
            while counts[place] < each and time.monotonic() < end:
                right, status = one_request(client, chance, place * 1_000_000 + counts[place])
                wrong += [] if right else [status]
                counts[place] += 1
        return wrong

    with program(command, tmp_path) as running, ThreadPoolExecutor(CLIENTS) as pool:
        for _ in range(2):  # the second round must not need more memory than the first
            counts[:] = [0] * CLIENTS
            found = [pool.submit(ask, place, running.address) for place in range(CLIENTS)]
            assert [one.result() for one in found] == [[]] * CLIENTS
            assert sum(counts) >= budget(CLIENTS * 3, CLIENTS)
            held.append(memory(running.process))
        until(
            lambda: "tabon_requests_running 1.0\n" in get(f"{running.address}/metrics").text, "all have ended"
        )
        talk = running.talk()
    assert CANARY not in talk
    assert "Traceback" not in talk
    assert held[1] <= 1.25 * held[0] + 50, held
