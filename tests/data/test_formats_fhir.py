"""FHIR DiagnosticReports in and out: where the text is found, what is kept, what is refused."""

import base64
import json
from contextlib import suppress
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.data.formats import DISCLAIMER, MAX_FILE, MAX_TEXT, patient_of, read_any, read_fhir, write_fhir
from tabon.data.formats.documents import plain
from tabon.data.formats.html_text import MAX_HTML, html_text
from tabon.errors import BadInputError, UnknownNameError
from tabon.text.reports import Report

CANARY = "CANARYOPACITY"
SIGNATURE = "distance:novelty|encoder:minilm@53aa|bank:0123456789ab"
DRAFT = Report(findings="Lungs are clear.\nNo effusion.", impression="No acute disease.")
LOINC = "http://loinc.org"


def resource(**fields):
    """Make the bytes of a DiagnosticReport with these fields."""
    base = {"resourceType": "DiagnosticReport", "id": "r1", "status": "final", "code": {"text": "XR"}}
    return json.dumps({**base, **fields}).encode()


def form(text, kind="text/plain"):
    """Make an attachment."""
    raw = text if isinstance(text, bytes) else text.encode()
    return {"contentType": kind, "data": base64.b64encode(raw).decode()}


def observation(text, **fields):
    """Make an Observation with a string value."""
    return {
        "resourceType": "Observation",
        "status": "final",
        "code": {"text": "x"},
        "valueString": text,
        **fields,
    }


def one(data):
    """Read the one report of a file."""
    [received] = read_fhir(data)
    return received


# --- reading -------------------------------------------------------------------------------


def test_plain_text_wins_over_everything_else():
    """The text/plain form is read first, whatever stands beside it; the facts come along."""
    received = one(
        resource(
            presentedForm=[
                form("%PDF", "application/pdf"),
                form("<p>Findings: No.</p>", "text/html"),
                form("FINDINGS: Clear.\nIMPRESSION: Normal.", "text/plain; charset=UTF-8"),
            ],
            conclusion="Other.",
            subject={"reference": "Patient/7"},
            effectiveDateTime="2020-03-04T10:00:00Z",
        )
    )
    assert received.report == Report(findings="Clear.", impression="Normal.")
    assert (received.id, received.patient, received.date, received.status) == (
        "r1",
        "Patient/7",
        "2020-03-04T10:00:00Z",
        "final",
    )
    assert received.source == "presentedForm text/plain"


def test_html_form_is_read_as_its_reader_sees_it():
    """Headings, lists, cells and preformatted lines stay apart; scripts and hidden text are left out."""
    html = f"""<html><head><title>{CANARY}</title><style>p {{}}</style></head><body>
    <h2>Findings</h2><ul><li>Clear &amp; dry.</li><li>No <b>edema</b>.</li></ul>
    <script>document.write("{CANARY}")</script><p style="display: none">{CANARY}<br><p>{CANARY}</p></p>
    <!-- {CANARY} --><div hidden><div>{CANARY}</div>{CANARY}</div>
    <h2>Impression</h2><pre>1. Stable.
2. Normal.</pre></body></html>"""
    report = one(resource(presentedForm=[form(html, "text/html")])).report
    assert report == Report(findings="Clear & dry.\n\nNo edema.", impression="1. Stable.\n2. Normal.")


def test_conclusion_and_observations_come_next():
    """Without a text form the conclusion is the impression, contained and bundled strings the findings."""
    bundle = {
        "resourceType": "Bundle",
        "type": "collection",
        "entry": [
            {"fullUrl": "urn:uuid:1", "resource": observation("No effusion.")},
            {"resource": observation("Heart is normal.", id="o2")},
            {"resource": observation("Of another report.", id="o3")},
            {
                "resource": json.loads(
                    resource(
                        contained=[observation("Lungs are clear.", id="c")],
                        result=[
                            {"reference": "#c"},
                            {"reference": "urn:uuid:1"},
                            {"reference": "Observation/o2/_history/3"},
                            {"reference": "Observation/away"},
                        ],
                        presentedForm=[{"contentType": "text/plain", "url": "http://127.0.0.1/x"}],
                        conclusion="Normal.",
                        effectivePeriod={"start": "2020-01"},
                    )
                )
            },
        ],
    }
    received = one(json.dumps(bundle).encode())
    assert received.report == Report(
        findings="Lungs are clear.\n\nNo effusion.\n\nHeart is normal.", impression="Normal."
    )
    assert (received.source, received.date) == ("conclusion", "2020-01")


