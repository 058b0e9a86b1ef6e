"""Reads GGUF metadata, also of files that are broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from untemplate.templates._gguf_file import GgufError, Tensor, read_gguf

from .gguf_writer import write_gguf

FIELDS = {
    "general.architecture": "qwen3",
    "general.name": "Kleines Modell ü",
    "qwen3.context_length": 4096,
    "qwen3.rope.freq_base": 10000.0,
    "qwen3.attention.head_count_kv": [2, 2, 0],
    "tokenizer.ggml.tokens": ["a", "<s>", "ü", ""],
    "tokenizer.ggml.scores": [0.5, -1.0, 0.0, 0.0],
    "tokenizer.ggml.token_type": [1, 3, 1, 1],
    "tokenizer.ggml.add_bos_token": True,
    "some.flags": [True, False],
    "some.negative": -3,
    "nothing": [],
}
TENSORS = {"token_embd.weight": (8, 4), "output_norm.weight": (8,)}


@pytest.mark.parametrize("order", ["<", ">"])
def test_what_is_written_is_read(tmp_path: Path, order: str):
    found = read_gguf(write_gguf(tmp_path / "m.gguf", FIELDS, TENSORS, order=order))
    assert dict(found) == FIELDS
    assert found.tensors == (Tensor("token_embd.weight", (8, 4), 1), Tensor("output_norm.weight", (8,), 1))
    assert [t.elements for t in found.tensors] == [32, 8]
    assert (found.architecture, found.of_architecture("context_length"), found.version) == ("qwen3", 4096, 3)
    assert found.of_architecture("block_count", 0) == 0
    assert [found.count(k) for k in ("tokenizer.ggml.tokens", "general.name", "missing")] == [4, 0, 0]
    with pytest.raises(KeyError):
        found["missing"]


def test_what_the_package_writes_is_read(tmp_path: Path):
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(512)
    writer.add_token_list(["a", "<ü>"])
    writer.add_chat_template("{{ messages }}")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert dict(read_gguf(path)) == {
        "general.architecture": "llama",
        "llama.context_length": 512,
        "tokenizer.ggml.tokens": ["a", "<ü>"],
        "tokenizer.chat_template": "{{ messages }}",
    }


def test_parts_of_a_value(tmp_path: Path):
    path = write_gguf(tmp_path / "m.gguf", {"text": "häl", "texts": ["a", "", "cc"], "numbers": [1, 2]})
    found = read_gguf(path)
    assert [found.text_size(key) for key in ("text", "texts", "none")] == [4, 0, 0]
    assert [found.item("texts", i) for i in (-1, 0, 1, 2, 3)] == [None, "a", "", "cc", None]
    assert [found.item(key, 0) for key in ("text", "numbers", "none")] == [None, None, None]


def test_files_that_are_not_gguf(tmp_path: Path):
    path = tmp_path / "m.gguf"
    for data in (b"", b"GGUF", b"PK\3\4" + bytes(40)):
        path.write_bytes(data)
        with pytest.raises(GgufError) as caught:
            read_gguf(path)
        assert str(caught.value) == f"{path}: not a GGUF file"
    with pytest.raises(GgufError) as caught:
        read_gguf(write_gguf(path, version=1))
    assert str(caught.value) == f"{path}: GGUF version 1 cannot be read (2 and 3 can)"
    with pytest.raises(OSError, match="No such file"):
        read_gguf(tmp_path / "missing.gguf")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(at=st.integers(24, 800), data=st.binary(min_size=1, max_size=16), cut=st.booleans())
@example(at=24, data=b"\xff" * 8, cut=False)
def test_a_broken_file_is_an_error_that_says_so(tmp_path: Path, at: int, data: bytes, cut: bool):
    path = write_gguf(tmp_path / "m.gguf", FIELDS, TENSORS)
    whole = path.read_bytes()
    path.write_bytes(whole[:at] if cut else whole[:at] + data + whole[at + len(data) :])
    assert problem(path) in ("", f"{path}: a broken GGUF file (it ends too soon, or a length in it is wrong)")


@pytest.mark.parametrize("value", ["llama", ["a", "llama"]])
def test_a_text_that_ends_behind_the_file_is_found_at_once(tmp_path: Path, value: object):
    path = write_gguf(tmp_path / "m.gguf", {"general.architecture": value})
    at = path.read_bytes().rindex(b"\5" + bytes(7) + b"llama")
    path.write_bytes(path.read_bytes()[:at] + b"\xff" + path.read_bytes()[at + 1 :])
    with pytest.raises(GgufError) as caught:
        read_gguf(path)
    assert str(caught.value) == f"{path}: a broken GGUF file (it ends too soon, or a length in it is wrong)"


def problem(path: Path) -> str:
    try:
        found = read_gguf(path)
        dict(found)
        return "" if len(found.tensors) == 2 else "tensors are missing"
    except GgufError as error:
        return str(error)
