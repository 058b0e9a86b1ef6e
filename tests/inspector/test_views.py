"""What the inspector computes: the view of an output, its steps, splits, streams and templates."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.inspector import examples
from tests.inspector.outputs import CASES, HERMES, HOSTILE, events, length_at, units
from untemplate import OutputParser, Policy
from untemplate._internal.inspector import MAX_TEXT, Case, Inspector, InspectorError
from untemplate._internal.inspector import splits as splits_module
from untemplate._internal.inspector.advice import ADVICE
from untemplate._internal.inspector.cases import open_stream, parser_for_tokens, pieces
from untemplate._internal.inspector.compare import KNOWN
from untemplate._internal.inspector.server import LocalModels
from untemplate._internal.inspector.view import view
from untemplate._internal.machine.diagnostics import DIAGNOSTICS
from untemplate.messages import DeltaMessage

ROOT = Path(__file__).parents[2]
ids = [f"{case.format}-{i}" for i, case in enumerate(CASES)]


def parser_of(case: Case) -> OutputParser:
    return OutputParser.named(case.format, policy=Policy.from_mapping(case.policy))


@pytest.fixture
def inspector() -> Inspector:
    return Inspector(LocalModels())


def asked(case: Case, **more: Any) -> dict[str, Any]:
    found = {"text": case.text, "format": case.format, "finish_reason": case.finish_reason, "policy": case.policy}
    return {**found, "tools": case.tools, "prompt": case.prompt, "tokens": [list(t) for t in case.tokens], **more}


# -- The view -----------------------------------------------------------------------------------------------------


def test_the_view_of_a_call(inspector: Inspector):
    found = inspector.answer("parse", {"text": HERMES, "format": "hermes"})
    del found["growth"], found["kinds"], found["states"]
    assert {"<tool_call>", "</tool_call>"} <= {*found.pop("special")}
    call_id = found["message"]["tool_calls"][0].pop("id")
    assert re.fullmatch(r"call_[0-9a-f]{24}", call_id)
    assert found == {
        "format": "hermes",
        "text": HERMES,
        "tokens": [],
        "spans": [
            ["content", 0, 5, None],
            ["markup", 5, 28, None],
            ["name", 28, 29, 0],
            ["markup", 29, 45, None],
            ["arguments", 45, 57, 0],
            ["markup", 57, 71, None],
        ],
        "message": {
            "role": "assistant",
            "content": "Sure.",
            "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": '{"x": "a b"}'}}],
        },
        "reasoning_field": "reasoning",
        "finish_reason": "tool_calls",
        "calls": [{"name": "f", "status": "ok", "reason": None, "repairs": [], "model_id": None}],
        "diagnostics": [],
    }


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_regions_cover_the_output_in_code_units(case: Case, inspector: Inspector):
    found = inspector.answer("parse", asked(case))
    ends = [0, *(end for _, _, end, _ in found["spans"])]
    assert [start for _, start, _, _ in found["spans"]] == ends[:-1]
    assert ends[-1] == units(found["text"])


def test_places_are_code_units():
    found = view(OutputParser.named("hermes"), Case(text=f"😀{CALL}</tool_call>"))
    assert found["spans"][:3] == [["content", 0, 2, None], ["markup", 2, 23, None], ["name", 23, 24, 0]]
    (note,) = found["diagnostics"]
    assert (note["code"], note["start"], note["end"]) == ("stray_close", 65, 77)
    assert (note["line"], note["column"]) == (1, 65)


def test_tokens_prove_markers(inspector: Inspector):
    tokens = [[1, "<tool_call>"], [5, '{"name": "f", "arguments": {}}'], [2, "</tool_call>"]]
    assert inspector.answer("parse", {"tokens": tokens, "format": "hermes"})["calls"][0]["name"] == "f"
    spelled = [[3, "<"], [4, "tool_call>"], [5, '{"name": "g"}'], [6, "</"], [7, "tool_call> "], *tokens]
    found = inspector.answer("parse", {"tokens": spelled, "format": "hermes"})
    assert [call["name"] for call in found["calls"]] == ["f"]
    assert found["message"]["content"] == '<tool_call>{"name": "g"}</tool_call>'
    assert found["tokens"] == [1, 11, 24, 26, 37, 48, 78, 90]


# -- Steps --------------------------------------------------------------------------------------------------------


def texts_of(deltas: list[DeltaMessage]) -> dict[int, str]:
    """Return the texts of the message by number of the field, as deltas add to them."""
    found: dict[int, str] = {}

    def add(field: int, text: str | None) -> None:
        if text:
            found[field] = found.get(field, "") + text

    for delta in deltas:
        add(0, delta.reasoning)
        add(1, delta.content)
        for call in delta.tool_calls or ():
            if call.function is not None:
                add(2 + 2 * call.index, call.function.name)
                add(3 + 2 * call.index, call.function.arguments)
    return found


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_message_after_each_step_is_that_of_the_stream(case: Case, inspector: Inspector):
    found = inspector.answer("parse", asked(case))
    case = Case(**{**{f: getattr(case, f) for f in case.__struct_fields__}, "text": found["text"]})
    parser = parser_of(case)
    stream = open_stream(parser_for_tokens(parser, case, parser.policy), case)
    deltas: list[DeltaMessage] = []
    place = 0
    for text, token_ids in pieces(case):
        deltas += stream.feed(text, token_ids)
        place += units(text)
        so_far = texts_of(deltas)
        fields = {run[1] for run in found["growth"]}
        got = {field: n for field in fields if (n := length_at(found, field, place))}
        assert got == {field: units(text) for field, text in so_far.items()}
    deltas += stream.finish(case.finish_reason)
    so_far = texts_of(deltas)
    for field, text in so_far.items():
        assert length_at(found, field, place + 1) == units(text)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_what_is_not_held_back_does_not_change(case: Case, inspector: Inspector):
    """The regions before the text that is held back are those of the whole output."""
    parser = parser_of(case)
    whole = open_stream(parser_for_tokens(parser, case, parser.policy), case)
    for text, token_ids in pieces(case):
        whole.feed(text, token_ids)
    whole.finish(case.finish_reason)
    wanted = [kind for kind, start, end in whole.marked for _ in range(start, end)]
    stream = open_stream(parser_for_tokens(parser, case, parser.policy), case)
    for text, token_ids in pieces(case):
        stream.feed(text, token_ids)
        snapshot = stream.snapshot
        assert snapshot is not None
        now = [kind for kind, start, end in stream.marked for _ in range(start, end)][: snapshot.decided]
        assert now == wanted[: snapshot.decided]


def test_the_reasons_for_holding_text_back():
    reasons: set[str] = set()
    for case in CASES:
        found = view(parser_of(case), case)
        reasons |= {kind[3] for kind in found["kinds"]}
        assert all(
            (why == "") == (found["kinds"][kind][3] == "")
            for _, kind, _ in found["states"]
            for why in [found["kinds"][kind][3]]
        )
    assert reasons == {
        "",
        "a call after a backtick: the character after it decides if it is a quotation",
        "a call inside reasoning: what follows it decides if it counts",
        "a call may begin here: its name is not complete",
        "a marker may begin here",
        "a marker of the call, or a value that is converted when it ends",
        "a message header is not complete",
        "a policy decides on the call when it has ended",
        "the turn may end here, if nothing follows",
        "white space before a message header",
        "white space belongs to what follows it",
    }


def test_a_state_holds_back_what_is_not_decided():
    found = view(OutputParser.named("hermes"), Case(text=HERMES))
    shown = [(place, *found["kinds"][kind], decided) for place, kind, decided in found["states"]]
    assert shown[:5] == [
        (1, "text", "", "content", "", None),
        (6, "text", "", "content", "white space belongs to what follows it", 5),
        (7, "text", "", "content", "a marker may begin here", 5),
        (17, "calls", "choosing the syntax", "", "a call may begin here: its name is not complete", 5),
        (31, "calls", "arguments", "tools[0]", "a marker of the call, or a value that is converted when it ends", 29),
    ]


# -- Splits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_every_split_agrees(case: Case, inspector: Inspector):
    found = inspector.answer("splits", asked(case))
    count = max(len(case.tokens or case.text) - 1, 0)
    assert found == {"splits": count, "tried": count, "different": []}


def test_a_split_that_differs_is_found(monkeypatch: pytest.MonkeyPatch, inspector: Inspector):
    parsed = splits_module._parsed
    monkeypatch.setattr(
        splits_module, "_parsed", lambda p, c, cuts: parsed(p, Case(text="other") if cuts == [7] else c, cuts)
    )
    assert inspector.answer("splits", {"text": HERMES, "format": "hermes"})["different"] == [7]


def test_a_long_output_is_split_near_its_markers(inspector: Inspector, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(splits_module, "_CHARACTERS", 60_000)
    text = HERMES + "x" * 1_000
    found = inspector.answer("splits", {"text": text, "format": "hermes"})
    assert found["splits"] == len(text) - 1
    assert 40 < found["tried"] < 60
    assert found["different"] == []


def test_one_split(inspector: Inspector):
    found = inspector.answer("split", {"case": {"text": "Hi 😀 <b", "format": "hermes"}, "at": 6})
    assert found == {
        "at": 6,
        "first": [{"content": "Hi 😀"}],
        "second": [{"content": " <b"}],
        "end": [],
        "same": True,
    }


def test_a_split_between_tokens(inspector: Inspector):
    case = {"tokens": [[3, "Hel"], [4, "lo"]], "format": "hermes"}
    found = inspector.answer("split", {"case": case, "at": 4})
    assert (found["at"], found["first"], found["second"]) == (3, [{"content": "Hel"}], [{"content": "lo"}])


def test_a_split_outside_the_output(inspector: Inspector):
    with pytest.raises(InspectorError, match=r"^at: 99 is not a place in the output$"):
        inspector.answer("split", {"case": {"text": "x", "format": "hermes"}, "at": 99})


# -- The stream of a server ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=ids)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_right_stream_has_no_differences(case: Case, size: int, inspector: Inspector):
    text = case.text or "".join(text for _, text in case.tokens)
    parser = parser_of(case)
    stream = open_stream(parser, Case(text=text, tools=case.tools, prompt=case.prompt))
    deltas = [d for i in range(0, len(text), size) for d in stream.feed(text[i : i + size])]
    deltas += stream.finish(case.finish_reason)
    sent = events([stream.dump(delta) for delta in deltas], stream.finish_reason)
    found = inspector.answer("compare", {"case": asked(case, tokens=[], text=text), "stream": sent})
    assert found["differences"] == []


def first(raw: str, deltas: list[dict[str, Any]], finish: str = "tool_calls", **case: Any) -> list[tuple[Any, ...]]:
    """Return (event, code, where, right, sent) of each difference."""
    asked = {"text": raw, "format": "hermes+qwen3", **case}
    found = Inspector(LocalModels()).answer("compare", {"case": asked, "stream": events(deltas, finish)})
    for one in found["differences"]:
        assert one["title"] == KNOWN[one["code"]].title
        assert one["reports"] == list(KNOWN[one["code"]].reports)
    return [(one["event"], one["code"], one["path"], one["expected"], one["got"]) for one in found["differences"]]


def call(index: int = 0, **function: str) -> dict[str, Any]:
    extra = {k: function.pop(k) for k in ("id",) if k in function}
    return {"tool_calls": [{"index": index, **extra, "function": function}]}


CALL = '<tool_call>{"name": "f", "arguments": {"x": "a b"}}</tool_call>'
ARGUMENTS = '{"x": "a b"}'


@pytest.mark.parametrize(
    ("raw", "deltas", "finish", "wanted"),
    [
        ("Hi." + CALL, [{"content": "Hi."}, {"content": "<tool"}, {"content": CALL[5:]}], "stop", [
            (2, "call_in_content", "content", "", "<tool"),
            (4, "finish_reason", "finish_reason", "tool_calls", "stop"),
            (5, "call_lost", "tool_calls[0]", ARGUMENTS, ""),
        ]),
        ("<think>ab</think>c", [{"content": "ab</think>c"}], "stop", [
            (1, "reasoning_in_content", "content", "c", "ab</think>c"),
            (3, "text_lost", "reasoning", "ab", ""),
        ]),
        ("<think>ab</think>c", [{"content": "<think>"}, {"content": "ab"}], "stop", [
            (1, "marker_in_content", "content", "c", "<think>"),
            (4, "text_lost", "reasoning", "ab", ""),
        ]),
        ("<think>ab</think>cd", [{"reasoning_content": "ab"}, {"reasoning_content": "cd"}], "stop", [
            (2, "content_in_reasoning", "reasoning", "", "cd"),
            (4, "text_lost", "content", "cd", ""),
        ]),
        ("<think>ab</think>" + CALL, [{"reasoning": "ab"}, {"reasoning": "<tool_call>"}], "stop", [
            (2, "call_in_reasoning", "reasoning", "", "<tool_call>"),
            (3, "finish_reason", "finish_reason", "tool_calls", "stop"),
            (4, "call_lost", "tool_calls[0]", ARGUMENTS, ""),
        ]),
        ("abc", [{"content": "abX"}], "stop", [(1, "text_differs", "content", "c", "X")]),
        ("abc", [{"content": "a"}], "stop", [(3, "text_lost", "content", "bc", "")]),
        ("abc", [{"content": "\n"}, {"content": "abc "}, {"content": "\n"}], "stop", [
            (5, "white_space", "content", "abc", "\nabc \n")
        ]),
        (CALL, [call(name="f", arguments='{"x"'), call(arguments=': "a b"}')], "tool_calls", []),
        (CALL, [call(name="f", arguments='{"x":"a b"}')], "tool_calls", [
            (3, "arguments_spelling", "tool_calls[0].function.arguments", ARGUMENTS, '{"x":"a b"}')
        ]),
        (CALL, [call(name="f", arguments='{"x":"\\u0061 b"}')], "tool_calls", [
            (3, "arguments_spelling", "tool_calls[0].function.arguments", ARGUMENTS, '{"x":"\\u0061 b"}')
        ]),
        (CALL, [call(name="f"), call(arguments='{"x": "a'), call(arguments='  b"}')], "tool_calls", [
            (3, "arguments_differ", "tool_calls[0].function.arguments", ARGUMENTS, '{"x": "a  b"}')
        ]),
        (CALL, [call(name="f"), call(arguments='{"x": "a')], "tool_calls", [
            (4, "arguments_cut", "tool_calls[0].function.arguments", ARGUMENTS, '{"x": "a')
        ]),
        (CALL, [call(name="f")], "tool_calls", [
            (3, "arguments_empty", "tool_calls[0].function.arguments", ARGUMENTS, "")
        ]),
        (CALL.replace('"f"', '"forecast"'), [call(name="fore", arguments=ARGUMENTS)], "tool_calls", [
            (1, "name_cut", "tool_calls[0].function.name", "forecast", "fore")
        ]),
        (CALL, [call(name="g", arguments=ARGUMENTS)], "tool_calls", [
            (1, "name_differs", "tool_calls[0].function.name", "f", "g")
        ]),
        (CALL, [call(name="f", id="a"), call(name="f", id="b", arguments=ARGUMENTS)], "tool_calls", [
            (2, "call_numbered", "tool_calls[0].id", "a", "b"),
            (2, "call_numbered", "tool_calls[0].function.name", "nothing: the name has come", "f"),
        ]),
        (CALL, [call(1, name="f", arguments=ARGUMENTS)], "tool_calls", [
            (1, "call_numbered", "tool_calls[1]", "index 0", "index 1"),
            (3, "call_lost", "tool_calls[0]", ARGUMENTS, ""),
        ]),
        (CALL, [call(arguments=ARGUMENTS)], "tool_calls", [
            (3, "call_numbered", "tool_calls[0].function.name", "a name", "")
        ]),
        ("x", [{"content": "x"}, call(name="f")], "stop", [
            (2, "call_invented", "tool_calls[0]", "no call", "f")
        ]),
        ("x", [{"content": "x"}], "length", [(2, "finish_reason", "finish_reason", "stop", "length")]),
    ],
)  # fmt: skip
def test_the_first_wrong_event(raw: str, deltas: list[dict[str, Any]], finish: str, wanted: list[tuple[Any, ...]]):
    assert first(raw, deltas, finish) == wanted


def test_every_kind_of_difference_is_tested():
    """The parameters above have every kind."""
    source = Path(__file__).read_text("utf-8")
    assert [code for code in KNOWN if f'"{code}", "' not in source] == []


def test_known_reports_are_on_the_page():
    page = (ROOT / "docs" / "failure-modes.md").read_text("utf-8")
    rows = {int(n): row for n, row in re.findall(r"^\| (\d+) (\|.*)$", page, re.MULTILINE)}
    for code, known in KNOWN.items():
        cited = "".join(rows[number] for number in known.rows)
        assert [report for report in known.reports if f"{report}" not in cited] == [], code


@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        ("", "there is no event: paste the lines that begin with data:"),
        ("data: [DONE]\n", "there is no event: paste the lines that begin with data:"),
        ("data: {", "line 1: not JSON: Input data was truncated"),
        (
            ': ping\n\ndata: {"error": 1}',
            "line 3: not a chunk of Chat Completions: Object missing required field `choices`",
        ),
        ("data: 7", "line 1: not a chunk of Chat Completions: Expected `object`, got `int`"),
        (
            'data: {"choices": [{"delta": {"content": 3}}]}',
            "line 1: not a chunk of Chat Completions: Expected `str | null`, got `int` - at "
            "`$.choices[0].delta.content`",
        ),
    ],
)
def test_a_stream_that_is_none(stream: str, problem: str, inspector: Inspector):
    with pytest.raises(InspectorError) as raised:
        inspector.answer("compare", {"case": {"text": "x", "format": "hermes"}, "stream": stream})
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    "delta", [None, {}, {"tool_calls": [{"index": -1}]}, {"tool_calls": [{}]}, {"tool_calls": []}, {"content": ""}]
)
def test_no_chunk_raises(delta: Any, inspector: Inspector):
    sent = f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}]})}"
    found = inspector.answer("compare", {"case": {"text": CALL, "format": "hermes"}, "stream": sent})
    assert found["events"] == 1


# -- Templates ----------------------------------------------------------------------------------------------------

TEMPLATE = """\
{%- for message in messages %}
<|im_start|>{{ message.role }}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<call>{{ call.function.name }} {{ call.function.arguments | tojson }}</call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def test_a_template(inspector: Inspector):
    found = inspector.answer("template", {"template": TEMPLATE})
    assert found["certificate"]["certified"]
    assert found["selection"]["chosen"]["source"] == "analysis"
    assert found["analysis"]["result"]["markers"]["per_call_start"] == "<call>"
    assert found["turn"]["message"] == found["example"]["message"]
    assert found["turn"]["text"] == found["example"]["output"]
    training = "the template does not mark the assistant's tokens with {% generation %}, which training needs"
    remarks = [(remark["level"], remark["about"], remark["text"]) for remark in found["lint"]]
    assert remarks == [
        ("note", "needs_object_arguments", "line 5: arguments must be an object, not the JSON text that clients send"),
        ("note", "refuses_parts", "line 3: content that is a list of text parts is written as Python writes a list"),
        ("note", "training", training),
    ]
    assert sorted(found["grammars"]) == ["gbnf", "lark", "structural_tag"]
    assert '"get_weather "' in found["grammars"]["gbnf"]


