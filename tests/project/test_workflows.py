"""The public CI: workflows that hold no step of their own and no secret, read by a linter."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
WORDS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
ZIZMOR = Path(sys.executable).with_name("zizmor")


def jobs(path):
    """Return the jobs of a workflow by name."""
    return yaml.safe_load(path.read_text())["jobs"]


def lint(folder):
    """Run the linter with its strictest eyes, without a network."""
    if not ZIZMOR.exists():
        pytest.skip("run `make setup`: zizmor not installed")
    command = [ZIZMOR, "--offline", "--persona=auditor", "--strict-collection", "--no-progress", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_linter_finds_nothing():
    """No injection, no token left behind, no right that is not needed, no action that can change."""
    done = lint(ROOT / ".github")
    assert done.returncode == 0, done.stdout
    assert "No findings" in done.stdout + done.stderr


def test_the_linter_would_find_a_movable_action(tmp_path):
    """An action that is pinned by a tag, as its owner may move it, fails the lint."""
    (tmp_path / ".github/workflows").mkdir(parents=True)
    text = re.sub(r"@[0-9a-f]{40} # (v[\d.]+)", r"@\1", (ROOT / ".github/workflows/ci.yml").read_text())
    (tmp_path / ".github/workflows/ci.yml").write_text(text)
    done = lint(tmp_path)
    assert done.returncode != 0
    assert "unpinned-uses" in done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_step_is_a_word_of_the_makefile(path):
    """Each command is `make WORD`, with a variable at most; all else is a pinned action with its version."""
    for job in jobs(path).values():
        for step in job["steps"]:
            if "run" in step:
                word = re.fullmatch(r"make ([a-z-]+)(?: [A-Z]+=\w+)?", step["run"])
                assert word, step
                assert word[1] in WORDS
    for line in re.findall(r"uses: (.*)", path.read_text()):
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_workflow_needs_a_secret(path):
    """None is named; a job reads the code, and only the one that publishes may say who it is."""
    text = path.read_text()
    assert not re.search(r"secrets\.|password|token:(?! write)", text)
    assert yaml.safe_load(text)["permissions"] == {}
    for name, job in jobs(path).items():
        assert job["permissions"] == ({"id-token": "write"} if name == "publish" else {"contents": "read"})


def test_every_python_that_is_promised_is_tried():
    """The matrix is the list of Pythons in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert jobs(ROOT / ".github/workflows/ci.yml")["light"]["strategy"]["matrix"]["python"] == promised
