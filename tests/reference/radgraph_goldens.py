"""Makes tests/golden/radgraph.json: what radgraph 0.1.18 says of a tiny model on transformers 4.

Two environments: the one that has tabon hands the Open-i texts to the one that has radgraph.

    python tests/reference/radgraph_goldens.py texts |
        REFERENCE/bin/python tests/reference/radgraph_goldens.py > tests/golden/radgraph.json

Texts are lower-cased before radgraph sees them, as tabon does. Of Open-i reports
only numbers are kept: the report's number, places of words, labels, rewards.
"""

import contextlib
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

OPENI_STEP = 331  # every so many Open-i reports
PAIRS = [  # (reference, candidate), made up
    ("No acute cardiopulmonary disease.", "No acute cardiopulmonary disease."),
    ("The lungs are clear. No pleural effusion.", "Small left pleural effusion. The lungs are clear."),
    (
        "Mild cardiomegaly, unchanged. New right lower lobe opacity (2.5 x 3 cm) suspicious for pneumonia.",
        "Heart size is normal. Right-sided opacity at the base, likely atelectasis/pneumonia; follow up 3%.",
    ),
    (
        "Et tube 4 cm above the carina. Bibasilar atelectasis with small effusions. No pneumothorax. Stable?",
        'Endotracheal tube 2.5cm above the carina.\nLow lung volumes with "bibasilar" opacities w/ fluid.',
    ),
    ("Clear.", "Clear"),
    ("CARDIOMEGALY. Lungs Clear.", "Cardiomegaly. lungs clear."),
    ("", "No pneumothorax."),
    ("No pneumothorax.", ""),
    (
        "Interval placement of a left subclavian central line, tip at the cavoatrial junction. " * 4,
        "Left central line, tip at the junction of the superior vena cava and right atrium. " * 4,
    ),
    ("éffusion ½ of hémithorax – 50%, (60%) 'old.' \\n rib fracture", "naïve ™ tëxt ok.) 5%) healed rib"),
]


def openi_pairs():
    """Return [number, number, reference, candidate] of Open-i reports in a row, `draft_of` them mixed."""
    from openi import openi_sections

    found = [(number, sections["FINDINGS"]) for number, sections in openi_sections()]
    texts = [(number, text) for number, text in found if text.strip()]
    rows = zip(texts[::OPENI_STEP], texts[1::OPENI_STEP], strict=False)
    return [[one, two, text, draft_of(text, other)] for (one, text), (two, other) in rows]


def draft_of(text, other):
    """Return the second half of a report and then another report, so that some entities are shared."""
    words = text.split()
    return " ".join([*words[len(words) // 2 :], *other.split()])


def compact(entity):
    """Return [first word, last word, label, [[relation, place of its target], ...]] of an entity."""
    relations = [[label, int(target) - 1] for label, target in entity["relations"]]
    return [entity["start_ix"], entity["end_ix"], entity["label"], relations]


def answers(kind, pairs):
    """Yield radgraph's rewards of each (reference, candidate) pair, and the words and graph of its texts."""
    from radgraph import F1RadGraph

    from tiny_radgraph import tiny_radgraph

    with tempfile.TemporaryDirectory() as folder:
        tiny_radgraph(Path(folder), kind)
        scorer = F1RadGraph(reward_level="all", model_type=kind, model_cache_dir=folder, cuda=-1)
    lowered = [[text.lower() for text in pair] for pair in pairs]
    _, rewards, _, _ = scorer(refs=[pair[0] for pair in lowered], hyps=[pair[1] for pair in lowered])
    for pair, *reward in zip(lowered, *rewards, strict=True):
        found = [scorer.radgraph([text])["0"] for text in pair if text]
        graphs = [[compact(entity) for entity in graph["entities"].values()] for graph in found]
        yield {"rewards": reward, "words": [graph["text"] for graph in found], "graphs": graphs}


def cases(kind, openi):
    """Yield the golden cases of one kind of model."""
    for pair, answer in zip(PAIRS, answers(kind, PAIRS), strict=True):
        yield {"kind": kind, "pair": pair, **answer}
    for pair, answer in zip(openi, answers(kind, [pair[2:] for pair in openi]), strict=True):
        words = [len(text.split()) for text in answer["words"]]
        yield {"kind": kind, "openi": pair[:2], **answer, "words": words}


def written(openi):
    """Return the text of the golden file, a line a case."""
    head = {
        "oracle": "radgraph 0.1.18, reward_level all, lower-cased texts, model of tiny_radgraph.py",
        "maker": "tests/reference/radgraph_goldens.py",
        "versions": {name: version(name) for name in ("radgraph", "transformers", "torch", "numpy", "nltk")},
    }
    lines = [json.dumps(case) for kind in ("radgraph-xl", "radgraph") for case in cases(kind, openi)]
    return json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["texts"]:
        json.dump(openi_pairs(), sys.stdout)
    else:
        with contextlib.redirect_stdout(sys.stderr):  # radgraph prints
            content = written(json.load(sys.stdin))
        sys.stdout.write(content)
