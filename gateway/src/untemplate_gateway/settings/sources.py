"""The values of settings: from a file, the environment and flags.

* Flags override the environment, the environment overrides the file, the file overrides the defaults. The source of
  every value is recorded.
* An unknown name or an invalid value is a `SettingsError` that names its source and the valid values.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

import msgspec

from untemplate.errors import SettingsError

from .declarations import LlamaCpp, ModelSettings, Replay, Settings, Vllm
from .fields import BY_PATH, MODEL_TABLE, Field, fields, masked, model_fields
from .naming import ENVIRONMENT, nearest

_KUBERNETES: Final = re.compile(r"UNTEMPLATE_(SERVICE_(HOST|PORT.*)|PORT_\d+_.*)")
_OTHERS: Final = frozenset(
    f"{ENVIRONMENT}{name}" for name in ("CACHE", "LOG", "STRICT_TOOL_CALL", "CONFIG")
)  # variables that the library reads itself, and the name of the settings file


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings, and the source of each value."""

    settings: Settings
    origin: Mapping[str, str]
    """Path (``port``, ``llamacpp.n_ctx``) → ``default``, the file, the variable or the flag."""

    def to_toml(self) -> str:
        """Return the settings as a valid settings file. Each line has its source in a comment; secrets are comments
        only."""
        lines: list[str] = []
        for group, declared in groupby(fields(), lambda one: one.group):
            lines += ["", f"[{group}]"] if group else []
            lines += _lines((f.name, f, f.value(self.settings), f"  # {self.origin[f.path]}") for f in declared)
        for name, table in self.settings.models.items():
            lines += ["", f"[models.{_toml_key(name)}]"]
            lines += _lines(
                (path, BY_PATH[path], BY_PATH[path].value(table.settings), "") for path in sorted(table.given)
            )
            lines += _lines((one.name, one, one.value(table), "") for one in model_fields())
        return "\n".join(lines)


def _lines(found: Iterable[tuple[str, Field, Any, str]]) -> Iterator[str]:
    """Yield a line for each key, setting, value and source."""
    for key, one, value, where in found:
        hidden = "# " if one.secret and value else ""
        yield f"{hidden}{key} = {_toml(masked(one, value))}{where}"


def resolve(
    *,
    file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Resolved:
    """Return the settings from all sources.

    Args:
        file: a TOML file; ``None`` for the one in ``UNTEMPLATE_CONFIG``, if that is set.
        environ: the environment; ``None`` for this process's.
        flags: path → value, for the flags that were given: the text of each, or a list of texts for lists and dicts;
            ``set`` → texts like ``port=80``.

    Raises:
        SettingsError: the file cannot be read, a name is unknown, or a value is invalid.
    """
    variables = os.environ if environ is None else environ
    file = file or variables.get(f"{ENVIRONMENT}CONFIG")
    values: dict[str, Any] = {}
    origin = {one.path: "default" for one in fields()}
    where_from = os.fspath(file) if file else ""
    tree = _read(where_from) if where_from else {}
    tables = tree.pop("models", {})
    if not isinstance(tables, dict):
        raise SettingsError(f"{where_from}: models is a table of tables: [models.NAME]")
    for path, value, where in (
        *_from_file(tree, where_from),
        *_from_environment(variables),
        *_from_flags(flags or {}),
    ):
        values[path] = _converted(BY_PATH[path], value, where)
        origin[path] = where
    models = {name: _model(name, table, values, where_from) for name, table in tables.items()}
    return Resolved(_built(values, models=models), origin)


def _built(values: Mapping[str, Any], **more: Any) -> Settings:
    tree: dict[str, Any] = dict(more)
    for path, value in values.items():
        group, _, name = path.rpartition(".")
        (tree.setdefault(group, {}) if group else tree)[name] = value
    for group, made in (("replay", Replay), ("llamacpp", LlamaCpp), ("vllm", Vllm)):
        if group in tree:
            tree[group] = made(**tree[group])
    if tree.get("api_keys_file"):
        tree["api_keys"] = (*tree.get("api_keys", ()), *_keys(tree["api_keys_file"]))
    return Settings(**tree)


def _keys(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.partition("#")[0].strip() for line in file]
    except (OSError, ValueError) as error:
        raise SettingsError(f"api_keys_file {path}: {_reason(error)}") from None
    keys = [line for line in lines if line]
    if not keys:
        raise SettingsError(f"api_keys_file {path}: contains no key")
    yield from keys


_Found = Iterator[tuple[str, Any, str]]
"""Path, value, and source."""


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: not TOML: {error}") from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path}: {_reason(error)}") from None


def _from_file(tree: Mapping[str, Any], path: str, table: str = "", known: Mapping[str, Field] = BY_PATH) -> _Found:
    """Yield the values of a table: the whole file, or ``[models.NAME]``."""
    groups = {one.group for one in known.values() if one.group != MODEL_TABLE} - {""}
    for key, value in tree.items():
        if key in groups:
            if not isinstance(value, dict):
                raise SettingsError(f"{path}: {table}{key} is a table: [{table}{key}]")
            for name, inner in value.items():
                yield _known(f"{key}.{name}", path, table, known), inner, path
        else:
            yield _known(key, path, table, known), value, path


