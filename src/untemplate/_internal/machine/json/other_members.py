"""Members of a call object besides its name, id and arguments."""

from __future__ import annotations

import json
from typing import Final, final

from ..arguments.base import CallHandler
from ..ledger import ARGUMENT_TEXT
from ..lexer import Cursor
from .program import ObjectSyntax

_BEGINS: Final = 5
"""Characters of a key by which a damaged one is recognised."""


@final
class OtherMembers:
    """Members of a call object that are its arguments if it has no key for arguments."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.size: int = 0
        self.values: list[tuple[int, int]] = []
        """Where the value of each begins and ends, in characters of the output."""
        self._start: int = 0
        """Where the first of them begins."""

    def take(self, key: str, raw: str, cur: Cursor, call: CallHandler) -> None:
        """Keep a member whose value ends at the cursor."""
        member = f"{json.dumps(key, ensure_ascii=False)}: {raw}"
        self.texts.append(member)
        self.size += len(member)
        if not self.values:
            self._start = call.accounted()
        call.mark(ARGUMENT_TEXT, cur.pos)
        end = call.accounted()
        self.values.append((end - len(raw), end))

    def drop(self, call: CallHandler) -> None:
        """Drop them, because there is a key for arguments: they had been marked as arguments."""
        call.drop_arguments("unused_member", self._start, self.values)

    def put(self, syntax: ObjectSyntax, cur: Cursor, call: CallHandler) -> None:
        """Put them as the arguments."""
        if self._is_damaged(syntax):
            call.report("missing_open", cur.pos, cur.pos)
        else:
            call.report_at("variant_spelling", *self.values[0])
        call.put("{" + ", ".join(self.texts) + "}")

    def put_cut(self, member: str, cur: Cursor, call: CallHandler) -> None:
        """Put them as arguments that are cut, with ``member``, in which the object ends; empty if it ends in none."""
        texts = [*self.texts, member] if member else self.texts
        if texts:
            call.put("{" + ", ".join(texts))
        if member:
            call.mark(ARGUMENT_TEXT, cur.pos)

    def _is_damaged(self, syntax: ObjectSyntax) -> bool:
        """True if the only other member is an object whose key begins as that of the arguments: ``argumentsss``."""
        begins = tuple(key[:_BEGINS] for key in syntax.arguments_keys if len(key) >= _BEGINS)
        texts = self.texts
        return len(texts) == 1 and texts[0].endswith("}") and texts[0][1:].startswith(begins)


def cut_member(sign: str, key: str, raw: str, syntax: ObjectSyntax) -> str:
    """Return the member in which the object ends before ``sign`` (a quote: before or in a key; empty: a value), with
    ``raw`` as its cut key or value. Empty if it ends in none."""
    written = json.dumps(key, ensure_ascii=False)
    if not sign and raw:
        return f"{written}: {raw}"
    if sign == '"' and raw and not any(own.startswith(raw[1:]) for own in syntax.own_keys):
        return raw
    return written if sign in (":", "") and key not in syntax.own_keys else ""
