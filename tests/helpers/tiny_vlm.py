"""A randomly initialised LLaVA of a few thousand weights, saved in the true format."""

from pathlib import Path

WORDS = (
    "the heart is enlarged lungs are clear no pleural effusion or pneumothorax seen mild left right basilar "
    "effusion unchanged since prior study describe this chest x ray write findings user assistant : . , ? !"
)
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>", "<image>"]
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }} : {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image> {% else %}{{ part['text'] }}{% endif %}{% endfor %} "
    "{% endfor %}{% if add_generation_prompt %}assistant :{% endif %}"
)
SIDE, PATCH = 28, 14


def tiny_vlm(folder: Path, *, chat: bool = True, positions: int = 256) -> Path:
    """Save model, tokenizer and processor; four image tokens an image, no network."""
    import torch
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = tiny_tokenizer()
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=SIDE,
            patch_size=PATCH,
            projection_dim=16,
        ),
        text_config=LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=positions,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=0,
        ),
        image_token_index=SPECIAL.index("<image>"),
        image_seq_length=(SIDE // PATCH) ** 2,
    )
    torch.manual_seed(0)
    model = LlavaForConditionalGeneration(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8.0)  # as initialised, every token is as likely as every other
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(
            size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}
        ),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE if chat else None,
    )
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def tiny_tokenizer():
    """Return a tokenizer of whole words."""
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    words = list(dict.fromkeys([*SPECIAL, *WORDS.split()]))
    inner = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        extra_special_tokens={"image_token": "<image>"},
    )
