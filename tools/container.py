"""Run compose.yaml without a container engine: the steps of each Containerfile in an empty Debian root.

debootstrap makes the root that FROM names. pip takes the files of locks/ from a folder, since only this
machine knows how to reach an index; their hashes are checked again inside. Then the services of
compose.yaml are started in a network of their own, and asked by their health checks until they are ready.
Needs root, debootstrap, unshare and ip.
"""

import ctypes
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import yaml
from packages import ROOT

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FOR_STEPS = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/mnt", "DEBIAN_FRONTEND": "noninteractive"}
DATA = (  # what docs/guide/container.md puts into the folder, here from a simulated cohort
    "tabon simulate --out cohort --patients 60",
    "tabon bank build cohort/train/transitions.jsonl --out bank.tabon",
    "cp cohort/test/queries.jsonl queries.jsonl",
    "umask 077; python -c 'import secrets; print(secrets.token_hex())' > token",
)
READY_WITHIN = 120.0  # seconds
NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def run(*command: str | Path) -> None:
    """Run a program of this machine."""
    subprocess.run(command, check=True)


def megabytes(root: Path) -> int:
    """Return the size of a root without what is mounted in it."""
    command = ("du", "-sx", "--block-size=1000000", root)
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.split()[0])


@dataclass(slots=True)
class Image:
    """A root, and what the steps so far have set."""

    root: Path
    context: Path
    variables: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    settings: dict[str, str] = field(default_factory=lambda: {"WORKDIR": "/", "USER": "0:0"})

    @property
    def folder(self) -> Path:
        """The working folder, seen from outside."""
        return self.root / self.settings["WORKDIR"].lstrip("/")

    def command(self, *words: str, **lent: str) -> list[str]:
        """Return how these words are run in the root."""
        variables = [f"{name}={value}" for name, value in (self.variables | lent).items()]
        inside = ["sh", "-c", 'cd "$0" && exec "$@"', self.settings["WORKDIR"], *words]
        user = f"--userspec={self.settings['USER']}"
        return ["chroot", user, str(self.root), "env", "-i", *variables, *inside]

    def apply(self, instruction: str, arguments: str) -> None:
        """Do what an engine does for one instruction."""
        match instruction:
            case "RUN":
                run(*self.command("sh", "-c", arguments, **FOR_STEPS))
            case "COPY":
                *sources, target = arguments.split()
                self.copy(sources, target)
            case "ENV":
                name, value = arguments.split("=", 1)
                self.variables[name] = Template(value).substitute(self.variables)
            case "FROM" | "WORKDIR" | "USER" | "EXPOSE" | "ENTRYPOINT" | "CMD":
                self.settings[instruction] = arguments
                self.folder.mkdir(parents=True, exist_ok=True)
            case _:
                raise ValueError(f"this script does not know {instruction}")

    def copy(self, sources: list[str], target: str) -> None:
        """Copy files, or the content of folders."""
        for source in sources:
            there = self.folder / target.lstrip("/") if target[0] != "/" else self.root / target.lstrip("/")
            there.parent.mkdir(parents=True, exist_ok=True)
            if (self.context / source).is_dir():
                shutil.copytree(self.context / source, there, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(self.context / source, there)


def steps(containerfile: Path) -> Iterator[tuple[str, str]]:
    """Give each instruction and its arguments."""
    for line in containerfile.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            instruction, arguments = line.split(maxsplit=1)
            yield instruction, arguments


def built(name: str, service: dict[str, Any], scratch: Path) -> Image:
    """Run the steps of a service's Containerfile, and print what came out."""
    start, root = monotonic(), scratch / name
    run("cp", "-a", scratch / "debian", root)
    run("mount", "-t", "proc", "proc", root / "proc")
    run("mount", "--bind", scratch / "wheels", root / "mnt")
    image = Image(root, ROOT / service["build"]["context"])
    for instruction, arguments in steps(image.context / service["build"]["dockerfile"]):
        print(f"{name}: {instruction} {' '.join(arguments.split())[:80]}", flush=True)
        image.apply(instruction, arguments)
    run("umount", root / "mnt")
    base = megabytes(scratch / "debian")
    print(f"{name}: {megabytes(root)} MB, {base} of it Debian, in {monotonic() - start:.0f} s", flush=True)
    return image


def ready(image: Image, check: list[str]) -> float:
    """Return the seconds until a health check passes."""
    start = monotonic()
    while monotonic() - start < READY_WITHIN:
        done = subprocess.run(image.command(*check), capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return monotonic() - start
        sleep(0.2)
    raise TimeoutError(f"{image.root.name} is not ready after {READY_WITHIN:.0f} s: {done.stderr[-500:]}")


def inside(scratch: Path) -> None:
    """Build and start every service of compose.yaml, with one folder for all of them."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    images = {name: built(name, service, scratch) for name, service in services.items()}
    data, maker = scratch / "data", images["tabon"]
    data.mkdir()
    run("chown", maker.settings["USER"], data)
    for image in images.values():
        run("mount", "--bind", data, image.root / "data")
    for command in DATA:
        run(*maker.command("sh", "-c", command))
    ctypes.CDLL(None).unshare(NEW_NETWORK)
    run("ip", "link", "set", "lo", "up")
    for name, service in services.items():
        words = json.loads(images[name].settings["ENTRYPOINT"]) + service.get("command", [])
        subprocess.Popen(images[name].command(*words))
        seconds = ready(images[name], service["healthcheck"]["test"][1:])
        print(f"{name}: ready after {seconds:.1f} s", flush=True)


def outside(scratch: Path) -> None:
    """Fetch what the steps need, then go on where mounts and processes end with the run."""
    run("debootstrap", "--variant=minbase", "bookworm", scratch / "debian")
    policy = scratch / "debian" / "usr" / "sbin" / "policy-rc.d"  # as in images: packages start no service
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    locks = [f"--requirement={ROOT / 'locks' / name}" for name in ("build.txt", "light.txt")]
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps")
    run(*pip, "--no-build-isolation", f"--dest={scratch / 'wheels'}", *locks)
    namespaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
    run(*namespaces, sys.executable, __file__, scratch)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        inside(Path(sys.argv[1]))
    else:
        with TemporaryDirectory() as folder:
            outside(Path(folder))
