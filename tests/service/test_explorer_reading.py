"""What a reader sees at a glance: words that differ, the reference, images, meanings, selectors, a search."""

import re
from contextlib import contextmanager

import numpy as np
import pytest

from browser import FILM, FILMS_SEEN, ROWS, SHOWN, contract, lead, opened, settle, text
from explorer_sample import sample
from explorer_service import app_of
from service_server import serving
from tabon.service.explorer.search import WITHIN, find_words
from tabon.text.reports import SECTIONS

SET_OFF = """([cell, tag]) => [...document.querySelectorAll(`#${cell} .words ${tag}`)]
  .map((one) => one.textContent)"""
MARKED = """(cell) => [...document.querySelectorAll(`#${cell} .words .mark`)]
  .map((one) => [one.className.replace("mark mark-", ""), one.textContent])"""
SEARCHED = """() => ((said) => said && !said.startsWith("The reports are"))(
  document.querySelector("#summary").textContent)"""
CAPTIONS = "() => [...document.querySelectorAll('.films figcaption')].map((one) => one.textContent)"
CHOICES = """() => [...document.querySelectorAll("#filter select:not([name=within]) option")]
  .filter((one) => one.value)
  .map((one) => [one.parentNode.name, one.value, Number(/\\((\\d+)\\)$/.exec(one.textContent)[1])])"""
LOOSE = """() => [...document.querySelectorAll("[data-term], [aria-describedby]")]
  .filter((one) => !document.getElementById(one.getAttribute("aria-describedby"))?.textContent.trim())
  .map((one) => one.outerHTML)"""


@pytest.fixture(scope="module")
def shared(browser, report):
    """A page that is led from state to state."""
    with opened(browser, report.as_uri()) as page:
        yield page


def pieces(sentence, spans):
    """Return what stands at some places of a sentence."""
    return [sentence[start:end] for start, end in spans]


def test_words_that_differ_are_set_off(shared, data):
    """In each reworded sentence the lost and the added words are those of the data; what turned is named."""
    seen = 0
    for study in data["studies"][:6]:
        for draft in study["drafts"]:
            lead(shared, f"study={study['number']}&draft={draft['number']}", study["id"])
            for section, lines in draft["alignment"].items():
                for line in (one for one in lines if one["kind"] == "reworded"):
                    cells = (
                        f"at-prior-{section}-{line['prior']}",
                        f"at-{draft['number']}-{section}-{line['current']}",
                    )
                    prior = study["prior"][section][line["prior"]]
                    current = draft["report"][section][line["current"]]
                    assert shared.evaluate(SET_OFF, [cells[0], "del"]) == pieces(prior, line["lost"])
                    assert shared.evaluate(SET_OFF, [cells[1], "ins"]) == pieces(current, line["added"])
                    shown = text(shared, f"#{cells[1]} .marks")
                    for _, before, after in line["turns"]:
                        assert all(words in shown for words in (*before, *after))
                    seen += len(line["lost"]) + len(line["added"]) + len(line["turns"])
    assert seen > 10


def test_numbers_sides_amounts_and_changes_are_set_off(shared, data):
    """Each marked word of prior and draft stands out, with its kind; nothing else does."""
    study = data["studies"][0]
    for draft in study["drafts"]:
        lead(shared, f"study=0&draft={draft['number']}", study["id"])
        for who, report in (("prior", study["prior"]), (draft["number"], draft["report"])):
            for section in SECTIONS:
                for at, sentence in enumerate(report[section]):
                    marks = report["marks"][section][at]
                    shown = shared.evaluate(MARKED, f"at-{who}-{section}-{at}")
                    assert "".join(words for _, words in shown) == "".join(
                        sentence[start:end] for _, start, end in marks
                    )
                    assert {kind for kind, _ in shown} == {kind for kind, *_ in marks}


def test_places_count_characters_not_halves(browser):
    """Words behind characters beyond the first 65,536 are set off where they stand."""
    data = sample()
    study = data["studies"][0]
    study["drafts"][0]["report"]["findings"][1] = "\U0001fac1\U0001fac0 No effusion."
    study["drafts"][0]["alignment"]["findings"][1]["added"] = [[3, 5]]
    with contract(data) as server, opened(browser, f"{server.address}#study=0") as page:
        page.wait_for_selector("#compare")
        assert page.evaluate(SET_OFF, ["at-0-findings-1", "ins"]) == ["No"]


