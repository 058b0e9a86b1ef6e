"""llama.cpp itself, through the package ``xllamacpp``, on models that are written here.

* Sampling uses a model with random weights over bytes and the catalogue's markers, restricted only by the grammar.
* Acceptance of a text is tested with a model that can write only the given texts. Each of its tokens occurs once and
  leads to the next; its first token selects the text. If the grammar accepts the text, the output is the whole text;
  otherwise it cannot be.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from .engines import BYTES, CLOSERS, Vocabulary

# Texts that llama.cpp takes for the end of generation if they are tokens.
ENDS = frozenset(
    [
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|calls|>",
        "<|flush|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "</s>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<eos>",
        "<EOS>",
        "<turn|>",
        "<|tool_response>",
        "<|eos|>",
        "<|end_of_msg|>",
        "<end_of_utterance>",
        "<｜end▁of▁sentence｜>",
        "<|END_OF_TURN_TOKEN|>",
        "<|eot|>",
        "<|eom|>",
        "<|END|>",
        "<|endofturn|>",
    ]
)


def write_model(
    path: str,
    pieces: Sequence[bytes],
    end: int,
    embedding: np.ndarray[Any, Any],
    output: np.ndarray[Any, Any],
    bytes_first: bool,
    control: frozenset[int] = frozenset(),
    template: str = "",
    bos: bool = False,
    context: int = 4096,
) -> None:
    import gguf

    size = embedding.shape[1]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(context)
    writer.add_embedding_length(size)
    writer.add_block_count(1)
    writer.add_feed_forward_length(32)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(pieces))
    writer.add_rope_dimension_count(size)
    writer.add_tokenizer_model("llama")
    tokens: list[bytes] = []
    types: list[int] = []
    for i, piece in enumerate(pieces):
        if bytes_first and i < BYTES:
            tokens.append(f"<0x{i:02X}>".encode())
            types.append(gguf.TokenType.BYTE)
        else:
            tokens.append(piece)
            types.append(gguf.TokenType.CONTROL if i == end or i in control else gguf.TokenType.USER_DEFINED)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_eos_token_id(end)
    writer.add_bos_token_id(end)
    writer.add_add_bos_token(bos)
    writer.add_add_space_prefix(False)
    if template:
        writer.add_chat_template(template)

    def zeros(*shape: int) -> np.ndarray[Any, Any]:
        return np.zeros(shape, np.float32)

    ones = np.ones(size, np.float32)
    for name, tensor in {
        "token_embd.weight": embedding.astype(np.float32),
        "output.weight": output.astype(np.float32),
        "output_norm.weight": ones,
        "blk.0.attn_norm.weight": ones,
        "blk.0.ffn_norm.weight": ones,
        "blk.0.attn_q.weight": zeros(size, size),
        "blk.0.attn_k.weight": zeros(size, size),
        "blk.0.attn_v.weight": zeros(size, size),
        "blk.0.attn_output.weight": zeros(size, size),
        "blk.0.ffn_gate.weight": zeros(32, size),
        "blk.0.ffn_up.weight": zeros(32, size),
        "blk.0.ffn_down.weight": zeros(size, 32),
    }.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _serve(path: str) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = 4096
    params.n_parallel = 1
    params.warmup = False
    params.cpuparams.n_threads = 1
    params.verbosity = -1
    params.special = True
    return xllamacpp.Server(params)


class Llama:
    """A server whose model writes random tokens."""

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self.vocabulary = vocabulary or Vocabulary()
        self.pieces = [
            p if p.decode("utf-8", "replace") not in ENDS else f"<unused {i}>".encode()
            for i, p in enumerate(self.vocabulary.pieces)
        ]
        unused = [i for i, p in enumerate(self.pieces) if p.startswith(b"<unused")]
        random = np.random.default_rng(7)
        shape = (len(self.pieces), 64)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "random.gguf")
            write_model(
                path,
                self.pieces,
                self.vocabulary.end,
                random.standard_normal(shape) * 0.05,
                random.standard_normal(shape) * 0.02,
                True,
            )
            self._server = _serve(path)
        unused += self.vocabulary.stops()
        self.bias = [[i, -100.0] for i in (*unused, *range(128, 256))]
        self.bias += [[i, -3.0] for i in range(32)]
        self.bias += [[ord(c), 2.5] for c in CLOSERS] + [[ord(c), -1.5] for c in "\\-eE"]
        self.bias += [[ord(c), -3.0] for c in "\t \n"] + [[self.vocabulary.ids["\n\n"], -4.0]]
        self.bias += [[i, math.log(w)] for i, w in self.vocabulary.wanted.items() if i not in unused]
        self.bias.append([self.vocabulary.end, 4.0])

    def complete(self, grammar: str, seed: int, most: int = 400, **settings: Any) -> tuple[str, list[int]] | None:
        """Return the model's output under the grammar; ``None`` if it does not end within ``most`` tokens."""
        answer = self._server.handle_completions(
            {
                "prompt": "x",
                "n_predict": most,
                "grammar": grammar,
                "temperature": 1.0,
                "seed": seed,
                "top_k": 0,
                "top_p": 1.0,
                "min_p": 0.0,
                "logit_bias": self.bias,
                "logprobs": 1,
                "cache_prompt": False,
                **settings,
            }
        )
        answer = json.loads(answer) if isinstance(answer, str | bytes) else answer
        if "choices" not in answer:
            raise ValueError(str(answer.get("error", answer)))
        chosen = answer["choices"][0]
        if chosen["finish_reason"] != "stop":
            return None
        text = chosen["text"].removesuffix("<END>")
        ids = [t["id"] for t in chosen["logprobs"]["content"]]
        if ids and ids[-1] == self.vocabulary.end:
            ids.pop()
        # The ids of a character that consists of several tokens are not reported; its text is.
        whole = b"".join(self.pieces[i] for i in ids).decode("utf-8", errors="replace")
        return text, ids if whole == text else []


