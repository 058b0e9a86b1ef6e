"""Find the assistant's turn in a rendering: its header, the text that the model would write, and its end.

* The *header* is the text between the user's message and the assistant's, for every message. The text after its last
  occurrence in a prompt is the model's, or was written for the model by the template (an opened reasoning).
* A turn is cut out of a whole rendering, from the end of the header to the next message.
* Turns are rendered in two places, last and before another user message: templates drop earlier reasoning, and some
  treat the last message as one to be continued.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from ..errors import AnalysisError
from . import _diff as diff
from ._probes import (
    AGAIN,
    ASKED,
    CONTENT,
    EOS,
    IDS,
    KEYS,
    NAMES,
    RESULT,
    VALUES,
    ProbeCall,
    ProbeMessage,
    Prober,
    Style,
)

Settings = tuple[tuple[str, Any], ...]

LAST: Final = "last"
MIDDLE: Final = "middle"
_USER: Final = {"role": "user", "content": ASKED}
_NEXT: Final = {"role": "user", "content": AGAIN}


@dataclass(frozen=True, slots=True)
class RenderedTurn:
    """One assistant turn as rendered."""

    before: str
    """All text before the turn, header included."""
    text: str
    """The turn, its end included."""
    tail: str
    """Text that the template's own prompt would have added after the header (``<think>\\n``)."""


@dataclass(slots=True)
class TurnFrame:
    """Text that all turns of a template have in common."""

    prober: Prober
    header: str = ""
    user_end: str = ""
    user_start: str = ""
    end: str = ""
    """End of the last turn, if that is a turn of content; EOS if the template does not write one."""
    content_end: str = ""
    """All text after content, if that is more than the end."""
    ends: tuple[str, ...] = ()
    """Other ends."""
    trailer: str = ""
    """Text that the template writes after the last message, whatever the message is."""
    in_output: bool = False
    """True if some prompts lack the header, so that the model writes it."""
    never_in_prompts: bool = False
    """True if all prompts lack it."""
    starts: tuple[str, ...] = ()
    """Other text that begins a turn, such as after tool results."""
    shows_arguments: bool = False
    """True if the template writes the arguments of calls, with or without their names."""
    shows_names: bool = False
    """True if it writes the names of calls, in some shape of messages without the arguments."""
    tails: dict[Settings, str] = field(default_factory=dict)
    """Text that the prompt adds after the header, by the variables that were set."""
    log: list[str] = field(default_factory=list)

    @property
    def tail(self) -> str:
        return self.tails.get((), "")

    def turn(self, message: ProbeMessage, style: Style, place: str = LAST) -> RenderedTurn | None:
        """Render ``message`` as a turn; return ``None`` if the template fails."""
        prober = self.prober
        tools = prober.call_tools if message.calls else prober.plain_tools
        settings = dict(style.settings)
        conversation = [_USER, style.write(message)]
        if place == MIDDLE:
            conversation.append(_NEXT)
        whole = prober.render(conversation, tools=tools, settings=settings)
        if whole is None:
            return None
        start, header = self.begins(whole), ""
        if start < 0:
            # Without content the template writes no header: the prompt of such a turn has it.
            start, header = self._without_header(whole), "" if self.never_in_prompts else self.header
            if start < 0:
                return None
        end = len(whole)
        if place == MIDDLE:
            end = whole.find(AGAIN, start)
            if end < 0:
                return None
            if self.user_start and whole.endswith(self.user_start, start, end):
                end -= len(self.user_start)
        elif self.trailer and whole.endswith(self.trailer):
            end -= len(self.trailer)
        tail = self.tails.get(style.settings, self.tail)
        return RenderedTurn(whole[:start] + header, whole[start : max(end, start)], tail)

    def _without_header(self, whole: str) -> int:
        """Return where the text after the user's message begins, if the template ends that message in its usual way and
        the rest has no header; else -1."""
        asked = whole.rfind(ASKED)
        start = asked + len(ASKED)
        if asked < 0 or not whole.startswith(self.user_end, start):
            return -1
        start += len(self.user_end)
        rest, opened = whole[start:].lstrip(), diff.tokens(self.header.strip())
        other = not self.user_end.strip() and opened and rest.startswith(opened[0])  # the header of another role
        return -1 if other or not rest else start

    def learn_end(self, call_end: str) -> None:
        """Use turns of calls to separate the common end from text that only content has."""
        pieces = diff.split_tags(self.end)
        for i in range(len(pieces)):
            rest = "".join(pieces[i:])
            if rest.strip() and call_end.rstrip().endswith(rest.rstrip()):
                if i:
                    self.content_end, self.end = self.end, rest
                return

    def begins(self, whole: str) -> int:
        """Return where the turn after the user's message begins; -1 if the header is not found."""
        asked = whole.rfind(ASKED)
        if asked < 0:
            return -1
        start = asked + len(ASKED)
        if not self.header.strip():
            return start
        for header in (self.header, self.header.rstrip()):
            at = whole.find(header, start)
            if at >= 0:
                return at + len(header)
        return diff.find_loosely(whole, self.header, start)


