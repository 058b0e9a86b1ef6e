"""Settings of the gateway: one typed object from a file, the environment and flags.

Rules of this module:

* A field is declared once, with its type, its default, its limits and what it means. The flag ``--max-body-bytes``, the
  variable ``UNTEMPLATE_MAX_BODY_BYTES``, the key of the file and the line of the documentation all come from there.
* Flags go before the environment, the environment before the file, the file before the defaults; of every value it is
  known where it came from.
* A name that does not exist, or a value that cannot be, is a `SettingsError` that says where it stood, and what is
  valid.
* A secret is never printed: not in ``repr``, not in errors, not by ``--show-settings``.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec

from ..errors import SettingsError
from ..formats import names
from ..policy import Policy, typed

__all__ = [
    "ENVIRONMENT",
    "GROUPS",
    "Field",
    "LlamaCpp",
    "Replay",
    "Resolved",
    "Settings",
    "SettingsError",
    "Vllm",
    "fields",
    "resolve",
]

ENVIRONMENT: Final = "UNTEMPLATE_"
"""What variables begin with."""


def _is(
    description: str, *, flag: str = "", metavar: str = "", secret: bool = False, env: str = "", **limits: Any
) -> msgspec.Meta:
    """What a field means. ``flag`` and ``metavar`` where its name does not say them; ``env``: a second variable."""
    about = {"flag": flag, "metavar": metavar, "secret": secret, "env": env}
    return msgspec.Meta(description=description, extra=about, **limits)


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """The engine ``replay``."""

    speed: Annotated[float, _is("tokens per second and request; 0: as fast as they are read", ge=0)] = 40.0
    file: Annotated[str, _is("recorded outputs (JSON lines) instead of the bundled ones", metavar="FILE")] = ""


class LlamaCpp(msgspec.Struct, frozen=True, kw_only=True):
    """The engine ``llamacpp``."""

    n_ctx: Annotated[int, _is("tokens of context of each request; 0: as the model was trained", ge=0)] = 0
    n_parallel: Annotated[int, _is("requests that are decoded together", ge=1)] = 4
    threads: Annotated[
        int, _is("threads of the processor; 0: as many as there are cores, one for a model under 64 MB", ge=0)
    ] = 0
    gpu_layers: Annotated[int, _is("layers that go to the GPU; -1: all", ge=-1)] = -1
    extra: Annotated[
        dict[str, Any],
        _is("any other parameter of llama.cpp, by xllamacpp's name", flag="--llamacpp-arg", metavar="NAME=VALUE"),
    ] = {}


class Vllm(msgspec.Struct, frozen=True, kw_only=True):
    """The engine ``vllm``."""

    dtype: Annotated[str, _is("type of the weights: auto, bfloat16, float16, float32")] = "auto"
    max_model_len: Annotated[int, _is("tokens of context; 0: as the model was trained", ge=0)] = 0
    gpu_memory_utilization: Annotated[float, _is("share of the GPU's memory that vLLM takes", gt=0, le=1)] = 0.9
    enforce_eager: Annotated[bool, _is("no CUDA graphs: starts sooner, runs slower")] = False
    tensor_parallel_size: Annotated[int, _is("GPUs that each layer is spread over", ge=1)] = 1
    trust_remote_code: Annotated[bool, _is("run Python code that comes with the model")] = False
    extra: Annotated[
        dict[str, Any],
        _is("any other engine argument of vLLM, distribution among them", flag="--vllm-arg", metavar="NAME=VALUE"),
    ] = {}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set. Immutable.

    Raises:
        SettingsError: values that exclude each other, or names that do not exist.
    """

    # What is served
    model: Annotated[str, _is("GGUF file, model folder, hub id (org/repo, org/repo:Q4_K_M), demo or replay")] = ""
    engine: Annotated[
        Literal["auto", "llamacpp", "vllm", "openai", "replay"], _is("what runs it; auto: what the model suggests")
    ] = "auto"
    name: Annotated[str, _is("as clients ask for it (default: after the model)")] = ""
    aliases: Annotated[
        dict[str, str],
        _is("further names, each of the only model or of the one behind =", flag="--alias", metavar="NAME[=MODEL]"),
    ] = {}
    any_model_name: Annotated[bool, _is("with one model, take requests for any name")] = False
    preflight: Annotated[
        Literal["on", "strict", "off"], _is("look before loading; strict: a model that may not fit is an error, too")
    ] = "on"

    # How it is rendered and parsed
    chat_template: Annotated[
        str, _is("a template instead of the model's own: a file, or a name of ours", metavar="FILE|NAME")
    ] = ""
    chat_template_kwargs: Annotated[
        dict[str, Any], _is("variables of the template, for every request that does not set them", metavar="NAME=VALUE")
    ] = {}
    enforce_parser: Annotated[str, _is("this format, whatever the model says (`untemplate formats`)")] = ""
    reasoning_parser: Annotated[str, _is("the reasoning markers of this format")] = ""
    tool_parser: Annotated[str, _is("the tool calls of this format", env="TOOL_CALL_PARSER")] = ""
    parser_backend: Annotated[
        Literal["untemplate", "vllm"], _is("whose parsers; vllm: vLLM's own, where it is the engine")
    ] = "untemplate"
    policy: Annotated[dict[str, Any], _is("how unclean output is treated", metavar="NAME=VALUE")] = {}

    # The upstream
    upstream: Annotated[str, _is("an OpenAI-compatible server; its /v1/completions is used", metavar="URL")] = ""
    upstream_chat: Annotated[
        str, _is("the fixing proxy: its /v1/chat/completions is used, and its content parsed again", metavar="URL")
    ] = ""
    upstream_model: Annotated[str, _is("the upstream's name of the model (default: the only one it lists)")] = ""
    upstream_api_key: Annotated[str, _is("sent to the upstream", metavar="KEY", secret=True)] = ""
    upstream_connect_timeout: Annotated[float, _is("seconds until it must have answered the connection", gt=0)] = 5.0
    upstream_read_timeout: Annotated[float, _is("seconds that it may be silent; 0: any time", ge=0)] = 300.0
    upstream_retries: Annotated[int, _is("further attempts, before the first byte only", ge=0)] = 2

    # The server
    host: Annotated[str, _is("address to listen on; 0.0.0.0: all of them", metavar="ADDRESS")] = "127.0.0.1"
    port: Annotated[int, _is("0: any that is free", ge=0, le=65535)] = 8000
    uds: Annotated[str, _is("a Unix socket instead of host and port", metavar="PATH")] = ""
    root_path: Annotated[str, _is("prefix that a reverse proxy has taken off the path", metavar="/PREFIX")] = ""
    api_keys: Annotated[
        tuple[str, ...],
        _is("who has one may ask", flag="--api-key", metavar="KEY", secret=True, env="API_KEY"),
    ] = ()
    api_keys_file: Annotated[str, _is("further keys, one a line; # begins a comment", metavar="FILE")] = ""
    cors_origins: Annotated[
        tuple[str, ...], _is("web pages that may ask; *: all", flag="--cors-origin", metavar="ORIGIN")
    ] = ()
    shutdown_grace: Annotated[float, _is("seconds that running requests get to end", ge=0)] = 30.0

    # Limits
    max_body_bytes: Annotated[int, _is("longest body of a request", ge=1024)] = 32 * 1024 * 1024
    max_messages: Annotated[int, _is("most messages of a request", ge=1)] = 4096
    max_choices: Annotated[int, _is("most choices of a request (n)", ge=1)] = 16
    max_concurrent_requests: Annotated[int, _is("more get a 429; 0: no limit", ge=0)] = 1024
    request_timeout: Annotated[float, _is("seconds of a whole request; 0: any time", ge=0)] = 0.0

    # What it tells
    log_format: Annotated[Literal["text", "json"], _is("for people, or one JSON object a line")] = "text"
    log_level: Annotated[Literal["debug", "info", "warning", "error"], _is("the least that is logged")] = "info"
    log_raw: Annotated[
        str, _is("append raw outputs to this file (JSON lines); they hold what people wrote", metavar="FILE")
    ] = ""
    log_raw_consent: Annotated[bool, _is("the people whose requests these are have agreed to log_raw")] = False
    metrics: Annotated[bool, _is("Prometheus metrics at /metrics")] = True

    replay: Replay = Replay()
    llamacpp: LlamaCpp = LlamaCpp()
    vllm: Vllm = Vllm()

    def __post_init__(self) -> None:
        _check(self)

    def __repr__(self) -> str:
        return f"Settings({self.masked()!r})"

    def output_policy(self) -> Policy:
        """``policy`` as a `Policy`."""
        return _policy(self.policy)

    def masked(self) -> dict[str, Any]:
        """Everything as JSON values, nested as in the file; secrets as ``"***"``."""
        tree: dict[str, Any] = {}
        for one in fields():
            shown = _masked(one, one.value(self))
            branch = tree.setdefault(one.group, {}) if one.group else tree
            branch[one.name] = list(shown) if isinstance(shown, tuple) else shown
        return tree


GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "what is served": ("model", "engine", "name", "aliases", "any_model_name", "preflight"),
    "how it is rendered and parsed": (
        *("chat_template", "chat_template_kwargs", "enforce_parser", "reasoning_parser", "tool_parser"),
        *("parser_backend", "policy"),
    ),
    "an upstream instead of a model": (
        *("upstream", "upstream_chat", "upstream_model", "upstream_api_key", "upstream_connect_timeout"),
        *("upstream_read_timeout", "upstream_retries"),
    ),
    "the server": (
        *("host", "port", "uds", "root_path", "api_keys", "api_keys_file", "cors_origins", "shutdown_grace"),
    ),
    "limits": ("max_body_bytes", "max_messages", "max_choices", "max_concurrent_requests", "request_timeout"),
    "what it tells": ("log_format", "log_level", "log_raw", "log_raw_consent", "metrics"),
    "the engine replay": ("replay",),
    "the engine llamacpp": ("llamacpp",),
    "the engine vllm": ("vllm",),
}
"""Title → fields, as ``--help`` and the documentation show them."""


# -- The fields ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """One setting, as everything that is made from its declaration sees it."""

    name: str
    group: str
    """The table of the file that it stands in (``llamacpp``); ``""``: none."""
    type: Any
    """Without its annotations."""
    annotated: Any
    default: Any
    description: str
    secret: bool
    flag: str
    metavar: str
    env: tuple[str, ...]
    """The variables that set it, the one that is documented first."""

    @property
    def path(self) -> str:
        """Its key in the file: ``port``, ``llamacpp.n_ctx``."""
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

    def value(self, settings: Settings) -> Any:
        return getattr(getattr(settings, self.group) if self.group else settings, self.name)


