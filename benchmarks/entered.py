"""How much of tabon one query goes through: files and functions entered, splits and embeddings.

    python benchmarks/entered.py [--list]

Counted with `sys.setprofile` for one query of the simulated cohort with the `hashing` encoder. Opening the
bank counts too, imports do not: the same command ran before. Aims: `select` 18 files, 110 functions, fused 32
and 200, one study through `report` 36 and 240, each text split once and embedded once.
`--list` names the functions, file by file.
"""

import json
import sys
import threading
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from click.testing import CliRunner

import tabon
from tabon.cli import main
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.text.sentences import split_sentences

ROOT = str(Path(tabon.__file__).parent)
SETTINGS = SimulationSettings(patients=60)
COMMANDS = {
    "select": ("select", "--selector", "paper"),
    "select, fused": ("select", "--selector", "fused"),
    "report, one study": ("report", "--html", "{folder}/page.html"),
    "explain": ("explain", "--json"),
}


def entered(words: list[str]) -> Counter[tuple[str, str]]:
    """Run a command twice and return what the second run called: (file, function) and how often."""
    seen: Counter[tuple[str, str]] = Counter()

    def look(frame: FrameType, event: str, _: object) -> None:
        """Count a call of ours; comprehensions belong to the function around them."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and not code.co_name.startswith("<"):
            seen[code.co_filename, code.co_qualname] += 1

    for watched in (False, True):
        if watched:
            threading.setprofile(look)
            sys.setprofile(look)
        split_sentences.cache_clear()
        run = CliRunner().invoke(main, words)
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        if run.exit_code:
            raise SystemExit(run.output)
    return seen


def main_table() -> None:
    """Print one row per command."""
    print("| command | files | functions | calls | splits | embeddings |")
    print("|---|---|---|---|---|---|")
    with TemporaryDirectory() as folder:
        place = Path(folder)
        for name, records in (
            ("transitions", simulate_transitions(SETTINGS, "train")),
            ("queries", [next(simulate_queries(SETTINGS, "test"))]),
        ):
            lines = "".join(json.dumps(record) + "\n" for record in records)
            (place / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        bank = ["--out", str(place / "bank.tabon"), "--encoder", "hashing", "--no-store"]
        CliRunner().invoke(main, ["bank", "build", str(place / "transitions.jsonl"), *bank])
        for title, (command, *options) in COMMANDS.items():
            words = [command, str(place / "queries.jsonl"), "--bank", str(place / "bank.tabon"), "--no-store"]
            seen = entered([*words, *(option.format(folder=folder) for option in options)])
            files = {file for file, _ in seen}
            splits = sum(count for (_, name), count in seen.items() if name == "split_sentences")
            embeds = sum(
                count for (_, function), count in seen.items() if function == "HashingEncoder.encode"
            )
            if "--list" in sys.argv:
                for file in sorted(files):
                    names = sorted(name for place, name in seen if place == file)
                    print(f"{title}: {Path(file).relative_to(ROOT)} ({len(names)}): {', '.join(names)}")
            print(f"| {title} | {len(files)} | {len(seen)} | {seen.total()} | {splits} | {embeds} |")


if __name__ == "__main__":
    main_table()
