"""All settings: each is declared once, with its type, default, limits and description.

The flag ``--max-loaded``, the variable ``UNTEMPLATE_MAX_LOADED``, the key of the file and the row of the
documentation are made from the declaration. The rules between settings are at the end.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from untemplate._internal.suggestions import brief
from untemplate.errors import SettingsError
from untemplate.formats import named, names
from untemplate.policy import Policy, strict_from_environment, typed

from .naming import nearest, without_password


def _is(
    description: str, *, flag: str | None = "", metavar: str = "", secret: bool = False, env: str = "", **limits: Any
) -> msgspec.Meta:
    """Describe a field. ``flag`` and ``metavar`` override those made from its name; ``env`` is a second variable.
    A setting with ``flag=None`` has no flag of its own: ``--set NAME=VALUE`` sets it.
    """
    about = {"flag": flag, "metavar": metavar, "secret": secret, "env": env}
    return msgspec.Meta(description=description, extra=about, **limits)


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the engine ``replay``."""

    speed: Annotated[float, _is("tokens per second of each request; 0: as fast as they are read", ge=0)] = 40.0
    file: Annotated[
        str, _is("file of recorded outputs (JSON lines) to use instead of made-up ones", metavar="FILE")
    ] = ""


class LlamaCpp(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the engine ``llamacpp``."""

    n_ctx: Annotated[
        int, _is("tokens of context, shared by the requests that run; 0: as many as the model has and fit", ge=0)
    ] = 0
    n_parallel: Annotated[int, _is("requests that are decoded together", ge=1)] = 4
    threads: Annotated[
        int, _is("processor threads; 0: one per core, or one for a model under 64 MB", ge=0, flag=None)
    ] = 0
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

    dtype: Annotated[str, _is("type of the weights: auto, bfloat16, float16, float32", flag=None)] = "auto"
    max_model_len: Annotated[int, _is("tokens of context; 0: as the model was trained", ge=0)] = 0
    gpu_memory_utilization: Annotated[float, _is("share of the GPU's memory that vLLM uses", gt=0, le=1, flag=None)] = (
        0.9
    )
    enforce_eager: Annotated[bool, _is("run without CUDA graphs: starts sooner, runs slower", flag=None)] = False
    tensor_parallel_size: Annotated[int, _is("GPUs over which each layer is spread", ge=1, flag=None)] = 1
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
    max_loaded: Annotated[int, _is("most models of this machine that are loaded at a time; 0: no limit", ge=0)] = 0

    # Prompt and parsing
    chat_template: Annotated[
        str, _is("file of the chat template to use instead of the model's own", metavar="FILE")
    ] = ""
    chat_template_kwargs: Annotated[
        dict[str, Any], _is("template variables for requests that do not set them", metavar="NAME=VALUE")
    ] = {}
    neutralize_markers: Annotated[
        Literal["off", "tools", "all"],
        _is(
            "break the model's markers in tool results (tools), or also in user messages (all), so that their text "
            "cannot end its message",
            flag=None,
        ),
    ] = "off"
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
    upstream_connect_timeout: Annotated[float, _is("connection timeout in seconds", gt=0, flag=None)] = 5.0
    upstream_read_timeout: Annotated[
        float, _is("seconds that the upstream may be silent; 0: no limit", ge=0, flag=None)
    ] = 300.0
    upstream_concurrency: Annotated[
        int,
        _is(
            "requests that the upstream gets at a time; further ones wait, and keys take turns; 0: no limit",
            ge=0,
        ),
    ] = 0
    upstream_retries: Annotated[
        int, _is("further attempts of a request, before its first byte only", ge=0, flag=None)
    ] = 2

    # Server
    host: Annotated[str, _is("address to listen on; 0.0.0.0: all addresses", metavar="ADDRESS")] = "127.0.0.1"
    port: Annotated[int, _is("port to listen on; 0: any free one", ge=0, le=65535)] = 8000
    uds: Annotated[str, _is("Unix socket to listen on, instead of host and port", metavar="PATH")] = ""
    root_path: Annotated[str, _is("path prefix that a reverse proxy removes", flag=None)] = ""
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
    key_requests_per_minute: Annotated[
        int, _is("requests per minute for each API key; 0: no limit", ge=0, flag=None)
    ] = 0
    key_tokens_per_minute: Annotated[
        int, _is("tokens per minute for each API key, prompts included; 0: no limit", ge=0, flag=None)
    ] = 0
    key_concurrent_requests: Annotated[
        int, _is("concurrent requests for each API key; 0: no limit", ge=0, flag=None)
    ] = 0

    # Stored responses
    response_store: Annotated[
        str,
        _is(
            "stored responses of /v1/responses: an SQLite file, or a redis:// URL; empty: they are kept in memory",
            metavar="FILE|URL",
        ),
    ] = ""
    response_ttl: Annotated[
        float, _is("seconds that a response is kept for later requests; 0: none is stored", ge=0, flag=None)
    ] = 3600.0
    response_store_bytes: Annotated[int, _is("bytes of all stored responses; the oldest go first", ge=0, flag=None)] = (
        64 * 1024 * 1024
    )

    # Limits
    max_body_bytes: Annotated[int, _is("bytes of a request body", ge=1024, flag=None)] = 32 * 1024 * 1024
    unknown_fields: Annotated[
        Literal["ignore", "refuse"],
        _is("treatment of request fields that the gateway does not know; ignored ones are logged once", flag=None),
    ] = "ignore"
    max_messages: Annotated[int, _is("messages of a request, and as many tools and tool calls", ge=1, flag=None)] = 4096
    max_choices: Annotated[int, _is("choices of a request (n)", ge=1, flag=None)] = 16
    max_concurrent_requests: Annotated[int, _is("concurrent requests; further ones get a 429; 0: no limit", ge=0)] = (
        1024
    )
    max_connections: Annotated[
        int, _is("open connections, with and without a request; 0: no limit", ge=0, flag=None)
    ] = 4096
    request_timeout: Annotated[float, _is("seconds that a request may take in all; 0: no limit", ge=0, flag=None)] = 0.0
    head_timeout: Annotated[
        float, _is("seconds in which the head of a request must arrive; 0: no limit", ge=0, flag=None)
    ] = 10.0
    body_timeout: Annotated[
        float, _is("seconds in which the body must arrive, plus one for every 64 KB; 0: no limit", ge=0, flag=None)
    ] = 30.0
    write_timeout: Annotated[
        float, _is("seconds that a client may leave a response unread; 0: no limit", ge=0, flag=None)
    ] = 60.0
    ping_seconds: Annotated[
        float,
        _is("seconds of silence after which a stream sends a comment, for proxies; 0: never", ge=0, flag=None),
    ] = 15.0
    keep_alive_seconds: Annotated[float, _is("seconds that an idle connection stays open", gt=0, flag=None)] = 5.0
    client_grammars: Annotated[
        Literal["auto", "on", "off"],
        _is(
            "take grammars of clients, though a short one can stop an engine; auto: on a loopback address without API "
            "keys only"
        ),
    ] = "auto"
    grammar_timeout: Annotated[float, _is("seconds that compiling a grammar may take", gt=0, flag=None)] = 10.0

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
        bool, _is("OpenTelemetry traces of requests, sent as the variables OTEL_EXPORTER_OTLP_... configure", flag=None)
    ] = False
    metrics: Annotated[bool, _is("Prometheus metrics at /metrics")] = True

    # Inspector
    inspect: Annotated[
        Literal["auto", "on", "off"],
        _is("pages at /inspect that show how outputs are parsed; auto: on a loopback address only"),
    ] = "auto"
    replay: Replay = Replay()
    llamacpp: LlamaCpp = LlamaCpp()
    vllm: Vllm = Vllm()

    models: dict[str, ModelSettings] = {}
    """Several models by name, from the tables ``[models.NAME]`` of the file."""

    def __post_init__(self) -> None:
        _check(self)

    def __repr__(self) -> str:
        return f"Settings(model={self.model!r})"  # not the rest, which has secrets

    def output_policy(self) -> Policy:
        """Return the ``policy`` setting as a `Policy`."""
        return Policy.from_mapping({name: typed(name, value) for name, value in self.policy.items()})


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


# -- Rules between settings ----------------------------------------------------------------------------------------

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
        settings.output_policy()
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _check_upstream(settings: Settings) -> None:
    if settings.upstream and settings.upstream_chat:
        raise SettingsError("upstream and upstream_chat exclude each other")
    for name, url in (("upstream", settings.upstream), ("upstream_chat", settings.upstream_chat)):
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
            raise SettingsError(f"enforce_parser: {brief(error)}") from None
    for name, kind in (("reasoning_parser", "reasoning"), ("tool_parser", "tool")):
        value = getattr(settings, name)
        if settings.parser_backend == "untemplate" and value and value not in names(kind):  # type: ignore[arg-type]
            near = nearest(value, dict.fromkeys(names(kind)))  # type: ignore[arg-type]
            if "+" in value or value.endswith(".json"):
                near = "; enforce_parser (--enforce-parser) takes two names or a file"
            raise SettingsError(f"{name}: {value!r} is not a format{near}")
