"""Files that cannot be half there: a temporary name, a sync, and one rename."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from tabon.errors import BadInputError


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write that takes the name `path` when the block ends well.

    Until then, and after a failure or a kill, whatever was at `path` stays.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path)
        with NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False
        ) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with _removed_on_failure(Path(file.name)):
                yield file
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise BadInputError(
            f"cannot write {path} ({error.strerror}); make room or choose another place"
        ) from error


@contextmanager
def _removed_on_failure(path: Path) -> Iterator[None]:
    """Remove a file when the block ends in an exception."""
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of writers that were killed; a living one holds a lock."""
    for leftover in path.parent.glob(f".{path.name}.*.part"):
        with suppress(OSError), leftover.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leftover.unlink()


def _sync_folder(folder: Path) -> None:
    """Make a rename in this folder last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
