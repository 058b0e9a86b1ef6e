"""Where a chat template is found.

The rule: what a source is, is decided by looking at it, in this order: text with Jinja's delimiters is the template
itself; what exists on disk is read by what it holds; ``owner/name`` is asked of the hub. Whatever is missing, broken or
unreachable is a `TemplateError` that says which file, which package or which repository.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..errors import TemplateError, TemplateLimitError
from ..gguf_file import GgufError, read_gguf

__all__ = ["Source", "read"]

_MAX_TEXT: Final = 4_000_000
_MAX_JSON: Final = 64_000_000
_JINJA: Final = re.compile(r"\{[{%#]")
_HUB_ID: Final = re.compile(r"[\w.-]+/[\w.-]+")
_FILES: Final = (
    "chat_template.jinja",
    "chat_template.json",
    "additional_chat_templates/*.jinja",
    "tokenizer_config.json",
    "special_tokens_map.json",
)


@dataclass(slots=True)
class Source:
    """A template as it was found: the one for every day, the named ones, and the special tokens."""

    source: str
    name: str | None = None
    named: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)


def read(source: str | os.PathLike[str]) -> Source:
    """Finds and reads a template. See `ChatTemplate.load`."""
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"a template is loaded from a str or a path, not {type(source).__name__}")
    if isinstance(source, str) and ("\n" in source or _JINJA.search(source)):
        if not _JINJA.search(source):
            raise TemplateError("not a template: the text has no Jinja in it")
        return Source(source)
    text = os.fspath(source)
    if not text.strip():
        raise TemplateError("not a template: there is nothing in it")
    path = Path(source)
    try:
        if path.is_dir():
            return _folder(path, str(path))
        if path.exists():
            return _file(path)
    except OSError as error:
        raise TemplateError(f"cannot be read: {error.strerror or error}", name=str(path)) from None
    except ValueError as error:  # a null byte in the path
        if isinstance(error, TemplateError):
            raise
        raise TemplateError(f"not a template, a file or a hub id ({error})") from None
    if isinstance(source, str) and _HUB_ID.fullmatch(text):
        return _hub(text)
    raise TemplateError("not a template, and no such file, folder or hub id", name=text[:200])


def _file(path: Path) -> Source:
    name = str(path)
    if path.suffix == ".json":
        content = _json(path)
        templates = _templates(content.get("chat_template"), name)
        if not templates:
            raise TemplateError("has no chat_template", name=name)
        tokens = _tokens(content)
        if path.name == "chat_template.json":
            tokens = _folder_tokens(path.parent)
        return _source(templates, name, tokens)
    with path.open("rb") as file:
        magic = file.read(4)
    return _gguf(path) if magic == b"GGUF" or path.suffix == ".gguf" else Source(_text(path), name)


def _folder(folder: Path, name: str) -> Source:
    """A model's folder. Files of their own come before what ``tokenizer_config.json`` holds, as transformers has it."""
    templates: dict[str, str] = {}
    config = folder / "tokenizer_config.json"
    if config.is_file():
        templates |= _templates(_json(config).get("chat_template"), str(config))
    combined = folder / "chat_template.json"
    if combined.is_file():
        templates |= _templates(_json(combined).get("chat_template"), str(combined))
    for path in sorted(folder.glob("additional_chat_templates/*.jinja")):
        templates[path.stem] = _text(path)
    own = folder / "chat_template.jinja"
    if own.is_file():
        templates["default"] = _text(own)
    if templates:
        return _source(templates, name, _folder_tokens(folder))
    models = sorted(folder.glob("*.gguf"))
    if models:
        return _gguf(models[0])
    raise TemplateError("has no chat template: none of " + ", ".join(_FILES[:-1]) + ", *.gguf", name=name)


def _source(templates: dict[str, str], name: str, tokens: dict[str, str]) -> Source:
    default = templates.pop("default", None)
    if default is None:
        if "tool_use" not in templates:
            names = ", ".join(sorted(templates))
            raise TemplateError(f"has no default template (there are: {names})", name=name)
        default = templates["tool_use"]
    return Source(default, name, templates, tokens)


def _templates(value: Any, name: str) -> dict[str, str]:
    """``chat_template`` as configuration files hold it: a string, a list of named ones, or a dict of them."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, list):
        value = {one.get("name"): one.get("template") for one in value if isinstance(one, dict)}
    if not isinstance(value, dict) or not all(isinstance(s, str) for pair in value.items() for s in pair):
        raise TemplateError("chat_template is neither a template nor a list of named ones", name=name)
    return dict(value)


def _tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Special tokens, which are strings or ``{"content": …}``."""
    tokens = {}
    for key, value in config.items():
        if key.endswith("_token"):
            content = value.get("content") if isinstance(value, dict) else value
            if isinstance(content, str):
                tokens[key] = content
    return tokens


def _folder_tokens(folder: Path) -> dict[str, str]:
    tokens: dict[str, str] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            tokens |= _tokens(_json(folder / name))
    return tokens


def _text(path: Path) -> str:
    size = path.stat().st_size
    if size > _MAX_TEXT:
        raise TemplateLimitError(f"the template is too long: {size} bytes", name=str(path))
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise TemplateError("not a template: not UTF-8 text", name=str(path)) from None


def _json(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MAX_JSON:
        raise TemplateLimitError("the file is too long", name=str(path))
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise TemplateError(f"not JSON: {error}", name=str(path)) from None
    if not isinstance(content, dict):
        raise TemplateError("not a JSON object", name=str(path))
    return content


def _gguf(path: Path) -> Source:
    try:
        fields = read_gguf(path)
        templates: dict[str, str] = {}
        for key in fields:
            if key == "tokenizer.chat_template":
                templates["default"] = str(fields[key])
            elif key.startswith("tokenizer.chat_template."):
                templates[key.removeprefix("tokenizer.chat_template.")] = str(fields[key])
        if not templates:
            raise TemplateError("has no chat template", name=str(path))
        tokens: dict[str, str] = {}
        vocabulary = fields.get("tokenizer.ggml.tokens", [])
        for key in ("bos", "eos", "unk", "sep", "pad"):
            number = fields.get(f"tokenizer.ggml.{key}_token_id", fields.get(f"tokenizer.ggml.{key}_token"))
            if isinstance(number, int) and isinstance(vocabulary, list) and 0 <= number < len(vocabulary):
                tokens[f"{key}_token"] = str(vocabulary[number])
    except GgufError as error:
        problem = str(error).removeprefix(f"{path}: ")
        raise TemplateError(f"not a GGUF file that can be read: {problem}", name=str(path)) from None
    return _source(templates, str(path), tokens)


def _hub(repository: str) -> Source:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        problem = "reading from the hub needs the package huggingface_hub: pip install 'untemplate[hub]'"
        raise TemplateError(problem, name=repository) from None
    try:
        folder = snapshot_download(repository, allow_patterns=list(_FILES))
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise TemplateError(f"no such file or folder, and the hub cannot give it: {reason}", name=repository) from None
    return _folder(Path(folder), repository)
