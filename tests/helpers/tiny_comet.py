"""A COMET checkpoint of a few thousand weights in the true format: Lightning file, hparams.yaml, backbone.

Needs numpy, torch and PyYAML only, so that the reference environment writes the same bits as this one.
"""

import json
from collections import OrderedDict
from itertools import pairwise
from pathlib import Path

import numpy as np

PIECES = (
    "▁the ▁heart ▁is ▁enlarged ▁lungs ▁are ▁clear ▁no ▁pleural ▁effusion ▁or ▁pneumothorax ▁seen ▁mild "
    "▁left ▁right ▁bas ilar ▁unchanged ▁since ▁prior ▁stud y ies ▁opacit ▁small ▁larg e er ▁new ▁normal "
    "▁size ing ed . ,"
)
LETTERS = "▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789()/-:%"
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
WIDTH, INNER, LAYERS, HEADS, POSITIONS = 16, 32, 3, 2, 64
HIDDEN = (24, 12)
HPARAMS = {  # of wmt22-comet-da; written by PyYAML they are its hparams.yaml to the byte
    "activations": "Tanh",
    "batch_size": 4,
    "class_identifier": "regression_metric",
    "dropout": 0.1,
    "encoder_learning_rate": 1.0e-06,
    "encoder_model": "XLM-RoBERTa",
    "final_activation": None,
    "hidden_sizes": [3072, 1024],
    "keep_embeddings_frozen": True,
    "layer": "mix",
    "layer_norm": False,
    "layer_transformation": "sparsemax",
    "layerwise_decay": 0.95,
    "learning_rate": 1.5e-05,
    "loss": "mse",
    "nr_frozen_epochs": 0.3,
    "optimizer": "AdamW",
    "pool": "avg",
    "pretrained_model": "xlm-roberta-large",
    "train_data": ["data/1720-da.csv"],
    "validation_data": [f"data/wmt-{pair}-newstest2021.csv" for pair in ("ende", "enru", "zhen")],
}
VARIANTS = {  # settings that unbabel-comet was asked for, by name
    "published": {},
    "softmax": {"layer_transformation": "softmax", "layer_norm": True, "final_activation": "Sigmoid"},
    "patch": {"layer_transformation": "sparsemax_patch", "activations": "Sigmoid"},
}


def tiny_comet(folder: Path, *, absolute: bool = False, **changed: object) -> Path:
    """Write the checkpoint; `changed` replaces settings, `absolute` names the backbone by its whole path."""
    import torch
    import yaml

    backbone = folder / "backbone"
    backbone.mkdir(parents=True)
    (folder / "checkpoints").mkdir()
    pieces = tiny_pieces()
    (backbone / "tokenizer.json").write_text(json.dumps(tokenizer_json(pieces)))
    (backbone / "config.json").write_text(json.dumps(config_json(len(pieces))))
    place = str(backbone.resolve()) if absolute else "backbone"
    settings = {**HPARAMS, "hidden_sizes": list(HIDDEN), "pretrained_model": place, **changed}
    (folder / "hparams.yaml").write_text(yaml.safe_dump(settings))
    checkpoint = {
        "epoch": 1,
        "global_step": 9,
        "pytorch-lightning_version": "2.0.0",
        "state_dict": tiny_tensors(len(pieces)),
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 2}}}},
        "hparams_name": "kwargs",
        "hyper_parameters": settings,
    }
    torch.save(checkpoint, folder / "checkpoints" / "model.ckpt")
    return folder


def tiny_pieces() -> list[tuple[str, float]]:
    """Return the pieces of the unigram tokenizer with their log probabilities, `<mask>` last as in XLM-R."""
    words = [(piece, -2.0 - 0.01 * i) for i, piece in enumerate(PIECES.split())]
    letters = [(letter, -9.0 - 0.01 * i) for i, letter in enumerate(LETTERS)]
    return [*((special, 0.0) for special in SPECIAL), *words, *letters, ("<mask>", 0.0)]


