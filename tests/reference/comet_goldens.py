"""Makes tests/golden/comet.json: what unbabel-comet 2.2.7 says of a tiny model on transformers 4.

Two environments: the one that has tabon hands the Open-i texts to the one that has unbabel-comet.

    python tests/reference/comet_goldens.py texts |
        REFERENCE/bin/python tests/reference/comet_goldens.py > tests/golden/comet.json

Of Open-i reports only numbers are kept: the reports' numbers and the scores.
"""

import contextlib
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

OPENI_STEP = 131  # every so many Open-i reports
CASES = [  # (reference, candidate, prior), made up
    ("The lungs are clear.", "The lungs are clear.", "The lungs are clear."),
    ("The heart is enlarged.", "The lungs are clear.", "No pleural effusion or pneumothorax."),
    ("Small left pleural effusion, unchanged since prior study.", "No pleural effusion.", ""),
    ("Mild basilar opacities.", "", "mild basilar opacity"),
    ("", "Normal size of the heart.", "The heart is larger."),
    ("", "", ""),
    ("ﬁbrosis, ½ of the right lung – 50 %", "fibrosis, 1\u20442 of the right lung", "naïve\u00a0text\t(new)"),
    ("No <pad> effusion </s> seen <mask>.", "<s> effusion <pad> <pad> seen", "seen <unk> 肺"),
    ("Enlarging right effusion. " * 9, "New small left effusion. " * 12, "Normal heart size. " * 20),
    ("clear", "  clear  ", "clear."),
]


def openi_triples():
    """Return [[numbers], reference, candidate, prior]: Findings of three Open-i reports in a row."""
    from openi import openi_sections

    found = [(number, sections["FINDINGS"]) for number, sections in openi_sections()]
    rows = [(number, text) for number, text in found if text.strip()]
    picks = [rows[i : i + 3] for i in range(0, len(rows) - 2, OPENI_STEP)]
    return [[[number for number, _ in pick], *(text for _, text in pick)] for pick in picks]


def scores(model, triples):
    """Return a row a triple: the score with the reference, nothing, the prior as the source."""
    samples = [
        {"src": source, "mt": candidate, "ref": reference}
        for reference, candidate, prior in triples
        for source in (reference, "", prior)
    ]
    found = model.predict(samples, batch_size=4, gpus=0, progress_bar=False)["scores"]
    return [found[i : i + 3] for i in range(0, len(found), 3)]


def lightning_file(model, folder):
    """Return the kinds of things in a checkpoint that Lightning itself writes, read as weights only."""
    import pytorch_lightning
    import torch

    trainer = pytorch_lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    trainer.strategy.connect(model)
    trainer.save_checkpoint(folder / "written.ckpt", weights_only=True)
    content = torch.load(folder / "written.ckpt", weights_only=True)
    return {name: type(value).__name__ for name, value in content.items()}


def main():
    """Score the made-up triples under each variant, and the Open-i ones as published."""
    from comet import load_from_checkpoint

    from tiny_comet import VARIANTS, tiny_comet

    openi = json.load(sys.stdin)
    result = {"made_by": [f"{name} {version(name)}" for name in ("unbabel-comet", "transformers", "torch")]}
    result["cases"] = CASES
    with tempfile.TemporaryDirectory() as temporary:
        for variant, changed in VARIANTS.items():
            folder = tiny_comet(Path(temporary) / variant, absolute=True, **changed)
            model = load_from_checkpoint(str(folder / "checkpoints/model.ckpt"), local_files_only=True)
            result[variant] = scores(model, CASES)
            if variant == "published":
                result["openi_numbers"] = [numbers for numbers, *_ in openi]
                result["openi"] = scores(model, [texts for _, *texts in openi])
                result["lightning"] = lightning_file(model, folder)
    return result


if __name__ == "__main__":
    if sys.argv[1:] == ["texts"]:
        json.dump(openi_triples(), sys.stdout)
    else:
        with contextlib.redirect_stdout(sys.stderr):
            made = main()
        json.dump(made, sys.stdout, indent=1)
        sys.stdout.write("\n")
