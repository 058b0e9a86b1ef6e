"""``OutputParser`` as a server uses it: parsers by name, whole outputs, streams, requests and results."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.vllm_api.parser_examples import Tokenizer
from untemplate import OutputParser
from untemplate.messages import (
    ChatCompletionRequest,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ParsedOutput,
    ToolCall,
)
from untemplate.vllm_api import (
    DeltaMessage as NewDelta,
)
from untemplate.vllm_api import (
    ReasoningParser,
    ReasoningParserManager,
    ToolParser,
    ToolParserManager,
    make_parser_request,
)

from .table import Table, parameters

TABLE = Table("handlers", "untemplate._internal.output_parser")
add, row = TABLE.add, TABLE.row
PARSER = "OutputParser"
MANAGERS = "untemplate.vllm_api._managers"
MESSAGES = "untemplate.messages"
TOKENIZER = Tokenizer("<think>", "</think>", "<tool_call>", "</tool_call>")
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
REQUEST = make_parser_request("m", [], TOOLS)
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
STREAMED = "previous_text current_text delta_text previous_token_ids current_token_ids delta_token_ids"


def parser(reasoning: str | None = "qwen3", tools: str | None = "hermes") -> OutputParser:
    return OutputParser(TOKENIZER, reasoning, tools)


def half(kind: str, name: str) -> Any:
    if kind == "reasoning":
        return ReasoningParserManager.get_reasoning_parser(name)(TOKENIZER)
    return ToolParserManager.get_tool_parser(name)(TOKENIZER)


# -- names --------------------------------------------------------------------------------------------------------

REASONING = [
    "deepseek_r1",
    "deepseek_v3",
    "granite",
    "qwen3",
    "hunyuan_a13b",
    "mistral",
    "glm45",
    "holo2",
    "kimi_k2",
    "minimax_m2",
    "olmo3",
    "ernie45",
    "gptoss",
]
CALLS = [
    "hermes",
    "mistral",
    "llama3_json",
    "llama4_json",
    "llama4_pythonic",
    "pythonic",
    "granite",
    "granite-20b-fc",
    "internlm",
    "jamba",
    "phi4_mini_json",
    "qwen3_coder",
    "qwen3_xml",
    "xlam",
    "kimi_k2",
    "minimax",
    "deepseek_v3",
]
for names, kind, base, manager in (
    (REASONING, "reasoning", ReasoningParser, ReasoningParserManager),
    (CALLS, "tool", ToolParser, ToolParserManager),
):
    code = f"{MANAGERS}:{manager.__name__}.get_{kind}_parser"
    for name in names:
        add(
            code,
            f"{name} is a {kind} parser, made with a tokenizer",
            lambda kind=kind, name=name, base=base: (isinstance(half(kind, name), base), True),
        )
        add(
            f"{MANAGERS}:{manager.__name__}.list_registered",
            f"{name} is in the list of {kind} parsers",
            lambda manager=manager, name=name: (name in manager.list_registered(), True),
        )
        add(
            f"{PARSER}.__init__",
            f"an OutputParser takes {name} as {kind}_parser_name",
            lambda kind=kind, name=name: (type(OutputParser(None, **{f"{kind}_parser_name": name})), OutputParser),
        )
    add(
        code,
        f"a {kind} parser's manager returns a class",
        lambda kind=kind: (isinstance(type(half(kind, "mistral")), type), True),
    )
    add(
        code,
        f"an unknown {kind} parser is a ValueError",
        lambda kind=kind: (_error(lambda: half(kind, "nothing")), "ValueError"),
    )

SIGNATURES = {
    "extract_reasoning": (ReasoningParser, "model_output request"),
    "extract_reasoning_streaming": (ReasoningParser, STREAMED),
    "extract_tool_calls": (ToolParser, "model_output request"),
    "extract_tool_calls_streaming": (ToolParser, f"{STREAMED} request"),
    "adjust_request": (ToolParser, "request"),
    "is_reasoning_end": (ReasoningParser, "input_ids"),
    "extract_content_ids": (ReasoningParser, "input_ids"),
}
for method, (cls, expected) in SIGNATURES.items():
    add(
        f"untemplate.vllm_api._abstract:{cls.__name__}.{method}",
        f"{cls.__name__}.{method} takes {expected}",
        lambda cls=cls, method=method, expected=expected: (
            parameters(getattr(cls, method)),
            dict.fromkeys(expected.split(), ...),
        ),
    )


def _error(call: Any) -> str:
    try:
        call()
    except Exception as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return ""


# -- types --------------------------------------------------------------------------------------------------------

NAMES = ("reasoning", "reasoning_content")
TYPES: dict[Any, dict[str, Any]] = {
    ParsedOutput: {
        "reasoning_content": None,
        "content": None,
        "tool_calls": [],
        "tools_called": False,
        "finish_reason": "stop",
    },
    DeltaMessage: {"role": None, "content": None, "reasoning_content": None, "tool_calls": None},
}
for kind, fields in TYPES.items():
    for name, value in fields.items():
        add(
            f"{MESSAGES}:{kind.__name__}",
            f"{name} of a new {kind.__name__} is {value!r}",
            lambda kind=kind, name=name, value=value: (getattr(kind(), name), value),
        )
GIVEN: dict[Any, dict[str, Any]] = {
    ParsedOutput: {"reasoning_content": "r", "content": "c", "tools_called": True, "finish_reason": "length"},
    NewDelta: {"role": "assistant", "content": "c", "reasoning_content": "r", "tool_calls": [DeltaToolCall(0)]},
    ExtractedToolCallInformation: {"tools_called": True, "tool_calls": [], "content": "c"},
}
for kind, fields in GIVEN.items():
    add(
        f"{MESSAGES}:{kind.__name__}",
        f"a {kind.__name__} is made with {', '.join(fields)}",
        lambda kind=kind, fields=fields: ({n: getattr(kind(**fields), n) for n in fields}, fields),
    )
for kind in (ParsedOutput, ExtractedToolCallInformation):
    made = kind() if kind is ParsedOutput else kind(False, [], "c")
    add(
        f"{MESSAGES}:WireModel",
        f"{kind.__name__} is a dataclass for asdict()",
        lambda made=made: (dataclasses.asdict(made)["tool_calls"], []),
    )
    add(
        f"{MESSAGES}:WireModel",
        f"{kind.__name__} is a dataclass for replace()",
        lambda made=made: (dataclasses.replace(made, content="x").content, "x"),
    )
add(
    f"{MESSAGES}:ParsedOutput",
    "the fields of the dataclass have their documented names and order",
    lambda: (
        [one.name for one in dataclasses.fields(ParsedOutput)][:5],
        ["reasoning_content", "content", "tool_calls", "tools_called", "finish_reason"],
    ),
)
add(
    f"{MESSAGES}:ParsedOutput",
    "replace() takes both names of reasoning",
    lambda: (
        {name: dataclasses.replace(ParsedOutput("r"), **{name: name}).reasoning for name in NAMES},
        {name: name for name in NAMES},
    ),
)
add(
    f"{MESSAGES}:ParsedOutput",
    "the fields of a ParsedOutput come in this order",
    lambda: (ParsedOutput("r", "c", [], True, "length").reasoning_content, "r"),
)
add(
    f"{MESSAGES}:ParsedOutput",
    "new results do not share their lists",
    lambda: (ParsedOutput().tool_calls is ParsedOutput().tool_calls, False),
)


@row(f"{MESSAGES}:ParsedOutput", "the fields of a ParsedOutput can be set")
def _() -> Any:
    made = ParsedOutput()
    made.reasoning_content, made.content, made.finish_reason = "r", "c", "length"
    return (made.reasoning_content, made.reasoning, made.content, made.finish_reason), ("r", "r", "c", "length")


@row(f"{MESSAGES}:DeltaMessage", "the fields of a DeltaMessage can be set")
def _() -> Any:
    made = DeltaMessage()
    made.tool_calls, made.content = [DeltaToolCall(0)], None
    return made.tool_calls, [DeltaToolCall(0)]


add(
    f"{MESSAGES}:DeltaMessage",
    "a delta without calls has an empty list",
    lambda: (DeltaMessage(content="a").tool_calls, None),
    differs="A delta without calls has `tool_calls=None`",
)


@row(f"{MESSAGES}:ToolCall", "a call has id, type, function.name and function.arguments")
def _() -> Any:
    (call,) = parser().parse(CALL, REQUEST).tool_calls
    assert isinstance(call, ToolCall)
    return (bool(call.id), call.type, call.function), (True, "function", FunctionCall("f", '{"a": 1}'))


@row(f"{MESSAGES}:WireModel.model_dump", "a call is dumped in the shape of OpenAI's API")
def _() -> Any:
    (call,) = parser().parse(CALL, REQUEST).tool_calls
    dump = call.model_dump()
    return dump, {"id": call.id, "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


@row(f"{MESSAGES}:WireModel.model_dump", "a delta of a call is dumped in the shape of OpenAI's API")
def _() -> Any:
    delta = parser().parse_streaming("", CALL, CALL, [], [], [], REQUEST)
    (call,) = delta.tool_calls
    dump = call.model_dump()
    return dump, {
        "index": 0,
        "id": call.id,
        "type": "function",
        "function": {"name": "f", "arguments": '{"a": 1}'},
    }


# -- the parser ---------------------------------------------------------------------------------------------------

add(
    f"{PARSER}.__init__",
    "an OutputParser takes a tokenizer, reasoning_parser_name and tool_parser_name, in this order",
    lambda: (list(parameters(OutputParser.__init__))[:3], ["tokenizer", "reasoning_parser_name", "tool_parser_name"]),
)
add(
    f"{PARSER}.__init__",
    "both names are None by default",
    lambda: (
        [parameters(OutputParser.__init__)[f"{kind}_parser_name"] for kind in ("reasoning", "tool")],
        [None, None],
    ),
)
add(
    f"{PARSER}.parse",
    "parse takes model_output, request=None and finish_reason='stop'",
    lambda: (
        list(parameters(OutputParser.parse).items())[:3],
        [("model_output", ...), ("request", None), ("finish_reason", "stop")],
    ),
)
add(
    f"{PARSER}.parse_streaming",
    f"parse_streaming takes {STREAMED}, and request=None",
    lambda: (list(parameters(OutputParser.parse_streaming)), [*STREAMED.split(), "request"]),
)
for reasoning, tools in ((None, None), ("qwen3", None), (None, "hermes"), ("qwen3", "hermes")):
    for name, chosen in (("reasoning", reasoning), ("tool", tools)):
        add(
            f"{PARSER}.{name}_parser",
            f"with {reasoning} and {tools}, {name}_parser is {'there' if chosen else 'None'}",
            lambda r=reasoning, t=tools, n=name, c=chosen: (getattr(parser(r, t), f"{n}_parser") is not None, bool(c)),
        )
        attribute = "has_reasoning" if name == "reasoning" else "has_tools"
        add(
            f"{PARSER}.{attribute}",
            f"with {reasoning} and {tools}, {attribute} is {bool(chosen)}",
            lambda r=reasoning, t=tools, a=attribute, c=chosen: (getattr(parser(r, t), a), bool(c)),
        )
for attribute in ("has_reasoning", "has_tools"):
    add(
        f"{PARSER}.{attribute}",
        f"{attribute} is a property",
        lambda a=attribute: (type(getattr(OutputParser, a)), property),
    )
for kind, name, manager in (("reasoning", "qwen3", ReasoningParserManager), ("tool", "hermes", ToolParserManager)):
    add(
        f"{PARSER}.{kind}_parser",
        f"{kind}_parser is of the class that its name stands for",
        lambda kind=kind, name=name, manager=manager: (
            type(getattr(parser(), f"{kind}_parser")) is getattr(manager, f"get_{kind}_parser")(name),
            True,
        ),
    )
    add(
        f"{PARSER}.{kind}_parser",
        f"{kind}_parser is the same object each time",
        lambda kind=kind: (
            (one := parser()) and getattr(one, f"{kind}_parser") is getattr(one, f"{kind}_parser"),
            True,
        ),
    )
    add(
        f"{PARSER}.{kind}_parser",
        f"{kind}_parser has the tokenizer",
        lambda kind=kind: (getattr(parser(), f"{kind}_parser").model_tokenizer, TOKENIZER),
    )

WHOLE: dict[str, tuple[Any, ...]] = {
    # output: reasoning, content, whether calls are there, finish reason
    "<think>\na\n</think>\n\nb": ("a", "b", False, "stop"),
    f"<think>\na\n</think>\n\n{CALL}": ("a", None, True, "tool_calls"),
    f"b\n{CALL}": (None, "b", True, "tool_calls"),
    CALL: (None, None, True, "tool_calls"),
    CALL + "\n" + CALL: (None, None, True, "tool_calls"),
    "b": (None, "b", False, "stop"),
    "<think>\na": ("a", None, False, "stop"),
    f"<think>\nI could {CALL} it.\n</think>\n\nb": (f"I could {CALL} it.", "b", False, "stop"),
}
for output, expected in WHOLE.items():
    add(
        f"{PARSER}.parse",
        f"the whole output {output!r} has reasoning, content, calls and a finish reason",
        lambda output=output, expected=expected: (_whole(parser().parse(output, REQUEST)), expected),
    )
    add(
        f"{PARSER}.finish_streaming",
        f"streamed by characters and finished, {output!r} has the same message",
        lambda output=output, expected=expected: (_streamed(parser(), output), expected[:3]),
    )


def _whole(parsed: ParsedOutput) -> Any:
    return parsed.reasoning_content, parsed.content, parsed.tools_called, parsed.finish_reason


def _streamed(one: OutputParser, output: str) -> Any:
    deltas = [one.parse_streaming(output[:at], output[: at + 1], c, [], [], [], REQUEST) for at, c in enumerate(output)]
    deltas.append(one.finish_streaming("stop"))
    texts = [
        "".join(getattr(delta, part) or "" for delta in deltas if delta) or None
        for part in ("reasoning_content", "content")
    ]
    return (*texts, any(delta.tool_calls for delta in deltas if delta))


for reasoning, tools, output, expected in (
    (None, None, f"<think>a</think>{CALL}", (None, f"<think>a</think>{CALL}", False, "stop")),
    ("qwen3", None, f"<think>a</think>b{CALL}", ("a", f"b{CALL}", False, "stop")),
    (None, "hermes", f"<think>a</think>b{CALL}", (None, "<think>a</think>b", True, "tool_calls")),
    ("deepseek_r1", None, "a</think>b", ("a", "b", False, "stop")),
    ("deepseek_r1", None, "<think>a</think>b", ("a", "b", False, "stop")),
    (None, "llama3_json", '{"name": "f", "parameters": {"a": 1}}', (None, None, True, "tool_calls")),
    (None, "mistral", '[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}]', (None, None, True, "tool_calls")),
    (None, "pythonic", "[f(a=1)]", (None, None, True, "tool_calls")),
):
    add(
        f"{PARSER}.parse",
        f"with {reasoning} and {tools}, {output!r} is {expected!r}",
        lambda r=reasoning, t=tools, o=output, e=expected: (_whole(parser(r, t).parse(o, REQUEST)), e),
    )
add(
    f"{PARSER}.parse",
    "the finish reason is the one given",
    lambda: (parser().parse("a", REQUEST, "length").finish_reason, "length"),
)
add(
    f"{PARSER}.parse",
    "the arguments can be given by name",
    lambda: (parser().parse(model_output="a", request=REQUEST, finish_reason="stop").content, "a"),
)
add(
    f"{PARSER}.parse",
    "calls are found in content, not in reasoning",
    lambda: (parser().parse(f"<think>{CALL} no.</think>b", REQUEST).tools_called, False),
)
add(
    f"{PARSER}.parse",
    "one parser serves output after output",
    lambda: ((p := parser()) and [p.parse(o, REQUEST).tools_called for o in (CALL, "a", CALL)], [True, False, True]),
)
add(
    f"{PARSER}.parse",
    "without a request, reasoning and calls are parsed too",
    lambda: (_whole(parser().parse(f"<think>a</think>{CALL}")), ("a", None, True, "tool_calls")),
    differs="`OutputParser.parse` parses without a request, too",
)
add(
    f"{PARSER}.parse",
    "an output that was cut by its length keeps that finish reason",
    lambda: (parser().parse(CALL, REQUEST, "length").finish_reason, "length"),
    differs="a finish reason other than `stop` stays",
)
add(
    f"{PARSER}.parse",
    "empty content is None",
    lambda: (
        [
            parser(None, None).parse("", REQUEST).content,
            parser("qwen3", None).parse("<think>a</think>", REQUEST).content,
        ],
        [None, None],
    ),
    differs="Content that is empty is `None`",
)
for field, value in (("tool_choice", "none"), ("tools", [])):
    request = ChatCompletionRequest(tools=TOOLS)
    setattr(request, field, value)
    add(
        f"{PARSER}.parse",
        f"with {field} {value!r} a call is content",
        lambda request=request: (_whole(parser().parse(CALL, request)), (None, CALL, False, "stop")),
    )
for name, request in {
    "dict": {"model": "m", "messages": [], "tools": TOOLS, "tool_choice": "auto"},
    "ChatCompletionRequest": ChatCompletionRequest(tools=TOOLS),
    "request of make_parser_request": REQUEST,
}.items():
    add(
        f"{PARSER}.parse",
        f"the request may be a {name}",
        lambda request=request: (parser().parse(CALL, request).tools_called, True),
    )

# -- streams ------------------------------------------------------------------------------------------------------

add(
    f"{PARSER}.parse_streaming",
    "without parsers parse_streaming returns None",
    lambda: (parser(None, None).parse_streaming("", "a", "a", [], [], [], REQUEST), None),
)
for text, expected in (
    ("<think>\na", DeltaMessage(reasoning="a")),
    ("b", DeltaMessage(content="b")),
    ("<think>\na</think>\n\nb", DeltaMessage(reasoning="a", content="b")),
):
    add(
        f"{PARSER}.parse_streaming",
        f"the delta {text!r} has {expected!r}",
        lambda text=text, expected=expected: (parser().parse_streaming("", text, text, [], [], [], REQUEST), expected),
    )
add(
    f"{PARSER}.parse_streaming",
    "while text is buffered, the delta is empty",
    lambda: (parser().parse_streaming("", "<tool", "<tool", [], [], [], REQUEST), DeltaMessage()),
    differs="`parse_streaming` of `OutputParser` returns an empty delta while it buffers",
)
add(
    f"{PARSER}.parse_streaming",
    "the arguments can be given by name, and the ids may be left out",
    lambda: (
        parser().parse_streaming(previous_text="", current_text="a", delta_text="a", request=REQUEST),
        DeltaMessage(content="a"),
    ),
)
add(
    f"{PARSER}.parse_streaming",
    "a delta with calls has no content",
    lambda: (parser().parse_streaming("", CALL, CALL, [], [], [], REQUEST).content, None),
)
add(
    f"{PARSER}.parse_streaming",
    "an empty previous_text begins another output",
    lambda: ((p := parser()) and [p.parse_streaming("", t, t).content for t in ("a", "b")], ["a", "b"]),
)
add(
    f"{PARSER}.parse_streaming",
    "several streams at once have a parser each",
    lambda: (
        (lambda one, two: (one.parse_streaming("", "<think>\na", "<think>\na"), two.parse_streaming("", "b", "b")))(
            parser(), parser()
        ),
        (DeltaMessage(reasoning="a"), DeltaMessage(content="b")),
    ),
)
add(
    f"{PARSER}.finish_streaming",
    "finish_streaming returns what is still buffered",
    lambda: (
        (p := parser()) and (p.parse_streaming("", "<tool", "<tool"), p.finish_streaming("stop"))[1],
        DeltaMessage(content="<tool"),
    ),
    differs="`finish_streaming` returns what is still buffered at the end",
)

# -- halves -------------------------------------------------------------------------------------------------------

for output, expected in (
    ("<think>\na\n</think>\n\nb", ("a", "b")),
    ("b", (None, "b")),
    ("<think>\na", ("a", None)),
    (f"<think>\na\n</think>\n\n{CALL}", ("a", CALL)),
):
    add(
        "untemplate.vllm_api._format_parsers:FormatReasoningParser.extract_reasoning",
        f"extract_reasoning of {output!r} is {expected!r}",
        lambda output=output, expected=expected: (
            half("reasoning", "qwen3").extract_reasoning(output, REQUEST),
            expected,
        ),
    )
add(
    "untemplate.vllm_api._format_parsers:FormatReasoningParser.extract_reasoning",
    "extract_reasoning accepts None for the request",
    lambda: (half("reasoning", "qwen3").extract_reasoning("a", None), (None, "a")),
)
for kind, name, method in (
    ("reasoning", "qwen3", "extract_reasoning_streaming"),
    ("tool", "hermes", "extract_tool_calls_streaming"),
):
    add(
        f"untemplate.vllm_api._format_parsers:Format{kind.title()}Parser.{method}",
        f"{method} returns None while it buffers",
        lambda kind=kind, name=name, method=method: (
            getattr(half(kind, name), method)("", "<t", "<t", [], [], [], *([REQUEST] if kind == "tool" else [])),
            None,
        ),
    )
add(
    "untemplate.vllm_api._format_parsers:FormatReasoningParser.extract_reasoning_streaming",
    "the deltas of a reasoning parser have reasoning_content and content",
    lambda: (
        (
            d := half("reasoning", "qwen3").extract_reasoning_streaming(
                "", (t := "<think>\na</think>\n\nb"), t, [], [], []
            )
        )
        and (d.reasoning_content, d.content),
        ("a", "b"),
    ),
)
for output, expected in ((CALL, (True, 1, None)), (f"b\n{CALL}", (True, 1, "b")), ("b", (False, 0, "b"))):
    add(
        "untemplate.vllm_api._format_parsers:FormatToolParser.extract_tool_calls",
        f"extract_tool_calls of {output!r} is {expected!r}",
        lambda output=output, expected=expected: (
            (lambda found: (found.tools_called, len(found.tool_calls), found.content))(
                half("tool", "hermes").extract_tool_calls(output, REQUEST)
            ),
            expected,
        ),
    )
add(
    "untemplate.vllm_api._format_parsers:FormatToolParser.extract_tool_calls_streaming",
    "extract_tool_calls_streaming returns a delta with calls",
    lambda: (
        [
            c.function.name
            for c in half("tool", "hermes").extract_tool_calls_streaming("", CALL, CALL, [], [], [], REQUEST).tool_calls
        ],
        ["f"],
    ),
)
add(
    "untemplate.vllm_api._abstract:ToolParser.adjust_request",
    "adjust_request of a tool parser keeps special tokens in the text",
    lambda: (half("tool", "hermes").adjust_request(ChatCompletionRequest()).skip_special_tokens, False),
)
add(
    "untemplate.vllm_api._abstract:ToolParser.adjust_request",
    "adjust_request of a half sets skip_special_tokens of the request itself, and returns it",
    lambda: (
        (r := ChatCompletionRequest()) and (half("tool", "hermes").adjust_request(r) is r, r.skip_special_tokens),
        (True, False),
    ),
)

# -- requests -----------------------------------------------------------------------------------------------------

add(
    "untemplate.vllm_api:make_parser_request",
    "make_parser_request takes model, messages, tools=None and tool_choice='auto'",
    lambda: (parameters(make_parser_request), {"model": ..., "messages": ..., "tools": None, "tool_choice": "auto"}),
)
for tools, choice, expected in (
    (TOOLS, "auto", "auto"),
    (TOOLS, "required", "required"),
    (None, "auto", "none"),
    ([], "auto", "none"),
    (TOOLS, "none", "none"),
):
    add(
        "untemplate.vllm_api:make_parser_request",
        f"tool_choice {choice} with {'no' if not tools else len(tools)} tools ({tools is None}) is {expected}",
        lambda t=tools, c=choice, e=expected: (make_parser_request("m", [], t, c).tool_choice, e),
    )
for name, value in {"model": "m", "messages": [{"role": "user"}], "tools": TOOLS}.items():
    add(
        "untemplate.vllm_api:make_parser_request",
        f"the request has its {name}",
        lambda name=name, value=value: (getattr(make_parser_request("m", [{"role": "user"}], TOOLS), name), value),
    )


class Older:
    """A reasoning parser with the older names of its methods."""

    def __init__(self, tokenizer: Any) -> None: ...

    def extract_reasoning_content(self, model_output: str, request: Any) -> Any:
        return "r", model_output

    def extract_reasoning_content_streaming(self, previous: str, current: str, delta: str, *ids: Any) -> Any:
        return DeltaMessage(reasoning=delta)


@row("untemplate.vllm_api._delegating:DelegatingParser.extract_reasoning", "parsers with the older method names work")
def _() -> Any:
    one = parser("qwen3", None)
    one.reasoning_parser = Older(TOKENIZER)
    return one.parse("a", REQUEST).reasoning_content, "r"


@row(
    "untemplate.vllm_api._delegating:DelegatingParser.extract_reasoning_streaming",
    "parsers with the older method names stream",
)
def _() -> Any:
    one = parser("qwen3", None)
    one.reasoning_parser = Older(TOKENIZER)
    return one.parse_streaming("", "a", "a", [], [], [], REQUEST), DeltaMessage(reasoning="a")


@row(f"{MANAGERS}:ReasoningParserManager.register_module", "a parser with the older method names can be registered")
def _() -> Any:
    ReasoningParserManager.register_module("older", module=Older)
    try:
        return parser("older", None).parse("a", REQUEST).reasoning_content, "r"
    finally:
        ReasoningParserManager._registered.pop("older")
