"""Features of the machine that inferred Formats need to be parsed under every split."""

from __future__ import annotations

import pytest

from untemplate import OutputParser
from untemplate.format import Channels, Format, JsonBody, Marker, NamedBody, TaggedArguments, Tools


def alike(fmt: Format, text: str) -> tuple[str | None, list[tuple[str, str]]]:
    """Parse a text whole and in pieces of every size; return the one result."""
    parser = OutputParser.from_format(fmt)
    read = []
    for size in (len(text), 1, 2, 3, 5, 8):
        stream = parser.stream(collect=True)
        for at in range(0, len(text), size):
            stream.feed(text[at : at + size])
        stream.finish()
        parsed = stream.result()
        read.append((parsed.content, [(c.function.name, c.function.arguments) for c in parsed.tool_calls]))
    assert all(r == read[0] for r in read)
    return read[0]


def test_a_literal_that_holds_another_one_is_waited_for() -> None:
    fence = Tools(section_open=Marker("Do:\n```json"), section_close=Marker("```"), body=JsonBody())
    text = 'Do:\n```json\n{"name": "f", "arguments": {}}\n```'
    assert alike(Format(name="x", tools=(fence,)), text) == (None, [("f", "{}")])


def test_a_close_that_holds_a_newline_does_not_break_the_key() -> None:
    arguments = TaggedArguments(
        key_open=Marker("<k>"), key_close=Marker("</k>\n<v>"), value_close=Marker("</v>"), trim=0
    )
    tools = Tools(call_open=Marker("<go>"), body=NamedBody(arguments=arguments), call_close=Marker("</go>"))
    text = "<go>f<k>a</k>\n<v>1</v></go>"
    assert alike(Format(name="x", tools=(tools,)), text) == (None, [("f", '{"a": "1"}')])


@pytest.mark.parametrize("brackets", ["<>", "⟦⟧", "{}"])
def test_words_of_a_header_end_at_its_marks(brackets: str) -> None:
    left, right = brackets
    channels = Channels(
        open=Marker(f"{left}start{right}"),
        role="assistant",
        channel=Marker(f"{left}channel{right}"),
        recipient=Marker(" to="),
        body=Marker(f"{left}message{right}"),
        call_close=Marker(f"{left}call{right}"),
        namespace="functions.",
        reasoning=("analysis",),
        content=("final",),
    )
    text = f" to=functions.f{left}channel{right}commentary{left}message{right}{{}}{left}call{right}"
    assert alike(Format(name="x", channels=channels), text) == (None, [("f", "{}")])
