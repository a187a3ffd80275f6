"""Which words differ between two sentences: a table read by hand, and laws that hold for any text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.explanation.differences import MOST_WORDS, differences

TABLE = [  # prior, current, what was lost, what was added, what turned
    ("Nodule of 6 mm is seen.", "Nodule is seen.", ["of 6 mm"], [], ["number: 6 mm > "]),
    ("A 6 mm nodule.", "An 8-mm nodule.", ["A 6 mm"], ["An 8-mm"], ["number: 6 mm > 8-mm"]),
    ("A 6-mm nodule.", "a nodule, 6 mm", ["nodule"], ["nodule"], []),  # moved, and the same number
    ("Small left effusion.", "Large right effusion.", ["Small left"], ["Large right"],
     ["side: left > right", "severity: Small > Large"]),
    ("Effusion is unchanged.", "Effusion is stable.", ["unchanged"], ["stable"], []),  # one meaning
    ("Effusion is stable.", "Effusion has increased.", ["is stable"], ["has increased"],
     ["change: stable > increased"]),
    ("The heart is mildly enlarged.", "Mild enlargement of the heart.", ["is mildly enlarged"],
     ["Mild enlargement of"], []),
    ("No effusion.", "New effusion.", ["No"], ["New"], ["change:  > New"]),
    ("The lungs are clear.", "the  LUNGS are clear", [], [], []),
    ("Clear.", "Wet.", ["Clear"], ["Wet"], []),
    ("", "New edema.", [], ["New edema"], ["change:  > New"]),
]  # fmt: skip
WORDS = re.compile(r"\w+")
sentences = st.lists(st.sampled_from(["left", "6", "mm", "No", "edema", "is", ",", "stable", "-"])).map(
    " ".join
)


def cut(sentence, spans):
    """Return pieces of a sentence."""
    return [sentence[start:end] for start, end in spans]


@pytest.mark.parametrize(("prior", "current", "lost", "added", "turns"), TABLE)
def test_the_table(prior, current, lost, added, turns):
    """What a reader would call lost, added and turned is found; another way to say the same turns nothing."""
    found = differences(prior, current)
    assert cut(prior, found.lost) == lost
    assert cut(current, found.added) == added
    said = [f"{turn.kind}: {', '.join(turn.before)} > {', '.join(turn.after)}" for turn in found.turns]
    assert said == turns


@given(sentences | st.text(), sentences | st.text())
def test_what_stayed_is_the_same_on_both_sides(prior, current):
    """Without the lost and the added words two sentences have the same letters, in the same order."""
    found = differences(prior, current)
    left = []
    for sentence, spans in ((prior, found.lost), (current, found.added)):
        end, kept = 0, []
        for start, stop in spans:
            assert end <= start < stop <= len(sentence)
            kept.append(sentence[end:start])
            end = stop
        letters = "".join(WORDS.findall("".join([*kept, sentence[end:]]).casefold()))
        left.append(letters.replace("by", "x"))
    assert left[0] == left[1]


@given(sentences | st.text())
def test_a_sentence_does_not_differ_from_itself(sentence):
    """Nothing is lost, added or turned."""
    found = differences(sentence, sentence)
    assert (found.lost, found.added, found.turns) == ((), (), ())


def test_the_two_sides_may_be_exchanged():
    """What one way loses the other adds."""
    for prior, current, *_ in TABLE:
        there, back = differences(prior, current), differences(current, prior)
        assert [(turn.before, turn.after) for turn in there.turns] == [
            (turn.after, turn.before) for turn in back.turns
        ]


def test_a_sentence_too_long_to_compare_differs_whole():
    """Beyond `MOST_WORDS` words no time is spent on pairs: all is lost, all is added."""
    long = "edema " * (MOST_WORDS + 1)
    found = differences(long, f"{long}again")
    assert cut(long, found.lost) == [long.strip()]
    assert cut(f"{long}again", found.added) == [f"{long}again"]
