"""A file of either format, told apart by its first bytes."""

from tabon.data.formats.dicom_files import dicom_values, is_dicom, parse_dicom, value_text
from tabon.data.formats.dicom_sr import read_sr
from tabon.data.formats.fhir import patient_reference, read_fhir
from tabon.data.formats.fhir_writer import about_resource
from tabon.data.formats.received import Received


def read_any(data: bytes, *, name: str) -> tuple[Received, ...]:
    """Read the reports of a FHIR or a DICOM SR file."""
    return (read_sr(data, name=name),) if is_dicom(data) else read_fhir(data, name=name)


def patient_of(about: bytes, *, name: str) -> str | None:
    """Return the patient of what a draft is about: as `Received.patient` would name them."""
    if not is_dicom(about):
        return patient_reference(about_resource(about, name), name)
    dataset = parse_dicom(about, name)
    with dicom_values(f"{name} has a patient id that cannot be read; export it again"):
        return value_text(dataset, "PatientID") or None
