"""Compiles the JSON bodies of a Format."""

from __future__ import annotations

import re

from ....format import JsonBody as JsonObject
from ....format import Marker
from ..call_syntax import CallSyntax
from ..lexer import GAP, WS
from .body import JsonBody, ObjectBody
from .program import ObjectSyntax
from .undecided import CALL_GOES_ON


def compile_json(syntax: CallSyntax, opener: Marker | None = None) -> JsonBody:
    """Compile JSON arguments after a name. ``opener``: what is written between the two."""
    return JsonBody(syntax.stops, syntax.after, "" if opener is None else opener.text.strip(WS))


def compile_object(syntax: CallSyntax, body: JsonObject) -> ObjectBody:
    """Compile an object that is the whole call."""
    program = ObjectSyntax()
    program.name_keys = frozenset((body.name_key, *body.accepted_name_keys))
    program.arguments_keys = frozenset((body.arguments_key, *body.accepted_arguments_keys))
    program.id_key = body.id_key or ""
    program.nested_key = body.nested_key or ""
    program.name_is_key = body.name_is_key
    program.constant_keys = frozenset(key for key, _ in body.constants)
    own = (program.id_key, program.nested_key, "type")
    program.own_keys = program.name_keys | program.arguments_keys | program.constant_keys | frozenset(own)
    program.variants = syntax.variants
    program.stops = syntax.stops
    # Where the inner object has the key of the arguments, the text after that key does not show which of them it is.
    if not body.name_is_key and body.arguments_key != body.nested_key:
        name, arguments = re.escape(body.name_key), re.escape(body.arguments_key)
        follows = rf'{GAP}"{arguments}"{GAP}:{GAP}(?=\{{)'
        known_id = rf'(?:"{re.escape(body.id_key)}"{GAP}:{GAP}"([^"\\]*)"{GAP},{GAP})?' if body.id_key else "()?"
        named = rf'"{name}"{GAP}:{GAP}"([^"\\]+)"{GAP},'
        program.start = re.compile(rf"\{{{GAP}{known_id}{named}(?:{follows}())?")
        program.arguments_start = re.compile(rf'"({arguments})"{GAP}:{GAP}(?=\{{)')
    if not body.name_is_key:
        syntax.opening = CALL_GOES_ON
    return ObjectBody(program)
