"""Integrations import no other project before they are used; their errors name the version that they need."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from untemplate._internal.output_parser import OutputParser

Use = Callable[[Any], object]


def when_imported(module: Any) -> None:
    """Do nothing: such a module holds subclasses of the other project's classes, and fails when it is imported."""


PARTNERS: dict[str, tuple[str, str, Use]] = {
    "bfcl": ("bfcl-eval", "2026.3", when_imported),
    "inspect_ai": ("inspect-ai", "0.3.200", when_imported),
    "_inspect_ai_provider": ("inspect-ai", "0.3.285", when_imported),
    "litellm": ("litellm", "1.80", when_imported),
    "openai": ("openai", "1.100", lambda module: module.to_openai(OutputParser.named("hermes").parse("Hi."))),
    "renderers": ("renderers", "0.1.12", when_imported),
    "sglang": ("sglang", "0.5.23", when_imported),
    "transformers": ("transformers", "5.13", lambda module: module.install(SimpleNamespace())),
    "verl": ("verl", "0.9", when_imported),
}
"""Module of ``untemplate.integrations`` → its package, the least version, and a use that needs the package."""
EVERY = pytest.mark.parametrize(("name", "package", "least", "use"), [(name, *rest) for name, rest in PARTNERS.items()])


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str | None], None]:
    """Return a function that pretends a package is installed, or missing, without its modules."""

    def pretend(package: str, version: str | None) -> None:
        def found(name: str) -> str:
            assert name == package
            if version is None:
                raise importlib.metadata.PackageNotFoundError(name)
            return version

        monkeypatch.setattr("untemplate.integrations._partner.version", found)
        top = package.replace("-", "_")
        for name in [name for name in sys.modules if name.partition(".")[0] == top]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, top, None)  # importing it is an ImportError
        for name in PARTNERS:
            monkeypatch.delitem(sys.modules, f"untemplate.integrations.{name}", raising=False)

    return pretend


def run(name: str, use: Use) -> str:
    with pytest.raises(ImportError) as caught:
        use(importlib.import_module(f"untemplate.integrations.{name}"))
    return str(caught.value)


@EVERY
def test_a_missing_package(name: str, package: str, least: str, use: Use, installed: Any):
    installed(package, None)
    assert run(name, use) == f"needs {package} >= {least}: pip install '{package}>={least}'"


@EVERY
def test_a_package_that_is_too_old(name: str, package: str, least: str, use: Use, installed: Any):
    installed(package, "0.0.9rc1")
    assert run(name, use) == (
        f"needs {package} >= {least}, and 0.0.9rc1 is installed: pip install '{package}>={least}'"
    )


@EVERY
def test_a_broken_package(name: str, package: str, least: str, use: Use, installed: Any):
    installed(package, least)
    problem = run(name, use)
    assert problem.startswith(f"{package} {least} cannot be used: ")
    assert problem.endswith(f" (tested from version {least} on)")


IMPORT = """
import importlib, pkgutil, sys
asked = set()

class Watch:
    def find_spec(self, name, path=None, target=None):
        asked.add(name.partition(".")[0])

sys.meta_path.insert(0, Watch())
import untemplate
from untemplate import *
import untemplate._internal.cli.arguments, untemplate.integrations, untemplate.integrations.lm_eval
import untemplate.integrations.openai, untemplate.integrations.transformers
print(*sorted(asked & {*sys.argv[1:]}))
"""


def test_a_vllm_that_is_missing_or_too_old(monkeypatch: pytest.MonkeyPatch):
    """vLLM calls the plugin itself, so the module is all that shows its version."""
    from untemplate.integrations.vllm import register

    monkeypatch.setitem(sys.modules, "vllm.reasoning", None)
    with pytest.raises(ImportError, match=r"^untemplate's plugin needs vLLM >= 0\.25: .*vllm"):
        register()


def test_importing_untemplate_imports_no_partner():
    partners = [package.replace("-", "_") for package, _, _ in PARTNERS.values()]
    others = ["lm_eval", "pydantic", "ray", "torch", "trl", "vllm"]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, *partners, *others], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"
