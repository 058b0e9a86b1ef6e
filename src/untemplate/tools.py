"""Tools of a request, read once.

A tool is a dict, a pydantic model, a msgspec struct or any object with the same attributes, in one of four shapes:

* Chat Completions: ``{"type": "function", "function": {"name": …, "parameters": …, "strict": …}}``;
* Responses: ``{"type": "function", "name": …, "parameters": …, "strict": …}``;
* Anthropic: ``{"name": …, "input_schema": …}``;
* MCP: ``{"name": …, "inputSchema": …}``.

``None`` instead of a list means that the tools are not known: any name is a tool's. An empty list means that there are
none. Schemas are only looked into when a value needs the type of a parameter: most tools of a request are never called.
Equal lists of plain dicts are read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from threading import Lock
from typing import Any, Final, final

import msgspec

from ._internal.jsontext.coercion import Param
from ._internal.schemas.fits import Fits, fits_of
from ._internal.schemas.reading import SchemaNode, SchemaTypes, properties

__all__ = ["Tool", "ToolSet", "find_tool"]

_ANYTHING: Final = SchemaNode(None, None)
_OTHER_KEYS: Final = ("input_schema", "inputSchema")
_MOST_SHARED: Final = 64
_MAX_SHARED: Final = 64 * 1024
"""Bytes of a list of tools that is kept. With 64 of them that is 4 MB; those of coding agents have about 50 KB."""
_SHARED: Final[dict[bytes, ToolSet]] = {}
"""Tools that were read before, by their JSON: requests of one application bring the same list again and again."""
_SHARING: Final = Lock()


@final
class Tool:
    """One tool of a request.

    Attributes:
        name: its name.
        schema: the JSON schema of its arguments; ``None``: any object.
        strict: true if its arguments must follow the schema.
    """

    __slots__ = (
        "_fits",
        "_fits_read",
        "_other",
        "_other_read",
        "_params",
        "_place",
        "_properties",
        "name",
        "schema",
        "strict",
    )

    name: str
    schema: Mapping[str, Any] | None
    strict: bool
    _place: tuple[int, bool, str]
    _properties: dict[str, object] | None
    _params: dict[str, Param | None]
    _other: Param | None
    _other_read: bool
    _fits: Fits | None
    _fits_read: bool

    def __init__(self, name: str, schema: Mapping[str, Any] | None, strict: bool, place: tuple[int, bool, str]) -> None:
        """``place``: index in the list; true if inside ``function``; key of the schema."""
        self.name = name
        self.schema = schema
        self.strict = strict
        self._place = place
        self._properties = None
        self._params = {}
        self._other = None
        self._other_read = False
        self._fits = None
        self._fits_read = False

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    @property
    def path(self) -> str:
        """The field that ``schema`` was read from, for messages (``tools[0].function.parameters``)."""
        i, nested, key = self._place
        return f"tools[{i}].{'function.' if nested else ''}{key}"

    def properties(self) -> dict[str, object]:
        """Return name and schema of each parameter, in order; empty if the schema lists none."""
        if self._properties is None:
            self._properties = properties(self.schema, self.schema)
        return self._properties

    def fits(self, arguments: dict[str, object]) -> bool:
        """True if arguments certainly fit the schema; if not, the full check decides."""
        if not self._fits_read:
            self._fits = fits_of(self.schema)
            self._fits_read = True
        return self._fits is not None and self._fits(arguments)

    def param(self, key: str) -> Param | None:
        """Return the types of one parameter; ``None`` if no schema names any: its text is a string.

        Keys outside ``properties`` have the schema in ``additionalProperties``, if there is one.
        """
        if key in self._params:
            return self._params[key]
        schema = self.properties().get(key)
        if schema is not None:
            param = self._params[key] = self._read(schema)
            return param
        if not self._other_read:
            self._other = None if self.schema is None else self._read(self.schema.get("additionalProperties"))
            self._other_read = True  # last: another thread must not see it before
        return self._other

    def _read(self, schema: object) -> Param | None:
        if not isinstance(schema, Mapping):
            return None
        found = SchemaTypes(schema, self.schema)
        return Param(found.listed(), found.strings) if found.types else None


@final
class ToolSet:
    """The tools of one request. Safe to share between threads, and cheap to pass on: a ToolSet of a ToolSet is equal.

    Attributes:
        known: true if tools were given at all; if not, any name is a tool's.
        names: the tools' names.

    Raises:
        ValueError: a tool in an unknown shape; the message begins with the field (``tools[1].function.name``). A tool
            of another type than ``function`` without a name (``web_search`` of Responses) is left out.
    """

    known: bool
    names: frozenset[str]
    _tools: dict[str, Tool]

    def __init__(self, tools: Any = None) -> None:
        """``tools``: a list of tools in any of the shapes above; ``None``: not known. Of two tools with one name the
        first counts."""
        if isinstance(tools, ToolSet):
            self.known = tools.known
            self.names = tools.names
            self._tools = tools._tools
            return
        self.known = tools is not None
        self._tools = {}
        # Asking the ABCs costs more than all else here, and a tuple of classes more than one.
        is_list = type(tools) is list or tools is None or isinstance(tools, (list, tuple))
        if not is_list and (isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable)):
            raise ValueError(f"tools: expected a list, got {type(tools).__name__}")
        known = _SHARED.get(key) if (key := _content(tools)) else None
        if known is not None:
            self.names = known.names
            self._tools = known._tools
            return
        # What is shared must not change with the list that it was read from.
        for i, entry in enumerate((msgspec.json.decode(key) if key else tools) or ()):
            tool = _read(entry, i)
            if tool is not None:
                self._tools.setdefault(tool.name, tool)
        self.names = frozenset(self._tools)
        if key:
            _share(key, self)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def get(self, name: str) -> Tool | None:
        """Return the tool of this name, if there is one."""
        return self._tools.get(name)

    def param(self, name: str, key: str) -> Param | None:
        """Return the types of the parameter ``key`` of the tool ``name``; ``None`` if there is no schema for it."""
        tool = self._tools.get(name)
        return None if tool is None else tool.param(key)

    def node(self, name: str) -> SchemaNode:
        """Return the schema of the arguments of the tool ``name`` as a place; one without limits if it is unknown."""
        tool = self._tools.get(name)
        return _ANYTHING if tool is None else SchemaNode(tool.schema, tool.schema)

    def has(self, name: str, key: str) -> bool:
        """True if the tool ``name`` is offered and lists the parameter ``key``."""
        tool = self._tools.get(name)
        return tool is not None and key in tool.properties()

    def positional(self, name: str, i: int) -> str | None:
        """Return the name of the tool's parameter at index ``i``, in the order of its properties."""
        tool = self._tools.get(name)
        keys = [] if tool is None else list(tool.properties())
        return keys[i] if 0 <= i < len(keys) else None


