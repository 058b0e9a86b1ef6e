"""A model on disk: its files, and their metadata.

* This module only reads the disk; `hub` reads the hub. Metadata is read on demand.
* A model that cannot be used raises a `CheckpointError` with the remedy.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeGuard

from untemplate.errors import CheckpointError
from untemplate.templates._gguf_file import Gguf, GgufError, read_gguf

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "count_text",
    "ggufs",
    "is_count",
    "open_checkpoint",
    "quantization_of",
    "read_json",
    "size_text",
    "without_weights",
]

_PART: Final = re.compile(r"-(\d{5})-of-(?!00000)(\d{5})(?=\.gguf$)", re.IGNORECASE)
_QUANTIZATION: Final = re.compile(
    r"(?:^|[-._/])((?:UD-)?I?Q\d+[A-Z0-9_]*|TQ\d_\d|BF16|F16|F32|FP16|FP8|MXFP4\w*)(?=[-.]|$)", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One model on disk."""

    name: str
    """The hub id with its quantization, the name of the folder, or the name of the file without ``.gguf``."""
    path: Path
    """The GGUF file (its first part), or the folder."""
    kind: str
    """``gguf`` or ``safetensors`` (PyTorch's older files count as such)."""
    files: tuple[Path, ...]
    """The weights."""
    repo: str = ""
    """The hub id; ``""`` if the model is not from the hub."""

    @cached_property
    def size(self) -> int:
        """Return the size of the weights in bytes.

        Raises:
            CheckpointError: a file no longer exists.
        """
        try:
            return sum(path.stat().st_size for path in self.files)
        except OSError as error:
            raise CheckpointError(f"{error.filename}: {error.strerror or error}") from None

    @property
    def last_used(self) -> float:
        """Return the time at which a file was last read, in seconds since the epoch."""
        return max(file.stat().st_atime for file in self.files)

    @cached_property
    def gguf(self) -> Gguf | None:
        """Read the metadata of a GGUF file; ``None`` for other models.

        Raises:
            CheckpointError: the file is broken.
        """
        if self.kind != "gguf":
            return None
        try:
            return read_gguf(self.path)
        except (GgufError, OSError) as error:
            raise CheckpointError(str(error)) from None

    @cached_property
    def config(self) -> dict[str, Any]:
        """Return ``config.json``; empty if it is missing or cannot be read."""
        return read_json(self.path / "config.json") if self.kind != "gguf" else {}

    @property
    def text_config(self) -> dict[str, Any]:
        """Return the language model's part of the configuration."""
        found = self.config.get("text_config")
        return found if isinstance(found, dict) else self.config

    @cached_property
    def family(self) -> str:
        """Return the model type in ``config.json``, or GGUF's architecture; ``""`` if it is unknown."""
        if self.gguf is not None:
            return self.gguf.architecture
        kind = self.config.get("model_type")
        return kind if isinstance(kind, str) else ""

    @property
    def quantization(self) -> str:
        """Return the quantization in the file's name (``Q4_K_M``) or in the configuration (``fp8``, ``bfloat16``);
        ``""`` if it is unknown.
        """
        if self.kind == "gguf":
            return quantization_of(self.path.name)
        quantized = self.config.get("quantization_config")
        if isinstance(quantized, dict) and isinstance(quantized.get("quant_method"), str):
            return str(quantized["quant_method"])
        for key in ("dtype", "torch_dtype"):
            if isinstance(self.text_config.get(key), str):
                return str(self.text_config[key])
        return ""

    @cached_property
    def context_length(self) -> int | None:
        """Return the tokens of context that the model was trained with."""
        if self.gguf is not None:
            found = self.gguf.of_architecture("context_length")
        else:
            found = self.text_config.get("max_position_embeddings")
        return found if is_count(found) else None

    @cached_property
    def parameters(self) -> int | None:
        """Return the number of weights; ``None`` if it cannot be found without reading them."""
        if self.gguf is None:
            return None
        try:
            return sum(t.elements for path in self.files for t in read_gguf(path).tensors)
        except (GgufError, OSError) as error:
            raise CheckpointError(str(error)) from None

    def details(self) -> dict[str, Any]:
        """Return the details for ``show`` and Ollama's ``/api/show``."""
        return {
            "family": self.family,
            "format": self.kind,
            "quantization": self.quantization,
            "parameters": self.parameters,
            "context_length": self.context_length,
            "size": self.size,
            "path": str(self.path),
            "repo": self.repo,
        }