@dataclass(frozen=True, slots=True)
class _Renderings:
    """All text after the user's message, in the renderings that show where a turn of content begins and ends."""

    prompt: str
    bare: str
    """The message alone, without a prompt; empty if the template fails."""
    last: str | None
    """With an answer; ``None`` if the answer does not show up."""
    middle: str | None
    """With an answer and the user's next message."""
    switched: dict[Settings, str]
    """The prompt with each variable switched."""

    @property
    def fronts(self) -> list[str]:
        """Text before each answer."""
        return [text[: text.index(CONTENT)] for text in (self.last, self.middle) if text is not None]

    @property
    def after_last(self) -> str | None:
        """Text after the answer, if that is the last message."""
        return None if self.last is None else self.last[self.last.index(CONTENT) + len(CONTENT) :]

    @property
    def after_middle(self) -> str | None:
        """Text between the answer and the user's next message."""
        if self.middle is None or AGAIN not in self.middle:
            return None
        return self.middle[self.middle.index(CONTENT) + len(CONTENT) : self.middle.index(AGAIN)]

    @property
    def added(self) -> str:
        """Text that the prompt adds."""
        return self.prompt[len(self.bare) :] if self.prompt.startswith(self.bare) else ""

    @property
    def always(self) -> bool:
        """True if the template writes the prompt even if it is not asked to."""
        return self.bare == self.prompt

    @property
    def prompts(self) -> dict[Settings, str]:
        return {(): self.prompt, **self.switched}


def find_frame(prober: Prober, prompt: str) -> TurnFrame:
    """Find header, ends and prompt tails, from turns of content alone.

    Raises:
        AnalysisError: the template writes neither an assistant's message nor the beginning of one.
    """
    seen = _render_content(prober, prompt[prompt.rfind(ASKED) + len(ASKED) :])
    if not seen.fronts:
        return _frame_of_prompt(prober, seen.prompt)
    frame = TurnFrame(prober)
    frame.header = _common_header(seen)
    frame.log.append(f"prompt ending: {seen.added or seen.prompt!r}")
    _find_end(frame, seen)
    frame.header = _without_end(frame.header, frame.end, seen.always)
    frame.header = _whole_header(frame.header, [*seen.prompts.values(), *seen.fronts])
    frame.header = _without_opened(frame.header, seen.prompts)
    _find_written_header(frame, seen)
    front = seen.fronts[0]
    frame.header = next((h for h in (frame.header, frame.header.strip()) if h in front), frame.header)
    frame.user_end = front[: max(front.find(frame.header), 0)]
    frame.trailer = _trailer(frame, seen)
    _clean_end(frame, seen)
    frame.tails = _tails(frame, seen.prompts)
    frame.starts, result_front = _behind_results(frame)
    if not frame.end.strip() and not frame.ends:
        # Only the next turn ends this one: models write its first marker.
        frame.ends = tuple(dict.fromkeys(t for t in (_first_tag(frame.user_start), _first_tag(result_front)) if t))
    frame.log.append(f"header {frame.header!r}, end {frame.end!r}, prompt tails {list(frame.tails.values())!r}")
    return frame


