"""Chat templates of this project, for models whose own template does not support tools.

Each is a ``.jinja`` file in this folder. A test checks that it certifies with the Format in `OURS`.
``generic_tools.jinja`` is the exception: it comes before the model's own template (`with_generic_tools`).
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from untemplate.templates import ChatTemplate

__all__ = ["OURS", "our_template", "with_generic_tools"]

OURS: Final = {"llama3_json": "llama3_json", "mistral_parallel": "mistral", "gemma3_pythonic": "pythonic"}
"""Name of the template → name of its Format in the catalogue."""


def our_template(name: str) -> str:
    """Return the source of a template.

    Raises:
        KeyError: the name is unknown.
    """
    if name not in OURS:
        raise KeyError(name)
    return files(__name__).joinpath(f"{name}.jinja").read_text("utf-8")


def with_generic_tools(template: ChatTemplate, place: str) -> ChatTemplate:
    """Return the template with tools in the form of the catalogue's format ``generic``.

    Args:
        place: ``system`` for the system message, ``user`` for the first message.
    """
    source = files(__name__).joinpath("generic_tools.jinja").read_text("utf-8")
    return ChatTemplate(
        f"{{%- set generic_place = '{place}' -%}}{source}{template.source}",
        name=f"{template.name or 'template'} with generic tools",
        special_tokens=template.special_tokens,
        bos_token=template.bos_token,
        eos_token=template.eos_token,
        now=template.now,
    )
