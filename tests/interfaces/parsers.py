"""``Parser``, ``DelegatingParser`` and ``_WrappedParser``: one interface over a reasoning half and a tool half."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from tests.vllm_api.parser_examples import Tokenizer
from untemplate import vllm_api
from untemplate.messages import (
    ChatCompletionRequest,
    DeltaMessage,
    ExtractedToolCallInformation,
    FunctionCall,
    ResponsesRequest,
    ToolCall,
)
from untemplate.vllm_api import DelegatingParser, Parser, ReasoningParser, ToolParser, _WrappedParser

from .table import Table, parameters

TABLE = Table("parsers", "untemplate.vllm_api._abstract")
add, row = TABLE.add, TABLE.row
TOKENIZER = Tokenizer("<think>", "</think>")
END = 1001
STREAMED = (
    "previous_text current_text delta_text previous_token_ids current_token_ids delta_token_ids"  # all are needed
)
METHODS = {
    "is_reasoning_end": "input_ids",
    "is_reasoning_end_streaming": "input_ids delta_ids",
    "extract_content_ids": "input_ids",
    "extract_reasoning": "model_output request",
    "extract_reasoning_streaming": STREAMED,
    "adjust_request": "request",
    "extract_tool_calls": "model_output request",
    "extract_tool_calls_streaming": f"{STREAMED} request",
}
CLASSES = {"Parser": Parser, "DelegatingParser": DelegatingParser, "_WrappedParser": _WrappedParser}
WHERE = {"Parser": "untemplate.vllm_api._abstract", "DelegatingParser": "untemplate.vllm_api._delegating"}
DELEGATING = "untemplate.vllm_api._delegating:DelegatingParser"
WRAPPED = "untemplate.vllm_api._delegating:_WrappedParser"
ABSTRACT = [
    "is_reasoning_end",
    "extract_content_ids",
    "extract_reasoning",
    "extract_reasoning_streaming",
    "extract_tool_calls",
    "extract_tool_calls_streaming",
]


class Half:
    """Both halves at once; it returns what it was asked."""

    def __init__(self, tokenizer: Any = None, *args: Any) -> None:
        self.tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return lambda *args: (name, *args)
        raise AttributeError(name)


def with_halves(cls: type[Any] = DelegatingParser) -> tuple[Any, Half, Half]:
    parser, reasoning, tools = cls(TOKENIZER), Half(), Half()
    parser._reasoning_parser, parser._tool_parser = reasoning, tools
    return parser, reasoning, tools


# -- names and signatures -----------------------------------------------------------------------------------------

for name, cls in CLASSES.items():
    code = f"{WHERE.get(name, WHERE['DelegatingParser'])}:{name}"
    for method, expected in METHODS.items():
        add(
            f"{code}.{method}",
            f"{name}.{method} takes {expected}, all of them needed",
            lambda cls=cls, method=method, expected=expected: (
                parameters(getattr(cls, method)),
                dict.fromkeys(expected.split(), ...),
            ),
        )
        for one in expected.split():
            add(
                f"{code}.{method}",
                f"{name}.{method} can be given {one} by name",
                lambda cls=cls, method=method, one=one: (one in parameters(getattr(cls, method)), True),
            )
    add(code, f"{name} takes a tokenizer", lambda cls=cls: (parameters(cls.__init__), {"tokenizer": ...}))
    add(code, f"{name} keeps it as model_tokenizer", lambda cls=cls: (cls(TOKENIZER).model_tokenizer, TOKENIZER))
    add(code, f"{name} is made positionally or by name", lambda cls=cls: (cls(tokenizer=1).model_tokenizer, 1))
    for attribute in ("reasoning_parser_cls", "tool_parser_cls"):
        add(code, f"{name}.{attribute} is None", lambda cls=cls, a=attribute: (getattr(cls, a), None))
    for attribute in ("_reasoning_parser", "_tool_parser", "reasoning_parser", "tool_parser"):
        add(
            code,
            f"{attribute} of a new {name} is None",
            lambda cls=cls, a=attribute: (getattr(cls(TOKENIZER), a), None),
        )
    add(code, f"{name}.vocab is the tokenizer's", lambda cls=cls: (cls(TOKENIZER).vocab, TOKENIZER.get_vocab()))
    add(code, f"{name} is in the package", lambda name=name: (hasattr(vllm_api, name), True))

for method in ABSTRACT:
    add(
        f"Parser.{method}",
        f"Parser.{method} is marked abstract",
        lambda method=method: (getattr(getattr(Parser, method), "__isabstractmethod__", False), True),
    )
for method in ("is_reasoning_end_streaming", "adjust_request"):
    add(
        f"Parser.{method}",
        f"Parser.{method} has a default and is not abstract",
        lambda method=method: (getattr(getattr(Parser, method), "__isabstractmethod__", False), False),
    )
add("Parser", "a Parser can be made although methods are abstract", lambda: (type(Parser(TOKENIZER)), Parser))
add(DELEGATING, "DelegatingParser is a Parser", lambda: (issubclass(DelegatingParser, Parser), True))
add(WRAPPED, "_WrappedParser is a DelegatingParser", lambda: (issubclass(_WrappedParser, DelegatingParser), True))
add(
    "Parser.vocab",
    "vocab is read once",
    lambda: (isinstance(_found(Parser, "vocab"), cached_property), True),
)
for attribute in ("reasoning_parser", "tool_parser"):
    add(
        f"Parser.{attribute}",
        f"{attribute} is a property that can be set",
        lambda a=attribute: (getattr(_found(Parser, a), "fset", None) is not None, True),
    )


def _found(cls: type[Any], name: str) -> Any:
    return next(vars(one)[name] for one in cls.__mro__ if name in vars(one))


@row("Parser.__init__", "further arguments of a Parser are accepted and ignored")
def _() -> Any:
    return Parser(TOKENIZER, 1, 2, other=3).model_tokenizer, TOKENIZER


@row("Parser.reasoning_parser", "reasoning_parser set is what both names return")
def _() -> Any:
    parser = Parser(TOKENIZER)
    parser.reasoning_parser = half = Half()
    return (parser.reasoning_parser is half, parser._reasoning_parser is half), (True, True)


@row("Parser.tool_parser", "tool_parser set is what both names return")
def _() -> Any:
    parser = Parser(TOKENIZER)
    parser.tool_parser = half = Half()
    return (parser.tool_parser is half, parser._tool_parser is half), (True, True)


@row("Parser.reasoning_parser", "a half can be set to None again")
def _() -> Any:
    parser = Parser(TOKENIZER)
    parser.reasoning_parser = Half()
    parser.reasoning_parser = None
    return parser.reasoning_parser, None


@row("Parser.is_reasoning_end_streaming", "is_reasoning_end_streaming asks is_reasoning_end with all ids")
def _() -> Any:
    asked = []

    class One(Parser):
        def is_reasoning_end(self, input_ids: Any) -> bool:
            asked.append(input_ids)
            return True

    return (One(TOKENIZER).is_reasoning_end_streaming([1, 2], [2]), asked), (True, [[1, 2]])


for kind in (ChatCompletionRequest, ResponsesRequest):
    for name, cls in CLASSES.items():
        add(
            "Parser.adjust_request",
            f"adjust_request of a {name} without halves returns the {kind.__name__} as it is",
            lambda cls=cls, kind=kind: (_same(cls(TOKENIZER), kind()), (True, True)),
        )


def _same(parser: Any, request: Any) -> tuple[bool, bool]:
    found = parser.adjust_request(request)
    return found is request, found.skip_special_tokens


@row("Parser.adjust_request", "adjust_request can be overridden")
def _() -> Any:
    class One(Parser):
        def adjust_request(self, request: Any) -> Any:
            request.stream = True
            return request

    return One(TOKENIZER).adjust_request(ChatCompletionRequest()).stream, True


@row("Parser.adjust_request", "adjust_request of a subclass with methods of its own returns the request as it is")
def _() -> Any:
    class One(Parser):
        def extract_tool_calls(self, model_output: str, request: Any) -> Any:
            return ExtractedToolCallInformation(False, [], model_output)

    return _same(One(TOKENIZER), ChatCompletionRequest()), (True, True)


@row("Parser", "a subclass of Parser may write every method itself")
def _() -> Any:
    class One(Parser):
        def extract_reasoning(self, model_output: str, request: Any) -> Any:
            return "r", model_output

    return One(TOKENIZER).extract_reasoning("x", None), ("r", "x")


@row("Parser", "a subclass of Parser may only set its halves, and delegates to them")
def _() -> Any:
    parser, _, _ = with_halves(Parser)
    return parser.extract_reasoning("x", 1), ("extract_reasoning", "x", 1)


@row("Parser.reasoning_parser_cls", "a subclass may name the classes of its halves")
def _() -> Any:
    class One(Parser):
        reasoning_parser_cls = ReasoningParser
        tool_parser_cls = ToolParser

    return (One.reasoning_parser_cls, Parser.reasoning_parser_cls), (ReasoningParser, None)


# -- a DelegatingParser without halves ----------------------------------------------------------------------------

SIX = ("a", "ab", "b", [1], [1, 2], [2])

add(
    f"{DELEGATING}.extract_reasoning",
    "without a reasoning half all text is content, and there is no reasoning",
    lambda: (DelegatingParser(TOKENIZER).extract_reasoning("x <think>", None), (None, "x <think>")),
)
add(
    f"{DELEGATING}.extract_reasoning_streaming",
    "without a reasoning half the streamed text is content",
    lambda: (DelegatingParser(TOKENIZER).extract_reasoning_streaming(*SIX), DeltaMessage(content="b")),
)
add(
    f"{DELEGATING}.extract_reasoning_streaming",
    "without a reasoning half empty streamed text is empty content",
    lambda: (
        DelegatingParser(TOKENIZER).extract_reasoning_streaming("a", "a", "", [], [], []),
        DeltaMessage(content=""),
    ),
)
add(
    f"{DELEGATING}.extract_tool_calls",
    "without a tool half there are no calls and all text is content",
    lambda: (
        DelegatingParser(TOKENIZER).extract_tool_calls("x", None),
        ExtractedToolCallInformation(tools_called=False, tool_calls=[], content="x"),
    ),
)
add(
    f"{DELEGATING}.extract_tool_calls_streaming",
    "without a tool half the streaming method returns None",
    lambda: (DelegatingParser(TOKENIZER).extract_tool_calls_streaming(*SIX, None), None),
)
for half in ("reasoning", "tool"):
    for name, cls in (("DelegatingParser", DelegatingParser), ("_WrappedParser", _WrappedParser)):
        add(
            DELEGATING,
            f"a {name} with only a {half} half leaves the other part as it is",
            lambda cls=cls, half=half: (
                _one_half(cls, half),
                ("extract_reasoning", "extract_tool_calls")[half == "tool"],
            ),
        )


def _one_half(cls: type[Any], half: str) -> Any:
    parser = cls(TOKENIZER)
    setattr(parser, f"_{half}_parser", Half())
    reasoning, calls = parser.extract_reasoning("x", None), parser.extract_tool_calls("x", None)
    if half == "tool":
        assert reasoning == (None, "x")
        return calls[0]
    assert (calls.tools_called, calls.tool_calls, calls.content) == (False, [], "x")
    return reasoning[0]


# -- a DelegatingParser with halves -------------------------------------------------------------------------------

ARGUMENTS = {
    "extract_reasoning": ("x", "request"),
    "extract_reasoning_streaming": SIX,
    "extract_tool_calls": ("x", "request"),
    "extract_tool_calls_streaming": (*SIX, "request"),
}
for method, arguments in ARGUMENTS.items():
    for name, cls in CLASSES.items():
        add(
            f"{DELEGATING}.{method}",
            f"{method} of a {name} with halves gives its half all arguments, in order, and returns its answer as it is",
            lambda cls=cls, method=method, arguments=arguments: (
                getattr(with_halves(cls)[0], method)(*arguments),
                (method, *arguments),
            ),
        )
        add(
            f"{DELEGATING}.{method}",
            f"{method} of a {name} with halves takes its arguments by name",
            lambda cls=cls, method=method, arguments=arguments: (
                getattr(with_halves(cls)[0], method)(**dict(zip(METHODS[method].split(), arguments, strict=True))),
                (method, *arguments),
            ),
        )
for half, method in (("reasoning_parser", "extract_reasoning"), ("tool_parser", "extract_tool_calls")):
    add(
        f"{DELEGATING}.{method}",
        f"a {half} that is set through the property is asked",
        lambda half=half, method=method: (_through_property(half, method), method),
    )


def _through_property(half: str, method: str) -> Any:
    parser = DelegatingParser(TOKENIZER)
    setattr(parser, half, Half())
    return getattr(parser, method)("x", None)[0]


@row(DELEGATING, "a subclass sets its halves in its __init__")
def _() -> Any:
    class One(DelegatingParser):
        def __init__(self, tokenizer: Any) -> None:
            super().__init__(tokenizer)
            self._reasoning_parser = Half(tokenizer)
            self._tool_parser = Half(tokenizer)

    parser = One(TOKENIZER)
    return (parser.extract_reasoning("a", 1), parser.reasoning_parser.tokenizer), (
        ("extract_reasoning", "a", 1),
        TOKENIZER,
    )


@row(DELEGATING, "a subclass may set its halves without calling super().__init__()")
def _() -> Any:
    class One(DelegatingParser):
        def __init__(self, tokenizer: Any) -> None:
            self.model_tokenizer = tokenizer
            self._tool_parser = Half(tokenizer)

    return One(TOKENIZER).extract_tool_calls("a", 1), ("extract_tool_calls", "a", 1)


@row(DELEGATING, "a result of a tool half is returned unchanged")
def _() -> Any:
    found = ExtractedToolCallInformation(True, [ToolCall("id", FunctionCall("f", "{}"))], None)

    class One(Half):
        def extract_tool_calls(self, model_output: str, request: Any) -> Any:
            return found

    parser = DelegatingParser(TOKENIZER)
    parser.tool_parser = One()
    return parser.extract_tool_calls("x", None) is found, True


@row(DELEGATING, "None of a streaming half is None")
def _() -> Any:
    class One(Half):
        def extract_reasoning_streaming(self, *args: Any) -> Any:
            return None

    parser = DelegatingParser(TOKENIZER)
    parser.reasoning_parser = One()
    return parser.extract_reasoning_streaming(*SIX), None


@row(f"{DELEGATING}.is_reasoning_end", "is_reasoning_end asks the reasoning half")
def _() -> Any:
    parser, _, _ = with_halves()
    return parser.is_reasoning_end([1]), True


@row(
    f"{DELEGATING}.is_reasoning_end_streaming", "is_reasoning_end_streaming asks is_reasoning_end if that is overridden"
)
def _() -> Any:
    class One(DelegatingParser):
        def is_reasoning_end(self, input_ids: Any) -> bool:
            return True

    parser = One(TOKENIZER)
    parser.reasoning_parser = vllm_api.ReasoningParserManager.get_reasoning_parser("qwen3")(TOKENIZER)
    return parser.is_reasoning_end_streaming([97], [97]), True


@row(f"{DELEGATING}.extract_content_ids", "extract_content_ids asks the reasoning half, and returns a list")
def _() -> Any:
    parser = DelegatingParser(TOKENIZER)
    parser.reasoning_parser = vllm_api.ReasoningParserManager.get_reasoning_parser("qwen3")(TOKENIZER)
    return parser.extract_content_ids([97, END, 98]), [98]


# -- _WrappedParser -----------------------------------------------------------------------------------------------


def wrapped(**classes: Any) -> Any:
    return type("Wrapped", (_WrappedParser,), classes)


for half in ("reasoning", "tool"):
    add(
        WRAPPED,
        f"{half}_parser_cls of a subclass is called with the tokenizer, and nothing else is made",
        lambda half=half: (
            [
                getattr(
                    getattr(wrapped(**{f"{half}_parser_cls": Half})(TOKENIZER), f"_{one}_parser"), "tokenizer", None
                )
                for one in (half, "tool" if half == "reasoning" else "reasoning")
            ],
            [TOKENIZER, None],
        ),
    )


@row(WRAPPED, "the classes may be set on _WrappedParser itself")
def _() -> Any:
    _WrappedParser.reasoning_parser_cls = _WrappedParser.tool_parser_cls = Half
    try:
        parser = _WrappedParser(TOKENIZER)
        return (type(parser._reasoning_parser), type(parser._tool_parser)), (Half, Half)
    finally:
        _WrappedParser.reasoning_parser_cls = _WrappedParser.tool_parser_cls = None


@row(WRAPPED, "the classes are read when a parser is made")
def _() -> Any:
    cls = wrapped()
    before = cls(TOKENIZER)
    cls.tool_parser_cls = Half
    return (before._tool_parser, type(cls(TOKENIZER)._tool_parser)), (None, Half)


@row(WRAPPED, "each parser has halves of its own")
def _() -> Any:
    cls = wrapped(reasoning_parser_cls=Half)
    return cls(TOKENIZER)._reasoning_parser is not cls(TOKENIZER)._reasoning_parser, True


@row(WRAPPED, "a subclass keeps the classes of its base apart")
def _() -> Any:
    wrapped(tool_parser_cls=Half)
    return _WrappedParser.tool_parser_cls, None


@row(WRAPPED, "a function may stand for a class")
def _() -> Any:
    return type(wrapped(reasoning_parser_cls=lambda tokenizer: Half(tokenizer))(TOKENIZER)._reasoning_parser), Half
