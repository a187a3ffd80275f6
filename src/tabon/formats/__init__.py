"""Reports from and to the formats that hospitals speak: FHIR DiagnosticReport and DICOM SR.

    bytes ─▶ Received (a Report and what is known of it)        read_fhir, read_sr, read_any
    the chosen draft ─▶ bytes, marked preliminary and unverified  write_fhir, write_sr

Nothing here opens a file or a connection. Research use only; not a medical device.
"""

from tabon.formats.dicom_sr import read_sr
from tabon.formats.dicom_sr_writing import write_sr
from tabon.formats.draft_text import DISCLAIMER
from tabon.formats.fhir import read_fhir
from tabon.formats.fhir_writing import FHIR_VERSIONS, FhirVersion, write_fhir
from tabon.formats.reading import patient_of, read_any
from tabon.formats.received import MAX_FILE, MAX_TEXT, Received

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
