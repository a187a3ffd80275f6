"""The paper's cohort rules: strict order, one view, every consecutive pair, nothing lost silently."""

import random
from collections import Counter
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.data.cohort.build import transition_record
from tabon.data.cohort.link import Chain, Rules, link
from tabon.data.cohort.visits import Image, Moment, moment_from, normal_view
from tabon.errors import BadInputError
from tabon.text.reports import Report
from visits import REPORTS, visit


@st.composite
def patients(draw):
    """Any visits of one patient: same days, missing times, views and texts, repeated rows."""
    visits = [
        visit(
            f"s{number}",
            draw(st.integers(1, 6)),
            draw(st.sampled_from([None, 10.0, 20.0])),
            report=draw(st.sampled_from(REPORTS)),
            views=tuple(draw(st.lists(st.sampled_from(["AP", "PA", None]), max_size=2))),
        )
        for number in range(draw(st.integers(0, 8)))
    ]
    repeats = draw(st.lists(st.sampled_from(visits), max_size=2)) if visits else []
    return visits + [replace(one, images=(Image("again.png", "PA"),)) for one in repeats]


@given(patients())
@settings(max_examples=400)
def test_a_pair_is_never_out_of_order(visits):
    """In every pair the current visit is strictly later than the prior."""
    chain = link(visits, Rules()).chain
    if chain is not None:
        for prior, current in zip(chain.visits, chain.visits[1:], strict=False):
            assert prior.moment.precedes(current.moment)
            assert not current.moment.precedes(prior.moment)


@given(patients(), st.randoms())
@settings(max_examples=300)
def test_the_order_of_rows_and_study_ids_never_matters(visits, random_):
    """Shuffled rows with other study ids give the same reports at the same times, and the same view."""
    studies = sorted({one.study for one in visits})
    names = dict(zip(studies, random_.sample([f"x{i}" for i in range(50)], len(studies)), strict=True))
    renamed = [replace(one, study=names[one.study]) for one in random_.sample(visits, len(visits))]
    one, other = link(visits, Rules()).chain, link(renamed, Rules()).chain
    assert (one is None) == (other is None)
    if one is not None:
        assert one.view == other.view
        assert [(v.moment, v.report) for v in one.visits] == [(v.moment, v.report) for v in other.visits]


@given(patients())
@settings(max_examples=300)
def test_every_visit_is_kept_or_excluded_with_a_reason(visits):
    """No study disappears, and none is both kept and left out."""
    linked = link(visits, Rules())
    kept = Counter(one.study for one in linked.chain.visits) if linked.chain else Counter()
    left_out = Counter(one.study for one in linked.excluded)
    assert set(kept) | set(left_out) == {one.study for one in visits}
    assert not set(kept) & {one.study for one in linked.excluded if one.reason != "conflicting-report"}
    assert all(one.reason for one in linked.excluded)


@given(patients())
def test_a_chain_has_at_least_two_visits_all_of_one_view(visits):
    """Patients with fewer than two qualifying exams are left out whole."""
    chain = link(visits, Rules()).chain
    if chain is not None:
        assert len(chain.visits) >= 2
        assert all(any(image.view == chain.view for image in one.images) for one in chain.visits)


def reasons(*visits, rules=None):
    """The reasons of what is left out, by study."""
    return {one.study: one.reason for one in link(visits, rules or Rules()).excluded}


def test_one_view_is_kept_and_the_other_is_named():
    """A patient seen twice in each view keeps one view; the seed decides, and other patients differ."""
    both = [visit(f"{view}{day}", day, views=(view,)) for view in ("AP", "PA") for day in (1, 2)]
    views = set()
    for patient in map(str, range(20)):
        linked = link([replace(one, patient=patient) for one in both], Rules())
        views.add(linked.chain.view)
        assert Counter(one.reason for one in linked.excluded) == {"other-view": 2}
        assert link(both, Rules(seed=1)).chain == link(both, Rules(seed=1)).chain
    assert views == {"AP", "PA"}


def test_same_day_visits_are_never_each_other_s_prior():
    """Without times one of them is kept (the fuller report), the other is counted."""
    pair = [visit("a", 1), visit("b", 1, report=REPORTS[4]), visit("c", 2)]
    linked = link(pair, Rules())
    assert [one.study for one in linked.chain.visits] == ["b", "c"]
    assert reasons(*pair) == {"a": "same-day"}


