"""Repair: the repaired texts, the steps that are reported, and above all the texts that are left alone."""

import json
import re
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from untemplate import OutputParser, Policy
from untemplate._internal.jsontext.repair import MAX_LENGTH, Repair, nearest_name, repair_schema, repair_syntax
from untemplate._internal.schemas.validation import validate

from .work import lines_run

MANY = settings(deadline=None, max_examples=60)


# -- Syntax -------------------------------------------------------------------------------------------------------

SYNTAX = [
    # Brackets
    ('{"a": 1', '{"a": 1}', ["closed_brackets"]),
    ('{"a": [1, {"b": 2', '{"a": [1, {"b": 2}]}', ["closed_brackets"]),
    ('{"a": []', '{"a": []}', ["closed_brackets"]),
    ('{"a": [1, 2}', '{"a": [1, 2]}', ["closed_brackets"]),
    ('{"a": 1}}', '{"a": 1}', ["removed_brackets"]),  # langchain-qwq#30
    ('{"input": "*** Begin Patch\\n*** End Patch"}]', '{"input": "*** Begin Patch\\n*** End Patch"}',
     ["removed_brackets"]),  # ollama#17638
    ('{"path":"src/pipe.py","encoding":"utf-8"]}', '{"path":"src/pipe.py","encoding":"utf-8"}',
     ["removed_brackets"]),  # ollama#12064: invalid character ']' after object key:value pair
    ('{"a": [1}]', '{"a": [1]}', ["removed_brackets", "closed_brackets"]),
    # Commas
    ('{"a": 1,}', '{"a": 1}', ["removed_commas"]),
    ('{"a": [1, 2, ], }', '{"a": [1, 2 ] }', ["removed_commas"]),
    ('{"a": 1},\n', '{"a": 1}', ["removed_commas"]),
    ('{"a": 1,', '{"a": 1}', ["removed_commas", "closed_brackets"]),
    ('{"a": "b",]}', '{"a": "b"}', ["removed_commas", "removed_brackets"]),
    # Python (vllm-mlx#63)
    ("{'theme': 'dark', 'size': 14}", '{"theme": "dark", "size": 14}', ["double_quotes"]),
    ("{'a': [True, False, None]}", '{"a": [true, false, null]}', ["double_quotes", "python_literals"]),
    ("{'a': \"it's\", 'b': 'say \"hi\"'}", '{"a": "it\'s", "b": "say \\"hi\\""}', ["double_quotes"]),
    ("{'a': 'it\\'s \\x1b[0m'}", '{"a": "it\'s \\u001b[0m"}', ["double_quotes"]),
    ("{'a': 'it's'}", '{"a": "it\'s"}', ["double_quotes"]),
    ("{'a': 'the 'best' one'}", '{"a": "the \'best\' one"}', ["double_quotes", "escaped_quotes"]),
    ('{query: "x", max_results: 3}', '{"query": "x", "max_results": 3}', ["quoted_keys"]),
    # Control characters (kimi-cli#1378)
    ('{"command": "git commit -m \\"feat: x\n\n\tbody\\""}', '{"command": "git commit -m \\"feat: x\\n\\n\\tbody\\""}',
     ["escaped_controls"]),
    ('{"a": "\x00"}', '{"a": "\\u0000"}', ["escaped_controls"]),
    # Backslashes (mistral-vibe#216)
    ('{"path": "C:\\Users\\dev"}', '{"path": "C:\\\\Users\\\\dev"}', ["fixed_escapes"]),
    ('{"regex": "\\d+\\.\\x41"}', '{"regex": "\\\\d+\\\\.\\\\x41"}', ["fixed_escapes"]),
    ('{"a": "it\\\'s"}', '{"a": "it\'s"}', ["fixed_escapes"]),
    # Quotes in strings
    ('{"path": "a.py", "content": "env.get("KEY", "default")"}',
     '{"path": "a.py", "content": "env.get(\\"KEY\\", \\"default\\")"}', ["escaped_quotes"]),  # hermes-agent#36271
    ('{"q": "what is "AI"?", "n": 1}', '{"q": "what is \\"AI\\"?", "n": 1}', ["escaped_quotes"]),  # langchain4j#2907
    ('{"input": "{"key": "value"}"', '{"input": "{\\"key\\": \\"value\\"}"}',
     ["escaped_quotes", "closed_brackets"]),  # vllm#41739
    ('{"doc": "{"x": "1", "y": "2"}", "n": 1}', '{"doc": "{\\"x\\": \\"1\\", \\"y\\": \\"2\\"}", "n": 1}',
     ["escaped_quotes"]),
    ('{"a": ["say "x, y", z", "w"]}', '{"a": ["say \\"x, y\\", z", "w"]}', ["escaped_quotes"]),
    ('{"a": "say "x", "b": y"}', '{"a": "say \\"x\\", \\"b\\": y"}', ["escaped_quotes"]),
    # Wrappings
    ('```json\n{"a": 1}\n```', '{"a": 1}', ["removed_fence"]),
    ('```{"a": 1}', '{"a": 1}', ["removed_fence"]),
    ("``` python\n{'a': 1}```", None, []),
    ("```\n{'a': 1}```\n", '{"a": 1}', ["removed_fence", "double_quotes"]),
    ('"{\\n  \\"param\\": \\"max_connections\\"\\n}"', '{\n  "param": "max_connections"\n}',
     ["unwrapped_string"]),  # vllm#54964
    ('"\\"{\\\\\\"a\\\\\\": 1}\\""', '{"a": 1}', ["unwrapped_string"]),
    ('{\\"a\\": \\"b\\"}', '{"a": "b"}', ["unwrapped_string"]),
    ('"{"a": 1}"', '{"a": 1}', ["unwrapped_string"]),
    ("'{\"a\": 1}'", '{"a": 1}', ["unwrapped_string"]),
    ('"{\\"a\\": 1', '{"a": 1}', ["unwrapped_string", "closed_brackets"]),
    ('[{"input": 1.0}]', '{"input": 1.0}', ["unwrapped_list"]),  # ollama#17638
    ("[{'a': 1},]", '{"a": 1}', ["double_quotes", "removed_commas", "unwrapped_list"]),
    ('[{"a": 1', '{"a": 1}', ["closed_brackets", "unwrapped_list"]),
]  # fmt: skip

