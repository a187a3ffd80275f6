"""The explorer's data: the numbers are those of the library, and text stays text."""

import json
import re
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer_cases import (
    HOSTILE,
    PLAIN,
    bank,
    data_of,
    no_constant,
    odd,
    queries,
    read,
    simulated,
)
from tabon.encoders.hashing import HashingEncoder
from tabon.encoders.sentence_store import CachingEncoder
from tabon.errors import BadInputError, TabonError, UnknownNameError
from tabon.explanation.explanation import explain
from tabon.explanation.flags import FLAG_KINDS, draft_flags
from tabon.method.bank import bank_transitions
from tabon.reporting.transition_map import project
from tabon.selectors.setup import SelectionSettings, make_selector, may_abstain
from tabon.service.explorer.export import (
    STYLES,
    overview_record,
    read_page,
    read_scripts,
    report_parts,
    study_record,
    write_report,
)
from tabon.service.explorer.scores import score_named
from tabon.service.explorer.studies import MOST_STUDIES, ExplorerSettings, check_count, explorer_of
from tabon.service.page import as_json, content_policy
from tabon.service.parsing import NOTICE
from tabon.service.report_records import line_record
from tabon.text.reports import SECTIONS, report_from_record
from tabon.text.sentences import split_sentences

HASHING = SelectionSettings(encoder="hashing")
KNN = SelectionSettings(encoder="hashing", aggregate="knn", neighbours=5, abstain=0.1)
FUSED = SelectionSettings(encoder="hashing", selector="consensus")


def made(settings=HASHING, records=None, **shown):
    """Return the studies of some queries."""
    return explorer_of(bank(), settings, queries(records), ExplorerSettings(**shown))


def rounded(value):
    """Round as the contract says."""
    return None if value is None or not np.isfinite(value) else round(value, 6)


def study_records(studies):
    """Return every study as JSON says it."""
    return [json.loads(as_json(study_record(study, None))) for study in studies.all()]


def rouge_l_f(reference, draft):
    """Work ROUGE-L's F out by the table that textbooks draw."""
    left, right = (re.findall("[a-z0-9]+", text.lower()) for text in (reference, draft))
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for row, one in enumerate(left, start=1):
        for column, other in enumerate(right, start=1):
            table[row][column] = (
                table[row - 1][column - 1] + 1
                if one == other
                else max(table[row - 1][column], table[row][column - 1])
            )
    both = table[-1][-1]
    return 0.0 if both == 0 else 2 * both / (len(left) + len(right))


@pytest.mark.parametrize("settings", [HASHING, KNN, FUSED], ids=["paper", "abstaining", "pool"])
def test_the_numbers_are_those_of_select_and_explain(settings):
    """Every number of a study is what `tabon select` and `tabon explain` give for the same query."""
    records = [*simulated(), *odd()]
    selector = make_selector(bank(), settings)
    chooser = may_abstain(selector, settings)
    studies = made(settings, records)
    shown, lines = study_records(studies), overview_record(studies)["studies"]
    selections = chooser.select_many(queries(records))
    for query, selection, study, line in zip(queries(records), selections, shown, lines, strict=True):
        for said in (study, line):
            assert (said["id"], said["patient"]) == (query.id, query.patient)
            assert (said["selected"], said["tied"], said["abstained"]) == (
                selection.selected,
                selection.tied,
                selection.abstained,
            )
            assert (said["margin"], said["p"]) == (rounded(selection.margin), rounded(selection.p))
        totals = selection.total_distances or [None] * len(query.candidates)
        assert [draft["total"] for draft in study["drafts"]] == [rounded(total) for total in totals]
        for number, draft in enumerate(study["drafts"]):
            _check_draft(draft, explain(selector, query, draft=number), selection, query)
    assert {one.abstained for one in selections} >= {None, "no-drafts"}


