"""What is installed: pinned by version and sha256, listed in a bill, under licences that go together."""

import hashlib
import json
import re
import subprocess
import sys
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import licences  # noqa: E402
import lock  # noqa: E402
import packages  # noqa: E402
import sbom  # noqa: E402

PIN = re.compile(r"[A-Za-z0-9][\w.-]*==[\w.]+")
LOCKED = re.compile(rf"{PIN.pattern} --hash=sha256:[0-9a-f]{{64}}")


def lines_of(path):
    """Return the lines of a file below its heading."""
    heading, *lines = path.read_text(encoding="utf-8").splitlines()
    assert heading.startswith("# ")
    return lines


def test_every_pin_has_its_hash():
    """constraints.txt and the locks hold the same names and versions; only torch has no hash."""
    assert {name for name, _ in packages.locked()} == packages.pins().keys() - lock.NOT_HASHED
    assert all(packages.pins()[name] == version for name, version in packages.locked())
    assert sum(len(lines_of(path)) for path in packages.LOCKS) == len(packages.locked())


def test_no_address_stands_in_the_pins():
    """A line is a name, a version and, in a lock, a sha256: no URL, no index, no path, no option."""
    assert [line for line in lines_of(ROOT / "constraints.txt") if not PIN.fullmatch(line)] == []
    assert [line for path in packages.LOCKS for line in lines_of(path) if not LOCKED.fullmatch(line)] == []


def test_the_locks_name_the_machine_that_they_are_for():
    """`make setup` looks for the kind of machine in the first line of a lock."""
    for path in packages.LOCKS:
        assert "cpython-311-x86_64-linux-gnu" in path.read_text(encoding="utf-8").splitlines()[0]


def test_nothing_is_installed_that_is_not_pinned():
    """Each package here has the version that is pinned; what a CUDA build of torch brings is let off."""
    skip_if_older()
    here = {packages.normal(name): version for name, version in lock.versions().items()}
    assert here == packages.pins()


def skip_if_older():
    """Skip where the environment lacks pinned packages: `make setup` of today did not make it."""
    if missing := packages.pins().keys() - packages.installed().keys():
        pytest.skip(f"run `make setup`: {', '.join(sorted(missing))} not installed")


def test_a_file_with_another_hash_is_refused(tmp_path):
    """As `make setup` calls it, pip takes a file with the locked sha256, and no other."""
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as file:
        file.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        file.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr("tiny-1.0.dist-info/RECORD", "")
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert install(tmp_path, right).returncode == 0
    refused = install(tmp_path, "0" * 64)
    assert refused.returncode == 1
    assert "DO NOT MATCH THE HASHES" in refused.stderr


def install(folder, sha256):
    """Install a package from a folder by a lock with this hash."""
    (folder / "lock.txt").write_text(f"tiny==1.0 --hash=sha256:{sha256}\n")
    options = ["--isolated", "--no-index", "--find-links", folder, "--target", folder / sha256]
    command = [sys.executable, "-m", "pip", "install", "--require-hashes", "--no-deps", *options]
    return subprocess.run([*command, "-r", folder / "lock.txt"], capture_output=True, text=True, check=False)


def test_the_bill_names_every_package():
    """CycloneDX's required fields, each installed package once, its licence and hash, known references."""
    done = subprocess.run([sys.executable, ROOT / "tools" / "sbom.py"], capture_output=True, check=True)
    bill = json.loads(done.stdout)
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    assert bill["metadata"]["component"]["name"] == "tabon"
    parts = {packages.normal(part["name"]): part for part in bill["components"]}
    assert len(parts) == len(bill["components"])
    assert parts.keys() == packages.installed().keys() - {"tabon"}
    for (name, version), sha256 in packages.locked().items():
        if name in parts and parts[name]["version"] == version:
            assert parts[name]["hashes"] == [{"alg": "SHA-256", "content": sha256}]
            assert parts[name]["licenses"]
    known = {part["bom-ref"] for part in (*bill["components"], bill["metadata"]["component"])}
    assert {one["ref"] for one in bill["dependencies"]} == known
    assert {ref for one in bill["dependencies"] for ref in one["dependsOn"]} <= known


def test_the_bill_is_the_same_again_and_knows_no_machine():
    """No time, no path and no name of this machine stands in it."""
    text = json.dumps(sbom.bill())
    assert text == json.dumps(sbom.bill())
    assert not re.search(r"file:|https?:|/home|/root|/tmp|site-packages", text)
    assert str(Path.home()) not in text
    assert str(ROOT) not in text


def test_no_licence_conflicts():
    """Each pinned package has a known licence, and one that goes with Apache-2.0."""
    assert licences.conflicts() == []


@pytest.mark.parametrize(
    ("name", "licence", "fits"),
    [
        ("any", "MIT", True),
        ("any", "MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("psycopg", "LGPL-3.0-only", True),
        ("any", "LGPL-3.0-only", False),
        ("any", "MIT AND GPL-3.0-only", False),
        ("any", "AGPL-3.0-or-later", False),
        ("any", None, False),
    ],
)
def test_a_conflict_is_seen(name, licence, fits):
    """Copyleft is refused alone and within an expression, and so is a licence that nobody knows."""
    assert licences.fits(name, licence) == fits


@pytest.mark.parametrize(
    ("headers", "licence"),
    [
        ({"License-Expression": "MIT"}, "MIT"),
        ({"License": "Apache 2.0"}, "Apache-2.0"),
        ({"License": "BSD 3-Clause License\n\nCopyright"}, "BSD-3-Clause"),
        ({"License": "see file", "Classifier": "License :: OSI Approved :: MIT License"}, "MIT"),
        ({"License-Expression": "GPL-3.0-only"}, "GPL-3.0-only"),
        ({"License": "BSD"}, None),
        ({}, None),
    ],
)
def test_a_licence_is_read_from_what_a_package_says(headers, licence):
    """Expression, field, classifier, in this order; words that mean several licences mean none."""
    said = Message()
    for name, value in headers.items():
        said[name] = value
    assert licences.licence_of(SimpleNamespace(name="some-package", metadata=said)) == licence


def test_copyleft_comes_only_with_its_extra():
    """What is under the LGPL is brought by the extra `postgres` and by nothing else a user installs."""
    brought = licences.brought_by()
    for names in licences.ALLOWED_FOR.values():
        assert {brought[name] for name in names} == {"postgres"}


def test_the_page_of_licences_is_fresh():
    """docs/reference/licences.md is what `make licences` would write now."""
    skip_if_older()
    assert (ROOT / "docs" / "reference" / "licences.md").read_text(encoding="utf-8") == licences.page()
