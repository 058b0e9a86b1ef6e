r"""Translates a checkpoint's ``response_template`` to a Format.

transformers (5.13 and later, version 1) reads this part of ``tokenizer_config.json`` to turn output into a message.

* The first part that a Format cannot express is an error that names its path. Parts that only concern the resulting
  dict (``defaults``, ``optional``, ``strip``, the types of ``value_parser``) are checked and left out, because the
  tools' schemas give values their types.
* A regular expression is not run but taken apart into literal text, white space (``\s*``, ``\n?``), optional and
  alternative groups, and named groups. Anything else (``[^<]*``, lookahead) cannot be expressed.
* White space that an expression allows between two tags, or around a tagged value, is written as one newline, because
  the models that it is made for write some. A tag that is opened around the name (``<function=``) and never closed by
  the template is written with its close (``</function>``).

Source: huggingface/transformers docs/source/en/chat_response_parsing.md (2026-11-22).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .._parts import Content, FormatError, FormatFields, Marker, Reasoning, Tools, Turn
from .calls import tools_of
from .channels import channels_end, channels_of
from .checks import REASONING_KEYS, Json, check_template, is_implicit
from .markers import check_plain, close_of, content_of, reasoning_of, start_of

_F = TypeVar("_F", bound=FormatFields)

__all__ = ["from_response_template"]


def from_response_template(template: Json, *, name: str, make: Callable[..., _F]) -> _F:
    """Return ``template`` as a Format (that ``make`` makes) with this name.

    Raises:
        FormatError: a wrong type, an unknown key, or a part that a Format cannot express. ``path`` names the first such
            part (``fields.tool_calls.content_args.merge_duplicates``).
    """
    check_template(template)
    fields: dict[str, Json] = template["fields"]
    reasoning_key = next((key for key in fields if key in REASONING_KEYS), "")
    start = start_of(template)
    channels = channels_of(fields, reasoning_key, start)
    try:
        if channels is not None:
            return make(name=name, channels=channels, turn=Turn(start=start, end=channels_end(fields, channels)))
        reasoning: Reasoning | None = None
        content: Content | None = None
        tools: tuple[Tools, ...] = ()
        end: Marker | None = None
        for key, field in fields.items():
            path = f"fields.{key}"
            if key == reasoning_key:
                reasoning = reasoning_of(field, path)
            elif key == "tool_calls":
                tools = (tools_of(field, path),)
            elif is_implicit(field):
                check_plain(field, path)
                end = close_of(field, path)
            else:
                content = content_of(field, path)
        return make(name=name, turn=Turn(start=start, end=end), reasoning=reasoning, content=content, tools=tools)
    except FormatError as error:
        # Any other path is one of the Format: the translated parts do not work together.
        part = error.path.partition(".")[0]
        if part in ("fields", "name"):
            raise
        place = {"reasoning": f"fields.{reasoning_key}", "content": "fields.content", "turn": "fields.content.close"}
        own = place.get(part, "fields.tool_calls" if part.startswith("tools[") else "fields")
        raise FormatError(own, f"does not work in a Format: {error}") from None
