"""``ParserEngine``: a parser that runs a config."""

from __future__ import annotations

import inspect
import json
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from tests.vllm_api.parser_examples import CONTENT, REASONING, Tokenizer, hermes, qwen_coder, tool
from untemplate import vllm_api
from untemplate.messages import (
    ChatCompletionRequest,
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
)
from untemplate.vllm_api import (
    EventType,
    Parser,
    ParserEngine,
    ParserEngineConfig,
    ParserState,
    SemanticEvent,
    StreamingParserEngine,
    StreamState,
    ToolCallSlot,
    Transition,
    make_parser_request,
)

from .table import Table, parameters

TABLE = Table("engine", "untemplate.vllm_api._parser_engine")
add, row = TABLE.add, TABLE.row
DELTAS = "untemplate.vllm_api._engine_deltas:EngineDeltas"
CONFIG = "untemplate.vllm_api._config:ParserEngineConfig"
STREAMING = "untemplate.vllm_api._streaming_engine:StreamingParserEngine"
ENGINE = "ParserEngine"
START, STOP, OPEN, CLOSE = 1000, 1001, 1002, 1003
TOKENIZER = Tokenizer("<think>", "</think>", "<tool_call>", "</tool_call>")
TOOLS = [
    tool(
        "f",
        a={"type": "integer"},
        s={"type": "string"},
        o={"type": "object", "properties": {"x": {"type": "number"}}},
        l={"type": "array", "items": {"type": "integer"}},
    )
]
REQUEST = make_parser_request("m", [], TOOLS)
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'


def engine(config: ParserEngineConfig | None = None, tools: Any = TOOLS, **changes: Any) -> ParserEngine:
    return ParserEngine(TOKENIZER, tools, parser_engine_config=config or hermes(**changes))


def tagged(**changes: Any) -> ParserEngine:
    return engine(qwen_coder(**changes))


def arguments_of(found: Any) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in found or ()]


def feed(
    parser: ParserEngine, *pieces: str, finished: bool = True, request: Any = REQUEST
) -> list[DeltaMessage | None]:
    found = [parser.parse_delta(piece, [], request, finished=False) for piece in pieces]
    return [*found, parser.parse_delta("", [], request, finished=True)] if finished else found


def total(deltas: list[DeltaMessage | None]) -> tuple[str, str, list[tuple[str, str]]]:
    """Return (reasoning, content, [(name, arguments)]) of deltas."""
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        for call in (delta.tool_calls if delta else None) or ():
            said = calls.setdefault(call.index, ["", ""])
            said[0] += (call.function and call.function.name) or ""
            said[1] += (call.function and call.function.arguments) or ""
    texts = [[getattr(delta, part) or "" for delta in deltas if delta] for part in ("reasoning", "content")]
    return "".join(texts[0]), "".join(texts[1]), [(name, text) for name, text in calls.values()]


# -- names and signatures -----------------------------------------------------------------------------------------

STREAMED = "previous_text current_text delta_text previous_token_ids current_token_ids delta_token_ids"
SIGNATURES: dict[str, dict[str, Any]] = {
    "initialize_streaming": {"initial_state": None},
    "adjust_initial_state_from_prompt": {"prompt_token_ids": ...},
    "finish_streaming": {},
    "_reset": {"initial_state": None},
    "adjust_request": {"request": ...},
    "_preprocess_feed": {"delta_text": ..., "delta_token_ids": ...},
    "_feed": {"delta_text": ..., "delta_token_ids": ...},
    "_coerce_value": {"value": ..., "schema": ...},
    "_coerce_dict": {"args": ..., "properties": ...},
    "_safe_arg_prefix": {"json_str": ..., "string_keys": None},
    "_streamable_string_keys": {"properties": ...},
    "_fix_arg_types": {"args_json": ..., "func_name": ...},
    "_is_valid_tool_name": {"name": ...},
    "_check_skip_tool_parsing": {"request": ...},
    "_strip_content_whitespace": {"content": ..., "tools_called": ...},
    "_strip_trailing_reasoning": {"delta": ...},
    "extract_reasoning": {"model_output": ..., "request": ...},
    "extract_reasoning_streaming": dict.fromkeys(STREAMED.split(), ...),
    "extract_tool_calls": {"model_output": ..., "request": ...},
    "extract_tool_calls_from_content": {"content": ..., "request": ...},
    "extract_tool_calls_streaming": dict.fromkeys([*STREAMED.split(), "request"], ...),
    "is_reasoning_end": {"input_ids": ...},
    "extract_content_ids": {"input_ids": ...},
    "get_streaming_fallback_content": {"text": ..., "request": ...},
    "count_reasoning_tokens": {"token_ids": ...},
    "_single_pass_parse": {"text": ..., "token_ids": ..., "initial_state": None},
    "_events_to_delta": {"events": ..., "finished": False},
    "_ensure_slot": {"idx": ...},
    "_ensure_tool_id": {"slot": ..., "name": ...},
    "_handle_tool_name": {"event": ...},
    "_emit_name_delta": {"idx": ..., "deltas": ..., "name": ...},
    "_handle_arg_chunk": {"event": ..., "deltas": ...},
    "_handle_tool_end": {"event": ..., "deltas": ...},
    "_coalesce_tool_call_deltas": {"deltas": ...},
    "_compute_arg_delta": {"idx": ..., "raw_delta": ...},
    "_flush_arg_converter": {"idx": ...},
    "_try_extract_name": {"idx": ...},
    "_extract_args_value": {"parsed": ...},
    "_extract_name_and_args": {"raw_body": ...},
    "_extract_args_json": {"raw_args": ..., "func_name": ...},
}
for method, expected in SIGNATURES.items():
    add(
        f"{ENGINE}.{method}",
        f"ParserEngine.{method} takes {', '.join(expected) or 'nothing'}",
        lambda method=method, expected=expected: (parameters(getattr(ParserEngine, method)), expected),
    )
for method in ("_coerce_value", "_coerce_dict", "_safe_arg_prefix", "_streamable_string_keys", "_extract_args_value",
               "_coalesce_tool_call_deltas"):  # fmt: skip
    add(
        f"{ENGINE}.{method}",
        f"ParserEngine.{method} is a static method",
        lambda method=method: (type(inspect.getattr_static(ParserEngine, method)), staticmethod),
    )
for name, needed in {
    "parse": ("model_output", {"enable_auto_tools": False, "model_output_token_ids": ()}),
    "parse_delta": ("delta_text delta_token_ids", {"prompt_token_ids": None, "*finished": ...}),
}.items():
    add(
        f"{ENGINE}.{name}",
        f"ParserEngine.{name} takes {needed[0]}, a request, and {', '.join(needed[1])}",
        lambda name=name, needed=needed: (
            {**parameters(getattr(ParserEngine, name)), "request": ...},
            {**dict.fromkeys(needed[0].split(), ...), "request": ..., **needed[1]},
        ),
    )
add(ENGINE, "ParserEngine is a Parser", lambda: (issubclass(ParserEngine, Parser), True))
add(
    ENGINE,
    "ParserEngine takes a tokenizer, tools and, by name only, its config",
    lambda: (
        list(parameters(ParserEngine.__init__).items())[:3],
        [("tokenizer", ...), ("tools", None), ("*parser_engine_config", ...)],
    ),
)
add(
    ENGINE,
    "further named arguments of a ParserEngine are ignored",
    lambda: (ParserEngine(TOKENIZER, parser_engine_config=hermes(), other=1).model_tokenizer, TOKENIZER),
)

ATTRIBUTES: dict[str, Any] = {
    "model_tokenizer": TOKENIZER,
    "_tools": TOOLS,
    "_reasoning_parser": None,
    "_tool_parser": None,
    "reasoning_parser": None,
    "tool_parser": None,
    "_reasoning_ended": False,
    "reasoning_ended": False,
    "_streaming_initialized": False,
    "_prompt_streaming_prepared": False,
    "_tool_slots": [],
    "_deferred_content": "",
    "_deferred_reasoning": "",
    "_content_has_nonws": False,
    "_arg_converter": None,
    "_arg_structural_chars": None,
    "_stream_arg_deltas": True,
    "_strip_trailing_reasoning_ws": True,
    "_drop_ws_only_content_before_tools": True,
    "_strip_content_ws_with_tools": True,
    "_reasoning_start_token_id": START,
    "_reasoning_end_token_id": STOP,
    "reasoning_start_str": "<think>",
    "reasoning_end_str": "</think>",
    "skip_tool_parsing": False,
    "reasoning_parser_cls": None,
    "tool_parser_cls": None,
}
for name, value in ATTRIBUTES.items():
    add(ENGINE, f"{name} of a new ParserEngine is {value!r:.40}", lambda n=name, v=value: (getattr(engine(), n), v))
add(ENGINE, "parser_engine_config is the config", lambda: ((c := hermes()) is engine(c).parser_engine_config, True))
add(ENGINE, "_engine is a StreamingParserEngine", lambda: (type(engine()._engine), StreamingParserEngine))
add(ENGINE, "_stream_state is a StreamState", lambda: (type(engine()._stream_state), StreamState))
add(ENGINE, "vocab is that of the tokenizer", lambda: (engine().vocab, TOKENIZER.get_vocab()))
for name, flag in {
    "_stream_arg_deltas": "stream_arg_deltas",
    "_strip_trailing_reasoning_ws": "strip_trailing_reasoning_whitespace",
    "_drop_ws_only_content_before_tools": "drop_whitespace_only_content_before_tools",
    "_strip_content_ws_with_tools": "strip_content_whitespace_with_tools",
}.items():
    add(ENGINE, f"{name} is {flag} of the config", lambda n=name, f=flag: (getattr(engine(**{f: False}), n), False))
