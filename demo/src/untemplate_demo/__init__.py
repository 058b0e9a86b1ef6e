"""A demonstration model in a package: where its files are, and nothing else.

>>> import untemplate_demo
>>> untemplate_demo.model_path().name
'untemplate-demo.gguf'

Rule of this package: it imports nothing and loads nothing. What runs the model (llama.cpp) and what reads its outputs
(untemplate) are the caller's.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["CONTEXT_LENGTH", "MODEL_NAME", "chat_template", "chat_template_path", "model_path"]

MODEL_NAME = "untemplate-demo"
"""What the model is called where it is served."""

CONTEXT_LENGTH = 1024
"""Tokens that a prompt and its answer may have together."""

_FOLDER = Path(__file__).parent


def model_path() -> Path:
    """The weights, as a GGUF file for llama.cpp. Tokenizer and chat template are in it."""
    return _FOLDER / "untemplate-demo.gguf"


def chat_template_path() -> Path:
    """The chat template as a file of its own."""
    return _FOLDER / "chat_template.jinja"


def chat_template() -> str:
    """The chat template: Jinja, as ``untemplate.OutputParser.from_template`` takes it."""
    return chat_template_path().read_text(encoding="utf-8")
