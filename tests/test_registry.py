"""The catalogue: the index is in step with the modules, loading is lazy, merging is right, errors say what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

from untemplate import formats
from untemplate.format import Content, Format, JsonBody, Marker, Reasoning, Tools, Turn
from untemplate.formats import (
    Entry,
    IncompatibleFormatsError,
    UnknownFormatError,
    entries,
    lookup,
    merge,
    named,
    names,
    registry,
)

ENTRIES = entries()
IDS = [f"{entry.kind}-{entry.name}" for entry in ENTRIES]
FOLDER = Path(registry.__file__).parent


# -- the index ----------------------------------------------------------------------------------------------------


def test_every_module_is_listed():
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "_common", "registry"}
    assert set(registry.FAMILIES) == modules


def test_the_index_is_sorted():
    assert list(registry.FAMILIES) == sorted(registry.FAMILIES)


@pytest.mark.parametrize("module", registry.FAMILIES)
def test_the_index_is_in_step(module: str):
    listed = registry.FAMILIES[module]
    found = import_module(f"untemplate.formats.{module}").ENTRIES
    for kind, column in zip(("reasoning", "tool"), listed, strict=True):
        of_kind = [name for entry in found if entry.kind == kind for name in (entry.name, *entry.aliases)]
        assert column.split() == of_kind


@pytest.mark.parametrize("kind", ["reasoning", "tool"])
def test_names_are_unique(kind: str):
    column = 0 if kind == "reasoning" else 1
    listed = [name for columns in registry.FAMILIES.values() for name in columns[column].split()]
    assert len(listed) == len(set(listed))
    assert sorted(listed) == names(kind)  # type: ignore[arg-type]


def test_names_of_both_kinds():
    assert names() == sorted({*names("reasoning"), *names("tool")})


def loaded(code: str) -> set[str]:
    """The family modules that are loaded after ``code`` ran in a fresh interpreter."""
    tail = "import sys, json; print(json.dumps([m for m in sys.modules if m.startswith('untemplate.formats.')]))"
    run = subprocess.run([sys.executable, "-c", f"{code}\n{tail}"], capture_output=True, text=True, check=True)
    return {name.rpartition(".")[2] for name in json.loads(run.stdout)} - {"registry", "_common"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import untemplate.formats", set()),
        ("from untemplate.formats import names; names()", set()),
        ("from untemplate.formats import named; named('qwen25')", {"hermes"}),
        ("from untemplate.formats import named; named('hermes', reasoning='deepseek_r1')", {"hermes", "deepseek"}),
        ("from untemplate.formats import lookup; lookup('reasoning', 'mistral')", {"mistral"}),
    ],
)
def test_loading_is_lazy(code: str, expected: set[str]):
    assert loaded(code) == expected


# -- the entries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_entry(entry: Entry):
    assert entry.kind in ("reasoning", "tool")
    assert entry.format.name == entry.name
    assert entry.name not in entry.aliases
    assert entry.models
    assert entry.evidence
    assert all(isinstance(field, tuple) for field in (entry.aliases, entry.models, entry.engines, entry.evidence))
    assert set(entry.engines) <= {"vllm", "sglang", "llama.cpp", "vllm.rs", "dynamo", "mlx"}
    assert lookup(entry.kind, entry.name) is entry
    for alias in entry.aliases:
        assert lookup(entry.kind, alias) is entry


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_entry_holds_its_kind(entry: Entry):
    fmt = entry.format
    if fmt.channels is not None:
        return
    if entry.kind == "reasoning":
        assert fmt.tools == ()
        assert fmt.reasoning is not None or entry.name in ("identity", "minimax_m2_append_think")
    else:
        assert fmt.reasoning is None
        assert fmt.tools or entry.name == "passthrough" or not entry.verified


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_special_tokens_are_markers(entry: Entry):
    """A special token that no marker holds would be preserved for nothing."""
    text = repr(entry.format.extend(special_tokens=()))
    for token in entry.format.special_tokens:
        assert token in text


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_json_round_trip(entry: Entry):
    assert Format.from_json(entry.format.to_json()) == entry.format


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_verified_entries_rest_on_something(entry: Entry):
    firm = ("template: ", "case", "spec 5")
    cited = [e for e in entry.evidence if not e.startswith(firm)]
    assert all("20" in e for e in cited), "a source needs its date"
    if not entry.verified:
        assert not any(e.startswith(firm) for e in entry.evidence)


# -- looking up ---------------------------------------------------------------------------------------------------


def test_a_tool_name():
    fmt = named("hermes")
    assert fmt is lookup("tool", "hermes").format
    assert fmt.reasoning is None


def test_a_reasoning_name():
    assert named("qwen3") is lookup("reasoning", "qwen3").format


def test_an_alias():
    assert named("qwen25") == named("hermes")
    assert named("openai") == named("gpt-oss") == named("openai_gptoss")


def test_a_name_of_both_kinds():
    fmt = named("granite")
    assert fmt.name == "granite"
    assert fmt.reasoning == lookup("reasoning", "granite").format.reasoning
    assert fmt.tools == lookup("tool", "granite").format.tools


def test_a_tool_name_with_another_reasoning():
    fmt = named("hermes", reasoning="deepseek_r1")
    assert fmt.name == "deepseek_r1+hermes"
    assert fmt.reasoning == named("deepseek_r1").reasoning
    assert fmt.tools == named("hermes").tools
    assert named("granite", reasoning="qwen3").reasoning == named("qwen3").reasoning


def test_no_reasoning_at_all():
    assert named("granite", reasoning="identity") == lookup("tool", "granite").format


def test_a_reasoning_name_as_tools():
    assert named("qwen3", reasoning="qwen3") == named("qwen3")
    with pytest.raises(IncompatibleFormatsError) as caught:
        named("qwen3", reasoning="deepseek_r1")
    assert str(caught.value) == (
        "reasoning 'deepseek_r1' and tools 'qwen3' cannot be combined: 'qwen3' is a reasoning format as well"
    )


def test_unknown_name():
    with pytest.raises(UnknownFormatError) as caught:
        named("hermess")
    assert str(caught.value) == (f"unknown format 'hermess'; did you mean 'hermes'? valid names: {', '.join(names())}")
    assert caught.value.suggestions == ("hermes",)
    assert isinstance(caught.value, ValueError)


def test_unknown_name_with_several_suggestions():
    with pytest.raises(UnknownFormatError) as caught:
        lookup("tool", "deepseek_v33")
    nearest = " or ".join(repr(s) for s in caught.value.suggestions)
    assert len(caught.value.suggestions) == 3
    assert str(caught.value) == (
        f"unknown tool format 'deepseek_v33'; did you mean {nearest}? valid names: {', '.join(names('tool'))}"
    )


def test_unknown_name_like_no_other():
    with pytest.raises(UnknownFormatError) as caught:
        named("hermes", reasoning="?")
    assert str(caught.value) == f"unknown reasoning format '?'; valid names: {', '.join(names('reasoning'))}"


# -- merging ------------------------------------------------------------------------------------------------------

THINK = Format(
    name="think",
    turn=Turn(start=Marker("<a>\n"), end=Marker("<end>")),
    reasoning=Reasoning(open=Marker("<think>"), close=Marker("</think>"), start="open"),
    special_tokens=("<think>",),
)
CALLS = Format(
    name="calls",
    turn=Turn(start=Marker("<b>", ("<c>",)), end=Marker("</s>")),
    content=Content(open=Marker("<text>"), close=Marker("</text>")),
    tools=(Tools(body=JsonBody(), call_open=Marker("<call>"), call_close=Marker("</call>")),),
    ids="alphanumeric9",
    special_tokens=("<call>",),
)


def test_merge():
    fmt = merge(THINK, CALLS)
    assert fmt == Format(
        name="think+calls",
        turn=Turn(start=Marker("<b>", ("<c>", "<a>")), end=Marker("</s>", ("<end>",))),
        reasoning=THINK.reasoning,
        content=CALLS.content,
        tools=CALLS.tools,
        ids="alphanumeric9",
        special_tokens=("<call>", "<think>"),
    )


def test_the_content_markers_of_the_reasoning_format_come_first():
    wrap = Content(open=Marker("<answer>"), close=Marker("</answer>"))
    assert merge(THINK.extend(content=wrap), CALLS).content == wrap


def test_a_turn_end_of_one_may_be_a_marker_of_the_other():
    """The marker wins: a turn does not end where something else opens or closes."""
    fmt = merge(THINK.extend(turn__end=Marker("<end>", ("</text>",))), CALLS)
    assert fmt.turn.end == Marker("</s>", ("<end>",))


def test_markers_that_conflict():
    with pytest.raises(IncompatibleFormatsError) as caught:
        merge(THINK.extend(reasoning__close=Marker("<call>")), CALLS)
    assert str(caught.value) == (
        "reasoning 'think' and tools 'calls' cannot be combined: "
        "tools[0].call_open: '<call>' is already reasoning.close"
    )


def test_channels_stand_alone():
    with pytest.raises(IncompatibleFormatsError) as caught:
        named("hermes", reasoning="gptoss")
    assert str(caught.value) == (
        "reasoning 'gpt-oss' and tools 'hermes' cannot be combined: 'gpt-oss' writes a turn as messages in channels, "
        "which carry reasoning, content and calls together"
    )
    with pytest.raises(IncompatibleFormatsError):
        named("openai", reasoning="qwen3")
    with pytest.raises(IncompatibleFormatsError):
        named("functionary_v3.2", reasoning="gptoss")


def test_channels_go_with_themselves_and_with_nothing():
    assert named("openai", reasoning="openai_gptoss") == named("gpt-oss")
    assert named("openai", reasoning="identity") == named("gpt-oss")
    assert named("passthrough", reasoning="gptoss") == named("gpt-oss")


def test_every_pair_of_names_merges_or_says_why():
    reasons = []
    for reasoning, tool in product(ENTRIES, ENTRIES):
        if (reasoning.kind, tool.kind) != ("reasoning", "tool"):
            continue
        try:
            merged = merge(reasoning.format, tool.format)
        except IncompatibleFormatsError as error:
            reasons.append((reasoning.format.channels, tool.format.channels, error.reason))
        else:
            assert merged.tools == tool.format.tools
            assert merged.reasoning == reasoning.format.reasoning
    assert reasons
    for left, right, reason in reasons:
        assert left != right
        assert reason.endswith("which carry reasoning, content and calls together")


# -- public names -------------------------------------------------------------------------------------------------


def test_all():
    assert sorted(formats.__all__) == sorted(set(formats.__all__))
    for name in formats.__all__:
        assert hasattr(formats, name)