def test_an_observation_coded_as_impression_is_the_impression():
    """LOINC 19005-8 names the impression where there is no conclusion."""
    code = {"coding": [{"system": LOINC, "code": "19005-8"}]}
    contained = [observation("Clear.", id="a"), observation("Normal.", id="b", code=code)]
    assert one(resource(contained=contained)).report == Report(findings="Clear.", impression="Normal.")


def test_the_narrative_comes_last():
    """Only text.div: its words are read as raw report text."""
    div = '<div xmlns="http://www.w3.org/1999/xhtml"><p>FINDINGS: Clear.</p><p>IMPRESSION: Normal.</p></div>'
    received = one(resource(text={"status": "generated", "div": div}))
    assert received.report == Report(findings="Clear.", impression="Normal.")
    assert received.source == "text.div"


def test_a_bundle_gives_all_its_reports_in_order():
    """Two reports in a Bundle are two reports."""
    entries = [{"resource": json.loads(resource(id=f"r{i}", conclusion=f"Nodule {i}."))} for i in range(2)]
    data = json.dumps({"resourceType": "Bundle", "entry": entries}).encode()
    assert [received.report.impression for received in read_any(data, name="x")] == ["Nodule 0.", "Nodule 1."]


def test_a_named_character_set_is_used():
    """A Latin-1 attachment that says so is read as Latin-1."""
    data = resource(presentedForm=[form("Größe normal.".encode("latin-1"), "text/plain; charset=ISO-8859-1")])
    assert one(data).report.findings == "Größe normal."


# --- writing -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["R4", "R5"])
def test_written_resource_is_marked_and_refers_to_the_same_patient(version):
    """Status, disclaimer, signature, sections and references all stand in the resource."""
    subject = {"reference": "Patient/7", "display": "A B"}
    about = resource(subject=subject, basedOn=[{"reference": "ServiceRequest/3"}], conclusion="Old.")
    written = json.loads(write_fhir(DRAFT, signature=SIGNATURE, about=about, fhir_version=version))
    assert written["status"] == "preliminary"
    assert written["subject"] == subject
    assert written["basedOn"] == [{"reference": "ServiceRequest/3"}]
    assert written["conclusion"] == DRAFT.impression
    assert written["meta"]["tag"][0]["display"] == DISCLAIMER
    assert written["extension"] == [{"url": "urn:tabon:signature", "valueString": SIGNATURE}]
    [attached] = written["presentedForm"]
    text = base64.b64decode(attached["data"]).decode()
    assert text == (
        f"DISCLAIMER:\n{DISCLAIMER}\nChosen by tabon: {SIGNATURE}\n\n"
        "FINDINGS:\nLungs are clear.\nNo effusion.\n\nIMPRESSION:\nNo acute disease.\n"
    )
    assert DISCLAIMER in written["text"]["div"]
    assert ("note" in written) == (version == "R5")
    assert patient_of(about, name="x") == "Patient/7"


@pytest.mark.filterwarnings("ignore")  # of the library that is asked
@pytest.mark.parametrize("version", ["R4", "R5"])
@pytest.mark.parametrize("draft", [DRAFT, Report(findings="Only <b>this</b>."), Report(impression="Ümlaut.")])
def test_written_resource_satisfies_an_independent_model(version, draft):
    """fhir.resources takes what is written, with no field it does not know."""
    pytest.importorskip("fhir.resources", reason="needs fhir.resources")
    if version == "R5":
        from fhir.resources.diagnosticreport import DiagnosticReport
    else:
        from fhir.resources.R4B.diagnosticreport import DiagnosticReport
    about = resource(subject={"reference": "Patient/7"}, basedOn=[{"reference": "ServiceRequest/3"}])
    data = write_fhir(draft, signature=SIGNATURE, about=about, fhir_version=version)
    model = DiagnosticReport.model_validate_json(data)
    assert model.status == "preliminary"
    assert model.conclusion == (draft.impression or None)


