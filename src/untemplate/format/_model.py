"""Format: the output of one model family, described as data.

* A Format holds no code and no state: frozen dataclasses of strings, tuples and flags. The parser, the renderer and the
  decoding grammar are derived from it and from nothing else.
* A Format that cannot work cannot be constructed: `FormatError` names the field.

Every field, in `parts`, `calls` and `markers`, has a docstring with its meaning, its default and an example.
``docs/format.md`` is made from them.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

from .._internal.record import record
from ._checks import check
from ._parts import (
    FORMAT_VERSION,
    Arguments,
    Body,
    Channels,
    Content,
    ElementArguments,
    Escape,
    FormatError,
    FormatFields,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    Reasoning,
    TaggedArguments,
    Tools,
    Turn,
)
from ._serialization import from_json, to_json

__all__ = [
    "FORMAT_VERSION",
    "Arguments",
    "Body",
    "Channels",
    "Content",
    "ElementArguments",
    "Escape",
    "Format",
    "FormatError",
    "JsonArguments",
    "JsonBody",
    "LiteralArguments",
    "Marker",
    "NamedBody",
    "Reasoning",
    "TaggedArguments",
    "Tools",
    "Turn",
]


@record()
class Format(FormatFields):
    """The output of one model family."""

    def __post_init__(self) -> None:
        check(self)

    def extend(self, **changes: Any) -> Self:
        """Return a variant with the given fields replaced. ``__`` separates the names of nested fields.

        >>> hermes = Format(name="hermes", tools=(Tools(call_open=Marker("<tool_call>")),))
        >>> hermes.extend(name="x", tools__0__call_open=Marker("<call>")).tools[0].call_open
        Marker(text='<call>', accepted=())

        Raises:
            TypeError: a field does not exist; the message lists the valid ones.
            FormatError: the result cannot work.
        """
        result: Self = _extended(self, {tuple(k.split("__")): v for k, v in changes.items()}, "Format")
        return result

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the Format as JSON, on one line if ``indent`` is ``None``. Fields at their default are left out."""
        return to_json(self, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the Format that `to_json` wrote.

        Raises:
            FormatError: an unknown version, a wrong type, a missing or unknown key, or an invalid value; ``path`` names
                the field.
        """
        return from_json(text, cls)

    @classmethod
    def from_response_template(cls, template: dict[str, Any], *, name: str = "response_template") -> Self:
        """Return the Format for the ``response_template`` of a checkpoint's ``tokenizer_config.json``.

        transformers reads such a template (version 1) to parse outputs.

        Raises:
            FormatError: a part of the template cannot be expressed as a Format; ``path`` names the first one.
        """
        from ._response_template import from_response_template

        return from_response_template(template, name=name, make=cls)

    def to_response_template(self, reader: str = "transformers") -> dict[str, Any]:
        """Return the Format as a ``response_template`` for a checkpoint's ``tokenizer_config.json``.

        transformers (5.13 and later) parses outputs with it. ``untemplate export`` also lists what only unusual outputs
        need and the template cannot hold. Its patterns look ahead, so `from_response_template` cannot read it.

        Args:
            reader: ``transformers`` (TRL reads the same), or ``engine``: vLLM and SGLang have other rules for fields.

        Raises:
            FormatError: the template cannot describe how calls are written; ``path`` names the part.
            ValueError: another ``reader``.
        """
        from ._response_template.export import export

        return export(self, reader).template


def _extended(part: Any, changes: dict[tuple[str, ...], Any], path: str) -> Any:
    """Return ``part`` with every nested change applied; each level is rebuilt once."""
    grouped: dict[str, dict[tuple[str, ...], Any]] = {}
    for keys, value in changes.items():
        grouped.setdefault(keys[0], {})[keys[1:]] = value
    new: dict[str, Any] = {}
    is_tuple = isinstance(part, tuple)
    if not is_tuple and not is_dataclass(part):
        raise TypeError(f"{path} is {part!r}: nothing in it to change")
    valid = [str(i) for i in range(len(part))] if is_tuple else [f.name for f in fields(part)]
    for key, inner in grouped.items():
        if key not in valid:
            raise TypeError(f"{path} has no field {key!r}; it has: {', '.join(valid)}")
        old = part[int(key)] if is_tuple else getattr(part, key)
        new[key] = inner[()] if () in inner else _extended(old, inner, f"{path}.{key}")
    if is_tuple:
        return tuple(new.get(str(i), x) for i, x in enumerate(part))
    return replace(part, **new)
