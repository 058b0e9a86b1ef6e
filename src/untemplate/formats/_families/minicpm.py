"""OpenBMB MiniCPM 5 and MiniCPM-V.

* MiniCPM 5 writes ``<function name="…"><param name="…">…</param></function>``. It puts strings with ``<``, ``&`` or a
  newline in ``<![CDATA[…]]>``, as its template tells it ("wrap it in a CDATA block").
* MiniCPM-V and MiniCPM-o 4.5 reason like Qwen3, but only on request. The tokenizer of MiniCPM-V writes some newlines as
  two characters, which a Format cannot describe either.
"""

from __future__ import annotations

from ...format import Format, Marker, NamedBody, TaggedArguments, Tools
from .._family import Entry, Evidence, sglang, turn, vllm
from . import qwen3

MINICPM5 = Format(
    name="minicpm5",
    turn=turn("<|im_start|>assistant\n", "<|im_end|>"),
    tools=(
        Tools(
            call_open=Marker('<function name="'),
            body=NamedBody(
                name_close=Marker('">'),
                arguments=TaggedArguments(
                    key_open=Marker('<param name="'),
                    key_close=Marker('">'),
                    value_close=Marker("</param>"),
                    escape="cdata",
                ),
            ),
            call_close=Marker("</function>"),
            separator=Marker("\n", ("<tool_sep>",)),
        ),
    ),
    special_tokens=("<|im_end|>",),
)

ENTRIES = (
    Entry(
        name="minicpmv",
        kind="reasoning",
        format=qwen3.QWEN3.extend(name="minicpmv"),
        models=("openbmb/MiniCPM-V-*", "openbmb/MiniCPM-o-4_5*"),
        engines=("vllm",),
        evidence=(
            vllm("vllm/parser/minicpmv.py"),
            Evidence(
                "engine",
                "modelscope/ms-swift swift/template/templates/minicpm.py",
                "2026-11-28",
                "MiniCPM-o 4.5 is a Qwen3MixedTemplateMeta that thinks, as Qwen3 is",
            ),
        ),
    ),
    Entry(
        name="minicpm5",
        kind="tool",
        format=MINICPM5,
        models=("openbmb/MiniCPM5-*",),
        engines=("vllm", "sglang"),
        evidence=(sglang("function_call/minicpm5_detector.py"),),
    ),
)