def _check_draft(draft, explained, selection, query):
    """Compare one draft with its explanation, which was asked for alone."""
    number = draft["number"]
    order = [one.draft for one in explained.drafts]
    assert draft["rank"] == (order.index(number) if order else number)
    for section, values in selection.sections.items():
        assert draft["sections"][section] == rounded(values.distances[number])
        assert draft["parts"].get(section, {}) == {
            name: rounded(own[number]) for name, own in values.parts.items()
        }
    for section, part in explained.sections.items():
        assert draft["report"][section] == list(part.current)
        assert draft["alignment"][section] == [
            {**line_record(pair, part.prior, part.current), "share": rounded(part.share_of(pair))}
            for pair in part.alignment
        ]
    if selection.abstained in (None, "implausible"):
        nearest = {name: part.nearest for name, part in explained.sections.items()}
        for section, near in draft["nearest"].items():
            assert [
                (one["id"], one["distance"], tuple(one["prior"]), tuple(one["current"])) for one in near
            ] == [(one.id, rounded(one.distance), one.prior, one.current) for one in nearest[section]]
    flags = draft_flags(
        query.prior, query.candidates[number], query.candidates, has_prior=not query.prior.is_empty
    )
    assert [(flag["kind"], flag["detail"]) for flag in draft["flags"]] == [
        (flag.kind, flag.detail) for flag in flags
    ]


def test_gain_is_the_picks_score_less_the_mean():
    """Gain and scores equal a slow computation that shares nothing with the library's ROUGE."""
    studies = made(score=score_named("rouge-l-f"))
    overview, gains = overview_record(studies), []
    assert overview["score"] == "rouge-l-f"
    for record, study, line in zip(simulated(), study_records(studies), overview["studies"], strict=True):
        reference = report_from_record(record["reference"])
        sections = [section for section in SECTIONS if reference.section(section)]
        scores = [
            sum(rouge_l_f(reference.section(name), draft.section(name)) for name in sections) / len(sections)
            for draft in map(report_from_record, record["candidates"])
        ]
        assert [draft["score"] for draft in study["drafts"]] == pytest.approx(scores, abs=1e-6)
        expected = scores[line["selected"]] - sum(scores) / len(scores)
        assert line["gain"] == study["gain"] == pytest.approx(expected, abs=1.1e-6)
        gains.append(line["gain"])
    assert min(gains) < 0 < max(gains)


def test_without_references_there_is_no_score():
    """A score needs a reference with a section; one that is empty, or not there, gives null."""
    records = [
        {**simulated()[0], "reference": None},
        {**simulated()[1], "reference": {"findings": "", "impression": None}},
    ]
    studies = made(records=records, score=score_named("rouge-l-f"))
    assert overview_record(studies)["score"] is None
    assert [study["gain"] for study in study_records(studies)] == [None, None]
    assert made(records=records).settings.score is None
    with pytest.raises(UnknownNameError, match="rouge-l-f"):
        score_named("rouge-l-ff")
    with pytest.raises(BadInputError, match="'reference'"):
        made(records=[{**simulated()[0], "reference": 7}], score=score_named("bleu-1")).lines  # noqa: B018


def test_maps_are_those_of_project_on_axes_of_the_bank():
    """Where the bank fits on a map, places are those of `project`; studies share its axes."""
    studies = made()
    overview, shown = overview_record(studies), study_records(studies)
    for section in SECTIONS:
        vectors = bank_transitions(
            bank(), section, "novelty", bank().section(section, "novelty").rows
        ).directions
        for query, study in zip(queries(), shown, strict=True):
            moves, has = _moves(query, section)
            flat = project(vectors, moves, rows=10_000)
            found = overview["map"][section]
            assert found["bank"] == [list(point) for point in flat.bank]
            assert found["explained"] == list(flat.explained)
            assert found["total"] == flat.total == len(vectors)
            places = study["map"][section]
            expected = [
                list(point) if point is not None and there else None
                for point, there in zip(flat.drafts, has, strict=True)
            ]
            assert [place is None for place in places["drafts"]] == [place is None for place in expected]
            both = ([place for place in row if place] for row in (places["drafts"], expected))
            np.testing.assert_allclose(*both, atol=2e-4)
            near = [None if row is None else list(flat.bank[row]) for row in flat.nearest]
            for place, other, draft in zip(places["nearest"], near, places["drafts"], strict=True):
                assert draft is None or place == other


