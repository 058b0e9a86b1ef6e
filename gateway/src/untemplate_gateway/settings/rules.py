"""The rules between settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from untemplate.errors import SettingsError, close_names, did_you_mean
from untemplate.formats import named, names
from untemplate.policy import strict_from_environment

if TYPE_CHECKING:
    from .declarations import Settings

ENVIRONMENT: Final = "UNTEMPLATE_"
"""Prefix of all variables."""
HIDDEN: Final = "***"
"""Stands for a secret."""
_NOT_FOR_VLLM: Final = {
    "reasoning_parser": "reasoning_parser",
    "tool_parser": "tool_parser",
    "tool_call_parser": "tool_parser",
    "enable_auto_tool_choice": "",
}
"""Options of vLLM's server that its engine does not take → the setting to use instead."""


def check(settings: Settings) -> None:
    """Check rules that concern several fields.

    Raises:
        SettingsError: a rule is broken.
    """
    _check_upstream(settings)
    _check_server(settings)
    _check_parsers(settings)
    _check_models(settings)
    for name in settings.vllm.extra:
        if name in _NOT_FOR_VLLM:
            meant = _NOT_FOR_VLLM[name]
            hint = f"; use {meant} (--{meant.replace('_', '-')})" if meant else ""
            raise SettingsError(f"vllm.extra: {name} is not an engine argument{hint}")
    if "trust_remote_code" in settings.vllm.extra:  # a pulled model would inherit it
        raise SettingsError("vllm.extra: trust_remote_code has a setting of its own (--vllm-trust-remote-code)")
    try:
        settings.output_policy()
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _check_upstream(settings: Settings) -> None:
    if settings.upstream and settings.upstream_chat:
        raise SettingsError("upstream and upstream_chat exclude each other")
    urls = [("upstream", settings.upstream), ("upstream_chat", settings.upstream_chat)]
    urls += [("upstream_replicas", url) for url in settings.upstream_replicas]
    if settings.upstream_replicas and not (settings.upstream or settings.upstream_chat):
        raise SettingsError("upstream_replicas: needs upstream or upstream_chat")
    for name, url in urls:
        if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
            raise SettingsError(f"{name}: {without_password(url)!r} is not a URL like http://localhost:8001/v1")


def _check_models(settings: Settings) -> None:
    """Check the tables of several models: names are unique, and fallbacks exist."""
    if not settings.models:
        return
    for name in ("model", "name", "upstream", "upstream_chat"):
        if getattr(settings, name):
            raise SettingsError(f"{name} and [models] exclude each other: move it into a table [models.NAME]")
    taken: dict[str, str] = dict.fromkeys(settings.models, "a model")
    for model, table in settings.models.items():
        for alias in table.aliases:
            if alias in taken:
                raise SettingsError(f"models.{model}.aliases: {alias!r} is already {taken[alias]}")
            taken[alias] = f"an alias of {model!r}"
        for other in table.fallbacks:
            if other not in settings.models or other == model:
                problem = "names the model itself" if other == model else f"no model {other!r} is declared"
                valid = ", ".join(one for one in settings.models if one != model)
                raise SettingsError(f"models.{model}.fallbacks: {problem}; valid names: {valid or 'none'}")


def _check_server(settings: Settings) -> None:
    if settings.root_path and not settings.root_path.startswith("/"):
        raise SettingsError(f"root_path: {settings.root_path!r} does not begin with /")
    if settings.tls_key and not settings.tls_cert:
        raise SettingsError("tls_key: needs tls_cert")
    if any(not key for key in settings.api_keys):
        raise SettingsError("api_keys: a key must not be empty")
    for name in ("key_requests_per_minute", "key_tokens_per_minute", "key_concurrent_requests"):
        if getattr(settings, name) and not settings.api_keys:
            raise SettingsError(f"{name}: needs API keys (--api-key-file, UNTEMPLATE_API_KEY)")
    if settings.log_raw and not settings.log_raw_consent:
        raise SettingsError(
            "log_raw: raw outputs contain user data; confirm that your users agreed: log_raw_consent "
            "(--log-raw-consent)"
        )


def _check_parsers(settings: Settings) -> None:
    try:
        strict_from_environment()
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if settings.enforce_parser and (settings.reasoning_parser or settings.tool_parser):
        raise SettingsError("enforce_parser cannot be combined with reasoning_parser or tool_parser")
    if settings.enforce_parser and settings.parser_backend == "vllm":
        raise SettingsError(
            "enforce_parser names a format of untemplate; vLLM's parsers are named by reasoning_parser and tool_parser"
        )
    if settings.enforce_parser:
        try:
            named(settings.enforce_parser, files=True)
        except ValueError as error:
            raise SettingsError(f"enforce_parser: {error}") from None
    for name, kind in (("reasoning_parser", "reasoning"), ("tool_parser", "tool")):
        value = getattr(settings, name)
        if settings.parser_backend == "untemplate" and value and value not in names(kind):  # type: ignore[arg-type]
            near = nearest(value, dict.fromkeys(names(kind)))  # type: ignore[arg-type]
            raise SettingsError(f"{name}: {value!r} is not a format{near}")


def without_password(text: str) -> str:
    """Return a text, without the password if it is a URL that has one."""
    return re.sub(r"(?<=://)[^/?#]*@", f"{HIDDEN}@", text)


_REMOVED: Final = {"memory_budget": "max_loaded bounds the number of loaded models instead"}
"""Settings of earlier versions → what there is instead."""


def nearest(name: str, valid: Mapping[str, Any]) -> str:
    """Return the end of an error for an unknown name: what replaced it, the most similar valid name, or all of them."""
    removed = _REMOVED.get(name.removeprefix(ENVIRONMENT).lower())
    if removed:
        return f", which was removed: {removed}"
    return did_you_mean(close_names(name, valid, 1)) or f"; valid names: {', '.join(sorted(valid))}"
