"""The catalogue: its index, lazy loading, merging and errors; and samples of the formats that no shared case covers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import fields, replace
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from untemplate import formats, testing
from untemplate._internal.cli import main
from untemplate._internal.output_parser import OutputParser
from untemplate.format import Content, Format, FormatError, JsonBody, Marker, Reasoning, Tools, Turn
from untemplate.formats import (
    Entry,
    IncompatibleFormatsError,
    Kind,
    UnknownFormatError,
    _index,
    entries,
    lookup,
    merge,
    named,
    names,
    register,
)
from untemplate.formats import _registered as registered
from untemplate.formats import _registry as registry
from untemplate.formats._family import EVIDENCE_KINDS, Engine, report, template
from untemplate.formats._unlisted import NO_CHAT, NO_MARKERS, NO_TEMPLATE, UNLISTED, reason_for_model
from untemplate.selection import suggested

ENTRIES = entries()
IDS = [f"{entry.kind}-{entry.name}" for entry in ENTRIES]
FOLDER = Path(registry.__file__).parent


# -- the index ----------------------------------------------------------------------------------------------------


def test_every_module_is_listed():
    modules = {path.stem for path in (FOLDER / "_families").glob("*.py")} - {"__init__"}
    assert set(registry.families()) == modules
    assert registry.families() == sorted(modules)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_names_are_unique(kind: Kind):
    listed = [name for row in registry.rows() if row.kind == kind for name in (row.name, *row.aliases)]
    assert len(listed) == len(set(listed))
    assert sorted(listed) == names(kind)


def test_an_architecture_has_one_model_type():
    pairs = {pair for entry in ENTRIES for pair in entry.architectures}
    assert dict(pairs) == _index.MODEL_TYPES
    assert len(pairs) == len(_index.MODEL_TYPES)
    assert all(name != model_type for name, model_type in pairs)


@pytest.mark.parametrize(
    ("architecture", "model_type"), [("qwen3moe", "qwen3_moe"), ("gemma3", "gemma3_text"), ("llama", "llama")]
)
def test_model_type_of_an_architecture(architecture: str, model_type: str):
    assert registry.model_type_of_architecture(architecture) == model_type


def test_names_of_both_kinds():
    assert names() == sorted({*names("reasoning"), *names("tool")})


def loaded(code: str) -> set[str]:
    """Return the family modules that are imported after ``code`` ran in a fresh interpreter."""
    tail = (
        "import sys, json; print(json.dumps([m for m in sys.modules if m.startswith('untemplate.formats._families.')]))"
    )
    run = subprocess.run([sys.executable, "-c", f"{code}\n{tail}"], capture_output=True, text=True, check=True)
    return {name.rpartition(".")[2] for name in json.loads(run.stdout)}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import untemplate.formats", set()),
        ("from untemplate.formats import names; names()", set()),
        ("from untemplate.formats import named; named('qwen25')", {"hermes"}),
        ("from untemplate.formats import named; named('hermes', reasoning='deepseek_r1')", {"hermes", "deepseek"}),
        ("from untemplate.formats import lookup; lookup('reasoning', 'mistral')", {"mistral"}),
        ("from untemplate.selection import suggested; list(suggested('gpt2', 'gpt2'))", set()),
        ("from untemplate.selection import suggested; list(suggested('me/Qwen3-8B', None))", {"hermes", "qwen3"}),
        ("from untemplate.selection import suggested; list(suggested('me/x', 'glm4_moe'))", {"glm"}),
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
    values = [getattr(entry, field.name) for field in fields(Entry)]
    assert not any(isinstance(value, list) for value in values)
    assert set(entry.engines) <= set(get_args(Engine))
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
        assert fmt.reasoning is not None or entry.name == "identity"
    else:
        assert fmt.reasoning is None
        assert fmt.tools or entry.name == "passthrough" or not entry.verified


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_special_tokens_are_markers(entry: Entry):
    """A special token that is in no marker need not be preserved."""
    text = repr(entry.format.extend(special_tokens=()))
    for token in entry.format.special_tokens:
        assert token in text


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_json_round_trip(entry: Entry):
    assert Format.from_json(entry.format.to_json()) == entry.format


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_verified_entries_have_public_evidence(entry: Entry):
    for evidence in entry.evidence:
        assert evidence.kind in EVIDENCE_KINDS
        assert re.fullmatch(r"[\w.-]+/[\w.-]+(#\d+| [\w./-]+)", evidence.source)
        assert date(2024, 1, 1) <= date.fromisoformat(evidence.date)
    assert entry.evidence or not entry.verified


def test_evidence_as_text():
    issue = report("vllm-project/vllm#46863", "Llama 4 writes JSON calls")
    assert str(issue) == "report: vllm-project/vllm#46863 (2026-11-22): Llama 4 writes JSON calls"
    assert str(template("GLM-4.6.jinja", "2026-11-22")) == (
        "template: ggml-org/llama.cpp models/templates/GLM-4.6.jinja (2026-11-22)"
    )


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


# The names of parsers in vLLM, SGLang, Ollama, Dynamo and TensorRT-LLM. Some have a reason why they have no entry;
# TensorRT-LLM's tool parser ``qwen3`` has the name of a reasoning format here (docs/models-names.md).
ENGINE_NAMES: dict[Engine, dict[Kind, list[str]]] = json.loads(
    (Path(__file__).parents[1] / "docs" / "engine_names.json").read_text("utf-8")
)


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@pytest.mark.parametrize("kind", registry.KINDS)
def test_names_of_engines(engine: Engine, kind: Kind):
    for name in {*ENGINE_NAMES[engine][kind]} - {*UNLISTED}:
        assert engine in lookup(kind, name).engines, name
    assert not {*UNLISTED} & {*names()}


@pytest.mark.parametrize("name", UNLISTED)
def test_names_without_a_format_have_a_reason(name: str, capsys: pytest.CaptureFixture[str]):
    for kind in (None, *registry.KINDS):
        with pytest.raises(UnknownFormatError) as caught:
            named(name) if kind is None else lookup(kind, name)
        what = f"{kind} format" if kind else "format"
        assert str(caught.value) == f"no {what} {name!r}: {UNLISTED[name]}"
        assert caught.value.reason == UNLISTED[name]
    assert main(["formats", name]) == 2
    assert UNLISTED[name] in capsys.readouterr().err


def test_no_entry_claims_a_parser_that_vllm_does_not_have():
    for entry in ENTRIES:
        listed = set(ENGINE_NAMES["vllm"][entry.kind])
        assert ("vllm" in entry.engines) == bool(listed & {entry.name, *entry.aliases}), (entry.kind, entry.name)


def test_a_name_of_both_kinds():
    fmt = named("granite")
    assert fmt.name == "granite"
    assert fmt.reasoning == lookup("reasoning", "granite").format.reasoning
    assert fmt.tools == lookup("tool", "granite").format.tools


def test_a_tool_name_with_another_reasoning():
    fmt = named("hermes", reasoning="deepseek_r1")
    assert fmt.name == "hermes+deepseek_r1"
    assert fmt.reasoning == named("deepseek_r1").reasoning
    assert fmt.tools == named("hermes").tools
    assert named("granite", reasoning="qwen3").reasoning == named("qwen3").reasoning


def test_the_name_of_two_formats_finds_them():
    for name in ("hermes+qwen3", "llama3_json+deepseek_r1", "qwen3_coder+qwen3"):
        assert named(name).name == name
    assert named("qwen3+hermes") == named("hermes+qwen3")


def test_identity_is_no_reasoning():
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
    assert str(caught.value) == (
        "unknown format 'hermess'; did you mean 'hermes'? give a name, or CALLS+REASONING such as hermes+qwen3; "
        f"valid names: {', '.join(names())}"
    )
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


def test_unknown_name_without_suggestions():
    with pytest.raises(UnknownFormatError) as caught:
        named("hermes", reasoning="?")
    assert str(caught.value) == f"unknown reasoning format '?'; valid names: {', '.join(names('reasoning'))}"


# -- the three forms of a name ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("calls", "thinking"), [*product(("hermes", "kimi_k2", "granite"), ("qwen3", "deepseek_r1"))])
def test_two_names(calls: str, thinking: str):
    fmt = named(f"{calls}+{thinking}")
    assert fmt == named(calls, reasoning=thinking)
    assert named(fmt.name) == fmt


def test_the_order_of_two_names_matters_if_each_has_both_kinds():
    assert named("mistral+granite").tools == lookup("tool", "mistral").format.tools
    assert named("granite+mistral").tools == lookup("tool", "granite").format.tools


@pytest.mark.parametrize(
    ("name", "reasoning", "error", "said"),
    [
        ("hermes+qwen33", None, UnknownFormatError, "unknown reasoning format 'qwen33'; did you mean 'qwen3'"),
        ("herme+qwen3", None, UnknownFormatError, "unknown tool format 'herme'; did you mean 'hermes'"),
        ("hermes+", None, UnknownFormatError, "unknown reasoning format ''; valid names: "),
        ("hermes+qwen3+qwen3", None, UnknownFormatError, "unknown reasoning format 'qwen3+qwen3'; "),
        (
            "hermes+qwen3",
            "granite",
            IncompatibleFormatsError,
            "reasoning 'granite' and tools 'hermes+qwen3' cannot be combined: 'hermes+qwen3' names its reasoning "
            "already",
        ),
    ],
)
def test_two_names_that_are_wrong(name: str, reasoning: str | None, error: type[Exception], said: str):
    with pytest.raises(error) as caught:
        named(name, reasoning=reasoning)
    assert str(caught.value).startswith(said)


def test_a_file(tmp_path: Path):
    file = tmp_path / "mine.json"
    file.write_text(named("hermes").extend(name="mine").to_json())
    assert named(str(file), files=True) == named("hermes").extend(name="mine")
    assert named(str(file), files=True, reasoning="qwen3").reasoning == named("qwen3").reasoning
    assert OutputParser.named(str(file)).format.name == "mine"
    assert OutputParser.for_model("Qwen/Qwen3-8B", enforce=str(file), reasoning="identity").format.name == "mine"
    with pytest.raises(UnknownFormatError):
        named(str(file))  # a name from a request reads no files


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gone.json", None, "No such file or directory"),
        ("broken.json", b"{", "Format: not JSON: "),
        ("bytes.json", b"\xff", "Format: not JSON: "),
        ("field.json", b'{"name": "x", "turns": 1}', "turns: "),
        ("nul\0.json", None, "embedded null byte"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, name: str, content: bytes | None, said: str):
    file = str(tmp_path / name)
    if content is not None:
        Path(file).write_bytes(content)
    with pytest.raises(FormatError) as caught:
        named(file, files=True)
    assert str(caught.value).startswith(f"{file}: {said}")
    assert caught.value.path == file


# -- families of other packages -----------------------------------------------------------------------------------


@pytest.fixture
def registration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what the test registers."""
    for name in ("_entries", "_owners"):
        monkeypatch.setattr(registered, name, dict(getattr(registered, name)))


