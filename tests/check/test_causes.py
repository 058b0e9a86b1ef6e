"""One fault of a server fails many checks, and is reported once, by its cause.

The faults are planted by a proxy between the checks and a right server.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from untemplate.check._model import Report
from untemplate.check._text import described

from .fakes import fake
from .hostile import events, http, serving
from .test_hostile import check

Json = dict[str, Any]


def _changed(answer: bytes, whole: Callable[[Json], Any], stream: Callable[[list[Json]], Any]) -> bytes:
    """Return a response of Chat Completions with a fault."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"event-stream" not in head:
        value = json.loads(body)
        found = whole(value)
        return found if isinstance(found, bytes) else http(200, value if found is None else found)
    chunks = [json.loads(line[6:]) for line in body.split(b"\n\n") if line.startswith(b"data: {")]
    found = stream(chunks)
    return found if isinstance(found, bytes) else events(*(chunks if found is None else found))


def proxied(whole: Callable[[Json], Any], stream: Callable[[list[Json]], Any]) -> Callable[..., bytes]:
    right = fake("vllm", shows=True)

    def answer(path: str, request: Json) -> bytes:
        found = right(path, request)
        if path != "/v1/chat/completions" or not found.startswith(b"HTTP/1.1 200") or b"quokkas" in found:
            return found
        return _changed(found, whole, stream)

    return answer


def nothing(_: Any) -> None:
    """Leave these responses as they are."""


def message(change: Callable[[Json], Any]) -> Callable[[Json], None]:
    def changed(value: Json) -> None:
        change(value["choices"][0]["message"])

    return changed


def calls(change: Callable[[Json], Any]) -> Callable[[Json], None]:
    def changed(value: Json) -> None:
        for call in value["choices"][0]["message"].get("tool_calls") or ():
            change(call)

    return changed


def deltas(change: Callable[[Json], Any]) -> Callable[[list[Json]], None]:
    def changed(chunks: list[Json]) -> None:
        for chunk in chunks:
            for choice in chunk["choices"]:
                change(choice["delta"])

    return changed


def parts(change: Callable[[Json], Any]) -> Callable[[list[Json]], None]:
    return deltas(lambda delta: [change(part) for part in delta.get("tool_calls") or ()])


def _finish(value: Json) -> None:
    if value["choices"][0]["finish_reason"] == "tool_calls":
        value["choices"][0]["finish_reason"] = "stop"


def _no_finish(chunks: list[Json]) -> None:
    for chunk in chunks:
        for choice in chunk["choices"]:
            choice["finish_reason"] = None


def _after_finish(chunks: list[Json]) -> list[Json]:
    return [*chunks, {"choices": [{"index": 0, "delta": {"content": "!"}, "finish_reason": None}]}]


def _as_content(one: Json) -> None:
    reasoning = one.pop("reasoning_content", None)
    if reasoning:
        one["content"] = reasoning + (one.get("content") or "")


def _calls_as_text(one: Json) -> None:
    for call in one.pop("tool_calls", None) or ():
        one["content"] = (one.get("content") or "") + json.dumps(call["function"])


def _set(key: str, value: Any) -> Callable[[Json], None]:
    return lambda one: one.__setitem__(key, value)


def _arguments(change: Callable[[str], Any]) -> Callable[[Json], None]:
    def changed(call: Json) -> None:
        call["function"]["arguments"] = change(call["function"].get("arguments") or "")

    return changed


def _as_texts(text: str) -> str:
    return json.dumps({key: str(value) for key, value in json.loads(text).items()})


def _first_key_lost(text: str) -> str:
    return json.dumps(dict(list(json.loads(text).items())[1:])) if len(json.loads(text)) > 1 else text


def _twice(one: Json) -> None:
    one["content"] = (one.get("content") or "") * 2 or None


def _second_lost(one: Json) -> None:
    one["tool_calls"] = (one.get("tool_calls") or [])[:1]


def _doubled(one: Json) -> None:
    found = one.get("tool_calls") or []
    one["tool_calls"] = [*found, *({**call, "id": call["id"] + "x"} for call in found)]


def _marked(one: Json) -> None:
    if one.get("content") and not one.get("tool_calls"):
        one["content"] += "<|im_end|>"


def _named(change: Callable[[str], str]) -> Callable[[Json], None]:
    def changed(call: Json) -> None:
        call["function"]["name"] = change(call["function"]["name"])

    return changed


def _only_named(part: Json) -> None:
    part["function"]["name"] = "get_weather"


def _other_id(part: Json) -> None:
    if not part["function"].get("name"):
        part["id"] = "another"


def _error(value: Json) -> bytes | None:
    called = value["choices"][0]["message"].get("tool_calls")
    return http(200, {"error": {"message": "out of memory"}}) if called else None


