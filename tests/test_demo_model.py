"""The demonstration model (``demo/``): its package, its template, and its training conversations.

Rules of this module:

* torch is not needed; tests that need ``gguf`` or ``xllamacpp`` are skipped without it.
* The package is the one in the checkout, otherwise the installed one. Without either, all tests are skipped.
* The tests check properties that every version of the model must have, not the figures of its card, which
  ``make demo-model`` measures.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate.templates import ChatTemplate

DEMO = Path(__file__).parent.parent / "demo"
MEGABYTES_6 = 6_000_000
TRAINING = ("words", "everyday", "tools", "asking", "conversations", "chat", "by_hand")


@pytest.fixture(scope="module")
def package() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        if (DEMO / "src").is_dir():
            patch.syspath_prepend(str(DEMO / "src"))
            patch.delitem(sys.modules, "untemplate_demo", raising=False)
        return pytest.importorskip("untemplate_demo")


@pytest.fixture(scope="module")
def training() -> Iterator[SimpleNamespace]:
    """Import the modules that generate the data: programs in one folder, not a package."""
    if not (DEMO / "training").is_dir():
        pytest.skip("not in a checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DEMO / "training"))
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in TRAINING})
        for name in TRAINING:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def parser(package: ModuleType) -> OutputParser:
    return OutputParser.from_template(package.chat_template())


@pytest.fixture(scope="module")
def model(package: ModuleType) -> Path:
    path: Path = package.model_path()
    assert path.exists(), f"{path} is gone: make demo-model"
    return path


def sides(training: SimpleNamespace) -> list[Any]:
    side = training.conversations.Side
    return [
        side(),
        side(everyday=1.0),
        side(values=True),
        side(values=True, tools=True),
        side(values=True, phrasings=True),
    ]


def conversations(training: SimpleNamespace, count: int) -> Iterator[Any]:
    for n in range(count):
        for side in sides(training):
            yield training.conversations.Writer(random.Random(n), side).conversation()


# -- the package


def test_the_template_certifies_whole(parser: OutputParser) -> None:
    certificate = parser.certificate
    assert certificate is not None
    assert certificate.score == 1.0
    assert {name for name, held in certificate.capabilities.items() if held != "yes"} == {"ids"}


def test_the_template_takes_what_clients_send(package: ModuleType) -> None:
    template = ChatTemplate(package.chat_template())
    function = {"name": "f", "parameters": {"type": "object"}}
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": "Hi"},
    ]
    expected = (
        "<|im_start|>system\nBe brief.\n\n"
        '<tools>\n{"name": "f", "parameters": {"type": "object"}}\n</tools><|im_end|>\n'
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    for tool in ({"type": "function", "function": function}, function):
        assert template.render(messages, tools=[tool], add_generation_prompt=True) == expected
    silent = template.render(messages, tools=[function], add_generation_prompt=True, enable_thinking=False)
    assert silent == expected + "<think>\n\n</think>\n\n"


def test_the_card_says_what_it_is() -> None:
    card = DEMO / "MODEL_CARD.md"
    if not card.exists():
        pytest.skip("not in a checkout")
    text = card.read_text(encoding="utf-8")
    assert "demonstration model" in text
    assert "It knows nothing" in text
    for column in (
        "unseen values",
        "unseen tools",
        "unseen phrasings",
        "by hand",
        "cut",
        "greedy",
        "temperature 0.7",
        "tokens per second",
    ):
        assert column in text, f"the evaluation is not in the card: {column}"


def test_the_weights_are_small(model: Path) -> None:
    assert model.stat().st_size <= MEGABYTES_6


def test_the_file_has_all_that_llama_cpp_needs(model: Path, package: ModuleType) -> None:
    gguf = pytest.importorskip("gguf")
    fields = gguf.GGUFReader(model).fields

    def value(name: str) -> Any:
        return fields[name].contents()

    assert value("general.architecture") == "llama"
    assert value("tokenizer.chat_template") == package.chat_template()
    assert value("llama.context_length") == package.CONTEXT_LENGTH
    assert (value("tokenizer.ggml.model"), value("tokenizer.ggml.pre")) == ("gpt2", "smollm")
    tokens = value("tokenizer.ggml.tokens")
    assert tokens[value("tokenizer.ggml.eos_token_id")] == "<|im_end|>"
    assert {"<think>", "</think>", "<tool_call>", "</tool_call>"} <= set(tokens)


# -- the conversations


def test_conversations_are_text_as_the_template_renders_them(package: ModuleType, training: SimpleNamespace) -> None:
    template = ChatTemplate(package.chat_template())
    for conversation in conversations(training, 60):
        *before, last = conversation.messages
        asked = template.render(
            before,
            tools=conversation.tools or None,
            add_generation_prompt=True,
            enable_thinking=conversation.thinking,
        )
        assert training.chat.prompt(conversation) == asked
        if conversation.thinking:
            whole = template.render([*before, last], tools=conversation.tools or None)
            assert training.chat.render(conversation) == whole


def test_conversations_parse_back(parser: OutputParser, training: SimpleNamespace) -> None:
    for conversation in conversations(training, 60):
        last = conversation.messages[-1]
        prompt = training.chat.prompt(conversation)
        written = training.chat.render(conversation).removeprefix(prompt).removesuffix("\n")
        message = parser.parse(written, tools=conversation.tools or None, prompt=prompt)
        assert (message.reasoning or "") == (last["reasoning_content"] if conversation.thinking else "")
        assert (message.content or "") == last["content"]
        calls = [(c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls]
        assert calls == [(c["function"]["name"], c["function"]["arguments"]) for c in last.get("tool_calls", ())]
        assert not message.diagnostics


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [call["function"] for call in message.get("tool_calls", ())]


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    else:
        yield value


def test_calls_fit_their_schemas(training: SimpleNamespace) -> None:
    from untemplate._internal.schemas.validation import validate

    for conversation in [*conversations(training, 60), *training.by_hand.conversations()]:
        schemas = {t["function"]["name"]: t["function"].get("parameters") or {} for t in conversation.tools}
        assert len(schemas) == len(conversation.tools)
        for message in conversation.messages:
            for function in calls_of(message):
                assert not validate(json.dumps(function["arguments"]), schemas[function["name"]])


def test_what_a_call_needs_has_been_said(training: SimpleNamespace) -> None:
    for conversation in [*conversations(training, 200), *training.by_hand.conversations()]:
        said = ""
        for message in conversation.messages:
            said += message["content"] if message["role"] == "user" else ""
            for function in calls_of(message):
                for value in leaves(function["arguments"]):
                    if not isinstance(value, bool):
                        text = value if isinstance(value, str) else json.dumps(value)
                        assert text in said, (said, function)


def test_a_value_keeps_its_capital(training: SimpleNamespace) -> None:
    writers = [training.conversations.Writer(random.Random(n)) for n in range(100)]
    assert {w.user("Leo horoscope", {"sign": "Leo"})["content"] for w in writers} == {"Leo horoscope"}
    assert {w.user("Read it", {"path": "a"})["content"] for w in writers} == {"Read it", "read it"}


def test_what_is_refused_no_tool_could_do(training: SimpleNamespace) -> None:
    for conversation in conversations(training, 200):
        if conversation.kind != "refuses" or not conversation.tools:
            continue
        thought = conversation.messages[-1]["reasoning_content"]
        wanted = thought.removeprefix("The user wants ").split(".")[0].removeprefix("to ")
        names = {t["function"]["name"] for t in conversation.tools}
        assert not names & {wanted.replace(" the ", "_"), wanted.replace("the ", "get_")}, (wanted, names)


def test_conversations_repeat(training: SimpleNamespace) -> None:
    first, second = ([training.chat.render(c) for c in conversations(training, 10)] for _ in range(2))
    assert first == second


def test_the_fence_holds(training: SimpleNamespace) -> None:
    held_out, known = training.words.held_out, training.tools.KNOWN

    def names(held: bool) -> Iterator[str]:
        for n in range(400):
            tool = training.tools.Toolmaker(random.Random(n), held_names=held, everyday=0.5).tool()
            yield tool.name
            for param in tool.params:
                yield from (param.name, *(part.name for part in param.parts))

    for name in names(held=True):
        assert held_out(name), name
        assert name.lower() not in known
    for name in names(held=False):
        assert not held_out(name) or name.lower() in known, name
    invented = [training.words.Words(random.Random(n), held=True).invented() for n in range(200)]
    assert all(held_out(word) for word in invented)


def test_phrasings_of_the_evaluation_are_its_own(training: SimpleNamespace) -> None:
    phrasing = training.asking.phrasing
    for texts in ([*range(5)], [*range(12)]):
        seen, held = ({phrasing(random.Random(n), texts, side) for n in range(200)} for side in (False, True))
        assert seen | held == set(texts)
        assert not seen & held


# -- the model


@pytest.fixture(scope="module")
def engine(model: Path) -> Any:
    xllamacpp = pytest.importorskip("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_ctx = 1024
    params.n_parallel = 1
    params.warmup = False
    params.cpuparams.n_threads = 1
    params.verbosity = -1
    return xllamacpp.Server(params)


def write(engine: Any, prompt: str) -> str:
    answer = engine.handle_completions({"prompt": prompt, "max_tokens": 300, "temperature": 0})
    answer = json.loads(answer) if isinstance(answer, str | bytes) else answer
    text: str = answer["choices"][0]["text"]
    return text


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather in a given city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def test_it_calls_a_tool_and_tells_the_result(engine: Any, package: ModuleType, parser: OutputParser) -> None:
    template = ChatTemplate(package.chat_template())
    messages: list[dict[str, Any]] = [{"role": "user", "content": "What is the weather in Quvarnik?"}]
    prompt = template.render(messages, tools=[WEATHER], add_generation_prompt=True)
    message = parser.parse(write(engine, prompt), tools=[WEATHER], prompt=prompt)
    assert message.reasoning
    assert [(c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls] == [
        ("get_weather", {"city": "Quvarnik"})
    ]
    messages += [
        {"role": "assistant", "content": "", "tool_calls": [c.model_dump() for c in message.tool_calls]},
        {"role": "tool", "content": '{"temperature": 17, "condition": "cloudy"}'},
    ]
    prompt = template.render(messages, tools=[WEATHER], add_generation_prompt=True)
    message = parser.parse(write(engine, prompt), tools=[WEATHER], prompt=prompt)
    assert not message.tool_calls
    assert "17" in (message.content or "")
    assert "cloudy" in (message.content or "")


def test_it_tells_what_the_tour_tells(engine: Any, package: ModuleType, parser: OutputParser) -> None:
    """`make run` shows the tour; many people see it first."""
    from untemplate_gateway.tour import QUESTIONS, WEATHER

    calls = {
        "What is the weather in Rosenheim?": [("get_weather", {"city": "Rosenheim"})],
        "What's the weather in Oslo and Bergen?": [("get_weather", {"city": c}) for c in ("Oslo", "Bergen")],
        "Who are you?": [],
    }
    template = ChatTemplate(package.chat_template())
    tools: list[Any] = [WEATHER]
    for question in QUESTIONS:
        messages = [{"role": "user", "content": question}]
        prompt = template.render(messages, tools=tools, add_generation_prompt=True)
        message = parser.parse(write(engine, prompt), tools=tools, prompt=prompt)
        found = [(c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls]
        assert found == calls[question]


@pytest.mark.parametrize("thinking", [True, False])
def test_it_says_what_it_is(engine: Any, package: ModuleType, parser: OutputParser, thinking: bool) -> None:
    template = ChatTemplate(package.chat_template())
    prompt = template.render(
        [{"role": "user", "content": "Who are you?"}], add_generation_prompt=True, enable_thinking=thinking
    )
    message = parser.parse(write(engine, prompt), prompt=prompt)
    assert bool(message.reasoning) == thinking
    assert "demonstration model" in (message.content or "")
