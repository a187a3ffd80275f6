"""pydicom's checks of values are switched by one lock, whoever reads."""

from io import BytesIO
from threading import Event, Thread

import pytest

from tabon._internal.dicom import unchecked_values
from tabon.data.formats import read_sr, write_sr
from tabon.generation.images import encode_image
from tabon.text.reports import Report

pydicom = pytest.importorskip("pydicom", reason="needs the extra images")


def film():
    """Return a DICOM image of one pixel, as bytes."""
    image = pydicom.Dataset()
    image.SOPClassUID, image.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.1", "1.2.3.4"
    image.StudyInstanceUID, image.PatientID = "1.2.3", "P7"
    image.Rows = image.Columns = image.SamplesPerPixel = 1
    image.PhotometricInterpretation, image.PixelRepresentation = "MONOCHROME2", 0
    image.BitsAllocated, image.BitsStored, image.HighBit, image.PixelData = 16, 12, 11, b"\x01\0"
    image.file_meta = pydicom.dataset.FileMetaDataset()
    image.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2.1"
    stream = BytesIO()
    pydicom.dcmwrite(stream, image, enforce_file_format=True)
    return stream.getvalue()


def modes():
    """Return what pydicom is set to."""
    settings = pydicom.config.settings
    return settings.reading_validation_mode, settings.writing_validation_mode


def test_reading_a_report_and_an_image_wait_for_each_other(tmp_path):
    """While one thread has the checks off, neither door reads; then both do, and the setting is back."""
    before, image = modes(), film()
    path = tmp_path / "film.dcm"
    path.write_bytes(image)
    report = write_sr(Report("Clear."), signature="s", about=image)
    done = [Event(), Event()]
    works = (lambda: read_sr(report), lambda: encode_image(path))
    threads = [
        Thread(target=lambda work=work, event=event: (work(), event.set()))
        for work, event in zip(works, done, strict=True)
    ]
    with unchecked_values(pydicom):
        for thread in threads:
            thread.start()
        assert not done[0].wait(0.3)
        assert not done[1].wait(0.3)
    for thread in threads:
        thread.join(30)
    assert all(event.is_set() for event in done)
    assert modes() == before


def test_the_setting_comes_back_after_an_error_and_inside_itself():
    """A failure inside, or a second use in the same thread, leaves pydicom as it was."""
    before = modes()
    with pytest.raises(KeyError), unchecked_values(pydicom), unchecked_values(pydicom):
        raise KeyError
    assert modes() == before
