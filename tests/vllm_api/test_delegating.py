"""DelegatingParser: around any parsers, nothing is lost and every cut is right; around the catalogue's, in one pass."""

import logging
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate._internal.stream import Stream
from untemplate.messages import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from untemplate.vllm_api import (
    DelegatingParser,
    Parser,
    ParserEngine,
    ParserManager,
    ReasoningParser,
    ReasoningParserManager,
    ToolParser,
    ToolParserManager,
    _WrappedParser,
    make_parser_request,
)
from untemplate.vllm_api._backend import ParserStream

from .parser_examples import Tokenizer, cuts, hermes, message, tool

END = "</think>"
OPEN, CLOSE = "<tool_call>", "</tool_call>"
TOKENIZER = Tokenizer("<think>", END, OPEN, CLOSE)
RAW = "why </think>Sure.<tool_call>f</tool_call> and <tool_call>g</tool_call>"
MESSAGE = {"reasoning": "why ", "content": "Sure. and ", "calls": [("0", "f", "{}"), ("1", "g", "{}")]}


# -- parsers as others write them ----------------------------------------------------------------------------------


@dataclass
class TheirDelta:
    """A delta of another class."""

    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[Any] = field(default_factory=list)


class TheirReasoning:
    """All is reasoning until ``</think>``; written for ids, needs everything that came before."""

    def __init__(self, tokenizer):
        self.end = tokenizer.get_vocab()[END]

    def is_reasoning_end(self, input_ids):
        return self.end in input_ids

    def extract_content_ids(self, input_ids):
        return input_ids[input_ids.index(self.end) + 1 :] if self.end in input_ids else []

    def extract_reasoning(self, model_output, request):
        reasoning, end, content = model_output.partition(END)
        return (reasoning, content or None) if end else (model_output, None)

    def extract_reasoning_streaming(
        self, previous_text, current_text, delta_text, previous_token_ids, current_token_ids, delta_token_ids
    ):
        assert current_text == previous_text + delta_text
        assert current_token_ids == previous_token_ids + delta_token_ids
        if self.end in previous_token_ids:
            return TheirDelta(content=delta_text)
        if self.end in delta_token_ids:
            reasoning, _, content = delta_text.partition(END)
            return TheirDelta(content=content or None, reasoning_content=reasoning)
        return TheirDelta(reasoning_content=delta_text)


class TheirTools:
    """``<tool_call>name</tool_call>``. Emits one thing at a time, from the whole text each time, and has no end."""

    def __init__(self, tokenizer):
        self.sent = ""
        self.calls = 0
        self.seen_ids = []

    def extract_tool_calls(self, model_output, request):
        calls, content = [], ""
        for part in model_output.split(OPEN):
            name, close, rest = part.partition(CLOSE)
            content += rest if close else part
            if close:
                calls.append(ToolCall(id=str(len(calls)), function=FunctionCall(name=name, arguments="{}")))
        return SimpleNamespace(tools_called=bool(calls), tool_calls=calls, content=content or None)

    def extract_tool_calls_streaming(
        self, previous_text, current_text, delta_text, previous_token_ids, current_token_ids, delta_token_ids, request
    ):
        assert current_text == previous_text + delta_text
        assert current_token_ids == previous_token_ids + delta_token_ids
        self.seen_ids = current_token_ids
        whole = self.extract_tool_calls(current_text, request)
        if len(whole.tool_calls) > self.calls:
            name = whole.tool_calls[self.calls].function.name
            self.calls += 1
            made = DeltaFunctionCall(name=name, arguments="{}")
            call = DeltaToolCall(index=self.calls - 1, id=str(self.calls - 1), type="function", function=made)
            return TheirDelta(tool_calls=[call])
        if OPEN.startswith(current_text[current_text.rfind("<") :] or "x") or current_text.count(OPEN) > self.calls:
            return None
        content = whole.content or ""
        new, self.sent = content[len(self.sent) :], content
        return TheirDelta(content=new) if new else None


class Theirs(DelegatingParser):
    def __init__(self, tokenizer, reasoning=TheirReasoning, tools=TheirTools):
        super().__init__(tokenizer)
        self._reasoning_parser = reasoning and reasoning(tokenizer)
        self._tool_parser = tools and tools(tokenizer)


