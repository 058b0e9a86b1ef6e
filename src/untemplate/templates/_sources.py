"""Finds and reads the chat template of a model.

A source is recognised in this order: text with Jinja's delimiters is the template itself; an existing file or folder is
read according to its content; ``owner/name`` is downloaded from the hub. Anything missing, broken or unreachable is a
`TemplateError` that names the file, package or repository.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from .._internal.installed import install_command
from .._internal.log import logger
from ..errors import TemplateError, TemplateLimitError
from ._gguf_file import Gguf, GgufError, control_tokens, read_gguf

__all__ = ["Source", "read"]

_log = logger()

_MAX_TEXT: Final = 4_000_000
_MAX_JSON: Final = 64_000_000
_JINJA: Final = re.compile(r"\{[{%#]")
_GGUF_TEMPLATE: Final = "tokenizer.chat_template"
_HUB_ID: Final = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_FILES: Final = (
    "chat_template.jinja",
    "chat_template.json",
    "additional_chat_templates/*.jinja",
    "processor_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "generation_config.json",
)
_WITHOUT_TEMPLATE: Final = ("special_tokens_map.json", "generation_config.json")


@dataclass(slots=True)
class Source:
    """A model's template, its named templates, and its tokens."""

    source: str
    name: str | None = None
    named: dict[str, str] = field(default_factory=dict)
    tokens: Tokens = field(default_factory=lambda: Tokens())


@dataclass(slots=True)
class Tokens:
    """The tokens of a model, as far as its files list them."""

    special: dict[str, str] = field(default_factory=dict)
    """The special tokens that have a name (``eos_token``)."""
    added: dict[int, str] = field(default_factory=dict)
    """All tokens that the tokenizer has added, by id."""
    end: str = ""
    """The token that ends an output by the model's configuration, if the tokenizer names none."""


