"""Parsers by name: registered ones, and those of the catalogue.

* A name is looked up among the registered parsers first, then in the catalogue, where it may also be two names
  (``hermes+qwen3``) or a file. Nothing is loaded before it is needed.
* An unknown name is an error that lists the valid ones. A name that is taken is an error too, unless forced.
* Any class with the methods can be registered; it need not subclass anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

from .._internal.suggestions import close_names, did_you_mean
from ..format import Format
from ..formats import Kind, UnknownFormatError, half, named, names
from ._delegating import _WrappedParser
from ._format_parsers import parser_class, reasoning_class, tool_class

__all__ = ["ParserManager", "ReasoningParserManager", "ToolParserManager"]

_C = TypeVar("_C", bound=type[Any])


class _Manager:
    """Code that the managers share."""

    _what: ClassVar[str]
    _kind: ClassVar[Kind | None]
    _methods: ClassVar[dict[str, str]]
    """Methods that a class needs, and what vLLM called them earlier."""
    _registered: ClassVar[dict[str, type[Any]]]

    @classmethod
    def register_module(
        cls, name: str | Iterable[str] | None = None, force: bool = False, module: type[Any] | None = None
    ) -> Any:
        """Register a class, as a decorator or (with ``module``) directly.

        Args:
            name: one name or several; by default the name of the class.
            force: True: replace a parser of this name, here or in the catalogue.
            module: the class.

        Raises:
            TypeError: it is not a class, or lacks a method.
            ValueError: the name is taken.
        """

        def register(module: _C) -> _C:
            given = [module.__name__] if name is None else [name] if isinstance(name, str) else list(name)
            for one in given:
                cls._add(one, module, force)
            return module

        if module is not None and not isinstance(module, type):
            raise TypeError(f"module: expected a class, got {type(module).__name__}")
        return register if module is None else register(module)

    @classmethod
    def list_registered(cls) -> list[str]:
        """Return all valid names, sorted."""
        return sorted({*cls._registered, *names(cls._kind)})

    @classmethod
    def _add(cls, name: str, module: type[Any], force: bool) -> None:
        if not isinstance(module, type):
            raise TypeError(f"{name!r}: expected a class, got {type(module).__name__}")
        missing = [
            method
            for method, old in cls._methods.items()
            if not callable(getattr(module, method, None)) and not callable(getattr(module, old, None))
        ]
        if missing:
            raise TypeError(f"{name!r}: {module.__name__} is no {cls._what}: it has no {', '.join(missing)}")
        if not force and (name in cls._registered or name in names(cls._kind)):
            raise ValueError(f"{cls._what} {name!r} exists already; register it with force=True to replace it")
        cls._registered[name] = module

    @classmethod
    def registered(cls, name: str | None) -> type[Any] | None:
        """Return the class registered under a name; ``None`` if the name is the catalogue's or unknown."""
        return None if name is None else cls._registered.get(name)

    @classmethod
    def _format(cls, name: str) -> Format:
        """Return the Format of which this half is used."""
        assert cls._kind is not None
        try:
            return half(cls._kind, name, files=True)
        except UnknownFormatError:
            raise cls._unknown(name) from None

    @classmethod
    def _unknown(cls, name: str) -> ValueError:
        valid = cls.list_registered()
        hint = did_you_mean(close_names(name, valid)) or ";"
        return ValueError(f"unknown {cls._what} {name!r}{hint} valid names: {', '.join(valid)}")


class ReasoningParserManager(_Manager):
    """Reasoning parsers by name."""

    _what = "reasoning parser"
    _kind = "reasoning"
    _methods: ClassVar[dict[str, str]] = {
        "extract_reasoning": "extract_reasoning_content",
        "extract_reasoning_streaming": "extract_reasoning_content_streaming",
    }
    _registered: ClassVar[dict[str, type[Any]]] = {}

    @classmethod
    def get_reasoning_parser(cls, name: str) -> type[Any]:
        """Return the class of this name, to be called with a tokenizer.

        Raises:
            ValueError: an unknown name; suggests the nearest and lists the valid ones.
        """
        found = cls._registered.get(name)
        if found is not None:
            return found
        return reasoning_class(cls._format(name))