def stream(parser, pieces, request=None, prompt=None):
    deltas = [parser.parse_delta(text, ids, request, prompt, finished=False) for text, ids in pieces]
    return message([*deltas, parser.parse_delta("", [], request, finished=True)])


def by_tokens(raw, size):
    pieces = TOKENIZER.pieces(raw)
    for at in range(0, len(pieces), size):
        some = pieces[at : at + size]
        yield "".join(text for text, _ in some), [token for _, ids in some for token in ids]


# -- streams -------------------------------------------------------------------------------------------------------


def test_foreign_parsers_in_every_cut():
    for size in range(1, len(TOKENIZER.pieces(RAW)) + 1):
        assert stream(Theirs(TOKENIZER), by_tokens(RAW, size)) == MESSAGE


def test_the_end_of_reasoning_and_a_call_in_one_delta():
    parser = Theirs(TOKENIZER)
    delta = parser.parse_delta(f"why{END}{OPEN}f{CLOSE}", TOKENIZER.ids(f"why{END}{OPEN}f{CLOSE}"), finished=False)
    assert delta.reasoning == "why"
    assert [call.function.name for call in delta.tool_calls] == ["f"]
    assert parser.parse_delta("", [], finished=True) is None


def test_the_tool_parser_gets_the_ids_of_the_content():
    parser = Theirs(TOKENIZER)
    stream(parser, by_tokens(RAW, 5))
    assert parser.tool_parser.seen_ids == TOKENIZER.ids(RAW.partition(END)[2])


def test_what_a_foreign_parser_keeps_back_comes_at_the_end():
    parser = Theirs(TOKENIZER)
    raw = f"{END}{OPEN}f{CLOSE}{OPEN}g{CLOSE}{OPEN}h{CLOSE} tail <tool"
    found = stream(parser, [(raw, TOKENIZER.ids(raw))])
    assert found == {
        "reasoning": "",
        "content": " tail <tool",
        "calls": [("0", "f", "{}"), ("1", "g", "{}"), ("2", "h", "{}")],
    }


def test_whole():
    reasoning, content, calls = Theirs(TOKENIZER).parse(RAW)
    assert (reasoning, content) == (MESSAGE["reasoning"], MESSAGE["content"])
    assert [(call.id, call.name, call.arguments) for call in calls] == MESSAGE["calls"]
    assert Theirs(TOKENIZER).parse("why") == ("why", None, None)


def test_without_reasoning():
    raw = RAW.partition(END)[2]
    for pieces in cuts(raw):
        found = stream(Theirs(TOKENIZER, reasoning=None), [(piece, []) for piece in pieces])
        assert found == {**MESSAGE, "reasoning": ""}
    assert Theirs(TOKENIZER, reasoning=None).parse(raw)[0] is None


def test_without_tools():
    found = stream(Theirs(TOKENIZER, tools=None), by_tokens(RAW, 4))
    assert found == {"reasoning": "why ", "content": RAW.partition(END)[2], "calls": []}
    assert Theirs(TOKENIZER, tools=None).parse(RAW) == ("why ", RAW.partition(END)[2], None)


def test_without_either():
    parser = Theirs(TOKENIZER, None, None)
    assert parser.parse("a") == (None, "a", None)
    assert parser.parse_delta("a", [], finished=True) == DeltaMessage(content="a")


@pytest.mark.parametrize("request_", [{"tool_choice": "none"}, {"tools": []}, make_parser_request("m", [])])
def test_no_calls_where_none_are_wanted(request_):
    found = stream(Theirs(TOKENIZER), by_tokens(RAW, 4), request_)
    assert found == {"reasoning": "why ", "content": RAW.partition(END)[2], "calls": []}
    assert Theirs(TOKENIZER).parse(RAW, request_)[1:] == (RAW.partition(END)[2], None)


def test_a_prompt_that_has_closed_reasoning():
    found = stream(Theirs(TOKENIZER), by_tokens(f"Sure.{OPEN}f{CLOSE}", 3), None, TOKENIZER.ids(f"hi<think>{END}"))
    assert found == {"reasoning": "", "content": "Sure.", "calls": [("0", "f", "{}")]}
    found = stream(Theirs(TOKENIZER), by_tokens(f"why{END}Sure.", 3), None, TOKENIZER.ids("hi<think>"))
    assert found == {"reasoning": "why", "content": "Sure.", "calls": []}


