"""Render probe conversations through a template, and record failures.

* Every field of a probe is a nonsense word of its own (a *probe word*), so its place in the rendering identifies it.
* No template is recognised by name. What it requires (a system message, tools, variables, arguments as text, content
  that is null, empty or absent) is found by trying.
* A failed rendering is a result. Only a template that takes too long ends the analysis, with the first rendering that
  reaches a limit, or when all renderings together have used `BUDGET`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from time import thread_time
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..errors import AnalysisError, TemplateLimitError, TemplateRaised

if TYPE_CHECKING:
    from ..templates._branches import Branch

ASKED: Final = "qzaskedqz"
AGAIN: Final = "qzagainqz"
SYSTEM: Final = "qzsystemqz"
CONTENT: Final = "qzcontentqz"
THOUGHT: Final = "qzthoughtqz"
RESULT: Final = "qzresultqz"
EOS: Final = "<|qzeosqz|>"
NAMES: Final = ("qznamea", "qznameb")
KEYS: Final = ("qzkeya", "qzkeyb", "qzkeyc")
VALUES: Final = ("qzvalua", "qzvalub", "qzvaluc", "qzvalud")
IDS: Final = ("qzid00001", "qzid00002")
"""Nine alphanumerics: the one shape of id that some templates require."""

REASONING_KEYS: Final = ("reasoning_content", "reasoning", "thinking", "thought")
"""Fields of a message in which most templates look for reasoning."""
_REASONING_KEY: Final = re.compile(r"(?=[a-z_]*+\Z).*?(?:reason|think|thought|plan)", re.IGNORECASE)
"""Other names of such a field."""
CALL_KEYS: Final = frozenset(("tool_calls",))
"""Fields in which they look for calls."""

WORDS: Final = (ASKED, AGAIN, SYSTEM, CONTENT, THOUGHT, RESULT, EOS, *NAMES, *KEYS, *VALUES, *IDS)
"""All probe words. No Format may hold one."""


def _tool(name: str) -> dict[str, Any]:
    properties = {k: {"type": "string", "description": "qzdescribesqz"} for k in KEYS[:2]}
    parameters = {"type": "object", "properties": properties, "required": [KEYS[0]]}
    return {
        "type": "function",
        "function": {"name": name, "description": "qzdescribesqz", "parameters": parameters},
    }


TOOLS: Final = [_tool(name) for name in NAMES]

# Every engine passes these variables to every template, so none of them is a switch of this one.
_STANDARD: Final = frozenset(
    (
        *("messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token", "raise_exception"),
        *("strftime_now", "namespace", "range", "loop", "true", "false", "none"),
    )
)


BUDGET: Final = 1.5
"""Seconds of processor time for all renderings of one template. The slowest known template needs 0.2."""
_MOST_WORDS: Final = 4
"""Words that are tried for one variable: levels of effort have at most three."""


_MOST_KEYS: Final = 8
"""Other fields that are tried for reasoning."""


class Template(Protocol):
    """The part of a chat template that probing needs (:class:`untemplate.templates.ChatTemplate`)."""

    @property
    def sha256(self) -> str: ...
    @property
    def literals(self) -> Sequence[str]: ...
    @property
    def variables(self) -> Any: ...
    @property
    def source(self) -> str: ...
    @property
    def lines(self) -> Mapping[str, int]: ...
    def render(
        self, messages: Any, *, tools: Any = None, add_generation_prompt: bool = False, **kwargs: Any
    ) -> str: ...


@dataclass(frozen=True, slots=True)
class ProbeCall:
    """One tool call of a probe."""

    name: str
    arguments: Mapping[str, Any]
    id: str = IDS[0]


@dataclass(frozen=True, slots=True)
class ProbeMessage:
    """An assistant message of a probe, independent of the shape that the template wants."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[ProbeCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The shape in which a template wants its messages; found by probing."""

    arguments: str = "object"
    """``object``, or ``text`` for JSON in a string."""
    no_content: str = "null"
    """Content of a message without content: ``null``, ``empty`` or ``absent``."""
    reasoning: str = ""
    """Key of the reasoning; ``parts``: typed parts in the content; ``blocks``: a mapping of typed blocks."""
    ids: str = ""
    """Pattern of the ids, for templates that write the id in place of the name; "": the ids of the calls."""
    settings: tuple[tuple[str, Any], ...] = ()
    """Template variables besides the standard ones (``enable_thinking``)."""

    def write(self, message: ProbeMessage) -> dict[str, Any]:
        """Return ``message`` in the shape that the template takes."""
        written: dict[str, Any] = {"role": "assistant"}
        if message.content:
            written["content"] = message.content
        elif self.no_content != "absent":
            written["content"] = None if self.no_content == "null" and message.calls else ""
        if message.reasoning:
            self._reason(written, message)
        if message.calls and not (message.reasoning and self.reasoning == "blocks"):
            written["tool_calls"] = [self._call(c, i) for i, c in enumerate(message.calls)]
        return written

    def _reason(self, written: dict[str, Any], message: ProbeMessage) -> None:
        if self.reasoning == "parts":
            parts = [{"type": "thinking", "thinking": message.reasoning}]
            if message.content:
                parts.append({"type": "text", "text": message.content})
            written["content"] = parts
        elif self.reasoning == "blocks":
            blocks: list[dict[str, Any]] = [{"type": "thoughts", "text": message.reasoning}]
            if message.content:
                blocks.append({"type": "response", "text": message.content})
            if message.calls:
                calls = [{"name": c.name, "arguments": _json(c.arguments)} for c in message.calls]
                blocks.append({"type": "tool_calls", "calls": calls})
            written["content"] = {"blocks": blocks}
        elif self.reasoning:
            written[self.reasoning] = message.reasoning

    def id_of(self, call: ProbeCall, index: int) -> str:
        """Return the id that is written for a call."""
        return self.ids.format(name=call.name, index=index) if self.ids else call.id

    def _call(self, call: ProbeCall, index: int) -> dict[str, Any]:
        arguments: Any = dict(call.arguments)
        if self.arguments == "text":
            arguments = _json(arguments)
        given = self.id_of(call, index)
        return {"id": given, "type": "function", "function": {"name": call.name, "arguments": arguments}}


