"""What a study found: counted by hand where it is small, and the form of its files."""

import json
from dataclasses import asdict

import pytest

from study_cases import SELECTORS, answer_to, fill_study, write_study
from tabon.evaluation.outside_scores import read_scores
from tabon.study.answers import AnswerJournal, read_answers
from tabon.study.comparison import ALPHA, KAPPA, SAME, Resampling
from tabon.study.design import ErrorMark
from tabon.study.folder import read_key, read_study
from tabon.study.results import study_results


def found_in(folder, **chance):
    """Work out the results of a folder."""
    study = read_study(folder)
    settings = Resampling(**{"resamples": 200, **chance})
    return study_results(study, read_key(folder, study), read_answers(folder, study), settings)


def answer_all(folder, values_of):
    """Answer every reading by a function of the reader, the query and what is shown."""
    study = read_study(folder)
    journal = AnswerJournal(folder, study)
    for reader, readings in read_key(folder, study).readings.items():
        for place, one in enumerate(readings):
            facts = values_of(reader, one)
            journal.keep(reader, answer_to(one.id, **{"seconds": 10.0 * (place % 3 + 1), **facts}))
    journal.close()


def ranks(one, *order):
    """Return ranks that prefer selectors in an order; those not named share the last rank."""
    found = [
        next((order.index(name) for name in each.selectors if name in order), len(order))
        for each in one.shown
    ]
    known = sorted(set(found))
    return [known.index(rank) + 1 for rank in found]


def test_a_pairwise_study_counted_by_hand(tmp_path):
    """Ann always prefers the first selector, Bob in half of the cases; repeated cases count once."""
    write_study(tmp_path, cases=10, repeat=0.2)

    def values_of(reader, one):
        mind = reader == "ann" or int(one.query.partition("-")[2]) % 2 == 0
        return {"values": ranks(one, *(SELECTORS if mind else SELECTORS[::-1]))}

    answer_all(tmp_path, values_of)
    found = found_in(tmp_path)
    [preference] = found.preferences
    bob = [one for one in read_key(tmp_path, read_study(tmp_path)).readings["bob"] if one.repeats is None]
    even = sum(int(one.query.partition("-")[2]) % 2 == 0 for one in bob)
    assert (preference.wins, preference.ties, preference.losses) == (10 + even, 0, 10 - even)
    assert preference.value == (10 + even) / 20
    assert preference.low < preference.these_low < preference.value < preference.these_high < preference.high
    measures = {(one.what, one.measure, one.readers): one for one in found.agreement}
    kappa = measures["preference", KAPPA, ("ann", "bob")]
    assert (kappa.value, kappa.n) == (0.0, 10)  # Ann says one thing only: no better than chance
    for reader in ("ann", "bob"):
        again = measures["preference again", SAME, (reader,)]
        assert (again.value, again.n) == (1.0, 2)
    ann = found.readers[0]
    assert (ann.answered, ann.readings, ann.amended, ann.seconds) == (12, 12, 0, 20.0)
    assert ann.left == 0.5
    assert found.scores == ()


def test_ties_count_half_and_the_last_answer_counts(tmp_path):
    """An answer that was amended is not there any more."""
    write_study(tmp_path, cases=4, repeat=0, readers=("ann",))
    answer_all(tmp_path, lambda _, one: {"values": ranks(one, *SELECTORS)})
    study = read_study(tmp_path)
    journal = AnswerJournal(tmp_path, study)
    for reading, record in journal.given.last("ann").items():
        assert journal.keep("ann", answer_to(reading, (1, 1), after=record.key)) == "kept"
    journal.close()
    [preference] = found_in(tmp_path).preferences
    assert (preference.wins, preference.ties, preference.losses, preference.value) == (0, 4, 0, 0.5)
    assert found_in(tmp_path).readers[0].amended == 4


