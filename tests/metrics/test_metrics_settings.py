"""The page on settings shows what its command prints."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from openi import ARCHIVE

ROOT = Path(__file__).parents[2]
WORDNET = ARCHIVE.parents[1] / "wordnet30_nltk_layout.tar.xz"


@pytest.mark.openi
def test_the_page_shows_what_is_measured(tmp_path):
    """Each line that the command prints is a row of the page, and the page has no others of its kind."""
    if not (ARCHIVE.exists() and WORDNET.exists()):
        pytest.skip(f"Open-i or WordNet is not at {ARCHIVE.parents[1]}")
    with tarfile.open(WORDNET) as archive:
        archive.extractall(tmp_path, filter="data")
    command = [sys.executable, ROOT / "experiments" / "openi" / "settings.py", ARCHIVE, tmp_path]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    page = (ROOT / "docs" / "reference" / "text-overlap-settings.md").read_text(encoding="utf-8").splitlines()
    assert printed == [row for row in page if row.startswith(("| findings |", "| impression |"))]
    assert len(printed) == 10
