"""A RadGraph model of some ten thousand random weights, in the layout of the true archives.

Used by the tests and, in another environment, by tests/reference/radgraph_goldens.py:
numpy's RandomState gives both the same bits, so nothing of tabon is imported here.
"""

import json
import string
from pathlib import Path

import numpy as np

SEED = 16
HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 16, 2, 2, 32, 48
FEATURE, WIDTH, FEEDFORWARD, FEEDFORWARD_LAYERS = 5, 6, 12, 2
MAX_LENGTH = 40  # shorter than most reports, so that they are read in parts
SPAN = 2 * HIDDEN + FEATURE
LABELS = {
    "radgraph-xl": [
        "Observation::definitely present",
        "Anatomy::definitely present",
        "Observation::definitely absent",
        "Observation::uncertain",
    ],
    "radgraph": ["ANAT-DP", "OBS-DP", "OBS-DA", "OBS-U"],
}
RELATIONS = ["modify", "located_at", "suggestive_of"]
ENTITY_THRESHOLD, RELATION_THRESHOLD = 1.9, 1.3  # so that some spans and some pairs get a label
WORDS = (
    "the there is are no new mild small large left right lung lungs clear pleural effusion heart size normal "
    "pneumothorax opacity base acute cardio pulmonary disease unchanged atelectasis ##ly ##ed ##al ##es ##ing"
)


def tiny_radgraph(folder: Path, kind: str = "radgraph-xl", *, backbone: str | None = None) -> Path:
    """Save a model and its backbone's files as the folder `folder`/`kind`; return that."""
    import torch

    model = folder / kind
    (model / "vocabulary").mkdir(parents=True)
    vocabulary = _vocabulary()
    bert = _save_backbone(model / "bert", vocabulary)
    _write(model / "config.json", json.dumps(_config(backbone or str(bert))))
    _write(model / "vocabulary" / "non_padded_namespaces.txt", "*tags\n*labels\n")
    _write(model / "vocabulary" / f"{kind}__ner_labels.txt", "\n".join(["", *LABELS[kind], ""]))
    _write(model / "vocabulary" / f"{kind}__relation_labels.txt", "\n".join([*RELATIONS, ""]))
    weights = _weights(kind, len(vocabulary))
    torch.save({name: torch.from_numpy(value) for name, value in weights.items()}, model / "weights.th")
    return model


def _write(path, text):
    """Write a text file with the same bytes everywhere."""
    path.write_text(text, encoding="utf-8", newline="\n")


def _vocabulary():
    """Return the word pieces: some words, and every letter alone and inside a word."""
    signs = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    inner = [f"##{sign}" for sign in [*string.ascii_lowercase, *string.digits]]
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, *inner, *WORDS.split()]


def _save_backbone(folder, vocabulary):
    """Save what the Hub has of a backbone, less its weights."""
    folder.mkdir()
    _write(folder / "vocab.txt", "\n".join([*vocabulary, ""]))
    _write(
        folder / "tokenizer_config.json",
        json.dumps(
            {"do_lower_case": True, "tokenizer_class": "BertTokenizer", "model_max_length": POSITIONS}
        ),
    )
    config = {
        "architectures": ["BertForMaskedLM"],
        "model_type": "bert",
        "vocab_size": len(vocabulary),
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }
    _write(folder / "config.json", json.dumps(config))
    return folder


def _config(backbone):
    """Return config.json as DyGIE++ writes it, less what only training reads."""
    bert = {"type": "pretrained_transformer_mismatched", "model_name": backbone, "max_length": MAX_LENGTH}
    weights = {"ner": 0.2, "relation": 1.0, "coref": 0.0, "events": 0.0}
    return {
        "dataset_reader": {"type": "dygie", "max_span_width": WIDTH, "token_indexers": {"bert": bert}},
        "model": {
            "type": "dygie",
            "embedder": {"token_embedders": {"bert": bert}},
            "initializer": {},
            "module_initializer": {},
            "feature_size": FEATURE,
            "max_span_width": WIDTH,
            "target_task": "relation",
            "feedforward_params": {
                "num_layers": FEEDFORWARD_LAYERS,
                "hidden_dims": FEEDFORWARD,
                "dropout": 0.4,
            },
            "loss_weights": weights,
            "modules": {
                "ner": {},
                "coref": {"spans_per_word": 0.3, "max_antecedents": 100, "coref_prop": 0},
                "relation": {"spans_per_word": 0.9},
                "events": {
                    "trigger_spans_per_word": 0.3,
                    "argument_spans_per_word": 0.8,
                    "loss_weights": {"trigger": 0.2, "arguments": 1.0},
                },
            },
        },
    }


