"""A plugin of pytest: vLLM's declarative parser files run on untemplate's ``ParserEngine``.

One difference is taken away, because most tests depend on it: a request without tools has ``tool_choice="none"`` in
vLLM, and its parsers still find calls. untemplate finds none, since none were offered.
"""

from __future__ import annotations

import untemplate_outcomes
import vllm.parser.engine.events as events
import vllm.parser.engine.parser_engine as parser_engine
import vllm.parser.engine.parser_engine_config as config
import vllm.parser.engine.streaming_parser_engine as streaming_engine

import untemplate.vllm_api._parser_engine as own
from untemplate import vllm_api
from untemplate._internal.backends.requests import get

untemplate_outcomes.all_redirected = True
for module in (events, config, parser_engine, streaming_engine):
    for name in ("EventType", "ParserEngine", "ParserEngineConfig", "ParserState", "SemanticEvent",
                 "StreamingParserEngine", "ToolCallSlot", "Transition"):  # fmt: skip
        if hasattr(module, name):
            setattr(module, name, getattr(vllm_api, name))
own.takes_calls = lambda request: get(request, "tool_choice") != "none" or not get(request, "tools")
