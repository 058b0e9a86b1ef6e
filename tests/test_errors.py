"""One hierarchy of exceptions: every class derives from UntemplateError and is listed in its module's docstring."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

import untemplate
from untemplate import errors
from untemplate.errors import FormatError, IncompatibleFormatsError, TemplateError, UnknownFormatError, UntemplateError

SOURCES = Path(untemplate.__file__).parent
SIGNALS = {
    *("Malformed", "NeedsText", "NoAnswer", "OutOfBudget", "Refused", "StreamError", "Unusable", "UsageError"),
    "WireError",
}
"""Exceptions that are caught inside the library and reach no caller, as private ones do not."""


def exception_classes() -> set[str]:
    """Names of the classes in the sources whose bases are exceptions."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                if any(base == "Exception" or base.endswith("Error") for base in bases):
                    found.add(node.name)
    return {name for name in found - SIGNALS if not name.startswith("_")}


def test_the_docstring_lists_every_exception():
    listed = errors.__doc__ or ""
    assert sorted(name for name in exception_classes() if f" {name}" not in listed and name != "UntemplateError") == []


def test_every_exception_has_the_base():
    from untemplate.testing import LawBroken
    from untemplate_gateway.errors import ApiError

    for cls in [*(getattr(errors, name) for name in errors.__all__), ApiError, LawBroken]:
        assert issubclass(cls, UntemplateError), cls


def test_exceptions_can_be_pickled():
    for error in (FormatError("tools[0]", "is wrong"), TemplateError("no", name="chat.jinja", line=3)):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_modules_share_the_classes():
    from untemplate.format import FormatError as of_format
    from untemplate.formats import UnknownFormatError as of_formats
    from untemplate.templates import TemplateError as of_templates

    assert (of_format, of_formats, of_templates) == (FormatError, UnknownFormatError, TemplateError)
    assert {untemplate.UntemplateError, untemplate.TemplateError} == {UntemplateError, TemplateError}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FormatError("tools[0]", "is wrong"), "tools[0]: is wrong"),
        (TemplateError("unexpected '}'", name="chat.jinja", line=3), "chat.jinja, line 3: unexpected '}'"),
        (TemplateError("unexpected '}'", line=3), "template, line 3: unexpected '}'"),
        (
            UnknownFormatError("hermse", "tool", ["hermes", "mistral"]),
            "unknown tool format 'hermse'; did you mean 'hermes'? valid names: hermes, mistral",
        ),
        (
            IncompatibleFormatsError("qwen3", "gpt_oss", "both have channels"),
            "reasoning 'qwen3' and tools 'gpt_oss' cannot be combined: both have channels",
        ),
    ],
)
def test_texts(error: UntemplateError, text: str):
    assert isinstance(error, ValueError)
    assert str(error) == text