def test_after_the_end():
    parser = Theirs(TOKENIZER)
    parser.parse_delta("a", [], finished=True)
    with pytest.raises(RuntimeError) as found:
        parser.parse_delta("b", [], finished=False)
    assert str(found.value) == "parse_delta() after finished=True: a parser serves one output; make another"


def test_a_prompt_of_whole_outputs():
    """A whole parse gives the message of the stream after the same prompt, whatever the halves are."""

    def cases():
        for name in ("<think>", f"<think>{END}", "hi"):
            yield TOKENIZER.ids(name)

    class WithoutPrompts(ReasoningParser):
        is_reasoning_end = TheirReasoning.is_reasoning_end
        extract_content_ids = TheirReasoning.extract_content_ids
        extract_reasoning = TheirReasoning.extract_reasoning
        extract_reasoning_streaming = TheirReasoning.extract_reasoning_streaming
        end = TOKENIZER.get_vocab()[END]

    class Foreign(_WrappedParser):
        reasoning_parser_cls, tool_parser_cls = TheirReasoning, TheirTools

    class Inherits(_WrappedParser):
        reasoning_parser_cls, tool_parser_cls = WithoutPrompts, TheirTools

    class Mixed(_WrappedParser):
        reasoning_parser_cls, tool_parser_cls = Catalogue.reasoning_parser_cls, TheirTools

    raw = f"Hm.{END}Hi"
    found = {}
    for cls in (Foreign, Inherits, Mixed, Catalogue):
        for number, prompt in enumerate(cases()):
            whole = cls(TOKENIZER)
            whole.set_prompt_token_ids(prompt)
            reasoning, content, calls = whole.parse(raw)
            message = stream(cls(TOKENIZER), by_tokens(raw, 2), None, prompt)
            assert message == {"reasoning": reasoning or "", "content": content or "", "calls": calls or []}, (
                cls,
                prompt,
            )
            found[cls.__name__, number] = reasoning
    assert found["Catalogue", 0] == found["Mixed", 0] == found["Foreign", 0] == found["Inherits", 0] == "Hm."
    assert found["Foreign", 1] == found["Inherits", 1] is None


def test_a_prompt_reaches_the_parser_of_both_halves():
    prompt = TOKENIZER.ids("<think>")
    expected = {"reasoning": "Hm.", "content": "Hi", "calls": []}
    parser = OutputParser.named("hermes+qwen3", tokenizer=TOKENIZER)
    parser.tool_parser = ToolParserManager.get_tool_parser("hermes")(TOKENIZER)
    parsed = parser.parse(f"Hm.{END}Hi", prompt_token_ids=prompt)
    assert (parsed.reasoning, parsed.content) == ("Hm.", "Hi")
    opened = parser.stream(prompt_token_ids=prompt, collect=True)
    opened.feed(f"Hm.{END}Hi")
    opened.finish()
    assert opened.result().message() == parsed.message()
    for before in (True, False):
        both = Catalogue(TOKENIZER)
        if not before:
            both.parse("x")
        both.set_prompt_token_ids(prompt)
        assert both.parse(f"Hm.{END}Hi") == ("Hm.", "Hi", None)
    assert stream(Catalogue(TOKENIZER), by_tokens(f"Hm.{END}Hi", 3), None, prompt) == expected


def test_an_end_of_reasoning_of_two_tokens():
    """The default of `is_reasoning_end_streaming` sees all ids, as in vLLM."""

    class TwoTokens(TheirReasoning):
        def is_reasoning_end(self, input_ids):
            return any(list(input_ids[at : at + 2]) == [60, 62] for at in range(len(input_ids) - 1))

        def extract_content_ids(self, input_ids):
            ends = (at + 2 for at in range(len(input_ids) - 1) if list(input_ids[at : at + 2]) == [60, 62])
            return input_ids[next(ends, len(input_ids)) :]

        def extract_reasoning_streaming(self, previous_text, current_text, delta_text, *ids):
            _, end, content = current_text.partition("<>")
            if "<>" in previous_text:
                return TheirDelta(content=delta_text)
            if end:
                return TheirDelta(content=content or None)
            return TheirDelta(reasoning_content=delta_text.rstrip("<") or None)

    parser = Theirs(TOKENIZER, TwoTokens)
    assert parser.is_reasoning_end_streaming([97, 60, 62], [62])
    assert not parser.is_reasoning_end_streaming([97, 60], [60])
    raw = f"why<>Sure.{OPEN}f{CLOSE}"
    parser = Theirs(TOKENIZER, TwoTokens)
    assert stream(parser, by_tokens(raw, 1)) == {"reasoning": "why", "content": "Sure.", "calls": [("0", "f", "{}")]}
    assert parser.tool_parser.seen_ids == TOKENIZER.ids(raw.partition("<>")[2])
    wrapped = type("Wrapped", (_WrappedParser,), {"reasoning_parser_cls": TwoTokens})(TOKENIZER)
    assert wrapped.is_reasoning_end_streaming([97, 60, 62], [62])


