"""The keys of an object that is a call, and expressions for text that the renderer wrote."""

from __future__ import annotations

import re
from typing import final

from ..call_syntax import NOTHING
from ..lexer import NO_LITERALS, Literals


@final
class ObjectSyntax:
    """An object such as ``{"name": "f", "arguments": {}}``."""

    def __init__(self) -> None:
        self.name_keys: frozenset[str] = frozenset()
        self.arguments_keys: frozenset[str] = frozenset()
        self.constant_keys: frozenset[str] = frozenset()
        self.id_key: str = ""
        self.nested_key: str = ""
        self.name_is_key: bool = False
        """True if the object has one key, which is the name."""
        self.variants: frozenset[str] = frozenset()
        """Keys that are accepted, but that the renderer does not write."""
        self.start: re.Pattern[str] = NOTHING
        """Matches the beginning of an object, written as the renderer writes it: its id (1), if it has one, its name
        (2) and a comma. Group 3 matches if the key of the arguments and an object follow."""
        self.stops: Literals = NO_LITERALS
        """Literals that end the object outside strings."""
        self.arguments_start: re.Pattern[str] = NOTHING
        """Matches the key of the arguments (1) before an object."""
        self.own_keys: frozenset[str] = frozenset()
        """All keys that are not arguments."""
