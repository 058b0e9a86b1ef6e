"""``untemplate.integrations.sglang`` in SGLang's own parsers: ``make test-integrations``.

The parsers are called as SGLang's chat endpoint calls them; its server needs a GPU. Exported response templates are
read by SGLang's parser for them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("sglang.srt.parser.response_template", reason="needs SGLang")
xgrammar = pytest.importorskip("xgrammar")

from sglang.srt import plugins  # noqa: E402
from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest, Tool  # noqa: E402
from sglang.srt.function_call.function_call_parser import FunctionCallParser  # noqa: E402
from sglang.srt.parser.reasoning_parser import ReasoningParser  # noqa: E402
from sglang.srt.parser.response_template import validate_response_template_for_serving  # noqa: E402

import untemplate.integrations.sglang  # noqa: E402, F401
from untemplate._internal.output_parser import OutputParser  # noqa: E402
from untemplate._internal.render import expressible, render  # noqa: E402
from untemplate.format import Format, FormatError  # noqa: E402
from untemplate.formats import entries  # noqa: E402

from . import helper  # noqa: E402
from .helper import MESSAGES, TOOLS  # noqa: E402

ROOT = Path(__file__).parents[2]
OFFERED = [Tool(**tool) for tool in TOOLS]
Message = tuple[str, str, list[tuple[str, str]]]
"""Reasoning, content, and calls as names and arguments."""


EVERY = [pytest.param(entry.name, entry.format, id=entry.name) for entry in entries()]


def ours(fmt: Format, text: str, prompt: str) -> Message:
    parsed = OutputParser.from_format(fmt).parse(text, tools=TOOLS, prompt=prompt)
    calls = [(call.function.name, call.function.arguments) for call in parsed.tool_calls]
    return parsed.reasoning or "", parsed.content or "", calls


def request(prompt: str, **fields: Any) -> Any:
    made = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Hi"}], **fields)
    made._response_parser_prefix = prompt  # SGLang's server sets it
    return made


def whole(name: str, text: str, prompt: str, tokenizer: Any = None, calls: bool = True) -> Message:
    """Parse as SGLang's chat endpoint does for a whole answer."""
    options = {"tokenizer": tokenizer, "tool_call_parser_active": calls}
    reasoning, rest = ReasoningParser(name, False, None, request(prompt, tools=TOOLS), **options).parse_non_stream(text)
    found: list[Any] = []
    if calls:
        parser = FunctionCallParser(OFFERED, name, tokenizer=tokenizer, prefix=prompt)
        if parser.has_tool_call(rest):
            rest, found = parser.parse_non_stream(rest)
    return reasoning or "", rest or "", [(one.name, one.parameters) for one in found]


class Streamed:
    """Parses as SGLang's chat endpoint does for a streamed answer."""

    def __init__(self, name: str, prompt: str, tokenizer: Any = None) -> None:
        options = {"tokenizer": tokenizer, "tool_call_parser_active": True}
        self.thoughts = ReasoningParser(name, True, None, request(prompt, tools=TOOLS), **options)
        self.parser = FunctionCallParser(OFFERED, name, tokenizer=tokenizer, prefix=prompt)
        self.reasoning = self.content = ""
        self.calls: dict[int, list[str]] = {}

    def parse(self, text: str, step: int) -> Message:
        return self.parse_pieces([text[at : at + step] for at in range(0, len(text), step)])

    def parse_pieces(self, pieces: list[str]) -> Message:
        for piece in pieces:
            self._take(*self.thoughts.parse_stream_chunk(piece))
        self._take(*self.thoughts.parse_stream_end())
        self._add(*self.parser.parse_stream_end())
        return self.reasoning, self.content, [(name, arguments) for name, arguments in self.calls.values()]

    def _take(self, reasoning: str, rest: str) -> None:
        self.reasoning += reasoning
        if rest:
            self._add(*self.parser.parse_stream_chunk(rest))

    def _add(self, content: str, calls: list[Any]) -> None:
        self.content += content
        for one in calls:
            made = self.calls.setdefault(one.tool_index, ["", ""])
            made[0] += one.name or ""
            made[1] += one.parameters


