"""The splitter: a table of hard strings, and what holds for any text."""

import re

import pytest
import sentencex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from every_rule import every_rule
from hard_strings import HARD_STRINGS
from tabon.text.sentences import COUNTED, LEADING, MODIFIERS, SPLITTER, TRAILING, split_sentences

FRAGMENTS = (
    "No edema", "Heart size is normal", "lungs are clear", "Dr. Smith", "approx. 3.5 cm", "vs. pneumonia",
    "XXXX", "___", "1. ", "2) ", "- ", "\u2022 ", ". ", ".", "; ", ", ", ": ", " ", "\n", "\n\n", "(", ")",
    "**", "LUNGS: ", "M.D. ", "at 3 p.m. ", "fx. of rib 4", "lead no. 2", "\u3002", "?", "patient's ", "CT",
    "0.9",
)  # fmt: skip
anything = st.text(st.characters())  # lone surrogates included
radiology = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)
prose = st.lists(
    st.sampled_from([text for text in FRAGMENTS if not re.search(r"\d[.)]|XX|_|\*|-|\u2022", text)]),
    max_size=30,
).map("".join)


abbreviations = st.sampled_from(
    re.sub(r"\\|\?", "", f"{LEADING}|{MODIFIERS}|{TRAILING}|{COUNTED}").split("|")
)
hostile = st.lists(
    st.one_of(
        st.sampled_from(
            (
                *FRAGMENTS,
                "X",
                "xapproximat.)))))",
                "a",
                "B.",
                "may.",
                "[**Name 1**]",
                "__",
                "..",
                "\u212a",
                "\u017f",
            )
        ),
        abbreviations,
        abbreviations.map("{}. ".format),
        st.text(st.sampled_from(" .,;:?!()[]*_`'\"-\u201d\n\u2028\u3002XxaZ19\u0968\ud800"), max_size=4),
    ),
    max_size=30,
).map("".join)


def alphanumeric(text: str) -> str:
    """The letters and digits of a text."""
    return "".join(filter(str.isalnum, text))


def is_subsequence(part: str, whole: str) -> bool:
    """Whether the characters of a part stand in the whole in the same order."""
    rest = iter(whole)
    return all(character in rest for character in part)


def test_the_table_is_large_enough_and_has_no_string_twice():
    """At least sixty hard strings are labelled, each once."""
    assert len({text for text, _ in HARD_STRINGS}) == len(HARD_STRINGS) >= 60


@pytest.mark.parametrize(("text", "expected"), HARD_STRINGS)
def test_hard_strings(text, expected):
    """The splitter agrees with the hand labels on hard radiology text."""
    assert split_sentences(text) == expected


@pytest.mark.parametrize("sentence", sorted({sentence for _, labels in HARD_STRINGS for sentence in labels}))
def test_a_labelled_sentence_is_one_sentence(sentence):
    """Splitting a sentence again gives that sentence."""
    assert split_sentences(sentence) == (sentence,)


@pytest.mark.parametrize("words", [LEADING, MODIFIERS])
def test_listed_abbreviations_do_not_end_a_sentence(words):
    """No abbreviation that leads to the next word cuts it off."""
    for word in ("approx", "Dr", "vs") if words == LEADING else ("bilat", "Temp", "post"):
        assert re.fullmatch(words, word, re.IGNORECASE)
        assert len(split_sentences(f"Seen {word}. Smith today.")) == 1


def test_units_end_a_sentence_only_before_a_capital():
    """The period of "cm" goes on before a small letter, that of "no" before a number."""
    assert re.fullmatch(TRAILING, "cm")
    assert re.fullmatch(COUNTED, "no")
    assert len(split_sentences("It is 3 cm. wide.")) == 1
    assert len(split_sentences("It is 3 cm. Widened hilum.")) == 2
    assert len(split_sentences("Rib no. 4 is broken.")) == 1


def test_the_version_names_both_splitters():
    """A bank's signature can tell which rules and which sentencex were used."""
    assert re.fullmatch(r"tabon-sentences-\d+\+sentencex-\d+\.\d+\.\d+", SPLITTER)


@settings(deadline=None)
@given(anything)
def test_any_text_is_split_without_an_error(text):
    """No string raises, and what comes out is tidy and comes out again."""
    sentences = split_sentences(text)
    assert sentences == split_sentences(text)
    for sentence in sentences:
        assert sentence == " ".join(sentence.split())
        assert alphanumeric(sentence)


@settings(deadline=None)
@given(st.one_of(anything, radiology))
def test_nothing_is_invented_or_moved(text):
    """The output's letters and digits stand in the input in the same order."""
    assert is_subsequence(alphanumeric("".join(split_sentences(text))), alphanumeric(text))


@settings(deadline=None)
@given(st.one_of(prose, st.text(st.characters(exclude_categories=("N",), exclude_characters=")Xx_"))))
def test_no_letter_is_lost(text):
    """Without list markers and de-identification tokens every letter and digit stays."""
    assert alphanumeric("".join(split_sentences(text))) == alphanumeric(text)


@settings(deadline=None)
@given(radiology)
def test_only_markers_and_tokens_are_lost(text):
    """What is missing is made of list numbers and de-identification tokens only."""
    lost = alphanumeric(re.sub(r"XXXX", "", text))
    kept = alphanumeric(re.sub(r"XXXX", "", "".join(split_sentences(text))))
    assert re.sub(r"\d", "", kept) == re.sub(r"\d", "", lost)


@settings(deadline=None)
@given(prose)
def test_a_sentence_is_one_sentence(text):
    """Splitting is idempotent on radiology prose."""
    for sentence in split_sentences(text):
        assert split_sentences(sentence) == (sentence,)


@settings(deadline=None, max_examples=300)
@example("Clear. (h) No edema")
@example("Clear lungs?no mass")
@example("No edema; - no mass")
@example("No edema. xxx is seen. ___ too")
@example("No mass.. XXXX.No [**Name 1. A**] edema")
@example("Stanford type A. The heart is large. vs. B. No mass")
@example("Opacity vs. mass at the base 3. No approx. 3 cm. wide. It may. The in. No")
@given(st.lists(st.one_of(hostile, radiology, anything), max_size=3).map(" ".join))
def test_the_shortcuts_change_nothing(text):
    """Asking every rule about every text gives the same sentences."""
    split = split_sentences(text)
    with every_rule():
        assert split_sentences(text) == split


@pytest.mark.parametrize(
    "unit",
    [
        "' ",
        "!;",
        "A?@",
        "1. ",
        "a: 1. ",
        "[**",
        "- ",
        "**",
        "_",
        "XXXX",
        "(",
        ". ",
        "\u3002@",
        "\n",
        "Dr. ",
        "#\n",
        "x",
    ],
)
def test_long_hostile_text_is_split(unit):
    """Two hundred thousand characters of anything are split in windows of fixed size."""
    assert isinstance(split_sentences(unit * (200_000 // len(unit))), tuple)


def test_sentencex_never_sees_more_than_a_window(monkeypatch):
    """The work is linear: sentencex, quadratic without blanks, gets bounded pieces."""
    seen: list[int] = []
    monkeypatch.setattr(sentencex, "segment", lambda _, text: seen.append(len(text)) or [text])
    split_sentences("a!" * 10_000)
    assert max(seen) <= 2000
    assert sum(seen) == 20_000


def test_a_sentence_longer_than_the_window_stays_whole():
    """A window's edge is not the end of a sentence."""
    text = "nodule " * 1000 + "is seen."
    assert split_sentences(text + " No edema.") == (text, "No edema.")