def test_times_order_visits_of_one_day():
    """Two visits of a day with times are two visits."""
    linked = link([visit("late", 1, 50_000.0), visit("early", 1, 20.0)], Rules())
    assert [one.study for one in linked.chain.visits] == ["early", "late"]


def test_two_visits_of_one_day_are_no_chain():
    """A patient with nothing but unordered visits of a day has no transition."""
    assert link([visit("a", 1), visit("b", 1, report=REPORTS[4])], Rules()).chain is None


def test_visits_without_text_or_view_are_named():
    """No sections, no AP/PA view: each has its reason."""
    kept = [visit("k1", 1), visit("k2", 2)]
    assert reasons(
        *kept, visit("t", 3, report=REPORTS[3]), visit("v", 4, views=(None,)), visit("n", 5, views=())
    ) == {
        "t": "no-sections",
        "v": "no-ap-pa-view",
        "n": "no-ap-pa-view",
    }


def test_visits_without_view_information_are_one_chain():
    """Where views are not known every visit qualifies, whatever its images; the other rules hold."""
    visits = [visit("a", 1, views=()), visit("b", 1, views=(None,)), visit("c", 2, views=()), visit("d", 3)]
    linked = link(visits, Rules(views="any"))
    assert linked.chain.view is None
    assert [one.study for one in linked.chain.visits][1:] == ["c", "d"]
    assert [one.reason for one in linked.excluded] == ["same-day"]
    assert transition_record(linked.chain, 2, dated=True, history=1)["image"] == "d-0.png"


def test_a_visit_that_no_bank_would_take_is_left_out_by_name():
    """A report beyond the bounds of a section would stop the bank's build, so it stays outside."""
    endless = visit("long", 3, report=Report("Clear lungs. " * 1_001))
    assert reasons(visit("k1", 1), visit("k2", 2), endless) == {"long": "too-long"}


def test_both_sections_may_be_asked_for():
    """`sections="both"` leaves out a visit that lacks one, by its name."""
    visits = [
        visit("a", 1),
        visit("b", 2),
        visit("c", 3, report=REPORTS[1]),
        visit("d", 4, report=REPORTS[2]),
    ]
    assert reasons(*visits, rules=Rules(sections="both")) == {"c": "lacks-impression", "d": "lacks-findings"}
    assert reasons(*visits) == {}


def test_rows_of_one_study_are_united():
    """One study in several rows is one visit with all its images."""
    rows = [
        visit("a", 1, views=("AP",)),
        replace(visit("a", 1), images=(Image("z.png", "PA"),)),
        visit("b", 2),
    ]
    linked = link(rows, Rules())
    assert len(linked.chain.visits) == 2
    assert len(linked.chain.visits[0].images) == 2
    assert linked.excluded == ()


def test_one_study_with_two_texts_is_named():
    """Conflicting reports of one study: one stands, the other is counted."""
    rows = [visit("a", 1), visit("a", 1, report=REPORTS[4]), visit("b", 2)]
    assert reasons(*rows) == {"a": "conflicting-report"}
    assert link(rows, Rules()).chain.visits[0].report == REPORTS[4]


def test_a_patient_in_two_splits_is_an_error():
    """Leakage between splits is refused with the patient's id."""
    with pytest.raises(BadInputError, match="patient 'p' is in the splits test, train"):
        link([visit("a", 1), visit("b", 2, split="test")], Rules())


def test_a_study_whose_rows_are_in_two_splits_is_an_error():
    """Leakage inside one study is seen too, before its rows are united."""
    with pytest.raises(BadInputError, match="splits must not share patients"):
        link([visit("a", 1), visit("a", 1, split="valid"), visit("b", 2)], Rules())


def test_splits_that_are_not_given_are_drawn_by_patient():
    """Shares are met, and a patient's split depends on the seed and the patient alone."""
    splits = Counter()
    for patient in map(str, range(2000)):
        pair = [visit(day, day, split=None, patient=patient) for day in (1, 2)]
        split = link(pair, Rules(shares=(0.6, 0.2, 0.2))).chain.split
        assert split == link(pair[::-1], Rules(shares=(0.6, 0.2, 0.2))).chain.split
        splits[split] += 1
    assert 1100 < splits["train"] < 1300
    assert 320 < splits["valid"] < 480


