"""No test hopes that a pause is long enough: what is waited for is an event (`waiting.py`)."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAUSE = re.compile(r"(?:time|asyncio)\.sleep\(|wait_for_timeout\(|from (?:time|asyncio) import .*\bsleep\b")
ALLOWED = {  # how many, and why they decide nothing
    "helpers/waiting.py": (2, "the pause between two looks at a condition"),
    "project/test_clock.py": (2, "the examples below"),
    "helpers/gateway_upstream.py": (1, "an upstream that is slow"),
    "helpers/provider_server.py": (2, "a provider that hangs for ever, and one that is slow"),
    "service/test_explorer_routes.py": (1, "work that takes a moment, so that two would overlap"),
    "service/test_gateway_failures.py": (1, "a client that hangs up at any moment: each is right"),
    "generation/test_generation_local.py": (
        4,
        "programs that hang or look for a file; a turn of the loop",
    ),
    "generation/test_generation_running.py": (1, "a provider that is slow"),
    "service/test_service_guard.py": (2, "between two looks at a condition"),
}
FILES = sorted(TESTS.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_tests_wait_for_events(path):
    """A pause stands only where the list above says why; use `until` or `until_async`."""
    allowed, _ = ALLOWED.get(str(path.relative_to(TESTS)), (0, ""))
    assert len(PAUSE.findall(path.read_text(encoding="utf-8"))) <= allowed


def test_what_is_allowed_is_there():
    """The list names no file that is gone or that pauses no more."""
    assert [name for name in ALLOWED if not PAUSE.search((TESTS / name).read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("line", ["time.sleep(0.1)", "from time import monotonic, sleep"])
def test_a_pause_is_seen(line):
    """The rule sees both ways to write one."""
    assert PAUSE.search(line)
