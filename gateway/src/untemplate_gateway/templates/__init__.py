"""Tools for models whose own template knows none: ``generic_tools.jinja`` comes before it."""

from __future__ import annotations

from importlib.resources import files

from untemplate.templates import ChatTemplate

__all__ = ["with_generic_tools"]


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
