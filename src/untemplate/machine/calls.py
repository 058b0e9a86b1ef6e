"""Reads calls as a CallGrammar describes them: sections, lists, openers, names, closers.

Rules of this module:

* Until a call commits (CallArguments says when) the reader says nothing and may answer FAILED: the host gives
  everything back as text.
* After that the call stands, and reading goes on at its close, at the next opener or at the end.
* The reader looks only for what its phase can leave by, and leaves white space after a call to the host, which knows
  whether content or a marker follows.
"""

from __future__ import annotations

import re
from typing import Final, final

from .arguments.base import BROKEN, DONE
from .arguments.tagged import masked_xml, unescape_xml
from .call_arguments import CallArguments
from .host import Host
from .ledger import DROPPED, ID_TEXT, MARKUP, NAME_TEXT
from .lexer import MORE as LITERAL_MORE
from .lexer import NO, WS, Literals
from .names import MAX_NAME, NAME_START, merged, offered
from .program import (
    AT_BARE,
    AT_CALL,
    AT_NAME,
    AT_SECTION,
    IS_CALL_CLOSE,
    IS_CALL_OPEN,
    IS_ID_OPEN,
    IS_KEY_CLOSE,
    IS_LIST_CLOSE,
    IS_LIST_OPEN,
    IS_NAME_CLOSE,
    IS_NAME_OPEN,
    IS_SECTION_CLOSE,
    IS_SECTION_OPEN,
    IS_SEPARATOR,
    JSON_BODY,
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
ARGUMENTS: Final = 5
AFTER: Final = 6

_STRAY: Final = re.compile(r"[\]})\"'`,;]{1,8}[ \t\r\n]{0,64}")
_NO_GRAMMAR: Final = CallGrammar(JSON_BODY, "")


@final
class CallReader:
    """Reads one section of calls, or one call where there are no sections."""

    def __init__(self, host: Host) -> None:
        self.host: Host = host
        self.grammar: CallGrammar = _NO_GRAMMAR
        self.in_section: bool = False
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
        self._arguments: CallArguments = CallArguments(host)

    # -- entering -----------------------------------------------------------------------------------------------

    def enter(self, candidates: list[tuple[CallGrammar, int]], weak: bool) -> None:
        """The cursor stands behind the opener (for bare calls: at their first character). Each candidate is a grammar
        and where it is entered. ``weak``: the opener proves little, the tool must be an offered one."""
        self._candidates = candidates
        self._weak = weak
        self._in_list = False
        self.any = False
        if len(candidates) == 1:
            self._chosen(candidates[0][0], candidates[0][1])
        else:
            self._phase = CHOOSE

    def enter_arguments(self, grammar: CallGrammar, name: str, raw: bool) -> None:
        """A header has named the call; its arguments follow. ``raw``: whatever they look like, so it commits now."""
        self.grammar = grammar
        self._weak = False
        self._in_list = False
        self._arguments.begin(grammar, False, False)
        self._arguments.begin_named(name, "")
        self._phase = ARGUMENTS
        if raw:
            self._arguments.commit()
        self.any = raw

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
        self._arguments.begin(self.grammar, self._weak, self._in_list)
        self._phase = BODY

    def _begin_name(self) -> None:
        self._arguments.begin(self.grammar, self._weak, self._in_list)
        self._phase = NAME

    @property
    def committed(self) -> bool:
        """Whether the call being read has committed."""
        return self._arguments.committed

    # -- reading ------------------------------------------------------------------------------------------------

    def step(self) -> int:
        """Reads as far as the text decides."""
        while True:
            phase = self._phase
            if phase == ARGUMENTS:
                answer = self._read_arguments()
            elif phase == BETWEEN:
                answer = self._read_between()
            elif phase == NAME:
                answer = self._read_name()
            elif phase == AFTER:
                answer = self._read_after()
            elif phase == BODY:
                answer = self._read_body()
            elif phase == ID:
                answer = self._read_id()
            else:
                answer = self._choose()
            if answer != AGAIN:
                return answer

    def passes(self, text: str) -> bool:
        """The short way for text in the middle of a long string argument; False: nothing has happened."""
        return self._phase == ARGUMENTS and self._arguments.passes(text)

    def finish(self) -> bool:
        """The output has ended. False: what is being read is no call and must be given back."""
        if self._phase == AFTER:
            return True
        if self._phase == BETWEEN:
            return not self.host.speculation.active or (self.any and self.host.drafting)
        return self._phase == ARGUMENTS and self._arguments.finish()

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
            if (self.host.speculation.active or not self.any) and not between:
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
                    fits = 0 if NAME_START.match(text, pos) is not None else NO
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
                self._begin_object()
            else:
                self._begin_name()
            return AGAIN
        if not self.any or host.speculation.active:
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
        if self.any and not self.host.speculation.active and not self._in_list and not self.in_section:
            return False
        if grammar.body == JSON_BODY:
            return c == "{"
        return not grammar.name_opens and NAME_START.match(c) is not None

    def _open(self, end: int) -> None:
        """Something that may turn out to be no call begins here."""
        host = self.host
        if not host.speculation.active:
            host.speculate(end - host.cur.pos)
        host.cur.pos = end

    def _consume(self, end: int) -> None:
        host = self.host
        host.cur.pos = end
        if not host.speculation.active or host.judging:
            host.unpend()
        if not host.speculation.active:
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
            self._begin_object()
            return AGAIN
        self._begin_name()
        return AGAIN

    def _begin_object(self) -> None:
        self._arguments.begin(self.grammar, self._weak, self._in_list)
        self._arguments.begin_object()
        self._phase = ARGUMENTS

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
        illegal = grammar.name_illegal.search(masked_xml(name) if grammar.unescape else name)
        if illegal is not None or len(raw) > MAX_NAME:
            cur.pos += 0 if illegal is None else raw.index(name) + illegal.start()
            return FAILED
        if found is None:
            return MORE
        if not name:
            return FAILED
        tag = grammar.name_ends.tags[found.group()]
        if tag == IS_KEY_CLOSE:
            # ``send_command_to_shellcommand</arg_key>``: the first key's opener has been left out.
            cut = merged(name, self.host.tools)
            begin = cur.pos + raw.index(name)
            if cut < 0:
                cur.pos = begin + len(name)
                return FAILED
            self.host.mark(MARKUP, begin)
            self.host.mark(NAME_TEXT, begin + cut)
            cur.pos = begin + cut
            self._arguments.begin_at_key(name[:cut])
            self._phase = ARGUMENTS
            return AGAIN
        variables = grammar.name.split(name)
        tool = offered(variables.get("name", name).strip(WS), grammar.name, self.host.tools)
        call_id = variables.get("id", "")
        if not grammar.name.plain and "index" in variables and "name" in variables and "." in grammar.name.pattern:
            call_id = name
        if not self._arguments.begin_named(unescape_xml(tool) if grammar.unescape else tool, call_id):
            cur.pos = end
            return FAILED
        self.host.mark(MARKUP, cur.pos)
        self.host.mark(NAME_TEXT, end)
        cur.pos = end
        self._phase = ARGUMENTS
        if tag == IS_NAME_CLOSE:
            cur.pos = found.end()
        elif tag == IS_ID_OPEN:
            cur.pos = found.end()
            self._phase = ID
        return AGAIN

    def _read_id(self) -> int:
        grammar = self.grammar
        cur = self.host.cur
        found = grammar.id_ends.near(cur.text, cur.pos, cur.pos + MAX_NAME)
        end = len(cur.text) if found is None else found.start()
        if end - cur.pos > MAX_NAME:
            return FAILED
        if found is None:
            return MORE
        self._arguments.identify(cur.text[cur.pos : end].strip(WS))
        self.host.mark(MARKUP, cur.pos)
        self.host.mark(ID_TEXT, end)
        cur.pos = found.end()
        self._phase = ARGUMENTS
        return AGAIN

    # -- arguments, and after them ------------------------------------------------------------------------------

    def _read_arguments(self) -> int:
        answer = self._arguments.step()
        self.any = self.any or self._arguments.committed
        if answer == DONE:
            self._phase = AFTER
            return AGAIN
        return FAILED if answer == BROKEN else MORE

    def _read_after(self) -> int:
        """What closes the call; it may be missing."""
        grammar = self.grammar
        host = self.host
        cur = host.cur
        if self._arguments.committed:
            self._arguments.end()
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
                if not host.speculation.active:
                    host.unpend()
                host.mark(MARKUP, cur.pos)
                cur.pos = stray.end()
                host.mark(DROPPED, cur.pos)
                return AGAIN
        return self._over()

    def _over(self) -> int:
        """The call is closed: what comes next?"""
        self.host.call_over()
        self._list_is_new = False
        if self._in_list or self.in_section or self.grammar.separated:
            self._phase = BETWEEN
            return AGAIN
        return LEFT
