"""A tiny projector with random weights, to test images with a real llama.cpp, and a picture to send."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

SIZE, PATCH, WIDTH, LAYERS = 16, 8, 32, 2
"""Pixels of a side of the image and of a patch, length of an embedding, layers of the encoder."""
TOKENS = (SIZE // PATCH) ** 2
"""Tokens of an image."""


def tiny_mmproj(folder: Path, embedding: int = 64) -> Path:
    """Write a projector in the form of LLaVA's, for a model with embeddings of this length."""
    gguf: Any = pytest.importorskip("gguf")
    np: Any = pytest.importorskip("numpy")
    random = np.random.default_rng(7)
    path = folder / "mmproj.gguf"
    writer = gguf.GGUFWriter(str(path), "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_bool("clip.use_gelu", True)
    writer.add_string("clip.projector_type", "mlp")
    for name, value in {
        "image_size": SIZE, "patch_size": PATCH, "embedding_length": WIDTH, "feed_forward_length": WIDTH,
        "block_count": LAYERS, "attention.head_count": 2, "projection_dim": embedding,
    }.items():  # fmt: skip
        writer.add_uint32(f"clip.vision.{name}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * 0.05).astype(np.float32))

    add("v.class_embd", WIDTH)
    add("v.patch_embd.weight", WIDTH, 3, PATCH, PATCH)
    add("v.position_embd.weight", TOKENS + 1, WIDTH)
    for layer in ("v.pre_ln", *(f"v.blk.{i}.{ln}" for i in range(LAYERS) for ln in ("ln1", "ln2"))):
        add(f"{layer}.weight", WIDTH)
        add(f"{layer}.bias", WIDTH)
    for i in range(LAYERS):
        for part in ("attn_q", "attn_k", "attn_v", "attn_out", "ffn_up", "ffn_down"):
            add(f"v.blk.{i}.{part}.weight", WIDTH, WIDTH)
            add(f"v.blk.{i}.{part}.bias", WIDTH)
    for name, size in (("mm.0", WIDTH), ("mm.2", embedding)):
        add(f"{name}.weight", embedding, size)
        add(f"{name}.bias", embedding)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def png(side: int = SIZE) -> bytes:
    """Return a picture in one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff\x80\0" * side) * side
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
