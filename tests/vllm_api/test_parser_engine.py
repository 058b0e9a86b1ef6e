"""ParserEngine over hand-written configs: the message, whole and streamed, in every cut; and what may be overridden."""

import itertools
import json
import re
from types import SimpleNamespace

import pytest

from untemplate.messages import DeltaFunctionCall, DeltaMessage, DeltaToolCall, ResponsesRequest
from untemplate.vllm_api import (
    EventType,
    ParserEngine,
    ParserEngineConfig,
    ParserState,
    Transition,
    make_parser_request,
    make_tool_call_id,
)

from .parser_examples import (
    ARGS,
    CONTENT,
    REASONING,
    Tokenizer,
    cuts,
    hermes,
    message,
    qwen_arguments,
    qwen_coder,
    tool,
)

GET = tool(
    "get",
    city={"type": "string"},
    days={"type": "integer"},
    where={"type": "object", "properties": {"lat": {"type": "number"}}},
    unit={"$ref": "#/$defs/unit"},
)
GET["function"]["parameters"]["$defs"] = {"unit": {"type": "boolean"}}
F = tool("f")


def engine(config, tools=None, tokenizer=None, cls=ParserEngine, **settings):
    settings.setdefault("make_id", lambda name, index: f"{name}:{index}")
    return cls(tokenizer or Tokenizer(), tools, parser_engine_config=config, **settings)


def whole(config, raw, tools=None, request=None):
    reasoning, content, calls = engine(config, tools).parse(raw, request)
    assert "" not in (reasoning, content)
    assert calls != []
    return {
        "reasoning": reasoning or "",
        "content": content or "",
        "calls": [(call.id, call.name, call.arguments) for call in calls or ()],
    }


def streamed(config, pieces, tools=None, request=None):
    parser = engine(config, tools)
    deltas = [parser.parse_delta(piece, [], request, finished=False) for piece in pieces]
    deltas.append(parser.parse_delta("", [], request, finished=True))
    return message(deltas)


def check(config, raw, *, tools=None, request=None, reasoning="", content="", calls=(), cut=None):
    """The message, whole and in every cut. ``cut``: the whole output's content, if a stream has sent a cut call."""
    expected = {
        "reasoning": reasoning,
        "content": content,
        "calls": [(f"{name}:{i}", name, arguments) for i, (name, arguments) in enumerate(calls)],
    }
    assert whole(config, raw, tools, request) == (
        expected if cut is None else {**expected, "content": cut, "calls": []}
    )
    for pieces in cuts(raw):
        assert streamed(config, pieces, tools, request) == expected, pieces


# -- an object that holds the name ---------------------------------------------------------------------------------


def test_text():
    check(hermes(), " Hello,\n world \n", content=" Hello,\n world \n")


def test_reasoning_content_and_calls():
    check(
        hermes(),
        '<think>why\n</think>Sure.\n\n<tool_call>\n{"name": "f", "arguments": {"a": "x</tool_call>"}}\n</tool_call>\n'
        '<tool_call>{"name": "g", "arguments": {}}</tool_call>',
        reasoning="why",
        content="Sure.",
        calls=[("f", '{"a": "x</tool_call>"}'), ("g", "{}")],
    )


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ('{"name": "f", "arguments": {"a":  [1,2]} }', '{"a":  [1,2]}'),
        ('{"name": "f", "parameters": {"a": 1}}', '{"a": 1}'),
        ('{"arguments": {"name": "no"}, "name": "f"}', '{"name": "no"}'),
        ('{"name": "f", "arguments": "{\\"a\\": \\"\\u00e9\\"}"}', '{"a": "\\u00e9"}'.replace("\\u00e9", "é")),
        ('{"name": "f"}', "{}"),
        ('{"name": "f", "arguments": null}', "{}"),
        ('{"name": "f", "a": 1, "b": "x"}', '{"a": 1, "b": "x"}'),
    ],
)
def test_what_is_in_the_object(body, arguments):
    check(hermes(), f"<tool_call>{body}</tool_call>", calls=[("f", arguments)])