def test_the_reference_is_aligned_like_a_draft(shared, data):
    """What the draft missed and invented is counted and shown, each sentence once, beside the reference."""
    words = {"same": "= same", "reworded": "~ reworded", "new": "+ invented", "dropped": "\u2212 missed"}
    for study in data["studies"][:4]:
        for draft in study["drafts"]:
            lead(shared, f"study={study['number']}&draft={draft['number']}", study["id"])
            lines = [line for section in SECTIONS for line in draft["beside_reference"].get(section, [])]
            marks = shared.locator("#reference ol li .marks .kind").all_inner_texts()
            assert sorted(marks) == sorted(words[line["kind"]] for line in lines)
            for who, report in (("reference", study["reference"]), (draft["number"], draft["report"])):
                for section in SECTIONS:
                    for at, sentence in enumerate(report[section]):
                        assert text(shared, f"#by-{who}-{section}-{at} .words") == sentence
        lead(shared, f"study={study['number']}&with=reference", study["id"])
        for section in SECTIONS:
            for at, sentence in enumerate(study["reference"][section]):
                assert text(shared, f"#at-reference-{section}-{at} .words") == sentence


def test_reports_can_be_read_as_they_were_written(shared, data):
    """Prior, draft and reference are shown whole, with their own lines, and nothing in them is set off."""
    for study in data["studies"][:3] + data["studies"][-4:]:
        if not study["drafts"]:
            continue
        lead(shared, f"study={study['number']}&draft=0&view=written", study["id"])
        shown = text(shared, "#compare")
        for report in (study["prior"], study["drafts"][0]["report"]):
            for section in SECTIONS:
                assert report["written"].get(section, " ".join(report[section])) in shown
        assert shared.locator("#compare :is(ins, del, .mark, .marks)").count() == 0


@pytest.mark.parametrize("asked", ["no effusion", "LEFT", "<img", "nothing-of-the-kind"])
def test_the_search_finds_what_the_library_finds(browser, shared, studies, data, asked):
    """In the file and served, the studies with a sentence that holds all words, with that sentence."""
    picks = [study["selected"] for study in data["studies"]]
    with serving(app_of(studies)) as address, opened(browser, address) as served:
        for within in WITHIN:
            hits = {hit.number: hit for hit in find_words(studies.queries, picks, asked, within)}
            for page in (shared, served):
                kind = "" if within == "any" else f"&within={within}"
                lead(page, f"q={asked.replace(' ', '+')}{kind}")
                page.wait_for_function(SEARCHED)
                numbers = set(hits)
                if within == "any":
                    numbers |= {row["number"] for row in data["overview"]["studies"] if named(row, asked)}
                assert set(page.evaluate(SHOWN)) == numbers
                for number, hit in hits.items():
                    assert hit.sentence in text(page, f"[data-number='{number}'] .preview")


def named(row, asked):
    """Whether all words stand in the number, the id or the patient."""
    name = f"{row['number'] + 1} {row['id']} {row['patient'] or ''}".lower()
    return all(word in name for word in asked.lower().split())


def test_a_late_search_does_not_replace_a_later_wish(browser):
    """What was found for words that are no longer asked for is dropped; words go in no address."""
    data = sample()
    data["found"] = [{"number": 1, "where": 0, "sentence": "CANARY."}]
    with contract(data) as server, opened(browser, f"{server.address}#q=canary") as page:
        page.wait_for_selector(ROWS)
        lead(page, "")
        settle(page)
        assert page.evaluate(SHOWN) == [0, 1, 2]
        lead(page, "q=canary")
        page.wait_for_function(SEARCHED)
        assert page.evaluate(SHOWN) == [1]
        assert "draft 1: CANARY." in text(page, "[data-number='1'] .preview")
        lead(page, "q=other")
        lead(page, "q=canary")
        page.wait_for_function(SEARCHED)
        assert page.evaluate(SHOWN) == [1]
        assert any("canary" in body for body in server.bodies)
        assert not [path for path in server.asked if "canary" in path.lower()]


