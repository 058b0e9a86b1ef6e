"""Hostile templates: each ends in a clear error, in every thread. Benchmarks time them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from untemplate.templates import ChatTemplate, TemplateError, TemplateLimitError
from untemplate.templates import _codegen as codegen
from untemplate.templates import _limits as limits
from untemplate.templates import _meter as meter
from untemplate.templates import _sandbox as sandbox

USER = {"role": "user", "content": "hi"}


def refused(source: str, kind: type[TemplateError] = TemplateLimitError) -> TemplateError:
    with pytest.raises(kind) as caught:
        ChatTemplate(source, name="bad").render([USER])
    assert str(caught.value).startswith("bad")
    return caught.value


LOOPS = {
    "nested ranges": "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "the filter of a loop": "{% for i in range(99999) %}{% for j in range(99999) if false %}{% endfor %}{% endfor %}",
    "a filter in that filter": "{% for i in range(99999) if range(9999) | select('none') | list %}{% endfor %}",
    "a list that grows": "{% set l = [1] %}{% for i in l %}{% set _ = l.append(1) %}{% endfor %}",
    "a macro that forks": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "a loop that forks": "{% for x in [1] recursive %}{% if loop.depth < 50 %}{{ loop([1,2]) }}{% endif %}{% endfor %}",
}  # fmt: skip


@pytest.mark.parametrize("source", LOOPS.values(), ids=LOOPS)
def test_templates_that_do_not_end(source: str) -> None:
    refused(source)


RECURSION = {
    "macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "caller": "{% macro m() %}{{ caller() }}{% endmacro %}"
    "{% macro r() %}{% call m() %}{{ r() }}{% endcall %}{% endmacro %}{{ r() }}",
    "loop": "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "block": "{% block a %}{{ self.a() }}{% endblock %}",
}


@pytest.mark.parametrize("source", RECURSION.values(), ids=RECURSION)
def test_templates_that_call_themselves(source: str) -> None:
    assert refused(source).message == "the template calls itself too deeply"


DOUBLE = "{% set ns = namespace(s='a') %}{% for i in range(60) %}STEP{% endfor %}{{ ns.s }}"
GROWS = {
    "text times": "{{ 'a' * 10 ** 9 }}",
    "times text": "{{ 10 ** 9 * 'a' }}",
    "markup times": "{{ ('a' | safe) * 10 ** 9 }}",
    "list times": "{{ [1] * 10 ** 9 }}",
    "punycode": "{{ ('ü' * 100000).encode('punycode') }}",
    "idna": "{{ ('ü' * 100000).encode('idna') }}",
    "power": "{{ 10 ** (10 ** 9) }}",
    "square": "{% set ns = namespace(s=3) %}{% for i in range(60) %}{% set ns.s = ns.s * ns.s %}{% endfor %}",
    "plus": DOUBLE.replace("STEP", "{% set ns.s = ns.s + ns.s %}"),
    "tilde": DOUBLE.replace("STEP", "{% set ns.s = ns.s ~ ns.s %}"),
    "set block": DOUBLE.replace("STEP", "{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = x %}"),
    "join": DOUBLE.replace("STEP", "{% set ns.s = [ns.s, ns.s] | join %}"),
    "format": DOUBLE.replace("STEP", "{% set ns.s = '%s%s' % (ns.s, ns.s) %}"),
    "str.format": DOUBLE.replace("STEP", "{% set ns.s = '{0}{0}'.format(ns.s) %}"),
    "macro": "{% macro m(s) %}{{ s }}{{ s }}{% endmacro %}" + DOUBLE.replace("STEP", "{% set ns.s = m(ns.s) %}"),
    "extend": "{% set l = [1] %}{% for i in range(60) %}{% set _ = l.extend(l) %}{% endfor %}",
    "output": "{% for i in range(99999) %}{% for j in range(99) %}" + "x" * 99 + "{% endfor %}{% endfor %}",
    "macro output": "{% macro m() %}{% for i in range(9999) %}" + "x" * 999 + "{% endfor %}{% endmacro %}{{ m() }}",
    "many texts": "{% set l = [] %}{% for i in range(99999) %}{% set _ = l.append('abc ' * 99999) %}{% endfor %}",
    "many pieces": "{% set l=[] %}{% for i in range(9999) %}{% set _ = l.append(('b ' * 9999).split()) %}{% endfor %}",
    "many lists": "{% set l = [] %}{% for i in range(9999) %}{% set _ = l.append([" + "[]," * 999 + "]) %}{% endfor %}",
    "one text many times": "{{ (['a' * 1000000] * 1000) | tojson }}",
    "one text printed often": "{{ ['a' * 1000000] * 1000 }}",
    "a long separator": "{{ (['a'] * 99999) | join('a' * 99999) }}",
    "a long separator's join": "{{ ('a' * 99999).join('a' * 99999) }}",
    "replace": "{{ ('a' * 99999) | replace('a', 'b' * 99999) }}",
    "str.replace": "{{ ('a' * 99999).replace('', 'b' * 99999) }}",
    "center": "{{ 'a' | center(10 ** 9) }}",
    "str.center": "{{ 'a'.center(10 ** 9) }}",
    "markup.ljust": "{{ ('a' | safe).ljust(10 ** 9) }}",
    "str.zfill": "{{ '1'.zfill(10 ** 9) }}",
    "tabs": "{{ ('\\t' * 99999).expandtabs(tabsize=4000) }}",
    "wide column": "{{ '{:>1000000000}'.format(1) }}",
    "computed column": "{{ '{:>{w}}'.format(1, w=10 ** 9) }}",
    "many columns": "{{ ('{0:>999}' * 99999).format(1) }}",
    "wide %": "{{ '%1000000000d' % 1 }}",
    "starred %": "{{ '%.*f' % (10 ** 9, 1.0) }}",
    "wide % of bytes": "{{ '%1000000000d'.encode() % 1 }}",
    "wide % filter": "{{ '%1000000000d' | format(1) }}",
    "named %": "{{ ('%(a)s' * 99999) % {'a': 'x' * 99999} }}",
    "indent": "{{ ('a\\n' * 99999) | indent('x' * 99999) }}",
    "wordwrap": "{{ ('a' * 1900000) | wordwrap(10) }}",
    "batch": "{{ [1] | batch(10 ** 9, 'x') | list }}",
    "slice": "{{ [1] | slice(10 ** 9) | list }}",
    "round": "{{ 1 | round(10 ** 9, 'ceil') }}",
    "JSON indent": "{{ [1] | tojson(indent=10 ** 9) }}",
    "JSON separator": "{{ ([1] * 9999) | tojson(separators=('x' * 99999, ':')) }}",
    "sum of lists": "{{ ([[1] * 2000] * 2000) | sum(start=[]) }}",
    "bytes": "{{ (5).to_bytes(10 ** 9, 'big') }}",
    "translate": "{{ ('a' * 99999).translate({97: 'b' * 99999}) }}",
    "tags": "{{ ('<!---->' * 99999) | striptags }}",
    "repr": "{{ (['a' * 999] * 9999) | pprint }}",
    "strftime": "{{ strftime_now('%Y%A%B' * 300000) }}",
}  # fmt: skip


@pytest.mark.parametrize("source", GROWS.values(), ids=GROWS)
def test_values_that_grow(source: str) -> None:
    refused(source)


TANGLE = (
    "{% set ns = namespace(s=[1], t=[1], u=(1,), v=(1,)) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}"
    "{% set ns.t = [ns.t, ns.t] %}{% set ns.u = (ns.u, ns.u) %}{% set ns.v = (ns.v, ns.v) %}{% endfor %}"
)
"""Sixty lists that would take 2 ** 60 elements to walk through."""
WALKS = (
    "ns.s", "ns.s | string", "ns.s ~ 1", "ns.s | tojson", "ns.s | tojson(indent=1)", "ns.s | pprint", "ns.s | join",
    "ns.s == ns.t", "ns.s is eq ns.t", "ns.s in [ns.t]", "[ns.t].count(ns.s)", "[ns.t].index(ns.s)", "ns.s < ns.t",
    "{}[ns.u]", "{ns.u: 1}", "ns.u in {}", "{}.get(ns.u)", "dict([(ns.u, 1)])",
    "dict.fromkeys([ns.u] | map('default'))",
    "[ns.u] | unique | list", "[ns.s, ns.t] | sort", "[ns.s, ns.t] | map('default') | sort", "[ns.s, ns.t] | max",
    "[{'a': ns.s}, {'a': ns.t}] | groupby('a')", "[ns.s] | select('in', [ns.t]) | list",
    "'%s' % [ns.s]", "'%s%s' % ns.u", "'{}'.format(ns.s)", "'{0[0]}'.format(ns.s)", "ns.s | e", "ns.s | urlencode",
    "ns.s | wordcount", "ns.s | striptags", "{'a': ns.s} | xmlattr", "ns.s | title", "ns.s | center",
    "namespace(a=ns.s)",
    "('<b>' | safe).join([ns.s])", "'<b>%s' | safe % [ns.s]", "''.join([ns.s])", "raise_exception(ns.s)",
    "{'a': ns.s}.values()", "joiner(ns.s)() ~ joiner(ns.s)()",
)  # fmt: skip


@pytest.mark.parametrize("expression", WALKS)
def test_lists_that_hold_each_other_many_times(expression: str) -> None:
    source = TANGLE + "{% for x in [ns.s] %}{{ " + expression + " }}{% endfor %}"
    refused(source, TemplateError)


def test_a_list_that_holds_itself() -> None:
    for source in ("{{ l }}", "{{ l | tojson }}", "{{ l == m }}", "{{ [l] | sort }}"):
        refused(
            "{% set l = [] %}{% set m = [] %}{% set _ = l.append(m) %}{% set _ = m.append(l) %}" + source, TemplateError
        )


LOOKS = (
    "s == t", "'b' in s", "s.find(t)", "s.strip() | length", "s.islower()", "s is lower", "s | upper | length",
    "s.encode() | length", "2 in l", "l.count(2)", "l | max", "l[1:] | length", "s[1:] | length",
)  # fmt: skip


LONG = "{% set s = 'a' * 40000 %}{% set t = 'a' * 39999 + 'b' %}{% set l = [1] * 6000 %}"
"""Long enough that reading it counts, and short enough that copying it does not."""


@pytest.mark.parametrize("expression", LOOKS)
def test_reading_a_long_value_counts(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred expressions are one block of statements, which is counted once, so each must count its own work."""
    for limit in ("STEPS", "SIZE", "TOTAL"):
        monkeypatch.setattr(limits, limit, 1 << 40)
    for module in (sandbox, codegen):
        # A long template on a slow machine: how long it takes to compile is not the subject.
        monkeypatch.setattr(module, "COMPILE_LIMIT", 60.0)
    template = ChatTemplate(LONG + ("{{ " + expression + " }}") * 200)
    asked = 0

    def thread_time() -> float:
        nonlocal asked
        asked += 1
        return 0.0

    monkeypatch.setattr(meter, "thread_time", thread_time)
    template.render([])
    assert asked > 200


