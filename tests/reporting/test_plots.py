"""Figures as SVG, PDF and PNG: the same bytes each time, a mark for each number, a word for each gap."""

import hashlib
import re
import subprocess
import sys
from dataclasses import asdict, replace
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tabon._internal import extras as _extras
from tabon.errors import BadInputError, MissingExtraError
from tabon.evaluation.results import MEAN_RUN, ORACLE, RANDOM, Cell, Results, Run
from tabon.reporting.plots import pictures
from tabon.reporting.plots.curves import Curve, curve_plot, curves_of, joined, risk_plot
from tabon.reporting.plots.drawing import COLOURS, DPI, FIGURE_FORMS, GAIN, LOSS, looks
from tabon.reporting.plots.gains import GAP, RELATIVE, gains_plot, panel_of, run_heat_map
from tabon.reporting.plots.map import transition_map_plot
from tabon.reporting.transition_map import Map2D, TransitionMap
from tabon.selectors.abstention import RiskCoverage

pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")
NAME = "{http://www.w3.org/2000/svg}"
METHODS = ("mean-shift/min", "mean-shift/knn", "novelty/min")
COLUMNS = {"BLEU-1": "bleu-1", "RadGraph": "radgraph"}
RUNS = ("a P1", "b P2")


def cell_of(run, section, method, score, delta):
    """Return a cell whose every number follows from its difference; random is worth 0.2, the oracle 0.4."""
    ends = {"delta_low": delta - 0.01, "delta_high": delta + 0.01}
    gaps = {"gap": delta / 0.2, "gap_low": (delta - 0.01) / 0.2, "gap_high": (delta + 0.01) / 0.2}
    facts = {"run": run, "section": section, "method": method, "score": score}
    return Cell(**facts, value=0.2 + delta, n=10, delta=delta, relative=delta / 0.2, **ends, **gaps)


def example(methods=METHODS, runs=RUNS, facts=None):
    """Return results with differences that differ everywhere."""
    cells, step = [], 0
    for section in ("findings", "impression"):
        for score in COLUMNS.values():
            for run in (*runs, MEAN_RUN) if len(runs) > 1 else runs:
                cells += [
                    Cell(run=run, section=section, method=each, score=score, value=value, n=10)
                    for each, value in ((RANDOM, 0.2), (ORACLE, 0.4))
                ]
                for method in methods:
                    step += 1
                    cells.append(cell_of(run, section, method, score, 0.03 * np.sin(step).item()))
    return Results(
        cells=tuple(cells),
        runs=tuple(
            Run(name=name, model=name, prompt="P1", queries="0", studies=10, patients=9, drafts=50, short=0)
            for name in runs
        ),
        scores=dict.fromkeys(COLUMNS.values(), "signature"),
        missing={},
        methods=dict.fromkeys(methods, "signature"),
        headline=tuple(COLUMNS.values()),
        settings={},
        facts=facts or {},
    )


def curve_record(method="novelty/min", gaps=(0.1, 0.2, 0.15), **changes):
    """Return a curve as a results file keeps it."""
    points = [
        {
            "x": x,
            "gap": gap,
            "low": None if gap is None else gap - 0.05,
            "high": None if gap is None else gap + 0.05,
        }
        for x, gap in enumerate(gaps, start=2)
    ]
    facts = {"name": "K-curve", "x": "drafts (K)", "score": "bleu-1", "section": "findings"}
    return {**facts, "method": method, "points": points, **changes}


def example_map(drafts=((0.1, 0.2), None, (0.3, -0.1), (0.1, 0.2)), picked=2):
    """Return a map with two drafts in one place and one without a place."""
    bank = tuple((float(x), float(y)) for x, y in np.random.default_rng(0).normal(size=(20, 2)).round(4))
    nearest = tuple(None if place is None else number for number, place in enumerate(drafts))
    points = Map2D(bank=bank, drafts=tuple(drafts), nearest=nearest, explained=(0.3, 0.2), total=500)
    return TransitionMap(query="q-1", section="findings", distance="novelty", picked=picked, **asdict(points))