def test_json_arguments_are_not_coerced():
    raw = '<tool_call>{"name": "get", "arguments": {"days": "3"}}</tool_call>'
    check(hermes(), raw, tools=[GET], calls=[("get", '{"days": "3"}')])


@pytest.mark.parametrize("body", ["oops", '{"nam": "f"}', "[]", "", '{"name": ""}', '{"name": "f" "x"}', "\n"])
def test_what_never_becomes_a_call_is_content(body):
    raw = f"a <tool_call>{body}</tool_call> b"
    check(hermes(), raw, content=raw)


@pytest.mark.parametrize("body", ["", " \n"])
def test_markers_without_a_call_on_a_line_of_their_own_are_dropped(body):
    raw = f"a\n<tool_call>{body}</tool_call>b"
    check(hermes(), raw, content="a\nb")
    parser = engine(hermes())
    assert parser.parse(raw) == (None, "a\nb", None)
    (note,) = parser.diagnostics
    assert (note.code, note.message, note.start, note.end) == (
        "empty_calls",
        "markers of calls without a call were dropped",
        2,
        len(raw) - 1,
    )
    assert note.text == f"<tool_call>{body}</tool_call>"


def test_special_tokens_without_a_call_are_dropped_within_a_line():
    tokenizer = Tokenizer("<tool_call>", "</tool_call>")
    raw = "a <tool_call></tool_call> b"
    ids = [token for _, tokens in tokenizer.pieces(raw) for token in tokens]
    assert engine(hermes(), tokenizer=tokenizer).parse(raw, model_output_token_ids=ids)[1] == "a  b"


def test_one_delta_for_each_call_reaches_a_subclass():
    """A subclass written for vLLM gets what vLLM's method returns: one delta for each call."""
    seen = []

    class Subclass(ParserEngine):
        def _events_to_delta(self, events, finished=False):
            delta = super()._events_to_delta(events, finished)
            seen.append([] if delta is None else delta.tool_calls)
            return delta

    engine(hermes(), cls=Subclass).parse('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>')
    function = DeltaFunctionCall(name="f", arguments='{"a": 1}')
    assert seen == [[DeltaToolCall(index=0, id="f:0", type="function", function=function)]]


def test_a_call_that_is_cut():
    raw = '<tool_call>{"name": "f", "arguments": {"a": [1, 2'
    check(hermes(), raw, calls=[("f", '{"a": [1, 2')], cut=raw)
    check(hermes(), 'a <tool_call>{"name": "f', content='a <tool_call>{"name": "f')


def test_broken_json_goes_on_as_it_is():
    check(hermes(), '<tool_call>{"name": "f", "arguments": {"a"]}}</tool_call>!', content="!", calls=[("f", '{"a"]}}')])


def test_the_next_call_is_not_spoiled():
    raw = '<tool_call>{]</tool_call><tool_call>{"name": "f", "arguments": {}}</tool_call>'
    check(hermes(), raw, content="<tool_call>{]</tool_call>", calls=[("f", "{}")])


def test_statuses():
    raw = (
        '<tool_call>{"name": "a", "arguments": {}}</tool_call><tool_call>{"name": "b", "arguments": {x}}</tool_call>'
        '<tool_call>{"name": "c", "arguments": {'
    )
    found = engine(hermes()).extract_tool_calls(raw, None)
    assert [(call.function.name, call.status) for call in found.tool_calls] == [("a", "ok"), ("b", "invalid_json")]
    assert found.content == '<tool_call>{"name": "c", "arguments": {'


def test_text_behind_the_arguments_is_reported():
    parser = engine(hermes())
    parser.parse('<tool_call>{"name": "f", "arguments": {}} ```</tool_call>')
    assert [(note.code, note.text) for note in parser.diagnostics] == [("stray_text", "```")]


# -- a name of its own ---------------------------------------------------------------------------------------------