def test_the_lines_that_were_never_rendered(inspector: Inspector):
    source = TEMPLATE + "{% if documents %}\nOne.\n\nTwo.\n{% endif %}"
    found = inspector.answer("template", {"template": source})
    assert [one["text"] for one in found["coverage"]] == source.splitlines()
    assert [one["line"] for one in found["coverage"] if not one["rendered"]] == [10, 11, 12]
    text = "1 of 4 branches were never rendered: see the lines of the template"
    assert {"level": "note", "about": "coverage", "text": text, "output": ""} in found["lint"]


def test_a_template_that_changes_earlier_turns(inspector: Inspector):
    dropping = TEMPLATE.replace(
        "{{ message.content or '' }}", "{{ (message.content or '') if loop.last or message.role == 'user' else '' }}"
    )
    levels = {remark["level"] for remark in inspector.answer("template", {"template": dropping})["lint"]}
    assert levels >= {"error", "warning"}


def test_a_format(inspector: Inspector):
    found = inspector.answer("template", {"format": "passthrough"})
    assert (found["certificate"], found["lint"], found["grammars"]) == (None, [], {})
    assert found["format"]["name"] == "passthrough"


def test_a_format_as_json(inspector: Inspector):
    fmt = OutputParser.named("hermes").format.to_json()
    assert inspector.answer("parse", {"text": HERMES, "format": fmt})["calls"][0]["name"] == "f"


