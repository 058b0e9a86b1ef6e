"""OpenBMB MiniCPM 5 and MiniCPM-V.

* MiniCPM 5 writes ``<function name="…"><param name="…">…</param></function>`` (SGLang
  function_call/minicpm5_detector.py, whose docstring shows it). Text that needs it stands in ``<![CDATA[…]]>``, which a
  Format cannot state; it stays in the value.
* MiniCPM-V reasons as Qwen3 does, and not unless told to (vLLM vllm/parser/minicpmv.py). Its tokenizer writes some
  newlines as two characters, which a Format cannot state either.

Read 2026-11-21.
"""

from __future__ import annotations

from ..format import Format, Marker, NamedBody, TaggedArguments, Tools
from . import qwen3
from .family import Entry, sglang, turn, vllm

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
        models=("openbmb/MiniCPM-V-*",),
        engines=("vllm",),
        evidence=(vllm("vllm/parser/minicpmv.py"),),
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