def _frame_of_prompt(prober: Prober, prompt: str) -> TurnFrame:
    """Return the frame of a template that does not take the content: only the prompt shows where turns begin."""
    if not prompt.strip():
        reasons = "; ".join(list(prober.errors)[:1]) or "the answer does not show up"
        raise AnalysisError(f"not a chat template: it writes no assistant's message: {reasons}")
    return TurnFrame(prober, header=prompt, tails={(): ""})


def _render_content(prober: Prober, after_prompt: str) -> _Renderings:
    """Render the conversations that show turns of content. Variables are switched only where one shows up."""
    bare = prober.render([_USER], tools=prober.plain_tools)
    answer = Style().write(ProbeMessage(CONTENT))
    last = _with_content(prober, [_USER, answer])
    middle = _with_content(prober, [_USER, answer, _NEXT])
    return _Renderings(
        prompt=after_prompt,
        bare="" if bare is None else bare[bare.rfind(ASKED) + len(ASKED) :],
        last=last,
        middle=middle,
        switched={} if last is None and middle is None else _switched(prober, after_prompt),
    )


def _common_header(seen: _Renderings) -> str:
    """Return the text that begins a turn in all renderings: first that which the prompt adds, else that which the
    prompt and all answers have in common."""
    header = _longest_shared(seen.added, [*seen.fronts, *seen.switched.values()]) if seen.added else ""
    if header:
        return header
    shared = diff.common_prefix([seen.prompt, *seen.fronts])
    for front in () if shared.strip() else seen.fronts:
        shared = diff.loose_prefix(shared if shared.strip() else seen.prompt, front)
    return _longest_shared(shared, [*seen.switched.values()])


_PAIR: Final = re.compile(r"[<\[(]\W{0,3}/")


def _find_written_header(frame: TurnFrame, seen: _Renderings) -> None:
    """Find a header that no prompt has: all answers and calls have it after the text that prompts end with."""
    shared = diff.common_prefix(seen.fronts)
    adds_nothing = seen.bare.startswith(seen.prompt)
    written = shared[len(seen.prompt) :] if adds_nothing and shared.startswith(seen.prompt) else ""
    # A pair of tags is an empty block of reasoning.
    if (
        written.strip()
        and not _PAIR.search(written)
        and all(text.startswith(seen.prompt + written) for text in _called(frame.prober))
    ):
        frame.header = written
        frame.in_output = frame.never_in_prompts = True


def _called(prober: Prober) -> Iterator[str]:
    """Yield the text after the user's message in renderings with a call."""
    for arguments, content in product(("object", "text"), ("", CONTENT)):
        message = ProbeMessage(content, calls=(ProbeCall(NAMES[0], {KEYS[0]: VALUES[0]}),))
        whole = prober.render([_USER, Style(arguments=arguments).write(message)], tools=prober.call_tools) or ""
        if NAMES[0] in whole:
            yield whole.rpartition(ASKED)[2]


def _with_content(prober: Prober, conversation: list[dict[str, Any]]) -> str | None:
    """Render a conversation with an answer. Return the text after the question; ``None`` if it lacks the answer, as
    with templates that drop the last message or earlier ones."""
    whole = prober.render(conversation, tools=prober.plain_tools) or ""
    _, asked, after = whole.rpartition(ASKED)
    return after if asked and CONTENT in after else None


def _longest_shared(added: str, fronts: list[str]) -> str:
    """Return the longest beginning of the text that the prompt adds which every front contains."""
    shared = added
    for front in fronts:
        best = ""
        for start in _places(front):
            best = max(best, diff.loose_prefix(shared, front[start:]), key=len)
        shared = best
    return shared


def _places(text: str) -> Iterator[int]:
    at = 0
    for token in diff.tokens(text):
        yield at
        at += len(token)


