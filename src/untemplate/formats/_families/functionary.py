"""Functionary v3.1 and v3.2.

* v3.1 writes ``<function=name>{…}</function>`` (template of functionary-medium-v3.1, the tool_calls branch).
* v3.2 writes messages with a recipient, ``>>>name\\n``; the recipient ``all`` is the user (template of
  functionary-medium-v3.2, last lines). The prompt ends with the first ``>>>``.
"""

from __future__ import annotations

from ...format import Channels, Format, Marker, NamedBody, Tools
from .._family import Entry, template, turn

TURN = turn("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>", "<|eom_id|>")

V31 = Format(
    name="functionary_v3.1",
    turn=TURN,
    tools=(
        Tools(
            call_open=Marker("<function="),
            body=NamedBody(name_close=Marker(">")),
            call_close=Marker("</function>"),
        ),
    ),
    special_tokens=("<|eot_id|>", "<|eom_id|>"),
)

V32 = Format(
    name="functionary_v3.2",
    turn=TURN,
    channels=Channels(open=Marker(">>>"), body=Marker("\n"), content=("all",)),
    special_tokens=("<|eot_id|>", "<|eom_id|>"),
)

ENTRIES = (
    Entry(
        name="functionary_v3.1",
        kind="tool",
        format=V31,
        aliases=("functionary_v31",),
        models=("meetkai/functionary-medium-v3.1", "meetkai/functionary-small-v3.1"),
        engines=("llama.cpp",),
        evidence=(template("meetkai-functionary-medium-v3.1.jinja"),),
    ),
    Entry(
        name="functionary_v3.2",
        kind="tool",
        format=V32,
        aliases=("functionary_v32",),
        models=("meetkai/functionary-medium-v3.2", "meetkai/functionary-small-v3.2"),
        engines=("llama.cpp",),
        evidence=(template("meetkai-functionary-medium-v3.2.jinja"),),
    ),
)
