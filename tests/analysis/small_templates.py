"""A grammar that writes small chat templates: random frames, conditions and omissions, as people write them by hand.

``write(random)`` returns one template of 1 to 30 lines. Most of them are sound; many drop a message, have no header or
no end, ask about positions, or raise. None is taken from a model.
"""

from __future__ import annotations

import random

__all__ = ["write"]

_HEADERS = (
    ("<{{ m.role }}>", "", "<assistant>"),
    ("<|im|>{{ m.role }}\n", "<|mi|>\n", "<|im|>assistant\n"),
    ("[{{ m['role'] | upper }}] ", "\n", "[ASSISTANT] "),
    ("{{ m.role | capitalize }}: ", "\n\n", "Assistant:"),
    ("", "{{ eos_token }}", ""),
    ("", "\n", "A: {{ eos_token }}"),
    ("", "", ""),
    ("<h>{{ m.role }}</h>", "</t>", "<h>assistant</h>"),
)
_SELECTIONS = (
    "",
    "not loop.last or m.role == 'user'",
    "not loop.last",
    "loop.last",
    "m.role == 'user'",
    "m.role != 'assistant'",
    "m.content",
    "loop.index0 > 0",
    "m.role in ['user', 'assistant']",
)
_CONTENTS = (
    "{{ m.content }}",
    "{{ m['content'] | trim }}",
    "{{ m.content.split('</r>')[-1] }}",
    "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}",
    "{% if m.content %}{{ m.content }}{% endif %}",
    "{{ m.content or '' }}",
)
_THOUGHTS = (
    "",
    "",
    "{% if m.reasoning_content %}<r>{{ m.reasoning_content }}</r>{% endif %}",
    "{% if m.reasoning_content and enable_thinking %}<r>{{ m.reasoning_content }}</r>{% endif %}",
    "{% if loop.last and m.reasoning_content %}<r>{{ m.reasoning_content }}</r>\n{% endif %}",
)
_CALLS = (
    "",
    "",
    "{% for c in m.tool_calls or [] %}<c>{{ c.function | tojson }}</c>{% endfor %}",
    "{% if m.tool_calls %}<c>{{ m.tool_calls | tojson }}</c>{% endif %}",
    "{% for c in m.tool_calls or [] %}<c={{ c.function.name }}>{{ c.function.arguments | tojson }}</c>{% endfor %}",
    "{% for c in m.tool_calls or [] %}<c>{{ c.function.name }}</c>{% endfor %}",
    "{% for c in m.tool_calls or [] %}{{ raise_exception('no calls') }}{% endfor %}",
    "{% for c in m.tool_calls or [] %}<c>{{ c.function.arguments | from_json }}</c>{% endfor %}",
)
_PROMPTS = (
    "{% if add_generation_prompt %}HEADER{% endif %}",
    "{% if add_generation_prompt %}HEADER<r>\n{% endif %}",
    "{% if add_generation_prompt and messages[-1].role != 'assistant' %}HEADER{% endif %}",
    "HEADER",
    "",
)
_FRONTS = (
    "",
    "",
    "{{ bos_token }}",
    "{% if tools %}Tools: {{ tools | tojson }}\n{% endif %}",
    "{% if messages[0].role == 'system' %}{{ messages[0].content }}\n{% set messages = messages[1:] %}{% endif %}",
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}"
    "{% endif %}{% endfor %}",
)


def write(chance: random.Random) -> str:
    """Return one template."""
    before, after, header = chance.choice(_HEADERS)
    body = before + chance.choice(_THOUGHTS) + chance.choice(_CONTENTS) + chance.choice(_CALLS) + after
    selection = chance.choice(_SELECTIONS)
    if chance.random() < 0.3:
        other = "{{ m.content }}" + chance.choice(("", "\n", "{{ eos_token }}"))
        other = chance.choice(("H: ", "", "<q>")) + other
        body = f"{{% if m.role == 'assistant' %}}{body}{{% else %}}{other}{{% endif %}}"
    if selection:
        body = f"{{% if {selection} %}}{body}{{% endif %}}"
    prompt = chance.choice(_PROMPTS).replace("HEADER", header)
    if chance.random() < 0.2:
        body += f"{{% if loop.last %}}{header or '<assistant>'}{{% endif %}}"
        prompt = ""
    if chance.random() < 0.1:
        body = f"{{% macro turn(m) %}}{{{{ m.content }}}}{{% endmacro %}}{{{{ turn(m) }}}}{after}"
    lines = [chance.choice(_FRONTS), "{% for m in messages %}", body, "{% endfor %}", prompt]
    return chance.choice(("", "\n")).join(lines)