def _known(key: str, path: str, table: str, known: Mapping[str, Field]) -> str:
    if key in BY_PATH and key not in known:
        raise SettingsError(f"{path}: {table}{key}: {key} belongs to the whole gateway: move it to the top of the file")
    if key not in known:
        raise SettingsError(f"{path}: unknown setting {table + key!r}{nearest(key, known)}")
    return key


# -- Several models -----------------------------------------------------------------------------------------------

_PER_MODEL: Final = ("Model", "Prompt and parsing", "Upstream")
_NOT_OF_A_MODEL: Final = frozenset(("name", "aliases", "any_model_name", "max_loaded"))
_OF_A_MODEL: Final = {
    **{
        path: one
        for path, one in BY_PATH.items()
        if one.group or (one.title in _PER_MODEL and path not in _NOT_OF_A_MODEL)
    },
    **{one.name: one for one in model_fields()},
}
"""Key of a table ``[models.NAME]`` → field."""


def _model(name: str, table: Any, shared: Mapping[str, Any], path: str) -> ModelSettings:
    """Return the settings of one model: those of its table, otherwise those of the file."""
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: models.{name} is a table: [models.{name}]")
    if not name:
        raise SettingsError(f"{path}: the name of a model must not be empty: [models.NAME]")
    values = {path: value for path, value in shared.items() if path in _OF_A_MODEL}
    own: dict[str, Any] = {}
    given = []
    for key, value, where in _from_file(table, path, f"models.{name}.", _OF_A_MODEL):
        one = _OF_A_MODEL[key]
        group = f"models.{name}" if one.group in ("", MODEL_TABLE) else f"models.{name}.{one.group}"
        converted = _converted(replace(one, group=group), value, where)
        if one.group == MODEL_TABLE:
            own[key] = converted
        else:
            values[key] = converted
            given.append(key)
    try:
        return ModelSettings(settings=_built(values, name=name), given=frozenset(given), **own)
    except SettingsError as error:
        raise SettingsError(f"models.{name}: {error}") from None


def _from_environment(environ: Mapping[str, str]) -> _Found:
    known = {variable: one for one in fields() for variable in reversed(one.env)}
    for name in sorted(environ, key=lambda name: known[name].env.index(name) if name in known else 0, reverse=True):
        if not name.startswith(ENVIRONMENT) or name in _OTHERS:
            continue
        value = environ[name]
        # Kubernetes sets such variables in every pod for a Service named "untemplate".
        if _KUBERNETES.fullmatch(name) or (name == f"{ENVIRONMENT}PORT" and value.startswith("tcp://")):
            continue
        if name not in known:
            raise SettingsError(f"{name}: unknown setting{nearest(name, known)}")
        yield known[name].path, value, name


def _from_flags(flags: Mapping[str, Any]) -> _Found:
    for path, value in flags.items():
        if path == "set":
            for text in value:
                name, equals, given = text.partition("=")
                if not equals:
                    raise SettingsError(f"--set {text}: is not NAME=VALUE")
                if name not in BY_PATH:
                    raise SettingsError(f"--set {text}: unknown setting {name!r}{nearest(name, BY_PATH)}")
                yield name, given, f"--set {name}"
        else:
            yield path, value, BY_PATH[path].flag


def _converted(field: Field, value: Any, where: str) -> Any:
    """Return a value as the type of its field. Text is parsed as variables and flags write it."""
    try:
        if isinstance(value, str) and field.is_list:
            value = [part.strip() for part in value.split(",") if part.strip()]
        elif field.is_dict and isinstance(value, str | list):
            value = _pairs(field, value)
        if field.choices and value not in field.choices:
            raise ValueError(f"is not one of: {', '.join(field.choices)}")
        return msgspec.convert(value, field.annotated, strict=not isinstance(value, str))
    except (ValueError, TypeError) as error:
        problem = str(error)
        if isinstance(error, msgspec.ValidationError):
            wanted = re.search(r"`(\w+).*?`( [<>]=? \S+)?", problem)
            problem = f"is not {_WORDS.get(wanted[1], wanted[1])}{wanted[2] or ''}" if wanted else problem
        shown = "" if field.secret else f" {value!r}"
        raise SettingsError(f"{field.path}:{shown} {problem} ({where})") from None


_WORDS: Final = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}


def _pairs(field: Field, value: str | list[str]) -> dict[str, Any]:
    """Return the pairs of texts like ``NAME=VALUE``. One text from a variable holds several, separated by commas, or a
    JSON object.
    """
    if isinstance(value, str):
        if value.lstrip().startswith("{"):
            try:
                return dict(json.loads(value))
            except ValueError as error:
                raise ValueError(f"is not JSON: {error}") from None
        value = [part.strip() for part in value.split(",") if part.strip()]
    pairs: dict[str, Any] = {}
    for text in value:
        name, equals, given = text.partition("=")
        if not name or not (equals or field.name == "aliases"):
            raise ValueError("is not NAME=VALUE")
        pairs[name] = given if field.name in ("aliases", "policy") else _guessed(given)
    return pairs


def _guessed(text: str) -> Any:
    """Return the value of a JSON text; other text is returned unchanged."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml_key(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if value is None:
        return '""'
    return json.dumps(value, ensure_ascii=False)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else json.dumps(key)
