"""Fake servers: the way to force a text is found, a right server has no failure, and every planted fault is found.

SGLang, TensorRT-LLM, Ollama and old vLLM are known from their documentation only; the real vLLM and llama.cpp are
tested by `benchmarks/parity.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from .fakes import SAID, fake
from .hostile import serving
from .test_hostile import check

WAYS = {
    "vllm": "choice",
    "vllm before 0.11": "guided_choice",
    "sglang": "structural_tag",
    "sglang with outlines": "regex",
    "sglang with ebnf": "ebnf",
    "tensorrt-llm": "response_format.regex",
    "llama.cpp": "grammar",
    "ollama": "",
}


@pytest.mark.parametrize("kind", WAYS)
def test_the_way_is_found_and_nothing_fails(kind: str) -> None:
    with serving(fake(kind)) as server:
        report = check(server.url, only=("given/rendered/",))
    assert (report.capabilities.way, report.capabilities.apis) == (WAYS[kind], ("chat",))
    assert report.capabilities.server == kind.split(" ")[0]
    wanted = {"pass"} if WAYS[kind] else {"cannot"}
    assert {(result.id, result.verdict) for result in report.results if result.verdict not in wanted} == set()


def no_calls(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "tool_calls": []}


def stop_with_calls(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "finish_reason": "stop"}


def arguments_as_object(message: dict[str, Any]) -> dict[str, Any]:
    for call in message.get("tool_calls") or ():
        call["function"]["arguments"] = {}
    return message


def nothing(message: dict[str, Any]) -> dict[str, Any]:
    if "quokkas" in (message.get("content") or ""):  # the words by which a way is found
        return message
    return {"role": "assistant", "content": None, "finish_reason": "stop"}


WHOLE = {
    no_calls: "given/rendered/one call/whole: 1 call expected, no calls came",
    stop_with_calls: "given/rendered/one call/whole: finish_reason is 'stop', expected 'tool_calls'",
    arguments_as_object: "given/rendered/one call/whole: the arguments of a call are dict, not JSON text",
    nothing: "given/rendered/plain/whole: content differs: '' came, 'Plain words, nothing else.' expected",
}


@pytest.mark.parametrize("fault", WHOLE, ids=lambda fault: fault.__name__)
def test_a_fault_of_whole_responses_is_found(fault: Any) -> None:
    with serving(fake("vllm", whole=fault)) as server:
        report = check(server.url, only=("given/rendered/",))
    failed = [f"{result.id}: {result.reason}" for result in report.results if result.verdict == "fail"]
    assert WHOLE[fault] in failed


def name_again(delta: dict[str, Any]) -> dict[str, Any]:
    for part in delta.get("tool_calls") or ():
        part["function"]["name"] = "get_weather"
    return delta


def first_index(delta: dict[str, Any]) -> dict[str, Any]:
    for part in delta.get("tool_calls") or ():
        part["index"] += 1
    return delta


def no_content(delta: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in delta.items() if key != "content"}


DELTA = {
    name_again: ("given/rendered/one call/stream", "the name of call 0 is sent twice"),
    first_index: ("given/rendered/one call/stream", "a delta has the call index 1 after 0 calls"),
    no_content: (
        "given/rendered/plain/stream",
        "streamed, the message is another one than whole: "
        "content differs: '' came, 'Plain words, nothing else.' expected",
    ),
}


@pytest.mark.parametrize("fault", DELTA, ids=lambda fault: fault.__name__)
def test_a_fault_of_streams_is_found(fault: Any) -> None:
    with serving(fake("vllm", delta=fault)) as server:
        report = check(server.url, only=("given/rendered/",))
    failed = {result.id: result.reason for result in report.results if result.verdict == "fail"}
    assert DELTA[fault][0] in failed
    assert failed[DELTA[fault][0]] in (
        DELTA[fault][1],
        "content differs: '' came, 'Plain words, nothing else.' expected",
    )
    assert not any(name.endswith("/whole") for name in failed)


def test_the_first_difference_of_a_stream_is_shown() -> None:
    def drops_digits(delta: dict[str, Any]) -> dict[str, Any]:
        for part in delta.get("tool_calls") or ():
            text = part["function"].get("arguments") or ""
            part["function"]["arguments"] = text.replace("3", "")
        return delta

    with serving(fake("vllm", delta=drops_digits)) as server:
        report = check(server.url, only=("given/rendered/two calls",))
    whole, stream = report.results
    assert (whole.verdict, stream.verdict) == ("pass", "fail")
    assert stream.reason == (
        "the arguments of call 1 differ: 'y\": \"Oslo\", \"days\": }' came, "
        "'y\": \"Oslo\", \"days\": 3}' expected"
    )  # fmt: skip
    assert stream.first_difference is not None
    assert "}" in stream.first_difference["delta"]["tool_calls"][0]["function"]["arguments"]


def test_raw_outputs_are_read_again() -> None:
    """Where the log probabilities show the raw output, the message is compared with untemplate's reading of it."""

    def shorter(message: dict[str, Any]) -> dict[str, Any]:
        return {**message, "content": (message.get("content") or "")[:-1]}

    results = []
    for fault in (None, shorter):
        with serving(fake("vllm", whole=fault)) as server:
            results += check(server.url, only=("behaviour/model luck",)).results
    right, wrong = results
    assert (right.verdict, right.counts["read as untemplate reads the raw text"]) == ("pass", "5 of 5 (57–100 %)")
    assert (wrong.verdict, wrong.reason) == ("soft", "5 of 5 outputs are read in another way")


# -- Starts, cuts, and the raw text -------------------------------------------------------------------------------

BOTH = "hermes+qwen3"


