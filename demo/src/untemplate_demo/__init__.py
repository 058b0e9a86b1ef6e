"""A demonstration model in a package, and functions that return the paths of its files.

>>> import untemplate_demo
>>> untemplate_demo.model_path().name
'untemplate-demo.gguf'

This package imports nothing and loads nothing. The caller provides llama.cpp to run the model, and untemplate to parse
its outputs.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["CONTEXT_LENGTH", "MODEL_NAME", "chat_template", "chat_template_path", "model_path"]

MODEL_NAME = "untemplate-demo"
"""The name under which the model is served."""

CONTEXT_LENGTH = 1024
"""Most tokens that a prompt and its answer may have together."""

_FOLDER = Path(__file__).parent


def model_path() -> Path:
    """Return the path of the weights, a GGUF file for llama.cpp that contains tokenizer and chat template."""
    return _FOLDER / "untemplate-demo.gguf"


def chat_template_path() -> Path:
    """Return the path of the chat template as a separate file."""
    return _FOLDER / "chat_template.jinja"


def chat_template() -> str:
    """Return the chat template: Jinja, as ``untemplate.OutputParser.from_template`` takes it."""
    return chat_template_path().read_text(encoding="utf-8")
