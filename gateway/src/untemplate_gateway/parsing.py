"""Parsing alone (``/parse``): raw output in, a message out.

A model's parser works in a thread, in pieces. Templates and Formats of clients are read in a worker process, which ends
with its client.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from untemplate._internal.output_parser import OutputParser
from untemplate.format import Format, FormatError
from untemplate.formats import named
from untemplate.messages import ParsedOutput
from untemplate.policy import Policy
from untemplate.templates import ChatTemplate

from .errors import ApiError, bad_request
from .exchange import Exchange
from .processes import Workers, packed
from .protocols.fields import read_as
from .protocols.objects import call_reports
from .protocols.utilities import ParseRequest
from .threads import go_on, in_slow_thread

_MOST: Final = 1_000_000
"""Characters of a text. Hostile ones take seconds."""
_PIECE: Final = 32_768
_CONTEXT: Final = ("tools", "tool_choice", "messages", "prompt", "token_ids", "finish_reason", "spans")
_WORKERS: Final = Workers()


async def parse(exchange: Exchange) -> None:
    """Parse raw text to a message. The body names a ``model``, a ``template``, or a ``format`` (a name, or a Format as
    JSON)."""
    asked = read_as(ParseRequest, exchange.body)
    if len(asked.text) > _MOST:
        problem = f"text: {len(asked.text)} characters are more than {_MOST}"
        raise ApiError(413, problem, param="text", code="request_too_large")
    if asked.template is not None and asked.format is not None:
        raise bad_request("template", "excludes format")
    try:
        if asked.template is None and asked.format is None:
            async with exchange.gateway.manager.use(asked.model or "") as model:
                parser = model.parser
            shown = await in_slow_thread(_report, parser, asked)
        else:
            shown = await _WORKERS.run(packed(_report_of_named, asked=asked))
    except FormatError as error:
        raise bad_request("format", str(error)) from None
    except ValueError as error:
        raise bad_request(None, str(error)) from None
    except (TypeError, AttributeError, LookupError, RecursionError):
        raise bad_request(None, "tools, tool_choice or messages do not have the shape of Chat Completions") from None
    await exchange.reply(shown)


def _report_of_named(asked: Any) -> dict[str, Any]:
    """Return the answer by the template or format of a request."""
    asked = msgspec.convert(asked, ParseRequest)
    if asked.template is not None:
        # Only a template's text is accepted: a path or a model name could read files of the server.
        return _report(OutputParser.from_template(ChatTemplate(asked.template)), asked)
    if isinstance(asked.format, dict):
        return _report(OutputParser.from_format(Format.from_json(msgspec.json.encode(asked.format))), asked)
    return _report(OutputParser.from_format(named(asked.format or "", reasoning=asked.reasoning)), asked)


def _report(parser: OutputParser, asked: ParseRequest) -> dict[str, Any]:
    context = {name: value for name in _CONTEXT if (value := getattr(asked, name)) is not None}
    if asked.policy is not None:
        context["policy"] = Policy.from_mapping(asked.policy)
    parsed = _parsed(parser, asked.text, context)
    shown = {
        "message": parsed.message(reasoning_field=parser.policy.reasoning_field),
        "finish_reason": parsed.finish_reason,
        "format": parser.format.name,
        "calls": call_reports(parsed),
        "diagnostics": [d.model_dump() for d in parsed.diagnostics],
    }
    if asked.spans:
        shown["spans"] = [span.model_dump(exclude_none=True) for span in parsed.spans]
    return shown


def _parsed(parser: OutputParser, text: str, context: dict[str, Any]) -> ParsedOutput:
    """Return the message of an output. A long one is parsed in pieces, so that the work ends if the client leaves."""
    if len(text) <= _PIECE:
        return parser.parse(text, **context)
    token_ids, finish_reason = context.pop("token_ids", ()), context.pop("finish_reason", "stop")
    stream = parser.stream(collect=True, **context)
    for start in range(0, len(text), _PIECE):
        go_on()
        stream.feed(text[start : start + _PIECE], () if start else token_ids)
    stream.finish(finish_reason)
    return stream.result()