def named_json(**changes):
    """``[f]{…}[/f]`` without a converter."""
    return ParserEngineConfig(
        "named",
        terminals={"OPEN": "[call:", "MID": "]", "END": "[end]"},
        transitions={
            (CONTENT, "OPEN"): Transition(ParserState.TOOL_NAME, (EventType.TOOL_CALL_START,)),
            (ParserState.TOOL_NAME, "MID"): Transition(ARGS),
            (ARGS, "END"): Transition(CONTENT, (EventType.TOOL_CALL_END,)),
        },
        **changes,
    )


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ('[call: f ]\n{"a": "[end]"}\n[end]', '{"a": "[end]"}'),
        ("[call:f][end]", "{}"),
        ("[call:f] \n [end]", "{}"),
        ('[call:f]"{}"[end]', "{}"),
        ("[call:f] not json [end]", "not json"),
    ],
)
def test_named_json(raw, arguments):
    check(named_json(), raw, calls=[("f", arguments)])


def test_named_json_that_is_cut():
    check(named_json(), '[call:f]{"a": 1', calls=[("f", '{"a": 1')], cut='[call:f]{"a": 1')
    check(named_json(), '[call:f]{"a": 1}', calls=[("f", '{"a": 1}')])


def test_plain_arguments():
    check(named_json(tool_args_json=False), '[call:f] {"a [end]', calls=[("f", '{"a')])


@pytest.mark.parametrize("raw", ["x [call:f", "x [call:f]", "x [call:f] \n", "x [call:][end]"])
def test_no_call_without_name_and_arguments(raw):
    check(named_json(), raw, content=raw)


# -- a converter ---------------------------------------------------------------------------------------------------

CODER = """<think>t</think>ok
<tool_call>
<function=get>
<parameter=city>
San
 Fran </para> "x"
</parameter>
<parameter=days>
12
</parameter>
<parameter=where>
{"lat": "1.5"}
</parameter>
<parameter=unit>
true
</parameter>
<parameter=more>
7
</parameter>
</function>
</tool_call>
<function=f>
</function>
after"""


def test_converted_arguments():
    check(
        qwen_coder(),
        CODER,
        tools=[GET, F],
        reasoning="t",
        content="ok",
        calls=[
            (
                "get",
                '{"city": "San\\n Fran </para> \\"x\\"", "days": 12, "where": {"lat": "1.5"}, "unit": true, '
                '"more": "7"}',
            ),
            ("f", "{}"),
        ],
    )


def test_converted_arguments_without_a_schema_are_strings():
    raw = "<function=get><parameter=days>12</parameter></function>"
    check(qwen_coder(), raw, calls=[("get", '{"days": "12"}')])


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ("<function=get><parameter=city>San F", '{"city": "San F'),
        ("<function=get><parameter=days>1", '{"days": '),
        ("<function=get><parameter=days>1</parameter><parameter=city>A</parameter>", '{"days": 1, "city": "A'),
        ("<function=get><parameter=", ""),
    ],
)
def test_converted_arguments_that_are_cut(raw, arguments):
    check(qwen_coder(), raw, tools=[GET], calls=[("get", arguments)], cut=raw)


def test_strings_stream_as_they_come():
    parser = engine(qwen_coder(), [GET])
    parser.parse_delta("<function=get><parameter=city>Sa", [], finished=False)
    delta = parser.parse_delta("n", [], finished=False)
    assert delta == DeltaMessage(tool_calls=[DeltaToolCall(index=0, function=DeltaFunctionCall(arguments="n"))])


@pytest.mark.parametrize(
    "settings", [{"stream_arg_deltas": False}, {"arg_structural_chars": frozenset("<>")}, {"tool_args_json": True}]
)
def test_settings_do_not_change_the_message(settings):
    expected = streamed(qwen_coder(), [CODER], [GET, F])
    for pieces in cuts(CODER):
        assert streamed(qwen_coder(**settings), pieces, [GET, F]) == expected