def test_two_selectors_stand_side_by_side(shared, data):
    """Where they differ and whose pick is better is counted over the studies, and shown in each."""
    overview = data["overview"]
    rows = overview["studies"]
    differ = [row for row in rows if row["selected"] != row["beside"]["selected"]]
    assert differ
    scored = [row for row in rows if row["score"] is not None and row["beside"]["score"] is not None]
    better = [row for row in scored if row in differ and row["score"] > row["beside"]["score"]]
    worse = [row for row in scored if row in differ and row["score"] < row["beside"]["score"]]
    lead(shared, "")
    shown = [
        shared.locator(f"#agree-{name} b").inner_text() for name in ("differ", "same", "first", "second")
    ]
    assert shown == [str(len(found)) for found in (differ, [1] * (len(rows) - len(differ)), better, worse)]
    apart = np.mean([row["score"] - row["beside"]["score"] for row in scored])
    assert f"{apart:.3f}".replace("-", "\u2212") in text(shared, "#selectors-words")
    row = next(row for row in differ if row["beside"]["selected"] is not None and row["selected"] is not None)
    lead(shared, f"study={row['number']}", row["id"])
    study = data["studies"][row["number"]]
    assert study["beside_why"] in text(shared, ".beside")
    assert "\u2606" in text(shared, f"#tab-{row['beside']['selected']}")
    shared.keyboard.press("c")
    assert f"with={row['beside']['selected']}" in shared.url
    shared.keyboard.press("c")


def test_the_histogram_counts_the_studies(shared, data):
    """Its words give extremes, median and mean of the shown picks; its bars are the counts."""
    shared.set_viewport_size({"width": 1440, "height": 1400})
    for key in ("score", "gain", "margin", "p"):
        values = [row[key] for row in data["overview"]["studies"] if row[key] is not None]
        lead(shared, f"spread={key}")
        words = shared.locator(".histogram").get_attribute("aria-label")
        expected = (min(values), max(values), np.median(values), np.mean(values))
        told = [float(number.replace("\u2212", "-")) for number in re.findall("\u2212?\\d\\.\\d{3}", words)]
        np.testing.assert_allclose(told, expected, atol=0.00051)
        heights = shared.locator(".histogram .all").evaluate_all(
            "(all) => all.map((one) => +one.getAttribute('height'))"
        )
        counts = np.histogram(values, bins=24)[0]
        np.testing.assert_allclose(np.array(heights) / max(heights), counts / counts.max(), atol=1e-9)


def test_choices_say_how_many_studies_they_leave(shared):
    """Beside each choice of a filter is the number of studies that it would show, the others as they are."""
    for state in ("", "tied=no", "flags=copy-forward&sign=plus"):
        lead(shared, state)
        counts = shared.evaluate(CHOICES)
        assert len(counts) == 12
        for name, value, count in counts:
            others = [part for part in state.split("&") if part and not part.startswith(name)]
            lead(shared, "&".join([*others, f"{name}={value}"]))
            assert len(shared.evaluate(SHOWN)) == count, (state, name, value)


def test_every_number_has_a_meaning(shared, data):
    """Numbers of a study are explained where the pointer or the focus is; Escape hides that alone."""
    lead(shared, "study=0", data["studies"][0]["id"])
    assert shared.evaluate(LOOSE) == []
    terms = shared.locator(".numbers .term, .bars .term")
    assert terms.count() >= 6
    tip = shared.locator("#tip")
    terms.first.hover()
    assert "second best" in tip.inner_text()
    shared.mouse.move(1, 1)
    assert not tip.is_visible()
    for at in range(terms.count()):
        terms.nth(at).focus()
        assert len(tip.inner_text()) > 20
        box = tip.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= shared.viewport_size["width"]
    shared.keyboard.press("Escape")
    assert not tip.is_visible()
    assert shared.locator("#study-title").is_visible()
    lead(shared, "")
    assert shared.evaluate(LOOSE) == []


def test_no_number_has_more_digits_than_mean_something(shared, data):
    """Four digits after the point at most, and four only where three would make two drafts look equal."""
    for study in data["studies"][:5]:
        lead(shared, f"study={study['number']}&parts=1", study["id"])
        numbers = re.findall(r"\d\.(\d+)", text(shared, "#study"))
        assert numbers
        assert max(map(len, numbers)) <= 4
        totals = [draft["total"] for draft in study["drafts"]]
        shown = shared.locator(".bars").first.locator(".value").all_inner_texts()
        assert len(set(shown)) == len({f"{total:.4f}" for total in totals})


@contextmanager
def at_images(browser, report):
    """Open a study with two images, and wait until they are drawn."""
    with opened(browser, f"{report.as_uri()}#study=0") as page:
        page.wait_for_function(FILMS_SEEN)
        yield page


