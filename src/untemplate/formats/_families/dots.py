"""dots: ``<invoke name="…">`` tags in ``<dots_function_call>``, or one JSON object there.

The docstring of SGLang's detector shows both.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, NamedBody, TaggedArguments, Tools
from .._family import Entry, sglang, turn

SECTION_OPEN, SECTION_CLOSE = Marker("<dots_function_call>\n"), Marker("</dots_function_call>")

DOTS = Format(
    name="dots",
    turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
    tools=(
        Tools(
            section_open=SECTION_OPEN,
            section_close=SECTION_CLOSE,
            call_open=Marker('<invoke name="'),
            body=NamedBody(
                name_close=Marker('">\n'),
                arguments=TaggedArguments(
                    key_open=Marker('<parameter name="'),
                    key_close=Marker('">'),
                    value_close=Marker("</parameter>\n"),
                ),
            ),
            call_close=Marker("</invoke>\n"),
        ),
        Tools(section_open=SECTION_OPEN, section_close=SECTION_CLOSE, body=JsonBody()),
    ),
    special_tokens=("<|im_end|>",),
)

ENTRIES = (
    Entry(
        name="dots",
        kind="tool",
        format=DOTS,
        models=("rednote-hilab/dots.*",),
        engines=("sglang", "vllm"),
        evidence=(sglang("function_call/dots_detector.py"),),
    ),
)
