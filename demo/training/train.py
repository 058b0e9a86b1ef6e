"""Train the model on conversations that are generated on the fly, for a given time.

* Time is the budget. The learning rates depend on the share of ``--minutes`` that has passed (up, constant, down to
  zero). So a run on a busy machine anneals as well as one on an idle machine, but with fewer steps.
* A checkpoint contains everything: weights, optimiser, minutes spent, and the number of the next conversation. It is
  written to a temporary file and renamed; a run that finds one continues from it. SIGTERM makes one and ends the run
  with a failure, so that later steps of a script do not run on an unfinished model.
* The output is also appended to ``train.log`` next to the checkpoint.
* A batch has conversations of similar length, so that padding costs little. Every batch has one of a few shapes, each
  compiled once. Position i of conversation n depends only on the seed and n.
* Each core is used by a process with one thread. Processes wait for each other once in a step, threads once in an
  operation: on a busy machine, processes are half as fast again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed
import torch.nn.functional as F
from chat import encode
from conversations import Side, Writer
from model import Llama, Shape
from muon import Muon
from tokenizers import Tokenizer
from torch import Tensor

LENGTHS = (96, 160, 224, 288, 352, 416, 512, 640, 768)
LEVEL_UNTIL = 0.33
# Text that is not learned counts a little at first: it teaches copying early. Later it would outweigh the learned text,
# because most of it can't be predicted.
PROMPT_WEIGHT = 0.05


class Batches:
    """An endless stream of (ids, targets, weights), beginning with conversation number ``start``."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        seed: int | str,
        tokens: int,
        start: int = 0,
        stride: int = 1,
        side: Side | None = None,
    ) -> None:
        self.stride = stride
        self.tokenizer, self.seed, self.tokens, self.number = tokenizer, seed, tokens, start
        self.side = side or Side()
        self.waiting: dict[int, list[tuple[list[int], list[bool]]]] = {n: [] for n in LENGTHS}

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        while True:
            conversation = Writer(random.Random(f"{self.seed}:{self.number}"), self.side).conversation()
            self.number += self.stride
            ids, learned = encode(self.tokenizer, conversation)
            length = next((n for n in LENGTHS if len(ids) <= n + 1), None)
            if length is None:
                continue
            waiting = self.waiting[length]
            waiting.append((ids, learned))
            if len(waiting) >= self.tokens // length:
                yield batch(waiting, length)
                waiting.clear()


