"""Checks before a model is loaded: are its files complete, does the engine support it, does it fit into memory?

* Nothing is loaded and nothing is changed. Every check reports its result with numbers; a failed one includes the
  remedy.
* Memory is an estimate, and labelled so: the weights as they are on disk, and the KV cache according to the metadata.
  A model that may not fit is a warning; a model that cannot be loaded at all is an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from untemplate.templates import ChatTemplate, TemplateError

from .checkpoint import Checkpoint, CheckpointError, count_text, is_count, size_text

_OVERHEAD: Final = 300_000_000
"""Bytes that an engine needs besides weights and cache: compute buffers, and the program itself."""
_TOKENIZERS: Final = (
    *("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "tiktoken.model", "qwen.tiktoken"),
)


@dataclass(frozen=True, slots=True)
class PreflightCheck:
    """The result of one check."""

    name: str
    """``weights`` · ``config`` · ``tokenizer`` · ``architecture`` · ``chat template`` · ``memory``."""
    verdict: str
    """``ok`` · ``warning`` · ``error`` · ``skipped``."""
    detail: str


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory that a model needs, and the memory that is free, in bytes."""

    weights: int
    cache: int | None
    """The KV cache for ``context`` tokens; ``None``: unknown."""
    context: int
    available: int | None
    """``None`` if it is unknown on this system."""

    @property
    def needed(self) -> int:
        return self.weights + (self.cache or 0) + _OVERHEAD

    @property
    def fits(self) -> bool | None:
        return None if self.available is None else self.needed <= self.available

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "needed": self.needed, "fits": self.fits}