def test_arguments_in_one_piece():
    parser = engine(qwen_coder(stream_arg_deltas=False), [GET])
    raw = "<function=get><parameter=city>A</parameter></function>"
    deltas = [parser.parse_delta(c, [], finished=False) for c in raw]
    arguments = [d.tool_calls[0].function.arguments for d in deltas if d is not None]
    assert arguments == [None, '{"city": "A"}']


def test_a_converter_that_raises():
    def converter(raw, partial):
        if partial:
            raise KeyError("partial")
        return json.dumps(json.loads(raw))

    config = named_json(arg_converter=converter)
    check(config, '[call:f]{"a":1}[end]', calls=[("f", '{"a": 1}')])
    check(config, "[call:f]{'a':1}[end]", calls=[("f", "{'a':1}")])
    parser = engine(config)
    parser.parse("[call:f]{'a'}[end]")
    assert [note.code for note in parser.diagnostics] == ["converter_failed"]
    assert parser.diagnostics[0].message.startswith("the arg_converter raised on these arguments: JSONDecodeError: ")


def test_a_converter_for_an_object_that_holds_the_name():
    def converter(raw, partial):
        inside = raw.partition('"arguments":')[2].strip()
        return inside if partial else inside.removesuffix("}").strip()

    raw = '<tool_call>{"name": "get", "arguments": {"city": "A", "days": "3", "where": {"lat": 1}}}</tool_call>'
    arguments = '{"city": "A", "days": 3, "where": {"lat": 1}}'
    check(hermes(arg_converter=converter), raw, tools=[GET], calls=[("get", arguments)])


def test_a_converter_that_takes_back_what_it_said():
    """The same argument twice: the first one has been emitted, and stays."""
    raw = "<function=get><parameter=city>A</parameter><parameter=city>B</parameter></function>"
    check(qwen_coder(), raw, calls=[("get", '{"city": "A')])
    parser = engine(qwen_coder())
    parser.parse(raw)
    assert [note.code for note in parser.diagnostics] == ["converter_retracted"]


def test_random_coder_outputs():
    values = ["", "\n", "a\n\nb", '"', "\\", "{}", "<", "</", "</function", "é😀", "null", "1", "<parameter"]
    for first, second in itertools.product(values, values):
        raw = (
            f"<tool_call>\n<function=get>\n<parameter=city>\n{first}\n</parameter>\n<parameter=x>\n{second}\n"
            "</parameter>\n</function>\n</tool_call>"
        )
        arguments = json.dumps({"city": first, "x": second}, ensure_ascii=False)
        expected = {"reasoning": "", "content": "", "calls": [("get:0", "get", arguments)]}
        assert whole(qwen_coder(), raw, [GET]) == expected
        for pieces in (list(raw), [raw[i : i + 3] for i in range(0, len(raw), 3)]):
            assert streamed(qwen_coder(), pieces, [GET]) == expected


# -- white space ---------------------------------------------------------------------------------------------------

KEEP = {"strip_content_whitespace_with_tools": False}
KEEP_ALL = {**KEEP, "drop_whitespace_only_content_before_tools": False, "strip_trailing_reasoning_whitespace": False}
CALL = '<tool_call>{"name": "f"}</tool_call>'


@pytest.mark.parametrize(
    ("settings", "raw", "reasoning", "content"),
    [
        ({}, f"a \n{CALL}\n", "", "a"),
        (KEEP, f"a \n{CALL}\n", "", "a \n\n"),
        ({}, f"\n{CALL}\n", "", ""),
        (KEEP, f"\n{CALL}\n", "", ""),
        (KEEP_ALL, f"\n{CALL}\n", "", "\n\n"),
        ({}, f"a\n{CALL}\n b ", "", "a\n b "),
        ({}, f"{CALL}\n b ", "", "b "),
        (KEEP, f"{CALL}\n b ", "", "\n b "),
        ({}, f"a {CALL} \n {CALL} b", "", "a b"),
        ({}, " \n", "", " \n"),
        ({}, " \n<think>a</think> b", "a", " \n b"),
        ({}, "<think>\n a \n</think>\nb\n", "\n a", "\nb\n"),
        (KEEP_ALL, "<think>\n a \n</think>\nb\n", "\n a \n", "\nb\n"),
        ({}, "<think>a \n<think> b \n</think><think> c", "a \n b c", ""),
        ({}, f"<think>a \n{CALL}", "a", ""),
        ({}, "<think>a \n", "a \n", ""),
    ],
)
def test_white_space(settings, raw, reasoning, content):
    calls = [("f", "{}")] * raw.count(CALL)
    check(hermes(**settings), raw, reasoning=reasoning, content=content, calls=calls)


