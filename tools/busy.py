"""Run a command beside busy processes: `python tools/busy.py 6 make test`.

Each busy process keeps one processor at work until the command ends. They are in
one session of their own, as the work of another user is. The exit status is the
command's.
"""

import os
import signal
import subprocess
import sys

SPIN = "while True: sum(range(100_000))"
LOAD = "for _ in range({count}): os.fork() or exec(SPIN)"  # each fork but the first process spins


def main() -> int:
    """Start the load, run the command, end the load."""
    count, command = int(sys.argv[1]), sys.argv[2:]
    program = f"import os; SPIN = {SPIN!r}\n{LOAD.format(count=count - 1)}\nexec(SPIN)"
    load = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    try:
        print(f"{count} busy processes on {os.cpu_count()} processors", file=sys.stderr)
        return subprocess.run(command, check=False).returncode
    finally:
        os.killpg(load.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