@cache
def fields() -> tuple[Field, ...]:
    """The settings, in the order of their declaration, those of tables last."""
    return tuple(_fields(Settings, ""))


def _fields(of: type[msgspec.Struct], group: str) -> Iterator[Field]:
    hints = get_type_hints(of, include_extras=True)
    for declared in msgspec.structs.fields(of):
        hint = hints[declared.name]
        if isinstance(hint, type):
            yield from _fields(hint, declared.name)
            continue
        kind, meta = get_args(hint)
        about = meta.extra
        default = declared.default if declared.default is not msgspec.NODEFAULT else declared.default_factory()
        joined = f"{group}_{declared.name}" if group else declared.name
        variables = (ENVIRONMENT + joined.upper(), *([ENVIRONMENT + about["env"]] if about["env"] else []))
        flag = about["flag"] or "--" + joined.replace("_", "-")
        yield Field(
            *(declared.name, group, kind, hint, default, meta.description),
            *(about["secret"], flag, about["metavar"] or _metavar(kind), variables),
        )


def _metavar(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    return {int: "N", float: "X", bool: ""}.get(kind, "NAME")


def _masked(field: Field, value: Any) -> Any:
    if field.secret:
        return [_HIDDEN] * len(value) if field.is_list else _HIDDEN if value else value
    if isinstance(value, str) and "@" in value and "://" in value:  # a URL with a password
        return re.sub(r"(?<=://)[^/@]*@", f"{_HIDDEN}@", value)
    return value


_HIDDEN: Final = "***"


# -- Values -------------------------------------------------------------------------------------------------------

_KUBERNETES: Final = re.compile(r"UNTEMPLATE_(SERVICE_(HOST|PORT.*)|PORT_\d+_.*)")
_OTHERS: Final = frozenset(
    f"{ENVIRONMENT}{name}" for name in ("CACHE", "LOG", "STRICT_TOOL_CALL", "CONFIG")
)  # the library's own, and the file's name


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings, and where each came from."""

    settings: Settings
    origin: Mapping[str, str]
    """Path (``port``, ``llamacpp.n_ctx``) → ``default``, the file, the variable or the flag."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, secrets masked."""
        return {"settings": self.settings.masked(), "from": dict(self.origin)}

    def to_toml(self) -> str:
        """As a file that could be read again, each line with where it came from; secrets as comments."""
        lines: list[str] = []
        group = ""
        for one in fields():
            if one.group != group:
                group = one.group
                lines += ["", f"[{group}]"]
            value = one.value(self.settings)
            text = _toml(_masked(one, value))
            hidden = "# " if one.secret and value else ""
            lines.append(f"{hidden}{one.name} = {text}  # {self.origin[one.path]}")
        return "\n".join(lines)


def resolve(
    *,
    file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Resolved:
    """The settings that hold.

    Args:
        file: a TOML file; ``None``: the one that ``UNTEMPLATE_CONFIG`` names, if any.
        environ: the environment (``None``: this process's).
        flags: path → value, those that were given: text as it was typed, lists of text for lists and dicts.

    Raises:
        SettingsError: a file that cannot be read, an unknown name, or a value that cannot be.
    """
    variables = os.environ if environ is None else environ
    file = file or variables.get(f"{ENVIRONMENT}CONFIG")
    values: dict[str, Any] = {}
    origin = {one.path: "default" for one in fields()}
    sources = [] if file is None else [_from_file(os.fspath(file))]
    for path, value, where in (
        *(found for source in sources for found in source),
        *_from_environment(variables),
        *_from_flags(flags or {}),
    ):
        values[path] = _converted(_BY_PATH[path], value, where)
        origin[path] = where
    settings = _built(values)
    return Resolved(settings, origin)


def _built(values: Mapping[str, Any]) -> Settings:
    tree: dict[str, Any] = {}
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
        raise SettingsError(f"api_keys_file {path}: there is no key in it")
    yield from keys


_Found = Iterator[tuple[str, Any, str]]
"""Path, value, and where it stood."""


def _from_file(path: str) -> _Found:
    try:
        with open(path, "rb") as file:
            tree = tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: not TOML: {error}") from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path}: {_reason(error)}") from None
    groups = {one.group for one in fields()} - {""}
    for key, value in tree.items():
        if key in groups:
            if not isinstance(value, dict):
                raise SettingsError(f"{path}: {key} is a table: [{key}]")
            for name, inner in value.items():
                yield _known(f"{key}.{name}", path), inner, path
        else:
            yield _known(key, path), value, path


def _known(key: str, path: str) -> str:
    if key not in _BY_PATH:
        raise SettingsError(f"{path}: unknown setting {key!r}{_nearest(key, _BY_PATH)}")
    return key


def _from_environment(environ: Mapping[str, str]) -> _Found:
    known = {variable: one for one in fields() for variable in reversed(one.env)}
    for name in sorted(environ, key=lambda name: known[name].env.index(name) if name in known else 0, reverse=True):
        if not name.startswith(ENVIRONMENT) or name in _OTHERS:
            continue
        value = environ[name]
        # Kubernetes tells every pod of a Service named "untemplate" about it in just these variables.
        if _KUBERNETES.fullmatch(name) or (name == f"{ENVIRONMENT}PORT" and value.startswith("tcp://")):
            continue
        if name not in known:
            raise SettingsError(f"{name}: unknown setting{_nearest(name, known)}")
        yield known[name].path, value, name


def _from_flags(flags: Mapping[str, Any]) -> _Found:
    for path, value in flags.items():
        yield path, value, _BY_PATH[path].flag


def _nearest(name: str, valid: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, valid, n=1)
    return f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(sorted(valid))}"


