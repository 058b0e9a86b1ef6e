"""The catalogue through vLLM's parser interfaces: reasoning and tool parsers, ids, prompts, one pass."""

import pytest

from untemplate import OutputParser
from untemplate.formats import named
from untemplate.vllm_api import (
    FormatParser,
    FormatReasoningParser,
    ParserEngine,
    ParserManager,
    ParserState,
    ReasoningParserManager,
    ToolParserManager,
    make_parser_request,
)

from .parser_examples import Tokenizer, cuts, hermes, message, qwen_coder, tool

TOKENIZER = Tokenizer("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
TURN = "<|im_start|>assistant\n"
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
RAW = f"<think>\nwhy\n</think>\n\nSure.\n{CALL}"
ids = TOKENIZER.ids


def reasoning(name="qwen3", tokenizer=TOKENIZER):
    return ReasoningParserManager.get_reasoning_parser(name)(tokenizer)


def tools(name="hermes", tokenizer=TOKENIZER):
    return ToolParserManager.get_tool_parser(name)(tokenizer)


def parser(name="hermes", think="qwen3", tokenizer=TOKENIZER):
    return ParserManager.get_parser(name, think)(tokenizer)


# -- halves --------------------------------------------------------------------------------------------------------


def test_reasoning_leaves_calls_alone():
    assert reasoning().extract_reasoning(RAW, None) == ("why", f"Sure.\n{CALL}")
    assert (reasoning().reasoning_start_str, reasoning().reasoning_end_str) == ("<think>", "</think>")


def test_tools_leave_reasoning_alone():
    found = tools().extract_tool_calls(RAW, None)
    assert found.content == "<think>\nwhy\n</think>\n\nSure."
    assert [(c.function.name, c.function.arguments, c.status) for c in found.tool_calls] == [("f", '{"a": 1}', "ok")]


def test_one_after_the_other():
    _, content = reasoning().extract_reasoning(RAW, None)
    found = tools().extract_tool_calls(content, make_parser_request("m", [], [tool("f")]))
    assert (found.tools_called, found.content) == (True, "Sure.")
    assert tools().extract_tool_calls(content, make_parser_request("m", [])).content == content


def test_halves_as_streams():
    for pieces in cuts(RAW):
        half, previous, deltas = reasoning(), "", []
        for piece in pieces:
            deltas.append(half.extract_reasoning_streaming(previous, previous + piece, piece, [], [], []))
            previous += piece
        found = message([*deltas, half.finish_streaming()])
        assert found == {"reasoning": "why", "content": f"Sure.\n{CALL}", "calls": []}
        half, previous, deltas = tools(), "", []
        for piece in pieces:
            deltas.append(half.extract_tool_calls_streaming(previous, previous + piece, piece, [], [], [], None))
            previous += piece
        found = message([*deltas, half.finish_streaming()])
        assert found["content"] == "<think>\nwhy\n</think>\n\nSure."
        assert [call[1:] for call in found["calls"]] == [("f", '{"a": 1}')]


def test_nothing_before_begins_anew():
    half = tools()
    for _ in range(2):
        delta = half.extract_tool_calls_streaming("", "ab", "ab", [], [97, 98], [97, 98], None)
        assert delta.content == "ab"
    assert half.extract_tool_calls_streaming("ab", "abc", "c", [97, 98], [97, 98, 99], [99], None).content == "c"


def test_nothing_to_finish():
    assert reasoning().finish_streaming() is None
    assert tools().finish_streaming() is None


# -- both ----------------------------------------------------------------------------------------------------------


def test_both_in_every_cut():
    expected = {"reasoning": "why", "content": "Sure.", "calls": [("f", '{"a": 1}')]}
    for pieces in cuts(RAW):
        both = parser()
        deltas = [both.parse_delta(piece, [], finished=False) for piece in pieces]
        found = message([*deltas, both.parse_delta("", [], finished=True)])
        found["calls"] = [call[1:] for call in found["calls"]]
        assert found == expected
    think, content, calls = parser().parse(RAW)
    assert (think, content, calls[0].name, calls[0].arguments) == ("why", "Sure.", "f", '{"a": 1}')


def test_ids_tell_markers_from_text():
    spelled = [(c, [ord(c)]) for c in "say <tool_call>\n"]
    pieces = spelled + TOKENIZER.pieces(CALL)
    for size in (1, 4, 100):
        both = parser()
        deltas = []
        for at in range(0, len(pieces), size):
            some = pieces[at : at + size]
            text, tokens = "".join(t for t, _ in some), [token for _, found in some for token in found]
            deltas.append(both.parse_delta(text, tokens, finished=False))
        found = message([*deltas, both.parse_delta("", [], finished=True)])
        assert found["content"] == "say <tool_call>"
        assert len(found["calls"]) == 1


def test_the_prompt_says_where_it_begins():
    opened = parser().parse_delta(
        "why</think>a", [], None, ids(f"<|im_start|>user\nx<|im_end|>\n{TURN}<think>\n"), finished=True
    )
    assert (opened.reasoning, opened.content) == ("why", "a")
    closed = parser(think="deepseek_r1").parse_delta(
        "a", [], None, ids(f"{TURN}<think>\n\n</think>\n\n"), finished=True
    )
    assert (closed.reasoning, closed.content) == (None, "a")
    quoted = parser().parse_delta("a", [], None, ids(f"<|im_start|>user\n<think><|im_end|>\n{TURN}"), finished=True)
    assert (quoted.reasoning, quoted.content) == (None, "a")


def test_calls_that_none_wants():
    assert parser().parse(RAW, make_parser_request("m", []))[1:] == (f"Sure.\n{CALL}", None)


def test_one_output_each():
    both = parser()
    both.parse_delta("a", [], finished=True)
    with pytest.raises(RuntimeError, match=r"^parse_delta\(\) after finished=True"):
        both.parse_delta("a", [], finished=False)


def test_a_format_of_ones_own():
    fmt = named("hermes", reasoning="qwen3").extend(tools__0__call_open=None, name="bare")
    assert FormatParser(TOKENIZER, format=fmt).parse("<think>a</think>b") == ("a", "b", None)

    class Mine(FormatParser):
        format = fmt

    assert Mine(TOKENIZER).reasoning_parser.reasoning_end_str == "</think>"
    with pytest.raises(TypeError, match=r"^FormatParser has no Format: give one as format=$"):
        FormatParser(TOKENIZER)


@pytest.mark.parametrize("name", ["gpt-oss", "kimi_k2", "glm45", "mistral", "deepseek_v31"])
def test_the_same_as_the_front_door(name):
    """Whatever OutputParser renders it parses; so does a parser by name."""
    front = OutputParser.named(name)
    sent = {
        "role": "assistant",
        "content": "Sure.",
        "reasoning": "why",
        "tool_calls": [{"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
    }
    if front.expressible(sent):
        sent["content"] = None
    raw = front.render(sent)
    expected = front.parse(raw)
    think, content, calls = ParserManager.get_parser(name)(Tokenizer()).parse(raw)
    assert (think, content) == (expected.reasoning_content, expected.content)
    assert [(c.name, c.arguments) for c in calls] == [
        (c.function.name, c.function.arguments) for c in expected.tool_calls
    ]


# -- turns that are messages ---------------------------------------------------------------------------------------

HARMONY = (
    "<|channel|>analysis<|message|>why<|end|><|start|>assistant<|channel|>commentary<|message|>Sure.<|end|>"
    '<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>'
)
HARMONY_TOKENIZER = Tokenizer("<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|constrain|>", "<|call|>")


def test_channels_in_halves():
    half = reasoning("gpt-oss", HARMONY_TOKENIZER)
    think, content = half.extract_reasoning(HARMONY, None)
    assert think == "why"
    assert content == f"Sure.{HARMONY[HARMONY.rindex('<|start|>') :]}"
    found = tools("gpt-oss", HARMONY_TOKENIZER).extract_tool_calls(content, None)
    assert (found.content, found.tool_calls[0].function.arguments) == ("Sure.", '{"a": 1}')
    assert half.extract_reasoning(HARMONY.rpartition("<|start|>")[0], None) == ("why", "Sure.")


def test_channels_and_ids():
    half = reasoning("gpt-oss", HARMONY_TOKENIZER)
    thinking = HARMONY.partition("<|end|>")[0]
    assert not half.is_reasoning_end([])
    assert not half.is_reasoning_end(HARMONY_TOKENIZER.ids(thinking))
    assert half.is_reasoning_end(HARMONY_TOKENIZER.ids(HARMONY))
    assert half.count_reasoning_tokens(HARMONY_TOKENIZER.ids(HARMONY)) == len("why")


# -- where reasoning ends, in ids ----------------------------------------------------------------------------------

THINK_ENDS = [
    # (ids, whether reasoning is over, content, reasoning tokens), for a turn that begins outside reasoning
    ("ab", False, "ab", 0),
    ("<think>ab", False, "", 2),
    ("<think>ab</think>cd", True, "cd", 2),
    ("<think>a<think>b</think>c", True, "c", 3),
    ("<think>a</think>b</think>c", True, "b</think>c", 1),
    ("<think>a</think>b<think>c", False, "b<think>c", 2),
]
OPEN_ENDS = [
    ("", False, "", 0),
    ("ab", False, "", 2),
    ("ab</think>cd", True, "cd", 2),
    ("a<think>b</think>c", True, "c", 3),
]


def engine(initial):
    return ParserEngine(TOKENIZER, parser_engine_config=hermes(initial_state=initial))


@pytest.mark.parametrize("make", [reasoning, lambda: parser(), lambda: engine(ParserState.CONTENT)])
@pytest.mark.parametrize(("text", "over", "content", "count"), THINK_ENDS)
def test_closed_at_the_start(make, text, over, content, count):
    half = make()
    assert half.is_reasoning_end(ids(text)) is over
    # An engine returns what follows the last end, as vLLM's does, and all ids without one.
    expected = text.rpartition("</think>")[2] if isinstance(half, ParserEngine) else content
    assert half.extract_content_ids(ids(text)) == ids(expected)
    assert half.count_reasoning_tokens(ids(text)) == count - dropped(half, text)


def dropped(half, text):
    """Return how many opening markers inside reasoning are not text: this config has a transition for them."""
    return int(isinstance(half, ParserEngine) and "a<think>b</think>" in text)


@pytest.mark.parametrize("make", [lambda: reasoning("deepseek_r1"), lambda: engine(ParserState.REASONING)])
@pytest.mark.parametrize(("text", "over", "content", "count"), OPEN_ENDS)
def test_open_at_the_start(make, text, over, content, count):
    half = make()
    assert half.is_reasoning_end(ids(text)) is over
    # An engine returns what follows the last end, as vLLM's does, and all ids without one.
    expected = text.rpartition("</think>")[2] if isinstance(half, ParserEngine) else content
    assert half.extract_content_ids(ids(text)) == ids(expected)
    assert half.count_reasoning_tokens(ids(text)) == count - dropped(half, text)


@pytest.mark.parametrize("space", ["", "\n"])
def test_an_opening_marker_that_repeats_the_prompts_is_no_token(space):
    half = reasoning("deepseek_r1")
    text = f"{space}<think>ab</think>c"
    assert half.extract_reasoning(text, None) == ("ab", "c")
    assert half.count_reasoning_tokens(ids(text)) == 2


def test_nothing_has_not_ended_reasoning():
    assert not reasoning().is_reasoning_end([])
    assert not parser().is_reasoning_end([])
    # A config's initial state decides, as in vLLM.
    assert engine(ParserState.CONTENT).is_reasoning_end([])
    assert not engine(ParserState.REASONING).is_reasoning_end([])


def test_a_prompt_opens_it():
    half = reasoning()
    half.adjust_initial_state_from_prompt(ids(f"{TURN}<think>\n"))
    assert half.count_reasoning_tokens(ids("ab</think>c")) == 2
    assert not half.is_reasoning_end(ids("ab"))
    assert half.extract_reasoning("ab</think>c", None) == ("ab", "c")
    both = parser()
    both.set_prompt_token_ids(ids(f"{TURN}<think>\n"))
    assert both.parse("ab</think>c") == ("ab", "c", None)
    half = engine(ParserState.CONTENT)
    half.adjust_initial_state_from_prompt(ids("hi<think>\n"))
    assert half.count_reasoning_tokens(ids("ab</think>c")) == 2


@pytest.mark.parametrize(
    ("last", "over"),
    [("", False), ("<think>\n", False), ("<think>\n\n</think>\n\n", True), ("<think>a</think>b<think>", False)],
)
def test_earlier_turns_do_not_count(last, over):
    user = "<|im_start|>user\n<think></think><|im_end|>\n"
    history = f"{user}{TURN}<think>a</think>b<|im_end|>\n{user}"
    assert reasoning().is_reasoning_end(ids(history + TURN + last)) is over


def test_a_turn_start_that_somebody_spelled():
    spelled = [ord(c) for c in TURN]
    assert reasoning().is_reasoning_end(ids(f"{TURN}<think>") + spelled) is False


def test_a_spelled_marker_is_none():
    assert reasoning().is_reasoning_end([*ids("<think>"), *map(ord, "</think>")]) is False


def test_configs_name_their_turn_start():
    config = qwen_coder(terminals={**qwen_coder().terminals, "TURN_START": TURN})
    half = ParserEngine(TOKENIZER, parser_engine_config=config)
    assert not half.is_reasoning_end(ids(f"<think>a</think>{TURN}<think>"))
    assert half.is_reasoning_end(ids(f"<think>a</think>{TURN}<think>b</think>"))
    assert not half.is_reasoning_end(ids(f"<think>a</think>{TURN}"))


def test_the_streaming_variant_looks_at_the_new_ids():
    for half in (reasoning(), engine(ParserState.CONTENT), parser()):
        text = ids("<think>a</think>b")
        assert half.is_reasoning_end_streaming(text[:3], text[1:3])
        # A config's engine has the default of the interface: `is_reasoning_end` of all ids.
        assert half.is_reasoning_end_streaming(text, text[3:]) is isinstance(half, ParserEngine)
        assert not half.is_reasoning_end_streaming(text[:2], text[:2])


def test_markers_of_several_tokens():
    plain = Tokenizer()
    half = reasoning(tokenizer=plain)
    text = plain.ids("<think>ab</think>cd")
    assert half.is_reasoning_end(text)
    assert half.extract_content_ids(text) == plain.ids("cd")
    assert half.count_reasoning_tokens(text) == 2
    closed = len("<think>ab</think>")
    assert half.is_reasoning_end_streaming(text[:closed], text[closed - 1 : closed])
    assert not half.is_reasoning_end_streaming(text[: closed - 1], text[closed - 2 : closed - 1])
    assert not half.is_reasoning_end_streaming(text, text[closed:])


def test_no_reasoning_at_all():
    half = ReasoningParserManager.get_reasoning_parser("identity")(TOKENIZER)
    assert isinstance(half, FormatReasoningParser)
    assert half.is_reasoning_end([])
    assert half.extract_reasoning("a<think>b", None) == (None, "a<think>b")
    assert (half.reasoning_start_str, half.reasoning_end_str) == (None, None)
    assert half.extract_content_ids([1]) == [1]
    alone = ParserManager.get_parser("hermes")(TOKENIZER)
    assert alone.is_reasoning_end([1])
    assert alone.count_reasoning_tokens([1]) == 0


def test_a_config_without_markers():
    """Reasoning that cannot be is over, so that a tool parser gets the text."""
    half = ParserEngine(
        TOKENIZER, parser_engine_config=hermes(terminals={"A": "[a]"}, token_id_terminals={}, transitions={})
    )
    assert half.is_reasoning_end([1])
    assert half.extract_content_ids([1]) == [1]
    assert half.is_reasoning_end_streaming([1], [1])
    assert half.count_reasoning_tokens([1]) == 0


def test_a_tokenizer_is_needed():
    with pytest.raises(TypeError, match=r"^tokenizer: object has no get_vocab\(\)$"):
        ReasoningParserManager.get_reasoning_parser("qwen3")(object())


def test_a_vocabulary_is_read_once_while_its_size_stays():
    class Counting(Tokenizer):
        reads = 0

        def get_vocab(self):
            self.reads += 1
            return super().get_vocab()

        def __len__(self):
            return self.size

    tokenizer = Counting("<think>", "</think>")
    tokenizer.size = 2
    for _ in range(3):
        OutputParser(tokenizer, "qwen3", "hermes")
        ParserManager.get_parser("hermes", "qwen3")(tokenizer)
    assert tokenizer.reads == 1
    tokenizer.size = 3
    OutputParser(tokenizer, "qwen3", "hermes")
    assert tokenizer.reads == 2