def test_prompts_of_records_prefixes_and_cuts_are_forced() -> None:
    with serving(fake("vllm", shows=True)) as server:
        report = check(server.url, format=BOTH, only=("given/",))
    found = report.capabilities
    assert (found.way, found.continues, found.token_ids) == ("choice", "continue_final_message", True)
    assert [one for one in report.results if one.verdict in ("soft", "fail")] == []
    passed = {one.id for one in report.results if one.verdict == "pass"}
    names = ("continued/plain", "hermes/think-open-in-prompt", "hermes/think-closed-in-prompt", "hermes/cut-in-opener")
    assert {f"given/{name}/{kind}" for name in names for kind in ("whole", "stream")} <= passed


def test_a_record_with_a_prompt_of_its_own_needs_one_like_it() -> None:
    with serving(fake("vllm")) as server:
        report = check(server.url, format=BOTH, only=("given/hermes/think-open-in-prompt",))
    reason = "the text begins after a prompt of its own, which this server cannot be given"
    assert [(one.verdict, one.reason) for one in report.results] == [("cannot", reason)] * 2


def test_a_cut_needs_token_ids() -> None:
    with serving(fake("vllm")) as server:
        report = check(server.url, format=BOTH, only=("given/hermes/cut-in-arguments",))
    reason = "this server does not report the tokens after which the output has to be cut"
    assert [(one.verdict, one.reason) for one in report.results] == [("cannot", reason)] * 2


def test_a_cut_call_that_looks_whole_is_found() -> None:
    def claims(message: dict[str, Any]) -> dict[str, Any]:
        return {**message, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}

    with serving(fake("vllm", whole=claims, shows=True)) as server:
        report = check(server.url, format=BOTH, only=("given/hermes/cut-in", "given/hermes/length-keeps-length"))
    failed = {one.id: one.reason for one in report.results if one.verdict == "fail" and one.id.endswith("/whole")}
    assert failed == {
        "given/hermes/cut-in-arguments/whole": "a cut output came with the finish_reason 'tool_calls'",
        "given/hermes/cut-in-name/whole": "a cut output came with the finish_reason 'stop'",
        "given/hermes/cut-in-opener/whole": "a cut output came with the finish_reason 'stop'",
    }


def test_a_server_may_return_the_whole_of_a_continued_message() -> None:
    def whole(message: dict[str, Any]) -> dict[str, Any]:
        said = message.get("content") or ""
        return {**message, "content": f"Plain words,{said}" if said == " nothing else." else said}

    with serving(fake("vllm", whole=whole, shows=True)) as server:
        report = check(server.url, format=BOTH, only=("given/continued/plain",))
    assert [one.verdict for one in report.results] == ["pass", "pass"]


def test_a_start_that_is_ignored_is_found() -> None:
    """A server that reads a continuation as if it began in content fails."""

    def content(message: dict[str, Any]) -> dict[str, Any]:
        reasoning = message.pop("reasoning_content", None)
        return {**message, "content": (reasoning or "") + (message.get("content") or "")}

    with serving(fake("vllm", whole=content, shows=True)) as server:
        report = check(server.url, format=BOTH, only=("given/continued/reasoning",))
    failed = {one.id: one.reason for one in report.results if one.verdict == "fail"}
    assert failed["given/continued/reasoning/whole"] == "reasoning differs: '' came, 'make four.' expected"


def test_texts_without_calls_are_forced_without_tools() -> None:
    """llama.cpp refuses grammars in requests with tools."""
    with serving(fake("llama.cpp", refuses=True)) as server:
        report = check(server.url, format=BOTH, only=("given/rendered/",))
    assert (report.capabilities.way, report.capabilities.way_without_tools) == ("", "grammar")
    verdicts = {one.id: one.verdict for one in report.results}
    assert [verdicts[f"given/rendered/reasoning/{kind}"] for kind in ("whole", "stream")] == ["pass", "pass"]
    assert verdicts["given/rendered/one call/whole"] == "cannot"


def test_chat_is_compared_with_the_raw_text_of_completions() -> None:
    def shorter(message: dict[str, Any]) -> dict[str, Any]:
        return {**message, "content": (message.get("content") or "")[:-1]}

    found = []
    for fault in (None, shorter):
        with serving(fake("vllm", whole=fault, shows=True)) as server:
            found += check(server.url, format=BOTH, only=("behaviour/raw text/content",)).results
    right, wrong = found
    assert (right.verdict, right.reason, right.raw) == ("pass", "", SAID)
    assert (wrong.verdict, wrong.reason) == (
        "fail",
        "whole, content differs: 'g was asked for here' came, 'g was asked for here.' expected",
    )


def test_raw_text_without_token_ids_or_usage_is_not_judged() -> None:
    """The outputs of two requests may differ; nothing shows that they do not."""

    def uncounted(path: str, request: dict[str, Any]) -> bytes:
        ids = {key: value for key, value in request.items() if key != "return_token_ids"}
        return fake("vllm", shows=True)(path, ids).replace(b'"usage"', b'"spent"')

    with serving(uncounted) as server:
        report = check(server.url, format=BOTH, only=("behaviour/raw text/content",))
    reason = "the server reports neither token ids nor usage, so the two outputs may differ"
    assert [(one.verdict, one.reason) for one in report.results] == [("cannot", reason)]


def test_checks_at_the_same_time_have_the_same_results() -> None:
    reports = []
    for parallel in (1, 6):
        with serving(fake("vllm", shows=True)) as server:
            reports.append(check(server.url, format=BOTH, only=("given/hermes/",), parallel=parallel))
    one, many = ([(result.id, result.verdict) for result in report.results] for report in reports)
    assert one == many
    assert len(one) > 80
