"""Settings of the gateway: their declarations, and the rules between them. `settings_sources` reads them.

* A field is declared once, with its type, default, limits and description. The flag ``--max-body-bytes``, the variable
  ``UNTEMPLATE_MAX_BODY_BYTES``, the key of the file and the row of the documentation are made from the declaration.
* Secrets are never printed: not in ``repr``, not in errors, not by ``--show-settings``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec

from ..errors import SettingsError
from ..formats import named, names
from ..policy import Policy, strict_from_environment, typed

__all__ = [
    "BY_PATH",
    "ENVIRONMENT",
    "GROUPS",
    "MODEL_TABLE",
    "Field",
    "LlamaCpp",
    "ModelSettings",
    "Replay",
    "Settings",
    "SettingsError",
    "Vllm",
    "fields",
    "masked",
    "model_fields",
    "nearest",
]

ENVIRONMENT: Final = "UNTEMPLATE_"
"""Prefix of all variables."""
MODEL_TABLE: Final = "models.NAME"
"""The tables of the settings file that declare several models."""


def _is(
    description: str, *, flag: str = "", metavar: str = "", secret: bool = False, env: str = "", **limits: Any
) -> msgspec.Meta:
    """Describe a field. ``flag`` and ``metavar`` override those made from its name; ``env`` is a second variable."""
    about = {"flag": flag, "metavar": metavar, "secret": secret, "env": env}
    return msgspec.Meta(description=description, extra=about, **limits)


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the engine ``replay``."""

    speed: Annotated[float, _is("tokens per second of each request; 0: as fast as they are read", ge=0)] = 40.0
    file: Annotated[
        str, _is("file of recorded outputs (JSON lines) to use instead of the bundled ones", metavar="FILE")
    ] = ""