def _whole_header(header: str, texts: list[str]) -> str:
    """Remove a tag from the end of ``header`` if different words follow it directly.

    An example is ``<|open|>think`` and ``<|open|>response``: the tag belongs to what follows.
    """
    found = list(diff.tokens(header))
    while len(found) > 1 and not found[-1].isspace():
        following = set()
        for text in texts:
            at = text.find(header)
            rest = diff.tokens(text[at + len(header) :]) if at >= 0 else ()
            following.add(rest[0] if rest else "")
        following.discard("")
        if len(following) < 2 or not all(f[0].isalnum() for f in following):
            break
        found.pop()
        header = "".join(found)
    return header


def _find_end(frame: TurnFrame, seen: _Renderings) -> None:
    """Find the end of a turn: text after the content both at the end and before another message."""
    last, middle = seen.after_last, seen.after_middle
    frame.end = "" if last is None else last if middle is None else diff.common_prefix([last, middle])
    if middle is None:
        return
    if frame.end:
        frame.end = _without_header_start(frame.end, frame.header, seen.always)
        frame.user_start = middle[len(frame.end) :]
        return
    # The last turn has no end, or another one than a turn in the middle.
    first = frame.prober.render([_USER], tools=frame.prober.plain_tools) or ""
    frame.user_start = diff.common_suffix([first[: first.find(ASKED)], middle])
    inner = middle[: len(middle) - len(frame.user_start)]
    frame.ends = tuple(e for e in (inner,) if e.strip())
    if last is not None and last.strip() and len(diff.tokens(last)) < 6 and not seen.always:
        frame.end = last


def _without_end(header: str, end: str, always: bool) -> str:
    """Remove the end of a turn from the beginning of ``header``, where it ends the user's message."""
    if always and end:
        first = next(iter(diff.split_tags(header)), "")
        if first.strip() and first != header and end.endswith(first):
            header = header[len(first) :]
    if end.strip() and header.startswith(end) and header.strip() != end.strip():
        header = header[len(end) :]
    return header


def _without_header_start(end: str, header: str, always: bool) -> str:
    """Remove tokens from ``end`` that already begin the next message, as they begin the header."""
    found = list(diff.tokens(end))
    if always:
        # The header still begins with the end of the user's message, and the assistant's ends the same way.
        first = diff.split_tags(header)[0] if header else ""
        at = end.find(first.strip()) if first.strip() else -1
        return end[: at + len(first)] if at >= 0 else end
    for size in range(len(found) - 1, 0, -1):
        rest = "".join(found[-size:])
        if rest.strip() and header.startswith(rest):
            return "".join(found[:-size])
    return end


def _trailer(frame: TurnFrame, seen: _Renderings) -> str:
    """Return the text after the user's message that also ends the answer; empty if that is only the end of a turn."""
    rest = seen.after_last
    if rest is None or not (seen.added or seen.always) or not seen.bare.startswith(frame.user_end):
        return ""
    trailer = seen.bare[len(frame.user_end) :]
    ends_turn = seen.always and trailer == frame.end
    return trailer if rest.endswith(trailer) and not ends_turn else ""


def _clean_end(frame: TurnFrame, seen: _Renderings) -> None:
    if frame.trailer and frame.end.endswith(frame.trailer):
        frame.end = frame.end[: len(frame.end) - len(frame.trailer)]
    rest = seen.after_last
    if not frame.end.strip() and rest is not None and rest.strip() == EOS:
        frame.end = rest


def _switched(prober: Prober, default: str) -> dict[Settings, str]:
    """Return the text after the user's message in the prompt with each variable switched, where that renders.

    A word that is put into the middle of the header switches nothing: the prompt must be longer or shorter than
    ``default`` at its end.
    """
    found: dict[Settings, str] = {}
    for name in prober.toggles:
        for value in (True, False, *prober.words_of(name)):
            rendered = prober.render([_USER], prompt=True, tools=prober.plain_tools, settings={name: value})
            if rendered is None or ASKED not in rendered:
                continue
            text = rendered[rendered.rfind(ASKED) + len(ASKED) :]
            if _is_switched(value, text, default):
                found[((name, value),)] = text
    return found


