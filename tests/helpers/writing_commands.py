"""Commands that write files, with small inputs: for tests of what may happen to a file meanwhile."""

import json
from pathlib import Path

from click.testing import CliRunner

from tabon.cli import main
from tabon.data.cohort.build import write_simulated
from tabon.data.simulate import SimulationSettings

COMMANDS = {
    "bank build": "bank build {inputs}/train/transitions.jsonl --encoder hashing --no-store "
    "--out {out}/b.tabon",
    "bank index": "bank index {inputs}/bank.tabon --search index:{out}/index",
    "calibrate": "calibrate {inputs}/valid/queries.jsonl --bank {inputs}/bank.tabon --no-store "
    "--out {out}/c.json",
    "cohort": "cohort generic {inputs}/visits.csv --columns patient=PID,date=When,report=Text,view=View "
    "--out {out}",
    "controls": "controls {inputs}/test/queries.jsonl --bank {inputs}/bank.tabon --selector longest "
    "--condition prior --resamples 20 --shuffles 1 --no-store --no-measurements --out {out}/controls.json",
    "convert": "convert draft {inputs}/test/queries.jsonl {inputs}/selections.jsonl --id {id} "
    "--about {inputs}/about.json --same-patient --to fhir-r4 --out {out}/d.json",
    "evaluate": "evaluate {inputs}/test/queries.jsonl --selections {inputs}/selections.jsonl --metrics rouge "
    "--resamples 20 --no-measurements --out {out}/results.json",
    "explain": "explain {inputs}/test/queries.jsonl --bank {inputs}/bank.tabon --no-store "
    "--html {out}/e.html",
    "fit": "fit {inputs}/valid/queries.jsonl --bank {inputs}/bank.tabon --no-store --out {out}/weights.json",
    "report": "report {inputs}/test/queries.jsonl --bank {inputs}/bank.tabon --no-store --html {out}/r.html",
    "risk": "risk {inputs}/test/queries.jsonl --selections {inputs}/selections.jsonl --figure {out}/risk.svg",
    "select": "select {inputs}/test/queries.jsonl --bank {inputs}/bank.tabon --no-store --out {out}/s.jsonl",
    "simulate": "simulate --patients 30 --out {out}",
    "table": "table {inputs}/results.json --out {out}",
}  # fmt: skip
SEVERAL_FILES = {"bank index", "cohort", "simulate", "table"}


def make_inputs(folder):
    """Write what the commands read."""
    folder = Path(folder)
    write_simulated(folder, SimulationSettings(patients=80, num_candidates=3))
    rows = (
        f"p{patient},2020-0{visit}-01,FINDINGS: Edema {patient} {visit}. IMPRESSION: Edema.,PA"
        for patient in range(20)
        for visit in (1, 2, 3)
    )
    (folder / "visits.csv").write_text("\n".join(["PID,When,Text,View", *rows]), encoding="utf-8")
    about = {"resourceType": "DiagnosticReport", "id": "a", "status": "final", "code": {"text": "Chest"}}
    about["subject"] = {"reference": "Patient/7"}
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
    for name, made in (("bank build", "b.tabon"), ("select", "s.jsonl"), ("evaluate", "results.json")):
        run(name, folder, folder)
        if made != "results.json":
            (folder / made).rename(folder / {"b.tabon": "bank.tabon", "s.jsonl": "selections.jsonl"}[made])


def arguments(name, inputs, out):
    """Return the command line of a command."""
    first = inputs / "selections.jsonl"
    identity = json.loads(first.read_text().splitlines()[0])["id"] if first.exists() else ""
    return [word.format(inputs=inputs, out=out, id=identity) for word in COMMANDS[name].split()]


def run(name, inputs, out):
    """Run a command in this process; it must go well."""
    result = CliRunner().invoke(main, arguments(name, inputs, out))
    assert result.exit_code == 0, (name, result.output)
    return result


def written(folder):
    """Return the files below a folder with their bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() or path.is_symlink()
    }