def grays(page, name):
    """Return what stands on a canvas."""
    width, height, *values = page.evaluate(FILM, name)
    return np.array(values).reshape(height, width)


def test_images_are_seen_side_by_side(browser, report):
    """Prior and current show the pixels of their files, whole, at first."""
    with at_images(browser, report) as page:
        for name in ("Prior", "Current"):
            found = grays(page, name)
            rows, columns = (np.flatnonzero(found.max(axis=axis) > 0) for axis in (1, 0))
            inside = found[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].astype(int)
            assert (inside.min() < 3, inside.max()) == (True, 255)
            assert (
                np.diff(inside[:, inside.shape[1] // 2]) >= 0
            ).all()  # the shade of the file grows downwards
            assert abs(inside.shape[1] / inside.shape[0] - 64 / 48) < 0.03
        assert page.evaluate(CAPTIONS) == [
            f"{name} · level 128 · width 255 · zoom 100 %" for name in ("Prior", "Current")
        ]


def test_images_move_together_until_they_are_unlinked(browser, report):
    """Keys and tools zoom, move, window, invert and reset both images; unlinked, the chosen one alone."""
    with at_images(browser, report) as page:
        before = grays(page, "Prior")
        page.locator("canvas.film").first.focus()
        for key in ("+", "ArrowRight", "Shift+ArrowUp", "i"):
            page.keyboard.press(key)
        settle(page)
        captions = page.evaluate(CAPTIONS)
        assert all("zoom 125 %" in words and "level 115" in words for words in captions)
        for name in ("Prior", "Current"):
            assert (grays(page, name) != before).mean() > 0.3
        assert page.locator("#study-title").is_visible()  # the keys were the image's
        page.get_by_role("checkbox", name="linked").uncheck()
        page.locator("canvas.film").nth(1).focus()
        page.keyboard.press("0")
        settle(page)
        captions = page.evaluate(CAPTIONS)
        assert "zoom 125 %" in captions[0]
        assert "zoom 100 %" in captions[1]
        np.testing.assert_array_equal(grays(page, "Current"), before)
        page.get_by_role("button", name="Show the whole image as it is meant").click()
        settle(page)
        np.testing.assert_array_equal(grays(page, "Prior"), before)
        page.get_by_role("slider", name="Width").fill("-1")
        settle(page)
        assert "width 128" in page.evaluate(CAPTIONS)[0]
        page.locator("canvas.film").first.focus()
        page.keyboard.press("0")
        settle(page)
        assert page.get_by_role("slider", name="Width").input_value() == "0"


def test_images_are_moved_and_windowed_with_the_pointer(browser, report):
    """A drag moves a zoomed image, a drag with Shift windows it, the wheel zooms where the pointer is."""
    with at_images(browser, report) as page:
        film = page.locator("canvas.film").first
        film.scroll_into_view_if_needed()
        film.focus()
        box = film.bounding_box()
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(*middle)
        page.mouse.wheel(0, -400)
        page.wait_for_function(f"() => ({CAPTIONS})()[0].includes('zoom 272 %')")
        zoomed = grays(page, "Prior")
        page.mouse.down()
        page.mouse.move(middle[0], middle[1] + 40)
        page.mouse.up()
        settle(page)
        assert (grays(page, "Prior") != zoomed).any()
        page.keyboard.down("Shift")
        page.mouse.down()
        page.mouse.move(middle[0] + 60, middle[1])
        page.mouse.up()
        page.keyboard.up("Shift")
        settle(page)
        assert "width 344" in page.evaluate(CAPTIONS)[0]


def test_an_image_that_is_not_whole_is_said_in_words(browser):
    """Sizes that do not fit, bytes that are none and endless ones give a sentence, and the study stays."""
    film = {
        "width": 4,
        "height": 4,
        "bits": 8,
        "low": 0,
        "high": 255,
        "first": 0,
        "step": 1,
        "data": "eJxjAAAAAQAB",
    }
    for broken in (
        {},
        {"data": "!!"},
        {"data": "AAAA"},
        {"width": 10**9},
        {"width": -4},
        {"bits": 9},
        {"height": "x"},
    ):
        data = sample()
        data["studies"][0] |= {"has_image": True, "films": {"current": {**film, **broken}}}
        with contract(data) as server, opened(browser, f"{server.address}#study=0") as page:
            page.wait_for_selector("text=The images could not be read.")
            assert page.locator("#compare").is_visible()