add(ENGINE, "_arg_converter is that of the config", lambda: (callable(tagged()._arg_converter), True))
add(
    ENGINE,
    "_arg_structural_chars is that of the config",
    lambda: (tagged(arg_structural_chars=frozenset("<"))._arg_structural_chars, frozenset("<")),
)
WITHOUT = {"terminals": {}, "token_id_terminals": {}, "transitions": {}}
for name in ("_reasoning_start_token_id", "_reasoning_end_token_id", "reasoning_start_str", "reasoning_end_str"):
    add(ENGINE, f"{name} is None without its terminal", lambda n=name: (getattr(engine(**WITHOUT), n), None))
add(
    ENGINE,
    "the ids of the markers are None if the vocabulary does not have them",
    lambda: (ParserEngine(Tokenizer(), parser_engine_config=hermes())._reasoning_start_token_id, None),
)
add(
    ENGINE,
    "the ids come from token_id_terminals, the texts from terminals",
    lambda: (
        (lambda one: (one._reasoning_end_token_id, one.reasoning_end_str))(
            engine(token_id_terminals={"TOOL_START": "<tool_call>", "TOOL_END": "</tool_call>"})
        ),
        (None, "</think>"),
    ),
)

for name, members in {
    "ParserState": (ParserState, "CONTENT REASONING TOOL_ARGS"),
    "EventType": (
        EventType,
        "TEXT_CHUNK REASONING_START REASONING_CHUNK REASONING_END TOOL_CALL_START TOOL_NAME ARG_VALUE_CHUNK "
        "TOOL_CALL_END",
    ),
}.items():
    for member in members[1].split():
        add(
            f"untemplate.vllm_api:{name}",
            f"{name} has {member}",
            lambda kind=members[0], member=member: (hasattr(kind, member), True),
        )
for name in [
    "ParserEngine",
    "StreamingParserEngine",
    "ParserEngineConfig",
    "ParserState",
    "EventType",
    "SemanticEvent",
    "StreamState",
    "ToolCallSlot",
    "coerce_to_schema_type",
    "extract_types_from_schema",
    "find_tool_name",
    "find_tool_properties",
    "make_tool_call_id",
]:
    add("untemplate.vllm_api:__all__", f"{name} is exported", lambda n=name: (n in vllm_api.__all__, True))
DEFAULTS = {
    "terminals": {},
    "token_id_terminals": {},
    "transitions": {},
    "initial_state": CONTENT,
    "arg_converter": None,
    "arg_structural_chars": None,
    "stream_arg_deltas": True,
    "strip_trailing_reasoning_whitespace": True,
    "drop_whitespace_only_content_before_tools": True,
    "strip_content_whitespace_with_tools": True,
    "validate_tool_names": False,
}
for name, value in DEFAULTS.items():
    add(
        CONFIG,
        f"{name} of a config is {value!r} by default",
        lambda n=name, v=value: (getattr(ParserEngineConfig("x"), n), v),
    )
SLOT = {"id": "", "name": "", "args": "", "name_sent": False, "streamed_json": "", "string_keys": None}
for name, value in SLOT.items():
    add(
        "untemplate.vllm_api._slots:ToolCallSlot",
        f"{name} of a new slot is {value!r}",
        lambda n=name, v=value: (getattr(ToolCallSlot(), n), v),
    )


@row("untemplate.vllm_api._slots:ToolCallSlot.append_args", "append_args adds to the arguments of a slot")
def _() -> Any:
    slot = ToolCallSlot()
    slot.append_args("a")
    slot.append_args("b")
    return slot.args, "ab"


for name, value in {"tool_call_id_type": "random", "history_tool_call_cnt": 0}.items():
    add(
        "untemplate.vllm_api._pipeline:StreamState",
        f"{name} of a new stream state is {value!r}",
        lambda n=name, v=value: (getattr(StreamState(), n), v),
    )
for name in ("type", "value", "tool_index"):
    add(
        "untemplate._internal.machine.events:SemanticEvent",
        f"an event has {name}",
        lambda n=name: (hasattr(SemanticEvent(EventType.TEXT_CHUNK, "a", -1), n), True),
    )

# -- lifecycle ----------------------------------------------------------------------------------------------------


@row(f"{ENGINE}.skip_tool_parsing", "skip_tool_parsing can be set, and is that of the engine")
def _() -> Any:
    parser = engine()
    parser.skip_tool_parsing = True
    return (parser.skip_tool_parsing, parser._engine.skip_tool_parsing), (True, True)


@row(f"{ENGINE}.skip_tool_parsing", "skip_tool_parsing can be set back")
def _() -> Any:
    parser = engine()
    parser.skip_tool_parsing = True
    parser.skip_tool_parsing = False
    return arguments_of(parser.parse(CALL, REQUEST)[2]), [("f", '{"a": 1}')]


@row(f"{ENGINE}.skip_tool_parsing", "while tool parsing is skipped, calls are content")
def _() -> Any:
    parser = engine()
    parser.skip_tool_parsing = True
    return parser.parse(CALL, REQUEST), (None, CALL, None)


@row(f"{ENGINE}.initialize_streaming", "initialize_streaming begins in the given state")
def _() -> Any:
    parser = engine()
    parser.initialize_streaming(REASONING)
    return total(feed(parser, "a</think>b")), ("a", "b", [])


@row(f"{ENGINE}.initialize_streaming", "initialize_streaming has an effect once")
def _() -> Any:
    parser = engine()
    parser.initialize_streaming(REASONING)
    parser.initialize_streaming(CONTENT)
    return (parser._streaming_initialized, parser._engine.state), (True, REASONING)


@row(f"{ENGINE}.adjust_initial_state_from_prompt", "the hook for the prompt returns nothing")
def _() -> Any:
    return engine().adjust_initial_state_from_prompt([1, 2]), None


@row(
    f"{ENGINE}.adjust_initial_state_from_prompt",
    "a prompt that ends in an open marker begins the stream in reasoning",
    differs="An engine reads from the prompt whether reasoning is open",
)
def _() -> Any:
    parser = engine()
    return total([parser.parse_delta("a", [], REQUEST, [97, START], finished=False)]), ("a", "", [])


@row(f"{ENGINE}.parse_delta", "the hook for the prompt is called once, before the first part")
def _() -> Any:
    seen: list[Any] = []

    class One(ParserEngine):
        def adjust_initial_state_from_prompt(self, prompt_token_ids: Any) -> None:
            seen.append(list(prompt_token_ids))

    parser = One(TOKENIZER, parser_engine_config=hermes())
    for _ in range(2):
        parser.parse_delta("a", [], REQUEST, [5], finished=False)
    return seen, [[5]]


@row(f"{ENGINE}.parse_delta", "the hook may begin the stream in a state of its own")
def _() -> Any:
    class One(ParserEngine):
        def adjust_initial_state_from_prompt(self, prompt_token_ids: Any) -> None:
            self.initialize_streaming(REASONING)

    parser = One(TOKENIZER, parser_engine_config=hermes())
    found = [parser.parse_delta(text, [], REQUEST, [5], finished=False) for text in ("a", "b</think>c")]
    return total(found), ("ab", "c", [])


@row(f"{ENGINE}.parse_delta", "without a prompt the hook is not called")
def _() -> Any:
    class One(ParserEngine):
        def adjust_initial_state_from_prompt(self, prompt_token_ids: Any) -> None:
            raise AssertionError

    return total(feed(One(TOKENIZER, parser_engine_config=hermes()), "a")), ("", "a", [])


@row(f"{ENGINE}.finish_streaming", "finish_streaming returns None if nothing is left")
def _() -> Any:
    parser = engine()
    feed(parser, "a", finished=False)
    return parser.finish_streaming(), None


@row(f"{ENGINE}.finish_streaming", "finish_streaming returns text that could have been a marker")
def _() -> Any:
    parser = engine()
    feed(parser, "a <tool", finished=False)
    return parser.finish_streaming(), DeltaMessage(content=" <tool")


@row(f"{ENGINE}.finish_streaming", "finish_streaming returns white space that was deferred")
def _() -> Any:
    parser = engine()
    feed(parser, "  \n", finished=False)
    return parser.finish_streaming(), DeltaMessage(content="  \n")


@row(f"{ENGINE}.finish_streaming", "finish_streaming of a fresh parser returns None")
def _() -> Any:
    return engine().finish_streaming(), None


@row(f"{ENGINE}._reset", "_reset forgets the calls, the deferred text, and that reasoning has ended")
def _() -> Any:
    parser = engine()
    feed(parser, "<think>a</think> ", CALL, finished=False)
    before = (parser.reasoning_ended, len(parser._tool_slots))
    parser._reset()
    after = (parser.reasoning_ended, len(parser._tool_slots), parser._deferred_content, parser._content_has_nonws)
    return (before, after), ((True, 1), (False, 0, "", False))


@row(f"{ENGINE}._reset", "_reset begins in the state that it is given")
def _() -> Any:
    parser = engine()
    parser._reset(initial_state=REASONING)
    return parser._engine.state, REASONING


