"""Translates response templates shaped like those of checkpoints and TRL, and checks the errors of others."""

from typing import Any

import pytest

from untemplate._internal.output_parser import OutputParser
from untemplate.format import (
    Channels,
    Content,
    Format,
    FormatError,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    Reasoning,
    TaggedArguments,
    Tools,
    Turn,
)

Json = dict[str, Any]

CONTENT_IS_CALL = {"type": "function", "function": "{content}"}
NAME_AND_CONTENT = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
CHATML = "<|im_start|>assistant\n"
CHATML_END = Turn(start=Marker(CHATML), end=Marker("<|im_end|>"))
THINK: Json = {"open": "<think>", "close": "</think>", "content": "text"}
THINKING = Reasoning(open=Marker("<think>"), close=Marker("</think>"))


def translate(**template: Any) -> Format:
    return Format.from_response_template(template, name="x")


# -- Families -----------------------------------------------------------------------------------------------------


def qwen3() -> Format:
    """Patterns that are literals with white space after them."""
    return translate(
        version=1,
        defaults={"role": "assistant"},
        start_anchor=CHATML,
        fields={
            "reasoning_content": {"open": "<think>", "close_pattern": r"</think>\s*", "content": "text"},
            "tool_calls": {
                "open": "<tool_call>",
                "close_pattern": r"</tool_call>\s*",
                "repeats": True,
                "content": "json",
                "transform": CONTENT_IS_CALL,
            },
            "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
        },
    )


def test_qwen3_like() -> None:
    fmt = qwen3()
    assert fmt == Format(
        name="x",
        turn=CHATML_END,
        reasoning=THINKING,
        tools=(Tools(call_open=Marker("<tool_call>"), call_close=Marker("</tool_call>")),),
    )
    assert fmt.tools[0].body == JsonBody()


def smollm() -> Format:
    """Literals only; ``content`` is the remaining text, up to the end of the turn or of the stream."""
    return translate(
        start_anchor=CHATML,
        fields={
            "thinking": {**THINK, "optional": False},
            "tool_calls": {
                "open": ["<tool_call>", "<tool_call>\n", "<function_call>"],
                "close": ["</tool_call>", "eos"],
                "repeats": True,
                "content": "json",
                "content_args": {"allow_non_json": True},
                "transform": {
                    "type": "function",
                    "function": {"name": "{content.name}", "arguments": "{content.parameters}"},
                },
            },
            "content": {"close": ["<|im_end|>", "<|endoftext|>"], "content_args": {"strip": True}},
        },
    )


def test_smollm_like() -> None:
    fmt = smollm()
    assert fmt == Format(
        name="x",
        turn=Turn(start=Marker(CHATML), end=Marker("<|im_end|>", ("<|endoftext|>",))),
        reasoning=THINKING,
        tools=(
            Tools(
                call_open=Marker("<tool_call>", ("<tool_call>\n", "<function_call>")),
                call_close=Marker("</tool_call>"),
                body=JsonBody(arguments_key="parameters"),
            ),
        ),
    )


def qwen3_coder() -> Format:
    return translate(
        start_anchor=CHATML,
        fields={
            "tool_calls": {
                "open_pattern": r"<tool_call>\s*<function=(?P<name>[^\n>]+)>",
                "close": "</tool_call>",
                "repeats": True,
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": r"<parameter=(?P<key>\w+)>\s*(?P<value>.*?)\s*</parameter>",
                    "value_parser": {"name": "json", "args": {"allow_non_json": True}},
                    "merge_duplicates": False,
                },
                "transform": NAME_AND_CONTENT,
            },
        },
    )


def test_qwen3_coder_like() -> None:
    fmt = qwen3_coder()
    assert fmt == Format(
        name="x",
        turn=Turn(start=Marker(CHATML)),
        tools=(
            Tools(
                call_open=Marker("<tool_call>\n"),
                call_close=Marker("</tool_call>"),
                body=NamedBody(
                    name_open=Marker("<function="),
                    name_close=Marker(">"),
                    arguments=TaggedArguments(
                        key_open=Marker("<parameter="),
                        key_close=Marker(">\n"),
                        value_close=Marker("\n</parameter>"),
                        trim=1,
                    ),
                    arguments_close=Marker("</function>"),
                ),
            ),
        ),
    )


def glm() -> Format:
    """Key and value have their own tags; a newline ends the name."""
    return translate(
        start_anchor="<|assistant|>",
        fields={
            "tool_calls": {
                "open_pattern": r"<tool_call>(?P<name>\S+)\n?",
                "close_pattern": r"</tool_call>\s*",
                "repeats": True,
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": r"<arg_key>(?P<key>[^<]+)</arg_key>\s*\n<arg_value>(?P<value>.*?)</arg_value>"
                },
                "transform": {"name": "{name}", "arguments": "{content}"},
            },
            "content": {"close_pattern": r"<\|user\|>\s*|<\|observation\|>|$"},
        },
    )


