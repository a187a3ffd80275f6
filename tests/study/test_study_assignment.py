"""Who sees which case: drawn from the seed, balanced, in an order of each reader's own, and blinded."""

import json
from collections import Counter
from dataclasses import asdict

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from study_cases import READERS, SELECTORS, picks_of, records, write_study
from tabon.errors import BadInputError, TabonError
from tabon.study.assignment import assign, count_pairs, draw_cases
from tabon.study.design import Shown, StudyPlan
from tabon.study.folder import read_key, read_reader, read_study
from tabon.text.records import query_from_record

THREE = ("one", "two", "three")


def queries(number=30, drafts=3):
    """Return queries."""
    return [query_from_record(record) for record in records(number, drafts)]


def plan(**facts):
    """Return a plan."""
    return StudyPlan(**{"design": "pairwise", "readers": READERS, "cases": 20, "seed": 3, **facts})


def assigned(found=None, names=SELECTORS, **facts):
    """Return the readings of each reader."""
    asked = queries() if found is None else found
    chosen = plan(**facts)
    return assign(draw_cases(asked, picks_of(asked, names), chosen), chosen, {})


def sides(readings):
    """Count who is on the left, for each pair."""
    return Counter(tuple(one.selectors[0] for one in each.key.shown) for each in readings)


@drawn(
    cases=st.integers(2, 30), readers=st.integers(1, 4), repeat=st.floats(0, 0.5), seed=st.integers(0, 10**14)
)
def test_every_reader_sees_every_case_and_each_selector_as_often_on_the_left(cases, readers, repeat, seed):
    """Whatever is asked for: all cases, some of them twice, sides that differ by one at most."""
    names = tuple(f"r{number}" for number in range(readers))
    found = assigned(cases=cases, readers=names, repeat=repeat, seed=seed)
    for readings in found.values():
        first = [one for one in readings if one.key.repeats is None]
        assert len({one.key.query for one in first}) == len(first) == cases
        assert len(readings) - cases == round(repeat * cases)
        left = sides(first)
        assert abs(left[SELECTORS] - left[SELECTORS[::-1]]) <= 1


def test_three_selectors_are_compared_equally_often():
    """Each of the three pairs has a third of the cases, and each query is one case."""
    [readings, _] = assigned(names=THREE, cases=29, repeat=0.0).values()
    pairs = Counter(frozenset(one.selectors[0] for one in each.key.shown) for each in readings)
    assert sorted(pairs.values()) == [9, 10, 10]
    assert len({one.key.query for one in readings}) == 29


@pytest.mark.parametrize("design", ["pairwise", "ranking", "rating"])
def test_a_repeated_case_is_far_from_the_first_and_turned_round(design):
    """Half of the cases lie between, what was left is right, and a repeated case looks like any other."""
    for readings in assigned(design=design, repeat=0.4).values():
        places = {one.key.id: place for place, one in enumerate(readings)}
        rows = {one.key.id: one for one in readings}
        again = [one for one in readings if one.key.repeats]
        assert len(again) == round(0.4 * (len(readings) - len(again)))
        for one in again:
            before = rows[one.key.repeats]
            assert before.key.shown == one.key.shown[::-1]
            assert places[one.key.id] - places[before.key.id] >= (len(readings) - len(again)) // 2
            assert asdict(one.reading).keys() == asdict(before.reading).keys()


def test_readers_have_orders_of_their_own():
    """The order and the sides of two readers differ; the same seed gives the same study again."""
    ann, bob = assigned().values()
    assert [one.key.query for one in ann] != [one.key.query for one in bob]
    assert {one.reading.id for one in ann} & {one.reading.id for one in bob} == set()
    assert assigned() == assigned()
    assert assigned(seed=4) != assigned()


def test_cases_are_a_plain_sample():
    """Over many seeds each query is drawn about as often as every other, for two selectors and for three."""
    for names in (SELECTORS, THREE):
        asked = queries(12)
        counts = Counter()
        for seed in range(300):
            chosen = plan(cases=6, seed=seed)
            counts.update(case.query.id for case in draw_cases(asked, picks_of(asked, names), chosen))
        assert len(counts) == 12
        assert max(counts.values()) < 200
        assert min(counts.values()) > 100


def test_picks_with_one_text_are_not_compared():
    """Two drafts that read the same are one: the case is left out and counted, and a rating is of both."""
    found = records(6)
    for record in found[:3]:
        record["candidates"][1] = record["candidates"][0]
    asked = [query_from_record(record) for record in found]
    [counts] = count_pairs(asked, picks_of(asked))
    assert (counts.both, counts.differ) == (6, 3)
    with pytest.raises(BadInputError, match="only 3 queries in which the picks differ; give fewer cases"):
        assigned(asked, cases=4)
    shown = {one.query.id: one.shown for one in draw_cases(asked, (), plan(design="rating", cases=6))}
    assert shown["query-0"] == (Shown(drafts=(0, 1), selectors=()), Shown(drafts=(2,), selectors=()))
    assert len(shown["query-5"]) == 3


