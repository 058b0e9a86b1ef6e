"""Regular expressions of tagged calls that are written as the renderer writes them.

Nearly all calls are. One expression reads what follows one another in them, such as the close of a value and the next
key, where the readers would take a step for each. An expression only matches where these steps would do the same:

* no literal in the text can still become a longer one,
* and no marker is a mere variant, which has to be reported.

Whatever does not match is read step by step, so these expressions do not have to cover anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .. import tags
from ..arguments.lookahead import MAX_LOOKAHEAD
from ..call_syntax import SHORT_WORD
from ..lexer import WS, GoesOn, Literals
from .program import TaggedSyntax

_FEW_SPACES: Final = rf"[ \t\r\n]{{0,{MAX_LOOKAHEAD}}}+"
_LINE_END: Final = rf"(?=[ \t\r]{{0,{MAX_LOOKAHEAD - 1}}}+\n)"
"""Matches before the end of a line, as ``ends_line_at`` looks for it."""
_TYPE: Final = r"[a-zA-Z]{0,16}+"
"""Pattern of an attribute's value: JSON's types and ``true`` are shorter. Others are read step by step."""
_NO_KEY: Final = "(?P<key>(?!))(?P<string>)(?P<type>)(?P<before_value>)"
"""The expression of a key that is never read at once. ``TaggedReader.read_regular_key`` looks at the groups of any key,
so each expression of a key has all of them, some empty."""


def compile_fast(syntax: TaggedSyntax) -> None:
    """Compile the fast table of a tagged syntax."""
    fast = syntax.fast
    opener = _literal(syntax, tags.KEY_OPEN, syntax.tags, syntax.value_successors)
    close = _literal(syntax, tags.VALUE_CLOSE, syntax.value_stops, syntax.value_successors)
    key, fast.key_goes_on = _compile_key(syntax)
    if not opener or not close or syntax.escape == "cdata":
        return
    fast.key = re.compile(f"{_FEW_SPACES}(?P<opener>{opener})(?:{key})?")
    fast.name = re.compile(key)
    for outermost in tags.CLOSES:
        if _literal(syntax, outermost, syntax.tags):
            chain = _chain(syntax, outermost)
            follows = f"(?P<opener>{opener})|(?P<chain>{chain})|(?P<rest>.{{0,{syntax.value_successors.longest}}}\\Z)"
            fast.ends[outermost] = re.compile(
                f"(?P<markers>(?P<close>{close}){_FEW_SPACES}(?:{follows}))(?(opener)(?:{key})?)", re.DOTALL
            )


def _chain(syntax: TaggedSyntax, outermost: int) -> str:
    """Return an expression for the closes around a value. After each but the ``outermost`` a new line is enough."""
    expression = ""
    for kind in tags.CLOSES[tags.CLOSES.index(outermost) :: -1]:
        literal = _literal(syntax, kind, syntax.tags, syntax.value_successors)
        if literal:
            expression = rf"{literal}(?:{_LINE_END}|{_FEW_SPACES}{expression})" if expression else literal
    return expression


def _literal(syntax: TaggedSyntax, kind: int, *sets: Literals) -> str:
    """Return an expression for the literals of this kind; may be empty."""
    texts = [text for text, tag in sets[0].tags.items() if tag == kind and text not in syntax.frame.variants]
    return f"(?:{'|'.join(_decided(text, sets) for text in texts)})" if texts else ""


def _decided(text: str, sets: tuple[Literals, ...]) -> str:
    """Return an expression for a literal where it is not, and cannot become, a longer one of these sets."""
    rests = {longer[len(text) :] for literals in sets for longer in literals.tags if longer.startswith(text)} - {""}
    begun = {re.escape(rest[:i]) + r"\Z" for rest in rests for i in range(len(rest))}
    longer = sorted(begun | {re.escape(rest) for rest in rests})
    return re.escape(text) + (f"(?!{'|'.join(longer)})" if longer else "")


def _compile_key(syntax: TaggedSyntax) -> tuple[str, GoesOn | None]:
    """Return an expression for a key that is a word, up to the first character of its value, and the test for text that
    does not complete a key."""
    close = _literal(syntax, tags.KEY_CLOSE, syntax.key_ends)
    attributes = _attributes(syntax)
    # A word alone decides nothing, unless a literal could be a part of it.
    goes_on = syntax.key_ends.word_goes_on if syntax.tags.word_goes_on is not None else None
    if not close or goes_on is None or attributes is None or syntax.type_ends.tags:
        return _NO_KEY, goes_on
    up_to_value = close
    begun = _beginnings(syntax.key_ends.prefixes)
    if syntax.has_value_open:
        begun = f"(?:{begun}|{close}{_FEW_SPACES}{_beginnings(syntax.value_opens.prefixes)})"
        up_to_value += f"{_FEW_SPACES}{_literal(syntax, tags.VALUE_OPEN, syntax.value_opens) or '(?!)'}"
    expression = f"(?P<before_value>{up_to_value})"
    if syntax.trim:
        begun = rf"(?:{begun}|{up_to_value}\Z)"
        expression += rf"(?:\n{{{syntax.trim}}})?"
    for literal, variable in reversed(attributes):
        written = f"{re.escape(literal)}(?P<{variable}>{_TYPE})"
        expression = written + expression
        begun = f"(?:{_beginnings({literal[:i] for i in range(1, len(literal))})}|{written}{begun})"
    missing = {"string", "type"}.difference(variable for _, variable in attributes)
    expression += "".join(f"(?P<{variable}>)" for variable in sorted(missing))
    return f"(?P<key>{SHORT_WORD}){expression}", re.compile(f"{SHORT_WORD}{begun}").match


def _beginnings(prefixes: Iterable[str]) -> str:
    """Return an expression for these texts and the empty one, at the end of the text."""
    return rf"(?:{'|'.join(sorted(map(re.escape, prefixes)))})?\Z"


def _attributes(syntax: TaggedSyntax) -> list[tuple[str, str]] | None:
    """Return what follows the key in its pattern: its attributes ``string`` and ``type`` (as the Format names
    them), each a literal and a variable. None for a pattern that no expression is compiled for."""
    key = syntax.key
    if key.variables[:1] != ["key"] or key.literals[0] or key.literals[-1] or len(key.variables) > 2:
        return None
    attributes = list(zip(key.literals[1:], key.variables[1:], strict=False))
    for literal, variable in attributes:
        if variable not in ("string", "type") or not literal or "\n" in literal or literal.strip(WS) != literal:
            return None
        if syntax.tags.pattern.search(literal, 0) is not None or Literals({literal: 0}).word_goes_on is None:
            return None
    return attributes
