"""Parsers by name: the catalogue's and registered ones; errors say what to do."""

import pytest

from untemplate import OutputParser
from untemplate.errors import FormatError
from untemplate.formats import UnknownFormatError, named, names
from untemplate.vllm_api import (
    DelegatingParser,
    FormatParser,
    FormatReasoningParser,
    FormatToolParser,
    ParserEngine,
    ParserManager,
    ReasoningParserManager,
    ToolParserManager,
)

from .parser_examples import Tokenizer, hermes


class Tools:
    def __init__(self, tokenizer):
        pass

    def extract_tool_calls(self, model_output, request): ...

    def extract_tool_calls_streaming(self, *args): ...


class Reasoning:
    def __init__(self, tokenizer):
        pass

    def extract_reasoning(self, model_output, request):
        return "r", model_output

    def extract_reasoning_streaming(self, *args): ...


class Mine(ParserEngine):
    def __init__(self, tokenizer):
        super().__init__(tokenizer, parser_engine_config=hermes())


@pytest.fixture(autouse=True)
def _registries(monkeypatch):
    for manager in (ReasoningParserManager, ToolParserManager, ParserManager):
        monkeypatch.setattr(manager, "_registered", {})


def test_the_catalogue():
    cls = ToolParserManager.get_tool_parser("hermes")
    assert issubclass(cls, FormatToolParser)
    assert cls is ToolParserManager.get_tool_parser("hermes")
    assert cls.__name__ == "HermesFormatToolParser"
    assert cls(Tokenizer()).extract_tool_calls("a", None).content == "a"
    assert issubclass(ReasoningParserManager.get_reasoning_parser("deepseek_r1"), FormatReasoningParser)


@pytest.mark.parametrize("name", names("reasoning"))
def test_every_reasoning_name(name):
    parser = ReasoningParserManager.get_reasoning_parser(name)(Tokenizer())
    parser.extract_reasoning("a", None)


@pytest.mark.parametrize("name", names("tool"))
def test_every_tool_name(name):
    parser = ToolParserManager.get_tool_parser(name)(Tokenizer())
    assert parser.extract_tool_calls("Hello", None).content == "Hello"


@pytest.mark.parametrize("name", names())
def test_every_name_alone(name):
    assert issubclass(ParserManager.get_parser(name), FormatParser)


def test_names_that_the_managers_have():
    reasoning = (
        "deepseek_r1 deepseek_v3 granite qwen3 hunyuan_a13b mistral glm45 holo2 kimi_k2 minimax_m2 olmo3 ernie45 gptoss"
    )
    tools = (
        "hermes mistral llama3_json llama4_json llama4_pythonic pythonic granite granite-20b-fc internlm jamba "
        "phi4_mini_json qwen3_coder xlam kimi_k2 minimax deepseek_v3"
    )
    assert set(reasoning.split()) <= set(ReasoningParserManager.list_registered())
    assert set(tools.split()) <= set(ToolParserManager.list_registered())


def test_two_names():
    cls = ParserManager.get_parser("hermes", "deepseek_r1")
    assert cls.format.name == "hermes+deepseek_r1"
    parser = cls(Tokenizer())
    assert parser.parse('why</think>a<tool_call>{"name": "f"}</tool_call>')[:2] == ("why", "a")
    assert ParserManager.get_parser(reasoning_parser_name="deepseek_r1")(Tokenizer()).parse("a</think>b") == (
        "a",
        "b",
        None,
    )
    assert ParserManager.get_parser() is None


@pytest.mark.parametrize(
    ("tools", "reasoning"),
    [("hermes+qwen3", None), ("hermes+qwen3", "hermes+qwen3"), ("FILE", None), ("FILE", "FILE"), ("hermes", "FILE")],
)
def test_two_names_and_files_as_in_the_catalogue(tmp_path, tools, reasoning):
    file = tmp_path / "mine.json"
    file.write_text(named("hermes+qwen3").to_json())
    tools, reasoning = (str(file) if name == "FILE" else name for name in (tools, reasoning))
    raw = '<think>\nwhy</think>a<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    thoughts, content, calls = ParserManager.get_parser(tools, reasoning)(Tokenizer()).parse(raw)
    assert (thoughts, content, [(call.name, call.arguments) for call in calls]) == ("why", "a", [("f", "{}")])
    tool_parser = ToolParserManager.get_tool_parser(tools)(Tokenizer())
    assert tool_parser.extract_tool_calls(raw[raw.index("a<") :], None).content == "a"
    parsed = OutputParser(None, reasoning, tools).parse(raw)
    assert (parsed.reasoning, parsed.content, len(parsed.tool_calls)) == ("why", "a", 1)


def test_reasoning_of_two_names_alone():
    raw = "<think>\nwhy</think>a<tool_call>"
    reasoning = ReasoningParserManager.get_reasoning_parser("hermes+qwen3")(Tokenizer())
    assert reasoning.extract_reasoning(raw, None) == ("why", "a<tool_call>")
    parsed = OutputParser(None, "hermes+qwen3").parse(raw)
    assert (parsed.reasoning, parsed.content) == ("why", "a<tool_call>")


