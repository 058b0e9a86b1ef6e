"""The analysis of chat templates: what it reports of known templates, by llama.cpp's names."""

from __future__ import annotations

import contextlib
import io
import tempfile
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from tests.public import TEMPLATES
from untemplate import OutputParser
from untemplate._internal.cli import main
from untemplate.analysis import Analysis, AnalysisResult, MarkerRegistry, analyze
from untemplate.grammar import make_grammar
from untemplate.templates import ChatTemplate
from untemplate.testing import case, check

from .table import Table

TABLE = Table("templates", "untemplate.analysis._result")
add, row = TABLE.add, TABLE.row
FILES = {path.stem: path for path in TEMPLATES}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    },
}
CALL = {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}


@cache
def analysis(name: str) -> Analysis:
    return analyze(ChatTemplate.load(FILES[name]))


def result(name: str) -> AnalysisResult:
    return analysis(name).result


# -- names --------------------------------------------------------------------------------------------------------

MARKERS = (
    "reasoning_start reasoning_end content_start content_end tool_section_start tool_section_end per_call_start "
    "per_call_end call_separator func_name_prefix func_name_suffix func_close args_start args_end arg_name_prefix "
    "arg_name_suffix arg_value_prefix arg_value_suffix arg_separator code_block_marker id_marker function_namespace"
)
for name in MARKERS.split():
    add("MarkerRegistry", f"the marker {name} is empty by default", lambda n=name: (getattr(MarkerRegistry(), n), ""))
add(
    "MarkerRegistry",
    "there are no other markers",
    lambda: ({f.name for f in fields(MarkerRegistry)}, {*MARKERS.split()}),
)
VARIANT_NAMES = (
    "JSON_NATIVE TAG_WITH_JSON TAG_WITH_TAGGED BRACKET_TAG PREFIXED_INDEXED RECIPIENT_BASED MARKDOWN_BLOCK NAME_AS_KEY"
)
DEFAULTS = {
    "reasoning": "none",
    "content": "plain",
    "args": "json",
    "name_field": "name",
    "args_field": "arguments",
    "id_field": "",
    "supports_tools": False,
    "supports_parallel_calls": False,
    "requires_nonnull_content": False,
    "preserved_tokens": (),
}
for name, value in DEFAULTS.items():
    add("AnalysisResult", f"{name} is {value!r} by default", lambda n=name, v=value: (getattr(AnalysisResult(), n), v))
add("AnalysisResult", "tools is empty by default", lambda: (AnalysisResult().tools, ""))
for theirs, ours in (("tools", "variant"), ("args", "arguments")):
    add(
        "AnalysisResult",
        f"{theirs} is {ours}",
        lambda theirs=theirs, ours=ours: (getattr(AnalysisResult(**{ours: "x"}), theirs), "x"),
    )
for name in VARIANT_NAMES.split():
    add(name, f"the variant {name} has a name", lambda n=name: (bool(globals_of_result()[n]), True))


def globals_of_result() -> dict[str, Any]:
    return vars(__import__("untemplate.analysis._result", fromlist=["result"]))


# -- what is found in public templates ----------------------------------------------------------------------------

