"""The explorer's page in a browser: how soon 2,000 studies are seen, and how evenly their list scrolls.

    python benchmarks/explorer_page.py            2,000 studies of 16 drafts, three minutes
    python benchmarks/explorer_page.py --quick    40 studies: shows that it runs

Times are those of the browser's own tracing: from the start of the navigation to the first frame with rows,
and between the frames that were drawn while a wheel scrolls. Debian's Chromium, without a screen or a GPU.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from socket import create_server
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np

from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.method.bank import TransitionBank
from tabon.selectors.setup import SelectionSettings
from tabon.service.explorer.export import overview_record, page_parts, read_page, study_record
from tabon.service.explorer.scores import score_named
from tabon.service.explorer.studies import ExplorerSettings, Studies, explorer_of
from tabon.text.records import query_from_record, transition_from_record
from timing import Line, faster, share

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
COHORT = SimulationSettings(patients=400, num_candidates=16)
DISTINCT = 60  # studies that are worked out; the others are these again, under another number
SCREEN = {"width": 1440, "height": 900}
CATEGORIES = [
    "devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
    "blink.user_timing",
    "loading",
]
SEEN = """new MutationObserver((_, watching) => {
  if (!document.querySelector("#studies a.row")) return;
  watching.disconnect();
  performance.mark("rows");
}).observe(document, { childList: true, subtree: true });"""
SPEED, SECONDS = 2400, 8  # pixels a second, and how long


def page_lines(*, quick: bool) -> Iterator[Line]:
    """Measure the page as one file, and served."""
    from playwright.sync_api import sync_playwright

    count, repetitions = (40, 1) if quick else (2000, 5)
    with TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        file = write_file(folder / "report.html", made(), count)
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        what = f"{count:,} studies × 16 drafts"
        opened = best(browser, file.as_uri(), repetitions)
        size = f"{file.stat().st_size / 1e6:.0f} MB"
        yield share(f"{what}, one file of {size}: the list is seen, seconds", opened, 1.0, "1 s", "≤ 1")
        with served(folder, count) as address:
            opened = best(browser, address, repetitions)
            yield share(f"{what}, served: the list is seen, seconds", opened, 1.0, "1 s", "≤ 1")
        seconds = 2 if quick else SECONDS
        drawn, late, rows = min(scrolled(browser, file.as_uri(), seconds) for _ in range(repetitions))
        yield faster(
            f"{what}: a frame while the list scrolls, seconds; {rows} rows drawn",
            drawn,
            0.02,
            "50 frames a second",
            "≥ 1",
        )
        yield share(f"{what}: share of these frames later than 1/50 s", late, 0.05, "1 in 20", "≤ 1")
        browser.close()


def made() -> Studies:
    """Return some studies of 16 drafts under two selectors."""
    bank = TransitionBank.build(
        map(transition_from_record, simulate_transitions(COHORT, "train")), encoder="hashing"
    )
    queries = [query_from_record(record) for record in islice(simulate_queries(COHORT, "test"), DISTINCT)]
    shown = ExplorerSettings(title="2,000 studies", score=score_named("rouge-l-f"))
    return explorer_of(
        bank, SelectionSettings(encoder="hashing"), queries, shown, beside="consensus:rouge-l-f"
    )


def write_file(path: Path, studies: Studies, count: int) -> Path:
    """Write a page of so many studies; each of those that were worked out comes again and again."""
    overview = overview_record(studies)
    records = [study_record(study, None) for study in studies.all()]

    def again(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for number, record in enumerate(islice(cycle(found), count)):
            yield {**record, "number": number, "id": f"study-{number:05d}"}

    overview["studies"] = list(again(overview["studies"]))
    with path.open("w", encoding="utf-8") as file:
        file.writelines(page_parts(read_page(), overview, again(records)))
    return path


@contextmanager
def served(folder: Path, count: int) -> Iterator[str]:
    """Serve so many queries by the command, and yield the address once it answers."""
    bank, queries = folder / "bank.tabon", folder / "queries.jsonl"
    transitions = map(transition_from_record, simulate_transitions(COHORT, "train"))
    TransitionBank.build(transitions, encoder="hashing").save(bank)
    found = list(islice(simulate_queries(COHORT, "test"), DISTINCT))
    lines = (
        {**record, "id": f"study-{number:05d}"} for number, record in enumerate(islice(cycle(found), count))
    )
    queries.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["serve", "--bank", bank, "--queries", queries, "--encoder", "hashing", "--port", str(port)]
    command = [sys.executable, "-c", "from tabon.cli import main; main()", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:  # noqa: S603
        try:
            for line in service.stderr or ():
                if "running on" in line:
                    break
            yield f"http://127.0.0.1:{port}/"
        finally:
            service.terminate()
            service.communicate()


def best(browser: Any, address: str, repetitions: int) -> float:  # noqa: ANN401
    """Return the least time in which the list was seen, each time in a fresh profile."""
    return min(seconds_to_list(browser, address) for _ in range(repetitions))


def seconds_to_list(browser: Any, address: str) -> float:  # noqa: ANN401
    """Return the seconds from the start of the navigation to the first frame with rows."""
    with traced(browser) as (page, events):
        page.goto(address, wait_until="commit")
        page.wait_for_selector("#studies a.row")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    [start] = [one["ts"] for one in events if one["name"] == "navigationStart" and _address(one) == address]
    rows = next(one["ts"] for one in events if one["name"] == "rows")
    frame = min(one["ts"] for one in events if one["name"] == "DrawFrame" and one["ts"] > rows)
    return (frame - start) / 1e6


def _address(event: dict[str, Any]) -> str:
    """Return what a navigation leads to."""
    return str(event["args"]["data"].get("documentLoaderURL", ""))


def scrolled(browser: Any, address: str, seconds: float) -> tuple[float, float, int]:  # noqa: ANN401
    """Return the mean time of a frame while the list scrolls, the share of late ones, and the rows drawn."""
    with traced(browser) as (page, events):
        page.goto(address)
        page.wait_for_selector("#studies a.row")
        gesture = {
            "x": 900, "y": 600, "yDistance": -SPEED * seconds, "speed": SPEED, "gestureSourceType": "mouse",
        }  # fmt: skip
        page.evaluate("() => performance.mark('from')")
        page.context.new_cdp_session(page).send("Input.synthesizeScrollGesture", gesture)
        page.evaluate("() => performance.mark('to')")
        rows = page.locator("#studies a.row").count()
    ends = {one["name"]: one["ts"] for one in events if one["name"] in ("from", "to")}
    drawn = sorted(
        one["ts"] for one in events if one["name"] == "DrawFrame" and ends["from"] < one["ts"] < ends["to"]
    )
    apart = np.diff(np.array(drawn)) / 1e6
    return float(apart.mean()), float((apart > 1.5 / 50).mean()), rows


@contextmanager
def traced(browser: Any) -> Iterator[tuple[Any, list[dict[str, Any]]]]:  # noqa: ANN401
    """Yield a page in a fresh profile, and a list that holds the events of its trace in the end."""
    context = browser.new_context(viewport=SCREEN)
    page, events = context.new_page(), []
    page.add_init_script(SEEN)
    browser.start_tracing(page=page, categories=CATEGORIES)
    yield page, events
    events += json.loads(browser.stop_tracing())["traceEvents"]
    context.close()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few studies: shows that it runs")
    print("| what | ours | other | against | ratio | goal |\n|---|---|---|---|---|---|")
    for line in page_lines(quick=parser.parse_args().quick):
        print(line, flush=True)


if __name__ == "__main__":
    main()