def batch(samples: list[tuple[list[int], list[bool]]], length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return samples as tensors, padded on the right, where causal attention never looks."""
    ids = torch.zeros(len(samples), length + 1, dtype=torch.long)
    weights = torch.zeros(len(samples), length)
    for row, (sample, learned) in enumerate(samples):
        ids[row, : len(sample)] = torch.tensor(sample)
        weights[row, : len(sample) - 1] = torch.tensor([1.0 if x else PROMPT_WEIGHT for x in learned[1:]])
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous(), weights


def rate(share: float) -> float:
    """Return the factor of the learning rate when this share of the time has passed."""
    return 1.0 if share < LEVEL_UNTIL else max(0.0, (1 - share) / (1 - LEVEL_UNTIL))


def groups(model: Llama, muon: float, adam: float) -> list[dict]:
    """Return the groups of parameters: matrices for Muon, the rest for Adam."""
    matrices: dict[int, list[Tensor]] = {1: [], 2: [], 3: []}
    rest = []
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1 or name.startswith("embedding"):
            rest.append(parameter)
        else:
            matrices[3 if "qkv" in name else 2 if "gate_up" in name else 1].append(parameter)
    out = [{"params": p, "lr": muon, "base": muon, "parts": parts, "decay": 0.02} for parts, p in matrices.items()]
    return [*out, {"params": rest, "lr": adam, "base": adam}]


def save(path: Path, state: dict) -> None:
    """Write the checkpoint completely or not at all."""
    temporary = path.with_suffix(".tmp")
    torch.save(state, temporary)
    os.replace(temporary, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True, help="read if it is there, and written")
    parser.add_argument("--minutes", type=float, default=95, help="of training altogether")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2, help="with one thread each")
    parser.add_argument("--rank", type=int, default=0, help="of this process; the first starts the others")
    parser.add_argument("--tokens", type=int, default=6144, help="in a batch, per process")
    parser.add_argument("--muon", type=float, default=0.02)
    parser.add_argument("--adam", type=float, default=0.003)
    parser.add_argument("--save-minutes", type=float, default=3)
    options = parser.parse_args()

    torch.set_num_threads(1)
    rank, processes = options.rank, options.processes
    meeting = options.checkpoint.resolve().with_suffix(".meeting")
    if not rank:
        meeting.unlink(missing_ok=True)
        for other in range(1, processes):
            # Each process has a session of its own: Linux shares cores between sessions first, then between processes.
            subprocess.Popen([sys.executable, *sys.argv, "--rank", str(other)], start_new_session=True)
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes)
    torch.manual_seed(options.seed)
    torch._dynamo.config.recompile_limit = 64
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    shape = Shape(tokenizer.get_vocab_size())
    model = Llama(shape)
    optimiser = Muon(groups(model, options.muon, options.adam))
    step, spent, start = 0, 0.0, 0
    if options.checkpoint.exists():
        state = torch.load(options.checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        step, spent, start = state["step"], state["spent"], state["conversations"]

    def say(line: dict[str, Any]) -> None:
        print(json.dumps(line), flush=True)
        with options.checkpoint.with_name("train.log").open("a") as log:
            print(json.dumps(line), file=log)

    if not rank:
        say({"parameters": sum(p.numel() for p in model.parameters()), **shape.to_dict(), "from_step": step})

    def losses(ids: Tensor, targets: Tensor) -> Tensor:
        logits = model(ids).float()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)

    compiled = torch.compile(losses, dynamic=False)
    sides = {"values": Side(values=True), "tools": Side(values=True, tools=True)}
    held = {} if rank else {n: next(iter(Batches(tokenizer, f"held:{n}", 8192, side=s))) for n, s in sides.items()}
    batches = Batches(tokenizer, options.seed, options.tokens, start + rank, processes)
    autocast = torch.autocast("cpu", torch.bfloat16)
    parameters = list(model.parameters())
    began, saved, said = time.monotonic() - spent, time.monotonic(), time.monotonic()
    running, tokens = 0.0, 0

    def checkpoint() -> None:
        state = {
            "model": model.state_dict(),
            "optimiser": optimiser.state_dict(),
            "step": step,
            "shape": shape.to_dict(),
        }
        save(options.checkpoint, {**state, "spent": time.monotonic() - began, "conversations": batches.number})

    def passed() -> float:
        return (time.monotonic() - began) / (options.minutes * 60)

    stopping, share = False, passed()

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    for ids, targets, weights in batches:
        if share > LEVEL_UNTIL:
            weights = weights.floor()
        with autocast:
            each = compiled(ids, targets)
        loss = (each * weights).sum() / weights.sum()
        loss.backward()
        value = each.detach()[weights == 1].mean()
        # One message has the gradients, the loss, and two decisions of the first process: if to stop, and the time.
        decided = torch.tensor([0.0, 0.0] if rank else [float(stopping), passed()])
        message = torch.cat([p.grad.flatten() for p in parameters] + [value[None], decided])
        torch.distributed.all_reduce(message)
        *gradients, rest = message.split([*(p.numel() for p in parameters), 3])
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.view_as(parameter) / processes
        factor = rate(share) * min(1.0, (step + 1) / 100)
        for group in optimiser.param_groups:
            group["lr"] = group["base"] * factor
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        step += 1
        share = rest[2].item()
        if share >= 1 or rest[1]:
            break
        if rank:
            continue
        tokens += ids.numel() * processes
        running = 0.98 * running + 0.02 * rest[0].item() / processes if running else rest[0].item() / processes
        if step % 50 == 0:
            now = time.monotonic()
            line = {"step": step, "minutes": round((now - began) / 60, 1), "loss": round(running, 4)}
            line |= {"rate": round(factor, 3), "tokens_per_second": round(tokens / (now - said))}
            said, tokens = now, 0
            if step % 250 == 0:
                with torch.no_grad(), autocast:
                    for name, (i, t, w) in held.items():
                        line[name] = round(losses(i, t)[w == 1].mean().item(), 4)
            say(line)
        if time.monotonic() - saved > options.save_minutes * 60:
            checkpoint()
            saved = time.monotonic()
    if not rank:
        checkpoint()
        say({"done": share >= 1, "step": step})
    torch.distributed.destroy_process_group()
    if share < 1:
        raise SystemExit("stopped before its time: run it again to go on")


if __name__ == "__main__":
    main()
