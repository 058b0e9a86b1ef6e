# ruff: noqa: E501  (templates read better unbroken)
"""``untemplate explain``, and what ``untemplate parse`` makes of templates, models, enforced names and policies."""

from __future__ import annotations

import doctest
import io
import json
import os
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from untemplate import OutputParser, Policy
from untemplate._internal import cli
from untemplate._internal.backends.quotations import quoted_calls
from untemplate._internal.cli.explain import _CAME_BACK
from untemplate._internal.inspector.own_text import not_read_back
from untemplate._internal.installed import install_command
from untemplate._internal.terminal import width
from untemplate.analysis import analyze, prepare
from untemplate.format import Format, Marker, NamedBody, TaggedArguments, Tools, Turn
from untemplate.formats import entries, lookup, named, names
from untemplate.formats._registry import rows
from untemplate.grammar import make_grammar
from untemplate.selection import select, suggested
from untemplate.templates import ChatTemplate

TEMPLATE = (
    "{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\\n' + (m.content or '') -}}"
    '{%- for c in m.tool_calls or [] -%}{{- \'\\n<tool_call>\\n{"name": "\' + c.function.name + \'", "arguments": \' -}}'
    "{{- c.function.arguments|tojson + '}\\n</tool_call>' -}}{%- endfor -%}{{- '<|im_end|>\\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
OTHER = TEMPLATE.replace("tool_call>", "action>")
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


class Run:
    """Runs the command in this process, in a folder of its own, without network and without a cache."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        monkeypatch.chdir(folder)

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return name

    def __call__(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        try:
            code = cli.main(arguments)
        except SystemExit as exit:
            code = int(exit.code or 0)
        out, err = self._capsys.readouterr()
        return code, out, err

    def says(self, *arguments: str, stdin: str = "", noted: str = "") -> str:
        """Check that the command succeeds, with this on stderr; return what is on stdout."""
        code, out, err = self(*arguments, stdin=stdin)
        assert (code, err) == (0, noted)
        return out

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """Check that the command fails; return the one line on stderr. Nothing may be on stdout."""
        code, out, err = self(*arguments, stdin=stdin)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        return err.removeprefix("untemplate: error: ").rstrip("\n")


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "UNTEMPLATE_LOG", "UNTEMPLATE_STRICT_TOOL_CALL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UNTEMPLATE_CACHE", "off")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    return Run(tmp_path, capsys, monkeypatch)


NO_HUB = f"reading from the hub needs the package huggingface_hub: {install_command('untemplate', 'hub')}"

POLICIES = """\
policies  * differs from the default; --policy NAME=VALUE sets one
  unknown_tools       forward      forward | content | drop
  drafts              recover      recover | immediately | never
  unclosed_reasoning  reasoning    reasoning | content
  malformed_arguments as_written   as_written | repaired | content
  repair              none         none | syntax | schema
  cut_calls           forward      forward | content | drop | forward_or_content
  recovered_calls     forward      forward | content | drop
  text_after_calls    keep         keep | drop
  length_with_calls   length       length | tool_calls
  outer_white_space   keep         keep | trim
  marker_white_space  drop         drop | keep
  strict              false        false | true
  parallel_calls      all          all | first | first_rest_as_content
  reasoning_field     reasoning    reasoning | reasoning_content | both | inline
  spelled_markers     format       format | text | marker
  quoted_calls        evidence     evidence | call | content
  max_held            1048576      default 1048576
"""


# -- explain: a template ------------------------------------------------------------------------------------------


def explained(template: str) -> str:
    """Return the expected page for a template of our own, with digest, counts, markers and runner-up from the analysis."""
    analysis = analyze(ChatTemplate(template), cache=False)
    markers = "\n".join(f"  {name:<20}{text!r}" for name, text in analysis.result.markers.to_dict().items())
    remarks = "\n".join(
        ["remarks  on the template; parser.history(messages) meets its demands"]
        + [f"  {remark.code:<24}{remark}" for remark in analysis.certificate.traits.remarks]
    )
    digest, tag = analysis.template_sha256[:12], "action" if "action>" in template else "tool_call"
    return f"""\
mine.jinja
  template  {len(template)} characters, sha256 {digest}
  format    inferred-{digest}, certified
  quoted    {quoted_calls(analysis.format)}

found  by {len(analysis.log)} comparisons of {analysis.renders} renderings
  reasoning           none
  content             plain
  calls               json-native, arguments json, members name arguments
{markers}
  tokens              <|im_end|> <{tag}> </{tag}>

certificate  14 of the 14 abilities of the template parse back ({analysis.certificate.checks} checks)
                        template   parsed back
  content               yes        yes
  reasoning             no         -
  thinking_off          no         -
  calls                 yes        yes
  parallel_calls        yes        yes
  no_arguments          yes        yes
  content_with_calls    yes        yes
  reasoning_with_calls  no         -
  ids                   no         -
  string                yes        yes
  number                yes        yes
  integer               yes        yes
  boolean               yes        yes
  null                  yes        yes
  object                yes        yes
  array                 yes        yes
  awkward_strings       yes        yes
  several_turns         yes        yes

history  longer conversations only append

{remarks}

coverage  3 of 3 branches were rendered

choice  analysis inferred-{digest}, score 1.000
  because    inferred from the template (json-native); certified
  runner-up  another reading of the template: {analysis.certificate.runner_up}

example  as the template renders it
  prompt  '<|im_start|>user\\nqzaskedqz<|im_end|>\\n<|im_start|>assistant\\n'

[content]I will look.[markup]↵
<{tag}>↵
{{"name": "[name]survey_reef[markup]", "arguments": [arguments]{{"a_string": "Paris", "lines": "x"}}[markup]}}↵
</{tag}>

result  content, 1 call: survey_reef (ok); finish_reason tool_calls

{POLICIES}"""


def test_a_template(run: Run):
    assert run.says("explain", run.file("mine.jinja", OTHER)) == explained(OTHER)


def test_a_template_with_the_markers_of_the_catalogue(run: Run):
    blocks = run.says("explain", run.file("mine.jinja", TEMPLATE)).split("\n\n")
    assert blocks[0].splitlines()[2] == "  format    hermes, certified"
    (choice,) = [block for block in blocks if block.startswith("choice")]
    assert choice.splitlines()[:2] == [
        "choice  catalogue hermes, score 1.000",
        "  because    its calls have the markers of the template; certified",
    ]


def test_lines_that_were_never_rendered(run: Run):
    source = TEMPLATE.rstrip() + "\n{% if documents %}\nOne.\n\nTwo.\n{% endif %}"
    path, last = run.file("mine.jinja", source), len(source.splitlines())
    (coverage,) = [b for b in run.says("explain", path).split("\n\n") if b.startswith("coverage")]
    said = "coverage  3 of 4 branches were rendered; ! was never rendered"
    assert coverage.splitlines() == [f"{said}, -v shows the template", f"  !{last - 3:5}  One."]
    shown = run.says("explain", "-v", path)
    block = shown[shown.index(said) :].splitlines()[1 : last + 1]
    assert [line[10:] for line in block] == [line if line else "" for line in source.splitlines()]
    assert [n for n, line in enumerate(block, 1) if line.startswith("  !")] == [last - 3, last - 2, last - 1]
    lines = json.loads(run.says("explain", "--json", path))["coverage"]
    assert lines[last - 2] == {"line": last - 1, "rendered": False, "text": "Two."}
    assert all(one["rendered"] for one in lines[: last - 4])


def test_a_template_with_demands(run: Run):
    source = (
        "{%- for m in messages -%}<{{ m.role }}>{%- if m.reasoning_content and loop.last -%}<t>{{ m.reasoning_content }}"
        "</t>{%- endif -%}{% generation %}{{ m.content or '' }}{% endgeneration %}{%- for c in m.tool_calls or [] -%}"
        "<c>{{ c.function.name }} {{ '' + c.function.arguments }}</c>{%- endfor -%}<e>{%- endfor -%}"
        "{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
    )
    blocks = run.says("explain", run.file("mine.jinja", source)).split("\n\n")
    (history,) = [block for block in blocks if block.startswith("history")]
    assert history.splitlines()[:2] == [
        "history  earlier text changes as a conversation continues",
        "  reasoning and content, question appended",
    ]
    assert history.splitlines()[-2:] == [
        "  dropped   reasoning, once a question follows",
        "  dropped   reasoning, once a result follows",
    ]
    assert "training  {% generation %} marks the assistant's tokens" in blocks
    (remarks,) = [block for block in blocks if block.startswith("remarks")]
    assert remarks.splitlines() == [
        "remarks  on the template; parser.history(messages) meets its demands",
        "  needs_text_arguments  line 1: arguments must be JSON text",
        "  refuses_parts         line 1: content that is a list of text parts is written as Python writes a list",
        "  mask_without_end      line 1: {% generation %} leaves out the end of the turn, '<e>': a model that is "
        "trained with it never stops",
    ]


def test_a_template_from_stdin(run: Run):
    assert run.says("explain", "-", stdin=OTHER) == explained(OTHER).replace("mine.jinja", "-", 1)


def test_a_tokenizer_config(run: Run):
    file = run.file("tokenizer_config.json", json.dumps({"chat_template": TEMPLATE, "eos_token": "<|im_end|>"}))
    lines = run.says("explain", file).splitlines()
    assert lines[0] == "tokenizer_config.json"
    assert lines[2].endswith(", certified")


def test_each_comparison_on_request(run: Run, monkeypatch: pytest.MonkeyPatch):
    file = run.file("mine.jinja", OTHER)
    analysis = analyze(ChatTemplate(OTHER), cache=False)
    verbose = run.says("explain", file, "-v")
    block = next(b for b in verbose.split("\n\n") if b.startswith("comparisons"))
    numbered = re.findall(r"^  (\d+) +(.*)$", block.partition("hypotheses")[0], re.MULTILINE)
    assert [int(number) for number, _ in numbered] == list(range(1, len(analysis.log) + 1))
    log = [analysis.log[int(text[3:]) - 1] if re.fullmatch(r"as \d+", text) else text for _, text in numbered]
    assert log == list(analysis.log)
    assert len(block.partition("hypotheses")[2].splitlines()) == len(analysis.hypotheses) + 1
    monkeypatch.setenv("UNTEMPLATE_LOG", "debug")
    assert run.says("explain", file) == verbose
    monkeypatch.setenv("UNTEMPLATE_LOG", "info")
    assert run.says("explain", file) == explained(OTHER)


def test_what_does_not_come_back_is_shown(run: Run):
    out = run.says("explain", run.file("mine.jinja", OTHER), "--enforce-parser", "hermes")
    lines = out.splitlines()
    assert lines[2] == "  format    hermes, not certified"
    assert "  calls                 yes        no" in lines
    assert "choice  enforced hermes" in lines
    failed = prepare(ChatTemplate(OTHER)).certify(named("hermes")).failed
    first = lines.index(f"  failed  {failed[0].check}: {failed[0].problem}")
    shown = [f"    | {line}" for line in failed[0].output.split("\n")]
    assert lines[first + 1 : first + 1 + len(shown)] == shown
    assert "    | <action>" in shown
    rest = next(line for line in lines if line.endswith("more checks; -v shows them"))
    assert rest == f"  failed  {len(failed) - 3} more checks; -v shows them"
    everything = run.says("explain", "mine.jinja", "--enforce-parser", "hermes", "-v")
    assert everything.count("\n  failed  ") == len(failed)


def test_a_format_of_a_file_and_of_the_catalogue(run: Run):
    file = run.file("mine.json", named("hermes").to_json())
    assert run.says("explain", file).splitlines()[1] == "  format    hermes, from a file"
    assert run.says("explain", "hermes").splitlines()[1] == "  format    hermes, of the catalogue"


def test_a_format_is_tested_against_its_own_renderer(run: Run):
    arguments = TaggedArguments(key_open=Marker("<k>"), key_close=Marker("</k>"), value_close=Marker("1"))
    way = Tools(
        call_open=Marker("<<"), call_close=Marker(">>"), body=NamedBody(name_close=Marker("|"), arguments=arguments)
    )
    file = run.file("mine.json", Format(name="mine", tools=(way,)).to_json())
    block = next(b for b in run.says("explain", file).split("\n\n") if b.startswith("read back"))
    title, lost = block.split("\n", 1)
    assert title == "read back  not all samples, so outputs of the model will be misread"
    said = " ".join(lost.split())
    assert said.startswith("lost one call: '<<get_weather|<k>city</k>Paris1<k>days</k>31<k>")
    assert said.endswith("diagnostics ['markup_in_value']; look at tools[0].call_open, tools[0].body")
    assert json.loads(run.says("explain", file, "--json"))["not_read_back"][0].startswith("one call: ")
    assert "read back  text, reasoning and calls, as written\n" in run.says("explain", "qwen3_coder")


def test_a_missing_end_of_the_turn_is_named(run: Run):
    file = run.file("mine.json", named("hermes").extend(turn=Turn()).to_json())
    said = run.says("explain", run.file("mine.jinja", TEMPLATE), "--enforce-parser", file)
    assert "  missing    turn.end: the template writes '<|im_end|>" in said


@pytest.mark.parametrize("name", [entry.name for entry in entries()])
def test_all_that_the_catalogue_writes_is_read_back(name: str):
    assert list(not_read_back(named(name))) == []


# -- explain: a model ---------------------------------------------------------------------------------------------


def test_a_folder(run: Run):
    run.file("Qwen2.5-7B-Instruct/chat_template.jinja", TEMPLATE)
    run.file("Qwen2.5-7B-Instruct/config.json", '{"model_type": "qwen2"}')
    out = run.says("explain", "Qwen2.5-7B-Instruct")
    assert (
        "\nchoice  catalogue hermes, score 1.000\n  because    Qwen2.5-7B-Instruct matches Qwen/Qwen2.5-*; certified\n"
        in out
    )
    run.file("Qwen2.5-7B-Instruct/chat_template.jinja", OTHER)
    out = run.says("explain", "Qwen2.5-7B-Instruct")
    assert "\nchoice  analysis inferred-" in out
    assert re.search(
        r"\n  runner-up  catalogue hermes, score 0\.\d+: Qwen2.5-7B-Instruct matches Qwen/Qwen2.5-\*; not certified: calls, ",
        out,
    )


def test_an_id_that_speaks_for_itself(run: Run):
    out = run.says("explain", "Qwen/Qwen2.5-7B-Instruct")
    assert (
        out
        == f"""\
Qwen/Qwen2.5-7B-Instruct
  format    hermes, no template to measure it against
  quoted    a call quoted in 13 ways runs in 5 of them (3 without a report); with its markers' token ids, in 0; ids prove \
its calls: yes (the tokens of the format's list); see docs/injected-text.md

