"""The labeller: a table of scopes, laws that hold for any text, and the simulated cohort's known states."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.data.simulate import PROMPTS, SimulationSettings, simulate_queries
from tabon.text import observations
from tabon.text.observations import NO_FINDING, OBSERVATIONS, label_text, mentions
from tabon.text.sentences import split_sentences

P, N, U, A = "positive", "negative", "uncertain", "absent"
ORDER = [A, N, U, P]
NOUNS = {
    "mediastinal widening": "Enlarged Cardiomediastinum",
    "cardiomegaly": "Cardiomegaly",
    "infiltrate": "Lung Opacity",
    "nodule": "Lung Lesion",
    "edema": "Edema",
    "consolidation": "Consolidation",
    "pneumonia": "Pneumonia",
    "atelectasis": "Atelectasis",
    "pneumothorax": "Pneumothorax",
    "pleural effusion": "Pleural Effusion",
    "pleural thickening": "Pleural Other",
    "rib fracture": "Fracture",
    "chest tube": "Support Devices",
}
SCOPES = [
    ("No evidence of pneumothorax or pleural effusion.", {"Pneumothorax": N, "Pleural Effusion": N}),
    ("No consolidation, large effusion, or edema.", {"Consolidation": N, "Pleural Effusion": N, "Edema": N}),
    ("The lungs are free of focal consolidation.", {"Consolidation": N}),
    ("Negative for pneumothorax.", {"Pneumothorax": N}),
    ("Neither effusion nor pneumothorax.", {"Pleural Effusion": N, "Pneumothorax": N}),
    ("No focal consolidation to suggest pneumonia.", {"Consolidation": N, "Pneumonia": N}),
    ("No new consolidation.", {"Consolidation": N}),
    ("No pneumothorax, but small left effusion.", {"Pneumothorax": N, "Pleural Effusion": P}),
    ("No pneumothorax; moderate effusion.", {"Pneumothorax": N, "Pleural Effusion": P}),
    ("No pneumothorax and small left effusion.", {"Pneumothorax": N, "Pleural Effusion": P}),
    ("No pneumothorax with chest tube in place.", {"Pneumothorax": N, "Support Devices": P}),
    ("No acute findings other than mild edema.", {"Edema": P}),
    ("Apart from atelectasis, no consolidation.", {"Atelectasis": P, "Consolidation": N}),
    ("There is no consolidation, there is a nodule.", {"Consolidation": N, "Lung Lesion": P}),
    ("No pneumothorax, heart is enlarged.", {"Pneumothorax": N, "Cardiomegaly": P}),
    ("Small effusion, unchanged, without pneumothorax.", {"Pleural Effusion": P, "Pneumothorax": N}),
    ("Effusion and pneumothorax are not identified.", {"Pleural Effusion": N, "Pneumothorax": N}),
    ("Effusions are present, pneumothorax is not seen.", {"Pleural Effusion": P, "Pneumothorax": N}),
    ("The previously seen effusion is no longer evident.", {"Pleural Effusion": N}),
    ("The right pneumothorax has resolved.", {"Pneumothorax": N}),
    ("Interval resolution of edema.", {"Edema": N}),
    ("Resolving pneumonia.", {"Pneumonia": P}),
    ("Partial resolution of the left effusion.", {"Pleural Effusion": P}),
    ("Effusion has not resolved.", {"Pleural Effusion": P}),
    ("The endotracheal tube has been removed.", {"Support Devices": N}),
    ("Removal of the chest tube and right PICC line.", {"Support Devices": N}),
    ("Left effusion is not significantly changed.", {"Pleural Effusion": P}),
    ("No significant change in left effusion.", {"Pleural Effusion": P}),
    ("Effusion not seen previously.", {"Pleural Effusion": P}),
    ("Opacity not well seen on the lateral view.", {"Lung Opacity": P}),
    ("Pneumonia cannot be excluded.", {"Pneumonia": U}),
    ("Cannot exclude a small effusion.", {"Pleural Effusion": U}),
    ("Rule out pneumothorax.", {"Pneumothorax": U}),
    ("Opacity which may represent pneumonia.", {"Lung Opacity": P, "Pneumonia": U}),
    ("Increased markings possibly due to mild edema.", {"Edema": U}),
    ("Left basilar atelectasis versus pneumonia.", {"Atelectasis": U, "Pneumonia": U}),
    ("Atelectasis or consolidation at the left base.", {"Atelectasis": U, "Consolidation": U}),
    ("Atelectasis rather than pneumonia.", {"Atelectasis": P, "Pneumonia": N}),
    ("Pneumonia is less likely.", {"Pneumonia": U}),
    ("Pneumonia?", {"Pneumonia": U}),
    ("The heart is enlarged.", {"Cardiomegaly": P}),
    ("The heart is not enlarged.", {"Cardiomegaly": N}),
    ("Borderline heart size.", {"Cardiomegaly": U}),
    ("Heart size is at the upper limits of normal.", {"Cardiomegaly": N}),
    ("Heart size and mediastinal contours are normal.", {"Cardiomegaly": N, "Enlarged Cardiomediastinum": N}),
    ("The mediastinum is widened.", {"Enlarged Cardiomediastinum": P}),
    ("Heart failure.", {"Edema": P, "Cardiomegaly": A}),
    ("Pulmonary vascularity is within normal limits.", {"Edema": A}),
    ("The lungs are clear.", {"Lung Opacity": N}),
    ("Costophrenic angles are sharp.", {"Pleural Effusion": N}),
    ("Hydropneumothorax on the right.", {"Pneumothorax": P, "Pleural Effusion": P}),
    ("Pericardial effusion.", {"Pleural Effusion": A}),
    ("Nodule consistent with a calcified granuloma.", {"Lung Lesion": A}),
    ("Nodular opacity.", {"Lung Lesion": P, "Lung Opacity": P}),
    ("Tip projects over the SVC.", {"Support Devices": P}),
    ("If there is concern for fracture, consider rib films.", {"Fracture": A}),
    ("Endotracheal tube in place.", {"Support Devices": P, NO_FINDING: P}),
    ("No acute disease.", {NO_FINDING: P}),
    ("Possible edema.", {NO_FINDING: A}),
    ("", dict.fromkeys(OBSERVATIONS, A)),
]  # fmt: skip
SIDES = [
    ("Small right effusion and left basilar atelectasis.", ["right", "left"]),
    ("Effusion and atelectasis on the left.", ["left", "left"]),
    ("Left pleural effusion with atelectasis.", ["left", "left"]),
    ("Bibasilar opacities.", ["bilateral"]),
    ("Left greater than right effusions.", ["bilateral"]),
    ("Left chest pacemaker in the right ventricle.", ["left"]),
    ("RLL pneumonia.", ["right"]),
    ("No right pneumothorax.", ["right"]),
    ("Cardiomegaly.", [None]),
]
STATES = {  # what says an observation, and nothing else does, in the phrase book
    "Cardiomegaly": {"cardiomegaly"},
    "Lung Lesion": {"lung nodule"},
    "Edema": {"pulmonary edema"},
    "Atelectasis": {"atelectasis"},
    "Pneumothorax": {"pneumothorax"},
    "Pleural Effusion": {"pleural effusion"},
    "Fracture": {"rib fracture", "healed rib fracture"},
    "Support Devices": {"endotracheal tube", "enteric tube", "central venous catheter", "PICC", "chest tube",
                        "chest port", "pacemaker"},
}  # fmt: skip
BLURRED = {
    "consolidation",
    "scarring",
    "pulmonary fibrosis",
    "interstitial opacity",
}  # opacity or consolidation
nouns = st.sampled_from(sorted(NOUNS))
sentences = st.sampled_from([text for text, _ in SCOPES if text])
reports = st.lists(sentences, min_size=1, max_size=6).map(" ".join)


@pytest.mark.parametrize(("text", "expected"), SCOPES)
def test_scopes(text, expected):
    """The table's sentences get the table's labels."""
    labels = label_text(text)
    assert {name: labels[name] for name in expected} == expected


@pytest.mark.parametrize(("text", "expected"), SIDES)
def test_sides(text, expected):
    """Each mention has the side that its sentence gives it."""
    assert [found.side for found in mentions(text)] == expected


@pytest.mark.parametrize("noun", NOUNS)
def test_plain_sentences(noun):
    """A bare noun is positive, a denied one negative, a doubted one uncertain, and nothing else is said."""
    frames = {
        "{}.": P,
        "There is {}.": P,
        "No {}.": N,
        "{} is not seen.": N,
        "Possible {}.": U,
        "Question of {}.": U,
    }
    for frame, expected in frames.items():
        labels = label_text(frame.format(noun).capitalize())
        others = set(OBSERVATIONS) - {NOUNS[noun], NO_FINDING}
        assert labels[NOUNS[noun]] == expected, frame
        assert {labels[name] for name in others} == {A}


@settings(deadline=None)
@given(st.lists(nouns, min_size=2, max_size=6, unique=True), st.sampled_from(["or", "and"]))
def test_one_negation_denies_a_whole_list(listed, last):
    """The list after "no" is denied to its end."""
    labels = label_text(f"No {', '.join(listed[:-1])}, {last} {listed[-1]}.")
    assert {labels[NOUNS[noun]] for noun in listed} == {N}
    assert labels[NO_FINDING] == P


@settings(deadline=None)
@given(nouns, nouns, st.sampled_from(["; ", ", but ", ". ", ", however "]))
def test_a_denial_ends_where_something_new_begins(denied, found, end):
    """What stands after the end of a denial is there."""
    labels = label_text(f"No {denied}{end}{found}.")
    assert labels[NOUNS[found]] == P
    assert labels[NOUNS[denied]] == (P if NOUNS[denied] == NOUNS[found] else N)


@settings(deadline=None)
@given(reports)
def test_labels_are_the_strongest_mentions(text):
    """A report's label is the strongest of its mentions, found again sentence by sentence."""
    labels, found = label_text(text), mentions(text)
    for name in OBSERVATIONS[:-1]:
        polarities = [A, *(mention.polarity for mention in found if mention.observation == name)]
        assert labels[name] == max(polarities, key=ORDER.index)
    sick = any(labels[name] in (P, U) for name in OBSERVATIONS[:-2])
    assert labels[NO_FINDING] == (A if sick else P)


