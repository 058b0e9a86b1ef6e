"""Installation: the core needs only its dependencies, a missing extra is named, and wheels are complete."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from untemplate._internal.installed import install_command

ROOT = Path(__file__).parents[1]
EXTRAS = {
    *("gguf", "httptools", "httpx", "huggingface_hub", "jsonschema_rs", "llguidance", "prometheus_client"),
    *(
        "pyarrow",
        "ray",
        "starlette",
        "tokenizers",
        "untemplate_demo",
        "uvicorn",
        "uvloop",
        "vllm",
        "xgrammar",
        "xllamacpp",
    ),
}
BARE = """
import importlib.util, os, sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

blocked = set(os.environ["BLOCKED"].split())
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in blocked else find_spec(name, package)
sys.meta_path.insert(0, Blocked())
"""


def bare(code: str, *arguments: str, cwd: Path, blocked: set[str] = EXTRAS) -> subprocess.CompletedProcess[str]:
    """Run code as if these packages were not installed."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UNTEMPLATE_", "HF_"))}
    environ |= {
        "BLOCKED": " ".join(blocked),
        "HF_HOME": str(cwd),
    }
    return subprocess.run(
        [sys.executable, "-c", BARE + code, *arguments],
        capture_output=True, text=True, cwd=cwd, env=environ, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "code", ["from untemplate import *", "import untemplate_gateway.settings", "import untemplate._internal.cli"]
)
def test_the_core_is_enough_for(code: str, tmp_path: Path):
    done = bare(code, cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_settings_load_nothing_of_the_gateway(tmp_path: Path):
    loaded = f"import untemplate_gateway.settings; print(sorted({EXTRAS} & set(sys.modules)))"
    done = bare(loaded, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_missing_extra_is_named(tmp_path: Path):
    done = bare("from untemplate._internal.cli import main; sys.exit(main(['pull', 'org/repo']))", cwd=tmp_path)
    needed = f"models on the hub need the package huggingface_hub: {install_command('untemplate-gateway', 'hub')}"
    assert done.stdout == ""
    assert done.stderr.strip().split("\n")[-1] == f"untemplate: error: {needed}"
    assert done.returncode != 0


@pytest.mark.parametrize(
    ("model", "blocked", "message"),
    [
        ("demo", {"untemplate_demo"}, f"demo: needs the demonstration model: {install_command('untemplate-demo')}"),
        (
            "model.gguf",
            {"xllamacpp"},
            f"engine: llamacpp needs xllamacpp: {install_command('untemplate-gateway', 'llamacpp')}",
        ),
    ],
)
def test_a_model_says_what_it_needs(model: str, blocked: set[str], message: str, tmp_path: Path):
    (tmp_path / "model.gguf").touch()
    code = f"""
import asyncio
from untemplate_gateway.manager.opening import open_manager
from untemplate_gateway.settings import Settings
try:
    asyncio.run(open_manager(Settings(model={model!r})))
except Exception as error:
    print(error)
"""
    done = bare(code, cwd=tmp_path, blocked=blocked)
    assert (done.stdout, done.stderr) == (message + "\n", "")


def test_dev_has_what_the_extras_have():
    """`dev` may lack only what is large, part of this repository, or for `make test-scaling`."""
    extras = project("")["optional-dependencies"]
    dev = set(extras.pop("dev"))
    gateway = project("gateway")
    wanted = [*extras.values(), *gateway["optional-dependencies"].values(), gateway["dependencies"]]
    left = {one for some in wanted for one in some} - dev - {f"untemplate=={project('')['version']}"}
    large = {
        "mkdocs-material>=9.5",
        "Pillow>=10.1",
        "pyarrow>=16",
        "ray[data]>=2.40",
        "ray[serve]>=2.40",
        "xgrammar>=0.2.8",
    }
    scaling = {"opentelemetry-exporter-otlp-proto-http>=1.25", "opentelemetry-sdk>=1.25", "redis>=5"}
    assert left == {*large, *scaling}


def test_no_extra_names_a_distribution_of_this_repository():
    """They are in no index yet; pip would look for them there."""
    for folder in ("", "gateway"):
        wanted = [one for some in project(folder)["optional-dependencies"].values() for one in some]
        assert [one for one in wanted if one.startswith("untemplate")] == []


@pytest.mark.parametrize("arguments", [["replay"], ["--port", "1"], ["-h"], []])
def test_without_the_gateway_its_commands_say_how_to_install_it(arguments: list[str], tmp_path: Path):
    code = """
import importlib.metadata
from untemplate._internal.cli import arguments, main
arguments.entry_points = lambda group: importlib.metadata.EntryPoints()
sys.exit(main(sys.argv[1:]))
"""
    done = bare(code, "serve", *arguments, cwd=tmp_path)
    said = f"untemplate: error: serve needs untemplate-gateway: {install_command('untemplate-gateway')}\n"
    assert (done.stdout, done.stderr, done.returncode) == ("", said, 2)
    shown = " ".join(bare(code, "--help", cwd=tmp_path).stdout.split())
    assert " rm delete a model from the cache (in untemplate-gateway, which is not installed) " in shown


@pytest.mark.parametrize(
    ("record", "command"),
    [
        (None, "pip install 'untemplate-gateway[redis]'"),
        ({"url": "https://example.org/untemplate.whl"}, "pip install 'untemplate-gateway[redis]'"),
        ({"url": ROOT.as_uri(), "dir_info": {}}, f"pip install '{ROOT / 'gateway'}[redis]'"),
    ],
)
def test_messages_name_the_command_that_works_here(record: Any, command: str, monkeypatch: pytest.MonkeyPatch):
    class Distribution:
        def read_text(self, name: str) -> str | None:
            return None if record is None else json.dumps(record)

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Distribution())
    assert install_command("untemplate-gateway", "redis") == command


def project(folder: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"]


def wheel(source: Path, into: Path) -> set[str]:
    """Return the files of the wheel that is built from a copy of the sources."""
    pytest.importorskip("setuptools")
    copy = into / "source"
    shutil.copytree(
        source, copy, ignore=lambda folder, names: [n for n in names if n not in KEPT and Path(folder) == source]
    )
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"),
            *("--wheel-dir", str(into), str(copy)),
        ],
        check=True,
    )
    (built,) = into.glob("*.whl")
    return set(zipfile.ZipFile(built).namelist())


