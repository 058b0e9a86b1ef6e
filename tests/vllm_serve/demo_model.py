"""The demonstration model as a Llama checkpoint with safetensors, for engines that read no GGUF."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from gguf import GGUFReader, TokenType, dequantize
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

DEMO: Final = Path(__file__).resolve().parents[2] / "demo" / "src" / "untemplate_demo"
MODEL: Final = DEMO / "untemplate-demo.gguf"
TEMPLATE: Final = DEMO / "chat_template.jinja"
_NAMES: Final = {
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
_OUTER: Final = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


def write_demo_checkpoint(folder: Path) -> None:
    """Write the model's weights, tokenizer and chat template."""
    folder.mkdir(parents=True, exist_ok=True)
    found = GGUFReader(MODEL)
    fields: dict[str, Any] = {name: field.contents() for name, field in found.fields.items()}
    heads = int(fields["llama.attention.head_count"])
    weights = {_name(one.name): _halves(one, heads) for one in found.tensors}
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    tokenizer = _tokenizer(fields)
    tokenizer.save(str(folder / "tokenizer.json"))
    end = fields["tokenizer.ggml.tokens"][fields["tokenizer.ggml.eos_token_id"]]
    described = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": len(fields["tokenizer.ggml.tokens"]),
            "hidden_size": fields["llama.embedding_length"],
            "intermediate_size": fields["llama.feed_forward_length"],
            "num_hidden_layers": fields["llama.block_count"],
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "max_position_embeddings": fields["llama.context_length"],
            "rms_norm_eps": fields["llama.attention.layer_norm_rms_epsilon"],
            "rope_theta": fields["llama.rope.freq_base"],
            "rope_parameters": {"rope_type": "default", "rope_theta": fields["llama.rope.freq_base"]},
            "hidden_act": "silu",
            "tie_word_embeddings": True,
            "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
            "dtype": "float32",
            "torch_dtype": "float32",
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": end,
            "pad_token": "<|endoftext|>",
            "chat_template": TEMPLATE.read_text("utf-8"),
            "model_max_length": fields["llama.context_length"],
            "clean_up_tokenization_spaces": False,
        },
        "generation_config.json": {"eos_token_id": fields["tokenizer.ggml.eos_token_id"], "do_sample": False},
    }
    for name, value in described.items():
        (folder / name).write_text(json.dumps(value, indent=1), "utf-8")


def _name(name: str) -> str:
    parts = name.split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{_NAMES[parts[2]]}.weight"
    return f"{_OUTER[parts[0]]}.weight"


def _halves(tensor: Any, heads: int) -> np.ndarray[Any, Any]:
    """Return the weights of a tensor. Rows that are rotated together are neighbours in GGUF; here they are halves."""
    weight = np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
    if ".attn_q." not in tensor.name and ".attn_k." not in tensor.name:
        return weight
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(rows, columns))


def _tokenizer(fields: dict[str, Any]) -> Tokenizer:
    tokens = fields["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in fields["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=merges))
    # llama.cpp's pre-tokenizer "smollm".
    digits = pre_tokenizers.Split(Regex(r"\p{N}"), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    for kind, special in ((TokenType.CONTROL, True), (TokenType.USER_DEFINED, False)):
        chosen = [token for token, of in zip(tokens, fields["tokenizer.ggml.token_type"], strict=True) if of == kind]
        made.add_tokens([AddedToken(token, normalized=False, special=special) for token in chosen])
    return made
