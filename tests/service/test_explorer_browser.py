"""The explorer in a real browser, from a file and from the service: what it shows is what the data say."""

import re

import numpy as np
import pytest

from browser import CELLS, FILMS_SEEN, ODD_ELEMENTS, ROWS, SHOWN, at, lead, opened, settle, text
from explorer_cases import HOSTILE
from explorer_service import app_of
from service_server import serving
from tabon.text.reports import SECTIONS

TOKEN = b"a-token-of-some-length"
SYMBOLS = {"same": "= same", "reworded": "~ reworded", "new": "+ new", "dropped": "\u2212 dropped"}
FOUND = "() => !document.querySelector('#summary').textContent.startsWith('The reports are')"


@pytest.fixture(scope="module")
def shared(browser, report):
    """A page that is led from state to state."""
    with opened(browser, report.as_uri()) as page:
        yield page


def test_the_file_opens_without_a_server(browser, report, data):
    """One file is the whole page: nothing else is asked for, and the notice stays in sight."""
    overview, first = data["overview"], data["studies"][0]
    with opened(browser, report.as_uri()) as page:
        assert page.locator("#notice").inner_text() == overview["notice"]
        assert page.locator("h1").inner_text() == "Cohort"
        assert page.locator("#count").inner_text() == f"{len(overview['studies'])} studies"
        assert f"{overview['bank']['transitions']} transitions" in page.locator("#facts").inner_text()
        page.click("#signature summary")
        assert overview["signature"] in page.locator("#provenance").inner_text()
        page.locator(ROWS).first.click()
        page.wait_for_function(FILMS_SEEN)
        assert page.locator("#study-title").inner_text() == f"Study {first['id']}"
        page.evaluate("() => window.scrollTo({ top: 9999, behavior: 'instant' })")
        assert page.locator("#notice").bounding_box()["y"] == 0


def test_the_served_page_asks_its_own_host_only(browser, studies, data):
    """The service gives page, list, studies and images; links work, and Back goes back."""
    names = [study["id"] for study in data["studies"]]
    with serving(app_of(studies)) as address, opened(browser, f"{address}/#sort=margin&desc=1") as page:
        page.wait_for_selector(ROWS)
        assert page.evaluate(SHOWN) == listed(data, sort="margin", desc="1")
        lead(page, "study=1", names[1])
        page.wait_for_function(FILMS_SEEN)
        page.keyboard.press("j")
        page.wait_for_selector(f"text=Study {names[2]}")
        page.go_back()
        page.wait_for_selector(f"text=Study {names[1]}")


def test_the_token_is_asked_for_and_kept_in_the_tab(browser, studies, data):
    """Without the token there is a form; a wrong one is refused in a sentence; the right one opens all."""
    with (
        serving(app_of(studies, TOKEN)) as address,
        opened(browser, f"{address}/#study=0", expected="401") as page,
    ):
        page.wait_for_selector("#token:not([hidden])")
        assert not page.locator("#error").is_visible()
        page.keyboard.type("j-wrong-token")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=The token was refused; check it.")
        page.fill("#token-value", TOKEN.decode())
        page.click("#token button")
        page.wait_for_function(FILMS_SEEN)
        assert page.locator("#study-title").inner_text() == f"Study {data['studies'][0]['id']}"
        page.reload()
        page.wait_for_selector("#study-title")
        assert TOKEN.decode() not in page.url
        assert TOKEN.decode() not in page.evaluate(
            "() => JSON.stringify({ ...localStorage }) + document.body.textContent"
        )
        assert page.locator("#token-value").input_value() == ""


def has_sign(gain, sign):
    """Whether a gain has a sign."""
    return {"none": gain is None, "zero": gain == 0}.get(
        sign, gain is not None and (gain > 0 if sign == "plus" else gain < 0)
    )


def agreement(row):
    """Return how the picks of two selectors stand to each other."""
    other = row["beside"]
    if row["selected"] == other["selected"]:
        return {"same"}
    if None in (row["score"], other["score"]) or row["score"] == other["score"]:
        return {"differ"}
    return {"differ", "first" if row["score"] > other["score"] else "second"}


