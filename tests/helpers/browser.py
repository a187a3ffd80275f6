"""Debian's Chromium through Playwright, a page that is watched, a server of the explorer's contract."""

import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from tabon.service.explorer.export import read_page
from tabon.service.page import PAGE_POLICY

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE = (1440, 900)
PHONE = (390, 844)
SMALL_PHONE = (360, 740)
KEPT_WORDS = {
    "section",
    "prior_section",
    "lacks",
    "films",
    "marks",
}  # keys of names in the contract
ALIGNMENTS = {"alignment", "beside_reference"}
HOSTILE = (
    "<script>alert({0})</script>",
    "</script><script>alert({0})</script>",
    "<img src=x{0} onerror=alert({0})>",
    '"><svg/onload=alert({0})>',
    "'-alert({0})-'",
    "<iframe srcdoc='<script>alert({0})</script>'></iframe>",
    "<style>body{{display:none}}</style>{0}",
    "<!-- {0} -->",
    "&lt;b&gt;{0}&amp;",
    "javascript:alert({0})",
    "<a href=javascript:alert({0}) autofocus onfocus=alert({0})>x</a>",
    "{{{{constructor.constructor('alert({0})')()}}}}",
    "\u202e{0}\u2028\u2029<b>",
    "W" * 300 + "{0}",
    "__proto__{0}",
)


@contextmanager
def chromium():
    """Start the browser; skip where it, or what drives it, is missing."""
    if find_spec("playwright") is None:
        pytest.skip("playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}; install Debian's chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page, with all that it asked for, said and opened."""

    def __init__(self, page):
        self.page, self.requests, self.said, self.dialogs = page, [], [], []
        page.context.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", self._dismiss)

    def _dismiss(self, dialog):
        """Note a dialog, and close it."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def check(self, address, expected):
        """Refuse dialogs, words on the console that were not expected, and requests to another place."""
        assert self.dialogs == []
        assert [text for text in self.said if not (expected and re.search(expected, text))] == []
        assert {place(url) for url in self.requests} <= {place(address), ("data", "")}


def place(url):
    """Return the scheme and the host of an address; a blob belongs to the page that made it."""
    parts = urlsplit(url.removeprefix("blob:"))
    return parts.scheme, parts.netloc


@contextmanager
def opened(browser, address, *, size=WIDE, expected=None, script=None, **settings):
    """Open an address in a fresh profile and yield the page; what it did is checked in the end."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **settings)
    try:
        if script:
            context.add_init_script(script)
        page = context.new_page()
        page.set_default_timeout(20_000)
        watched = Watched(page)
        page.goto(address)
        yield page
        watched.check(address, expected)
    finally:
        context.close()


class Contract(BaseHTTPRequestHandler):
    """Answers as the explorer's service does, from data at hand."""

    def do_GET(self):
        """Answer one request."""
        path = urlsplit(self.path).path
        self.server.asked.append(path)
        if path in self.server.refusals:
            self._refuse(*self.server.refusals[path])
        elif path in self.server.files:
            self._give(*self.server.files[path])
        else:
            self._refuse(404, {})

    def do_POST(self):
        """Answer a search; its body is kept."""
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.do_GET()

    def _refuse(self, status, headers):
        """Refuse a request; a refusal with a Retry-After holds once."""
        if "Retry-After" in headers:
            del self.server.refusals[urlsplit(self.path).path]
        self._give(b"{}", "application/json", status=status, headers=headers)

    def _give(self, body, kind, *, status=200, headers=None):
        """Send an answer with the policy of the served page."""
        self.send_response(status)
        named = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": PAGE_POLICY,
        }
        for name, value in {**named, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def contract(data, refusals=None):
    """Serve the page with the data of the contract and yield the server; `address` is where it is."""
    page = read_page()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Contract)
    server.daemon_threads = True
    server.asked, server.bodies, server.refusals = [], [], dict(refusals or {})
    server.address = f"http://127.0.0.1:{server.server_port}/"
    server.files = {
        "/": (page.html.encode(), "text/html; charset=utf-8"),
        "/explorer.css": (page.css.encode(), "text/css"),
        "/explorer.js": (page.js.encode(), "text/javascript; charset=utf-8"),
        "/v1/explorer": (json.dumps(data["overview"]).encode(), "application/json"),
        "/v1/explorer/search": (json.dumps({"found": data.get("found", [])}).encode(), "application/json"),
    }
    for study in data["studies"]:
        body = json.dumps(study).encode()
        server.files[f"/v1/explorer/studies/{study['number']}"] = (body, "application/json")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def poisoned(data):
    """Return data whose every text is hostile, with the list of these texts; names of the contract stay."""
    numbers, texts = count(), []

    def poison(value, key="", *, aligned=False):
        if key in KEPT_WORDS or (aligned and key == "kind"):
            return value
        if isinstance(value, str):
            number = next(numbers)
            texts.append(HOSTILE[number % len(HOSTILE)].format(number))
            return texts[-1]
        if isinstance(value, list):
            return [poison(one, key, aligned=aligned) for one in value]
        if isinstance(value, dict):
            return {k: poison(one, k, aligned=aligned or k in ALIGNMENTS) for k, one in value.items()}
        return value

    return poison(data), texts