@row(f"{ENGINE}._reset", "_reset clears that the prompt was read")
def _() -> Any:
    parser = engine()
    parser.parse_delta("a", [], REQUEST, [5], finished=False)
    before = parser._prompt_streaming_prepared
    parser._reset()
    return (before, parser._prompt_streaming_prepared), (True, False)


@row(f"{ENGINE}.adjust_request", "adjust_request sets skip_special_tokens of the request itself, and returns it")
def _() -> Any:
    request = ChatCompletionRequest()
    found = engine().adjust_request(request)
    return (found is request, request.skip_special_tokens), (True, False)


@row(f"{ENGINE}._preprocess_feed", "_preprocess_feed returns its arguments unless it is overridden")
def _() -> Any:
    return engine()._preprocess_feed("a", [1]), ("a", [1])


@row(f"{ENGINE}._feed", "_feed gives the engine what _preprocess_feed returns")
def _() -> Any:
    class One(ParserEngine):
        def _preprocess_feed(self, delta_text: str, delta_token_ids: Any) -> Any:
            return delta_text.upper(), ()

    return One(TOKENIZER, parser_engine_config=hermes()).parse("ab", REQUEST), (None, "AB", None)


@row(f"{ENGINE}._feed", "_feed returns events")
def _() -> Any:
    (event,) = engine()._feed("ab", [])
    return (event.type, event.value), (EventType.TEXT_CHUNK, "ab")


# -- types --------------------------------------------------------------------------------------------------------

COERCED = [
    # value, schema, (coerced value, changed)
    ("1", {"type": "integer"}, (1, True)),
    ("-7", {"type": "integer"}, (-7, True)),
    ("x", {"type": "integer"}, ("x", False)),
    ("1.5", {"type": "number"}, (1.5, True)),
    ("true", {"type": "boolean"}, (True, True)),
    ("false", {"type": "boolean"}, (False, True)),
    ("null", {"type": "null"}, (None, True)),
    ("null", {"type": ["string", "null"]}, (None, True)),
    ("[1]", {"type": "array"}, ([1], True)),
    ('{"a": "1"}', {"type": "object"}, ({"a": "1"}, True)),
    ("1", {"type": "string"}, ("1", False)),
    ("1", {}, ("1", False)),
    ("1", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, (1, True)),
    (1, {"type": "string"}, ("1", True)),
    (1.5, {"type": "string"}, ("1.5", True)),
    (True, {"type": "string"}, ("true", True)),
    (1, {"type": "integer"}, (1, False)),
    (True, {"type": "boolean"}, (True, False)),
    (1.5, {"type": "number"}, (1.5, False)),
    ({"x": "1"}, {"type": "object", "properties": {"x": {"type": "integer"}}}, ({"x": 1}, True)),
    ({"x": "1"}, {"type": "object"}, ({"x": "1"}, False)),
    ({"y": "1"}, {"properties": {"x": {"type": "integer"}}}, ({"y": "1"}, False)),
    (["1", "2"], {"type": "array", "items": {"type": "integer"}}, ([1, 2], True)),
    (["1"], {"type": "array"}, (["1"], False)),
    ([1], {"type": "array", "items": {"type": "integer"}}, ([1], False)),
    (
        [{"x": ["1"]}],
        {"items": {"properties": {"x": {"items": {"type": "integer"}}}}},
        ([{"x": [1]}], True),
    ),
]
for value, schema, expected in COERCED:
    add(
        f"{DELTAS}._coerce_value",
        f"{json.dumps(value)} under {json.dumps(schema)} is {expected[0]!r}, {'changed' if expected[1] else 'kept'}",
        lambda value=value, schema=schema, expected=expected: (
            [(found, type(found[0])) for found in [ParserEngine._coerce_value(json.loads(json.dumps(value)), schema)]],
            [(expected, type(expected[0]))],
        ),
    )
for value, schema in ((None, "string"), (1.5, "integer"), (True, "number"), (1, "array")):
    add(
        f"{DELTAS}._coerce_value",
        f"a JSON {json.dumps(value)} that {schema} cannot hold stays",
        lambda value=value, schema=schema: (ParserEngine._coerce_value(value, {"type": schema}), (value, False)),
        differs="A JSON value that no type of its schema can hold stays as it is",
    )


@row(f"{DELTAS}._coerce_value", "containers are changed in place")
def _() -> Any:
    value = {"x": ["1"]}
    found, _ = ParserEngine._coerce_value(value, {"properties": {"x": {"items": {"type": "integer"}}}})
    return (found is value, value), (True, {"x": [1]})


@row(f"{DELTAS}._coerce_dict", "_coerce_dict changes the members that have a schema, in place")
def _() -> Any:
    given = {"a": "1", "b": "1"}
    found = ParserEngine._coerce_dict(given, {"a": {"type": "integer"}})
    return (found, found[0] is given), (({"a": 1, "b": "1"}, True), True)


@row(f"{DELTAS}._coerce_dict", "_coerce_dict says if nothing changed")
def _() -> Any:
    return ParserEngine._coerce_dict({"a": 1}, {"a": {"type": "integer"}}), ({"a": 1}, False)


@row(f"{DELTAS}._coerce_dict", "_coerce_dict leaves a member whose schema is no object")
def _() -> Any:
    return ParserEngine._coerce_dict({"a": "1"}, {"a": True}), ({"a": "1"}, False)


PREFIXES = [
    # text, string keys, prefix
    ("", None, ""),
    ("{", None, ""),
    ("{}", None, ""),
    ('{"a"', None, ""),
    ('{"a":', None, '{"a":'),
    ('{"a": ', None, '{"a": '),
    ('{"a": 12', None, '{"a": '),
    ('{"a": 12}', None, '{"a": '),
    ('{"a": 1, "b": 2', None, '{"a": 1, "b": '),
    ('{"a": 1, "b": "x', None, '{"a": 1, "b": "x'),
    ('{"a": 1, "b": "x"', None, '{"a": 1, "b": "x'),
    ('{"a": 1, "b": "x"}', None, '{"a": 1, "b": "x'),
    ('{"a": "x', {"a"}, '{"a": "x'),
    ('{"a": "x', {"b"}, '{"a": '),
    ('{"a": "x', set(), '{"a": '),
    ('{"a": "x\\"y"}', None, '{"a": "x\\"y'),
    ('{"a": [1, {"b": 2', None, '{"a": '),
    ('{"a": {"b": "c"}}', None, '{"a": '),
    ('{"a": "x", "b": {"c": "d"', None, '{"a": "x", "b": '),
    ('{"a":"b:c"}', None, '{"a":"b:c'),
    ("[1,2]", None, ""),
    ('"s"', None, ""),
]
for text, keys, expected in PREFIXES:
    add(
        f"{DELTAS}._safe_arg_prefix",
        f"of {text} {expected!r} is stable, if {'all' if keys is None else sorted(keys) or 'no'} keys are strings",
        lambda text=text, keys=keys, expected=expected: (ParserEngine._safe_arg_prefix(text, keys), expected),
    )
for properties, expected in (
    ({}, None),
    ({"a": {"type": "string"}}, {"a"}),
    ({"a": {"type": "string"}, "b": {"type": "integer"}}, {"a"}),
    ({"a": {"type": ["string", "null"]}}, set()),
    ({"a": {"anyOf": [{"type": "string"}, {"type": "number"}]}}, set()),
    ({"a": {"type": "object"}}, set()),
):
    add(
        f"{DELTAS}._streamable_string_keys",
        f"of {json.dumps(properties)} the values of {expected and sorted(expected)} stream while they are open",
        lambda p=properties, e=expected: (ParserEngine._streamable_string_keys(p), e),
    )
FIXED = [
    ('{"a": "1"}', "f", '{"a": 1}'),
    ('{"a": "x"}', "f", '{"a": "x"}'),
    ('{"a": 1}', "f", '{"a": 1}'),
    ('{"s": "1"}', "f", '{"s": "1"}'),
    ('{"q": "1"}', "f", '{"q": "1"}'),
    ('{"o": {"x": "1.5"}}', "f", '{"o": {"x": 1.5}}'),
    ('{"l": ["1", "2"]}', "f", '{"l": [1, 2]}'),
    ('{"a": "1"}', "g", '{"a": "1"}'),
    ('{"a": "1"}', "", '{"a": "1"}'),
    ("nonsense", "f", "nonsense"),
    ("[1]", "f", "[1]"),
    ("", "f", ""),
]
for text, name, expected in FIXED:
    add(
        f"{DELTAS}._fix_arg_types",
        f"the arguments {text!r} of {name!r} become {expected!r}",
        lambda text=text, name=name, expected=expected: (engine()._fix_arg_types(text, name), expected),
    )
add(
    f"{DELTAS}._fix_arg_types",
    "without tools the arguments stay",
    lambda: (engine(tools=None)._fix_arg_types('{"a": "1"}', "f"), '{"a": "1"}'),
)
add(
    f"{DELTAS}._fix_arg_types",
    "coerced arguments keep the text of everything else",
    lambda: (engine()._fix_arg_types('{"a":"1","s":"\\u00e9"}', "f"), '{"a":1,"s":"\\u00e9"}'),
    differs="everything else in them stays as it was written",
)
for validate, tools, name, expected in (
    (False, TOOLS, "g", True),
    (True, TOOLS, "g", False),
    (True, TOOLS, "f", True),
    (True, None, "g", True),
    (True, [], "g", True),
):
    add(
        f"{DELTAS}._is_valid_tool_name",
        f"{name!r} is {'a' if expected else 'no'} valid name with {len(tools or ())} tools{', checked' * validate}"
        f"{', None' * (tools is None)}",
        lambda v=validate, t=tools, n=name, e=expected: (
            engine(tools=t, validate_tool_names=v)._is_valid_tool_name(n),
            e,
        ),
    )

