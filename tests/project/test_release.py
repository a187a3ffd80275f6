"""What is published, installed and put into images: built here, and looked into."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from tabon.cli import main

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "tools"), str(ROOT)]

import container  # noqa: E402
import lock  # noqa: E402
import packages  # noqa: E402
import size  # noqa: E402
from hatch_build import readme  # noqa: E402

WEIGHTS = ROOT / "packages" / "tabon-minilm"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
UPLOAD_LIMIT = 100_000_000  # bytes of one file on an index


def run(*command, cwd=ROOT, check=True):
    """Run a command without what this environment lends to Python."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, cwd=cwd, env=own, capture_output=True, text=True, check=check)


def build(source, out, *, check=True):
    """Build a wheel."""
    hatch = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out)
    return run(*hatch, cwd=source, check=check)


def metadata(wheel) -> Message:
    """Return what a wheel says of itself."""
    with ZipFile(wheel) as file:
        return message_from_bytes(
            file.read(next(name for name in file.namelist() if name.endswith("METADATA")))
        )


def test_the_wheel_says_who_made_it_and_links_nowhere_wrong(tmp_path):
    """Authors are those of CITATION.cff, no link of README is relative, no address is made up."""
    build(ROOT, tmp_path)
    said = metadata(next(tmp_path.iterdir()))
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert said["Author"] == ", ".join(author["name"] for author in citation["authors"])
    assert said["License-Expression"] == citation["license"]
    assert said.get_all("Project-URL") is None  # until the owner names the repository
    text = said.get_payload()
    assert "## Install" in text
    assert [link for link in re.findall(r"\]\((.*?)\)", text) if not link.startswith("https://")] == []


def test_links_are_written_in_full_where_the_repository_is_known():
    """A relative link becomes a link to the repository or plain words; others stay."""
    text = "[a](docs/a.md#b), [c](https://c.org), [d](#d)"
    assert readme(text, "") == "a, [c](https://c.org), [d](#d)"
    there = "https://host/owner/tabon"
    assert readme(text, there) == f"[a]({there}/blob/HEAD/docs/a.md#b), [c](https://c.org), [d](#d)"


def test_the_hint_to_install_an_extra_works_unpublished():
    """To `pip install 'tabon[extra]'` the tabon that is installed is enough: no index is asked for it."""
    pip = (sys.executable, "-m", "pip", "install", "--isolated", "--no-index", "--dry-run", "tabon[service]")
    assert "Requirement already satisfied: tabon[service]" in run(*pip).stdout


def test_the_weights_wheel_holds_the_verified_bytes(tmp_path):
    """Each file has its sha256, nothing else is there but the module that finds them, an index takes it."""
    build(WEIGHTS, tmp_path)
    wheel = next(tmp_path.iterdir())
    known = dict(line.split("  ")[::-1] for line in (WEIGHTS / "files.sha256").read_text().splitlines())
    with ZipFile(wheel) as file:
        found = {name: file.read(name) for name in file.namelist() if ".dist-info/" not in name}
    model = "tabon_minilm/model/"
    assert found.keys() == {f"{model}{name}" for name in known} | {"tabon_minilm/__init__.py"}
    assert {name: hashlib.sha256(found[f"{model}{name}"]).hexdigest() for name in known} == known
    assert wheel.stat().st_size < UPLOAD_LIMIT
    assert metadata(wheel).get_all("Requires-Dist") is None


def test_the_weights_are_those_that_the_encoder_knows():
    """files.sha256 and the encoder name the same weights."""
    from tabon.encoders.load import MINILM_WEIGHTS

    assert f"{MINILM_WEIGHTS}  model.safetensors\n" in (WEIGHTS / "files.sha256").read_text()


def test_other_bytes_make_no_weights_wheel(tmp_path):
    """A file with another sha256 is refused by its name."""
    shutil.copytree(WEIGHTS, tmp_path / "package")
    sums = tmp_path / "package" / "files.sha256"
    sums.write_text(re.sub(r"^\w+  vocab", f"{'0' * 64}  vocab", sums.read_text(), flags=re.MULTILINE))
    done = build(tmp_path / "package", tmp_path / "out", check=False)
    assert done.returncode == 1
    assert "vocab.txt has another sha256 than files.sha256 names" in done.stderr


@pytest.mark.parametrize(
    ("name", "length", "status"), [("numpy", 449_000_000, 0), ("numpy", 451_000_000, 1), ("torch", 1, 1)]
)
def test_an_environment_that_is_not_light_fails(tmp_path, capsys, name, length, status):
    """450 MB are allowed, torch is not."""
    (tmp_path / name).mkdir()
    with (tmp_path / name / "data.bin").open("wb") as file:
        file.truncate(length)
    assert size.main(tmp_path) == status
    assert f"{length / 1e6:.0f} MB of at most 450" in capsys.readouterr().out