INSIDES = (
    "''.__class__.__mro__", "''['__class__']['__mro__'][1]", "(''|attr('__class__')).x", "cycler.__init__.__globals__",
    "namespace.__init__.__globals__", "joiner.__init__.__globals__", "dict.__class__.__base__",
    "self.__init__.__globals__", "self._TemplateReference__context.environment", "m._func.__globals__",
    "'{0.__class__.__mro__}'.format('')", "'{a.__class__.__mro__}'.format_map({'a': 1})", "messages.__class__.__base__",
    "raise_exception.__globals__.x", "strftime_now.__globals__.x", "([1]|map('string')).gi_frame.f_globals",
    "(messages|map(attribute='__class__')|list)[0].mro", "namespace(__class__=1)", "namespace(_x=1)", "x.__globals__.y",
    "('<b>{0.__class__}'|safe).format(1)", "messages[0].keys.__self__.x", "range.__self__.x", "caller.__init__.x",
)  # fmt: skip


@pytest.mark.parametrize("expression", INSIDES)
def test_internals_cannot_be_reached(expression: str) -> None:
    source = (
        "{% macro m() %}{% endmacro %}{% set x = m %}{% for i in [1] %}{{ "
        + expression
        + " }}{{ loop.index }}{% endfor %}"
    )
    refused(source, TemplateError)


