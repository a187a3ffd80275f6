"""Makes tests/golden/rexrank.json: ReXrank's columns of pairs of texts, by the packages that it uses.

Two environments: the one that has tabon hands the Open-i texts to one that has the packages, which do not
work on transformers 5.

    python3 -m venv /tmp/reference-venv
    /tmp/reference-venv/bin/pip install torch==2.13.0 transformers==4.57.6 numpy==1.26.4 \
        bert-score==0.3.13 radgraph==0.1.18 fast-bleu==0.0.90 scikit-learn==1.7.2 "setuptools<81"
    python tests/reference/rexrank_goldens.py texts |
        /tmp/reference-venv/bin/python tests/reference/rexrank_goldens.py > tests/golden/rexrank.json

BLEU-2 is fast-bleu's, BERTScore bert-score's, the graphs are radgraph's. SembScore and RadCliQ-v1 have no
package: BERT of transformers, the standard scaler of scikit-learn and the published numbers give them here.
Of Open-i reports only numbers and columns are kept.
"""

import contextlib
import json
import re
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

OPENI_PAIRS, OPENI_STEP = 200, 19  # how many, and from one report to the next
NEAR = 3  # the second report of a pair is this much later
PAIRS = [  # (reference, candidate), made up
    (
        "Findings: The lungs are clear. Impression: Normal.",
        "Findings: The lungs are clear. Impression: Normal.",
    ),
    ("The lungs are clear. No pleural effusion.", "Small left pleural effusion.  The lungs are clear."),
    ("Mild cardiomegaly, unchanged (2.5 x 3 cm).", "HEART SIZE IS NORMAL.\nNo opacity..."),
    ("no words shared", "Effusion."),
    ("Clear.", "Clear"),
    ("Small effusion", "effusion small effusion small"),
    ("New right lower lobe opacity. " * 40, "Right lower lobe opacity is new; stable heart size. " * 20),
    ("éffusion ½ of hémithorax – 50%", "naïve ™ tëxt"),
]
COLUMNS = ("radgraph", "bertscore", "semb", "bleu2")
MEANS = [0.53792312, 0.61757256, 0.76479421, 0.44738335]
SCALES = [0.30282584, 0.22430938, 0.25394391, 0.29892717]
COEFFICIENTS = [-0.377083683, -0.370300100, -0.252616218, 4.31504841e-12, 2.46655256e-10]