def passes(row, state):
    """Whether a study passes the filters: a slow and separate reading of them."""
    name = f"{row['number'] + 1} {row['id']} {row['patient'] or ''}".lower()
    words = state.get("q", "").lower().split()
    named = state.get("within", "names") == "names" and all(word in name for word in words)
    tests = [named or row["number"] in state.get("hits", ())]
    if "flags" in state:
        tests.append(bool(set(state["flags"].split(",")) & set(row["flags"])))
    if "selectors" in state:
        tests.append(state["selectors"] in agreement(row))
    for key, fact in (("abstained", row["abstained"] is not None), ("tied", row["tied"])):
        tests.append(state.get(key) in (None, "yes" if fact else "no"))
    for key in ("margin", "gain", "score"):
        for end, sign in (("min", 1), ("max", -1)):
            if (bound := state.get(f"{key}_{end}")) is not None:
                tests.append(row[key] is not None and sign * row[key] >= sign * float(bound))
    return all(tests) and ("sign" not in state or has_sign(row["gain"], state["sign"]))


def listed(data, **state):
    """Return the numbers that a list should show; what is not measured comes last."""
    rows = [row for row in data["overview"]["studies"] if passes(row, state)]
    key, turn = state.get("sort", "number"), -1 if "desc" in state else 1
    known = sorted((row for row in rows if row[key] is not None), key=lambda row: turn * row[key])
    return [row["number"] for row in known + [row for row in rows if row[key] is None]]


@pytest.mark.parametrize(
    "state",
    [
        {"within": "names", "q": "sim 2"},
        {"within": "names", "q": "NO-PRIOR"},
        {"within": "names", "q": "<img"},
        {"within": "names", "q": "nobody"},
        {"selectors": "differ"},
        {"selectors": "same", "sort": "gain"},
        {"selectors": "first", "sort": "score"},
        {"selectors": "second"},
        {"score_min": "0.3", "score_max": "0.6", "sort": "score", "desc": "1"},
        {"flags": "chatty-draft"},
        {"flags": "chatty-draft,copy-forward,unsupported-finding"},
        {"abstained": "yes"},
        {"abstained": "no", "sort": "p"},
        {"tied": "yes"},
        {"tied": "no", "sort": "gain", "desc": "1"},
        {"margin_min": "0.01", "margin_max": "0.05", "sort": "margin"},
        {"margin_max": "0"},
        {"sign": "plus", "sort": "gain"},
        {"sign": "minus", "gain_min": "-0.1"},
        {"sign": "zero"},
        {"sign": "none"},
        {"gain_min": "-0.1", "gain_max": "0.1", "abstained": "no", "sort": "gain", "desc": "1"},
    ],
    ids=lambda state: ",".join(f"{key}={value}" for key, value in state.items()),
)
def test_a_link_shows_the_studies_it_filters(shared, data, state):
    """The list that a hash asks for is the list that a separate reading of the filters gives."""
    shared.evaluate("(state) => { location.hash = ''; location.hash = new URLSearchParams(state); }", state)
    lead(shared, shared.evaluate("() => location.hash"))
    assert shared.evaluate(SHOWN) == listed(data, **state)
    assert shared.locator("#count").inner_text().startswith(f"{len(listed(data, **state))} ")


def test_the_form_filters_and_keeps_its_keys(browser, report, data):
    """What is typed in a field stays in the field; the hash follows, and the link shows the same again."""
    with opened(browser, report.as_uri()) as page:
        page.keyboard.press("/")
        page.keyboard.type("sim jk t?1/")
        assert page.locator("#q").input_value() == "sim jk t?1/"
        page.wait_for_function(FOUND)
        assert page.evaluate(SHOWN) == []
        assert "No study passes" in page.locator("#summary").inner_text()
        page.select_option("[name=within]", "names")
        assert not page.locator("#help").is_visible()
        page.fill("#q", "q")
        page.select_option("[name=abstained]", "no")
        page.fill("[name=margin_min]", "0.001")
        page.locator("#kinds input[value=unsupported-finding]").check()
        page.select_option("#sort", "margin")
        filters = {"within": "names", "q": "q", "abstained": "no"}
        filters |= {"margin_min": "0.001", "flags": "unsupported-finding"}
        assert page.evaluate(SHOWN) == listed(data, sort="margin", **filters)
        link, count = page.url, page.locator("#count").inner_text()
        assert "4 on" in page.locator("#filters summary").inner_text()
        page.goto("about:blank")
        page.goto(link)
        assert page.locator("#count").inner_text() == count
        assert page.locator("#kinds input[value=unsupported-finding]").is_checked()
        page.click("#reset")
        assert page.evaluate(SHOWN) == listed(data, sort="margin")
        page.click("#head-gain")
        page.click("#head-gain")
        assert page.evaluate(SHOWN) == listed(data, sort="gain", desc="1")


