"""Studies for the explorer's tests: simulated ones, hostile ones, and a page of nothing but its frame."""

import json
from functools import cache
from html.parser import HTMLParser

from tabon import TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders.hashing import HashingEncoder
from tabon.service.page import Page
from tabon.text.records import query_from_record, transition_from_record

SIMULATED = SimulationSettings(patients=100)
PLAIN = Page(
    "<!doctype html><html><head><meta charset='utf-8'><title>t</title>"
    '<link rel="stylesheet" href="explorer.css"></head><body><p>x</p>'
    '<script src="explorer.js" defer></script></body></html>',
    "p { color: red }",
    'console.log("a < b && c");',
    "explorer",
)
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    '"><svg/onload=alert(3)>',
    "<!--<script>",
    "]]></style><style>*{}",
    "&lt;b&gt; &amp; \u2028\u2029",
    "javascript:alert(4)",
    "\x00\x1b[2J\u202e \ud800 {{7*7}} ${8}",
)
HOSTILE_TEXT = " ".join(f"{text}." for text in HOSTILE)


@cache
def transitions():
    """Return the simulated training transitions, and a hostile one, as records."""
    return [
        *simulate_transitions(SIMULATED, "train"),
        {
            "id": HOSTILE[0],
            "patient": HOSTILE[1],
            "prior": f"FINDINGS: Clear lungs. {HOSTILE_TEXT} IMPRESSION: Normal.",
            "current": f"FINDINGS: Big heart. {HOSTILE_TEXT} IMPRESSION: Edema.",
        },
    ]


@cache
def bank():
    """Return a small bank."""
    return TransitionBank.build(map(transition_from_record, transitions()), encoder=HashingEncoder())


@cache
def simulated():
    """Return the simulated test queries, as records."""
    return tuple(simulate_queries(SIMULATED, "test"))


def odd():
    """Return queries at the edges: hostile text, no prior, no drafts, one draft, a copy, several priors."""
    drafts = simulated()[0]["candidates"]
    return [
        {
            "id": f"q{text}",
            "patient": f"p{text}",
            "prior": f"HISTORY: {text}. FINDINGS: Clear lungs. {HOSTILE_TEXT} IMPRESSION: {text} Normal.",
            "candidates": [
                f"FINDINGS: Big heart. {HOSTILE_TEXT} IMPRESSION: {text} Edema. TECHNIQUE: {text}.",
                f"As an AI model I cannot. {text} FINDINGS: Clear lungs. {text}",
            ],
            "reference": f"FINDINGS: Big heart. {text} IMPRESSION: Edema.",
        }
        for number, text in enumerate(HOSTILE)
    ] + [
        {"id": "no-prior", "prior": None, "candidates": drafts},
        {"id": "no-drafts", "patient": "p", "prior": "FINDINGS: Clear.", "candidates": []},
        {"id": "one", "prior": "FINDINGS: Clear lungs.", "candidates": ["FINDINGS: Clear lungs."]},
        {
            "id": "empty",
            "prior": ["FINDINGS: A.", "FINDINGS: Clear."],
            "candidates": [None, "FINDINGS: Wet."],
        },
    ]


def queries(records=None):
    """Return queries."""
    return [query_from_record(record) for record in (simulated() if records is None else records)]


def json_lines(records):
    """Write records as JSON Lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


class Reader(HTMLParser):
    """Reads a page as a browser would: its elements, and what stands in scripts, styles and the title."""

    def __init__(self):
        super().__init__()
        self.elements, self.texts, self._open = [], [], None

    def handle_starttag(self, tag, attrs):
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag in {"script", "style", "title"}:
            self._open = (tag, dict(attrs), [])

    def handle_endtag(self, tag):
        """Note what stood in an element."""
        if self._open and self._open[0] == tag:
            self.texts.append((tag, self._open[1], "".join(self._open[2])))
            self._open = None

    def handle_data(self, data):
        """Keep what is read."""
        if self._open:
            self._open[2].append(data)


def read(html):
    """Read a page."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


def no_constant(name):
    """Refuse NaN and infinity."""
    raise AssertionError(name)


def data_of(html):
    """Return the data of an exported page: one element for the list and one for each study, all JSON."""
    found = {
        attributes["id"]: json.loads(text, parse_constant=no_constant)
        for tag, attributes, text in read(html).texts
        if tag == "script" and attributes.get("type") == "application/json"
    }
    overview = found.pop("overview-data")
    assert list(found) == [f"study-data-{row['number']}" for row in overview["studies"]]
    return {"overview": overview, "studies": list(found.values())}
