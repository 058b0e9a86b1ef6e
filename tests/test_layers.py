"""Imports: the core works without the layers above it, and private names stay in their package.

The order of the layers is a contract in ``pyproject.toml`` (``make imports``).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import untemplate
import untemplate_gateway

UNFINISHED = {"validation.py"}
"""Modules that still read private names of another package. No module may be added here."""

SOURCES = Path(untemplate.__file__).parent

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
    tables = {"__init__.py", "cli/arguments.py", "formats/registry.py"}
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
    for path in (SOURCES / "message_parser.py", *sorted((SOURCES / "backends").glob("*.py"))):
        assert not [module for module, _ in imports(path) if module.startswith(("vllm_api", "integrations"))], path


def test_private_names_stay_in_their_package():
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        if str(path.relative_to(SOURCES)) in UNFINISHED:
            continue
        own = path.relative_to(SOURCES).parts[0].removesuffix(".py")
        for module, name in imports(path):
            parts = [*filter(None, module.split(".")), name]
            private = any(part.startswith("_") and not part.startswith("__") for part in parts)
            if private and parts[0] != own:
                found.append(f"{path.relative_to(SOURCES)}: {'.'.join(parts)}")
    assert found == []