# -- requests -----------------------------------------------------------------------------------------------------

for request, skips, statement in (
    (make_parser_request("m", [], TOOLS), False, "a request with tools takes calls"),
    (make_parser_request("m", [], TOOLS, "none"), True, "tool_choice none with tools makes calls text"),
    (SimpleNamespace(tools=TOOLS, tool_choice="required"), False, "tool_choice required takes calls"),
    (SimpleNamespace(tools=None, tool_choice="auto"), False, "a request without tools and with auto takes calls"),
    (SimpleNamespace(), False, "a request without these fields takes calls"),
):
    add(
        f"{ENGINE}._check_skip_tool_parsing",
        statement,
        lambda request=request, skips=skips: (_skips(request), skips),
    )
add(
    f"{ENGINE}._check_skip_tool_parsing",
    "tool_choice none without tools makes calls text too",
    lambda: (_skips(SimpleNamespace(tools=None, tool_choice="none")), True),
    differs='`tool_choice="none"` makes calls text also in a request without tools',
)


def _skips(request: Any) -> bool:
    parser = engine()
    parser._check_skip_tool_parsing(request)
    return parser.skip_tool_parsing


@row(f"{ENGINE}._check_skip_tool_parsing", "tools of a request replace those of the parser")
def _() -> Any:
    parser = engine(tools=[tool("g")])
    parser._check_skip_tool_parsing(REQUEST)
    return parser._tools, REQUEST.tools


@row(f"{ENGINE}._check_skip_tool_parsing", "a request without tools keeps those of the parser")
def _() -> Any:
    parser = engine()
    parser._check_skip_tool_parsing(SimpleNamespace(tools=None))
    return parser._tools, TOOLS


for content, called, changes, expected in (
    (" a ", True, {}, "a"),
    (" a ", False, {}, " a "),
    ("  ", True, {}, None),
    ("", False, {}, None),
    ("", True, {}, None),
    (" a ", True, {"strip_content_whitespace_with_tools": False}, " a "),
    ("  ", True, {"strip_content_whitespace_with_tools": False}, None),
    (
        "  ",
        True,
        {"strip_content_whitespace_with_tools": False, "drop_whitespace_only_content_before_tools": False},
        "  ",
    ),
):
    add(
        f"{ENGINE}._strip_content_whitespace",
        f"content {content!r} with{'' if called else 'out'} calls becomes {expected!r} ({len(changes)} flags off)",
        lambda c=content, t=called, k=changes, e=expected: (engine(**k)._strip_content_whitespace(c, t), e),
    )

# -- streams ------------------------------------------------------------------------------------------------------

OUTPUTS: dict[str, tuple[str, tuple[str, str, list[tuple[str, str]]]]] = {
    "plain text": ("a  b\n", ("", "a  b\n", [])),
    "reasoning and content": ("<think>a</think>b", ("a", "b", [])),
    "reasoning with white space at its end": ("<think>a \n</think>b", ("a", "b", [])),
    "reasoning alone": ("<think>a</think>", ("a", "", [])),
    "reasoning that does not end": ("<think>a", ("a", "", [])),
    "one call": (CALL, ("", "", [("f", '{"a": 1}')])),
    "two calls": (CALL * 2, ("", "", [("f", '{"a": 1}')] * 2)),
    "content and a call": (f"a {CALL}", ("", "a", [("f", '{"a": 1}')])),
    "all three": (f"<think>r</think>c\n{CALL}", ("r", "c", [("f", '{"a": 1}')])),
    "white space before a call": (f" \n{CALL}", ("", "", [("f", '{"a": 1}')])),
    "white space between calls": (f"{CALL}\n{CALL}", ("", "", [("f", '{"a": 1}')] * 2)),
    "content after a call": (f"{CALL}b", ("", "b", [("f", '{"a": 1}')])),
    "a call under parameters": (CALL.replace("arguments", "parameters"), ("", "", [("f", '{"a": 1}')])),
    "a call in reasoning ends it": (f"<think>r{CALL}", ("r", "", [("f", '{"a": 1}')])),
    "a call without arguments": ('<tool_call>{"name": "f"}</tool_call>', ("", "", [("f", "{}")])),
    "arguments that are a string of JSON": (
        '<tool_call>{"name": "f", "arguments": "{\\"a\\": 1}"}</tool_call>',
        ("", "", [("f", '{"a": 1}')]),
    ),
}
for name, (output, expected) in OUTPUTS.items():
    for size in (1, 3, 1000):
        add(
            f"{ENGINE}.parse_delta",
            f"{name}, {size} characters at a time",
            lambda output=output, expected=expected, size=size: (
                total(feed(engine(), *(output[at : at + size] for at in range(0, len(output), size)))),
                expected,
            ),
        )
    add(
        f"{ENGINE}.parse",
        f"{name}, whole",
        lambda output=output, expected=expected: (
            (lambda r, c, t: (r or "", c or "", arguments_of(t)))(*engine().parse(output, REQUEST)),
            expected,
        ),
    )
    add(
        f"{ENGINE}.extract_tool_calls",
        f"{name}, its calls and its content",
        lambda output=output, expected=expected: (
            (
                lambda found: (
                    found.tools_called,
                    found.content or "",
                    arguments_of(c.function for c in found.tool_calls),
                )
            )(engine().extract_tool_calls(output, REQUEST)),
            (bool(expected[2]), *expected[1:]),
        ),
    )
TAGGED = "<tool_call><function=f><parameter=a>\n1\n</parameter><parameter=s>\nx y\n</parameter></function></tool_call>"
for size in (1, 4, 1000):
    add(
        f"{DELTAS}._compute_arg_delta",
        f"converted arguments stream, {size} characters at a time, with the types of the schema",
        lambda size=size: (
            total(feed(tagged(), *(TAGGED[at : at + size] for at in range(0, len(TAGGED), size)))),
            ("", "", [("f", '{"a": 1, "s": "x y"}')]),
        ),
    )


@row(f"{ENGINE}.parse_delta", "parse_delta returns None if nothing is complete")
def _() -> Any:
    return engine().parse_delta("<thi", [], REQUEST, finished=False), None


@row(f"{ENGINE}.parse_delta", "parse_delta of nothing is None")
def _() -> Any:
    return engine().parse_delta("", [], REQUEST, finished=False), None


@row(f"{ENGINE}.parse_delta", "finished=True returns what is left")
def _() -> Any:
    return engine().parse_delta("a<thi", [], REQUEST, finished=True), DeltaMessage(content="a<thi")


@row(f"{ENGINE}.parse_delta", "finished must be given, by name")
def _() -> Any:
    try:
        engine().parse_delta("a", [], REQUEST, None)  # type: ignore[call-arg]
    except TypeError:
        return True, True
    return False, True


@row(f"{ENGINE}.parse_delta", "the first delta of a call has index, id, type and name, and the rest only arguments")
def _() -> Any:
    deltas = feed(engine(), *CALL)
    calls = [call for delta in deltas if delta for call in delta.tool_calls or ()]
    first, rest = calls[0], calls[1:]
    assert first.function is not None
    return (
        (first.index, bool(first.id), first.type, first.function.name, {(c.id, c.type, c.function.name) for c in rest}),
        (0, True, "function", "f", {(None, None, None)}),
    )


@row(f"{ENGINE}.parse_delta", "calls are numbered from 0")
def _() -> Any:
    deltas = feed(engine(), CALL, CALL)
    return [call.index for delta in deltas if delta for call in delta.tool_calls or ()], [0, 1]


@row(f"{ENGINE}.parse_delta", "the deltas of one part are one delta for each call")
def _() -> Any:
    (delta, _) = feed(engine(), CALL + CALL)
    return [(c.index, c.function.name, c.function.arguments) for c in delta.tool_calls], [
        (0, "f", '{"a": 1}'),
        (1, "f", '{"a": 1}'),
    ]


@row(f"{ENGINE}.reasoning_ended", "reasoning_ended is True once its end has come")
def _() -> Any:
    parser = engine()
    found = []
    for piece in ("<think>a", "</think>", "b"):
        parser.parse_delta(piece, [], REQUEST, finished=False)
        found.append(parser.reasoning_ended)
    return found, [False, True, True]


@row(f"{DELTAS}._strip_trailing_reasoning", "white space at the end of reasoning waits for more reasoning")
def _() -> Any:
    return [d and d.reasoning for d in feed(engine(), "<think>a ", "b", finished=False)], ["a", " b"]


@row(f"{DELTAS}._strip_trailing_reasoning", "_deferred_reasoning holds it")
def _() -> Any:
    parser = engine()
    feed(parser, "<think>a \n", finished=False)
    return parser._deferred_reasoning, " \n"


@row(f"{DELTAS}._strip_trailing_reasoning", "reasoning that is white space only is no delta yet")
def _() -> Any:
    return feed(engine(), "<think>", " ", finished=False), [None, None]


@row(f"{DELTAS}._strip_trailing_reasoning", "with the flag off, reasoning passes unchanged")
def _() -> Any:
    parser = engine(strip_trailing_reasoning_whitespace=False)
    return total(feed(parser, "<think>a \n</think>b")), ("a \n", "b", [])


