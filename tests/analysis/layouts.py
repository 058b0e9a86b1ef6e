"""Chat templates of our own in the layouts of families whose templates are not public."""

from __future__ import annotations

MINIMAX_M3 = """\
{%- set ns = ']<]minimax[>[' -%}
{%- macro element(name, value) -%}
{{- ns ~ '<' ~ name ~ '>' -}}
{%- if value is mapping -%}
{%- for key, item in value.items() -%}{{- element(key, item) -}}{%- endfor -%}
{%- elif value is iterable and value is not string -%}
{%- for item in value -%}{{- element('item', item) -}}{%- endfor -%}
{%- elif value is string -%}{{- value -}}
{%- else -%}{{- value | tojson -}}
{%- endif -%}
{{- ns ~ '</' ~ name ~ '>' -}}
{%- endmacro -%}
{%- if tools -%}]~b]system
{{ tools | tojson }}[e~[
{% endif -%}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{- ']~b]ai\\n' -}}
{%- if message.reasoning_content -%}{{- '<mm:think>' ~ message.reasoning_content ~ '</mm:think>' -}}{%- endif -%}
{{- message.content or '' -}}
{%- if message.tool_calls -%}
{{- ns ~ '<tool_call>\\n' -}}
{%- for call in message.tool_calls -%}
{{- ns ~ '<invoke name="' ~ call.function.name ~ '">' -}}
{%- for key, value in call.function.arguments.items() -%}{{- element(key, value) -}}{%- endfor -%}
{{- ns ~ '</invoke>\\n' -}}
{%- endfor -%}
{{- ns ~ '</tool_call>' -}}
{%- endif -%}
{{- '[e~[\\n' -}}
{%- else -%}
{{- ']~b]' ~ message.role ~ '\\n' ~ message.content ~ '[e~[\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- ']~b]ai\\n' -}}{%- endif -%}
"""