def ids(svg, start):
    """Return the marks whose name begins so; the picture must be XML."""
    return [
        element.get("id")
        for element in ET.fromstring(svg).iter()  # noqa: S314
        if (element.get("id") or "").startswith(start)
    ]


def texts(svg):
    """Return everything that is written in a picture."""
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter(f"{NAME}text")]  # noqa: S314


def place_of(svg, name):
    """Return where the mark of one point stands."""
    [group] = [element for element in ET.fromstring(svg).iter(f"{NAME}g") if element.get("id") == name]  # noqa: S314
    [use] = group.iter(f"{NAME}use")
    return float(use.get("x")), float(use.get("y"))


def all_pictures():
    """Return one of each kind."""
    results = example()
    return {
        "gains": gains_plot(results, "findings", COLUMNS),
        "runs": run_heat_map(results, "findings", "bleu-1"),
        "curve": curve_plot(Curve.from_record(curve_record())),
        "map": transition_map_plot(example_map()),
        "risk": risk_plot({"paper": RiskCoverage(coverage=(0.5, 1.0), risk=(0.2, 0.4))}, "bleu-1"),
    }


def digest_of(drawings):
    """Return what tells whether any byte of any form differs."""
    saved = (drawing.saved(form) for drawing in drawings.values() for form in FIGURE_FORMS)
    return hashlib.sha256(b"".join(saved)).hexdigest()


def without(results, keep):
    """Drop the cells that a condition does not keep."""
    return replace(results, cells=tuple(cell for cell in results.cells if keep(cell)))


@pytest.fixture(scope="module")
def drawings():
    """Return one of each kind, drawn once."""
    return all_pictures()


@pytest.fixture(scope="module")
def drawn(drawings):
    """Return the same as SVG."""
    return {kind: drawing.svg for kind, drawing in drawings.items()}


KINDS = ("gains", "runs", "curve", "map", "risk")


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_small_plain_xml(drawn, kind):
    """Text stays text in a generic font, no image is inside, no date, no address but the name spaces."""
    svg = drawn[kind]
    root = ET.fromstring(svg)  # noqa: S314
    assert root.tag == f"{NAME}svg"
    assert root.find(f"{NAME}title").text
    assert len(texts(svg)) > 3
    assert not list(root.iter(f"{NAME}image"))
    assert "DejaVu" not in svg
    assert "metadata" not in svg
    assert "<!DOCTYPE" not in svg
    assert set(re.findall(r'https?://[^"\s]+', svg)) == {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert len(svg) < 60_000


@pytest.mark.parametrize("kind", KINDS)
def test_a_png_has_the_figure_s_size_and_something_on_it(drawings, kind):
    """300 dots per inch, white at the edges, colours and the title's ink inside; text says what it is."""
    drawing = drawings[kind]
    with Image.open(BytesIO(drawing.saved("png"))) as image:
        assert image.format == "PNG"
        np.testing.assert_allclose(image.size, DPI * drawing.figure.get_size_inches(), atol=1)
        assert image.text == {"Title": drawing.title}
        assert len(image.getcolors(2**24)) > 50
        pixels = np.asarray(image.convert("RGB"))
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    assert (edge == 255).all()
    assert 0.005 < (pixels < 200).any(axis=2).mean() < 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_a_pdf_is_one_page_of_vectors_and_text(drawings, kind):
    """A page of the figure's size, TrueType fonts, no image, no date and no maker; it says what it is."""
    data = drawings[kind].saved("pdf")
    assert data.startswith(b"%PDF-1.")
    assert data.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type /Page\b", data)) == 1
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", data)
    np.testing.assert_allclose(
        [float(side) for side in box.groups()], 72 * drawings[kind].figure.get_size_inches()
    )
    assert b"/TrueType" in data or b"/CIDFontType2" in data
    assert not re.search(rb"/Type3|/Subtype /Image|/CreationDate|/Producer|/Creator", data)
    assert drawings[kind].title.encode("latin-1") in data


@pytest.mark.parametrize("form", FIGURE_FORMS)
def test_a_form_does_not_depend_on_the_forms_before(drawings, form):
    """Saved first, or after all others, a figure has the same bytes."""
    fresh = curve_plot(Curve.from_record(curve_record()))
    for other in FIGURE_FORMS:
        drawings["curve"].saved(other)
    assert fresh.saved(form) == drawings["curve"].saved(form)


def test_no_title_is_cut_off():
    """A figure of one method and one score is as wide as what is written above and below it."""
    results = example(("paper",), ("a P1",))
    for drawing in (
        gains_plot(results, "findings", {"BLEU-1": "bleu-1"}),
        run_heat_map(results, "findings", "bleu-1"),
    ):
        drawing.figure.set_dpi(DPI)
        ends = [text.get_window_extent().x1 for text in drawing.figure.texts]
        assert max(ends) < drawing.figure.bbox.x1


def test_the_bytes_do_not_depend_on_the_process_or_its_settings(drawings):
    """A fresh process with other matplotlib settings draws the same, and never loads pyplot."""
    code = """
import sys
import tabon.reporting.plots, tabon.reporting.page
assert "matplotlib" not in sys.modules
import matplotlib
matplotlib.rcParams.update({"font.size": 30, "svg.fonttype": "path", "axes.grid": True, "text.color": "red"})
settings = lambda: {key: matplotlib.rcParams[key] for key in matplotlib.rcParams if key != "backend"}
before = settings()
import test_plots
drawn = test_plots.all_pictures()
assert settings() == before
assert "matplotlib.pyplot" not in sys.modules
print(test_plots.digest_of(drawn))
"""
    here = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "helpers")]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {here!r}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONHASHSEED": "7", "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest_of(drawings)


