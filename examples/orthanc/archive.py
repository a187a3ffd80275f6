"""An archive that speaks DICOMweb: find a study and the report before it, store a document.

QIDO-RS finds, WADO-RS fetches, STOW-RS stores; dicomweb-client does all three.
No sentence here shows a name, a text or an address.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pydicom
import requests
from dicomweb_client.web import DICOMwebClient
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.errors import InvalidDicomError
from pydicom.uid import ExplicitVRLittleEndian

from tabon._internal.dicom import unchecked_values
from tabon.data.formats import Received, read_sr
from tabon.data.formats.dicom_sr import SR_CLASSES, TAKEN_OVER
from tabon.errors import BadInputError, TabonError

PAGE = 100  # answers to one question
TIMEOUT = 20.0  # seconds for one answer
_DATE = 8  # digits
_UID = re.compile(r"(?=.{1,64}\Z)[0-9]+(\.[0-9]+)*")
_NOT_AS_AGREED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
_SAME_PERSON = ("IssuerOfPatientID", "PatientBirthDate")  # what may contradict an equal patient id


class ArchiveError(TabonError, RuntimeError):
    """The archive is away, refuses, or has not what is asked for."""


@dataclass(frozen=True, slots=True)
class Study:
    """A study, by the header of one of its objects."""

    uid: str
    header: Dataset

    @property
    def patient(self) -> str:
        """The patient id."""
        return _text(self.header, "PatientID")

    @property
    def has_image(self) -> bool:
        """Whether the object is an image."""
        return _text(self.header, "Modality") != "SR"

    def as_file(self) -> bytes:
        """Return the header as a DICOM file, for `write_sr`."""
        self.header.file_meta = FileMetaDataset()
        self.header.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        return _file(self.header)


@dataclass(frozen=True, slots=True)
class Prior:
    """The report that is used as the prior, if there is one, and why newer documents were left out."""

    received: Received | None
    left_out: tuple[str, ...]


class Archive:
    """One DICOMweb archive."""

    def __init__(self, url: str, login: tuple[str, str] | None = None) -> None:
        """Take the address of the DICOMweb root, and a user and a password where it asks for them."""
        session = requests.Session()
        session.trust_env = False  # no proxy, and no password from a file of the user
        session.max_redirects = 0  # patients' data go nowhere else
        session.auth = login
        with _said():
            self._client = DICOMwebClient(url, session=session, timeout=TIMEOUT)
        self._client.set_http_retry_params(retry=False)

    def study(self, uid: str) -> Study:
        """Return a study: an image of it, if it has one, says whose it is and when it was made."""
        if not _UID.fullmatch(uid):
            raise BadInputError("--study is not a Study Instance UID; give one")
        with _said():
            series = self._all(self._client.search_for_series, "SeriesInstanceUID", study_instance_uid=uid)
            if not series:
                raise ArchiveError(f"the archive has no study {uid}; check --study")
            series.sort(key=lambda one: _text(one, "Modality") == "SR")  # an image first
            place = (uid, _text(series[0], "SeriesInstanceUID"))
            [instance, *_] = self._client.search_for_instances(*place, limit=1)
            name = _text(_dataset(instance), "SOPInstanceUID")
            header = _dataset(self._client.retrieve_instance_metadata(*place, name))
        study = Study(uid, header)
        if not study.patient:
            raise ArchiveError(f"study {uid} has no patient id; no prior can be looked for")
        return study

    def prior_of(self, study: Study) -> Prior:
        """Return the newest finished report of an earlier study of the same patient."""
        left_out: list[str] = []
        for uid in self._earlier_studies(study):
            reports = list(self._reports(uid, study, left_out))
            if reports:
                newest = max(reports, key=lambda pair: pair[0])
                return Prior(newest[1], tuple(left_out))
        return Prior(None, tuple(left_out))

    def store(self, data: bytes) -> None:
        """Store a DICOM file."""
        with unchecked_values(pydicom), _said():
            dataset = pydicom.dcmread(BytesIO(data))
            answer = self._client.store_instances([dataset])
            stored = {
                _text(one, "ReferencedSOPInstanceUID") for one in answer.get("ReferencedSOPSequence", [])
            }
        if dataset.SOPInstanceUID not in stored:
            raise ArchiveError("the archive did not store the draft; its log says why")

    def fetch(self, header: Dataset) -> bytes:
        """Return the object of this header, whole, as a DICOM file."""
        place = (_text(header, f"{level}InstanceUID") for level in ("Study", "Series", "SOP"))
        with unchecked_values(pydicom), _said():
            return _file(self._client.retrieve_instance(*place))

    def _earlier_studies(self, study: Study) -> list[str]:
        """Return the patient's studies with reports before this one, the newest first."""
        day = _text(study.header, "StudyDate")
        if not _is_date(day):
            raise ArchiveError(f"study {study.uid} has no date; no report before it can be looked for")
        found = self._studies(PatientID=study.patient, ModalitiesInStudy="SR", StudyDate=f"-{day}")
        earlier = [one for one in found if _is_before(one, study.header) and _is_patient(one, study.header)]
        if not earlier:
            self._check_search(study)
        earlier.sort(key=lambda one: (*_when(one), _text(one, "StudyInstanceUID")), reverse=True)
        return [_text(one, "StudyInstanceUID") for one in earlier]

    def _check_search(self, study: Study) -> None:
        """Refuse an archive that does not find a study by its own patient id: it may miss reports too."""
        if not self._studies(PatientID=study.patient, StudyInstanceUID=study.uid):
            raise ArchiveError(
                f"the archive does not find study {study.uid} by its own patient id, so it may miss reports "
                "too; Debian's Orthanc finds only ids of letters, digits and - . _ ~"
            )

    def _studies(self, **asked: str) -> list[Dataset]:
        """Return the studies with these values."""
        with _said():
            return self._all(self._client.search_for_studies, "StudyInstanceUID", search_filters=asked)

    def _reports(
        self, uid: str, study: Study, left_out: list[str]
    ) -> Iterator[tuple[tuple[str, ...], Received]]:
        """Yield a study's finished reports with when they were written; say why others are left out."""
        wanted = {"study_instance_uid": uid, "search_filters": {"Modality": "SR"}}
        with _said():
            found = self._all(self._client.search_for_instances, "SOPInstanceUID", **wanted)
        for one in found:
            if _text(one, "SOPClassUID") not in SR_CLASSES:  # a dose report, for instance
                continue
            name = _text(one, "SOPInstanceUID")
            data = self.fetch(one)
            try:
                received = read_sr(data, name=f"the document {name}")
                header = _header(data)
                _check_finished(header, study.header, name)
            except BadInputError as error:
                left_out.append(str(error))
                continue
            written = tuple(
                _text(header, keyword) for keyword in ("ContentDate", "ContentTime", "SOPInstanceUID")
            )
            yield written, received

    @staticmethod
    def _all(search: Callable[..., list[Any]], key: str, **asked: Any) -> list[Dataset]:  # noqa: ANN401
        """Return all answers to a question, page by page, each once."""
        found: dict[str, Dataset] = {}
        while page := search(**asked, limit=PAGE, offset=len(found)):
            before = len(found)
            found |= {_text(one, key): one for one in map(_dataset, page)}
            if len(found) == before:  # this archive has no pages
                break
        return list(found.values())