@dataclass(slots=True)
class CallSamples:
    """The message shape that makes the template write calls, and the renderings."""

    style: Style
    place: str
    one: str
    """A turn with one call of two arguments."""
    two: str | None = None
    """A turn with two calls, if the template can write them."""
    empty: str | None = None
    """A turn with a call without arguments."""
    single: str | None = None
    """A turn with a call of one argument."""
    with_content: str | None = None
    """A turn of content and a call."""
    short_ids: bool = False
    """True if ids must be nine letters and digits."""

    @property
    def front(self) -> str:
        return self.one[: self.one.index(NAMES[0])]

    @property
    def end(self) -> str:
        at = max((self.one.rfind(v) + len(v) for v in (*VALUES[:2], *KEYS[:2]) if v in self.one), default=0)
        return self.one[at:]


def _in_parts(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    return {**message, "content": [{"type": "text", "text": content}]} if isinstance(content, str) else message


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


_NO_STYLE: Final = Style()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One rendering: its text, or the problem and the line of the template."""

    text: str | None
    problem: str = ""
    line: int = 0
    refused: bool = False
    """True if the template itself raised."""


@dataclass(slots=True)
class Prober:
    """Render through one template, each conversation once."""

    template: Template
    system: bool = False
    parts: bool = False
    """True if content must be a list of typed parts."""
    base: dict[str, Any] = field(default_factory=dict)
    plain_tools: Any = None
    call_tools: Any = None
    eos: str = ""
    """The end-of-sequence token of the template, if it is known."""
    end: str = ""
    """The token that ends an output by the model's configuration; used if ``eos`` is empty."""
    renders: int = 0
    seconds: float = 0.0
    """Processor time of all renderings."""
    errors: dict[str, int] = field(default_factory=dict)
    _known: dict[str, Attempt] = field(default_factory=dict)

    def render(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        prompt: bool = False,
        tools: Any = None,
        settings: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Return the rendering, or ``None`` if the template fails."""
        return self.attempt(messages, prompt=prompt, tools=tools, settings=settings).text

    def attempt(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        prompt: bool = False,
        tools: Any = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Attempt:
        """Return the rendering, or the reason why the template fails."""
        conversation, variables = self.inputs(messages, settings)
        key = repr((conversation, prompt, tools is None, tools == [], variables))
        if key not in self._known:
            self.renders += 1
            began = thread_time()
            try:
                text = self.template.render(conversation, tools=tools, add_generation_prompt=prompt, **variables)
                self._known[key] = Attempt(text)
            except TemplateLimitError as error:
                raise AnalysisError(f"not a chat template: {error}") from error
            except Exception as error:  # a template may raise any exception
                problem, line = getattr(error, "message", str(error)), getattr(error, "line", None) or 0
                self._known[key] = Attempt(None, problem, line, isinstance(error, TemplateRaised))
                described = f"{type(error).__name__}: {error}"[:200]
                self.errors[described] = self.errors.get(described, 0) + 1
            self.seconds += thread_time() - began
            if self.seconds > BUDGET:
                raise AnalysisError(f"the template takes too long: {self.renders} renderings took {self.seconds:.1f} s")
        return self._known[key]

    def inputs(
        self, messages: Sequence[dict[str, Any]], settings: Mapping[str, Any] | None = None
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return messages and variables as this template requires them."""
        conversation = list(messages)
        if self.system and conversation[0]["role"] != "system":
            conversation.insert(0, {"role": "system", "content": SYSTEM})
        if self.parts:
            conversation = [_in_parts(message) for message in conversation]
        variables = {**self.base, **(settings or {})}
        if not self.eos:
            variables["eos_token"] = self.end or EOS
        return conversation, variables

    def settle(self) -> str | None:
        """Find what the template requires before it renders anything, and return the prompt of one user message.

        Returns ``None`` if nothing helps.
        """
        asked = [{"role": "user", "content": ASKED}]
        missing: dict[str, Any] = {v: "" for v in sorted(self.template.variables) if v not in _STANDARD}
        if "documents" in self.template.variables:
            missing["documents"] = []
        for base, parts, system, tools in product(
            ({}, missing) if missing else ({},), (False, True), (False, True), (None, TOOLS, [])
        ):
            self.base, self.system, self.parts = dict(base), system, parts
            self.plain_tools = self.call_tools = tools
            rendered = self.render(asked, prompt=True, tools=tools)
            if rendered is not None and ASKED in rendered and not (parts and "'text'" in rendered):
                if tools is None and self.render(asked, prompt=True, tools=TOOLS) is not None:
                    self.call_tools = TOOLS
                return rendered
        return None

    def attempts(self) -> Iterable[tuple[str, Attempt]]:
        """Return what was rendered: the conversation with its variables, as Python writes them, and the result."""
        return self._known.items()

    def unreached(self) -> list[Branch]:
        """Return the branches that no rendering has run."""
        unreached = getattr(self.template, "unreached", None)
        return [] if unreached is None else list(unreached())

    def unreached_about(self, *fields: frozenset[str], items: bool = True) -> list[Branch]:
        """Return those of them that may read one field of each of these sets, and do more than refuse.

        Args:
            fields: sets of fields; an empty one is ignored.
            items: also if a variable is only one item of the field (``m.tool_calls[0]``).
        """
        wanted = [names.difference(self.toggles) for names in fields if names]
        unreached = [branch for branch in self.unreached() if not branch.refuses]
        return [branch for branch in unreached if all(branch.reads(names, items=items) for names in wanted)]

    def unreached_lines(self) -> list[int]:
        """Return the lines with a branch that no rendering has run."""
        lines = getattr(self.template, "unreached_lines", None)
        return [] if lines is None else list(lines())

    @property
    def branches(self) -> int:
        """Number of branches of the template."""
        return len(getattr(self.template, "branches", ()))

    @property
    def reasoning_keys(self) -> tuple[str, ...]:
        """The fields of a message in which this template may look for reasoning."""
        read: frozenset[str] = getattr(self.template, "fields", frozenset())
        others = {name for name in read if _REASONING_KEY.match(name)}.difference(REASONING_KEYS)
        return (*REASONING_KEYS, *sorted(others)[:_MOST_KEYS])

    def settings_for(self, fields: frozenset[str]) -> list[tuple[tuple[str, Any], ...]]:
        """Return settings that may lead to the branches which read these fields and were not reached."""
        names = {name for branch in self.unreached_about(fields) for name in branch.conditions}
        return [((name, value),) for name in self.toggles if name in names for value in (True, False)]

    def words_of(self, variable: str) -> tuple[str, ...]:
        """Return words that the template compares a variable with, such as levels of effort."""
        words: tuple[str, ...] = getattr(self.template, "choices", {}).get(variable, ())
        return words[:_MOST_WORDS]

    @property
    def inputs_read(self) -> frozenset[str]:
        """The variables that no probe may have set as this template needs it: its own, and the documents."""
        return frozenset((*self.toggles, "documents"))

    @property
    def toggles(self) -> list[str]:
        """Return the variables that only this template has: any of them may switch reasoning."""
        return [v for v in sorted(self.template.variables) if v not in _STANDARD][:16]

    def prompt(
        self, messages: Sequence[dict[str, Any]], style: Style = _NO_STYLE, *, calls: bool = False
    ) -> str | None:
        """Return the prompt that a model would get after ``messages``."""
        tools = self.call_tools if calls else self.plain_tools
        return self.render(messages, prompt=True, tools=tools, settings=dict(style.settings))
