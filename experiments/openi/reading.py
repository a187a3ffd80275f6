"""Open-i's reports as they come: an archive of one XML file a study."""

import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tabon.errors import BadInputError
from tabon.text.reports import SECTIONS, Section
from tabon.text.sentences import split_sentences

SOURCE = "https://openi.nlm.nih.gov/imgs/collections/NLMCXR_reports.tgz"
UNKNOWN = "no indexing"  # a report that nobody indexed
NORMAL = "normal"  # a report without findings: it has no facts


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeniReport:
    """One report and its MeSH codes."""

    number: int
    findings: str
    impression: str
    majors: tuple[str, ...]  # MeSH codes such as "opacity/lung/base/left", lower case, sorted

    @property
    def text(self) -> str:
        """Return the whole report; exact duplicates have the same."""
        return f"{self.findings} || {self.impression}"

    @property
    def facts(self) -> frozenset[str]:
        """Return each code's head, and the head with each of its qualifiers.

        >>> report = OpeniReport(number=1, findings="", impression="", majors=("opacity/lung/left",))
        >>> sorted(report.facts)
        ['opacity', 'opacity/left', 'opacity/lung']
        """
        return frozenset(fact for code in self.majors for fact in _facts(code))

    def sentences(self, section: Section) -> tuple[str, ...]:
        """Return the sentences of a section."""
        return split_sentences(getattr(self, section))

    @property
    def is_usable(self) -> bool:
        """Whether both sections have a sentence and the report was indexed."""
        indexed = self.majors not in ((), (UNKNOWN,))
        return indexed and all(self.sentences(section) for section in SECTIONS)


def read_reports(archive: Path) -> tuple[OpeniReport, ...]:
    """Return the usable reports of the archive, in the order of their numbers."""
    try:
        with tarfile.open(archive) as opened:
            reports = [_report(Path(name).stem, xml) for name, xml in _members(opened)]
    except FileNotFoundError:
        raise BadInputError(f"{archive} is not there; fetch Open-i's reports from {SOURCE}") from None
    except (OSError, EOFError, tarfile.TarError) as error:
        raise BadInputError(f"{archive} is not a whole tar archive ({error}); fetch {SOURCE} again") from None
    return tuple(sorted(_usable(reports), key=lambda report: report.number))


def _members(opened: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each XML file."""
    for member in opened:
        file = opened.extractfile(member) if member.name.endswith(".xml") else None
        if file is not None:
            yield member.name, file.read()


def _report(number: str, xml: bytes) -> OpeniReport:
    """Read one study."""
    try:
        root = ET.fromstring(xml)  # noqa: S314  # the user's own file; expat refuses entity bombs
        majors = {_text(entry).lower() for entry in root.iter("major")} - {""}
        sections = {entry.get("Label"): _text(entry) for entry in root.iter("AbstractText")}
        return OpeniReport(
            number=int(number),
            findings=sections.get("FINDINGS", ""),
            impression=sections.get("IMPRESSION", ""),
            majors=tuple(sorted(majors)),
        )
    except (ET.ParseError, ValueError) as error:
        raise BadInputError(f"study {number!r} is not one of Open-i's ({error}); fetch {SOURCE}") from None


def _text(entry: ET.Element) -> str:
    """Return an element's text without the blanks around it."""
    return (entry.text or "").strip()


def _usable(reports: Iterable[OpeniReport]) -> list[OpeniReport]:
    """Keep what can be linked and compared; none is an error."""
    kept = [report for report in reports if report.is_usable]
    if not kept:
        raise BadInputError(f"the archive has no indexed report with findings and impression; fetch {SOURCE}")
    return kept


def _facts(code: str) -> Iterator[str]:
    """Yield the facts of one MeSH code."""
    head, *qualifiers = code.split("/")
    if head not in (NORMAL, UNKNOWN):
        yield head
        yield from (f"{head}/{qualifier}" for qualifier in qualifiers)