VARIANTS = {
    "Apertus-8B-Instruct": "name-as-key",
    "ByteDance-Seed-OSS": "tagged-args",
    "CohereForAI-c4ai-command-r-plus-tool_use": "markdown-block",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "json-native",
    "GLM-4.6": "tagged-args",
    "Kimi-K2-Instruct": "prefixed-indexed",
    "moonshotai-Kimi-K2": "prefixed-indexed",
    "MiMo-VL": "json-native",
    "Mistral-Small-3.2-24B-Instruct-2506": "bracket-tag",
    "mistralai-Mistral-Nemo-Instruct-2407": "json-native",
    "NVIDIA-Nemotron-Nano-v2": "json-native",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "json-native",
    "Qwen-QwQ-32B": "json-native",
    "Qwen-Qwen2.5-7B-Instruct": "json-native",
    "Qwen3-Coder": "tagged-args",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "tagged-json",
    "ibm-granite-granite-4.0": "json-native",
    "meetkai-functionary-medium-v3.1": "tagged-json",
    "meetkai-functionary-medium-v3.2": "recipient-based",
    "meta-llama-Llama-3.1-8B-Instruct": "json-native",
    "meta-llama-Llama-3.2-3B-Instruct": "json-native",
    "meta-llama-Llama-3.3-70B-Instruct": "json-native",
    "unsloth-Apriel-1.5": "json-native",
    "unsloth-mistral-Devstral-Small-2507": "bracket-tag",
    "mistralai-Ministral-3-14B-Reasoning-2512": "bracket-tag",
    "microsoft-Phi-3.5-mini-instruct": "",
    "google-gemma-2-2b-it": "",
}
DIFFERENT = {"MiniMax-M2": "tagged-args", "openai-gpt-oss-120b": "channel"}
MODES = {
    "Qwen-QwQ-32B": "forced-open",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "forced-open",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "forced-open",
    "llama-cpp-deepseek-r1": "forced-open",
    "Apriel-1.6-15b-Thinker-fixed": "forced-open",
    "NVIDIA-Nemotron-Nano-v2": "forced-open",
    "ByteDance-Seed-OSS": "optional",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "optional",
    "GLM-4.6": "optional",
    "Qwen-Qwen3-0.6B": "optional",
    "mistralai-Ministral-3-14B-Reasoning-2512": "optional",
    "Qwen-Qwen2.5-7B-Instruct": "none",
    "Qwen3-Coder": "none",
    "meta-llama-Llama-3.1-8B-Instruct": "none",
    "google-gemma-2-2b-it": "none",
}
CONTENT = {
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "always-wrapped",
    "Qwen-Qwen3-0.6B": "plain",
    "Qwen-QwQ-32B": "plain",
}
FOUND: dict[tuple[str, str], str] = {
    ("Qwen-Qwen3-0.6B", "per_call_start"): "<tool_call>",
    ("Qwen-Qwen3-0.6B", "reasoning_start"): "<think>",
    ("Qwen-Qwen3-0.6B", "reasoning_end"): "</think>",
    ("Qwen3-Coder", "func_name_prefix"): "<function=",
    ("Qwen3-Coder", "arg_name_prefix"): "<parameter=",
    ("Qwen3-Coder", "arg_value_suffix"): "</parameter>",
    ("Qwen3-Coder", "func_close"): "</function>",
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "reasoning_start"): "<|START_THINKING|>",
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "reasoning_end"): "<|END_THINKING|>",
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "content_start"): "<|START_RESPONSE|>",
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "content_end"): "<|END_RESPONSE|>",
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "tool_section_start"): "<|START_ACTION|>",
    ("mistralai-Mistral-Nemo-Instruct-2407", "tool_section_start"): "[TOOL_CALLS]",
    ("mistralai-Mistral-Nemo-Instruct-2407", "tool_section_end"): "]",
    ("mistralai-Ministral-3-14B-Reasoning-2512", "reasoning_start"): "[THINK]",
    ("mistralai-Ministral-3-14B-Reasoning-2512", "reasoning_end"): "[/THINK]",
    ("Mistral-Small-3.2-24B-Instruct-2506", "id_marker"): "[CALL_ID]",
    ("meetkai-functionary-medium-v3.2", "content_start"): ">>>all",
    ("Kimi-K2-Instruct", "function_namespace"): "functions.",
    ("ByteDance-Seed-OSS", "reasoning_start"): "<seed:think>",
    ("CohereForAI-c4ai-command-r-plus-tool_use", "code_block_marker"): "Action:",
    ("Apriel-1.6-15b-Thinker-fixed", "reasoning_end"): "[BEGIN FINAL RESPONSE]",
}
if TEMPLATES:
    for name, variant in VARIANTS.items():
        add("describe", f"{name} writes calls as {variant or 'none'}", lambda n=name, v=variant: (result(n).variant, v))
        add(
            "describe",
            f"{name} supports tools if it writes calls",
            lambda n=name, v=variant: (result(n).supports_tools, bool(v)),
        )
    for name, variant in DIFFERENT.items():
        add(
            "describe",
            f"{name} writes calls as {variant}, other than llama.cpp's page says",
            lambda n=name, v=variant: (result(n).variant, v),
            differs=f"`{variant}` of {name}",
        )
    for name, value in (("name_field", "name"), ("args_field", "arguments")):
        add(
            "AnalysisResult",
            f"{name} keeps its default if the calls have no such field",
            lambda name=name, value=value: (getattr(result("Qwen3-Coder"), name), value),
        )
    for name, mode in MODES.items():
        add("describe", f"reasoning of {name} is {mode}", lambda n=name, m=mode: (result(n).reasoning, m))
    for name, mode in CONTENT.items():
        add("describe", f"content of {name} is {mode}", lambda n=name, m=mode: (result(n).content, m))
    for (name, marker), text in FOUND.items():
        add(
            "describe",
            f"{marker} of {name} has {text}",
            lambda n=name, m=marker, t=text: (t in getattr(result(n).markers, m), True),
        )
    for name, value in {"unsloth-mistral-Devstral-Small-2507": "", "mistralai-Mistral-Nemo-Instruct-2407": ""}.items():
        add("describe", f"{name} has no marker of ids", lambda n=name, v=value: (result(n).markers.id_marker, v))
    add(
        "describe",
        "Mistral Nemo has ids in its JSON",
        lambda: (result("mistralai-Mistral-Nemo-Instruct-2407").id_field, "id"),
    )
    for comparison in ("T1", "T2", "T3", "T4", "T5", "A1", "A2", "A3"):
        add(
            "untemplate.analysis:analyze",
            f"the comparison {comparison} is named in the log",
            lambda c=comparison: (
                any(line.startswith(f"{c} ") or f" {c} " in line for line in analysis("Qwen3-Coder").log),
                True,
            ),
        )
    for name in ("Qwen-Qwen3-0.6B", "Qwen3-Coder", "mistralai-Mistral-Nemo-Instruct-2407", "GLM-4.6"):
        add(
            "untemplate._internal.output_parser:OutputParser.from_template",
            f"a parser made from the template of {name} reads the calls that it writes",
            lambda name=name: (_round_trip(name), ("get_weather", '{"city":"Paris"}')),
        )
        add(
            "untemplate.grammar:make_grammar",
            f"the grammar for {name} is GBNF, with triggers if tool_choice is auto",
            lambda name=name: (
                (lambda g: ("root" in g.text, bool(g.triggers)))(
                    make_grammar(analysis(name).format, [TOOL], "auto", dialect="gbnf")
                ),
                (True, True),
            ),
        )