# -- tools and requests --------------------------------------------------------------------------------------------


def test_no_calls_where_none_are_wanted():
    raw = f"a {CALL} b"
    for request in (
        make_parser_request("m", [], None),
        make_parser_request("m", [], [F], "none"),
        {"tools": []},
        SimpleNamespace(tools=[F], tool_choice="none"),
        ResponsesRequest(tools=[]),
    ):
        check(hermes(), raw, request=request, content=raw)
    check(hermes(), raw, request=make_parser_request("m", [], [F]), content="a b", calls=[("f", "{}")])


STRAY_CLOSES = {
    **hermes().transitions,
    (ParserState.CONTENT, "TOOL_END"): Transition(ParserState.CONTENT),
    (ParserState.REASONING, "TOOL_END"): Transition(ParserState.REASONING),
}


@pytest.mark.parametrize("raw", [f"Hi.{CALL}", f"{CALL} and {CALL}", "Hi.</tool_call>"])
@pytest.mark.parametrize("request_", [{"tool_choice": "none"}, {"tools": []}, {"tools": [F], "tool_choice": "none"}])
@pytest.mark.parametrize("skips", [True, False])
def test_a_close_that_content_drops_is_text_where_calls_are(raw: str, request_: dict[str, object], skips: bool):
    """A config may drop a close that has nothing to close. Without calls every close has its opener, which is text."""
    config = hermes(transitions=STRAY_CLOSES)
    check(config, raw, request=request_, content=raw)
    for parser in (engine(config), engine(config, [F])):
        parser.skip_tool_parsing = skips
        assert parser.parse(raw, request_) == (None, raw, None)
        assert parser.extract_reasoning(raw, request_) == (None, raw)
        assert parser.extract_reasoning(f"<think>a</think>{raw}", request_) == ("a", raw)
        half = engine(config)
        half.skip_tool_parsing = True
        pieces = [half.extract_reasoning_streaming("", "", c, [], [], []) for c in raw]
        assert "".join(p.content or "" for p in pieces if p is not None) == raw
    assert engine(config).parse("Hi.</tool_call>", {"tools": [F]})[1] == "Hi."


def test_a_request_does_not_bind_the_next_one():
    parser = engine(hermes())
    assert parser.parse(CALL, {"tool_choice": "none"})[1] == CALL
    assert parser.skip_tool_parsing
    assert parser.parse(CALL, None)[1] is None
    parser.skip_tool_parsing = True
    assert parser.parse(CALL, None)[1] == CALL


def test_unknown_tools_are_dropped_if_the_config_says_so():
    raw = f'{CALL}<tool_call>{{"name": "g", "arguments": {{}}}}</tool_call>'
    check(hermes(validate_tool_names=True), raw, tools=[tool("g")], calls=[("g", "{}")])
    check(hermes(validate_tool_names=True), raw, calls=[("f", "{}"), ("g", "{}")])
    parser = engine(hermes(validate_tool_names=True), [tool("g")])
    parser.parse("a" + CALL)
    assert [(note.code, note.start, note.text) for note in parser.diagnostics] == [("unknown_tool", 1, CALL)]


def test_a_tool_without_a_name():
    with pytest.raises(ValueError, match=r"^tools\[1\].function.name: is required$"):
        engine(hermes(), [F, {"type": "function", "function": {}}])
    with pytest.raises(ValueError, match=r"^tools\[0\].function.name: is required$"):
        engine(hermes()).parse("", {"tools": [{"type": "function", "function": {}}]})