def tokenizer_json(pieces: list[tuple[str, float]]) -> dict:
    """Write a fast tokenizer as XLM-R has it; the normalizer stands for its precompiled table."""
    numbers = {piece: number for number, (piece, _) in enumerate(pieces)}
    single = [special("<s>"), {"Sequence": {"id": "A", "type_id": 0}}, special("</s>")]
    second = [special("</s>"), {"Sequence": {"id": "B", "type_id": 0}}, special("</s>")]
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(token, numbers[token]) for token in (*SPECIAL, "<mask>")],
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, *second],
            "special_tokens": {
                token: {"id": token, "ids": [numbers[token]], "tokens": [token]} for token in ("<s>", "</s>")
            },
        },
        "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": pieces, "byte_fallback": False},
    }


def special(token: str) -> dict:
    """Return a special token's place in the template."""
    return {"SpecialToken": {"id": token, "type_id": 0}}


def added(token: str, number: int) -> dict:
    """Return a special token's entry in the list of added ones."""
    sides = {"single_word": False, "lstrip": token.startswith("<mask"), "rstrip": False, "normalized": False}
    return {"id": number, "content": token, "special": True, **sides}


def config_json(vocabulary: int) -> dict:
    """Return XLM-R's config, made small."""
    return {
        "architectures": ["XLMRobertaForMaskedLM"],
        "attention_probs_dropout_prob": 0.1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": WIDTH,
        "initializer_range": 0.02,
        "intermediate_size": INNER,
        "layer_norm_eps": 1e-05,
        "max_position_embeddings": POSITIONS,
        "model_type": "xlm-roberta",
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "output_past": True,
        "pad_token_id": 1,
        "position_embedding_type": "absolute",
        "type_vocab_size": 1,
        "vocab_size": vocabulary,
    }


def tiny_tensors(vocabulary: int) -> OrderedDict:
    """Draw the weights; older Lightning files hold `position_ids` and the dropout buffers as well."""
    import torch

    draws = np.random.RandomState(22)
    tensors = OrderedDict()
    for name, shape in shapes(vocabulary):
        drawn = draws.standard_normal(shape) * (0.7 / np.sqrt(shape[-1]) if len(shape) > 1 else 0.6)
        centre = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        tensors[name] = torch.from_numpy((centre + drawn).astype(np.float32))
    tensors["encoder.model.embeddings.position_ids"] = torch.arange(POSITIONS)[None]
    tensors["layerwise_attention.gamma"] = torch.tensor([1.3])
    tensors["layerwise_attention.dropout_mask"] = torch.zeros(LAYERS + 1)
    tensors["layerwise_attention.dropout_fill"] = torch.full((LAYERS + 1,), -1e20)
    return tensors


def shapes(vocabulary: int) -> list[tuple[str, tuple[int, ...]]]:
    """Name every weight of the encoder, the layer mix and the estimator, with its shape."""
    found = [
        ("encoder.model.embeddings.word_embeddings.weight", (vocabulary, WIDTH)),
        ("encoder.model.embeddings.position_embeddings.weight", (POSITIONS, WIDTH)),
        ("encoder.model.embeddings.token_type_embeddings.weight", (1, WIDTH)),
        *norm("encoder.model.embeddings.LayerNorm"),
    ]
    for layer in range(LAYERS):
        stem = f"encoder.model.encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            found += linear(f"{stem}.attention.{part}", WIDTH, WIDTH)
        found += norm(f"{stem}.attention.output.LayerNorm")
        found += linear(f"{stem}.intermediate.dense", WIDTH, INNER)
        found += linear(f"{stem}.output.dense", INNER, WIDTH)
        found += norm(f"{stem}.output.LayerNorm")
    found += [(f"layerwise_attention.scalar_parameters.{layer}", (1,)) for layer in range(LAYERS + 1)]
    sizes = (6 * WIDTH, *HIDDEN, 1)
    for place, (narrow, wide) in enumerate(pairwise(sizes)):
        found += linear(f"estimator.ff.{3 * place}", narrow, wide)
    return found


def linear(stem: str, into: int, out: int) -> list[tuple[str, tuple[int, ...]]]:
    """Name the weights of a linear layer."""
    return [(f"{stem}.weight", (out, into)), (f"{stem}.bias", (out,))]


def norm(stem: str) -> list[tuple[str, tuple[int, ...]]]:
    """Name the weights of a layer norm."""
    return [(f"{stem}.weight", (WIDTH,)), (f"{stem}.bias", (WIDTH,))]
