"""GRPO with tools on any model: TRL calls `tokenizer.parse_response`, and untemplate answers.

With a real model it is two lines: `tokenizer = AutoTokenizer.from_pretrained(MODEL)` and `install(tokenizer)`. To run
on a CPU in a minute, this file builds a tokenizer and a model of two layers, teaches it one call by heart, and trains
it two steps with GRPO. Needs `trl`, `transformers` and `torch`.
"""

from __future__ import annotations

import logging
import os
import tempfile
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, PrinterCallback, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

from untemplate.integrations.transformers import install

TEMPLATE = """\
{%- if tools %}<|im_start|>system
You can call these functions. Answer with <tool_call>{"name": ..., "arguments": ...}</tool_call>.
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
SPECIAL = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"]
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call><|im_end|>'
PROMPT = [{"role": "user", "content": "2 + 3?"}]

called = 0


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    global called
    called += 1
    return a + b


def tokenizer() -> Any:
    """Return a byte-level tokenizer with a chat template."""
    alphabet = {piece: i for i, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    made = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(SPECIAL)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|im_start|>", chat_template=TEMPLATE
    )


def reciter(tok: Any) -> Any:
    """Return a small model that has learnt to write the call after the prompt."""
    torch.manual_seed(0)
    size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tok), num_key_value_heads=4, **size))
    prompt = tok.apply_chat_template(PROMPT, tools=[add], add_generation_prompt=True, tokenize=False)
    begun = tok(prompt, return_tensors="pt")["input_ids"]
    ids = tok(prompt + CALL, return_tensors="pt")["input_ids"]
    labels = ids.clone()
    labels[:, : begun.shape[1]] = -100
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loss = torch.tensor(1.0)
    while loss > 0.01:
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


def has_called(completions: list[Any], **_: Any) -> list[float]:
    return [float(any(message.get("tool_calls") for message in messages)) for messages in completions]


def main() -> None:
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    logging.disable(logging.WARNING)
    tok = tokenizer()
    install(tok)
    with tempfile.TemporaryDirectory() as folder:
        settings = GRPOConfig(
            output_dir=folder,
            max_steps=2,
            num_generations=2,
            per_device_train_batch_size=2,
            max_completion_length=96,
            max_tool_calling_iterations=1,
            temperature=0.1,
            learning_rate=1e-6,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            logging_strategy="no",
            use_cpu=True,
        )
        trainer = GRPOTrainer(
            model=reciter(tok),
            processing_class=tok,
            args=settings,
            train_dataset=Dataset.from_list([{"prompt": PROMPT}] * 4),
            reward_funcs=has_called,
            tools=[add],
        )
        trainer.remove_callback(PrinterCallback)  # it would print all metrics
        trainer.train()
    print(f"steps: {trainer.state.global_step}; calls of add: {called}")


if __name__ == "__main__":
    main()

# Prints:
# steps: 2; calls of add: 4
