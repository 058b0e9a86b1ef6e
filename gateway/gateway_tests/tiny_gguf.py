"""A tiny GGUF model with random weights, to test a real llama.cpp with our prompts, grammars and aborts.

Its vocabulary is the bytes and a few special tokens. It writes noise unless a grammar restricts it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<end>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>", "<start>")
"""The tokens from 256 on; 256 ends an output."""
END, START = 256, 263
NOISE = {str(i): -100.0 for i in (*range(32), *range(127, 256), *range(257, 264))}
"""A logit bias under which it writes printable ASCII only, and may end."""
ENDLESS = {**NOISE, str(END): -100.0}
"""The same, and it writes on until a limit ends it."""


def tiny_gguf(folder: Path, *, bos: bool = False, context: int = 4096) -> Path:
    """Write the model. With ``bos``, llama.cpp adds the token ``<end>`` before prompts; ``context`` is in tokens."""
    pytest.importorskip("xllamacpp")
    pytest.importorskip("gguf")
    np = pytest.importorskip("numpy")
    from tests.grammar.llama import write_model

    pieces = [bytes([i]) for i in range(256)] + [token.encode() for token in SPECIAL]
    random = np.random.default_rng(7)
    shape = (len(pieces), 64)
    path = folder / "tiny.gguf"
    write_model(
        str(path),
        pieces,
        END,
        random.standard_normal(shape) * 0.05,
        random.standard_normal(shape) * 0.02,
        True,
        frozenset(range(257, 264)),
        TEMPLATE,
        bos,
        context,
    )
    return path