def _weights(kind, vocabulary):
    """Return every weight of the checkpoint by its name, drawn in the order of the names below."""
    shapes = {**_bert_shapes(vocabulary), **_head_shapes(kind)}
    random = np.random.RandomState(SEED)
    drawn = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    weights = {name: _scaled(name, value) for name, value in drawn.items()}
    weights[f"_ner._ner_scorers.{kind}__ner_labels.1._module.bias"] -= np.float32(ENTITY_THRESHOLD)
    weights[f"_relation._relation_scorers.{kind}__relation_labels.bias"] -= np.float32(RELATION_THRESHOLD)
    return weights


def _scaled(name, value):
    """Scale a weight so that what goes through it keeps its size."""
    if "LayerNorm.weight" in name:
        return 1 + value / 10
    if value.ndim == 1:
        return value / 10
    if "embedding" in name:
        return value if "word_embeddings" in name else value / 4  # what is said counts more than where
    size = 0.5 if "transformer_model" in name else 2.0  # a word's own piece counts more than the others
    return value * np.float32(np.sqrt(size / value.shape[1]))


def _linear(name, inputs, outputs):
    """Return the shapes of one linear layer."""
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _feedforward(name, inputs):
    """Return the shapes of the hidden layers of one scorer."""
    shapes = {}
    for layer in range(FEEDFORWARD_LAYERS):
        shapes |= _linear(f"{name}._linear_layers.{layer}", FEEDFORWARD if layer else inputs, FEEDFORWARD)
    return shapes


def _bert_shapes(vocabulary):
    """Return the shapes of BERT's weights."""
    top = "_embedder.token_embedder_bert._matched_embedder.transformer_model"
    embeddings = {"word": vocabulary, "position": POSITIONS, "token_type": 2}
    shapes = {
        f"{top}.embeddings.{name}_embeddings.weight": (size, HIDDEN) for name, size in embeddings.items()
    }
    shapes |= _norm(f"{top}.embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"{top}.encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= _linear(f"{at}.attention.{part}", HIDDEN, HIDDEN)
        shapes |= _norm(f"{at}.attention.output.LayerNorm")
        shapes |= _linear(f"{at}.intermediate.dense", HIDDEN, INNER)
        shapes |= _linear(f"{at}.output.dense", INNER, HIDDEN)
        shapes |= _norm(f"{at}.output.LayerNorm")
    return shapes | _linear(f"{top}.pooler.dense", HIDDEN, HIDDEN)


def _norm(name):
    """Return the shapes of one layer norm."""
    return {f"{name}.weight": (HIDDEN,), f"{name}.bias": (HIDDEN,)}


def _head_shapes(kind):
    """Return the shapes of everything after BERT; coreference and events are there and not used."""
    entity, relation = f"{kind}__ner_labels", f"{kind}__relation_labels"
    pruner = f"_relation._mention_pruners.{relation}._scorer"
    return {
        "_endpoint_span_extractor._span_width_embedding.weight": (WIDTH, FEATURE),
        **_feedforward(f"_ner._ner_scorers.{entity}.0._module", SPAN),
        **_linear(f"_ner._ner_scorers.{entity}.1._module", FEEDFORWARD, len(LABELS[kind])),
        "_coref._distance_embedding.weight": (10, FEATURE),
        **_feedforward("_coref._antecedent_feedforward._module", 3 * SPAN + FEATURE),
        **_feedforward("_coref._mention_pruner._scorer.0._module", SPAN),
        **_linear("_coref._mention_pruner._scorer.1._module", FEEDFORWARD, 1),
        **_linear("_coref._antecedent_scorer._module", FEEDFORWARD, 1),
        **_linear("_coref._f_network._linear_layers.0", 2 * SPAN, SPAN),
        **_feedforward(f"{pruner}.0._module", SPAN),
        **_linear(f"{pruner}.1._module", FEEDFORWARD, 1),
        **_feedforward(f"_relation._relation_feedforwards.{relation}", 3 * SPAN),
        **_linear(f"_relation._relation_scorers.{relation}", FEEDFORWARD, len(RELATIONS)),
        "_events._distance_embedding.weight": (10, FEATURE),
    }