def test_what_is_rated_and_ranked_are_picks_or_all_drafts():
    """With selections the drafts that someone picked are shown, with everyone who did; without all drafts."""
    picked = assigned(design="ranking", cases=5, repeat=0.0)["ann"]
    assert {len(one.key.shown) for one in picked} == {2}
    every = assigned(design="rating", cases=5, repeat=0.0, names=())["ann"]
    assert len(every) == 15
    assert {len(one.reading.drafts) for one in every} == {1}
    asked = queries()
    one = picks_of(asked, ("one",))[0]
    both = draw_cases(asked, (one, picks_of(asked, ("two",))[0]), plan(design="rating", cases=1))
    assert [shown.selectors for shown in both[0].shown] == [("one", "two")]


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"design": "pairs"}, "unknown design 'pairs'. Did you mean 'pairwise'"),
        ({"readers": ("a", "a")}, "names nobody, or someone twice"),
        ({"readers": ("../a",)}, "no name of a reader; use at most 40 letters"),
        ({"cases": 0}, "--cases is 0; give 1 to"),
        ({"repeat": 0.6}, "--repeat is 60%; give a share from 0% to 50%"),
        ({"seed": -1}, "--seed is -1; give a whole number"),
    ],
)
def test_a_plan_that_cannot_be_drawn_is_refused(facts, sentence):
    """One sentence with the way to mend it."""
    with pytest.raises(TabonError, match=sentence):
        plan(**facts)


def test_a_design_asks_for_what_it_needs():
    """Pairs need two selectors, ranks at most eight drafts, cases enough queries."""
    asked = queries(5, drafts=9)
    with pytest.raises(
        BadInputError, match="compares selectors; give --selections NAME=FILE for two or more"
    ):
        draw_cases(asked, picks_of(asked, ("one",)), plan(cases=2))
    with pytest.raises(BadInputError, match="at most 8 can be ranked side by side; give --selections"):
        draw_cases(asked, (), plan(design="ranking", cases=2))
    with pytest.raises(BadInputError, match="--cases is 6, but there are only 5 queries with drafts"):
        draw_cases(asked, (), plan(design="rating", cases=6))


def test_what_a_reader_is_shown_names_nothing(tmp_path):
    """No selector, query, patient, seed or number of a draft is in a reader's file or in study.json."""
    write_study(tmp_path / "study", seed=123456789)
    study = read_study(tmp_path / "study")
    for path in (tmp_path / "study/study.json", *(tmp_path / "study/readers").iterdir()):
        text = path.read_text()
        for secret in (*SELECTORS, "query-", "patient-", "selector", "123456789", "repeat", '"shown"'):
            assert secret not in text, (path.name, secret)
    shown, key = read_reader(tmp_path / "study", study, "ann"), read_key(tmp_path / "study", study)
    assert [one.id for one in shown.readings] == [one.id for one in key.readings["ann"]]
    texts = {json.dumps(asdict(one) | {"id": None}) for one in shown.readings}
    assert len(texts) == len(shown.readings)  # a repetition is turned round


def test_every_file_is_for_its_owner_alone(tmp_path):
    """Reports, key and hashed tokens: nobody else of the machine may read them; tokens are kept nowhere."""
    _, tokens = write_study(tmp_path / "study")
    files = [path for path in (tmp_path / "study").rglob("*") if path.is_file()]
    assert len(files) == 5
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (tmp_path / "study").stat().st_mode & 0o077 == 0
    for token in tokens.values():
        assert len(token) >= 24
        assert not any(token.encode() in path.read_bytes() for path in files)


def test_a_folder_that_was_changed_is_refused(tmp_path):
    """A changed reader's file, the key of another study and a folder without a study are named."""
    write_study(tmp_path / "one")
    write_study(tmp_path / "two", seed=8)
    study = read_study(tmp_path / "one")
    path = tmp_path / "one/readers/ann.json"
    path.write_text(path.read_text().replace("Nodule of 1 mm", "Nodule of 9 mm", 1))
    with pytest.raises(BadInputError, match=r"ann\.json was changed after the study was made; restore"):
        read_reader(tmp_path / "one", study, "ann")
    (tmp_path / "one/key.json").write_bytes((tmp_path / "two/key.json").read_bytes())
    with pytest.raises(BadInputError, match="the key of another study"):
        read_key(tmp_path / "one", study)
    with pytest.raises(BadInputError, match="holds no study; make one with `tabon study init`"):
        read_study(tmp_path)
