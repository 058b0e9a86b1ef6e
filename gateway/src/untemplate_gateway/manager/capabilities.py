"""The abilities of a model, and the evidence for them.

* The chat template's behaviour comes first, then the certificate against it, then the catalogue and ``config.json``.
* Every answer has its evidence: one sentence for each thing that was examined. No model makes these functions raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from untemplate._internal.output_parser import OutputParser
from untemplate.format import Format
from untemplate.formats._registry import model_type_of_architecture
from untemplate.selection import Selection, Tried, select, suggested
from untemplate.templates import ChatTemplate, TemplateError
from untemplate.templates._history import template_needs

from .checkpoint import Checkpoint, CheckpointError, open_checkpoint, without_weights

_ASKED: Final = [{"role": "user", "content": "Hi"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCapabilities:
    """The abilities of a model, and the evidence for them."""

    family: str = "unknown"
    """The type in ``config.json`` (``qwen3``), GGUF's architecture, or the format's name."""
    supports_thinking: bool = False
    supports_tools: bool = False
    default_enable_thinking: bool = True
    """True if the model thinks unless a request switches that off."""
    reasoning_parser: str | None = None
    """The catalogue's name, or the name of the inferred format; ``None`` if the model has no reasoning."""
    tool_call_parser: str | None = None
    chat_template: str | None = None
    """The source of the template that prompts are rendered with."""
    evidence: tuple[str, ...] = ()
    """One sentence for each thing that was examined."""

    def to_dict(self) -> dict[str, Any]:
        """Return the abilities as JSON values, without the template."""
        found = asdict(self) | {"evidence": list(self.evidence)}
        del found["chat_template"]
        return found


def detect_capabilities(
    model: str | Checkpoint | None = None,
    config_json: Mapping[str, Any] | None = None,
    template: ChatTemplate | str | None = None,
    *,
    selection: Selection | None = None,
) -> ModelCapabilities:
    """Return the abilities of a model.

    Args:
        model: hub id, folder, GGUF file, or a `Checkpoint`.
        config_json: its ``config.json``, if that is not in the folder.
        template: a chat template to use instead of the model's own: anything that ``ChatTemplate.load`` takes.
        selection: the result of `select`, if it was called before.
    """
    evidence: list[str] = []
    checkpoint = _checkpoint(model)
    config = dict(config_json) if config_json is not None else {} if checkpoint is None else checkpoint.config
    identifier = (checkpoint.repo or checkpoint.name) if checkpoint is not None else model
    kind = model_type_of(checkpoint, config)
    if kind:
        where = "the GGUF file" if checkpoint is not None and checkpoint.kind == "gguf" else "config.json"
        evidence.append(f"{where} gives its type as {kind}")
    found = _template(template if template is not None else model if checkpoint is None else checkpoint.path, evidence)
    if selection is None:
        selection = _selected(identifier if isinstance(identifier, str) else None, found, kind)
    chosen, fmt = selection.chosen, selection.format
    evidence.append(f"format {chosen.name}: {chosen.remark or chosen.source}")
    parser = OutputParser.from_format(fmt)
    thinks = parser.has_reasoning and _thinks(selection, found, fmt, evidence)
    calls = parser.has_tools and _calls(selection, evidence)
    default = thinks and _thinks_by_default(found, parser, evidence)
    reasoning, tools = _names(selection)
    return ModelCapabilities(
        family=kind or _family(selection),
        supports_thinking=thinks,
        supports_tools=calls,
        default_enable_thinking=default,
        reasoning_parser=reasoning if thinks else None,
        tool_call_parser=tools if parser.has_tools else None,
        chat_template=None if found is None else found.source,
        evidence=tuple(evidence),
    )


def model_type_of(checkpoint: Checkpoint | None, config: Mapping[str, Any] | None = None) -> str:
    """Return the model type as ``config.json`` spells it; ``""`` if it is unknown."""
    kind = (config or {}).get("model_type")
    if not isinstance(kind, str):
        kind = "" if checkpoint is None else checkpoint.family
    return model_type_of_architecture(kind)


