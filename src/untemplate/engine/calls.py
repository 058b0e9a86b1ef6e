"""Reads calls as a CallGrammar describes them: section, list, call, name, arguments.

Rules of this module:

* A call *commits* when its name is complete and a legal continuation follows. Until then the reader says nothing and
  may answer FAILED: the host gives everything back as text.
* After that the call stands. JSON that breaks goes on raw, other arguments drop what fits nowhere, and reading goes on
  at the close, at the next opener or at the end.
* The reader looks only for what its phase can leave by, and leaves white space after a call to the host, which knows
  whether content or a marker follows.
"""

from __future__ import annotations

import re
from typing import Final, final

from .arguments.base import BROKEN, DONE
from .arguments.envelope import Caller, Envelope
from .arguments.json_value import JsonText, JsonValue
from .arguments.literal import LiteralArguments
from .arguments.tagged import TaggedArguments, unescape_xml
from .coercion import ToolSet
from .ledger import ARGUMENT_TEXT, DROPPED, ID_TEXT, MARKUP, NAME_TEXT
from .lexer import MORE as LITERAL_MORE
from .lexer import NO, WS, Cursor, Literals
from .program import (
    AT_BARE,
    AT_CALL,
    AT_NAME,
    AT_SECTION,
    IS_ARGUMENTS_CLOSE,
    IS_CALL_CLOSE,
    IS_CALL_OPEN,
    IS_ID_OPEN,
    IS_KEY_CLOSE,
    IS_KEY_OPEN,
    IS_LIST_CLOSE,
    IS_LIST_OPEN,
    IS_NAME_CLOSE,
    IS_NAME_OPEN,
    IS_SECTION_CLOSE,
    IS_SECTION_OPEN,
    IS_SEPARATOR,
    JSON_BODY,
    NAMED_JSON,
    NAMED_LITERAL,
    NAMED_TAGGED,
    CallGrammar,
)

# What step() answers.
MORE: Final = 0
FAILED: Final = 1
LEFT: Final = 2
"""The calls are over; the cursor stands at the first character that is not theirs."""
AGAIN: Final = 3
"""(inside) The phase has changed; go on."""

# Phases.
CHOOSE: Final = 0
BETWEEN: Final = 1
BODY: Final = 2
NAME: Final = 3
ID: Final = 4
BEFORE_ARGUMENTS: Final = 5
ENVELOPE: Final = 6
ARGUMENTS: Final = 7
RAW: Final = 8
AFTER: Final = 9

MAX_NAME: Final = 512
"""Longest name, header or id. What is longer is text."""
_CLOSERS: Final = (IS_CALL_CLOSE, IS_ARGUMENTS_CLOSE, IS_SECTION_CLOSE)
_STRAY: Final = re.compile(r"[\]})\"'`,;]{1,8}[ \t\r\n]{0,64}")
_NAME_START: Final = re.compile(r"[^\x00-\x20<>{}()\[\]\"'`,;=]")
_ARGUMENT_START: Final = re.compile(r"[ \t\r\n]*(?:\)|[^\W\d]\w*[ \t\r\n]*=(?=[^=]))")
_ARGUMENT_PREFIX: Final = re.compile(r"[ \t\r\n]*(?:[^\W\d]\w*[ \t\r\n]*=?)?\Z")


class Host:
    """The machine, as the reader sees it."""

    cur: Cursor
    tools: ToolSet
    checks: bool
    """Whether token ids authorise markers."""
    speculating: bool
    drafting: bool
    """Whether the call being read stands inside reasoning, and may be none."""
    judging: bool
    """Whether the call being read is kept back until it is whole."""
    max_held: int

    def authorised(self, start: int, end: int) -> bool:
        """Whether the literal at ``cur.text[start:end]`` may be a marker."""
        return True

    def proven(self, start: int, end: int) -> bool:
        """Whether a token id says that it is one."""
        return False

    def speculate(self, opener: int) -> None:
        """What is read from the cursor on, an opener of so many characters first, may have to be given back."""

    def settle(self) -> None:
        """What has been read need not be given back after all."""

    def begin_call(self, name: str, call_id: str) -> None:
        """A call commits."""

    def arguments(self, text: str) -> None: ...

    def end_call(self, whole: bool, valid: bool) -> None: ...

    def call_over(self) -> None:
        """The call and what closes it have been read."""

    def model_id(self, call_id: str) -> None: ...

    def pend(self, end: int) -> None:
        """White space up to ``end`` that belongs to whatever follows."""

    def unpend(self) -> None:
        """What follows is markup: the white space before it belongs to that."""

    def mark(self, kind: int, pos: int) -> None:
        """Everything before ``cur.text[pos]`` that has not been accounted for is of this kind."""

    def report(self, code: str, start: int, end: int) -> None: ...

    def accounted(self) -> int:
        """Where the part of the output that is accounted for ends, in characters of the output."""
        return 0

    def disown(self, start: int) -> None:
        """What has been marked as arguments since then was none: it is dropped."""


