"""Text that passes the guard can be parsed at every moment, and nothing of it is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untemplate_gateway.protocols.guard import ArgumentsGuard

jiter = pytest.importorskip("jiter")


def through(arguments: str, cut: int = 1) -> list[str]:
    guard = ArgumentsGuard()
    return [guard.feed(arguments[i : i + cut]) for i in range(0, len(arguments), cut)] + [guard.finish()]


BROKEN = [
    ("{a: 1}", '{"INVALID_JSON":"{a: 1}"}'),
    ("[1]", '{"INVALID_JSON":"[1]"}'),
    ('"x"', '{"INVALID_JSON":"\\"x\\""}'),
    ('{"a": oops}', '{"a":null,"INVALID_JSON":"{\\"a\\": oops}"}'),
    ('{"a" 1}', '{"a":null,"INVALID_JSON":"{\\"a\\" 1}"}'),
    ('{"a\n": 1}', '{"a":null,"INVALID_JSON":"{\\"a\\n\\": 1}"}'),
    ('{"a": "b\nc"}', '{"a": "b","INVALID_JSON":"{\\"a\\": \\"b\\nc\\"}"}'),
    ('{"a": "\\x"}', '{"a": "","INVALID_JSON":"{\\"a\\": \\"\\\\x\\"}"}'),
    ('{"a": "\\ud800x"}', '{"a": "","INVALID_JSON":"{\\"a\\": \\"\\\\ud800x\\"}"}'),
    ('{"a": 1,}', '{"a": 1,"INVALID_JSON":"{\\"a\\": 1,}"}'),
    ('{"a":,1}', '{"a":null,"INVALID_JSON":"{\\"a\\":,1}"}'),
    ('{"a": 01}', '{"a":null,"INVALID_JSON":"{\\"a\\": 01}"}'),
    ('{"a": [1, [2,]]}', '{"a": [1, [2]],"INVALID_JSON":"{\\"a\\": [1, [2,]]}"}'),
    ('{"a": {"b": [}}', '{"a": {"b": []},"INVALID_JSON":"{\\"a\\": {\\"b\\": [}}"}'),
    ('{"a": trA', '{"a":null,"INVALID_JSON":"{\\"a\\": trA"}'),
    ("{}}", '{"INVALID_JSON":"{}}"}'),
    ('{"a": 1} 2', '{"a": 1,"INVALID_JSON":"{\\"a\\": 1} 2"}'),
]


@pytest.mark.parametrize("cut", [1, 2, 1000])
@pytest.mark.parametrize(("arguments", "expected"), BROKEN, ids=[arguments for arguments, _ in BROKEN])
def test_broken_arguments_stand_in_a_member(arguments: str, expected: str, cut: int):
    assert "".join(through(arguments, cut)) == expected
    assert json.loads(expected)["INVALID_JSON"] == arguments


def test_what_is_held():
    assert through('{"a": 12, "b": "\\u00e9"}') == [
        *("{", '"', "a", '"', ":", "", "", "", " 12", "", ', "', "b", '"', ":", "", ' "'),
        *("", "", "", "", "", "\\u00e9", '"', "", "}"),
    ]


@pytest.mark.parametrize("arguments", ["", "{", '{"a": "b', '{"a": tr', '{"a": 1.', '{"a": "\\u00', '{"a": 1, '])
def test_arguments_that_were_cut_stay_a_beginning(arguments: str):
    assert "".join(through(arguments)) == arguments


def test_a_number_without_end():
    arguments = '{"a": ' + "1" * 5000
    found = json.loads("".join(through(arguments, 7)))
    assert found == {"a": None, "INVALID_JSON": arguments}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(value=st.dictionaries(st.text(max_size=4), JSON, max_size=4), ascii=st.booleans(), cut=st.integers(1, 5))
def test_json_comes_through_as_it_is(value: Any, ascii: bool, cut: int):
    for indent in (None, 1):
        arguments = json.dumps(value, ensure_ascii=ascii, indent=indent)
        assert "".join(through(arguments, cut)) == arguments


PIECES = st.sampled_from(
    [*'{}[]:,"\\ ', "\n", '"a"', '"a":', "1", "-", "true", "nul", "A", ".", "e", "\\u00e9", "\\ud83d", "\\ude00", "x"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES | st.characters(exclude_categories=["Cs"]), max_size=16).map("".join), st.integers(1, 4))
def test_clients_can_parse_it_at_every_moment(arguments: str, cut: int):
    arguments = '{"' + arguments
    sent = ""
    for piece in through(arguments, cut):
        sent += piece
        if sent:
            jiter.from_json(sent.encode(), partial_mode=True)
    if sent != arguments:
        assert json.loads(sent)["INVALID_JSON"] == arguments
