"""The hospital example against a real Orthanc: an image and a prior report in, the chosen draft out."""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from io import BytesIO
from itertools import product
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from orthanc_server import EXAMPLE, PROGRAM, check_orthanc, orthanc
from search_servers import free_ports
from service_server import query_service, service
from tabon import Selector, TransitionBank
from tabon.cli import main
from tabon.data.formats import DISCLAIMER, read_sr
from tabon.encoders.hashing import HashingEncoder
from tabon.text.records import transition_from_record
from tabon.text.reports import Report, parse_report
from waiting import LIMIT

pydicom = pytest.importorskip("pydicom", reason="needs the extra images")
pytest.importorskip("dicomweb_client", reason="needs dicomweb-client")
hd = pytest.importorskip("highdicom", reason="needs highdicom")

CANARY = "CANARYOPACITY"
TODAY = datetime(2026, 1, 2, 10, 15)  # noqa: DTZ001  # as films say it
PRIOR = Report(findings=f"There is a {CANARY} on the left. Heart size is normal.", impression="Opacity.")
DRAFTS = [
    {"findings": f"The {CANARY} on the left is unchanged.", "impression": "No change."},
    {"findings": "Größe normal.\nNo effusion.", "impression": f"New {CANARY}."},
    f"Findings: The {CANARY} has resolved. Heart size is normal.\nImpression: Better.",
]
DOSE_SR = "1.2.840.10008.5.1.4.1.1.88.67"
CHANGES = [  # patient, before, after
    ("b1", ("There is an opacity on the left.", "Opacity."), ("The opacity has resolved.", "Better.")),
    ("b2", ("Heart size is normal.", "Normal."), ("New effusion on the right.", "New effusion.")),
    ("b3", ("There is an effusion.", "Effusion."), ("The effusion is unchanged.", "No change.")),
]


@cache
def bank():
    """Return a bank of three changes."""
    records = [
        {"id": patient, "patient": patient, "prior": sections(*before), "current": sections(*after)}
        for patient, before, after in CHANGES
    ]
    return TransitionBank.build(map(transition_from_record, records), encoder=HashingEncoder())


def sections(findings, impression):
    """Return a report as a record."""
    return {"findings": findings, "impression": impression}


@pytest.fixture(scope="module")
def example():
    """Return the scripts as modules: `film`, `signed_report` and `draft_report`."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        return import_module("make_study"), import_module("draft_report"), import_module("archive")
    finally:
        sys.path.remove(str(EXAMPLE))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Run one archive for the tests of this file; each has patients of its own."""
    with orthanc(tmp_path_factory.mktemp("orthanc")) as running:
        yield running


@pytest.fixture(scope="module")
def saved_bank(tmp_path_factory):
    """Return a small bank as a file."""
    path = tmp_path_factory.mktemp("bank") / "bank.tabon"
    bank().save(path)
    return path


@pytest.fixture
def hospital(example, server, saved_bank, tmp_path):
    """Return what a test does with the archive."""
    return Hospital(example, server, saved_bank, tmp_path)


