"""Renew the names that other projects give to output formats, from the newest wheels; print what is new.

usage: python docs/renew_names.py [--installed FOLDER ...] [PROJECT ...]

``make names`` runs it. Each wheel is downloaded by pip, without dependencies, and read without being imported or
installed. ``--installed`` names folders with installed packages (``site-packages``), which are read instead where they
have the project. Lists of projects without a wheel (Ollama, dynamo, TensorRT-LLM, vllm.rs) are kept by hand in the same
files.

The exit status is 1 if a name has neither a format nor a reason why it has none.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from untemplate.errors import UnknownFormatError
from untemplate.formats import lookup, named

ROOT: Final = Path(__file__).parents[1]
ENGINES: Final = ROOT / "docs" / "engine_names.json"
OTHERS: Final = ROOT / "tests" / "data" / "names.json"

Reader = Callable[[str, ast.Module], Iterable[str]]
"""Path and syntax tree of a file → names."""


def keys(*targets: str) -> Reader:
    """Return the keys of the dicts, and of the lists of pairs, that a name is assigned or its ``update`` gets."""

    def read(path: str, tree: ast.Module) -> Iterator[str]:
        for node in ast.walk(tree):
            held: list[Any] = []
            if isinstance(node, ast.Assign | ast.AnnAssign):
                places = node.targets if isinstance(node, ast.Assign) else [node.target]
                held = [node.value] if {ast.unparse(one) for one in places} & set(targets) else []
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in {f"{one}.update" for one in targets}:
                held = list(node.args)
            for value in held:
                yield from _keys(value)

    return read


def _keys(value: Any) -> Iterator[str]:
    """Return the keys of a dict, written as one or as a call with a list of pairs."""
    if isinstance(value, ast.Dict):
        yield from _texts(value.keys)
    elif isinstance(value, ast.Call):
        for part in value.args:
            yield from _keys(part)
    elif isinstance(value, ast.List):
        yield from _texts(pair.elts[0] for pair in value.elts if isinstance(pair, ast.Tuple))


def registered(function: str) -> Reader:
    """Return the strings in the first argument of all calls of a function, whatever it is an attribute of."""

    def read(path: str, tree: ast.Module) -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == function and node.args:
                yield from _texts(ast.walk(node.args[0]))

    return read


def compared(variable: str) -> Reader:
    """Return the strings that a variable is compared with."""

    def read(path: str, tree: ast.Module) -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and ast.unparse(node.left) == variable:
                yield from _texts(node.comparators)

    return read


def modules(path: str, tree: ast.Module) -> Iterator[str]:
    """Return the name of the module."""
    yield from [Path(path).stem] if not Path(path).stem.startswith("_") else []


def _texts(nodes: Iterable[Any]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


@dataclass(frozen=True)
class Source:
    """The names of one project: which files of its wheel list them, and how."""

    package: str
    files: Mapping[str, tuple[tuple[str, Reader], ...]]
    """Kind of the names (``tool``, ``reasoning``; ``names`` where both are one) → patterns of paths."""
    engine: bool = False
    left_out: frozenset[str] = field(default=frozenset())
    """Names that are no formats: the default, or one that guesses."""
    settings: str = ""
    """Expression for the ends of names that choose a prompt and no other format."""


SOURCES: Final[Mapping[str, Source]] = {
    "vllm": Source(
        "vllm",
        {
            "tool": (("vllm/tool_parsers/__init__.py", keys("_TOOL_PARSERS_TO_REGISTER")),),
            "reasoning": (("vllm/reasoning/__init__.py", keys("_REASONING_PARSERS_TO_REGISTER")),),
        },
        engine=True,
        left_out=frozenset({"identity"}),
    ),
    "sglang": Source(
        "sglang",
        {
            "tool": (("sglang/srt/function_call/function_call_parser.py", keys("ToolCallParserEnum")),),
            "reasoning": (("sglang/srt/parser/reasoning_parser.py", keys("DetectorMap")),),
        },
        engine=True,
    ),
    "mlx-lm": Source("mlx-lm", {"names": (("mlx_lm/tool_parsers/*.py", modules),)}),
    "lmdeploy": Source(
        "lmdeploy",
        {
            "names": (
                ("lmdeploy/serve/parsers/tool_parser/*.py", registered("register_module")),
                ("lmdeploy/serve/parsers/reasoning_parser/*.py", registered("register_module")),
                ("lmdeploy/serve/parsers/*.py", registered("register_module")),
            )
        },
    ),
    "renderers": Source(
        "renderers",
        {
            "names": (("renderers/base.py", keys("RENDERER_REGISTRY")),),
            "models": (("renderers/base.py", keys("MODEL_RENDERER_MAP")),),
        },
        left_out=frozenset({"default"}),
    ),
    "ms-swift": Source("ms-swift", {"names": (("swift/agent_template/mapping.py", keys("agent_template_map")),)}),
    "xinference": Source(
        "xinference",
        {"names": (("xinference/model/llm/tool_parsers/*_parser.py", registered("register_tool_parser")),)},
    ),
    "tinker-cookbook": Source(
        "tinker-cookbook",
        {"names": (("tinker_cookbook/renderers/__init__.py", compared("name")),)},
        settings="(_(disable|preserve|low|medium|high|xhigh|max|no)?_?(thinking|reasoning|reasoning_effort)|_no_sysprompt|_instruct)",
    ),
    "transformers": Source(
        "transformers",
        {"model_types": (("transformers/models/auto/*.py", keys("CONFIG_MAPPING_NAMES")),)},
    ),
}  # fmt: skip


def texts_of(wheel: Path, patterns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of the files of a wheel, or of a folder, that match a pattern."""
    wanted = list(patterns)
    if wheel.is_dir():
        paths = {path for pattern in wanted for path in wheel.glob(pattern)}
        yield from ((path.relative_to(wheel).as_posix(), path.read_text("utf-8")) for path in sorted(paths))
        return
    with zipfile.ZipFile(wheel) as archive:
        for path in sorted(archive.namelist()):
            if any(fnmatchcase(path, one) and path.count("/") == one.count("/") for one in wanted):
                yield path, archive.read(path).decode("utf-8")


