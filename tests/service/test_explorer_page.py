"""The explorer page by itself, fed by hand: hostile text, failures, widths, themes and names."""

import json
import re

import pytest

from browser import (
    CONTRAST,
    NAMELESS,
    ODD_ELEMENTS,
    PHONE,
    ROWS,
    SHOWN,
    SMALL_PHONE,
    at,
    contract,
    lead,
    opened,
    poisoned,
    settle,
    sideways,
    text,
)
from explorer_sample import sample
from tabon.service.explorer.export import read_page
from waiting import until

HOSTILE_KEY = "<img src=x onerror=alert(0)>"
NO_STORAGE = """for (const name of ["localStorage", "sessionStorage"]) {
  Object.defineProperty(window, name, { get() { throw new Error("forbidden"); } });
}"""
MOST_DRAWN, MOST_ELEMENTS = 80, 3500  # rows, and elements of the whole page, however many studies there are
ON_SCREEN = """() => [...document.querySelectorAll('#studies a.row')].filter((row) => {
  const box = row.getBoundingClientRect();
  return box.bottom > 0 && box.top < window.innerHeight;
}).map((row) => Number(row.dataset.number))"""
TYPED = """(words) => {
  const start = performance.now();
  document.querySelector("#q").value = words;
  document.querySelector("#filter").dispatchEvent(new Event("input", { bubbles: true }));
  return performance.now() - start;
}"""


@pytest.fixture(scope="module")
def served():
    """The page with the data made by hand."""
    with contract(sample()) as server:
        yield server


def hostile():
    """Return the sample with hostile text everywhere, the names of parts and an image address among it."""
    data = sample()
    for one in data["studies"]:
        one["has_image"] = True
        for draft in one["drafts"]:
            draft["parts"] = {"findings": {HOSTILE_KEY: 0.5, "constructor": 0.25}}
    return poisoned(data)


def test_hostile_text_in_every_field_is_text(browser):
    """Whatever stands in a text field is shown as it is: no dialog, no element, no request comes of it."""
    data, texts = hostile()
    seen = ""
    with contract(data) as server, opened(browser, server.address, expected="404") as page:
        page.wait_for_selector(ROWS)
        seen += text(page, "body")
        for study in data["studies"]:
            for number in range(3):
                lead(page, f"study={study['number']}&draft={number}", study["id"])
                page.wait_for_selector(f"#tab-{number}[aria-selected=true]")
                seen += text(page, "body")
                for key in ("w", "w", "r"):
                    page.keyboard.press(key)
                    seen += text(page, "#content")
                assert page.evaluate(ODD_ELEMENTS) == []
        assert [one for one in texts if one.lower() not in seen.lower()] == []  # sentences begin large
        assert HOSTILE_KEY in seen
        assert set(server.asked) <= set(server.files) | {f"/v1/explorer/studies/{n}/images" for n in range(3)}
        for width, height in (SMALL_PHONE, PHONE, (768, 900), (1440, 900)):
            page.set_viewport_size({"width": width, "height": height})
            assert sideways(page) == 0
            for columns in ("with=1", "with=reference", "view=written&with=1"):
                lead(page, f"study=0&{columns}", data["studies"][0]["id"])
                assert sideways(page) == 0
            lead(page, "")
            assert sideways(page) == 0


@pytest.mark.parametrize("word", ["constructor", "__proto__", "toString"])
def test_a_word_of_the_language_is_only_a_word(browser, word):
    """Names that every object has are shown like any other unknown name."""
    data = sample()
    data["studies"][2]["abstained"] = data["overview"]["studies"][2]["abstained"] = word
    data["studies"][2]["drafts"][0]["alignment"]["findings"][0]["kind"] = word
    with contract(data) as server, opened(browser, f"{server.address}#study=2&draft=0") as page:
        page.wait_for_selector("#compare")
        assert f"No draft is picked: {word}." in text(page, "#study")
        assert "· not compared" in text(page, "#compare")


def test_a_phone_shows_all_without_sideways_scroll(browser, served):
    """At 390 pixels the list, the filters, a study and two drafts fit; columns are stacked and named."""
    with opened(browser, served.address, size=PHONE) as page:
        page.wait_for_selector(ROWS)
        assert sideways(page) == 0
        assert not page.locator("#q").is_visible()
        page.keyboard.press("/")
        assert page.evaluate("() => document.activeElement.id") == "q"
        assert sideways(page) == 0
        for study in (0, 1, 2):
            lead(page, f"study={study}&with=2&wide=1&parts=1", f"study-{study}")
            assert sideways(page) == 0
        lead(page, "study=0", "study-0")
        tops = [page.locator(f"#at-{who}-findings-0").bounding_box()["y"] for who in ("prior", "0")]
        assert tops[0] < tops[1]
        assert page.locator("#at-0-findings-0 .cellname").inner_text() == "Draft 1"
        assert page.locator("#notice").bounding_box()["y"] == 0