def test_gains_have_a_mark_and_an_interval_for_each_method_and_score(drawn):
    """Two panels of three methods; the names stand once, at the left."""
    assert len(ids(drawn["gains"], "gain-")) == len(ids(drawn["gains"], "interval-")) == 6
    assert not ids(drawn["gains"], "missing-")
    written = texts(drawn["gains"])
    assert [written.count(name) for name in ("Mean-Shift / min", "Novelty / min", "BLEU-1", "RadGraph")] == [
        1
    ] * 4


def test_gains_stand_where_their_numbers_say(drawn):
    """Across both panels, the place of a mark is one straight line of its value."""
    results = example()
    xs, values = [], []
    for panel, score in enumerate(COLUMNS.values()):
        places = [place_of(drawn["gains"], f"gain-{panel}-{row}") for row in range(3)]
        assert [y for _, y in places] == sorted(y for _, y in places)
        start = place_of(drawn["gains"], f"gain-{panel}-0")[0]
        found = [
            results.cell(run=MEAN_RUN, section="findings", method=method, score=score).gap
            for method in METHODS
        ]
        xs += [x - start for x, _ in places]
        values += [value - found[0] for value in found]
    slope = np.dot(xs, values) / np.dot(values, values)
    assert slope > 0
    np.testing.assert_allclose(xs, slope * np.array(values), atol=0.01)


def test_one_wide_interval_does_not_make_dots_of_the_other_panels():
    """A panel much wider than another has an axis of its own, and the note says so."""
    results = example()
    cells = [
        replace(cell, gap_low=-8.0) if (cell.method, cell.score) == ("novelty/min", "radgraph") else cell
        for cell in results.cells
    ]
    wide = replace(results, cells=tuple(cells))
    for found, says in ((results, False), (wide, True)):
        drawing = gains_plot(found, "findings", COLUMNS)
        assert any("each panel has its own x axis" in text for text in texts(drawing.svg)) == says
        limits = {axes.get_xlim() for axes in drawing.figure.axes}
        assert len(limits) == 1 + says
    low, high = gains_plot(wide, "findings", COLUMNS).figure.axes[0].get_xlim()
    assert high - low < 1


