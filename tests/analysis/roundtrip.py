"""An independent round trip over chat templates: nothing of the analysis takes part in it.

Conversations are rendered by an environment of its own, set up as transformers does, in the shapes that clients send.
The assistant's turn is what follows the text that all renderings of one template share. What the template cannot write
is not a scenario: its text does not show up. All else has to parse back.

``python -m tests.analysis.roundtrip FILE…`` prints the results of single templates.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby, product
from pathlib import Path
from typing import Any, Final

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

from untemplate import OutputParser

__all__ = ["SCENARIOS", "Report", "Result", "Scenario", "report_of", "scenarios_of"]

BOS: Final = "<s>"
EOS: Final = "<|stop-token|>"
USER: Final = "What's the weather in Lisbon?"
NEXT: Final = "Thank you very much."
SYSTEM: Final = "Be brief."


# -- Rendering --------------------------------------------------------------------------------------------------------


class _Generation(jinja2.ext.Extension):
    """``{% generation %}``: marks the assistant's tokens in transformers; transparent here."""

    tags = {"generation"}  # noqa: RUF012  (jinja2's own interface)

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _tojson(x: Any, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(x, ensure_ascii=ensure_ascii, **options)


def _environment() -> jinja2.Environment:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: datetime(2025, 7, 1).strftime(form)
    return environment


ENVIRONMENT: Final = _environment()


@dataclass(frozen=True)
class Shape:
    """How a client writes messages."""

    arguments: str = "object"
    ids: str = "short"
    """``named``: ``functions.NAME:0``, as some models count their calls."""
    empty: Any = ""
    reasoning: str = "reasoning_content"
    system: bool = False
    listed: bool = False
    settings: tuple[tuple[str, Any], ...] = ()


# -- Messages ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """One assistant message, and the ability that it needs."""

    name: str
    abilities: tuple[str, ...]
    content: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    place: str = "last"
    """``last``, ``middle`` (another question follows) or ``results`` (after the result of a call)."""

    def write(self, shape: Shape) -> dict[str, Any]:
        """Return the message as a client sends it."""
        content: Any = self.content or (shape.empty if self.calls else "")
        if shape.listed and isinstance(content, str):
            content = [{"type": "text", "text": content}]
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if self.reasoning and shape.reasoning == "parts":
            message["content"] = [
                {"type": "thinking", "thinking": self.reasoning},
                {"type": "text", "text": self.content},
            ]
        elif self.reasoning:
            message[shape.reasoning] = self.reasoning
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": f"functions.{name}:{i}" if shape.ids == "named" else f"Ab{i}cdefg{i}",
                    "type": "function",
                    "function": {
                        "name": name,
                        "arguments": dict(arguments)
                        if shape.arguments == "object"
                        else json.dumps(arguments, ensure_ascii=False),
                    },
                }
                for i, (name, arguments) in enumerate(self.calls)
            ]
        return message