def test_a_model_in_a_folder(inspector: Inspector, tmp_path: Path):
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    found = inspector.answer("template", {"model": str(tmp_path)})
    assert found["source"] == str(tmp_path)
    assert found["certificate"]["certified"]
    text = 'Hi.\n<call>f {"x": 1}</call>'
    assert inspector.answer("parse", {"text": text, "model": str(tmp_path)})["calls"][0]["name"] == "f"


def test_the_format_is_guessed(inspector: Inspector):
    found = inspector.answer("parse", {"text": "[TOOL_CALLS]f[ARGS]{}"})
    assert (found["format"], found["guessed"]) == ("mistral", True)
    assert "guessed" not in inspector.answer("parse", {"text": "", "format": "mistral"})


def test_a_saved_answer_is_read(inspector: Inspector):
    raw = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    choice = {"message": {"role": "assistant", "content": raw}, "finish_reason": "stop"}
    found = inspector.answer("parse", {"text": json.dumps({"choices": [choice]})})
    assert (found["text"], found["format"]) == (raw, "hermes")
    assert found["read"] == "The text is an answer of Chat Completions: its content is read"
    choice["message"] = {"content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    with pytest.raises(InspectorError, match=r"^the text is an answer of Chat Completions without the raw output: "):
        inspector.answer("parse", {"text": json.dumps({"choices": [choice]})})


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((same, same) for same in ("❤️ ⚠️", "👨‍👩‍👧", "👍🏽‍🦱", "1️⃣", "🏳️‍🌈", "نامه\u200cای", "क्\u200dष")),
        ("a\u200bb", "a�b"),
        ("a\ufe0fb\u200dc", "a�b�c"),
        ("\ufe0f\u202e", "��"),
    ],
)
def test_invisible_characters_are_shown_where_they_hide_something(text: str, shown: str):
    page = (ROOT / "src/untemplate/_internal/inspector/static/text.js").read_text("utf-8")
    program = f"{page}\nprocess.stdout.write(JSON.stringify(untemplate.visible({json.dumps(text)})))"
    done = subprocess.run(["node", "-e", program], capture_output=True, check=True, encoding="utf-8")
    assert json.loads(done.stdout) == shown


