"""A call on a line of its own is a call, whatever prose comes before it: the counterweight of the rules for quotations.

Prose may name signs that open something without closing them: quotation marks, backticks, comments, here-documents.
"""

from __future__ import annotations

import pytest

from untemplate import OutputParser
from untemplate.format import Format

from .strategies import TOOLS
from .test_quotation import CALLING, content, written

PROSE = (
    "I will look.",
    "I will add `<!-- TODO -->` and an opening <!-- sign.",
    "The file has an unclosed <!-- comment",
    "It begins with <!-- here:",
    "<!-- note -->\nI will look.",
    "<!-- note\nmore -->",
    "I will use cat <<EOF to write it.",
    "I will use cat <<EOF",
    "Run cat <<EOF > f:",
    "cat <<EOF > f\nhello\nEOF",
    "```sh\ncat <<EOF > f\nhello\nEOF\n```",
    "x = 1 <<EOF_SHIFT bits",
    "The ` key is broken.",
    "Type a single `",
    "Use `` to quote.",
    "Use ``` to open a fence.",
    'He said "wait.',
    "He said \u201cwait.",
    "Il dit \xabattends.",
    'A 27" screen.',
    "I don't know, let's look.",
    "The users'",
    'He said: "',
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "a | b\n--|--\n1 | 2",
    "Run `a | b` or a | b.",
    "1. Look\n2. Answer",
    "- Look\n- Answer",
    "2024-01-01 10:00:00 INFO started",
    "[2024-01-01T10:00:00Z] INFO started\n[2024-01-01T10:00:01Z] GET /",
    "    x = 1\n    y = 2",
    "```python\nx = 1\n```",
    "~~~\nx\n~~~",
    "```\nx\n```\nNow I look.",
    '```json\n{"a": 1}\n```\nCalling:',
    "```\na\n```\n\n```\nb\n```",
    "````\n```\na\n```\n````",
    "- code:\n  ```\n  x\n  ```",
    "> He said\n> look",
    "See [the docs](https://example.com/a_(b)) first.",
    "See [the docs",
    "See [the docs](https://example.com/",
    "![alt](a.png)",
    'name: a\nitems:\n  - x: 1\n  - y: "2"',
    "text: |\n  some lines",
    '{"a": 1, "b": ["x"]}',
    'It begins {"a": "x',
    "Items: [1, 2,",
    "In C a block begins with {",
    "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b",
    "```diff\n-a\n+b\n```",
    "```diff\n@@ -1 +1 @@\n-a\n+b\n```\nDone.",
    "See the note.[^1]\n\n[^1]: A note.",
    "[^1]: A note.",
    "<details>\n<summary>x</summary>\n",
    "<code>x",
    "<pre>x</pre>",
    "It uses <![CDATA[ sections.",
    "It uses <![CDATA[",
    "a < b and c > d, so x << 2.",
    "$$x = \\frac{1}{2}$$",
    "On it \U0001f44d",
    "\u597d\u7684\uff0c\u6211\u6765\u67e5\u8be2\u3002",
    "\u4ed6\u8bf4\u300c\u7b49\u7b49",
    "Calling the tool:",
    "One moment \u2014",
    "One moment (this is quick",
    "---",
    "# Plan",
    "$ ls\na b",
    "x >",
    "def f(a='x'):\n    return a",
    "print('it",
    'echo "it\'s"',
    'echo "it',
    "From: a@b.c\nSubject: x\n\n> hi\nhello",
)
AROUND = (("\n", ""), ("\nThen I call:\n", "\nDone."), ("\n\n  ", ""))
"""What comes between the prose and the call, and after the call."""


def takes_calls_after_text(fmt: Format) -> bool:
    """True if a call of the format may follow content; calls without a marker begin the output."""
    parsed = OutputParser.from_format(fmt).parse(f"{content(fmt)}I will look.\n{written(fmt)}", tools=TOOLS)
    return bool(parsed.tool_calls)


AFTER_TEXT = {name: fmt for name, fmt in CALLING.items() if takes_calls_after_text(fmt)}


def test_calls_of_other_formats_begin_the_output() -> None:
    begin_the_output = ["granite_pythonic", "json", "llama3_json", "llama4_json", "pythonic", "xlam"]
    assert sorted(set(CALLING) - set(AFTER_TEXT)) == begin_the_output


@pytest.mark.parametrize("fmt", AFTER_TEXT.values(), ids=list(AFTER_TEXT))
def test_a_call_on_its_own_line_is_a_call_after_any_prose(fmt: Format) -> None:
    parser = OutputParser.from_format(fmt)
    missed = []
    for prose in PROSE:
        for gap, after in AROUND:
            parsed = parser.parse(content(fmt) + prose + gap + written(fmt) + after, tools=TOOLS)
            calls = [(call.function.name, call.status) for call in parsed.tool_calls]
            if calls != [("get_weather", "ok")]:
                missed.append((prose, gap, after, calls))
    assert missed == []
