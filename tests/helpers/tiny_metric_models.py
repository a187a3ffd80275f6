"""Tiny BERT, RoBERTa and CheXbert checkpoints in the true file formats, the same bytes of weights anywhere.

Weights come from numpy's RandomState and names from the published checkpoints, so that the packages that
tabon is compared with can read the same files in an environment of their own. Needs numpy, torch and
safetensors; neither tabon nor a version of transformers.
"""

import json
import string
from pathlib import Path

import numpy as np

LEXICON = (
    "the heart is enlarged lungs are clear no pleural effusion or pneumothorax seen mild moderate severe "
    "left right basilar lower lobe opacity consolidation edema stable unchanged improved worse since prior "
    "study small large acute cardiopulmonary process normal size fracture rib tube catheter line tip in "
    "place with of and to has been may represent atelectasis pneumonia there new findings cardiomegaly"
)
WORDS = tuple(LEXICON.split())
PIECES = ("s", "ed", "ing", "al", "ly", "er", "tion")
BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
WIDTH, INNER, HEADS, POSITIONS = 32, 64, 4, 512


def wordpieces() -> list[str]:
    """Return an uncased vocabulary: special tokens, characters, a few words and endings."""
    characters = string.ascii_lowercase + string.digits + string.punctuation
    whole = [*BERT_SPECIAL, *characters, *(f"##{c}" for c in characters), *WORDS]
    return list(dict.fromkeys([*whole, *(f"##{piece}" for piece in PIECES)]))


def byte_characters() -> list[str]:
    """Return the 256 characters that GPT-2 writes bytes with, in the order of the bytes."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = iter(range(256, 512))
    return [chr(byte if byte in shown else next(hidden)) for byte in range(256)]


def merges() -> list[tuple[str, str]]:
    """Return the byte pairs that build each word from left to right, with and without a space before it."""
    steps = (
        (word[:end], word[end])
        for plain in WORDS
        for word in (f"Ġ{plain}", plain)
        for end in range(1, len(word))
    )
    return list(dict.fromkeys(steps))


def byte_pairs() -> dict[str, int]:
    """Return RoBERTa's vocabulary: special tokens, bytes, merged pairs, and the mask at the end."""
    tokens = [*ROBERTA_SPECIAL, *byte_characters(), *("".join(pair) for pair in merges()), "<mask>"]
    return {token: number for number, token in enumerate(dict.fromkeys(tokens))}


def shapes(vocabulary: int, *, layers: int, positions: int, types: int) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of BERT's tensors, pooler left out."""
    found: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (vocabulary, WIDTH),
        "embeddings.position_embeddings.weight": (positions, WIDTH),
        "embeddings.token_type_embeddings.weight": (types, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    parts = {
        **{f"attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")},
        "attention.output.dense": (WIDTH, WIDTH),
        "attention.output.LayerNorm": (WIDTH,),
        "intermediate.dense": (INNER, WIDTH),
        "output.dense": (WIDTH, INNER),
        "output.LayerNorm": (WIDTH,),
    }
    for layer in range(layers):
        for name, shape in parts.items():
            found[f"encoder.layer.{layer}.{name}.weight"] = shape
            found[f"encoder.layer.{layer}.{name}.bias"] = shape[:1]
    return found


def drawn(
    named: dict[str, tuple[int, ...]], *, seed: int, prefix: str = "", scale: float = 0.25
) -> dict[str, object]:
    """Draw float32 tensors in the order of their names; norms scale by about one."""
    import torch

    random = np.random.RandomState(seed)
    tensors = {}
    for name, shape in named.items():
        centre = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        values = centre + scale * random.standard_normal(shape)
        tensors[prefix + name] = torch.from_numpy(values.astype(np.float32))
    return tensors


def write_json(path: Path, content: object) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


