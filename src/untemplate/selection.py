"""Selection: chooses the Format for a model and records why.

* A name that the operator enforces is used. If it has calls only, the reasoning of the Format that would be chosen
  without it is kept. Servers measure it against the model's own template (`against_template`), and warn of what it does
  not read.
* Otherwise the first Format that certifies against the model's own chat template is used. They are tried in this order:
  the response template shipped with the checkpoint, the catalogue entries that the model's id and type suggest, the
  entries whose calls have the markers that the analysis of the template found, and the analysis.
* Entries that only the markers suggest have the reasoning of the analysis, and must read as much as it does. They are
  preferred to it since they also know what models write and no template shows, such as calls without their opener.
* If none certifies, or there is no chat template to certify against, a warning is logged. Formats that read the calls
  of the template come first. Among them those of the catalogue are preferred, unless another one reads much more. A
  Format from elsewhere needs a score of 0.5 at least; otherwise ``passthrough`` is used.
* A wrong name or path raises. Every other problem is recorded, and the next Format is tried.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ._internal.backends.abilities import bound
from ._internal.backends.recognition import call_markers
from ._internal.log import logger
from ._internal.model_files import document, folder_of, looks_like_path, model_type_of
from .errors import CheckpointError
from .format import Format, FormatError
from .formats import IncompatibleFormatsError, lookup, merge, named
from .formats._registry import writers
from .formats._suggesting import BY_TYPE, suggested

if TYPE_CHECKING:
    from .analysis import Certificate, Prepared
    from .templates import ChatTemplate

__all__ = ["Selection", "Source", "Tried", "select", "suggested"]

_log = logger()

Source = Literal["enforced", "response-template", "catalogue", "analysis", "passthrough"]
"""Origin of a Format that was considered."""

_ENFORCED: Final = "enforced"
_RESPONSE_TEMPLATE: Final = "response-template"
_CATALOGUE: Final = "catalogue"
_ANALYSIS: Final = "analysis"
_PASSTHROUGH: Final = "passthrough"
_MIN_SCORE: Final = 0.5
"""Lowest score with which an uncertified Format is preferred to passthrough."""
_KNOWN: Final = 0.2
"""Greatest difference of scores with which an uncertified catalogue entry is preferred to the analysis."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One Format that was considered."""

    source: Source
    name: str
    format: Format | None
    """``None`` if the source holds no usable Format."""
    certificate: Certificate | None
    """``None`` if there was no chat template to measure it with."""
    remark: str
    """Reason why it was considered, and the outcome."""
    certified: bool = False
    """True if the Format certifies, and with it every part that only the model's type suggests."""

    @property
    def score(self) -> float:
        """Score of the certificate, from 0 to 1; 0 without a certificate."""
        return 0.0 if self.certificate is None else self.certificate.score

    @property
    def reads_calls(self) -> bool:
        """True if calls that the template wrote parsed back."""
        return self.certificate is not None and self.certificate.capabilities.get("calls") == "yes"

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values, without the Format itself."""
        return {
            "source": self.source,
            "name": self.name,
            "score": None if self.certificate is None else round(self.score, 4),
            "certified": self.certified,
            "remark": self.remark,
        }


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen Format, and the evidence for it."""

    chosen: Tried
    tried: tuple[Tried, ...] = ()
    """All Formats that were considered, in order."""
    warning: str = ""
    """Not empty if no Format certified."""
    runner_up: Tried | None = None
    """The best scored of the Formats that were not chosen."""
    template: ChatTemplate | None = None
    """The model's chat template, if one was found."""
    notes: tuple[str, ...] = ()
    """Further remarks, such as a missing chat template."""

    @property
    def format(self) -> Format:
        """The chosen Format."""
        assert self.chosen.format is not None
        return self.chosen.format

    @property
    def certificate(self) -> Certificate | None:
        """Certificate of the chosen Format."""
        return self.chosen.certificate

    @property
    def source(self) -> Source:
        """Source of the chosen Format."""
        return self.chosen.source

    def to_dict(self) -> dict[str, Any]:
        """Return the selection as JSON values."""
        return {
            "chosen": self.chosen.to_dict(),
            "tried": [tried.to_dict() for tried in self.tried],
            "runner_up": None if self.runner_up is None else self.runner_up.to_dict(),
            "warning": self.warning,
            "notes": list(self.notes),
            "format": json.loads(self.format.to_json(indent=None)),
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
        }