def test_ids():
    history = [{"role": "assistant", "tool_calls": [{}, {}]}, {"role": "user"}]
    request = make_parser_request("m", history, [F])
    parser = engine(hermes(), make_id=None, tool_call_id_type="kimi_k2")
    for _ in range(2):
        assert [call.id for call in parser.parse(CALL * 2, request)[2]] == ["functions.f:2", "functions.f:3"]
    parser = engine(hermes(), make_id=None)
    first, second = parser.parse(CALL * 2, request)[2]
    assert first.id != second.id
    assert first.id.startswith("call_")


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        ((), r"call_[0-9a-f]{24}"),
        (("random",), r"call_[0-9a-f]{24}"),
        (("alphanumeric9",), r"[A-Za-z0-9]{9}"),
        (("kimi_k2", "f", 3), r"functions\.f:3"),
        (("call-{name}-{index}", "f"), r"call-f-0"),
    ],
)
def test_make_tool_call_id(arguments, pattern):
    assert re.fullmatch(pattern, make_tool_call_id(*arguments))


def test_an_id_type_that_does_not_exist():
    error = "id_type: 'uuid' is not one of: 'random', 'alphanumeric9', 'kimi_k2', or a pattern with {name} or {index}"
    with pytest.raises(ValueError, match=f"^{re.escape(error)}$"):
        make_tool_call_id("uuid")


def test_make_parser_request():
    request = make_parser_request("m", [{"role": "user"}], [F], "required")
    assert (request.model, request.messages, request.tools, request.tool_choice) == (
        "m",
        [{"role": "user"}],
        [F],
        "required",
    )
    assert make_parser_request("m", []).tool_choice == "none"


# -- the halves ----------------------------------------------------------------------------------------------------

BOTH = f"<think>why </think>Sure.{CALL}"


def test_extract_reasoning_leaves_calls_alone():
    parser = engine(hermes())
    assert parser.extract_reasoning(BOTH, None) == ("why", f"Sure.{CALL}")
    assert parser.extract_reasoning(f"<think>why {CALL}", None) == ("why", CALL)
    assert not parser.skip_tool_parsing


def test_extract_reasoning_streaming_leaves_calls_alone():
    for pieces in cuts(BOTH):
        parser = engine(hermes())
        deltas = [parser.extract_reasoning_streaming("", "", piece, [], [], []) for piece in pieces]
        found = message([*deltas, parser.finish_streaming()])
        assert found == {"reasoning": "why", "content": f"Sure.{CALL}", "calls": []}


def test_extract_tool_calls():
    found = engine(hermes()).extract_tool_calls(BOTH, None)
    assert found.tools_called
    assert [(c.id, c.function.name, c.function.arguments) for c in found.tool_calls] == [("f:0", "f", "{}")]
    assert found.content == "Sure."


def test_extract_tool_calls_streaming():
    for pieces in cuts(BOTH):
        parser = engine(hermes())
        deltas = [parser.extract_tool_calls_streaming("", "", piece, [], [], [], None) for piece in pieces]
        found = message([*deltas, parser.finish_streaming()])
        assert found == {"reasoning": "why", "content": "Sure.", "calls": [("f:0", "f", "{}")]}


def test_extract_tool_calls_from_content():
    parser = engine(hermes(initial_state=REASONING))
    assert parser.extract_tool_calls(f"a{CALL}", None).content is None
    assert parser.extract_tool_calls_from_content(f"a{CALL}", None).content == "a"


def test_whole_and_streamed_on_one_parser():
    parser = engine(hermes())
    assert parser.parse("a")[1] == "a"
    assert parser.parse_delta("b", [], finished=False) == DeltaMessage(content="b")
    assert parser.parse_delta("c", [], finished=True) == DeltaMessage(content="c")
    with pytest.raises(RuntimeError, match=r"^feed\(\) after finish\(\)"):
        parser.parse_delta("", [], finished=False)
    assert parser.parse("d")[1] == "d"