def test_a_gain_that_is_not_measured_leaves_a_gap_and_a_note():
    """A cell without a number and a cell that is not there are told alike."""
    results = without(example(), lambda cell: (cell.method, cell.score) != ("novelty/min", "bleu-1"))
    cells = [
        replace(cell, value=None, gap=None, relative=None)
        if (cell.method, cell.score) == ("mean-shift/min", "radgraph")
        else cell
        for cell in results.cells
    ]
    svg = gains_plot(replace(results, cells=tuple(cells)), "findings", COLUMNS).svg
    assert len(ids(svg, "gain-")) == 4
    assert ids(svg, "missing-") == ["missing-0-2", "missing-1-0"]
    assert texts(svg).count("not measured") == 2
    assert any("2 not measured" in text for text in texts(svg))


def test_a_score_of_no_cell_is_an_empty_panel():
    """A column that nobody measured is drawn as such, and nothing breaks."""
    svg = gains_plot(example(), "findings", {"COMET": "comet"}).svg
    assert len(ids(svg, "missing-")) == 3
    assert not ids(svg, "gain-")


def test_without_a_gap_the_relative_change_is_shown_with_its_interval():
    """The interval of the relative change is that of the difference over the random value."""
    results = example()
    flat = replace(
        results, cells=tuple(replace(cell, gap=None, gap_low=None, gap_high=None) for cell in results.cells)
    )
    panel = panel_of(flat, "findings", "bleu-1", "BLEU-1")
    assert panel.unit == RELATIVE
    assert panel_of(results, "findings", "bleu-1", "BLEU-1").unit == GAP
    for gain in panel.gains:
        cell = results.cell(run=MEAN_RUN, section="findings", method=gain.method, score="bleu-1")
        assert gain.value == pytest.approx(cell.delta / 0.2)
        assert (gain.low, gain.high) == (
            pytest.approx(cell.delta_low / 0.2),
            pytest.approx(cell.delta_high / 0.2),
        )
    assert any("relative to random" in text for text in texts(gains_plot(flat, "findings", COLUMNS).svg))


def test_a_filled_mark_is_one_whose_interval_leaves_zero_out():
    """A mark is white inside where chance is not excluded."""
    results = example()
    cells = [
        replace(cell, gap_low=-1.0, gap_high=1.0) if cell.method == METHODS[1] else cell
        for cell in results.cells
    ]
    results = replace(results, cells=tuple(cells))
    svg = gains_plot(results, "findings", {"BLEU-1": "bleu-1"}).svg
    panel = panel_of(results, "findings", "bleu-1", "BLEU-1")
    assert len({gain.clear() for gain in panel.gains}) == 2
    for row, gain in enumerate(panel.gains):
        use = svg.partition(f'id="gain-0-{row}"')[2].partition("<use")[2].partition("/>")[0]
        assert ("fill: #ffffff" in use) != gain.clear()


def test_a_heat_map_has_a_cell_for_each_run_and_method_and_the_mean(drawn):
    """Every number is written in points, under the colour of its sign."""
    assert len(ids(drawn["runs"], "cell-")) == 9
    results, written = example(), texts(drawn["runs"])
    cells = [cell for cell in results.cells if (cell.section, cell.score) == ("findings", "bleu-1")]
    numbers = [f"{100 * cell.delta:+.2f}".replace("-", "\u2212") for cell in cells if cell.method in METHODS]
    assert sorted(numbers) == sorted(text for text in written if re.fullmatch(r"[+\u2212]\d\.\d\d", text))
    assert "mean of 2 runs" in written
    strongest = max(cells, key=lambda cell: abs(cell.delta or 0.0))
    assert (GAIN if strongest.delta > 0 else LOSS).lower() in drawn["runs"]


