"""A tiny Qwen3 checkpoint whose weights recite texts, for tests that need a real engine but no real model.

The prompt selects the text: it contains `<|script_N|>`. The weights are written by hand, not trained. Most tokens of a
script occur once in all scripts, so that the current id selects the next one. Special tokens and white space occur in
many places. After one of those, the next id is the sum of hints: heads attend to the last id that occurs once (the next
ids are those up to the following one), to the id before the current one, and to `<|script_N|>`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from untemplate._internal.tokens.decoding import BYTE_LEVEL

HEADS, HEAD, ID = 9, 64, 384
HIDDEN = 1024
CURRENT, SHARED, PREVIOUS, LAST, SELECTED, FLAGS = 0, 384, 448, 512, 896, 960
"""Where the hidden state has the current id if it occurs once, the current id if it is shared, the previous shared id,
the last id that occurs once, the script, and flags.
"""
ANY, ONCE, SELECTS, STARTED, FILL = FLAGS, FLAGS + 1, FLAGS + 2, FLAGS + 3, FLAGS + 4
"""Flags: any id; an id that occurs once; one that selects a script; the script has had an id that occurs once; a number
that makes all embeddings equally long, since norms would scale them.
"""
LENGTH = 2.0
ROPE, SHARPNESS, RECENT = 1e6, 200.0, 10

Script = list[str]
"""Tokens; special tokens are those that the tokenizer knows as such."""


def write_checkpoint(
    folder: Path, template: str, special: Sequence[str], eos: str, texts: Sequence[str]
) -> list[Script]:
    """Write a checkpoint that recites `texts`, each ended by `eos`; return their tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    selectors = [f"<|script_{number}|>" for number in range(len(texts))]
    special = list(dict.fromkeys([*special, eos]))
    scripts = _scripts(texts, special, eos)
    ids = {character: number for number, character in enumerate(sorted(BYTE_LEVEL))}
    for script in scripts:
        for token in script:
            if token not in special:
                ids.setdefault(_byte_level(token), len(ids))
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in [*special, *selectors]])
    tokenizer.save(str(folder / "tokenizer.json"))
    vocab = tokenizer.get_vocab()
    numbered = [[vocab[token if token in special else _byte_level(token)] for token in script] for script in scripts]
    size = 64 * math.ceil(len(vocab) / 64)
    shared = {token for script in numbered for token in script if sum(one.count(token) for one in numbered) > 1}
    shared |= {vocab[character] for character in BYTE_LEVEL}  # a prompt has those
    weights = _weights(size, numbered, shared | {vocab[text] for text in special}, [vocab[text] for text in selectors])
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    _write_json(folder / "config.json", _config(size, vocab[eos]))
    _write_json(folder / "generation_config.json", {"eos_token_id": vocab[eos], "do_sample": False})
    _write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": eos, "pad_token": eos, "chat_template": template,
         "model_max_length": 8192, "clean_up_tokenization_spaces": False},
    )  # fmt: skip


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def _byte_level(text: str) -> str:
    characters = {byte: character for character, byte in BYTE_LEVEL.items()}
    return "".join(characters[byte] for byte in text.encode())


# -- Tokens -------------------------------------------------------------------------------------------------------


def _scripts(texts: Sequence[str], special: Sequence[str], eos: str) -> list[Script]:
    """Cut each text into special tokens and pieces that occur once in all of the texts."""
    taken: set[str] = set(map(chr, range(256)))
    scripts = []
    for text in texts:
        script: Script = []
        for part, is_special in _split(text, special):
            script += [part] if is_special else _pieces(part, taken)
        scripts.append([*script, eos])
    return scripts


