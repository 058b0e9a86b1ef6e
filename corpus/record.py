"""Record other projects' parsers while their own tests run, and list where untemplate gives another message.

usage: python -m corpus.record vllm --python build/peers/vllm/bin/python
       python -m corpus.record sglang --python build/peers/sglang/bin/python --source ../sglang

The tests of vLLM are in its source distribution, which is downloaded once to ``build/corpus``. For other projects
``--source`` names a folder with their sources, and the verdicts name their outputs by a hash only. New disagreements
are added to ``corpus/verdicts/PROJECT.jsonl``, with the verdict ``new``. A person then writes one of these:

* ``policy``: both readings are documented, and users may want either;
* ``theirs``: the other project is wrong, or tests an implementation;
* ``ours``: untemplate is wrong. ``expect`` is what should come out. `tests/test_verdicts.py` fails until it does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from untemplate import OutputParser
from untemplate.formats import UnknownFormatError, named

ROOT: Final = Path(__file__).parents[1]
VERDICTS: Final = ROOT / "corpus/verdicts"
WORDS: Final = ("new", "policy", "theirs", "ours")


_OPTIONS: Final = (
    "-p",
    "no:cacheprovider",
    "--no-header",
    "--tb=no",
    "--continue-on-collection-errors",
    "-W",
    "ignore",
)


@dataclass(frozen=True)
class Project:
    """A project whose tests can be recorded.

    Attributes:
        package: its distribution.
        licence: of its sources, and so of the outputs in its tests.
        tests: folders of its tests.
        fetch: environment for the download of its source distribution; None: the tests are not in it.
        names: its names of parsers that mean something else in the catalogue, or have another name there.
    """

    package: str
    licence: str
    tests: tuple[str, ...]
    fetch: dict[str, str] | None
    names: dict[str, str]


PROJECTS: Final = {
    "vllm": Project("vllm", "Apache-2.0", ("tests/tool_parsers",), {"VLLM_TARGET_DEVICE": "empty"}, {}),
    "sglang": Project("sglang", "Apache-2.0", ("test/registered/unit/function_call",), None, {"qwen25": "hermes"}),
}


def recorded(project: Project, python: str, source: Path) -> list[dict[str, Any]]:
    """Run the tests of a project, and return what its parsers returned in those that passed."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "recorded.jsonl"
        plugins = [str(ROOT / "corpus/plugin"), str(ROOT / "tests/vllm_serve/plugins"), str(ROOT / "src")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(source), *plugins]),
            "UNTEMPLATE_RECORD": str(out),
            "UNTEMPLATE_OUTCOMES": str(Path(scratch) / "outcomes.json"),
            "HF_HUB_OFFLINE": "1",
            "VLLM_LOGGING_LEVEL": "ERROR",
        }
        offline = ["-p", "untemplate_outcomes"] if project.package == "vllm" else []
        command = [python, "-m", "pytest", "-q", "-p", "untemplate_recording", *offline, *_OPTIONS]
        command += [f"--confcutdir={project.tests[0]}", *project.tests]
        done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
        if not out.exists():
            raise SystemExit(f"{project.package}: its tests did not run:\n{(done.stdout + done.stderr)[-2000:]}")
        return [json.loads(line) for line in out.read_text("utf-8").split("\n") if line]


def source_of(project: Project, python: str) -> Path:
    """Return the folder of a project's source distribution, downloaded if it is not there."""
    if project.fetch is None:
        raise SystemExit(f"{project.package}: its source distribution has no tests; --source names its sources")
    code = f"import importlib.metadata as m; print(m.version({project.package!r}))"
    version = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    folder = ROOT / "build/corpus" / f"{project.package}-{version}"
    if not folder.exists():
        options = ["--no-deps", "--no-binary", project.package, "--no-build-isolation", "--dest", str(folder.parent)]
        environment = {**os.environ, **project.fetch, "VLLM_VERSION_OVERRIDE": version}
        command = [python, "-m", "pip", "download", "-q", *options, f"{project.package}=={version}"]
        subprocess.run(command, env=environment, check=True)
        with tarfile.open(folder.with_name(f"{folder.name}.tar.gz")) as archive:
            archive.extractall(folder.parent, filter="data")
    return folder


def disagreements(project: Project, found: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the outputs of which untemplate gives another message, each once."""
    seen = set()
    for one in found:
        name = project.names.get(one["parser"], one["parser"])
        key = hashlib.sha256(json.dumps([name, one["output"], one["tools"]]).encode()).hexdigest()[:12]
        try:
            named(name)
        except UnknownFormatError:
            continue
        if key in seen:
            continue
        seen.add(key)
        theirs = {"content": one["content"], "calls": one["calls"]}
        ours = message(name, one["output"], one["tools"])
        if plain(ours) != plain(theirs):
            texts = {"tools": one["tools"], "output": one["output"], "theirs": theirs, "ours": ours}
            yield {
                "id": key, "format": name, "test": one["test"], "licence": project.licence, **texts,
                "verdict": "new", "why": "",
            }  # fmt: skip


def kept(project: Project, case: dict[str, Any]) -> dict[str, Any]:
    """Return a case as its file has it: without texts if they are not published, once there is a verdict."""
    if project.fetch is not None or case["verdict"] == "new":
        return case
    return {key: value for key, value in case.items() if key not in ("tools", "output", "theirs", "ours")}


def message(name: str, output: str, tools: Any) -> dict[str, Any]:
    """Return untemplate's message, with reasoning in the content, as a tool parser leaves it there."""
    parsed = OutputParser(None, tool_parser_name=name).parse(output, tools=tools)
    calls = [[call.function.name, call.function.arguments] for call in parsed.tool_calls]
    return {"content": (parsed.reasoning or "") + (parsed.content or ""), "calls": calls}


def plain(said: dict[str, Any]) -> Any:
    """Return a message without white space at the edges of its content, and with arguments as values."""
    calls = []
    for name, arguments in said["calls"]:
        try:
            calls.append((name, json.loads(arguments)))
        except ValueError:
            calls.append((name, arguments))
    return said["content"].strip(), calls


def load(path: Path) -> list[dict[str, Any]]:
    """Return the verdicts of a file."""
    return [json.loads(line) for line in path.read_text("utf-8").rstrip("\n").split("\n")] if path.exists() else []


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("project", choices=[*PROJECTS])
    arguments.add_argument("--python", required=True, help="Python of an environment with the project and pytest")
    arguments.add_argument("--source", type=Path, help="folder with the project's sources (default: downloaded)")
    given = arguments.parse_args()
    logging.getLogger("untemplate").setLevel(logging.ERROR)
    project = PROJECTS[given.project]
    python = str(Path(given.python).absolute())
    source = given.source.resolve() if given.source else source_of(project, python)
    found = recorded(project, python, source)
    path = VERDICTS / f"{given.project}.jsonl"
    known = {one["id"]: one for one in load(path)}
    others = list(disagreements(project, found))
    new = [one for one in others if one["id"] not in known]
    lines = sorted(
        (kept(project, one) for one in [*known.values(), *new]), key=lambda one: (one["format"], one["test"], one["id"])
    )
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines), "utf-8")
    outputs = len({(one["parser"], one["output"]) for one in found})
    tests = len({one["test"] for one in found})
    print(f"{outputs} outputs of {tests} tests; {len(others)} other messages, {len(new)} new")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