def read(source: str | os.PathLike[str]) -> Source:
    """Find and read a template; see `ChatTemplate.load`.

    Raises:
        TemplateError: there is no template, or it cannot be read.
        TypeError: ``source`` is neither text nor a path.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"a template is loaded from a str or a path, not {type(source).__name__}")
    if isinstance(source, str) and ("\n" in source or _JINJA.search(source)):
        if not _JINJA.search(source):
            raise TemplateError("not a template: the text has no Jinja in it")
        return Source(source)
    text = os.fspath(source)
    if not text.strip():
        raise TemplateError("not a template: it is empty")
    found = _on_disk(Path(source))
    if found is not None:
        return found
    if isinstance(source, str) and _HUB_ID.fullmatch(text):
        return _hub(text)
    raise TemplateError("not a template, and no such file, folder or hub id", name=text[:200])


def _on_disk(path: Path) -> Source | None:
    """Return the template of a file or folder; None if the path does not exist."""
    try:
        if path.is_dir():
            return _folder(path, str(path))
        return _file(path) if path.exists() else None
    except OSError as error:
        raise TemplateError(f"cannot be read: {error.strerror or error}", name=str(path)) from None
    except ValueError as error:
        if isinstance(error, TemplateError):
            raise
        # The path holds a null byte.
        raise TemplateError(f"not a template, a file or a hub id ({error})") from None


def _file(path: Path) -> Source:
    name = str(path)
    if path.suffix == ".json":
        content = _json(path)
        templates = _templates(content.get("chat_template"), name)
        if not templates:
            raise TemplateError("has no chat_template", name=name)
        if path.name == "chat_template.json":
            return _source(templates, name, _folder_tokens(path.parent))
        return _source(templates, name, Tokens(_tokens(content), _added_of(content)))
    with path.open("rb") as file:
        magic = file.read(4)
    return _gguf(path) if magic == b"GGUF" or path.suffix == ".gguf" else Source(_text(path), name)


_CONFIGURATIONS: Final = ("tokenizer_config.json", "processor_config.json", "chat_template.json")
"""Files with a ``chat_template``; a later one replaces the templates of those before it, as in transformers."""


def _folder(folder: Path, name: str) -> Source:
    """Read a model's folder. Separate files replace templates in configuration files, as in transformers. A broken
    configuration matters only if no file has a template."""
    templates: dict[str, str] = {}
    default = ""
    problems: list[TemplateError] = []
    for path in (folder / file for file in _CONFIGURATIONS):
        try:
            found = _templates(_json(path).get("chat_template"), str(path)) if path.is_file() else {}
        except TemplateError as error:
            problems.append(error)
            continue
        templates |= found
        default = path.name if "default" in found else default
    for path in sorted(folder.glob("additional_chat_templates/*.jinja")):
        templates[path.stem] = _text(path)
    own = folder / "chat_template.jinja"
    if own.is_file():
        templates["default"], default = _text(own), own.name
    if templates:
        for problem in problems:
            _log.warning(f"{problem}; the chat template is read from {default or 'another file'}")
        return _source(templates, f"{name}/{default}" if default else name, _folder_tokens(folder))
    if problems:
        raise problems[0]
    return _folder_of_gguf(folder, name)


def _folder_of_gguf(folder: Path, name: str) -> Source:
    """Read the template of the GGUF files in a folder: parts of one model, or copies of it, have the same one."""
    found: list[Source] = []
    for path in sorted(folder.glob("*.gguf")):
        try:
            found.append(_gguf(path))
        except TemplateError as problem:
            if not str(problem).endswith(_NO_TEMPLATE):  # further parts, and projectors, have none
                raise
    if not found:
        files = ", ".join(file for file in _FILES if file not in _WITHOUT_TEMPLATE)
        raise TemplateError(f"{_NO_TEMPLATE}: none of {files}, *.gguf", name=name)
    other = next((one for one in found if (one.source, one.named) != (found[0].source, found[0].named)), None)
    if other is not None:
        both = " and ".join(Path(one.name or "").name for one in (found[0], other))
        raise TemplateError(f"has GGUF files with different chat templates: {both}; name one of the files", name=name)
    return found[0]


_NO_TEMPLATE: Final = "has no chat template"


def _source(templates: dict[str, str], name: str, tokens: Tokens) -> Source:
    default = templates.pop("default", None)
    if default is None:
        if "tool_use" not in templates:
            names = ", ".join(sorted(templates))
            raise TemplateError(f"has no default template; its templates are: {names}", name=name)
        default = templates["tool_use"]
    return Source(default, name, templates, tokens)


def _templates(value: Any, name: str) -> dict[str, str]:
    """Return the templates in ``chat_template`` by name: configuration files hold one, a list or a dict of them."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, list):
        value = {one.get("name"): one.get("template") for one in value if isinstance(one, dict)}
    if not isinstance(value, dict) or not all(isinstance(s, str) for pair in value.items() for s in pair):
        raise TemplateError("chat_template is neither a template nor a list of named templates", name=name)
    return dict(value)


def _tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens, which are strings or ``{"content": …}``."""
    tokens = {}
    for key, value in config.items():
        if key.endswith("_token"):
            content = value.get("content") if isinstance(value, dict) else value
            if isinstance(content, str):
                tokens[key] = content
    return tokens


def _folder_tokens(folder: Path) -> Tokens:
    tokens = Tokens()
    for path in (folder / name for name in ("special_tokens_map.json", "tokenizer_config.json")):
        try:
            content = _json(path) if path.is_file() else {}
        except TemplateError as problem:
            _log.warning(f"{problem}; its special tokens are not known")
            continue
        tokens.special |= _tokens(content)
        tokens.added |= _added_of(content)
    tokens.added = tokens.added or _added_of_tokenizer(folder / "tokenizer.json")
    if not tokens.special.get("eos_token"):
        tokens.end = next((tokens.added[number] for number in _end_ids(folder) if number in tokens.added), "")
    return tokens


def _added_of(config: Mapping[str, Any]) -> dict[int, str]:
    """Return the added tokens of a ``tokenizer_config.json`` by id."""
    found = config.get("added_tokens_decoder")
    added = {}
    for number, token in found.items() if isinstance(found, dict) else ():
        content = token.get("content") if isinstance(token, dict) else None
        if isinstance(content, str) and number.isdecimal():
            added[int(number)] = content
    return added


class _Token(msgspec.Struct):
    id: int
    content: str


class _Added(msgspec.Struct):
    """The part of a ``tokenizer.json`` that lists added tokens."""

    added_tokens: list[_Token] = []


def _added_of_tokenizer(path: Path) -> dict[int, str]:
    """Return the added tokens of a ``tokenizer.json`` by id; none if there is no such file, or it is another one."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_JSON:
            return {}
        return {token.id: token.content for token in msgspec.json.decode(path.read_bytes(), type=_Added).added_tokens}
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return {}


