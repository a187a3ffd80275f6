"""What goes into the two sections of a report, and in which order."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tabon.data.simulate.catalogue import KINDS
from tabon.data.simulate.draws import Draws
from tabon.data.simulate.report_text import Pen, Reader, Sentence, Voice, Writing, interleave, take_pen
from tabon.data.simulate.state import Finding

NOTHING: Mapping[str, str] = MappingProxyType({})
ORDERS = (
    ("devices", "heart", "mediastinum", "lungs", "pleura", "bones"),
    ("heart", "mediastinum", "devices", "lungs", "pleura", "bones"),
    ("lungs", "pleura", "heart", "mediastinum", "bones", "devices"),
    ("devices", "lungs", "pleura", "heart", "mediastinum", "bones"),
)
# the numbers of the layout's choices; those of the phrase book are positive
ORDER, JOIN_HEART, JOIN_LUNGS, SAY_MEDIASTINUM, SAY_BONES, SAY_NORMAL = -1, -2, -3, -4, -5, -6
EXTRA = 0.12  # how often one more normal sentence is added
MORE = 0.6  # how often "no consolidation" is said beside other findings of the lungs
CHRONIC_IMPRESSION = 0.5  # how often a chronic finding follows "no acute abnormality"
UNCHANGED = 0.15  # how often an impression says that nothing has changed
FOLLOW_UP = 0.3  # how often a follow-up is asked for
OTHERWISE = 0.25  # how often an impression ends on what is not there
MOST = 3  # findings in an impression
URGENCY = ("worse", "new", "moved", "improved", "", "stable", "resolved")
ASKS_FOR_MORE = frozenset({"lung nodule", "consolidation"})


def write_report(
    findings: tuple[Finding, ...],
    reader: Reader,
    draws: Draws,
    *,
    echoes: Mapping[str, str] = NOTHING,
    echo: float = 0.0,
) -> Writing:
    """Put findings into words.

    Args:
        findings: all that is to be said; a course that is empty is left unsaid.
        reader: whose style it is.
        draws: where the reader departs from it.
        echoes: sentences of the prior report by topic.
        echo: how often one of them is taken over where its topic comes again.

    >>> report = write_report((), Reader(1), Draws(0)).record()
    >>> report["findings"] != "" != report["impression"]
    True
    """
    pen = take_pen(reader, draws, echoes=echoes, echo=echo)
    return Writing(findings_section(findings, pen), impression_section(findings, pen))


def findings_section(findings: Iterable[Finding], pen: Pen) -> tuple[Sentence, ...]:
    """The sentences of the findings, region by region in the reader's order."""
    stated: dict[str, list[Sentence]] = {}
    for finding in findings:
        region = KINDS[finding.kind].region
        stated.setdefault(region, []).append(pen.state("findings", finding))
    present = frozenset(finding.kind for finding in findings if finding.present)
    order = ORDERS[pen.normals.choose(ORDER, len(ORDERS))]
    sentences = tuple(interleave(order, stated, pen, normal_topics(present, pen.normals)))
    extra = pen.normals.loyalty < 1 and pen.normals.draws.chance(EXTRA)
    return (*sentences, pen.normal("extra")) if extra else sentences


def normal_topics(present: frozenset[str], voice: Voice) -> dict[str, str]:
    """What is said of each region beside its findings."""
    busy = {KINDS[kind].region for kind in present}
    fluid, air = "pleural effusion" in present, "pneumothorax" in present
    mediastinum = "mediastinum" not in busy and voice.choose(SAY_MEDIASTINUM, 2) == 0  # often passed over
    denied = "lungs" in busy and "consolidation" not in present and voice.draws.chance(MORE)
    topics = {
        "heart": "" if "cardiomegaly" in present else "heart",
        "mediastinum": "mediastinum" if mediastinum else "",
        "lungs": "lungs" if "lungs" not in busy else "no_consolidation" if denied else "",
        "pleura": ("" if air else "no_pneumothorax") if fluid else "no_effusion" if air else "pleura",
        "bones": "" if "bones" in busy or voice.choose(SAY_BONES, 3) == 2 else "bones",  # noqa: PLR2004
    }
    _join_topics(topics, "heart", "mediastinum", join=voice.choose(JOIN_HEART, 2) == 0)
    _join_topics(topics, "lungs", "pleura", join=voice.choose(JOIN_LUNGS, 2) == 0)
    return {region: topic for region, topic in topics.items() if topic}


def _join_topics(topics: dict[str, str], first: str, second: str, *, join: bool) -> None:
    """Say two normal regions in one sentence, where both are normal and the reader likes to."""
    if join and topics[first] == first and topics[second] == second:
        topics[first], topics[second] = f"{first}+{second}", ""


def impression_section(findings: Iterable[Finding], pen: Pen) -> tuple[Sentence, ...]:
    """The summary: what matters and what changed, the most urgent first, or that nothing is acute."""
    matters = sorted(filter(_matters, findings), key=lambda finding: URGENCY.index(finding.course))
    if not matters:
        return _quiet_impression(findings, pen)
    sentences = [pen.state("impression", finding) for finding in matters[:MOST]]
    asks = any(finding.kind in ASKS_FOR_MORE and finding.present for finding in matters)
    if asks and pen.findings.draws.chance(FOLLOW_UP):
        sentences.append(pen.normal("follow_up"))
    if pen.findings.draws.chance(OTHERWISE):
        sentences.append(pen.normal("impression_otherwise"))
    return tuple(sentences)


def _matters(finding: Finding) -> bool:
    """Whether a finding belongs into the impression."""
    kind = KINDS[finding.kind]
    if kind.incidental:
        return False
    return finding.changed or kind.group == "acute" or finding.severity == "severe"


def _quiet_impression(findings: Iterable[Finding], pen: Pen) -> tuple[Sentence, ...]:
    """Nothing acute, and perhaps what is known of old."""
    old = [finding for finding in findings if finding.present]
    followed = any(finding.course == "stable" for finding in old)
    if followed and pen.findings.draws.chance(UNCHANGED):
        return (pen.normal("impression_unchanged"),)
    normal = not old and pen.normals.choose(SAY_NORMAL, 2) == 0
    quiet = pen.normal("impression_normal" if normal else "impression")
    if old and pen.findings.draws.chance(CHRONIC_IMPRESSION):
        return (quiet, pen.state("impression", old[0]))
    return (quiet,)
