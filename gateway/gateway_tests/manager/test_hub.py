"""The hub: models are chosen, downloaded, found again and deleted; and the errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from untemplate_gateway.manager import hub
from untemplate_gateway.manager.checkpoint import size_text

from .fake_hub import Repos, commit, fake_hub
from .models import gguf_model, safetensors_files

pytest.importorskip("huggingface_hub")


class Hub:
    def __init__(self, url: str, asked: list[str], folder: Path, repos: Repos) -> None:
        self.url = url
        self.asked = asked
        self.folder = folder
        self.repos = repos

    def pull(self, name: str) -> str:
        return hub.pull(hub.plan(name), quiet=True).name


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    data = gguf_model(tmp_path / "tiny.gguf").read_bytes()
    repos: Repos = {
        "org/tiny-GGUF": {
            "tiny-Q4_K_M.gguf": data,
            "tiny-Q8_0.gguf": data + b"0" * 100,
            "parts/tiny-F16-00001-of-00002.gguf": data + b"1",
            "parts/tiny-F16-00002-of-00002.gguf": data + b"2",
            "mmproj-F16.gguf": data,
            "README.md": b"a card",
        },
        "org/several": {"one.gguf": data, "two.gguf": data + b"0"},
        "org/single": {"model.gguf": data},
        "org/st": {
            **safetensors_files(**{"README.md": "a card", "generation_config.json": "{}"}),
            "consolidated.safetensors": b"the same once more",
            "original/model.safetensors": b"and again",
            "image.png": b"png",
        },
        "org/data": {"data.parquet": b""},
        "org/gated": "gated",
    }
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    with fake_hub(repos) as (url, asked):
        monkeypatch.setenv("HF_ENDPOINT", url)
        yield Hub(url, asked, tmp_path / "home" / "hub", repos)


def failure(name: str, revision: str | None = None) -> str:
    with pytest.raises(hub.HubError) as caught:
        hub.plan(name, revision=revision)
    return str(caught.value)


# -- What is chosen -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("org/tiny-GGUF", ["tiny-Q4_K_M.gguf"]),
        ("org/tiny-GGUF:q8_0", ["tiny-Q8_0.gguf"]),
        ("org/tiny-GGUF:tiny-Q8_0.gguf", ["tiny-Q8_0.gguf"]),
        ("org/tiny-GGUF:F16", ["parts/tiny-F16-00001-of-00002.gguf", "parts/tiny-F16-00002-of-00002.gguf"]),
        ("org/single", ["model.gguf"]),
        (
            "org/st",
            [
                *("README.md", "chat_template.jinja", "config.json", "generation_config.json"),
                *("model.safetensors", "tokenizer.json"),
            ],
        ),
    ],
)
def test_what_is_fetched(there: Hub, name: str, files: list[str]):
    plan = hub.plan(name)
    assert list(plan.files) == files
    assert plan.size == sum(plan.files.values())


def test_what_cannot_be_chosen(there: Hub):
    listed = "F16 (3.3 kB), Q4_K_M (1.6 kB), Q8_0 (1.7 kB)"
    assert failure("org/tiny-GGUF:Q2_K") == f"org/tiny-GGUF has no 'Q2_K'; available: {listed}"
    assert failure("org/several") == "org/several holds several models; available: one.gguf (1.6 kB), two.gguf (1.6 kB)"
    assert failure("org/st:Q4_0") == "org/st has no GGUF files, so there is no 'Q4_0' to choose; leave it out"
    assert failure("org/data") == (
        "org/data has neither GGUF files nor safetensors: it holds no model that can be served"
    )
    assert failure("model") == (
        "'model' is not a name on the hub; expected org/repo, org/repo:Q4_K_M or org/repo:FILE.gguf"
    )


def test_what_cannot_be_had(there: Hub, monkeypatch: pytest.MonkeyPatch):
    log_in = "log in with `hf auth login`, or set HF_TOKEN"
    assert failure("org/none") == f"org/none: no such repository; if it is private, {log_in}"
    assert failure("org/gated") == (f"org/gated is gated: agree to its terms at {there.url}/org/gated, and {log_in}")
    assert failure("org/st", "nope") == "org/st: there is no such revision"
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    found = failure("org/st")
    assert found.startswith("org/st: the hub cannot be reached (")
    assert found.endswith("); `untemplate list` shows what is on disk")


def test_a_disk_that_is_too_small(there: Hub, monkeypatch: pytest.MonkeyPatch):
    plan = hub.plan("org/single")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(2000, 1500, 500))
    with pytest.raises(hub.HubError) as caught:
        hub.pull(plan, quiet=True)
    assert str(caught.value).startswith("org/single: Not enough free disk space to download the file.")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch):
    import sys

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(hub.HubError, match=r"^models on the hub need the package huggingface_hub: pip install"):
        hub.pull(hub.Plan("org/x", "0", {}, ""))


# -- Fetched, found and deleted -----------------------------------------------------------------------------------


def test_a_quantization_is_fetched_once(there: Hub):
    assert hub.find("org/tiny-GGUF") is None
    found = hub.pull(hub.plan("org/tiny-GGUF"), quiet=True)
    assert (found.name, found.repo, found.kind, found.quantization) == (
        *("org/tiny-GGUF:Q4_K_M", "org/tiny-GGUF", "gguf", "Q4_K_M"),
    )
    assert found.path.read_bytes() == there.repos["org/tiny-GGUF"]["tiny-Q4_K_M.gguf"]  # type: ignore[index]
    there.asked.clear()
    for name in ("org/tiny-GGUF", "org/tiny-GGUF:Q4_K_M", "org/tiny-GGUF:tiny-q4_k_m.gguf"):
        again = hub.find(name)
        assert again is not None
        assert again.path == found.path
    assert hub.find("org/tiny-GGUF:Q8_0") is None
    assert there.asked == []


def test_a_model_in_parts(there: Hub):
    found = hub.pull(hub.plan("org/tiny-GGUF:F16"), quiet=True)
    assert [path.name for path in found.files] == ["tiny-F16-00001-of-00002.gguf", "tiny-F16-00002-of-00002.gguf"]
    assert found.name == "org/tiny-GGUF:F16"
    found.files[1].unlink()
    assert hub.find("org/tiny-GGUF:F16") is None


def test_safetensors_that_are_not_whole(there: Hub):
    found = hub.pull(hub.plan("org/st"), quiet=True)
    assert (found.name, found.family, found.context_length) == ("org/st", "qwen2", 4096)
    assert hub.find("org/st") is not None
    (found.path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-00002.safetensors"}}')
    assert hub.find("org/st") is None
    (found.path / "model.safetensors.index.json").write_text('{"weight_map": {"a": ["model.safetensors"]}}')
    assert hub.find("org/st") is None
    (found.path / "model.safetensors.index.json").unlink()
    assert hub.find("org/st") is not None
    (found.path / "model.safetensors").resolve().unlink()  # the link to it is left
    assert hub.find("org/st") is None
    assert hub.cached() == []


def test_only_what_main_names_is_noted_as_main(there: Hub):
    found = hub.pull(hub.plan("org/single", revision=commit("org/single")), quiet=True)
    main = found.path.parents[2] / "refs" / "main"
    assert not main.exists()
    assert hub.find("org/single") is not None
    hub.pull(hub.plan("org/single"), quiet=True)
    assert main.read_text() == commit("org/single")


def test_names():
    assert hub.is_hub_name("org/repo:Q4_K_M")
    assert not hub.is_hub_name("./repo")
    assert not hub.is_hub_name("../repo")


def test_what_is_there(there: Hub):
    assert hub.cached() == []
    for name in ("org/st", "org/tiny-GGUF:Q8_0", "org/tiny-GGUF:Q4_K_M"):
        there.pull(name)
    assert [(c.name, size_text(c.size)) for c in hub.cached()] == [
        ("org/st", "1.0 kB"),
        ("org/tiny-GGUF:Q4_K_M", "1.6 kB"),
        ("org/tiny-GGUF:Q8_0", "1.7 kB"),
    ]
    assert all(c.last_used > 1e9 for c in hub.cached())


def test_deleting(there: Hub):
    for name in ("org/tiny-GGUF:Q8_0", "org/tiny-GGUF:Q4_K_M", "org/st"):
        there.pull(name)
    models = {c.name: c for c in hub.cached()}
    with pytest.raises(hub.HubError, match="org/tiny-GGUF:Q4_K_M would go as well: name it, too"):
        hub.remove([models["org/tiny-GGUF:Q8_0"]])
    assert hub.find("org/tiny-GGUF:Q8_0") is not None
    assert hub.remove([models["org/tiny-GGUF:Q8_0"], models["org/tiny-GGUF:Q4_K_M"]]) >= 3332
    assert [model.name for model in hub.cached()] == ["org/st"]
    assert hub.remove([models["org/st"]]) >= 1000
    assert hub.cached() == []
    assert list(there.folder.glob("models--*")) == []


def test_a_revision_that_shares_a_file(there: Hub):
    found = hub.pull(hub.plan("org/single"), quiet=True)
    other = found.path.parents[1] / ("0" * 40)
    other.mkdir()
    (other / "model.gguf").symlink_to(found.path.resolve())
    (model,) = hub.cached()
    size = model.size
    assert hub.remove([model]) >= size
    assert hub.cached() == []


def test_what_is_outside_of_the_cache_is_not_deleted(there: Hub, tmp_path: Path):
    mine = gguf_model(tmp_path / "mine.gguf")
    found = hub.pull(hub.plan("org/single"), quiet=True)
    found.path.unlink()
    found.path.symlink_to(mine)
    hub.remove(hub.cached())
    assert hub.cached() == []
    assert mine.is_file()