@row(f"{DELTAS}._strip_trailing_reasoning", "with the flag off, the method returns its delta itself")
def _() -> Any:
    delta = DeltaMessage(reasoning="a ")
    return engine(strip_trailing_reasoning_whitespace=False)._strip_trailing_reasoning(delta) is delta, True


@row(f"{DELTAS}._strip_trailing_reasoning", "called by itself, the method defers white space and puts it before more")
def _() -> Any:
    parser = engine()
    first = parser._strip_trailing_reasoning(DeltaMessage(reasoning="a  "))
    deferred = parser._deferred_reasoning
    second = parser._strip_trailing_reasoning(DeltaMessage(reasoning="b"))
    return (first, deferred, second), (DeltaMessage(reasoning="a"), "  ", DeltaMessage(reasoning="  b"))


@row(f"{DELTAS}._strip_trailing_reasoning", "what is deferred is dropped once reasoning has ended")
def _() -> Any:
    parser = engine()
    parser._strip_trailing_reasoning(DeltaMessage(reasoning="a  "))
    parser._reasoning_ended = True
    parser._strip_trailing_reasoning(DeltaMessage(content="b"))
    return parser._deferred_reasoning, ""


@row(f"{DELTAS}._strip_trailing_reasoning", "None stays None")
def _() -> Any:
    return engine()._strip_trailing_reasoning(None), None


@row(f"{DELTAS}._events_to_delta", "an override of _events_to_delta sees reasoning with its white space")
def _() -> Any:
    seen = []

    class One(ParserEngine):
        def _events_to_delta(self, events: Any, finished: bool = False) -> Any:
            delta = super()._events_to_delta(events, finished)
            seen.append(delta and delta.reasoning)
            return delta

    parser = One(TOKENIZER, parser_engine_config=hermes())
    parser.parse_delta("<think>a ", [], REQUEST, finished=False)
    return seen, ["a "]


@row(f"{DELTAS}._events_to_delta", "no events make no delta")
def _() -> Any:
    return engine()._events_to_delta([]), None


for kind, field in ((EventType.TEXT_CHUNK, "content"), (EventType.REASONING_CHUNK, "reasoning")):
    add(
        f"{DELTAS}._events_to_delta",
        f"{kind.name} becomes {field}",
        lambda kind=kind, field=field: (
            engine()._events_to_delta([SemanticEvent(kind, "a", -1), SemanticEvent(kind, "b", -1)]),
            DeltaMessage(**{field: "ab"}),
        ),
    )
add(
    f"{DELTAS}._events_to_delta",
    "REASONING_START alone makes no delta",
    lambda: (engine()._events_to_delta([SemanticEvent(EventType.REASONING_START, "", -1)]), None),
)


@row(f"{DELTAS}._events_to_delta", "REASONING_END sets reasoning_ended")
def _() -> Any:
    parser = engine()
    parser._events_to_delta([SemanticEvent(EventType.REASONING_END, "", -1)])
    return parser.reasoning_ended, True


@row(f"{DELTAS}._events_to_delta", "events of a whole call become its delta")
def _() -> Any:
    kinds = (
        (EventType.TOOL_CALL_START, ""),
        (EventType.TOOL_NAME, "f"),
        (EventType.ARG_VALUE_CHUNK, '{"a": 1}'),
        (EventType.TOOL_CALL_END, ""),
    )
    delta = engine()._events_to_delta([SemanticEvent(kind, text, 0) for kind, text in kinds])
    assert delta is not None
    (call,) = delta.tool_calls or ()
    return (call.index, call.type, call.function), (0, "function", DeltaFunctionCall(name="f", arguments='{"a": 1}'))


@row(f"{DELTAS}._events_to_delta", "white space before content waits until the content comes")
def _() -> Any:
    parser = engine()
    return [d and d.content for d in feed(parser, " \n", "a", finished=False)], [None, " \na"]


@row(f"{DELTAS}._events_to_delta", "_deferred_content holds it")
def _() -> Any:
    parser = engine()
    feed(parser, " \n", finished=False)
    return parser._deferred_content, " \n"


@row(f"{DELTAS}._events_to_delta", "white space only before a call is dropped with its flag")
def _() -> Any:
    changes = {"strip_content_whitespace_with_tools": False}
    return [d.content for d in feed(engine(**changes), " \n", CALL) if d], [None]


@row(f"{DELTAS}._events_to_delta", "without the flags it is content")
def _() -> Any:
    parser = engine(strip_content_whitespace_with_tools=False, drop_whitespace_only_content_before_tools=False)
    return total(feed(parser, " \n", CALL))[1], " \n"


@row(f"{ENGINE}.extract_reasoning_streaming", "extract_reasoning_streaming needs only the new text")
def _() -> Any:
    parser = engine()
    found = [parser.extract_reasoning_streaming("", "", piece, [], [], []) for piece in ("<think>a", "</think>b")]
    return found, [DeltaMessage(reasoning="a"), DeltaMessage(content="b")]


@row(f"{ENGINE}.extract_tool_calls_streaming", "extract_tool_calls_streaming needs only the new text")
def _() -> Any:
    parser = engine()
    found = [parser.extract_tool_calls_streaming("", "", piece, [], [], [], REQUEST) for piece in CALL]
    return total([*found, parser.finish_streaming()]), ("", "", [("f", '{"a": 1}')])


@row(f"{ENGINE}.extract_tool_calls_streaming", "extract_tool_calls_streaming reads tool_choice of the request")
def _() -> Any:
    parser = engine()
    request = make_parser_request("m", [], TOOLS, "none")
    return total([parser.extract_tool_calls_streaming("", CALL, CALL, [], [], [], request)]), ("", CALL, [])


@row(f"{ENGINE}.get_streaming_fallback_content", "there is no fallback content by default")
def _() -> Any:
    return engine().get_streaming_fallback_content("a", REQUEST), None


# -- whole --------------------------------------------------------------------------------------------------------

for output, expected in {
    "<think>a</think>b": ("a", "b"),
    "b": (None, "b"),
    "<think>a": ("a", None),
    "<think>a  </think>b": ("a", "b"),
    "": (None, None),
}.items():
    add(
        f"{ENGINE}.extract_reasoning",
        f"extract_reasoning of {output!r} is {expected!r}",
        lambda output=output, expected=expected: (engine().extract_reasoning(output, REQUEST), expected),
    )
add(
    f"{ENGINE}.extract_reasoning",
    "calls stay in the content of extract_reasoning",
    lambda: (engine().extract_reasoning(f"<think>a</think>b{CALL}", REQUEST), ("a", f"b{CALL}")),
    differs="`extract_reasoning` of an engine keeps calls in the content, as they were written",
)


@row(
    f"{ENGINE}.extract_reasoning_streaming",
    "calls stay in the content of extract_reasoning_streaming",
    differs="`extract_reasoning` of an engine keeps calls in the content, as they were written",
)
def _() -> Any:
    parser = engine()
    found = [parser.extract_reasoning_streaming("", "", CALL, [], [], []), parser.finish_streaming()]
    return total(found), ("", CALL, [])


@row(f"{ENGINE}.extract_reasoning", "with the flag off, extract_reasoning keeps white space")
def _() -> Any:
    parser = engine(strip_trailing_reasoning_whitespace=False)
    return parser.extract_reasoning("<think>a  </think>b", REQUEST), ("a  ", "b")


@row(f"{ENGINE}.extract_reasoning", "extract_reasoning records that reasoning has ended")
def _() -> Any:
    parser = engine()
    parser.extract_reasoning("<think>a</think>b", REQUEST)
    return parser.reasoning_ended, True


@row(f"{ENGINE}.extract_tool_calls", "each whole parse is a new one")
def _() -> Any:
    parser = engine()
    return [len(parser.extract_tool_calls(CALL, REQUEST).tool_calls) for _ in range(2)], [1, 1]


@row(f"{ENGINE}.extract_tool_calls", "its result has the documented type")
def _() -> Any:
    found = engine().extract_tool_calls(CALL, REQUEST)
    return (type(found), found.tool_calls[0].type), (ExtractedToolCallInformation, "function")


@row(
    f"{ENGINE}.extract_tool_calls_from_content",
    "extract_tool_calls_from_content begins in content, whatever the config says",
)
def _() -> Any:
    parser = engine(initial_state=REASONING)
    found = parser.extract_tool_calls_from_content(f"a{CALL}", REQUEST)
    return (found.content, arguments_of(c.function for c in found.tool_calls)), ("a", [("f", '{"a": 1}')])


@row(f"{ENGINE}.extract_tool_calls_from_content", "its content is there without calls, too")
def _() -> Any:
    return engine().extract_tool_calls_from_content("ab", REQUEST), ExtractedToolCallInformation(False, [], "ab")


@row(f"{ENGINE}.parse", "parse returns None for each part that is missing")
def _() -> Any:
    return engine().parse("", REQUEST), (None, None, None)


@row(f"{ENGINE}.parse", "its calls are FunctionCall with the id of the call")
def _() -> Any:
    (call,) = engine().parse(CALL, REQUEST)[2] or ()
    return (type(call), bool(call.id), call.name), (FunctionCall, True, "f")


@row(f"{ENGINE}.parse", "parse finds calls with enable_auto_tools=False, too")
def _() -> Any:
    return arguments_of(engine().parse(CALL, REQUEST, enable_auto_tools=False)[2]), [("f", '{"a": 1}')]


