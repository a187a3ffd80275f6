"""Drafts that are still being written: what is stopped, what is left, and that arrival has no say in it."""

from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.errors import BadInputError, UnknownNameError
from tabon.method.bank import TransitionBank
from tabon.method.selection import Note
from tabon.selectors import Selector, load_scorer
from tabon.selectors.streaming import Halving, Margin, StreamingSelector, calibrated_margin, replay, saved
from tabon.selectors.streaming.draft_text import DraftText, certain, sentences_in
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import parse_report

PIECES = (
    "Findings:", "Impression:", "\n", "**Impression:**", "Lungs are clear.", "Heart size is normal.",
    "No effusion", "seen.", "Dr.", "Nodule of approx.", "3 mm.", "1.", "2.", "Here is the report.",
    "Stable\n",
)  # fmt: skip
DRAFTS = st.lists(st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join), min_size=1, max_size=4)
RULES = st.one_of(
    st.builds(
        Halving,
        points=st.sampled_from([(1,), (2, 3), (3, 6, 12)]),
        unit=st.sampled_from(["words", "sentences"]),
        keep=st.integers(1, 3),
        factor=st.sampled_from([1.5, 2, inf]),
    ),
    st.builds(Margin, points=st.just((2, 5)), margins=st.sampled_from([(0.0, 0.0), (0.05, 0.01)])),
)
PRIOR = "Findings: Lungs are clear. Small effusion.\nImpression: Effusion."


@cache
def cohort():
    """Return a small bank, and queries with the texts of their drafts."""
    settings = SimulationSettings(seed=5, patients=44, num_candidates=5, splits=(0.5, 0.0, 0.5))
    transitions = map(transition_from_record, simulate_transitions(settings, "train"))
    bank = TransitionBank.build(transitions, encoder=load_encoder("hashing"))
    records = list(simulate_queries(settings, "test"))
    texts = [[draft["text"] for draft in record["candidates"]] for record in records]
    return bank, [query_from_record(record) for record in records], texts


@cache
def chooser(name):
    """Return a selector over the small bank."""
    bank = cohort()[0]
    if name == "novelty":
        return Selector(bank)
    return Selector(bank, load_scorer(name, bank))


def words_of(text):
    """Cut a text after the blanks behind each word."""
    ends = [at for at in range(1, len(text)) if text[at - 1].isspace() and not text[at].isspace()]
    return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]


def run(streaming, texts, cuts, order):
    """Feed drafts in portions, in any order that keeps each draft's own; return what came of it."""
    session = streaming.open(PRIOR, len(texts))
    portions = [[*cut(text, cuts), None] for text in texts]
    told = []
    while any(portions):
        waiting = [draft for draft, left in enumerate(portions) if left]
        draft = waiting[order(len(waiting))]
        portion = portions[draft].pop(0)
        told += session.finish(draft) if portion is None else session.feed(draft, portion)
    return session, told


def cut(text, cuts):
    """Cut a text at some places."""
    places = sorted({0, len(text), *(place % (len(text) + 1) for place in cuts)})
    return [text[a:b] for a, b in pairwise(places)]


def outcome(session):
    """Return all that a session came to."""
    return session.stopped, session.decisions, session.result()


@settings(max_examples=25)
@given(
    texts=DRAFTS,
    rule=RULES,
    name=st.sampled_from(["novelty", "consensus:chamfer"]),
    cuts=st.lists(st.integers(0, 200)),
    data=st.data(),
)
def test_how_the_text_arrives_makes_no_difference(texts, rule, name, cuts, data):
    """Portions and their order change neither who is stopped, nor where, nor the pick."""
    streaming = StreamingSelector(chooser(name), rule=rule)
    one, _ = run(streaming, texts, [], lambda _: 0)
    other, told = run(streaming, texts, cuts, lambda count: data.draw(st.integers(0, count - 1)))
    assert outcome(one) == outcome(other)
    assert len(told) == len(set(told))
    assert set(told) <= set(other.stopped)


