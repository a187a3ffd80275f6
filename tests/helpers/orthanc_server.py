"""A real Orthanc with DICOMweb on a loopback port, its files in a folder of the test."""

import json
import subprocess
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from search_servers import free_ports
from waiting import LIMIT, until

EXAMPLE = Path(__file__).parents[2] / "examples" / "orthanc"
CONFIG = EXAMPLE / "orthanc.json"
PROGRAM = Path("/usr/sbin/Orthanc")  # where Debian puts it
STOP_S = 20.0


@dataclass(frozen=True)
class Orthanc:
    """A running archive."""

    root: str
    log: Path
    login: str = ""

    @property
    def dicomweb(self):
        """Return the root of its DICOMweb."""
        return f"{self.root}/dicom-web"

    def instances(self):
        """Return the ids of all that is stored."""
        return set(self.ask("/instances"))

    def changed_since(self, before):
        """Return the DICOM files that are new."""
        return [self.ask(f"/instances/{one}/file", raw=True) for one in sorted(self.instances() - before)]

    def ask(self, path, *, raw=False):
        """Ask Orthanc's own API, which the example does not use."""
        with urllib.request.urlopen(self.root + path, timeout=LIMIT) as answer:  # noqa: S310
            data = answer.read()
        return data if raw else json.loads(data)


def check_orthanc():
    """Skip the test where Orthanc or its plugin is not installed."""
    [plugin] = json.loads(CONFIG.read_text())["Plugins"]
    for path in (PROGRAM, Path(plugin)):
        if not path.exists():
            pytest.skip(f"{path} is missing: apt-get install orthanc orthanc-dicomweb")


@contextmanager
def orthanc(folder, **settings):
    """Run the example's Orthanc on a free port until the block ends."""
    check_orthanc()
    folder.mkdir(parents=True, exist_ok=True)
    log, path = folder / "orthanc.log", folder / "orthanc.json"
    for _ in range(3):  # another program may take the port
        [port] = free_ports(1)
        path.write_text(json.dumps({**json.loads(CONFIG.read_text()), "HttpPort": port, **settings}))
        with log.open("ab") as file:
            process = subprocess.Popen([PROGRAM, path], cwd=folder, stdout=file, stderr=file)
        try:
            if _is_up(process, f"http://127.0.0.1:{port}"):
                yield Orthanc(f"http://127.0.0.1:{port}", log)
                return
        finally:
            _end(process)
    pytest.fail(f"Orthanc did not start: {log.read_bytes()[-2000:]}")


def _is_up(process, root):
    """Wait until it answers, with whatever status; False where it ended."""
    until(lambda: process.poll() is not None or _answers(root), "Orthanc answers or ends", pause=0.05)
    return process.poll() is None


def _answers(root):
    """Say whether somebody answers."""
    try:
        urllib.request.urlopen(f"{root}/system", timeout=5).close()  # noqa: S310
    except urllib.error.HTTPError as error:
        error.close()
    except OSError:
        return False
    return True


def _end(process):
    """End the process, gently first."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=STOP_S)
    process.kill()
    process.wait()