def select(
    model: str | os.PathLike[str] | None = None,
    *,
    template: ChatTemplate | str | os.PathLike[str] | None = None,
    enforce: str | None = None,
    reasoning: str | None = None,
    model_type: str | None = None,
    response_template: Mapping[str, Any] | None = None,
) -> Selection:
    """Choose the Format for a model.

    Args:
        model: hub id, local folder or GGUF file. Its chat template is read from it unless ``template`` is given.
        template: the chat template, or anything that ``ChatTemplate.load`` accepts.
        enforce: a name to use, as for :meth:`OutputParser.named`; nothing else is considered.
        reasoning: the name of a reasoning format to use with ``enforce``.
        model_type: as in ``config.json``; read from a folder, or found for the architecture of a GGUF file.
        response_template: the checkpoint's response template; read from a folder's ``tokenizer_config.json``.

    Raises:
        ValueError: ``enforce`` or ``reasoning`` is not a name of the catalogue (the message lists the valid ones), or
            no argument was given.
        CheckpointError: ``model`` is a path that does not exist, or a name that is neither a path nor a hub id and
            matches no entry of the catalogue.
        TemplateError: ``template`` is not a template, nor a file, folder or hub id that has one.
        TypeError: an argument of the wrong type.
    """
    if model is None and template is None and enforce is None:
        raise ValueError("select() needs a model, a template or a name")
    _check_arguments(model, model_type, response_template)
    if isinstance(template, str | os.PathLike):
        from .templates import ChatTemplate

        template = ChatTemplate.load(template)
    if enforce is None and reasoning is None:
        selection = _selected(model, template, model_type, response_template)
        if selection.warning:
            _log.warning("; ".join((selection.warning, *selection.notes)))
        return selection
    selection = _enforced(enforce, reasoning)
    if reasoning is not None or (model is None and template is None) or not _calls_only(selection.format):
        return selection
    return _with_reasoning(selection, _selected(model, template, model_type, response_template))


def _selected(
    model: str | os.PathLike[str] | None,
    template: ChatTemplate | None,
    model_type: str | None,
    response_template: Mapping[str, Any] | None,
) -> Selection:
    """Choose the Format for a model when no name is enforced."""
    notes: list[str] = []
    prepared = _prepared(model if template is None else template, notes)
    folder = folder_of(model)
    tried: list[Tried] = []
    for attempt in _attempts(model, folder, model_type, response_template, prepared, notes):
        tried.append(attempt)
        if attempt.certified:
            second = _second(tried, attempt)
            return Selection(attempt, tuple(tried), "", second, _template_of(prepared), tuple(notes))
    if prepared is None and model is not None and folder is None and not tried and "/" not in os.fspath(model):
        raise CheckpointError(
            f"{os.fspath(model)}: no such file or folder, not a hub id, and no entry of the catalogue matches; "
            "give a chat template or enforce a format"
        )
    found = _uncertified(tried, notes, measured=prepared is not None)
    return replace(found, template=_template_of(prepared))


def _template_of(prepared: Prepared | None) -> ChatTemplate | None:
    from .templates import ChatTemplate

    found = None if prepared is None else prepared.template
    return found if isinstance(found, ChatTemplate) else None


def _enforced(enforce: str | None, reasoning: str | None) -> Selection:
    fmt = named(enforce if enforce is not None else _PASSTHROUGH, reasoning=reasoning, files=True)
    name = enforce if reasoning is None else f"{enforce or _PASSTHROUGH}+{reasoning}"
    return Selection(Tried(_ENFORCED, str(name), fmt, None, "enforced by the operator"))