def test_the_light_lock_is_what_its_extras_need():
    """locks/light.txt holds what `minilm`, `metrics` and `service` bring, the weights, and no torch."""
    named = (line.partition("==")[0] for line in (ROOT / "locks/light.txt").read_text().splitlines()[1:])
    names = set(map(packages.normal, named))
    assert not names & {"torch", "transformers", "sentence-transformers"}
    if missing := names - packages.installed().keys():
        pytest.skip(f"run `make setup`: {', '.join(sorted(missing))} not installed")
    needed = packages.closure(packages.installed()["tabon"], lock.LIGHT) | {lock.WEIGHTS}
    assert names == needed - lock.BUILD


@pytest.mark.parametrize("name", COMPOSE)
def test_a_containerfile_starts_from_debian_and_copies_what_is_there(name):
    """The base is the one that debootstrap makes; what is copied exists; no step runs the service as root."""
    context = ROOT / COMPOSE[name]["build"]["context"]
    steps = list(container.steps(context / COMPOSE[name]["build"]["dockerfile"]))
    assert steps[0] == ("FROM", "docker.io/library/debian:bookworm-slim")
    assert ("USER", "1000:1000") in steps
    copied = [word for step, words in steps if step == "COPY" for word in words.split()[:-1]]
    assert [word for word in copied if not (context / word).exists()] == []


def test_the_composed_command_is_a_command(tmp_path, monkeypatch):
    """compose.yaml starts `tabon serve` with options that it has, beyond loopback only with a token."""
    monkeypatch.chdir(tmp_path)
    for file in ("queries.jsonl", "bank.tabon", "token"):
        Path(file).touch()
    word, *arguments = COMPOSE["tabon"]["command"]
    with main.get_command(None, word).make_context(word, arguments) as context:
        assert context.params["host"] == "0.0.0.0"  # noqa: S104  # the container's own network
        assert context.params["token_file"] == Path("token")
    assert all(port.startswith("127.0.0.1:") for service in COMPOSE.values() for port in service["ports"])


def test_hooks_before_a_commit_need_no_network():
    """.pre-commit-config.yaml runs the programs of `make check` from .venv, and fetches nothing."""
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    checked = (ROOT / "Makefile").read_text().replace("$(BIN)", ".venv/bin")
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        assert f"\t{hook['entry']}" in checked


@pytest.mark.heavy
def test_what_is_published_works_from_an_empty_environment(tmp_path):
    """All files pass `twine check`; the wheel alone, in an empty environment, runs the demo."""
    done = run(sys.executable, ROOT / "tools/release.py", "--out", tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("PASSED") == 3
    assert "oracle" in done.stdout


@pytest.mark.heavy
def test_a_clean_clone_runs_its_demo(tmp_path):
    """`make demo` does all of its own set-up, stays under its size, ends with its table, runs notebooks."""
    for name in run("git", "ls-files").stdout.splitlines():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name, follow_symlinks=False)
    done = run("make", "demo", f"PYTHON={sys.executable}", cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"site-packages: \d+ MB of at most 450", done.stdout)
    assert re.search(r"^oracle", done.stdout, flags=re.MULTILINE)
    for name in ("own_drafts", "service"):
        run(tmp_path / ".venv-light/bin/python", ROOT / f"examples/notebooks/{name}.py", cwd=tmp_path)


@pytest.mark.heavy
def test_the_demo_and_the_guide_print_what_the_pages_show(tmp_path):
    """README's table of the demo, and the table that the guide to evaluation shows of its fourth command."""
    tabon = Path(sys.executable).with_name("tabon")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert run(tabon, "demo", cwd=tmp_path).stdout.partition("\n\nBetween")[0] in readme
    guide = (ROOT / "docs" / "guide" / "evaluation.md").read_text(encoding="utf-8")
    _, block, shown = guide[guide.index("## Step by step") :].split("```", maxsplit=2)
    for line in re.findall(r"^\$ tabon (.+)$", block, flags=re.MULTILINE)[:4]:
        done = run(tabon, *shlex.split(line), cwd=tmp_path)
    plain = [
        [re.sub(r"</?sub>|[* ]", "", row) for row in text.splitlines() if row.startswith("| ")]
        for text in (shown, done.stdout)
    ]
    assert plain[0][1:7] == plain[1][2:8]  # below the heads


@pytest.mark.heavy
def test_the_images_steps_lead_to_a_ready_service():
    """From an empty Debian root to a `/readyz` that says ready, and an archive that asks for a password."""
    if os.geteuid():
        pytest.skip("only root may change the root of a process")
    for program, package in {"debootstrap": "debootstrap", "ip": "iproute2"}.items():
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing: apt-get install {package}")
    done = run(sys.executable, ROOT / "tools/container.py", check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.findall(r"^(\w+): ready after", done.stdout, flags=re.MULTILINE) == ["tabon", "orthanc"]
    assert re.search(r"^tabon: \d+ MB, \d+ of it Debian", done.stdout, flags=re.MULTILINE)