class Hospital:
    """Puts made-up studies into the archive and runs the example on them."""

    def __init__(self, example, server, saved_bank, folder):
        self.make, self.script, self.archive = example
        self.server, self.bank, self.folder = server, saved_bank, folder
        self.drafts = folder / "drafts.json"
        self.drafts.write_text(json.dumps(DRAFTS))

    def store(self, *datasets):
        """Put datasets into the archive."""
        for dataset in datasets:
            dataset.preamble = b"\0" * 128
        self.archive.DICOMwebClient(self.server.dicomweb).store_instances(datasets)

    def study(self, patient, taken=TODAY, **values):
        """Store a study that has a film only, and return it."""
        film = self.make.film(patient, taken, seed=f"{patient} {taken} {values}")
        for keyword, value in values.items():
            setattr(film, keyword, value)
        self.store(film)
        return film

    def report(self, patient, taken, text=PRIOR, *, film=None, flags=(), **values):
        """Store an earlier report, and return it."""
        made = self.unstored(patient, taken, text, film=film, flags=flags, **values)
        self.store(made)
        return made

    def unstored(self, patient, taken, text=PRIOR, *, film=None, flags=(), **values):
        """Return a report that is not in the archive."""
        film = film or self.make.film(patient, taken, seed=f"{patient} {taken}")
        seed = f"{patient} {taken} {values} {text.findings} {text.impression}"
        made = self.make.signed_report(text, film, seed=seed, **dict(flags))
        for keyword, value in values.items():
            setattr(made, keyword, value)
        made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID
        return made

    def run(self, film, *more, dicomweb=None, chooser=None):
        """Run the example on a film's study or a UID; a failure is one sentence that shows no text."""
        arguments = [
            *("--dicomweb", dicomweb or self.server.dicomweb),
            *("--study", film if isinstance(film, str) else film.StudyInstanceUID),
            *("--drafts", str(self.drafts)),
            *(chooser or ("--bank", str(self.bank))),
            *more,
        ]
        result = CliRunner().invoke(self.script.draft_report, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert CANARY not in result.stderr
        if result.exit_code == 1:
            assert result.stdout == ""
            assert result.stderr.splitlines()[-1].startswith("Error: ")
        return result


def pick(prior, drafts=DRAFTS):
    """Return the draft that the library picks, and its signature, without the example's code."""
    return Selector(bank(), encoder=HashingEncoder()).select(prior, [as_report(draft) for draft in drafts])


def as_report(draft):
    """Return a draft of the file as a report."""
    return parse_report(draft) if isinstance(draft, str) else Report(**draft)


def prior_named(result):
    """Return the UID of the prior that a run says it used."""
    found = re.search(r"^the prior is ([0-9.]+) of", result.stderr, re.MULTILINE)
    return found and found[1]


# --- the way through -----------------------------------------------------------------------


def test_an_image_and_a_prior_in_the_chosen_draft_out(hospital):
    """One new document: the pick, of this patient and study, marked thrice, with disclaimer and signature."""
    film, prior = hospital.study("way"), hospital.report("way", TODAY - timedelta(days=30))
    before = hospital.server.instances()
    result = hospital.run(film, "--keep", str(hospital.folder / "kept"))
    assert result.exit_code == 0, result.stderr
    [data] = hospital.server.changed_since(before)
    made, chosen = pydicom.dcmread(BytesIO(data)), pick(PRIOR)
    assert (made.PatientID, made.StudyInstanceUID) == ("way", film.StudyInstanceUID)
    assert (made.PatientName, made.PatientBirthDate) == (film.PatientName, film.PatientBirthDate)
    assert (made.AccessionNumber, made.StudyDate) == (film.AccessionNumber, film.StudyDate)
    assert made.SeriesInstanceUID != film.SeriesInstanceUID
    flags = made.CompletionFlag, made.VerificationFlag, made.PreliminaryFlag
    assert flags == ("PARTIAL", "UNVERIFIED", "PRELIMINARY")
    content = hd.sr.ContentSequence.from_sequence(made.ContentSequence)
    assert [item.value for item in content[:2]] == [DISCLAIMER, chosen.signature]
    read = read_sr(data)
    assert Report(read.report.findings, read.report.impression) == as_report(DRAFTS[chosen.selected])
    assert (read_sr((hospital.folder / "kept/chosen.dcm").read_bytes()), prior_named(result)) == (
        read,
        prior.SOPInstanceUID,
    )
    shown = (made.SOPInstanceUID, "PARTIAL UNVERIFIED", DISCLAIMER, read.report.findings)
    assert all(text in result.stdout for text in shown)
    assert DISCLAIMER in result.stderr


def test_the_kept_query_is_chosen_the_same_by_tabon_select(hospital):
    """`tabon select` on what --keep leaves picks what was stored; the image is the archive's."""
    film = hospital.study("kept")
    hospital.report("kept", TODAY - timedelta(days=3))
    kept = hospital.folder / "kept"
    assert hospital.run(film, "--keep", str(kept)).exit_code == 0
    run = CliRunner().invoke(
        main,
        [
            "select",
            str(kept / "query.jsonl"),
            "--bank",
            str(hospital.bank),
            "--encoder",
            "hashing",
            "--no-store",
        ],
    )
    selection, query = json.loads(run.stdout), json.loads((kept / "query.jsonl").read_text())
    stored = read_sr((kept / "chosen.dcm").read_bytes()).report
    assert Report(stored.findings, stored.impression) == as_report(query["candidates"][selection["selected"]])
    assert (query["id"], query["image"]) == (film.StudyInstanceUID, "image.dcm")
    image = pydicom.dcmread(kept / "image.dcm")
    assert (image.SOPInstanceUID, image.PixelData) == (film.SOPInstanceUID, film.PixelData)


def test_the_service_and_the_bank_choose_alike_and_twice_is_once(hospital):
    """POST /v1/select and --bank store the same document; a second run adds none."""
    film = hospital.study("both")
    hospital.report("both", TODAY - timedelta(days=9))
    before = hospital.server.instances()
    first = hospital.run(film)
    token = hospital.folder / "token"
    token.write_text("a-token-of-enough-letters\n")
    with service(query_service(of=bank()), token=token.read_bytes().strip()) as address:
        second = hospital.run(film, "--token-file", str(token), chooser=("--service", address))
        refused = hospital.run(film, chooser=("--service", f"{address}/"))
    assert (first.exit_code, second.exit_code, refused.exit_code) == (0, 0, 1)
    assert first.stdout == second.stdout
    assert "the service answered 401" in refused.stderr
    assert len(hospital.server.changed_since(before)) == 1


# --- which report is the prior -------------------------------------------------------------


def test_the_prior_is_the_newest_that_is_surely_earlier(hospital):
    """Of random reports of three patients the one that a slow look at all of them finds; else nothing."""
    draw, stored = random.Random(4), []
    for patient in ("p7", "P7", "p77"):
        for number in range(12):
            taken = TODAY + timedelta(days=draw.randint(-4, 1), hours=draw.randint(-2, 2))
            film = hospital.make.film(patient, taken, seed=f"{patient} {number}")
            film.StudyTime = draw.choice([film.StudyTime, film.StudyTime[:2], ""])
            flags = {"is_final": draw.random() < 0.6, "is_complete": draw.random() < 0.6}
            made = hospital.report(patient, taken, Report(f"Report {number}."), film=film, flags=flags)
            stored.append((made, all(flags.values())))
    named = []
    for patient, days in product(("p7", "P7", "p77"), range(-4, 2)):
        film = hospital.study(patient, TODAY + timedelta(days=days))
        named.append(prior_named(hospital.run(film)))
        surely = [made for made, finished in stored if finished and is_surely_before(made, film)]
        newest = max(
            surely, key=lambda made: (made.StudyDate, made.StudyTime, made.StudyInstanceUID), default=None
        )
        assert named[-1] == (newest and newest.SOPInstanceUID)
    assert None in named
    assert len(set(named)) > 6


def is_surely_before(made, film):
    """Whether a report is of the same patient and of an earlier day, or of an earlier hour of the day."""
    if made.PatientID != film.PatientID or made.StudyDate != film.StudyDate:
        return made.PatientID == film.PatientID and made.StudyDate < film.StudyDate
    return made.StudyTime != "" and made.StudyTime[:2] < film.StudyTime[:2]


def test_what_is_no_report_is_left_out(hospital):
    """Newer dose reports, documents without text or of a contradicting person do not count."""
    film = hospital.study("leave", IssuerOfPatientID="A")
    good = hospital.report("leave", TODAY - timedelta(days=5), IssuerOfPatientID="A")
    hospital.report("leave", TODAY - timedelta(days=4), SOPClassUID=DOSE_SR)
    issuer = hospital.report("leave", TODAY - timedelta(days=3), IssuerOfPatientID="B")
    hospital.report("leave", TODAY - timedelta(days=2), PatientBirthDate="19990101")
    empty = hospital.unstored("leave", TODAY - timedelta(days=1))
    del empty.ContentSequence
    hospital.store(empty)
    hospital.report("leave", TODAY, Report("Of this study."), film=film)
    result = hospital.run(film)
    assert prior_named(result) == good.SOPInstanceUID
    left = [line for line in result.stderr.splitlines() if line.startswith("left out: ")]
    assert [line.split()[4] for line in left] == [empty.SOPInstanceUID, issuer.SOPInstanceUID]
    assert "has no report text" in left[0]
    assert "is of another patient" in left[1]


def test_an_addendum_counts_and_a_draft_of_tabon_does_not(hospital):
    """Of two reports of a study the last written is the prior; the stored draft never becomes one."""
    first = hospital.study("chain", TODAY - timedelta(days=7))
    older = hospital.make.film("chain", TODAY - timedelta(days=20), seed="chain older")
    hospital.report("chain", TODAY - timedelta(days=20), film=older)
    addendum = hospital.report("chain", TODAY - timedelta(days=20), Report("Addendum."), film=older)
    late = hospital.report(
        "chain", TODAY - timedelta(days=20), Report("Late."), film=older, ContentDate="20260101"
    )
    assert prior_named(hospital.run(first)) == late.SOPInstanceUID
    result = hospital.run(hospital.study("chain"))
    assert prior_named(result) == late.SOPInstanceUID
    assert "left out: the document" in result.stderr
    assert "is not finished" in result.stderr
    assert addendum.SOPInstanceUID not in result.stderr


@pytest.mark.parametrize("patient", ["a&limit=1", "b/../c", "d?e#f%20g", "Ü 患者", "h*", "plain-1._~"])
def test_odd_patient_ids_stay_themselves(hospital, patient):
    """An id that an archive may misread finds its own report, or that fault is said; never another's.

    Orthanc 1.10.1 with DICOMweb 1.7 does not decode %XX in a search.
    """
    hospital.report(patient.replace("*", "x"), TODAY - timedelta(days=1), Report("Another."))
    own = hospital.report(patient, TODAY - timedelta(hours=20))
    film = hospital.study(patient)
    before = hospital.server.instances()
    result = hospital.run(film)
    if result.exit_code == 0 or patient == "plain-1._~":
        assert prior_named(result) == own.SOPInstanceUID, result.stderr
        [data] = hospital.server.changed_since(before)
        assert pydicom.dcmread(BytesIO(data)).PatientID == patient
    else:
        assert "does not find study" in result.stderr
        assert hospital.server.instances() == before


def test_names_in_other_letters_are_kept(hospital):
    """A name in two scripts comes out as it went in, whatever character set the film has."""
    film = hospital.study("scripts", PatientName="Yamada^Tarou=山田^太郎")
    latin = hospital.study("latin", SpecificCharacterSet="ISO_IR 100", PatientName="Müller^Zoë")
    for patient, own in (("scripts", film), ("latin", latin)):
        hospital.report(patient, TODAY - timedelta(days=1))
        before = hospital.server.instances()
        assert hospital.run(own).exit_code == 0
        [data] = hospital.server.changed_since(before)
        assert pydicom.dcmread(BytesIO(data)).PatientName == own.PatientName


# --- where nothing is stored ---------------------------------------------------------------


def test_without_a_prior_nothing_is_chosen_or_stored(hospital):
    """Exit 1 with a sentence; so too where only an unfinished report is there."""
    film = hospital.study("alone")
    hospital.report("alone", TODAY + timedelta(days=2))
    before = hospital.server.instances()
    result = hospital.run(film, "--keep", str(hospital.folder / "kept"))
    assert (result.exit_code, hospital.server.instances()) == (1, before)
    assert f"no finished report of this patient before study {film.StudyInstanceUID}" in result.stderr
    assert "nothing was chosen and nothing stored" in result.stderr
    assert not (hospital.folder / "kept").exists()


def test_an_abstention_stores_nothing(hospital):
    """Where tabon chooses no draft the reason is said and the archive stays as it was."""
    film = hospital.study("abstain")
    hospital.report("abstain", TODAY - timedelta(days=2))
    before = hospital.server.instances()
    hospital.drafts.write_text(json.dumps({"candidates": ["", None]}))
    with service(query_service(of=bank())) as address:
        results = [hospital.run(film), hospital.run(film, chooser=("--service", address))]
    for result in results:
        assert result.exit_code == 1
        assert "nothing was chosen and nothing stored: no draft has findings or impression" in result.stderr
    assert hospital.server.instances() == before


def test_what_is_away_or_something_else_is_one_sentence(hospital):
    """No archive, another program in its place, no service, another service: exit 1, nothing stored."""
    film = hospital.study("away")
    hospital.report("away", TODAY - timedelta(days=2))
    before = hospital.server.instances()
    [free] = free_ports(1)
    nobody, root = f"http://127.0.0.1:{free}", hospital.server.root
    for dicomweb, sentence in (
        (f"{nobody}/dicom-web", "the archive does not answer; start it"),
        (f"{root}/nothing", "the archive answered 404"),
        (f"{root}/app/explorer.html?", "the archive answered"),
        ("ftp://example", "what is not DICOMweb"),
    ):
        result = hospital.run(film, dicomweb=dicomweb)
        assert result.exit_code == 1
        assert sentence in result.stderr
    for address in (nobody, root, "nonsense"):
        result = hospital.run(film, chooser=("--service", address))
        assert result.exit_code == 1
        assert "the service does not answer as `tabon serve` does" in result.stderr
    assert hospital.server.instances() == before


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (None, "the archive does not answer"),
        (b"HTTP/1.1 302 Found\r\nLocation: {next}\r\nContent-Length: 0\r\n\r\n", "not DICOMweb"),
        (b"HTTP/1.1 307 Found\r\nLocation: {next}\r\nContent-Length: 0\r\n\r\n", "not DICOMweb"),
        (b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "the archive answered 500"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[1]", "not DICOMweb"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n[{}]", "the archive"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"[" * 100_000, "not DICOMweb"),
        (b"nonsense", "the archive does not answer"),
    ],
    ids=["nothing", "302", "307", "500", "number", "cut off", "deep", "nonsense"],
)
def test_an_archive_that_misbehaves_is_one_sentence(hospital, monkeypatch, answer, sentence):
    """It hangs, sends elsewhere, fails or answers nonsense: exit 1, and nothing is asked of a third."""
    monkeypatch.setattr(hospital.archive, "TIMEOUT", LIMIT if answer else 0.5)
    with socket.create_server(("127.0.0.1", 0)) as third, socket.create_server(("127.0.0.1", 0)) as server:
        elsewhere = b"http://127.0.0.1:%d" % third.getsockname()[1]
        said = answer and answer.replace(b"{next}", elsewhere)
        thread = Thread(target=answer_once, args=(server, said))
        thread.start()
        result = hospital.run("1.2.3", dicomweb=f"http://127.0.0.1:{server.getsockname()[1]}/dicom-web")
        thread.join(LIMIT)
        assert not thread.is_alive()
        third.settimeout(0)
        with pytest.raises(BlockingIOError):
            third.accept()
    assert result.exit_code == 1
    assert sentence in result.stderr


