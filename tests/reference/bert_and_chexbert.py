"""Make tests/golden/bertscore.json and chexbert.json with the packages that others use.

Runs in an environment of its own, because these packages do not work on transformers 5:

    python3 -m venv /tmp/reference-venv
    /tmp/reference-venv/bin/pip install torch==2.13.0 transformers==4.57.6 numpy==1.26.4 \
        bert-score==0.3.13 f1chexbert==0.0.2 scikit-learn==1.7.2 "setuptools<81"
    /tmp/reference-venv/bin/python tests/reference/bert_and_chexbert.py

Of Open-i only report numbers, hashes and scores are written, never text.
"""

import hashlib
import json
import os
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "helpers"))

from tiny_metric_models import tiny_bert, tiny_chexbert, tiny_roberta  # noqa: E402

ARCHIVE = TESTS.parents[1] / "shared" / "data" / "openi" / "NLMCXR_reports.tgz"
OPENI_PAIRS = [(n, n + 7) for n in range(20, 2020, 80)]  # numbers of reports: reference, candidate
PACKAGES = ("bert-score", "f1chexbert", "transformers", "torch", "scikit-learn")
LONG = "The heart is enlarged and the lungs are clear. " * 90
PAIRS = [
    ("The lungs are clear.", "The lungs are clear."),
    ("Lungs are clear. No pleural effusion.", "lungs clear, no effusion or pneumothorax seen"),
    ("No acute cardiopulmonary process.", "Stable moderate cardiomegaly with small left pleural effusion."),
    ("Heart size is normal.", "The heart is enlarged."),
    ("Pleural effusion.", "No pleural effusion."),
    ("  Mild edema,\n\n improved since prior study.\t", "Mild edema, improved since prior study."),
    ("Tip of the catheter in the SVC (3.5 cm above the carina).", "Line tip in place; unchanged."),
    ("Right lower lobe consolidation may represent pneumonia.", "RIGHT LOWER LOBE OPACITY"),
    ("Naïve façade: 5 × 3 mm — “nodule” in the left lung.", "A 5 x 3 mm nodule."),
    (LONG, "The lungs are clear."),
    (LONG + "New rib fracture.", LONG),
    ("x", "effusion"),
    (". . .", "?"),
    ("There is no pneumothorax.", "There is a pneumothorax."),
    ("Rib fracture. Chest tube in place. Severe edema.", "Chest tube in place. Rib fracture. Severe edema."),
]
EMPTY_PAIRS = [("", "The lungs are clear."), ("The lungs are clear.", " \n "), ("", "")]


def openi_findings():
    """Return the Findings of the Open-i reports that are compared, by number."""
    wanted = {str(number) for pair in OPENI_PAIRS for number in pair}
    with tarfile.open(ARCHIVE) as archive:
        members = [m for m in archive if m.name.endswith(".xml") and Path(m.name).stem in wanted]
        return {int(Path(member.name).stem): findings(archive.extractfile(member)) for member in members}


def findings(file):
    """Return the Findings of one report, "" where it has none."""
    entries = ET.parse(file).getroot().iter("AbstractText")  # noqa: S314  # a file of our own
    return next((entry.text or "" for entry in entries if entry.attrib["Label"] == "FINDINGS"), "")


def bertscore(folder, pairs, *, layer, rescaled):
    """Return bert-score's P, R, F of each pair, one pair at a time, so that no padding takes part."""
    import bert_score

    scorer = bert_score.BERTScorer(
        model_type=str(folder),
        num_layers=layer,
        lang="en",
        device="cpu",
        rescale_with_baseline=rescaled,
        baseline_path=str(Path(bert_score.__file__).parent / "rescale_baseline/en/roberta-large.tsv"),
    )
    scored = [scorer.score([candidate], [reference]) for reference, candidate in pairs]
    return [[float(value[0]) for value in values] for values in scored]


def chexbert(folder, pairs):
    """Return f1chexbert's labels of each pair's texts and its two reports over all pairs."""
    from f1chexbert import f1chexbert

    f1chexbert.CACHE_DIR = str(folder)
    os.chdir(folder.parent)  # where it looks for a folder called bert-base-uncased
    scorer = f1chexbert.F1CheXbert(device="cpu")
    labels = [[scorer.get_label(text.strip()) for text in pair] for pair in pairs]
    references, candidates = map(list, zip(*pairs, strict=True))
    _, _, fourteen, five = scorer(hyps=candidates, refs=references)
    kinds = ("micro", "macro", "weighted", "samples")
    reports = (("14", fourteen), ("5", five))
    scores = {f"{n}-{kind}": report[f"{kind} avg"]["f1-score"] for n, report in reports for kind in kinds}
    return labels, scores


def write(name, content):
    """Write one golden file with the versions that made it."""
    versions = {package: version(package) for package in PACKAGES}
    made = {"made_by": "tests/reference/bert_and_chexbert.py", "versions": versions, **content}
    text = json.dumps(made, ensure_ascii=False, indent=1)
    (TESTS / "golden" / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def main():
    """Score the made-up pairs and the Open-i pairs with each tiny checkpoint."""
    texts = openi_findings()
    openi = [(texts[reference], texts[candidate]) for reference, candidate in OPENI_PAIRS]
    openi_names = [
        {"numbers": numbers, "sha256": hashlib.sha256("\0".join(pair).encode()).hexdigest()[:12]}
        for numbers, pair in zip(OPENI_PAIRS, openi, strict=True)
    ]
    root = Path(tempfile.mkdtemp(prefix="tiny-metric-models-"))
    bert, roberta = tiny_bert(root / "bert"), tiny_roberta(root / "roberta")
    chex = tiny_chexbert(root / "bert-base-uncased")
    runs = [
        ("bert layer 5", "bert", bert, 5, False),
        ("roberta layer 17", "roberta", roberta, 17, False),
        ("roberta layer 17 rescaled", "roberta", roberta, 17, True),
    ]
    everything = PAIRS + EMPTY_PAIRS + openi
    cases = [
        {
            "name": name,
            "model": model,
            "layer": layer,
            "rescaled": rescaled,
            "values": bertscore(folder, everything, layer=layer, rescaled=rescaled),
        }
        for name, model, folder, layer, rescaled in runs
    ]
    given = {"pairs": PAIRS, "empty_pairs": EMPTY_PAIRS, "openi_pairs": openi_names}
    write("bertscore", {**given, "cases": cases})
    made_up, openi_only = chexbert(chex, PAIRS + EMPTY_PAIRS), chexbert(chex, openi)
    results = [{"labels": labels, "scores": scores} for labels, scores in (made_up, openi_only)]
    write("chexbert", {**given, "made_up": results[0], "openi": results[1]})


if __name__ == "__main__":
    main()