TEXTS = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [
            "Findings:",
            "IMPRESSION:",
            "\n",
            "\r\n",
            " ",
            "Clear.",
            "<b>",
            "&amp;",
            "\x00",
            "\\",
            "DISCLAIMER: x",
        ]
    ),
    max_size=6,
).map("".join)
REPORTS = st.builds(Report, findings=TEXTS, impression=TEXTS)


@given(REPORTS, st.sampled_from(["R4", "R5"]))
def test_fhir_keeps_both_sections(report, version):
    """Report to FHIR to Report keeps both sections, even with headers inside them; `plain` is applied."""
    kept = Report(findings=plain(report.findings), impression=plain(report.impression))
    if kept.is_empty:
        with pytest.raises(BadInputError, match="neither findings nor an impression"):
            write_fhir(report, signature=SIGNATURE, fhir_version=version)
        return
    received = one(write_fhir(report, signature=SIGNATURE, fhir_version=version))
    assert (received.report.findings, received.report.impression) == (kept.findings, kept.impression)


@given(st.text())
def test_plain_changes_nothing_twice_and_nothing_ordinary(text):
    """`plain` is idempotent, can be written as UTF-8, and leaves printable text and line feeds alone."""
    once = plain(text)
    assert plain(once) == once
    once.encode()
    ordinary = "".join(c for c in text if (c.isprintable() and c != "\ufffd") or c == "\n")
    assert plain(ordinary) == ordinary


def test_plain_by_hand():
    """Line ends, control characters of both ranges, a lone surrogate and a noncharacter."""
    assert plain("a\r\nb\rc\td\x0be\x7ff\x85g\x9fh\ud800i\uffffj\ufffd") == "a\nb\nc\td e f g h?i?j?"


def test_an_edited_draft_is_read_as_edited():
    """Where someone changed the attached text, the sections that tabon wrote no longer count."""
    written = json.loads(write_fhir(DRAFT, signature=SIGNATURE))
    written["presentedForm"] = [form("FINDINGS: Edema.\nIMPRESSION: Failure.")]
    report = one(json.dumps(written).encode()).report
    assert report == Report(findings="Edema.", impression="Failure.")


# --- what is refused ---------------------------------------------------------------------------