def answer_once(server, said):
    """Answer the first request with these bytes and leave, or say nothing until the client leaves; once."""
    connection, _ = server.accept()
    server.close()
    connection.settimeout(LIMIT)
    with connection, suppress(ConnectionError):
        asked = b""
        while not asked.endswith(b"\r\n\r\n"):
            asked += connection.recv(65536)
        if said is not None:
            connection.sendall(said)
            return
        while connection.recv(65536):
            pass


def test_wrong_arguments_are_said(hospital):
    """Both or no chooser is a usage error; no study, no UID, no drafts and no login are one sentence."""
    film = hospital.study("wrong")
    assert hospital.run(film, "--service", "http://127.0.0.1").exit_code == 2
    login = hospital.folder / "login"
    login.write_text("nobody")
    assert "does not hold USER:PASSWORD" in hospital.run(film, "--login", str(login)).stderr
    for text in ("{", "{}", "[]", "7", CANARY):
        hospital.drafts.write_text(text)
        assert "give a list" in hospital.run(film).stderr
    hospital.drafts.write_text(json.dumps(DRAFTS))
    assert "the archive has no study 1.2.3.4; check --study" in hospital.run("1.2.3.4").stderr
    for uid in ("../../instances", "1.2?limit=1", "1" * 65, "1.2\n"):
        assert "--study is not a Study Instance UID" in hospital.run(uid).stderr