@given(
    text=st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join),
    unit=st.sampled_from(["words", "sentences"]),
    cuts=st.lists(st.integers(0, 200), max_size=30),
    count=st.integers(1, 9),
)
def test_a_beginning_is_the_same_in_any_portions(text, unit, cuts, count):
    """The first so many words or sentences do not depend on where the text was cut, nor on when one asks."""
    whole, other = DraftText(unit, 9), DraftText(unit, 9)
    whole.feed(text)
    early = whole.prefix(count)
    found = None
    for portion in cut(text, cuts):
        other.feed(portion)
        found = other.prefix(count) or found
        assert found is None or found == other.prefix(count)
    assert found == early
    whole.finish()
    other.finish()
    assert other.prefix(count) == whole.prefix(count)


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_as_many_are_left_as_were_asked_for(keep):
    """Where all drafts are still being written, exactly `keep` of them go on."""
    _, queries, texts = cohort()
    streaming = StreamingSelector(chooser("first"), rule=Halving(points=(2,), factor=inf, keep=keep))
    found = replay(streaming, queries, texts)
    assert all(len(one.words) - len(one.stopped) >= keep for one in found)
    assert min(len(one.words) - len(one.stopped) for one in found) == keep


@settings(max_examples=15)
@given(texts=DRAFTS, rule=RULES)
def test_one_draft_is_always_left(texts, rule):
    """No rule stops every draft, and no fewer than `keep` are left."""
    session, _ = run(StreamingSelector(chooser("consensus:chamfer"), rule=rule), texts, [], lambda _: 0)
    assert len(texts) - len(session.stopped) >= min(rule.keep, len(texts))


@settings(max_examples=15)
@given(texts=DRAFTS, name=st.sampled_from(["novelty", "consensus:chamfer"]))
def test_nothing_stopped_is_the_whole_selector(texts, name):
    """Without decisions the answer is the selector's own, to the last field but the signature."""
    for rule in (Halving(points=()), Margin(points=(2,), margins=(inf,)), Halving(keep=9)):
        session, told = run(StreamingSelector(chooser(name), rule=rule), texts, [3, 9], lambda n: n - 1)
        drafts = tuple(map(parse_report, texts))
        query = replace(query_from_record({"id": "x", "prior": PRIOR, "candidates": []}), candidates=drafts)
        [whole] = chooser(name).select_many([query])
        assert not told
        assert replace(session.result(), signature=whole.signature) == whole


@settings(max_examples=15)
@given(texts=DRAFTS, rule=RULES, name=st.sampled_from(["novelty", "consensus:chamfer"]))
def test_the_pick_is_the_selectors_among_what_is_left(texts, rule, name):
    """Stopped drafts have no say in the end: the pick is that of a query without them."""
    session, _ = run(StreamingSelector(chooser(name), rule=rule), texts, [], lambda _: 0)
    left = [draft for draft in range(len(texts)) if draft not in session.stopped]
    query = query_from_record({"id": "x", "prior": PRIOR, "candidates": [texts[draft] for draft in left]})
    [alone] = chooser(name).select_many([query])
    found = session.result()
    assert found.selected == (None if alone.selected is None else left[alone.selected])
    assert [flag for flag in found.flags if flag.kind == "stopped"] == [
        Note("stopped", draft=draft) for draft in session.stopped
    ]


def lockstep(streaming, query, texts):
    """Write all drafts one word at a time, and count: the slow way that `replay` is held against."""
    session = streaming.open(query.prior, len(texts))
    left = {draft: words_of(text) for draft, text in enumerate(texts)}
    written = [0] * len(texts)
    running = set(left)
    while running:
        for draft in sorted(running):
            if left[draft]:
                session.feed(draft, left[draft].pop(0))
                written[draft] += 1
        for draft in sorted(running):
            if draft in session.stopped:
                running.discard(draft)
            elif not left[draft]:
                session.finish(draft)
                running.discard(draft)
    return session, written