def _calls_only(fmt: Format) -> bool:
    """True if the Format has calls and no reasoning."""
    return bool(fmt.tools) and fmt.reasoning is None and fmt.channels is None


def _with_reasoning(enforced: Selection, selected: Selection) -> Selection:
    """Return the enforced calls with the reasoning of the Format that was selected, if it has any that fits."""
    found = selected.format
    if found.reasoning is None:
        return enforced
    try:
        fmt = merge(replace(found, tools=()), enforced.format)
    except IncompatibleFormatsError as error:
        return replace(enforced, notes=(str(error),))
    remark = f"enforced by the operator, with the reasoning of {selected.source} {selected.chosen.name!r}"
    fmt = replace(fmt, name=enforced.format.name)
    return replace(enforced, chosen=replace(enforced.chosen, format=fmt, remark=remark))


def _uncertified(tried: list[Tried], notes: list[str], *, measured: bool) -> Selection:
    """Choose if nothing certified: a Format that reads the template's calls, else the best scored one or passthrough.

    A catalogue entry knows spellings that no template shows, so a little less may be measured of it.
    """
    usable = [t for t in tried if t.format is not None and (t.source == _CATALOGUE or t.score >= _MIN_SCORE)]
    best = max(
        usable,
        key=lambda t: (t.reads_calls, t.score + (_KNOWN if t.source == _CATALOGUE else 0.0)),
        default=Tried(_PASSTHROUGH, _PASSTHROUGH, named(_PASSTHROUGH), None, "everything is content"),
    )
    tried = tried if best in tried else [*tried, best]
    reason = best.remark or "nothing could be certified"
    problem = "no format certifies against the model's chat template"
    if not measured:
        broken = any(note.startswith(_BROKEN) for note in notes)
        problem = "the chat template cannot be used" if broken else "there is no chat template"
    warning = f"{problem}; {best.source} {best.name!r} is used: {reason}"
    return Selection(best, tuple(tried), warning, _second(tried, best), notes=tuple(notes))


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
    """Yield the Formats to consider, in order. Each is measured against the template if there is one."""
    shipped = response_template if response_template is not None else _shipped(folder)
    if shipped is not None:
        yield _response_template(shipped, prepared)
    for name, fmt, why in suggested(model, model_type or model_type_of(model)):
        yield _measured(_CATALOGUE, name, fmt, why, prepared)
    if prepared is not None:
        analysed = _analysed(prepared)
        yield from _with_its_markers(analysed, prepared)
        yield analysed
    elif not notes:
        notes.append("no chat template")


def _response_template(shipped: Mapping[str, Any], prepared: Prepared | None) -> Tried:
    try:
        fmt = Format.from_response_template(dict(shipped))
    except (FormatError, TypeError, ValueError) as error:
        return Tried(_RESPONSE_TEMPLATE, _RESPONSE_TEMPLATE, None, None, f"cannot be translated to a Format: {error}")
    return _measured(_RESPONSE_TEMPLATE, fmt.name, fmt, "shipped with the checkpoint", prepared)


def _measured(source: Source, name: str, fmt: Format, why: str, prepared: Prepared | None) -> Tried:
    if prepared is None:
        return Tried(source, name, fmt, None, f"{why}; there is no template to certify it against")
    tried = Tried(source, name, fmt, prepared.certify(fmt), why)
    if why.startswith(BY_TYPE) and (fmt.tools or fmt.channels is not None) and not tried.reads_calls:
        # A type is shared by models that write no calls, or write them in another way.
        return replace(tried, remark=f"{why}; not certified: no call could be measured")
    return _judged(tried)


def _analysed(prepared: Prepared) -> Tried:
    from .analysis import analyze

    analysis = analyze(prepared.template, prepared=prepared)
    certificate = analysis.certificate
    fmt = bound(analysis.format, certificate.capabilities)
    why = f"inferred from the template ({analysis.result.variant or 'no calls'})"
    return _judged(Tried(_ANALYSIS, fmt.name, fmt, certificate, why))


