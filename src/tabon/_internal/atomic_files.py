"""Files that cannot be half there: a temporary name, a sync, and one rename.

What is no plain file is never replaced: a link stays and the file it leads to
is replaced; a pipe or a device gets the bytes when all of them are there.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from shutil import copyfileobj
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import IO

from tabon.errors import BadInputError


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write that takes the name `path` when the block ends well.

    Until then, and after a failure or a kill, whatever was at `path` stays.
    """
    path = Path(path)
    try:
        kind, place = _kind(path), path
        while place.is_symlink() and _descriptor(place) is None:
            place = place.parent / place.readlink()
        number = _descriptor(place)
        if number is not None:
            writing = _copied_into(os.dup(number))
        elif kind == stat.S_IFREG:
            writing = _renamed_to(place)
        elif kind in (stat.S_IFIFO, stat.S_IFCHR):
            writing = _copied_into(os.open(path, os.O_WRONLY))
        else:
            raise BadInputError(f"{path} is a folder, a disk or a socket; give the name of a file")
        with writing as file:
            yield file
    except OSError as error:
        raise BadInputError(
            f"cannot write {path} ({error.strerror}); make room or choose another place"
        ) from error


def _kind(path: Path) -> int:
    """Return the type of a file, links followed; a free name is as good as a plain file."""
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except FileNotFoundError:
        return stat.S_IFREG


def _descriptor(path: Path) -> int | None:
    """Return the number of the open file that a path such as /dev/fd/3 stands for."""
    folders = (Path("/dev/fd"), Path("/proc/self/fd").resolve())
    named = path.name.isdecimal() and path.parent.resolve() in folders
    return int(path.name) if named else None


@contextmanager
def _copied_into(descriptor: int) -> Iterator[IO[bytes]]:
    """Give an unnamed file whose bytes go to an open pipe or device when the block ends well."""
    with os.fdopen(descriptor, "wb") as out, TemporaryFile() as file:
        yield file
        file.seek(0)
        copyfileobj(file, out)


@contextmanager
def _renamed_to(path: Path) -> Iterator[IO[bytes]]:
    """Give a file beside `path` that is synced and takes its name when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    with _locked_file(path) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # so that the rename lasts
    finally:
        os.close(folder)


@contextmanager
def _locked_file(path: Path) -> Iterator[IO[bytes]]:
    """Make a file beside `path` and lock it; one that another writer took for a leftover is made again."""
    while True:
        with NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False
        ) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink:  # from here on nobody removes it
                yield file
                return


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of writers that were killed; a living one holds a lock."""
    for leftover in path.parent.glob(f".{escape(path.name)}.*.part"):
        with suppress(OSError), leftover.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leftover.unlink()