@pytest.mark.parametrize("unit", ["words", "sentences"])
def test_a_replay_is_what_sessions_in_step_do(unit):
    """Stops, picks and the count of words are those of drafts fed word by word in step."""
    _, queries, texts = cohort()
    rule = Halving(points=(8, 16) if unit == "words" else (1, 2), unit=unit)
    streaming = StreamingSelector(chooser("novelty"), partial=chooser("consensus:chamfer"), rule=rule)
    some = slice(0, 5)
    for query, drafts, one in zip(
        queries[some], texts[some], replay(streaming, queries[some], texts[some]), strict=True
    ):
        session, written = lockstep(streaming, query, drafts)
        assert set(session.stopped) == one.stopped
        assert session.result().selected == one.selection.selected
        assert [len(text.split()) for text in drafts] == list(one.words)
        most = [len(words_of(text)) for text in drafts]
        for draft, count in enumerate(one.written):
            # a word has ended when the blank behind it is there, and the last one when the draft is finished
            assert count == min(most[draft], written[draft])


def test_beginnings_are_compared_at_equal_length():
    """At a point of two words nobody is judged by a third; the same beginnings tie and the earliest stays."""
    texts = ["Findings: Clear lungs and heart.", "Findings: Clear bones, no more to say."]
    streaming = StreamingSelector(chooser("consensus:rouge-l-f"), rule=Halving(points=(2,)))
    session, told = run(streaming, texts, range(99), lambda n: n - 1)
    assert session.stopped == (1,)
    assert told == []  # it had arrived as a whole before the other had two words


def test_text_under_way_is_ignored_and_nobody_comes_back():
    """What arrives of a stopped draft has no effect, and it is never named again."""
    texts = ["Findings: Lungs are clear. Heart normal. ", "Findings: Bones are broken. Ribs too. "]
    streaming = StreamingSelector(chooser("nearest-prior:chamfer"), rule=Halving(points=(4,)))
    session = streaming.open("Findings: Lungs are clear.", 2)
    assert session.feed(1, texts[1]) == ()
    assert session.feed(0, texts[0]) == (1,)
    assert session.feed(1, "Impression: Lungs are clear.") == ()
    assert session.finish(1) == ()
    assert session.finish(0) == ()
    assert session.result().selected == 0
    assert Note("stopped", draft=1) in session.result().flags


def test_small_talk_is_not_judged():
    """A draft that is still at its preamble, or that begins with the impression, goes on."""
    texts = [
        "Sure, here is the report that you asked for. Findings: Clear. ",
        "Findings: Lungs are clear. No effusion. Heart size is normal. ",
        "Findings: Bones are all broken here. Ribs too, and more. ",
        "Impression: No acute disease at all. Lungs are clear. ",
    ]
    streaming = StreamingSelector(chooser("consensus:chamfer"), rule=Halving(points=(6,)))
    session, _ = run(streaming, texts, [], lambda _: 0)
    assert not {0, 3} & set(session.stopped)
    assert len(session.stopped) == 1


def test_a_short_draft_is_kept():
    """A draft that has ended by the decision costs nothing more and stays, however it compares."""
    texts = ["Findings: Broken.", *["Findings: Lungs are clear. No effusion. Heart normal. "] * 2]
    rule = Halving(points=(6,), factor=inf)
    session, _ = run(StreamingSelector(chooser("consensus:chamfer"), rule=rule), texts, [], lambda _: 0)
    assert session.stopped == (2,)


@pytest.mark.parametrize(
    "texts", [[""], ["", ""], ["", " \n", "Findings: Clear."], ["Findings:"], ["x " * 99]]
)
def test_empty_and_single_drafts(texts):
    """Drafts without text and a single draft are answered as the selector answers them."""
    for name in ("novelty", "consensus:chamfer"):
        for unit in ("words", "sentences"):
            streaming = StreamingSelector(chooser(name), rule=Halving(points=(1, 2), unit=unit))
            session, told = run(streaming, texts, [1], lambda _: 0)
            query = query_from_record({"id": "x", "prior": PRIOR, "candidates": texts})
            assert not told
            assert session.result().selected == chooser(name).select_many([query])[0].selected