class Configured(ParserEngine):
    def __init__(self, tokenizer):
        super().__init__(tokenizer, parser_engine_config=hermes())


@pytest.mark.parametrize(
    "base", [ReasoningParserManager.get_reasoning_parser("qwen3"), Configured], ids=["format", "config"]
)
def test_an_end_of_reasoning_of_a_subclass(base):
    """The streamed question asks the method that a subclass has written."""

    class TwoTokens(base):
        def is_reasoning_end(self, input_ids):
            return list(input_ids)[-2:] == [60, 62]

    parser = TwoTokens(TOKENIZER)
    assert parser.is_reasoning_end_streaming([97, 60, 62], [62])
    assert not parser.is_reasoning_end_streaming([97, 60], [60])


def test_older_method_names():
    class Older(TheirReasoning):
        extract_reasoning_content = TheirReasoning.extract_reasoning
        extract_reasoning_content_streaming = TheirReasoning.extract_reasoning_streaming
        extract_reasoning = extract_reasoning_streaming = None

    assert stream(Theirs(TOKENIZER, Older), by_tokens(RAW, 3)) == MESSAGE
    assert Theirs(TOKENIZER, Older).parse(RAW)[0] == "why "


def test_fallback_content():
    class Promotes(TheirReasoning):
        def get_streaming_fallback_content(self, text, request):
            return text.upper()

    assert stream(Theirs(TOKENIZER, Promotes), by_tokens("why", 1))["content"] == "WHY"
    assert stream(Theirs(TOKENIZER, Promotes), by_tokens(RAW, 1)) == MESSAGE


# -- one half ------------------------------------------------------------------------------------------------------


def test_methods_of_the_halves():
    parser = Theirs(TOKENIZER)
    end = TOKENIZER.ids(END)
    assert parser.extract_reasoning(f"a{END}b", None) == ("a", "b")
    found = parser.extract_tool_calls(f"a{OPEN}f{CLOSE}", None)
    assert vars(found) == vars(TheirTools(TOKENIZER).extract_tool_calls(f"a{OPEN}f{CLOSE}", None))
    assert parser.extract_content_ids([97, *end, 98]) == [98]
    assert not parser.is_reasoning_end([97])
    assert parser.is_reasoning_end([97, *end])
    assert not parser.is_reasoning_end_streaming([97, 98], [98])
    assert parser.is_reasoning_end_streaming([97, *end], end)
    assert parser.count_reasoning_tokens([97, *end]) == 0
    assert parser.vocab == TOKENIZER.get_vocab()
    assert parser.model_tokenizer is TOKENIZER


def test_methods_without_halves():
    parser = Theirs(TOKENIZER, None, None)
    assert parser.is_reasoning_end([])
    assert parser.is_reasoning_end_streaming([97], [97])
    assert parser.extract_content_ids([1, 2]) == [1, 2]
    assert parser.extract_reasoning("a", None) == (None, "a")
    assert parser.extract_reasoning_streaming("", "a", "a", [], [], []) == DeltaMessage(content="a")
    assert parser.extract_tool_calls("a", None) == ExtractedToolCallInformation(
        tools_called=False, tool_calls=[], content="a"
    )
    assert parser.extract_tool_calls_streaming("", "a", "a", [], [], [], None) is None
    request = {"skip_special_tokens": True}
    assert parser.adjust_request(request) is request


