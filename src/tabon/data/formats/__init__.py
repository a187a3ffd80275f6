"""Reports from and to the formats that hospitals speak: FHIR DiagnosticReport and DICOM SR.

    bytes ─▶ Received (a Report and what is known of it)        read_fhir, read_sr, read_any
    the chosen draft ─▶ bytes, marked preliminary and unverified  write_fhir, write_sr

Nothing here opens a file or a connection. Research use only; not a medical device.
"""

from tabon.data.formats.dicom_sr import read_sr
from tabon.data.formats.dicom_sr_writer import write_sr
from tabon.data.formats.draft_text import DISCLAIMER
from tabon.data.formats.fhir import read_fhir
from tabon.data.formats.fhir_writer import FHIR_VERSIONS, FhirVersion, write_fhir
from tabon.data.formats.load import patient_of, read_any
from tabon.data.formats.received import MAX_FILE, MAX_TEXT, Received

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
