"""Models on disk: their kind, the checks before loading, and their tokens."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.gguf_writer import write_gguf
from untemplate.templates import ChatTemplate
from untemplate_gateway.manager import preflight as preflight_module
from untemplate_gateway.manager.checkpoint import (
    CheckpointError,
    count_text,
    ggufs,
    open_checkpoint,
    quantization_of,
    size_text,
)
from untemplate_gateway.manager.preflight import Memory, cache_bytes_per_token, preflight
from untemplate_gateway.manager.tokenizers import TokenizerError, resolve_tokenizer

from .models import CONFIG, FIELDS, TEMPLATE, gguf_model, safetensors_model, tokenizer_json

PLENTY = 10**12


def problem(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(path)
    return str(caught.value).replace(str(path), "PATH")


# -- Checkpoints --------------------------------------------------------------------------------------------------


def test_a_gguf_file(tmp_path: Path):
    found = open_checkpoint(gguf_model(tmp_path / "Tiny-1B-Q4_K_M.gguf"))
    assert found.details() == {
        "family": "qwen2",
        "format": "gguf",
        "quantization": "Q4_K_M",
        "parameters": 320,
        "context_length": 4096,
        "size": found.path.stat().st_size,
        "path": str(tmp_path / "Tiny-1B-Q4_K_M.gguf"),
        "repo": "",
    }
    assert found.name == "Tiny-1B-Q4_K_M"
    assert open_checkpoint(tmp_path).path == found.path


def test_a_folder_of_safetensors(tmp_path: Path):
    found = open_checkpoint(safetensors_model(tmp_path / "mine"))
    assert found.details() == {
        "family": "qwen2",
        "format": "safetensors",
        "quantization": "bfloat16",
        "parameters": None,
        "context_length": 4096,
        "size": 1000,
        "path": str(tmp_path / "mine"),
        "repo": "",
    }
    assert found.name == "mine"


def test_configurations_in_parts(tmp_path: Path):
    config = {"model_type": "gemma3", "text_config": CONFIG, "quantization_config": {"quant_method": "fp8"}}
    found = open_checkpoint(safetensors_model(tmp_path, **{"config.json": json.dumps(config)}))
    assert (found.family, found.context_length, found.quantization) == ("gemma3", 4096, "fp8")
    found = open_checkpoint(safetensors_model(tmp_path, **{"config.json": "[1]"}))
    assert (found.family, found.context_length, found.quantization) == ("", None, "")


def test_what_is_no_model(tmp_path: Path):
    assert problem(tmp_path / "missing") == "PATH: no such file or folder"
    assert problem(tmp_path) == "PATH: no weights in it (*.safetensors, *.gguf)"
    (tmp_path / "x.safetensors").write_bytes(b"12345678")
    assert problem(tmp_path / "x.safetensors") == "PATH: give the folder that it is in"
    (tmp_path / "x.txt").write_bytes(b"1")
    assert problem(tmp_path / "x.txt") == "PATH: not a GGUF file"
    (tmp_path / "several").mkdir()
    for name in ("a-Q4_0.gguf", "b.gguf", "mmproj-F16.gguf", "imatrix.gguf"):
        gguf_model(tmp_path / "several" / name)
    assert problem(tmp_path / "several") == "PATH: several models; name one of them: a-Q4_0.gguf, b.gguf"
    assert open_checkpoint(gguf_model(tmp_path / "m-00001-of-00000.gguf")).name == "m-00001-of-00000"
    part = gguf_model(tmp_path / "m-00001-of-00003.gguf")
    assert problem(part) == "PATH: parts are missing: m-00002-of-00003.gguf, m-00003-of-00003.gguf"


def test_weights_that_are_gone(tmp_path: Path):
    gone = tmp_path / "model.safetensors"
    gone.symlink_to(tmp_path / "nowhere")
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(tmp_path).details()
    assert str(caught.value) == f"{gone}: No such file or directory"


@pytest.mark.parametrize(
    ("name", "quantization"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"),
        ("model.q8_0.gguf", "Q8_0"),
        ("Qwen3-30B-A3B-UD-Q4_K_XL-00001-of-00002.gguf", "UD-Q4_K_XL"),
        ("Q4_0/Meta-Llama-3.1-8B-IQ2_XXS.gguf", "IQ2_XXS"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("tiny-bf16.gguf", "BF16"),
        ("Qwen3-8B.gguf", ""),
    ],
)
def test_the_quantization_in_a_name(name: str, quantization: str):
    assert quantization_of(name) == quantization


def test_parts_are_one_model():
    names = ["b-00002-of-00002.gguf", "b-00001-of-00002.gguf", "a.gguf", "README.md", "mmproj.gguf"]
    assert ggufs(names) == {"a.gguf": ["a.gguf"], "b-00001-of-00002.gguf": sorted(names[:2])}


def test_numbers():
    numbers = [999_999, 1_000_000, 494_032_768, 8_190_000_000]
    assert [count_text(n) for n in numbers] == ["999999", "1.00 million", "494.03 million", "8.19 billion"]


def test_sizes():
    sizes = [0, 999, 1000, 99_949, 123_456_789, 4_700_000_000, 123_000_000_000]
    assert [size_text(s) for s in sizes] == ["0 bytes", "999 bytes", "1.0 kB", "99.9 kB", "123 MB", "4.7 GB", "123 GB"]


# -- Preflight ----------------------------------------------------------------------------------------------------


def checks(path: Path, **more: Any) -> dict[str, tuple[str, str]]:
    found = preflight(open_checkpoint(path), available=more.pop("available", PLENTY), **more)
    return {check.name: (check.verdict, check.detail.replace(str(path), "PATH")) for check in found.checks}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"gguf": ["qwen2"], "vllm": ["Qwen2ForCausalLM"]}
    monkeypatch.setattr(preflight_module, "_architectures", known.get)


@pytest.mark.usefixtures("known")
def test_a_gguf_file_that_is_well(tmp_path: Path):
    path = gguf_model(tmp_path / "tiny-F16.gguf")
    size = size_text(path.stat().st_size)
    assert checks(path) == {
        "weights": ("ok", f"1 file, {size}, F16, 320 parameters"),
        "tokenizer": ("ok", "in the file, 5 tokens"),
        "architecture": ("ok", "qwen2, known to llama.cpp"),
        "chat template": ("ok", f"the model's own, {len(TEMPLATE)} characters"),
        "memory": ("ok", f"about 301 MB (weights {size}, KV cache 1.0 MB for 4096 tokens), 1000 GB free"),
    }
    assert preflight(open_checkpoint(path), available=PLENTY).verdict == "ok"


@pytest.mark.usefixtures("known")
def test_a_folder_that_is_well(tmp_path: Path):
    assert checks(safetensors_model(tmp_path)) == {
        "weights": ("ok", "1 file, 1.0 kB, bfloat16"),
        "config": ("ok", "config.json"),
        "tokenizer": ("ok", "tokenizer.json"),
        "architecture": ("ok", "Qwen2ForCausalLM, known to vLLM"),
        "chat template": ("ok", f"the model's own, {len(TEMPLATE)} characters"),
        "memory": ("ok", "about 301 MB (weights 1.0 kB, KV cache 1.0 MB for 4096 tokens), 1000 GB free"),
    }


@pytest.mark.usefixtures("known")
def test_what_is_missing_in_a_gguf_file(tmp_path: Path):
    path = tmp_path / "m.gguf"
    write_gguf(path, {"general.architecture": "new"})
    assert checks(path) == {
        "weights": ("ok", "1 file, 96 bytes"),
        "tokenizer": ("error", "the GGUF file has no vocabulary; it is not a language model"),
        "architecture": (
            "warning",
            "new is not in the list of this version of the package gguf; a newer llama.cpp may know it",
        ),
        "chat template": (
            "warning",
            "PATH: has no chat template; --chat-template sets one; without it, only raw prompts can be answered",
        ),
        "memory": ("ok", "about 300 MB (weights 96 bytes, KV cache unknown), 1000 GB free"),
    }
    found = preflight(open_checkpoint(path), available=PLENTY)
    assert found.verdict == "error"
    assert found.problems() == ("tokenizer: the GGUF file has no vocabulary; it is not a language model",)
    assert [p.partition(":")[0] for p in found.problems(strict=True)] == ["tokenizer", "architecture", "chat template"]
    write_gguf(path, {"tokenizer.ggml.tokens": ["a"]})
    assert checks(path)["architecture"] == (
        "error",
        "the type of the model is unknown (general.architecture is missing)",
    )


@pytest.mark.usefixtures("known")
def test_what_is_missing_in_a_folder(tmp_path: Path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    found = checks(tmp_path, engine="llamacpp")
    assert found["weights"] == ("error", "empty: model.safetensors; `untemplate pull` downloads them again")
    assert found["config"] == ("error", "PATH has no config.json that can be read")
    assert found["tokenizer"] == ("warning", "none in the folder; --vllm-arg tokenizer=NAME names another")
    assert found["architecture"] == ("error", "llama.cpp needs a GGUF file, and this is not one; --engine vllm runs it")
    assert found["memory"] == ("ok", "about 300 MB (weights 0 bytes, KV cache unknown), 1000 GB free")


def test_what_cannot_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preflight_module, "_architectures", lambda package: None)
    path = gguf_model(tmp_path / "m.gguf")
    found = preflight(open_checkpoint(path), available=PLENTY)
    assert found.checks[2].verdict == "skipped"
    assert found.checks[2].detail == "qwen2; to check that llama.cpp knows it, install the package gguf"
    monkeypatch.setattr(preflight_module, "available_memory", lambda: None)
    assert preflight(open_checkpoint(path)).checks[-1].detail.endswith("; free memory is unknown on this system")


@pytest.mark.usefixtures("known")
def test_a_model_that_does_not_fit(tmp_path: Path):
    path = gguf_model(tmp_path / "m.gguf", {"qwen2.context_length": 1 << 20})
    size = size_text(path.stat().st_size)
    needs = f"about 568 MB (weights {size}, KV cache 268 MB for 1048576 tokens)"
    assert checks(path, available=400_000_000)["memory"] == (
        "ok",
        f"{needs}, 400 MB free; llama.cpp shortens the context to what fits",
    )
    assert checks(path, available=100)["memory"] == (
        "warning",
        f"{needs}, 100 bytes free: too large; a smaller quantization may fit",
    )
    assert checks(path, available=400_000_000, context=4096)["memory"][0] == "ok"
    assert checks(path, available=400_000_000, context=1 << 20)["memory"][0] == "warning"
    folder = safetensors_model(tmp_path / "st")
    assert checks(folder, available=100)["memory"] == (
        "skipped",
        "about 301 MB (weights 1.0 kB, KV cache 1.0 MB for 4096 tokens), 100 bytes free; vLLM checks "
        "the memory of the GPU itself",
    )


@pytest.mark.usefixtures("known")
def test_a_broken_file(tmp_path: Path):
    path = gguf_model(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes()[:200])
    assert checks(path) == {
        "weights": ("error", "PATH: a broken GGUF file (it ends too soon, or a length in it is wrong)")
    }


def test_a_template_that_is_none(tmp_path: Path):
    path = gguf_model(tmp_path / "m.gguf", {"tokenizer.chat_template": "{% for %}"})
    assert checks(path)["chat template"][0] == "warning"
    other = ChatTemplate("{{ messages }}", name="mine.jinja")
    assert checks(path, template=other)["chat template"] == ("ok", "mine.jinja, 14 characters")


def test_preflight_as_json(tmp_path: Path):
    found = preflight(open_checkpoint(gguf_model(tmp_path / "m.gguf")), available=PLENTY).to_dict()
    assert found["model"] == "m"
    assert {"name": "tokenizer", "verdict": "ok", "detail": "in the file, 5 tokens"} in found["checks"]
    assert found["memory"] == {
        "weights": (tmp_path / "m.gguf").stat().st_size,
        "cache": 1048576,
        "context": 4096,
        "needed": (tmp_path / "m.gguf").stat().st_size + 1048576 + 300_000_000,
        "available": PLENTY,
        "fits": True,
    }


@pytest.mark.parametrize(
    ("fields", "each"),
    [
        ({}, 2 * 2 * (16 + 16) * 2),  # layers · heads · (key + value) · 2 bytes
        ({"qwen2.attention.head_count_kv": [2, 0]}, 2 * (16 + 16) * 2),
        ({"qwen2.attention.head_count_kv": None}, 2 * 4 * (16 + 16) * 2),
        ({"qwen2.attention.key_length": 32, "qwen2.attention.value_length": 8}, 2 * 2 * (32 + 8) * 2),
        ({"qwen2.attention.kv_lora_rank": 64, "qwen2.rope.dimension_count": 8}, 2 * (64 + 8) * 2),
        ({"qwen2.block_count": None}, None),
        ({"qwen2.attention.head_count": None}, None),
    ],
)
def test_the_cache_of_a_token(tmp_path: Path, fields: dict[str, Any], each: int | None):
    assert cache_bytes_per_token(open_checkpoint(gguf_model(tmp_path / "m.gguf", fields))) == each


@pytest.mark.parametrize(
    "config", [{"num_hidden_layers": 10**400}, {"num_attention_heads": ["a", 1.5]}, {"num_key_value_heads": ["a"]}]
)
def test_a_configuration_of_nonsense(tmp_path: Path, config: dict[str, Any]):
    folder = no_weights(tmp_path, **{"config.json": json.dumps({**CONFIG, **config})})
    checkpoint = open_checkpoint(folder)
    assert preflight(checkpoint, available=PLENTY).memory is not None
    assert cache_bytes_per_token(checkpoint) is None
    (folder / "config.json").write_text(json.dumps({**CONFIG, "max_position_embeddings": 10**400}))
    assert open_checkpoint(folder).context_length is None


def test_layers_without_end(tmp_path: Path):
    # A list of this length would not fit into memory.
    path = gguf_model(tmp_path / "m.gguf", {"qwen2.block_count": 2**32 - 1})
    assert cache_bytes_per_token(open_checkpoint(path)) == (2**32 - 1) * 2 * (16 + 16) * 2


def test_memory_that_is_not_known():
    assert Memory(0, 1000, 1000, None).fits is None


# -- Tokenizers ---------------------------------------------------------------------------------------------------


def no_weights(folder: Path, **files: str | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(b"x")
    for name, data in files.items():
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_tokenizer_json(tmp_path: Path):
    found = resolve_tokenizer(open_checkpoint(no_weights(tmp_path, **{"tokenizer.json": tokenizer_json()})))
    assert found.get_vocab() == {
        "a": 0,
        "b": 1,
        "Ġ": 2,
        "ab": 3,
        "<|im_start|>": 4,
        "<|im_end|>": 5,
        "<tool_call>": 6,
    }
    assert found.size == 7


def test_the_files_of_bpe(tmp_path: Path):
    folder = no_weights(
        tmp_path,
        **{
            "vocab.json": '{"a": 0, "b": 1, "ab": 2}',
            "added_tokens.json": '{"<|end|>": 3}',
        },
    )
    found = resolve_tokenizer(open_checkpoint(folder))
    assert found.get_vocab() == {"a": 0, "b": 1, "ab": 2, "<|end|>": 3}


def test_tekken(tmp_path: Path):
    content = {
        "config": {"default_num_special_tokens": 2, "default_vocab_size": 5},
        "special_tokens": [{"rank": 0, "token_str": "<s>"}, {"rank": 1, "token_str": "[TOOL_CALLS]"}],
        "vocab": [{"rank": i, "token_bytes": b64(t)} for i, t in enumerate(["a", " b", "é", "beyond"])],
    }
    found = resolve_tokenizer(open_checkpoint(no_weights(tmp_path, **{"tekken.json": json.dumps(content)})))
    assert found.get_vocab() == {"<s>": 0, "[TOOL_CALLS]": 1, "a": 2, "Ġb": 3, "Ã©": 4}


@pytest.mark.parametrize("name", ["qwen.tiktoken", "tiktoken.model", "tokenizer.model"])
def test_tiktoken(tmp_path: Path, name: str):
    config = {"added_tokens_decoder": {"3": {"content": "<|end|>"}, "4": "odd"}}
    lines = f"{b64('a')} 0\n{b64(' b')} 1\n{b64('c')} 2\n"
    folder = no_weights(tmp_path, **{name: lines, "tokenizer_config.json": json.dumps(config)})
    assert resolve_tokenizer(open_checkpoint(folder)).get_vocab() == {"a": 0, "Ġb": 1, "c": 2, "<|end|>": 3}


def test_the_vocabulary_of_a_gguf_file(tmp_path: Path):
    found = resolve_tokenizer(open_checkpoint(gguf_model(tmp_path / "m.gguf")))
    assert found.get_vocab() == {token: i for i, token in enumerate(FIELDS["tokenizer.ggml.tokens"])}


def test_no_tokenizer(tmp_path: Path):
    folder = no_weights(tmp_path / "m", **{"tokenizer.json": "{}", "tokenizer.model": b"\xff\xff"})
    with pytest.raises(TokenizerError) as caught:
        resolve_tokenizer(open_checkpoint(folder))
    assert str(caught.value).startswith("m: no tokenizer (tokenizer.json: ")
    assert "; tokenizer.model: " in str(caught.value)
    folder = no_weights(tmp_path / "n", **{"config.json": '{"base_model": "org/base"}'})
    nothing = (
        f"{folder} has none of tokenizer.json, tekken.json, *.tiktoken, tiktoken.model, tokenizer.model, vocab.json"
    )
    with pytest.raises(TokenizerError) as caught:
        resolve_tokenizer(open_checkpoint(folder))
    assert str(caught.value) == f"n: no tokenizer ({nothing})"
    path = gguf_model(tmp_path / "m.gguf", {"tokenizer.ggml.tokens": None})
    with pytest.raises(TokenizerError) as caught:
        resolve_tokenizer(open_checkpoint(path))
    assert str(caught.value) == "m: no tokenizer (the GGUF file has no vocabulary)"