def accepted(grammar: str, texts: Sequence[str], **settings: Any) -> list[bool]:
    """Return for each text whether the grammar accepts all of it. ``settings`` are further fields of the request."""
    chunks: list[list[str]] = []
    used: set[str] = set(ENDS)
    for text in texts:
        parts: list[str] = []
        at = 0
        while at < len(text):
            stop = at + 1
            while stop <= len(text) and text[at:stop] in used:
                stop += 1
            if stop > len(text):
                # Nothing new is left: the parts before take the rest.
                rest = text[at:]
                while rest in used:
                    if not parts:
                        raise ValueError(f"cannot cut {text!r} into parts of its own")
                    used.discard(parts[-1])
                    rest = parts.pop() + rest
                parts.append(rest)
                used.add(rest)
                break
            parts.append(text[at:stop])
            used.add(text[at:stop])
            at = stop
        chunks.append(parts)
    # Single bytes, which the model never writes: llama.cpp tokenizes triggers and preserved tokens with them.
    pieces: list[bytes] = [bytes([i]) for i in range(BYTES)] + [b"<END>"]
    end = BYTES
    starts: list[int] = []
    follows: dict[int, int] = {}
    for k, parts in enumerate(chunks):
        starts.append(len(pieces))
        pieces.append(f"<start {k}>".encode())
        for part in parts:
            follows[len(pieces) - 1] = len(pieces)
            pieces.append(part.encode())
        follows[len(pieces) - 1] = end
    size = 256
    embedding = np.random.default_rng(1).choice([-1.0, 1.0], (len(pieces), size))
    output = np.zeros((len(pieces), size))
    for before, after in follows.items():
        output[after] += embedding[before]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "texts.gguf")
        write_model(path, pieces, end, embedding, output, True)
        server = _serve(path)
    result = []
    for start, text in zip(starts, texts, strict=True):
        answer = server.handle_completions(
            {
                "prompt": [start],
                "n_predict": 2000,
                "grammar": grammar,
                "temperature": 0.0,
                "logprobs": 1,
                "cache_prompt": False,
                **settings,
            }
        )
        answer = json.loads(answer) if isinstance(answer, str | bytes) else answer
        if "choices" not in answer:
            raise ValueError(str(answer.get("error", answer)))
        chosen = answer["choices"][0]
        ids = [t["id"] for t in chosen["logprobs"]["content"]]
        written = b"".join(pieces[i] for i in ids if i != end).decode()
        result.append(chosen["finish_reason"] == "stop" and written == text)
    return result
