"""The chosen draft as a FHIR DiagnosticReport with status preliminary.

Written apart from each other and complete in themselves: the text as a whole
(`presentedForm`, `text`), and the sections (`conclusion`, an Observation for the
findings). R5 has a place for notes, where the disclaimer stands once more.
"""

import base64
import json
from html import escape
from typing import Any, Literal, get_args

from tabon.data.formats.draft_text import DISCLAIMER, one_line, plain_draft, presented_text
from tabon.data.formats.fhir import (
    FINDINGS_CODE,
    LOINC,
    SIGNATURE_URL,
    Resource,
    bundled,
    object_at,
    objects_at,
    parse_resource,
    text_at,
)
from tabon.data.formats.received import check_text_size
from tabon.errors import BadInputError, UnknownNameError
from tabon.text.reports import Report

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

    Args:
        draft: the chosen draft; its two sections are written.
        signature: the selection's signature.
        about: a DiagnosticReport or ImagingStudy in JSON, whose patient and order are taken over.
        fhir_version: R4 or R5.
        name: what an error calls `about`.

    Raises:
        BadInputError: the draft is empty, or `about` cannot be used.
        UnknownNameError: no such version.
    """
    if fhir_version not in FHIR_VERSIONS:
        raise UnknownNameError("FHIR version", fhir_version, FHIR_VERSIONS)
    kept, signature = plain_draft(draft), one_line(signature)
    text = presented_text(kept, signature=signature)
    check_text_size(len(text.encode()), "the draft")
    lines = "<br/>".join(escape(text.strip()).split("\n"))  # nothing in it can be read as a tag
    attachment = {
        "contentType": "text/plain; charset=utf-8",
        "data": base64.b64encode(text.encode()).decode(),
        "title": "Machine-written draft",
    }
    resource: dict[str, Any] = {
        "resourceType": "DiagnosticReport",
        "meta": {"tag": [{"system": TAG_SYSTEM, "code": "machine-written-draft", "display": DISCLAIMER}]},
        "text": {"status": "generated", "div": f'<div xmlns="http://www.w3.org/1999/xhtml">{lines}</div>'},
        **_findings(kept),
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


def _findings(draft: Report) -> dict[str, Any]:
    """Return the findings as an Observation inside the report."""
    if not draft.findings:
        return {}
    observation = {
        "resourceType": "Observation",
        "id": "findings",
        "status": "preliminary",
        "code": _coded(FINDINGS_CODE, "Procedure findings"),
        "valueString": draft.findings,
    }
    return {"contained": [observation], "result": [{"reference": "#findings"}]}


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
    found = [
        entry
        for _, entry in bundled(parse_resource(about, name), name)
        if entry.get("resourceType") in _ABOUT
    ]
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