@pytest.mark.parametrize(("name", "fmt"), EVERY)
def test_every_format_gives_the_same_message(name: str, fmt: Format):
    prompt = fmt.turn.start.text if fmt.turn.start is not None else ""
    for message in MESSAGES:
        if expressible(fmt, message, TOOLS) is not None:
            continue
        text = render(fmt, message)
        expected = ours(fmt, text, prompt)
        assert whole(f"untemplate:{name}", text, prompt) == expected, text
        assert Streamed(f"untemplate:{name}", prompt).parse(text, 1) == expected, text
        assert Streamed(f"untemplate:{name}", prompt).parse(text, 7) == expected, text


OUTPUT = '<think>\nLook it up.\n</think>\n\nOne moment.\n<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>'
PROMPT = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
CALLED = ("Look it up.", "One moment.", [("time", "{}")])


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """A tokenizer of transformers, whose chat template decides the Format."""
    return helper.tokenizer()


def test_the_template_of_the_tokenizer_decides(tokenizer: Any):
    assert whole("untemplate", OUTPUT, PROMPT, tokenizer) == CALLED
    assert Streamed("untemplate", PROMPT, tokenizer).parse(OUTPUT, 3) == CALLED


def test_two_formats_can_be_named():
    reasoning, rest = ReasoningParser("untemplate:qwen3", False, tool_call_parser_active=True).parse_non_stream(OUTPUT)
    content, calls = FunctionCallParser(OFFERED, "untemplate:hermes").parse_non_stream(rest)
    assert (reasoning, content, [(one.name, one.parameters) for one in calls]) == CALLED


def test_without_a_tokenizer_a_format_must_be_named():
    problem = r"^untemplate needs the tokenizer's chat template; without one, name a format: untemplate:NAME$"
    with pytest.raises(ValueError, match=problem):
        FunctionCallParser(OFFERED, "untemplate")


def test_the_prompt_decides_where_reasoning_begins(tokenizer: Any):
    text = OUTPUT.removeprefix("<think>\n")
    assert whole("untemplate", text, PROMPT + "<think>\n", tokenizer) == CALLED
    assert Streamed("untemplate", PROMPT + "<think>\n", tokenizer).parse(text, 3) == CALLED


def test_without_a_tool_parser_calls_are_content(tokenizer: Any):
    rest = OUTPUT.partition("</think>\n\n")[2]
    assert whole("untemplate", OUTPUT, PROMPT, tokenizer, calls=False) == ("Look it up.", rest, [])


def test_a_call_in_reasoning_that_never_ends_is_a_call(tokenizer: Any):
    text = OUTPUT.replace("\n</think>\n\nOne moment.", "")
    expected = ("Look it up.", "", [("time", "{}")])
    assert whole("untemplate", text, PROMPT, tokenizer) == expected
    assert Streamed("untemplate", PROMPT, tokenizer).parse(text, 3) == expected


def test_a_cut_call_is_text_or_incomplete(tokenizer: Any):
    """SGLang's finish reason is `tool_calls` if there is any call, except for streamed calls that are marked."""
    cut = OUTPUT[: OUTPUT.index("}}")]
    assert whole("untemplate", cut, PROMPT, tokenizer) == ("Look it up.", cut.partition("</think>\n\n")[2], [])
    streamed = Streamed("untemplate", PROMPT, tokenizer)
    assert streamed.parse(cut, 3) == ("Look it up.", "One moment.", [("time", "{")])
    assert streamed.parser.detector.incomplete_tool_call_indices == {0}


PIECES = [OUTPUT[at : at + 3] for at in range(0, len(OUTPUT), 3)]


def source(streamed: Streamed) -> str:
    return type(streamed.parser.detector._source).__name__


def test_the_tool_parser_takes_over_what_the_reasoning_parser_has_read(tokenizer: Any):
    streamed = Streamed("untemplate", PROMPT, tokenizer)
    assert streamed.parse_pieces(PIECES) == CALLED
    assert source(streamed) == "_Split"


def test_the_tool_parser_reads_what_was_read_with_other_tools_or_given_later(tokenizer: Any):
    streamed = Streamed("untemplate", PROMPT, tokenizer)
    other = {"type": "function", "function": {"name": "other"}}
    streamed.parser = FunctionCallParser([*OFFERED, Tool(**other)], "untemplate", tokenizer=tokenizer, prefix=PROMPT)
    assert streamed.parse_pieces(PIECES) == CALLED
    assert source(streamed) == "_Output"

    later = Streamed("untemplate", PROMPT, tokenizer)
    found = [later.thoughts.parse_stream_chunk(piece) for piece in PIECES]
    for reasoning, rest in [*found, later.thoughts.parse_stream_end()]:
        later._take(reasoning, rest)
    later._add(*later.parser.parse_stream_end())
    assert (later.reasoning, later.content, list(map(tuple, later.calls.values()))) == CALLED
    assert source(later) == "_Output"


