"""Trains a tiny random language model with TRL's GRPO on a tabon reward; run as a program.

In a process of its own, because a trainer seeds every generator, sets up devices
and warns in its own ways. Arguments: a bank file and the file to write. Written
for each run: how the trainer called the reward, what it got, what it logged.
"""

import json
import re
import sys
from pathlib import Path

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from tabon.integrations.rewards import TransitionReward

WORDS = "FINDINGS : The lungs are clear . New small left effusion . IMPRESSION : No acute disease . Write"
FINDINGS = "The lungs are clear. No effusion."
ROWS = [
    {"prompt": "Write", "prior": {"findings": FINDINGS, "impression": "No acute disease."}, "patient": "a"},
    {"prompt": "Write", "prior": {"findings": None, "impression": None}, "patient": "b"},
    {"prompt": "Write", "prior": {"findings": FINDINGS, "impression": None}, "patient": "c"},
]
FORMATS = {
    "text": ROWS,
    "messages": [{**row, "prompt": [{"role": "user", "content": row["prompt"]}]} for row in ROWS],
}


def tiny_tokenizer():
    """Return a tokenizer of a few words."""
    found = dict.fromkeys(["<pad>", "<end>", "<unk>", *re.findall(r"\S+", WORDS)])
    words = Tokenizer(models.WordLevel({word: row for row, word in enumerate(found)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<end>", unk_token="<unk>"
    )
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    return tokenizer


def tiny_model(tokenizer):
    """Return a causal language model with seeded random weights."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config)


class Watched:
    """Keeps what the trainer hands over and gets back."""

    def __init__(self, reward):
        self.reward, self.calls = reward, []
        self.__name__ = reward.__name__

    def __call__(self, **asked):
        """Call the reward as the trainer does."""
        rewards = self.reward(**asked)
        kept = {name: asked[name] for name in ("prompts", "completions", "prior", "patient")}
        self.calls.append({"keywords": sorted(asked), "asked": kept, "rewards": rewards})
        return rewards


def trained(rows, reward, folder):
    """Train two steps on the rows and return what was logged."""
    tokenizer = tiny_tokenizer()
    settings = GRPOConfig(
        output_dir=folder,
        max_steps=2,
        per_device_train_batch_size=6,
        num_generations=2,
        max_completion_length=24,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
    )
    trainer = GRPOTrainer(
        model=tiny_model(tokenizer),
        reward_funcs=reward,
        args=settings,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
    )
    trainer.train()
    return [line for line in trainer.state.log_history if "reward" in line]


def main(bank, out):
    """Train on both formats and write what happened."""
    runs = {"unwatched": {"logged": trained(ROWS, TransitionReward(bank), str(Path(out).parent))}}
    for name, rows in FORMATS.items():
        watched = Watched(TransitionReward(bank))
        logged = trained(rows, watched, str(Path(out).parent))
        runs[name] = {"calls": watched.calls, "logged": logged}
    Path(out).write_text(json.dumps(runs), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