@pytest.mark.usefixtures("registration")
@pytest.mark.parametrize("name", [*names(), "hermes+qwen3", "granite+qwen3"])
def test_a_registered_format_is_found_whole_and_in_parts(name: str):
    fmt = named(name).extend(name="mine")
    register(fmt, aliases=["my-own"], models=["me/Mine-*"], model_types=["mine_moe"])
    assert named("mine") == named("my-own") == fmt
    assert {"mine", "my-own"} <= {*names()}
    found = [entry for entry in entries() if entry.name == "mine"]
    assert [entry.format for entry in found] == [lookup(entry.kind, "my-own").format for entry in found]
    assert {entry.kind for entry in found} == {row.kind for row in registry.rows() if row.name == "mine"}
    assert [found for _, found, _ in suggested("me/Mine-8B", None)] == [fmt]
    assert [found for _, found, _ in suggested(None, "mine_moe")] == [fmt]


@pytest.mark.usefixtures("registration")
@pytest.mark.parametrize(
    ("name", "aliases", "said"),
    [
        ("qwen25", (), "the name is taken by untemplate.formats._families.hermes"),
        ("mine", ("mistral",), "the name is taken by untemplate.formats._families.mistral"),
        ("there", (), "the name is taken by a call of register()"),
        ("There", (), "the name is taken by a call of register(): 'there'"),
        ("mine", ("Hermes",), "the name is taken by untemplate.formats._families.hermes: 'hermes'"),
        ("mine", ("mine",), "the name is given twice"),
        *(
            (name, (), "a name must not be empty, contain '+', '/', '\\' or space, or end with .json")
            for name in ("a+b", "a/b", "a\\b", "a b", "a.json")
        ),
    ],
)
def test_a_registration_that_is_refused_leaves_nothing(name: str, aliases: tuple[str, ...], said: str):
    register(named("hermes").extend(name="there"))
    before = names()
    with pytest.raises(FormatError) as caught:
        register(named("hermes").extend(name=name), aliases=aliases)
    assert str(caught.value) == f"register({(aliases or (name,))[0]!r}): {said}"
    assert names() == before


def test_only_formats_are_registered():
    with pytest.raises(TypeError, match=r"^register\(\) fmt: expected Format, got str: 'hermes'$"):
        register("hermes")  # type: ignore[arg-type]


def test_one_text_is_not_several_names():
    wrong = r"^register\(\) aliases: expected several texts, such as \('acme',\), got one: 'acme'$"
    with pytest.raises(TypeError, match=wrong):
        register(named("hermes").extend(name="acme_x"), aliases="acme")


