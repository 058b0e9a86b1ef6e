"""Selection: which Format for which model, and why.

Rules of this module:

* In order: a name that the operator enforces; then whatever *certifies* against the model's own chat template, tried in
  this order: a response template shipped with the checkpoint, the catalogue entry that model type and id suggest, the
  template's analysis. Then, uncertified and with a warning, the catalogue entry, else what of analysis and
  ``passthrough`` reads more.
* Only a wrong enforced name raises. Everything else that goes wrong is evidence, and the next in line is tried.
* Every choice says what was tried, what came of it, and what came second.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .format import Format, FormatError
from .formats import named
from .formats.registry import Entry, IncompatibleFormatsError, entries

if TYPE_CHECKING:
    from .analysis import Certificate, Prepared
    from .templates import ChatTemplate

__all__ = ["Selection", "Tried", "select", "suggested"]

_log = logging.getLogger("untemplate")

ENFORCED: Final = "enforced"
RESPONSE_TEMPLATE: Final = "response-template"
CATALOGUE: Final = "catalogue"
ANALYSIS: Final = "analysis"
PASSTHROUGH: Final = "passthrough"


@dataclass(frozen=True, slots=True)
class Tried:
    """One Format that was considered."""

    source: str
    """``enforced``, ``response-template``, ``catalogue``, ``analysis`` or ``passthrough``."""
    name: str
    format: Format | None
    certificate: Certificate | None
    remark: str
    """Why it was taken or not."""

    @property
    def score(self) -> float:
        return 0.0 if self.certificate is None else self.certificate.score


@dataclass(frozen=True, slots=True)
class Selection:
    """What was chosen, and on what evidence."""

    chosen: Tried
    tried: tuple[Tried, ...] = ()
    warning: str = ""
    """Not empty where nothing certified."""
    runner_up: Tried | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def format(self) -> Format:
        assert self.chosen.format is not None
        return self.chosen.format

    @property
    def certificate(self) -> Certificate | None:
        return self.chosen.certificate

    @property
    def source(self) -> str:
        return self.chosen.source

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "chosen": _shown(self.chosen),
            "tried": [_shown(t) for t in self.tried],
            "runner_up": None if self.runner_up is None else _shown(self.runner_up),
            "warning": self.warning,
            "notes": list(self.notes),
            "format": json.loads(self.format.to_json(indent=None)),
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
        }


def _shown(tried: Tried) -> dict[str, Any]:
    return {
        "source": tried.source,
        "name": tried.name,
        "score": None if tried.certificate is None else round(tried.score, 4),
        "certified": tried.certificate is not None and tried.certificate.certified,
        "remark": tried.remark,
    }


def select(
    model: str | os.PathLike[str] | None = None,
    *,
    template: Any = None,
    enforce: str | None = None,
    reasoning: str | None = None,
    model_type: str | None = None,
    response_template: Mapping[str, Any] | None = None,
) -> Selection:
    """The Format for a model.

    Args:
        model: hub id, local folder or GGUF file. Its template is read from it where ``template`` is not given.
        template: the chat template, or whatever ``ChatTemplate.load`` takes.
        enforce: a name of the catalogue; nothing else is looked at.
        reasoning: with ``enforce``: the name of the reasoning markers to go with it.
        model_type: as in the model's ``config.json``; read from there if the model is a folder.
        response_template: shipped with the checkpoint; read from a folder's ``tokenizer_config.json``.

    Raises:
        ValueError: ``enforce`` or ``reasoning`` is no name; the message lists the valid ones. Or nothing was given.
    """
    if model is None and template is None and enforce is None:
        raise ValueError("select() needs a model, a template or a name")
    if enforce is not None or reasoning is not None:
        return _enforced(enforce, reasoning)
    notes: list[str] = []
    prepared = _prepared(model if template is None else template, notes)
    folder = _folder(model)
    tried: list[Tried] = []
    for attempt in _attempts(model, folder, model_type, response_template, prepared, notes):
        tried.append(attempt)
        if attempt.certificate is not None and attempt.certificate.certified:
            return Selection(attempt, tuple(tried), "", _second(tried, attempt), tuple(notes))
    return _uncertified(tried, notes)


def _enforced(enforce: str | None, reasoning: str | None) -> Selection:
    fmt = named(enforce if enforce is not None else "passthrough", reasoning=reasoning)
    name = enforce if reasoning is None else f"{enforce or 'passthrough'} with {reasoning}"
    return Selection(Tried(ENFORCED, str(name), fmt, None, "enforced by the operator"))


def _uncertified(tried: list[Tried], notes: list[str]) -> Selection:
    """Nothing certified: the catalogue's entry, else what reads more."""
    usable = [t for t in tried if t.format is not None]
    catalogue = next((t for t in usable if t.source == CATALOGUE), None)
    passthrough = Tried(PASSTHROUGH, PASSTHROUGH, named(PASSTHROUGH), None, "everything is content")
    best = catalogue or max(usable, key=lambda t: t.score, default=passthrough)
    if best is not catalogue and best.score < 0.5:
        best = passthrough
    tried = tried if best in tried else [*tried, best]
    reason = best.remark or "nothing could be certified"
    warning = f"no format certifies against the model's chat template; {best.source} {best.name!r} is used: {reason}"
    _log.warning(warning)
    return Selection(best, tuple(tried), warning, _second(tried, best), tuple(notes))