def _with_its_markers(analysed: Tried, prepared: Prepared) -> Iterator[Tried]:
    """Yield the catalogue's calls that have the markers of the analysed ones, with the reasoning of the analysis."""
    inferred = analysed.format
    if inferred is None or inferred.channels is not None:
        return
    why = "its calls have the markers of the template" + ("" if inferred.reasoning is None else "; inferred reasoning")
    for name in writers(call_markers(inferred)):
        try:
            fmt = merge(replace(inferred, tools=()), lookup("tool", name).format)
        except IncompatibleFormatsError:
            continue
        tried = _measured(_CATALOGUE, fmt.name, fmt, why, prepared)
        if tried.certified and tried.score < analysed.score:
            tried = replace(tried, certified=False, remark=f"{tried.remark}; the analysis reads more")
        yield tried


def _judged(tried: Tried) -> Tried:
    """Add the verdict of the certificate to the remark."""
    failed = _failed(tried)
    verdict = f"not certified: {failed}" if failed else "certified"
    assert tried.certificate is not None
    return replace(tried, remark=f"{tried.remark}; {verdict}", certified=tried.certificate.certified)


def _failed(tried: Tried) -> str:
    """Return what the template writes and the Format does not read; empty without a certificate."""
    found = {} if tried.certificate is None else tried.certificate.capabilities
    return ", ".join(ability for ability, outcome in found.items() if outcome == "failed")


def against_template(selection: Selection, template: ChatTemplate | None) -> Selection:
    """Return the choice of an operator with its certificate against the model's own template, and a warning of what it
    does not read. Without a template it stays as it is.
    """
    from .analysis import AnalysisError, prepare
    from .templates import TemplateError

    if template is None:
        return selection
    try:
        certificate = prepare(template).certify(selection.format)
    except (TemplateError, AnalysisError) as error:
        return replace(selection, warning=f"the format cannot be certified against the chat template: {error}")
    tried = _judged(replace(selection.chosen, certificate=certificate))
    failed = _failed(tried)
    warning = f"{tried.name} does not read all that the chat template writes: {failed}" if failed else ""
    return replace(selection, chosen=tried, tried=(tried,), warning=warning)


def _prepared(source: ChatTemplate | str | os.PathLike[str] | None, notes: list[str]) -> Prepared | None:
    """Return the template, rendered and ready to measure with. Without one, add a note and return None."""
    from .analysis import AnalysisError, prepare
    from .templates import ChatTemplate, TemplateError

    if source is None:
        return None
    try:
        template = ChatTemplate.load(source) if isinstance(source, str | os.PathLike) else source
    except TemplateError as error:
        notes.append(f"no usable template: {error}")
        return None
    try:
        return prepare(template)
    except (TemplateError, AnalysisError) as error:
        notes.append(f"{_BROKEN}{error}")
        return None


_BROKEN: Final = "the template is broken: "


# -- The model's own files ----------------------------------------------------------------------------------------


def _check_arguments(
    model: str | os.PathLike[str] | None, model_type: str | None, response_template: Mapping[str, Any] | None
) -> None:
    """Refuse arguments of the wrong type, and a path that does not exist: it cannot be a hub id."""
    for name, value, types in (
        ("model", model, (str, os.PathLike)),
        ("model_type", model_type, (str,)),
        ("response_template", response_template, (Mapping,)),
    ):
        if value is not None and not isinstance(value, types):
            expected = " or ".join(t.__name__ for t in types)
            raise TypeError(f"{name}: expected {expected}, got {type(value).__name__}: {value!r:.200}")
    if model is not None and not os.fspath(model).strip():
        raise ValueError("model: is empty; expected a hub id, a local folder or a GGUF file")
    if model is None or (isinstance(model, str) and not looks_like_path(model)):
        return
    try:
        found = Path(model).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        found = False
    if not found:
        raise CheckpointError(f"{os.fspath(model)}: no such file or folder")


def _shipped(folder: Path | None) -> Mapping[str, Any] | None:
    found = document(folder, "tokenizer_config.json").get("response_template")
    return found if isinstance(found, dict) else None
