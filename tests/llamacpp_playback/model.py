"""The model: position embeddings that spell outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

END: Final = 256
"""The token after the last byte of an output; the tokens before it are the bytes."""
_SIZE: Final = 64
_SCALE: Final = 40.0
"""Logit of the byte that a position writes; those of other bytes are below half of it."""


def write_playback(path: Path, outputs: Mapping[int, bytes], context: int, template: str = "") -> None:
    """Write the model as a GGUF file.

    Args:
        outputs: the length of a prompt in tokens, and what the model writes after it.
        context: tokens of context.
        template: chat template of the model.
    """
    import gguf

    codes = _codes()
    places = np.full(context, END)
    for start, output in outputs.items():
        # The logits of the last token of the prompt decide the first token after it.
        places[start - 1 : start - 1 + len(output)] = list(output)
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_context_length(context)
    writer.add_embedding_length(_SIZE)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_SIZE)
    writer.add_head_count(1)
    writer.add_layer_norm_eps(1e-5)
    writer.add_vocab_size(END + 1)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*(f"<0x{byte:02X}>".encode() for byte in range(END)), b"<END>"])
    writer.add_token_types([*[gguf.TokenType.BYTE] * END, gguf.TokenType.CONTROL])
    writer.add_token_scores([0.0] * (END + 1))
    writer.add_eos_token_id(END)
    writer.add_bos_token_id(END)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    if template:
        writer.add_chat_template(template)
    for name, tensor in _tensors(codes, codes[places]).items():
        writer.add_tensor(name, np.ascontiguousarray(tensor, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _codes() -> np.ndarray[Any, Any]:
    """Return a vector for each token, as different from each other as possible: rows of zero mean and of one length,
    which the normalisation of the model does not change."""
    random = np.random.default_rng(7).standard_normal((END + 1, _SIZE))
    random -= random.mean(axis=1, keepdims=True)
    return random / random.std(axis=1, keepdims=True)


def _tensors(codes: np.ndarray[Any, Any], places: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    ones, zeros = np.ones(_SIZE), np.zeros(_SIZE)
    square = np.zeros((_SIZE, _SIZE))
    return {
        "token_embd.weight": np.zeros((END + 1, _SIZE)),
        "position_embd.weight": places,
        "output_norm.weight": ones,
        "output_norm.bias": zeros,
        "output.weight": codes * (_SCALE / _SIZE),
        "blk.0.attn_norm.weight": ones,
        "blk.0.attn_norm.bias": zeros,
        "blk.0.attn_qkv.weight": np.zeros((3 * _SIZE, _SIZE)),
        "blk.0.attn_qkv.bias": np.zeros(3 * _SIZE),
        "blk.0.attn_output.weight": square,
        "blk.0.attn_output.bias": zeros,
        "blk.0.ffn_norm.weight": ones,
        "blk.0.ffn_norm.bias": zeros,
        "blk.0.ffn_up.weight": square,
        "blk.0.ffn_up.bias": zeros,
        "blk.0.ffn_down.weight": square,
        "blk.0.ffn_down.bias": zeros,
    }