# -- Misuse -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("route", "body", "problem"),
    [
        ("parse", {"text": 3}, "Expected `str`, got `int` - at `$.text`"),
        ("parse", {"texts": ""}, "Object contains unknown field `texts`"),
        ("parse", [], "Expected `object`, got `array`"),
        ("parse", {"text": "x" * (MAX_TEXT + 1)}, f"Expected `str` of length <= {MAX_TEXT} - at `$.text`"),
        ("parse", {"text": "x" * 20_001}, "format: name one; only outputs of at most 20000 characters are guessed"),
        ("parse", {"format": "hermes", "model": "m"}, "format, template and model exclude each other"),
        ("parse", {"format": "hermes", "policy": {"drafts": "x"}},
         "policy drafts: 'x' is not one of: 'recover', 'immediately', 'never'"),
        ("parse", {"format": "hermes", "tools": [3]}, "tools[0]: expected an object, got int"),
        ("parse", {"template": "{% if %}"},
         "template: template, line 1: not a template that Jinja can read: "
         "Expected an expression, got 'end of statement block'"),
        ("parse", {"format": "hermes", "tokens": [[1, "x" * (MAX_TEXT + 1)]]},
         f"tokens: more than {MAX_TEXT} characters"),
        ("parse", {}, "paste an output, or name a format"),
        ("parse", {"text": "x", "format": "hermez"}, "format: 'hermez' is unknown; did you mean 'hermes'?"),
        ("parse", {"text": "x", "format": "?"}, "format: '?' is unknown; the field offers all names"),
        ("template", {}, "paste a template, or name a model or a format"),
    ],
)  # fmt: skip
def test_misuse_is_named(route: str, body: Any, problem: str, inspector: Inspector):
    with pytest.raises(InspectorError) as raised:
        inspector.answer(route, body)
    assert str(raised.value) == problem