@pytest.mark.parametrize(
    "expression", ["''.__class__", "cycler.__init__", "messages.__len__", "m.__call__", "self.__dict__"]
)
def test_internals_print_as_nothing(expression: str) -> None:
    source = "{% macro m() %}{% endmacro %}[{{ " + expression + " }}]{{ (" + expression + ") is defined }}"
    assert ChatTemplate(source).render([USER]) == "[]False"


SOURCES = {
    "10 MB of text": "x" * 10_000_000,
    "10 MB of Jinja": "{{ 1 }}" * 1_500_000,
    "many expressions": "{{a}}" * 49_000,
    "one long expression": "{{ 1" + "+1" * 100_000 + " }}",
    "one long list": "{{ [" + "1," * 100_000 + "] }}",
    "one long path": "{{ a" + ".b" * 100_000 + " }}",
    "many filters": "{{ a" + "|upper" * 30_000 + " }}",
    "deep parentheses": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "deep conditions": "{% if a %}" * 500 + "{% endif %}" * 500,
    "deep loops": "{% for a in b %}" * 50 + "{% endfor %}" * 50,
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_templates_that_are_too_long_or_too_deep(source: str) -> None:
    with pytest.raises(TemplateLimitError):
        ChatTemplate(source).render([USER])


NO_TEMPLATES = (
    "{{",
    "{% if %}",
    "{% endfor %}",
    "{# never closed",
    "\x00\xff{{ }}",
    "{{ 1 2 }}",
    "{% frob %}",
)


@pytest.mark.parametrize("source", NO_TEMPLATES)
def test_sources_that_are_not_templates(source: str) -> None:
    error = refused(source, TemplateError)
    assert error.message.startswith("not a template that Jinja can read: ")
    assert error.line == 1


def test_the_limits_hold_in_any_thread() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            ChatTemplate(LOOPS["nested ranges"]).render([USER])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)  # a machine may be busy; without its limit the template never ends
    assert [type(error) for error in errors] == [TemplateLimitError] * 2


def test_limits_grow_with_the_input() -> None:
    """A conversation of two million characters, and a template that looks at every message for each of a thousand."""
    messages: list[Any] = [{"role": "user", "content": "word " * 800} for _ in range(500)]
    source = (
        "{% for m in messages %}{% set ns = namespace(last=0) %}{% for o in messages %}{% if o.role == 'user' %}"
        "{% set ns.last = loop.index %}{% endif %}{% endfor %}{{ m | tojson }}{{ m.content }}{{ ns.last }}{% endfor %}"
    )
    assert len(ChatTemplate(source).render(messages)) > 4_000_000