def _second(tried: list[Tried], chosen: Tried) -> Tried | None:
    others = [t for t in tried if t is not chosen and t.format is not None]
    return max(others, key=lambda t: t.score, default=None)


def _attempts(
    model: str | os.PathLike[str] | None,
    folder: Path | None,
    model_type: str | None,
    response_template: Mapping[str, Any] | None,
    prepared: Prepared | None,
    notes: list[str],
) -> Iterator[Tried]:
    """What is tried, in order, each measured against the template if there is one."""
    shipped = response_template if response_template is not None else _shipped(folder)
    if shipped is not None:
        yield _response_template(shipped, prepared)
    kind = model_type or _model_type(folder)
    for name, fmt, why in suggested(model, kind):
        yield _measured(CATALOGUE, name, fmt, why, prepared)
    if prepared is not None:
        yield _analysed(prepared)
    elif not notes:
        notes.append("no chat template")


def _response_template(shipped: Mapping[str, Any], prepared: Prepared | None) -> Tried:
    try:
        fmt = Format.from_response_template(dict(shipped))
    except (FormatError, TypeError, ValueError) as error:
        return Tried(RESPONSE_TEMPLATE, RESPONSE_TEMPLATE, None, None, f"has no counterpart here: {error}")
    return _measured(RESPONSE_TEMPLATE, fmt.name, fmt, "shipped with the checkpoint", prepared)


def _measured(source: str, name: str, fmt: Format, why: str, prepared: Prepared | None) -> Tried:
    if prepared is None:
        return Tried(source, name, fmt, None, f"{why}; there is no template to certify it against")
    certificate = prepared.certify(fmt)
    failed = [k for k, v in certificate.capabilities.items() if v == "failed"]
    verdict = "certified" if not failed else f"not certified: {', '.join(failed)}"
    return Tried(source, name, fmt, certificate, f"{why}; {verdict}")


def _analysed(prepared: Prepared) -> Tried:
    from .analysis import analyze

    analysis = analyze(prepared.template, prepared=prepared)
    failed = [k for k, v in analysis.certificate.capabilities.items() if v == "failed"]
    verdict = "certified" if not failed else f"not certified: {', '.join(failed)}"
    remark = f"inferred from the template ({analysis.result.variant or 'no calls'}); {verdict}"
    return Tried(ANALYSIS, analysis.format.name, analysis.format, analysis.certificate, remark)


def _prepared(source: Any, notes: list[str]) -> Prepared | None:
    """The template, rendered and ready to measure with; a note where there is none."""
    from .analysis import AnalysisError, prepare
    from .templates import ChatTemplate, TemplateError

    if source is None:
        return None
    try:
        template: ChatTemplate = ChatTemplate.load(source) if isinstance(source, str | os.PathLike) else source
        return prepare(template)
    except (TemplateError, AnalysisError) as error:
        notes.append(f"no usable template: {error}")
        return None


# -- The model's own files ----------------------------------------------------------------------------------------


def _folder(model: str | os.PathLike[str] | None) -> Path | None:
    if model is None:
        return None
    try:
        path = Path(model)
        return path if path.is_dir() else None
    except (OSError, ValueError):
        return None