def _end_ids(folder: Path) -> list[int]:
    """Return the ids of the tokens that end an output, as the configuration lists them."""
    for name in ("generation_config.json", "config.json"):
        try:
            found = _json(folder / name).get("eos_token_id")
        except (OSError, TemplateError):
            continue
        numbers = found if isinstance(found, list) else [found]
        if ends := [number for number in numbers if type(number) is int]:
            return ends
    return []


def _text(path: Path) -> str:
    size = path.stat().st_size
    if size > _MAX_TEXT:
        raise TemplateLimitError(f"the template is too long: {size} bytes, at most {_MAX_TEXT}", name=str(path))
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise TemplateError("not a template: not UTF-8 text", name=str(path)) from None


def _json(path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    if size > _MAX_JSON:
        raise TemplateLimitError(f"the file is too long: {size} bytes, at most {_MAX_JSON}", name=str(path))
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise TemplateError(f"not JSON: {error}", name=str(path)) from None
    if not isinstance(content, dict):
        raise TemplateError("not a JSON object", name=str(path))
    return content


def _gguf(path: Path) -> Source:
    try:
        file = read_gguf(path)
        templates = _gguf_templates(file, str(path))
        tokens = Tokens(_gguf_tokens(file), control_tokens(file))
    except GgufError as error:
        problem = str(error).removeprefix(f"{path}: ")
        raise TemplateError(f"not a GGUF file that can be read: {problem}", name=str(path)) from None
    if not templates:
        raise TemplateError(_NO_TEMPLATE, name=str(path))
    return _source(templates, str(path), tokens)


def _gguf_templates(file: Gguf, name: str) -> dict[str, str]:
    """Return the templates of a GGUF file by name."""
    templates: dict[str, str] = {}
    for key in file:
        if key == _GGUF_TEMPLATE or key.startswith(f"{_GGUF_TEMPLATE}."):
            size = file.text_size(key)
            if size > _MAX_TEXT:
                raise TemplateLimitError(f"the template is too long: {size} bytes, at most {_MAX_TEXT}", name=name)
            templates[key.removeprefix(_GGUF_TEMPLATE).lstrip(".") or "default"] = str(file[key])
    return templates


def _gguf_tokens(file: Gguf) -> dict[str, str]:
    """Return the special tokens of a GGUF file, which holds their ids."""
    tokens: dict[str, str] = {}
    for key in ("bos", "eos", "unk", "sep", "pad"):
        number = file.get(f"tokenizer.ggml.{key}_token_id", file.get(f"tokenizer.ggml.{key}_token"))
        if isinstance(number, int):
            token = file.item("tokenizer.ggml.tokens", number)
            if token is not None:
                tokens[f"{key}_token"] = token
    return tokens


def _hub(repository: str) -> Source:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        problem = f"reading from the hub needs the package huggingface_hub: {install_command('untemplate', 'hub')}"
        raise TemplateError(problem, name=repository) from None
    try:
        folder = snapshot_download(repository, allow_patterns=list(_FILES))
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise TemplateError(f"no such file or folder, and the hub request failed: {reason}", name=repository) from None
    return _folder(Path(folder), repository)
