"""Print the size of this environment's packages; fail where the light one is too large or has torch in it."""

import sys
import sysconfig
from collections import Counter
from pathlib import Path

MOST = 450  # MB of 10⁶ bytes
NAMED = 5


def sizes(folder: Path) -> Counter[str]:
    """Return the bytes of each entry of a folder, with what is below it."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    found: Counter[str] = Counter()
    for path in files:
        found[path.relative_to(folder).parts[0]] += path.stat().st_size
    return found


def main(folder: Path) -> int:
    """Print the sum and the largest parts; return 1 where the environment is not light."""
    found = sizes(folder)
    total = round(found.total() / 1e6)
    largest = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in found.most_common(NAMED))
    print(f"site-packages: {total} MB of at most {MOST} ({largest})")
    if "torch" in found:
        print("torch is in it: something in locks/light.txt or in the extras asks for it")
    return int(total > MOST or "torch" in found)


if __name__ == "__main__":
    sys.exit(main(Path(sysconfig.get_path("purelib"))))
