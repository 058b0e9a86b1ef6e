"""The declared settings as a list: the flag, variable, key and group of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec

from .declarations import ModelSettings, Settings
from .naming import ENVIRONMENT, HIDDEN, without_password

MODEL_TABLE: Final = "models.NAME"
"""The tables of the settings file that declare several models."""

_TITLES: Final = {
    "model": "Model",
    "chat_template": "Prompt and parsing",
    "upstream": "Upstream",
    "host": "Server",
    "api_keys_file": "Access",
    "response_store": "Stored responses",
    "max_body_bytes": "Limits",
    "log_format": "Logging and metrics",
    "inspect": "Inspector",
    "replay": "Engine replay",
    "llamacpp": "Engine llamacpp",
    "vllm": "Engine vllm",
}
"""First setting of each group of ``--help`` → the title of the group."""


@dataclass(frozen=True, slots=True)
class Field:
    """One setting: its declaration, and all names derived from it."""

    name: str
    group: str
    """The table of the settings file that contains it (``llamacpp``); ``""`` for the top level."""
    type: Any
    """Its type, without annotations."""
    annotated: Any
    default: Any
    description: str
    secret: bool
    flag: str
    """Its option of ``untemplate serve``; ``""`` if only ``--set`` sets it."""
    metavar: str
    env: tuple[str, ...]
    """The environment variables that set it; the first one is documented."""
    title: str
    """Title of its group in ``--help`` and the documentation."""

    @property
    def path(self) -> str:
        """The field's key in the file: ``port``, ``llamacpp.n_ctx``."""
        return f"{self.group}.{self.name}" if self.group else self.name

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def is_list(self) -> bool:
        return get_origin(self.type) is tuple

    @property
    def is_dict(self) -> bool:
        return get_origin(self.type) is dict

    def value(self, settings: Settings | ModelSettings) -> Any:
        """Return its value in the settings that declare it."""
        group = "" if self.group == MODEL_TABLE else self.group
        return getattr(getattr(settings, group) if group else settings, self.name)


@cache
def fields() -> tuple[Field, ...]:
    """Return all settings in the order of their declaration, those of tables last."""
    return tuple(_fields(Settings, ""))


@cache
def model_fields() -> tuple[Field, ...]:
    """Return the settings that only a table ``[models.NAME]`` has."""
    return tuple(_fields(ModelSettings, MODEL_TABLE, without=("settings", "given")))


def _fields(
    of: type[msgspec.Struct], group: str, title: str = "", without: tuple[str, ...] = ("models",)
) -> Iterator[Field]:
    hints = get_type_hints(of, include_extras=True)
    for declared in msgspec.structs.fields(of):
        if declared.name in without:
            continue
        hint = hints[declared.name]
        title = title if group else _TITLES.get(declared.name, title)
        if isinstance(hint, type):
            yield from _fields(hint, declared.name, title)
            continue
        kind, meta = get_args(hint)
        about = meta.extra
        default = declared.default if declared.default is not msgspec.NODEFAULT else declared.default_factory()
        joined = f"{group}_{declared.name}" if group else declared.name
        variables = (ENVIRONMENT + joined.upper(), *([ENVIRONMENT + about["env"]] if about["env"] else []))
        flag = about["flag"] if about["flag"] != "" else "--" + joined.replace("_", "-")
        yield Field(
            *(declared.name, group, kind, hint, default, meta.description),
            *(about["secret"], flag or "", about["metavar"] or _metavar(kind), variables, title),
        )


def _metavar(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    return {int: "N", float: "X", bool: ""}.get(kind, "NAME")


def masked(field: Field, value: Any) -> Any:
    """Return a value as it may be shown: secrets, and passwords in URLs, are hidden."""
    if field.secret:
        return [HIDDEN] * len(value) if field.is_list else HIDDEN if value else value
    if isinstance(value, tuple):
        return tuple(masked(field, one) for one in value)
    return without_password(value) if isinstance(value, str) else value


BY_PATH: Final = {one.path: one for one in fields()}
"""Path → field."""