def test_glm_like() -> None:
    fmt = glm()
    assert fmt == Format(
        name="x",
        turn=Turn(start=Marker("<|assistant|>"), end=Marker("<|user|>", ("<|observation|>",))),
        tools=(
            Tools(
                call_open=Marker("<tool_call>"),
                call_close=Marker("</tool_call>"),
                body=NamedBody(
                    name_close=Marker("\n"),
                    arguments=TaggedArguments(
                        key_open=Marker("<arg_key>"),
                        key_close=Marker("</arg_key>"),
                        value_open=Marker("\n<arg_value>"),
                        value_close=Marker("</arg_value>"),
                    ),
                ),
            ),
        ),
    )


def cohere() -> Format:
    """One JSON list of calls, transformed one by one; content in markers."""
    return translate(
        start_anchor="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        fields={
            "content": {"open": "<|START_RESPONSE|>", "close": "<|END_RESPONSE|>", "content": "text"},
            "thinking": {"open": "<|START_THINKING|>", "close": "<|END_THINKING|>", "content": "text"},
            "tool_calls": {
                "open": "<|START_ACTION|>",
                "close": "<|END_ACTION|>",
                "content": "json",
                "transform_each": True,
                "transform": {
                    "type": "function",
                    "id": "{tool_call_id}",
                    "function": {"name": "{tool_name}", "arguments": "{parameters}"},
                },
            },
        },
    )


def test_cohere_like() -> None:
    fmt = cohere()
    assert fmt == Format(
        name="x",
        turn=Turn(start=Marker("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>")),
        reasoning=Reasoning(open=Marker("<|START_THINKING|>"), close=Marker("<|END_THINKING|>")),
        content=Content(open=Marker("<|START_RESPONSE|>"), close=Marker("<|END_RESPONSE|>")),
        tools=(
            Tools(
                section_open=Marker("<|START_ACTION|>"),
                section_close=Marker("<|END_ACTION|>"),
                list_open=Marker("["),
                list_close=Marker("]"),
                separator=Marker(", "),
                body=JsonBody(name_key="tool_name", arguments_key="parameters", id_key="tool_call_id"),
            ),
        ),
    )


def test_words_between_tokens_are_channels_only_where_all_are() -> None:
    """A word between two tokens is an ordinary marker if the tokens differ."""
    thinking = {"open": "<|c|>analysis<|m|>", "close": "</t>"}
    fmt = translate(fields={"thinking": thinking, "content": {"open": "<r>", "close": "</r>"}})
    assert fmt.channels is None
    assert fmt.reasoning == Reasoning(open=Marker("<|c|>analysis<|m|>"), close=Marker("</t>"))
    content = {"open": "<|d|>final<|m|>", "close": "</r>"}
    fmt = translate(fields={"thinking": thinking, "content": content})
    assert fmt.content == Content(open=Marker("<|d|>final<|m|>"), close=Marker("</r>"))


def channels(**changes: Any) -> Channels:
    values: Json = {
        "open": Marker("<|start|>"),
        "role": "assistant",
        "channel": Marker("<|channel|>"),
        "recipient": Marker(" to="),
        "body": Marker("<|message|>"),
        "close": Marker("<|end|>"),
        "call_close": Marker("<|call|>"),
        "namespace": "functions.",
        "reasoning": ("analysis",),
        "content": ("final",),
        "call_channel": "commentary",
    }
    return Channels(**(values | changes))


def gpt_oss(open_pattern: str, content_close: str, **changes: Any) -> Json:
    return {
        "start_anchor": "<|start|>assistant",
        "fields": {
            "thinking": {"open": "<|channel|>analysis<|message|>", "close": "<|end|>", "content": "text"},
            "content": {"open": "<|channel|>final<|message|>", "close": content_close, "content": "text"},
            "tool_calls": {
                "open_pattern": open_pattern,
                "close": "<|call|>",
                "repeats": True,
                "content": "json",
                "transform": NAME_AND_CONTENT,
            }
            | changes,
        },
    }


def test_gpt_oss_like() -> None:
    template = gpt_oss(r"<\|channel\|>commentary to=functions\.(?P<name>\w+).*?<\|message\|>", "<|end|>")
    assert translate(**template) == Format(name="x", turn=Turn(start=Marker("<|start|>assistant")), channels=channels())


def test_gpt_oss_like_with_the_recipient_first() -> None:
    template = gpt_oss(r"to=functions\.(?P<name>\S+?)<\|channel\|>commentary\s+json<\|message\|>", "<|return|>")
    assert translate(**template) == Format(
        name="x",
        turn=Turn(start=Marker("<|start|>assistant"), end=Marker("<|return|>")),
        channels=channels(call_constraint="json"),
    )