def _tool(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": dict(properties), "required": []}
    return {
        "type": "function",
        "function": {"name": name, "description": f"The tool {name}.", "parameters": parameters},
    }


_STRING: Final = {"type": "string", "description": "Some text."}
TOOLS: Final = [
    _tool("fetch_forecast", {"town": _STRING, "days": {"type": "integer", "description": "How many."}}),
    _tool("run_query", {"statement": _STRING, "folder": _STRING, "limit": {"type": "integer", "description": "Most."}}),
    _tool(
        "configure",
        {
            "ratio": {"type": "number", "description": "A share."},
            "enabled": {"type": "boolean", "description": "On or off."},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Some tags."},
            "options": {"type": "object", "description": "Settings."},
            "parent": {"type": ["string", "null"], "description": "Its parent."},
            "label": _STRING,
        },
    ),
]

LISBON: Final = ("fetch_forecast", {"town": "Lisbon", "days": 3})
ANSWER: Final = "It is sunny in Lisbon.\n\nTake a hat, and don't forget water."
MARKDOWN: Final = "# Plan\n\n1. `x = a < b`\n2. *two*\n\n```python\nprint({'a': [1]})\n```\n\nDone: 50 % & more."
THOUGHT: Final = "They ask about Lisbon.\nLet me see what I know."


def _query(name: str, value: str) -> Scenario:
    return Scenario(f"string: {name}", ("awkward_strings",), calls=(("run_query", {"statement": value, "limit": 5}),))


def _typed(ability: str, key: str, value: Any) -> Scenario:
    return Scenario(f"typed: {key} {json.dumps(value)}", (ability,), calls=(("configure", {key: value, "label": "b"}),))


SCENARIOS: Final = (
    Scenario("plain", ("content",), ANSWER),
    Scenario("markdown", ("content",), MARKDOWN),
    Scenario("plain, middle", ("content", "several_turns"), ANSWER, place="middle"),
    Scenario("reasoning", ("reasoning",), ANSWER, THOUGHT),
    Scenario("one call", ("calls",), calls=(LISBON,)),
    Scenario("no arguments", ("no_arguments",), calls=(("fetch_forecast", {}),)),
    Scenario("two calls", ("parallel_calls",), calls=(LISBON, ("run_query", {"statement": "select 1", "limit": 10}))),
    Scenario(
        "three calls",
        ("parallel_calls",),
        calls=(LISBON, ("fetch_forecast", {"town": "Porto", "days": 1}), ("run_query", {"statement": "x"})),
    ),
    Scenario("content and call", ("content_with_calls",), "I look it up.", calls=(LISBON,)),
    Scenario("reasoning and call", ("reasoning_with_calls",), "", THOUGHT, calls=(LISBON,)),
    Scenario("reasoning, content and call", ("reasoning_with_calls",), "I look it up.", THOUGHT, calls=(LISBON,)),
    Scenario("plain, after results", ("content",), ANSWER, place="results"),
    _query("sql", "SELECT a, b FROM t WHERE a <= 3 AND b > 'x';"),
    _query("double quotes", 'say "hello" twice'),
    _query("single quotes", "it's Anna's"),
    _query("both quotes", 'it\'s "quoted"'),
    _query("backslashes", "C:\\new\\table\\x"),
    _query("lines", "def f(x):\n    return x\n\nprint(f(1))"),
    _query("newline at the end", "last line\n"),
    _query("newline at the start", "\nfirst line"),
    _query("tags", '<a href="u">link</a> &amp; <br/>'),
    _query("json", '{"k": [1, "two", {"n": null}]}'),
    _query("unicode", "Çeşme — 東京 🎏"),
    _query("number", "007"),
    _query("word", "true"),
    _query("brackets", "f(x)[0], {y} = [1, 2]"),
    _typed("number", "ratio", 0.25),
    _typed("boolean", "enabled", False),
    _typed("boolean", "enabled", True),
    _typed("array", "tags", ["red", "light blue"]),
    _typed("object", "options", {"mode": "fast", "depth": 2, "inner": {"on": True}}),
    _typed("null", "parent", None),
)


# -- One template -----------------------------------------------------------------------------------------------------


@dataclass
class Result:
    """One scenario: ``problem`` is empty if it came back."""

    scenario: Scenario
    prompt: str
    output: str
    problem: str = ""


@dataclass
class Report:
    """All scenarios that a template can write."""

    name: str
    certified: bool = False
    error: str = ""
    capabilities: dict[str, str] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)

    @property
    def wrong(self) -> list[Result]:
        """The scenarios that did not come back."""
        return [r for r in self.results if r.problem]

    @property
    def promised(self) -> list[Result]:
        """The wrong ones that the certificate promises: every ability that they need is `yes`, or it cannot be."""
        return [r for r in self.wrong if all(self.capabilities.get(a) in ("yes", "no") for a in r.scenario.abilities)]