choice  catalogue hermes
  because    Qwen/Qwen2.5-7B-Instruct matches Qwen/Qwen2.5-*; there is no template to certify it against
  note       no usable template: Qwen/Qwen2.5-7B-Instruct: {NO_HUB}

example  as the format writes it

[content]One moment.[markup]↵
<tool_call>↵
{{"name": "[name]get_weather[markup]", "arguments": [arguments]{{"city": "Paris", "days": 3}}[markup]}}↵
</tool_call>

result  content, 1 call: get_weather (ok); finish_reason tool_calls

{POLICIES}"""
    )


# -- explain: a name ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({entry.name for entry in entries()}))
def test_every_name(run: Run, name: str):
    out = run.says("explain", name)
    assert out.startswith(f"{name}\n  format    ")
    assert out.endswith(POLICIES)
    example = out.partition("example  as the format writes it\n\n")[2]
    assert "[dropped]" not in example
    assert "diagnostics" not in example
    program = run.says("explain", name, "--parser")
    assert program.startswith("program ")
    assert not re.search(r"^ +''", program, re.MULTILINE)
    assert json.loads(run.says("explain", name, "--json"))["source"] == name


def test_the_program(run: Run):
    out = run.says("explain", "json", "--parser")
    assert out.startswith("program json\n  begins in    content if the prompt opens nothing\n")
    assert "\n\nstate content\n" in out
    assert "\n\ncall syntax tools[0]\n  a call is   a JSON object with name and arguments\n" in out
    out = run.says("explain", "gpt-oss", "--parser")
    assert "\n\nmessage header\n" in out
    assert "\n  '<|message|>'    header ends, text begins\n" in out


def test_the_program_and_a_grammar(run: Run):
    program = run.says("explain", "hermes", "--parser")
    choice = ("--grammar", "gbnf", "--tool-choice", "required")
    grammar = run.says("explain", "hermes", *choice)
    assert run.says("explain", "hermes", "--parser", *choice) == program + grammar


def test_every_comparison_is_named(run: Run):
    out = run.says("explain", run.file("mine.jinja", TAGGED), "-v")
    for name in ("T1", "T2", "T3", "T4", "T5", "A1", "A2", "A3"):
        assert re.search(rf"\b{name} ", out), name


TAGGED = """\
{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for c in m.tool_calls or [] %}<call={{ c.function.name }}>
{%- for k, v in c.function.arguments.items() %}<arg={{ k }}>{{ v if v is string else v | tojson }}</arg>{% endfor -%}
</call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


