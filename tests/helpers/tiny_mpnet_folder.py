"""A folder of a small MPNet encoder with random weights, and sentences for it."""

from pathlib import Path

SENTENCES = [
    "The lungs are clear.",
    "No pleural effusion or pneumothorax.",
    "Stable mild cardiomegaly.",
    "New patchy opacity in the right lower lobe, which may represent pneumonia.",
    "Normal.",
    "Heart size is normal.",
    "No edema.",
    "Interval removal of the right internal jugular central venous catheter.",
    "Lungs clear.",
    "Heart enlarged.",
]


def tiny_mpnet(folder: Path, width: int = 16) -> Path:
    """Save a random MPNet of two small layers as a sentence-transformers folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers import models as token_models
    from transformers import MPNetConfig, MPNetModel, PreTrainedTokenizerFast

    words = sorted({word for sentence in SENTENCES for word in sentence.replace(".", " .").split()})
    vocabulary = {word: i for i, word in enumerate(["<s>", "<pad>", "</s>", "[UNK]", "<mask>", *words])}
    tokenizer = Tokenizer(token_models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="[UNK]")
    torch.manual_seed(0)
    model = MPNetModel(
        MPNetConfig(
            vocab_size=len(vocabulary),
            hidden_size=width,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
        )
    )
    inner = folder.parent / "inner"
    model.save_pretrained(inner)
    fast.save_pretrained(inner)
    transformer = modules.Transformer(str(inner), max_seq_length=32)
    SentenceTransformer(modules=[transformer, modules.Pooling(width)], device="cpu").save(str(folder))
    return folder
