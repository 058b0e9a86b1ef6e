"""Calls that the text before them quotes, and text that looks like a call."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from untemplate import OutputParser, Policy
from untemplate._internal.machine.json_place import JsonPlace
from untemplate._internal.machine.markdown import (
    IN_FENCE,
    IN_STRING,
    NO_EVIDENCE,
    ON_QUOTED_LINE,
    TextBefore,
    quotes_nothing,
)
from untemplate.testing import check

CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
LINE = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'


@pytest.mark.parametrize(
    ("before", "evidence"),
    [
        ("", NO_EVIDENCE),
        ("It says ", NO_EVIDENCE),
        ("It says: ", NO_EVIDENCE),
        ("- ", NO_EVIDENCE),
        ("1. Call it: ", NO_EVIDENCE),
        ("| a | ", ON_QUOTED_LINE),
        ("| a |\n", NO_EVIDENCE),
        ("> ", ON_QUOTED_LINE),
        ("- > ", ON_QUOTED_LINE),
        ("> a\n", NO_EVIDENCE),
        ("a > b ", NO_EVIDENCE),
        ('It says "', IN_STRING),
        ('It says ("', IN_STRING),
        ('It says:\n"', IN_STRING),
        ("It says '", IN_STRING),
        ("It says “", IN_STRING),
        ("the models'", NO_EVIDENCE),
        ('"', NO_EVIDENCE),
        ('It says:\n"\n', NO_EVIDENCE),
        ('"weather in Paris"', NO_EVIDENCE),
        ('I look for "weather in Paris" ', NO_EVIDENCE),
        ('He wrote "a" and "b "', NO_EVIDENCE),
        ("See ``", IN_STRING),
        ("See ``a`` and ", NO_EVIDENCE),
        ("See ``a` ", IN_STRING),
        ("See ``a\n", NO_EVIDENCE),
        ("See <code>", IN_STRING),
        ("```\n", IN_FENCE),
        ("```xml\na\n", IN_FENCE),
        ("~~~\n", IN_FENCE),
        ("~~ a ~~ ", NO_EVIDENCE),
        ("- ```\n", IN_FENCE),
        ("````\n```\na\n```\n", IN_FENCE),
        ("```\na\n```\n", NO_EVIDENCE),
        ("```\na\n``` b\n", IN_FENCE),
        ("```\na\n```", NO_EVIDENCE),
        ("```a```\n", NO_EVIDENCE),
        ("a ```\n", NO_EVIDENCE),
        ("```diff\n", ON_QUOTED_LINE),
        ("```\n+", ON_QUOTED_LINE),
        ("```\n a\n-b ", ON_QUOTED_LINE),
        ('{"note": "', IN_STRING),
        ('{"note": "a \\"b\\" ', IN_STRING),
        ('{"n": 1, "m": [true, -2.5e3, {"note": "see ', IN_STRING),
        ('{"note": "a", "b": 1} ', NO_EVIDENCE),
        ('{"note": "a\n', NO_EVIDENCE),
        ('{"note": word, "b": "see ', NO_EVIDENCE),
        ('Result: {"note": "see ', IN_STRING),
        ('<calls>{"name": "g", "arguments": {"code": "see ', IN_STRING),
        ("{ code ", NO_EVIDENCE),
    ],
)
def test_evidence(before: str, evidence: int) -> None:
    for size in (1, 2, 3, 7, 1000):
        text = TextBefore()
        spaces = before[len(before.rstrip(" \n")) :]
        body = before[: len(before) - len(spaces)] if spaces else before
        for start in range(0, len(body), size):
            text.read(body[start : start + size])
        assert text.evidence(spaces) == evidence, size


SIGNS = (
    "`",
    "```",
    "~~~",
    '"',
    "'",
    "\u201c",
    "\u2018",
    "\u00ab",
    "<code>",
    "<!--",
    "](",
    "> ",
    "| a |",
    "$ ",
    "- ",
    "@@ -1",
)
NEXT_TO_SIGNS = ("a", "A b. ", " ", "\n", ":", "{", "[", "<<EOF", "<![CDATA[", "\u300c", "2026-01-02 10:00 ", "[^1]: ")


@given(
    st.lists(st.sampled_from(SIGNS + NEXT_TO_SIGNS), min_size=1, max_size=6).map("".join),
    st.sampled_from(["", " ", "\n"]),
)
def test_a_short_text_is_read_where_it_may_quote(text: str, spaces: str) -> None:
    """A short text is not read where one look shows that it quotes nothing: then reading it says the same."""
    before = TextBefore()
    before.read(text)
    if text.strip() == text and before.evidence(spaces) != NO_EVIDENCE:
        assert not quotes_nothing(text, "\n" in spaces)


@pytest.mark.parametrize("number", ["1", "-2.5e10", "1" * 80])
def test_a_number_of_json_may_come_in_pieces(number: str) -> None:
    text = f'{{"a": {number}, "b": "'
    found = set()
    for size in (1, 2, 5, 1000):
        place = JsonPlace()
        for start in range(0, len(text), size):
            place.read(text[start : start + size])
        found.add(place.in_string)
    assert found == {len(number) < 64}


@pytest.mark.parametrize(
    "text",
    [
        f"> {LINE}\n\nThat is all.",
        f"| call | {LINE} |\n",
        f"The page says ``{LINE}`` and more.",
        f'The page says "{LINE}".',
        f'The page says "{CALL}\n{CALL}".',
        '{"note": "' + LINE + '"}',
        "```diff\n+" + CALL.replace("\n", "\n+") + "\n```\nA diff.",
    ],
)
def test_a_quoted_call_is_content(text: str) -> None:
    check("hermes", text, {"content": text, "diagnostics": ["quoted_call"]}, exhaustive=True, roundtrip=False)


def test_a_call_in_a_fence_is_called_and_reported() -> None:
    expected = {"content": "So:\n```xml\n```\nDone.", "tool_calls": [("f", "{}")], "diagnostics": ["fenced_call"]}
    check("hermes", f"So:\n```xml\n{CALL}\n```\nDone.", expected, exhaustive=True, roundtrip=False)


@pytest.mark.parametrize(
    "before",
    [
        "",
        '"',
        "Now I call it:",
        "I look for 'x' and \"y\".",
        '"weather in Paris"',
        "- one\n- ",
        "> A quotation.\n",
        "| a |\n|---|\n",
        "```\ncode\n```\n",
        '{"done": true}\n',
        "It costs 5$ and '",
    ],
)
def test_a_real_call_is_called(before: str) -> None:
    if before.endswith("'"):
        before = "The models'"
    parsed = OutputParser.named("hermes").parse(before + CALL)
    assert [(c.function.name, c.status) for c in parsed.tool_calls] == [("f", "ok")]
    assert parsed.diagnostics == []


def test_a_quotation_says_nothing_of_a_call_after_it() -> None:
    raw = f"> {LINE}\n\n{CALL}"
    expected = {"content": f"> {LINE}", "tool_calls": [("f", "{}")], "diagnostics": ["quoted_call"]}
    check("hermes", raw, expected, exhaustive=True, roundtrip=False)


def test_a_named_marker_says_nothing_of_a_call_after_it() -> None:
    raw = f'The marker "<tool_call>" opens a call.\n{CALL}'
    parsed = OutputParser.named("hermes").parse(raw)
    assert parsed.content == 'The marker "<tool_call>" opens a call.'
    assert [c.function.name for c in parsed.tool_calls] == ["f"]


def test_a_broken_call_does_not_quote_the_next() -> None:
    raw = f'<tool_call>{{"nam": 1, "x": "{LINE}'
    parsed = OutputParser.named("hermes").parse(raw)
    assert [c.function.name for c in parsed.tool_calls] == ["f"]


@pytest.mark.parametrize(
    ("policy", "fence", "quote"), [("evidence", True, False), ("call", True, True), ("content", False, False)]
)
def test_the_policy(policy: str, fence: bool, quote: bool) -> None:
    parser = OutputParser.named("hermes", policy=Policy(quoted_calls=policy))  # type: ignore[arg-type]
    fenced = parser.parse(f"```\n{CALL}\n```")
    quoted = parser.parse(f"> {LINE}")
    assert (bool(fenced.tool_calls), bool(quoted.tool_calls)) == (fence, quote)
    codes = [[d.code for d in parsed.diagnostics] for parsed in (fenced, quoted)]
    reports = {"evidence": [["fenced_call"], ["quoted_call"]], "call": [[], []], "content": [["quoted_call"]] * 2}
    assert codes == reports[policy]


class Vocabulary:
    """A vocabulary with two added tokens. ``f`` and the rest are spelled by characters."""

    all_special_tokens = ("<tool_call>", "</tool_call>")

    def get_vocab(self) -> dict[str, int]:
        return {"<tool_call>": 0, "</tool_call>": 1, **{chr(c): c for c in range(10, 127)}}


def ids_of(text: str) -> list[int]:
    ids = []
    while text:
        marker = next((i for i, m in enumerate(Vocabulary.all_special_tokens) if text.startswith(m)), None)
        ids.append(ord(text[0]) if marker is None else marker)
        text = text[1 if marker is None else len(Vocabulary.all_special_tokens[marker]) :]
    return ids


def test_an_id_outweighs_the_text() -> None:
    parser = OutputParser.named("hermes", tokenizer=Vocabulary())
    text = f"> {LINE}"
    assert [c.status for c in parser.parse_tokens(ids_of(text)).output.tool_calls] == ["ok"]
    assert parser.parse(text).tool_calls == []


@pytest.mark.parametrize("text", ["It ends with </tool_call> as ever.", "It ends.\n</tool_call>\nAnd goes on."])
def test_a_close_with_nothing_to_close_is_content_in_both_ways(text: str) -> None:
    parser = OutputParser.named("hermes", tokenizer=Vocabulary())
    for parsed in (parser.parse(text), parser.parse_tokens(ids_of(text)).output):
        assert parsed.content == text
        assert [(d.code, d.text) for d in parsed.diagnostics] == [("call_like_text", "</tool_call>")]


def test_the_vocabulary_decides_what_can_be_spelled() -> None:
    """The Format does not list this token. The tokenizer does."""
    from untemplate.format import Format, JsonBody, Marker, Tools

    tools = Tools(call_open=Marker("<tool_call>\n"), call_close=Marker("\n</tool_call>"), body=JsonBody())
    parser = OutputParser.from_format(Format(name="x", tools=(tools,)), tokenizer=Vocabulary())
    assert parser.parse(CALL, token_ids=[ord(c) for c in CALL]).tool_calls == []
    assert len(parser.parse_tokens(ids_of(CALL)).output.tool_calls) == 1


TOOLS = [{"type": "function", "function": {"name": "f"}}]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Write <tool_call> and more.", "<tool_call>"),
        ("Write `<tool_call>` and `</tool_call>`.", None),
        ('I call {"name": "f", "arguments": {}} now.', '{"name": "f"'),
        ('I know {"name": "g", "arguments": {}} too.', None),
        ("Plain text with <b>tags</b> and [links].", None),
    ],
)
def test_what_looks_like_a_call_is_reported(text: str, found: str | None) -> None:
    parsed = OutputParser.named("hermes").parse(text, tools=TOOLS)
    assert parsed.content == text
    assert [(d.code, d.text) for d in parsed.diagnostics] == ([("call_like_text", found)] if found else [])
    for diagnostic in parsed.diagnostics:
        assert text[diagnostic.start : diagnostic.end] == found


def test_what_a_policy_or_the_request_made_content_is_not_reported() -> None:
    parser = OutputParser.named("hermes")
    assert parser.parse(CALL, tools=[]).diagnostics == []
    assert parser.parse(CALL, tools=TOOLS, tool_choice="none").diagnostics == []
    other = parser.parse(CALL.replace('"f"', '"g"'), tools=TOOLS, policy=Policy(unknown_tools="content"))
    assert (other.tool_calls, other.diagnostics) == ([], [])


@pytest.mark.parametrize(
    ("before", "calls"),
    [
        ("cat <<EOF > f\n", 0),
        ("cat <<EOF > f\na\n", 0),
        ("cat <<EOF > f\na\nEOF\n", 1),
        ("cat <<EOF > f\na\n\n", 1),
        ("I write it with cat <<EOF > file.\n", 1),
        ("Run `cat <<EOF > f` now\n", 1),
        ("I write it with cat <<EOF\n", 1),
        ("x = 1 <<EOF_SHIFT bits\n", 1),
        ("<!-- an example\n", 0),
        ("<!-- an example\na <!--\n", 0),
        ("Here it is: <!--\n", 0),
        ("The file has an open <!-- comment\n", 1),
        ("It begins with <!-- here:\na\n", 1),
        ("<!-- an example\na -->\n", 1),
        ("A comment begins with <!-- in HTML.\n\n", 1),
        ("Begin with `<!--` here.\n", 1),
    ],
)
def test_lines_of_text_for_another_program(before: str, calls: int) -> None:
    """Prose may name what opens a comment or a text for a shell, without a close: the next call is a real one."""
    found = check("hermes", before + CALL, roundtrip=False)
    assert len(found.tool_calls) == calls


class Markers:
    """A tokenizer whose special tokens are the markers of calls, and one that no Format knows."""

    all_special_tokens = ("<tool_call>", "</tool_call>", "<|x|>")

    def get_vocab(self) -> dict[str, int]:
        return {text: i for i, text in enumerate((*self.all_special_tokens, *(chr(c) for c in range(10, 127))))}


@pytest.mark.parametrize("sign", ["`", '"', "~"])
def test_a_special_token_that_is_dropped_quotes_nothing_under_any_split(sign: str) -> None:
    """What a sign before a call means does not depend on the delta in which a token comes that is dropped."""
    texts = ["A", sign, "<tool_call>", *'\n{"name": "f", "arguments": {}}\n', "</tool_call>", sign, "<|x|>", "."]
    ids = [Markers().get_vocab()[text] for text in texts]
    parser = OutputParser.named("hermes", tokenizer=Markers())
    found = set()
    for size in (1, 2, 3, len(texts)):
        for first in range(size):
            stream = parser.stream(collect=True, seed=1)
            cuts = [0, *range(first or size, len(texts), size), len(texts)]
            for at, end in pairwise(cuts):
                stream.feed("".join(texts[at:end]), ids[at:end])
            stream.finish()
            result = stream.result()
            found.add((result.content, tuple(call.function.name for call in result.tool_calls)))
    assert len(found) == 1
