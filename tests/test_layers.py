"""Imports: the core works without the layers above it, and private names stay in their package.

The order of the layers is a contract in ``pyproject.toml`` (``make imports``).
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import untemplate
import untemplate_gateway

ROOT = Path(__file__).parents[1]
SOURCES = Path(untemplate.__file__).parent
INTERNAL = SOURCES / "_internal"

PARSE = """
import sys
from untemplate import OutputParser
parser = OutputParser(None, reasoning_parser_name="qwen3", tool_parser_name="hermes")
stream = parser.stream(collect=True)
stream.feed('<think>a</think><tool_call>{"name": "f", "arguments": {}}</tool_call>')
stream.finish()
assert stream.result().tool_calls and parser.has_tools and parser.adjust_request({}) and repr(parser)
assert parser.parse_complete_with_fallback("a").content and parser.parse_streaming("", "b", "b").content
assert parser.finish_streaming() is None and parser.parse("c").content
print(sorted(name for name in sys.modules if name.startswith("untemplate.vllm_api")))
assert parser.tool_parser is not None
print("untemplate.vllm_api" in sys.modules)
"""


def test_parsing_loads_nothing_of_the_compatibility_layer():
    done = subprocess.run([sys.executable, "-c", PARSE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\nTrue\n", "")


def test_names_that_are_registered_are_found_once_the_managers_are_loaded():
    code = """
from untemplate import OutputParser
try:
    OutputParser(None, tool_parser_name="mine")
except ValueError as error:
    print(type(error).__name__)
from untemplate.vllm_api import ToolParserManager
ToolParserManager.register_module("mine", module=ToolParserManager.get_tool_parser("hermes"))
parser = OutputParser(None, tool_parser_name="mine")
print(parser)
print(parser.parse('<tool_call>{"name": "f", "arguments": {}}</tool_call>').tool_calls[0].function.name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "UnknownFormatError",
        "<OutputParser 'passthrough', named, parsed by RegisteredBackend, without tokenizer>",
        "f",
    ]


def imports(path: Path, sources: Path = SOURCES) -> Iterator[tuple[str, str]]:
    """(module, name) of each import of this package's own modules; modules are relative to it."""
    package, own = path.relative_to(sources).parent.parts, sources.name
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names if name.name.startswith(f"{own}.")]
            yield from ((name.removeprefix(f"{own}."), "") for name in names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                module = ".".join([*package[: len(package) - node.level + 1], *filter(None, [module])])
            elif (module + ".").startswith(f"{own}."):
                module = module.removeprefix(own).removeprefix(".")
            else:
                continue
            yield from ((module, name.name) for name in node.names)


def _graph(sources: Path) -> dict[str, set[str]]:
    """Return the modules that each module imports, for types and in functions too."""
    modules = {".".join(path.relative_to(sources).with_suffix("").parts): path for path in sources.rglob("*.py")}
    modules = {name.removesuffix("__init__").rstrip("."): path for name, path in modules.items()}
    graph: dict[str, set[str]] = {}
    for own, path in modules.items():
        found = {
            f"{module}.{name}" if f"{module}.{name}" in modules else module for module, name in imports(path, sources)
        }
        graph[own] = {name for name in found if name in modules and name not in ("", own)}
    return graph


@pytest.mark.parametrize("package", [untemplate, untemplate_gateway], ids=lambda package: package.__name__)
def test_no_module_imports_itself_through_others(package: ModuleType):
    graph = _graph(Path(str(package.__file__)).parent)
    while free := [name for name, needed in graph.items() if not needed]:
        for name in free:
            del graph[name]
        for needed in graph.values():
            needed.difference_update(free)
    assert {name: sorted(needed) for name, needed in graph.items()} == {}


LOADS = {"import_module", "__import__"}


def test_no_module_of_this_package_is_imported_by_a_text():
    """A text would evade the contract: only a table whose modules lie beside or below may be loaded from one."""
    tables = {"__init__.py", "_internal/cli/arguments.py", "formats/_registry.py"}
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            name = getattr(called, "attr", getattr(called, "id", ""))
            if name in LOADS and isinstance(node, ast.Call):
                what = ast.unparse(node.args[0])
                own = "untemplate" in what or what.startswith(("f'.", "'."))
                if own and str(path.relative_to(SOURCES)) not in tables:
                    found.append(f"{path.relative_to(SOURCES)}: {what}")
    assert found == []


def test_the_class_that_parses_names_nothing_of_vllm():
    for path in (INTERNAL / "message_parser.py", *sorted((INTERNAL / "backends").glob("*.py"))):
        assert not [module for module, _ in imports(path) if module.startswith(("vllm_api", "integrations"))], path


def _room(module: str) -> str:
    """Return the package that a module belongs to, or itself; inside ``_internal`` the next one."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] == "_internal" else 1])


def test_private_names_stay_in_their_package():
    """A module with an underscore is private to the library; any other name with one, to its package."""
    found = []
    modules = _graph(SOURCES)
    for path in sorted(SOURCES.rglob("*.py")):
        own = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for module, name in imports(path):
            private = name.startswith("_") and not name.startswith("__") and f"{module}.{name}" not in modules
            if private and _room(module) != _room(own):
                found.append(f"{own}: {module}.{name}")
    assert found == []


def test_every_internal_module_has_a_layer():
    """The contract is exhaustive for public modules only: import-linter looks at one container."""
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][0][
        "layers"
    ]
    listed = {module.strip() for layer in layers for module in layer.split("|")}
    folders = {name.rpartition(".")[0] for name in listed}
    for module in _graph(SOURCES):
        parts = module.split(".")
        covered = {".".join(parts[:n]) for n in range(1, len(parts) + 1)} & listed
        assert covered or module in {*folders, "", "_internal"}, module