def test_keys_lead_through_list_and_studies(browser, report, data):
    """Every study and draft can be reached without a mouse."""
    names = [study["id"] for study in data["studies"]]
    with opened(browser, report.as_uri()) as page:
        heading = page.locator("#study-title")
        moves = (("j", 0), ("j", 1), ("ArrowDown", 2), ("k", 1), ("ArrowUp", 0), ("k", 0), ("j", 1))
        for key, number in moves:
            page.keyboard.press(key)
            assert at(page) == str(number)
        page.keyboard.press("Enter")
        for key, number in (("Shift", 1), ("j", 2), ("ArrowRight", 3), ("k", 2), ("ArrowLeft", 1)):
            page.keyboard.press(key)
            page.wait_for_selector(f"#study-title:text-is('Study {names[number]}')")
        for digit in (4, 1, 5):
            page.keyboard.press(str(digit))
            assert page.locator("[role=tab][aria-selected=true]").get_attribute("id") == f"tab-{digit - 1}"
            assert page.locator("#live").text_content().startswith(f"Draft {digit}")
        page.focus("#tab-4")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("() => document.activeElement.id") == "tab-0"
        for key, columns in (("c", 3), ("c", 2), ("r", 3), ("r", 2)):
            page.keyboard.press(key)
            assert page.locator("#compare .heads .cell").count() == columns
        for key in "xw":
            page.keyboard.press(key)
        assert page.locator("#films-wide, #view-written").evaluate_all(PRESSED) == ["true", "true"]
        page.keyboard.press("?")
        assert page.locator("#help").is_visible()
        for key in ("j", "Escape"):
            page.keyboard.press(key)
        assert not page.locator("#help").is_visible()
        assert heading.inner_text() == f"Study {names[1]}"
        page.keyboard.press("Escape")
        page.wait_for_selector("#list:not([hidden])")
        assert at(page) == "1"
        page.keyboard.press("Enter")
        page.keyboard.press("/")
        assert page.evaluate("() => document.activeElement.id") == "q"


PRESSED = "(all) => all.map((one) => one.getAttribute('aria-pressed'))"
QUICK = """(keys) => {
  document.activeElement.click();
  for (const key of keys) document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}"""


@pytest.mark.parametrize(("keys", "study", "focus"), [("/", None, "q"), ("jj", 2, "study-title")])
def test_keys_faster_than_the_page_are_not_lost(browser, report, data, keys, study, focus):
    """A key that comes before the page has shown what the last one asked for starts from there."""
    with opened(browser, report.as_uri()) as page:
        page.keyboard.press("j")
        page.evaluate(QUICK, keys)
        page.wait_for_function("(id) => document.activeElement.id === id", arg=focus)
        settle(page)
        assert page.locator("#list").is_visible() == (study is None)
        if study is not None:
            page.wait_for_selector(f"#study-title:text-is('Study {data['studies'][study]['id']}')")
        assert page.evaluate("() => document.activeElement.id") == focus


def test_the_last_study_is_an_end(shared, data):
    """Going on at the end stays there and says so."""
    last = data["studies"][-1]
    lead(shared, f"study={last['number']}", last["id"])
    shared.keyboard.press("j")
    assert "last" in shared.locator("#live").text_content()
    assert shared.locator("#study-title").inner_text() == f"Study {last['id']}"


def test_each_sentence_stands_once_in_its_column(shared, data):
    """Prior and drafts are shown whole, each sentence once, a draft in its own order; with two drafts too."""
    for study in data["studies"][:5] + data["studies"][-4:]:
        for draft in study["drafts"]:
            other = study["drafts"][draft["number"] - 1]
            pair = [draft, other] if draft["number"] % 2 else [draft]
            hash_ = f"study={study['number']}&draft={draft['number']}"
            lead(shared, hash_ + (f"&with={other['number']}" if len(pair) > 1 else ""), study["id"])
            for who, written in [("prior", study["prior"])] + [(str(d["number"]), d["report"]) for d in pair]:
                expected = {
                    f"at-{who}-{s}-{i}": words for s in SECTIONS for i, words in enumerate(written[s])
                }
                cells = shared.evaluate(CELLS, who)
                assert dict(cells) == expected
                assert len(cells) == len(expected)
                if who == str(draft["number"]):
                    assert [name for name, _ in cells] == list(expected)