# -- explain: other views -----------------------------------------------------------------------------------------


def test_everything_as_one_object(run: Run):
    file = run.file("mine.jinja", OTHER)
    out = run.says("explain", file, "--json")
    assert out.count("\n") == 1
    assert run.says("explain", file, "--json") == out
    everything = json.loads(out)
    template = ChatTemplate(OTHER)
    analysis = analyze(template, cache=False)
    chosen = select(template=template)
    assert list(everything) == [
        *("source", "format", "certificate", "selection", "quoted_calls", "analysis", "coverage", "example"),
        *("not_read_back", "policy"),
    ]
    assert everything["selection"] == json.loads(json.dumps(chosen.to_dict()))
    quoted = quoted_calls(analysis.format)
    assert quoted is not None
    assert everything["quoted_calls"] == quoted.to_dict()
    assert everything["certificate"] == {**analysis.certificate.to_dict(), "quoted_calls": quoted.to_dict()}
    known = json.loads(json.dumps(analysis.to_dict()))
    assert everything["analysis"] == {k: v for k, v in known.items() if k not in ("seconds", "from_cache")}
    assert everything["format"] == json.loads(analysis.format.to_json())
    assert everything["policy"] == {f.name: getattr(Policy().resolved(), f.name) for f in fields(Policy)}
    assert everything["example"]["message"]["content"] == "I will look."