@contextmanager
def _said() -> Iterator[None]:
    """Say in one sentence what goes wrong on the way; the library's own words may hold patients' data."""
    try:
        yield
    except requests.HTTPError as error:
        status = error.response.status_code
        raise ArchiveError(f"the archive answered {status}; check --dicomweb, --login and its log") from None
    except (requests.ConnectionError, requests.Timeout):
        raise ArchiveError("the archive does not answer; start it, or check --dicomweb") from None
    except (requests.RequestException, InvalidDicomError, *_NOT_AS_AGREED):
        raise ArchiveError("the archive answered with what is not DICOMweb; check --dicomweb") from None


def _dataset(record: dict[str, Any]) -> Dataset:
    """Return the facts of a DICOM JSON object that are used here."""
    keywords = {*TAKEN_OVER, *_SAME_PERSON, "Modality", "SeriesInstanceUID", "SOPInstanceUID", "SOPClassUID"}
    tags = {f"{pydicom.datadict.tag_for_keyword(keyword):08X}" for keyword in keywords}
    with unchecked_values(pydicom):
        found = Dataset.from_json({tag: value for tag, value in record.items() if tag in tags})
    found.SpecificCharacterSet = "ISO_IR 192"  # JSON is UTF-8
    return found


def _file(dataset: Dataset) -> bytes:
    """Return a dataset as a DICOM file."""
    stream = BytesIO()
    with unchecked_values(pydicom):
        pydicom.dcmwrite(stream, dataset, enforce_file_format=True)
    return stream.getvalue()


def _header(data: bytes) -> Dataset:
    """Read a file that `read_sr` could read."""
    with unchecked_values(pydicom):
        return pydicom.dcmread(BytesIO(data))


def _text(dataset: Dataset, keyword: str) -> str:
    """Return a value as text, nothing where there is none."""
    value = dataset.get(keyword)
    return "" if value is None else str(value).strip()


def _is_date(value: str) -> bool:
    """Whether a value is a DICOM date."""
    return len(value) == _DATE and value.isascii() and value.isdigit()


def _when(dataset: Dataset) -> tuple[str, str]:
    """Return the date and the time of a study."""
    return _text(dataset, "StudyDate"), _text(dataset, "StudyTime").replace(":", "")


def _is_before(one: Dataset, other: Dataset) -> bool:
    """Whether a study is surely earlier: by its date, or on the same day by times that tell."""
    (day, time), (other_day, other_time) = _when(one), _when(other)
    if not _is_date(day) or day != other_day:
        return _is_date(day) and day < other_day
    known = min(len(time), len(other_time))  # 1015 and 101530 are not in order
    return time[:known] < other_time[:known]


def _is_patient(one: Dataset, other: Dataset) -> bool:
    """Whether two objects are of one patient: Orthanc finds ids in upper and lower case alike."""
    return _text(one, "PatientID") == _text(other, "PatientID") and not any(
        _text(one, key) and _text(other, key) and _text(one, key) != _text(other, key) for key in _SAME_PERSON
    )


def _check_finished(header: Dataset, study: Dataset, name: str) -> None:
    """Refuse another patient's report, and one that nobody finished, such as a draft of tabon."""
    if not _is_patient(header, study):
        raise BadInputError(f"the document {name} is of another patient than its study says")
    if _text(header, "CompletionFlag") != "COMPLETE" or _text(header, "PreliminaryFlag") == "PRELIMINARY":
        raise BadInputError(f"the document {name} is not finished")