@row(f"{ENGINE}.parse", "ids of the output may be given")
def _() -> Any:
    found = engine().parse(CALL, REQUEST, model_output_token_ids=TOKENIZER.ids(CALL))
    return arguments_of(found[2]), [("f", '{"a": 1}')]


@row(f"{ENGINE}.parse", "with ids, a marker spelled by other tokens is text")
def _() -> Any:
    text = "<think>a"
    return engine().parse(text, REQUEST, model_output_token_ids=list(map(ord, text))), (None, text, None)


for name, read in {
    "parse": lambda: engine().parse(f" b {CALL}", REQUEST)[1],
    "a stream": lambda: total(feed(engine(), " b ", CALL))[1],
}.items():
    add(
        f"{ENGINE}._single_pass_parse",
        f"white space before content stays, next to a call too: {name}",
        lambda read=read: (read(), " b"),
        differs="White space before content stays",
    )


@row(f"{ENGINE}._single_pass_parse", "_single_pass_parse returns reasoning, content, and calls")
def _() -> Any:
    reasoning, content, found = engine()._single_pass_parse(f"<think>a</think>b {CALL}", [])
    return (reasoning, content, found.tools_called), ("a", "b", True)


@row(f"{ENGINE}._single_pass_parse", "_single_pass_parse begins in the state that it is given")
def _() -> Any:
    return engine()._single_pass_parse("a</think>b", [], REASONING)[:2], ("a", "b")


@row(f"{ENGINE}._build_extracted_result", "a call of a tool that is not offered is dropped if names are checked")
def _() -> Any:
    parser = engine(tools=[tool("g")], validate_tool_names=True)
    return parser.extract_tool_calls(CALL, None).tool_calls, []


@row(f"{ENGINE}._build_extracted_result", "without deltas there is no content and no call")
def _() -> Any:
    return engine()._build_extracted_result(), ExtractedToolCallInformation(False, [], None)


def slots(*filled: tuple[str, str], **changes: Any) -> ParserEngine:
    parser = engine(**changes)
    for index, (name, text) in enumerate(filled):
        parser._ensure_slot(index)
        parser._tool_slots[index].name = name
        parser._tool_slots[index].append_args(text)
    return parser


for what, filled, expected in (
    ("a name and arguments", [("f", '{"a": 1}')], [("f", '{"a": 1}')]),
    ("a name alone", [("f", "")], [("f", "{}")]),
    ("white space around the name", [(" f ", '{"a": 1}')], [("f", '{"a": 1}')]),
    ("an object that has the name", [("", '{"name": "f", "arguments": {"a": 1}}')], [("f", '{"a": 1}')]),
    ("nothing", [("", "")], []),
    ("two calls", [("f", "{}"), ("g", '{"b": 2}')], [("f", "{}"), ("g", '{"b": 2}')]),
):
    add(
        f"{ENGINE}._build_extracted_result",
        f"slots with {what} become {expected}",
        lambda filled=filled, expected=expected: (
            arguments_of(c.function for c in slots(*filled)._build_extracted_result().tool_calls),
            expected,
        ),
    )


for name, read in {
    "whole": lambda text: engine().parse(text, REQUEST)[2],
    "streamed": lambda text: [FunctionCall(*call) for call in total(feed(engine(), text))[2]],
}.items():
    add(
        f"{ENGINE}._build_extracted_result",
        f"without a converter, JSON arguments stay as they were written: {name}",
        lambda read=read: (arguments_of(read(CALL.replace("1", '"1"'))), [("f", '{"a": "1"}')]),
        differs="JSON arguments that no converter makes stay as they were written",
    )


@row(f"{ENGINE}._build_extracted_result", "calls come from the slots that _events_to_delta has filled")
def _() -> Any:
    parser = engine()
    parser._reset()
    delta = parser._events_to_delta([*parser._feed(f"a{CALL}", []), *parser._engine.finish()])
    found = parser._build_extracted_result()
    assert delta is not None
    return (delta.content, arguments_of(c.function for c in found.tool_calls)), ("a", [("f", '{"a": 1}')])


@row(f"{ENGINE}._single_pass_parse", "_single_pass_parse may be overridden as vLLM writes it")
def _() -> Any:
    class One(ParserEngine):
        def _single_pass_parse(self, text: str, token_ids: Any, initial_state: Any = None) -> Any:
            self._reset(initial_state=initial_state)
            events = self._feed(text, token_ids)
            events.extend(self._engine.finish())
            delta = self._events_to_delta(events)
            found = self._build_extracted_result()
            return delta and delta.reasoning, delta and delta.content, found

    found = One(TOKENIZER, TOOLS, parser_engine_config=hermes()).parse(f"<think>r</think>c{CALL}", REQUEST)
    return (*found[:2], arguments_of(found[2])), ("r", "c", [("f", '{"a": 1}')])


@row(f"{DELTAS}._handle_tool_end", "the end of a call that has no slot does nothing")
def _() -> Any:
    deltas: list[DeltaToolCall] = []
    engine()._handle_tool_end(SemanticEvent(EventType.TOOL_CALL_END, "", 3), deltas)
    return deltas, []


@row(f"{DELTAS}._handle_tool_end", "the end of a call sends a name that has not been sent")
def _() -> Any:
    parser, deltas = slots(("f", "")), []
    parser._handle_tool_end(SemanticEvent(EventType.TOOL_CALL_END, "", 0), deltas)
    (call,) = ParserEngine._coalesce_tool_call_deltas(deltas)
    return (call.type, call.function), ("function", DeltaFunctionCall("f", "{}"))


@row(f"{DELTAS}._handle_arg_chunk", "the first arguments send the name")
def _() -> Any:
    parser, deltas = slots(("f", "")), []
    parser._handle_arg_chunk(SemanticEvent(EventType.ARG_VALUE_CHUNK, "{", 0), deltas)
    return (deltas[0].type, deltas[0].function.name), ("function", "f")


@row(f"{DELTAS}._handle_arg_chunk", "further arguments are sent as they come")
def _() -> Any:
    parser, deltas = slots(("f", "")), []
    for text in ('{"a"', ": 1"):
        parser._handle_arg_chunk(SemanticEvent(EventType.ARG_VALUE_CHUNK, text, 0), deltas)
    return deltas[-1].function, DeltaFunctionCall(arguments=": 1")


for text, expected in (
    ('{"name": "f"', "f"),
    ('{"name" : "g", "arguments": {}}', "g"),
    ('{"nam', None),
    ('{"name": ""}', None),
):
    add(
        f"{DELTAS}._try_extract_name",
        f"the name in {text} is {expected}",
        lambda text=text, expected=expected: (slots(("", text))._try_extract_name(0), expected),
    )
add(
    f"{DELTAS}._NAME_RE", "_NAME_RE finds a name", lambda: (ParserEngine._NAME_RE.search('{"name": "f"}').group(1), "f")
)


@row(f"{ENGINE}._build_extracted_result", "content of several deltas is joined")
def _() -> Any:
    found = engine()._build_extracted_result(DeltaMessage(content="a"), None, DeltaMessage(content="b"))
    return found.content, "ab"


def slotted(name: str = "", *, sent: bool = False) -> ParserEngine:
    """Return an engine whose first slot a caller has filled."""
    parser = engine()
    parser._ensure_slot(0)
    parser._tool_slots[0].name, parser._tool_slots[0].name_sent = name, sent
    return parser


@row(f"{DELTAS}._handle_arg_chunk", "arguments of a slot whose name was sent are a delta of its index")
def _() -> Any:
    deltas: list[DeltaToolCall] = []
    slotted("f", sent=True)._handle_arg_chunk(SemanticEvent(EventType.ARG_VALUE_CHUNK, '{"a"', 0), deltas)
    return deltas, [DeltaToolCall(index=0, function=DeltaFunctionCall(arguments='{"a"'))]


@row(f"{DELTAS}._handle_tool_end", "a slot whose name was not sent ends with name and arguments in one delta")
def _() -> Any:
    deltas: list[DeltaToolCall] = []
    parser = slotted("f")
    parser._tool_slots[0].append_args('{"a": 1}')
    parser._handle_tool_end(SemanticEvent(EventType.TOOL_CALL_END, "", 0), deltas)
    return [(one.index, one.type, one.function) for one in deltas], [
        (0, "function", DeltaFunctionCall(name="f", arguments='{"a": 1}'))
    ]


@row(f"{DELTAS}._safe_arg_prefix", "a prefix may end in a backslash")
def _() -> Any:
    return ParserEngine._safe_arg_prefix('{"s": "x\\'), '{"s": "x\\'


# -- ids ----------------------------------------------------------------------------------------------------------

ENDS = [
    ([], True),
    ([97], False),
    ([START, 97], False),
    ([START, 97, STOP], True),
    ([START, 97, STOP, 98], True),
    ([STOP], True),
    ([START, STOP, START, 97], False),
]
for ids, expected in ENDS:
    add(
        f"{ENGINE}.is_reasoning_end",
        f"after {ids} reasoning is {'over' if expected else 'not over'}",
        lambda ids=ids, expected=expected: (engine().is_reasoning_end(ids), expected),
    )
add(
    f"{ENGINE}.is_reasoning_end",
    "without ids reasoning is not over if outputs begin in it",
    lambda: (engine(initial_state=REASONING).is_reasoning_end([]), False),
)
add(
    f"{ENGINE}.is_reasoning_end",
    "without reasoning in the config, reasoning is over: False in the documented source, True in vLLM",
    lambda: ([engine(**WITHOUT).is_reasoning_end(ids) for ids in ([], [97])], [True, True]),
    differs="`is_reasoning_end` of an engine without reasoning is True",
)