@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
def test_the_grammar(run: Run, dialect: str):
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    file = run.file("tools.json", json.dumps(tools))
    code, out, err = run("explain", "hermes", "--tools", file, "--grammar", dialect)
    grammar = make_grammar(OutputParser.named("hermes").format, tools, dialect=dialect)
    assert (code, out) == (0, grammar.text.rstrip("\n") + "\n")
    assert err.startswith("untemplate: note: lazy") == grammar.lazy


def test_the_grammar_for_the_sample_tools(run: Run):
    code, out, _ = run("explain", "hermes", "--grammar")
    assert code == 0
    assert out.startswith("root ::= ")
    assert "get_weather" in out


@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
def test_the_grammar_as_data(run: Run, dialect: str):
    tools = [{"type": "function", "function": {"name": n, "parameters": {"type": "object"}}} for n in ("f", "g")]
    file = run.file("tools.json", json.dumps(tools))
    options = ("--tools", file, "--tool-choice", "g", "--strict", "--json", "--grammar", dialect)
    shown = json.loads(run.says("explain", "hermes", *options))
    choice = {"type": "function", "name": "g"}
    grammar = make_grammar(OutputParser.named("hermes").format, tools, choice, strict=True, dialect=dialect)
    requests = shown.pop("requests")
    assert shown == {
        "dialect": dialect,
        "text": grammar.text,
        "lazy": False,
        "triggers": [],
        "preserved_tokens": list(grammar.preserved_tokens),
        "by_id": False,
        "notes": [],
    }
    servers = {"gbnf": ["llama.cpp"], "lark": ["llama.cpp", "vllm", "sglang"], "structural_tag": ["vllm", "sglang"]}
    assert list(requests) == servers[dialect]
    assert requests == {server: grammar.request(server) for server in requests}


def test_what_goes_with_a_grammar_only(run: Run):
    assert run.fails("explain", "hermes", "--strict") == "--strict needs --grammar"
    assert run.fails("explain", "hermes", "--tool-choice", "none") == "--tool-choice needs --grammar"
    assert run.fails("explain", "hermes", "--parser", "--json") == "--json and --parser exclude each other"
    assert run.fails("explain", "hermes", "--grammar", "--tool-choice", "nothing") == (
        "--grammar: tool_choice names 'nothing'; the tools are: 'get_weather'"
    )


def test_a_policy_that_is_not_the_default_is_marked(run: Run, monkeypatch: pytest.MonkeyPatch):
    out = run.says("explain", "hermes", "--policy", "unknown_tools=drop", "--policy", "max_held=4096")
    marked = [line for line in out.splitlines() if line.startswith("*")]
    assert marked == [
        "* unknown_tools       drop         forward | content | drop",
        "* max_held            4096         default 1048576",
    ]
    monkeypatch.setenv("UNTEMPLATE_STRICT_TOOL_CALL", "1")
    out = run.says("explain", "hermes")
    assert [line for line in out.splitlines() if line.startswith("*")] == [
        "* strict              true         false | true"
    ]


