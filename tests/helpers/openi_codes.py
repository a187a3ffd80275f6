"""The codes that people gave the Open-i reports."""

import tarfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

from openi import ARCHIVE


@cache
def codes():
    """The codes that people gave each report (MeSH terms and the archive's own), by its number."""
    with tarfile.open(ARCHIVE) as archive:
        files = [member for member in archive if member.name.endswith(".xml")]
        roots = {Path(file.name).stem: ET.fromstring(archive.extractfile(file).read()) for file in files}  # noqa: S314
    return {
        number: tuple((code.text or "").strip().lower() for code in root.iter("major"))
        for number, root in roots.items()
    }