@pytest.mark.parametrize(
    ("field", "given", "wrong"),
    [
        ("aliases", "x", "expected a tuple of texts, such as (\"x\",), got 'x'"),
        ("models", ["acme/*"], "expected a tuple of texts, such as (\"…\",), got ['acme/*']"),
        ("kind", "tools", "expected one of 'reasoning', 'tool', got 'tools'"),
        ("name", "acme", "expected 'hermes', the name of its format, got 'acme'"),
        ("format", "hermes", "expected a Format, got 'hermes'"),
        ("evidence", ("x",), "expected a tuple of Evidence, such as (template(\"Acme.jinja\"),), got ('x',)"),
        (
            "architectures",
            ("a", "b"),
            "expected a tuple of pairs, such as ((\"qwen3moe\", \"qwen3_moe\"),), got ('a', 'b')",
        ),
    ],
)
def test_an_entry_names_the_field_that_is_wrong(field: str, given: Any, wrong: str):
    entry = lookup("tool", "hermes")
    with pytest.raises(FormatError) as caught:
        replace(entry, **{field: given})
    assert str(caught.value) == f"Entry {given if field == 'name' else 'hermes'!r}: {field}: {wrong}"
    engines = "'vllm', 'sglang', 'llama.cpp', 'vllm.rs', 'dynamo', 'ollama', 'tensorrt-llm'"
    wrong = rf"^Entry 'hermes': engines: expected a tuple of these: {engines}, got \('vlm',\)$"
    with pytest.raises(FormatError, match=wrong):
        replace(entry, engines=("vlm",))


ACME = """
from untemplate.formats import named, register

def add():
    register(named("hermes").extend(name="acme"), aliases=["acme2"], models=["acme/Acme-*"])
"""
TAKEN = """
from untemplate.formats import named, register

def add():
    register(named("hermes").extend(name="other"))
    register(named("hermes").extend(name="acme2"))
"""


def installed(folder: Path, **packages: str) -> None:
    """Write packages with an entry point, as pip installs them."""
    for package, code in packages.items():
        (folder / f"{package}_formats.py").write_text(code)
        info = folder / f"{package}_formats-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}-formats\nVersion: 1.5\n")
        (info / "entry_points.txt").write_text(f"[untemplate.formats]\n{package} = {package}_formats:add\n")


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)


def test_a_package_adds_a_family(tmp_path: Path):
    installed(tmp_path, acme=ACME)
    program = """
import sys
from untemplate import OutputParser
from untemplate.formats import named, names
named("hermes")
print("acme_formats" in sys.modules)
print(named("acme2").name, "acme" in names(), named("acme+qwen3").name)
print(OutputParser.for_model("acme/Acme-1B").format.name)
"""
    done = python(tmp_path, "-c", program)
    assert (done.stdout, done.returncode) == ("False\nacme True acme+qwen3\nacme\n", 0), done.stderr
    done = python(tmp_path, "-m", "untemplate", "formats")
    assert [line.split() for line in done.stdout.split("\n") if line.startswith("acme")] == [
        ["acme/Acme-*", "acme", "tool", "none", "acme2"]
    ]
    done = python(tmp_path, "-m", "untemplate", "formats", "acme/Acme-1B", "--json")
    assert json.loads(done.stdout)["formats"] == ["acme"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (TAKEN, "register('acme2'): the name is taken by acme-formats 1.5"),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("", "AttributeError: module 'zeta_formats' has no attribute 'add'"),
    ],
)
def test_a_package_that_fails_is_named_and_left_out(tmp_path: Path, code: str, said: str):
    installed(tmp_path, acme=ACME, zeta=code)
    program = """
import logging
from untemplate.formats import named, names
logging.basicConfig(format="%(message)s")
for _ in range(2):
    print(named("acme2").name, "acme2" in names(), "other" in names())
"""
    warned = f"entry point 'zeta' of zeta-formats 1.5 adds no formats: {said}"
    done = python(tmp_path, "-c", program)
    assert (done.stdout, done.stderr) == ("acme True False\n" * 2, f"{warned}\n")
    done = python(tmp_path, "-m", "untemplate", "formats", "other")
    assert done.stderr.splitlines()[0] == f"untemplate: warning: {warned}"
    done = python(tmp_path, "-m", "untemplate", "formats")
    assert (done.stderr, done.returncode) == (f"untemplate: warning: {warned}\n", 0)
    assert "acme" in done.stdout


def test_other_packages_are_asked_for_unknown_names_only(tmp_path: Path):
    installed(tmp_path, acme=ACME)
    program = """
import sys
from untemplate.formats import named
named("hermes+qwen3"), named("qwen3+hermes"), named("granite")
print("importlib.metadata" in sys.modules)
named("acme+qwen3")
print("importlib.metadata" in sys.modules)
"""
    done = python(tmp_path, "-c", program)
    assert (done.stdout, done.returncode) == ("False\nTrue\n", 0), done.stderr


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
        name="calls+think",
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
    """The marker is kept and the end of the turn dropped."""
    fmt = merge(THINK.extend(turn__end=Marker("<end>", ("</text>",))), CALLS)
    assert fmt.turn.end == Marker("</s>", ("<end>",))


def test_markers_that_conflict():
    with pytest.raises(IncompatibleFormatsError) as caught:
        merge(THINK.extend(reasoning__close=Marker("<call>")), CALLS)
    assert str(caught.value) == (
        "reasoning 'think' and tools 'calls' cannot be combined: "
        "tools[0].call_open: '<call>' is already reasoning.close"
    )


def test_channels_merge_with_nothing_else():
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


def test_channels_merge_with_themselves_and_with_a_plain_format():
    assert named("openai", reasoning="openai_gptoss") == named("gpt-oss")
    assert named("openai", reasoning="identity") == named("gpt-oss")
    assert named("passthrough", reasoning="gptoss") == named("gpt-oss")


def test_every_pair_of_names_merges_or_raises_with_the_reason():
    reasons = []
    for reasoning, tool in product(ENTRIES, ENTRIES):
        if (reasoning.kind, tool.kind) != ("reasoning", "tool"):
            continue
        try:
            merged = merge(reasoning.format, tool.format)
        except IncompatibleFormatsError as error:
            reasons.append((reasoning.format.channels, tool.format.channels, error.reason))
        else:
            holder = tool.format if reasoning.format.channels is None else reasoning.format
            assert merged.tools == holder.tools
            assert merged.reasoning == reasoning.format.reasoning
    assert reasons
    for left, right, reason in reasons:
        assert left != right
        assert reason.endswith("which carry reasoning, content and calls together")


# -- what the entries are for -------------------------------------------------------------------------------------


def tool(name: str, **properties: str) -> dict[str, object]:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS = [tool("get_weather", city="string", days="integer"), tool("ping")]
WEATHER = ("get_weather", {"city": "Rome", "days": 2})
PING = ("ping", {})
JSON_WEATHER = '{"name": "get_weather", "arguments": {"city": "Rome", "days": 2}}'
JSON_PING = '{"name": "ping", "arguments": {}}'