class Renderer:
    """Renders scenarios with one template, in the first shape that shows them."""

    def __init__(self, source: str) -> None:
        self.template = ENVIRONMENT.from_string(source)
        self._known: dict[str, str | None] = {}

    def render(self, messages: Sequence[Any], shape: Shape, *, tools: Any, prompt: bool = False) -> str | None:
        """Return the text, or ``None`` if the template fails."""
        key = repr((messages, shape.system, shape.listed, shape.settings, tools is None, prompt))
        if key not in self._known:
            self._known[key] = self._render(messages, shape, tools, prompt)
        return self._known[key]

    def _render(self, messages: Sequence[Any], shape: Shape, tools: Any, prompt: bool) -> str | None:
        if shape.listed:
            messages = [
                {**m, "content": [{"type": "text", "text": m["content"]}]} if isinstance(m.get("content"), str) else m
                for m in messages
            ]
        if shape.system:
            messages = [{"role": "system", "content": SYSTEM}, *messages]
        try:
            return self.template.render(
                messages=messages, tools=tools, documents=None, add_generation_prompt=prompt, bos_token=BOS,
                eos_token=EOS, **dict(shape.settings),
            )  # fmt: skip
        except Exception:  # a template may raise anything
            return None

    def shapes(self, scenario: Scenario) -> Iterator[Shape]:
        """Yield the shapes that clients use, the usual ones first."""
        reasons = ("reasoning_content", "reasoning", "thinking", "thought", "parts") if scenario.reasoning else ("",)
        settings: tuple[tuple[tuple[str, Any], ...], ...] = ((),)
        if scenario.reasoning:
            settings += tuple(((name, True),) for name in ("enable_thinking", "thinking", "think", "keep_thinking"))
        arguments = ("object", "text") if scenario.calls else ("object",)
        empties = (None, "") if scenario.calls and not scenario.content else ("",)
        ids = ("short", "named") if scenario.calls else ("short",)
        for system, listed, setting, reason, empty, argument, kind in product(
            (False, True), (False, True), settings, reasons, empties, arguments, ids
        ):
            yield Shape(argument, kind, empty, reason, system, listed, setting)

    def conversation(self, scenario: Scenario, shape: Shape) -> list[dict[str, Any]]:
        """Return the messages, the scenario's included."""
        messages: list[dict[str, Any]] = [{"role": "user", "content": USER}]
        if scenario.place == "results":
            before = Scenario("", (), calls=(LISBON,)).write(shape)
            result = {"role": "tool", "content": "22 degrees", "tool_call_id": "Ab0cdefg0", "name": "fetch_forecast"}
            messages += [before, result]
        return [*messages, scenario.write(shape)]

    def turn(self, scenario: Scenario) -> tuple[str, str] | None:
        """Return prompt and output of the least odd of the shapes that show the whole message."""
        best: tuple[int, tuple[str, str]] | None = None
        if not scenario.reasoning and scenario.place != "middle" and self._continues():
            if scenario.place == "results":
                return None
            scenario = replace(scenario, place="middle")
        for _, shapes in groupby(self.shapes(scenario), lambda s: (s.system, s.listed, s.settings, s.reasoning)):
            for shape in shapes:
                if scenario.calls and shape.arguments != self._arguments:
                    continue
                found = self._turn(scenario, shape)
                if found is not None:
                    rank = _oddness(found[1], scenario)
                    best = (rank, found) if best is None or rank < best[0] else best
            if best is not None:
                return best[1]
        return None

    @cached_property
    def _arguments(self) -> str:
        """The one way in which this template is given arguments: models are trained with one."""
        one = Scenario("", (), calls=(LISBON,))
        found: tuple[int, str] | None = None
        for shape in self.shapes(one):
            turn = self._turn(one, shape)
            if turn is not None and (found is None or _oddness(turn[1], one) < found[0]):
                found = _oddness(turn[1], one), shape.arguments
        return "object" if found is None else found[1]

    @cached_property
    def _thought_front(self) -> str:
        """The text that the template writes between the header and reasoning."""
        found = self.turn(next(scenario for scenario in SCENARIOS if scenario.name == "reasoning"))
        return found[1].partition(THOUGHT)[0] if found is not None else ""

    def _continues(self) -> bool:
        """True if the template leaves its last message open, to be continued: it has the text of a prompt before it,
        which the same message has not before another question."""
        shape = Shape()
        said = {"role": "assistant", "content": ANSWER}
        asked = {"role": "user", "content": USER}
        last = _after(self.render([asked, said], shape, tools=None) or "", USER).partition(ANSWER)[0]
        middle = self.render([asked, said, {"role": "user", "content": NEXT}], shape, tools=None) or ""
        front = middle.partition(USER)[2].partition(ANSWER)[0]
        prompt = _after(self.render([asked], shape, tools=None, prompt=True) or "", USER)
        return ANSWER in middle and last.startswith(front) and last.strip() == prompt.strip() != front.strip()

    def _ends_early(self, output: str, scenario: Scenario, shape: Shape) -> bool:
        """True if the template ends the turn before all of the message is written: no model writes the rest."""
        asked, said = {"role": "user", "content": USER}, {"role": "assistant", "content": ANSWER}
        whole = self.render([asked, said], shape, tools=None) or ""
        end = next(iter(_TAG.findall(whole.partition(ANSWER)[2])), "")
        parts = _parts(scenario)
        first = min(output.find(part) + len(part) for part in parts)
        last = max(output.rfind(part) for part in parts)
        return bool(end) and end in output[first:last]

    def _is_ambiguous(self, scenario: Scenario, shape: Shape, whole: str) -> bool:
        """True if the template writes other arguments, with text in place of numbers, in the same way."""
        other = replace(scenario, calls=tuple((name, _spelled_out(values)) for name, values in scenario.calls))
        nested = any(isinstance(value, (dict, list)) for _, values in scenario.calls for value in values.values())
        return nested and self.render(self.conversation(other, shape), shape, tools=TOOLS) == whole

    def _turn(self, scenario: Scenario, shape: Shape) -> tuple[str, str] | None:
        conversation = self.conversation(scenario, shape)
        tools = TOOLS if scenario.calls or scenario.place == "results" else None
        after = [{"role": "user", "content": NEXT}] if scenario.place == "middle" else []
        whole = self.render([*conversation, *after], shape, tools=tools)
        prompt = self.render(conversation[:-1], shape, tools=tools, prompt=True)
        if whole is None or prompt is None or _parts(scenario)[0] not in whole:
            return None
        asked = conversation[-2]["content"]
        if asked not in whole or asked not in prompt:
            return None
        prompt = _after(prompt, asked)
        start = whole.index(asked) + len(asked)
        header = self._header(shape, conversation, tools, whole[start:], prompt)
        output = whole[start + header :]
        if scenario.place == "middle":
            if NEXT not in output:
                return None
            output = output[: output.index(NEXT)].removesuffix(self._question_front(shape, tools))
        else:
            bare = self.render(conversation[:-1], shape, tools=tools) or ""
            output = _without_trailer(output, _after(bare, asked), _parts(scenario)[-1])
            if self._has_trailer(shape):
                output = output.removesuffix(_shared_end(output, _after(bare, asked)))
        if not _shows(output, scenario) or self._is_reasoning(scenario, shape, whole):
            return None
        if self._ends_early(output, scenario, shape) or self._is_ambiguous(scenario, shape, whole):
            return None
        stop = output.find(EOS, max(output.find(part) for part in _parts(scenario)))
        before = whole[: start + header]
        opened = prompt[_shared_start(prompt, before[start:])[0] :].strip()
        if scenario.reasoning and output.lstrip().startswith(scenario.reasoning) and opened not in output:
            before = whole[:start] + prompt  # it opens reasoning with words that the history does not have
        return before, output[:stop] if stop >= 0 else output

    def _is_reasoning(self, scenario: Scenario, shape: Shape, whole: str) -> bool:
        """True if the template writes this content as it writes reasoning."""
        if not scenario.content or not scenario.calls or scenario.reasoning:
            return False
        front = whole.partition(scenario.content)[0][-len(self._thought_front) :]
        if self._thought_front.strip() and front == self._thought_front:
            return True
        other = replace(scenario, content="", reasoning=scenario.content)
        shapes = [replace(shape, reasoning=key) for key in ("reasoning_content", "thinking", "reasoning", "thought")]
        return any(self.render(self.conversation(other, one), one, tools=TOOLS) == whole for one in shapes)

    def _has_trailer(self, shape: Shape) -> bool:
        """True if the template writes more after its last message than comes before another question: the header of the
        next turn, or the end of the text."""
        asked, said = {"role": "user", "content": USER}, {"role": "assistant", "content": ANSWER}
        last = self.render([asked, said], shape, tools=None) or ""
        middle = self.render([asked, said, {"role": "user", "content": NEXT}], shape, tools=None) or ""
        return not middle.partition(ANSWER)[2].startswith(last.partition(ANSWER)[2].rstrip())

    def _question_front(self, shape: Shape, tools: Any) -> str:
        """Return the text between a turn and the question after it, which the first question has as well."""
        first, said = {"role": "user", "content": USER}, {"role": "assistant", "content": ANSWER}
        one = self.render([first], shape, tools=tools) or ""
        two = self.render([first, said, {"role": "user", "content": NEXT}], shape, tools=tools) or ""
        if NEXT not in two or USER not in one or ANSWER not in two:
            return ""
        return _shared_end(two[two.index(ANSWER) + len(ANSWER) : two.index(NEXT)], one[: one.index(USER)])

    def _header(self, shape: Shape, conversation: list[Any], tools: Any, whole: str, prompt: str) -> int:
        """Return the length of the text before the turn: the prompt's, or what all answers share. White space is not
        compared: some templates write more of it in the history."""
        start, rest = _shared_start(whole, prompt)
        if not rest:
            return start
        for other in ("Yes.", "7 of them.", "ok then", "<x>"):
            said = self.render([*conversation[:-1], Scenario("", (), other).write(shape)], shape, tools=tools)
            if said is not None:
                start = min(start, _shared_start(whole, _after(said, conversation[-2]["content"]))[0])
        if rest[:1].isalnum() and whole[start : start + 1].isalnum() and re.search(r"<[^<>]*>\Z", whole[:start]):
            return whole.rindex("<", 0, start)  # the header of another role
        cut = max(whole.rfind(c, 0, start) for c in "<[")
        inside = whole[cut:start]
        return cut if cut >= 0 and len(inside) < 40 and not re.search(r"[>\]\n]", inside) else start