def test_reasoning_ended():
    parser = engine(hermes())
    parser.parse_delta("<think>a", [], finished=False)
    assert not parser.reasoning_ended
    parser.parse_delta("</think>", [], finished=False)
    assert parser.reasoning_ended


def test_reasoning_markers():
    parser = engine(hermes())
    assert (parser.reasoning_start_str, parser.reasoning_end_str) == ("<think>", "</think>")
    parser = engine(named_json())
    assert (parser.reasoning_start_str, parser.reasoning_end_str) == (None, None)


# -- subclasses ----------------------------------------------------------------------------------------------------


def test_a_subclass_has_its_config():
    class Coder(ParserEngine):
        def __init__(self, tokenizer, tools=None, **kwargs):
            super().__init__(tokenizer, tools, parser_engine_config=qwen_coder(), **kwargs)

    parser = Coder(Tokenizer(), [GET], chat_template_kwargs={"enable_thinking": True})
    assert parser.parse("<function=f></function>")[2][0].name == "f"
    assert parser.vocab["a"] == 97


def test_overrides():
    class Mine(ParserEngine):
        def _preprocess_feed(self, delta_text, delta_token_ids):
            return delta_text.replace("⟪", "<").replace("⟫", ">"), delta_token_ids

        def _events_to_delta(self, events, finished=False):
            delta = super()._events_to_delta(events, finished)
            if delta is not None and delta.reasoning is not None:
                self.seen.append(delta.reasoning)
                delta.reasoning = delta.reasoning.upper()
            return delta

        def _is_valid_tool_name(self, name):
            return name != "g"

    for pieces in cuts("⟪think⟫a \n⟪/think⟫b" + CALL + CALL.replace('"f"', '"g"')):
        parser = engine(hermes(), cls=Mine)
        parser.seen = []
        deltas = [parser.parse_delta(piece, [], finished=False) for piece in pieces]
        found = message([*deltas, parser.parse_delta("", [], finished=True)])
        assert found == {"reasoning": "A", "content": "b", "calls": [("f:0", "f", "{}")]}
        # An override sees the white space that is removed afterwards.
        assert "".join(parser.seen) == "a \n"


def test_the_prompt_hook():
    class Mine(ParserEngine):
        def adjust_initial_state_from_prompt(self, prompt_token_ids):
            self.initialize_streaming(REASONING if prompt_token_ids[-1] == 7 else None)

    assert engine(hermes(), cls=Mine).parse_delta("a", [], None, [7], finished=True) == DeltaMessage(reasoning="a")
    assert engine(hermes(), cls=Mine).parse_delta("a", [], None, [8], finished=True) == DeltaMessage(content="a")


# -- helpers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "keys", "prefix"),
    [
        ("", None, ""),
        ("{}", None, ""),
        ('{"a', None, ""),
        ('{"a": 12}', None, '{"a": '),
        ('{"a": "xy"}', None, '{"a": "xy'),
        ('{"a": "x\\"', None, '{"a": "x\\"'),
        ('{"a": "x\\\\"}', None, '{"a": "x\\\\'),
        ('{"a": "x"}', {"b"}, '{"a": '),
        ('{"a": "x"}', {"a"}, '{"a": "x'),
        ('{"a": {"b": "c"}, "d": "e"}', None, '{"a": {"b": "c"}, "d": "e'),
        ('{"a": {"b": "c"', None, '{"a": '),
        ('{"a": "', None, '{"a": "'),
        ('{"a":', None, '{"a":'),
    ],
)
def test_safe_arg_prefix(text, keys, prefix):
    assert ParserEngine._safe_arg_prefix(text, keys) == prefix