def test_halves_may_be_set():
    parser = Theirs(TOKENIZER, None, None)
    parser.reasoning_parser = TheirReasoning(TOKENIZER)
    parser.tool_parser = TheirTools(TOKENIZER)
    assert stream(parser, by_tokens(RAW, 2)) == MESSAGE


def test_adjust_request():
    class Adjusts(TheirTools):
        def adjust_request(self, request):
            request["guided"] = True
            return request

    # Each half adjusts the request; the parser around them does not.
    assert Theirs(TOKENIZER, tools=Adjusts).adjust_request({}) == {"guided": True}
    request = {"skip_special_tokens": True}
    assert Theirs(TOKENIZER, tools=None).adjust_request(request) is request
    parser = DelegatingParser(TOKENIZER)
    parser.tool_parser = ToolParserManager.get_tool_parser("hermes")(TOKENIZER)
    assert parser.adjust_request(request) == {"skip_special_tokens": False}
    assert request == {"skip_special_tokens": True}


def test_a_parser_that_raises_does_not_take_the_answer_with_it(caplog):
    class Broken(TheirTools):
        def extract_tool_calls(self, model_output, request):
            raise IndexError("whole")

        def extract_tool_calls_streaming(self, *args):
            raise IndexError("streaming")

    raw = f"why{END}Sure. {OPEN}"
    with caplog.at_level(logging.CRITICAL):
        assert stream(Theirs(TOKENIZER, tools=Broken), by_tokens(raw, 2))["content"] == f"Sure. {OPEN}"
        assert Theirs(TOKENIZER, tools=Broken).parse(raw) == ("why", f"Sure. {OPEN}", None)
    with caplog.at_level(logging.ERROR):
        Theirs(TOKENIZER, tools=Broken).parse(raw)
    assert [record.getMessage() for record in caplog.records] == [
        "Broken.extract_tool_calls() raised; its text becomes content"
    ]


# -- wrapped, and the catalogue's ----------------------------------------------------------------------------------


def test_wrapped():
    class Mine(_WrappedParser):
        reasoning_parser_cls = TheirReasoning
        tool_parser_cls = TheirTools

    assert stream(Mine(TOKENIZER), by_tokens(RAW, 3)) == MESSAGE
    assert isinstance(Mine(TOKENIZER).reasoning_parser, TheirReasoning)


class Catalogue(_WrappedParser):
    reasoning_parser_cls = ReasoningParserManager.get_reasoning_parser("qwen3")
    tool_parser_cls = ToolParserManager.get_tool_parser("hermes")


CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def test_the_catalogue_works_in_one_pass():
    """The output ends on a call inside reasoning: only a parser that sees both can decide."""
    raw = f"<think>\nwhy {CALL}</think>"
    for pieces in cuts(raw):
        found = stream(Catalogue(TOKENIZER), [(piece, []) for piece in pieces])
        assert found["reasoning"] == "why"
        assert [call[1:] for call in found["calls"]] == [("f", '{"a": 1}')]
    reasoning, content, calls = Catalogue(TOKENIZER).parse(raw)
    assert (reasoning, content, calls[0].name) == ("why", None, "f")


def test_halves_of_the_catalogue_beside_foreign_ones():
    class Mixed(_WrappedParser):
        reasoning_parser_cls = Catalogue.reasoning_parser_cls
        tool_parser_cls = TheirTools

    raw = f"<think>\nwhy\n</think>\n\nSure.{OPEN}f{CLOSE}"
    for pieces in cuts(raw):
        found = stream(Mixed(TOKENIZER), [(piece, []) for piece in pieces])
        assert found == {"reasoning": "why", "content": "Sure.", "calls": [("0", "f", "{}")]}


def test_a_half_that_has_been_changed_is_used():
    class Shouts(Catalogue.reasoning_parser_cls):
        def extract_reasoning_streaming(self, *args):
            delta = super().extract_reasoning_streaming(*args)
            if delta is not None and delta.reasoning:
                delta.reasoning = delta.reasoning.upper()
            return delta

    class Mine(_WrappedParser):
        reasoning_parser_cls = Shouts
        tool_parser_cls = Catalogue.tool_parser_cls

    for pieces in cuts(f"<think>why</think>{CALL} <"):
        found = stream(Mine(TOKENIZER), [(piece, []) for piece in pieces])
        assert (found["reasoning"], found["content"]) == ("WHY", " <")
        assert [call[1:] for call in found["calls"]] == [("f", '{"a": 1}')]


