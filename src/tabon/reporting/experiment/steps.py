"""Which step made which file from what: a step whose inputs are the same is not run again."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from tabon._internal.atomic_files import replacing

BLOCK = 1 << 20


class Steps:
    """A ledger of made files beside them."""

    def __init__(
        self, folder: Path, *, total: int = 0, on_progress: Callable[[str], None] = lambda _: None
    ) -> None:
        """Read the ledger; one that cannot be read only means that steps run again.

        `on_progress` is called with each step that runs, and its number of `total`.
        """
        self._total, self._on_progress = total, on_progress
        self._done = self._skipped = 0
        self._path = folder / "steps.json"
        self._folder = folder
        try:
            self._made: dict[str, str] = dict(json.loads(self._path.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError):
            self._made = {}

    def make(self, output: Path, inputs: object, work: Callable[[], None]) -> bool:
        """Run `work` unless it made `output` from the same inputs before; say whether it ran."""
        name = output.relative_to(self._folder).as_posix()
        key = sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()
        if self._made.get(name) == self._stamp(output, key):
            self._skipped += 1
            return False
        self._done += 1
        skipped = f", {self._skipped} skipped" if self._skipped else ""
        self._on_progress(f"step {self._done + self._skipped} of {self._total}{skipped}: {name}")
        work()
        self._made[name] = self._stamp(output, key)
        with replacing(self._path) as file:
            file.write(json.dumps(self._made, indent=1, sort_keys=True).encode() + b"\n")
        return True

    @staticmethod
    def _stamp(output: Path, key: str) -> str:
        """Return what the ledger holds: the inputs and the bytes that came out."""
        return f"{key}:{file_digest(output)}" if output.exists() else ""


def file_digest(path: Path) -> str:
    """Return the sha256 of a file."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
