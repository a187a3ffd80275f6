"""What the commands print is what they printed before, to the letter, numbers within rounding.

A small simulated cohort with the `hashing` encoder goes through every command
that picks, measures, explains or writes. `TABON_GOLDENS=write` writes the files
of `tests/golden/commands` anew: look at their diff, and say in the changelog
what a user sees of it.
"""

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from commands import finished, one_arithmetic
from explorer_cases import data_of

GOLDEN = Path(__file__).parents[1] / "golden" / "commands"
NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?|-?\d+[eE][-+]?\d+")
MASKS = (  # what may differ between machines: hashes of a bank's bits, places, versions
    (re.compile(r"(bank|weights|calibration)([:\"= ]+)[0-9a-f]{12,64}"), r"\1\2HASH"),
    (re.compile(r"fitted-[0-9a-f]{12}"), "fitted-HASH"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "SHA256"),
    (re.compile(r'"data": "[A-Za-z0-9+/=]+"'), '"data": "BASE64"'),
)
BANK = "--bank bank.tabon --no-store"
SELECTORS = [
    "transition:novelty/min",
    "transition:cost-ot/knn",
    "two-sided",
    "two-sided:knn",
    "report-space",
    "report-space:chamfer/knn",
    "consensus",
    "consensus:rouge-l-f",
    "modex",
    "nearest-prior",
    "nearest-prior:rouge-l-f",
    "next-visit",
    "next-visit:rouge-l-f",
    "longest",
    "shortest",
    "first",
    "random:3",
    "log-probability",
    "fused",
    "fused:fused.json",
    "learnt:learnt.json",
]
SELECT = f"select queries.jsonl {BANK}"
PICKS = "--selections paper=paper.jsonl --selections fused=fused.jsonl"
CASES = {
    **{
        f"select {distance} {how}": f"{SELECT} --distance {distance} --aggregate {how}"
        for distance in ("mean-shift", "novelty", "dir-hausdorff", "cost-ot")
        for how in ("min", "knn")
    },
    **{f"select {selector}": f"{SELECT} --selector {selector}" for selector in SELECTORS},
    "select zero match": f"{SELECT} --zero match",
    "select zero farthest": f"{SELECT} --zero farthest --aggregate knn -k 3",
    "select history": f"select history.jsonl {BANK} --history 0.5",
    "select history fused": f"select history.jsonl {BANK} --history 0.5 --selector fused",
    "select abstain": f"{SELECT} --abstain 0.3",
    "select abstain calibrated": f"{SELECT} --abstain 0.3 --calibration calibration.json",
    "bank info": "bank info bank.tabon",
    "bank verify": "bank verify bank.tabon",
    "explain": f"explain queries.jsonl {BANK}",
    "explain json": f"explain queries.jsonl {BANK} --json --distance cost-ot --aggregate knn",
    "explain fused": f"explain queries.jsonl {BANK} --json --selector fused",
    "flags": "flags queries.jsonl",
    "flags selected": "flags queries.jsonl --selections paper.jsonl",
    "risk": f"risk queries.jsonl {PICKS}",
    "evaluate": f"evaluate queries.jsonl {PICKS} --resamples 200 --headline rouge-l-f,labels-14-micro "
    "--no-measurements --out results.json",
    "table": "table results.json --only findings",
    "table latex": "table results.json --only avg-findings --format latex",
    "table csv": "table results.json --only avg-impression --format csv",
    "controls": f"controls queries.jsonl {BANK} --out controls.json --resamples 200 --shuffles 2 "
    "--selector transition:novelty/min --selector consensus:chamfer --score rouge-l-f --no-measurements "
    "--condition prior --condition section --condition length --condition drafts --condition neighbours",
    "convert query": "convert query --id q1 --prior prior.json --drafts drafts.jsonl --patient p",
    "convert draft": "convert draft queries.jsonl paper.jsonl --id FIRST --about prior.json --same-patient "
    "--to fhir-r4 --out -",
}


