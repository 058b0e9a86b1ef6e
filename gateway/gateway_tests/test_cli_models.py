"""``pull``, ``list``, ``show`` and ``rm``: their output and their errors."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from untemplate._internal import cli

from .manager.fake_hub import commit, fake_hub
from .manager.models import TEMPLATE, gguf_model, safetensors_files, safetensors_model

pytest.importorskip("huggingface_hub")


class Run:
    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = cli.main(arguments)
        out, err = self._capsys.readouterr()
        return code, out, err

    def fails(self, *arguments: str, stdin: str = "") -> str:
        code, _, err = self(*arguments, stdin=stdin)
        assert (code, err.count("\n")) == (2, 1)
        return err.removeprefix("untemplate: error: ").removesuffix("\n")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return Run(capsys, monkeypatch)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    data = gguf_model(tmp_path / "tiny.gguf").read_bytes()
    repos = {
        "org/tiny-GGUF": {"tiny-Q4_K_M.gguf": data, "tiny-Q8_0.gguf": data + b"0" * 100},
        "org/st": safetensors_files(),
    }
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    with fake_hub(dict(repos)) as (url, _):
        monkeypatch.setenv("HF_ENDPOINT", url)
        yield tmp_path / "home" / "hub"


def at(home: Path, repo: str, file: str = "") -> str:
    return str(home / f"models--{repo.replace('/', '--')}" / "snapshots" / commit(repo) / file).rstrip("/")


# -- pull ---------------------------------------------------------------------------------------------------------


def test_pull(run: Run, home: Path):
    code, out, err = run("pull", "org/tiny-GGUF")
    assert (code, out) == (
        0,
        f"org/tiny-GGUF:Q4_K_M is at {at(home, 'org/tiny-GGUF', 'tiny-Q4_K_M.gguf')}\n"
        "serve it: untemplate serve org/tiny-GGUF:Q4_K_M\n",
    )
    assert err.startswith("untemplate: org/tiny-GGUF: 1 files, 1.6 kB\n")
    code, _, err = run("pull", "org/tiny-GGUF:q4_k_m")
    assert (code, err.split("\n")[0]) == (0, "untemplate: org/tiny-GGUF: 1 files, 1.6 kB")


def test_pull_for_programs(run: Run, home: Path):
    code, out, err = run("pull", "org/st", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["name"], found["size"], found["path"]) == ("org/st", 1000, at(home, "org/st"))


def test_what_cannot_be_pulled(run: Run, home: Path):
    assert run.fails("pull", "tiny") == (
        "'tiny' is not a name on the hub; expected org/repo, org/repo:Q4_K_M or org/repo:FILE.gguf"
    )
    assert run.fails("pull", "org/tiny-GGUF:Q2_K") == (
        "org/tiny-GGUF has no 'Q2_K'; available: Q4_K_M (1.6 kB), Q8_0 (1.7 kB)"
    )
    assert run.fails("pull", "org/st", "--revision", "x") == "org/st: there is no such revision"


# -- list ---------------------------------------------------------------------------------------------------------


def test_list(run: Run, home: Path):
    assert run("list") == (0, f"no models in {home}; `untemplate pull ORG/REPO` fetches one\n", "")
    assert run("list", "--json") == (0, "[]\n", "")
    run("pull", "org/tiny-GGUF", "--json")
    run("pull", "org/st", "--json")
    assert run("list") == (
        0,
        "NAME                  SIZE    FORMAT       PARSER  LAST USED\n"
        "org/st                1.0 kB  safetensors  hermes  just now\n"
        "org/tiny-GGUF:Q4_K_M  1.6 kB  gguf         hermes  just now\n",
        "",
    )
    path = Path(at(home, "org/tiny-GGUF", "tiny-Q4_K_M.gguf"))
    os.utime(path, (1.0, 1.0))
    _, out, _ = run("list", "--fast", "--json")
    assert json.loads(out)[1] == {
        "name": "org/tiny-GGUF:Q4_K_M",
        "size": path.stat().st_size,
        "format": "gguf",
        "parser": None,
        "last_used": 1,
        "path": str(path),
    }
    _, out, _ = run("list", "--fast")
    assert out.split("\n")[2].endswith(" days ago")


# -- show ---------------------------------------------------------------------------------------------------------


def test_show(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from untemplate_gateway.manager import preflight

    monkeypatch.setattr(preflight, "available_memory", lambda: 10**12)
    monkeypatch.setattr(preflight, "_architectures", lambda package: ["qwen2"])
    path = gguf_model(tmp_path / "tiny-Q8_0.gguf")
    template = "\n".join(f"  {line}" for line in TEMPLATE.split("\n"))
    assert run("show", str(path)) == (
        0,
        f"""\
