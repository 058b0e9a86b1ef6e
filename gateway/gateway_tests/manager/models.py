"""Tiny models on disk, or to put on a hub."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.gguf_writer import write_gguf

TEMPLATE = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- (call.function.arguments | tojson) + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
"""Writes calls in the format hermes."""

FIELDS: dict[str, Any] = {
    "general.architecture": "qwen2",
    "general.name": "Tiny",
    "qwen2.context_length": 4096,
    "qwen2.embedding_length": 64,
    "qwen2.block_count": 2,
    "qwen2.attention.head_count": 4,
    "qwen2.attention.head_count_kv": 2,
    "tokenizer.ggml.tokens": ["<|im_start|>", "<|im_end|>", "a", "Ġb", "<tool_call>"],
    "tokenizer.ggml.eos_token_id": 1,
    "tokenizer.chat_template": TEMPLATE,
}

CONFIG: dict[str, Any] = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}


def gguf_model(path: Path, fields: Mapping[str, Any] = {}) -> Path:
    """Write a GGUF file with a vocabulary and a template, but without useful weights. ``None`` leaves a field out."""
    kept = {key: value for key, value in {**FIELDS, **fields}.items() if value is not None}
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_gguf(path, kept, {"token_embd.weight": (64, 5)})


def tokenizer_json(special: tuple[str, ...] = ("<|im_start|>", "<|im_end|>", "<tool_call>")) -> str:
    vocab = {token: i for i, token in enumerate(["a", "b", "Ġ", "ab", *special])}
    added = [{"id": vocab[t], "content": t, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False} for t in special]  # fmt: skip
    model = {"type": "BPE", "vocab": vocab, "merges": ["a b"], "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "dropout": None}  # fmt: skip
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    content = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
               "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level, "model": model}  # fmt: skip
    return json.dumps(content)


def safetensors_files(**more: str) -> dict[str, bytes]:
    """Return the files of a folder of safetensors."""
    files = {
        "config.json": json.dumps(CONFIG),
        "model.safetensors": "x" * 1000,
        "tokenizer.json": tokenizer_json(),
        "chat_template.jinja": TEMPLATE,
        **more,
    }
    return {name: text.encode() for name, text in files.items()}


def safetensors_model(folder: Path, **more: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in safetensors_files(**more).items():
        (folder / name).write_bytes(data)
    return folder
