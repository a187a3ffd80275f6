"""How a radiologist, or a language model, puts a state into words.

A reader has a favourite wherever there is a choice (the house style). A report
is written either all in favourites, as with a macro, or with a mixture, and a
sentence of the patient's prior report may be taken over as it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from tabon.data.simulate.patients import KINDS, SEVERITIES, Finding
from tabon.data.simulate.phrases import Phrases, Words, phrase_book
from tabon.data.simulate.settings import Draws

READERS = 40
READERS_STREAM = 2**31  # beyond every patient's index
MACRO = 0.54  # how often normal regions are written all in favourites
LOYALTY = 0.4  # how often a single choice is the favourite otherwise
SAY_STABLE = {"chronic": 0.35, "acute": 0.8, "device": 0.6}
_MASK = 2**64 - 1
_VOWELS = tuple("aeiou")


@dataclass(frozen=True, slots=True)
class Reader:
    """Someone who writes reports; `salt` decides all favourites."""

    salt: int
    machine: bool = False

    def favourite(self, number: int, options: int) -> int:
        """The favourite at choice `number`; earlier options are favourites more often."""
        mixed = (self.salt ^ (number * 0x9E3779B97F4A7C15)) & _MASK
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return min((mixed >> 40) % options, (mixed & 0xFFFFFF) % options)

    @property
    def normals(self) -> Mapping[str, Phrases]:
        """The phrases for normal regions that this reader uses."""
        return phrase_book().machine if self.machine else phrase_book().house


MACHINE = Reader(salt=0, machine=True)


@cache
def readers(seed: int) -> tuple[Reader, ...]:
    """The readers of a simulated hospital."""
    draws = Draws(seed, READERS_STREAM)
    return tuple(Reader(draws.below(2**53)) for _ in range(READERS))


def draw_reader(draws: Draws, seed: int) -> Reader:
    """One reader; the first ones read more than the last ones."""
    return readers(seed)[draws.weighted(range(READERS, 0, -1))]


@dataclass(frozen=True, slots=True)
class Voice:
    """A reader at work on one report."""

    reader: Reader
    draws: Draws
    loyalty: float

    def choose(self, number: int, options: int) -> int:
        """Choose among options: the favourite, or any."""
        if options == 1:
            return 0
        if self.loyalty == 1.0 or self.draws.chance(self.loyalty):
            return self.reader.favourite(number, options)
        return self.draws.below(options)

    def speak(self, phrases: Phrases) -> str:
        """One way to say it, with its slots still open."""
        template = phrases.templates[self.choose(phrases.number, len(phrases.templates))]
        return "".join(part.options[self.choose(part.number, len(part.options))] for part in template)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, what it is about, and the finding that it states."""

    topic: str
    text: str
    about: Finding | None = None


@dataclass(frozen=True, slots=True)
class Writing:
    """A report as it was written."""

    findings: tuple[Sentence, ...]
    impression: tuple[Sentence, ...]

    def record(self) -> dict[str, str]:
        """The report as text by section."""
        sections = {"findings": self.findings, "impression": self.impression}
        return {name: " ".join(one.text for one in sentences) for name, sentences in sections.items()}

    def said(self) -> tuple[Finding, ...]:
        """The findings that the report states, each once."""
        stated = [sentence.about for sentence in self.findings + self.impression if sentence.about]
        return tuple({finding.kind: finding for finding in stated}.values())

    def echoes(self) -> dict[str, str]:
        """Its sentences by topic, for a later report to take over."""
        return {sentence.topic: sentence.text for sentence in self.findings + self.impression}


def spoken(findings: Iterable[Finding], draws: Draws) -> tuple[Finding, ...]:
    """The findings as they will be put: that nothing changed is often left unsaid."""
    return tuple(
        replace(finding, course="")
        if finding.course == "stable" and not draws.chance(SAY_STABLE[KINDS[finding.kind].group])
        else finding
        for finding in findings
    )


def polish(text: str) -> str:
    """Single spaces, no space before a stop, a capital at the start.

    >>> polish("the  aorta is tortuous .")
    'The aorta is tortuous.'
    """
    text = " ".join(text.split()).replace(" ,", ",").replace(" .", ".")
    return text[:1].upper() + text[1:]


def say_finding(finding: Finding, phrases: Phrases, voice: Voice) -> str:
    """One sentence about a finding."""
    text, book = voice.speak(phrases), phrase_book()
    slots = noun_slots(finding, book.kinds[finding.kind], voice)
    slots["ago"] = voice.speak(book.ago) if "{ago}" in text else ""
    slots["tail"] = voice.speak(book.tail) if "{tail}" in text else ""
    slots["cm"] = f"{2 + voice.draws.below(5)}.{voice.draws.below(10)}" if "{cm}" in text else ""
    slots["mm"] = str(3 + voice.draws.below(10)) if "{mm}" in text else ""
    return polish(text.format_map(slots))