@pytest.mark.parametrize(
    ("values", "sentence"), [({"PatientID": ""}, "no patient id"), ({"StudyDate": ""}, "no date")]
)
def test_a_study_without_a_patient_or_a_date_is_refused(hospital, values, sentence):
    """No prior is looked for: that of nobody, or of any time, would be wrong."""
    film = hospital.study(f"bare {sentence}", **values)
    before = hospital.server.instances()
    result = hospital.run(film)
    assert (result.exit_code, hospital.server.instances()) == (1, before)
    assert sentence in result.stderr


def test_a_password_is_asked_for_and_given(hospital, tmp_path):
    """With users registered the archive answers 401 without --login and works with it."""
    login = tmp_path / "login"
    with orthanc(tmp_path / "own", AuthenticationEnabled=True, RegisteredUsers={"ann": "s3:cret"}) as own:
        film = hospital.make.film("x", TODAY, seed="x")
        refused = hospital.run(film, dicomweb=own.dicomweb)
        login.write_text("ann:s3:cret\n")
        allowed = hospital.run(film, "--login", str(login), dicomweb=own.dicomweb)
    assert "the archive answered 401; check --dicomweb, --login" in refused.stderr
    assert f"the archive has no study {film.StudyInstanceUID}" in allowed.stderr


def test_no_text_reaches_a_log(hospital, caplog):
    """Neither Orthanc's log nor one of this process holds report text, after all of the above."""
    film = hospital.study("log")
    hospital.report("log", TODAY - timedelta(days=2))
    with caplog.at_level("DEBUG"):
        assert hospital.run(film).exit_code == 0
    assert CANARY in hospital.run(film).stdout
    assert CANARY not in caplog.text
    assert CANARY.encode() not in hospital.server.log.read_bytes()