class ToolParserManager(_Manager):
    """Tool parsers by name."""

    _what = "tool parser"
    _kind = "tool"
    _methods: ClassVar[dict[str, str]] = dict.fromkeys(("extract_tool_calls", "extract_tool_calls_streaming"), "")
    _registered: ClassVar[dict[str, type[Any]]] = {}

    @classmethod
    def get_tool_parser(cls, name: str) -> type[Any]:
        """Return the class of this name, to be called with a tokenizer.

        Raises:
            ValueError: an unknown name; suggests the nearest and lists the valid ones.
        """
        found = cls._registered.get(name)
        if found is not None:
            return found
        return tool_class(cls._format(name))


class ParserManager(_Manager):
    """Parsers for reasoning and tool calls by name, or by the names of their halves."""

    _what = "parser"
    _kind = None
    _methods: ClassVar[dict[str, str]] = dict.fromkeys(("parse", "parse_delta"), "")
    _registered: ClassVar[dict[str, type[Any]]] = {}

    @classmethod
    def get_parser(
        cls,
        tool_parser_name: str | None = None,
        reasoning_parser_name: str | None = None,
        enable_auto_tools: bool = False,
        model_name: str | None = None,
        is_harmony: bool = False,
        tool_strict_level: str = "auto",
        tokenizer: Any = None,
    ) -> type[Any] | None:
        """Return the class of a parser, to be called with a tokenizer; ``None`` without any name.

        The arguments after the names are those of vLLM. They have no effect: calls are found either way.

        Args:
            tool_parser_name: a tool parser. Alone it may also be any name of :meth:`list_registered`: a registered
                parser, or a catalogue name for reasoning, calls or both.
            reasoning_parser_name: a reasoning parser.

        Raises:
            ValueError: an unknown name; suggests the nearest and lists the valid ones.
            IncompatibleFormatsError: (a ValueError) two names of the catalogue that cannot be combined.
        """
        tools, reasoning = tool_parser_name, reasoning_parser_name
        if tools is None and reasoning is None:
            return None
        if reasoning is None and tools is not None and not ToolParserManager.registered(tools):
            if tools in cls._registered:
                return cls._registered[tools]
            try:
                return parser_class(named(tools, files=True))
            except UnknownFormatError:
                raise cls._unknown(tools) from None
        halves = {
            "reasoning_parser_cls": cls.get_reasoning_parser(reasoning),
            "tool_parser_cls": cls.get_tool_parser(tools),
        }
        if tools is not None and not cls.is_registered(tools, reasoning):
            return parser_class(named(tools, reasoning=reasoning, files=True))
        label = "+".join(part for part in (tools, reasoning) if part)
        return type("Parser", (_WrappedParser,), {**halves, "__doc__": f"``{label}``.", "__module__": __name__})

    @classmethod
    def is_registered(cls, tool_parser_name: str | None, reasoning_parser_name: str | None) -> bool:
        """True if :meth:`get_parser` returns a parser that is not the catalogue's."""
        if ToolParserManager.registered(tool_parser_name) or ReasoningParserManager.registered(reasoning_parser_name):
            return True
        return reasoning_parser_name is None and cls.registered(tool_parser_name) is not None

    @classmethod
    def get_reasoning_parser(cls, reasoning_parser_name: str | None) -> type[Any] | None:
        """As :meth:`ReasoningParserManager.get_reasoning_parser`; ``None`` without a name."""
        name = reasoning_parser_name
        return None if name is None else ReasoningParserManager.get_reasoning_parser(name)

    @classmethod
    def get_tool_parser(
        cls, tool_parser_name: str | None = None, enable_auto_tools: bool = False, model_name: str | None = None
    ) -> type[Any] | None:
        """As :meth:`ToolParserManager.get_tool_parser`; ``None`` without a name. The other arguments have no effect."""
        return None if tool_parser_name is None else ToolParserManager.get_tool_parser(tool_parser_name)