def test_reasoning_after_the_first_call_is_reasoning_in_any_pieces():
    call = "<tool_call>time</tool_call>"
    text = f"{call}\n<think>And which?</think>\n{call}"
    for step in (1, 7, len(text)):
        streamed = Streamed("untemplate:glm45", "")
        assert streamed.parse(text, step) == ("And which?", "", [("time", "{}"), ("time", "{}")]), step


def test_a_call_is_read_in_steps():
    """Each part of it is an event of SGLang's stream."""
    text = OUTPUT.replace("{}", '{"zone": "Pacific/Auckland, which is far away from here"}')
    parser = FunctionCallParser(OFFERED, "untemplate:hermes")
    parts = [parser.parse_stream_chunk(piece)[1] for piece in text.partition("</think>\n\n")[2]]
    assert sum(map(len, parts)) == 3
    assert parser.parse_stream_end() == ("", [])


def test_reasoning_waits_for_its_end_where_it_is_not_streamed():
    parser = ReasoningParser("untemplate:qwen3", False, None, request(PROMPT))
    parts = ["<think>\nLook ", "it up.", "\n</think>\n\n", "One ", "moment."]
    assert [*map(parser.parse_stream_chunk, parts), parser.parse_stream_end()] == [
        ("", ""), ("", ""), ("", ""), ("Look it up.", "One"), ("", " moment."), ("", ""),
    ]  # fmt: skip


def test_reasoning_alone_can_be_the_content():
    made = request(PROMPT, chat_template_kwargs={"force_nonempty_content": True})
    assert ReasoningParser("untemplate:qwen3", True, None, made).parse_non_stream("<think>\nLook it up.") == (
        "", "Look it up.",
    )  # fmt: skip
    parser = ReasoningParser("untemplate:qwen3", True, None, made)
    assert parser.parse_stream_chunk("<think>\nLook it up.") == ("Look it up.", "")
    assert parser.parse_stream_end() == ("", "Look it up.")


def test_json_that_a_grammar_forces_is_not_parsed():
    made = request(PROMPT + "<think>\n", tools=TOOLS)
    made._response_parser_grammar_start = "from_start"
    parser = ReasoningParser("untemplate:qwen3", True, None, made)
    assert parser.parse_non_stream('{"a": "</think>"}') == ("", '{"a": "</think>"}')
    assert parser.parse_stream_chunk('{"a": "</think>"}') == ("", '{"a": "</think>"}')


@pytest.mark.parametrize(("name", "fmt"), EVERY)
def test_forced_calls_are_decoded_in_the_format_of_the_model(name: str, fmt: Format):
    if not fmt.tools and fmt.channels is None:
        return
    parser = FunctionCallParser(OFFERED, f"untemplate:{name}")
    assert parser.owns_tool_format()
    kind, tag = parser.get_structure_constraint("required")
    assert kind == "structural_tag"
    grammar = xgrammar.Grammar.from_structural_tag(tag)
    assert str(grammar)


def test_automatic_calls_are_constrained_only_on_request():
    parser = FunctionCallParser(OFFERED, "untemplate:hermes")
    assert parser.get_structure_constraint("auto") is None
    assert parser.get_structure_constraint("auto", parallel_tool_calls=False)[0] == "structural_tag"
    strict = Tool(type="function", function={**TOOLS[0]["function"], "strict": True})
    assert FunctionCallParser([strict], "untemplate:hermes").get_structure_constraint("auto")[0] == "structural_tag"


SPAWN = """\
import multiprocessing, runpy, sys
import sglang.launch_server, sglang.srt.utils, child

def run_server(args):
    print("arguments:", args.tool_call_parser, args.reasoning_parser, flush=True)
    process = multiprocessing.get_context("spawn").Process(target=child.known)
    process.start()
    process.join()

sglang.launch_server.run_server = run_server
sys.argv[1:] = "--model-path m --tool-call-parser untemplate --reasoning-parser untemplate:qwen3".split()
runpy.run_module("untemplate.integrations.sglang", run_name="__main__", alter_sys=True)
"""
CHILD = """\
def known():
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.parser.reasoning_parser import ReasoningParser
    print("untemplate" in FunctionCallParser.ToolCallParserEnum, "untemplate:qwen3" in ReasoningParser.DetectorMap)
"""


