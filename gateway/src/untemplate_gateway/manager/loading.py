"""From settings to loaded models.

    settings ─▶ source (file, hub, upstream) ─▶ preflight ─▶ engine, started ─▶ template ─▶ format ─▶ Model

* Mistakes are reported before an engine is started, as far as possible.
* If a later step fails, an engine that was started is closed.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import logging
import re
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from untemplate._internal.installed import install_command
from untemplate._internal.output_parser import OutputParser
from untemplate.formats import named
from untemplate.selection import Selection
from untemplate.templates import ChatTemplate, TemplateError

from ..engines.base import Engine
from ..settings import Settings, SettingsError
from . import hub
from .capabilities import ModelCapabilities, detect_capabilities, model_type_of
from .checkpoint import Checkpoint, CheckpointError, open_checkpoint, size_text, without_weights
from .choices import (
    PACKAGED,
    choose_engine,
    choose_format,
    known_to_vllm,
    load_template,
    log_choice,
    names_a_format,
    with_tools,
)
from .model import Loader, Model, Report
from .preflight import preflight
from .replaying import replay_models
from .tokenizers import TokenizerError, resolve_tokenizer

_log: Final = logging.getLogger("untemplate.gateway.manager")


def check_model(settings: Settings) -> str:
    """Check what can be checked about a model before it is loaded. Return the kind of its engine.

    Raises:
        SettingsError, CheckpointError: the model cannot be loaded.
    """
    kind = choose_engine(settings)
    if names_a_format(settings):
        choose_format(settings, None)
    load_template(settings)
    if kind not in ("openai", "replay"):
        _installed(kind, settings.model)
    return kind


def loader(settings: Settings) -> Loader:
    """Return the loader for `Manager.load` and `Manager.swap`, for settings that name one model."""

    async def load(report: Report) -> Model:
        models = await load_models(settings, report)
        if len(models) != 1:
            raise SettingsError(f"model: {settings.model} names several models: {', '.join(m.name for m in models)}")
        return models[0]

    return load


async def load_models(settings: Settings, report: Report) -> list[Model]:
    """Return the models that the settings name, with their engines started. Only ``replay`` can have several.

    Raises:
        Exception: as `open_manager`.
    """
    engine = choose_engine(settings)
    if names_a_format(settings):  # reports wrong names now, not after minutes of loading
        choose_format(settings, None)
    if engine == "replay":
        return replay_models(settings)
    return [await _load(settings, engine, report)]


# -- Where the model is -------------------------------------------------------------------------------------------


def locate(name: str, report: Report) -> Checkpoint:
    """Return the model of a name: from disk, from the hub's cache, or downloaded.

    Raises:
        CheckpointError: the file or folder does not exist, or contains no model.
        HubError: the model cannot be downloaded.
    """
    if name in PACKAGED:
        return open_checkpoint(_packaged(name))
    if not hub.is_hub_name(name):
        return open_checkpoint(Path(name).expanduser())
    found = hub.find(name)
    if found is not None:
        return found
    report(f"requesting {name} from the hub")
    plan = hub.plan(name)
    report(f"downloading {len(plan.files)} files, {size_text(plan.size)}")
    return hub.pull(plan)


def _packaged(name: str) -> Path:
    """Return the file of a model that is a Python package.

    Raises:
        CheckpointError: the package is not installed.
    """
    module, remedy = PACKAGED[name]
    found = importlib.util.find_spec(module)  # not imported: one of them would import llm and llama_cpp
    folders = [] if found is None else found.submodule_search_locations or []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise CheckpointError(f"{name}: needs {remedy}")
    return files[0]


# -- Models -------------------------------------------------------------------------------------------------------


async def _load(settings: Settings, kind: str, report: Report) -> Model:
    if kind == "openai":  # the upstream may have to be asked for the name of its model
        return await _started(_openai(settings), settings, report)
    if kind == "vllm" and settings.engine == "auto" and hub.is_hub_name(settings.model):
        kind = await asyncio.to_thread(_kind_on_hub, settings.model)
    _installed(kind, settings.model)
    checkpoint = await asyncio.to_thread(_checked, settings, kind, report)
    return await _started(_engine(settings, kind, checkpoint.path), settings, report, checkpoint)


def _kind_on_hub(name: str) -> str:
    """Return the engine for a repository whose name does not show the kind of its files."""
    found = hub.find(name)
    is_gguf = found.kind == "gguf" if found is not None else bool(hub.plan(name).main)
    return "llamacpp" if is_gguf else "vllm"


def _installed(kind: str, model: str) -> None:
    """Check that the engine's package is installed before anything is downloaded for it.

    Raises:
        SettingsError: the package is not installed.
        CheckpointError: the model does not exist either, which is the more likely mistake.
    """
    if model not in PACKAGED and not hub.is_hub_name(model) and not Path(model).expanduser().exists():
        try:
            named(model)
        except ValueError:
            raise CheckpointError(f"{model}: no such file or folder") from None
        raise CheckpointError(f"{model}: a format, not a model: --enforce-parser {model} names it next to a model")
    if kind == "vllm" and find_spec("vllm") is None:
        raise SettingsError(
            f"model: {model} would run on vLLM, which is not installed: pip install vllm; or name a GGUF model, which "
            "llama.cpp runs, or --upstream URL"
        )
    if kind == "llamacpp" and find_spec("xllamacpp") is None:
        raise SettingsError(f"engine: llamacpp needs xllamacpp: {install_command('untemplate-gateway', 'llamacpp')}")


async def _started(engine: Engine, settings: Settings, report: Report, checkpoint: Checkpoint | None = None) -> Model:
    report(f"starting {engine.kind}")
    try:
        await engine.start()
        return await asyncio.to_thread(_model, settings, engine, checkpoint)
    except BaseException:
        await engine.close()
        raise


def _checked(settings: Settings, kind: str, report: Report) -> Checkpoint:
    """Return the files of the model, after the preflight checks."""
    template = load_template(settings)
    checkpoint = locate(settings.model, report)
    _look(settings, kind, checkpoint, template, report)
    return checkpoint


def _look(settings: Settings, kind: str, checkpoint: Checkpoint, template: ChatTemplate | None, report: Report) -> None:
    """Run the preflight checks and report their results.

    Raises:
        CheckpointError: the model cannot be loaded.
    """
    if settings.preflight == "off":
        return
    context = settings.vllm.max_model_len if kind == "vllm" else settings.llamacpp.n_ctx
    found = preflight(checkpoint, engine=kind, context=context, template=template)
    problems = found.problems(strict=settings.preflight == "strict")
    if problems:
        raise CheckpointError(f"{checkpoint.name}: {'; '.join(problems)} (--preflight off loads it anyway)")
    for check in found.checks:
        if check.verdict == "warning":
            _log.warning("%s: %s: %s", checkpoint.name, check.name, check.detail)
        else:
            report(f"{check.name}: {check.detail}")


def _beside_upstream(name: str) -> Checkpoint | None:
    """Return the files of an upstream's model, as far as they are available. Its weights are not needed."""
    path = Path(name).expanduser()
    try:
        if hub.is_hub_name(name):
            return hub.find(name) or without_weights(hub.fetch_tokenizer(name), name)
        return open_checkpoint(path) if path.exists() else None
    except hub.HubError as error:
        _log.warning("%s", error)
        return None
    except CheckpointError:
        return without_weights(path) if path.is_dir() else None