def test_formats_read_no_files(inspector: Inspector, tmp_path: Path):
    file = tmp_path / "f.json"
    file.write_text(OutputParser.named("hermes").format.to_json())
    with pytest.raises(InspectorError, match=r"f\.json"):
        inspector.answer("parse", {"text": "x", "format": str(file)})


def test_the_choices(inspector: Inspector):
    found = inspector.answer("choices", {})
    assert found["models"] == []
    assert {"hermes", "qwen3", "gpt-oss"} <= set(found["formats"])
    assert found["formats"] == sorted(found["formats"])


def test_hostile_text_is_in_the_view_as_it_is(inspector: Inspector):
    assert inspector.answer("parse", {"text": HOSTILE, "format": "hermes+qwen3"})["text"] == HOSTILE


def test_each_diagnostic_has_advice():
    assert set(ADVICE) == set(DIAGNOSTICS)


def test_the_examples_are_up_to_date():
    """`python -m tests.inspector.examples` writes them."""
    assert examples.FILE.read_text("utf-8") == examples.text()


# Each diagnostic, and every eighth format: the views of the others are made alike.
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(name, marks=pytest.mark.exhaustive) if name.startswith("format/") and i % 8 else name
        for i, name in enumerate(examples.examples())
    ],
)
def test_an_example(inspector: Inspector, example: str):
    case = examples.examples()[example]["case"]
    found = inspector.answer("parse", case)
    assert found["text"] == case["text"]
    kind, _, name = example.partition("/")
    codes = [one["code"] for one in found["diagnostics"]]
    if kind == "diagnostic":
        assert name in codes
    elif kind == "format":
        assert codes == []