class Place:
    """A folder, and the process that runs commands in it."""

    def __init__(self, folder, process):
        """Keep both."""
        self.folder, self._process = folder, process

    def run(self, command):
        """Run a command and return what it printed."""
        return self._process.submit(finished, command).result()

    def done(self, command):
        """Run a command that must succeed."""
        result = self.run(command)
        assert result.exit_code == 0, f"{command}: {result.stderr[-500:]}"

    def write_lines(self, name, records):
        """Write JSON Lines."""
        (self.folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a cohort, a bank, queries, fitted weights, selections and results."""
    folder = tmp_path_factory.mktemp("goldens")
    with one_arithmetic(folder) as process:
        made = Place(folder, process)
        prepare(made)
        yield made


def prepare(place):
    """Write everything that the cases read, with the commands themselves."""
    place.done("simulate --patients 150 --out cohort")
    written = (place.folder / "cohort/test/queries.jsonl").read_text()
    queries = [json.loads(line) for line in written.splitlines()]
    for number, query in enumerate(queries):
        for order, draft in enumerate(query["candidates"]):
            draft["log_probability"] = -float((number * 7 + order * 3) % 11)
    place.write_lines("queries.jsonl", queries)
    after = [*queries[1:], queries[0]]
    several = [
        {**query, "prior": [other["prior"], query["prior"]]}
        for query, other in zip(queries, after, strict=True)
    ]
    place.write_lines("history.jsonl", several)
    place.write_lines("drafts.jsonl", [draft["text"] for draft in queries[0]["candidates"]])
    (place.folder / "prior.json").write_text(json.dumps(diagnostic_report(queries[0]["prior"])))
    (place.folder / "first").write_text(queries[0]["id"])
    place.done("bank build cohort/train/transitions.jsonl --out bank.tabon --encoder hashing --no-store")
    place.done(f"calibrate cohort/valid/queries.jsonl {BANK} --out calibration.json")
    place.done(f"fit cohort/valid/queries.jsonl {BANK} --out fused.json")
    place.done(f"fit cohort/valid/queries.jsonl {BANK} --selector learnt --out learnt.json")
    place.done(f"{SELECT} --out paper.jsonl")
    place.done(f"{SELECT} --selector fused --out fused.jsonl")
    place.done(CASES["evaluate"])


def diagnostic_report(prior):
    """A FHIR report with the text of a simulated prior."""
    return {
        "resourceType": "DiagnosticReport",
        "id": "r1",
        "status": "final",
        "code": {"text": "XR chest"},
        "subject": {"reference": "Patient/p"},
        "effectiveDateTime": "2024-01-02",
        "conclusion": f"FINDINGS: {prior['findings']} IMPRESSION: {prior['impression']}",
    }


@pytest.mark.parametrize("name", CASES)
def test_a_command_prints_what_it_printed(place, name):
    """Standard output, the exit status and the talk on standard error are as committed."""
    result = place.run(CASES[name].replace("FIRST", (place.folder / "first").read_text()))
    found = f"exit {result.exit_code}\n{result.stdout}\n--- standard error\n{result.stderr}"
    check(f"{re.sub('[^a-z0-9]+', '-', name)}.txt", found, place)


def test_files_that_commands_write(place):
    """Results and calibrations hold what they held."""
    for name in ("results.json", "calibration.json", "fused.json", "learnt.json"):
        check(name, json.dumps(json.loads((place.folder / name).read_text()), indent=1), place)


def test_the_page(place):
    """The page of `tabon report` carries the same data."""
    place.done(f"report queries.jsonl {BANK} --html page.html --limit 3")
    check("report.json", json.dumps(data_of((place.folder / "page.html").read_text()), indent=1), place)


def test_the_service(place):
    """The OpenAPI document and the answers of the service and the gateway are as committed."""
    httpx = pytest.importorskip("httpx", reason="the gateway needs tabon[gateway]")
    pytest.importorskip("uvicorn", reason="the service needs tabon[service]")
    from gateway_upstream import Upstream
    from service_server import program

    query = json.loads((place.folder / "queries.jsonl").read_text().splitlines()[0])
    chat = {
        "model": "up-1",
        "messages": [{"role": "user", "content": "Write the report."}],
        "tabon": {"prior": query["prior"]},
    }
    asked = (
        ("openapi", "GET", "/openapi.json", None),
        ("service-bank", "GET", "/v1/bank", None),
        ("service-select", "POST", "/v1/select", query),
        ("service-explain", "POST", "/v1/explain", query),
        ("service-refusal", "POST", "/v1/select", {"id": 1}),
        ("gateway-answer", "POST", "/v1/chat/completions", {**chat, "seed": 0}),
        ("gateway-refusal", "POST", "/v1/chat/completions", {**chat, "tabon": {"prior": 3}}),
    )
    with Upstream(texts=[draft["text"] for draft in query["candidates"]]) as up:
        serve = f"serve --bank {place.folder / 'bank.tabon'} --port 0 --upstream {up.url}"
        command = ("-c", "from tabon.cli import main; main()", *shlex.split(serve))
        with (
            program(command, place.folder) as running,
            httpx.Client(base_url=running.address, timeout=120) as client,
        ):
            for name, method, path, body in asked:
                answer = client.request(method, path, json=body)
                shown = f"status {answer.status_code}\n{json.dumps(answer.json(), indent=1)}"
                check(f"{name}.txt", shown.replace(running.address, "URL"), place)


def check(name, found, place):
    """Compare with the committed file, or write it."""
    found = masked(found.replace(str(place.folder), "PLACE"))
    if os.environ.get("TABON_GOLDENS") == "write":
        (GOLDEN / name).write_text(found)
    wanted = (GOLDEN / name).read_text()
    assert NUMBER.sub("#", found) == NUMBER.sub("#", wanted)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (found, wanted)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-5, abs=2e-6)


def masked(text):
    """Return a text without what may differ between machines."""
    for pattern, instead in MASKS:
        text = pattern.sub(instead, text)
    return text
