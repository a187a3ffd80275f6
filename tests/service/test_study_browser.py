"""A reader study in a real browser with a real server: by keyboard alone, nothing lost, nothing doubled."""

import json
import re

import pytest

from browser import CONTRAST, HOSTILE, NAMELESS, ODD_ELEMENTS, chromium, opened, settle, sideways
from commands import tabon
from study_cases import SELECTORS, records, write_study
from study_server import killable, study_service
from tabon.service.study.export import write_export
from tabon.study.answers import read_answers
from tabon.study.folder import read_key, read_reader, read_study

WIDE, PHONE = (1440, 900), (390, 844)
NO_CONNECTION = "Failed to load resource"


@pytest.fixture(scope="module")
def browser():
    """One browser for the whole file."""
    with chromium() as started:
        yield started


@pytest.fixture
def folder(tmp_path):
    """Where the study is."""
    return tmp_path / "study"


def enter(page, token):
    """Give the token and begin, by keyboard."""
    page.wait_for_selector("#token:not([hidden])")
    page.keyboard.type(token)
    page.keyboard.press("Enter")
    begin(page)


def begin(page):
    """Leave the first panel, by keyboard."""
    page.wait_for_selector("#rest:not([hidden])")
    page.keyboard.press("Enter")


def case(page):
    """Return the number of the case on the screen, once there is one."""
    page.wait_for_selector("#case:not([hidden])")
    return int(re.search(r"Case (\d+)", page.locator("#case-title").inner_text()).group(1))


def at_case(page, number):
    """Wait until a case is on the screen."""
    page.wait_for_function(
        "(wanted) => !document.querySelector('#case').hidden "
        "&& document.querySelector('#case-title').textContent.startsWith(`Case ${wanted} of`)",
        arg=number,
    )


def saved(page):
    """Wait until the service has every answer."""
    page.wait_for_function("() => document.querySelector('#saved').textContent === 'All answers are saved.'")


def kept(folder, reader="ann"):
    """Return a reader's answers that count, in the order of the readings."""
    study = read_study(folder)
    last = read_answers(folder, study).last(reader)
    return [last[one.id] for one in read_key(folder, study).readings[reader] if one.id in last]


def lines(folder):
    """Count the lines of the journal."""
    path = folder / "answers.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


VALUES = {"ArrowLeft": (1, 2), "ArrowRight": (2, 1), "=": (1, 1)}


def test_twenty_cases_by_keyboard(browser, folder):
    """A blinded pairwise study from the token to the thanks: every answer is what the keys said."""
    _, tokens = write_study(folder, cases=20, repeat=0)
    keys = [("ArrowLeft", "ArrowRight", "=")[number % 3] for number in range(20)]
    with study_service(folder) as address, opened(browser, f"{address}/") as page:
        enter(page, tokens["ann"])
        for number, key in enumerate(keys, start=1):
            at_case(page, number)
            for secret in (*SELECTORS, "query-", "patient-"):
                assert secret not in page.content()
            page.keyboard.press(key)
            if number == 3:
                for press in ("b", "s", "m", "m", "i", "i", "i"):
                    page.keyboard.press(press)
                page.keyboard.press("n")
                page.keyboard.type("Left <b>is</b> right.\nReally.")
                page.keyboard.press("Escape")
            page.keyboard.press("Enter")
        page.wait_for_selector("#rest:not([hidden])")
        assert page.locator("#rest-title").inner_text() == "All cases are answered. Thank you."
        saved(page)
    found = kept(folder)
    assert [one.values for one in found] == [VALUES[key] for key in keys]
    assert lines(folder) == 20
    marks = {(mark.draft, mark.kind, mark.significant) for mark in found[2].errors}
    assert marks == {(1, "side", False), (1, "missed", True)}
    assert found[2].comment == "Left <b>is</b> right.\nReally."
    assert all(one.seconds >= 0 for one in found)
    assert sum(bool(one.comment or one.errors) for one in found) == 1