# -- subclasses of the abstract classes ----------------------------------------------------------------------------


def test_methods_to_fill_in():
    wanted = {
        Parser: "extract_content_ids extract_reasoning extract_reasoning_streaming extract_tool_calls "
        "extract_tool_calls_streaming is_reasoning_end",
        ReasoningParser: "extract_content_ids extract_reasoning extract_reasoning_streaming is_reasoning_end",
        ToolParser: "extract_tool_calls extract_tool_calls_streaming",
        DelegatingParser: "",
    }
    for cls, names in wanted.items():
        assert [
            name for name in dir(cls) if getattr(getattr(cls, name), "__isabstractmethod__", False)
        ] == names.split()


def test_a_parser_with_some_methods():
    class Whole(Parser):
        def extract_reasoning(self, model_output, request):
            return None, model_output

        def extract_tool_calls(self, model_output, request):
            return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=model_output.upper())

    assert Whole(TOKENIZER).parse("ab") == (None, "AB", None)
    assert not Whole(TOKENIZER).is_reasoning_end([1])


def test_a_parser_of_ones_own():
    class Mine(Parser):
        def is_reasoning_end(self, input_ids):
            return 7 in input_ids

        def extract_content_ids(self, input_ids):
            return input_ids

        def extract_reasoning(self, model_output, request):
            return None, model_output

        def extract_reasoning_streaming(self, previous_text, current_text, delta_text, *ids):
            return DeltaMessage(content=delta_text)

        def extract_tool_calls(self, model_output, request):
            return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=model_output.upper())

        def extract_tool_calls_streaming(self, previous_text, current_text, delta_text, *rest):
            return DeltaMessage(content=delta_text.upper())

    assert Mine(TOKENIZER).parse("ab") == (None, "AB", None)
    assert stream(Mine(TOKENIZER), [("a", [1]), ("b", [2])])["content"] == "AB"
    assert Mine(TOKENIZER).is_reasoning_end([7, 8])
    assert Mine(TOKENIZER).is_reasoning_end_streaming([7, 8], [8])
    assert Mine(TOKENIZER).adjust_request({}) == {}
    assert Mine(TOKENIZER).reasoning_parser is None


class OnlyHalves(Parser):
    """A subclass as vLLM's documentation describes it: it sets its halves, and writes no method."""

    def __init__(self, tokenizer, reasoning=TheirReasoning, tools=TheirTools):
        super().__init__(tokenizer)
        self.reasoning_parser = reasoning and reasoning(tokenizer)
        self.tool_parser = tools and tools(tokenizer)


def test_a_parser_that_only_sets_its_halves():
    for size in range(1, 20):
        assert stream(OnlyHalves(TOKENIZER), by_tokens(RAW, size)) == MESSAGE
    reasoning, content, calls = OnlyHalves(TOKENIZER).parse(RAW)
    assert (reasoning, content) == (MESSAGE["reasoning"], MESSAGE["content"])
    assert [(call.id, call.name, call.arguments) for call in calls] == MESSAGE["calls"]
    raw = RAW.partition(END)[2]
    without = stream(OnlyHalves(TOKENIZER, reasoning=None), by_tokens(raw, 3))
    assert without == {**MESSAGE, "reasoning": ""}
    assert stream(OnlyHalves(TOKENIZER, tools=None), by_tokens(RAW, 3))["content"] == raw
    prompt = TOKENIZER.ids(f"<think>{END}")
    parser = OnlyHalves(TOKENIZER)
    parser.set_prompt_token_ids(prompt)
    assert parser.parse("Sure.") == (None, "Sure.", None)
    assert stream(OnlyHalves(TOKENIZER), by_tokens("Sure.", 2), None, prompt)["content"] == "Sure."
    parser = OnlyHalves(TOKENIZER)
    assert parser.is_reasoning_end(TOKENIZER.ids(END))
    assert parser.is_reasoning_end_streaming(TOKENIZER.ids(f"a{END}"), TOKENIZER.ids(END))
    assert parser.extract_content_ids(TOKENIZER.ids(f"a{END}b")) == TOKENIZER.ids("b")
    assert parser.count_reasoning_tokens([97]) == 0