class LlamaCpp(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the engine ``llamacpp``."""

    n_ctx: Annotated[
        int, _is("tokens of context, shared by the requests that run; 0: as the model was trained", ge=0)
    ] = 0
    n_parallel: Annotated[int, _is("requests that are decoded together", ge=1)] = 4
    threads: Annotated[int, _is("processor threads; 0: one per core, or one for a model under 64 MB", ge=0)] = 0
    gpu_layers: Annotated[int, _is("layers to put on the GPU; -1: all", ge=-1)] = -1
    mmproj: Annotated[
        str, _is("projector (GGUF) that turns images into tokens, for models that see", metavar="FILE")
    ] = ""
    extra: Annotated[
        dict[str, Any],
        _is("any other llama.cpp parameter, by xllamacpp's name", flag="--llamacpp-arg", metavar="NAME=VALUE"),
    ] = {}


class Vllm(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the engine ``vllm``."""

    dtype: Annotated[str, _is("type of the weights: auto, bfloat16, float16, float32")] = "auto"
    max_model_len: Annotated[int, _is("tokens of context; 0: as the model was trained", ge=0)] = 0
    gpu_memory_utilization: Annotated[float, _is("share of the GPU's memory that vLLM uses", gt=0, le=1)] = 0.9
    enforce_eager: Annotated[bool, _is("run without CUDA graphs: starts sooner, runs slower")] = False
    tensor_parallel_size: Annotated[int, _is("GPUs over which each layer is spread", ge=1)] = 1
    trust_remote_code: Annotated[bool, _is("run Python code that comes with the model")] = False
    extra: Annotated[
        dict[str, Any],
        _is("any other vLLM engine argument, including distribution", flag="--vllm-arg", metavar="NAME=VALUE"),
    ] = {}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of the gateway. Immutable.

    Raises:
        SettingsError: values that exclude each other, or names that do not exist.
    """

    # Model
    model: Annotated[str, _is("GGUF file, folder, hub id (org/repo, org/repo:Q4_K_M), demo, smollm2 or replay")] = ""
    engine: Annotated[
        Literal["auto", "llamacpp", "vllm", "openai", "replay"],
        _is("engine that runs the model; auto: chosen from the model"),
    ] = "auto"
    name: Annotated[str, _is("name by which clients ask for the model (default: taken from the model)")] = ""
    aliases: Annotated[
        dict[str, str],
        _is("further name for the model (with NAME=MODEL: for that one)", flag="--alias", metavar="NAME[=MODEL]"),
    ] = {}
    any_model_name: Annotated[bool, _is("answer requests for any model name, if there is only one model")] = False
    preflight: Annotated[
        Literal["on", "strict", "off"],
        _is("checks before loading; strict: a model that may not fit into memory is an error"),
    ] = "on"
    memory_budget: Annotated[
        int, _is("bytes that the models of this machine may need together, as estimated; 0: no limit", ge=0)
    ] = 0

    # Prompt and parsing
    chat_template: Annotated[
        str,
        _is(
            "chat template to use instead of the model's own: a file, or the name of a bundled one", metavar="FILE|NAME"
        ),
    ] = ""
    chat_template_kwargs: Annotated[
        dict[str, Any], _is("template variables for requests that do not set them", metavar="NAME=VALUE")
    ] = {}
    enforce_parser: Annotated[
        str,
        _is("format to parse by: a name, CALLS+REASONING or FILE.json; one of calls only keeps the selected reasoning"),
    ] = ""
    reasoning_parser: Annotated[str, _is("format whose reasoning markers are used")] = ""
    tool_parser: Annotated[str, _is("format whose tool calls are used", env="TOOL_CALL_PARSER")] = ""
    generic_tools: Annotated[bool, _is("show tools to models whose template knows none, in the system message")] = True
    parser_backend: Annotated[
        Literal["untemplate", "vllm"], _is("source of the parsers; vllm: vLLM's own, if it is the engine")
    ] = "untemplate"
    policy: Annotated[dict[str, Any], _is("treatment of malformed output", metavar="NAME=VALUE")] = {}

    # Upstream
    upstream: Annotated[str, _is("OpenAI-compatible server whose /v1/completions generates", metavar="URL")] = ""
    upstream_chat: Annotated[
        str,
        _is(
            "OpenAI-compatible server whose /v1/chat/completions generates; its content is parsed again", metavar="URL"
        ),
    ] = ""
    upstream_replicas: Annotated[
        tuple[str, ...],
        _is(
            "further server with the same model as the upstream (repeatable); the least busy healthy one generates",
            flag="--upstream-replica",
            metavar="URL",
        ),
    ] = ()
    upstream_model: Annotated[
        str,
        _is("name of the model at the upstream (default: the model if it lists that, or the only one)"),
    ] = ""
    upstream_api_key: Annotated[
        str,
        _is(
            "API key that is sent to the upstream; better set by UNTEMPLATE_UPSTREAM_API_KEY, which process lists do "
            "not show",
            metavar="KEY",
            secret=True,
        ),
    ] = ""
    upstream_connect_timeout: Annotated[float, _is("connection timeout in seconds", gt=0)] = 5.0
    upstream_read_timeout: Annotated[float, _is("seconds that the upstream may be silent; 0: no limit", ge=0)] = 300.0
    upstream_retries: Annotated[int, _is("further attempts of a request, before its first byte only", ge=0)] = 2

    # Server
    host: Annotated[str, _is("address to listen on; 0.0.0.0: all addresses", metavar="ADDRESS")] = "127.0.0.1"
    port: Annotated[int, _is("port to listen on; 0: any free one", ge=0, le=65535)] = 8000
    uds: Annotated[str, _is("Unix socket to listen on, instead of host and port", metavar="PATH")] = ""
    root_path: Annotated[str, _is("path prefix that a reverse proxy removes", metavar="/PREFIX")] = ""
    tls_cert: Annotated[str, _is("TLS certificate chain (PEM); the server then speaks https", metavar="FILE")] = ""
    tls_key: Annotated[str, _is("private key of the certificate (PEM), if it is a file of its own", metavar="FILE")] = (
        ""
    )
    workers: Annotated[
        int, _is("processes that serve the port, each with all models; limits hold for each of them", ge=1)
    ] = 1
    shutdown_grace: Annotated[float, _is("seconds that running requests get to finish at shutdown", ge=0)] = 30.0

    # Access
    api_keys_file: Annotated[
        str,
        _is(
            "file of API keys that clients may send, one a line; # begins a comment",
            flag="--api-key-file",
            metavar="FILE",
            env="API_KEY_FILE",
        ),
    ] = ""
    api_keys: Annotated[
        tuple[str, ...],
        _is(
            "API key that clients must send (repeatable); better set by --api-key-file or UNTEMPLATE_API_KEY, which "
            "process lists do not show",
            flag="--api-key",
            metavar="KEY",
            secret=True,
            env="API_KEY",
        ),
    ] = ()
    insecure: Annotated[bool, _is("allow a public address without API keys: anyone who reaches it can use it")] = False
    allowed_hosts: Annotated[
        tuple[str, ...],
        _is(
            "host name by which clients may address the server (repeatable); without API keys on a loopback address, "
            "only loopback names are allowed",
            flag="--allowed-host",
            metavar="NAME",
        ),
    ] = ()
    cors_origins: Annotated[
        tuple[str, ...], _is("browser origins allowed by CORS (* = any)", flag="--cors-origin", metavar="ORIGIN")
    ] = ()
    allow_pull: Annotated[
        bool, _is("allow clients to download models from the hub and load them (/api/pull of Ollama's API)")
    ] = False
    allow_delete: Annotated[bool, _is("allow clients to unload and delete models (/api/delete of Ollama's API)")] = (
        False
    )
    allow_copy: Annotated[
        bool, _is("allow clients to give models further names, for all clients (/api/copy of Ollama's API)")
    ] = False
    key_requests_per_minute: Annotated[int, _is("requests per minute for each API key; 0: no limit", ge=0)] = 0
    key_tokens_per_minute: Annotated[
        int, _is("tokens per minute for each API key, prompts included; 0: no limit", ge=0)
    ] = 0
    key_concurrent_requests: Annotated[int, _is("concurrent requests for each API key; 0: no limit", ge=0)] = 0

    # Stored responses
    response_store: Annotated[
        str,
        _is(
            "stored responses of /v1/responses: an SQLite file, or a redis:// URL; empty: they are kept in memory",
            metavar="FILE|URL",
        ),
    ] = ""
    response_ttl: Annotated[
        float, _is("seconds that a response is kept for later requests; 0: none is stored", ge=0)
    ] = 3600.0
    response_store_bytes: Annotated[int, _is("bytes of all stored responses; the oldest go first", ge=0)] = (
        64 * 1024 * 1024
    )

    # Limits
    max_body_bytes: Annotated[int, _is("bytes of a request body", ge=1024)] = 32 * 1024 * 1024
    unknown_fields: Annotated[
        Literal["ignore", "refuse"],
        _is("treatment of request fields that the gateway does not know; ignored ones are logged once"),
    ] = "ignore"
    max_messages: Annotated[int, _is("messages of a request, and as many tools and tool calls", ge=1)] = 4096
    max_choices: Annotated[int, _is("choices of a request (n)", ge=1)] = 16
    max_concurrent_requests: Annotated[int, _is("concurrent requests; further ones get a 429; 0: no limit", ge=0)] = (
        1024
    )
    max_connections: Annotated[int, _is("open connections, with and without a request; 0: no limit", ge=0)] = 4096
    request_timeout: Annotated[float, _is("seconds that a request may take in all; 0: no limit", ge=0)] = 0.0
    head_timeout: Annotated[float, _is("seconds in which the head of a request must arrive; 0: no limit", ge=0)] = 10.0
    body_timeout: Annotated[
        float, _is("seconds in which the body must arrive, plus one for every 64 KB; 0: no limit", ge=0)
    ] = 30.0
    write_timeout: Annotated[float, _is("seconds that a client may leave a response unread; 0: no limit", ge=0)] = 60.0
    ping_seconds: Annotated[
        float,
        _is("seconds of silence after which a stream sends a comment, for proxies; 0: never", ge=0),
    ] = 15.0
    keep_alive_seconds: Annotated[float, _is("seconds that an idle connection stays open", gt=0)] = 5.0
    client_grammars: Annotated[
        Literal["auto", "on", "off"],
        _is(
            "take grammars of clients, though a short one can stop an engine; auto: on a loopback address without API "
            "keys only"
        ),
    ] = "auto"
    grammar_timeout: Annotated[float, _is("seconds that compiling a grammar may take", gt=0)] = 10.0

    # Logging and metrics
    log_format: Annotated[Literal["text", "json"], _is("log format: text for people, or one JSON object a line")] = (
        "text"
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], _is("lowest level that is logged")] = "info"
    log_raw: Annotated[
        str, _is("file to which raw outputs are appended (JSON lines); they contain user data", metavar="FILE")
    ] = ""
    log_raw_consent: Annotated[bool, _is("confirm that your users agreed to raw logging")] = False
    traces: Annotated[
        bool, _is("OpenTelemetry traces of requests, sent as the variables OTEL_EXPORTER_OTLP_... configure")
    ] = False
    metrics: Annotated[bool, _is("Prometheus metrics at /metrics")] = True

    # Inspector
    inspect: Annotated[
        Literal["auto", "on", "off"],
        _is("pages at /inspect that show how outputs are parsed; auto: on a loopback address only"),
    ] = "auto"
    inspect_outputs: Annotated[
        int,
        _is(
            "served outputs to keep in memory for the inspector (64 MB at most); they contain user data; 0: none",
            ge=0,
            le=10_000,
        ),
    ] = 0

    replay: Replay = Replay()
    llamacpp: LlamaCpp = LlamaCpp()
    vllm: Vllm = Vllm()

    models: dict[str, ModelSettings] = {}
    """Several models by name, from the tables ``[models.NAME]`` of the file."""

    def __post_init__(self) -> None:
        _check(self)

    def __repr__(self) -> str:
        return f"Settings({self.masked()!r})"

    def output_policy(self) -> Policy:
        """Return the ``policy`` setting as a `Policy`."""
        return _policy(self.policy)

    def masked(self) -> dict[str, Any]:
        """Return all settings as JSON values, nested as in the file; secrets are ``"***"``."""
        tree: dict[str, Any] = {}
        for one in fields():
            shown = masked(one, one.value(self))
            branch = tree.setdefault(one.group, {}) if one.group else tree
            branch[one.name] = list(shown) if isinstance(shown, tuple) else shown
        if self.models:
            tree["models"] = {name: model.masked() for name, model in self.models.items()}
        return tree


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One of several models: a table ``[models.NAME]`` of the settings file."""

    settings: Settings
    """The settings for this model: those of the table, otherwise those of the file."""
    load: Annotated[
        Literal["start", "demand"], _is("when the model is loaded: at the start, or by its first request")
    ] = "start"
    idle_unload: Annotated[float, _is("seconds without a request after which it is unloaded; 0: never", ge=0)] = 0.0
    fallbacks: Annotated[tuple[str, ...], _is("models that answer instead if this one cannot", metavar="NAME")] = ()
    aliases: Annotated[tuple[str, ...], _is("further names of the model", metavar="NAME")] = ()
    given: frozenset[str] = frozenset()
    """Paths of the settings that the table contains."""

    def masked(self) -> dict[str, Any]:
        """Return the table as JSON values; secrets are ``"***"``."""
        own = {one.name: one.value(self) for one in model_fields()}
        given = {path: BY_PATH[path] for path in sorted(self.given)}
        shown = {path: masked(one, one.value(self.settings)) for path, one in given.items()}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in {**shown, **own}.items()}


GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Model": ("model", "engine", "name", "aliases", "any_model_name", "preflight", "memory_budget"),
    "Prompt and parsing": (
        *("chat_template", "chat_template_kwargs", "enforce_parser", "reasoning_parser", "tool_parser"),
        *("generic_tools", "parser_backend", "policy"),
    ),
    "Upstream": (
        *("upstream", "upstream_chat", "upstream_replicas", "upstream_model", "upstream_api_key"),
        *("upstream_connect_timeout", "upstream_read_timeout", "upstream_retries"),
    ),
    "Server": ("host", "port", "uds", "root_path", "tls_cert", "tls_key", "workers", "shutdown_grace"),
    "Access": (
        *("api_keys_file", "api_keys", "insecure", "allowed_hosts", "cors_origins"),
        *("allow_pull", "allow_delete", "allow_copy"),
        *("key_requests_per_minute", "key_tokens_per_minute", "key_concurrent_requests"),
    ),
    "Stored responses": ("response_store", "response_ttl", "response_store_bytes"),
    "Limits": (
        *("unknown_fields", "max_body_bytes", "max_messages", "max_choices", "max_concurrent_requests"),
        *("max_connections", "request_timeout", "head_timeout", "body_timeout", "write_timeout"),
        *("ping_seconds", "keep_alive_seconds", "client_grammars", "grammar_timeout"),
    ),
    "Logging and metrics": ("log_format", "log_level", "log_raw", "log_raw_consent", "metrics", "traces"),
    "Inspector": ("inspect", "inspect_outputs"),
    "Engine replay": ("replay",),
    "Engine llamacpp": ("llamacpp",),
    "Engine vllm": ("vllm",),
}
"""Title → fields, in the order of ``--help`` and the documentation."""


