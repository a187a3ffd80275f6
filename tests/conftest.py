"""What holds for every test: no network, no deadlines for hypothesis, a sample of the heavy ones.

A run ends with the list of its skips. With CI=true a skip is a failure unless its
reason is one of `MAY_BE_MISSING`: what lies outside the project.
"""

import hashlib
import os
import re
import shutil
import socket
import subprocess
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from budgets import SEED

settings.register_profile(
    "tabon",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # as a deadline: it goes by the clock of a busy machine
    derandomize="CI" in os.environ,
    print_blob=True,
)
settings.load_profile("tabon")

LOOPBACK = {"127.0.0.1", "::1", "localhost"}
MAY_BE_MISSING = re.compile(  # data beside the project, Debian's programs, and what a machine is
    r"heavy: |the Open-i reports|the paper's (source|encoder)|WordNet is not at"
    r"|is missing: apt-get install|install Debian's chromium"
    r"|only root may|needs a device|there is no /|this machine has a GPU|bfloat16"
    r"|a decoder for lossless JPEG is installed|verifiers does not install beside the pins"
)


def pytest_collection_modifyitems(config, items):
    """Without TABON_HEAVY, run one heavy test of each file: another one at another commit."""
    if os.environ.get("TABON_HEAVY"):
        return
    command = ["git", "-C", str(config.rootpath), "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, check=False).stdout if shutil.which("git") else b""
    heavy = sorted(
        (item for item in items if item.get_closest_marker("heavy")),
        key=lambda item: hashlib.sha256(commit + item.nodeid.encode()).digest(),
    )
    sampled = {item.path: item for item in heavy}
    for item in heavy:
        if sampled[item.path] is not item:
            item.add_marker(pytest.mark.skip(reason="heavy: run by `make test-all`"))


def skips(reporter):
    """Count the reasons why tests were skipped."""
    reports = reporter.stats.get("skipped", [])
    return Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Fail in CI where a test was skipped for want of something that should be there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or reporter is None or hasattr(session.config, "workerinput"):
        return
    if any(not MAY_BE_MISSING.search(reason) for reason in skips(reporter)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """Print the skips and the seeds of this run: the order of the tests and the cases of the fuzzers."""
    for reason, count in sorted(skips(terminalreporter).items()):
        allowed = MAY_BE_MISSING.search(reason) or os.environ.get("CI") != "true"
        terminalreporter.write_line(f"{count} skipped{'' if allowed else ' (a failure in CI)'}: {reason}")
    order = config.getoption("randomly_seed", "none")
    terminalreporter.write_line(f"seeds: --randomly-seed={order} (order), TABON_SEED={SEED} (fuzzers)")


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable():
    """Let a failure over text that is no UTF-8 be told: xdist would end the whole run over it."""
    return told((yield))


def told(value):
    """Return a report with half characters written as question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {told(key): told(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(told, value))
    return value


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Keep what commands cache out of the user's folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Refuse every connection that leaves the machine."""
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family != socket.AF_UNIX and address[0] not in LOOPBACK:
            raise AssertionError(f"a test tried to reach {address[0]}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
