"""The explorer by keyboard, by a screen reader's names, and by the contrast of its colours."""

import re

import pytest

from browser import FILMS_SEEN, PHONE, ROWS, contract, lead, opened, settle
from explorer_sample import sample
from tabon.service.explorer.export import read_page

NAMED = {
    "button", "link", "textbox", "searchbox", "combobox", "checkbox", "slider", "spinbutton", "tab", "image",
    "img", "dialog", "form", "search", "tabpanel", "complementary", "navigation", "DisclosureTriangle",
}  # fmt: skip
STOPS = """() => [...document.querySelectorAll(
  "a[href], button, input, select, textarea, summary, [tabindex]")]
  .filter((one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility({ visibilityProperty: true }))
  .filter((one) => !one.closest("details:not([open]) > :not(summary)"))
  .filter((one) => one.getClientRects().length)
  .map((one, at) => (one.dataset.stop = String(at)))"""
WHERE = "() => document.activeElement?.dataset?.stop ?? null"
PAIRS = [  # text or sign, its ground, the least contrast (WCAG 2.2: 1.4.3 and 1.4.11)
    ("ink", "page", 4.5), ("ink", "card", 4.5), ("ink", "sunk", 4.5), ("ink", "tint", 4.5),
    ("ink", "new-card", 4.5), ("ink", "gone-card", 4.5), ("ink", "word-card", 4.5),
    ("faint", "page", 4.5), ("faint", "card", 4.5), ("faint", "sunk", 4.5), ("faint", "tint", 4.5),
    ("faint", "new-card", 4.5), ("faint", "gone-card", 4.5), ("faint", "word-card", 4.5),
    ("new", "new-card", 4.5), ("gone", "gone-card", 4.5), ("word", "word-card", 4.5),
    ("warn", "warn-card", 4.5), ("bad", "bad-card", 4.5), ("bad", "card", 4.5),
    ("accent", "page", 4.5), ("accent", "card", 4.5), ("accent", "tint", 4.5), ("on-accent", "accent", 4.5),
    ("strong", "card", 3.0), ("plus", "card", 3.0), ("minus", "card", 3.0), ("accent", "sunk", 3.0),
]  # fmt: skip


@pytest.mark.parametrize("size", [(1440, 900), PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("state", ["", "study=0&with=1", "study=1&with=reference&wide=1&parts=1"])
def test_every_control_is_reached_by_tab_alone(browser, state, size):
    """Tab comes to each control of the list and of a study once, in the order of the page."""
    with contract(sample()) as server, opened(browser, f"{server.address}#{state}", size=size) as page:
        page.wait_for_selector("#study-title" if state else ROWS)
        settle(page)
        page.evaluate("() => document.activeElement.blur()")
        page.evaluate("() => window.getSelection().removeAllRanges()")
        page.locator("#skip").focus()
        stops = page.evaluate(STOPS)
        assert len(stops) > 8
        reached = [page.evaluate(WHERE)]
        for _ in stops[1:]:
            page.keyboard.press("Tab")
            reached.append(page.evaluate(WHERE))
        assert reached == stops


@pytest.mark.parametrize("state", ["", "study=0&with=1", "study=0&with=reference&wide=1&parts=1", "study=2"])
def test_a_screen_reader_hears_a_name_for_every_control(browser, state):
    """In the browser's accessibility tree no control, picture or landmark is without a name."""
    with contract(sample()) as server, opened(browser, f"{server.address}#{state}") as page:
        page.wait_for_selector("#study-title" if state else ROWS)
        settle(page)
        tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
        found = [
            (node["role"]["value"], node.get("name", {}).get("value", "").strip())
            for node in tree
            if not node["ignored"] and node["role"]["value"] in NAMED
        ]
        assert len(found) > 12
        assert [role for role, name in found if not name] == []


def test_a_row_is_heard_whole(browser):
    """The name of a study's link says its number, id, patient, first words, pick and what was measured."""
    with contract(sample()) as server, opened(browser, server.address) as page:
        page.wait_for_selector(ROWS)
        name = " ".join(page.locator(ROWS).first.inner_text().split())
        heard = page.get_by_role(
            "link", name=re.compile("Study 1.*study-0.*patient-0.*The first words.*draft 1 of 3")
        )
        assert heard.count() == 1
        assert "0.100" in name


def test_images_have_names_and_keys(browser, report):
    """Each image is a picture with a name, says its window in words, and names its keys."""
    with opened(browser, f"{report.as_uri()}#study=0") as page:
        page.wait_for_function(FILMS_SEEN)
        for name in ("Prior", "Current"):
            film = page.get_by_role("img", name=f"{name}: chest X-ray")
            assert film.count() == 1
            assert "arrows move" in page.locator(f"#{film.get_attribute('aria-describedby')}").inner_text()
            assert "zoom 100 %" in film.locator("xpath=following-sibling::figcaption").inner_text()


def test_the_focus_is_where_it_was_after_a_choice(browser):
    """Changing the view, the map or the draft redraws the study and leaves the focus on the control."""
    with contract(sample()) as server, opened(browser, f"{server.address}#study=0") as page:
        page.wait_for_selector("#study-title")
        for control in ("view-written", "view-aligned", "map-impression", "tab-2"):
            page.focus(f"#{control}")
            page.keyboard.press("Enter")
            settle(page)
            assert page.evaluate("() => document.activeElement.id") == control
        page.select_option("#with", "reference")
        assert page.locator("#compare .heads .cell").count() == 3
        lead(page, "")
        page.select_option("#sort", "margin")
        assert page.locator("#sort").input_value() == "margin"


def colours(css):
    """Return the named colours of the light and of the dark theme."""
    light = dict(re.findall(r"(--[\w-]+): (#\w{6})", css.split("@media")[0]))
    dark = dict(re.findall(r"(--[\w-]+): (#\w{6})", css.split(':root[data-theme="dark"]')[1].split("}")[0]))
    assert set(light) == set(dark)
    return light, dark


def luminance(colour):
    """Return the relative luminance of WCAG."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(one, other):
    """Return the contrast ratio of WCAG."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("sign", "ground", "least"), PAIRS)
def test_colours_keep_their_contrast(sign, ground, least):
    """Text has 4.5 and signs have 3 on every ground that they stand on, in both themes."""
    assert ratio("#000000", "#ffffff") == pytest.approx(21)
    for theme in colours(read_page().css):
        assert ratio(theme[f"--{sign}"], theme[f"--{ground}"]) >= least
