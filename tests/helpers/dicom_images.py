"""DICOM images for the tests."""

import pytest

pydicom = pytest.importorskip("pydicom", reason="the extra `images` is not installed")


CANARY = "CANARY^NAME"


def dicom(path, pixels, *, photometric="MONOCHROME2", bits=16, signed=False, syntax=None, **tags):
    """Write a DICOM file with a patient in its header."""
    dataset = pydicom.Dataset()
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = syntax or pydicom.uid.ExplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = pydicom.uid.DigitalXRayImageStorageForPresentation
    dataset.file_meta.MediaStorageSOPInstanceUID = "1.2.3.4"
    dataset.SOPClassUID, dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPClassUID, "1.2.3.4"
    dataset.PatientName, dataset.PatientID, dataset.PatientBirthDate = CANARY, "CANARY-ID", "19010203"
    dataset.PhotometricInterpretation = photometric
    dataset.Rows, dataset.Columns = (
        pixels.shape[-2:] if pixels.ndim != 3 or "NumberOfFrames" in tags else pixels.shape[:2]
    )
    dataset.SamplesPerPixel = 3 if photometric == "RGB" else 1
    if photometric == "RGB":
        dataset.PlanarConfiguration = 0
    dataset.BitsAllocated = pixels.dtype.itemsize * 8
    dataset.BitsStored, dataset.HighBit = bits, bits - 1
    dataset.PixelRepresentation = int(signed)
    dataset.PixelData = tags.pop("PixelData", pixels.tobytes())
    dataset["PixelData"].VR = "OB" if pixels.dtype.itemsize == 1 else "OW"
    for name, value in tags.items():
        setattr(dataset, name, value)
    dataset.save_as(path, enforce_file_format=True)
    return path