def lead(page, state, study=None):
    """Lead a page to another hash; wait until it was told, for two frames, and for a study if named."""
    page.evaluate(LEAD, state)
    if study is not None:
        page.wait_for_function(TITLED, arg=f"Study {study}")


def settle(page):
    """Let the events on their way and two frames pass."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def text(page, selector):
    """Return all text of one element, also what is not seen."""
    return page.locator(selector).evaluate("(node) => node.textContent")


def at(page):
    """Return which study has the focus in the list."""
    return page.evaluate("() => document.activeElement.dataset.number")


def sideways(page):
    """Return how far a page scrolls sideways."""
    return page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")


ROWS = "#studies a.row"
SHOWN = "() => [...document.querySelectorAll('#studies a.row')].map((row) => Number(row.dataset.number))"
TITLED = "(title) => document.querySelector('#study-title')?.textContent === title"
LEAD = """(state) => new Promise((done) => {
  const before = location.href, drawn = () => requestAnimationFrame(() => requestAnimationFrame(done));
  location.hash = state;
  if (location.href === before) drawn();
  else addEventListener("hashchange", drawn, { once: true });
})"""
CELLS = """(who) => [...document.querySelectorAll(`#compare [id^="at-${who}-"]`)]
  .map((cell) => [cell.id, cell.querySelector(".words").textContent])"""
"""In a page: the sentences of one report, with where they stand."""

ODD_ELEMENTS = """() => [...document.querySelectorAll("*")].filter((node) =>
  ["IFRAME", "OBJECT", "EMBED", "BASE"].includes(node.tagName)
  || [...node.attributes].some((one) => one.name.startsWith("on")
    || (/^(href|src|action|formaction|xlink:href)$/.test(one.name) && /^\\s*javascript:/i.test(one.value)))
  || (node.hasAttribute("style") && node.id !== "tip")
  || (node.tagName === "IMG" && node.src && !/^(data:image|blob:)/.test(node.src))
  || (node.tagName === "SCRIPT" && ![document.body, document.head].includes(node.parentElement))
  || (node.tagName === "STYLE" && node.parentElement !== document.head)).map((node) => node.outerHTML)"""
"""In a page: elements that only injected markup would make."""

FILM = """(name) => {
  const film = [...document.querySelectorAll("canvas.film")].find((one) => one.ariaLabel.startsWith(name));
  if (!film?.nextSibling?.textContent) return null;
  const copy = new OffscreenCanvas(film.width, film.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(film, 0, 0);
  const { data } = copy.getImageData(0, 0, film.width, film.height);
  return [film.width, film.height, ...data.filter((_, at) => at % 4 === 0)];
}"""
"""In a page: the size of an X-ray's canvas and the grays on it, null while it is not drawn."""

FILMS_SEEN = f"() => ['Prior', 'Current'].every((name) => new Set(({FILM})(name)).size > 30)"
NAMELESS = """() => [...document.querySelectorAll(
  "a, button, input, select, summary, canvas, img, [role=img], [role=group], [tabindex='0']")]
  .filter((node) => (node.checkVisibility?.() ?? true) && node.getClientRects().length)
  .filter((node) => {
    const own = node.getAttribute("aria-label") || node.getAttribute("alt") || node.textContent;
    return !(node.labels?.length ? node.labels[0].textContent : own).trim();
  }).map((node) => node.outerHTML)"""
"""In a page: controls and pictures without a name."""

CONTRAST = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(Number)
      .map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const clear = (colour) => colour === "transparent" || /rgba\\(.*, 0\\)/.test(colour);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!clear(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const text = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    const box = node.getBoundingClientRect();
    if (!text || box.width < 2 || box.height < 2) continue;
    if (node.closest("svg")) {
      const disc = getComputedStyle(node.parentElement.querySelector(".disc")).fill;
      found.push([ratio(getComputedStyle(node).fill, disc), "map " + node.textContent]);
    } else {
      const name = node.className + ": " + node.textContent.slice(0, 40);
      found.push([ratio(getComputedStyle(node).color, ground(node)), name]);
    }
  }
  return found;
}"""
"""In a page: the contrast of every text that is seen, with what it is."""