def test_gpt_oss_like_with_role_and_constraint() -> None:
    pattern = (
        r"<\|start\|>assistant<\|channel\|>commentary to=functions\.(?P<name>\w+) <\|constrain\|>json<\|message\|>"
    )
    assert translate(**gpt_oss(pattern, "<|return|>")).channels == channels(
        constraint=Marker(" <|constrain|>"), call_constraint="json"
    )


def test_channels_without_calls() -> None:
    template = gpt_oss("", "<|return|>")
    del template["fields"]["tool_calls"]
    template["fields"]["thinking"]["open"] = ["<|channel|>analysis<|message|>", "<|channel|>notes<|message|>"]
    assert translate(**template).channels == Channels(
        open=Marker("<|start|>"),
        role="assistant",
        channel=Marker("<|channel|>"),
        body=Marker("<|message|>"),
        close=Marker("<|end|>"),
        reasoning=("analysis", "notes"),
        content=("final",),
    )


def gemma4() -> Format:
    """Strings with special delimiters, bare keys, several starts of a turn."""
    return translate(
        start_anchor=["<|turn>model\n", "<tool_response|>"],
        fields={
            "thinking": {"open": "<|channel>thought\n", "close": "<channel|>", "repeats": True, "join": ""},
            "tool_calls": {
                "open_pattern": r"<\|tool_call>call:(?P<name>\w+)",
                "close": "<tool_call|>",
                "repeats": True,
                "content": "json",
                "content_args": {"unquoted_keys": True, "string_delims": [['<|"|>', '<|"|>']]},
                "transform": NAME_AND_CONTENT,
            },
            "content": {"close_pattern": r"(?:<turn\|>|<\|tool_response>|<eos>)\s*|$"},
        },
    )


def test_gemma4_like() -> None:
    fmt = gemma4()
    assert fmt == Format(
        name="x",
        turn=Turn(
            start=Marker("<|turn>model\n", ("<tool_response|>",)),
            end=Marker("<turn|>", ("<|tool_response>", "<eos>")),
        ),
        reasoning=Reasoning(open=Marker("<|channel>thought\n"), close=Marker("<channel|>"), repeats=True),
        tools=(
            Tools(
                call_open=Marker("<|tool_call>call:"),
                call_close=Marker("<tool_call|>"),
                body=NamedBody(
                    arguments=LiteralArguments(
                        open="{",
                        close="}",
                        assign=":",
                        separator=",",
                        quotes=('<|"|>', '"'),
                        escapes=False,
                        words=("true", "false", "null"),
                        quoted_keys=False,
                    )
                ),
            ),
        ),
    )
    same = translate(start_anchor_pattern=r"(?:<\|turn>model\n|<tool_response\|>)", fields={})
    assert same.turn.start == fmt.turn.start


def ernie() -> Format:
    """``^``: an output may begin with reasoning."""
    return translate(
        fields={
            "thinking": {"open_pattern": r"(?:^|<think>\s*)", "close": "</think>"},
            "content": {"open": "<response>\n", "close_pattern": r"\n?</response>"},
        },
    )


def test_ernie_like() -> None:
    fmt = ernie()
    assert fmt == Format(
        name="x",
        reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>"), start="open"),
        content=Content(open=Marker("<response>\n"), close=Marker("\n</response>")),
    )


