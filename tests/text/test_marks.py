"""The words that a reader must not overlook: a table read by hand, and laws that hold for any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.text.marks import marks, number_meaning

TABLE = [  # sentence, its marked words with their kinds
    ("A 6-mm nodule.", ["number 6-mm"]),
    ("Nodule of 1.2 x 3 cm at T12.", ["number 1.2 x 3 cm", "number T12"]),
    ("Fracture of the 5th rib on 5/12/2019.", ["number 5th", "number 5/12/2019"]),
    ("Two nodules.", ["number Two"]),
    ("Left effusion, right atelectasis.", ["side Left", "side right"]),
    ("Bibasilar opacities in both lungs.", ["side Bibasilar", "side both"]),
    ("The left ventricle is large.", ["severity large"]),  # no side of the body
    ("Mild to moderate edema.", ["severity Mild", "severity moderate"]),
    ("Effusion is unchanged.", ["change unchanged"]),
    ("No longer seen.", ["change No longer seen"]),
    ("Compared with the prior study.", []),  # a look at the prior is no change
    ("Effusion has slightly increased.", ["severity slightly", "change increased"]),
    ("The heart is normal.", []),
    ("", []),
]
sentences = st.lists(
    st.sampled_from([text for text, _ in TABLE] + ["\u0130", "mild", "3 cm", "left", "\ud800"])
).map(" ".join)


@pytest.mark.parametrize(("sentence", "expected"), TABLE)
def test_the_table(sentence, expected):
    """Numbers with their units, sides, amounts and changes are found as a person would mark them."""
    assert [f"{one.kind} {sentence[one.start : one.end]}" for one in marks(sentence)] == expected


@given(sentences | st.text())
def test_marks_lie_in_the_sentence_and_apart(sentence):
    """Whatever the text, each mark has words of its own, in the order of the sentence."""
    end = 0
    for mark in marks(sentence):
        assert end <= mark.start < mark.end <= len(sentence)
        end = mark.end


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("3 x 4 cm", "3x4-cm", True),
        ("3 by 4 cm", "3 x 4 cm", True),
        ("3 cm", "3 mm", False),
        ("3", "4", False),
    ],
)
def test_a_number_is_one_however_it_is_written(one, other, same):
    """Blanks, hyphens and the word between two lengths make no other number; units and figures do."""
    assert (number_meaning(one) == number_meaning(other)) is same