def _after(text: str, message: str) -> str:
    return text[text.rfind(message) + len(message) :] if message in text else ""


def _shared_start(text: str, other: str) -> tuple[int, str]:
    """Return how far ``text`` is the same as ``other``, white space aside, and what is left of ``other``."""
    i = j = 0
    while True:
        while i < len(text) and text[i].isspace() and (j >= len(other) or text[i] != other[j]):
            i += 1
        while j < len(other) and other[j].isspace() and (i >= len(text) or text[i] != other[j]):
            j += 1
        if i >= len(text) or j >= len(other) or text[i] != other[j]:
            return i, other[j:].strip()
        i, j = i + 1, j + 1


def _without_trailer(output: str, bare: str, part: str) -> str:
    """Remove text that the template writes after the last message, whatever that is, even if it names the role."""
    after = output.rpartition(part)[2]
    size = _shared_start(after, bare)[0]
    return output[: len(output) - len(after)] if size >= _TRAILER else output


_TRAILER: Final = 40
"""Characters of a text after the last message that cannot be the end of a turn."""
_TAG: Final = re.compile(r"<[^<>\n]+>|\[[^\[\]\n]+\]")


def _spelled_out(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments whose objects and arrays hold text in place of numbers and booleans."""
    return {key: _as_text(value) if isinstance(value, (dict, list)) else value for key, value in arguments.items()}


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return value if isinstance(value, str) else json.dumps(value)


def _shared_end(text: str, other: str) -> str:
    """Return the longest run of words and tags that both end with."""
    shared = ""
    for one, two in zip(reversed(_WORDS.findall(text)), reversed(_WORDS.findall(other)), strict=False):
        if one != two:
            break
        shared = one + shared
    return shared


_WORDS: Final = re.compile(r"<[^<>\n]*>|\[[^\[\]\n]*\]|\w+|\s|.", re.DOTALL)


def _oddness(output: str, scenario: Scenario) -> int:
    """Count what no model was trained to write: Python's quotes around keys, JSON inside of JSON, the word None."""
    keys = [key for _, arguments in scenario.calls for key in arguments]
    odd = sum(f"'{key}'" in output or f'\\"{key}\\"' in output for key in keys)
    return odd + (bool(scenario.calls) and "None" in output.partition(scenario.calls[0][0])[0])


def _parts(scenario: Scenario) -> list[str]:
    return [p for p in (scenario.reasoning, scenario.content, *(name for name, _ in scenario.calls)) if p]


def _shows(output: str, scenario: Scenario) -> bool:
    """True if a rendering has all parts of the message; values as they are, as JSON or as Python writes them."""
    for part in _parts(scenario):
        if part not in output:
            return False
    if re.search(r"\{['\"]type['\"]: ['\"]text['\"]", output):
        return False  # content that is a list, printed as it is
    for name in {name for name, _ in scenario.calls}:
        if output.count(name) < sum(n == name for n, _ in scenario.calls):
            return False
    later = [key for _, arguments in scenario.calls for key in list(arguments)[1:]]
    if any(re.search(rf"\w['\"]?{key}=", output) for key in later):
        return False  # the arguments run into each other
    return all(
        key in output and _shows_value(output, key, value)
        for _, arguments in scenario.calls
        for key, value in arguments.items()
    )


def _shows_value(output: str, key: str, value: Any) -> bool:
    spelled = [
        json.dumps(value, ensure_ascii=False),
        json.dumps(value),
        repr(value),
        json.dumps(value, separators=(",", ":")),
    ]
    if not isinstance(value, str):
        leaves = [str(v) for v in re.findall(r"\w+", json.dumps(value))]
        return any(s in output for s in spelled) or all(leaf.lower() in output.lower() for leaf in leaves)
    escaped = [s[1:-1] for s in spelled] + [json.dumps(json.dumps(value))[3:-3]]
    if any(s in output for s in escaped if s != value):
        return True
    at = output.find(value)
    if at <= 0:
        return False
    # A quoted string that holds the same quotes, or backslashes that nothing escapes, cannot be read by anybody.
    before, after = output[at - 1], output[at + len(value) : at + len(value) + 1]
    quoted = before == after and before in "'\"`"
    bare = before in "=:" and after in ",)}"
    return not ((quoted and (before in value or "\\" in value or "\n" in value)) or (bare and not value.istitle()))


def scenarios_of(source: str) -> Iterator[tuple[Scenario, str, str]]:
    """Yield every scenario that a template can write, with prompt and output."""
    renderer = Renderer(source)
    for scenario in SCENARIOS:
        turn = renderer.turn(scenario)
        if turn is not None:
            yield scenario, *turn


def compared(parser: OutputParser, scenario: Scenario, prompt: str, output: str) -> str:
    """Return the difference between what was written and what comes back, "" if there is none."""
    parsed = parser.parse(output, tools=TOOLS if scenario.calls else None, prompt=prompt)
    if (parsed.reasoning or "").strip() != scenario.reasoning.strip():
        return f"reasoning {parsed.reasoning!r}"
    if (parsed.content or "").strip() != scenario.content.strip():
        return f"content {parsed.content!r}"
    calls = parsed.tool_calls or []
    if len(calls) != len(scenario.calls):
        return f"{len(calls)} calls"
    for call, (name, arguments) in zip(calls, scenario.calls, strict=True):
        if call.function.name != name:
            return f"name {call.function.name!r}"
        try:
            found = json.loads(call.function.arguments)
        except ValueError:
            return f"arguments {call.function.arguments!r}"
        if json.dumps(found, sort_keys=True) != json.dumps(arguments, sort_keys=True):
            return f"arguments {call.function.arguments!r}"
    return ""


def report_of(path: Path, make: Any = None) -> Report:
    """Analyse one template, and parse back what it renders."""
    source = path.read_text(encoding="utf-8")
    report = Report(path.name)
    try:
        scenarios = list(scenarios_of(source))
    except jinja2.TemplateError as error:
        report.error = f"{type(error).__name__}: {error}"
        return report
    try:
        parser = (make or (lambda text: OutputParser.from_template(text, cache=False)))(source)
    except Exception as error:
        report.error = f"{type(error).__name__}: {error}"
        report.results = [Result(s, p, o, "no parser") for s, p, o in scenarios]
        return report
    if parser.certificate is not None:
        report.certified = parser.certificate.certified
        report.capabilities = dict(parser.certificate.capabilities)
    for scenario, prompt, output in scenarios:
        problem = compared(parser, scenario, prompt, output)
        report.results.append(Result(scenario, prompt, output, problem))
    return report


def totals(reports: Sequence[Report]) -> str:
    """Return the counts in two lines."""
    scenarios, wrong = sum(len(r.results) for r in reports), sum(len(r.wrong) for r in reports)
    return (
        f"{len(reports)} templates, {sum(r.certified for r in reports)} certified, "
        f"{sum(bool(r.error) for r in reports)} without an analysis\n"
        f"{scenarios} scenarios, {wrong} do not come back ({100 * wrong / max(scenarios, 1):.1f} %), "
        f"{sum(len(r.wrong) for r in reports if r.certified)} of them certified, "
        f"{sum(len(r.promised) for r in reports)} promised"
    )


def main(paths: Sequence[str]) -> None:
    """Print what does not come back, and the counts."""
    reports = []
    for path in paths:
        report = report_of(Path(path))
        reports.append(report)
        if report.error:
            print(f"{report.name}: {report.error}")
        for r in report.wrong:
            word = {a: report.capabilities.get(a) for a in r.scenario.abilities}
            certified = " CERTIFIED" if report.certified else ""
            print(f"{report.name}{certified}: {r.scenario.name} {word}: {r.problem[:200]}")
            if os.environ.get("SHOW"):
                print(f"    prompt …{r.prompt[-80:]!r}\n    output {r.output[:400]!r}")
    print(totals(reports))


if __name__ == "__main__":
    main(sys.argv[1:])
