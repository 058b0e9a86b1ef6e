"""Reads the name of a call, and the id between the name and the arguments.

Both functions return what comes next: ``tags.ID_OPEN`` for an id, ``tags.CALL_CLOSE`` after a call that has ended,
``tags.KEY_OPEN`` for its arguments; NO_MATCH or MORE.
"""

from __future__ import annotations

import re

from . import tags
from .arguments.xml_text import masked_xml, unescape_xml
from .call_arguments import ArgumentsReader
from .call_syntax import CallSyntax, NameSyntax
from .ledger import ID_TEXT, MARKUP, NAME_TEXT
from .lexer import SPACES, WS
from .names import MAX_NAME, merged, offered
from .signals import MORE, NO_MATCH
from .strays import check_spelling


def read_name(call: ArgumentsReader, frame: CallSyntax) -> int:
    """Read the name and what ends it."""
    syntax = frame.name
    assert syntax is not None
    cur = call.context.cur
    text = cur.text
    simple = syntax.simple.match(text, cur.pos)
    if simple is not None and _is_simple(call, syntax, simple):
        start, end = simple.span("end")
        check_spelling(call.context, frame, start, end)
        call_id = text[cur.pos : start] if syntax.is_id else ""
        return _take(call, syntax, simple.group("name"), call_id, syntax.ends.tags[text[start:end]], start, end)
    found = syntax.ends.first(text, cur.pos, cur.pos + MAX_NAME, cur.final)
    end = syntax.ends.end_before(found, text, cur.pos, cur.final)
    raw = text[cur.pos : min(end, cur.pos + MAX_NAME + 1)]
    name = raw.strip(WS)
    illegal = syntax.illegal.search(masked_xml(name) if syntax.escape == "xml" else name)
    if illegal is not None or len(raw) > MAX_NAME:
        cur.pos += 0 if illegal is None else raw.index(name) + illegal.start()
        return NO_MATCH
    if found is None:
        return MORE
    if not name:
        return NO_MATCH
    tag = syntax.ends.tags[found.group()]
    if tag == tags.KEY_CLOSE:
        return _take_merged(call, name, cur.pos + raw.index(name))
    variables = syntax.pattern.split(name)
    written = variables.get("name", name).strip(WS)
    tool = offered(written, syntax.pattern, call.context.tools)
    if tool != written or not syntax.pattern.fits(name):
        begin = cur.pos + raw.index(name)
        call.context.report("variant_spelling", begin, begin + len(name))
    check_spelling(call.context, frame, end, found.end())
    call_id = variables.get("id", "")
    if syntax.is_id and "index" in variables and "name" in variables:
        call_id = name
    if syntax.escape == "xml":
        tool = unescape_xml(tool)
    return _take(call, syntax, tool, call_id, tag, end, found.end())


def _take_merged(call: ArgumentsReader, name: str, begin: int) -> int:
    """Read a name and the first key, whose opener is missing: ``send_command_to_shellcommand</arg_key>``."""
    context = call.context
    cut = merged(name, context.tools)
    if cut < 0:
        context.cur.pos = begin + len(name)
        return NO_MATCH
    context.report("variant_spelling", begin, begin + len(name))
    context.mark(MARKUP, begin)
    context.mark(NAME_TEXT, begin + cut)
    context.cur.pos = begin + cut
    call.begin_at_key(name[:cut])
    return tags.KEY_OPEN


def _is_simple(call: ArgumentsReader, syntax: NameSyntax, simple: re.Match[str]) -> bool:
    """True if nothing is unusual about this name and its end."""
    ends = syntax.ends
    end = simple.group("end")
    cur = call.context.cur
    if end in ends.inner and not cur.final and len(cur.text) - simple.start("end") < ends.longest:
        return False
    tools = call.context.tools
    known = syntax.pattern.plain or not tools.known or simple.group("name") in tools.names
    return known and ends.tags[end] != tags.KEY_CLOSE


def _take(
    call: ArgumentsReader, syntax: NameSyntax, name: str, call_id: str, tag: int, end: int, close_end: int
) -> int:
    """Read a name, from the cursor to ``end``, and what ends it, to ``close_end``."""
    cur = call.context.cur
    if not call.begin_named(name, call_id):
        cur.pos = end
        return NO_MATCH
    call.context.mark(MARKUP, cur.pos)
    call.context.mark(NAME_TEXT, end)
    cur.pos = end
    if tag in syntax.damaged_ends:
        call.report("missing_close", end, end)
    call.opened = tag == tags.NAME_CLOSE
    if tag == tags.NAME_CLOSE:
        cur.pos = close_end
    elif tag == tags.EMPTY_CLOSE:
        cur.pos = close_end
        call.close_empty()
        return tags.CALL_CLOSE
    elif tag == tags.ID_OPEN:
        cur.pos = close_end
        return tags.ID_OPEN
    return tags.KEY_OPEN


def read_id(call: ArgumentsReader, syntax: NameSyntax) -> int:
    """Read the id between name and arguments. It ends at a character that no name has, too."""
    cur = call.context.cur
    found = syntax.id_ends.near(cur.text, cur.pos, cur.pos + MAX_NAME)
    end = len(cur.text) if found is None else found.start()
    written = cur.text[cur.pos : end].rstrip(WS)
    begin = cur.pos + len(written) - len(written.lstrip(WS))
    illegal = syntax.illegal.search(cur.text, begin, cur.pos + len(written))
    if illegal is not None and not (found is None and _begins_id_end(call, syntax, illegal.start())):
        end = illegal.start()
        found = None
    elif end - cur.pos > MAX_NAME:
        return NO_MATCH
    elif found is None:
        return MORE
    call.identify(cur.text[cur.pos : end].strip(WS))
    call.opened = found is not None
    call.context.mark(MARKUP, cur.pos)
    call.context.mark(ID_TEXT, end)
    cur.pos = end if found is None else found.end()
    return tags.KEY_OPEN


def _begins_id_end(call: ArgumentsReader, syntax: NameSyntax, pos: int) -> bool:
    """True if the text ends in the beginning of what ends an id, after white space at ``pos``."""
    text = call.context.cur.text
    spaces = SPACES.match(text, pos)
    return syntax.id_ends.undecided(text, pos if spaces is None else spaces.end())