@row(f"{ENGINE}.is_reasoning_end", "if the end has no id, is_reasoning_end is reasoning_ended")
def _() -> Any:
    parser = engine(token_id_terminals={})
    before = parser.is_reasoning_end([97])
    parser.parse_delta("<think>a</think>", [], REQUEST, finished=False)
    return (before, parser.is_reasoning_end([97])), (False, True)


add(
    f"{ENGINE}.is_reasoning_end_streaming",
    "is_reasoning_end_streaming is True for the part with the end",
    lambda: (engine().is_reasoning_end_streaming([START, 97, STOP], [STOP]), True),
)
add(
    f"{ENGINE}.is_reasoning_end_streaming",
    "is_reasoning_end_streaming is is_reasoning_end of all ids",
    lambda: (
        [engine().is_reasoning_end_streaming(ids, ids[-1:]) for ids, _ in ENDS],
        [engine().is_reasoning_end(ids) for ids, _ in ENDS],
    ),
)
CONTENTS = [
    ([], []),
    ([97, 98], [97, 98]),
    ([START, 97, STOP, 98, 99], [98, 99]),
    ([START, 97, STOP], []),
    ([START, 97], [START, 97]),
    ([97, STOP, 98, STOP, 99], [99]),
]
for ids, expected in CONTENTS:
    add(
        f"{ENGINE}.extract_content_ids",
        f"the content of {ids} is {expected}",
        lambda ids=ids, expected=expected: (engine().extract_content_ids(ids), expected),
    )
COUNTS = [([], 0), ([97], 0), ([START, 97, 98, STOP, 99], 2), ([START, STOP], 0), ([START, 97], 1), ([STOP, 97], 0)]
for ids, count in [*COUNTS, ([START, 97, STOP, START, 98, STOP], 2)]:
    add(
        f"{ENGINE}.count_reasoning_tokens",
        f"{ids} has {count} tokens of reasoning",
        lambda ids=ids, count=count: (engine().count_reasoning_tokens(ids), count),
    )
add(
    f"{ENGINE}.count_reasoning_tokens",
    "without markers there are no tokens of reasoning",
    lambda: (engine(**WITHOUT).count_reasoning_tokens([97]), 0),
)
add(
    f"{ENGINE}.count_reasoning_tokens",
    "tokens before the end count if outputs begin in reasoning",
    lambda: (engine(initial_state=REASONING).count_reasoning_tokens([97, 98, STOP]), 2),
    differs="`count_reasoning_tokens` counts what the parse takes for reasoning",
)
add(
    f"{ENGINE}.count_reasoning_tokens",
    "a second opening marker inside reasoning is no token of it",
    lambda: (engine().count_reasoning_tokens([START, 97, START, 98, STOP]), 2),
)
add(
    f"{ENGINE}.count_reasoning_tokens",
    "the first closing marker ends reasoning",
    lambda: (engine().count_reasoning_tokens([START, 97, START, 98, STOP, 99]), 2),
    differs="`count_reasoning_tokens` counts what the parse takes for reasoning",
)

# -- calls --------------------------------------------------------------------------------------------------------


@row(f"{DELTAS}._ensure_slot", "_ensure_slot makes slots up to a number")
def _() -> Any:
    parser = engine()
    parser._ensure_slot(2)
    parser._ensure_slot(1)
    return [type(slot) for slot in parser._tool_slots], [ToolCallSlot] * 3


@row(f"{DELTAS}._ensure_tool_id", "_ensure_tool_id gives a slot an id once, and counts")
def _() -> Any:
    parser, slot = engine(), ToolCallSlot()
    parser._ensure_tool_id(slot, "f")
    first = slot.id
    parser._ensure_tool_id(slot, "f")
    return (bool(first), slot.id == first, parser._stream_state.history_tool_call_cnt), (True, True, 1)


@row(f"{DELTAS}._ensure_tool_id", "the id type of the stream state decides the shape of ids")
def _() -> Any:
    parser, slot = engine(), ToolCallSlot()
    parser._stream_state.tool_call_id_type = "kimi_k2"
    parser._stream_state.history_tool_call_cnt = 4
    parser._ensure_tool_id(slot, "f")
    return slot.id, "functions.f:4"


@row(f"{DELTAS}._handle_tool_name", "_handle_tool_name adds to the name of the slot")
def _() -> Any:
    parser = engine()
    parser._ensure_slot(0)
    for text in ("a", "b"):
        parser._handle_tool_name(SemanticEvent(EventType.TOOL_NAME, text, 0))
    return parser._tool_slots[0].name, "ab"


@row(f"{DELTAS}._emit_name_delta", "_emit_name_delta adds the first delta of a call")
def _() -> Any:
    parser, deltas = engine(), []
    parser._ensure_slot(0)
    parser._emit_name_delta(0, deltas, "f")
    slot = parser._tool_slots[0]
    expected = [DeltaToolCall(index=0, id=slot.id, type="function", function=DeltaFunctionCall(name="f"))]
    return (deltas, slot.name, slot.name_sent, slot.string_keys), (expected, "f", True, {"s"})


for name in (None, ""):
    add(
        f"{DELTAS}._emit_name_delta",
        f"_emit_name_delta does nothing with the name {name!r}",
        lambda name=name: (_emitted(engine(), name), []),
    )
add(
    f"{DELTAS}._emit_name_delta",
    "_emit_name_delta does nothing with a name that is not valid",
    lambda: (_emitted(engine(validate_tool_names=True), "g"), []),
)


def _emitted(parser: ParserEngine, name: str | None) -> list[DeltaToolCall]:
    deltas: list[DeltaToolCall] = []
    parser._ensure_slot(0)
    parser._emit_name_delta(0, deltas, name)
    return deltas


MERGED: list[tuple[str, list[DeltaToolCall], list[DeltaToolCall]]] = [
    ("nothing", [], []),
    ("one delta", [DeltaToolCall(0)], [DeltaToolCall(0)]),
    ("two calls", [DeltaToolCall(0), DeltaToolCall(1)], [DeltaToolCall(0), DeltaToolCall(1)]),
    (
        "a name and arguments",
        [
            DeltaToolCall(0, "i", "function", DeltaFunctionCall("f")),
            DeltaToolCall(0, function=DeltaFunctionCall(arguments="{")),
            DeltaToolCall(0, function=DeltaFunctionCall(arguments="}")),
        ],
        [DeltaToolCall(0, "i", "function", DeltaFunctionCall("f", "{}"))],
    ),
    (
        "an id that comes later",
        [DeltaToolCall(0), DeltaToolCall(0, "i", "function", DeltaFunctionCall("f", "1"))],
        [DeltaToolCall(0, "i", "function", DeltaFunctionCall("f", "1"))],
    ),
    (
        "calls in turns",
        [
            DeltaToolCall(1, function=DeltaFunctionCall(arguments="a")),
            DeltaToolCall(0, "i"),
            DeltaToolCall(1, function=DeltaFunctionCall(arguments="b")),
        ],
        [DeltaToolCall(1, function=DeltaFunctionCall(arguments="ab")), DeltaToolCall(0, "i")],
    ),
    (
        "two names",
        [DeltaToolCall(0, function=DeltaFunctionCall("a")), DeltaToolCall(0, function=DeltaFunctionCall("b"))],
        [DeltaToolCall(0, function=DeltaFunctionCall("a"))],
    ),
]
for name, given, expected in MERGED:
    add(
        f"{DELTAS}._coalesce_tool_call_deltas",
        f"deltas of calls are merged: {name}",
        lambda given=given, expected=expected: (ParserEngine._coalesce_tool_call_deltas(given), expected),
    )
add(
    f"{DELTAS}._coalesce_tool_call_deltas",
    "the same list is returned if there is nothing to merge",
    lambda: (ParserEngine._coalesce_tool_call_deltas(one := [DeltaToolCall(0)]) is one, True),
)

BODIES: list[tuple[str, tuple[str, str], str]] = [
    # text, (name, arguments), arguments alone
    ('{"name": "f", "arguments": {"a": 1}}', ("f", '{"a": 1}'), '{"a": 1}'),
    ('{"name": "f", "parameters": {"a": 1}}', ("f", '{"a": 1}'), '{"a": 1}'),
    ('{"name": "f", "arguments": "{\\"a\\": 1}"}', ("f", '{"a": 1}'), '{"a": 1}'),
    ('{"name": "f", "a": 1}', ("f", '{"a": 1}'), '{"a": 1}'),
    ('{"name": "f"}', ("f", "{}"), "{}"),
    ('{"name": "f", "arguments": null}', ("f", "null"), "null"),
    ('{"arguments": {}}', ("", "{}"), "{}"),
    ('{"a": 1}', ("", '{"a": 1}'), '{"a": 1}'),
    ("nonsense ", ("", "nonsense"), "nonsense"),
    ("[1]", ("", "[1]"), "[1]"),
    ("", ("", ""), "{}"),
    ("  ", ("", ""), "{}"),
]
for text, both, alone in BODIES:
    add(
        f"{ENGINE}._extract_name_and_args",
        f"name and arguments of {text!r} are {both!r}",
        lambda text=text, both=both: (engine()._extract_name_and_args(text), both),
    )
    add(
        f"{ENGINE}._extract_args_json",
        f"the arguments of {text!r} are {alone!r}",
        lambda text=text, alone=alone: (engine()._extract_args_json(text, "f"), alone),
    )