def test_streamable_string_keys():
    assert ParserEngine._streamable_string_keys({}) is None
    properties = {"a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {"type": "integer"}, "d": {}}
    assert ParserEngine._streamable_string_keys(properties) == {"a", "d"}


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("5", {"type": "integer"}, 5),
        ("x", {"type": "integer"}, "x"),
        ("5", {"enum": ["5", 5]}, "5"),
        ({"a": "5", "b": "5"}, {"properties": {"a": {"type": "integer"}}}, {"a": 5, "b": "5"}),
        (["1", "x"], {"items": {"type": "number"}}, [1, "x"]),
        (5, {"type": "string"}, "5"),
        (True, {"type": "integer"}, True),
        (None, {"type": "string"}, None),
        ({"a": "5"}, {"$ref": "#/$defs/p", "$defs": {"p": {"properties": {"a": {"type": "integer"}}}}}, {"a": 5}),
    ],
)
def test_coerce_value(value, schema, expected):
    before = json.dumps(value)
    found, changed = ParserEngine._coerce_value(value, schema)
    assert (found, type(found)) == (expected, type(expected))
    assert changed == (json.dumps(found) != before)


def test_coerce_dict():
    arguments = {"a": "1", "b": "2"}
    assert ParserEngine._coerce_dict(arguments, {"a": {"type": "integer"}}) == ({"a": 1, "b": "2"}, True)
    assert arguments == {"a": 1, "b": "2"}


def test_fix_arg_types():
    parser = engine(qwen_coder(), [GET])
    assert parser._fix_arg_types('{"days":"3" ,  "city":"7"}', "get") == '{"days":3 ,  "city":"7"}'
    assert parser._fix_arg_types('{"days": "3"}', "other") == '{"days": "3"}'
    assert parser._fix_arg_types('{"days": "3', "get") == '{"days": "3'
    assert parser._fix_arg_types("nonsense", "get") == "nonsense"


def test_coalesce_tool_call_deltas():
    deltas = [
        DeltaToolCall(index=1, id="b", type="function", function=DeltaFunctionCall(name="g")),
        DeltaToolCall(index=1, function=DeltaFunctionCall(arguments="{")),
        DeltaToolCall(index=0, function=DeltaFunctionCall(arguments="1")),
        DeltaToolCall(index=1, function=DeltaFunctionCall(arguments="}")),
    ]
    assert ParserEngine._coalesce_tool_call_deltas(deltas) == [
        DeltaToolCall(index=1, id="b", type="function", function=DeltaFunctionCall(name="g", arguments="{}")),
        DeltaToolCall(index=0, function=DeltaFunctionCall(arguments="1")),
    ]


def test_the_converter_of_these_tests():
    assert qwen_arguments("<parameter=a>\n1\n</parameter><parameter=b>2", False) == '{"a": "1", "b": "2"}'


def test_arguments_in_an_object_with_the_name():
    parser = engine(hermes())
    assert parser._extract_args_json("", "f") == parser._extract_args_json(" \n", "f") == "{}"
    assert parser._extract_args_json('{"name": "f", "arguments": {"a": 1}}', "f") == '{"a": 1}'
    assert parser._extract_args_json("oops", "f") == "oops"
    # Arguments that look like that stay as they are.
    raw = '<tool_call>{"name": "f", "arguments": {"name": "x", "arguments": {}}}</tool_call>'
    check(hermes(), raw, calls=[("f", '{"name": "x", "arguments": {}}')])


def test_deltas_are_merged_into_the_first_of_each_call():
    def delta(index, arguments):
        return DeltaToolCall(index=index, function=DeltaFunctionCall(arguments=arguments))

    several = [delta(0, "a"), delta(1, "b")]
    assert ParserEngine._coalesce_tool_call_deltas(several) is several
    first, second = delta(0, "a"), delta(1, "b")
    merged = ParserEngine._coalesce_tool_call_deltas([first, second, delta(0, "c")])
    assert merged[0] is first
    assert merged[1] is second
    assert merged == [delta(0, "ac"), delta(1, "b")]


def test_reasoning_that_waits_is_a_text():
    parser = engine(hermes())
    assert parser._deferred_reasoning == ""
    assert parser.parse_delta("<think>a \n", [], finished=False) == DeltaMessage(reasoning="a")
    assert parser._deferred_reasoning == " \n"
    parser._deferred_reasoning = "  "
    assert parser.parse_delta("b", [], finished=False) == DeltaMessage(reasoning="  b")
