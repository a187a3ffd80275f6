"""Banks that are written over each other, for the tests that kill their writer."""

from pathlib import Path

import numpy as np

from tabon.method.bank_file import bank_file, write_bank_file


def write_generations(path, generation, count):
    """Write some banks over each other; each is filled with its number."""
    for number in range(generation + 1, generation + 1 + count):
        filled = np.full(50_000, number, dtype="<i8")
        write_bank_file(Path(path), bank_file({"generation": number}, {"a": filled, "b": filled}))