def _is_switched(value: Any, text: str, default: str) -> bool:
    """True if a value of a variable, with which a prompt ends in ``text``, may have switched something."""
    if str(value) in text and str(value) not in default:
        return False  # the variable is part of the text
    return isinstance(value, bool) or bool(text.strip() and (text.startswith(default) or default.startswith(text)))


def _without_opened(header: str, prompts: dict[Settings, str]) -> str:
    """Remove a tag from ``header`` that all prompts have but some close at once.

    An example is one prompt that ends in ``<a><think>`` and another, with a variable switched, in
    ``<a><think></think>``.
    """
    tails = {settings: _behind(text, header) for settings, text in prompts.items()}
    closes = [tail for tail in tails.values() if tail and len(diff.split_tags(tail)) == 1 and diff.is_tag(tail.strip())]
    pieces = diff.split_tags(header)
    if "" not in tails.values() or not closes or len(pieces) < 2:
        return header
    opened = any(settings and settings[0][1] is False and tail for settings, tail in tails.items()) or not any(
        settings and settings[0][1] is True and tail for settings, tail in tails.items()
    )
    return "".join(pieces[:-1]) if opened else header


def _tails(frame: TurnFrame, prompts: dict[Settings, str]) -> dict[Settings, str]:
    """Return the text that each prompt adds after the header."""
    tails = {settings: _behind(text, frame.header) for settings, text in prompts.items()}
    return {settings: tail for settings, tail in tails.items() if tail is not None} or {(): ""}


def _behind(text: str, header: str) -> str | None:
    at = text.rfind(header)
    return None if at < 0 else text[at + len(header) :]


def _first_tag(text: str) -> str:
    """Return the tag that ``text`` begins with, if any."""
    found = diff.tokens(text.lstrip())
    return found[0] if found and diff.is_tag(found[0]) else ""


def _behind_results(frame: TurnFrame) -> tuple[tuple[str, ...], str]:
    """Return the end of a prompt after tool results, if it is not the header, and the text before the results."""
    prober = frame.prober
    for arguments in ("object", "text"):
        for no_content in ("null", "empty"):
            style = Style(arguments=arguments, no_content=no_content)
            call = style.write(ProbeMessage(calls=(ProbeCall(NAMES[0], {KEYS[0]: VALUES[0]}),)))
            result = {"role": "tool", "content": RESULT, "tool_call_id": IDS[0], "name": NAMES[0]}
            prompt = prober.prompt([_USER, call, result], calls=True)
            if prompt is None or RESULT not in prompt:
                continue
            front = _result_front(frame, call, prompt)
            rest = prompt[prompt.rfind(RESULT) + len(RESULT) :]
            if frame.header and frame.header.strip() in rest:
                return (), front
            answered = prober.render([_USER, call, result, style.write(ProbeMessage(CONTENT))], tools=prober.call_tools)
            between = (answered or "").rpartition(RESULT)[2].partition(CONTENT)[0].removeprefix(rest).strip()
            frame.in_output = frame.in_output or (between != "" and between == frame.header.strip())
            for tail in sorted(frame.tails.values(), key=len, reverse=True):
                if tail.strip() and rest.rstrip().endswith(tail.strip()):
                    rest = rest.rstrip()[: -len(tail.strip())]
                    break
            tags = [t for t in diff.tokens(rest) if diff.is_tag(t)]
            return (tags[-1],) if tags else (), front
    return (), ""


def _result_front(frame: TurnFrame, call: dict[str, Any], prompt: str) -> str:
    """Return the text that a template writes between the turn of a call and the result."""
    prober = frame.prober
    alone = prober.render([_USER, call], tools=prober.call_tools)
    before = prompt[: prompt.rfind(RESULT)]
    return before[len(alone) :] if alone is not None and before.startswith(alone) else ""