def config(kind: str, vocabulary: int, *, layers: int, positions: int) -> dict[str, object]:
    """Return what config.json says of a tiny model."""
    return {
        "model_type": kind,
        "architectures": ["BertModel" if kind == "bert" else "RobertaForMaskedLM"],
        "vocab_size": vocabulary,
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "max_position_embeddings": positions,
        "type_vocab_size": 2 if kind == "bert" else 1,
        "layer_norm_eps": 1e-12 if kind == "bert" else 1e-5,
        "hidden_act": "gelu",
        "pad_token_id": 0 if kind == "bert" else 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
    }


def bert_backbone(folder: Path, *, layers: int = 2) -> Path:
    """Write config and tokenizer as bert-base-uncased has them, without weights."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config("bert", len(wordpieces()), layers=layers, positions=POSITIONS))
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in wordpieces()), encoding="utf-8")
    settings = {"do_lower_case": True, "model_max_length": POSITIONS, "tokenizer_class": "BertTokenizer"}
    write_json(folder / "tokenizer_config.json", settings)
    return folder


def tiny_bert(folder: Path, *, layers: int = 6, seed: int = 1) -> Path:
    """Write a BERT folder: config, tokenizer, model.safetensors."""
    from safetensors.torch import save_file

    bert_backbone(folder, layers=layers)
    named = shapes(len(wordpieces()), layers=layers, positions=POSITIONS, types=2)
    save_file(drawn(named, seed=seed), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def tiny_roberta(folder: Path, *, layers: int = 24, seed: int = 2, fast: bool = True) -> Path:
    """Write a RoBERTa folder as roberta-large is published: a language-model checkpoint, byte pairs.

    With `fast` there is a tokenizer.json too; like the published one it puts no space before the text.
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    pairs, positions = byte_pairs(), POSITIONS + 2
    write_json(folder / "config.json", config("roberta", len(pairs), layers=layers, positions=positions))
    write_json(folder / "vocab.json", pairs)
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges())]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = {"model_max_length": POSITIONS, "tokenizer_class": "RobertaTokenizer"}
    write_json(folder / "tokenizer_config.json", settings)
    if fast:
        byte_pair_tokenizer(pairs).save(str(folder / "tokenizer.json"))
    named = shapes(len(pairs), layers=layers, positions=positions, types=1)
    tensors = drawn(named, seed=seed, prefix="roberta.", scale=0.1)
    tensors |= drawn({"lm_head.bias": (len(pairs),)}, seed=seed)  # a published file has it, no one reads it
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def byte_pair_tokenizer(pairs: dict[str, int]):
    """Return RoBERTa's tokenizer as its tokenizer.json describes it."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    inner = Tokenizer(models.BPE(vocab=pairs, merges=merges()))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    end, begin = (("</s>", pairs["</s>"]), ("<s>", pairs["<s>"]))
    inner.post_processor = processors.RobertaProcessing(end, begin, add_prefix_space=False)
    inner.add_special_tokens(
        [*ROBERTA_SPECIAL, AddedToken("<mask>", lstrip=True, special=True, normalized=False)]
    )
    return inner


def tiny_chexbert(folder: Path, *, layers: int = 2, seed: int = 3) -> Path:
    """Write chexbert.pth as published, with names that a parallel trainer gave, beside BERT's own files."""
    import torch

    bert_backbone(folder, layers=layers)
    named = shapes(len(wordpieces()), layers=layers, positions=POSITIONS, types=2)
    named |= {"pooler.dense.weight": (WIDTH, WIDTH), "pooler.dense.bias": (WIDTH,)}
    tensors = drawn(named, seed=seed, prefix="module.bert.")
    for number in range(14):
        classes = 2 if number == 13 else 4
        head = {"weight": (classes, WIDTH), "bias": (classes,)}
        tensors |= drawn(head, seed=seed + 1 + number, prefix=f"module.linear_heads.{number}.")
    torch.save({"epoch": 3, "model_state_dict": tensors}, folder / "chexbert.pth")
    return folder
