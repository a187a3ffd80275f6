"""FHIR R4 and R5 DiagnosticReport to reports, and the chosen draft to a DiagnosticReport.

Text is looked for where it is most complete, in the same places in both versions:

1. `presentedForm`: the first text/plain attachment, else the first text/html one;
2. `conclusion` as the impression, and the strings of its Observations as the findings;
3. `text.div`, the narrative.

A draft has status preliminary. The text as a whole (`presentedForm`, `text`) and the sections
(`conclusion`, an Observation for the findings) are each complete in themselves.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from email.message import Message
from html import escape
from typing import Any, Literal, get_args

from tabon._internal.registry import check_name
from tabon.data.formats.documents import (
    DISCLAIMER,
    MAX_TEXT,
    Received,
    check_file_size,
    check_text_size,
    one_line,
    plain_draft,
    presented_text,
)
from tabon.data.formats.html_text import html_text
from tabon.errors import BadInputError
from tabon.text.reports import Report, parse_report

LOINC = "http://loinc.org"
FINDINGS_CODE, IMPRESSION_CODE = "59776-5", "19005-8"
SIGNATURE_URL = "urn:tabon:signature"

_ID = re.compile(r"[A-Za-z0-9.-]{1,64}")
_CHARSETS = frozenset({"utf-8", "utf8", "us-ascii", "iso-8859-1", "windows-1252"})
_BASE64_CHARACTERS = MAX_TEXT // 3 * 4 + 1024  # and room for line ends

Resource = Mapping[str, Any]
Observations = Mapping[str, Resource]


def read_fhir(data: bytes, *, name: str = "the FHIR file") -> tuple[Received, ...]:
    """Read every DiagnosticReport of a JSON file: one, or a Bundle with at least one; `name` is for errors.

    Raises:
        BadInputError: not such a file, or a report without text that can be read.
    """
    entries = tuple(bundled(parse_resource(data, name), name))
    reports = [entry for _, entry in entries if entry.get("resourceType") == "DiagnosticReport"]
    if not reports:
        raise BadInputError(f"{name} holds no DiagnosticReport; give one, or a Bundle with one")
    observations: dict[str, Resource] = {}  # under each name that a reference may use
    for address, resource in entries:
        if resource.get("resourceType") == "Observation":
            if address is not None:
                observations[address] = resource
            if isinstance(resource.get("id"), str):
                observations[f"Observation/{resource['id']}"] = resource
    return tuple(_received(report, observations, name) for report in reports)


def patient_reference(resource: Resource, name: str) -> str | None:
    """Return whom a resource is about: the reference, else the identifier's value."""
    subject = object_at(resource, "subject", name)
    return text_at(subject, "reference", name) or text_at(
        object_at(subject, "identifier", name), "value", name
    )


def _received(resource: Resource, observations: Observations, name: str) -> Received:
    """Return what one DiagnosticReport says; messages name it by its id, if that is one."""
    identity = resource.get("id")
    if isinstance(identity, str) and _ID.fullmatch(identity):
        name = f"{name}, DiagnosticReport {identity}"
    report, source = _report(resource, observations, name)
    period = object_at(resource, "effectivePeriod", name)
    return Received(
        report=report,
        source=source,
        id=text_at(resource, "id", name),
        patient=patient_reference(resource, name),
        date=text_at(resource, "effectiveDateTime", name) or text_at(period, "start", name),
        status=text_at(resource, "status", name),
    )


def _report(resource: Resource, observations: Observations, name: str) -> tuple[Report, str]:
    """Return the report and the place where it was found."""
    structured = _structured(resource, observations, name)
    for kind, text in _presented(resource, name):
        whole = _as_written_here(structured, text, resource, name) or parse_report(text)
        if not whole.is_empty:
            return whole, f"presentedForm {kind}"
    if not structured.is_empty:
        return structured, "conclusion"
    div = text_at(object_at(resource, "text", name), "div", name) or ""
    check_text_size(len(div.encode(errors="replace")), name)
    narrative = parse_report(html_text(div, name))
    if narrative.is_empty:
        raise BadInputError(
            f"{name} has no report text; give one with a text/plain or text/html presentedForm that holds "
            "its data, a conclusion or a narrative"
        )
    return narrative, "text.div"


def _as_written_here(structured: Report, text: str, resource: Resource, name: str) -> Report | None:
    """Return the exact sections of a resource that tabon wrote and no one changed since.

    A word like "Findings:" inside a section would else cut it in two.
    """
    for extension in objects_at(resource, "extension", name):
        if text_at(extension, "url", name) == SIGNATURE_URL:
            signature = text_at(extension, "valueString", name) or ""
            return structured if text == presented_text(structured, signature=signature) else None
    return None


