"""Run a command beside busy processes: `python tools/busy.py 6 make test`.

Each busy process keeps one processor at work until the command ends. The exit
status is the command's.
"""

import os
import subprocess
import sys

SPIN = "while True: sum(range(100_000))"


def main() -> int:
    """Start the load, run the command, end the load."""
    count, command = int(sys.argv[1]), sys.argv[2:]
    load = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        print(f"{count} busy processes on {os.cpu_count()} processors", file=sys.stderr)
        return subprocess.run(command, check=False).returncode
    finally:
        for process in load:
            process.kill()


if __name__ == "__main__":
    sys.exit(main())