_NO_GRAMMAR: Final = CallGrammar(JSON_BODY, "")


@final
class CallReader(Caller):
    """Reads one section of calls, or one call where there are no sections."""

    def __init__(self, host: Host) -> None:
        self.host: Host = host
        self.grammar: CallGrammar = _NO_GRAMMAR
        self.in_section: bool = False
        self.committed: bool = False
        """Whether the call being read has committed."""
        self.any: bool = False
        """Whether any call has committed since the calls were entered."""
        self.section_is_text: bool = False
        """Whether the opener of the section has become text, and so will its close."""
        self._list_is_text: bool = False
        self._list_is_new: bool = False
        """Whether no call of the list has been kept yet."""
        self._candidates: list[tuple[CallGrammar, int]] = []
        self._weak: bool = False
        self._phase: int = BETWEEN
        self._in_list: bool = False
        self._name: str = ""
        self._id: str = ""
        self._wrote: bool = False
        self._envelope: Envelope | None = None
        self._json: JsonValue | None = None
        self._text: JsonText | None = None
        self._tagged: TaggedArguments | None = None
        self._literal: LiteralArguments | None = None
        self._whole: bool = False
        self._valid: bool = False
        self._raw_space: list[str] = []

    # -- entering -----------------------------------------------------------------------------------------------

    def enter(self, candidates: list[tuple[CallGrammar, int]], weak: bool) -> None:
        """The cursor stands behind the opener (for bare calls: at their first character). Each candidate is a grammar
        and where it is entered. ``weak``: the opener proves little, the tool must be an offered one."""
        self._candidates = candidates
        self._weak = weak
        self._in_list = False
        self.any = False
        self.committed = False
        if len(candidates) == 1:
            self._chosen(candidates[0][0], candidates[0][1])
        else:
            self._phase = CHOOSE

    def enter_arguments(self, grammar: CallGrammar, name: str, raw: bool) -> None:
        """A header has named the call; its arguments follow. ``raw``: whatever they look like, so it commits now."""
        self.grammar = grammar
        self._weak = False
        self._in_list = False
        self.any = False
        self.committed = False
        self._name = name
        self._id = ""
        self._phase = BEFORE_ARGUMENTS
        if raw:
            self._commit()

    def given_back(self, section: bool) -> None:
        """The call has become text, all that was read since the last one with it. ``section``: the section's opener as
        well. Calls that follow are still calls."""
        if section:
            self.in_section = True
            self.section_is_text = True
        self._list_is_text = self._list_is_text or self._list_is_new
        self._list_is_new = False

    def _chosen(self, grammar: CallGrammar, entry: int) -> None:
        self.grammar = grammar
        if entry == AT_CALL:
            self._begin_body()
        elif entry == AT_NAME:
            self._begin_name()
        else:
            self.in_section = self.in_section or entry == AT_SECTION
            self._phase = BETWEEN

    def _begin_body(self) -> None:
        self.committed = False
        self._name = ""
        self._id = ""
        self._phase = BODY

    def _begin_name(self) -> None:
        self.committed = False
        self._name = ""
        self._id = ""
        self._phase = NAME

    # -- reading ------------------------------------------------------------------------------------------------

    def step(self) -> int:
        """Reads as far as the text decides."""
        while True:
            phase = self._phase
            if phase == ARGUMENTS:
                answer = self._read_arguments()
            elif phase == ENVELOPE:
                answer = self._read_envelope()
            elif phase == BETWEEN:
                answer = self._read_between()
            elif phase == NAME:
                answer = self._read_name()
            elif phase == BEFORE_ARGUMENTS:
                answer = self._read_before_arguments()
            elif phase == AFTER:
                answer = self._read_after()
            elif phase == BODY:
                answer = self._read_body()
            elif phase == RAW:
                answer = self._read_raw()
            elif phase == ID:
                answer = self._read_id()
            else:
                answer = self._choose()
            if answer != AGAIN:
                return answer

    def passes(self, text: str) -> bool:
        """The short way for text in the middle of a long string argument; False: nothing has happened."""
        if self._phase == ENVELOPE:
            return self._envelope is not None and self._envelope.passes(text)
        if self._phase != ARGUMENTS:
            return False
        if self._json is not None:
            return self._json.passes(text, self)
        if self._tagged is not None:
            return self._tagged.passes(text, self)
        return self._literal is not None and self._literal.passes(text, self)

    def finish(self) -> bool:
        """The output has ended. False: what is being read is no call and must be given back."""
        envelope = self._envelope if self._phase == ENVELOPE else None
        if self.committed:
            if envelope is not None:
                envelope.cut(self.host.cur, self)
        else:
            if self._phase == AFTER:
                return True
            if self._phase == BETWEEN:
                return not self.host.speculating or (self.any and self.host.drafting)
            if envelope is None or not envelope.cut(self.host.cur, self):
                return False
        if self._phase in (AFTER, BETWEEN):
            return True
        if self._tagged is not None and not self._whole:
            self._tagged.cut(self.host.cur, self)
        if self._literal is not None and not self._whole:
            self._literal.cut(self.host.cur, self)
        if self._envelope is not None and self._envelope.whole:
            self._whole = True
            self._valid = self._envelope.valid
        self._end()
        return True

    def _at(self, literals: Literals) -> int:
        """Where the literal at the cursor ends; NO or MORE."""
        cur = self.host.cur
        end = literals.at(cur.text, cur.pos, cur.final)
        if end >= 0 and self.host.checks and not self.host.authorised(cur.pos, end):
            return NO
        return end

    def _skip_spaces(self) -> bool:
        """Whether any text follows the white space at the cursor."""
        cur = self.host.cur
        end = cur.spaces()
        if end > cur.pos:
            between = self._phase == AFTER and self.host.judging
            if (self.host.speculating or not self.any) and not between:
                cur.pos = end
            else:
                self.host.pend(end)
        return end < len(cur.text)

    def _choose(self) -> int:
        """Which of the grammars that share an opener is meant: the first that what follows fits."""
        cur = self.host.cur
        cur.pos = cur.spaces()
        for grammar, entry in self._candidates:
            if entry == AT_SECTION:
                fits = self._fits(grammar.after_section)
            elif entry == AT_BARE:
                fits = self._fits(grammar.bare_start)
            else:
                fits = self._fits(grammar.after_call)
            if fits == LITERAL_MORE and not self.host.cur.final:
                return MORE
            if fits >= 0:
                self._chosen(grammar, entry)
                return AGAIN
        return FAILED

    def _fits(self, sequences: list[list[Literals]]) -> int:
        cur = self.host.cur
        text = cur.text
        answer = NO
        for sequence in sequences:
            pos = cur.pos
            fits = 0
            for literals in sequence:
                while pos < len(text) and text[pos] in WS:
                    pos += 1
                if pos >= len(text):
                    fits = LITERAL_MORE
                    break
                if literals.empty:
                    fits = 0 if _NAME_START.match(text, pos) is not None else NO
                    break
                fits = literals.at(text, pos, cur.final)
                if fits < 0:
                    break
                pos = fits
            if fits >= 0:
                return 0
            if fits == LITERAL_MORE:
                answer = LITERAL_MORE
        return answer

    def _read_between(self) -> int:
        """Before, between and after the calls of a section or list."""
        grammar = self.grammar
        host = self.host
        cur = host.cur
        if not self._skip_spaces():
            return MORE
        end = self._at(grammar.between)
        if end == LITERAL_MORE:
            return MORE
        if end >= 0:
            tag = grammar.between.tags[cur.text[cur.pos : end]]
            if tag in (IS_CALL_OPEN, IS_NAME_OPEN):
                self._open(end)
                if tag == IS_CALL_OPEN:
                    self._begin_body()
                else:
                    self._begin_name()
                return AGAIN
            if tag == IS_SEPARATOR:
                if not self.any:
                    return FAILED
                self._open(end)
                return AGAIN
            if tag == IS_LIST_OPEN and not self._in_list and not self.any:
                self._in_list = True
                self._list_is_text = False
                self._list_is_new = True
                self._consume(end)
                return AGAIN
            if tag == IS_LIST_CLOSE and self._in_list:
                self._in_list = False
                if self._list_is_text:
                    return self._leave()
                self._settle(end)
                if grammar.section_closes and self.in_section:
                    return AGAIN
                self.in_section = False
                return self._leave()
            if tag == IS_SECTION_CLOSE and self.in_section:
                if self.section_is_text:
                    return self._leave()
                self._settle(end)
                self.in_section = False
                return self._leave()
            if tag == IS_SECTION_OPEN and self.any:
                self._settle(end)
                return AGAIN
        if self._may_begin(cur.text[cur.pos]):
            self._open(cur.pos)
            if grammar.body == JSON_BODY:
                self._begin_envelope()
            else:
                self._begin_name()
            return AGAIN
        if not self.any or host.speculating:
            return FAILED
        # What stands between calls and is none: content. Calls and the section's end are still looked for.
        return LEFT

    def _may_begin(self, c: str) -> bool:
        """Whether a call may begin with this character, there being no marker for it."""
        grammar = self.grammar
        if grammar.call_opens and not grammar.call_optional:
            return False
        if grammar.list_opens and not self._in_list and not grammar.list_optional:
            return False
        # Behind a first call outside a list the next needs a marker or a separator.
        if self.any and not self.host.speculating and not self._in_list and not self.in_section:
            return False
        if grammar.body == JSON_BODY:
            return c == "{"
        return not grammar.name_opens and _NAME_START.match(c) is not None

    def _open(self, end: int) -> None:
        """Something that may turn out to be no call begins here."""
        host = self.host
        if not host.speculating:
            host.speculate(end - host.cur.pos)
        host.cur.pos = end

    def _consume(self, end: int) -> None:
        host = self.host
        host.cur.pos = end
        if not host.speculating or host.judging:
            host.unpend()
        if not host.speculating:
            host.mark(MARKUP, end)

    def _settle(self, end: int) -> None:
        """Markup that ends a list or section. Before the first call it proves nothing and is given back."""
        self.host.cur.pos = end
        if self.any:
            self.host.settle()
        self._consume(end)

    def _leave(self) -> int:
        return LEFT if self.any else FAILED

    def _read_body(self) -> int:
        """Behind the call's opener."""
        grammar = self.grammar
        cur = self.host.cur
        if not self._skip_spaces():
            return MORE
        if grammar.name_opens:
            end = self._at(grammar.before_body)
            if end == LITERAL_MORE:
                return MORE
            if end < 0:
                return FAILED
            cur.pos = end
            self._begin_name()
            return AGAIN
        if grammar.body == JSON_BODY:
            if cur.text[cur.pos] != "{":
                return FAILED
            self._begin_envelope()
            return AGAIN
        self._begin_name()
        return AGAIN

    # -- the name -----------------------------------------------------------------------------------------------

    def _read_name(self) -> int:
        grammar = self.grammar
        cur = self.host.cur
        text = cur.text
        found = grammar.name_ends.near(text, cur.pos, cur.pos + MAX_NAME)
        if found is not None and not cur.final and grammar.name_ends.held(text, cur.pos, found.start()) >= 0:
            found = None
        end = found.start() if found is not None else len(text) if cur.final else grammar.name_ends.tail(text, cur.pos)
        raw = text[cur.pos : min(end, cur.pos + MAX_NAME + 1)]
        name = raw.strip(WS)
        illegal = grammar.name_illegal.search(name)
        if illegal is not None or len(raw) > MAX_NAME:
            cur.pos += 0 if illegal is None else raw.index(name) + illegal.start()
            return FAILED
        if found is None:
            return MORE
        if not name:
            return FAILED
        tag = grammar.name_ends.tags[found.group()]
        if tag == IS_KEY_CLOSE:
            return self._begin_merged(name, cur.pos + raw.index(name))
        variables = grammar.name.split(name)
        self._name = self._known_name(variables.get("name", name).strip(WS))
        self._id = variables.get("id", "")
        if not grammar.name.plain and "index" in variables and "name" in variables and "." in grammar.name.pattern:
            self._id = name
        if grammar.unescape:
            self._name = unescape_xml(self._name)
        if not self._name or not self._allowed():
            cur.pos = end
            return FAILED
        self.host.mark(MARKUP, cur.pos)
        self.host.mark(NAME_TEXT, end)
        cur.pos = end
        self._phase = BEFORE_ARGUMENTS
        if tag == IS_NAME_CLOSE:
            cur.pos = found.end()
        elif tag == IS_ID_OPEN:
            cur.pos = found.end()
            self._phase = ID
        return AGAIN

    def _begin_merged(self, word: str, start: int) -> int:
        """The word ends as a key does: it is the name of an offered tool and that of one of its parameters, and nothing
        between them (``send_command_to_shellcommand</arg_key>``), or no call."""
        tools = self.host.tools
        ways = [i for i in range(1, len(word)) if tools.has(word[:i], word[i:])]
        if len(ways) != 1:
            self.host.cur.pos = start + len(word)
            return FAILED
        self._name = word[: ways[0]]
        self.host.mark(MARKUP, start)
        self.host.cur.pos = start + ways[0]
        self.host.mark(NAME_TEXT, start + ways[0])
        self._commit()
        self._tagged = TaggedArguments(self.grammar, tools, self._name)
        self._tagged.begin_key()
        self._phase = ARGUMENTS
        return AGAIN

    def _known_name(self, name: str) -> str:
        """Where the name does not fit its pattern (``functionsexec5`` for ``functions.exec:5``) and only without the
        pattern's letters and digits is it an offered one: that one."""
        pattern = self.grammar.name
        tools = self.host.tools
        if pattern.plain or not tools.known or name in tools.names:
            return name
        prefix = pattern.literals[0].rstrip(".:/_-")
        bare = name[len(prefix) :] if prefix and name.startswith(prefix) else name
        bare = bare.lstrip(".:/_-")
        for candidate in (bare, re.sub(r"[.:_-]?\d+$", "", bare)):
            if candidate in tools.names:
                return candidate
        return name

    def _allowed(self) -> bool:
        """A call with no marker to speak of must be for an offered tool, where the tools are known."""
        tools = self.host.tools
        return not (self.grammar.bare or self._weak) or not tools.known or self._name in tools.names

    def _read_id(self) -> int:
        grammar = self.grammar
        cur = self.host.cur
        found = grammar.id_ends.near(cur.text, cur.pos, cur.pos + MAX_NAME)
        end = len(cur.text) if found is None else found.start()
        if end - cur.pos > MAX_NAME:
            return FAILED
        if found is None:
            return MORE
        self._id = cur.text[cur.pos : end].strip(WS)
        self.host.mark(MARKUP, cur.pos)
        self.host.mark(ID_TEXT, end)
        cur.pos = found.end()
        self._phase = BEFORE_ARGUMENTS
        return AGAIN

    # -- the arguments ------------------------------------------------------------------------------------------

    def _commit(self) -> None:
        self.host.begin_call(self._name, self._id)
        self.committed = True
        self.any = True
        self._wrote = False
        self._whole = False
        self._valid = False
        self._envelope = None
        self._json = None
        self._text = None
        self._tagged = None
        self._literal = None

    def _read_before_arguments(self) -> int:
        """The name is complete. What follows decides whether this is a call."""
        grammar = self.grammar
        cur = self.host.cur
        if grammar.body != NAMED_LITERAL and not self._skip_spaces_inside():
            return MORE
        if cur.pos >= len(cur.text):
            return MORE
        self.host.mark(MARKUP, cur.pos)
        c = cur.text[cur.pos]
        if grammar.body == NAMED_LITERAL:
            return self._begin_literal(c)
        end = self._at(grammar.tags if grammar.body == NAMED_TAGGED else grammar.after)
        if end == LITERAL_MORE:
            return MORE
        if end >= 0:
            tag = (grammar.tags if grammar.body == NAMED_TAGGED else grammar.after).tags[cur.text[cur.pos : end]]
            if tag not in (IS_KEY_OPEN, IS_ARGUMENTS_CLOSE, IS_CALL_CLOSE, IS_SECTION_CLOSE):
                return FAILED
            self._commit_once()
            if grammar.body == NAMED_TAGGED:
                self._tagged = TaggedArguments(grammar, self.host.tools, self._name)
                self._phase = ARGUMENTS
            else:
                self._whole = True
                self._phase = AFTER
            return AGAIN
        if grammar.body == NAMED_JSON:
            if c == "{":
                self._commit_once()
                self._json = JsonValue(grammar.resync)
                self._phase = ARGUMENTS
                return AGAIN
            if c == '"':
                self._commit_once()
                self._text = JsonText()
                self._phase = ARGUMENTS
                return AGAIN
            if self.committed:
                self._phase = RAW
                return AGAIN
        return FAILED

    def _commit_once(self) -> None:
        if not self.committed:
            self._commit()

    def _skip_spaces_inside(self) -> bool:
        """White space between name and arguments, or inside arguments: markup."""
        cur = self.host.cur
        cur.pos = cur.spaces()
        return cur.pos < len(cur.text)

    def _begin_literal(self, c: str) -> int:
        grammar = self.grammar
        cur = self.host.cur
        if c != grammar.open and c not in "({":
            return FAILED
        # ``[see](x)`` is a link: with no tools to go by, only ``name=`` or nothing makes it a call.
        unsure = grammar.bare and not self.host.tools.known
        if unsure and _ARGUMENT_START.match(cur.text, cur.pos + 1) is None:
            undecided = not cur.final and _ARGUMENT_PREFIX.match(cur.text, cur.pos + 1) is not None
            return MORE if undecided and len(cur.text) - cur.pos < MAX_NAME else FAILED
        self._commit()
        self._literal = LiteralArguments(grammar, self.host.tools, self._name, "]" if self._in_list else "")
        self._phase = ARGUMENTS
        return AGAIN

    def _begin_envelope(self) -> None:
        self.committed = False
        self._name = ""
        self._id = ""
        self._envelope = Envelope(self.grammar, self.host.max_held)
        self._phase = ENVELOPE

    def _read_envelope(self) -> int:
        envelope = self._envelope
        assert envelope is not None
        cur = self.host.cur
        answer = envelope.step(cur, self)
        if answer == DONE:
            self._whole = True
            self._valid = envelope.valid
            self.host.mark(MARKUP, cur.pos)
            self._phase = AFTER
            return AGAIN
        if answer == BROKEN:
            if not self.committed:
                return FAILED
            self.host.mark(MARKUP, cur.pos)
            if envelope.whole:
                self.host.report("unclosed_object", cur.pos, cur.pos)
                self._whole = True
                self._valid = envelope.valid
                self._phase = AFTER
            else:
                self.host.report("broken_json", cur.pos, cur.pos)
                self._phase = RAW
            return AGAIN
        return MORE

    def _read_arguments(self) -> int:
        cur = self.host.cur
        json = self._json
        literal = self._literal
        if json is not None:
            answer = json.step(cur, self)
        elif self._tagged is not None:
            answer = self._tagged.step(cur, self)
        elif literal is not None:
            answer = literal.step(cur, self)
        else:
            assert self._text is not None
            answer = self._text.step(cur, self)
        if answer == DONE:
            self._whole = True
            # What a string holds is not known to be JSON until somebody looks.
            self._valid = json.valid if json is not None else self._text is None
            if self._tagged is None:
                self.host.mark(ARGUMENT_TEXT, cur.pos)
            self._phase = AFTER
            return AGAIN
        if answer == BROKEN:
            self.host.report("broken_json" if json is not None else "broken_arguments", cur.pos, cur.pos)
            self.host.mark(ARGUMENT_TEXT, cur.pos)
            self._phase = RAW
            if literal is not None:
                self._phase = AFTER
                self._whole = self._closes_here()
                if self._whole:
                    literal.close(self)
                    self._valid = True
            return AGAIN
        if self._tagged is None:
            self.host.mark(ARGUMENT_TEXT, cur.pos)
        return MORE

    def _read_raw(self) -> int:
        """Arguments that broke: as they come, up to whatever ends a call."""
        cur = self.host.cur
        text = cur.text
        start = cur.pos
        found = self.grammar.resync.find(text, start)
        while found is not None and self.host.checks and not self.host.authorised(found.start(), found.end()):
            found = self.grammar.resync.find(text, found.start() + 1)
        end = found.start() if found is not None else len(text) if cur.final else self.grammar.resync.tail(text, start)
        held = -1 if found is None or cur.final else self.grammar.resync.held(text, start, end)
        if held >= 0:
            found = None
            end = held
        piece = text[start:end]
        kept = piece.rstrip(WS)
        if kept:
            self.put("".join(self._raw_space) + kept)
            self._raw_space = []
        if len(kept) < len(piece):
            self._raw_space.append(piece[len(kept) :])
        cur.pos = end
        self.host.mark(ARGUMENT_TEXT, end)
        if found is None:
            return MORE
        self._raw_space = []
        self._phase = AFTER
        self._whole = self._closes_here()
        return AGAIN

    def _closes_here(self) -> bool:
        """Whether what stands at the cursor, behind arguments that broke, closes the call."""
        cur = self.host.cur
        if self._in_list and self._literal is not None and cur.text[cur.pos] == "]":
            return True
        end = self.grammar.resync.at(cur.text, cur.pos, True)
        return end >= 0 and self.grammar.resync.tags[cur.text[cur.pos : end]] in _CLOSERS

    # -- after the arguments ------------------------------------------------------------------------------------

    def _read_after(self) -> int:
        """What closes the call; it may be missing."""
        grammar = self.grammar
        host = self.host
        cur = host.cur
        if self.committed:
            self._end()
        if grammar.after.empty:
            return self._over()
        if not self._skip_spaces():
            return MORE
        end = self._at(grammar.after)
        if end == LITERAL_MORE:
            return MORE
        if end >= 0:
            tag = grammar.after.tags[cur.text[cur.pos : end]]
            self._consume(end)
            if tag == IS_CALL_CLOSE or not grammar.call_closes:
                return self._over()
            return AGAIN
        stray = _STRAY.match(cur.text, cur.pos)
        if stray is not None and grammar.call_closes:
            if stray.end() == len(cur.text) and not cur.final:
                return MORE
            end = grammar.after.at(cur.text, stray.end(), cur.final)
            if end == LITERAL_MORE:
                return MORE
            if end >= 0:
                host.report("stray_text", cur.pos, stray.end())
                if not host.speculating:
                    host.unpend()
                host.mark(MARKUP, cur.pos)
                cur.pos = stray.end()
                host.mark(DROPPED, cur.pos)
                return AGAIN
        return self._over()

    def _end(self) -> None:
        """The arguments are over."""
        self.committed = False
        if self._whole and not self._wrote:
            self.host.arguments("{}")
            self._valid = True
        self.host.end_call(self._whole, self._valid)

    def _over(self) -> int:
        """The call is closed: what comes next?"""
        self.host.call_over()
        self._list_is_new = False
        if self._in_list or self.in_section or self.grammar.separated:
            self._phase = BETWEEN
            return AGAIN
        return LEFT

    # -- Caller -------------------------------------------------------------------------------------------------

    def put(self, text: str) -> None:
        self._wrote = True
        self.host.arguments(text)

    def mark(self, kind: int, pos: int) -> None:
        self.host.mark(kind, pos)

    def report(self, code: str, start: int, end: int) -> None:
        self.host.report(code, start, end)

    def accounted(self) -> int:
        return self.host.accounted()

    def disown(self, start: int) -> None:
        self.host.disown(start)

    def authorised(self, start: int, end: int) -> bool:
        return not self.host.checks or self.host.authorised(start, end)

    def proven(self, start: int, end: int) -> bool:
        return self.host.checks and self.host.proven(start, end)

    def named(self, name: str, call_id: str, arguments: bool) -> bool:
        self._name = name
        self._id = call_id
        if self.grammar.bare:
            if not self._allowed():
                return False
            if not arguments:
                return True
        envelope = self._envelope
        assert envelope is not None
        self._commit()
        self._envelope = envelope
        envelope.committed = True
        return True

    def late_id(self, call_id: str) -> None:
        self.host.model_id(call_id)
