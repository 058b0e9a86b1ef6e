"""Hypothesis strategies for Formats that no family has: each field of the Format language with markers of any shape."""

from __future__ import annotations

from hypothesis import strategies as st

from untemplate._internal.machine.compiler import compile_format
from untemplate.format import (
    Channels,
    ElementArguments,
    Format,
    FormatError,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    TaggedArguments,
    Tools,
    Turn,
)

WRAPPERS = (("<", ">"), ("<|", "|>"), ("[", "]"), ("]<]ns[>[<", ">"), ("<x:", ">"), ("«", "»"), ("(=", "=)"))
SPACES = st.sampled_from(["", "", "\n", " "])


def usable(fmt: Format | None) -> bool:
    """True if a Format can be compiled: generated markers may have two meanings in one place."""
    if fmt is None:
        return False
    try:
        compile_format(fmt)
    except FormatError:
        return False
    return True


@st.composite
def element_formats(draw: st.DrawFn) -> Format:
    """Return Formats whose arguments are elements."""
    before, after = draw(st.sampled_from(WRAPPERS))
    plain = draw(st.booleans())
    space = draw(SPACES)
    section = draw(st.booleans())
    inner = draw(st.sampled_from(WRAPPERS)) if draw(st.booleans()) else (before, after)
    arguments = ElementArguments(
        open=Marker(inner[0], ("<",) if plain and inner[0] != "<" else ()),
        close=Marker(f"{inner[0]}/", ("</",) if plain and inner[0] != "<" else ()),
        name_close=inner[1],
        separator=draw(SPACES),
        item=draw(st.sampled_from(["item", "li", "city"])),
    )
    named = draw(st.booleans())
    body = NamedBody(
        name_open=Marker(f"{before}call name=") if named else None,
        name_close=Marker(after + draw(SPACES)),
        arguments=arguments,
        arguments_close=Marker(f"{before}/call{after}{space}") if named else None,
    )
    tools = Tools(
        section_open=Marker(f"{before}calls{after}{space}") if section else None,
        section_close=Marker(f"{before}/calls{after}") if section else None,
        call_open=None if named else Marker(f"{before}invoke "),
        call_close=None if named else Marker(f"{before}/invoke{after}{space}"),
        body=body,
    )
    return Format(name="generated", turn=Turn(end=Marker("<|end|>")), tools=(tools,), special_tokens=("<|end|>",))


@st.composite
def tagged_formats(draw: st.DrawFn) -> Format:
    """Return Formats whose arguments are in tags, with types, CDATA sections, entities, and newlines on either side."""
    before, after = draw(st.sampled_from([*WRAPPERS, ("<", ">")]))
    ahead, behind = draw(st.sampled_from([(0, 0), (1, 1), (0, 1), (1, 0)]))
    typed = draw(st.booleans())
    opened = typed or draw(st.booleans())
    newline = "\n" * ahead
    arguments = TaggedArguments(
        key_open=Marker(f"{before}key={after}" if opened else f"{before}arg="),
        key_close=Marker(f"{before}/key{after}" if opened else after + newline),
        type_open=Marker(f"{before}type{after}") if typed else None,
        type_close=Marker(f"{before}/type{after}{draw(SPACES)}") if typed else None,
        type_written=draw(st.booleans()),
        value_open=Marker(f"{before}value{after}{newline}") if opened else None,
        value_close=Marker(f"{newline if ahead == behind else behind * chr(10)}{before}/value{after}{draw(SPACES)}"),
        trim=ahead,
        trim_after=None if ahead == behind else behind,
        escape=draw(st.sampled_from(["none", "none", "xml", "cdata"])),
    )
    tools = Tools(
        call_open=Marker(f"{before}call{after}"),
        call_close=Marker(f"{before}/call{after}"),
        body=NamedBody(
            name_open=Marker(f"{before}function name="),
            name_close=Marker(after + draw(SPACES)),
            arguments=arguments,
            arguments_close=Marker(f"{before}/function{after}"),
        ),
    )
    return Format(name="generated", turn=Turn(end=Marker("<|end|>")), tools=(tools,), special_tokens=("<|end|>",))