def _round_trip(name: str) -> tuple[str, str]:
    parser = OutputParser.from_template(FILES[name])
    text = parser.render({"role": "assistant", "content": "", "tool_calls": [CALL]})
    (call,) = parser.parse(text, tools=[TOOL]).tool_calls
    return call.function.name, call.function.arguments.replace(" ", "")


# -- composition, in any template ---------------------------------------------------------------------------------

NATIVE = (
    "{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\\n' + (m.content or '') -}}"
    '{%- for c in m.tool_calls or [] -%}{{- \'\\n<tool_call>\\n{"name": "\' + c.function.name -}}'
    '{{- \'", "arguments": \' -}}'
    "{{- c.function.arguments|tojson + '}\\n</tool_call>' -}}{%- endfor -%}{{- '<|im_end|>\\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
CHANGES = {
    "markers of its own": ("tool_call>", "zq_action>"),
    "markers with letters beyond ASCII": ("tool_call>", "\u2985call\u2986"),
}
for what, (old, new) in {"the usual markers": ("tool_call>", "tool_call>"), **CHANGES}.items():
    add(
        "untemplate.analysis:analyze",
        f"no list of markers is needed: {what}",
        lambda old=old, new=new: (analyze(NATIVE.replace(old, new)).result.variant, "json-native"),
    )


@row(
    "untemplate._internal.output_parser:OutputParser.from_template",
    "a template without calls gives a parser of content",
)
def _() -> Any:
    plain = "{%- for m in messages -%}{{- '<' + m.role + '>' + m.content + '<end>' -}}{%- endfor -%}<assistant>"
    return OutputParser.from_template(plain).parse("a{b}").content, "a{b}"


@row("untemplate.testing:check", "an output is checked in every way of feeding it")
def _() -> Any:
    call = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
    parsed = check("hermes", call, {"tool_calls": [("get_weather", {})]}, tools=[TOOL])
    return parsed.tools_called, True


@row("untemplate.testing:case", "a case is built step by step")
def _() -> Any:
    return case("hermes") is not None, True


# -- the tool that explains a template ----------------------------------------------------------------------------

TAGGED = """\
{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for c in m.tool_calls or [] %}<call={{ c.function.name }}>
{%- for k, v in c.function.arguments.items() %}<arg={{ k }}>{{ v if v is string else v | tojson }}</arg>{% endfor -%}
</call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
COMPARISONS = {
    "T1": "no tools and tools",
    "T2": "one call and two",
    "T3": "two functions",
    "T4": "one argument and two",
    "T5": "no arguments and arguments",
    "A1": "two keys",
    "A2": "two values",
    "A3": "a number and a string",
}


@cache
def explained(*options: str) -> str:
    """Return what `untemplate explain` prints for `TAGGED`."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
        file = Path(folder, "mine.jinja")
        file.write_text(TAGGED, "utf-8")
        main(["explain", str(file), *options])
    return out.getvalue()


for name, what in COMPARISONS.items():
    add(
        "untemplate._internal.cli.explain:run",
        f"explain -v shows the comparison {name}: {what}",
        lambda name=name: (f" {name} " in explained("-v"), True),
    )


@row("untemplate._internal.cli.explain:run", "the compiled program and a grammar can be shown together")
def _() -> Any:
    both = explained("--parser", "--grammar", "gbnf")
    return both, explained("--parser") + explained("--grammar", "gbnf")