def check(
    name: str,
    raw: str,
    calls: list[tuple[str, dict[str, object]]],
    *,
    content: str = "",
    reasoning_text: str = "",
    reasoning: str | None = None,
    prompt: str | None = None,
) -> None:
    """Compare the message, parsed whole and character by character. `test_laws` checks the laws."""
    parser = OutputParser.named(name, reasoning=reasoning)
    stream = parser.stream(tools=TOOLS, prompt=prompt, collect=True)
    for character in raw:
        for _ in stream.feed(character):
            pass
    for _ in stream.finish():
        pass
    for parsed in (parser.parse(raw, tools=TOOLS, prompt=prompt), stream.result()):
        assert (parsed.reasoning_content or "", parsed.content or "") == (reasoning_text, content)
        assert [(call.function.name, json.loads(call.function.arguments)) for call in parsed.tool_calls or []] == calls
        assert all(call.status == "ok" for call in parsed.tool_calls or [])


# Families that no shared case covers, in the form that their sources show: two calls, the second without arguments.
SAMPLES = [
    (
        "deepseek_v41",
        "hm</think>Ok.\n\n<｜DSML｜ calls>\n"
        '<｜DSML｜ invoke name="get_weather">\n'
        '<｜DSML｜ parameter name="city" string="true">Rome</｜DSML｜ parameter>\n'
        '<｜DSML｜ parameter name="days" string="false">2</｜DSML｜ parameter>\n'
        "</｜DSML｜ invoke>\n"
        '<｜DSML｜ invoke name="ping">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>',
        "<｜Assistant｜><think>",
    ),
    (
        "granite_thinking_parser",
        "hm\n</think>\nOk.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n"
        "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=ping>\n</function>\n</tool_call>",
        "<|start_of_role|>assistant<|end_of_role|><think>\n",
    ),
    (
        "mimo",
        "<think>hm</think>Ok.<tool_call>\n<function=get_weather>\n<parameter=city>Rome</parameter>\n"
        "<parameter=days>2</parameter>\n</function>\n</tool_call>"
        "<tool_call>\n<function=ping>\n</function>\n</tool_call>",
        "<|im_start|>assistant\n",
    ),
    (
        "plamo3",
        "hm<|plamo:end_think:plamo|>Ok.<|plamo:begin_tool_requests:plamo|>"
        "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>get_weather<|plamo:end_tool_name:plamo|>"
        "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>"
        '{"city": "Rome", "days": 2}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>'
        "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>ping<|plamo:end_tool_name:plamo|>"
        "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>"
        "{}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"
        "<|plamo:end_tool_requests:plamo|><|plamo:tag|>",
        None,
    ),
    (
        "hy_v3",
        "<think>hm</think>Ok.<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n"
        "<arg_value>Rome</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n"
        "<tool_call>ping<tool_sep>\n</tool_call>\n</tool_calls>",
        None,
    ),
    (
        "hy_v4",
        "<think:opensource>hm</think:opensource>Ok.<tool_calls:opensource>\n<tool_call:opensource>get_weather"
        "<arg_key:opensource>city</arg_key:opensource><arg_value:opensource>Rome</arg_value:opensource>"
        "<arg_key:opensource>days</arg_key:opensource><arg_value:opensource>2</arg_value:opensource>"
        "</tool_call:opensource>\n<tool_call:opensource>ping</tool_call:opensource>\n</tool_calls:opensource>",
        None,
    ),
    (
        "poolside_v1",
        "hm</think>Ok.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rome</arg_value>"
        "<arg_key>days</arg_key><arg_value>2</arg_value></tool_call><tool_call>ping</tool_call>",
        "<|assistant|>\n<think>",
    ),
    (
        "ling3",
        "<think>hm</think>Ok.<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call><tool_call>ping</tool_call>",
        None,
    ),
    (
        "cohere_command4",
        "<|START_THINKING|>hm<|END_THINKING|><|START_TEXT|>Ok.<|END_TEXT|><|START_ACTION|>[\n"
        '    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Rome", "days": 2}},\n'
        '    {"tool_call_id": "1", "tool_name": "ping", "parameters": {}}\n]<|END_ACTION|>',
        None,
    ),
    (
        "minimax",
        f"<think>\nhm\n</think>\n\nOk.\n<tool_calls>\n{JSON_WEATHER}\n{JSON_PING}\n</tool_calls>",
        "<beginning_of_sentence>ai name=assistant\n",
    ),
    (
        "apriel_1.5",
        "Here are my reasoning steps:\nhm\n[BEGIN FINAL RESPONSE]\nOk.\n"
        f"<tool_calls>[{JSON_WEATHER}, {JSON_PING}]</tool_calls>\n[END FINAL RESPONSE]\n<|end|>\n",
        "<|assistant|>\n",
    ),
    (
        "nemotron_nano_v2",
        f"hm\n</think>\nOk.\n<TOOLCALL>[{JSON_WEATHER}, {JSON_PING}]</TOOLCALL>\n<SPECIAL_12>\n",
        "<SPECIAL_11>Assistant\n<think>\n",
    ),
    (
        "apertus",
        '<|inner_prefix|>hm<|inner_suffix|>Ok.<|tools_prefix|>[{"get_weather": {"city": "Rome", "days": 2}}, '
        '{"ping": {}}]<|tools_suffix|>',
        "<|assistant_start|>",
    ),
    (
        "solar_open2",
        "hm<|think:end|>Ok.<|tool_call:start|>get_weather\n<|tool_arg:start|>city<|tool_arg:value|>Rome<|tool_arg:end|>\n"
        "<|tool_arg:start|>days<|tool_arg:value|>2<|tool_arg:end|>\n<|tool_call:end|>\n"
        "<|tool_call:start|>ping\n<|tool_call:end|><|im:end|>",
        "<|im:start|>assistant<|im:content|><|think:start|>",
    ),
    (
        "solar_open",
        "<|think|>hm<|end|><|begin|>assistant<|content|>Ok.<|end|><|begin|>assistant<|tool_calls|>"
        '<|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>get_weather<|tool_call:args|>{"city": "Rome", "days": 2}'
        "<|tool_call:end|><|tool_call:begin|>f6<|tool_call:name|>ping<|tool_call:args|>{}<|tool_call:end|><|calls|>",
        "<|begin|>assistant",
    ),
    (
        "openpangu_v2",
        'hm</think>Ok.<|tool_call_start|>\n[{"name": "get_weather", "arguments": {"city": "Rome", "days": 2}},\n'
        ' {"name": "ping", "arguments": {}}]\n<|tool_call_end|><|message_end|>',
        "<|message_start|>assistant\n<think>",
    ),
    (
        "telechat4",
        "hm</think>Ok.<tool_call>get_weather<param_key>city</param_key><param_value>Rome</param_value>"
        "<param_key>days</param_key><param_value>2</param_value></tool_call><tool_call>ping</tool_call><_end>",
        "<_bot><think>",
    ),
    (
        "iquest_q1",
        "hm</think>Ok.<iquest_tool_call>get_weather\n<arg_key>city</arg_key> <arg_value>Rome</arg_value>\n"
        "<arg_key>days</arg_key><arg_value>2</arg_value></iquest_tool_call>"
        "<iquest_tool_call>ping</iquest_tool_call><|iquest_end|>",
        "<|iquest_assistant|><think>",
    ),
    (
        "gigachat35",
        'hm</think>\n\nOk.\n\n<｜GCML｜tool_calls>\n<｜GCML｜invoke name="get_weather">\n'
        '<｜GCML｜parameter name="city" string="true">Rome</｜GCML｜parameter>\n'
        '<｜GCML｜parameter name="days" string="false">2</｜GCML｜parameter>\n</｜GCML｜invoke>\n'
        '<｜GCML｜invoke name="ping">\n</｜GCML｜invoke>\n</｜GCML｜tool_calls><|message_sep|>',
        "assistant<|role_sep|>\n<think>",
    ),
    (
        "hyperclovax_seed_think",
        "hm</think>\n\nOk.<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>ping\n</tool_call><|im_end|>",
        "<|im_start|>assistant\n<think>\n",
    ),
    (
        "k2_horizon",
        "hm</ifm|think_fast>Ok.<ifm|tool_calls>\n<ifm|tool_call>get_weather\n<ifm|arg_key>city</ifm|arg_key>\n"
        "<ifm|arg_value>Rome</ifm|arg_value>\n<ifm|arg_key>days</ifm|arg_key>\n<ifm|arg_value>2</ifm|arg_value>\n"
        "</ifm|tool_call>\n<ifm|tool_call>ping\n</ifm|tool_call>\n</ifm|tool_calls><|ifm|im_end|>",
        "<|ifm|im_start|>assistant\n<ifm|think_fast>\n",
    ),
    (
        "longcat",
        "hm</longcat_think>Ok.\n"
        f"<longcat_tool_call>\n{JSON_WEATHER}\n</longcat_tool_call>"
        f"<longcat_tool_call>\n{JSON_PING}\n</longcat_tool_call></longcat_s>",
        " ASSISTANT:<longcat_think>",
    ),
    (
        "hy_v3",
        "hm</think:opensource>Ok.<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n"
        "<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Rome</arg_value:opensource>\n"
        "<arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>2</arg_value:opensource>\n"
        "</tool_call:opensource>\n<tool_call:opensource>ping<tool_sep:opensource>\n</tool_call:opensource>\n"
        "</tool_calls:opensource><｜hy_eos:opensource｜>",
        "<｜hy_Assistant:opensource｜><think:opensource>",
    ),
]