KEPT = {"build_backend.py", "LICENSE", "MODEL_CARD.md", "README.md", "pyproject.toml", "src"}


@pytest.mark.parametrize(
    ("folder", "package"), [("", "untemplate"), ("gateway", "untemplate_gateway"), ("demo", "untemplate_demo")]
)
def test_a_wheel_has_every_file(folder: str, package: str, tmp_path: Path):
    """Modules, templates, recorded outputs, ``py.typed``, and the model of the demonstration."""
    source = ROOT / folder
    if not source.is_dir():
        pytest.skip("the source distribution has no demonstration model")
    there = {
        str(path.relative_to(source / "src"))
        for path in (source / "src" / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files = wheel(source, tmp_path)
    held = {name for name in files if ".dist-info/" not in name}
    assert held == there
    assert [name.rpartition("/")[2] for name in files if "/licenses/" in name] == ["LICENSE"]
    kinds = {Path(name).suffix or Path(name).name for name in held} | {Path(name).name for name in held}
    assert {"py.typed", ".py"} <= kinds
    assert (".gguf" in kinds) == (package == "untemplate_demo")


def test_the_version_is_the_same_everywhere():
    import untemplate

    assert project("")["version"] == project("gateway")["version"] == untemplate.__version__
    assert f"untemplate=={untemplate.__version__}" in project("gateway")["dependencies"]


def tracked() -> list[str]:
    """Return the files that git tracks, as paths from the root."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a git checkout")
    done = subprocess.run(["git", "ls-files"], capture_output=True, cwd=ROOT, check=True, encoding="utf-8")
    return done.stdout.splitlines()


def test_the_source_distribution_has_every_file_and_its_tests_run(tmp_path: Path):
    """Packagers build from it and run the tests in it."""
    pytest.importorskip("setuptools")
    there = tracked()
    source = tmp_path / "source"
    for name in there:
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    build = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=source, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as held:
        held.extractall(tmp_path / "unpacked", filter="data")
    (top,) = (tmp_path / "unpacked").iterdir()
    files = {str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()}
    missing = sorted(name for name in there if (ROOT / name).exists() and name not in files)
    assert [name for name in missing if not name.startswith("demo/")] == []
    assert not (top / "demo").exists()
    assert archive.stat().st_size < 4_000_000
    environ = os.environ | {"PYTHONPATH": str(top / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/test_corpus.py", "tests/test_output_parser.py"],
        capture_output=True, text=True, cwd=top, env=environ, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def pins(name: str) -> set[str]:
    """Return the pinned packages of a lock, as `name==version`."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return {line.partition(" ")[0] for line in lines if "==" in line}


def test_make_run_installs_a_part_of_what_make_test_does():
    light, whole = pins("requirements-run.lock"), pins("requirements-dev.lock")
    assert light <= whole
    assert len(light) <= 20
    asked = subprocess.run(["make", "-n", "run", "VENV=/nowhere/venv"], cwd=ROOT, capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr
    assert "--requirement requirements-run.lock" in asked.stdout
    assert "requirements-dev.lock" not in asked.stdout