for parsed, expected in (
    ({"arguments": {"a": 1}}, '{"a": 1}'),
    ({"parameters": [1]}, "[1]"),
    ({"arguments": "x", "parameters": 1}, "x"),
    ({"a": 1}, None),
    ({"arguments": "é"}, "é"),
    ({"arguments": {"k": "é"}}, '{"k": "é"}'),
    ({"arguments": None}, "null"),
):
    add(
        f"{ENGINE}._extract_args_value",
        f"the arguments of {json.dumps(parsed)} are {expected!r}",
        lambda parsed=parsed, expected=expected: (ParserEngine._extract_args_value(parsed), expected),
    )

# -- converters ---------------------------------------------------------------------------------------------------


def converting(convert: Any, **changes: Any) -> ParserEngine:
    parser = tagged(arg_converter=convert, **changes)
    parser._ensure_slot(0)
    parser._tool_slots[0].name = "f"
    parser._tool_slots[0].append_args("raw")
    return parser


def fails(raw: str, partial: bool) -> str:
    raise ValueError(raw)


@row(f"{DELTAS}._compute_arg_delta", "without a converter arguments are sent as they come")
def _() -> Any:
    parser = engine()
    parser._ensure_slot(0)
    parser._tool_slots[0].name = "f"
    return parser._compute_arg_delta(0, '{"a": 1}'), '{"a": 1}'


for statement, convert, changes, expected in (
    ("arguments are sent up to the value that is open", lambda r, p: '{"a": 1, "b": 2', {}, '{"a": 1, "b": '),
    ("nothing is sent if nothing is stable", lambda r, p: "{", {}, None),
    ("nothing is sent if the converter has nothing", lambda r, p: "", {}, None),
    ("nothing is sent if the converter raises", fails, {}, None),
    ("nothing is sent if arguments do not stream", lambda r, p: '{"a": 1, "b": 2', {"stream_arg_deltas": False}, None),
    (
        "nothing is sent for text without structural characters",
        lambda r, p: '{"a": 1, "b": 2',
        {"arg_structural_chars": frozenset("<")},
        None,
    ),
):
    add(
        f"{DELTAS}._compute_arg_delta",
        f"with a converter {statement}",
        lambda c=convert, k=changes, e=expected: (converting(c, **k)._compute_arg_delta(0, "raw"), e),
    )


@row(f"{DELTAS}._compute_arg_delta", "each time only what is new is sent")
def _() -> Any:
    texts = iter(['{"s": "a', '{"s": "ab'])
    parser = converting(lambda raw, partial: next(texts))
    return [parser._compute_arg_delta(0, "raw") for _ in range(2)], ['{"s": "a', "b"]


@row(f"{DELTAS}._compute_arg_delta", "nothing is sent if a converter contradicts what was sent")
def _() -> Any:
    texts = iter(['{"a": 1, "b": 2', '{"x": 1, "b": 2'])
    parser = converting(lambda raw, partial: next(texts))
    return [parser._compute_arg_delta(0, "raw") for _ in range(2)], ['{"a": 1, "b": ', None]


@row(f"{DELTAS}._flush_arg_converter", "at the end of a call all of its arguments are sent")
def _() -> Any:
    parser = converting(lambda raw, partial: '{"a": "1"' + ("" if partial else "}"))
    return (parser._flush_arg_converter(0), parser._tool_slots[0].streamed_json), ('{"a": 1}', '{"a": 1}')


@row(f"{DELTAS}._flush_arg_converter", "the converter is told that no more will come")
def _() -> Any:
    asked = []
    converting(lambda raw, partial: asked.append((raw, partial)) or "{}")._flush_arg_converter(0)
    return asked, [("raw", False)]


@row(f"{DELTAS}._flush_arg_converter", "without a converter nothing is left to send")
def _() -> Any:
    return slots(("f", "{}"))._flush_arg_converter(0), None


@row(f"{DELTAS}._flush_arg_converter", "a converter that raises at the end leaves the arguments as they were written")
def _() -> Any:
    output = TAGGED.replace("<parameter=a>\n1\n</parameter>", "")
    found = tagged(arg_converter=fails).parse(output, REQUEST)[2]
    return arguments_of(found), [("f", "<parameter=s>\nx y\n</parameter>")]


@row(
    f"{DELTAS}._try_extract_name",
    "a name inside arguments is sent once a legal continuation follows it",
    differs="A call is sent when its name is complete and a legal continuation follows",
)
def _() -> Any:
    deltas = feed(engine(), '<tool_call>{"name": "f"', ', "arg', finished=False)
    return [d and d.tool_calls and d.tool_calls[0].function.name for d in deltas], [None, "f"]


@row(
    f"{DELTAS}._flush_arg_converter",
    "arguments whose converter raises are returned as they were written",
    differs="If an `arg_converter` raises, the arguments are sent as they were written",
)
def _() -> Any:
    return converting(fails)._flush_arg_converter(0), "raw"


@row(f"{DELTAS}._try_extract_name", "a call whose name has come, and arguments begin, is sent")
def _() -> Any:
    deltas = feed(engine(), '<tool_call>{"name": "f", "arguments": {', finished=False)
    return [d and d.tool_calls and d.tool_calls[0].function.name for d in deltas], ["f"]


# -- the config and its engine ------------------------------------------------------------------------------------


@row("untemplate.vllm_api._config:Transition", "a transition has a next state and events, by default none")
def _() -> Any:
    one = Transition(CONTENT)
    return (one.next_state, one.events), (CONTENT, ())


@row(CONFIG, "a config cannot be changed")
def _() -> Any:
    try:
        hermes().name = "x"  # type: ignore[misc]
    except AttributeError:
        return True, True
    return False, True


@row(f"{STREAMING}.feed", "the engine returns events in order")
def _() -> Any:
    found = StreamingParserEngine(hermes(), TOKENIZER).feed("<think>a</think>b", [])
    return [event.type.name for event in found], ["REASONING_START", "REASONING_CHUNK", "REASONING_END", "TEXT_CHUNK"]


@row(f"{STREAMING}.finish", "the engine's finish returns what it has buffered")
def _() -> Any:
    one = StreamingParserEngine(hermes(), TOKENIZER)
    one.feed("<thi", [])
    return [(event.type, event.value) for event in one.finish()], [(EventType.TEXT_CHUNK, "<thi")]


@row(f"{STREAMING}.reset", "the engine can be reset to a state")
def _() -> Any:
    one = StreamingParserEngine(hermes(), TOKENIZER)
    one.feed("<thi", [])
    one.reset(initial_state=REASONING)
    return [(event.type, event.value) for event in one.feed("a", [])], [(EventType.REASONING_CHUNK, "a")]


@row(f"{STREAMING}.__init__", "the engine takes a config, a tokenizer, and a vocabulary by name")
def _() -> Any:
    one = StreamingParserEngine(hermes(), TOKENIZER, vocab=TOKENIZER.get_vocab())
    return [event.value for event in one.feed("<think>", [START])], [""]


@row(f"{STREAMING}.skip_tool_parsing", "skip_tool_parsing of the engine can be set")
def _() -> Any:
    one = StreamingParserEngine(hermes(), TOKENIZER)
    one.skip_tool_parsing = True
    return [event.type for event in one.parse_complete("<tool_call>")], [EventType.TEXT_CHUNK]


for name in ("find_tool_name", "find_tool_properties"):
    add(
        f"untemplate.vllm_api:{name}",
        f"{name} takes tools and a name",
        lambda name=name: (list(parameters(getattr(vllm_api, name))), ["tools", "name"]),
    )
add(
    "untemplate.vllm_api:find_tool_properties",
    "find_tool_properties returns the properties of the tool with the name",
    lambda: (sorted(vllm_api.find_tool_properties(TOOLS, "f")), ["a", "l", "o", "s"]),
)
add(
    "untemplate.vllm_api:find_tool_properties",
    "find_tool_properties is empty for an unknown tool, and without tools",
    lambda: ([vllm_api.find_tool_properties(tools, "g") for tools in (TOOLS, None)], [{}, {}]),
)
add(
    "untemplate.vllm_api:find_tool_name",
    "find_tool_name is True if a tool has the name",
    lambda: ([vllm_api.find_tool_name(TOOLS, name) for name in "fg"], [True, False]),
)
add(
    "untemplate.vllm_api:make_tool_call_id",
    "make_tool_call_id takes id_type, func_name and idx",
    lambda: (parameters(vllm_api.make_tool_call_id), {"id_type": "random", "func_name": None, "idx": None}),
)
add(
    "untemplate.vllm_api:extract_types_from_schema",
    "extract_types_from_schema lists the types of a schema",
    lambda: (
        [vllm_api.extract_types_from_schema(schema) for schema in ({"type": "integer"}, {"type": ["string", "null"]})],
        [["integer"], ["string", "null"]],
    ),
)
add(
    "untemplate.vllm_api:coerce_to_schema_type",
    "coerce_to_schema_type returns the text itself if no type fits",
    lambda: ((text := "x") is vllm_api.coerce_to_schema_type(text, ["integer"]), True),
)
add(f"{ENGINE}.vocab", "vocab is cached", lambda: (_is_cached("vocab"), True))


def _is_cached(name: str) -> bool:
    return any(isinstance(vars(one).get(name), cached_property) for one in ParserEngine.__mro__)