def _converted(field: Field, value: Any, where: str) -> Any:
    """A value as what its field is; text is read as it stands in variables and flags."""
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
    """``NAME=VALUE`` each; of a variable: several, with commas between, or a JSON object."""
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
    """JSON where it is JSON, else text."""
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


# -- What must hold between fields --------------------------------------------------------------------------------

_NOT_FOR_VLLM: Final = {
    "reasoning_parser": "reasoning_parser",
    "tool_parser": "tool_parser",
    "tool_call_parser": "tool_parser",
    "enable_auto_tool_choice": "",
}
"""What is no engine argument, and crashes vLLM (spec 1) → the setting that is meant."""


def _check(settings: Settings) -> None:
    if settings.upstream and settings.upstream_chat:
        raise SettingsError("upstream and upstream_chat exclude each other")
    for name in ("upstream", "upstream_chat"):
        url = getattr(settings, name)
        if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
            raise SettingsError(f"{name}: {_masked(_BY_PATH[name], url)!r} is not a URL like http://localhost:8001/v1")
    if settings.root_path and not settings.root_path.startswith("/"):
        raise SettingsError(f"root_path: {settings.root_path!r} does not begin with /")
    if settings.log_raw and not settings.log_raw_consent:
        raise SettingsError(
            "log_raw: raw outputs hold what people wrote; log_raw_consent (--log-raw-consent) says that they agreed"
        )
    if settings.enforce_parser and (settings.reasoning_parser or settings.tool_parser):
        raise SettingsError("enforce_parser excludes reasoning_parser and tool_parser")
    if settings.enforce_parser and settings.parser_backend == "vllm":
        raise SettingsError("enforce_parser names a format of ours; vLLM's are reasoning_parser and tool_parser")
    for name, kind in (("enforce_parser", None), ("reasoning_parser", "reasoning"), ("tool_parser", "tool")):
        value = getattr(settings, name)
        if settings.parser_backend == "untemplate" and value and value not in names(kind):  # type: ignore[arg-type]
            near = _nearest(value, dict.fromkeys(names(kind)))  # type: ignore[arg-type]
            raise SettingsError(f"{name}: {value!r} is no format{near}")
    if any(not key for key in settings.api_keys):
        raise SettingsError("api_keys: an empty key")
    for name in settings.vllm.extra:
        if name in _NOT_FOR_VLLM:
            meant = _NOT_FOR_VLLM[name]
            hint = f"; {meant} (--{meant.replace('_', '-')}) is meant" if meant else ""
            raise SettingsError(f"vllm.extra: {name} is no engine argument{hint}")
    try:
        _policy(settings.policy)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _policy(values: Mapping[str, Any]) -> Policy:
    return Policy.from_mapping({name: typed(name, value) for name, value in values.items()})


_BY_PATH: Final = {one.path: one for one in fields()}