def _document(folder: Path | None, name: str) -> dict[str, Any]:
    if folder is None:
        return {}
    try:
        data = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _shipped(folder: Path | None) -> Mapping[str, Any] | None:
    found = _document(folder, "tokenizer_config.json").get("response_template")
    return found if isinstance(found, dict) else None


def _model_type(folder: Path | None) -> str | None:
    found = _document(folder, "config.json").get("model_type")
    return found if isinstance(found, str) else None


# -- What the catalogue suggests ----------------------------------------------------------------------------------

_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")
# Model types (``config.json``) that no entry has for a name, and the entries that their models usually write. An id
# that matches an entry is believed before them: Qwen3-Coder is of type ``qwen3_moe``, too.
_TYPES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "tool": {
        "mistral3": ("mistral",),
        "mixtral": ("mistral",),
        "qwen2": ("hermes",),
        "qwen2_moe": ("hermes",),
        "qwen3": ("hermes",),
        "qwen3_moe": ("hermes",),
        "qwen3_next": ("hermes",),
        "qwen3_5": ("qwen3_coder",),
        "qwen3_5_moe": ("qwen3_coder",),
        "mllama": ("llama3_json",),
        "llama4": ("llama4_json", "llama4_pythonic"),
        "gemma3_text": ("pythonic",),
        "glm4_moe": ("glm45",),
        "glm4_moe_lite": ("glm47",),
        "step3_vl": ("step3",),
        "kimi_k25": ("kimi_k2",),
    },
    "reasoning": {
        "qwen3_moe": ("qwen3",),
        "qwen3_5": ("qwen3",),
        "qwen3_5_moe": ("qwen3",),
        "glm4_moe": ("glm45",),
        "glm4_moe_lite": ("glm47",),
        "step3_vl": ("step3",),
    },
}


def suggested(model: str | os.PathLike[str] | None, model_type: str | None) -> Iterator[tuple[str, Format, str]]:
    """(name, Format, why) of the catalogue entries that a model's id and type suggest, the most specific first."""
    tools = _ranked("tool", model, model_type)
    thoughts = _ranked("reasoning", model, model_type)
    given: set[str] = set()
    nothing: list[tuple[Entry | None, str]] = [(None, "")]
    for tool, why in [*tools[:2]] or nothing:
        for thought, why_thought in [*thoughts[:1]] or nothing:
            found = _together(tool, thought)
            if found is None or found[0] in given:
                continue
            given.add(found[0])
            yield found[0], found[1], why or why_thought


def _together(tool: Entry | None, thought: Entry | None) -> tuple[str, Format] | None:
    if tool is None and thought is None:
        return None
    if tool is None or thought is None:
        entry = tool or thought
        assert entry is not None
        return entry.name, entry.format
    try:
        fmt = named(tool.name, reasoning=thought.name)
    except (IncompatibleFormatsError, FormatError):
        return tool.name, tool.format
    return (tool.name if tool.name == thought.name else f"{tool.name}+{thought.name}"), fmt


def _ranked(kind: str, model: str | os.PathLike[str] | None, model_type: str | None) -> list[tuple[Entry, str]]:
    found: list[tuple[int, Entry, str]] = []
    identifier = "" if model is None else os.fspath(model)
    for entry in entries():
        if entry.kind != kind or not entry.verified:
            continue
        best = max(((_specific(identifier, p), p) for p in entry.models), default=(0, ""))
        if best[0]:
            found.append((best[0] + 100, entry, f"{identifier} matches {best[1]}"))
        elif model_type and (
            _same_word(model_type, (entry.name, *entry.aliases)) or entry.name in _TYPES[kind].get(model_type, ())
        ):
            found.append((1, entry, f"model type {model_type}"))
    found.sort(key=lambda f: -f[0])
    return [(entry, why) for _, entry, why in found]


def _specific(identifier: str, pattern: str) -> int:
    """How many characters of a pattern an id matches, in full or by its last part; 0: it does not."""
    if not identifier:
        return 0
    name = identifier.rstrip("/").rpartition("/")[2]
    for text, wanted in ((identifier, pattern), (name, pattern.rpartition("/")[2])):
        if wanted.strip("*") and fnmatchcase(text.lower(), wanted.lower()):
            return len(pattern.replace("*", ""))
    return 0


def _same_word(kind: str, names: tuple[str, ...]) -> bool:
    word = _SEPARATORS.sub("", kind.lower())
    return any(_SEPARATORS.sub("", name.lower()) == word for name in names)