def test_the_launcher_registers_in_every_process(tmp_path: Path):
    """SGLang reads the arguments; in place of its server, a child process lists what it knows."""
    (tmp_path / "child.py").write_text(CHILD, "utf-8")
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(tmp_path)])}
    done = subprocess.run(
        [sys.executable, "-c", SPAWN], capture_output=True, text=True, env=environ, cwd=tmp_path, check=False
    )
    assert done.stdout.splitlines()[-2:] == ["arguments: untemplate untemplate:qwen3", "True True"], done.stderr


def test_sglang_finds_the_plugin(monkeypatch: pytest.MonkeyPatch):
    """An installed package has this entry point, and ``sglang serve`` loads it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    ((name, value),) = declared[plugins.GENERAL_PLUGINS_GROUP].items()
    found = EntryPoint(name, value, plugins.GENERAL_PLUGINS_GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [found] if group == found.group else [])
    monkeypatch.setattr(plugins, "_plugins_loaded", False)
    monkeypatch.setattr(FunctionCallParser, "ToolCallParserEnum", {})
    plugins.load_plugins()
    assert "untemplate:hermes" in FunctionCallParser.ToolCallParserEnum


# -- Response templates -------------------------------------------------------------------------------------------

ENDED_BY_THE_OUTPUT = {
    "firefunction_v2", "functionary_v3.2", "gigachat3", "gpt-oss", "granite", "granite-20b-fc", "mistral", "mistral_v3",
    "phi4_mini_json",
}  # fmt: skip
"""Formats whose last call has no marker at its end. SGLang drops such a call: it may have been cut."""


def test_sglang_reads_exported_templates():
    counts: Counter[str] = Counter()
    for entry in entries():
        fmt = entry.format
        try:
            template = fmt.to_response_template("engine")
        except FormatError:
            counts["formats that cannot be exported"] += 1
            continue
        validate_response_template_for_serving(template)
        assert fmt.turn.start is not None
        for message in MESSAGES:
            if expressible(fmt, message, TOOLS) is None:
                same = reads_as_we_do(fmt, template, render(fmt, message), fmt.turn.start.text)
                assert same or (fmt.name in ENDED_BY_THE_OUTPUT and "tool_calls" in message), (fmt.name, message)
                counts["turns that are the same" if same else "turns without the last call"] += 1
    print(dict(counts))
    assert counts["turns that are the same"] >= 353


def reads_as_we_do(fmt: Format, template: dict[str, Any], text: str, prompt: str) -> bool:
    tokenizer = SimpleNamespace(response_template=template)
    found = whole("response_template", text, prompt, tokenizer, calls="tool_calls" in template["fields"])
    return with_values(found) == with_values(ours(fmt, text, prompt))


def with_values(message: Message) -> tuple[str, str, list[tuple[str, Any]]]:
    reasoning, content, calls = message
    return reasoning, content, [(name, json.loads(arguments)) for name, arguments in calls]


@pytest.mark.parametrize("call", range(3))
def test_what_slime_asks_of_sglang_s_classes(call: int):
    """The calls that ``docs/trainers.json`` records."""
    calls = json.loads((ROOT / "docs" / "trainers.json").read_text("utf-8"))["projects"]["slime"]["calls"]
    assert len(calls) == 3
    rest = '<tool_call>\n{"name": "find", "arguments": {"q": "tea"}}\n</tool_call>'
    text = f"<think>\nHm.\n</think>\n\n{rest}"
    names = {"reasoning": "untemplate:qwen3", "tool": "untemplate:hermes", "text": text, "rest": rest, "tools": OFFERED}
    classes = {"ReasoningParser": ReasoningParser, "FunctionCallParser": FunctionCallParser}
    found = eval(calls[call]["call"], classes, names)
    if call == 2:
        found = [(one.name, one.parameters) for one in found[1]]
    assert found == [("Hm.", rest), True, [("find", '{"q": "tea"}')]][call]