def test_a_parser_without_methods_or_halves_keeps_the_text():
    assert Parser(TOKENIZER).parse("ab") == (None, "ab", None)
    assert stream(Parser(TOKENIZER), [("a", [97]), ("b", [98])]) == {"reasoning": "", "content": "ab", "calls": []}


def test_one_half_and_methods_for_the_other():
    class Mine(OnlyHalves):
        def extract_tool_calls(self, model_output, request):
            return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=model_output.upper())

        def extract_tool_calls_streaming(self, previous_text, current_text, delta_text, *rest):
            return DeltaMessage(content=delta_text.upper()) if delta_text else None

    raw = f"why{END}Sure."
    assert Mine(TOKENIZER, tools=None).parse(raw) == ("why", "SURE.", None)
    for size in (1, 3, 99):
        found = stream(Mine(TOKENIZER, tools=None), by_tokens(raw, size))
        assert found == {"reasoning": "why", "content": "SURE.", "calls": []}


def test_halves_without_the_constructor_of_the_class():
    class Bare(DelegatingParser):
        def __init__(self, tokenizer):
            self._reasoning_parser = TheirReasoning(tokenizer)
            self._tool_parser = TheirTools(tokenizer)

    assert stream(Bare(TOKENIZER), by_tokens(RAW, 3)) == MESSAGE
    assert Bare(TOKENIZER).parse(RAW)[0] == "why "


def test_a_function_makes_a_half():
    class Mine(_WrappedParser):
        reasoning_parser_cls = lambda tokenizer: TheirReasoning(tokenizer)  # noqa: E731
        tool_parser_cls = lambda tokenizer: TheirTools(tokenizer)  # noqa: E731

    assert stream(Mine(TOKENIZER), by_tokens(RAW, 3)) == MESSAGE


# -- as a stream ---------------------------------------------------------------------------------------------------


def test_a_delegating_stream():
    opened = Stream(ParserStream(Theirs(TOKENIZER)), collect=True)
    for text, ids in by_tokens(RAW, 3):
        opened.feed(text, ids)
    with pytest.raises(RuntimeError, match=r"^result\(\) before finish\(\)$"):
        opened.result()
    opened.finish("stop")
    assert opened.finish() == []
    result = opened.result()
    assert (result.reasoning_content, result.content, result.finish_reason) == ("why ", "Sure. and ", "tool_calls")
    assert [(c.id, c.function.name, c.function.arguments) for c in result.tool_calls] == MESSAGE["calls"]
    assert [item.type for item in result.items] == ["reasoning", "content", "tool_call", "content", "tool_call"]
    with pytest.raises(RuntimeError, match=r"^feed\(\) after finish\(\)"):
        opened.feed("a")
    with pytest.raises(RuntimeError, match=r"^result\(\) needs parser.stream\(collect=True\)$"):
        Stream(ParserStream(Theirs(TOKENIZER))).result()


def test_tools_of_a_request_reach_the_catalogue():
    request = make_parser_request("m", [], [tool("other")])
    assert Catalogue(TOKENIZER).parse(CALL, request)[2][0].name == "f"


# -- OutputParser, by registered names -------------------------------------------------------------------------------


@pytest.fixture
def _registered(monkeypatch):
    for manager in (ReasoningParserManager, ToolParserManager, ParserManager):
        monkeypatch.setattr(manager, "_registered", {})
    ReasoningParserManager.register_module("theirs", module=TheirReasoning)
    ToolParserManager.register_module("their_tools", module=TheirTools)