def test_back_shows_the_answer_and_a_change_is_another_line(browser, folder):
    """`u` goes back; looking changes nothing; another preference takes the place of the first."""
    _, tokens = write_study(folder, cases=4, repeat=0)
    with study_service(folder) as address, opened(browser, f"{address}/") as page:
        enter(page, tokens["ann"])
        for number in (1, 2, 3):
            at_case(page, number)
            page.keyboard.press("ArrowLeft")
            page.keyboard.press("Enter")
        at_case(page, 4)
        page.keyboard.press("u")
        at_case(page, 3)
        page.keyboard.press("u")
        at_case(page, 2)
        assert page.locator("#question input").first.is_checked()
        page.keyboard.press("Enter")
        at_case(page, 4)
        saved(page)
        assert lines(folder) == 3
        for _ in range(2):
            page.keyboard.press("u")
        at_case(page, 2)
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        at_case(page, 4)
        saved(page)
    assert [one.values for one in kept(folder)] == [(1, 2), (2, 1), (1, 2)]
    assert lines(folder) == 4


def test_a_reload_and_a_break_lose_nothing(browser, folder):
    """What was begun of a case is there after a reload; the clock stands still in a break."""
    _, tokens = write_study(folder, cases=3, repeat=0)
    with study_service(folder) as address, opened(browser, f"{address}/") as page:
        enter(page, tokens["ann"])
        at_case(page, 1)
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        at_case(page, 2)
        page.keyboard.press("=")
        page.keyboard.press("t")
        page.keyboard.press("n")
        page.keyboard.type("begun")
        page.reload()
        begin(page)
        at_case(page, 2)
        assert page.locator("#comment").input_value() == "begun"
        assert page.locator("#question input").nth(1).is_checked()
        page.keyboard.press("p")
        page.wait_for_selector("#rest:not([hidden])")
        assert page.locator("#rest-title").inner_text() == "A break"
        assert page.locator("#reports").is_hidden()
        before = page.evaluate(FORM)
        settle(page)
        assert page.evaluate(FORM) == before
        page.keyboard.press("Enter")
        at_case(page, 2)
        page.keyboard.press("Enter")
        at_case(page, 3)
        saved(page)
    [_, second] = kept(folder)
    assert (second.values, second.comment, len(second.errors)) == ((1, 1), "begun", 1)
    assert lines(folder) == 2


FORM = (
    "() => Object.entries(localStorage).filter(([key]) => key.includes(':form:')).map(([, value]) => value)"
)


def test_a_killed_server_loses_nothing(browser, folder, tmp_path):
    """Killed while a reader goes on: the answers wait in the browser, are sent again, and are there once."""
    _, tokens = write_study(folder, cases=8, repeat=0)
    with (
        killable(folder, tmp_path / "log") as service,
        opened(browser, f"{service.address}/", expected=NO_CONNECTION) as page,
    ):
        port = service.port
        enter(page, tokens["ann"])
        for number in range(1, 9):
            at_case(page, number)
            if number in {3, 6}:
                saved(page)
                service.kill()
            page.keyboard.press("ArrowRight")
            page.keyboard.press("Enter")
            if number == 4:
                page.wait_for_function(
                    "() => /not sent yet/.test(document.querySelector('#saved').textContent)"
                )
                assert lines(folder) == 2
                service.start(port)
                page.evaluate("() => window.dispatchEvent(new Event('online'))")
                saved(page)
                assert lines(folder) == 4
        page.wait_for_function(
            "() => /3 answers not sent yet/.test(document.querySelector('#saved').textContent)"
        )
        service.start(port)
        page.reload()
        saved(page)
    assert [one.values for one in kept(folder)] == [(2, 1)] * 8
    assert lines(folder) == 8


def test_a_second_window_doubles_nothing(browser, folder):
    """Two windows of one reader: what one answers the other leaves; where both did, the reader decides."""
    _, tokens = write_study(folder, cases=3, repeat=0)
    with study_service(folder) as address, opened(browser, f"{address}/") as first:
        enter(first, tokens["ann"])
        at_case(first, 1)
        second = first.context.new_page()
        second.goto(f"{address}/")
        enter(second, tokens["ann"])
        at_case(second, 1)
        answer(second, "ArrowLeft")
        at_case(second, 2)
        at_case(first, 2)  # untouched: it follows the other window
        first.keyboard.press("n")
        first.keyboard.type("from the first")
        first.keyboard.press("Escape")
        first.keyboard.press("ArrowRight")
        answer(second, "ArrowLeft")
        at_case(second, 3)
        saved(second)
        decide(first, folder)
    assert [(one.values, one.comment) for one in kept(folder)] == [((1, 2), ""), ((2, 1), "from the first")]
    assert lines(folder) == 3