def test_what_cannot_be_is_refused():
    """Drafts that there are not, finished ones, early results and impossible rules are named."""
    streaming = StreamingSelector(chooser("consensus:chamfer"))
    session = streaming.open(PRIOR, 2)
    with pytest.raises(BadInputError, match="no draft 2"):
        session.feed(2, "x")
    with pytest.raises(BadInputError, match="no draft -1"):
        session.finish(-1)
    session.finish(0)
    with pytest.raises(BadInputError, match="was finished"):
        session.feed(0, "x")
    with pytest.raises(BadInputError, match="draft 1 is still being written"):
        session.result()
    with pytest.raises(BadInputError, match="num_candidates"):
        streaming.open(PRIOR, 0)
    for wrong in ({"points": (2, 1)}, {"points": (0,)}, {"keep": 0}, {"factor": 1}):
        with pytest.raises(BadInputError):
            Halving(**wrong)
    with pytest.raises(UnknownNameError, match="unit"):
        Halving(unit="tokens")
    with pytest.raises(BadInputError, match="margins"):
        Margin(points=(1, 2), margins=(0.1,))
    with pytest.raises(BadInputError, match="share"):
        calibrated_margin(streaming, [], [], points=(1,), lost=2)
    with pytest.raises(BadInputError, match="nothing to compare"):
        calibrated_margin(streaming, [], [], points=(1,))


def test_certain_sentences_stay():
    """What counts as certain after any word of a simulated draft is how the finished draft begins."""
    drafts = [text for texts in cohort()[2][:8] for text in texts]
    for text in drafts:
        whole, words = sentences_in(text), words_of(text)
        for count in range(len(words)):
            told = certain("".join(words[:count]) or " ")
            assert told == whole[: len(told)]


def test_the_signature_names_rule_and_partial():
    """Two streaming selectors that may pick otherwise have other signatures."""
    one, other = chooser("novelty"), chooser("consensus:chamfer")
    made = [
        StreamingSelector(one),
        StreamingSelector(one, partial=other),
        StreamingSelector(one, rule=Halving(keep=2)),
        StreamingSelector(one, rule=Halving(unit="sentences")),
        StreamingSelector(one, rule=Margin(points=(8,), margins=(0.1,))),
    ]
    assert len({streaming.signature for streaming in made}) == len(made)
    assert all(streaming.signature.startswith(one.signature) for streaming in made)


def test_a_calibrated_margin_loses_as_many_as_asked():
    """On the queries it was made from, the rule stops the selector's pick as rarely as was asked for."""
    _, queries, texts = cohort()
    streaming = StreamingSelector(chooser("consensus:chamfer"))
    picks = [one.selection.selected for one in replay(_without(streaming), queries, texts)]
    rule = calibrated_margin(streaming, queries, texts, points=(10,), lost=0.2)
    found = replay(StreamingSelector(streaming.selector, rule=rule), queries, texts)
    lost = sum(pick in one.stopped for pick, one in zip(picks, found, strict=True)) / len(found)
    assert 0.05 <= lost <= 0.2
    assert saved(found) > 0
    none = calibrated_margin(streaming, queries, texts, points=(10,), lost=0)
    kept = replay(StreamingSelector(streaming.selector, rule=none), queries, texts)
    assert not any(pick in one.stopped for pick, one in zip(picks, kept, strict=True))


def _without(streaming):
    """Return the same selector with no decisions."""
    return StreamingSelector(streaming.selector, rule=Halving(points=()))


def test_tokens_are_saved_on_a_simulated_cohort():
    """The committed share of words that the default rule saves on a small simulated cohort."""
    _, queries, texts = cohort()
    found = replay(StreamingSelector(chooser("fused")), queries, texts)
    assert saved(found) == pytest.approx(0.4995, abs=1e-4)
    assert saved([]) == 0


def test_text_without_blanks_is_read_in_linear_time():
    """A draft without a blank (another script, a model in a loop) is looked at portion by portion."""
    draft = DraftText("words", 8)
    for _ in range(2000):
        draft.feed("abcdefghij")
        assert draft.prefix(8) is None
    draft.finish()
    assert draft.prefix(8).words == 1