def _own(checkpoint: Checkpoint) -> ChatTemplate | None:
    try:
        return ChatTemplate.load(checkpoint.path)
    except TemplateError:  # preflight has reported it, and choosing the format will
        return None


def _identified(
    settings: Settings, engine: Engine, checkpoint: Checkpoint | None
) -> tuple[str, tuple[str, ...], str, Checkpoint | None]:
    """Return the name of a model, its aliases, the id by which the catalogue may know it, and its files."""
    if checkpoint is not None:
        return settings.name or checkpoint.name, (), checkpoint.repo or checkpoint.name, checkpoint
    served = str(getattr(engine, "model", ""))  # the upstream's name of its model is often the hub id
    name, identifier = served or settings.model, settings.model or served
    checkpoint = _beside_upstream(identifier)
    given = settings.model if checkpoint is None or not settings.model else checkpoint.name
    if settings.name or given in ("", name, *settings.aliases):
        return settings.name or name, (), identifier, checkpoint
    return name, (given,), identifier, checkpoint


def _model(settings: Settings, engine: Engine, checkpoint: Checkpoint | None) -> Model:
    name, aliases, identifier, checkpoint = _identified(settings, engine, checkpoint)
    own = None if checkpoint is None else _own(checkpoint)
    template = load_template(settings) or own or engine.template()
    if template is None and settings.upstream:
        raise SettingsError(
            f"upstream: no chat template is known for the model {identifier!r}; name one "
            "(--chat-template FILE), or let the upstream render the messages (--upstream-chat URL instead of "
            "--upstream URL)"
        )
    kind = model_type_of(checkpoint, checkpoint.config if checkpoint is not None else None)
    folder = checkpoint.path if checkpoint is not None and checkpoint.kind != "gguf" else None
    selection = choose_format(settings, template, identifier=identifier, model_type=kind, folder=folder)
    generic = None if engine.takes.messages else with_tools(settings, template, selection)
    if generic is not None:
        template, selection = generic
    found = detect_capabilities(checkpoint, template=template, selection=selection)
    # `select` has already logged its own warnings.
    log_choice(name, selection, found, warn=template is None or names_a_format(settings))
    parser = _parser(settings, engine, checkpoint, selection, found)
    engine.expect(selection.format)
    details = {} if checkpoint is None else _details(checkpoint)
    context = getattr(engine, "context_length", None) or (None if checkpoint is None else checkpoint.context_length)
    return Model(
        name=name,
        aliases=aliases,
        engine=engine,
        parser=parser,
        template=template,
        capabilities=found,
        context_length=context,
        longest_token=_longest_token(engine),
        created=int(time.time() if checkpoint is None or not checkpoint.files else _written(checkpoint)),
        details={"format": "", **details, "parser": selection.chosen.name, "engine": engine.kind},
        template_kwargs=settings.chat_template_kwargs,
        neutralize_markers=settings.neutralize_markers,
        generic_tools=generic is not None,
    )


