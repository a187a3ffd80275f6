"""Write a made-up patient's files as a hospital would have them, from one simulated query.

OUT/prior-image.dcm  the film of the earlier visit
OUT/prior.dcm        its report, complete and verified, as Enhanced SR
OUT/image.dcm        today's film
OUT/study            today's Study Instance UID
OUT/drafts.json      what a generator wrote about today's film
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import highdicom as hd
import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sr.coding import Code
from pydicom.uid import ComputedRadiographyImageStorage, ExplicitVRLittleEndian, generate_uid

from tabon.cli.convert import find_query
from tabon.cli.shared_options import reports_errors
from tabon.text.reports import Report

PRIOR_TIME, TODAY_TIME = datetime(2025, 3, 4, 9, 30), datetime(2026, 1, 2, 10, 15)  # noqa: DTZ001  # as films say it
SIDE, WHITE = 256, 4095
_SECTIONS = (
    (Code("59776-5", "LN", "Findings"), Code("121071", "DCM", "Finding")),
    (Code("19005-8", "LN", "Impressions"), Code("121073", "DCM", "Impression")),
)
_CONTAINS = hd.sr.RelationshipTypeValues.CONTAINS


def film(patient: str, taken: datetime, *, seed: str) -> Dataset:
    """Return a small gray picture with the outline of a chest, as a CR image of a study of its own."""
    image = Dataset()
    image.SpecificCharacterSet = "ISO_IR 192"
    image.SOPClassUID = ComputedRadiographyImageStorage
    for number, keyword in enumerate(("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID")):
        setattr(image, keyword, generate_uid(entropy_srcs=[seed, str(number)]))
    image.PatientID, image.PatientName, image.PatientBirthDate = patient, "Made^Up", "19500101"
    image.PatientSex, image.PatientOrientation = "O", ["L", "F"]
    image.StudyDate = image.SeriesDate = image.ContentDate = f"{taken:%Y%m%d}"
    image.StudyTime = image.SeriesTime = image.ContentTime = f"{taken:%H%M%S}"
    image.StudyID, image.AccessionNumber = "1", f"A{taken:%Y%m%d}"
    image.Modality, image.BodyPartExamined, image.ViewPosition = "CR", "CHEST", "PA"
    image.Manufacturer = image.ReferringPhysicianName = ""
    image.SeriesNumber = image.InstanceNumber = 1
    _draw(image)
    image.file_meta = FileMetaDataset()
    image.file_meta.MediaStorageSOPClassUID = image.SOPClassUID
    image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
    image.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    return image


def _draw(image: Dataset) -> None:
    """Put in two dark lungs on a bright body, 12 bits a pixel."""
    rows, columns = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    pixels = np.full((SIDE, SIDE), 0.8 * WHITE)
    for middle in (0.3, 0.7):
        pixels[((columns - middle) / 0.15) ** 2 + ((rows - 0.5) / 0.35) ** 2 < 1] = 0.2 * WHITE
    image.Rows = image.Columns = SIDE
    image.SamplesPerPixel, image.PhotometricInterpretation = 1, "MONOCHROME2"
    image.BitsAllocated, image.BitsStored, image.HighBit, image.PixelRepresentation = 16, 12, 11, 0
    image.WindowCenter, image.WindowWidth = WHITE // 2, WHITE
    image.PixelData = pixels.astype("<u2").tobytes()


def signed_report(report: Report, image: Dataset, *, seed: str, **flags: Any) -> Dataset:  # noqa: ANN401
    """Return a report on a film as Enhanced SR, complete and verified unless the flags say otherwise."""
    root = hd.sr.ContainerContentItem(name=Code("18748-4", "LN", "Diagnostic imaging report"))
    root.ContentSequence = hd.sr.ContentSequence(
        [
            _section(heading, concept, text)
            for (heading, concept), text in zip(_SECTIONS, (report.findings, report.impression), strict=True)
            if text
        ]
    )
    verified = {"verifying_observer_name": "Made^Up^Radiologist", "verifying_organization": "Made up"}
    document = hd.sr.EnhancedSR(
        evidence=[image],
        content=root,
        series_instance_uid=generate_uid(entropy_srcs=[seed, "series"]),
        series_number=2,
        sop_instance_uid=generate_uid(entropy_srcs=[seed, "instance"]),
        instance_number=1,
        manufacturer="Made up",
        **{"is_complete": True, "is_final": True, "is_verified": True, **verified, **flags},
    )
    document.ContentDate, document.ContentTime = image.StudyDate, image.StudyTime
    return document


def _section(heading: Code, concept: Code, text: str) -> hd.sr.ContainerContentItem:
    """Return one section: a container with a text."""
    section = hd.sr.ContainerContentItem(name=heading, relationship_type=_CONTAINS)
    section.ContentSequence = hd.sr.ContentSequence(
        [hd.sr.TextContentItem(name=concept, value=text, relationship_type=_CONTAINS)]
    )
    return section


@click.command()
@click.argument("queries", type=click.File("rb"))
@click.option("--id", "identity", required=True, help="The query, such as sim-000008-2.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder.")
@reports_errors
def make_study(queries: Any, identity: str, out: Path) -> None:  # noqa: ANN401
    """Write the files of one simulated query of QUERIES, made by `tabon simulate`."""
    query = find_query(queries, identity)
    patient = query.patient or identity
    before, today = (
        film(patient, PRIOR_TIME, seed=f"{identity} prior"),
        film(patient, TODAY_TIME, seed=identity),
    )
    out.mkdir(parents=True, exist_ok=True)
    for name, dataset in (
        ("prior-image.dcm", before),
        ("prior.dcm", signed_report(query.prior, before, seed=identity)),
        ("image.dcm", today),
    ):
        pydicom.dcmwrite(out / name, dataset, enforce_file_format=True)
    (out / "study").write_text(f"{today.StudyInstanceUID}\n")
    drafts = [{"findings": draft.findings, "impression": draft.impression} for draft in query.candidates]
    (out / "drafts.json").write_text(json.dumps(drafts, indent=1))


if __name__ == "__main__":
    make_study()
