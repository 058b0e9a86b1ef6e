"""The JSON scanner: the accepted texts, the place where it stops, and that neither splits nor copies change either."""

from __future__ import annotations

import copy
import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untemplate import OutputParser
from untemplate._internal.jsontext import lexical
from untemplate._internal.jsontext.equality import equal_texts
from untemplate._internal.jsontext.scanner import (
    ANYTHING,
    AT_STRING,
    AT_WORD,
    BROKEN,
    ENDED,
    IN_STRING,
    IN_WORD,
    SEPARATOR,
    JsonScanner,
    flat_text,
)
from untemplate._internal.jsontext.well_formed import is_json

PIECES = [*'[]{},:"\\', '"a"', '"a":', "1", "-", "true", "tru", "\\u00e9", "é", " ", "\n", "\u00a0", "1.5", "{}", "[]"]
soup = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)


def lenient(parts: list[str]) -> tuple[int, int, list[str]]:
    """Scan the parts in turn, each with a copy of the scanner; return where and how it stopped."""
    scanner = JsonScanner(strict=False)
    done = 0
    for part in parts:
        scanner = copy.deepcopy(scanner)
        pos = scanner.scan(part, 0)
        done += pos
        if scanner.state in (ENDED, BROKEN):
            break
        assert pos == len(part)
    return done, scanner.state, scanner.closers


@settings(max_examples=500)
@given(soup, st.lists(st.integers(0, 40), max_size=4))
def test_a_lenient_scan_is_the_same_however_the_text_is_split(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    parts = [text[a:b] for a, b in itertools.pairwise(places)]
    assert lenient(parts) == lenient([text]) == lenient(list(text))


@settings(max_examples=300)
@given(st.recursive(st.none() | st.text(max_size=5), lambda v: st.lists(v) | st.dictionaries(st.text(), v)))
def test_a_lenient_scan_ends_with_the_value(value: object) -> None:
    text = json.dumps(value)
    if text[0] in '[{"':
        assert lenient([text + ', "more"'])[:2] == (len(text), ENDED)


PIECES = ['"', '"a"', '"b": ', "\\", ",", ":", " ", "\n", "\u00a0", "a", "1", "<", "}", "[", "-"]


@settings(max_examples=500)
@given(
    st.sampled_from([ANYTHING, IN_STRING, IN_WORD, SEPARATOR]),
    st.sampled_from(["", "<[", "a-"]),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join),
)
def test_flat_text_is_read_as_a_scan_reads_it(state: int, word_heads: str, text: str) -> None:
    """The expressions say yes only to text that a scan reads in the same way, and they know the state after it."""
    inside, states, up_to_brace = flat_text(word_heads)[state]
    scanner = JsonScanner(word_heads=word_heads)
    scanner.state = state
    scanner.closers = bytearray(b"}")
    end = scanner.scan(text, 0)
    found = inside.match(text)
    if found is not None:
        assert (end, scanner.state, scanner.closers) == (len(text), states[found.lastindex or 0], b"}")
    else:
        assert end < len(text) or scanner.state >= AT_STRING or set(text) & set("\\[}")
    closed = up_to_brace.match(text)
    if closed is not None:
        assert (end, scanner.state) == (closed.end(), ENDED)
    else:
        assert scanner.state != ENDED


def strict(text: str) -> int:
    """Return the state after a strict scan of ``text``, whose strings and words are right."""
    scanner = JsonScanner(strict=True)
    pos = scanner.scan(text, 0)
    while scanner.state in (AT_STRING, AT_WORD):
        pattern = lexical.STRING_REST if scanner.state == AT_STRING else lexical.WORD
        found = pattern.match(text, pos + (text[pos] == '"'))
        assert found is not None
        scanner.pass_token()
        pos = scanner.scan(text, found.end())
    return scanner.state


@pytest.mark.parametrize("text", ['{"a": [1, {"b": null}], "c": {}}', "[]", " [ [ ] , { } ] ", '"a"', "1", '{"a":"b"}'])
def test_a_strict_scan_takes_json(text: str) -> None:
    assert strict(text) == ENDED


@pytest.mark.parametrize(
    "text",
    ["]", "}", ",", ":", "[1,]", '{"a":1,}', "[,1]", "[1 2]", '{"a" 1}', '{"a":}', "{1:2}",
     '{"a":1:2}', '{"a","b"}', "[1}",
     '{"a":1]', '["a":1]', '{"a"}'],
)  # fmt: skip
def test_a_strict_scan_stops_at_the_first_error(text: str) -> None:
    assert strict(text) == BROKEN


@pytest.mark.parametrize("number", ["0", "-0", "12", "-1.50", "1e5", "1E+05", "0.0e-1"])
def test_every_beginning_of_a_number_is_known(number: str) -> None:
    assert re.fullmatch(lexical.NUMBER, number)
    assert all(re.fullmatch(lexical.NUMBER_BEGUN, number[:i]) for i in range(len(number) + 1))


@pytest.mark.parametrize("text", ["01", "1٢", "١", ".5", "1.", "1.٥", "1e٣", "+1", "1_0", "NaN", "Infinity", "１"])
def test_what_is_no_number(text: str) -> None:
    assert re.fullmatch(lexical.NUMBER, text) is None
    assert not is_json(text)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("closing", ["}}\n</tool_call>", ", }}\n</tool_call>"])
def test_python_constants_are_not_json(constant: str, closing: str) -> None:
    raw = f'<tool_call>\n{{"name": "f", "arguments": {{"x": {constant}{closing}'
    (call,) = OutputParser.named("hermes").parse(raw).tool_calls
    assert call.status == "invalid_json"


def test_a_typed_value_that_is_a_python_constant_is_text() -> None:
    raw = (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="false">NaN'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    )
    (call,) = OutputParser.named("deepseek_v32").parse(raw).tool_calls
    assert (call.function.arguments, call.status) == ('{"x": "NaN"}', "ok")


def test_json_encoded_in_a_string_is_decoded_alike_however_it_comes() -> None:
    arguments = json.dumps({"a": "x" * 80 + '\n"é😀\\', "b": [1, 2], "c": "\ud800 \t/"})
    encoded = json.dumps(arguments).replace("/", "\\/").replace("x" * 80, "x" * 80 + "\\q")
    raw = f'<tool_call>\n{{"name": "f", "arguments": {encoded}}}\n</tool_call>'
    parser = OutputParser.named("hermes")
    expected = arguments.replace("x" * 80, "x" * 80 + "\\q")
    for size in (1, 2, 3, 7, 50, 100, len(raw)):
        stream = parser.stream(collect=True)
        for i in range(0, len(raw), size):
            stream.feed(raw[i : i + size])
        stream.finish()
        assert stream.result().tool_calls[0].function.arguments == expected


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ('{"x": 1, "y": [2.0]}', '{"y": [2], "x": 1.0}', True),
        ('{"x": true}', '{"x": 1}', False),
        ("[0]", "[false]", False),
        ('{"x": null}', "{}", False),
        ("[1, 2]", "[2, 1]", False),
        ('{"a": {"b": [true, "c"]}}', '{"a":{"b":[true,"\\u0063"]}}', True),
        ("not JSON", "not JSON", True),
        ("not JSON", "1", False),
        ("[" * 100_000, "[" * 100_001, False),
    ],
)
def test_texts_are_equal_if_their_values_are(a: str, b: str, equal: bool) -> None:
    assert (equal_texts(a, b), equal_texts(b, a)) == (equal, equal)