def read(source: Source, wheel: Path) -> dict[str, list[str]]:
    """Return the names of a project by kind.

    Raises:
        LookupError: a list is empty: the project has moved it.
    """
    found: dict[str, list[str]] = {}
    for kind, places in source.files.items():
        names: dict[str, None] = {}
        for pattern, reader in places:
            for path, text in texts_of(wheel, [pattern]):
                names |= dict.fromkeys(reader(path, ast.parse(text)))
        found[kind] = sorted({re.sub(f"(?:{source.settings})$", "", name) for name in names} - source.left_out)
        if not found[kind]:
            raise LookupError(f"{source.package}: no {kind} in {', '.join(pattern for pattern, _ in places)}")
    return found


def wheel_of(source: Source, installed: Iterable[Path], folder: Path) -> tuple[str, Path]:
    """Return the version of a project and its wheel, or the folder that it is installed in."""
    stem = source.package.replace("-", "_")
    for place in installed:
        for info in place.glob(f"{stem}-*.dist-info"):
            return info.name.removesuffix(".dist-info").rpartition("-")[2], place
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", str(folder), source.package], check=True)
    (wheel,) = folder.glob(f"{stem}-*.whl")
    return wheel.name.split("-")[1], wheel


def unknown(kind: str, name: str) -> bool:
    """True if a name has neither a format nor a reason why it has none."""
    if kind in ("model_types", "models"):
        return False
    try:
        lookup(kind, name) if kind in ("tool", "reasoning") else named(name)  # type: ignore[arg-type]
    except UnknownFormatError as error:
        return not error.reason
    return False


def renew(projects: Iterable[str], installed: Iterable[Path]) -> int:
    """Write both files again, and print what changed. Return the number of names that are not known."""
    engines, others = (json.loads(path.read_text("utf-8")) for path in (ENGINES, OTHERS))
    strange = 0
    for project in projects:
        source = SOURCES[project]
        records = engines if source.engine else others["projects"]
        before = records.get(project, {})
        with tempfile.TemporaryDirectory() as folder:
            version, wheel = wheel_of(source, installed, Path(folder))
            names = read(source, wheel)
        print(f"{project} {version} (listed: {before.get('version', 'none')})")
        for kind, now in names.items():
            new, gone = (sorted({*a} - {*b}) for a, b in ((now, before.get(kind, [])), (before.get(kind, []), now)))
            left = [name for name in now if unknown(kind, name)]
            strange += len(left)
            for what, some in (("new", new), ("gone", gone), ("without a format or a reason", left)):
                if some:
                    print(f"  {kind}, {what}: {', '.join(some)}")
        same = before.get("version") == version and all(before.get(kind) == now for kind, now in names.items())
        if not same:
            records[project] = {"version": version, "date": date.today().isoformat(), **names}
    for path, value in ((ENGINES, engines), (OTHERS, others)):
        path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return strange


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("projects", nargs="*", metavar="PROJECT", help=", ".join(SOURCES))
    parser.add_argument("--installed", type=Path, action="append", default=[], metavar="FOLDER")
    given = parser.parse_args()
    if wrong := [name for name in given.projects if name not in SOURCES]:
        parser.error(f"no such project: {', '.join(wrong)} (there are: {', '.join(SOURCES)})")
    return 1 if renew(given.projects or SOURCES, given.installed) else 0


if __name__ == "__main__":
    sys.exit(main())