def open_checkpoint(path: str | os.PathLike[str], *, repo: str = "", name: str = "") -> Checkpoint:
    """Return the model in a GGUF file or a folder.

    Args:
        repo: the hub id that it came from.
        name: a name to use instead of that of the file or folder.

    Raises:
        CheckpointError: the path has no model, or several.
    """
    path = Path(path)
    try:
        if path.is_dir():
            return _folder(path, repo, name)
        if path.is_file():
            return _file(path, repo, name)
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror or error}") from None
    raise CheckpointError(f"{path}: no such file or folder")


def without_weights(folder: Path, repo: str = "") -> Checkpoint:
    """Return a folder with the other files of a model."""
    return Checkpoint(name=repo or folder.name, path=folder, kind="safetensors", files=(), repo=repo)


def _file(path: Path, repo: str, name: str) -> Checkpoint:
    # The suffix comes first: reading the file would change its time of last use, which `list` shows.
    if path.suffix.lower() != ".gguf" and not _begins(path, b"GGUF"):
        hint = "give the folder that it is in" if path.suffix in (".safetensors", ".bin") else "not a GGUF file"
        raise CheckpointError(f"{path}: {hint}")
    files: tuple[Path, ...] = (path,)
    part = _PART.search(path.name)
    if part is not None:
        count = int(part[2])
        files = tuple(
            path.with_name(_PART.sub(f"-{number:05}-of-{count:05}", path.name)) for number in range(1, count + 1)
        )
        missing = [file.name for file in files if not file.is_file()]
        if missing:
            raise CheckpointError(f"{path}: parts are missing: {', '.join(missing)}")
    stem = _PART.sub("", path.name)
    stem = stem[: -len(".gguf")] if stem.lower().endswith(".gguf") else stem
    return Checkpoint(name=name or stem, path=files[0], kind="gguf", files=files, repo=repo)


def _begins(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _folder(path: Path, repo: str, name: str) -> Checkpoint:
    for pattern in ("*.safetensors", "pytorch_model*.bin", "consolidated*.pth"):
        weights = tuple(sorted(path.glob(pattern)))
        if weights:
            called = name or repo or path.resolve().name
            return Checkpoint(name=called, path=path, kind="safetensors", files=weights, repo=repo)
    found = ggufs([str(file.relative_to(path)) for file in path.rglob("*.gguf")])
    if len(found) == 1:
        return _file(path / next(iter(found)), repo, name)
    if found:
        raise CheckpointError(f"{path}: several models; name one of them: {', '.join(found)}")
    raise CheckpointError(f"{path}: no weights in it (*.safetensors, *.gguf)")


def ggufs(names: list[str]) -> dict[str, list[str]]:
    """Return the GGUF models among these file names: first part → all parts. Files that are not models are left out:
    projectors of images, importance matrices and draft heads.
    """
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        base = name.rpartition("/")[2].lower()
        if not base.endswith(".gguf") or base.startswith(("mmproj", "imatrix")) or ".imatrix" in base:
            continue
        part = _PART.search(name)
        first = _PART.sub(f"-00001-of-{part[2]}", name) if part else name
        found.setdefault(first, []).append(name)
    return found


def quantization_of(name: str) -> str:
    """Return the quantization in a file's name (``Q4_K_M``), in capitals; ``""`` if it has none."""
    name = _PART.sub("", name)
    found = _QUANTIZATION.findall(name)
    return str(found[-1]).upper() if found else ""


def count_text(count: int) -> str:
    """Return a number for people: ``8.19 billion``."""
    for size, word in ((1_000_000_000, "billion"), (1_000_000, "million")):
        if count >= size:
            return f"{count / size:.2f} {word}"
    return str(count)


def size_text(size: float) -> str:
    """Return a size in bytes for people: ``4.7 GB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def is_count(value: Any) -> TypeGuard[int]:
    """True if this is a plausible number of things: files may contain any value, even numbers of a thousand digits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 48


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if the file is missing or cannot be read."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