def test_a_second_machine_doubles_nothing(browser, folder):
    """Two browsers that know nothing of each other: the service refuses the second answer, which is shown."""
    _, tokens = write_study(folder, cases=3, repeat=0)
    with (
        study_service(folder) as address,
        opened(browser, f"{address}/", expected="409") as first,
        opened(browser, f"{address}/") as second,
    ):
        for page in (first, second):
            enter(page, tokens["ann"])
            at_case(page, 1)
        for number, key in enumerate(("ArrowLeft", "="), start=1):
            answer(second, key)
            at_case(second, number + 1)
        saved(second)
        first.locator("#comment").fill("from the first")
        first.keyboard.press("Escape")
        answer(first, "ArrowRight")
        at_case(first, 1)
        decide(first, folder)
    assert [(one.values, one.comment) for one in kept(folder)] == [((2, 1), "from the first"), ((1, 1), "")]
    assert lines(folder) == 3


def answer(page, key):
    """Give an answer."""
    page.keyboard.press(key)
    page.keyboard.press("Enter")


def decide(page, folder):
    """See what was entered beside the note that another answer counts; save it over that one."""
    page.wait_for_selector("#note:not([hidden])")
    assert "answered in another window meanwhile" in page.locator("#note").inner_text()
    assert page.locator("#comment").input_value() == "from the first"
    assert lines(folder) == 2
    assert "from the first" not in [one.comment for one in kept(folder)]
    page.keyboard.press("Enter")
    at_case(page, 3)
    saved(page)


def test_two_windows_send_what_waits_once(browser, folder, tmp_path):
    """What was answered without a service is seen by a second window, which sends it too: once."""
    _, tokens = write_study(folder, cases=5, repeat=0)
    with (
        killable(folder, tmp_path / "log") as service,
        opened(browser, f"{service.address}/", expected=NO_CONNECTION) as first,
    ):
        port = service.port
        enter(first, tokens["ann"])
        at_case(first, 1)
        service.kill()
        for number in (1, 2, 3):
            at_case(first, number)
            first.keyboard.press("=")
            first.keyboard.press("Enter")
        at_case(first, 4)
        service.start(port)
        second = first.context.new_page()
        second.goto(service.address)
        enter(second, tokens["ann"])
        first.evaluate("() => window.dispatchEvent(new Event('online'))")
        at_case(second, 4)
        for page in (first, second):
            saved(page)
    assert lines(folder) == 3
    assert len(kept(folder)) == 3


@pytest.mark.parametrize("design", ["rating", "ranking"])
def test_ratings_and_ranks_by_keyboard(browser, folder, design):
    """Digits rate; letters and digits rank, and ranks may be equal; without an answer nothing is saved."""
    _, tokens = write_study(folder, cases=2, design=design, repeat=0, names=())
    with study_service(folder) as address, opened(browser, f"{address}/") as page:
        enter(page, tokens["ann"])
        at_case(page, 1)
        page.keyboard.press("Enter")
        page.wait_for_selector("#error:not([hidden])")
        assert page.locator("#error").inner_text() == (
            "Choose an answer first." if design == "rating" else "Give draft A a rank first."
        )
        for key in ["4", "s", "s"] if design == "rating" else ["3", "1", "3", "b", "i"]:
            page.keyboard.press(key)
        page.keyboard.press("Enter")
        at_case(page, 2)
        saved(page)
    [found] = kept(folder)
    mark = [(one.draft, one.kind, one.significant) for one in found.errors]
    if design == "rating":
        assert (found.values, mark) == ((4,), [(0, "side", True)])
    else:
        assert (found.values, mark) == ((2, 1, 2), [(1, "invented", False)])


def hostile_records():
    """Return queries whose every text is hostile."""
    texts = [text.format(number) for number, text in enumerate(HOSTILE)]
    found = records(3)
    for number, record in enumerate(found):
        words = [texts[(number * 5 + place) % len(texts)] for place in range(8)]
        record["prior"] = [
            {"findings": words[0], "impression": words[1], "other": words[2]}, {"text": words[3]}
        ]  # fmt: skip
        record["candidates"] = [{"findings": f"{word} {place}"} for place, word in enumerate(words[4:7])]
        record["reference"] = {"findings": words[7]}
    return found