def noun_slots(finding: Finding, words: Words, voice: Voice) -> dict[str, str]:
    """The noun phrase of a finding and its pieces."""
    plural = words.plural or (finding.side == "bilateral" and not words.mass)
    noun = voice.speak(words.noun) + ("s" if plural and not words.plural else "")
    grade = adverb = ""
    if finding.severity:
        rank = SEVERITIES.index(finding.severity)
        grade, adverb = voice.speak(words.grades[rank]), voice.speak(words.adverbs[rank])
    device = KINDS[finding.kind].region == "devices"
    phrase = " ".join(filter(None, [grade, finding.side, "" if device else finding.place, noun]))
    article = "an" if phrase.lower().startswith(_VOWELS) else "a"
    return {
        "np": phrase,
        "a_np": phrase if plural or words.mass else f"{article} {phrase}",
        "bare": f"{finding.side} {noun}",
        "is": "are" if plural else "is",
        "has": "have" if plural else "has",
        "grade": grade,
        "adverb": adverb,
        "side": finding.side,
        "place": finding.place,
    }


@dataclass(frozen=True, slots=True)
class Pen:
    """A voice for findings, one for normal regions, and the prior's sentences at hand."""

    findings: Voice
    normals: Voice
    echoes: Mapping[str, str]
    echo: float  # how often a sentence of the prior is taken over

    def again(self, topic: str) -> str:
        """The prior's sentence on the topic, or nothing."""
        found = self.echoes.get(topic, "")
        return found if found and self.findings.draws.chance(self.echo) else ""

    def state(self, section: str, finding: Finding) -> Sentence:
        """A sentence about a finding; two findings with equal topics can share a sentence."""
        book, course = phrase_book(), finding.course
        own = book.kinds[finding.kind].present
        if section == "impression":
            phrases = book.impression[course]
        elif course == "" and own is not None and self.findings.draws.chance(0.7):
            phrases = own
        elif KINDS[finding.kind].region == "devices" and course in book.devices:
            phrases = book.devices[course]
        else:
            phrases = book.findings[course]
        topic = f"{section}/{finding.kind}/{finding.side}/{finding.severity}/{finding.place}/{course}"
        return Sentence(topic, self.again(topic) or say_finding(finding, phrases, self.findings), finding)

    def normal(self, topic: str) -> Sentence:
        """A sentence about what is as it should be."""
        phrases = self.normals.reader.normals[topic]
        return Sentence(topic, self.again(topic) or polish(self.normals.speak(phrases)))


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
    """Put findings into words, in a reader's style; a course that is empty is left unsaid.

    `echoes` are sentences of the prior report by topic, `echo` is how often one is taken over.

    >>> report = write_report((), Reader(1), Draws(0)).record()
    >>> report["findings"] != "" != report["impression"]
    True
    """
    loyalty = 1.0 if draws.chance(MACRO) else LOYALTY
    pen = Pen(Voice(reader, draws, LOYALTY), Voice(reader, draws, loyalty), echoes, echo)
    return Writing(findings_section(findings, pen), impression_section(findings, pen))


def findings_section(findings: Iterable[Finding], pen: Pen) -> tuple[Sentence, ...]:
    """The findings section: region by region in the reader's order, what is there, then what is normal."""
    stated: dict[str, list[Sentence]] = {}
    for finding in findings:
        region = KINDS[finding.kind].region
        stated.setdefault(region, []).append(pen.state("findings", finding))
    present = frozenset(finding.kind for finding in findings if finding.present)
    order = ORDERS[pen.normals.choose(ORDER, len(ORDERS))]
    normals = normal_topics(present, pen.normals)
    sentences: list[Sentence] = []
    for place in order:
        sentences += stated.get(place, ())
        if place in normals:
            sentences.append(pen.normal(normals[place]))
    if pen.normals.loyalty < 1 and pen.normals.draws.chance(EXTRA):
        sentences.append(pen.normal("extra"))
    return tuple(sentences)


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
    for first, second, choice in (("heart", "mediastinum", JOIN_HEART), ("lungs", "pleura", JOIN_LUNGS)):
        both_normal = topics[first] == first and topics[second] == second
        if voice.choose(choice, 2) == 0 and both_normal:
            topics[first], topics[second] = f"{first}+{second}", ""
    return {region: topic for region, topic in topics.items() if topic}


def impression_section(findings: Iterable[Finding], pen: Pen) -> tuple[Sentence, ...]:
    """The summary: what matters and what changed, the most urgent first, or that nothing is acute."""
    matters = [
        finding
        for finding in sorted(findings, key=lambda finding: URGENCY.index(finding.course))
        if not KINDS[finding.kind].incidental
        and (finding.changed or KINDS[finding.kind].group == "acute" or finding.severity == "severe")
    ]
    if not matters:
        return _quiet_impression(findings, pen)
    sentences = [pen.state("impression", finding) for finding in matters[:MOST]]
    asks = any(finding.kind in ASKS_FOR_MORE and finding.present for finding in matters)
    if asks and pen.findings.draws.chance(FOLLOW_UP):
        sentences.append(pen.normal("follow_up"))
    if pen.findings.draws.chance(OTHERWISE):
        sentences.append(pen.normal("impression_otherwise"))
    return tuple(sentences)


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
