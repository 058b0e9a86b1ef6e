# ruff: noqa: E501  (templates read better unbroken)
"""Chat templates of our own, over the space of layouts: every way to write calls, in many frames, with many kinds of
reasoning. Their markers are words that nobody uses."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

__all__ = ["CALLS", "MARKS", "REASONING", "Generated", "generate", "template"]


@dataclass(frozen=True)
class Generated:
    """One template, and what it can express."""

    name: str
    source: str
    reasoning: bool
    calls: bool
    parallel: bool
    variant: str


# Frames: (before the user, behind, before the assistant, behind, before tool results, behind).
FRAMES = {
    "chat": ("<|bok|>user\n", "<|kob|>\n", "<|bok|>assistant\n", "<|kob|>\n", "<|bok|>tool\n", "<|kob|>\n"),
    "header": ("<(h)>user<(e)>\n\n", "<(f)>", "<(h)>assistant<(e)>\n\n", "<(f)>", "<(h)>tool<(e)>\n\n", "<(f)>"),
    "inst": ("[ASK]", "[/ASK]", "", "</e>", "[GOT]", "[/GOT]"),
    "special": ("<USR7>", "", "<AST7>", "<END7>", "<TLR7>", "</TLR7>"),
    "colon": ("Human: ", "\n\n", "Robot: ", "<|over|>\n\n", "Result: ", "\n\n"),
}

# Reasoning: (in a turn, in the prompt). O and C stand for the markers.
R = "m.reasoning_content"
REASONING = {
    "none": ("", ""),
    "optional": ("{%- if " + R + " -%}{{- O + " + R + " + C -}}{%- endif -%}", ""),
    "opened": ("{%- if " + R + " -%}{{- O + " + R + " + C -}}{%- endif -%}", "{{- O -}}"),
    "switched": (
        "{%- if " + R + " -%}{{- O + " + R + " + C -}}{%- endif -%}",
        "{%- if ponder is defined and not ponder -%}{{- O + C -}}{%- endif -%}",
    ),
    "always": (
        "{%- if loop.index0 > last.i -%}{{- O + (" + R + " or '') + C -}}{%- endif -%}",
        "{%- if ponder is defined and not ponder -%}{{- O + C -}}{%- else -%}{{- O -}}{%- endif -%}",
    ),
    "implicit": ("{%- if " + R + " -%}{{- " + R + " + C -}}{%- endif -%}", "{{- O -}}"),
    "other_key": ("{%- if m.reasoning -%}{{- O + m.reasoning + C -}}{%- endif -%}", ""),
    "split": ("", "{{- O -}}"),
}
MARKS = [
    ("<mull>\n", "\n</mull>\n\n"),
    ("[MUSE]", "[/MUSE]"),
    ("<|wonder|>", "<|/wonder|>"),
    ("My considerations:\n\n", "\n\nMy verdict:\n\n"),
    ("◁rumi▷", "◁/rumi▷"),
]

A = "c.function.arguments"
N = "c.function.name"
_EACH = "{%- for c in m.tool_calls -%}"
_END = "{%- endfor -%}"


def _per_call(text: str, separator: str = "") -> str:
    between = "{{- " + repr(separator) + " if not loop.last else '' -}}" if separator else ""
    return _EACH + text + between + _END


# Calls: (source, variant, several calls).
CALLS = {
    "json_tags": (
        _per_call("{{- '\\n<act>\\n{\"name\": \"' + " + N + " + '\", \"arguments\": ' + (" + A + "|tojson) + '}\\n</act>' -}}"),
        "json-native", True),
    "json_list": (
        "{{- '<acts>[' -}}" + _per_call("{{- '{\"tool\": \"' + " + N + " + '\", \"input\": ' + (" + A + "|tojson) + '}' -}}", ", ") + "{{- ']</acts>' -}}",
        "json-native", True),
    "json_list_id": (
        "{{- '[ACTS] [' -}}" + _per_call("{{- '{\"name\": \"' + " + N + " + '\", \"arguments\": ' + (" + A + "|tojson) + ', \"id\": \"' + c.id + '\"}' -}}", ", ") + "{{- ']' -}}",
        "json-native", True),
    "json_id_first": (
        _per_call("{{- '<act>{\"call\": \"' + c.id + '\", \"fn\": \"' + " + N + " + '\", \"args\": ' + (" + A + "|tojson) + '}</act>' -}}", "\\n"),
        "json-native", True),
    "json_nested": (
        "{{- '<|acts|>' -}}" + _per_call("{{- '{\"type\": \"function\", \"function\": {\"name\": \"' + " + N + " + '\", \"arguments\": ' + (" + A + "|tojson) + '}}' -}}", "\\n") + "{{- '<|/acts|>' -}}",
        "json-native", True),
    "json_key": (
        "{{- '<pre>[' -}}" + _per_call("{{- '{\"' + " + N + " + '\": ' + (" + A + "|tojson) + '}' -}}", ", ") + "{{- ']<suf>' -}}",
        "name-as-key", True),
    "json_bare": (
        "{%- for c in m.tool_calls[:1] -%}{{- '{\"name\": \"' + " + N + " + '\", \"parameters\": ' + (" + A + "|tojson) + '}' -}}{%- endfor -%}",
        "json-native", False),
    "markdown": (
        "{{- '\\nDo:\\n```json\\n[' -}}" + _per_call("{{- '\\n  {\"tool_name\": \"' + " + N + " + '\", \"parameters\": ' + (" + A + "|tojson) + '}' -}}", ",") + "{{- '\\n]\\n```' -}}",
        "markdown-block", True),
    "tagged_json": (
        _per_call("{{- '<act=' + " + N + " + '>' + (" + A + "|tojson) + '</act>' -}}"),
        "tagged-json", True),
    "tagged_json_line": (
        _per_call("{{- '<go>' + " + N + " + '\\n' + (" + A + "|tojson) + '</go>' -}}", "\\n"),
        "tagged-json", True),
    "section_calls": (
        "{{- '<|acts|>' -}}" + _per_call("{{- '<|act|>' + " + N + " + '<|with|>' + (" + A + "|tojson) + '<|/act|>' -}}") + "{{- '<|/acts|>' -}}",
        "tagged-json", True),
    "fenced": (
        "{{- '<acts>' -}}" + _per_call("{{- '<act>kind<s>' + " + N + " + '\\n```json\\n' + (" + A + "|tojson) + '\\n```</act>' -}}", "\\n") + "{{- '</acts>' -}}",
        "tagged-json", True),
    "bracket": (
        _per_call("{{- '[ACT]' + " + N + " + '[WITH]' + (" + A + "|tojson) -}}"),
        "bracket-tag", True),
    "bracket_id": (
        _per_call("{{- '[ACT]' + " + N + " + '[ACT_ID]' + c.id + '[WITH]' + (" + A + "|tojson) -}}"),
        "bracket-tag", True),
    "indexed": (
        "{{- '<|acts|>' -}}" + _per_call("{{- '<|act|>tools.' + " + N + " + ':' + loop.index0|string + '<|with|>' + (" + A + "|tojson) + '<|/act|>' -}}") + "{{- '<|/acts|>' -}}",
        "prefixed-indexed", True),
    "tagged_args": (
        _per_call("{{- '<act>\\n<fn=' + " + N + " + '>\\n' -}}{%- for k, v in " + A + ".items() -%}{{- '<arg=' + k + '>\\n' + (v if v is string else v|tojson) + '\\n</arg>\\n' -}}{%- endfor -%}{{- '</fn>\\n</act>' -}}", "\\n"),
        "tagged-args", True),
    "tagged_inline": (
        "{{- '<acts>\\n' -}}" + _per_call("{{- '<fn name=\"' + " + N + " + '\">' -}}{%- for k, v in " + A + ".items() -%}{{- '<arg name=\"' + k + '\">' + (v if v is string else v|tojson) + '</arg>' -}}{%- endfor -%}{{- '</fn>\\n' -}}") + "{{- '</acts>' -}}",
        "tagged-args", True),
    "key_value": (
        _per_call("{{- '<act>' + " + N + " -}}{%- for k, v in " + A + ".items() -%}{{- '<k>' + k + '</k><v>' + (v if v is string else v|tojson) + '</v>' -}}{%- endfor -%}{{- '</act>' -}}"),
        "tagged-args", True),
    "key_value_lines": (
        _per_call("{{- '<act>' + " + N + " + '\\n' -}}{%- for k, v in " + A + ".items() -%}{{- '<k>' + k + '</k>\\n<v>' + (v if v is string else v|tojson) + '</v>\\n' -}}{%- endfor -%}{{- '</act>' -}}", "\\n"),
        "tagged-args", True),
    "typed": (
        "{{- '<acts>\\n' -}}" + _per_call("{{- '<fn name=\"' + " + N + " + '\">\\n' -}}{%- for k, v in " + A + ".items() -%}{{- '<arg name=\"' + k + '\" text=\"' + ('true' if v is string else 'false') + '\">' + (v if v is string else v|tojson) + '</arg>\\n' -}}{%- endfor -%}{{- '</fn>\\n' -}}") + "{{- '</acts>' -}}",
        "tagged-args", True),
    "pythonic": (
        "{{- '<|acts|>[' -}}" + _per_call("{{- " + N + " + '(' -}}{%- for k, v in " + A + ".items() -%}{{- k + '=' -}}{%- if v is string -%}{{- '\"' + v|replace('\\\\', '\\\\\\\\')|replace('\"', '\\\\\"')|replace('\\n', '\\\\n') + '\"' -}}{%- else -%}{{- v -}}{%- endif -%}{{- ', ' if not loop.last else '' -}}{%- endfor -%}{{- ')' -}}", ", ") + "{{- ']<|/acts|>' -}}",
        "pythonic", True),
    "pythonic_unquoted": (
        "{{- '<|acts|>[' -}}" + _per_call("{{- " + N + " + '(' -}}{%- for k, v in " + A + ".items() -%}{{- k + '=' -}}{{- v -}}{{- ', ' if not loop.last else '' -}}{%- endfor -%}{{- ')' -}}", ", ") + "{{- ']<|/acts|>' -}}",
        "pythonic", True),
    "braces": (
        _per_call("{{- '<|act>do:' + " + N + " + '{' -}}{%- for k, v in " + A + ".items() -%}{{- k + ':' -}}{%- if v is string -%}{{- '<|q|>' + v + '<|q|>' -}}{%- else -%}{{- v|tojson -}}{%- endif -%}{{- ',' if not loop.last else '' -}}{%- endfor -%}{{- '}<act|>' -}}"),
        "pythonic", True),
    "none": ("", "", False),
}  # fmt: skip


def template(frame: str, reasoning: str, marks: tuple[str, str], calls: str, wrapped: bool) -> str:
    user, user_end, start, end, tool, tool_end = FRAMES[frame]
    in_turn, in_prompt = REASONING[reasoning]
    content = "{{- m.content or '' -}}"
    if reasoning == "split":
        content = "{{- (m.content or '').split(C.strip())[-1] -}}"
    if calls == "json_bare":
        # Unmarked calls can be distinguished from content only if there is no content.
        content = "{%- if not m.tool_calls -%}" + content + "{%- endif -%}"
    if wrapped:
        content = "{%- if m.content -%}{{- '<say>' -}}" + content + "{{- '</say>' -}}{%- endif -%}"
    source, _, _ = CALLS[calls]
    made = "{%- if m.tool_calls -%}" + source + "{%- endif -%}" if source else ""
    return (
        f"{{%- set O = {marks[0]!r} -%}}{{%- set C = {marks[1]!r} -%}}"
        "{%- set last = namespace(i=-1) -%}"
        "{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set last.i = loop.index0 -%}{%- endif -%}{%- endfor -%}"
        "{%- if tools -%}{{- 'You have tools: ' + (tools|tojson) + '\\n' -}}{%- endif -%}"
        "{%- for m in messages -%}"
        f"{{%- if m.role == 'user' -%}}{{{{- {user!r} + m.content + {user_end!r} -}}}}"
        f"{{%- elif m.role == 'tool' -%}}{{{{- {tool!r} + m.content + {tool_end!r} -}}}}"
        f"{{%- elif m.role == 'assistant' -%}}{{{{- {start!r} -}}}}{in_turn}{content}{made}{{{{- {end!r} -}}}}"
        "{%- endif -%}{%- endfor -%}"
        f"{{%- if add_generation_prompt -%}}{{{{- {start!r} -}}}}{in_prompt}{{%- endif -%}}"
    )


def generate(seed: int = 7, rounds: int = 3) -> list[Generated]:
    """Return every way to write calls ``rounds`` times, each time with another frame and another kind of reasoning."""
    rng = random.Random(seed)
    found = []
    pairs = itertools.cycle(rng.sample(list(itertools.product(FRAMES, REASONING)), len(FRAMES) * len(REASONING)))
    marks = itertools.cycle(MARKS)
    for i in range(rounds):
        for calls, (_, variant, several) in CALLS.items():
            frame, reasoning = next(pairs)
            pair = next(marks)
            wrapped = (i + len(found)) % 5 == 0 and calls not in ("json_bare",) and reasoning != "split"
            name = f"{calls}-{reasoning}-{frame}{'-wrapped' if wrapped else ''}-{i}"
            source = template(frame, reasoning, pair, calls, wrapped)
            found.append(Generated(name, source, reasoning != "none", calls != "none", several, variant))
    return found
