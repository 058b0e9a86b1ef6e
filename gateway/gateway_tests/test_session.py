"""A request from prompt to message: stop strings, budgets, logprobs, choices and failing engines."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from untemplate import OutputParser
from untemplate.messages import DeltaFunctionCall, DeltaMessage, DeltaToolCall
from untemplate.templates import ChatTemplate
from untemplate.testing import PieceTokenizer
from untemplate_gateway import json_answers
from untemplate_gateway import session as session_module
from untemplate_gateway.engines.base import EngineChunk, Job, Takes
from untemplate_gateway.errors import ApiError, EngineError
from untemplate_gateway.generation import Constraint, Ended, Generation, Meta, Sampling, Thinking, TokenLogprob, Usage
from untemplate_gateway.manager.model import Model
from untemplate_gateway.processes import Workers
from untemplate_gateway.session import Session

from .scripted import TEMPLATE, Scripted, replay, scripted

META = Meta(id="0" * 32, created=1, model="scripted")
ASK = [{"role": "user", "content": "Hi"}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
CALL = '<tool_call>\n{"name": "f", "arguments": {"x": "a"}}\n</tool_call>'
ASKED = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


class Lines:
    """A writer whose frames are lines of JSON: one for each call of the session."""

    media_type = "text/plain"
    ping = b""

    def begin(self, usage: Usage) -> bytes:
        return self._line("begin")

    def delta(
        self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None, ids: Any = None
    ) -> bytes:
        tokens = [] if logprobs is None else [[token.token for token in logprobs]]
        return self._line("delta", choice, delta.model_dump(exclude_none=True), *tokens)

    def finish(self, ended: Ended) -> bytes:
        return self._line("finish", ended.index, ended.finish_reason)

    def end(self, usage: Usage) -> bytes:
        return self._line("end", usage.completion_tokens)

    def error(self, error: ApiError) -> bytes:
        return self._line("error", error.status, error.message)

    def _line(self, *values: Any) -> bytes:
        return json.dumps(values).encode() + b"\n"


def streamed(model: Model, request: Generation) -> list[list[Any]]:
    async def run() -> bytes:
        return b"".join([frame async for frame in Session(model, request, META).frames(Lines())])

    return [json.loads(line) for line in asyncio.run(run()).splitlines()]


def whole(model: Model, request: Generation) -> tuple[list[Ended], Usage]:
    async def run() -> tuple[list[Ended], Usage]:
        session = Session(model, request, META)
        usage = await session.whole()
        return session.ended, usage

    return asyncio.run(run())


def text_of(lines: list[list[Any]], field: str = "content", choice: int = 0) -> str:
    return "".join(line[2].get(field, "") for line in lines if line[0] == "delta" and line[1] == choice)


def ask(**fields: Any) -> Generation:
    return Generation(messages=ASK, **fields)


@pytest.mark.parametrize("knows", [False, True])
def test_documents_that_the_template_does_not_show_are_noted(knows: bool) -> None:
    model, request = scripted("x"), ask(documents=[{"text": "A."}])
    source = TEMPLATE + ("{% for d in documents or [] %}{{ d.text }}{% endfor %}" if knows else "")
    whole(replace(model, template=ChatTemplate(source)), request)
    assert model.engine.jobs[0].prompt == ASKED + ("A." if knows else "")  # type: ignore[attr-defined]
    note = "documents: the model's template does not show them; ignored"
    assert request.notes.texts == ([] if knows else [note])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_whole_and_streamed_are_the_same_message(size: int) -> None:
    output = f"<think>\nHm.\n</think>\n\nSure.\n{CALL}"
    model = scripted(output, size=size)
    (ended,), usage = whole(model, ask(tools=TOOLS))
    assert ended.parsed.message() == {
        "role": "assistant",
        "content": "Sure.",
        "reasoning": "Hm.",
        "tool_calls": [
            {
                "id": ended.parsed.tool_calls[0].id,
                "type": "function",
                "function": {"name": "f", "arguments": '{"x": "a"}'},
            }
        ],
    }
    assert ended.finish_reason == "tool_calls"
    assert usage.completion_tokens == -(-len(output) // size)
    lines = streamed(model, ask(tools=TOOLS))
    assert text_of(lines) == "Sure."
    assert text_of(lines, "reasoning") == "Hm."
    calls = [call for line in lines if line[0] == "delta" for call in line[2].get("tool_calls", ())]
    assert "".join(call["function"].get("arguments", "") for call in calls) == '{"x": "a"}'
    assert calls[0]["id"] == ended.parsed.tool_calls[0].id
    assert lines[0] == ["begin"]
    assert lines[-2:] == [["finish", 0, "tool_calls"], ["end", usage.completion_tokens]]


class TestStops:
    @pytest.mark.parametrize("size", [1, 2, 3, 1000])
    def test_a_stop_string_ends_content_only(self, size: int) -> None:
        """It has no effect in reasoning and in arguments."""
        model = scripted(f"<think>\nSTOP\n</think>\n\nOne STOP two {CALL}", size=size)
        (ended,), _ = whole(model, ask(tools=TOOLS, stop=("STOP",)))
        assert (ended.parsed.reasoning, ended.parsed.content) == ("STOP", "One ")
        assert (ended.finish_reason, ended.stop, ended.parsed.tool_calls) == ("stop", "STOP", [])
        lines = streamed(model, ask(tools=TOOLS, stop=("STOP",)))
        assert (text_of(lines, "reasoning"), text_of(lines)) == ("STOP", "One ")

    def test_in_arguments_it_is_nothing(self) -> None:
        model = scripted(CALL.replace('"a"', '"a STOP"'))
        (ended,), _ = whole(model, ask(tools=TOOLS, stop=("STOP",)))
        assert ended.parsed.tool_calls[0].function.arguments == '{"x": "a STOP"}'
        assert (ended.finish_reason, ended.stop) == ("tool_calls", None)

    @pytest.mark.parametrize("size", [1, 3, 1000])
    def test_a_call_before_the_stop_string_stands(self, size: int) -> None:
        """The result is the same whole and streamed, although all content before the call had been sent."""
        model = scripted(f"Sure.{CALL}STOP and on", size=size)
        (ended,), _ = whole(model, ask(tools=TOOLS, stop=("STOP",)))
        assert [call.function.name for call in ended.parsed.tool_calls] == ["f"]
        assert (ended.finish_reason, ended.stop) == ("tool_calls", "STOP")
        lines = streamed(model, ask(tools=TOOLS, stop=("STOP",)))
        assert text_of(lines) == ended.parsed.content
        assert any("tool_calls" in line[2] for line in lines if line[0] == "delta")

    def test_the_engine_is_left_at_once(self) -> None:
        model = scripted("One STOP \1", size=1)
        (ended,), _ = whole(model, ask(stop=("STOP",)))
        assert ended.parsed.content == "One "
        assert isinstance(model.engine, Scripted)
        assert model.engine.closed == [f"{META.id}-0"]

    def test_what_began_like_one_is_told(self) -> None:
        for size in (1, 2, 5):
            model = scripted("a ST b STO", size=size)
            assert text_of(streamed(model, ask(stop=("STOP", "b!")))) == "a ST b STO"
            (ended,), _ = whole(model, ask(stop=("STOP",)))
            assert (ended.parsed.content, ended.finish_reason) == ("a ST b STO", "stop")

    def test_the_first_one_counts(self) -> None:
        model = scripted("abcde", size=5)
        (ended,), _ = whole(model, ask(stop=("d", "bc")))
        assert (ended.parsed.content, ended.stop) == ("a", "bc")

    @pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
    @pytest.mark.parametrize(
        ("stops", "content", "stop"),
        [
            (("abcd", "bc"), "a", "bc"),
            (("bc", "abcd"), "a", "bc"),
            (("c", "abc", "bc"), "", "abc"),
            (("de", "é"), "abc", "de"),
            (("é🙂", "z"), "abcde", "é🙂"),
            (("🙂f",), "abcdeé", "🙂f"),
        ],
    )
    def test_the_first_that_is_whole_however_it_is_cut(
        self, size: int, stops: tuple[str, ...], content: str, stop: str
    ) -> None:
        (ended,), _ = whole(scripted("abcdeé🙂fg", size=size), ask(stop=stops))
        assert (ended.parsed.content or "", ended.stop) == (content, stop)
        assert text_of(streamed(scripted("abcdeé🙂fg", size=size), ask(stop=stops))) == content

    def test_the_prompt_is_counted_all_the_same(self) -> None:
        """An engine that is stopped early does not report the length of the prompt."""
        (ended,), usage = whole(scripted("One STOP two", size=1), ask(stop=("STOP",)))
        assert (usage.prompt_tokens, usage.completion_tokens) == (len(ASKED), len("One STOP"))
        assert ended.usage.prompt_tokens == len(ASKED)


class TestThinking:
    def test_a_budget_closes_reasoning(self) -> None:
        """The model does not stop thinking; the gateway closes reasoning, and the model continues with an answer."""

        def output(job: Any) -> str:
            return "Answer." if "</think>" in job.prompt else "<think>\n" + "hm " * 100

        model = scripted(output, size=3)
        (ended,), usage = whole(model, ask(thinking=Thinking(budget=10)))
        assert ended.parsed.content == "Answer."
        assert (ended.parsed.reasoning or "").startswith("hm hm")
        assert (usage.reasoning_tokens, usage.prompt_tokens) == (10, len(ASKED))
        assert isinstance(model.engine, Scripted)
        first, second = model.engine.jobs
        assert first.prompt == ASKED
        assert second.prompt == ASKED + ended.raw.removesuffix("Answer.")
        assert ended.raw.endswith("\n</think>\n\nAnswer.")
        lines = streamed(scripted(output, size=3), ask(thinking=Thinking(budget=10)))
        assert (text_of(lines, "reasoning"), text_of(lines)) == (ended.parsed.reasoning, "Answer.")

    @pytest.mark.parametrize("ids", [False, True])
    def test_a_budget_closes_a_channel(self, ids: bool) -> None:
        """If reasoning is a message of its own (gpt-oss), the next message is opened as well."""
        tokenizer = PieceTokenizer(OutputParser.named("gpt-oss").format.special_tokens)
        parser = OutputParser.named("gpt-oss", tokenizer=tokenizer if ids else None)
        closed = "<|end|><|start|>assistant<|channel|>final<|message|>"

        class Thinking_(Scripted):
            async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
                self.jobs.append(job)
                thinks = "<|channel|>analysis<|message|>" + "hm " * 50
                text = "Answer." if closed in str(job.prompt) else thinks
                for piece, token in zip(tokenizer.pieces(text), tokenizer.encode(text), strict=True):
                    yield EngineChunk(piece, [token] if ids else ())
                yield EngineChunk(finish_reason="stop")

        template = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}<|start|>assistant")
        model = Model(name="m", engine=Thinking_(""), parser=parser, template=template)
        (ended,), usage = whole(model, ask(thinking=Thinking(budget=8)))
        assert ended.parsed.content == "Answer."
        assert (ended.parsed.reasoning or "").startswith("hm hm")
        assert usage.reasoning_tokens == 8
        assert ended.raw.endswith(closed + "Answer.")

    def test_a_budget_that_is_not_reached_changes_nothing(self) -> None:
        model = scripted("<think>\nhm\n</think>\n\nAnswer.")
        (ended,), _ = whole(model, ask(thinking=Thinking(budget=100)))
        assert (ended.parsed.reasoning, ended.parsed.content) == ("hm", "Answer.")

    def test_reasoning_that_begins_again_after_every_close_is_stopped(self) -> None:
        """An engine that ignores what the gateway wrote must not keep it busy for ever."""
        model = scripted("<think>\nHm.\n</think>\n\nSure.")
        (ended,), _ = whole(model, ask(thinking=Thinking(budget=0)))
        assert isinstance(model.engine, Scripted)
        assert (len(model.engine.jobs), ended.finish_reason) == (4, "length")

    def test_max_tokens_count_over_the_close(self) -> None:
        model = scripted(lambda job: "Answer. " * 9 if "</think>" in job.prompt else "<think>\n" + "hm " * 99, size=3)
        (ended,), _ = whole(model, ask(thinking=Thinking(budget=10), max_tokens=20))
        assert ended.finish_reason == "length"
        assert isinstance(model.engine, Scripted)
        assert model.engine.jobs[1].max_tokens == 7

    def test_off_by_the_templates_own_switch(self) -> None:
        model = scripted("Answer.")
        (ended,), _ = whole(model, ask(thinking=Thinking(effort="none")))
        assert isinstance(model.engine, Scripted)
        assert model.engine.jobs[0].prompt == ASKED + "<think>\n\n</think>\n\n"
        assert ended.parsed.content == "Answer."

    def test_reasoning_can_be_left_out(self) -> None:
        model = scripted("<think>\nhm\n</think>\n\nAnswer.")
        (ended,), usage = whole(model, ask(include_reasoning=False))
        assert ended.parsed.message() == {"role": "assistant", "content": "Answer."}
        assert usage.reasoning_tokens > 0
        assert text_of(streamed(model, ask(include_reasoning=False)), "reasoning") == ""


class TestLogprobs:
    @pytest.mark.parametrize("size", [1, 2, 3, 5])
    def test_of_the_tokens_of_the_content(self, size: int) -> None:
        output = f"<think>\nhm\n</think>\n\nThe answer is 4.\n{CALL}"
        model = scripted(output, size=size)
        (ended,), _ = whole(model, ask(tools=TOOLS, logprobs=0))
        assert ended.logprobs is not None
        said = "".join(token.token for token in ended.logprobs)
        assert "The answer is 4." in said
        assert len(said) < len("The answer is 4.") + 2 * size
        lines = streamed(model, ask(tools=TOOLS, logprobs=0))
        assert [t for line in lines if len(line) == 4 for t in line[3]] == [t.token for t in ended.logprobs]

    def test_each_with_its_text(self) -> None:
        lines = streamed(scripted("abc", size=1), ask(logprobs=0))
        assert lines[1:4] == [
            ["delta", 0, {"content": "a"}, ["a"]],
            ["delta", 0, {"content": "b"}, ["b"]],
            ["delta", 0, {"content": "c"}, ["c"]],
        ]


class TestChoices:
    def test_several(self) -> None:
        model = scripted(["one", "two", "three"], size=1)
        request = ask(n=3, sampling=Sampling(seed=5))
        ended, usage = whole(model, request)
        assert [(e.index, e.parsed.content) for e in ended] == [(0, "one"), (1, "two"), (2, "three")]
        assert (usage.prompt_tokens, usage.completion_tokens) == (7, 11)
        assert isinstance(model.engine, Scripted)
        assert [job.sampling.seed for job in model.engine.jobs] == [5, 6, 7]
        lines = streamed(scripted(["one", "two", "three"], size=1), request)
        assert [text_of(lines, choice=i) for i in range(3)] == ["one", "two", "three"]
        assert lines[-4:] == [*(["finish", i, "stop"] for i in range(3)), ["end", 11]]

    def test_one_that_fails_ends_all(self) -> None:
        model = scripted(["one \1", "tw\0o"], size=1)
        lines = streamed(model, ask(n=2))
        assert lines[-1] == ["error", 502, "the engine broke"]
        assert isinstance(model.engine, Scripted)
        assert sorted(model.engine.closed) == [f"{META.id}-0", f"{META.id}-1"]


class TestFailures:
    def test_before_the_first_piece(self) -> None:
        with pytest.raises(ApiError, match="the engine broke"):
            streamed(scripted("\0"), ask())
        with pytest.raises(ApiError, match="the engine broke"):
            whole(scripted("\0"), ask())

    def test_in_the_middle(self) -> None:
        """The parsed part is sent, including the open call, then the error."""
        lines = streamed(scripted(f"Sure. {CALL[:50]}\0", size=5), ask(tools=TOOLS))
        assert text_of(lines) == "Sure."
        assert lines[-2:] == [["finish", 0, "error"], ["error", 502, "the engine broke"]]

    def test_time_that_is_up(self) -> None:
        model = scripted("word \1", size=5)

        async def run() -> bytes:
            session = Session(model, ask(), META, timeout=120.0)
            frames = session.frames(Lines())
            first = await anext(frames)
            session._until = 0.0
            return b"".join([first, *[frame async for frame in frames]])

        lines = [json.loads(line) for line in asyncio.run(run()).splitlines()]
        assert text_of(lines) == "word "
        assert lines[-2:] == [
            ["finish", 0, "error"],
            ["error", 504, "the request took longer than 120 seconds"],
        ]
        assert isinstance(model.engine, Scripted)
        assert model.engine.closed == [f"{META.id}-0"]

    @pytest.mark.parametrize("n", [1, 2])
    def test_who_stops_reading_has_aborted(self, n: int) -> None:
        model = scripted("word " * 1000 + "\1", size=5)

        async def run() -> None:
            frames = Session(model, ask(n=n), META).frames(Lines())
            async for _ in frames:
                break
            await frames.aclose()

        asyncio.run(run())
        assert isinstance(model.engine, Scripted)
        assert sorted(model.engine.closed) == [f"{META.id}-{i}" for i in range(n)]

    def test_who_stops_reading_while_an_engine_cannot_stop(self) -> None:
        """Steps that nobody reads any more must not keep the error of another choice from ending the request."""
        model = scripted("word " * 1000, size=5)
        generate = model.engine.generate

        async def stubborn(job: Job) -> AsyncGenerator[EngineChunk, None]:
            if job.id.endswith("-0"):
                async for chunk in generate(job):
                    yield chunk
            try:
                await asyncio.Event().wait()
            finally:
                raise EngineError("the engine does not stop")

        model.engine.generate = stubborn  # type: ignore[method-assign]

        async def run() -> None:
            frames = Session(model, ask(n=2), META).frames(Lines())
            async for _ in frames:
                break
            for _ in range(100):  # until the steps that may wait are there
                await asyncio.sleep(0)
            async with asyncio.timeout(100):
                await frames.aclose()

        asyncio.run(run())


class TestTools:
    def test_one_call_if_asked_for(self) -> None:
        model = scripted(CALL + "\n" + CALL)
        (ended,), _ = whole(model, ask(tools=TOOLS, parallel_tool_calls=False))
        assert len(ended.parsed.tool_calls) == 1

    def test_none_offered_none_called(self) -> None:
        for request in (ask(), ask(tools=[]), ask(tools=TOOLS, tool_choice="none")):
            (ended,), _ = whole(scripted(CALL), request)
            assert ended.parsed.message() == {"role": "assistant", "content": CALL}

    def test_required_is_a_grammar(self) -> None:
        model = scripted(CALL)
        whole(model, ask(tools=TOOLS, tool_choice="required"))
        assert isinstance(model.engine, Scripted)
        grammar = model.engine.jobs[0].grammar
        assert grammar is not None
        assert (grammar.dialect, grammar.lazy) == ("gbnf", False)

    def test_allowed_tools_are_offered_alone_without_a_grammar(self) -> None:
        other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object"}}}
        allowed = [{"type": "function", "function": {"name": "other"}}]

        def choice(mode: str) -> Any:
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": allowed}}

        model = replace(
            scripted("x", takes=Takes()),
            template=ChatTemplate("{% for t in tools %}{{ t.function.name }};{% endfor %}"),
        )
        request = ask(tools=[*TOOLS, other], tool_choice=choice("auto"))
        whole(model, request)
        assert isinstance(model.engine, Scripted)
        assert model.engine.jobs[0].prompt == "other;"
        note = "tool_choice: the model is shown the allowed tools only, because the engine takes no grammar"
        assert request.notes.texts == [note]

    @pytest.mark.parametrize("mode", ["named", "required", "allowed"])
    def test_without_a_grammar_the_opening_of_a_call_forces_it(self, mode: str) -> None:
        other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object"}}}
        named = {"type": "function", "function": {"name": "f"}}
        choice: Any = {
            "named": named,
            "required": "required",
            "allowed": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}},
        }[mode]
        opening = '<tool_call>\n{"name": "' + ("" if mode == "required" else 'f", "arguments":')
        model = scripted(CALL.removeprefix(opening) + CALL, takes=Takes())
        request = ask(tools=[*TOOLS, other], tool_choice=choice, n=2)
        ended, _ = whole(model, request)
        assert isinstance(model.engine, Scripted)
        unforced = scripted("x", takes=Takes())
        whole(unforced, ask())
        assert isinstance(unforced.engine, Scripted)
        prompt = unforced.engine.jobs[0].prompt
        assert [job.prompt for job in model.engine.jobs] == [f"{prompt}{opening}"] * 2
        for one in ended:
            calls = [call.function.name for call in one.parsed.tool_calls]
            assert (calls, one.finish_reason) == (["f"] * (1 if mode == "named" else 2), "tool_calls")
        note = "tool_choice: the prompt ends with the opening of the call, because the engine takes no grammar"
        assert request.notes.texts[-1] == note

    def test_reasoning_that_the_prompt_has_opened_is_closed_before_a_forced_call(self) -> None:
        model = scripted(' {"x": "a"}}\n</tool_call>', takes=Takes())
        model = replace(model, template=ChatTemplate("<|im_start|>assistant\n<think>\n"))
        request = ask(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "f"}})
        (ended,), _ = whole(model, request)
        assert isinstance(model.engine, Scripted)
        assert model.engine.jobs[0].prompt.endswith('\n</think>\n\n<tool_call>\n{"name": "f", "arguments":')
        assert [call.function.arguments for call in ended.parsed.tool_calls] == ['{"x": "a"}']
        assert (ended.parsed.reasoning_content or "", ended.parsed.content) == ("", None)

    def test_a_format_without_an_opening_forces_no_call(self) -> None:
        model = scripted("x", takes=Takes())
        model = replace(model, parser=OutputParser.named("functionary_v3.2"))
        other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object"}}}
        with pytest.raises(ApiError) as caught:
            Session(model, ask(tools=[*TOOLS, other], tool_choice="required"), META)
        problem = "this engine takes no grammar, and the model's format has no fixed opening"
        assert caught.value.message == f"tool_choice: {problem}"

    @pytest.mark.parametrize(("enabled", "reasoning"), [(None, "closed"), (False, "off")])
    def test_a_grammar_begins_where_the_prompt_ends(self, enabled: bool | None, reasoning: str) -> None:
        """It begins outside reasoning, although outputs of this format begin inside it if no prompt is known."""
        model = scripted("{}", reasoning="step3")
        assert model.parser.format.reasoning is not None
        assert model.parser.format.reasoning.start == "open"
        wanted = {"type": "json_object"}
        whole(model, ask(response_format=wanted, thinking=Thinking(enabled=enabled)))
        assert isinstance(model.engine, Scripted)
        assert model.engine.jobs[0].grammar == model.parser.grammar(None, response_format=wanted, reasoning=reasoning)

    def test_markers_that_a_grammar_lets_be_spelled(self) -> None:
        """If the grammar has no token ids, a marker written with ordinary tokens counts as the marker."""
        tokenizer = PieceTokenizer(("<tool_call>", "</tool_call>"), spell=True)
        parser = OutputParser.named("hermes", tokenizer=tokenizer)
        ids = [(piece, [token]) for piece, token in zip(tokenizer.pieces(CALL), tokenizer.encode(CALL), strict=True)]

        class Spelling(Scripted):
            async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
                for piece, token in ids:
                    yield EngineChunk(piece, token)
                yield EngineChunk(finish_reason="stop")

        def calls(by_id: bool) -> int:
            made = replace(parser.grammar(TOOLS, "required"), by_id=by_id)
            grammars = OutputParser.named("hermes", tokenizer=tokenizer)
            grammars.grammar = lambda *_, **__: made  # type: ignore[method-assign]
            model = Model(name="m", engine=Spelling(""), parser=grammars, template=ChatTemplate(TEMPLATE))
            (ended,), _ = whole(model, ask(tools=TOOLS, tool_choice="required"))
            return len(ended.parsed.tool_calls)

        assert (calls(by_id=True), calls(by_id=False)) == (0, 1)

    @pytest.mark.parametrize(
        ("request_", "problem"),
        [
            (ask(extra={"nonsense": 1}), "nonsense: is not supported"),
            (ask(tool_choice="required"), "tool_choice: needs tools"),
        ],
    )
    def test_what_cannot_be_done_is_named(self, request_: Generation, problem: str) -> None:
        with pytest.raises(ApiError) as caught:
            Session(scripted("x"), request_, META)
        assert caught.value.message == problem


def test_a_prompt_that_cannot_fit_is_refused_before_it_is_tokenized() -> None:
    model = replace(scripted("x"), context_length=8, longest_token=4)
    with pytest.raises(ApiError) as caught:
        Session(model, Generation(prompt="x" * 33), META)
    assert caught.value.message == "prompt: 33 characters do not fit into the context of 8 tokens"
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(ApiError) as caught:
        Session(model, Generation(prompt=[1] * 9), META)
    assert caught.value.message == "prompt: 9 tokens do not fit into the context of 8 tokens"
    Session(model, Generation(prompt="x" * 32), META)


# -- Fields of other servers ------------------------------------------------------------------------------------------


def test_a_stop_token_ends_the_output_and_is_no_part_of_it() -> None:
    engine = replay("hermes")
    model = Model(name="m", engine=engine, parser=OutputParser.named("hermes"), template=engine.template())
    (ended,), _ = whole(model, ask())
    text = ended.parsed.content
    assert text is not None
    ids = engine.tokenizer.encode(text)
    stop = next(i for i in ids[3:] if i not in ids[:3])
    (ended,), usage = whole(model, ask(sampling=Sampling(stop_token_ids=[stop])))
    assert ended.parsed.content == engine.tokenizer.decode(ids[: ids.index(stop)])
    assert ended.finish_reason == "stop"
    assert usage.completion_tokens == ids.index(stop)


def test_settings_that_the_engine_does_not_know_are_noted() -> None:
    request = ask(sampling=Sampling(min_tokens=3, ignore_eos=True, stop_token_ids=[]))
    session = Session(scripted("x"), request, META)
    assert session.request.sampling == Sampling(min_tokens=None, ignore_eos=None, stop_token_ids=[])
    assert request.sampling == Sampling(min_tokens=3, ignore_eos=True, stop_token_ids=[])  # another model may take them
    assert request.notes.texts == [
        "min_tokens: this engine does not know it; ignored",
        "ignore_eos: this engine does not know it; ignored",
    ]


def test_a_restriction_that_the_engine_cannot_follow_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        Session(scripted("x"), ask(constraint=Constraint("regex", "a+", "guided_regex")), META)
    assert caught.value.message == "guided_regex: this engine takes no regex"


def test_reasoning_settings_of_a_model_without_reasoning_are_noted() -> None:
    request = ask(thinking=Thinking(enabled=True, effort="high", budget=5))
    model = replace(scripted("x"), parser=OutputParser.named("passthrough"))
    Session(model, request, META)
    assert request.notes.texts == [
        "thinking_budget: the gateway cannot close the reasoning of this model's format; ignored",
        "reasoning_effort: the model's template has no setting for it; ignored",
    ]


class TestJsonByThePrompt:
    """Engines that take no grammar are asked for JSON by the prompt."""

    SCHEMA: ClassVar[Any] = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
    }
    NOTE = "response_format: the prompt asks for JSON, because the engine takes no grammar"

    def model(self, *outputs: str, **settings: Any) -> Model:
        return scripted(list(outputs), takes=Takes(logprobs=True), **settings)

    def wanted(self, **fields: Any) -> Generation:
        schema = {"name": "answer", "schema": self.SCHEMA}
        return ask(response_format={"type": "json_schema", "json_schema": schema}, **fields)

    def test_the_last_message_of_the_user_asks_for_it(self) -> None:
        model, request = self.model('{"n": 2}'), self.wanted()
        [ended], usage = whole(model, request)
        assert ended.parsed.content == '{"n": 2}'
        assert request.notes.texts == [self.NOTE]
        schema = json.dumps(self.SCHEMA, separators=(",", ":"))
        question = f"Hi\n\nAnswer with nothing but JSON that follows this JSON schema:\n{schema}"
        assert model.engine.jobs[0].prompt == f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
        assert (usage.prompt_tokens, usage.completion_tokens) == (7, 3)

    @pytest.mark.parametrize(
        ("wrong", "problem"),
        [
            ("The answer is 2.", "$: not JSON: Expecting value at character 0"),
            ('{"m": 2}', "$.n: is required"),
            ('{"n": 0}', "$.n: 0 is less than the minimum of 1"),
            ("[1]", "$: expected object, got an array"),
        ],
    )
    def test_a_wrong_answer_is_asked_for_again(self, wrong: str, problem: str) -> None:
        for produce in (streamed, whole):
            model, request = self.model(wrong, f"<think>\nHm.\n</think>\n\n{wrong}", '{"n": 3}'), self.wanted()
            found = produce(model, request)  # type: ignore[operator]
            if produce is streamed:
                assert text_of(found) == '{"n": 3}'
                assert text_of(found, "reasoning") == ""
            else:
                [ended], usage = found
                assert ended.parsed.content == '{"n": 3}'
                assert usage.prompt_tokens == 21
            first, second, third = (job.prompt for job in model.engine.jobs)
            again = f"Your answer cannot be used: {problem}. Answer again, with nothing but the JSON."
            ask_again = f"<|im_start|>user\n{again}<|im_end|>\n<|im_start|>assistant\n"
            told = f"{wrong}<|im_end|>\n{ask_again}"
            assert second == first + told
            assert third == second + told
            assert request.notes.texts == [self.NOTE]

    def test_prompts_of_further_attempts_are_rendered_in_a_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """They may be long: rendering one must not stop other streams."""
        threads: list[str] = []
        render = ChatTemplate.render

        def named(self: ChatTemplate, *args: Any, **kwargs: Any) -> str:
            threads.append(threading.current_thread().name)
            return render(self, *args, **kwargs)

        monkeypatch.setattr(ChatTemplate, "render", named)
        whole(self.model("No.", '{"n": 3}'), self.wanted())
        assert [name.rstrip("01").rstrip("_") for name in threads] == ["MainThread", "untemplate-work"]

    def test_the_third_answer_is_sent_as_it_is_with_a_note(self) -> None:
        model, request = self.model("No."), self.wanted()
        [ended], _ = whole(model, request)
        assert ended.parsed.content == "No."
        assert len(model.engine.jobs) == 3
        problem = "$: not JSON: Expecting value at character 0"
        assert request.notes.texts == [
            self.NOTE,
            f"response_format: the answer is not the JSON that was asked for: {problem}",
        ]

    @pytest.mark.parametrize("size", [1, 3, 1000])
    @pytest.mark.parametrize("token_ids", [False, True])
    def test_a_fence_around_the_answer_is_removed(self, size: int, token_ids: bool) -> None:
        text = '<think>\nHm.\n</think>\n\n```json\n{"n": 2}\n```'
        [ended], _ = whole(self.model(text, size=size), self.wanted(token_ids=token_ids))
        assert (ended.parsed.reasoning_content, ended.parsed.content, ended.raw) == ("Hm.", '{"n": 2}', text)
        lines = streamed(self.model(text, size=size), self.wanted(token_ids=token_ids))
        assert (text_of(lines, "reasoning"), text_of(lines)) == ("Hm.", '{"n": 2}')

    def test_a_call_is_an_answer(self) -> None:
        model, request = self.model(CALL), self.wanted(tools=TOOLS)
        [ended], _ = whole(model, request)
        assert ended.finish_reason == "tool_calls"
        assert "If you do not call a tool, answer with nothing but JSON" in model.engine.jobs[0].prompt
        assert len(model.engine.jobs) == 1

    def test_an_answer_that_was_cut_is_not_asked_for_again(self) -> None:
        for more in ({"max_tokens": 1}, {"stop": ("2",)}):
            model = self.model('{"n": 2}')
            whole(model, self.wanted(**more))
            assert len(model.engine.jobs) == 1

    def test_each_choice_is_checked(self) -> None:
        model = self.model("No.", "No.", '{"n": 1}', '{"n": 2}', size=1000)
        ended, _ = whole(model, self.wanted(n=2))
        assert sorted(str(one.parsed.content) for one in ended) == ['{"n": 1}', '{"n": 2}']

    def test_any_object(self) -> None:
        model = self.model("[1]", "{}")
        [ended], _ = whole(model, ask(response_format={"type": "json_object"}))
        assert ended.parsed.content == "{}"
        assert model.engine.jobs[0].prompt.count("Answer with nothing but one JSON object") == 1

    @pytest.mark.parametrize(
        ("schema", "problem"),
        [
            (
                {"type": "integer", "minimum": "x"},
                'response_format: its schema is not valid: "x" is not of type "number"',
            ),
            (
                {"enum": ["x" * 70_000]},
                "response_format: the schema has 70013 bytes; without a grammar, at most 65536 are possible",
            ),
        ],
    )
    def test_a_schema_that_cannot_be_used_is_refused(self, schema: Any, problem: str) -> None:
        wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        with pytest.raises(ApiError) as error:
            whole(self.model("{}"), ask(response_format=wanted))
        assert (error.value.status, error.value.message) == (400, problem)

    def test_a_schema_with_patterns_is_checked_in_another_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        jobs = []

        async def run(job: bytes, *arguments: Any) -> Any:
            jobs.append(job)
            return await Workers.run(json_answers._WORKERS, job, *arguments)

        monkeypatch.setattr(json_answers._WORKERS, "run", run, raising=False)
        schema = {"type": "string", "pattern": "^a+$"}
        wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        [ended], _ = whole(self.model('"b"', '"aa"'), ask(response_format=wanted))
        assert (ended.parsed.content, len(jobs)) == ('"aa"', 3)
        schema["pattern"] = "("
        with pytest.raises(ApiError, match="response_format: its schema is not valid"):
            whole(self.model("{}"), ask(response_format=wanted))

    def test_a_check_without_end_is_ended(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(json_answers, "_PATIENCE", 0.0)
        wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"pattern": "a"}}}
        with pytest.raises(ApiError, match="response_format: too large or too complex to be checked"):
            whole(self.model("{}"), ask(response_format=wanted))

    def test_an_engine_that_fails_in_the_second_answer_fails_the_request(self) -> None:
        with pytest.raises(ApiError, match="the engine broke"):
            whole(self.model("No.", '{"n"\0'), self.wanted())


def test_an_output_without_an_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "_LONGEST", 100)
    session = Session(scripted("x" * 1_000_000), ask(), META)
    with pytest.raises(ApiError) as caught:
        asyncio.run(session.whole())
    assert caught.value.message == "the output has more than 100 characters"
    (ended,) = session.ended
    assert len(ended.parsed.content or "") <= 100


@pytest.mark.parametrize(
    "delta",
    [
        DeltaMessage(content="x" * 60),
        DeltaMessage(reasoning="x" * 60),
        DeltaMessage(tool_calls=[DeltaToolCall(index=0, function=DeltaFunctionCall(name="f", arguments="x" * 59))]),
    ],
    ids=["content", "reasoning", "arguments"],
)
def test_what_the_server_parsed_counts_as_output(monkeypatch: pytest.MonkeyPatch, delta: DeltaMessage) -> None:
    monkeypatch.setattr(session_module, "_LONGEST", 100)
    model = scripted("")

    async def parsed(job: Job) -> Any:
        while True:
            yield EngineChunk(delta=delta)

    monkeypatch.setattr(model.engine, "generate", parsed)
    with pytest.raises(ApiError) as caught:
        asyncio.run(Session(model, ask(), META).whole())
    assert caught.value.code == "output_too_long"


class Timed(Scripted):
    """Measures itself."""

    async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        async for chunk in super().generate(job):
            if chunk.usage is not None:
                chunk.usage.prompt_ns, chunk.usage.completion_ns = 40, 60
            yield chunk


def test_times_are_those_of_the_engine() -> None:
    """Its own, where it measures them: chunks may wait in a buffer until they are read."""
    _, usage = whole(replace(scripted("x"), engine=Timed("One.")), ask())
    assert (usage.prompt_ns, usage.completion_ns) == (40, 60)
    _, usage = whole(scripted("One."), ask())
    assert usage.completion_ns > 60