@pytest.mark.parametrize(("name", "raw", "prompt"), SAMPLES, ids=[name for name, _, _ in SAMPLES])
def test_samples(name: str, raw: str, prompt: str | None):
    check(name, raw, [WEATHER, PING], content="Ok.", reasoning_text="hm", prompt=prompt)


def test_muse_headers_that_name_no_tool():
    """Ollama's ``glimmer_test.go``: the header before a call names nobody, or the namespace."""
    calls = '<atem:function_calls>\n<atem:invoke name="ping">\n</atem:invoke>\n</atem:function_calls><|eom|>'
    check("muse", f" to=muse<|message|>{calls}", [PING])
    for header in ("<|start|>assistant<|message|>", "<|start|>assistant to=muse<|message|>"):
        check("muse", f" to=self<|message|>hm<|eom|>{header}{calls}", [PING], reasoning_text="hm")
    check("muse", " to=user<|message|>Write to=muse, then a call.<|eot|>", [], content="Write to=muse, then a call.")


def test_magistral():
    for raw in ("<think>\nhm\n</think>\n\nOk.", "[THINK]hm[/THINK]Ok."):
        check("magistral", raw, [], content="Ok.", reasoning_text="hm")
    check("mistral", "Write <think>, then </think>.", [], content="Write <think>, then </think>.")
    check("mistral", "<think> is a tag.", [], content="<think> is a tag.")


# The same for families that do not reason.
TOOL_SAMPLES = [
    (
        "k2_horizon",
        "<ifm|tool_calls>\n<ifm|tool_call>get_weather\n<ifm|arg_key>city</ifm|arg_key>\n"
        "<ifm|arg_type>string</ifm|arg_type>\n<ifm|arg_value>Rome</ifm|arg_value>\n<ifm|arg_key>days</ifm|arg_key>\n"
        "<ifm|arg_type>integer</ifm|arg_type>\n<ifm|arg_value>2</ifm|arg_value>\n</ifm|tool_call>\n"
        "<ifm|tool_call>ping\n</ifm|tool_call>\n</ifm|tool_calls>",
    ),
    (
        "spark25",
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rome</arg_value>"
        "<arg_key>days</arg_key><arg_value>2</arg_value></tool_call><tool_call>ping</tool_call>",
    ),
    (
        "longcat_2601",
        "<longcat_tool_call>get_weather\n<longcat_arg_key>city</longcat_arg_key>\n"
        "<longcat_arg_value>Rome</longcat_arg_value>\n<longcat_arg_key>days</longcat_arg_key>\n"
        "<longcat_arg_value>2</longcat_arg_value>\n</longcat_tool_call>"
        "<longcat_tool_call>ping\n</longcat_tool_call>",
    ),
    ("granite-20b-fc", f"<function_call> {JSON_WEATHER}<function_call> {JSON_PING}"),
    (
        "longcat",
        f"<longcat_tool_call>\n{JSON_WEATHER}\n</longcat_tool_call>"
        f"<longcat_tool_call>\n{JSON_PING}\n</longcat_tool_call>",
    ),
    (
        "dots",
        '<dots_function_call>\n<invoke name="get_weather">\n<parameter name="city">Rome</parameter>\n'
        '<parameter name="days">2</parameter>\n</invoke>\n<invoke name="ping">\n</invoke>\n</dots_function_call>',
    ),
    (
        "dots",
        f"<dots_function_call>{JSON_WEATHER}</dots_function_call><dots_function_call>{JSON_PING}</dots_function_call>",
    ),
    (
        "functiongemma",
        "<start_function_call>call:get_weather{city:<escape>Rome<escape>,days:2}<end_function_call>"
        "<start_function_call>call:ping{}<end_function_call>",
    ),
    (
        "minicpm5",
        '<function name="get_weather"><param name="city">Rome</param><param name="days">2</param></function>'
        '<tool_sep><function name="ping"></function>',
    ),
    ("lfm2", "<|tool_call_start|>[get_weather(city='Rome', days=2), ping()]<|tool_call_end|>"),
    ("lfm2", f"<|tool_call_start|>[{JSON_WEATHER}, {JSON_PING}]<|tool_call_end|>"),
    ("phi4", f"<|tool_call|>{JSON_WEATHER}<|/tool_call|><|tool_call|>{JSON_PING}<|/tool_call|>"),
    ("phi4", f"functools[{JSON_WEATHER}, {JSON_PING}]"),
    ("firefunction_v2", f" functools[{JSON_WEATHER}, {JSON_PING}]"),
    ("mistral_v3", f"[TOOL_CALLS][{JSON_WEATHER}, {JSON_PING}]"),
    (
        "mistral",
        '[TOOL_CALLS]get_weather[CALL_ID]abc123DEF[ARGS]{"city": "Rome", "days": 2}'
        "[TOOL_CALLS]ping[CALL_ID]abc123DEG[ARGS]{}",
    ),
    ("xlam", f"<tool_call>[{JSON_WEATHER}, {JSON_PING}]</tool_call>"),
    ("xlam", f"[TOOL_CALLS][{JSON_WEATHER}, {JSON_PING}]"),
    ("xlam", f"```json\n[{JSON_WEATHER}, {JSON_PING}]\n```"),
    ("json", f"[{JSON_WEATHER}, {JSON_PING}]"),
    ("json", f"{JSON_WEATHER}; {JSON_PING}"),
    (
        "functionary_v3.1",
        '<function=get_weather>{"city": "Rome", "days": 2}</function><function=ping>{}</function><|eom_id|>',
    ),
    ("functionary_v3.2", '>>>get_weather\n{"city": "Rome", "days": 2}>>>ping\n{}<|eot_id|>'),
    (
        "command_r_plus",
        'Action:\n```json\n[\n    {\n        "tool_name": "get_weather",\n        "parameters": {"city": "Rome", '
        '"days": 2}\n    },\n    {\n        "tool_name": "ping",\n        "parameters": {}\n    }\n]```\n',
    ),
]


