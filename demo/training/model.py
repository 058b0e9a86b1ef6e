"""The network: a Llama with only those features that llama.cpp's ``llama`` architecture has.

Rotary embedding rotates the two halves of a head here, which is faster in torch. llama.cpp rotates neighbouring pairs,
and ``export.py`` permutes the rows of the query and key projections to match. The embedding is also the output
projection.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """The sizes of a network; part of every checkpoint."""

    vocabulary: int
    width: int = 192
    layers: int = 6
    heads: int = 6
    feed_forward: int = 512
    context: int = 1024
    rope_base: float = 10000.0
    epsilon: float = 1e-5

    def to_dict(self) -> dict[str, int | float]:
        """Return the sizes as a dict for a checkpoint."""
        return asdict(self)


class Block(nn.Module):
    """Attention and a gated feed-forward network, each after a norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attention_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.qkv = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)
        self.feed_forward_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.gate_up = nn.Linear(shape.width, 2 * shape.feed_forward, bias=False)
        self.down = nn.Linear(shape.feed_forward, shape.width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, length, 3 * self.heads, -1).transpose(1, 2)
        q, k, v = qkv.split(self.heads, dim=1)
        mixed = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        gate, up = self.gate_up(self.feed_forward_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    """The whole network: token ids to hidden states, and hidden states to logits."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        half = shape.width // shape.heads // 2
        turns = shape.rope_base ** (-torch.arange(half, dtype=torch.float32) / half)
        angles = torch.arange(shape.context, dtype=torch.float32)[:, None] * turns
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                scale = 0.02 if name.startswith("embedding") else shape.width**-0.5
                if name.endswith(("out.weight", "down.weight")):
                    scale /= (2 * shape.layers) ** 0.5
                nn.init.normal_(parameter, std=scale)

    def hidden(self, ids: Tensor) -> Tensor:
        """Return the last hidden state of each position."""
        x = self.embedding(ids)
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        x = x.to(dtype)
        cos, sin = self.cos[: ids.shape[1]].to(dtype), self.sin[: ids.shape[1]].to(dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.norm(x)

    def forward(self, ids: Tensor) -> Tensor:
        return F.linear(self.hidden(ids), self.embedding.weight)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return heads with their positions encoded: the first half of each is rotated against the second."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