@pytest.mark.parametrize(("history", "expected"), [(1, 1), (2, 2), (0, 3), (9, 3)])
def test_longer_histories_are_kept_newest_last(history, expected):
    """The prior is one report, or a list of the last ones with the newest at its end."""
    texts = [Report(f"Report {number}.", "") for number in range(4)]
    visits = tuple(visit(f"s{number}", number, report=text) for number, text in enumerate(texts, start=1))
    record = transition_record(Chain("p", "train", "AP", visits), 3, dated=True, history=history)
    priors = record["prior"] if isinstance(record["prior"], list) else [record["prior"]]
    assert [prior["findings"] for prior in priors] == [f"Report {n}." for n in range(3 - expected, 3)]
    assert isinstance(record["prior"], list) == (history != 1)


def test_dates_are_written_as_dates_and_orders_as_orders():
    """Dated data sets give ISO dates, ordinal ones give numbers and never a date."""
    days = [date(2019, 12, 31).toordinal(), date(2020, 1, 1).toordinal()]
    chain = Chain("p", "train", "AP", tuple(visit(f"s{day}", day) for day in days))
    dated = transition_record(chain, 1, dated=True, history=1)
    assert (dated["prior_date"], dated["current_date"]) == ("2019-12-31", "2020-01-01")
    ordinal = transition_record(chain, 1, dated=False, history=1)
    assert "current_date" not in ordinal
    assert ordinal["current_order"] == days[1]


@pytest.mark.parametrize(
    ("spelling", "view"),
    [("PA", "PA"), ("pa ", "PA"), ("POSTERO_ANTERIOR", "PA"), ("postero-anterior", "PA"), ("AP", "AP"),
     ("ANTERO_POSTERIOR", "AP"), ("AP Supine", "AP"), ("AP_horizontal", "AP"), ("AP AXIAL", None),
     ("AP (KUB)", None), ("LATERAL", None), ("LL", None), ("L", None), ("None", None), ("", None),
     (None, None)],
)  # fmt: skip
def test_spellings_of_views_are_made_one(spelling, view):
    """The spellings seen in the data sets become AP, PA or neither."""
    assert normal_view(spelling) == view


@pytest.mark.parametrize(
    ("day", "time", "moment"),
    [
        (20120101, None, Moment(date(2012, 1, 1).toordinal())),
        ("20120101", "93015.5", Moment(date(2012, 1, 1).toordinal(), 9 * 3600 + 30 * 60 + 15.5)),
        ("2012-01-01", 12.0, Moment(date(2012, 1, 1).toordinal(), 12.0)),
        ("20120101.0", "nan", Moment(date(2012, 1, 1).toordinal())),
    ],
)
def test_dates_and_padded_times_are_read(day, time, moment):
    """Whole numbers, strings, ISO dates and times that lost their zeros all mean what they meant."""
    assert moment_from(day, time) == moment


@pytest.mark.parametrize(
    ("day", "time"), [("2012", None), ("20121301", None), ("x", None), ("20120101", "9:30")]
)
def test_what_is_no_date_is_refused_without_showing_it(day, time):
    """A bad date or time is an error that tells its length only."""
    with pytest.raises(BadInputError, match="characters"):
        moment_from(day, time)


@pytest.mark.parametrize("bad", [{"history": -1}, {"shares": (0.5, 0.5, 0.5)}, {"shares": (1.5, -0.5, 0.0)}])
def test_rules_that_cannot_be_followed_are_refused(bad):
    """Negative histories and shares that do not add up get a sentence."""
    with pytest.raises(BadInputError):
        Rules(**bad)


def test_a_random_source_order_of_many_patients_gives_one_result():
    """The whole of many patients is the same however their visits are dealt."""
    visits = [visit(f"s{day}", day, report=REPORTS[day % 5]) for day in range(1, 30)]
    first = link(visits, Rules())
    for seed in range(5):
        shuffled = random.Random(seed).sample(visits, len(visits))
        assert link(shuffled, Rules()).chain == first.chain