@pytest.mark.parametrize(("name", "raw"), TOOL_SAMPLES, ids=[name for name, _ in TOOL_SAMPLES])
def test_tool_samples(name: str, raw: str):
    check(name, raw, [WEATHER, PING], reasoning="identity")


ARGUMENTS = '{"city": "Rome", "days": 2}'
PARAMETERS = f'{{"name": "get_weather", "parameters": {ARGUMENTS}}}'

# Spellings that models get wrong. Each is accepted by its Format, and cited.
SURPLUS = ("json", "xlam", "llama3_json", "llama4_json", "llama4_pythonic")
"""Formats with bare JSON calls, after which small models write one bracket too many."""

MISSPELLED = [
    ("qwen3_coder", "ollama#16686", "<function=ping>\n</function>\n</tool_call>", [PING]),
    (
        "qwen3_coder",
        "vllm#22975",
        "<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
        "</function>\n</tool_call>",
        [WEATHER],
    ),
    (
        "deepseek_v4",
        "vllm#51914",
        '<｜DSML｜toolcalls>\n<｜DSML｜invoke name="ping">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        [PING],
    ),
    (
        "deepseek_v4",
        "vllm#48931",
        '<｜DSML｜invoke name="ping">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        [PING],
    ),
    (
        "deepseek_v4",
        "GenericAgent#804",
        '<‖DSML‖tool_calls>\n<‖DSML‖invoke name="ping">\n</‖DSML‖invoke>\n</‖DSML‖tool_calls>',
        [PING],
    ),
    (
        "deepseek_v3",
        "llama.cpp, the distilled models' openers",
        "<｜tool_calls_begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ping\n```json\n{}```<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>",
        [PING],
    ),
    (
        "deepseek_v4",
        "sglang#23915",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="ping"/>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">Rome</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        [PING, WEATHER],
    ),
    ("deepseek_v32", "sglang#23915", '<｜DSML｜function_calls>\n<｜DSML｜invoke name="ping" />', [PING]),
    ("deepseek_v41", "sglang#23915", '<｜DSML｜ invoke name="ping"/></｜DSML｜ calls>', [PING]),
    ("gemma4", "omlx#1886", "<|tool_call>:ping{}<tool_call|>", [PING]),
    ("gemma4", "omlx#1854", 'call:get_weather{city:<|"|>Rome<|"|>,days:2}<tool_call|>', [WEATHER]),
    ("gemma4", "omlx#1854", '<|tool_call>call:get_weather(city="Rome", days=2)<tool_call|>', [WEATHER]),
    ("gemma4", "ollama#17882", '<|tool_call>call:get_weather{city="Rome",days=2}<tool_call|>', [WEATHER]),
    (
        "glm47",
        "vllm#54971",
        "<tool_call>get_weather<arg_key>city</arg_key></arg_key><arg_value>Rome</arg_value>"
        "<arg_key>days</arg_key><arg_value>2</arg_value></tool_call>",
        [WEATHER],
    ),
    (
        "kimi_k2",
        "sglang#21377",
        f"<|tool_calls_section_begin|><|tool_call_begin|>functionsget_weather5<|tool_call_argument_begin|>{ARGUMENTS}"
        "<|tool_call_end|><|tool_calls_section_end|>",
        [WEATHER],
    ),
    ("llama3_json", "llama.cpp#20260", f"{PARAMETERS}; {PARAMETERS}", [WEATHER, WEATHER]),
    ("llama3_json", "llama.cpp#20260", f"<|python_tag|>{PARAMETERS}; {PARAMETERS}", [WEATHER, WEATHER]),
    ("llama3_json", "vllm#16214", f"<|python_start|>{PARAMETERS}<|python_end|>", [WEATHER]),
    ("llama4_pythonic", "vllm#46863", PARAMETERS, [WEATHER]),
    ("llama4_pythonic", "vllm#46890", f"<|python_start|>{PARAMETERS}<|python_end|>", [WEATHER]),
    ("llama4_pythonic", "vllm#46863", '{"type": "function", "name": "ping", "parameters": {}}', [PING]),
    ("granite", "granite 3.1", f"<tool_call>[{JSON_WEATHER}]", [WEATHER]),
    ("hermes", "SGLang Qwen25Detector", f"<tool_call>\n[{JSON_WEATHER}, {JSON_PING}]\n</tool_call>", [WEATHER, PING]),
    ("step3", "sglang#36691", '<steptml:invoke name="ping"></steptml:invoke>', [PING]),
    ("mistral", "Rapid-MLX#579", f"[TOOL_CALLS]get_weather{ARGUMENTS}", [WEATHER]),
    (
        "mistral_v3",
        "ollama tools_test.go",
        f"[TOOL_CALLS] [{JSON_WEATHER}, {JSON_PING}][/TOOL_CALLS]",
        [WEATHER, PING],
    ),
    (
        "deepseek_v32",
        "an integer declared as a string",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">Rome</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="true">2</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        [WEATHER],
    ),
    ("mistral_v3", "after one object", f"[TOOL_CALLS] {JSON_WEATHER} [/TOOL_CALLS]", [WEATHER]),
    ("mistral", "after [ARGS]", f"[TOOL_CALLS]get_weather[ARGS]{ARGUMENTS}[/TOOL_CALLS]", [WEATHER]),
    *((name, "ollama#17638", f"{JSON_WEATHER}{extra}", [WEATHER]) for name in SURPLUS for extra in ("}", "\n]")),
    ("json", "ollama#17638, a list", f"[{JSON_WEATHER}, {JSON_PING}]]", [WEATHER, PING]),
    ("xlam", "ollama#17638, in a list", f"[{JSON_WEATHER}}}]", [WEATHER]),
    (
        "lfm2",
        "ollama lfm2_test.go",
        "<|tool_call_start|>get_weather(city='Rome', days=2)<|tool_call_end|>",
        [WEATHER],
    ),
    ("lfm2", "an offered name where content begins", "get_weather(city='Rome', days=2)", [WEATHER]),
    ("lfm2", "before the end of the turn", " ping()\n<|im_end|>", [PING]),
    (
        "cohere_command3",
        "SMG cohere tests",
        f'<|START_ACTION|>\n{{"tool_name": "get_weather", "parameters": {ARGUMENTS}}}\n<|END_ACTION|>',
        [WEATHER],
    ),
    (
        "command_r_plus",
        "one object without the list",
        f'Action:\n```json\n{{"tool_name": "get_weather", "parameters": {ARGUMENTS}}}\n```',
        [WEATHER],
    ),
    (
        "spark25",
        "tabbyAPI#480",
        "<|tool_call|>\nget_weather<arg_key>city</arg_key><arg_value>Rome</arg_value>"
        "<arg_key>days</arg_key><arg_value>2</arg_value>\n<|/tool_call|>",
        [WEATHER],
    ),
    ("telechat4", "TensorRT-LLM", f"<tool_call>{JSON_WEATHER}</tool_call>", [WEATHER]),
    (
        "k2_horizon",
        "sglang k2_v3_detector.py",
        f"<ifm|tool_calls>\n<ifm|tool_call>{JSON_WEATHER}</ifm|tool_call>\n"
        '<ifm|tool_call>{"name": "ping", "arguments": {}}</ifm|tool_call>\n</ifm|tool_calls>',
        [WEATHER, PING],
    ),
    (
        "step_audio_2",
        "vllm step_audio_2_tool_parser.py",
        f"<tool_call>function\nget_weather\n{ARGUMENTS}</tool_call><tool_call>function\nping\n{{}}</tool_call>",
        [WEATHER, PING],
    ),
    (
        "longcat",
        "mlx-lm tool parser tests",
        "<longcat_tool_call>get_weather<longcat_arg_key>city</longcat_arg_key>\n"
        "<longcat_arg_value>Rome</longcat_arg_value>\n<longcat_arg_key>days</longcat_arg_key>\n"
        "<longcat_arg_value>2</longcat_arg_value></longcat_tool_call>",
        [WEATHER],
    ),
    ("longcat_2601", "mlx-lm#810", f"<longcat_tool_call>\n{JSON_WEATHER}\n</longcat_tool_call>", [WEATHER]),
    ("glm47", "ollama laguna_test.go", f"<tool_call>\n{JSON_WEATHER}\n</tool_call>", [WEATHER]),
    ("poolside_v1", "ollama laguna_test.go", f"<tool_call>\n{JSON_WEATHER}\n</tool_call>", [WEATHER]),
    ("gemma4", "ollama gemma4_test.go", "<|tool_call>call:ping{}<tool_call|><|tool_response>", [PING]),
    (
        "gemma4",
        "mlx-lm test_tool_parsing.py",
        '<|tool_call>call:get_weather{city:<|"|>Rome<|"|>,days:2}call:ping{}<tool_call|>',
        [WEATHER, PING],
    ),
]