FAULTS: dict[str, tuple[Callable[[Json], Any], Callable[[list[Json]], Any], str]] = {
    "streamed calls repeat their names": (nothing, parts(_only_named), "stream"),
    "streamed calls change their ids": (nothing, parts(_other_id), "stream"),
    "streamed calls have wrong indices": (nothing, parts(lambda p: p.__setitem__("index", p["index"] + 1)), "stream"),
    "the first delta of a streamed call has no id": (nothing, parts(lambda p: p.pop("id", None)), "stream"),
    "streams do not end with [DONE]": (nothing, lambda chunks: events(*chunks, end=b""), "stream"),
    "streams have no finish reason": (nothing, _no_finish, "stream"),
    "deltas come after the finish reason": (nothing, _after_finish, "stream"),
    "events of streams are not JSON objects": (
        nothing,
        lambda chunks: events(*chunks[:1], end=b"data: {oops\n\ndata: [DONE]\n\n"),
        "stream",
    ),
    "streams end in an error": (nothing, lambda chunks: [*chunks[:1], {"error": {"message": "oops"}}], "stream"),
    "content is lost": (nothing, deltas(lambda delta: delta.pop("content", None)), "stream"),
    "arguments are dict, not JSON text": (calls(_arguments(json.loads)), nothing, "whole"),
    "arguments are encoded twice": (calls(_arguments(json.dumps)), nothing, "whole"),
    "arguments are cut": (calls(_arguments(lambda text: text[:-1])), nothing, "whole"),
    "arguments are lost": (calls(_arguments(lambda _: "{}")), nothing, "whole"),
    "values of arguments have another type": (calls(_arguments(_as_texts)), nothing, "whole"),
    "keys of arguments are lost": (calls(_arguments(_first_key_lost)), nothing, "whole"),
    "names of calls are cut": (calls(_named(lambda name: name[:-1])), nothing, "whole"),
    "names of calls are altered": (calls(_named(lambda name: "functions." + name)), nothing, "whole"),
    "calls are lost": (message(_set("tool_calls", [])), nothing, "whole"),
    "calls after the first are lost": (message(_second_lost), nothing, "whole"),
    "calls come twice": (message(_doubled), nothing, "whole"),
    "calls stay text in the message": (message(_calls_as_text), nothing, "whole"),
    "calls have no ids, or the same ones": (calls(_set("id", "call_1")), nothing, "whole"),
    "finish_reason is 'stop' where it is 'tool_calls'": (_finish, nothing, "whole"),
    "reasoning comes as content": (message(_as_content), nothing, "whole"),
    "content comes twice": (message(_twice), nothing, "whole"),
    "markup stays in content": (message(_marked), nothing, "whole"),
    "the role of messages is not assistant": (message(_set("role", "model")), nothing, "whole"),
    "errors come with the status 200": (_error, nothing, "whole"),
}


def _report(whole: Callable[[Json], Any], stream: Callable[[list[Json]], Any]) -> Report:
    with serving(proxied(whole, stream)) as server:
        return check(server.url, format="hermes+qwen3", only=("given/rendered/",))


def test_a_right_server_has_no_causes() -> None:
    assert _report(nothing, nothing).causes == []


@pytest.mark.parametrize("cause", FAULTS)
def test_a_fault_is_named_by_its_cause(cause: str) -> None:
    whole, stream, only = FAULTS[cause]
    report = _report(whole, stream)
    assert report.causes, [result.reason for result in report.results if result.verdict != "pass"]
    first = report.causes[0]
    assert (first.cause, first.only) == (cause, only), [(one.cause, len(one.ids)) for one in report.causes]
    assert sum(len(one.ids) for one in report.causes) == report.count("fail")


def test_a_cause_is_shown_once() -> None:
    report = _report(nothing, parts(_only_named))
    text = described(report)
    assert text.count("replay: curl") == len(report.causes) == 1
    count = len(report.causes[0].ids)
    assert f"fail   streamed calls repeat their names ({count} checks, streamed only)\n" in text
    assert "first difference: " in text or "raw: " in text


def test_a_right_stream_passes_where_the_whole_message_is_wrong() -> None:
    """The known text is the judge, not what came whole."""
    report = _report(message(_marked), nothing)
    verdicts = {result.id: result.verdict for result in report.results}
    assert verdicts["given/rendered/plain/whole"] == "fail"
    assert {verdict for name, verdict in verdicts.items() if name.endswith("/stream")} == {"pass"}


def test_an_error_under_the_status_200_fails_a_wrong_request() -> None:
    def answer(path: str, request: Json) -> bytes:
        found = fake("vllm", shows=True)(path, request)
        return found if b" 400 " not in found[:20] else http(200, {"error": {"message": "wrong"}})

    with serving(answer) as server:
        report = check(server.url, format="hermes+qwen3", only=("behaviour/errors/no messages",))
    assert [(one.verdict, one.reason) for one in report.results] == [
        ("fail", 'an error came with the status 200: {"message": "wrong"}')
    ]