def _parser(
    settings: Settings, engine: Engine, checkpoint: Checkpoint | None, selection: Selection, found: ModelCapabilities
) -> OutputParser:
    if settings.parser_backend == "untemplate":
        return OutputParser.from_format(
            selection.format,
            tokenizer=_vocabulary(engine, checkpoint),
            policy=settings.output_policy(),
        )
    from untemplate.integrations._vllm_parsers import VllmOutputParser

    reasoning = settings.reasoning_parser or known_to_vllm("reasoning", found.reasoning_parser)
    tools = settings.tool_parser or known_to_vllm("tool", found.tool_call_parser)
    try:
        return VllmOutputParser(
            engine.vocabulary(), reasoning, tools, format=selection.format, policy=settings.output_policy()
        )
    except ValueError as error:
        raise SettingsError(f"parser_backend: {error}") from None


def _vocabulary(engine: Engine, checkpoint: Checkpoint | None) -> Any:
    """Return the engine's vocabulary, otherwise that of the model's files; ``None`` to find markers by text alone."""
    found = engine.vocabulary()
    if found is not None or checkpoint is None:
        return found
    if not engine.takes.token_ids:
        return None
    try:
        return resolve_tokenizer(checkpoint)
    except TokenizerError as error:
        _log.warning("%s; markers cannot be distinguished from text that spells them", error)
        return None


def _longest_token(engine: Engine) -> int:
    """Return the most characters that a token of the engine has; a generous guess where they are not known."""
    vocabulary = engine.vocabulary()
    return max(map(len, vocabulary.get_vocab()), default=256) if vocabulary is not None else 256


def _details(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the details of a model, also by the names of Ollama's ``/api/show``."""
    details = {**checkpoint.details(), "digest": _digest(checkpoint), "quantization_level": checkpoint.quantization}
    count = checkpoint.parameters
    if count:
        details["parameter_size"] = f"{count / 1e9:.1f}B" if count >= 1e9 else f"{count / 1e6:.2f}M"
        details["model_info"] = {"general.parameter_count": count}
    if checkpoint.gguf is not None and "general.license" in checkpoint.gguf:
        details["license"] = str(checkpoint.gguf["general.license"])
    return details


def _digest(checkpoint: Checkpoint) -> str:
    """Return an identifier of a model's content: the hub's checksum, else a hash of name, size and time."""
    blob = checkpoint.files[0].resolve().name if checkpoint.files else ""
    if re.fullmatch(r"[0-9a-f]{64}", blob):
        return blob
    facts = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in checkpoint.files]
    return hashlib.sha256(repr((checkpoint.name, facts)).encode()).hexdigest()


def _written(checkpoint: Checkpoint) -> float:
    return max(file.stat().st_mtime for file in checkpoint.files)


# -- Engines ------------------------------------------------------------------------------------------------------


def _engine(settings: Settings, kind: str, model: Path) -> Engine:
    """Return the engine, not started yet."""
    if kind == "llamacpp":
        from ..engines.llamacpp import LlamaCppEngine

        return LlamaCppEngine(model, settings.llamacpp)
    from ..engines.vllm import VllmEngine

    return VllmEngine(str(model), settings.vllm)


def _openai(settings: Settings) -> Engine:
    from ..engines.openai import OpenAIChatEngine, OpenAIEngine

    kind = OpenAIChatEngine if settings.upstream_chat else OpenAIEngine
    options = ("model", "api_key", "connect_timeout", "read_timeout", "retries", "concurrency")
    return kind(
        settings.upstream or settings.upstream_chat,
        wanted=settings.model,
        **{name: getattr(settings, f"upstream_{name}") for name in options},
    )
