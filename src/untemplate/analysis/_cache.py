"""Cache analyses in memory and on disk.

The key is the text of the template, its special tokens and the version of the analysis, so a new version ignores old
entries. A file that is unreadable, cut or unexpected is ignored: the cache never raises. ``UNTEMPLATE_CACHE`` names
the folder; ``0`` or ``off`` disables the cache on disk.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final

from ..format import Format, FormatError
from ._certify import Certificate, FailedCheck
from ._pipeline import Analysis, Prepared, analyze_template
from ._probes import Template
from ._result import AnalysisResult, Hypothesis, MarkerRegistry
from ._traits import Traits

CACHE_VERSION: Final = 14
"""Increase whenever the same template may be analysed differently."""
_KEEP: Final = 256
_memory: OrderedDict[str, Analysis] = OrderedDict()
_lock = threading.Lock()


def analyze(source: Any, *, cache: bool = True, prepared: Prepared | None = None) -> Analysis:
    """Infer what the models of a chat template write.

    Args:
        source: a ``ChatTemplate``, or anything that ``ChatTemplate.load`` takes: template text, a file, a folder, a hub
        id.
        cache: use a cached result, and cache this one.
        prepared: the result of :func:`prepare` for this template.

    Raises:
        untemplate.templates.TemplateError: there is no template, or it cannot be read.
        AnalysisError: the template renders no conversation at all.
        TypeError: ``source`` is something else.
    """
    template = _template(source)
    if not cache:
        return analyze_template(template, prepared)
    key = template.sha256
    with _lock:
        known = _memory.get(key)
        if known is not None:
            _memory.move_to_end(key)
            return known
    found = _read(key)
    if found is None:
        found = analyze_template(template, prepared)
        _write(key, found)
    with _lock:
        _memory[key] = found
        while len(_memory) > _KEEP:
            _memory.popitem(last=False)
    return found


def _template(source: Any) -> Template:
    from ..templates import ChatTemplate

    if isinstance(source, str | os.PathLike):
        return ChatTemplate.load(source)
    if not hasattr(source, "render"):
        raise TypeError(f"template: expected str, a path or ChatTemplate, got {type(source).__name__}: {source!r:.200}")
    template: Template = source
    return template


def clear_memory() -> None:
    """Clear the cache in memory; files are kept."""
    with _lock:
        _memory.clear()


def cache_folder() -> Path | None:
    """Return the cache folder, or ``None`` if the cache is off."""
    named = os.environ.get("UNTEMPLATE_CACHE")
    if named is not None:
        return None if named.strip().lower() in ("", "0", "off", "none", "false") else Path(named)
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "untemplate"
    except RuntimeError:  # there is no home folder
        return None


def _path(key: str) -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / f"analysis-{CACHE_VERSION}" / f"{key}.json"


def _read(key: str) -> Analysis | None:
    path = _path(key)
    if path is None:
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return _restored(data, key)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, FormatError, RecursionError):
        return None


def _write(key: str, analysis: Analysis) -> None:
    path = _path(key)
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(analysis.to_dict(), file, ensure_ascii=False)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except (OSError, ValueError):
        return


def _restored(data: dict[str, Any], key: str) -> Analysis:
    if data["template_sha256"] != key:
        raise ValueError("another template's analysis")
    kept = data["certificate"]
    certificate = Certificate(
        capabilities=dict(kept["capabilities"]),
        score=float(kept["score"]),
        runner_up=str(kept["runner_up"]),
        failed=tuple(FailedCheck(f["check"], f["output"], f["problem"]) for f in kept["failed"]),
        checks=int(kept["checks"]),
        traits=Traits.from_dict(kept["traits"]),
    )
    said = dict(data["result"])
    result = AnalysisResult(
        **{
            **said,
            "markers": MarkerRegistry(**said["markers"]),
            "preserved_tokens": tuple(said["preserved_tokens"]),
        }
    )
    return Analysis(
        format=Format.from_json(json.dumps(data["format"])),
        certificate=certificate,
        result=result,
        log=tuple(data["log"]),
        renders=int(data["renders"]),
        seconds=float(data["seconds"]),
        from_cache=True,
        template_sha256=key,
        hypotheses=tuple(
            Hypothesis(
                Format.from_json(json.dumps(h["format"])), float(h["score"]), str(h["variant"]), tuple(h["sources"])
            )
            for h in data["hypotheses"]
        ),
        example_prompt=str(data["example"]["prompt"]),
        example_output=str(data["example"]["output"]),
    )