@settings(deadline=None)
@given(reports)
def test_mentions_are_those_of_the_sentences(text):
    """A mention depends on its own sentence only, and knows which one that is."""
    alone = [
        (index, found.observation, found.polarity, found.side)
        for index, sentence in enumerate(split_sentences(text))
        for found in mentions(sentence)
    ]
    assert [(one.sentence, one.observation, one.polarity, one.side) for one in mentions(text)] == alone


@settings(deadline=None)
@given(reports)
def test_case_does_not_matter(text):
    """A report in capitals says the same."""
    capitals = " ".join(text.upper().split())
    if len(split_sentences(capitals)) == len(split_sentences(text)):
        assert label_text(capitals) == label_text(text)


@settings(deadline=None)
@given(
    st.text(st.characters())
    | st.lists(st.sampled_from([*NOUNS, "no", "or", ",", "?", "but", "is", "left"])).map(" ".join)
)
def test_any_text_has_labels(text):
    """Nothing raises, and asking twice gives the same, remembered or not."""
    labels = label_text(text)
    assert set(labels.polarities) <= set(ORDER)
    assert [polarity in (P, U) for polarity in labels.polarities] == list(labels.held())
    assert all(found.polarity != A for found in mentions(text))
    observations._looked_up.cache_clear()
    assert label_text(text) == labels


def test_long_sentences_do_not_hang():
    """Time does not explode with the length of one sentence."""
    text = "heart " * 2000 + "no effusion " * 500 + "pleural " * 2000
    assert label_text(text)["Pleural Effusion"] == N


def simulated_drafts():
    """The text and the kinds that are said to be there, of drafts under every prompt."""
    for prompt in PROMPTS:
        cohort = SimulationSettings(patients=900, prompt=prompt, num_candidates=3)
        for query, index in product(simulate_queries(cohort), range(3)):
            draft = query["candidates"][index]
            yield draft["text"], {fact for fact in draft["state"] if ":" not in fact}


def test_the_simulated_cohort_is_labelled_as_it_is():
    """On eight observations the labels are the known states: micro F1 is 1; opacities are never missed."""
    counts = {True: 0, False: 0}
    for text, state in simulated_drafts():
        labels = label_text(text)
        for name, kinds in STATES.items():
            if labels[name] in (P, U) or state & kinds:
                counts[(labels[name] in (P, U)) == bool(state & kinds)] += 1
        if state & BLURRED:
            assert {labels["Lung Opacity"], labels["Consolidation"]} & {P, U}
    assert counts[True] > 300
    assert counts[False] == 0
