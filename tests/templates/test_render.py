"""Renders templates like transformers 5: the language, the inputs, continued messages and errors."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
import pytest

from untemplate.messages import FunctionCall, ToolCall
from untemplate.templates import ChatTemplate, TemplateError, TemplateRaised

USER = {"role": "user", "content": "Hi <b> & 'you' \"ü\""}
TOOL = {"type": "function", "function": {"name": "f", "description": "<d>", "parameters": {"type": "object"}}}


def rendered(source: str, *messages: Any, **kwargs: Any) -> str:
    return ChatTemplate(source).render(list(messages) or [USER], **kwargs)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # tojson: no HTML escapes, no \\u escapes, and the options of json.dumps
        ("{{ messages[0] | tojson }}", '{"role": "user", "content": "Hi <b> & \'you\' \\"ü\\""}'),
        ("{{ {'ü': 1} | tojson(ensure_ascii=True) }}", '{"\\u00fc": 1}'),
        ("{{ {'b': [1], 'a': {}} | tojson(indent=2) }}", '{\n  "b": [\n    1\n  ],\n  "a": {}\n}'),
        ("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}", '{"a": 2, "b": 1}'),
        ("{{ {'b': 1, 'a': 2} | tojson(separators=(',', ':')) }}", '{"b":1,"a":2}'),
        # no escaping
        ("{{ messages[0].content }}", USER["content"]),
        # trim_blocks and lstrip_blocks; a last newline is dropped, as everywhere in Jinja
        ("a\n  {% if true %}\nb\n  {% endif %}\nc\n", "a\nb\nc"),
        # loop controls
        ("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}"
         "{{ i }}{% endfor %}", "0134"),
        ("{% for i in range(6) if i is odd %}{{ loop.index }}:{{ i }}/{{ loop.length }} {% endfor %}",
         "1:1/3 2:3/3 3:5/3 "),
        # training masks
        ("a{% generation %}{{ messages[0].role }}{% endgeneration %}b", "auserb"),
        # an undefined value raises only when it is used
        ("[{{ nothing }}{{ messages[0].nothing }}]{{ nothing is defined }}", "[]False"),
        # namespaces, macros, recursion, call blocks, set blocks, filters on blocks
        ("{% set ns = namespace(n=0) %}{% for i in range(3) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "3"),
        ("{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}", "3210"),
        ("{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}x{% endcall %}", "<x>"),
        ("{% set x %}a{{ 1 }}b{% endset %}{{ x | upper }}{% filter trim %} c {% endfilter %}", "A1Bc"),
        ("{% for x in [[1, [2]], [3]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", "123"),
        # lists and text
        ("{{ messages | map(attribute='role') | join(', ') }}", "user"),
        ("{{ [{'a': 1}, {'a': 2}] | sum(attribute='a') }}{{ [[1], [2]] | sum(start=[]) }}", "3[1, 2]"),
        ("{{ 'a</t>b'.split('</t>')[-1] ~ 1 ~ none }}{{ 'x'[::-1] * 3 }}{{ '%s|%5.1f' % ('a', 2.25) }}",
         "b1Nonexxxa|  2.2"),
        ("{{ '{}-{a:>3}'.format(1, a=2) }}{{ 'a' | format }}{{ '%d' | format(3) }}", "1-  2a3"),
        ("{{ messages[0].items() | list | length }}{{ {'b': 1, 'a': 2} | dictsort }}", "2[('a', 2), ('b', 1)]"),
        ("{{ 2 ** 10 }} {{ 7 // 2 }} {{ 7 / 2 }} {{ 1 + 2 * 3 - 4 }} {{ -3 % 5 }}", "1024 3 3.5 3 2"),
        ("{% set l = [3, 1] %}{% set _ = l.append(2) %}{{ l }}{{ l.pop(0) }}{{ l | sort }}", "[3, 1, 2]3[1, 2]"),
        ("{{ messages == [] }}{{ 'user' in messages[0].values() }}{{ 1 < 2 <= 2 }}", "FalseTrueTrue"),
        ("{% autoescape true %}{{ '<' }}{{ '<i>' | safe ~ messages[0].content[3:6] }}{% endautoescape %}",
         "&lt;<i>&lt;b&gt;"),
        ("{{ [1, 2, 3] | random == [1, 2, 3] | random }}", "True"),
        ("{{ dict(a=1) }}{{ dict.fromkeys(['a']) }}{{ dict([('k', 'v')]) }}", "{'a': 1}{'a': None}{'k': 'v'}"),
    ],
)  # fmt: skip
def test_the_language(source: str, expected: str) -> None:
    assert rendered(source) == expected


def test_variables_of_every_template() -> None:
    names = ("bos_token", "eos_token", "pad_token", "tools", "documents", "add_generation_prompt", "x")
    source = "|".join("{{ " + name + " }}" for name in names)
    template = ChatTemplate(source, bos_token="<s>", eos_token="</s>", special_tokens={"pad_token": "<p>"})
    assert template.render([]) == "<s>|</s>|<p>|None|None|False|"
    assert template.render([], tools=[], documents=[{"a": 1}], add_generation_prompt=True, x=1, eos_token="E") == (
        "<s>|E|<p>|[]|[{'a': 1}]|True|1"
    )


def test_named_templates() -> None:
    template = ChatTemplate("plain", named={"tool_use": "tools", "rag": "rag {{ eos_token }}"}, eos_token="E", name="m")
    assert template.render([]) == "plain"
    assert template.render([], tools=[TOOL]) == template.render([], tools=[]) == "tools"
    assert template.variant("rag").render([], tools=[TOOL]) == "rag E"
    with pytest.raises(TemplateError, match=r"^m: no template is named 'x'; its templates are: rag, tool_use$"):
        template.variant("x")


def test_the_clock_can_be_set() -> None:
    source = "{{ strftime_now('%Y-%m-%d %H:%M') }}"
    assert ChatTemplate(source, now=datetime(2026, 11, 21, 7, 5)).render([]) == "2026-11-21 07:05"
    assert ChatTemplate(source, now=lambda: datetime(2020, 1, 2)).render([]) == "2020-01-02 00:00"
    assert ChatTemplate("{{ strftime_now('%Y') }}").render([]) == str(datetime.now().year)


def test_reasoning_has_every_name() -> None:
    source = "{{ messages[0].reasoning_content }}/{{ messages[0].thinking }}/{{ messages[0].reasoning }}"
    assert rendered(source, {"role": "assistant", "reasoning": "r"}) == "r/r/r"
    assert rendered(source, {"role": "assistant", "thinking": "t"}) == "t/t/"
    assert rendered(source, {"role": "assistant", "reasoning_content": "c", "thinking": "t"}) == "c/t/"


# -- Inputs -------------------------------------------------------------------------------------------------------


class Role(StrEnum):
    USER = "user"


@dataclass
class Part:
    text: str
    kind: Any = None


class Struct(msgspec.Struct):
    role: str
    content: list[Part]


class Model:
    content = None

    def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
        assert exclude_none
        return {"role": "assistant"}

    def secret(self) -> str:
        raise AssertionError("a template called a method of the caller's object")


def test_models_dump_themselves() -> None:
    source = "{{ messages }}"
    assert rendered(source, Model()) == "[{'role': 'assistant', 'content': None}]"
    assert rendered(source, Struct("user", [Part("a")])) == (
        "[{'role': 'user', 'content': [{'text': 'a', 'kind': None}]}]"
    )
    call = ToolCall(id="1", function=FunctionCall(name="f", arguments="{}"))
    assert "'name': 'f', 'arguments': '{}'" in rendered(source, {"role": "assistant", "tool_calls": [call]})
    assert rendered(source, {"role": Role.USER, "n": (1, 2.5, None), "s": {"a"}}) == (
        "[{'role': 'user', 'n': (1, 2.5, None), 's': ['a']}]"
    )


def test_a_value_without_a_json_form_becomes_a_placeholder() -> None:
    assert rendered("{{ messages[0].image }}{{ x }}{{ messages[0].image.secret }}", {"image": object()}, x=len) == (
        "<object><builtin_function_or_method>"
    )
    assert rendered("{{ x.y.secret is defined }}", x={"y": Part("a", Model)}) == "False"


def test_the_callers_data_never_changes() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "a"}]}]
    tools = [TOOL]
    source = "{% set own = [messages] %}{% set _ = own.append(1) %}{{ own | length }}"
    assert ChatTemplate(source).render(messages, tools=tools) == "2"
    assert ChatTemplate("{{ messages[0].content[0].text }}").render(messages, continue_final_message=True) == "a"
    assert messages == [{"role": "user", "content": [{"type": "text", "text": "a"}]}]
    for change in ("messages.append(1)", "messages[0].content.pop()", "tools.clear()", "messages|attr('sort')()"):
        method = change.split(".")[-1].split("(")[0] if "attr" not in change else "sort"
        with pytest.raises(TemplateError, match=rf"line 1: the template calls {method}\(\) on a list that it did not"):
            ChatTemplate("{{ " + change + " }}").render(messages, tools=tools)
    with pytest.raises(TemplateError, match="forbids this: access to attribute 'update' of 'dict' object is unsafe"):
        ChatTemplate("{{ messages[0].update(a=1) }}").render(messages)


def test_misuse_raises() -> None:
    template = ChatTemplate("{{ messages }}")
    with pytest.raises(TypeError, match=r"^messages: expected a dict or a model, got str$"):
        template.render(["hi"])
    with pytest.raises(TypeError, match=r"^tools: expected a dict or a model, got builtin_function_or_method$"):
        template.render([USER], tools=[len])
    with pytest.raises(TypeError, match=r"^a template is a str, not bytes$"):
        ChatTemplate(b"x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^continue_final_message and add_generation_prompt exclude each other$"):
        template.render([USER], continue_final_message=True, add_generation_prompt=True)
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(TemplateError, match=r"^the messages are nested too deeply$"):
        template.render([{"role": "user", "content": loop}])


# -- A message to be continued ------------------------------------------------------------------------------------

CHAT = (
    "{% for m in messages %}[{% if m.reasoning_content %}<{{ m.reasoning_content }}>{% endif %}{{ m.content }}]"
    "{% endfor %}"
)
TRIMS = "{% for m in messages %}[{{ m.content | trim }}]{% endfor %}"


def test_a_final_message_is_continued() -> None:
    final = {"role": "assistant", "content": "Hello, ", "reasoning": "so "}
    assert rendered(CHAT, USER, final, continue_final_message=True).endswith("][<so >Hello, ")
    assert rendered(CHAT, USER, final, continue_final_message="content").endswith("][<so >Hello, ")
    assert rendered(CHAT, USER, final, continue_final_message="reasoning").endswith("][<so ")
    assert rendered(CHAT, USER, final, continue_final_message="reasoning_content").endswith("][<so ")
    # A template that trims the message gives a trimmed prompt.
    assert rendered(TRIMS, USER, final, continue_final_message=True).endswith("][Hello,")
    parts = {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    assert rendered(
        "{% for p in messages[-1].content %}{{ p.text }};{% endfor %}", parts, continue_final_message=True
    ) == ("a;b")


@pytest.mark.parametrize(
    ("source", "message", "field", "problem"),
    [
        (CHAT, {"role": "assistant"}, True, "the final message has no 'content' to continue"),
        (CHAT, {"role": "assistant", "content": [{"type": "image"}]}, True, "the final message has no 'content' to"),
        (CHAT, {"role": "assistant", "content": "a"}, "reasoning", "the final message has no 'reasoning' to continue"),
        (CHAT, {"role": "assistant", "content": "a", "extra": "e"}, "extra", "the template does not know 'extra'"),
        ("content", {"role": "assistant", "content": "a"}, True, "the template does not write the final message"),
    ],
)
def test_a_final_message_that_cannot_be_continued(source: str, message: Any, field: Any, problem: str) -> None:
    with pytest.raises(TemplateError, match=f"^continue_final_message: {problem}"):
        rendered(source, message, continue_final_message=field)
    with pytest.raises(TemplateError, match="there is no message to continue"):
        ChatTemplate(source).render([], continue_final_message=True)


# -- Literals, variables, hash ------------------------------------------------------------------------------------


def test_literals_and_variables() -> None:
    source = (
        "{%- set open = '<think>' -%}{%- for m in messages -%}<|im_start|>{{ m.role + '\\n' }}{{ open }}"
        "{%- if m['tool_calls'] and enable_thinking is defined -%}{{ '<think>' ~ thinking }}{%- endif -%}{%- endfor -%}"
        "{% macro m(x) %}{{ x }}{{ strftime_now('%Y') }}{{ reasoning_effort }}{% endmacro %}"
    )
    template = ChatTemplate(source, named={"tool_use": "{{ tools }}[TOOL]", "rag": "{{ documents }}[RAG]"})
    assert template.literals == ("<think>", "<|im_start|>", "\n", "tool_calls", "%Y", "[TOOL]")
    assert template.variables == ("enable_thinking", "messages", "reasoning_effort", "thinking", "tools")


def test_the_hash_covers_what_decides_the_text() -> None:
    one = ChatTemplate("a")
    assert one.sha256 == ChatTemplate("a", name="x", now=datetime(2020, 1, 1)).sha256
    others = [
        ChatTemplate("b"),
        ChatTemplate("a", eos_token="e"),
        ChatTemplate("a", bos_token="e"),
        ChatTemplate("a", special_tokens={"pad_token": "e"}),
        ChatTemplate("a", named={"tool_use": "b"}),
    ]
    assert len({one.sha256, *(other.sha256 for other in others)}) == 6
    assert repr(ChatTemplate("abc", name="m")) == "ChatTemplate('m', 3 characters)"


# -- Errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "text", "line"),
    [
        ("a\n{{ x.y.z }}", "m, line 2: 'x' is undefined", 2),
        (
            "{% macro m() %}\n\n{{ 1 // 0 }}{% endmacro %}\n{{ m() }}",
            "m, line 3: ZeroDivisionError: integer division",
            3,
        ),
        ("\n\n{% for %}", "m, line 3: not a template that Jinja can read: Expected an expression, got 'end of", 3),
        ("{{ 'a' | nofilter }}", "m, line 1: No filter named 'nofilter' found.", 1),
        ("{% include 'x' %}", "m, line 1: a chat template cannot include or import another", 1),
        ("{{ nothing | tojson }}", "m, line 1: TypeError: Object of type Undefined is not JSON serializable", 1),
        ("{% do 1 %}", "m, line 1: not a template that Jinja can read: Encountered unknown tag 'do'.", 1),
    ],
)
def test_errors_name_the_line(source: str, text: str, line: int) -> None:
    with pytest.raises(TemplateError) as caught:
        ChatTemplate(source, name="m").render([USER])
    assert str(caught.value).startswith(text)
    assert (caught.value.name, caught.value.line) == ("m", line)


def test_a_template_that_raises() -> None:
    with pytest.raises(TemplateRaised) as caught:
        rendered("{% if true %}\n{{ raise_exception('Roles must alternate') }}{% endif %}")
    assert caught.value.message == "Roles must alternate"
    assert str(caught.value) == "template, line 2: Roles must alternate"


# -- Cost, threads ------------------------------------------------------------------------------------------------


def test_jinja_is_imported_on_first_use() -> None:
    code = (
        "import sys; from untemplate.templates import ChatTemplate; t = ChatTemplate('{{ 1 }}'); t.sha256;"
        "assert 'jinja2' not in sys.modules; assert t.render([]) == '1'; assert 'jinja2' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_many_threads_share_one_template() -> None:
    source = (
        "{% set l = [] %}{% for m in messages %}{% set _ = l.append(m.content) %}{% endfor %}"
        "{{ l | join }}{{ strftime_now('%Y') }}"
    )
    wrong: list[str] = []

    def work(number: int) -> None:
        template = ChatTemplate(source, now=datetime(2000 + number, 1, 1))
        for _ in range(50):
            text = template.render([{"role": "user", "content": str(number)}] * 3)
            if text != str(number) * 3 + str(2000 + number):
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