def test_two_calls_in_one_block_without_known_tools():
    raw = '<|tool_call>call:glob{pattern:<|"|>a*<|"|>}call:glob{pattern:<|"|>b*<|"|>}<tool_call|>'
    parsed = OutputParser.named("gemma4").parse(raw)
    assert [call.function.arguments for call in parsed.tool_calls or []] == ['{"pattern": "a*"}', '{"pattern": "b*"}']
    assert parsed.content is None


@pytest.mark.parametrize("written", ["functions.google:mcp:x:0", "functions.google:mcp:x", "google:mcp:x"])
def test_the_name_of_a_tool_may_hold_colons(written: str):
    raw = f"<|tool_call_begin|>{written}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
    parsed = OutputParser.named("kimi_k2").parse(raw)
    assert [call.function.name for call in parsed.tool_calls or []] == ["google:mcp:x"]


def test_an_answer_may_skip_the_thoughts_that_its_prompt_opened():
    """canitoolcall, ``k3-bug-response-only-completion``."""
    raw = "<|open|>response<|sep|>Hello<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>"
    check("kimi_k3", raw, [], content="Hello", reasoning="kimi_k3")
    text = "They write <|open|>response<|sep|> before it."
    check("kimi_k3", f"{text}<|close|>think<|sep|>Yes.", [], content="Yes.", reasoning_text=text, reasoning="kimi_k3")


@pytest.mark.parametrize(("raw", "content"), [("ping()\nDone.", "\nDone."), ("ping() \n\n```", " \n\n```")])
def test_a_call_without_a_marker_ends_its_line(raw: str, content: str):
    check("lfm2", raw, [PING], content=content)
    testing.check("lfm2", raw, tools=TOOLS)


def test_a_channel_without_its_name_is_reasoning():
    """Ollama's ``gemma4.go`` takes the name off the thoughts, if it is there."""
    check("gemma4", "<|channel>A.\n<channel|>B.", [], content="B.", reasoning_text="A.", reasoning="gemma4")
    raw = "Gemma writes <|channel> and the name thought."
    check("gemma4", raw, [], content=raw, reasoning="gemma4")


def test_keys_are_attributes_and_values_are_text():
    raw = (
        '<|open|>tools<|sep|><|open|>call tool="ping" index="1"<|sep|>'
        '<|open|>argument key="a&quot;b &amp;amp;" type="string"<|sep|>x &amp; y<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|>"
    )
    check("kimi_k3", raw, [("ping", {'a"b &amp;': "x &amp; y"})], reasoning="identity")


@pytest.mark.parametrize(
    ("name", "report", "raw", "calls"), MISSPELLED, ids=[f"{row[0]}-{row[1]}" for row in MISSPELLED]
)
def test_misspellings(name: str, report: str, raw: str, calls: list[tuple[str, dict[str, object]]]):
    check(name, raw, calls, reasoning="identity")