def test_dark_and_light_can_be_read(browser, served):
    """The system's theme is the first; the switch wins and stays; all text has a contrast of 4.5 at least."""
    grounds = {}
    for system, presses, chosen in (("light", "tt", "dark"), ("dark", "t", "light")):
        with opened(browser, served.address, color_scheme=system, reduced_motion="reduce") as page:
            page.wait_for_selector(ROWS)
            ground = "() => getComputedStyle(document.body).backgroundColor"
            grounds[system] = page.evaluate(ground)
            assert page.locator("#theme").inner_text() == "Theme: system"
            for theme in (system, chosen):
                for state in ("", "study=1&with=2", "study=0&with=reference&wide=1", "study=2", "q=nobody"):
                    lead(page, state, f"study-{state[6]}" if state.startswith("study") else None)
                    found = page.evaluate(CONTRAST)
                    assert len(found) > 20
                    assert [(round(ratio, 2), what) for ratio, what in found if ratio < 4.5] == [], theme
                for key in presses if theme == system else ():
                    page.keyboard.press(key)
            page.reload()
            assert page.locator("#theme").inner_text() == f"Theme: {chosen}"
            grounds[f"chosen {chosen}"] = page.evaluate(ground)
    assert grounds["light"] != grounds["dark"]
    assert grounds["chosen dark"] == grounds["dark"]
    assert grounds["chosen light"] == grounds["light"]


def test_still_motion_is_respected(browser, served):
    """Where less motion is asked for, nothing moves by itself."""
    with opened(browser, served.address, reduced_motion="reduce") as page:
        page.wait_for_selector(ROWS)
        moving = (
            "() => [...document.querySelectorAll('*')].map((one) => getComputedStyle(one)).filter((style) => "
        )
        still = "style.scrollBehavior === 'smooth' || /[1-9]/.test(style.transitionDuration)).length"
        assert page.evaluate(moving + still) == 0


def test_names_and_landmarks_are_there(browser, served):
    """Every control has a name, every id stands once, landmarks are there, and the focus is seen."""
    with opened(browser, served.address) as page:
        for state, title in (("", None), ("study=1&with=0", "study-1")):
            lead(page, state, title)
            assert page.get_by_role("main").count() == page.get_by_role("banner").count() == 1
            assert page.evaluate(NAMELESS) == []
            ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map((node) => node.id)")
            assert len(ids) == len(set(ids))
            page.keyboard.press("Tab")
            assert page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle") == "solid"
        assert page.get_by_role("complementary").count() == 1
        assert page.get_by_role("tab", selected=True).count() == 1
        assert page.get_by_role("tabpanel").count() == 1
        page.goto("about:blank")
        page.goto(served.address)
        page.wait_for_selector(ROWS)
        assert page.get_by_role("search").count() == 1
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("() => document.activeElement.id") == "content"


def test_flags_lead_to_their_sentences(browser, served):
    """The list of flags names each, with what it is about, and leads to the sentences of draft and prior."""
    with opened(browser, f"{served.address}#study=1") as page:
        page.wait_for_selector(".flags")
        assert page.locator(".flags li").count() == 3
        for place, button in (("at-1-findings-0", "New edema."), ("at-prior-findings-2", "A nodule of 6 mm")):
            page.locator(".jump", has_text=button).click()
            assert page.evaluate("() => document.activeElement.id") == place
            assert "⚑" in text(page, f"#{place}")
        assert "outside the two sections" in text(page, ".flags li >> nth=2")


def test_a_failing_service_is_said_in_one_sentence(browser):
    """A busy service, a status, a broken answer and no answer: each is told, and the list stays."""
    data = sample()
    data["studies"][0]["has_image"] = True
    refusals = {"/v1/explorer": (503, {"Retry-After": "1"}), "/v1/explorer/studies/1": (500, {})}
    said = "(words) => document.querySelector('#error').textContent.startsWith(words)"
    with (
        contract(data, refusals) as server,
        opened(browser, server.address, expected=r"50[03]|404|ERR_") as page,
    ):
        page.wait_for_selector(ROWS)
        assert server.asked.count("/v1/explorer") == 2
        lead(page, "study=0", "study-0")
        page.wait_for_selector("text=The images could not be read.")
        page.keyboard.press("j")
        page.wait_for_function(said, arg="The service answered 500 instead of the data")
        assert page.locator(ROWS).count() == 3
        server.files["/v1/explorer/studies/2"] = (b'{"number": 2,', "application/json")
        lead(page, "study=2")
        page.wait_for_function(said, arg="The data could not be read")
        server.shutdown()
        server.server_close()
        lead(page, "study=1")
        page.wait_for_function(said, arg="The service did not answer")
        assert page.locator(ROWS).count() == 3