def test_a_ranking_is_all_its_pairs(tmp_path):
    """Three selectors ranked alike by both readers: each pair is won always, the strengths are in order."""
    names = ("first", "second", "third")
    write_study(tmp_path, cases=8, design="ranking", names=names)
    answer_all(tmp_path, lambda _, one: {"values": ranks(one, *names)})
    found = found_in(tmp_path)
    assert [(one.selector, one.other, one.value) for one in found.preferences] == [
        ("first", "second", 1.0),
        ("first", "third", 1.0),
        ("second", "third", 1.0),
    ]
    strength = [one.value for one in found.numbers if one.what == "strength"]
    assert strength == sorted(strength, reverse=True)
    assert sum(strength) == pytest.approx(0)
    [kappa] = [one for one in found.agreement if one.measure == KAPPA and one.what == "preference"]
    [alpha] = [one for one in found.agreement if one.measure == ALPHA and one.what == "preference"]
    assert (kappa.n, alpha.n) == (24, 24)


def test_ratings_and_errors_counted_by_hand(tmp_path):
    """The first selector's picks get 4 and no error, the second's 2 and a wrong side that is significant."""
    write_study(tmp_path, cases=6, design="rating", repeat=0)

    def values_of(_, one):
        good = SELECTORS[0] in one.shown[0].selectors
        errors = () if good else (ErrorMark(draft=0, kind="side", significant=True),)
        return {"values": [4 if good else 2], "errors": errors}

    answer_all(tmp_path, values_of)
    found = found_in(tmp_path)
    numbers = {(one.selector, one.other, one.what): one for one in found.numbers}
    first, second = SELECTORS
    assert numbers[first, None, "rating"].value == 4
    assert numbers[second, None, "rating"].value == 2
    assert numbers[first, second, "rating"].value == 2
    assert numbers[second, None, "significant side"].value == numbers[second, None, "errors"].value == 1
    assert numbers[second, None, "missed"].value == numbers[first, None, "errors"].value == 0
    assert numbers[first, second, "rating"].n == 12
    measures = {(one.what, one.measure): one.value for one in found.agreement}
    assert measures["rating", KAPPA] == measures["rating", ALPHA] == 1
    assert measures["significant error", ALPHA] == 1


def test_scores_of_drafts_can_be_read_by_evaluate(tmp_path):
    """Every draft of every query has the mean rating, and the mean of significant errors."""
    write_study(tmp_path, cases=5, design="rating", names=())
    fill_study(tmp_path)
    found = found_in(tmp_path)
    rating, errors = read_scores("scores", (("a line", asdict(one)) for one in found.scores))
    assert (rating.name, rating.direction, len(rating.values)) == ("reader-rating", "higher", 15)
    assert (errors.name, errors.direction) == ("reader-significant-errors", "lower")
    ids = {json.loads(line)["id"] for line in (tmp_path / "queries.jsonl").read_text().splitlines()}
    assert {query for query, _ in rating.values} == ids


def test_a_study_that_is_not_finished_has_results_too(tmp_path):
    """What is there counts; a study without any answer has no number and no error."""
    study, _ = write_study(tmp_path, cases=6)
    empty = found_in(tmp_path)
    assert [one.answered for one in empty.readers] == [0, 0]
    assert (empty.preferences, empty.numbers, empty.agreement) == ((), (), ())
    journal = AnswerJournal(tmp_path, study)
    [first, *_] = read_key(tmp_path, study).readings["ann"]
    journal.keep("ann", answer_to(first.id, (1, 2)))
    journal.close()
    found = found_in(tmp_path)
    assert [one.answered for one in found.readers] == [1, 0]
    assert found.preferences[0].value in (0, 1)
    assert found.preferences[0].low is None


def test_the_numbers_are_json_without_what_readers_wrote(tmp_path):
    """The file says how it was worked out; comments stay out of it."""
    write_study(tmp_path, cases=5)
    fill_study(tmp_path, comment="Quokka")
    found = found_in(tmp_path)
    text = found.as_json()
    assert json.loads(text)["format"] == "tabon-study-results/1"
    assert json.loads(text)["selectors"] == {name: f"selector:{name}" for name in SELECTORS}
    assert "Quokka" not in text
    assert {one.text for one in found.comments} == {"Quokka"}
    assert found_in(tmp_path) == found
    assert found_in(tmp_path, seed=1) != found
