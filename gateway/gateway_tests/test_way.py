"""The way of a request through the gateway stays short, and no module imports itself through others."""

from __future__ import annotations

import ast
import asyncio
import json
import sys
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

import untemplate_gateway
from untemplate_gateway.app import create_app
from untemplate_gateway.manager.opening import open_manager
from untemplate_gateway.settings.sources import resolve

FOLDER = Path(untemplate_gateway.__file__).parent
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def test_few_files_are_passed_before_the_engine_is_asked() -> None:
    files: list[str] = []

    def profile(frame: Any, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(FOLDER):
            name = str(path.relative_to(FOLDER))
            files.append("engine" if name.startswith("engines/") and "generate" in frame.f_code.co_name else name)

    async def main() -> None:
        settings = resolve(environ={}, flags={"model": "replay:hermes", "replay.speed": "0"}).settings
        app = create_app(await open_manager(settings), settings)
        body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "stream": True, "tools": [TOOL]}).encode()
        for _ in range(2):
            scope = {
                "type": "http",
                "method": "POST",
                "path": "/v1/chat/completions",
                "query_string": b"",
                "headers": [(b"content-length", b"%d" % len(body)), (b"host", b"localhost")],
            }
            messages = [{"type": "http.request", "body": body}]

            async def receive(messages: list[Any] = messages) -> Any:
                if not messages:
                    await asyncio.Event().wait()
                return messages.pop()

            async def send(message: Any) -> None: ...

            files.clear()
            sys.setprofile(profile)
            try:
                await app(scope, receive, send)
            finally:
                sys.setprofile(None)
        await app.close()

    asyncio.run(main())
    before = files[: files.index("engine")]
    assert len(set(before)) <= 15
    assert sum(one != other for one, other in pairwise(before)) <= 40


def test_no_module_imports_itself_through_others() -> None:
    names = {}
    for path in FOLDER.rglob("*.py"):
        parts = path.relative_to(FOLDER).with_suffix("").parts
        names[parts[:-1] if parts[-1] == "__init__" else parts] = path
    graph = {name: {one for one in _imported(path, name) if one in names} - {name} for name, path in names.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError


def _imported(path: Path, name: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Return the modules of the gateway that a module imports anywhere, but not for types alone."""
    found = set()
    tree = ast.parse(path.read_text())
    for_types = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    typing = {id(one) for node in for_types for one in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and id(node) not in typing:
            package = name if path.name == "__init__.py" else name[:-1]
            base = package[: len(package) - node.level + 1]
            base += tuple(node.module.split(".")) if node.module else ()
            for alias in node.names:
                found.add((*base, alias.name))
                found.add(base)
    return found
