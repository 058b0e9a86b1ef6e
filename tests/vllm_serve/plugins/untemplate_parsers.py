"""A plugin of pytest: vLLM's parser classes are replaced by those of untemplate's plugin, wherever a name of vLLM's is
one of the catalogue. Marks the tests that have used one of them.

Two differences are taken away, because most tests depend on them. vLLM's parsers find calls in the output of a request
without tools; untemplate finds none, since none were offered. Without a prompt, many of vLLM's parsers assume that
reasoning is open; untemplate reads that from the prompt. Here it begins as vLLM's parser does.
"""

from __future__ import annotations

import importlib
from functools import lru_cache, wraps
from types import SimpleNamespace
from typing import Any

import pytest
import untemplate_outcomes
import vllm.reasoning as reasoning
import vllm.tool_parsers as tools
from vllm.parser.parser_manager import ParserManager

from untemplate._internal.backends.requests import get
from untemplate.formats import names
from untemplate.integrations import vllm as plugin
from untemplate.vllm_api import _format_parsers as format_parsers


def _context(*policy: Any, **settings: Any) -> Any:
    request = settings.get("request")
    if request is not None and not get(request, "tools"):
        settings["request"] = {"messages": get(request, "messages")}
        settings["tools"] = settings.get("tools") or None
    return _original(*policy, **settings)


_original = format_parsers._context


def pytest_configure(config: pytest.Config) -> None:
    format_parsers._context = _context
    plugin.register()
    _replace(tools._TOOL_PARSERS_TO_REGISTER, "vllm.tool_parsers", "tool", names("tool"))
    _replace(reasoning._REASONING_PARSERS_TO_REGISTER, "vllm.reasoning", "reasoning", names("reasoning"))
    from untemplate.integrations.vllm._parsers import OnePass, UntemplateReasoningParser, UntemplateToolParser

    UntemplateReasoningParser.__init__ = _beginning(UntemplateReasoningParser.__init__)
    OnePass.__init__ = _beginning_both(OnePass.__init__)
    OnePass.parse_delta = _without_empty_prompt(OnePass.parse_delta)
    for cls in (OnePass, UntemplateReasoningParser, UntemplateToolParser):
        for name, method in list(vars(cls).items()):
            if callable(method) and name in ("__init__", *_METHODS):
                setattr(cls, name, _marking(method))


_METHODS = ("parse", "parse_delta", "extract_tool_calls", "extract_tool_calls_streaming", "extract_reasoning",
            "extract_reasoning_streaming", "is_reasoning_end")  # fmt: skip


_ENGINES: dict[type, dict[str, str]] = {}
"""Parser of vLLM's with an engine → tool: name, reasoning: name."""


def _replace(registry: dict[str, tuple[str, str]], package: str, kind: str, known: Any) -> None:
    made = importlib.import_module("untemplate.integrations.vllm._parsers")
    for name, (module, cls) in registry.items():
        if name not in known:
            continue
        try:
            home = importlib.import_module(f"{package}.{module}")
        except ImportError:
            continue
        theirs = getattr(home, cls)
        if kind == "reasoning":
            _THEIRS[name] = theirs
        engine = getattr(theirs, "_parser_engine_cls", None)
        if engine is not None:
            _ENGINES.setdefault(engine, {})[kind] = name
        setattr(home, cls, getattr(made, f"{kind}:{name}"))


_THEIRS: dict[str, type] = {}
"""Name → vLLM's reasoning parser."""


def _beginning(init: Any) -> Any:
    """Make a reasoning parser begin inside reasoning if vLLM's does without a prompt."""

    @wraps(init)
    def made(self: Any, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        init(self, tokenizer, *args, **kwargs)
        theirs = _THEIRS.get(self.format_name)
        reasoning = self.format.reasoning
        if theirs is None or reasoning is None or reasoning.open is None:
            return
        try:
            read = theirs(tokenizer, *args, **kwargs).extract_reasoning("x", SimpleNamespace(tools=None))
        except Exception:
            return
        if read[0] == "x":
            self._prompt = reasoning.open.text
            self._opened = True

    return made


def _beginning_both(init: Any) -> Any:
    @wraps(init)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        prompt = getattr(self._reasoning_parser, "_prompt", None)
        if prompt is not None:
            self._one.set_prompt(prompt)

    return made


def _without_empty_prompt(parse_delta: Any) -> Any:
    @wraps(parse_delta)
    def parsed(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = list(args)
        if len(given) > 3:
            given[3] = given[3] or None
        elif "prompt_token_ids" in kwargs:
            kwargs["prompt_token_ids"] = kwargs["prompt_token_ids"] or None
        return parse_delta(self, *given, **kwargs)

    return parsed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replace the classes that tests get as a parameter."""
    for item in items:
        found = getattr(item, "callspec", None)
        theirs = found and found.params.get("parser_cls")
        if isinstance(theirs, type):
            half = getattr(theirs, "tool_parser_cls", None)
            both = _ENGINES.get(getattr(half, "_parser_engine_cls", theirs), {})
            if len(both) == 2:
                found.params["parser_cls"] = _composed(both["tool"], both["reasoning"])


@lru_cache
def _composed(tool: str, reasoning: str) -> Any:
    return ParserManager.get_parser(f"untemplate:{tool}", f"untemplate:{reasoning}", enable_auto_tools=True)


def _marking(method: Any) -> Any:
    @wraps(method)
    def marked(*args: Any, **kwargs: Any) -> Any:
        untemplate_outcomes.redirected = True
        return method(*args, **kwargs)

    return marked