def _split(text: str, special: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield (part, True if it is a special token)."""
    rest = text
    while rest:
        at, token = min(((rest.find(one), one) for one in special if one in rest), default=(len(rest), ""))
        longest = max((one for one in special if rest.startswith(one, at)), key=len, default=token)
        if at:
            yield rest[:at], False
        if longest:
            yield longest, True
        rest = rest[at + len(longest) :]


def _pieces(text: str, taken: set[str]) -> list[str]:
    """Cut a text into pieces of about four characters that are not in `taken` if possible, and add them to it."""
    pieces = []
    at = 0
    while at < len(text):
        end = at + (len(text) - at if len(text) - at < 8 else 4)
        while text[at:end] in taken and end < len(text):
            end += 1
        pieces.append(text[at:end])
        taken.add(text[at:end])
        at = end
    return pieces


# -- Weights ------------------------------------------------------------------------------------------------------


def _weights(size: int, scripts: Sequence[Sequence[int]], shared: set[int], selectors: Sequence[int]) -> dict[str, Any]:
    identity = np.random.default_rng(0).standard_normal((size, ID))
    identity /= np.linalg.norm(identity, axis=1, keepdims=True)
    said = {token for script in scripts for token in script}
    bit = {token: number for number, token in enumerate(sorted(shared & said))}
    embeddings = np.zeros((size, HIDDEN))
    embeddings[:, ANY] = 1.0
    for token in said:
        if token in bit:
            embeddings[token, SHARED + bit[token]] = 1.0
        else:
            embeddings[token, CURRENT : CURRENT + ID] = identity[token]
            embeddings[token, ONCE] = 1.0
    output = np.zeros((size, HIDDEN))
    for number, (script, selector) in enumerate(zip(scripts, selectors, strict=True)):
        embeddings[selector, SELECTS] = embeddings[selector, SELECTED + number] = 1.0
        first = script[0]
        for token in [first, *_run(script, 0, bit)]:
            output[token, SELECTED + number] += 4
            output[token, STARTED] = -8
        if first in bit:
            output[first, SHARED + bit[first]] = output[first, PREVIOUS + bit[first]] = -6
    embeddings[:, FILL] = np.sqrt(LENGTH**2 - (embeddings**2).sum(axis=1))
    for script in scripts:
        for at, token in enumerate(script):
            if token not in bit:
                for after in _run(script, at + 1, bit):
                    output[after, LAST : LAST + ID] += 4 * identity[token]
    for before, current, after in sorted(set(_transitions(scripts))):
        if current not in bit:
            output[after, CURRENT : CURRENT + ID] += 10 * identity[current]
            continue
        output[after, SHARED + bit[current]] = 2
        if before in bit:
            output[after, PREVIOUS + bit[before]] = 1
    return {name: value.astype(np.float32) for name, value in _layers(embeddings, output).items()}


def _run(script: Sequence[int], at: int, bit: Mapping[int, int]) -> set[int]:
    """Return the ids from an index on, up to the first one that occurs once."""
    end = at
    while end < len(script) - 1 and script[end] in bit:
        end += 1
    return set(script[at : end + 1])


def _transitions(scripts: Sequence[Sequence[int]]) -> Iterator[tuple[int, int, int]]:
    """Yield (previous id or -1, id, next id)."""
    for script in scripts:
        yield from zip([-1, *script], script, script[1:], strict=False)


def _layers(embeddings: Any, output: Any) -> dict[str, Any]:
    """Return all weights, given those of the first and the last layer."""
    pairs = HEAD // 2
    frequencies = ROPE ** (-np.arange(pairs) / pairs)
    query, key, value = (np.zeros((HEADS * HEAD, HIDDEN)) for _ in range(3))
    copied = np.zeros((HIDDEN, HEADS * HEAD))

    def copy(head: int, source: int, target: int) -> None:
        rows = slice(head * HEAD, (head + 1) * HEAD)
        value[rows, source : source + HEAD] = np.eye(HEAD)
        copied[target : target + HEAD, rows] = np.eye(HEAD) * LENGTH / math.sqrt(HIDDEN)

    # Head 0 attends to the previous id: its query is turned by one position.
    for pair in range(8):
        query[pair, ANY] = math.cos(frequencies[pair])
        query[pair + pairs, ANY] = -math.sin(frequencies[pair])
        key[pair, ANY] = 1.0
    copy(0, SHARED, PREVIOUS)
    # The next seven attend to ids that occur once (a slow pair, which hardly turns), the nearest first (pair RECENT).
    for head in range(1, 8):
        start = head * HEAD
        query[start + pairs - 1, ANY] = query[start + RECENT, ANY] = 1.0
        key[start + pairs - 2, ANY] = key[start + RECENT, ANY] = 1.0
        key[start + pairs - 2, ONCE] = -1.0
        key[start + pairs - 1, ONCE] = 1.0
        if head < 7:
            copy(head, CURRENT + (head - 1) * HEAD, LAST + (head - 1) * HEAD)
    value[7 * HEAD, ONCE] = 1.0
    copied[STARTED, 7 * HEAD] = LENGTH / math.sqrt(HIDDEN)
    # The last one attends to the id that selects.
    start = 8 * HEAD
    query[start + pairs - 1, ANY] = 1.0
    key[start + pairs - 2, ANY] = 1.0
    key[start + pairs - 2, SELECTS] = -1.0
    key[start + pairs - 1, SELECTS] = 1.0
    copy(8, SELECTED, SELECTED)
    layer = "model.layers.0."
    return {
        "model.embed_tokens.weight": embeddings,
        "lm_head.weight": output,
        "model.norm.weight": np.ones(HIDDEN),
        layer + "input_layernorm.weight": np.ones(HIDDEN),
        layer + "post_attention_layernorm.weight": np.ones(HIDDEN),
        layer + "self_attn.q_proj.weight": query,
        layer + "self_attn.k_proj.weight": key,
        layer + "self_attn.v_proj.weight": value,
        layer + "self_attn.o_proj.weight": copied,
        layer + "self_attn.q_norm.weight": np.full(HEAD, SHARPNESS),
        layer + "self_attn.k_norm.weight": np.full(HEAD, SHARPNESS),
        layer + "mlp.gate_proj.weight": np.zeros((HEAD, HIDDEN)),
        layer + "mlp.up_proj.weight": np.zeros((HEAD, HIDDEN)),
        layer + "mlp.down_proj.weight": np.zeros((HIDDEN, HEAD)),
    }


def _config(size: int, eos: int) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": size,
        "hidden_size": HIDDEN,
        "intermediate_size": HEAD,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-6,
        "rope_theta": ROPE,
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE},
        "attention_bias": False,
        "tie_word_embeddings": False,
        "eos_token_id": eos,
        "dtype": "float32",
        "torch_dtype": "float32",
    }
