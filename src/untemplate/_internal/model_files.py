"""The files of a model in a folder, and the model type that they name."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..formats._registry import model_type_of_architecture
from ..templates._gguf_file import GgufError, read_gguf

__all__ = ["document", "folder_of", "looks_like_path", "model_type_of"]


def folder_of(model: str | os.PathLike[str] | None) -> Path | None:
    if model is None:
        return None
    try:
        path = Path(model)
        return path if path.is_dir() else None
    except (OSError, ValueError):
        return None


def looks_like_path(model: str) -> bool:
    """True if this cannot be a hub id, which is ``name`` or ``owner/name``."""
    return model.startswith((".", "/", "~")) or model.endswith(".gguf") or model.count("/") > 1 or "\\" in model


def document(folder: Path | None, name: str) -> dict[str, Any]:
    """Return a JSON object from the folder; an empty one if it cannot be read."""
    if folder is None:
        return {}
    try:
        data = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def model_type_of(model: str | os.PathLike[str] | None) -> str | None:
    """Return the model type of a folder's ``config.json``, or for the architecture of a GGUF file."""
    if model is not None and os.fspath(model).endswith(".gguf"):
        try:
            architecture = read_gguf(model).get("general.architecture")
        except (GgufError, OSError):
            return None
        return model_type_of_architecture(architecture) if isinstance(architecture, str) else None
    found = document(folder_of(model), "config.json").get("model_type")
    return found if isinstance(found, str) else None