BAD = {
    "empty": (b"", "not whole JSON"),
    "not JSON": (CANARY.encode(), "not whole JSON"),
    "truncated": (resource(conclusion=CANARY)[:-9], "not whole JSON"),
    "not UTF-8": (b'{"resourceType": "\xff' + CANARY.encode() + b'"}', "not UTF-8"),
    "a list": (b"[]", "not a FHIR resource"),
    "no type": (json.dumps({"text": CANARY}).encode(), "not a FHIR resource"),
    "other type": (json.dumps({"resourceType": "Patient", "name": CANARY}).encode(), "no DiagnosticReport"),
    "empty Bundle": (b'{"resourceType": "Bundle"}', "no DiagnosticReport"),
    "deep": (b'{"resourceType": ' + b"[" * 100_000, "nested too deeply"),
    "no text": (resource(), "no report text"),
    "only a PDF": (resource(presentedForm=[form(CANARY, "application/pdf")]), "no report text"),
    "blank": (resource(presentedForm=[form(" \n ")], conclusion="N/A"), "no report text"),
    "id is text": (resource(id=CANARY + " is seen"), "no report text"),
    "wrong kind": (resource(presentedForm=CANARY), "not a list of objects"),
    "wrong item": (resource(presentedForm=[CANARY]), "not a list of objects"),
    "wrong string": (resource(conclusion=[CANARY]), "not a string"),
    "wrong object": (resource(text=CANARY), "not an object"),
    "not base64": (
        resource(presentedForm=[{"contentType": "text/plain", "data": CANARY + "é*"}]),
        "not whole base64",
    ),
    "form not UTF-8": (resource(presentedForm=[form(b"\xff\xfe" + CANARY.encode())]), "not utf-8 at byte 0"),
    "odd charset": (
        resource(presentedForm=[form(CANARY, f"text/plain; charset={CANARY}")]),
        "character set",
    ),
    "open script": (
        resource(presentedForm=[form(f"<p>a</p><script>{CANARY}", "text/html")]),
        "ends inside a tag",
    ),
    "open comment": (resource(text={"div": f"<div>a<!-- {CANARY}</div>"}), "ends inside a tag"),
    "open tag": (resource(text={"div": f"<div>a</div><p title='{CANARY}"}), "ends inside a tag"),
    "open bare tag": (resource(text={"div": f"<div>a</div><b title={CANARY}"}), "ends inside a tag"),
    "only hidden": (resource(text={"div": f"<div hidden>{CANARY}</div>"}), "no report text"),
    "too much text": (resource(presentedForm=[form("a" * (MAX_TEXT + 1))]), "over 10,000,000 bytes"),
    "too long a conclusion": (resource(conclusion="a" * (MAX_TEXT + 1)), "over 10,000,000 bytes"),
    "too much HTML": (resource(text={"div": "a" * (MAX_HTML + 1)}), "characters of HTML"),
    "too large": (b" " * (MAX_FILE + 1), "more than 64,000,000"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_without_text(case):
    """Each kind of bad input is a BadInputError that names the trouble and shows no text."""
    data, message = BAD[case]
    with pytest.raises(BadInputError, match=message) as caught:
        read_fhir(data, name="prior.json")
    assert str(caught.value).startswith("prior.json")
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "part", ["<", "<!", "<!--", "<![CDATA[", "</a", "<a ", "<a b='", "<svg>", "<p hidden>", "&#", "<a\0"]
)
def test_hostile_html_takes_time_in_proportion(part):
    """Markup that is never closed, repeated: an answer or a refusal, in seconds and not in hours."""
    start = monotonic()
    with suppress(BadInputError):
        html_text(part * (300_000 // len(part)), "a page")
    assert monotonic() - start < 15


@given(
    st.lists(
        st.sampled_from(
            ["<", ">", "<!--", "-->", "<script>", "</script>", "<![", "]]>", "<p>", "a", "&", "'", "<?", " "]
        )
    ).map("".join)
)
def test_any_markup_gives_text_or_one_error(html):
    """No soup of tags raises anything but BadInputError, and nothing inside a script comes through."""
    hidden = f"<script>{html.replace('</script>', '')}SECRET</script>"
    with suppress(BadInputError):
        assert "SECRET" not in html_text(hidden, "a page")
    with suppress(BadInputError):
        html_text(html, "a page")


ABOUT_BAD = {
    "two reports": (
        json.dumps({"resourceType": "Bundle", "entry": [{"resource": json.loads(resource())}] * 2}).encode(),
        "holds 2",
    ),
    "a contained patient": (resource(subject={"reference": "#p"}), "contains its patient"),
    "another type": (b'{"resourceType": "Patient"}', "holds 0"),
}


@pytest.mark.parametrize("case", ABOUT_BAD)
def test_references_that_would_mean_nothing_are_refused(case):
    """What the draft is about must be one resource with addresses."""
    about, message = ABOUT_BAD[case]
    with pytest.raises(BadInputError, match=message):
        write_fhir(DRAFT, signature=SIGNATURE, about=about)


def test_other_versions_are_refused():
    """There are R4 and R5."""
    with pytest.raises(UnknownNameError, match="FHIR version"):
        write_fhir(DRAFT, signature=SIGNATURE, fhir_version="R3")