def _content(tools: object) -> bytes:
    """Return the JSON of a list of tools that other requests may have as well; nothing if it is not plain, or long."""
    if type(tools) is not list or set(map(type, tools)) != {dict}:
        return b""
    try:
        text = msgspec.json.encode(tools)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return b""
    return text if len(text) <= _MAX_SHARED else b""


def _share(key: bytes, read: ToolSet) -> None:
    with _SHARING:
        while len(_SHARED) >= _MOST_SHARED:
            _SHARED.pop(next(iter(_SHARED)))
        _SHARED[key] = read


def shared_tools(tools: Any) -> ToolSet:
    """Return the tools of a request. Equal lists of plain dicts are one ToolSet."""
    if isinstance(tools, ToolSet):
        return tools
    known = _SHARED.get(key) if (key := _content(tools)) else None
    return ToolSet(tools) if known is None else known


def find_tool(tools: Any, name: str) -> Tool | None:
    """Return the first of ``tools`` called ``name``; tools in an unknown shape are skipped."""
    if isinstance(tools, ToolSet):
        return tools.get(name)
    for i, entry in enumerate(tools or ()):
        function = _field(entry, "function")
        if _field(entry if function is None else function, "name") == name:
            try:
                return _read(entry, i)
            except ValueError:
                return Tool(name, None, False, (i, function is not None, "parameters"))
    return None


def _read(entry: object, i: int) -> Tool | None:
    """Read one tool; ``None`` for a tool of the server that has no name."""
    function = entry.get("function") if type(entry) is dict else _field(entry, "function")
    nested = function is not None
    part = function if nested else entry
    field = part.get if type(part) is dict else partial(_field, part)
    name = field("name")
    if not isinstance(name, str) or not name:
        kind = _field(entry, "type")
        if name is None and isinstance(kind, str) and kind != "function":
            return None
        raise ValueError(_no_name(part, name, f"tools[{i}].function" if nested else f"tools[{i}]"))
    key = "parameters"
    schema = field(key)
    if schema is None:
        for other in _OTHER_KEYS:
            found = field(other)
            if found is not None:
                key, schema = other, found
                break
    tool = Tool(name, None, field("strict") is True, (i, nested, key))
    tool.schema = schema if schema is None or isinstance(schema, dict) else _schema(schema, tool.path)
    return tool


def _no_name(part: object, name: object, path: str) -> str:
    """Return the error for a tool without a usable name."""
    if part is None or isinstance(part, (str, bytes, int, float, list, tuple)):
        return f"{path}: expected an object, got {type(part).__name__}"
    if name is None:
        return f"{path}.name: is required"
    return f"{path}.name: {'is empty' if name == '' else f'expected a string, got {type(name).__name__}'}"


def _schema(schema: Any, path: str) -> Mapping[str, Any]:
    """Return a schema as a mapping; some clients have a class for it."""
    if isinstance(schema, Mapping):
        return schema
    dump = getattr(schema, "model_dump", None)
    if dump is not None:
        schema = dump(by_alias=True, exclude_none=True)
    elif hasattr(schema, "__struct_fields__"):
        import msgspec

        schema = msgspec.to_builtins(schema)
    if not isinstance(schema, Mapping):
        raise ValueError(f"{path}: expected an object (a JSON schema), got {type(schema).__name__}")
    return schema


def _field(part: object, key: str) -> Any:
    # A dict is the most common case, and asking the ABC costs more than everything else here.
    return part.get(key) if type(part) is dict or isinstance(part, Mapping) else getattr(part, key, None)
