"""Tokens, keys and passwords in files."""

import os
from pathlib import Path
from stat import S_IROTH, S_IWOTH

from tabon.errors import BadInputError

LONGEST = 4096  # bytes of a secret


def read_secret(path: Path) -> bytes:
    """Return the beginning of a file that not every user of the machine can read or write.

    Its group may: that is how containers are given secrets.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & (S_IROTH | S_IWOTH):
            raise BadInputError(f"every user of this machine can read or change {path}; run chmod 600 on it")
        return file.read(LONGEST + 1).strip()