LEFT_ALONE = [
    # No object in it
    "", " ", "ls -R\n", "We must provide JSON arguments: empty", "null", "7", '"x"', "[]", "[1]", "```", '"', "'", "{",
    "[", "}", ",", '[{"a": 1}, {"b": 2}]', "[[{}]]",
    # Text that a repair would drop
    '{"a": 1} and more', 'Arguments: {"a": 1}', '{"a": 1}{"b": 2}', '{"a": 1 2}', '{"a" 1}', '{"a": 1, "b',
    '{"a": 1, // why\n "b": 2}', '{"a": 1} <|call|>', '{"a": 1, "b"}',
    # Values that a repair would invent
    '{"a":', '{"a": ', '{"a": 1, "b":}', '{"a": "', '{"a": [', '{"a": {', '{"a": [}', '{"a": 1,, "b": 2}', '{,}',
    '{"a": tru', '{"a": -', '{"a": 1.', '{"a": "\\u12', "{", '{"a": {"b"',
    # Strings without an end
    '{"city": "Par', '{"a": ["x", "y\\"z', '{"a": "b\\', '{"a": "b\\u12', "{'a': 'b", '{"args": ["-rf", "/ho',
    '"{\\"city\\": \\"Par"', '"{\\"city\\": \\"Par', '```json\n{"city": "Par', '[{"city": "Par',
    # Values that JSON does not have, and unquoted words
    '{"a": NaN}', '{"a": Infinity}', '{"a": 007}', '{"a": .5}', '{"a": 0x1F}', '{"a": (1, 2)}', "{'a', 'b'}",
    '{"keywords": PERCENTILE function}', '{"query": \\"foo\\"}', '{"a"=1}',
    # Two readings
    '{"a": "x" "b": 1}', '{"a": "x"\n "b": "y"}', '{"a": ["x" "y"]}', '{"a": ["x""y"]}', '{"city": "Paris}',
    '{"a": "x, "b": 1}', '{"a": "say "hi"}', '{"cmd": "echo "hi", "there": 1}', '{"size": "6" pipe"}',
    '{"a": "x",foo bar:"y"}', "{'a': 'the users' file'}", '{"a": "say "hi" and', '{"a\n": 1}',
    # A bracket is missing or superfluous somewhere (json_repair#173 has read this as [[…], …])
    '[{"type":"x","content":{"aaa":[{"d":"0"}],"bbb":[{"d":"0"}}]},{"type":"y"}]', '{"a": [1, "b": 2}',
    '{"a": [1]], "b": 2}', '{{"a": 1}}',
]  # fmt: skip