def test_colours_of_a_heat_map_are_centred_at_zero():
    """A gain is bluer than red, a loss redder than blue, and equal sizes are equally strong."""
    cells = [
        cell_of("a P1", "findings", method, "bleu-1", delta)
        for method, delta in zip("xyz", (0.02, -0.02, 0.0), strict=True)
    ]
    svg = run_heat_map(
        replace(example(tuple("xyz"), ("a P1",)), cells=tuple(cells)), "findings", "bleu-1"
    ).svg
    fills = [svg.partition(f'id="cell-0-{column}"')[2].partition("fill: #")[2][:6] for column in range(3)]
    assert fills[:2] == [GAIN[1:].lower(), LOSS[1:].lower()]
    red, green, blue = (int(fills[2][place : place + 2], 16) for place in (0, 2, 4))
    assert min(red, green, blue) > 240


def test_a_missing_cell_of_a_heat_map_is_hatched_and_counted():
    """Nothing is painted where nothing is known."""
    results = without(example(), lambda cell: (cell.run, cell.method) != ("a P1", "novelty/min"))
    svg = run_heat_map(results, "findings", "bleu-1", heading="B1").svg
    assert ids(svg, "missing-") == ["missing-0-2"]
    assert len(ids(svg, "cell-")) == 8
    assert any("1 not measured" in text for text in texts(svg))
    assert ET.fromstring(svg).find(f"{NAME}title").text.startswith("B1 in each run")  # noqa: S314


def test_one_run_has_no_mean_and_no_differences_no_colour():
    """A single row is drawn, and equal values do not divide by zero."""
    results = example(runs=("a P1",))
    still = replace(results, cells=tuple(replace(cell, delta=0.0) for cell in results.cells))
    assert texts(run_heat_map(still, "findings", "bleu-1").svg).count("0.00") == 3


def test_methods_of_one_distance_share_a_colour():
    """Colour tells the distance, shape the aggregate; after the last colour comes the first."""
    found = looks([*METHODS, "novelty/knn", "longest"])
    assert found["novelty/min"].colour == found["novelty/knn"].colour != found["mean-shift/min"].colour
    assert found["novelty/min"].marker == found["mean-shift/min"].marker != found["novelty/knn"].marker
    assert len(looks(map(str, range(30)))) == 30
    assert len(set(COLOURS)) == len(COLOURS)


def test_curves_of_one_name_are_drawn_together():
    """Records are one method each; a picture is one score of one section."""
    records = [curve_record(), curve_record("cost-ot/min"), curve_record(section="impression")]
    curves = curves_of(example(facts={"curves": records}))
    assert [(curve.section, len(curve.lines)) for curve in curves] == [("findings", 2), ("impression", 1)]
    assert curves == joined(map(Curve.from_record, records))
    svg = curve_plot(curves[0], heading="BLEU-1").svg
    assert ids(svg, "line-") == ["line-0", "line-1"]
    assert ids(svg, "band-") == ["band-0", "band-1"]
    assert {"Novelty / min", "Cost-OT / min", "drafts (K)", "2", "3", "4"} <= set(texts(svg))


def test_points_are_put_in_order_of_x():
    """A curve is a function of x, however it was written."""
    record = curve_record()
    turned = {**record, "points": record["points"][::-1]}
    assert Curve.from_record(turned) == Curve.from_record(record)


def test_an_unknown_point_breaks_the_line_and_is_counted():
    """No line is drawn across what was not measured."""
    svg = curve_plot(Curve.from_record(curve_record(gaps=(0.1, 0.2, None, 0.3, 0.2)))).svg
    line = svg.partition('id="line-0"')[2].partition("<path")[2].partition('"')[2].partition('"')[0]
    assert line.count("M") == 2
    assert any("1 not measured" in text for text in texts(svg))


def test_a_curve_without_intervals_has_no_band():
    """It is drawn, and told."""
    points = [{"x": 1, "gap": 0.1}, {"x": 64, "gap": 0.2}]
    svg = curve_plot(Curve.from_record(curve_record(points=points))).svg
    assert not ids(svg, "band-")
    assert any("2 without an interval" in text for text in texts(svg))