def openi_pairs():
    """Return [number, number, reference, candidate] of Open-i: a report, and its end before another's."""
    from openi import openi_sections

    found = [
        (number, f"Findings: {sections['FINDINGS']} Impression: {sections['IMPRESSION']}")
        for number, sections in openi_sections()
        if sections["FINDINGS"].strip() and sections["IMPRESSION"].strip()
    ]
    for place in range(0, OPENI_PAIRS * OPENI_STEP, OPENI_STEP):
        (one, text), (two, other) = found[place % len(found)], found[(place + NEAR) % len(found)]
        words = text.split()
        yield [one, two, text, " ".join([*words[len(words) // 2 :], *other.split()])]


def bleu2(pairs):
    """Return fast-bleu's BLEU-2 of each pair, words cut as CXR-Report-Metric cuts them."""
    from fast_bleu import BLEU

    def cut(text):
        return [word for word in text.lower().replace(".", " .").split(" ") if word != ""]

    weights = {"bigram": (0.5, 0.5)}
    return [BLEU([cut(ref)], weights).get_score([cut(hyp)])["bigram"][0] for ref, hyp in pairs]


def bertscore(pairs, folder):
    """Return bert-score's F1 of each pair, rescaled, without idf, one pair at a time."""
    import bert_score

    scorer = bert_score.BERTScorer(
        model_type=str(folder),
        num_layers=5,
        lang="en",
        device="cpu",
        idf=False,
        rescale_with_baseline=True,
        baseline_path=str(Path(bert_score.__file__).parent / "rescale_baseline/en/distilroberta-base.tsv"),
    )
    single = [[re.sub(r" +", " ", text) for text in pair] for pair in pairs]
    return [float(scorer.score([candidate], [reference])[2][0]) for reference, candidate in single]


def semb(pairs, folder):
    """Return the cosine of what CheXbert's BERT makes of the first token."""
    import numpy as np
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    tensors = torch.load(folder / "chexbert.pth", weights_only=True)["model_state_dict"]
    model = BertModel(BertConfig.from_pretrained(folder))
    model.load_state_dict(
        {name[12:]: tensor for name, tensor in tensors.items() if name.startswith("module.bert.")}
    )
    model.eval()
    tokenizer = BertTokenizer.from_pretrained(folder)

    def vector(text):
        text = re.sub(r"\s+", " ", text.strip().replace("\n", " ")).strip()
        ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
        ids = [tokenizer.cls_token_id, *ids[:510], tokenizer.sep_token_id]
        with torch.no_grad():
            return model(torch.tensor([ids]))[0][0, 0].numpy()

    couples = [[vector(text) for text in pair] for pair in pairs]
    return [float((a * b).sum() / (np.linalg.norm(a) * np.linalg.norm(b))) for a, b in couples]


def shared(one, other):
    """Return F1 of two sets by precision and recall, 0 where one of them is not defined."""
    hits = len(one & other)
    precision, recall = hits / len(other) if other else 0.0, hits / len(one) if one else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def facts(graph):
    """Return the entities and the relations of radgraph's answer."""
    named = {place: (entity["tokens"], entity["label"]) for place, entity in graph["entities"].items()}
    related = {
        (named[place], named[target], relation)
        for place, entity in graph["entities"].items()
        for relation, target in entity["relations"]
    }
    return set(named.values()), related


def radgraph(pairs, folder):
    """Return the mean of entity F1 and relation F1 of each pair's lower-cased texts."""
    from radgraph import RadGraph

    from tiny_radgraph import tiny_radgraph

    tiny_radgraph(folder, "radgraph")
    model = RadGraph(model_type="radgraph", model_cache_dir=str(folder), cuda=-1)
    couples = [[facts(model([text.lower()])["0"]) for text in pair] for pair in pairs]
    return [(shared(a, c) + shared(b, d)) / 2 for (a, b), (c, d) in couples]


def answers(pairs):
    """Return each pair's columns and RadCliQ-v1."""
    import numpy as np
    import torch
    from sklearn.preprocessing import StandardScaler

    from tiny_metric_models import tiny_chexbert, tiny_roberta

    torch.set_num_threads(1)  # tiny products on many threads only wait for each other
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        columns = [
            radgraph(pairs, folder / "graphs"),
            bertscore(pairs, tiny_roberta(folder / "roberta", layers=6)),
            semb(pairs, tiny_chexbert(folder / "chexbert")),
            bleu2(pairs),
        ]
    rows = np.array(columns).T
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_ = np.array(MEANS), np.array(SCALES)
    scaler.n_features_in_ = len(MEANS)
    with_one = np.hstack([scaler.transform(rows), np.ones((len(rows), 1))])
    return np.column_stack([rows, with_one @ np.array(COEFFICIENTS)]).tolist()


def written(openi):
    """Return the text of the golden file, a line a pair."""
    packages = ("fast-bleu", "bert-score", "radgraph", "transformers", "torch", "scikit-learn", "numpy")
    head = {
        "oracle": "fast-bleu, bert-score, radgraph, transformers and scikit-learn on tiny models",
        "maker": "tests/reference/rexrank_goldens.py",
        "versions": {name: version(name) for name in packages},
        "columns": [*COLUMNS, "radcliq"],
    }
    found = answers([*PAIRS, *(pair[2:] for pair in openi)])
    cases = [{"pair": pair, "row": row} for pair, row in zip(PAIRS, found, strict=False)]
    cases += [{"openi": pair[:2], "row": row} for pair, row in zip(openi, found[len(PAIRS) :], strict=True)]
    lines = ",\n".join(json.dumps(case) for case in cases)
    return json.dumps(head)[:-1] + ', "cases": [\n' + lines + "\n]}\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["texts"]:
        json.dump(list(openi_pairs()), sys.stdout)
    else:
        with contextlib.redirect_stdout(sys.stderr):  # radgraph prints
            content = written(json.load(sys.stdin))
        sys.stdout.write(content)