class TestSyntax:
    @pytest.mark.parametrize(("text", "arguments", "steps"), SYNTAX)
    def test_repaired(self, text: str, arguments: str | None, steps: list[str]) -> None:
        assert repair_syntax(text) == (None if arguments is None else Repair(arguments, tuple(steps)))

    @pytest.mark.parametrize("text", LEFT_ALONE)
    def test_left_alone(self, text: str) -> None:
        assert repair_syntax(text) is None

    @pytest.mark.parametrize(
        "text",
        ["{}", ' {"a" : 1.50 }\n', '{"query": "what\'s the weather"}', '{"a": "```", "b": "{\\"c\\": 1}", "a": 2}',
         '{"a": "\\ud800", "b": 1e999, "c": ' + "9" * 5000 + "}"],
    )  # fmt: skip
    def test_valid_objects_are_untouched(self, text: str) -> None:
        # atropos#478: replacing quotes wholesale has broken valid JSON with an apostrophe in it
        assert repair_syntax(text) is None

    def test_what_needs_no_change_keeps_its_bytes(self) -> None:
        text = '{ "n":12345678901234567890.123456789,"e" : 1.50e+1, "s":"\\u00e9\\/", "n":0,'
        assert repair_syntax(text) == Repair(text[:-1] + "}", ("removed_commas", "closed_brackets"))

    def test_length_is_bounded(self) -> None:
        text = '{"a": "' + "x" * MAX_LENGTH
        assert repair_syntax(text) is None
        assert repair_syntax(text[: MAX_LENGTH - 1] + '"') is not None

    def test_depth_is_bounded(self) -> None:
        assert repair_syntax('{"a":' * 100_000) is None
        assert repair_syntax("[" * 100_000) is None
        assert repair_syntax('{"a":' * 99 + "1") == Repair('{"a":' * 99 + "1" + "}" * 99, ("closed_brackets",))
        text = '{"a": 1,}'
        for _ in range(9):
            text = json.dumps(text)
        assert repair_syntax(text) is None  # more layers than anybody writes

    @pytest.mark.parametrize(
        "piece",
        ['say "x, ', '"b" ', 'x "b", "c" ', '"]]]] ', '",   ', "it's ", "\\", "\\u", "\n", '"}', '{"a": ', "[", "a b ",
         "'", '\\"', "```", ", ", "]" * 50 + '"'],
    )  # fmt: skip
    @pytest.mark.parametrize("start", ['{"a": "', "{'a': '", '{"a": [', ""])
    def test_time_is_linear(self, start: str, piece: str) -> None:
        def work(length: int) -> int:
            return lines_run(lambda: repair_syntax((start + piece * length)[:length]))

        assert work(MAX_LENGTH // 4) < 9 * work(MAX_LENGTH // 32) + 1000


# -- Syntax, as properties ----------------------------------------------------------------------------------------

texts = st.text(max_size=30) | st.text("\"'\\{}[],: \n\tab1é😀", max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
objects = st.dictionaries(texts, values, max_size=4)
# Objects whose repr uses only escapes that JSON has, too.
python_objects = st.dictionaries(
    st.text("\"'\\{}[],: \n\tab1é😀", max_size=12),
    st.booleans() | st.none() | st.integers() | st.lists(st.text("\"'\\,}:\n ax", max_size=12), max_size=2),
    max_size=3,
)
soup = st.text("{}[],: \n\"'\\ab1", max_size=40) | st.lists(
    st.sampled_from(
        ['{"a": ', '"b"', '"b', ", ", ": ", "}", "]", "[", "{", "'a'", "1", "a", " ", "\\", '\\"', "\n", '"']
    ),
    max_size=14,
).map("".join)


def check(text: str) -> Any:
    """Repair ``text``, and check the properties of every repair."""
    repair = repair_syntax(text)
    if repair is None:
        return None
    value = json.loads(repair.arguments)
    assert isinstance(value, dict)
    assert repair.steps
    assert len(set(repair.steps)) == len(repair.steps)
    assert repair_syntax(repair.arguments) is None
    return value


def is_json(text: str) -> bool:
    try:
        return json.loads(text) is not None
    except ValueError:
        return False


def letters(value: Any) -> str:
    """Return the letters and digits of the keys and values, in order."""
    if isinstance(value, dict):
        return "".join(letters(key) + letters(item) for key, item in value.items())
    if isinstance(value, list):
        return "".join(map(letters, value))
    return re.sub(r"[^a-z0-9]", "", str(value))


class TestSyntaxProperties:
    @MANY
    @given(objects, st.booleans(), st.none() | st.just(2))
    def test_valid_in_untouched(self, value: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
        assert repair_syntax(json.dumps(value, ensure_ascii=ascii_only, indent=indent)) is None

    @MANY
    @given(soup)
    @example('{"a": "b" 1 "a"}')
    def test_no_letter_is_lost_or_made_up(self, text: str) -> None:
        pairs = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:', re.S)
        keys = pairs.findall(text)
        assume(len(set(keys)) == len(keys))  # of a key that is there twice json.loads keeps one
        value = check(text)
        if value is not None:
            written = re.sub(r"\\[bu][0-9a-f]{0,4}", "", text)  # escapes, whole or in half
            found = re.sub(r"[\b]", "", letters(value))
            assert found == re.sub(r"[^a-z0-9]", "", written)

    @MANY
    @given(texts | soup)
    def test_never_raises(self, text: str) -> None:
        check(text)
        check("{" + text)
        check('{"a": "' + text + '"}')

    @MANY
    @given(objects)
    def test_double_encoding(self, value: dict[str, Any]) -> None:
        text = json.dumps(value)
        assert repair_syntax(json.dumps(text)) == Repair(text, ("unwrapped_string",))
        assert repair_syntax(json.dumps(json.dumps(text))) == Repair(text, ("unwrapped_string",))
        assert repair_syntax(f"[{text}]") == Repair(text, ("unwrapped_list",))
        assert repair_syntax(f"```json\n{text}\n```") == Repair(text, ("removed_fence",))

    @MANY
    @given(python_objects)
    def test_python(self, value: dict[str, Any]) -> None:
        assert check(repr(value)) == (None if is_json(repr(value)) else value)

    @MANY
    @given(st.lists(texts | st.lists(texts), max_size=4))
    def test_raw_controls(self, items: list[Any]) -> None:
        value = {"v": items}
        text = json.dumps(value, ensure_ascii=False)
        raw = re.sub(r"(?<!\\)((?:\\\\)*)\\n", "\\1\n", text)
        assume(raw != text)
        repair = repair_syntax(raw)
        assert repair == Repair(text, ("escaped_controls",))

    @MANY
    @given(objects, st.text(",]} \n", max_size=4))
    def test_tails(self, value: dict[str, Any], tail: str) -> None:
        text = json.dumps(value)
        assert check(text + tail) == (value if tail.strip() else None)

    @MANY
    @given(objects, st.integers(0, 400))
    def test_a_cut_object_is_a_part_of_the_object(self, value: dict[str, Any], cut: int) -> None:
        part = check(json.dumps(value)[:cut])
        if part is not None:
            assert is_part(part, value)

    @MANY
    @given(
        st.dictionaries(st.from_regex(r"[a-z]{1,4}", fullmatch=True), st.from_regex(r"[a-z ,:=()\n]*", fullmatch=True))
    )
    def test_quotations(self, value: dict[str, str]) -> None:
        assume(value)
        inner = {key: f'{text}"q"({text}"r")' for key, text in value.items()}
        raw = "{" + ", ".join(f'"{key}": "{text}"' for key, text in inner.items()) + "}"
        part = check(raw)
        assert part is None or part == inner


def is_part(part: Any, whole: Any) -> bool:
    """True if ``whole`` begins with ``part``: of the last value, digits of a number may be missing."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            k == j and is_part(v, w) for (k, v), (j, w) in zip(part.items(), whole.items(), strict=False)
        )
    if isinstance(part, list):
        return isinstance(whole, list) and all(is_part(v, w) for v, w in zip(part, whole, strict=False))
    # A number that was cut looks like one that was not.
    return part == whole or (isinstance(part, (int, float)) and isinstance(whole, (int, float)))


CUT: list[dict[str, Any]] = [
    {"args": ["-rf", "/home/me/tmp"], "n": 120},
    {"command": 'echo "hi, there" > it\'s.txt', "timeout": 1.5e3, "on": True},
    {"a": {"b": [{"c": -12}, {"d": "x\\y"}], "e": None}, "f": "é😀\n", "g": [False, 100]},
    {"numbers": [10, 20, 30], "last": 7000},
]


def whole_values_only(part: Any, whole: Any) -> bool:
    """True if ``part`` is ``whole`` without some keys and items at the end, and each remaining value is complete."""
    if isinstance(part, dict) and isinstance(whole, dict):
        same = list(part) == list(whole)[: len(part)]
        return same and all(whole_values_only(value, whole[key]) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(whole_values_only, part, whole))
    return type(part) is type(whole) and bool(part == whole)


class TestCut:
    """A command or path whose second half is missing must not run."""

    @pytest.mark.parametrize("value", CUT)
    @pytest.mark.parametrize("ascii_only", [True, False])
    def test_every_prefix(self, value: dict[str, Any], ascii_only: bool) -> None:
        text = json.dumps(value, ensure_ascii=ascii_only)
        for raw in (text, repr(value), json.dumps(text), f"```json\n{text}\n```", f"[{text}]"):
            for end in range(len(raw)):
                repair = repair_syntax(raw[:end], cut=True)
                assert repair is None or whole_values_only(json.loads(repair.arguments), value), raw[:end]

    @MANY
    @given(objects, st.integers(0, 400))
    def test_any_object(self, value: dict[str, Any], cut: int) -> None:
        repair = repair_syntax(json.dumps(value)[:cut], cut=True)
        assert repair is None or whole_values_only(json.loads(repair.arguments), value)

    @pytest.mark.parametrize(
        "policy", [{"repair": "syntax"}, {"repair": "schema"}, {"malformed_arguments": "repaired"}]
    )
    @pytest.mark.parametrize(
        ("name", "opening", "closing"),
        [
            ("hermes", '<tool_call>\n{"name": "f", "arguments": ', "}\n</tool_call>"),
            ("mistral", "[TOOL_CALLS]f[ARGS]", "</s>"),
            ("llama3", '{"name": "f", "parameters": ', "}"),
        ],
    )
    def test_no_policy_completes_a_cut_value(
        self, policy: dict[str, Any], name: str, opening: str, closing: str
    ) -> None:
        value = CUT[0]
        parser = OutputParser.named(name, policy=Policy(strict=True, **policy))
        raw = opening + json.dumps(value) + closing
        for end in range(len(raw) + 1):
            for call in parser.parse(raw[:end]).tool_calls:
                assert whole_values_only(json.loads(call.function.arguments), value), raw[:end]
                assert call.status in ("ok", "repaired", "recovered")

    @pytest.mark.parametrize(
        ("name", "raw"),
        [
            ("pythonic", "[f(args=['-rf', '/home/me/tmp'], n=120, on=True)]"),
            ("gemma4", '<|tool_call>call:f{args:[<|"|>-rf<|"|>,<|"|>/home/me/tmp<|"|>],n:120,on:true}<tool_call|>'),
            ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=args>\n[\"-rf\", \"/home/me/tmp\"]\n</parameter>\n"
             "<parameter=n>\n120\n</parameter>\n<parameter=on>\ntrue\n</parameter>\n</function>\n</tool_call>"),
        ],
    )  # fmt: skip
    def test_nor_in_other_syntaxes(self, name: str, raw: str) -> None:
        types = {"args": {"type": "array"}, "n": {"type": "integer"}, "on": {"type": "boolean"}}
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": types}}}]
        parser = OutputParser.named(name, policy=Policy(strict=True, repair="syntax"))
        value = {"args": ["-rf", "/home/me/tmp"], "n": 120, "on": True}
        for end in range(len(raw) + 1):
            for call in parser.parse(raw[:end], tools=tools).tool_calls:
                assert whole_values_only(json.loads(call.function.arguments), value), raw[:end]

    def test_a_cut_call_stays_as_it_was_written(self) -> None:
        raw = '<tool_call>\n{"name": "rm", "arguments": {"args": ["-rf", "/ho'
        parsed = OutputParser.named("hermes", policy=Policy(repair="syntax")).parse(raw)
        (call,) = parsed.tool_calls
        assert (call.function.arguments, call.status, call.repairs) == ('{"args": ["-rf", "/ho', "incomplete", [])
        assert not OutputParser.named("hermes", policy=Policy(repair="syntax", strict=True)).parse(raw).tool_calls

    def test_the_next_call_does_not_complete_a_number(self) -> None:
        raw = '[TOOL_CALLS]f[ARGS]{"n": 120[TOOL_CALLS]g[ARGS]{}'
        calls = OutputParser.named("mistral", policy=Policy(repair="syntax")).parse(raw).tool_calls
        assert [(c.function.arguments, c.status) for c in calls] == [('{"n": 120', "incomplete"), ("{}", "ok")]


# -- Schema -------------------------------------------------------------------------------------------------------

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "limit": {"type": ["integer", "null"]},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "level": {"enum": [1, 2, 3]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "todos": {"type": "array", "items": {"$ref": "#/$defs/Todo"}},
        "edit": {"anyOf": [{"$ref": "#/$defs/Todo"}, {"type": "array", "items": {"$ref": "#/$defs/Todo"}}]},
        "body": {"type": "object"},
        "max_price": {"type": "number"},
    },
    "$defs": {
        "Todo": {
            "type": "object",
            "properties": {"title": {"type": "string"}, "n": {"type": "integer"}},
            "required": ["title"],
            "additionalProperties": False,
        }
    },
}

BY_SCHEMA = [
    # Strings that hold the value (vmlx#47, mlx-lm#1627)
    ('{"days": "50"}', '{"days": 50}', ["coerced_string"]),
    ('{"days": "140.0"}', '{"days": 140}', ["coerced_string"]),
    ('{"ratio": " 2.50 "}', '{"ratio": 2.50}', ["coerced_string"]),
    ('{"on": "true"}', '{"on": true}', ["coerced_string"]),
    ('{"on": "False"}', '{"on": false}', ["coerced_string"]),
    ('{"limit": "null"}', '{"limit": null}', ["coerced_string"]),
    ('{"level": "2"}', '{"level": 2}', ["coerced_string"]),
    ('{"ids": [1, "2", "3"]}', '{"ids": [1, 2, 3]}', ["coerced_string"]),
    # home-assistant#122749, kimi-cli#2406, SWE-agent#1182
    ('{"tags": "[\\"vacuum\\"]"}', '{"tags": ["vacuum"]}', ["coerced_string"]),
    ('{"ids": "[1, 50]"}', '{"ids": [1, 50]}', ["coerced_string"]),
    ('{"tags": "[\'a\', \'b\']"}', '{"tags": ["a", "b"]}', ["coerced_string"]),
    ('{"body": "{\\"x\\": 1.50}"}', '{"body": {"x": 1.50}}', ["coerced_string"]),
    ('{"todos": "[{\\"title\\": \\"test\\", \\"n\\": \\"4\\"}]"}', '{"todos": [{"title": "test", "n": 4}]}',
     ["coerced_string"]),
    ('{"edit": "{\\"title\\": \\"x\\"}"}', '{"edit": {"title": "x"}}', ["coerced_string"]),
    # The unwrapped value may still be wrong.
    ('{"todos": "[{\\"n\\": 1}]"}', '{"todos": [{"n": 1}]}', ["coerced_string"]),
    # The other way round
    ('{"city": 75001}', '{"city": "75001"}', ["made_string"]),
    ('{"note": 1.50}', '{"note": "1.50"}', ["made_string"]),
    ('{"city": true}', '{"city": "true"}', ["made_string"]),
    # Lists (hermes-agent#19717, ellmer#929)
    ('{"tags": "https://a.com"}', '{"tags": ["https://a.com"]}', ["wrapped_in_list"]),
    ('{"ids": 3}', '{"ids": [3]}', ["wrapped_in_list"]),
    ('{"ids": "3"}', '{"ids": [3]}', ["wrapped_in_list", "coerced_string"]),
    ('{"todos": {"title": "x"}}', '{"todos": [{"title": "x"}]}', ["wrapped_in_list"]),
    ('{"city": ["Paris"]}', '{"city": "Paris"}', ["unwrapped_item"]),
    ('{"days": [ "3" ]}', '{"days": 3}', ["unwrapped_item", "coerced_string"]),
    # Keys
    ('{"todos": [{"Title": "x"}]}', '{"todos": [{"title": "x"}]}', ["renamed_key"]),
    ('{"todos": [{"titel": "x"}]}', '{"todos": [{"title": "x"}]}', ["renamed_key"]),
    ('{"todos": [{"title": "x", "N": "1"}]}', '{"todos": [{"title": "x", "n": 1}]}', ["renamed_key", "coerced_string"]),
]  # fmt: skip

NOT_BY_SCHEMA = [
    '{"days": "2026-01-15"}',  # mlx-lm#1236
    '{"days": "three"}',
    '{"days": 1.5}',
    '{"days": true}',
    '{"on": 1}',
    '{"city": null}',
    '{"city": {"name": "Paris"}}',
    '{"city": ["Paris", "Rome"]}',
    '{"tags": null}',  # hermes-agent#19717: deliberate nulls are not second-guessed
    '{"tags": [1, {}]}'.replace("1, ", ""),
    '{"ids": "a"}',
    '{"todos": "x"}',
    '{"level": "4"}',
    '{"todos": [{"name": "x"}]}',
    '{"todos": [{"titel": "x", "tittle": "y"}]}',
    "no JSON",
    "[1]",
    '{"days": "3"',
]


class TestSchema:
    @pytest.mark.parametrize(("arguments", "expected", "steps"), BY_SCHEMA)
    def test_repaired(self, arguments: str, expected: str, steps: list[str]) -> None:
        repair = repair_schema(arguments, SCHEMA)
        assert repair is not None
        assert (repair.arguments, sorted(repair.steps)) == (expected, sorted(steps))
        assert repair_schema(expected, SCHEMA) is None

    @pytest.mark.parametrize("arguments", NOT_BY_SCHEMA)
    def test_left_alone(self, arguments: str) -> None:
        assert repair_schema(arguments, SCHEMA) is None

    @pytest.mark.parametrize(
        "arguments",
        ["{}", '{ "days": 3.0, "note": null, "other": "3" }', '{"note": "null"}', '{"city": "[1]"}',
         '{"edit": [{"title": "x"}], "min_price": 3, "citty": 1}'],
    )  # fmt: skip
    def test_what_fits_is_untouched(self, arguments: str) -> None:
        assert validate(arguments, SCHEMA) == []
        assert repair_schema(arguments, SCHEMA) is None

    def test_the_alternative_that_fits_is_untouched(self) -> None:
        schema = {
            "items": {
                "anyOf": [
                    {"properties": {"kind": {"const": "n"}, "x": {"type": "integer"}}},
                    {"properties": {"kind": {"const": "s"}, "x": {"type": "string"}}},
                ]
            }
        }
        arguments = '{"l": [{"kind": "s", "x": "3"}], "n": "3"}'
        properties = {"l": schema, "n": {"type": "integer"}}
        assert repair_schema(arguments, {"properties": properties}) == Repair(
            '{"l": [{"kind": "s", "x": "3"}], "n": 3}', ("coerced_string",)
        )

    def test_everything_else_keeps_its_bytes(self) -> None:
        arguments = '{ "x":1.50,"days" : "3", "y":"\\u00e9\\/", "x":12345678901234567890.5, "z": [ ] }'
        repair = repair_schema(arguments, SCHEMA)
        assert repair == Repair(arguments.replace('"3"', "3"), ("coerced_string",))

    def test_one_slip_is_mended_and_another_is_not(self) -> None:
        assert repair_schema('{"days": "3", "on": "maybe"}', SCHEMA) == Repair(
            '{"days": 3, "on": "maybe"}', ("coerced_string",)
        )

    @pytest.mark.parametrize(
        ("arguments", "schema", "expected"),
        [
            ('{"Location": "x"}', {"required": ["location"]}, '{"location": "x"}'),
            ('{"file_paths": "x"}', {"required": ["file_path"]}, '{"file_path": "x"}'),
            ('{"file_path": "x", "file_paths": "y"}', {"required": ["file_path"]}, None),
            ('{"min_price": 1}', {"required": ["max_price"]}, None),
            ('{"a": 1, "querry": 2}', {"properties": {"a": {}, "query": {}}, "additionalProperties": False},
             '{"a": 1, "query": 2}'),
            ('{"querry": 2}', {"properties": {"query": {}}}, None),  # it may be there, and nothing is missing
            ('{"querry": 2}', {"required": ["query"], "additionalProperties": {}}, None),  # keys are data
            ('{"querry": 2}', {"required": ["query"], "patternProperties": {"^q": {}}}, None),
            ('{"querry": 2}', {"required": ["query", "quarry"]}, None),
            ('{"a\\u0062c_id": 1}', {"required": ["abcId"]}, '{"abcId": 1}'),
            ('{"titl\\u00e9s": 1}', {"required": ["titlé"]}, '{"titlé": 1}'),
        ],
    )  # fmt: skip
    def test_keys(self, arguments: str, schema: Any, expected: str | None) -> None:
        assert repair_schema(arguments, schema) == (None if expected is None else Repair(expected, ("renamed_key",)))

    def test_names(self) -> None:
        schema = {"required": ["city", "unit"]}
        arguments = '{"City": 1, "Unit": 2}'
        assert repair_schema(arguments, schema, names=()) is None
        assert repair_schema(arguments, schema, names=["unit"]) == Repair('{"City": 1, "unit": 2}', ("renamed_key",))
        assert repair_schema(arguments, schema) == Repair('{"city": 1, "unit": 2}', ("renamed_key",))

    def test_of_a_key_that_is_there_twice_the_last_counts(self) -> None:
        assert repair_schema('{"days": "1", "days": "2"}', SCHEMA) == Repair(
            '{"days": "1", "days": 2}', ("coerced_string",)
        )

    @pytest.mark.parametrize("schema", [None, [], "x", True, {}, {"type": 3}, {"$ref": "#"}, {"$ref": "#/x"}])
    def test_no_schema_no_repair(self, schema: Any) -> None:
        assert repair_schema('{"a": "3"}', schema) is None

    @pytest.mark.parametrize("count", [900, MAX_LENGTH])
    @pytest.mark.parametrize(
        ("item", "schema"),
        [
            ('"3"', {"type": "integer"}),
            ('"x"', {"type": "integer"}),
            ('{"titel": 1}', SCHEMA["$defs"]["Todo"]),
            ('{"a1":1,"b1":1,"c1":1,"d1":1}', {"required": [f"name_{i}" for i in range(64)]}),
            ("[" * 60 + "]" * 60, {"type": "integer"}),
        ],
    )
    def test_work_is_bounded(self, item: str, schema: Any, count: int) -> None:
        """The work has a limit, however much there is to repair."""
        count = min(count, MAX_LENGTH // (len(item) + 1) - 10)
        text = f'{{"v": [{",".join([item] * count)}]}}'
        assert lines_run(lambda: repair_schema(text, {"properties": {"v": {"items": schema}}})) < 10_000_000

    def test_what_is_too_long_is_left(self) -> None:
        text = '{"v": "3", "x": "' + "x" * MAX_LENGTH + '"}'
        assert repair_schema(text, {"properties": {"v": {"type": "null"}}}) is None

    def test_what_is_wrong_all_over_has_not_slipped(self) -> None:
        schema = {"properties": {"v": {"items": {"type": "integer"}}}}
        repaired = Repair(json.dumps({"v": [3] * 1000}), ("coerced_string",))
        assert repair_schema(json.dumps({"v": ["3"] * 1000}), schema) == repaired
        assert repair_schema(json.dumps({"v": ["3"] * 1001}), schema) is None


words = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
small = st.recursive(
    st.sampled_from([None, True, 1, 2.5, "1", "x", "true", "null", "[1]", '["1"]', '{"a": "1"}', "{'b': [1]}", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "A"]), inner, max_size=2),
    max_leaves=5,
)
types = st.builds(lambda word: {"type": word}, words | st.lists(words, min_size=1, max_size=2, unique=True))
schemas = st.recursive(
    types | st.builds(lambda options: {"enum": options}, st.lists(small, min_size=1, max_size=3)),
    lambda inner: st.builds(lambda item: {"type": "array", "items": item}, inner)
    | st.builds(
        lambda properties, required, others: {
            "type": "object", "properties": properties, "required": required, "additionalProperties": others,
        },
        st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
        st.lists(st.sampled_from(["a", "b"]), unique=True),
        st.booleans(),
    )
    | st.builds(
        lambda word, parts: {word: parts},
        st.sampled_from(["anyOf", "allOf", "oneOf"]),
        st.lists(inner, min_size=1, max_size=2),
    ),
    max_leaves=6,
)  # fmt: skip


class TestSchemaProperties:
    @MANY
    @given(
        st.dictionaries(st.sampled_from(["a", "b", "A"]), small),
        st.dictionaries(st.sampled_from(["a", "b"]), schemas),
        st.lists(st.sampled_from(["a", "b"]), unique=True),
    )
    def test_laws(self, value: dict[str, Any], properties: dict[str, Any], required: list[str]) -> None:
        schema = {"type": "object", "properties": properties, "required": required}
        text = json.dumps(value)
        repair = repair_schema(text, schema)
        if not validate(text, schema):
            assert repair is None
        if repair is not None:
            assert isinstance(json.loads(repair.arguments), dict)
            assert repair.arguments != text
            assert repair.steps
            assert repair_schema(repair.arguments, schema) is None
            assert repair_syntax(repair.arguments) is None

    @MANY
    @given(texts | soup, schemas)
    def test_never_raises(self, text: str, schema: Any) -> None:
        repair_schema(text, schema)


# -- Names --------------------------------------------------------------------------------------------------------

TOOLS = ["get_weather", "read_file", "write_file", "create-pdf-file", "web_search", "get_pull_request", "View"]


class TestNearestName:
    @pytest.mark.parametrize(
        ("name", "names", "nearest"),
        [
            ("get_weather", TOOLS, "get_weather"),
            # the same letters
            ("getWeather", TOOLS, "get_weather"),
            ("GET-WEATHER", TOOLS, "get_weather"),
            ("get weather", TOOLS, "get_weather"),
            ("view", TOOLS, "View"),
            # a namespace (omlx#1854)
            ("google:mcp:text_generation:create-pdf-file", TOOLS, "create-pdf-file"),
            ("toolbox.read_file", TOOLS, "read_file"),
            ("mcp/web_search", TOOLS, "web_search"),
            # slips
            ("get_pull_reques", TOOLS, "get_pull_request"),  # neurolink#1620
            ("get_wether", TOOLS, "get_weather"),
            ("get_weahter", TOOLS, "get_weather"),
            ("get_weathar", TOOLS, "get_weather"),
            ("raed_file", TOOLS, "read_file"),
            ("read_files", TOOLS, "read_file"),
            ("serchWeb", ["search_web"], "search_web"),
            ("urls", ["url"], "url"),
            ("tag", ["tags", "name"], "tags"),
            ("citty", ["city"], "city"),
            # not slips
            ("Read", TOOLS, None),  # sglang#40817
            ("toolbox.web.answer", ["execute"], None),  # Qwen3.8#15
            ("run_in", ["run_in_terminal"], None),
            ("set_user", ["get_user"], None),
            ("min_price", ["max_price"], None),
            ("turn_on", ["turn_off"], None),
            ("api_v1", ["api_v2"], None),
            ("v12", ["v13"], None),
            ("import_file", ["export_file"], None),
            ("mount", ["count"], None),
            ("list_files", ["lint_files"], None),
            ("move_x", ["move_y"], None),
            ("cat", ["car"], None),
            ("weather", ["get_weather"], None),
            ("get_weather_now", ["get_weather"], None),
            ("gte_wether_forcast_dialy", ["get_weather_forecast_daily"], None),
            ("xcreate-pdf-file", TOOLS, None),
            # more than one
            ("getFile", ["get_file", "get-file"], None),
            ("a:b:read", ["read", "b:read"], None),
            ("quary", ["query", "quarry"], "quarry"),
            ("raed_file", ["read_file", "read_files"], None),
            ("serach_web", ["search_web", "web_search"], "search_web"),
            # nothing to go by
            ("", TOOLS, None),
            ("___", ["---", "get"], None),
            ("x", ["", "y"], None),
            ("get_weather", [], None),
            ("x" * 257, ["x" * 258], None),
            ("天气", ["天氣"], None),
        ],
    )
    def test_names(self, name: str, names: list[str], nearest: str | None) -> None:
        assert nearest_name(name, names) == nearest

    def test_a_name_that_is_offered_twice_is_one(self) -> None:
        assert nearest_name("getX", iter(["get_x", "get_x"])) == "get_x"

    @MANY
    @given(st.text(max_size=12), st.lists(st.text(max_size=12), max_size=6))
    def test_answers_are_offered(self, name: str, names: list[str]) -> None:
        nearest = nearest_name(name, names)
        assert nearest is None or nearest in names
        if name in names:
            assert nearest == name

    @MANY
    @given(st.text(), st.text())
    def test_both_ways_alike(self, one: str, other: str) -> None:
        if ":" not in one + other and "." not in one + other and "/" not in one + other:
            assert (nearest_name(one, [other]) is None) == (nearest_name(other, [one]) is None)
