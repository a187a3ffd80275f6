"""Reports from and to the formats that hospitals speak: FHIR DiagnosticReport and DICOM SR.

    bytes ─▶ Received (a Report and what is known of it)        read_fhir, read_sr, read_any
    the chosen draft ─▶ bytes, marked preliminary and unverified  write_fhir, write_sr

Nothing here opens a file or a connection. Research use only; not a medical device.
"""

from tabon._internal.dicom import is_dicom
from tabon.data.formats.dicom_sr import dicom_values, parse_dicom, read_sr, value_text, write_sr
from tabon.data.formats.documents import DISCLAIMER, MAX_FILE, MAX_TEXT, Received
from tabon.data.formats.fhir import (
    FHIR_VERSIONS,
    FhirVersion,
    about_resource,
    patient_reference,
    read_fhir,
    write_fhir,
)

__all__ = [
    "DISCLAIMER",
    "FHIR_VERSIONS",
    "MAX_FILE",
    "MAX_TEXT",
    "FhirVersion",
    "Received",
    "patient_of",
    "read_any",
    "read_fhir",
    "read_sr",
    "write_fhir",
    "write_sr",
]


def read_any(data: bytes, *, name: str) -> tuple[Received, ...]:
    """Read the reports of a FHIR or a DICOM SR file, which its first bytes say."""
    return (read_sr(data, name=name),) if is_dicom(data) else read_fhir(data, name=name)


def patient_of(about: bytes, *, name: str) -> str | None:
    """Return the patient of what a draft is about: as `Received.patient` would name them."""
    if not is_dicom(about):
        return patient_reference(about_resource(about, name), name)
    dataset = parse_dicom(about, name)
    with dicom_values(f"{name} has a patient id that cannot be read; export it again"):
        return value_text(dataset, "PatientID") or None