def _moves(query, section):
    """Return the drafts' novelty transitions as the paper prints them, and which drafts have one."""
    encoder, rows, has = HashingEncoder(), [], []
    prior = list(split_sentences(query.prior.section(section)))
    for draft in query.candidates:
        current = list(split_sentences(draft.section(section)))
        has.append(bool(prior and current))
        move = np.zeros(encoder.fingerprint.dimension)
        if has[-1]:
            before, after = encoder.encode(prior).astype(float), encoder.encode(current).astype(float)
            for vector in after:
                move += vector - before[np.argmax(before @ vector)]
        rows.append(move if np.linalg.norm(move) > 1e-5 else np.zeros_like(move))
    return np.array(rows, dtype=np.float32), has


def test_a_selector_without_transitions_has_no_map():
    """Where no transitions are compared there is nothing to draw."""
    studies = made(FUSED)
    assert overview_record(studies)["map"] == {}
    assert study_records(studies)[0]["map"] == {}


def test_bank_text_can_be_left_out():
    """Without it, ids and distances of training changes stay and no sentence of the bank is shown."""
    shown = study_records(made(bank_text=False))
    parts = [part for study in shown for draft in study["drafts"] for part in draft["nearest"].values()]
    assert {len(part) for part in parts} in ({0, 3}, {3})
    assert all(one["prior"] == one["current"] == [] and one["id"] for part in parts for one in part)


def test_the_overview_says_where_the_numbers_come_from():
    """Notice, title, signature, bank and flag kinds; flags of a line are those of the pick, each once."""
    studies = made(title="Cohort")
    overview = overview_record(studies)
    assert overview["notice"] == NOTICE
    assert overview["title"] == "Cohort"
    assert overview["signature"] == make_selector(bank(), HASHING).signature
    assert overview["bank"] == {
        "transitions": len(bank()),
        "patients": len(bank().patients),
        "sha256": bank().sha256,
    }
    assert overview["flag_kinds"] == list(FLAG_KINDS)
    for line, study in zip(overview["studies"], study_records(studies), strict=True):
        kinds = [flag["kind"] for flag in study["drafts"][line["selected"]]["flags"]]
        assert line["flags"] == list(dict.fromkeys(kinds))
        assert line["drafts"] == len(study["drafts"])
    assert any(line["flags"] for line in overview["studies"])


def test_a_study_alone_is_the_same_as_in_a_lot(monkeypatch):
    """A study depends on nothing but its query; a number that is not there is an IndexError."""
    monkeypatch.setattr("tabon.service.explorer.studies.BATCH", 4)
    records = [*simulated(), *odd()[-4:]]
    studies = made(records=records)
    assert len(studies) > 8
    everyone = study_records(studies)
    assert [study["number"] for study in everyone] == list(range(len(records)))
    for number in (0, 4, len(records) - 1):
        assert json.loads(as_json(study_record(studies.study(number), None))) == everyone[number]
    for number in (-1, len(records)):
        with pytest.raises(IndexError):
            studies.study(number)


def test_each_sentence_is_encoded_once():
    """Explaining all drafts asks the encoder for no sentence twice; too many are forgotten."""

    class Counting(HashingEncoder):
        def __init__(self):
            self.asked = []

        def encode(self, sentences, /):
            self.asked += sentences
            return super().encode(sentences)

    counting = Counting()
    studies = made()
    studies._selector.encoder = CachingEncoder(counting)
    assert len(list(studies.all())) == len(studies)
    assert len(counting.asked) == len(set(counting.asked)) > 0
    small = CachingEncoder(counting, 4)
    for sentences in (["a", "b"], ["b", "c"], ["a", "d", "e"], ["a"] * 9):
        np.testing.assert_array_equal(small.encode(sentences), HashingEncoder().encode(sentences))
    assert len(small) <= 4


