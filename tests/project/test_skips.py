"""A run says what it skipped, and in CI a skip of what should be there is a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("reason", "ci", "status"),
    [
        ("PostgreSQL does not run here: broken", "true", 1),
        ("PostgreSQL does not run here: broken", "", 0),
        ("curl is missing: apt-get install curl", "true", 0),
    ],
)
def test_a_skip_in_ci_is_a_failure(tmp_path, reason, ci, status):
    """The list at the end names the reason; the exit status is a failure where nothing excuses it."""
    (tmp_path / "test_it.py").write_text(f"import pytest\n\ndef test_it():\n    pytest.skip({reason!r})\n")
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text(encoding="utf-8"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "1", str(tmp_path)],
        env={**os.environ, "CI": ci, "PYTHONPATH": str(TESTS / "helpers")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout
    assert f"1 skipped{' (a failure in CI)' if status else ''}: {reason}" in done.stdout
