"""Bodies converted to structs: every error names the field and what is allowed there."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from untemplate_gateway.errors import ApiError
from untemplate_gateway.protocols.fields import Closed, Ignored, Open, about, describe, fields_of, read_as, unknown


class Left(Closed, tag_field="type", tag="left"):
    y: str


class Right(Open, tag_field="type", tag="right"):
    y: str


class Inner(Closed):
    y: str | None = None
    skipped: Ignored = None


class Body(Open):
    needed: str = ""
    text: str | None = None
    filled: Annotated[str, Meta(min_length=1)] | None = None
    choice: Literal["a", "b"] | None = None
    one: Literal["a"] | None = None
    nothing: Annotated[Literal[""] | None, about("Not supported.", refused="no: {got}")] = None
    flag: bool | None = None
    share: Annotated[Annotated[float, Meta(ge=0, le=1)] | None, about("A share.")] = None
    count: Annotated[Annotated[int, Meta(ge=0, le=1 << 31)] | None, about("A count.")] = None
    seed: Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)] | None = None
    number: float | str | None = None
    texts: Annotated[list[str], Meta(min_length=1, max_length=2)] | None = None
    shares: dict[str, Annotated[float, Meta(ge=0, le=1)]] | None = None
    inner: Inner | None = None
    inners: list[Inner] | None = None
    either: Annotated[str | list[Left | Right] | None, about("Both.", expected="a string or sides")] = None
    mixed: bool | Literal["x", "y"] | dict[str, Any] | None = None
    left: Left | None = None
    refused: Annotated[None, about("Not supported.", refused="is not possible here")] = None


class Required(Open):
    a: str
    b: Inner


WRONG: list[tuple[dict[str, Any], str, bool]] = [
    ({"text": 1}, "text: must be a string, got a number", False),
    ({"filled": ""}, "filled: must not be empty", False),
    ({"choice": "text"}, "choice: must be one of a, b, got 'text'", False),
    ({"choice": "\ud800"}, "choice: must be one of a, b, got '\\ud800'", False),
    ({"one": "x" * 100}, f"one: must be a, got {'x' * 64!r}…", False),
    ({"nothing": "x"}, "nothing: no: 'x'", True),
    ({"nothing": 1}, "nothing: must be empty, got a number", False),
    ({"flag": 1}, "flag: must be true or false, got a number", False),
    ({"share": math.nan}, "share: must be a number from 0 to 1, got nan", False),
    ({"share": True}, "share: must be a number from 0 to 1, got a boolean", False),
    ({"count": 0.5}, "count: must be an integer from 0, got 0.5", False),
    ({"count": 10**10_000}, "count: must be an integer from 0, got a number beyond 64 bits", False),
    ({"count": "1"}, "count: must be an integer from 0, got a string", False),
    ({"seed": 1 << 63}, "seed: must be an integer from -9223372036854775808, got 9223372036854775808", False),
    ({"number": 10**400}, "number: Number out of range", False),
    ({"texts": {}}, "texts: must be a list of strings, got an object", False),
    ({"texts": [None]}, "texts[0]: must be a string, got null", False),
    ({"texts": []}, "texts: must not be empty", False),
    ({"texts": ["a"] * 3}, "texts: must have at most 2 items, got 3", False),
    ({"shares": {"a": 0.5, "b": 2}}, "shares.b: must be a number from 0 to 1, got 2", False),
    ({"shares": {"k" * 100: "x"}}, f"shares.{'k' * 64}…: must be a number from 0 to 1, got a string", False),
    ({"inner": []}, "inner: must be an object, got a list", False),
    ({"inner": {"x": 1}}, "inner.x: is not supported", True),
    ({"inner": {"y": 1}}, "inner.y: must be a string, got a number", False),
    ({"inners": {}}, "inners: must be a list of objects, got an object", False),
    ({"inners": [{}, None]}, "inners[1]: must be an object, got null", False),
    ({"either": 1}, "either: must be a string or sides, got a number", False),
    ({"either": [{"y": ""}]}, "either[0].type: is required", False),
    ({"either": [{"type": "up"}]}, "either[0].type: must be one of left, right, got 'up'", True),
    ({"either": [{"type": "left"}]}, "either[0].y: is required", False),
    ({"either": [{"type": 1}]}, "either[0].type: must be one of left, right, got 1", False),
    ({"left": {"type": "right", "y": ""}}, "left.type: must be left, got 'right'", True),
    ({"either": ["x"]}, "either[0]: must be an object, got a string", False),
    ({"mixed": 1}, "mixed: must be true or false or one of x, y or an object, got a number", False),
    ({"refused": {}}, "refused: is not possible here", True),
]


@pytest.mark.parametrize(("body", "message", "unsupported"), WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_fields_that_are_wrong(body: dict[str, Any], message: str, unsupported: bool):
    with pytest.raises(ApiError) as caught:
        read_as(Body, body)
    error = caught.value
    assert (error.status, error.message) == (400, message)
    assert error.param == message.partition(": ")[0]
    assert (error.code == "unsupported_parameter") is unsupported


def test_the_place_of_a_struct_in_the_body():
    with pytest.raises(ApiError) as caught:
        read_as(Inner, {"y": 1})
    assert caught.value.message == "y: must be a string, got a number"
    with pytest.raises(ApiError) as caught:
        read_as(Inner, [1])
    assert caught.value.message == "body: must be an object, got a list"


def test_a_wrong_field_is_reported_before_a_missing_one():
    with pytest.raises(ApiError) as caught:
        read_as(Required, {"b": 1})
    assert caught.value.message == "b: must be an object, got a number"
    with pytest.raises(ApiError) as caught:
        read_as(Required, {"b": {}, "a": None})
    assert caught.value.message == "a: is required"


def test_bodies_that_are_read():
    body = {
        "count": 3.0,
        "inner": {"unknown": None, "skipped": [1]},
        "either": [{"type": "left", "y": "", "unknown": None}, {"type": "right", "y": "", "more": 1}],
        "refused": None,
        "\ud800": 1,
    }
    assert read_as(Body, body) == Body(count=3, inner=Inner(skipped=[1]), either=[Left(y=""), Right(y="")])
    assert read_as(Body, {"share": 1, "nothing": ""}) == Body(share=1.0, nothing="")


def test_unknown_fields():
    assert unknown(Body, {"text": "x", "b": 2, "a": {"c": 1}, "n": None}) == {"b": 2, "a": {"c": 1}}
    assert unknown(Body, {"text": "x"}) == {}


def test_types_in_words():
    words = {field.encode_name: describe(field.type) for field in fields_of(Body)}
    assert words == {
        "needed": "a string",
        "text": "a string",
        "filled": "a string",
        "choice": "one of a, b",
        "one": "a",
        "nothing": "empty",
        "flag": "true or false",
        "share": "a number from 0 to 1",
        "count": "an integer from 0",
        "seed": "an integer from -9223372036854775808",
        "number": "a number or a string",
        "texts": "a list of strings",
        "shares": "an object",
        "inner": "an object",
        "inners": "a list of objects",
        "either": "a string or sides",
        "mixed": "true or false or one of x, y or an object",
        "left": "an object",
        "refused": "null",
    }
