"""Two optimisers in one: Muon for the matrices inside the blocks, Adam for the embedding and the norms.

Muon (Keller Jordan, 2024) makes each update orthogonal, which trains networks of this size in roughly half the steps.
It treats matrices that a layer has joined (queries, keys and values; gate and up) separately.
"""

from __future__ import annotations

import torch
from torch import Tensor


def orthogonal(gradient: Tensor, steps: int = 5) -> Tensor:
    """Return roughly the nearest orthogonal matrix to each of a stack: Newton-Schulz in bfloat16."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = gradient.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return (x.mT if tall else x).float()


class Muon(torch.optim.Optimizer):
    """Updates parameters in groups.

    Args:
        groups: dicts with ``params``, ``lr``, ``decay`` and ``parts``: the joined matrices of Muon, or 0 for Adam.
    """

    def __init__(self, groups: list[dict]) -> None:
        super().__init__(groups, {"lr": 0.0, "decay": 0.0, "parts": 0, "momentum": 0.95, "betas": (0.9, 0.98)})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if group["decay"]:
                    p.mul_(1 - group["lr"] * group["decay"])
                if group["parts"]:
                    momentum = state.setdefault("momentum", torch.zeros_like(p))
                    momentum.lerp_(p.grad, 1 - group["momentum"])
                    update = p.grad.lerp(momentum, group["momentum"]).view(group["parts"], -1, p.shape[1])
                    scale = max(1.0, update.shape[1] / update.shape[2]) ** 0.5
                    p.add_(orthogonal(update).reshape(p.shape), alpha=-group["lr"] * scale)
                else:
                    first = state.setdefault("first", torch.zeros_like(p))
                    second = state.setdefault("second", torch.zeros_like(p))
                    state["steps"] = count = state.get("steps", 0) + 1
                    beta1, beta2 = group["betas"]
                    first.lerp_(p.grad, 1 - beta1)
                    second.lerp_(p.grad.square(), 1 - beta2)
                    scale = (second / (1 - beta2**count)).sqrt_().add_(1e-8)
                    p.addcdiv_(first / (1 - beta1**count), scale, value=-group["lr"])