tiny-Q8_0
  family      qwen2
  weights     gguf Q8_0 1.6 kB
  parameters  320
  context     4096 tokens
  thinking    no
  tools       yes (hermes)
  path        {path}

How that is known:
  - the GGUF file gives its type as qwen2
  - format hermes: model type qwen2; certified
  - its template writes tool calls, and they are read back

Would it load: yes
  weights        1 file, 1.6 kB, Q8_0, 320 parameters
  tokenizer      in the file, 5 tokens
  architecture   qwen2, known to llama.cpp
  chat template  the model's own, {len(TEMPLATE)} characters
  memory         about 301 MB (weights 1.6 kB, KV cache 1.0 MB for 4096 tokens), 1000 GB free

Its chat template:
{template}
""",
        "",
    )


def test_show_for_programs(run: Run, tmp_path: Path):
    code, out, _ = run("show", str(safetensors_model(tmp_path / "mine")), "--json")
    found = json.loads(out)
    assert (code, found["name"], found["family"], found["chat_template"]) == (0, "mine", "qwen2", TEMPLATE)
    assert found["capabilities"]["tool_call_parser"] == "hermes"
    assert found["preflight"]["memory"]["context"] == 4096


def test_show_a_template(run: Run, tmp_path: Path):
    assert run("show", str(gguf_model(tmp_path / "m.gguf")), "--template") == (0, TEMPLATE + "\n", "")
    long = "\n".join("{{ messages }}" for _ in range(20))
    path = gguf_model(tmp_path / "m.gguf", {"tokenizer.chat_template": long})
    assert run("show", str(path))[1].endswith("  {{ messages }}\n  ... 8 more lines (--template)\n")
    path = gguf_model(tmp_path / "m.gguf", {"tokenizer.chat_template": None})
    assert run.fails("show", str(path), "--template") == "m has no chat template"


def test_what_cannot_be_shown(run: Run, home: Path, tmp_path: Path):
    assert run.fails("show", "missing.gguf") == "missing.gguf: no such file or folder"
    assert run.fails("show", "org/st") == (
        "org/st is not on disk; `untemplate pull org/st` fetches it, `untemplate list` lists what is"
    )
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF\3\0\0\0" + b"\xff" * 40)
    said = f"{broken}: a broken GGUF file (it ends too soon, or a length in it is wrong)"
    assert run.fails("show", str(broken)) == said


# -- rm -----------------------------------------------------------------------------------------------------------


def test_rm_asks(run: Run, home: Path):
    run("pull", "org/tiny-GGUF", "--json")
    code, out, err = run("rm", "org/tiny-GGUF", stdin="n\n")
    assert (code, out, err) == (
        2,
        "    1.6 kB  org/tiny-GGUF:Q4_K_M\nDelete this (1.6 kB)? [y/N] ",
        "untemplate: error: nothing was deleted\n",
    )
    code, out, _ = run("rm", "org/tiny-GGUF:Q4_K_M", stdin="y\n")
    assert (code, out.endswith("freed\n")) == (0, True)
    assert run("list", "--json")[1] == "[]\n"


def test_rm_for_programs(run: Run, home: Path):
    for name in ("org/tiny-GGUF:Q4_K_M", "org/tiny-GGUF:Q8_0", "org/st"):
        run("pull", name, "--json")
    assert run.fails("rm", "org/st", "--json") == "--json needs --yes, since it cannot ask"
    assert run.fails("rm", "org/tiny-GGUF:Q8_0", "--yes") == (
        "repositories are deleted as a whole, and org/tiny-GGUF:Q4_K_M would go as well: name it, too"
    )
    _, out, _ = run("rm", "org/tiny-GGUF", "org/st", "--yes", "--json")
    assert json.loads(out)["deleted"] == ["org/tiny-GGUF:Q4_K_M", "org/tiny-GGUF:Q8_0", "org/st"]
    assert run.fails("rm", "org/st", "--yes") == "org/st is not in the cache; `untemplate list` lists what is"
