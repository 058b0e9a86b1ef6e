"""Hypothesis strategies for Formats that no family has: each field of the Format language with markers of any shape."""

from __future__ import annotations

from hypothesis import strategies as st

from untemplate.format import ElementArguments, Format, FormatError, Marker, NamedBody, Tools, Turn
from untemplate.machine.compiler import compile_format

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
