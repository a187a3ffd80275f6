"""Lint the scripts of the explorer and of reader studies with oxlint: `python tools/lint_page.py`.

The files are linted as the page holds them, joined, because a name of one is used in the others.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from packages import ROOT

from tabon.service.explorer.export import read_scripts
from tabon.service.page import SCRIPT_HEAD, joined
from tabon.service.study.export import read_scripts as read_study_scripts

OXLINT = Path(sys.executable).with_name("oxlint")
FINDING = re.compile(r"[^:]+:(\d+)(:\d+: .+)")  # file:line:column: message


def findings(scripts: Mapping[str, str]) -> list[str]:
    """Return what oxlint finds, as `file:line:column: message`."""
    with TemporaryDirectory() as folder:
        Path(folder, "page.js").write_text(joined(scripts.values()), encoding="utf-8")
        command = [OXLINT, "--config", ROOT / ".oxlintrc.json", "--format", "unix", "page.js"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = [match for line in done.stdout.splitlines() if (match := FINDING.fullmatch(line))]
    if done.returncode and not found:
        raise RuntimeError(done.stdout + done.stderr)
    return [f"{_place(scripts, int(match[1]))}{match[2]}" for match in found]


def _place(scripts: Mapping[str, str], line: int) -> str:
    """Return the file and the line in it that a line of the joined script comes from."""
    line -= SCRIPT_HEAD.count("\n")
    for name, text in scripts.items():
        if line <= text.count("\n"):
            return f"{name}:{line}"
        line -= text.count("\n")
    return f"end:{line}"


if __name__ == "__main__":
    found = [*findings(read_scripts()), *findings(read_study_scripts())]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