def test_an_optional_prefix_is_an_accepted_spelling() -> None:
    fmt = translate(
        fields={
            "thinking": {"open_pattern": r"(?:<\|turn\|>bot)?<\|think\|>", "close": "<|done|>"},
            "tool_calls": {
                "open_pattern": r"(?:<\|turn\|>bot)?<\|tool\|>(?P<tool>[A-Za-z_][\w.]*)<\|args\|>",
                "close": ["<|done|>", "<|eos|>"],
                "repeats": True,
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": r'<arg name="(?P<key>[^"]+)">(?P<value>.*?)</arg>',
                    "value_parser": {"name": "text", "args": {"strip": False}},
                },
                "transform": {"type": "function", "function": {"name": "{tool}", "arguments": "{content}"}},
            },
        },
    )
    assert fmt == Format(
        name="x",
        reasoning=Reasoning(open=Marker("<|think|>", ("<|turn|>bot<|think|>",)), close=Marker("<|done|>")),
        tools=(
            Tools(
                call_open=Marker("<|tool|>", ("<|turn|>bot<|tool|>",)),
                call_close=Marker("<|done|>", ("<|eos|>",)),
                body=NamedBody(
                    name_close=Marker("<|args|>"),
                    arguments=TaggedArguments(
                        key_open=Marker('<arg name="'), key_close=Marker('">'), value_close=Marker("</arg>")
                    ),
                ),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("fmt", "output", "reasoning", "content", "call"),
    [
        (
            qwen3(),
            '<think>\nhm\n</think>\n\nWait.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call><|im_end|>',
            "hm",
            "Wait.",
            ("f", '{"a": 1}'),
        ),
        (
            qwen3_coder(),
            "Wait.\n<tool_call>\n<function=f>\n<parameter=a>\n\n  x\n\n</parameter>\n</function>\n</tool_call>",
            None,
            "Wait.",
            ("f", '{"a": "\\n  x\\n"}'),
        ),
        (
            glm(),
            "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value> x </arg_value>\n</tool_call><|user|>",
            None,
            None,
            ("f", '{"a": " x "}'),
        ),
        (
            cohere(),
            "<|START_THINKING|>hm<|END_THINKING|><|START_ACTION|>[\n"
            '    {"tool_call_id": "0", "tool_name": "f", "parameters": {"a": 1}}\n]<|END_ACTION|>',
            "hm",
            None,
            ("f", '{"a": 1}'),
        ),
        (
            gemma4(),
            "<|channel>thought\nhm<channel|><|tool_call>call:f{a:<|\"|>x<|\"|>}<tool_call|><turn|>",
            "hm",
            None,
            ("f", '{"a": "x"}'),
        ),
        (
            ernie(),
            "hm\n</think>\n\n<response>\nWait.\n</response>\n",
            "hm",
            "Wait.",
            None,
        ),
    ],
)  # fmt: skip
def test_a_translated_format_parses_outputs(
    fmt: Format, output: str, reasoning: str | None, content: str | None, call: tuple[str, str] | None
) -> None:
    parsed = OutputParser(format=fmt).parse(output)
    calls = [(c.function.name, c.function.arguments) for c in parsed.tool_calls]
    assert (parsed.reasoning_content, (parsed.content or "").strip() or None, calls, parsed.diagnostics) == (
        reasoning,
        content,
        [] if call is None else [call],
        [],
    )


# -- The opening of a call, and its JSON --------------------------------------------------------------------------


def call(**changes: Any) -> Json:
    return {"open": "<c>", "close": "</c>", "repeats": True, "content": "json", "transform": CONTENT_IS_CALL} | changes


def named(pattern: str, **changes: Any) -> Json:
    field = call(transform=NAME_AND_CONTENT) | {"open_pattern": pattern} | changes
    del field["open"]
    return field


LITERAL_JSON = LiteralArguments(
    open="{", close="}", assign=":", separator=",", quotes=('"',), words=("true", "false", "null")
)


@pytest.mark.parametrize(
    ("pattern", "tools"),
    [
        (
            r"<function=(?P<name>\w+)>",
            Tools(
                body=NamedBody(name_open=Marker("<function="), name_close=Marker(">"), arguments_close=Marker("</c>"))
            ),
        ),
        (
            r"<tool_call><function=(?P<name>\w+)>\s*",
            Tools(
                call_open=Marker("<tool_call>"),
                call_close=Marker("</c>"),
                body=NamedBody(
                    name_open=Marker("<function="), name_close=Marker(">"), arguments_close=Marker("</function>")
                ),
            ),
        ),
        (
            r"\[TOOL_CALLS\](?P<name>[^\[]+)\[ARGS\]",
            Tools(
                call_open=Marker("[TOOL_CALLS]"),
                call_close=Marker("</c>"),
                body=NamedBody(name_close=Marker("[ARGS]")),
            ),
        ),
        (
            r"\[TOOL_CALLS\](?P<name>\w+)",
            Tools(call_open=Marker("[TOOL_CALLS]"), call_close=Marker("</c>"), body=NamedBody(arguments=LITERAL_JSON)),
        ),
        (
            r"call:\s(?P<name>\w+)\t*\x0a",
            Tools(
                body=NamedBody(name_open=Marker("call:"), name_close=Marker("\n"), arguments_close=Marker("</c>")),
            ),
        ),
    ],
)
def test_openings_of_calls(pattern: str, tools: Tools) -> None:
    assert translate(fields={"tool_calls": named(pattern)}).tools == (tools,)
    assert JsonArguments() == NamedBody().arguments


@pytest.mark.parametrize(
    ("transform", "each", "body"),
    [
        ({"name": "{content.tool}", "arguments": "{content.args}"}, False,
         JsonBody(name_key="tool", arguments_key="args")),
        ({"type": "function", "id": "{content.id}", "function": "{content.function}"}, False,
         JsonBody(nested_key="function", id_key="id")),
        ({"function": {"name": "{content.f.n}", "arguments": "{content.f.a}"}}, False,
         JsonBody(nested_key="f", name_key="n", arguments_key="a")),
        ({"type": "function", "function": "{content}"}, True, JsonBody()),
        ({"type": "function", "function": "{function}"}, True, JsonBody(nested_key="function")),
    ],
)  # fmt: skip
def test_places_of_name_and_arguments_in_json(transform: Json, each: bool, body: JsonBody) -> None:
    fmt = translate(fields={"tool_calls": call(transform=transform, transform_each=each)})
    assert fmt.tools[0].body == body


# -- Templates that are invalid or cannot be translated -----------------------------------------------------------

TAG = r"<p=(?P<key>\w+)>(?P<value>.*?)</p>"
GPT_OSS_CALL = r"to=functions\.(?P<name>\w+)<\|message\|>"


def xml(**changes: Any) -> Json:
    return named(r"<f=(?P<name>\w+)>", content="xml-inline", content_args={"tag_pattern": TAG} | changes)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ([], "response_template: expected an object, got an array"),
        ({}, "fields: is missing"),
        ({"fields": {}, "version": 2}, "version: expected 1, got 2"),
        ({"fields": {}, "version": True}, "version: expected 1, got true"),
        ({"fields": []}, "fields: expected an object, got an array"),
        ({"fields": {}, "defaults": "x"}, "defaults: expected an object, got 'x'"),
        ({"fields": {}, "start_ancor": ""},
         "start_ancor: is not a key here; the keys are: version, defaults, fields, start_anchor, start_anchor_pattern"),
        ({"fields": {}, "start_anchor": "x", "start_anchor_pattern": "x"},
         "start_anchor_pattern: cannot be combined with start_anchor"),
        ({"fields": {}, "start_anchor_pattern": 3}, "start_anchor_pattern: expected text, got 3"),
        ({"fields": {}, "start_anchor": 3}, "start_anchor: expected text, got 3"),
        ({"fields": {}, "start_anchor": ""}, "start_anchor: is empty"),
        ({"fields": {}, "start_anchor_pattern": "(?<=x)y"},
         "start_anchor_pattern: has no counterpart in a Format: (?<=x)"),
        ({"fields": {}, "start_anchor_pattern": "x*"}, "start_anchor_pattern: has no counterpart in a Format: x*"),
        ({"fields": {}, "start_anchor_pattern": "x?"},
         "start_anchor_pattern: has no counterpart in a Format: it matches the empty text"),
        ({"fields": {}, "start_anchor_pattern": "^x"}, "start_anchor_pattern: has no counterpart in a Format: ^"),
        ({"fields": {}, "start_anchor_pattern": "(x"}, "start_anchor_pattern: not a regular expression: missing ), "
         "unterminated subpattern at position 0"),
        ({"fields": {}, "start_anchor_pattern": "(a|b)(c|d)(e|f)(g|h)(i|j)(k|l)(m|n)"},
         "start_anchor_pattern: has no counterpart in a Format: more than 64 spellings"),
        ({"fields": {"citation": {}}}, "fields.citation: has no counterpart in a Format"),
        ({"fields": {"content": "text"}}, "fields.content: expected an object, got 'text'"),
        ({"fields": {"content": {"opn": "x"}}}, "fields.content.opn: is not a key here; the keys are: open, "
         "open_pattern, close, close_pattern, content, content_args, repeats, join, optional, transform, "
         "transform_each"),
        ({"fields": {"content": {"open": ["a", 3]}}}, "fields.content.open[1]: expected text, got 3"),
        ({"fields": {"content": {"open": []}}}, "fields.content.open: is empty"),
        ({"fields": {"content": {"open": "a", "open_pattern": "a"}}},
         "fields.content.open_pattern: cannot be combined with open"),
        ({"fields": {"content": {"close": "a", "close_pattern": "a"}}},
         "fields.content.close_pattern: cannot be combined with close"),
        ({"fields": {"content": {"repeats": 1}}}, "fields.content.repeats: expected true or false, got 1"),
        ({"fields": {"content": {"repeats": True}}},
         "fields.content.repeats: has no counterpart in a Format: without join the message would hold a list"),
        ({"fields": {"content": {"join": ""}}}, "fields.content.join: needs repeats"),
        ({"fields": {"content": {"join": " ", "repeats": True}}},
         "fields.content.join: has no counterpart in a Format unless it is ''"),
        ({"fields": {"content": {"content": "yaml"}}},
         "fields.content.content: 'yaml' is not one of: text, int, float, bool, json, xml-inline, kv-lines"),
        ({"fields": {"content": {"content": "json"}}},
         "fields.content.content: has no counterpart in a Format: 'json'"),
        ({"fields": {"content": {"content_args": {"strip": "no"}}}},
         "fields.content.content_args.strip: expected true or false, got 'no'"),
        ({"fields": {"content": {"content": "int", "content_args": {"strip": True}}}},
         "fields.content.content_args.strip: is not a key here; there are none"),
        ({"fields": {"content": {"transform": "x"}}},
         "fields.content.transform: expected an object or an array, got 'x'"),
        ({"fields": {"content": {"transform": {"a": ["n: {content}"]}}}},
         "fields.content.transform.a[0]: mixes text and placeholder: 'n: {content}'"),
        ({"fields": {"content": {"transform": {"a": "{content}"}}}},
         "fields.content.transform: has no counterpart in a Format"),
        ({"fields": {"content": {"open": "<r>"}}},
         "fields.content.close: has no counterpart in a Format: it must be a marker"),
        ({"fields": {"content": {"open_pattern": "(?:<r>)?", "close": "</r>"}}},
         "fields.content.open_pattern: has no counterpart in a Format: it matches the empty text"),
        ({"fields": {"content": {"open_pattern": "^", "close": "</r>"}}},
         "fields.content.open: has no counterpart in a Format"),
        ({"fields": {"content": {"open_pattern": "^|<r>", "close": "</r>"}}},
         "fields.content.open_pattern: has no counterpart in a Format: ^"),
        ({"fields": {"content": {}, "thinking": {"close": "x"}}},
         "fields.thinking.open: is missing, and in fields.content too; one field at most has none"),
        ({"fields": {"thinking": {"close": "x"}}}, "fields.thinking.open: is missing"),
        ({"fields": {"thinking": {"close": "x"}, "content": {"open": "y", "close": "z"}}},
         "fields.thinking.open: is missing"),
        ({"fields": {"thinking": {"open": "x", "close": "eos"}}},
         "fields.thinking.close: has no counterpart in a Format: it must be a marker"),
        ({"fields": {"thinking": THINK, "reasoning": THINK}},
         "fields.reasoning: has no counterpart in a Format next to fields.thinking"),
        ({"fields": {"thinking": {"open_pattern": r"(?=[\s\S]*?</think>)", "close": "</think>"}}},
         r"fields.thinking.open_pattern: has no counterpart in a Format: (?=[\s\S]*?</think>)"),
        ({"fields": {"thinking": {"open_pattern": r"(?:<m>)?[^<]*<t>", "close": "</t>"}}},
         "fields.thinking.open_pattern: has no counterpart in a Format: [^<]*"),
        ({"fields": {"thinking": {"open_pattern": "<(?P<x>t)>", "close": "</t>"}}},
         "fields.thinking.open_pattern: has no counterpart in a Format: the group 'x'"),
        ({"fields": {"thinking": THINK, "content": {"close": "</think>"}}},
         "fields.content.close: does not work in a Format: turn.end: '</think>' is already reasoning.close"),
        ({"fields": {"thinking": THINK, "tool_calls": call(open="<think>")}},
         "fields.tool_calls: does not work in a Format: tools[0].call_open: '<think>' is already reasoning.open"),
        ({"fields": {"tool_calls": {"open": "<c>"}}},
         "fields.tool_calls.content: has no counterpart in a Format: 'text'"),
        ({"fields": {"tool_calls": call(content="kv-lines")}},
         "fields.tool_calls.content: has no counterpart in a Format: 'kv-lines'"),
        ({"fields": {"tool_calls": call(join="")}}, "fields.tool_calls.join: has no counterpart in a Format"),
        ({"fields": {"tool_calls": {"open": "<c>", "content": "json"}}},
         "fields.tool_calls.transform: is missing: the place of the name is unknown"),
        ({"fields": {"tool_calls": call(transform=["{content}"])}},
         "fields.tool_calls.transform: has no counterpart in a Format: an array"),
        ({"fields": {"tool_calls": call(transform={"function": 3})}},
         "fields.tool_calls.transform.function: has no counterpart in a Format"),
        ({"fields": {"tool_calls": call(transform={"function": "{content}", "index": 0})}},
         "fields.tool_calls.transform.index: has no counterpart in a Format"),
        ({"fields": {"tool_calls": call(open_pattern="^|<c>") | {"open": None}}},
         "fields.tool_calls.open: expected text, got null"),
        ({"fields": {"tool_calls": {k: v for k, v in call(open_pattern="^|<c>").items() if k != "open"}}},
         "fields.tool_calls.open_pattern: has no counterpart in a Format: ^"),
        ({"fields": {"tool_calls": {k: v for k, v in call().items() if k != "open"}}},
         "fields.tool_calls.open: is missing"),
        ({"fields": {"tool_calls": call(transform={"function": {"name": "{content.n}", "description": ""}})}},
         "fields.tool_calls.transform.function.description: has no counterpart in a Format"),
        ({"fields": {"tool_calls": call(transform={"id": "{content}", "function": "{content}"})}},
         "fields.tool_calls.transform.id: has no counterpart in a Format"),
        ({"fields": {"tool_calls": call(transform={"function": {"name": "f", "arguments": "{content}"}})}},
         "fields.tool_calls.transform.function.name: has no counterpart in a Format: not a placeholder"),
        ({"fields": {"tool_calls": call(transform={"name": "{content.name}"})}},
         "fields.tool_calls.transform.arguments: is missing"),
        ({"fields": {"tool_calls": call(transform={"name": "{nam}", "arguments": "{content}"})}},
         "fields.tool_calls.transform.name: there is no group 'nam'"),
        ({"fields": {"tool_calls": call(transform={"name": "{content.a.b}", "arguments": "{content.b}"})}},
         "fields.tool_calls.transform: has no counterpart in a Format: name and arguments "
         "must be two members of one object"),
        ({"fields": {"tool_calls": call(content_args={"unquoted_keys": True})}},
         "fields.tool_calls.content_args.unquoted_keys: has no counterpart in a Format if the JSON holds the name"),
        ({"fields": {"tool_calls": call(content_args={"string_delims": "'"})}},
         "fields.tool_calls.content_args.string_delims: expected an array of pairs, got \"'\""),
        ({"fields": {"tool_calls": call(content_args={"string_delims": [["'"]]})}},
         "fields.tool_calls.content_args.string_delims[0]: expected a pair of texts, got an array"),
        ({"fields": {"tool_calls": named(r"<c (?P<name>\w+)>", content_args={"string_delims": [["<", ">"]]})}},
         "fields.tool_calls.content_args.string_delims[0]: has no counterpart in a Format: the two differ"),
        ({"fields": {"tool_calls": named(r"(?P<name>\w+)\(")}},
         "fields.tool_calls.open_pattern: has no counterpart in a Format: there is no text before the name"),
        ({"fields": {"tool_calls": named(r"(?:<c>\[|,\s*)(?P<name>\w+)\(")}},
         "fields.tool_calls.open_pattern: has no counterpart in a Format: alternatives that differ next to the name"),
        ({"fields": {"tool_calls": named(r'\{"name":\s*"(?P<name>[^"]+)",\s*"parameters":\s*')}},
         "fields.tool_calls.open_pattern: has no counterpart in a Format: white space between more than two literals"),
        ({"fields": {"tool_calls": named(r'<invoke\b[^>]*?name="(?P<name>[^"]+)">')}},
         r"fields.tool_calls.open_pattern: has no counterpart in a Format: \b"),
        ({"fields": {"tool_calls": named(r"<c>(?P<name>\w+):(?P<index>\d+)>")}},
         "fields.tool_calls.open_pattern: has no counterpart in a Format: the group 'index'"),
        ({"fields": {"tool_calls": named(r"<c>(?P<name>\w+)>", transform_each=True)}},
         "fields.tool_calls.transform_each: has no counterpart in a Format if the opening holds the name"),
        ({"fields": {"tool_calls": named(r"<c>(?P<name>\w+)>", transform=CONTENT_IS_CALL)}},
         "fields.tool_calls.transform: has no counterpart in a Format: the name must be {name}"),
        ({"fields": {"tool_calls": named(r"<c>(?P<name>\w+)>", transform={"name": "{name}", "arguments": "{name}"})}},
         "fields.tool_calls.transform: has no counterpart in a Format: the arguments must be {content}"),
        ({"fields": {"tool_calls": named(r"<c>(?P<name>\w+)>", transform=NAME_AND_CONTENT | {"id": "{content.id}"})}},
         "fields.tool_calls.transform.id: has no counterpart in a Format"),
        ({"fields": {"tool_calls": xml() | {"open_pattern": r"<f=(?P<name>\w+)"}}},
         "fields.tool_calls.open_pattern: has no counterpart in a Format: nothing ends the name"),
        ({"fields": {"tool_calls": call(content="xml-inline")}},
         "fields.tool_calls.content_args.tag_pattern: is missing"),
        ({"fields": {"tool_calls": call(content="xml-inline", content_args={"tag_pattern": TAG})}},
         "fields.tool_calls.open_pattern: has no counterpart in a Format: no group captures the name"),
        ({"fields": {"tool_calls": xml(merge_duplicates=True)}},
         "fields.tool_calls.content_args.merge_duplicates: has no counterpart in a Format"),
        ({"fields": {"tool_calls": xml(value_parser={})}},
         "fields.tool_calls.content_args.value_parser.name: is missing"),
        ({"fields": {"tool_calls": xml(value_parser={"name": "int"})}},
         "fields.tool_calls.content_args.value_parser.name: has no counterpart in a Format: 'int'"),
        ({"fields": {"tool_calls": xml(value_parser={"name": "json", "args": {"string_delims": [["'", "'"]]}})}},
         "fields.tool_calls.content_args.value_parser.args.string_delims: has no counterpart in a Format"),
        ({"fields": {"tool_calls": xml(tag_pattern="<p>")}},
         "fields.tool_calls.content_args.tag_pattern: has no group 'key'"),
        ({"fields": {"tool_calls": xml(tag_pattern=r"(?P<value>.*?)</v><(?P<key>\w+)>")}},
         "fields.tool_calls.content_args.tag_pattern: has no counterpart in a Format: the groups value, key"),
        ({"fields": {"tool_calls": xml(tag_pattern=r"<(?P<key>\w+)>(?P<value>.*?)</\1>")}},
         r"fields.tool_calls.content_args.tag_pattern: has no counterpart in a Format: \1"),
        ({"fields": {"tool_calls": xml(tag_pattern=r"<p=(?P<key>\w+)> *(?P<value>.*?)</p>")}},
         "fields.tool_calls.content_args.tag_pattern: has no counterpart in a Format: spaces next to the value"),
        ({"fields": {"tool_calls": xml(tag_pattern=r"<p=(?P<key>\w+)>(?P<value>.*?)(?:</p>|</q>)")}},
         "fields.tool_calls.content_args.tag_pattern: has no counterpart in a Format: alternatives"),
        ({"fields": {"tool_calls": xml(tag_pattern=r"(?P<key>\w+)=(?P<value>.*?);")}},
         "fields.tool_calls.content_args.tag_pattern: has no counterpart in a Format: not "
         "key_open, key, key_close, value, "
         "value_close"),
        (gpt_oss(GPT_OSS_CALL, "<|end|>") | {"start_anchor": "assistant:"},
         "start_anchor: has no counterpart in a Format: with channels it must be a token and a role"),
        (gpt_oss(GPT_OSS_CALL, "<|end|>", content="xml-inline", content_args={"tag_pattern": TAG}),
         "fields.tool_calls.content: has no counterpart in a Format in channels: 'xml-inline'"),
        (gpt_oss(GPT_OSS_CALL, "<|end|>", content_args={"unquoted_keys": True}),
         "fields.tool_calls.content_args.unquoted_keys: has no counterpart in a Format in channels"),
        (gpt_oss("<c>", "<|end|>", transform=CONTENT_IS_CALL),
         "fields.tool_calls.open_pattern: has no counterpart in a Format: no group captures the name"),
        (gpt_oss(GPT_OSS_CALL, "<|end|>", transform=CONTENT_IS_CALL),
         "fields.tool_calls.transform: has no counterpart in a Format: it must be {name} and {content}"),
        (gpt_oss(r"to=(?P<name>\w+)<\|body\|>", "<|end|>"),
         "fields.tool_calls.open_pattern: has no counterpart in a Format: not a header that ends in <|message|>"),
        (gpt_oss(r"<\|channel\|>(?P<name>\w+)<\|message\|>", "<|end|>"),
         "fields.tool_calls.open_pattern: has no counterpart in a Format: no recipient such as to="),
        (gpt_oss(r"to=(?P<name>\w+) a b<\|message\|>", "<|end|>"),
         "fields.tool_calls.open_pattern: has no counterpart in a Format: a b"),
    ],
)  # fmt: skip
def test_a_part_without_a_counterpart_names_its_path(template: Any, problem: str) -> None:
    with pytest.raises(FormatError) as error:
        Format.from_response_template(template)
    assert str(error.value) == problem
    assert error.value.path == problem.partition(":")[0]


def test_the_name_is_the_callers() -> None:
    assert Format.from_response_template({"fields": {}}).name == "response_template"
    with pytest.raises(FormatError, match=r"^name: is empty$"):
        Format.from_response_template({"fields": {}}, name="")


def test_patterns_are_never_run() -> None:
    """Nested quantifiers and deep nesting are refused at once."""
    for pattern in (
        "(a+)+b",
        "(" * 90 + "a" + ")*" * 90,
        "(?:a|b|c)" * 500,
        "(?i:x)y",
        "(?i)x",
        "(" * 280 + "a" + ")" * 280,
        "a{2,3}b",
        r"\d",
        r"a\Zb",
        "((?P<x>(?P<y>a)))",
    ):
        with pytest.raises(FormatError, match=r"^start_anchor_pattern: "):
            translate(start_anchor_pattern=pattern, fields={})


def test_a_deep_transform_is_refused() -> None:
    transform: Any = "{content}"
    for _ in range(5_000):
        transform = {"a": transform}
    with pytest.raises(FormatError) as caught:
        Format.from_response_template({"fields": {"tool_calls": {"content": "json", "transform": transform}}})
    path = "fields.tool_calls.transform" + ".a" * 17
    assert str(caught.value) == f"{path}: is nested deeper than 16 levels"