@dataclass(frozen=True, slots=True)
class Preflight:
    """The results of all checks."""

    model: str
    checks: tuple[PreflightCheck, ...]
    memory: Memory | None = None

    @property
    def verdict(self) -> str:
        """Return the worst verdict: ``error``, ``warning`` or ``ok``."""
        found = {check.verdict for check in self.checks}
        return next((v for v in ("error", "warning") if v in found), "ok")

    def problems(self, *, strict: bool = False) -> tuple[str, ...]:
        """Return the problems that prevent loading; with ``strict``, warnings are included."""
        bad = ("error", "warning") if strict else ("error",)
        return tuple(f"{check.name}: {check.detail}" for check in self.checks if check.verdict in bad)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as JSON values."""
        memory = None if self.memory is None else self.memory.to_dict()
        return asdict(self) | {"verdict": self.verdict, "memory": memory}


def preflight(
    checkpoint: Checkpoint,
    *,
    engine: str = "",
    context: int = 0,
    template: ChatTemplate | None = None,
    available: int | None = None,
) -> Preflight:
    """Run all checks on a model.

    Args:
        engine: the engine that shall run it: ``llamacpp``, ``vllm``; ``""`` for the one that can.
        context: tokens of context that are wanted; 0 for the context that the model was trained with.
        template: the operator's chat template; ``None`` to look for the model's own.
        available: bytes of free memory; ``None`` to ask the system.
    """
    engine = engine or ("llamacpp" if checkpoint.kind == "gguf" else "vllm")
    memory: Memory | None = None
    try:
        memory = estimate(checkpoint, context=context, available=available)
        found = {
            "weights": _weights(checkpoint),
            "config": _config(checkpoint),
            "tokenizer": _tokenizer(checkpoint),
            "architecture": _architecture(checkpoint, engine),
            "chat template": _template(checkpoint, template),
            "memory": _memory(memory, engine, shorter=not context),
        }
    except CheckpointError as error:
        memory, found = None, {"weights": ("error", str(error))}
    checks = tuple(PreflightCheck(name, *result) for name, result in found.items() if result is not None)
    return Preflight(checkpoint.name, checks, memory)


_Result = tuple[str, str]
"""The verdict and the detail of a check."""


def _weights(checkpoint: Checkpoint) -> _Result:
    missing = [path.name for path in checkpoint.files if not path.is_file()]
    if missing:
        return "error", f"missing: {', '.join(missing)}; `untemplate pull` downloads them"
    empty = [path.name for path in checkpoint.files if not path.stat().st_size]
    if empty:
        return "error", f"empty: {', '.join(empty)}; `untemplate pull` downloads them again"
    count, parameters = len(checkpoint.files), checkpoint.parameters
    facts = [f"{count} file{'s' if count != 1 else ''}", size_text(checkpoint.size), checkpoint.quantization]
    facts.append(f"{count_text(parameters)} parameters" if parameters else "")
    return "ok", ", ".join(filter(None, facts))


def _config(checkpoint: Checkpoint) -> _Result | None:
    if checkpoint.gguf is not None:
        return None
    if not checkpoint.config:
        return "error", f"{checkpoint.path} has no config.json that can be read"
    return "ok", "config.json"


def _tokenizer(checkpoint: Checkpoint) -> _Result:
    if checkpoint.gguf is not None:
        count = checkpoint.gguf.count("tokenizer.ggml.tokens")
        if not count:
            return "error", "the GGUF file has no vocabulary; it is not a language model"
        return "ok", f"in the file, {count} tokens"
    found = next((name for name in _TOKENIZERS if (checkpoint.path / name).is_file()), None)
    return ("ok", found) if found else ("warning", "none in the folder; --vllm-arg tokenizer=NAME names another")


def _architecture(checkpoint: Checkpoint, engine: str) -> _Result:
    if engine == "llamacpp":
        if checkpoint.gguf is None:
            return "error", "llama.cpp needs a GGUF file, and this is not one; --engine vllm runs it"
        name, key, who, package = checkpoint.family, "general.architecture", "llama.cpp", "gguf"
    else:
        wanted = checkpoint.config.get("architectures")
        name = str(wanted[0]) if isinstance(wanted, list) and wanted else checkpoint.family
        key, who, package = "architectures", "vLLM", "vllm"
    if not name:
        return "error", f"the type of the model is unknown ({key} is missing)"
    known = _architectures(package)
    if known is None:
        return "skipped", f"{name}; to check that {who} knows it, install the package {package}"
    if name not in known:
        problem = f"is not in the list of this version of the package {package}; a newer {who} may know it"
        return "warning", f"{name} {problem}"
    return "ok", f"{name}, known to {who}"


def _architectures(package: str) -> Collection[str] | None:
    """Return the architectures that a package knows; ``None`` if it is not installed."""
    try:
        if package == "gguf":
            from gguf import MODEL_ARCH_NAMES

            return {str(name) for name in MODEL_ARCH_NAMES.values()}
        from vllm import ModelRegistry  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    return set(ModelRegistry.get_supported_archs())


def _template(checkpoint: Checkpoint, template: ChatTemplate | None) -> _Result:
    try:
        found = template or ChatTemplate.load(checkpoint.path)
        found.compile()
    except TemplateError as error:
        return "warning", f"{error}; --chat-template sets one; without it, only raw prompts can be answered"
    whose = "the model's own" if template is None else str(found.name)
    return "ok", f"{whose}, {len(found.source)} characters"


# -- Memory -------------------------------------------------------------------------------------------------------


def _memory(memory: Memory, engine: str, *, shorter: bool) -> _Result:
    """Check the memory. ``shorter``: llama.cpp may take a shorter context."""
    cache = f"KV cache {size_text(memory.cache)} for {memory.context} tokens" if memory.cache else "KV cache unknown"
    needs = f"about {size_text(memory.needed)} (weights {size_text(memory.weights)}, {cache})"
    if memory.available is None:
        return "skipped", f"{needs}; free memory is unknown on this system"
    needs += f", {size_text(memory.available)} free"
    if memory.fits:
        return "ok", needs
    if engine == "vllm":
        return "skipped", f"{needs}; vLLM checks the memory of the GPU itself"
    if shorter and memory.cache and memory.needed - memory.cache <= memory.available:
        return "ok", f"{needs}; llama.cpp shortens the context to what fits"
    return "warning", f"{needs}: too large; a smaller quantization may fit"


def estimate(checkpoint: Checkpoint, *, context: int = 0, available: int | None = None) -> Memory:
    """Return an estimate of the memory that a model needs.

    Raises:
        CheckpointError: the GGUF file is broken.
    """
    tokens = context or checkpoint.context_length or 0
    per_token = cache_bytes_per_token(checkpoint)
    weights = sum(path.stat().st_size for path in checkpoint.files if path.is_file())
    there = available_memory() if available is None else available
    return Memory(weights, None if per_token is None else per_token * tokens, tokens, there)


def cache_bytes_per_token(checkpoint: Checkpoint) -> int | None:
    """Return the bytes of the KV cache for one token, at 16 bits a number; ``None`` if unknown. This is an upper bound:
    layers with a window of their own are counted in full.
    """
    if checkpoint.gguf is not None:
        get: Callable[..., Any] = checkpoint.gguf.of_architecture
        layers, width, heads = get("block_count"), get("embedding_length"), get("attention.head_count")
        kv_heads = get("attention.head_count_kv", heads)
        latent, rope = get("attention.kv_lora_rank"), get("rope.dimension_count")
        key, value = get("attention.key_length"), get("attention.value_length")
    else:
        get = checkpoint.text_config.get
        layers, width, heads = get("num_hidden_layers"), get("hidden_size"), get("num_attention_heads")
        kv_heads = get("num_key_value_heads", heads)
        latent, rope = get("kv_lora_rank"), get("qk_rope_head_dim")
        key = value = get("head_dim")
    if not is_count(layers):
        return None
    if is_count(latent):  # DeepSeek's latent attention: one vector for all heads
        return int(layers * (latent + (rope if is_count(rope) else 0)) * 2)
    if isinstance(heads, list):
        heads = max(filter(is_count, heads), default=0)
    if not (is_count(width) and is_count(heads)):
        return None
    key, value = key if is_count(key) else width // heads, value if is_count(value) else width // heads
    if isinstance(kv_heads, list):  # one number for each layer; 0 for a layer without a cache
        if not all(each == 0 or is_count(each) for each in kv_heads):
            return None
        every = sum(kv_heads)
    else:
        every = (kv_heads if is_count(kv_heads) else heads) * layers
    return int(every * (key + value) * 2)


def available_memory() -> int | None:
    """Return the bytes that a new process can use, within a container's limit; ``None`` if that is unknown on this
    system."""
    found = [int(line.split()[1]) * 1024 for line in _lines("/proc/meminfo") if line.startswith("MemAvailable:")]
    limit, used = ("".join(_lines(f"/sys/fs/cgroup/memory.{name}")) for name in ("max", "current"))
    if limit.isdecimal() and used.isdecimal():
        found.append(max(int(limit) - int(used), 0))
    if found:
        return min(found)
    try:  # macOS only reports the total
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("ascii").split("\n")
    except (OSError, ValueError):
        return []