# --- presentedForm -------------------------------------------------------------------


def _presented(resource: Resource, name: str) -> Iterator[tuple[str, str]]:
    """Yield the attached texts, plain ones first."""
    attached = []
    for form in objects_at(resource, "presentedForm", name):
        media = Message()  # parses the content type; an attachment without one is no text
        kind = text_at(form, "contentType", name) or ""
        media["Content-Type"] = " ".join(kind[:200].split()) or "application/octet-stream"
        attached.append((media, form))
    for wanted in ("text/plain", "text/html"):
        for media, form in attached:
            data = text_at(form, "data", name)
            if media.get_content_type() == wanted and data:
                text = _decoded(data, media.get_param("charset", "utf-8"), name)
                yield wanted, html_text(text, name) if wanted == "text/html" else text


def _decoded(data: str, charset: object, name: str) -> str:
    """Return the text that an attachment holds in base64."""
    if len(data) > _BASE64_CHARACTERS:
        check_text_size(len(data) // 4 * 3, name)
    encoding = str(charset).lower()
    if encoding not in _CHARSETS:
        raise BadInputError(f"{name}: presentedForm names a character set tabon does not read; use UTF-8")
    try:
        raw = base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        raise BadInputError(f"{name}: presentedForm is not whole base64; copy it again") from None
    check_text_size(len(raw), name)
    try:
        return raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise BadInputError(
            f"{name}: presentedForm is not {encoding} at byte {error.start}; save it as UTF-8"
        ) from None


# --- conclusion and Observations -------------------------------------------------------


def _structured(resource: Resource, observations: Observations, name: str) -> Report:
    """Return the conclusion as impression and the Observations' strings as findings.

    All contained Observations count, and those of the Bundle that the report names.
    """
    contained = objects_at(resource, "contained", name)
    results = (text_at(result, "reference", name) or "" for result in objects_at(resource, "result", name))
    own = [entry for entry in contained if entry.get("resourceType") == "Observation"]
    own += filter(None, (observations.get(address.partition("/_history/")[0]) for address in results))
    findings: list[str] = []
    impression = [text_at(resource, "conclusion", name) or ""]
    for observation in own:
        text = text_at(observation, "valueString", name) or ""
        codings = objects_at(object_at(observation, "code", name), "coding", name)
        codes = [(coding.get("system"), coding.get("code")) for coding in codings]
        (impression if (LOINC, IMPRESSION_CODE) in codes else findings).append(text)
    check_text_size(sum(len(text.encode(errors="replace")) for text in (*findings, *impression)), name)
    return Report(findings=_paragraphs(findings), impression=_paragraphs(impression))


def _paragraphs(texts: list[str]) -> str:
    """Return the texts below each other, each once."""
    return "\n\n".join(dict.fromkeys(filter(None, (text.strip() for text in texts))))


# --- FHIR's JSON with its types checked: a value of another type is named, never shown ----


def parse_resource(data: bytes, name: str) -> Resource:
    """Return the one JSON object of a file, which must be UTF-8 and have a resourceType."""
    check_file_size(data, name)
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadInputError(f"{name} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadInputError(
            f"{name} is not whole JSON (line {error.lineno}, column {error.colno}); copy it again"
        ) from None
    except (ValueError, RecursionError):
        raise BadInputError(f"{name} is nested too deeply or has too long a number; repair it") from None
    if not isinstance(value, dict) or not isinstance(value.get("resourceType"), str):
        raise BadInputError(f"{name} is not a FHIR resource; give JSON with a resourceType")
    return value


def text_at(resource: Resource, key: str, name: str) -> str | None:
    """Return the string under a key, None if there is none."""
    value = resource.get(key)
    if value is not None and not isinstance(value, str):
        raise BadInputError(f"{name}: {key!r} is not a string; FHIR wants one there")
    return value


def object_at(resource: Resource, key: str, name: str) -> Resource:
    """Return the object under a key, an empty one if there is none."""
    value = {} if resource.get(key) is None else resource[key]
    if not isinstance(value, dict):
        raise BadInputError(f"{name}: {key!r} is not an object; FHIR wants one there")
    return value


def objects_at(resource: Resource, key: str, name: str) -> tuple[Resource, ...]:
    """Return the objects of the list under a key, none if there is no list."""
    value = [] if resource.get(key) is None else resource[key]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BadInputError(f"{name}: {key!r} is not a list of objects; FHIR wants one there")
    return tuple(value)


def bundled(resource: Resource, name: str) -> Iterator[tuple[str | None, Resource]]:
    """Yield the resources of a Bundle with their addresses; any other resource is alone."""
    if resource["resourceType"] != "Bundle":
        yield None, resource
        return
    for entry in objects_at(resource, "entry", name):
        inner = object_at(entry, "resource", name)
        if inner:
            yield text_at(entry, "fullUrl", name), inner


FhirVersion = Literal["R4", "R5"]
FHIR_VERSIONS: tuple[FhirVersion, ...] = get_args(FhirVersion)
TAG_SYSTEM = "urn:tabon:tag"
_ABOUT = frozenset({"DiagnosticReport", "ImagingStudy"})
_REFERENCE_KEYS = ("reference", "type", "identifier", "display")


def write_fhir(
    draft: Report,
    *,
    signature: str,
    about: bytes | None = None,
    fhir_version: FhirVersion = "R4",
    name: str = "the resource that the draft is about",
) -> bytes:
    """Write a draft as one DiagnosticReport in JSON, without an id: the server gives it one.

    `about` is a DiagnosticReport or ImagingStudy in JSON, whose patient and order are taken over.

    Raises:
        BadInputError: the draft is empty, or `about` cannot be used.
        UnknownNameError: no such version.
    """
    check_name("FHIR version", FHIR_VERSIONS, fhir_version)
    kept, signature = plain_draft(draft), one_line(signature)
    text = presented_text(kept, signature=signature)
    check_text_size(len(text.encode()), "the draft")
    lines = "<br/>".join(escape(text.strip()).split("\n"))  # nothing in it can be read as a tag
    attachment = {
        "contentType": "text/plain; charset=utf-8",
        "data": base64.b64encode(text.encode()).decode(),
        "title": "Machine-written draft",
    }
    findings = {
        "resourceType": "Observation",
        "id": "findings",
        "status": "preliminary",
        "code": _coded(FINDINGS_CODE, "Procedure findings"),
        "valueString": kept.findings,
    }
    resource: dict[str, Any] = {
        "resourceType": "DiagnosticReport",
        "meta": {"tag": [{"system": TAG_SYSTEM, "code": "machine-written-draft", "display": DISCLAIMER}]},
        "text": {"status": "generated", "div": f'<div xmlns="http://www.w3.org/1999/xhtml">{lines}</div>'},
        **({"contained": [findings], "result": [{"reference": "#findings"}]} if kept.findings else {}),
        "extension": [{"url": SIGNATURE_URL, "valueString": signature}],
        **_references(about, name),
        "status": "preliminary",
        "code": _coded("18748-4", "Diagnostic imaging study"),
        **({"note": [{"text": DISCLAIMER}]} if fhir_version == "R5" else {}),
        **({"conclusion": kept.impression} if kept.impression else {}),
        "presentedForm": [attachment],
    }
    return json.dumps(resource, ensure_ascii=False, indent=1).encode() + b"\n"


def _coded(code: str, display: str) -> dict[str, Any]:
    """Return a LOINC concept."""
    return {"coding": [{"system": LOINC, "code": code, "display": display}], "text": display}


def _references(about: bytes | None, name: str) -> dict[str, Any]:
    """Return the patient and the order that the draft is about."""
    if about is None:
        return {}
    resource = about_resource(about, name)
    orders = [_taken_over(order, name) for order in objects_at(resource, "basedOn", name)]
    subject = _taken_over(object_at(resource, "subject", name), name)
    return {**({"basedOn": orders} if orders else {}), **({"subject": subject} if subject else {})}


def about_resource(about: bytes, name: str) -> Resource:
    """Return the one resource of a file that can say whom a draft is about."""
    entries = bundled(parse_resource(about, name), name)
    found = [entry for _, entry in entries if entry.get("resourceType") in _ABOUT]
    if len(found) != 1:
        raise BadInputError(
            f"{name} holds {len(found)} reports or imaging studies; give just the one the draft is about"
        )
    return found[0]


def _taken_over(reference: Resource, name: str) -> dict[str, Any]:
    """Return a reference that means the same in another resource."""
    if (text_at(reference, "reference", name) or "").startswith("#"):
        raise BadInputError(
            f"{name} contains its patient or order; give a resource that refers to them by an address"
        )
    return {key: reference[key] for key in _REFERENCE_KEYS if key in reference}