def test_every_policy_has_a_line(run: Run):
    listed = re.findall(r"^  (\w+) ", POLICIES, re.MULTILINE)
    assert listed == [f.name for f in fields(Policy)]


@pytest.mark.parametrize("columns", [80, 120])
def test_it_fits_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, columns: int):
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    file = run.file("mine.jinja", TEMPLATE)
    for arguments in (["explain", file, "-v"], ["explain", "deepseek_v31", "--parser"], ["explain", "qwen3_coder"]):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        assert cli.main(arguments) == 0
        plain = re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue())
        assert max(map(width, plain.splitlines())) <= columns
        assert plain != terminal.getvalue()


# -- explain: errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "MODEL|TEMPLATE is empty"),
        (
            "hermez",
            "hermez: not a template, and no such file, folder or hub id; did you mean the format 'hermes'?",
        ),
        (
            "!!",
            "!!: not a template, and no such file, folder or hub id; `untemplate formats` lists the formats",
        ),
        ("nobody/nothing", f"nobody/nothing: {NO_HUB}"),
        (
            "broken.jinja",
            "broken.jinja, line 1: not a template that Jinja can read: expected token 'name', got 'end of print statement'",
        ),
        (
            "prose.txt",
            "prose.txt: not a chat template: it renders no conversation: the user's message does not show up",
        ),
        ("config.json", "config.json: has no chat_template"),
        (
            "empty",
            "empty: has no chat template: none of chat_template.jinja, chat_template.json, "
            "additional_chat_templates/*.jinja, processor_config.json, tokenizer_config.json, *.gguf",
        ),
    ],
)
def test_what_cannot_be_explained(run: Run, source: str, problem: str):
    run.file("broken.jinja", "{{ x | }}")
    run.file("prose.txt", "Hello.")
    run.file("config.json", "{}")
    (run.folder / "empty").mkdir()
    assert run.fails("explain", source) == problem


ALL = ", ".join(names())


def test_a_wrong_name_to_enforce(run: Run):
    wrong = "--enforce-parser: unknown format 'hermez'; did you mean 'hermes'? `untemplate formats` lists all names"
    file = run.file("mine.jinja", TEMPLATE)
    assert run.fails("explain", file, "--enforce-parser", "hermez") == wrong
    assert run.fails("parse", "--enforce-parser", "hermez") == wrong
    assert run.fails("parse", "--model", "Qwen/Qwen3-8B", "--enforce-parser", "hermez") == wrong
    assert run.fails("explain", "hermes", "--enforce-parser", "mistral") == (
        "--enforce-parser: 'hermes' is a format itself; give a model or a template to measure it against"
    )


def test_a_grammar_that_cannot_be_made(run: Run, monkeypatch: pytest.MonkeyPatch):
    code, out, err = run("explain", "hermes", "--grammar", "pcre")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        "untemplate explain: error: argument --grammar: 'pcre' is not one of: gbnf, lark, structural_tag"
    )
    bad = run.file("tools.json", '[{"type": "function", "function": {}}]')
    assert run.fails("explain", "hermes", "--tools", bad, "--grammar").startswith("--grammar: tools[0]")
    monkeypatch.setitem(sys.modules, "untemplate.grammar", None)
    assert run.fails("explain", "hermes", "--grammar") == (
        "--grammar: grammars are not available: import of untemplate.grammar halted; None in sys.modules"
    )


# -- parse: which format ------------------------------------------------------------------------------------------


FOREIGN = "untemplate: 1 diagnostic (foreign_marker); --explain shows where\n"
"""The note on content that holds a marker of another format."""


def test_parse_with_a_template(run: Run):
    file = run.file("mine.jinja", OTHER)
    message = json.loads(run.says("parse", "--template", file, stdin=CALL.replace("tool_call", "action")))
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}
    out = run.says("parse", "--template", file, stdin=CALL, noted=FOREIGN)
    assert json.loads(out) == {"role": "assistant", "content": CALL}


def test_parse_with_a_model(run: Run):
    run.file("Qwen2.5-7B-Instruct/chat_template.jinja", TEMPLATE)
    assert "tool_calls" in run.says("parse", "--model", "Qwen2.5-7B-Instruct", stdin=CALL)
    file = run.file("other.jinja", OTHER)
    out = run.says("parse", "--model", "Qwen2.5-7B-Instruct", "--template", file, stdin=CALL, noted=FOREIGN)
    assert json.loads(out)["content"] == CALL


def test_parse_with_a_model_that_nobody_knows(run: Run):
    code, out, err = run("parse", "--model", "nobody/nothing", stdin=CALL)
    assert (code, json.loads(out)) == (0, {"role": "assistant", "content": CALL})
    assert err == (
        "untemplate: warning: there is no chat template; passthrough 'passthrough' is used: "
        f"everything is content; no usable template: nobody/nothing: {NO_HUB}\n" + FOREIGN
    )