@pytest.mark.usefixtures("_registered")
def test_output_parser_of_registered_names():
    parser = OutputParser(TOKENIZER, reasoning_parser_name="theirs", tool_parser_name="their_tools")
    assert (parser.has_reasoning, parser.has_tools, parser.format.name) == (True, True, "passthrough")
    assert isinstance(parser.reasoning_parser, TheirReasoning)
    assert isinstance(parser.tool_parser, TheirTools)
    assert parser.reasoning_parser is parser.reasoning_parser
    assert parser.adjust_request({"a": 1}) == {"a": 1, "skip_special_tokens": False}
    for size in range(1, 9):
        opened = parser.stream(collect=True)
        deltas = [delta for text, ids in by_tokens(RAW, size) for delta in opened.feed(text, ids)]
        assert message([*deltas, *opened.finish("stop")]) == MESSAGE
        streamed = opened.result()
        assert (streamed.reasoning, streamed.content, streamed.finish_reason) == ("why ", "Sure. and ", "tool_calls")
    parsed = parser.parse(RAW)
    assert parsed.message() == streamed.message()
    assert (parsed.finish_reason, parsed.tools_called) == ("tool_calls", True)
    # No tools, no calls.
    raw = RAW.partition(END)[2]
    assert (parser.parse(RAW, tools=[]).content, parser.parse(RAW, tool_choice="none").content) == (raw, raw)
    assert parser.parse(RAW, make_parser_request("m", [], [])).content == raw
    # Two requests are independent of each other, and of the implicit stream of `OutputParser.parse_streaming`.
    one, two = parser.stream(), parser.stream()
    assert one.feed("a", TOKENIZER.ids("a")) == two.feed("a", TOKENIZER.ids("a")) == [DeltaMessage(reasoning="a")]
    assert parser.parse_streaming("", "a", "a", [], [0], TOKENIZER.ids("a")) == DeltaMessage(reasoning="a")


@pytest.mark.usefixtures("_registered")
def test_output_parser_of_one_registered_and_one_catalogue_name():
    parser = OutputParser(TOKENIZER, reasoning_parser_name="theirs", tool_parser_name="hermes")
    raw = 'why</think>Sure.<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    parsed = parser.parse(raw)
    assert (parsed.reasoning, parsed.content) == ("why", "Sure.")
    assert [(c.function.name, c.function.arguments) for c in parsed.tool_calls] == [("f", "{}")]
    assert parser.format.name == "hermes"
    opened = parser.stream(collect=True, prefill="wh")
    opened.feed(raw[2:], TOKENIZER.ids(raw[2:]))
    opened.finish()
    assert opened.result().message()["reasoning"] == "why"
    with pytest.raises(ValueError, match=r"^on_event: a registered parser reports no events$"):
        parser.stream(on_event=print)
    with pytest.raises(ValueError, match=r"^unknown tool parser 'hermse'; did you mean 'hermes'"):
        OutputParser(TOKENIZER, reasoning_parser_name="theirs", tool_parser_name="hermse")


@pytest.mark.usefixtures("_registered")
@pytest.mark.parametrize(
    ("calls", "finish_reason"),
    [
        (['{"command": "rm -rf /'], "stop"),
        (['{"a": 1}', '{"command": "rm'], "stop"),
        (['{"a": 1', "{}"], "tool_calls"),
        (['{"a": [1}'], "tool_calls"),
        ([], "stop"),
    ],
)
def test_a_registered_parser_whose_last_call_is_cut(calls, finish_reason):
    class Cut(Parser):
        def extract_reasoning(self, model_output, request):
            return None, model_output

        def extract_tool_calls(self, model_output, request):
            made = [ToolCall(id="x", function=FunctionCall(name="f", arguments=text)) for text in calls]
            return ExtractedToolCallInformation(tools_called=bool(made), tool_calls=made, content=None)

        def parse_delta(self, delta_text, delta_token_ids, request=None, prompt_token_ids=None, *, finished):
            if finished:
                return None
            parts = [
                DeltaToolCall(index=i, function=DeltaFunctionCall(name=name, arguments=text))
                for i, arguments in enumerate(calls)
                for name, text in (("f", arguments[:3]), (None, arguments[3:]))
            ]
            return DeltaMessage(tool_calls=parts) if parts else DeltaMessage(content="Hi")

    ParserManager.register_module("cut", module=Cut)
    parser = OutputParser(TOKENIZER, tool_parser_name="cut")
    assert parser.parse(RAW).finish_reason == finish_reason
    opened = parser.stream()
    opened.feed(RAW)
    opened.finish()
    assert opened.finish_reason == finish_reason


@pytest.mark.usefixtures("_registered")
def test_output_parser_of_a_registered_parser():
    ParserManager.register_module("whole", module=Theirs)
    parser = OutputParser(TOKENIZER, tool_parser_name="whole")
    assert parser.parse(RAW).content == "Sure. and "
    assert isinstance(parser.tool_parser, TheirTools)
