"""Settings: their sources, the order of these, and errors."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path
from typing import Any

import pytest

from untemplate.policy import Policy
from untemplate_gateway.settings import LlamaCpp, Settings, SettingsError, fields
from untemplate_gateway.settings.sources import resolve

UNKNOWN = "unknown format 'hermess'; did you mean 'hermes'? `untemplate formats` lists all names"


def problem(**sources: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        resolve(**{"environ": {}, **sources})
    return str(caught.value)


def settings(**sources: Any) -> Settings:
    return resolve(**{"environ": {}, **sources}).settings


# -- Where they come from -----------------------------------------------------------------------------------------


def test_flags_go_before_the_environment_and_that_before_the_file(tmp_path: Path):
    file = tmp_path / "untemplate.toml"
    file.write_text("port = 1\nhost = 'file'\nname = 'file'\n[llamacpp]\nn_ctx = 1\nthreads = 2\n")
    environ = {"UNTEMPLATE_PORT": "2", "UNTEMPLATE_HOST": "environment", "UNTEMPLATE_LLAMACPP_N_CTX": "2", "HOME": "/"}
    found = resolve(file=file, environ=environ, flags={"port": "3"})
    held = found.settings
    assert (held.port, held.host, held.name, held.llamacpp) == (3, "environment", "file", LlamaCpp(n_ctx=2, threads=2))
    origin = {
        "port": "--port",
        "host": "UNTEMPLATE_HOST",
        "name": str(file),
        "llamacpp.n_ctx": "UNTEMPLATE_LLAMACPP_N_CTX",
        "llamacpp.threads": str(file),
    }
    assert {path: where for path, where in found.origin.items() if where != "default"} == origin


def test_the_environment_names_the_file(tmp_path: Path):
    (tmp_path / "u.toml").write_text("port = 7")
    assert settings(environ={"UNTEMPLATE_CONFIG": str(tmp_path / "u.toml")}).port == 7


def test_this_process_has_an_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UNTEMPLATE_PORT", "7")
    assert resolve().settings.port == 7


def test_every_kind_of_value(tmp_path: Path):
    file = tmp_path / "u.toml"
    file.write_text(
        "api_keys = ['a', 'b']\nmetrics = false\naliases = {gpt = ''}\nshutdown_grace = 3\n"
        "policy = {strict = true, max_held = 10}\n[vllm.extra]\nmax_num_seqs = 8\n"
    )
    found = settings(file=file)
    assert found.api_keys == ("a", "b")
    assert found.vllm.extra == {"max_num_seqs": 8}
    assert (found.metrics, found.aliases, found.shutdown_grace) == (False, {"gpt": ""}, 3.0)
    assert found.output_policy() == Policy(strict=True, max_held=10)
    found = settings(
        environ={
            "UNTEMPLATE_API_KEYS": "a, b",
            "UNTEMPLATE_METRICS": "0",
            "UNTEMPLATE_ALIASES": "gpt,claude=b",
            "UNTEMPLATE_POLICY": "strict=true,max_held=10",
            "UNTEMPLATE_VLLM_EXTRA": '{"max_num_seqs": 8}',
            "UNTEMPLATE_SHUTDOWN_GRACE": "3",
            "UNTEMPLATE_TOOL_CALL_PARSER": "hermes",
        }
    )
    assert found.api_keys == ("a", "b")
    assert found.vllm.extra == {"max_num_seqs": 8}
    assert (found.metrics, found.aliases, found.tool_parser) == (False, {"gpt": "", "claude": "b"}, "hermes")
    assert found.output_policy() == Policy(strict=True, max_held=10)
    found = settings(
        flags={
            "api_keys": ["a", "b"],
            "metrics": "false",
            "aliases": ["gpt", "claude=b"],
            "policy": ["strict=true", "max_held=10"],
            "vllm.extra": ["max_num_seqs=8", "tokenizer_mode=slow"],
            "chat_template_kwargs": ["enable_thinking=false"],
        }
    )
    assert found.api_keys == ("a", "b")
    assert found.vllm.extra == {"max_num_seqs": 8, "tokenizer_mode": "slow"}
    assert (found.metrics, found.aliases) == (False, {"gpt": "", "claude": "b"})
    assert found.chat_template_kwargs == {"enable_thinking": False}


def test_two_names_of_one_variable():
    assert settings(environ={"UNTEMPLATE_API_KEY": "a"}).api_keys == ("a",)
    found = resolve(environ={"UNTEMPLATE_API_KEY": "a", "UNTEMPLATE_API_KEYS": "b"})
    assert (found.settings.api_keys, found.origin["api_keys"]) == (("b",), "UNTEMPLATE_API_KEYS")


def test_keys_from_a_file(tmp_path: Path):
    file = tmp_path / "keys"
    file.write_text("one  # Anna's\n\n# nobody's\ntwo\n")
    assert settings(flags={"api_keys": ["zero"], "api_keys_file": str(file)}).api_keys == ("zero", "one", "two")
    file.write_text("# nobody\n")
    assert problem(flags={"api_keys_file": str(file)}) == f"api_keys_file {file}: contains no key"
    missing = tmp_path / "missing"
    assert problem(flags={"api_keys_file": str(missing)}) == f"api_keys_file {missing}: No such file or directory"


def test_what_others_put_into_the_environment():
    environ = {
        "UNTEMPLATE_SERVICE_HOST": "10.0.0.1",
        "UNTEMPLATE_SERVICE_PORT_HTTP": "80",
        "UNTEMPLATE_PORT": "tcp://10.0.0.1:80",
        "UNTEMPLATE_PORT_80_TCP_ADDR": "10.0.0.1",
        "UNTEMPLATE_CACHE": "/x",
        "UNTEMPLATE_LOG": "debug",
        "UNTEMPLATE_STRICT_TOOL_CALL": "1",
    }
    assert settings(environ=environ) == Settings()


# -- What cannot be -----------------------------------------------------------------------------------------------


def test_names_that_do_not_exist(tmp_path: Path):
    file = tmp_path / "u.toml"
    file.write_text("prot = 1")
    assert problem(file=file) == f"{file}: unknown setting 'prot'; did you mean 'port'?"
    file.write_text("[llamacpp]\nnctx = 1")
    assert problem(file=file) == f"{file}: unknown setting 'llamacpp.nctx'; did you mean 'llamacpp.n_ctx'?"
    file.write_text("llamacpp = 1")
    assert problem(file=file) == f"{file}: llamacpp is a table: [llamacpp]"
    file.write_text("xyzzy = 1")
    listed = "`untemplate serve --show-settings` lists all settings"
    assert problem(file=file) == f"{file}: unknown setting 'xyzzy'; {listed}"
    assert (
        problem(environ={"UNTEMPLATE_PROT": "1"}) == "UNTEMPLATE_PROT: unknown setting; did you mean 'UNTEMPLATE_PORT'?"
    )


def test_files_that_cannot_be_read(tmp_path: Path):
    file = tmp_path / "u.toml"
    assert problem(file=file) == f"{file}: No such file or directory"
    file.write_text("port =")
    assert problem(file=file) == f"{file}: not TOML: Invalid value (at end of document)"
    file.write_bytes(b"\xff")
    assert problem(file=file).startswith(f"{file}: 'utf-8' codec can't decode byte 0xff")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("port", "x", "port: 'x' is not a whole number (--port)"),
        ("port", "70000", "port: '70000' is not a whole number <= 65535 (--port)"),
        ("replay.speed", "-1", "replay.speed: '-1' is not a number >= 0.0 (--replay-speed)"),
        ("metrics", "maybe", "metrics: 'maybe' is not true or false (--metrics)"),
        ("engine", "vlm", "engine: 'vlm' is not one of: auto, llamacpp, vllm, openai, replay (--engine)"),
        ("policy", ["strict"], "policy: ['strict'] is not NAME=VALUE (--policy)"),
        (
            "aliases",
            '{"a"',
            "aliases: '{\"a\"' is not JSON: Expecting ':' delimiter: line 1 column 5 (char 4) (--alias)",
        ),
        ("aliases", '{"a": 1}', "aliases: {'a': 1} is not text (--alias)"),
        ("policy", ["strict=maybe"], "policy strict: 'maybe' is not one of: True, False, None"),
        ("policy", ["strct=1"], None),
        ("enforce_parser", "hermess", f"enforce_parser: {UNKNOWN}"),
        ("enforce_parser", "gone.json", "enforce_parser: gone.json: No such file or directory"),
        (
            "enforce_parser",
            "hermes+qwen33",
            "enforce_parser: unknown reasoning format 'qwen33'; did you mean 'qwen3' or 'qwen38' or 'qwen36'? "
            "`untemplate formats --kind reasoning` lists all names",
        ),
        ("reasoning_parser", "hermes", None),
        ("upstream", "localhost:8001", "upstream: 'localhost:8001' is not a URL like http://localhost:8001/v1"),
        ("upstream", "ftp://a:b@c", "upstream: 'ftp://***@c' is not a URL like http://localhost:8001/v1"),
        ("root_path", "api", "root_path: 'api' does not begin with /"),
        (
            "log_raw",
            "x",
            "log_raw: raw outputs contain user data; confirm that your users agreed: log_raw_consent "
            "(--log-raw-consent)",
        ),
        (
            "vllm.extra",
            ["tool_call_parser=x"],
            "vllm.extra: tool_call_parser is not an engine argument; use tool_parser (--tool-parser)",
        ),
        ("vllm.extra", ["enable_auto_tool_choice=1"], "vllm.extra: enable_auto_tool_choice is not an engine argument"),
        (
            "tool_parser",
            "untemplate:hermes",
            "tool_parser: 'untemplate:hermes' is not a format; did you mean 'hermes'?",
        ),
        (
            "tool_parser",
            "mine.json",
            "tool_parser: 'mine.json' is not a format; enforce_parser (--enforce-parser) takes two names or a file",
        ),
        (
            "enforce_parser",
            "untemplate:hermes",
            "enforce_parser: unknown format 'untemplate:hermes'; did you mean "
            "'hermes'? `untemplate formats` lists all names",
        ),
        ("api_keys", [""], "api_keys: a key must not be empty"),
    ],
)
def test_values_that_cannot_be(path: str, value: Any, said: str | None):
    found = problem(flags={path: value})
    if said is None:
        assert found.startswith(
            ("policy strct: there is none; there are: ", "reasoning_parser: 'hermes' is not a format")
        )
    else:
        assert found == said


def test_the_strict_switch_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VLLM_RS_STRICT_TOOL_CALL", "maybe")
    assert problem() == "VLLM_RS_STRICT_TOOL_CALL: 'maybe' is not one of: 1, true, 0, false"


def test_values_that_exclude_each_other():
    url = "http://localhost:1/v1"
    assert problem(flags={"upstream": url, "upstream_chat": url}) == "upstream and upstream_chat exclude each other"
    assert problem(flags={"enforce_parser": "hermes", "parser_backend": "vllm"}) == (
        "enforce_parser names a format of untemplate; vLLM's parsers are named by reasoning_parser and tool_parser"
    )
    assert problem(flags={"enforce_parser": "hermes", "tool_parser": "hermes"}) == (
        "enforce_parser cannot be combined with reasoning_parser or tool_parser"
    )


def test_names_of_other_backends_are_theirs():
    assert settings(flags={"tool_parser": "theirs", "parser_backend": "vllm"}).tool_parser == "theirs"


# -- What is shown ------------------------------------------------------------------------------------------------


def test_secrets_are_never_shown():
    found = resolve(
        environ={"UNTEMPLATE_UPSTREAM_API_KEY": "s3cret", "UNTEMPLATE_UPSTREAM": "http://me:s3cret@host/v1"},
        flags={"api_keys": ["s3cret", "s3cret"]},
    )
    shown = (repr(found.settings), str(found.settings), found.to_toml())
    assert not [text for text in shown if "s3cret" in text]
    held = [line.partition("  #")[0] for line in found.to_toml().splitlines()]
    for line in ('# upstream_api_key = "***"', '# api_keys = ["***", "***"]', 'upstream = "http://***@host/v1"'):
        assert line in held
    assert '# api_keys = ["***", "***"]  # --api-key' in found.to_toml().splitlines()


def test_what_is_shown_can_be_read_again(tmp_path: Path):
    found = resolve(environ={}, flags={"port": "9", "policy": ["strict=true"], "llamacpp.extra": ["x.y=[1]"]})
    (tmp_path / "u.toml").write_text(found.to_toml())
    assert settings(file=tmp_path / "u.toml") == found.settings
    tree = tomllib.loads(resolve(environ={}).to_toml())
    assert set(tree) == {one.group or one.name for one in fields()}
    lines = found.to_toml().splitlines()
    assert "port = 9  # --port" in lines
    assert 'host = "127.0.0.1"  # default' in lines


def test_every_setting_has_a_group_a_flag_and_a_meaning():
    titles = [title for title, _ in itertools.groupby(one.title for one in fields())]
    assert (titles[:2], titles[-2:]) == (["Model", "Prompt and parsing"], ["Engine llamacpp", "Engine vllm"])
    assert len(set(titles)) == len(titles) == 12
    flags = [one.flag for one in fields() if one.flag]
    assert len(flags) <= 56  # with --config, --show-settings, --tour and --set: 60, the model is no flag
    variables = [variable for one in fields() for variable in one.env]
    assert len(set(flags)) == len(flags)
    assert len(set(variables)) == len(variables)
    assert all(one.description for one in fields())


def test_a_setting_without_a_flag_of_its_own_is_set_by_name():
    found = resolve(environ={}, flags={"set": ["max_choices=4", "response_ttl=1.5"], "port": "9"})
    assert (found.settings.max_choices, found.settings.response_ttl, found.settings.port) == (4, 1.5, 9)
    assert found.origin["max_choices"] == "--set max_choices"
    for text, problem in (
        ("max_choices", "--set max_choices: is not NAME=VALUE"),
        ("max_choices=x", "max_choices: 'x' is not a whole number (--set max_choices)"),
        ("max_choice=1", "--set max_choice=1: unknown setting 'max_choice'; did you mean 'max_choices'?"),
    ):
        with pytest.raises(SettingsError) as caught:
            resolve(environ={}, flags={"set": [text]})
        assert str(caught.value) == problem


def test_a_removed_setting_names_what_there_is_instead(tmp_path: Path):
    path = tmp_path / "old.toml"
    path.write_text("memory_budget = 1")
    why = "which was removed: max_loaded bounds the number of loaded models instead"
    with pytest.raises(SettingsError) as caught:
        resolve(file=path, environ={})
    assert str(caught.value) == f"{path}: unknown setting 'memory_budget', {why}"
    with pytest.raises(SettingsError) as caught:
        resolve(environ={"UNTEMPLATE_MEMORY_BUDGET": "1"})
    assert str(caught.value) == f"UNTEMPLATE_MEMORY_BUDGET: unknown setting, {why}"


# -- several models -----------------------------------------------------------------------------------------------


def from_file(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "several.toml"
    path.write_text(text)
    return resolve(file=path, environ={}).settings


def test_tables_of_models_inherit_the_settings_of_the_file(tmp_path: Path):
    found = from_file(
        tmp_path,
        """
        generic_tools = false
        llamacpp.n_ctx = 2048
        [policy]
        strict = "true"
        [models.small]
        model = "demo"
        aliases = ["gpt-4o-mini"]
        load = "demand"
        idle_unload = 600
        [models.small.llamacpp]
        n_parallel = 1
        [models.large]
        upstream_chat = "http://a:8000"
        generic_tools = true
        fallbacks = ["small"]
        """,
    )
    small, large = found.models["small"], found.models["large"]
    assert (small.load, small.idle_unload, small.aliases, large.fallbacks) == (
        "demand", 600, ("gpt-4o-mini",), ("small",),
    )  # fmt: skip
    assert (small.settings.model, small.settings.name, small.settings.generic_tools) == ("demo", "small", False)
    assert (small.settings.llamacpp.n_ctx, small.settings.llamacpp.n_parallel) == (2048, 1)
    assert large.settings.generic_tools
    assert large.settings.policy == {"strict": "true"}


def test_secrets_of_several_models_are_not_shown(tmp_path: Path):
    path = tmp_path / "a.toml"
    path.write_text('[models.x]\nupstream = "http://me:hid@den@b"\nupstream_api_key = "hidden"\n')
    found = resolve(file=path, environ={})
    assert "hid" not in found.to_toml() + repr(found.settings)
    lines = found.to_toml().splitlines()
    assert '# upstream_api_key = "***"' in lines
    assert 'upstream = "http://***@b"' in lines


def test_several_models_are_shown_as_a_settings_file_that_is_read_again(tmp_path: Path):
    path = tmp_path / "a.toml"
    path.write_text(
        '[models.x]\nmodel = "replay:hermes"\nfallbacks = ["y"]\n[models.y]\nmodel = "demo"\nload = "demand"'
    )
    shown = resolve(file=path, environ={}).to_toml()
    again = tmp_path / "b.toml"
    again.write_text(shown)
    assert resolve(file=again, environ={}).settings.models == resolve(file=path, environ={}).settings.models


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '[models.a]\nmodel = "demo"\ncolour = "red"',
            "{path}: unknown setting 'models.a.colour'; valid names: aliases, chat_template, chat_template_kwargs, "
            "enforce_parser, engine, fallbacks, generic_tools, idle_unload, llamacpp.extra, llamacpp.gpu_layers, "
            "llamacpp.mmproj, llamacpp.n_ctx, llamacpp.n_parallel, llamacpp.threads, load, model, "
            "neutralize_markers, parser_backend, policy, preflight, reasoning_parser, replay.file, replay.speed, "
            "tool_parser, upstream, upstream_api_key, "
            "upstream_chat, upstream_concurrency, upstream_connect_timeout, upstream_model, upstream_read_timeout, "
            "upstream_retries, "
            "vllm.dtype, vllm.enforce_eager, vllm.extra, vllm.gpu_memory_utilization, vllm.max_model_len, "
            "vllm.tensor_parallel_size, vllm.trust_remote_code",
        ),
        (
            "[models.a]\nport = 1",
            "{path}: models.a.port: port belongs to the whole gateway: move it to the top of the file",
        ),
        ('[models.a]\nidle_unload = "soon"', "models.a.idle_unload: 'soon' is not a number ({path})"),
        ('[models.a]\nload = "never"', "models.a.load: 'never' is not one of: start, demand ({path})"),
        ("[models.a]\nllamacpp.n_ctx = -1", "models.a.llamacpp.n_ctx: -1 is not a whole number >= 0 ({path})"),
        ('[models.a]\nllamacpp = "x"', "{path}: models.a.llamacpp is a table: [models.a.llamacpp]"),
        ("models = 3", "{path}: models is a table of tables: [models.NAME]"),
        ("[models]\na = 3", "{path}: models.a is a table: [models.a]"),
        (
            '[models.a]\naliases = ["b"]\n[models.b]\n',
            "models.a.aliases: 'b' is already a model",
        ),
        (
            '[models.a]\naliases = ["c"]\n[models.b]\naliases = ["c"]',
            "models.b.aliases: 'c' is already an alias of 'a'",
        ),
        (
            '[models.a]\nfallbacks = ["c"]\n[models.b]',
            "models.a.fallbacks: no model 'c' is declared; valid names: b",
        ),
        ('[models.a]\nfallbacks = ["a"]', "models.a.fallbacks: names the model itself; valid names: none"),
        (
            'model = "demo"\n[models.a]',
            "model and [models] exclude each other: move it into a table [models.NAME]",
        ),
        (
            '[models.a]\nupstream = "nowhere"',
            "models.a: upstream: 'nowhere' is not a URL like http://localhost:8001/v1",
        ),
        (
            'upstream_replicas = ["http://a"]',
            "{path}: unknown setting 'upstream_replicas', which was removed: fallbacks of [models.NAME], or a load "
            "balancer in front of the servers, do its work",
        ),
        (
            '[models.a]\nmodel = "demo"\n[models.a]',
            "{path}: not TOML: Cannot declare ('models', 'a') twice (at line 3, column 10)",
        ),
    ],
)
def test_mistakes_in_tables_of_models(tmp_path: Path, text: str, problem: str):
    with pytest.raises(SettingsError) as caught:
        from_file(tmp_path, text)
    assert str(caught.value) == problem.replace("{path}", str(tmp_path / "several.toml"))