def _checkpoint(model: str | Checkpoint | None) -> Checkpoint | None:
    if model is None or isinstance(model, Checkpoint):
        return model
    try:
        return open_checkpoint(model)
    except CheckpointError:
        found = without_weights(Path(model))
        return found if found.config else None


def _template(source: Any, evidence: list[str]) -> ChatTemplate | None:
    if source is None or isinstance(source, ChatTemplate):
        return source
    try:
        return ChatTemplate.load(source)
    except TemplateError as error:
        evidence.append(f"no chat template: {error}")
        return None


def _selected(identifier: str | None, template: ChatTemplate | None, kind: str) -> Selection:
    if template is None:
        return select_by_name(identifier, kind)
    return select(identifier, template=template, model_type=kind or None)


def select_by_name(identifier: str | None, kind: str) -> Selection:
    """Return the catalogue's suggestion by id and type alone, for models without a template; otherwise passthrough.
    (`select` would ask the hub for a template.)
    """
    for name, fmt, why in suggested(identifier, kind or None):
        tried = Tried("catalogue", name, fmt, None, f"{why}; there is no template to certify it against")
        return Selection(tried, (tried,), f"no chat template; catalogue {name!r} is used, uncertified: {why}")
    passthrough = select(enforce="passthrough").chosen
    tried = replace(passthrough, source="passthrough", remark="everything is content")
    return Selection(tried, (tried,), "no chat template, and no known type or name: everything is content")


def _family(selection: Selection) -> str:
    known = selection.source in ("catalogue", "enforced") and selection.chosen.name != "passthrough"
    return selection.chosen.name if known else "unknown"


def _thinks(selection: Selection, template: ChatTemplate | None, fmt: Format, evidence: list[str]) -> bool:
    certificate = selection.certificate
    if certificate is not None and certificate.capabilities.get("reasoning") == "yes":
        evidence.append("its template writes reasoning, and it is read back")
        return True
    if template is None:
        evidence.append("there is no template to show reasoning: the format has markers for it")
        return True
    if fmt.reasoning is None:
        evidence.append("its template writes no reasoning")
        return False
    markers = [m.text.strip() for m in (fmt.reasoning.open, fmt.reasoning.close) if m is not None]
    text = "\n".join(template.literals)
    shown = [marker for marker in markers if marker in text]
    if shown:
        evidence.append(f"its template knows {shown[0]}, though it writes no reasoning of earlier turns")
        return True
    evidence.append("its template knows no reasoning: it does not contain the markers of its format")
    return False


def _calls(selection: Selection, evidence: list[str]) -> bool:
    certificate = selection.certificate
    found = None if certificate is None else certificate.capabilities.get("calls")
    if found == "no":
        evidence.append("its template renders no tool calls: --chat-template can give it one that does")
        return False
    evidence.append(
        {
            "yes": "its template writes tool calls, and they are read back",
            "failed": "its template writes tool calls that are not all read back",
        }.get(found or "", "there is no template to show tool calls: the format has them")
    )
    return True


def _thinks_by_default(template: ChatTemplate | None, parser: OutputParser, evidence: list[str]) -> bool:
    """True if a prompt without a setting for reasoning opens it, or if there is no template."""
    if template is None:
        return True
    try:
        plain = template.render(_ASKED, add_generation_prompt=True)
        if parser.stream(prompt=plain).in_reasoning:
            evidence.append("its prompt opens reasoning")
            return True
        for switch in template_needs(template).switches:
            settings: list[dict[str, Any]] = [{switch: True}, {switch: False}]
            on, off = (template.render(_ASKED, add_generation_prompt=True, **setting) for setting in settings)
            if on != off and plain in (on, off):
                state = "on" if plain == on else "off"
                evidence.append(f"{switch} turns thinking on and off; it is {state} by default")
                return plain == on
    except TemplateError as error:
        evidence.append(f"its template does not render one question: {error}")
    return True


def _names(selection: Selection) -> tuple[str | None, str | None]:
    """Return the names of the reasoning parser and the tool parser (``hermes+qwen3``: calls, then reasoning)."""
    tools, plus, reasoning = selection.chosen.name.partition("+")
    return reasoning if plus else tools, tools
