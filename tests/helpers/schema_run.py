"""schemathesis over an OpenAPI document, with all its checks, as its own command runs it."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("schemathesis", reason="pip install schemathesis")

EXAMPLES = 20  # a route, in the fuzzing phase
SETTINGS = """
[checks]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 413, 415, 422]
positive_data_acceptance.expected-statuses = ["2xx", 404, 413]
"""  # 413: a generated body may be longer than --max-body; 404: a number may be beyond what there is
OPTIONS = ("--checks", "all", "--phases", "examples,coverage,fuzzing", "--seed", "1")


def found_by_schemathesis(address, folder, *options, examples=EXAMPLES):
    """Run schemathesis against an address and return the finished process."""
    (folder / "schemathesis.toml").write_text(SETTINGS)
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json", *OPTIONS, *options]
    return subprocess.run(
        [*command, "--max-examples", str(examples)],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def check_all(address, folder, *options):
    """Expect schemathesis to find nothing."""
    done = found_by_schemathesis(address, folder, *options)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r"(\d+) generated, \1 passed", done.stdout), done.stdout[-2000:]