@st.composite
def literal_formats(draw: st.DrawFn) -> Format:
    """Return Formats whose arguments are literals of a language, with all of them in quotes or only strings; in
    brackets, or each on a line."""
    before, after = draw(st.sampled_from(WRAPPERS))
    open_, close = draw(st.sampled_from([("(", ")"), ("{", "}"), ("", "")]))
    quote = draw(st.sampled_from(["'", '"', '<|"|>', "<esc>"]))
    arguments = LiteralArguments(
        open=open_,
        close=close,
        assign=draw(st.sampled_from(["=", ":", ": ", " = "])),
        separator=draw(st.sampled_from([",", ", "] if open_ else ["\n", "\n  "])),
        quotes=tuple(dict.fromkeys((quote, *draw(st.sampled_from([(), ("'", '"')]))))),
        quoted=draw(st.sampled_from(["all", "all", "strings", "optional"])),
        escapes=draw(st.booleans()),
        words=draw(st.sampled_from([("True", "False", "None"), ("true", "false", "null")])),
        quoted_keys=draw(st.booleans()),
    )
    tools = Tools(
        call_open=Marker(f"{before}call{after}"),
        call_close=Marker(f"{before}/call{after}"),
        body=NamedBody(arguments=arguments, name_close=None if open_ else Marker(f"{after}\n")),
    )
    return Format(name="generated", turn=Turn(end=Marker("<|end|>")), tools=(tools,), special_tokens=("<|end|>",))


BODIES = st.sampled_from(
    [
        Tools(body=JsonBody(arguments_key="args")),
        Tools(call_open=Marker("<call>"), call_close=Marker("</call>")),
        Tools(
            section_open=Marker("<calls>\n"),
            section_close=Marker("</calls>"),
            call_open=Marker('<invoke name="'),
            call_close=Marker("</invoke>\n"),
            body=NamedBody(
                name_close=Marker('">\n'),
                arguments=TaggedArguments(
                    key_open=Marker('<arg name="'), key_close=Marker('">'), value_close=Marker("</arg>\n")
                ),
            ),
            optional=("section",),
        ),
        Tools(
            call_open=Marker("<f "),
            call_close=Marker("</f>"),
            body=NamedBody(name_close=Marker(">"), arguments=ElementArguments(open=Marker("<:"), close=Marker("</:"))),
        ),
    ]
)


@st.composite
def channel_formats(draw: st.DrawFn) -> Format:
    """Return Formats whose messages name a tool in their header, and again in their text."""
    kinds = draw(st.booleans())
    open_, close = draw(st.sampled_from([("<|start|>", "<|end|>"), ("{{", "}}"), ("<|msg|>", "<|eom|>")]))
    channels = Channels(
        join=draw(st.sampled_from(["\n", "", " | "])),
        open=Marker(open_),
        role=draw(st.sampled_from(["", "assistant"])) if not kinds else "",
        recipient=None if kinds else Marker(draw(st.sampled_from([" to=", " @"]))),
        body=Marker("<|text|>"),
        reasoning_body=Marker("<|think|>") if kinds else None,
        call_body=Marker("<|call|>") if kinds else None,
        close=Marker(close),
        call_close=Marker("<|done|>") if draw(st.booleans()) else None,
        reasoning=() if kinds else ("self",),
        content=() if kinds else ("user", "all"),
    )
    return Format(
        name="generated",
        turn=Turn(start=Marker(open_ + channels.role), end=Marker("<|eot|>")),
        channels=channels,
        tools=(draw(BODIES),) if kinds or draw(st.booleans()) else (),
        special_tokens=draw(st.sampled_from([(), (open_, close, "<|eot|>", "<|text|>")])),
    )