@pytest.mark.parametrize("offline", [False, True])
def test_hostile_text_stays_text(browser, folder, tmp_path, offline):
    """Reports, title, question and comments of markup and script: nothing runs, and all of it can be read."""
    title, question = HOSTILE[0].format("title"), HOSTILE[3].format("question")
    study, tokens = write_study(
        folder, cases=3, repeat=0, of=hostile_records(), reference=True, title=title, question=question
    )
    comment = " ".join(HOSTILE).replace("{0}", "7")[:3000]
    with study_service(folder) as address:
        path = tmp_path / "ann.html"
        write_export(study, read_reader(folder, study, "ann"), folder, path)
        place, spy = (
            path.as_uri() if offline else address,
            "window.alert = (text) => console.error(`ran ${text}`)",
        )
        with opened(browser, place, script=spy) as page:
            enter(page, tokens["ann"]) if not offline else begin(page)
            for number in (1, 2, 3):
                at_case(page, number)
                assert page.evaluate(ODD_ELEMENTS) == []
                page.keyboard.press("=")
                page.locator("#comment").fill(comment)
                page.keyboard.press("Escape")
                page.keyboard.press("Enter")
            page.wait_for_selector("#rest:not([hidden])")
            assert page.locator("#title").inner_text() == title
            page.keyboard.press("u")
            at_case(page, 3)
            assert page.locator("#comment").input_value() == comment
            shown = page.locator("#reports").evaluate("(node) => node.textContent")
            assert page.evaluate(ODD_ELEMENTS) == []
            reading = read_reader(folder, study, "ann").readings[-1]
            for report in (*reading.drafts, *reading.priors, reading.reference):
                assert report.findings in shown
            if not offline:
                saved(page)
    if not offline:
        assert {one.comment for one in kept(folder)} == {comment}


def test_without_a_network_the_answers_come_back_as_a_file(browser, folder, tmp_path):
    """The exported page asks for nothing; its answers survive a reload and are taken in once."""
    study, _ = write_study(folder, cases=4, repeat=0)
    done = tabon("study", "export", folder, "--reader", "ann", "--html", tmp_path / "ann.html")
    assert done.exit_code == 0, done.output
    text = (tmp_path / "ann.html").read_text()
    for secret in (*SELECTORS, "query-", "patient-", "bob", study.readers[0].token_sha256):
        assert secret not in text
    with opened(browser, (tmp_path / "ann.html").as_uri(), accept_downloads=True) as page:
        begin(page)
        for number, key in enumerate(("ArrowLeft", "=", "ArrowRight", "ArrowLeft"), start=1):
            at_case(page, number)
            page.keyboard.press(key)
            page.keyboard.press("Enter")
            if number == 2:
                page.reload()
                begin(page)
        page.wait_for_selector("#rest:not([hidden])")
        page.keyboard.press("u")
        at_case(page, 4)
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.wait_for_selector("#rest:not([hidden])")
        with page.expect_download() as waiting:
            page.keyboard.press("Enter")
        waiting.value.save_as(tmp_path / "answers.json")
    for expected in ("5 answers taken in, 0 were here already", "0 answers taken in, 5 were here already"):
        done = tabon("study", "collect", folder, tmp_path / "answers.json")
        assert (done.exit_code, done.stderr) == (0, f"ann: {expected}\n")
    assert [one.values for one in kept(folder)] == [(1, 2), (1, 1), (2, 1), (2, 1)]
    assert lines(folder) == 5


IMAGE_SEEN = "() => document.querySelector('#reports img')?.naturalWidth === 32"


def test_the_x_ray_is_shown_served_and_without_a_network(browser, tmp_path, monkeypatch):
    """`--images` puts the current X-ray beside the prior; the exported page holds it."""
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    image.new("L", (32, 24), 90).save(tmp_path / "one.png")
    lines = [json.dumps({**record, "image": "one.png"}) for record in records(3)]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines))
    words = "study init queries.jsonl --design rating --readers ann --cases 2 --images . --out study"
    made = tabon(*words.split())
    assert made.exit_code == 0, made.output
    assert tabon("study", "export", "study", "--reader", "ann", "--html", "ann.html").exit_code == 0
    with study_service(tmp_path / "study") as address, opened(browser, f"{address}/") as page:
        enter(page, made.stdout.split()[1])
        at_case(page, 1)
        page.wait_for_function(IMAGE_SEEN)
        assert page.locator("#reports img").get_attribute("alt") == "The current chest X-ray"
    with opened(browser, (tmp_path / "ann.html").as_uri()) as page:
        begin(page)
        at_case(page, 1)
        page.wait_for_function(IMAGE_SEEN)