@pytest.mark.parametrize(
    "change", [{"points": None}, {"points": [{"gap": 1}]}, {"points": [{"x": "a", "gap": 1}]}]
)
def test_a_broken_curve_is_refused(change):
    """What is not whole says so."""
    with pytest.raises(BadInputError, match="not whole"):
        Curve.from_record(curve_record(**change))


def test_a_map_shows_the_bank_the_drafts_and_the_pick(drawn):
    """Each draft with a place is marked in both views, the pick as such; equal places share a label."""
    svg = drawn["map"]
    assert ids(svg, "close-draft-") == ["close-draft-0", "close-draft-3"]
    assert ids(svg, "map-draft-") == ["map-draft-0", "map-draft-3"]
    assert ids(svg, "close-pick-") == ["close-pick-2"]
    assert ids(svg, "link-") == ["link-0", "link-2", "link-3"]
    assert {"0, 3", "2"} <= set(texts(svg))
    [bank] = [g for g in ET.fromstring(svg).iter(f"{NAME}g") if g.get("id") == "map-bank"]  # noqa: S314
    assert len(list(bank.iter(f"{NAME}use"))) == 17
    written = " ".join(texts(svg))
    assert "20 of 500 training transitions" in written
    assert "axis 1: 30% of the spread" in written
    assert "no place: draft 1" in written


def test_a_map_without_a_pick_or_without_places_is_still_drawn():
    """The note says what is missing."""
    svg = transition_map_plot(example_map(drafts=(None, None), picked=None)).svg
    assert not ids(svg, "close-draft-")
    assert "no draft was chosen" in " ".join(texts(svg))


def test_pictures_are_all_there_is_to_draw_with_words():
    """Gains, curves and maps of every section; runs beside methods with all but the first folded."""
    facts = {"curves": [curve_record()], "maps": [example_map().as_record()]}
    found = pictures(example(facts=facts), {**COLUMNS, "COMET": "comet"})
    names = [picture.name for picture in found]
    heat_maps = names[4:]
    assert names[:2] == ["gains-findings", "gains-impressions"]
    assert names[2].startswith("gap-by-drafts-k-")
    assert names[3] == "transition-map-0"
    assert [name.split("-")[1] for name in heat_maps] == ["findings"] * 2 + ["impressions"] * 2
    assert [picture.name for picture in found if picture.folded] == heat_maps[1::2]
    assert all(picture.alt.endswith(".") for picture in found)
    assert "Novelty / min from +10.0% at 2 to +15.0% at 4" in found[2].alt
    assert "draft 2 is chosen" in found[3].alt
    assert "BLEU-1 in Findings: 3 of 6 pairs" in found[4].alt


def test_one_run_has_no_heat_map():
    """With one run the gains say it all."""
    found = pictures(example(runs=("a P1",)), COLUMNS)
    assert [picture.name for picture in found] == ["gains-findings", "gains-impressions"]


def test_hostile_names_stay_text():
    """Markup, formulas, control characters and endless names are drawn as plain words."""
    bad = ("<script>alert(1)</script>/min", "$x^2$/knn", "a\x00b\nc/" + "d" * 400)
    results = example(bad, ("r & <b>", '"q" \x1b[31m'), {"curves": [curve_record(bad[1])]})
    for picture in pictures(results, {"<i>": "bleu-1"}):
        root = ET.fromstring(picture.drawing.svg)  # noqa: S314
        assert not list(root.iter(f"{NAME}script"))
        assert max(map(len, texts(picture.drawing.svg))) < 120
    assert any("$x^2$" in text for text in texts(gains_plot(results, "findings", COLUMNS).svg))


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    """Drawing says what to install; importing did not need it."""

    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="matplotlib")

    monkeypatch.setattr(_extras, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"tabon\[plots\]"):
        gains_plot(example(), "findings", COLUMNS)