def test_a_file_that_is_missing():
    with pytest.raises(FormatError) as error:
        ToolParserManager.get_tool_parser("nope.json")
    assert str(error.value) == "nope.json: No such file or directory"


# -- registering ---------------------------------------------------------------------------------------------------


def test_as_a_decorator():
    @ToolParserManager.register_module("mine")
    class Decorated(Tools):
        pass

    assert ToolParserManager.get_tool_parser("mine") is Decorated
    assert "mine" in ToolParserManager.list_registered()
    assert ToolParserManager.list_registered() == sorted(ToolParserManager.list_registered())
    assert ReasoningParserManager.registered("mine") is None


def test_at_once_under_several_names_or_its_own():
    assert ReasoningParserManager.register_module(["a", "b"], module=Reasoning) is Reasoning
    ReasoningParserManager.register_module(module=Reasoning)
    for name in ("a", "b", "Reasoning"):
        assert ReasoningParserManager.get_reasoning_parser(name) is Reasoning


@pytest.mark.parametrize("name", ["mine", "hermes", "qwen25"])
def test_a_name_is_taken_once(name):
    if name == "mine":
        ToolParserManager.register_module(name, module=Tools)
    with pytest.raises(ValueError, match=f"^tool parser '{name}' exists already; register it with force=True"):
        ToolParserManager.register_module(name, module=Tools)
    ToolParserManager.register_module(name, force=True, module=Tools)
    assert ToolParserManager.get_tool_parser(name) is Tools


@pytest.mark.parametrize(
    ("module", "error"),
    [
        (Reasoning, "'x': Reasoning is no tool parser: it has no extract_tool_calls, extract_tool_calls_streaming"),
        (Tools(None), "module: expected a class, got Tools"),
    ],
)
def test_what_cannot_be_registered(module, error):
    with pytest.raises(TypeError) as found:
        ToolParserManager.register_module("x", module=module)
    assert str(found.value) == error


def test_a_decorator_wants_a_class():
    with pytest.raises(TypeError, match=r"^'x': expected a class, got function$"):
        ParserManager.register_module("x")(lambda: None)


def test_registered_halves():
    ToolParserManager.register_module("mine", module=Tools)
    ReasoningParserManager.register_module("mine", module=Reasoning)
    cls = ParserManager.get_parser("mine", "mine")
    assert issubclass(cls, DelegatingParser)
    assert (cls.reasoning_parser_cls, cls.tool_parser_cls) == (Reasoning, Tools)
    assert ParserManager.get_parser("mine").tool_parser_cls is Tools
    assert issubclass(ParserManager.get_parser("hermes", "mine").tool_parser_cls, FormatToolParser)
    assert ParserManager.get_parser("hermes", "mine")(Tokenizer()).extract_reasoning("a", None) == ("r", "a")


def test_older_methods_can_be_registered():
    class Older:
        def __init__(self, tokenizer):
            pass

        def extract_reasoning_content(self, model_output, request):
            return "r", model_output

        def extract_reasoning_content_streaming(self, *args):
            return None

    ReasoningParserManager.register_module("older", module=Older)
    assert ParserManager.get_parser(None, "older")(Tokenizer()).extract_reasoning("a", None) == ("r", "a")
    assert OutputParser(Tokenizer(), "older").parse("a").reasoning == "r"


def test_what_is_registered():
    assert not ParserManager.is_registered("hermes", "qwen3")
    assert not ParserManager.is_registered(None, None)
    ReasoningParserManager.register_module("mine", module=Reasoning)
    assert ParserManager.is_registered("hermes", "mine")
    assert not ParserManager.is_registered("mine", None)
    ParserManager.register_module("mine", module=Mine)
    assert ParserManager.is_registered("mine", None)


def test_a_registered_parser():
    ParserManager.register_module("mine", module=Mine)
    assert ParserManager.get_parser("mine") is Mine
    assert ParserManager.get_parser("mine")(Tokenizer()).parse("<think>a</think>b") == ("a", "b", None)


# -- unknown names -------------------------------------------------------------------------------------------------


def test_unknown_names():
    ToolParserManager.register_module("hermie", module=Tools)
    with pytest.raises(ValueError, match="unknown tool parser 'hermez'") as found:
        ToolParserManager.get_tool_parser("hermez")
    valid = ", ".join(ToolParserManager.list_registered())
    assert str(found.value) == (
        f"unknown tool parser 'hermez'; did you mean 'hermie' or 'hermes'? valid names: {valid}"
    )
    with pytest.raises(ValueError, match=r"^unknown reasoning parser 'zzzzzz'; valid names: apertus, "):
        ReasoningParserManager.get_reasoning_parser("zzzzzz")
    with pytest.raises(ValueError, match=r"^unknown parser 'zzzzzz'; valid names: apertus, "):
        ParserManager.get_parser("zzzzzz")
    with pytest.raises(ValueError, match=r"^unknown tool parser 'qwen3'; "):
        ParserManager.get_parser("qwen3", "qwen3")
    assert not issubclass(UnknownFormatError, TypeError)
