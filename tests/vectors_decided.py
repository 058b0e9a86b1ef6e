"""Vectors for questions that a reader of the specification asked: each decides between two readings of the pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.vectors_hand import ROME, TOOLS, call, coder, value

_HERMES: Final = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'
_BARE: Final = '{"name": "weather", "parameters": {"city": "Rome"}}'
_OK: Final = call("ok", ROME)
_OSLO: Final = call("ok", {"city": "Oslo"})
_MENDED: Final = call("recovered", ROME)
_TYPES: Final = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "ratio": {"type": "number"},
                    "on": {"type": "boolean"},
                    "more": {"type": "object"},
                    "list": {"type": "array"},
                    "wind": {"type": "integer", "nullable": True},
                    "code": {"type": ["number", "string"]},
                },
                "additionalProperties": {"type": "integer"},
            },
        },
    }
]
"""Tools with values of every type."""

Row = tuple[str, str, str, str, str, Any, list[dict[str, Any]], str]


def _cut(prefix: str) -> list[dict[str, Any]]:
    return [call("incomplete", prefix)]


def _begun(text: str) -> str:
    return f"<tool_call>\n<function=weather>\n{text}"


# format, name, level, rules, output, content (or reasoning and content), calls, why
_JSON: Final[list[Row]] = [
    (
        "hermes", "number-before-a-close", "slipped", "A4 P6", _HERMES.replace('"Rome"}}', "1") + _HERMES, "",
        [call("invalid_json", '{"city": 1'), _OK], "A close outside a string ends the arguments, also after a number.",
    ),
    (
        "deepseek_v31", "list-before-a-close", "slipped", "A4 P6",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>"
        '{"days": [1, 2<｜tool▁call▁end｜><｜tool▁calls▁end｜>', "",
        [call("invalid_json", '{"days": [1, 2')], "A close ends the arguments, however much is open.",
    ),
    (
        "deepseek_v31", "section-close-before-a-brace", "slipped", "A4 P6",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "Rome"<｜tool▁calls▁end｜> more',
        " more",
        [call("invalid_json", '{"city": "Rome"')], "The close of the section ends the arguments, too.",
    ),
    (
        "hermes", "opener-before-a-brace", "slipped", "A4 U3", _HERMES.replace("}}</tool_call>", ", ") + _HERMES, "",
        [call("incomplete", '{"city": "Rome", '), _OK], "The next opener ends the arguments.",
    ),
    (
        "mistral", "list-close-before-a-brace", "slipped", "A4", '[TOOL_CALLS][{"name": "weather", '
        '"arguments": {"city": "Rome"]', "", _cut('{"city": "Rome"]'), "A bracket of JSON is no close of a list here.",
    ),
    (
        "hermes", "word-for-arguments", "slipped", "P7", _HERMES.replace('{"city": "Rome"}}', "soon") + _HERMES, "",
        [call("invalid_json", "soon"), _OK], "A word in the place of the arguments ends at the close.",
    ),
    (
        "hermes", "key-without-arguments", "slipped", "P4", _HERMES.replace('{"city": "Rome"}}', ""), "",
        [call("recovered", "{}")], "Without any text of arguments they are {}.",
    ),
    (
        "hermes", "member-without-a-brace", "slipped", "P4 J5", _HERMES.replace('"arguments": {"city": "Rome"}}',
        '"city": "Rome"'), "", [call("invalid_json", '{"city": "Rome"')], "Members that are cut off are passed on.",
    ),
    (
        "hermes", "two-names", "slipped", "J1 P8", _HERMES.replace('"arguments"', '"name": "other", "arguments"'), "",
        [_MENDED], "The first of two names counts, and the other is a member too many.",
    ),
    (
        "hermes", "two-arguments", "slipped", "J1 P8",
        _HERMES.replace('"}}', '"}, "parameters": {"city": "Oslo"}}'), "", [_MENDED],
        "The first of two members for the arguments counts.",
    ),
    (
        "hermes", "string-with-escapes", "slipped", "P7 A2",
        '<tool_call>{"name": "weather", "arguments": "say \\"hi\\"\\n"}</tool_call>', "",
        [call("invalid_json", 'say "hi"\n')], "The text of the string is passed on with its escapes decoded.",
    ),
    (
        "hermes", "eight-braces-too-many", "slipped", "P3", _HERMES.replace("}}", "}}" + "}" * 8), "", [_MENDED],
        "Eight characters are dropped.",
    ),
    (
        "hermes", "nine-braces-too-many", "slipped", "P3 P2", _HERMES.replace("}}", "}}" + "}" * 9),
        "}}}}}}}}}</tool_call>", [_MENDED], "Nine characters are other text, which ends the call.",
    ),
    (
        "hermes", "null-where-nullable", "clean", "U1", _HERMES.replace('"city": "Rome"', '"wind": null'), "",
        [call("ok", {"wind": None})], "A nullable value may be null.",
    ),
    ("hermes", "cut-after-the-comma", "cut", "K2", '<tool_call>{"name": "weather",', "", _cut(""), "No arguments yet."),
    (
        "hermes", "cut-before-the-arguments", "cut", "K2", '<tool_call>{"name": "weather", "arguments": ', "", _cut(""),
        "No arguments yet.",
    ),
    (
        "hermes", "cut-in-a-member", "cut", "K2 J5", '<tool_call>{"name": "weather", "city": "Ro', "",
        _cut('{"city": "Ro'), "Other members are the arguments.",
    ),
    (
        "hermes", "cut-before-the-end-of-the-turn", "cut", "M8 K2",
        '<tool_call>{"name": "weather", "arguments": {"city": "Ro<|im_end|>', "", _cut('{"city": "Ro<|im_end|>'),
        "In a string the end of the turn is text, like any marker.",
    ),
    (
        "hermes", "cut-after-one-character-of-a-close", "cut", "K7", _HERMES + "<", "<", [_OK],
        "One character is not enough to be the beginning of a close.",
    ),
    (
        "hermes", "cut-after-two-characters-of-a-close", "cut", "K7", _HERMES + "</", "", [_OK],
        "Two characters are the beginning of a close.",
    ),
]  # fmt: skip

_TAGGED: Final[list[Row]] = [
    (
        "qwen3_coder", "call-without-closes-before-a-call", "slipped", "X5 P1",
        _begun(value("city", "Rome")) + "\n" + coder(value("city", "Oslo")), "", [_MENDED, _OSLO],
        "The opener of the next call may follow a value.",
    ),
    (
        "qwen3_coder", "cut-before-the-end-of-the-turn", "cut", "M8 K6", _begun("<parameter=city>\nx\n<|im_end|>\n"),
        "", _cut('{"city": "x\\n<|im_end|>\\n'), "Inside an open call the end of the turn is text.",
    ),
    (
        "qwen3_coder", "key-over-two-lines", "slipped", "P23", coder("<parameter=a b\nc>1</parameter>"), "",
        [call("recovered", {})], "A key ends on its line.",
    ),
    (
        "qwen3_coder", "key-with-a-space", "slipped", "P23", coder("<parameter=days left>\n1\n</parameter>"), "",
        [call("ok", {"days left": "1"})], "A key may have spaces.",
    ),
    (
        "glm45", "key-close-missing", "slipped", "P23",
        "<tool_call>weather\n<arg_key>city\n<arg_value>Rome</arg_value>\n</tool_call>", "", [_MENDED],
        "The opener of a value ends a key whose close is missing.",
    ),
    (
        "glm45", "value-open-missing", "slipped", "P22",
        "<tool_call>weather\n<arg_key>city</arg_key>\nRome</arg_value>\n</tool_call>", "", [_MENDED],
        "A value whose opener is missing begins where it would stand.",
    ),
    (
        "deepseek_v31", "arguments-opened-twice", "slipped", "P22",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜><｜tool▁sep｜>"
        '{"city": "Rome"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>', "", [_MENDED], "The second opener is dropped.",
    ),
    (
        "qwen3_coder", "close-in-quotation-marks", "quoted", "X5 P11",
        coder(value("city", 'echo "</parameter>"')), "", [call("recovered", {"city": 'echo "</parameter>"'})],
        "A close between two equal quotation marks is text.",
    ),
    (
        "qwen3_coder", "value-of-one-line-without-its-close", "slipped", "P10",
        _begun("<parameter=city>\nRome</function></tool_call>\nMore."), "\nMore.", [_MENDED],
        "After a value of one line the end of the line decides.",
    ),
    (
        "minimax_m2", "value-close-missing-in-a-section", "slipped", "P10",
        '</think>\n<minimax:tool_call>\n<invoke name="weather">\n<parameter name="city">Rome</invoke>\n'
        '<invoke name="weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n</minimax:tool_call>', "",
        [_MENDED, _OSLO], "In a section the close of the call is enough, if another call follows.",
    ),
    (
        "qwen3_coder", "text-between-arguments", "slipped", "P13",
        coder(value("city", "Rome") + "\nand then\n" + value("days", "3")), "",
        [call("recovered", {"city": "Rome", "days": 3})], "Text on a line of its own is dropped.",
    ),
    (
        "qwen3_coder", "text-between-closes", "slipped", "P13",
        _begun(value("city", "Rome") + "</function> so be it </tool_call>"), "", [_MENDED],
        "A few words between two closes are dropped.",
    ),
    *(
        (
            "qwen3_coder", f"key-after-{name}", "quoted", "P9",
            _begun(f"<parameter=city>\nRome {sign} <parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"), "",
            [call("recovered", {"city": f"Rome {sign} <parameter=days>\n3"})],
            "The opener of an argument in a comment is a part of the value.",
        )
        for name, sign in (("hash", "#"), ("slashes", "//"), ("dashes", "--"), ("star", "/*"), ("html", "<!--"))
    ),
    (
        "qwen3_coder", "key-after-a-hash-in-a-word", "slipped", "P9",
        _begun("<parameter=city>\nx#y <parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"), "",
        [call("recovered", {"city": "x#y ", "days": 3})], "A hash in a word begins no comment.",
    ),
    *(
        (
            "qwen3_coder", f"damaged-close-{name}", "slipped", "P21",
            _begun(f"<parameter=city>\nRome\n{close}\n</function>\n</tool_call>"), "", [_MENDED],
            "A close that is damaged at its end is one, if a close follows.",
        )
        for name, close in (("cut", "</parameter"), ("plural", "</parameters>"), ("key", "</city>"))
    ),
    (
        "qwen3_coder", "damaged-key", "slipped", "P21",
        coder(value("city", "Rome") + "\n<paramter=days>\n3\n</parameter>"), "",
        [call("recovered", {"city": "Rome", "days": 3})], "A damaged opener begins a declared argument.",
    ),
    (
        "hermes", "damaged-call-close", "slipped", "P21", _HERMES.replace("</tool_call>", "</tool_cal>"), "", [_MENDED],
        "A close with one character lost is a close.",
    ),
    *(
        ("qwen3_coder", f"cut-{name}", "cut", "K6", _begun(text), "", _cut(prefix), "The prefix is what was written.")
        for name, text, prefix in (
            ("in-a-number", "<parameter=days>\n1", '{"days": 1'),
            ("in-a-word", "<parameter=on>\ntr", '{"on": tr'),
            ("in-an-object", '<parameter=more>\n{"a"', '{"more": {"a"'),
            ("in-a-literal", "<parameter=more>\n{'a': T", "{\"more\": {'a': T"),
            ("in-other-text", "<parameter=days>\n12a", '{"days": 12a'),
            ("after-a-value", "<parameter=days>\n3\n</parameter>", '{"days": 3'),
            ("in-a-key", "<parameter=ci", '{"ci'),
            ("before-a-string", "<parameter=city>\n", '{"city": "'),
            ("before-a-number", "<parameter=days>", '{"days": '),
        )
    ),
    *(
        (
            "llama4_pythonic", f"cut-{name}", "cut", "K6", f"<|python_start|>[weather({text}", "", _cut(prefix),
            "The prefix is what was written.",
        )
        for name, text, prefix in (
            ("at-once", "", ""),
            ("in-a-key", "ci", '{"ci'),
            ("after-a-key", "city=", '{"city": '),
            ("in-a-word", "on=Tr", '{"on": tr'),
            ("in-words", "city=New Yo", '{"city": "New Yo'),
            ("in-an-escape", "city='Ro\\", '{"city": "Ro\\\\'),
            ("in-an-inner-key", "more={'a'", '{"more": {"a"'),
            ("after-an-inner-key", "more={'a':", '{"more": {"a": '),
            ("after-a-comma", "list=[1,", '{"list": [1'),
        )
    ),
    ("pythonic", "cut-before-a-value", "cut", "K3 T10", "[weather(city=", "[weather(city=", [], "A bare call is text."),
    *(
        ("qwen3_coder", f"typed-{name}", "slipped", rules, coder(value(key, text)), "", [call("ok", {key: result})],
         why)
        for name, rules, key, text, result, why in (
            ("additional", "V1", "other", "5", 5, "additionalProperties is the schema of other keys."),
            ("nullable", "V1", "wind", "null", None, "A nullable value may be null."),
            ("literal", "V7", "more", "{'a': True, 'b': None}", {"a": True, "b": None}, "Python's literals are read."),
            ("float", "V6", "ratio", "3.0", 3.0, "A number stays as it is written where number is a type."),
            ("code", "V6", "code", "007", "007", "Where a string is allowed, only numbers of JSON are numbers."),
        )
    ),
    ("pythonic", "three-quotes", "slipped", "L3", "[weather(city='''Rome''')]", "", [_OK], "Three quotes are quotes."),
]  # fmt: skip

_QUOTED: Final[list[Row]] = [
    (
        "hermes", "json-string-after-text", "quoted", "Q1", f'Data: {{"a": "x {_HERMES}', f'Data: {{"a": "x {_HERMES}',
        [], "A string of JSON is open.",
    ),
    (
        "hermes", "json-string-with-a-break", "quoted", "Q1", f'{{"a": "x\n {_HERMES}"}}', '{"a": "x"}', [_OK],
        "A string of JSON has no line break.",
    ),
    (
        "hermes", "json-string-over-a-call", "quoted", "Q1 Q12", f'{{"a": 1, {_HERMES} "b": "x {_HERMES}',
        f'{{"a": 1, "b": "x {_HERMES}', [_OK], "What is open before a call is open after it.",
    ),
    ("hermes", "diff-fence", "quoted", "Q3", _diff := f"```diff\n{_HERMES}\n```", _diff, [], "A fence of a diff."),
    ("hermes", "sign-in-a-fence", "quoted", "Q3", _sign := f"```\n+ {_HERMES}\n```", _sign, [], "A line of a diff."),
    ("hermes", "sign-outside-a-fence", "quoted", "Q3", f"- {_HERMES}", "-", [_OK], "An item of a list is no diff."),
    (
        "hermes", "fence-over-a-call", "quoted", "Q3 Q8 Q12", f"```\n{_HERMES}\n+ {_HERMES}\n```",
        f"```\n+ {_HERMES}\n```", [_OK], "A fence stays open over a call.",
    ),
    (
        "hermes", "line-after-a-call", "quoted", "Q2 Q12", f"Hi {_HERMES}| {_HERMES}", f"Hi| {_HERMES}", [_OK],
        "Text after a call begins a line.",
    ),
    (
        "hermes", "mark-after-a-call", "quoted", "Q5 Q12", f'a 5" {_HERMES} "{_HERMES}', f'a 5" "{_HERMES}', [_OK],
        "Text after a call begins a line, so no other mark is open on it.",
    ),
    *(
        ("hermes", f"in-{name}", "quoted", rule, text, text, [], why)
        for name, rule, text, why in (
            ("a-row-without-edges", "Q2", f"a | b\n---|---\nc | {_HERMES}", "The line is a row of a table."),
            ("a-footnote", "Q2", f"It calls.\n\n[^1]: {_HERMES}", "The line is a footnote."),
            ("a-log", "Q2", f"2026-01-02 10:00:01 INFO {_HERMES}", "The line is one of a log."),
            ("a-hunk", "Q3", f"@@ -1 +1,2 @@\n a\n+{_HERMES}", "A line of a diff, without a fence."),
            ("a-here-document", "Q3", f"cat <<EOF > x\n{_HERMES}\nEOF\nDone.", "It is the input of a command."),
            ("a-comment-of-two-lines", "Q6", f"<!-- a\n{_HERMES}\n-->", "The comment is still open."),
            ("the-target-of-a-link", "Q6", f"See [it]({_HERMES}).", "It is the target of a link."),
            ("inline-code-after-words", "Q7", f"Write `run {_HERMES} now` here.", "A backtick follows on the line."),
            ("quotation-after-words", "Q7", f'It says "run {_HERMES} now".', "The quotation ends on the line."),
        )
    ),
    (
        "hermes", "inline-code-that-stays-open", "quoted", "Q7", f"I use `run {_HERMES}\nDone.", "I use `run\nDone.",
        [_OK], "No backtick follows on the line.",
    ),
    (
        "hermes", "after-a-here-document", "quoted", "Q3", f"cat <<EOF > x\na\nEOF\n{_HERMES}", "cat <<EOF > x\na\nEOF",
        [_OK], "The word has ended it.",
    ),
    (
        "hermes", "mark-that-closes", "quoted", "Q5", f'a "b "{_HERMES}', 'a "b "', [_OK],
        "Another mark is open on the line, so this one closes.",
    ),
    *(
        ("hermes", f"in-{name}-marks", "quoted", "Q5", f"It wrote {mark}{_HERMES}", f"It wrote {mark}{_HERMES}", [],
         "The mark opens a quotation.")
        for name, mark in (("curly", "“"), ("angle", "«"), ("single", "‘"), ("corner", "「"))
    ),
    *(
        ("hermes", f"mark-after-{name}", "quoted", "Q5", f'It{sign}"{_HERMES}', f'It{sign}"', [_OK],
         "The mark opens no quotation.")
        for name, sign in (("a-letter", ""), ("a-bar", "|"), ("a-dash", "-"))
    ),
    *(
        (
            "hermes", f"quoted-{name}", "quoted", "Q2", f"It wrote:\n{mark} {_HERMES}", f"It wrote:\n{mark} {_HERMES}",
            [], "Marks of lists come before the sign.",
        )
        for name, mark in (("star", "* >"), ("number", "12. |"), ("bracket", "1) >"), ("plus", "+ |"))
    ),
    *(
        ("hermes", f"unquoted-{name}", "quoted", "Q2", f"It wrote:\n{mark} {_HERMES}", f"It wrote:\n{mark}", [_OK],
         "It is no mark of a list.")
        for name, mark in (("bullet", "• >"), ("letter", "a. >"), ("word", "so >"))
    ),
    *(
        ("hermes", f"in-{name}", "quoted", "Q6", f"See {tag}{_HERMES}", f"See {tag}{_HERMES}", [],
         "The tag quotes what follows.")
        for name, tag in (
            ("a-tag-with-attributes", "<code class=x>"), ("a-comment", "<!--"), ("cdata", "<![CDATA["),
            ("pre", "<pre>"),
        )
    ),
    *(
        ("hermes", f"after-{name}", "quoted", "Q6", f"See {tag}{_HERMES}", f"See {tag}", [_OK],
         "The tag quotes nothing.")
        for name, tag in (("capitals", "<CODE>"), ("a-span", "<span>"), ("a-close-tag", "</code>"))
    ),
    (
        "hermes", "empty-block-before-text", "slipped", "Q10", "Done.\n<tool_call></tool_call>\n\nMore.",
        "Done.\n\n\nMore.", [], "The white space on both sides stays.",
    ),
    (
        "deepseek_v31", "escaped-copy", "quoted", "Q9",
        _copy := "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>"
        '{\\"city\\": \\"Rome\\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>', _copy, [], "A copy with escapes is text.",
    ),
    (
        "hermes+qwen3", "close-in-a-draft", "slipped", "R2 T15",
        "<think>Hm. " + _HERMES.replace("Rome", "</think>") + "</think>", ("Hm.", ""),
        [call("ok", {"city": "</think>"})], "A close of reasoning in a string of a call is text.",
    ),
    (
        "hermes+qwen3", "cut-draft", "cut", "K3 T15", '<think>Hm. <tool_call>{"name": "wea', ("Hm.", ""), [],
        "In reasoning, too, an opener that the output ends in is dropped.",
    ),
    (
        "hermes+qwen3", "reasoning-in-a-fence", "quoted", "R5", _fence := "Hi.\n```\n<think>a</think>\n```", _fence, [],
        "In a fence it is text.",
    ),
    (
        "hermes+qwen3", "reasoning-after-reasoning", "slipped", "R5 R6", "<think>a</think><think>b</think>Yes.",
        ("ab", "Yes."), [], "Reasoning may follow reasoning.",
    ),
    (
        "hermes+qwen3", "reasoning-after-a-call", "slipped", "R5", f"{_HERMES}<think>b</think>Yes.", ("b", "Yes."),
        [_OK], "Reasoning may follow a call.",
    ),
    (
        "hermes+qwen3", "close-between-backticks", "quoted", "R7", _ticks := "See `</think>` here.", _ticks, [],
        "Between two single backticks it is text.",
    ),
    (
        "deepseek_v3+deepseek_r1", "white-space-at-the-start", "clean", "S1", "\n\n Hm.</think>Yes.",
        ("\n\n Hm.", "Yes."), [], "No marker comes before the white space.",
    ),
    *(
        ("gpt-oss", f"header-after-{name}", "slipped", "H8",
         f"<|channel|>analysis<|message|>Hm{end}<|channel|>final<|message|>Yes.", (f"Hm{end.strip()}", "Yes."), [],
         "A sentence has ended.")
        for name, end in (("a-bracket", ".)"), ("a-quotation", '."'), ("a-colon", ":"), ("a-newline", "\n"))
    ),
    *(
        ("gpt-oss", f"header-after-{name}", "quoted", "H8",
         f"<|channel|>analysis<|message|>Hm{end}<|channel|>final<|message|>Yes.",
         (f"Hm{end}<|channel|>final<|message|>Yes.", ""), [], "No sentence has ended.")
        for name, end in (("a-semicolon", ";"), ("a-word", ""))
    ),
    (
        "gpt-oss", "recipient-without-an-object", "quoted", "H8",
        "<|channel|>final<|message|>Hi "
        + (_call := "<|start|>assistant<|channel|>commentary to=functions.f<|message|>no"),
        f"Hi {_call}", [], "No object follows the header of a call.",
    ),
    (
        "gpt-oss", "newline-in-a-header", "slipped", "H1", _line := "<|channel|>final\nso<|message|>Hi", _line, [],
        "A header has no newline before another word.",
    ),
    (
        "gpt-oss", "newline-before-the-body", "slipped", "H1", "<|channel|>final json\n<|message|>Hi", "Hi", [],
        "A header may have a newline before its end.",
    ),
    (
        "gpt-oss", "header-begins-twice", "slipped", "H9",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|><|start|>assistant<|channel|>final<|message|>Hi",
        ("Hm.", "Hi"), [], "The first beginning is dropped.",
    ),
    *(
        ("gemma4", f"word-opener-after-{name}", "slipped", "T16", f'Hi{end} call:weather{{city:<|"|>Rome<|"|>}}',
         f"Hi{end}", [_OK], "A sentence has ended.")
        for name, end in (("a-dot", "."), ("a-question", "?"))
    ),
    *(
        ("gemma4", f"word-opener-after-{name}", "quoted", "T16", said := f'Hi{end} call:weather{{city:<|"|>Rome<|"|>}}',
         said, [], "No sentence has ended.")
        for name, end in (("a-colon", ":"), ("a-comma", ","))
    ),
    *(
        ("llama3_json", f"two-calls-{name}", "slipped", "T10",
         f"{_BARE}{between}{_BARE}", f"{between}{_BARE}", [_OK], "Only a separator joins two bare calls.")
        for name, between in (("with-a-newline", "\n"), ("with-a-comma", ", "), ("directly", ""))
    ),
]  # fmt: skip


def decided() -> Iterator[dict[str, Any]]:
    """Yield the vectors."""
    for name, kind, level, rules, output, said, calls, why in (*_JSON, *_TAGGED, *_QUOTED):
        reasoning, content = ("", said) if isinstance(said, str) else said
        expect = {"reasoning": reasoning, "content": content, "tool_calls": calls}
        cut = {"finish_reason": "length"} if level == "cut" else {}
        typed = kind.startswith(("typed-", "cut-")) or "nullable" in kind
        yield {
            "id": f"{name}/{kind}", "format": name, "level": level, "rules": rules.split(),
            "tools": _TYPES if typed else TOOLS, "output": output, "expect": expect, "why": why, **cut,
        }  # fmt: skip
