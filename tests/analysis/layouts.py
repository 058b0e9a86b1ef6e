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

MUSE = """\
{%- macro atem(call) -%}
{{- '<atem:function_calls>\\n<atem:invoke name="' ~ call.function.name ~ '">\\n' -}}
{%- for key, value in call.function.arguments.items() -%}
{{- '<atem:parameter name="' ~ key ~ '">' ~ (value if value is string else value | tojson) -}}
{{- '</atem:parameter>\\n' -}}
{%- endfor -%}
{{- '</atem:invoke>\\n</atem:function_calls>' -}}
{%- endmacro -%}
{%- if tools -%}{{- '<|start|>system<|message|>' ~ (tools | tojson) ~ '<|eot|>' -}}{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{%- if message.reasoning_content -%}
{{- '<|start|>assistant to=self<|message|>' ~ message.reasoning_content ~ '<|eom|>' -}}
{%- endif -%}
{%- if message.content -%}
{{- '<|start|>assistant to=user<|message|>' ~ message.content ~ ('<|eom|>' if message.tool_calls else '<|eot|>') -}}
{%- endif -%}
{%- for call in message.tool_calls or [] -%}
{{- '<|start|>assistant to=' ~ call.function.name ~ '<|message|>' ~ atem(call) -}}
{{- '<|eot|>' if loop.last else '<|eom|>' -}}
{%- endfor -%}
{%- else -%}
{{- '<|start|>' ~ message.role ~ '<|message|>' ~ message.content ~ '<|eot|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start|>assistant' -}}{%- endif -%}
"""

SOLAR_OPEN = """\
{%- if tools -%}{{- '<|begin|>system<|content|>' ~ (tools | tojson) ~ '<|end|>' -}}{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{%- if message.reasoning_content -%}
{{- '<|begin|>assistant<|think|>' ~ message.reasoning_content ~ '<|end|>' -}}
{%- endif -%}
{%- if message.content -%}
{{- '<|begin|>assistant<|content|>' ~ message.content ~ ('<|end|>' if message.tool_calls else '<|flush|>') -}}
{%- endif -%}
{%- if message.tool_calls -%}
{{- '<|begin|>assistant<|tool_calls|>' -}}
{%- for call in message.tool_calls -%}
{{- '<|tool_call:begin|>' ~ call.id ~ '<|tool_call:name|>' ~ call.function.name -}}
{{- '<|tool_call:args|>' ~ (call.function.arguments | tojson) ~ '<|tool_call:end|>' -}}
{%- endfor -%}
{{- '<|calls|>' -}}
{%- endif -%}
{%- else -%}
{{- '<|begin|>' ~ message.role ~ '<|content|>' ~ message.content ~ '<|end|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|begin|>assistant' -}}{%- endif -%}
"""

HY3 = """\
{%- set eos = '<｜hy_eos:opensource｜>' -%}
{%- if tools -%}{{- '<｜hy_begin｜>' ~ (tools | tojson) ~ '<｜hy_end｜>' -}}{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{- '<｜hy_Assistant｜>' -}}
{%- if message.reasoning_content -%}
{{- '<think:opensource>' ~ message.reasoning_content ~ '</think:opensource>' -}}
{%- endif -%}
{{- message.content or '' -}}
{%- if message.tool_calls -%}
{{- '<tool_calls:opensource>\\n' -}}
{%- for call in message.tool_calls -%}
{{- '<tool_call:opensource>' ~ call.function.name ~ '<tool_sep:opensource>\\n' -}}
{%- for key, value in call.function.arguments.items() -%}
{{- '<arg_key:opensource>' ~ key ~ '</arg_key:opensource>\\n<arg_value:opensource>' -}}
{{- (value if value is string else value | tojson) ~ '</arg_value:opensource>\\n' -}}
{%- endfor -%}
{{- '</tool_call:opensource>\\n' -}}
{%- endfor -%}
{{- '</tool_calls:opensource>' ~ eos -}}
{%- elif not loop.last -%}
{{- eos -}}
{%- endif -%}
{%- else -%}
{{- '<｜hy_User｜>' ~ message.content -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<｜hy_Assistant｜>' -}}{%- endif -%}
"""