def test_kinds_are_said_in_words_and_symbols(shared, data):
    """Each line of an alignment has its symbol, word and share; flags stand at their sentences."""
    for study in data["studies"][:3]:
        for draft in study["drafts"]:
            lead(shared, f"study={study['number']}&draft={draft['number']}", study["id"])
            lines = [line for section in SECTIONS for line in draft["alignment"].get(section, [])]
            marks = shared.locator("#compare ol li .marks .kind").all_inner_texts()
            assert sorted(marks) == sorted(SYMBOLS[line["kind"]] for line in lines)
            shares = shared.locator("#compare .share").count()
            assert shares == sum(line["share"] is not None for line in lines)
            assert shared.locator(".flags > li").count() == len(draft["flags"])
            for flag in draft["flags"]:
                for sentence in flag["sentences"] if flag["section"] in SECTIONS else ():
                    place = f"#at-{draft['number']}-{flag['section']}-{sentence}"
                    assert flag["kind"] in text(shared, place)


def as_shown(value, values):
    """Write a distance with three digits, or four where three would make two that differ look equal."""
    digits = 3 if len({f"{one:.3f}" for one in values}) == len(set(values)) else 4
    return f"{value:.{digits}f}"


def test_bars_and_map_say_the_numbers(shared, data):
    """Every distance of every draft is written beside its bar, the pick is marked, the map has a table."""
    study = next(
        study
        for study in data["studies"]
        if study["selected"] is not None and study["map"]["findings"]["drafts"][study["selected"]]
    )
    lead(shared, f"study={study['number']}", study["id"])
    bars = shared.locator(".bars").first
    totals = np.array([draft["total"] for draft in study["drafts"]])
    assert bars.locator(".value").all_inner_texts() == [as_shown(total, totals) for total in totals]
    widths = bars.locator(".fill").evaluate_all(
        "(all) => all.map((one) => Number(one.getAttribute('width')))"
    )
    np.testing.assert_allclose(widths, 100 * totals / totals.max(), rtol=1e-6)
    assert "picked" in bars.locator("li.picked").text_content()
    for section in ("impression", "findings"):
        shared.click(f"#map-{section}")
        placed = [point for point in study["map"][section]["drafts"] if point]
        assert shared.locator(".map .draft").count() == len(placed)
        assert section in shared.locator(".map").get_attribute("aria-label")
    assert shared.locator(".map .draft.picked text").text_content() == str(study["selected"] + 1)
    assert shared.locator(".side-by tbody tr").count() == 2 * len(study["drafts"])
    near = study["drafts"][study["selected"]]["nearest"]["findings"][0]["current"]
    assert (
        near
        == shared.locator(".nearest > li").first.locator(".cell").nth(1).locator(".words").all_inner_texts()
    )
    assert f"{study['gain']:+.3f}".replace("-", "\u2212") in shared.locator(".numbers").inner_text()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no-prior", "No draft is picked: the prior has neither findings nor impression."),
        ("no-prior", "The prior has no findings; this section is left out for all drafts."),
        ("no-prior", "The patient is not named."),
        ("no-prior", "Total distance of consensus"),
        ("no-drafts", "There are no drafts."),
        ("no-drafts", "No draft is picked: there are no drafts to choose from."),
        ("no-drafts", "The prior has no impression."),
        ("one", "There is no reference report for this study"),
        ("one", "not measured"),
        ("empty", "Draft 1 has no findings."),
        ("empty", "and 1 older one not shown"),
    ],
)
def test_what_is_missing_is_said_in_words(shared, data, name, words):
    """No prior, no drafts, one draft, an empty draft: each has its sentence, and no number is made up."""
    number = next(row["number"] for row in data["overview"]["studies"] if row["id"] == name)
    lead(shared, f"study={number}&draft=0", name)
    shown = text(shared, "#study")
    assert words in shown
    assert not re.search(r"NaN|undefined|null|Infinity|\[object", shown)


def test_hostile_queries_are_text_in_the_file(shared, data):
    """Queries and a bank full of markup make a page full of text."""
    found = [study for study in data["studies"] if study["id"][1:] in HOSTILE]
    assert len(found) >= len(HOSTILE) - 1
    for study in found:
        if study["id"].isprintable():
            lead(shared, f"study={study['number']}", study["id"])
        else:
            lead(shared, f"study={study['number']}")
        assert shared.evaluate(ODD_ELEMENTS) == []
        sentences = [
            words for section in SECTIONS for words in study["prior"][section] if words.isprintable()
        ]
        shown = text(shared, "#compare")
        assert [words for words in sentences if words not in shown] == []
