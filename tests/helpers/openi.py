"""The 3,955 Open-i reports that lie beside the project, read and never copied into it."""

import tarfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tabon.text.reports import Report

ARCHIVE = Path(__file__).resolve().parents[3] / "shared" / "data" / "openi" / "NLMCXR_reports.tgz"


@cache
def openi_sections() -> tuple[tuple[str, dict[str, str]], ...]:
    """The number of each report and its labelled sections, in the order of the numbers."""
    if not ARCHIVE.exists():
        pytest.skip(f"the Open-i reports are not at {ARCHIVE}")
    with tarfile.open(ARCHIVE) as archive:
        found = {
            Path(member.name).stem: _sections(archive.extractfile(member).read())
            for member in archive
            if member.name.endswith(".xml")
        }
    return tuple(sorted(found.items(), key=lambda item: int(item[0])))


def _sections(xml: bytes) -> dict[str, str]:
    """The text under each label of one report."""
    root = ET.fromstring(xml)  # noqa: S314  (a file of our own)
    return {entry.attrib["Label"]: entry.text or "" for entry in root.iter("AbstractText")}


@cache
def _reports() -> tuple[tuple[str, Report], ...]:
    return tuple(
        (number, Report(findings=sections["FINDINGS"], impression=sections["IMPRESSION"]))
        for number, sections in openi_sections()
    )


def openi_reports() -> list[tuple[str, Report]]:
    """The number and the report of each study, in the order of the numbers."""
    return list(_reports())