def test_a_page_has_a_bounded_number_of_studies():
    """None, and more than a browser would show, are refused."""
    for count in (0, MOST_STUDIES + 1):
        with pytest.raises(BadInputError, match="quer"):
            check_count(count)
    check_count(MOST_STUDIES)


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False) | st.none(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_json_is_data_inside_html(value):
    """JSON of anything reads back as it was, and holds no sign that HTML knows."""
    text = as_json(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert not set("<>&") & set(text)


def test_nothing_that_is_not_a_number_gets_out():
    """NaN and infinity become null wherever a number stands, and JSON refuses what is left."""
    studies = made(score=score_named("rouge-l-f"))
    study = studies.study(0)
    odd_selection = replace(study.line.selection, margin=float("inf"), p=float("nan"))
    line = replace(study.line, selection=odd_selection, scores=(float("nan"),) * len(study.drafts))
    drafts = tuple(replace(draft, score=float("nan")) for draft in study.drafts)
    found = study_record(replace(study, line=line, drafts=drafts), None)
    assert (found["margin"], found["p"], found["gain"], found["drafts"][0]["score"]) == (None,) * 4
    json.loads(as_json(found), parse_constant=no_constant)
    with pytest.raises(ValueError, match="JSON"):
        as_json([float("nan")])


def test_threads_may_ask_for_anything_at_once():
    """Lists, maps and studies asked for by several threads are those of one, and nobody waits for ever."""
    records = simulated()[:3]
    expected, studies = study_records(made(records=records)), made(records=records)
    asks = [lambda: overview_record(studies), lambda: study_records(studies), lambda: len(studies.maps)] * 3
    with ThreadPoolExecutor(len(asks)) as pool:
        found = [future.result(120) for future in [pool.submit(ask) for ask in asks]]
    assert found[1::3] == [expected] * 3
    assert found[0] == found[3] == overview_record(made(records=records))


# --- the one file -----------------------------------------------------------------------


def export(tmp_path, studies, page=PLAIN):
    """Write a page and return its text."""
    path = tmp_path / "page.html"
    assert write_report(studies, path, page=page) == path.stat().st_size
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [PLAIN, None], ids=["frame", "real page"])
def test_hostile_text_is_data_only(tmp_path, page):
    """In every text field, the corpus adds no element and no attribute, and reads back as it was sent."""
    page = read_page() if page is None else page
    plain = read(export(tmp_path, made(records=(simulated() * 2)[: len(odd())], title="T"), page))
    shown = made(records=odd(), title=HOSTILE[0], score=score_named("rouge-l-f"))
    html = export(tmp_path, shown, page)
    found, data = read(html), data_of(html)
    assert found.elements == plain.elements
    code = [text for tag, attributes, text in found.texts if tag == "script" and "type" not in attributes]
    assert code == [page.js]
    assert data["overview"]["title"] == HOSTILE[0]
    for query, study in zip(queries(odd()), data["studies"], strict=True):
        assert (study["id"], study["patient"]) == (query.id, query.patient)
        assert study["prior"]["other"] == query.prior.other
        assert [one["report"]["other"] for one in study["drafts"]] == [one.other for one in query.candidates]
    near = json.dumps([draft["nearest"] for study in data["studies"] for draft in study["drafts"]])
    assert json.dumps(HOSTILE[0])[1:-1] in near  # the hostile training transition is shown, as data


@pytest.mark.parametrize("title", HOSTILE)
def test_a_hostile_title_is_a_title(title):
    """A title adds no element; the browser shows it as it was given, but for halves of characters."""
    plain, studies = read(PLAIN.html), made(records=simulated()[:1], title=title)
    found = read(next(report_parts(studies, PLAIN, lambda _: None)))
    kinds = {"title", "p", "body"}
    assert [tag for tag, _ in found.elements if tag in kinds] == [
        tag for tag, _ in plain.elements if tag in kinds
    ]
    assert "script" not in dict(found.elements)
    [shown] = [text for tag, _, text in found.texts if tag == "title"]
    assert shown == title.replace("\ud800", "?")


def test_the_policy_allows_the_one_script_and_the_one_style(tmp_path):
    """The hashes in the page are those of what stands in it; nothing else may run or be loaded."""
    page = read_page()
    found = read(export(tmp_path, made(records=simulated()[:1]), page))
    [policy] = [
        attributes["content"]
        for tag, attributes in found.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy == content_policy(page)
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    texts = {tag: text for tag, attributes, text in found.texts if "type" not in attributes}
    for tag in ("script", "style"):
        digest = b64encode(sha256(texts[tag].encode()).digest()).decode()
        assert rules.pop(f"{tag}-src") == f"'sha256-{digest}'"
    assert rules == {
        "default-src": "'none'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'",
    }  # fmt: skip
    tags = [tag for tag, _ in found.elements]
    assert tags.index("meta") < tags.index("style") < tags.index("script")
    for tag, attributes in found.elements:
        assert tag not in {"iframe", "object", "embed", "base"}
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "src"}], tag
        assert not str(attributes.get("href", "")).lower().startswith(("http", "//", "javascript"))