PROSE = [
    ("gemma4", "Emergency call: 911, or recall:foo. call:x y {}"),
    ("json", '```json\n{"name": "Alice", "age": 3}\n```'),
    ("json", '{"name": "Alice", "arguments": "none"}'),
    ("xlam", "[see](https://example.org) and [1, 2]"),
    ("pythonic", "[link text](url), and [f] of (x)"),
    ("phi4", "Use functools.reduce, or functools[0]."),
    ("qwen3_coder", "Write <function=name> and then its parameters."),
    ("minicpm5", "A <function name= is not a call."),
    ("granite-20b-fc", "Say <function_call> and the object."),
    ("functionary_v3.2", ">>> print(1)\n1\n"),
    ("mistral_v3", "A list of calls ends with [/TOOL_CALLS], which v1 tokenizers wrote as text."),
    ("mistral", "[INST], [ARGS] and [/TOOL_CALLS] are tokens. [/TOOL_CALLS]"),
    *((name, "}] closes {[. } and ] end a block:\n}\n]") for name in SURPLUS),
    *((name, '{"a": [1]}}\n]') for name in SURPLUS),
    ("lfm2", "get_weather(city='Rome', days=2) without the tokens is text; so is `ping()`."),
    ("lfm2", "ping() tests the line."),
    ("lfm2", "ping(), ping()"),
    ("lfm2", "ping(host) and get_weather() are tools."),
    ("lfm2", "get_weather(city='Rome').days is 2"),
    ("lfm2", "get_weather(city='Ro"),
    ("lfm2", "other(city='Rome', days=2)"),
    ("lfm2", "Here it is:\nget_weather(city='Rome', days=2)"),
    ("lfm2", "<|tool_call_start|> comes before get_weather(city='Rome', days=2)."),
    ("llama3_json", "Llama 4 writes <|python_start|> before a list and <|python_end|> after it."),
    ("command_r_plus", 'Action: ```json\n{"city": "Rome"}\n``` is an object, and ```json\n{"tool_name": 1}\n``` too.'),
    ("cohere_command3", '{"tool_name": "ping", "parameters": {}} is an action.'),
    ("cohere_command3", 'Between <|START_ACTION|> and <|END_ACTION|> comes {"tool_name": "ping", "parameters": {}}.'),
    ("deepseek_v4", 'A tag like <｜DSML｜invoke name= /> ends in "/>, and <img src="x"/> does too.'),
    ("gemma4", "After the call comes <|tool_response>, which ends the turn."),
    ("glm47", 'A <tool_call> holds a name, or {"name": "ping", "arguments": {}}.'),
    ("glm47", '<tool_call>{"city": "Rome"}</tool_call>'),
    ("solar_open2", "Say <|tool_call:start|> and the name; then <|tool_arg:start|> lines."),
    ("telechat4", "A <tool_call> is a name, <param_key> and <param_value>."),
    ("iquest_q1", "The <iquest_tool_call> tag begins a call."),
    ("gigachat35", 'Write <｜GCML｜tool_calls> around each <｜GCML｜invoke name="ping">.'),
    ("spark25", "Quantized models write <|tool_call|> for <tool_call>, it says."),
    ("k2_horizon", "The <ifm|tool_calls> block and the <ifm|tool_call> in it."),
    ("longcat", "Between <longcat_arg_key> tags is a key, as in <longcat_tool_call> blocks."),
    ("longcat_2601", "Between <longcat_arg_key> tags is a key, as in <longcat_tool_call> blocks."),
    ("hy_v3", "The checkpoint ends <tool_calls:opensource> and <tool_call:opensource> differently."),
    ("minimax_m3", "A <tool_call> holds ]<]minimax[>[<invoke> tags, each after ]<]minimax[>[."),
]


@pytest.mark.parametrize(("name", "raw"), PROSE, ids=[name for name, _ in PROSE])
def test_prose_is_not_a_call(name: str, raw: str):
    check(name, raw, [], content=raw, reasoning="identity")


@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["sample", "every-split"]
)
@pytest.mark.parametrize(
    ("name", "raw", "prompt"),
    [*SAMPLES, *((name, raw, None) for name, raw in (*TOOL_SAMPLES, *PROSE))],
    ids=[name for name, *_ in (*SAMPLES, *TOOL_SAMPLES, *PROSE)],
)
def test_laws(name: str, raw: str, prompt: str | None, every: bool):
    testing.check(name, raw, tools=TOOLS, prompt=prompt, cuts=40, exhaustive=every)


# -- public names -------------------------------------------------------------------------------------------------


def test_all():
    assert sorted(formats.__all__) == sorted(set(formats.__all__))
    for name in formats.__all__:
        assert hasattr(formats, name)


# -- Names of other projects ----------------------------------------------------------------------------------------

NAMES = json.loads((Path(__file__).parent / "data" / "names.json").read_text("utf-8"))
"""Names that other projects' parsers and renderers have, and ids of models, on the day that the file names."""


@pytest.mark.parametrize("project", [name for name, record in NAMES["projects"].items() if "names" in record])
def test_names_of_other_projects_are_known(project: str):
    """Each finds a format, or a reason why there is none."""
    unknown = []
    for name in NAMES["projects"][project]["names"]:
        try:
            named(name)
        except UnknownFormatError as error:
            unknown += [] if error.reason else [name]
    assert unknown == []


@pytest.mark.parametrize("record", [*NAMES["projects"].values(), *ENGINE_NAMES.values()])
def test_lists_of_names_have_a_version_and_a_date(record: dict[str, Any]):
    assert record["version"]
    assert date.fromisoformat(record["date"])


def test_names_are_compared_by_letters_and_digits():
    assert lookup("tool", "GLM-4.5") is lookup("tool", "glm45")
    assert lookup("reasoning", "kimi-k2") is lookup("reasoning", "kimi_k2")
    with pytest.raises(UnknownFormatError) as caught:
        lookup("tool", "glm-4.8")
    assert "unknown tool format 'glm-4.8'" in str(caught.value)


@pytest.mark.parametrize("model", NAMES["models"])
def test_models_of_this_year_have_an_entry(model: str):
    assert next(suggested(model, None), None) is not None


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Tele-AI/TeleChat2-7B", "telechat4"),
        ("microsoft/Phi-4-multimodal-instruct", "phi4_mini_json"),
        ("openbmb/MiniCPM-o-4_5", "passthrough+minicpmv"),
        ("microsoft/phi-4", "passthrough"),
        ("google/gemma-2-9b-it", "passthrough"),
    ],
)
def test_only_models_without_markup_pass_through(model: str, name: str):
    assert next(suggested(model, None))[0] == name


def test_models_of_other_projects_have_an_entry_or_a_reason():
    """Of the models that chat, 95 % have an entry."""
    listed = {model for record in NAMES["projects"].values() for model in record.get("models", ())}
    chat = sorted(model for model in listed if reason_for_model(model) != NO_CHAT)
    left = [model for model in chat if next(suggested(model, None), None) is None]
    assert len(chat) > 700
    assert len(left) <= 0.05 * len(chat), left
    assert {reason_for_model(model) for model in left} == {NO_MARKERS, NO_TEMPLATE}


def test_hunyuan_writes_fenced_arguments():
    testing.case("hunyuan_hermes").raw(
        'Look.<tool_calls>\n<tool_call>f\n```json\n{"x": 1}\n```</tool_call>\n'
        '<tool_call>g\n```json\n{"code": "```sh\\nls\\n```"}\n```</tool_call>\n</tool_calls>'
    ).content("Look.").call("f", {"x": 1}).call("g", {"code": "```sh\nls\n```"}).check()