# -- The fields ---------------------------------------------------------------------------------------------------


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
    metavar: str
    env: tuple[str, ...]
    """The environment variables that set it; the first one is documented."""

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


def _fields(of: type[msgspec.Struct], group: str, without: tuple[str, ...] = ("models",)) -> Iterator[Field]:
    hints = get_type_hints(of, include_extras=True)
    for declared in msgspec.structs.fields(of):
        if declared.name in without:
            continue
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


def masked(field: Field, value: Any) -> Any:
    """Return a value as it may be shown: secrets, and passwords in URLs, are hidden."""
    if field.secret:
        return [_HIDDEN] * len(value) if field.is_list else _HIDDEN if value else value
    if isinstance(value, tuple):
        return tuple(masked(field, one) for one in value)
    if isinstance(value, str) and "@" in value and "://" in value:  # a URL with a password
        return re.sub(r"(?<=://)[^/?#]*@", f"{_HIDDEN}@", value)
    return value


_HIDDEN: Final = "***"


def nearest(name: str, valid: Mapping[str, Any]) -> str:
    """Return the end of an error for an unknown name: the most similar valid name, or all of them."""
    near = difflib.get_close_matches(name, valid, n=1)
    return f"; did you mean {near[0]}?" if near else f"; valid names: {', '.join(sorted(valid))}"


# -- What must hold between fields --------------------------------------------------------------------------------

_NOT_FOR_VLLM: Final = {
    "reasoning_parser": "reasoning_parser",
    "tool_parser": "tool_parser",
    "tool_call_parser": "tool_parser",
    "enable_auto_tool_choice": "",
}
"""Options of vLLM's server that its engine does not take → the setting to use instead."""


def _check(settings: Settings) -> None:
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
        _policy(settings.policy)
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
            raise SettingsError(f"{name}: {masked(BY_PATH[name], url)!r} is not a URL like http://localhost:8001/v1")


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


def _policy(values: Mapping[str, Any]) -> Policy:
    return Policy.from_mapping({name: typed(name, value) for name, value in values.items()})


BY_PATH: Final = {one.path: one for one in fields()}
"""Path → field."""