def test_where_nothing_can_be_kept_the_page_says_so(browser, folder):
    """A browser that forbids storage: answers are sent all the same, and the page warns while one waits."""
    _, tokens = write_study(folder, cases=2, repeat=0)
    forbid = (
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } });"
        "Object.defineProperty(window, 'sessionStorage', { get() { throw new Error('no'); } });"
    )
    with study_service(folder) as address, opened(browser, f"{address}/", script=forbid) as page:
        enter(page, tokens["ann"])
        for number in (1, 2):
            at_case(page, number)
            page.keyboard.press("ArrowLeft")
            page.keyboard.press("Enter")
        page.wait_for_selector("#rest:not([hidden])")
        saved(page)
    assert lines(folder) == 2


def test_the_token_stays_in_the_tab(browser, folder):
    """A wrong one is refused in a sentence; the right one is in no address, no text, no lasting storage."""
    _, tokens = write_study(folder, cases=2, repeat=0)
    with study_service(folder) as address, opened(browser, f"{address}/", expected="401") as page:
        page.wait_for_selector("#token:not([hidden])")
        page.keyboard.type("not-the-token-of-anyone")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=The token was refused; check it.")
        enter(page, tokens["bob"])
        at_case(page, 1)
        assert tokens["bob"] not in page.url
        assert tokens["bob"] not in page.evaluate(
            "() => JSON.stringify({ ...localStorage }) + document.body.outerHTML"
        )
        assert page.evaluate("() => document.cookie") == ""
        page.keyboard.press("=")
        page.keyboard.press("Enter")
        saved(page)
    assert (len(kept(folder)), len(kept(folder, "bob"))) == (0, 1)


@pytest.mark.parametrize("design", ["pairwise", "rating", "ranking"])
@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", WIDE), ("light", PHONE)])
def test_everyone_can_read_and_use_it(browser, folder, design, scheme, size):
    """Contrast of 4.5, a name for every control, no sideways scroll, nothing that moves, one main heading."""
    _, tokens = write_study(folder, cases=2, design=design, reference=True)
    with (
        study_service(folder) as address,
        opened(browser, f"{address}/", size=size, color_scheme=scheme, reduced_motion="reduce") as page,
    ):
        enter(page, tokens["ann"])
        at_case(page, 1)
        page.keyboard.press("m")
        page.keyboard.press({"pairwise": "ArrowLeft", "rating": "4", "ranking": "1"}[design])
        settle(page)
        assert page.evaluate(NAMELESS) == []
        assert [found for found in page.evaluate(CONTRAST) if found[0] < 4.5] == []
        assert sideways(page) == 0
        assert page.evaluate(MOVING) == []
        assert page.evaluate("() => document.querySelectorAll('h1').length") == 1
        page.keyboard.press("?")
        page.wait_for_selector("#help[open]")
        assert [found for found in page.evaluate(CONTRAST) if found[0] < 4.5] == []
        page.keyboard.press("Escape")
        page.wait_for_selector("#help:not([open])", state="attached")
        page.keyboard.press("u")
        at_case(page, 1)


MOVING = """() => [...document.querySelectorAll('*')].filter((node) => {
  const style = getComputedStyle(node);
  return style.animationName !== 'none' || style.transitionDuration !== '0s';
}).map((node) => node.outerHTML.slice(0, 80))"""


def test_a_screen_reader_is_told_what_keys_do(browser, folder):
    """The live region names the draft, the error and its weight; the heading of a new case has the focus."""
    _, tokens = write_study(folder, cases=2, repeat=0)
    with study_service(folder) as address, opened(browser, f"{address}/") as page:
        enter(page, tokens["ann"])
        at_case(page, 1)
        assert page.evaluate("() => document.activeElement.id") == "case-title"
        said = []
        for key in ("ArrowLeft", "b", "s", "s", "s", "="):
            page.keyboard.press(key)
            said.append(page.locator("#live").inner_text())
        assert said == [
            "Draft A is preferred",
            "Keys are about draft B now.",
            "Draft B: wrong side or place, ticked",
            "Draft B: wrong side or place, significant",
            "Draft B: wrong side or place, not ticked",
            "No preference",
        ]
        assert page.locator("#draft-1").get_attribute("aria-current") == "true"
        for _ in range(60):  # Tab alone reaches the button that saves
            page.keyboard.press("Tab")
            if page.evaluate("() => document.activeElement.id") == "save":
                break
        page.keyboard.press("Space")
        at_case(page, 2)
        saved(page)
    assert json.loads((folder / "answers.jsonl").read_text().splitlines()[0])["values"] == [1, 1]