def test_a_page_that_cannot_stand_in_one_file_is_refused(tmp_path):
    """Links that are missing or there twice, and code that would end its element, are named."""
    studies = made(records=simulated()[:1])
    for page in (
        replace(PLAIN, html=PLAIN.html.replace("explorer.css", "other.css")),
        replace(PLAIN, html=PLAIN.html.replace("<p>x</p>", PLAIN.script_link)),
        replace(PLAIN, css=PLAIN.css + "</STYLE>"),
        replace(PLAIN, js=PLAIN.js + "</script>"),
        replace(PLAIN, js=PLAIN.js + "<!--"),
    ):
        with pytest.raises(TabonError, match="install tabon anew"):
            export(tmp_path, studies, page)
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_whole_or_not_there(tmp_path):
    """A failure while studies are worked out leaves the old file as it was."""
    path = tmp_path / "page.html"
    path.write_text("old")
    records = [simulated()[0], {**simulated()[1], "reference": 7}]
    with pytest.raises(BadInputError, match="'reference'"):
        write_report(made(records=records), path, page=PLAIN)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_export_streams(monkeypatch):
    """List and script come first, studies as they are made: one is there before the next is worked out."""
    monkeypatch.setattr("tabon.service.explorer.studies.BATCH", 1)
    studies, explained = made(), []
    work = studies._studies
    monkeypatch.setattr(studies, "_studies", lambda numbers: (explained.append(numbers), work(numbers))[1])
    parts = report_parts(studies, PLAIN, lambda _: None)
    first = "".join(next(parts) for _ in range(3))
    assert first.index("overview-data") < first.index(PLAIN.js)
    assert explained == []
    assert 'id="study-data-0"' in next(parts)
    assert explained == [range(1)]
    assert "".join(parts).endswith("</body></html>")


def test_lines_of_a_list_keep_no_neighbours():
    """Thousands of lines are kept in memory: what only a study shows is left out of them."""
    assert all(not line.selection.sections for line in made().lines)


def test_the_package_has_the_page():
    """Its files lie in the package, every script is joined, and the marks for the export are kept."""
    page, scripts = read_page(), read_scripts()
    names = {path.name for path in (files("tabon.service.explorer") / "page").iterdir()}
    shared = {path.name for path in (files("tabon.service") / "page_parts").iterdir()}
    assert not names & shared
    assert names <= {"explorer.html", *STYLES, *scripts} <= names | shared
    assert all(text in page.js and text.endswith("\n") for text in scripts.values())
    "".join(report_parts(made(records=simulated()[:1]), page, lambda _: None))
