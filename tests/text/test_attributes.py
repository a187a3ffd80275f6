"""What sentences say of findings: a table read by hand, and laws that hold for any text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.text import attributes as module
from tabon.text.attributes import says_something, statements

# sentence, then each statement as its fields that are not left open
TABLE = [
    ("No effusion, edema or pneumothorax.", ["-Pleural Effusion", "-Edema", "-Pneumothorax"]),
    ("Lungs are free of consolidation.", ["-Consolidation"]),
    ("Effusion has resolved.", ["-Pleural Effusion resolved"]),
    ("Near complete resolution of right pneumothorax.", ["Pneumothorax right improved"]),
    ("The patient has been extubated.", ["-endotracheal tube resolved"]),
    ("Pneumonia is unlikely.", ["-Pneumonia"]),
    ("The pulmonary vasculature is not engorged.", ["-Edema"]),
    ("Possible pneumonia.", ["?Pneumonia"]),
    ("Likely atelectasis.", ["Atelectasis"]),
    ("Pneumonia cannot be excluded.", ["?Pneumonia"]),
    ("No effusion, but a small nodule.", ["-Pleural Effusion", "Lung Lesion 1"]),
    # sides and zones
    ("Left upper lobe opacity.", ["Lung Opacity left upper"]),
    ("Right effusion, left basilar atelectasis.", ["Pleural Effusion right", "Atelectasis left lower"]),
    ("Stable cardiomegaly with new left effusion.", ["Cardiomegaly stable", "Pleural Effusion left new"]),
    ("Right PICC ends in the mid SVC.", ["PICC right"]),
    # how much
    ("Mild-to-moderate cardiomegaly.", ["Cardiomegaly 1.5"]),
    ("The heart is mildly enlarged.", ["Cardiomegaly 1"]),
    ("Effusion has slightly increased.", ["Pleural Effusion worse"]),
    ("Moderate effusion and small pneumothorax.", ["Pleural Effusion 2", "Pneumothorax 1"]),
    ("A 1.2 x 3 cm mass.", ["Lung Lesion 30mm"]),
    ("ETT tip 5 cm above the carina.", ["endotracheal tube 50mm"]),
    # change
    ("Effusion and atelectasis are unchanged.", ["Pleural Effusion stable", "Atelectasis stable"]),
    ("Worsening effusion and atelectasis.", ["Pleural Effusion worse", "Atelectasis worse"]),
    ("Effusion and new edema are seen.", ["Pleural Effusion", "Edema new"]),
    ("Effusion is larger while edema has improved.", ["Pleural Effusion worse", "Edema improved"]),
    ("Increased effusion.", ["Pleural Effusion worse"]),
    ("Increased interstitial markings.", ["interstitial opacity"]),
    ("No change in left effusion.", ["Pleural Effusion left stable"]),
    ("Left effusion. It has decreased.", ["Pleural Effusion left improved"]),
    ("Cardiomegaly. No interval change.", ["Cardiomegaly stable"]),
    # signs and what they stand for
    ("Left opacity consistent with pneumonia.", ["Pneumonia left"]),
    ("Left opacity may represent atelectasis.", ["Lung Opacity left", "?Atelectasis"]),
    ("Small nodule representing a healed rib fracture.", ["old fracture 1"]),
    ("Effusion with compressive atelectasis.", ["Pleural Effusion", "Atelectasis"]),
    ("Malpositioned ETT.", ["malpositioned device", "endotracheal tube"]),
    ("Normal heart, clear lungs.", ["-Cardiomegaly", "-Lung Opacity"]),
    ("No acute disease.", []),
    ("", []),
]
MARKS = {"stated": "", "doubtful": "?", "denied": "-"}
words = st.sampled_from(
    [text for text, _ in TABLE] + ["and", ",", "mild", "3 cm", "left", "with", "no", "stable."]
)
texts = st.lists(words, max_size=8).map(" ".join)


def spelled(said):
    """Write a statement as the table does."""
    grade = "" if said.grade is None else f"{said.grade:g}"
    size = "" if said.size is None else f"{said.size:g}mm"
    fields = [said.name, said.side, *sorted(said.zones), grade, size, said.change]
    return MARKS[said.certainty] + " ".join(field for field in fields if field)


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_statements(text, expected):
    """The table's sentences say what the table says."""
    assert [spelled(said) for said in statements(text)] == expected


def test_a_text_that_calls_things_normal_says_something():
    """A normal chest is a statement; talk about the report is none."""
    assert says_something("Normal chest.")
    assert says_something("Fracture.")
    assert not says_something("Here is the report.")
    assert not says_something("")


@settings(deadline=None)
@given(texts)
def test_any_order_of_words_may_come(text):
    """Nothing raises, every field keeps to its range, and asking twice gives the same."""
    once = statements(text)
    module._in_sentence.cache_clear()
    assert statements(text) == once
    for said in once:
        assert said.grade is None or 1 <= said.grade <= 3
        assert said.size is None or said.size >= 0


def test_long_sentences_do_not_hang():
    """Time does not explode with the length of one sentence."""
    statements("small 3 x 4 x 5 cm left opacity and " * 800)
    statements("1 x 2 x " * 3000 + "mass")