def test_parse_with_an_enforced_name(run: Run):
    expected = run.says("parse", "--format", "hermes", "--reasoning", "qwen3", stdin=CALL)
    assert run.says("parse", "--enforce-parser", "qwen", "--reasoning", "qwen3", stdin=CALL) == expected
    out = run.says("parse", "--model", "Qwen/Qwen3-8B", "--enforce-parser", "passthrough", stdin=CALL, noted=FOREIGN)
    assert json.loads(out)["content"] == CALL


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            [],
            "the output is empty, and does not show its format: name it by --format NAME (`untemplate guess FILE` ranks them), or "
            "--template, --model or --enforce-parser",
        ),
        (["--format", "hermes", "--model", "x"], "--format and --model exclude each other"),
        (
            ["--format", "hermes", "--enforce-parser", "x"],
            "--format and --enforce-parser exclude each other",
        ),
        (["--model", "x", "--reasoning", "qwen3"], "--reasoning needs --format or --enforce-parser"),
        (
            ["--enforce-parser", "gpt-oss", "--reasoning", "qwen3"],
            "--enforce-parser: reasoning 'qwen3' and tools 'gpt-oss' cannot be combined: 'gpt-oss' writes a turn as "
            "messages in channels, which carry reasoning, content and calls together",
        ),
        (["--template", "no.jinja"], "--template no.jinja: not a template, and no such file, folder or hub id"),
        (
            ["--template", "prose.txt"],
            "--template prose.txt: not a chat template: it renders no conversation: the user's message does not show up",
        ),
    ],
)
def test_formats_that_are_none(run: Run, arguments: list[str], problem: str):
    run.file("prose.txt", "Hello.")
    assert run.fails("parse", *arguments) == problem


# -- parse: policies ----------------------------------------------------------------------------------------------

TOOLS = json.dumps([{"type": "function", "function": {"name": "g"}}])
BROKEN = '<tool_call>\n{"name": "f", "arguments": {"a": 1,}}\n</tool_call>'


@pytest.mark.parametrize(
    ("policies", "output", "message", "statuses", "repairs"),
    [
        ([], CALL, {"content": None, "calls": ["f"]}, ["unknown_tool"], [[]]),
        (["unknown_tools=drop"], CALL, {"content": None, "calls": []}, [], []),
        (["unknown_tools=content"], CALL, {"content": CALL, "calls": []}, [], []),
        (
            ["unknown_tools=drop", "unknown_tools=forward"],
            CALL,
            {"content": None, "calls": ["f"]},
            ["unknown_tool"],
            [[]],
        ),
        (["repair=syntax"], BROKEN, {"content": None, "calls": ["f"]}, ["unknown_tool"], [["removed_commas"]]),
        (["max_held=64", "strict=true"], CALL, {"content": None, "calls": []}, [], []),
        (["strict=0"], CALL, {"content": None, "calls": ["f"]}, ["unknown_tool"], [[]]),
        (["strict=none"], CALL, {"content": None, "calls": ["f"]}, ["unknown_tool"], [[]]),
    ],
)
def test_policies(
    run: Run, policies: list[str], output: str, message: dict[str, Any], statuses: list[str], repairs: list[list[str]]
):
    options = [option for policy in policies for option in ("--policy", policy)]
    file = run.file("tools.json", TOOLS)
    done = "kept" if message["calls"] else "dropped"
    noted = "" if message["content"] else f"untemplate: warning: {done} call of 'f': the tool was not offered\n"
    arguments = ["parse", "--format", "hermes", "--tools", file, "--json", *options]
    everything = json.loads(run.says(*arguments, stdin=output, noted=noted))
    found = everything["message"]
    assert {
        "content": found["content"],
        "calls": [call["function"]["name"] for call in found.get("tool_calls", [])],
    } == message
    assert (everything["statuses"], everything["repairs"]) == (statuses, repairs)


def test_a_repair_is_named_in_the_explanation(run: Run):
    out = run.says("parse", "--format", "hermes", "--explain", "--policy", "repair=syntax", stdin=BROKEN)
    assert out.endswith("\nresult  1 call: f (repaired: removed_commas); finish_reason tool_calls\n")


@pytest.mark.parametrize("view", [[], ["--json"], ["--stream"]])
def test_the_field_that_reasoning_is_in(run: Run, view: list[str]):
    arguments = ["parse", "--format", "qwen3", *view, "--policy"]
    thought = "<think>\nHm.\n</think>\n\nYes."
    assert '"reasoning":' in run.says(*arguments, "reasoning_field=reasoning", stdin=thought)
    assert '"reasoning_content":' in run.says(*arguments, "reasoning_format=deepseek", stdin=thought)
    inline = run.says(*arguments, "reasoning_format=none", stdin=thought)
    assert "reasoning" not in inline
    assert "<think>" in inline


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ("strict", "--policy strict: expected NAME=VALUE"),
        ("unknown_tools=dropp", "--policy unknown_tools: 'dropp' is not one of: 'forward', 'content', 'drop'"),
        ("strict=maybe", "--policy strict: 'maybe' is not one of: True, False, None"),
        ("max_held=x", "--policy max_held: 'x' is not a positive number of characters"),
        ("max_held=0", "--policy max_held: 0 is not a positive number of characters"),
        (
            "nope=1",
            "--policy nope: there is none; there are: " + ", ".join(sorted(f.name for f in fields(Policy))),
        ),
    ],
)
def test_policies_that_are_none(run: Run, policy: str, problem: str):
    assert run.fails("parse", "--format", "hermes", "--policy", policy) == problem
    assert run.fails("explain", "hermes", "--policy", policy) == problem