# --- the page ------------------------------------------------------------------------------


def commands_of_the_page(ports):
    """Return the page's commands with free ports and the encoder for tests; `report` if there is one."""
    blocks = re.findall(
        r"^```console\n(.*?)^```", (EXAMPLE / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    lines = [line[2:] for block in blocks for line in block.splitlines()]
    lines = [line.replace("--out bank.tabon", "--out bank.tabon --encoder hashing") for line in lines]
    return [with_ports(line, ports) for line in lines]


def with_ports(text, ports):
    """Put free ports in the place of the two that the page names."""
    return text.replace("8042", str(ports[0])).replace("8765", str(ports[1]))


def test_the_page_runs(tmp_path):
    """The README's commands, in one shell, end to end: the document, the same pick, and no text in logs."""
    check_orthanc()
    if shutil.which("curl") is None:
        pytest.skip("curl is missing: apt-get install curl")
    ports = free_ports(2)
    shutil.copytree(EXAMPLE, tmp_path / "examples/orthanc", ignore=shutil.ignore_patterns("__pycache__"))
    config = tmp_path / "examples/orthanc/orthanc.json"
    config.write_text(with_ports(config.read_text(), ports))
    script = "\n".join(["set -e", "trap 'kill $(jobs -p); wait' EXIT", *commands_of_the_page(ports)])
    path = os.pathsep.join([str(Path(sys.executable).parent), str(PROGRAM.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = subprocess.Popen(
        ["/bin/bash", "-c", script],
        cwd=tmp_path,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        shown, said = process.communicate(timeout=600)
    finally:
        kill_group(process)
    assert process.returncode == 0, said[-2000:]
    check_the_page(tmp_path, shown, said)


def kill_group(process):
    """End what the shell of a test has started, if it is still there."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.communicate()


def check_the_page(folder, shown, said):
    """Compare what the commands left with the simulated query that they began with."""
    stored = read_sr((folder / "chosen/chosen.dcm").read_bytes())
    selection = json.loads((folder / "selection.jsonl").read_text())
    with (folder / "cohort/test/queries.jsonl").open() as lines:
        [query] = [line for line in map(json.loads, lines) if line["id"] == "sim-000008-2"]
    assert (stored.patient, stored.status) == (query["patient"], "PARTIAL UNVERIFIED")
    made = pydicom.dcmread(folder / "chosen/chosen.dcm")
    assert str(made.StudyInstanceUID) == (folder / "hospital/study").read_text().strip()
    assert read_sr((folder / "hospital/prior.dcm").read_bytes()).report.findings == query["prior"]["findings"]
    words = query["candidates"][selection["selected"]]["text"]
    assert all(part in words for part in (stored.report.findings, stored.report.impression))
    assert stored.report.findings in shown
    assert '"films":{"current":{"width":' in (folder / "chosen/study.html").read_text()
    logs = said + (folder / "orthanc.log").read_text() + (folder / "service.log").read_text()
    sentences = re.findall(r"[^.\n]{20,}\.", words + query["prior"]["findings"])
    assert sentences
    assert not [sentence for sentence in sentences if sentence.strip() in logs]