def test_a_late_answer_does_not_replace_a_later_wish(browser):
    """A study that arrives after its reader went back to the list is not shown."""
    path = "/v1/explorer/studies/0"
    with (
        contract(sample(), {path: (503, {"Retry-After": "1"})}) as server,
        opened(browser, server.address, expected="503") as page,
    ):
        page.wait_for_selector(ROWS)
        with page.expect_response(lambda answer: answer.url.endswith(path) and answer.ok) as late:
            lead(page, "study=0")
            until(lambda: path in server.asked, "the study is asked for")
            lead(page, "")
        late.value.finished()
        settle(page)
        assert page.locator("#list").is_visible()
        assert not page.locator("#study").is_visible()


def test_a_browser_without_storage_shows_the_page(browser, served):
    """Where storage is forbidden the theme is not kept, and that is all."""
    with opened(browser, served.address, script=NO_STORAGE) as page:
        page.wait_for_selector(ROWS)
        page.keyboard.press("t")
        assert page.locator("#theme").inner_text() == "Theme: light"


def test_a_hash_cannot_do_more_than_ask(browser, served):
    """A link with nonsense shows the list, or a study, and nothing else."""
    with opened(browser, served.address) as page:
        page.wait_for_selector(ROWS)
        for state in ("study=999", "study=-1", "study=<img src=x onerror=alert(1)>", "study=__proto__"):
            lead(page, state)
            page.wait_for_selector("#error:not([hidden])")
            assert page.locator("#error").inner_text() == "There is no such study here."
            assert page.locator(ROWS).count() == 3
            lead(page, "q=study")
            page.wait_for_selector("#error", state="hidden")
        asked = ("page=99", "spread=x", "selectors=__proto__,differ,same", "sort=valueOf&desc", "flags=,,")
        for state in (*asked, "q=+"):
            lead(page, state)
            assert page.locator(ROWS).count() == 3
        lead(page, "study=0&draft=99&with=y&map=z", "study-0")
        assert page.locator("[role=tab][aria-selected=true]").get_attribute("id") == "tab-0"


def many(count):
    """Return the data of a list with so many studies."""
    overview = sample()["overview"]
    rows = overview["studies"]
    named = ({"number": n, "id": f"s{n}", "margin": n / count} for n in range(count))
    overview["studies"] = [{**rows[one["number"] % 3], **one} for one in named]
    return {"overview": overview, "studies": []}


@pytest.mark.parametrize("size", [(1440, 900), PHONE], ids=["wide", "phone"])
def test_of_thousands_of_studies_a_screenful_is_drawn(browser, size):
    """Of 20,000 studies some 60 are elements, wherever the list stands; a filter goes through all of them."""
    with contract(many(20_000)) as server, opened(browser, server.address, size=size) as page:
        page.wait_for_selector(ROWS)
        assert page.locator("#count").inner_text() == "20,000 studies"
        height = page.evaluate("() => document.documentElement.scrollHeight")
        for share in (0, 0.2, 0.5, 0.9, 1, 0.3):
            page.evaluate("(top) => window.scrollTo({ top, behavior: 'instant' })", share * height)
            settle(page)
            shown = page.evaluate(SHOWN)
            assert len(shown) <= MOST_DRAWN
            assert shown == list(range(shown[0], shown[0] + len(shown)))
            seen = page.evaluate(ON_SCREEN)
            assert set(seen) <= set(shown)
            assert seen or share == 0
            assert page.evaluate("() => document.documentElement.scrollHeight") == height
        assert page.evaluate("() => document.querySelectorAll('*').length") < MOST_ELEMENTS
        page.evaluate(TYPED, "s1999")
        assert page.locator("#count").inner_text() == "11 of 20,000 studies"
        assert page.evaluate(SHOWN) == [1999, *range(19990, 20000)]


def test_the_list_says_how_long_it_is(browser):
    """Each row that is drawn has its place among all, and keys go on where no row was drawn yet."""
    with contract(many(2000)) as server, opened(browser, f"{server.address}#sort=margin&desc=1") as page:
        page.wait_for_selector(ROWS)
        item = page.locator("#studies > li:not(.space)").nth(3)
        assert (item.get_attribute("aria-posinset"), item.get_attribute("aria-setsize")) == ("4", "2000")
        for step in range(120):
            page.keyboard.press("j")
            assert at(page) == str(1999 - step)
        box = page.locator("a.row:focus").bounding_box()
        assert 0 < box["y"] < page.viewport_size["height"] - box["height"]
        page.keyboard.press("k")
        assert at(page) == "1881"
        page.keyboard.press("Tab")
        assert at(page) == "1880"


def test_the_script_never_writes_markup():
    """The source has no way from text to markup or to code, and the page no inline style or handler."""
    page = read_page()
    html, script = page.html, page.js
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc|cssText"
    assert not re.search(ways, script)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", script + html)
    assert not re.search(r"<[^>]+\s(style|on\w+)=", html)
    assert html.count('<link rel="stylesheet" href="explorer.css">') == 1
    assert html.count('<script src="explorer.js" defer></script>') == 1
    assert json.dumps(sample())  # the sample is data of the contract: JSON, with no NaN