def test_a_switch_in_the_environment_that_is_none(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UNTEMPLATE_STRICT_TOOL_CALL", "maybe")
    problem = "UNTEMPLATE_STRICT_TOOL_CALL: 'maybe' is not one of: 1, true, 0, false"
    assert run.fails("explain", "hermes") == problem
    assert run.fails("explain", run.file("mine.jinja", TEMPLATE)) == problem


def test_no_machine_in_what_is_printed(run: Run):
    out = run.says("explain", run.file("mine.jinja", TEMPLATE), "-v")
    assert str(run.folder) not in out
    assert os.path.expanduser("~") not in out


# -- vllm.rs ------------------------------------------------------------------------------------------------------

NAMES_OF_VLLM_RS = [
    "passthrough", "json", "mistral", "qwen", "qwen_coder", "pythonic", "llama", "deepseek", "glm45_moe", "glm47_moe",
    "step3", "kimik2", "minimax_m2",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES_OF_VLLM_RS)
def test_each_name_of_vllm_rs_can_be_enforced(run: Run, name: str):
    assert select("nobody/nothing", enforce=name).format == named(name)
    message = json.loads(run.says("parse", "--enforce-parser", name, stdin="Hi."))
    assert (message["content"] or message["reasoning"]) == "Hi."


MODELS = [
    ("mistral", "mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral3"),
    ("mistral", "mistralai/Ministral-3-14B-Reasoning-2512", "mistral3"),
    ("mistral", "unsloth/Devstral-Small-2507", "mistral"),
    ("mistral", "finetune", "mixtral"),
    ("qwen", "Qwen/Qwen2.5-7B-Instruct", "qwen2"),
    ("qwen", "Qwen/Qwen3-8B", "qwen3"),
    ("qwen", "Qwen/Qwen3-30B-A3B", "qwen3_moe"),
    ("qwen", "Qwen/QwQ-32B", "qwen2"),
    ("qwen_coder", "Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_moe"),
    ("qwen_coder", "Qwen/Qwen3.5-4B", "qwen3_5"),
    ("pythonic", "Team-ACE/ToolACE-8B", "llama"),
    ("pythonic", "google/gemma-3-27b-it", "gemma3"),
    ("llama", "meta-llama/Llama-3.1-8B-Instruct", "llama"),
    ("llama", "meta-llama/Llama-3.3-70B-Instruct", "llama"),
    ("deepseek", "deepseek-ai/DeepSeek-V3-0324", "deepseek_v3"),
    ("deepseek", "deepseek-ai/DeepSeek-R1", "deepseek_v3"),
    ("deepseek", "deepseek-ai/DeepSeek-R1-0528", "deepseek_v3"),
    ("glm45_moe", "zai-org/GLM-4.5", "glm4_moe"),
    ("glm45_moe", "zai-org/GLM-4.6", "glm4_moe"),
    ("glm47_moe", "zai-org/GLM-4.7", "glm4_moe"),
    ("glm47_moe", "zai-org/GLM-4.7-Flash", "glm4_moe_lite"),
    ("step3", "stepfun-ai/step3", "step3_vl"),
    ("kimik2", "moonshotai/Kimi-K2-Instruct", "kimi_k2"),
    ("kimik2", "moonshotai/Kimi-K2-Thinking", "kimi_k2"),
    ("minimax_m2", "MiniMaxAI/MiniMax-M2", "minimax_m2"),
]


@pytest.mark.parametrize(("name", "model", "model_type"), MODELS, ids=[model for _, model, _ in MODELS])
def test_each_name_of_vllm_rs_is_found_by_id(name: str, model: str, model_type: str):
    _, fmt, _ = next(suggested(model, model_type))
    assert fmt.tools == named(name).tools


TYPES = [
    ("mistral", "mistral"),
    ("mistral", "mistral3"),
    ("qwen", "qwen2"),
    ("qwen", "qwen3"),
    ("qwen", "qwen3_moe"),
    ("qwen_coder", "qwen3_5"),
    ("pythonic", "gemma3"),
    ("llama", "llama"),
    ("deepseek", "deepseek_v3"),
    ("glm45_moe", "glm4_moe"),
    ("glm47_moe", "glm4_moe_lite"),
    ("step3", "step3_vl"),
    ("kimik2", "kimi_k2"),
    ("minimax_m2", "minimax_m2"),
]


@pytest.mark.parametrize(("name", "model_type"), TYPES)
def test_each_name_of_vllm_rs_is_found_by_type(name: str, model_type: str):
    _, fmt, why = next(suggested("someone/finetune", model_type))
    assert (fmt.tools, why) == (named(name).tools, f"model type {model_type}")


def test_the_index_has_the_types_of_every_entry():
    for row in rows():
        assert lookup(row.kind, row.name).model_types == row.model_types


@pytest.mark.parametrize(("model", "model_type"), [("openai-community/gpt2", "gpt2"), ("someone/finetune", "bloom")])
def test_nothing_suggested_is_passthrough_in_the_end(model: str, model_type: str, run: Run):
    assert not list(suggested(model, model_type))
    assert select(model, model_type=model_type).chosen.name == "passthrough"


# Outputs whose tool region fails: broken in the middle, or cut.
FAILED = [
    ("qwen", 'Sure.\n<tool_call>\n{"name": "f", "arguments": {"a": 1,, }}\n</tool_call>'),
    ("qwen", 'Sure.\n<tool_call>\n{"name": "f", "arguments": {"a": 1'),
    ("qwen", "Sure.\n<tool_call>\n"),
    ("qwen_coder", "Sure.\n<tool_call>\n<function=f>\n<parameter=a>\n1"),
    ("mistral", 'Sure.[TOOL_CALLS]f[ARGS]{"a": '),
    ("pythonic", "[f(a=1, b="),
    ("llama", '{"name": "f", "parameters": {"a": '),
    ("json", '{"name": "f", "arguments": {"a": '),
    ("glm45_moe", "Sure.\n<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1"),
    ("deepseek", "Sure.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"),
    ("kimik2", "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"),
]


@pytest.mark.parametrize(("name", "output"), FAILED)
def test_a_failed_tool_region_is_content(name: str, output: str):
    parsed = OutputParser.named(name).parse_complete_with_fallback(output)
    assert (parsed.content, parsed.tool_calls, parsed.finish_reason) == (output, [], "stop")


def test_what_does_not_fail_is_as_parse_has_it():
    parser = OutputParser.named("qwen", reasoning="qwen3")
    output = f"<think>\nHm.\n</think>\n\nSure.\n{CALL}\n{FAILED[0][1]}\n{CALL}"
    parsed = parser.parse_complete_with_fallback(output, seed=1)
    assert parsed.reasoning == "Hm."
    assert [call.function.arguments for call in parsed.tool_calls] == ['{"a": 1}', '{"a": 1}']
    assert parsed.content is not None
    assert FAILED[0][1].partition("\n")[2] in parsed.content
    clean = f"<think>\nHm.\n</think>\n\nSure.\n{CALL}"
    assert parser.parse_complete_with_fallback(clean, seed=1) == parser.parse(clean, seed=1)


@pytest.mark.parametrize(
    ("policy", "arguments"),
    [
        (Policy(), None),
        (Policy(malformed_arguments="repaired"), '{"a": 1}'),
        (Policy(repair="syntax"), '{"a": 1}'),
        (Policy(repair="schema"), '{"a": 1}'),
    ],
)
def test_what_can_be_mended_is_mended_before_it_falls_back(policy: Policy, arguments: str | None):
    for parsed in (
        OutputParser.named("qwen", policy=policy).parse_complete_with_fallback(BROKEN),
        OutputParser.named("qwen").parse_complete_with_fallback(BROKEN, policy=policy),
    ):
        if arguments is None:
            assert (parsed.content, parsed.tool_calls) == (BROKEN, [])
        else:
            assert [(call.function.arguments, call.status) for call in parsed.tool_calls] == [(arguments, "repaired")]


# -- docs/policies.md and docs/templates.md -----------------------------------------------------------------------

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", ["policies.md", "templates.md"])
def test_the_examples_run(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UNTEMPLATE_CACHE", "off")
    monkeypatch.delenv("UNTEMPLATE_STRICT_TOOL_CALL", raising=False)
    result = doctest.testfile(str(DOCS / name), module_relative=False, encoding="utf-8")
    assert result.failed == 0
    assert result.attempted > 10


def test_every_policy_has_a_section():
    sections = re.split(r"^## ", (DOCS / "policies.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections] == [f.name for f in fields(Policy)]
    hints = get_type_hints(Policy)
    for f, section in zip(fields(Policy), sections, strict=True):
        default, values = f.default, [v for v in get_args(hints[f.name]) if v != f.default]
        if f.name == "strict":
            values = [True, False]
        listed = ", ".join(f"`{v}`" for v in (values if default is None else [default, *values]))
        listed = listed if f.name != "max_held" else "any positive number of characters"
        assert section.startswith(f"{f.name}\n\nDefault: `{default}`. Values: {listed}.\n\n")
        assert ">>> " in section
        reports = section.partition("\nReports: ")[2]
        assert len(re.findall(r"\b[\w.-]+#\d+", reports)) >= 2, f.name


def test_every_source_of_templates_is_on_the_page():
    page = (DOCS / "templates.md").read_text("utf-8")
    for word in (
        "chat_template.jinja",
        "tokenizer_config.json",
        "GGUF",
        "hub id",
        "UNTEMPLATE_CACHE",
        "UNTEMPLATE_LOG",
    ):
        assert word in page
    for word in set(_CAME_BACK):
        assert f"| `{word}` |" in page


def test_both_modes_are_told_of():
    """The page describes calls that are validated as a whole: one delta, at the close."""
    page = " ".join((DOCS / "policies.md").read_text("utf-8").split())
    listed = re.findall(r"`(\w+)`", page.partition("needs a whole call (")[2].partition(")")[0])
    settings = {"strict": True, "unknown_tools": "drop", "malformed_arguments": "content"}
    settings |= {"repair": "syntax", "parallel_calls": "first", "cut_calls": "drop", "recovered_calls": "drop"}
    assert set(listed) == set(settings)
    for name, value in settings.items():
        stream = OutputParser.named("hermes", policy=Policy(**{name: value})).stream(seed=1)  # type: ignore[arg-type]
        told = [delta for character in CALL for delta in stream.feed(character)] + stream.finish()
        pieces = [delta for delta in told if delta.tool_calls]
        assert len(pieces) == 1, name
        assert pieces[0].tool_calls is not None
        function = pieces[0].tool_calls[0].function
        assert function is not None
        assert (function.name, function.arguments) == ("f", '{"a": 1}')
