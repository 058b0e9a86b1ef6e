"""Answers the requests of the inspector's pages. It knows no server: the gateway and `server` call it.

Requests and answers are JSON. Nothing is read from disk unless `Models` does it, nothing is written, and nothing is
kept. Work is bounded by the length of an output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from ...errors import AnalysisError, InspectorError, TemplateError, UnknownFormatError
from ...format import Format
from ...formats import entries, named
from ...policy import Policy
from ...templates import ChatTemplate
from ..backends.call_log import no_warnings
from ..guess import guess
from ..output_parser import OutputParser
from ..saved import answer_in
from ..suggestions import did_you_mean
from .cases import MAX_TEXT, Case, open_stream, parser_for_tokens
from .compare import compare, read_events
from .splits import every_split, one_split
from .templates import known_of, template_view
from .view import view

__all__ = ["Inspector", "InspectorError", "Models"]

_GUESSED: Final = 20_000
"""Most characters of an output whose format is guessed: all formats parse it."""
_MAX_STREAM: Final = 8 * MAX_TEXT
"""Most characters of a server's stream."""


class Models(Protocol):
    """The models that pages may name."""

    def names(self) -> list[str]:
        """Return the names to choose from."""

    def find(self, name: str) -> tuple[OutputParser, ChatTemplate | None]:
        """Return a model's parser and its chat template.

        Raises:
            ValueError: there is no such model.
        """


class _SplitRequest(msgspec.Struct, forbid_unknown_fields=True):
    case: Case
    at: int = 0


class _StreamRequest(msgspec.Struct, forbid_unknown_fields=True):
    case: Case
    stream: str = ""


class Inspector:
    """Answers the requests of the pages.

    Args:
        models: the models that pages may name.
        site: address of a site with the inspector, for links to cases; empty: none.
    """

    def __init__(self, models: Models, site: str = "") -> None:
        self._models = models
        self._site = site
        self._routes: dict[str, Callable[[Any], Any]] = {
            "choices": self._choices,
            "parse": self._parse,
            "split": self._split,
            "splits": self._splits,
            "compare": self._compare,
            "template": self._template,
        }

    @property
    def routes(self) -> tuple[str, ...]:
        """The last part of the path of each request."""
        return tuple(self._routes)

    def answer(self, route: str, body: Any) -> Any:
        """Return the answer to a request, as JSON values.

        Args:
            route: one of `routes`.
            body: the request's JSON object.

        Raises:
            InspectorError: the request is wrong; the message names the field.
        """
        try:
            with no_warnings():
                return self._routes[route](body)
        except msgspec.ValidationError as error:
            raise InspectorError(str(error)) from None
        except (TemplateError, AnalysisError) as error:
            raise InspectorError(f"template: {error}") from None
        except (TypeError, AttributeError, LookupError, RecursionError):
            raise InspectorError("tools or policy do not have the shape that they have in Chat Completions") from None
        except UnknownFormatError as error:
            hint = did_you_mean(error.suggestions) or "; the field offers all names"
            raise InspectorError(f"format: {error.name!r} is unknown{hint}") from None
        except ValueError as error:
            raise InspectorError(str(error)) from None

    def _choices(self, body: Any) -> dict[str, Any]:
        formats = sorted({entry.name for entry in entries()})
        return {"formats": formats, "models": self._models.names(), "most": MAX_TEXT, "site": self._site}

    def _parse(self, body: Any) -> dict[str, Any]:
        case = msgspec.convert(body, Case)
        answer = None if case.tokens else answer_in(case.text)
        case = _complete(case)
        found = view(self._parser(case), case)
        if answer is not None:
            found["read"] = answer.note("The text")
        return found if case.format or case.model or case.template else {**found, "guessed": True}

    def _split(self, body: Any) -> dict[str, Any]:
        asked = msgspec.convert(body, _SplitRequest)
        case = _complete(asked.case)
        if not 0 <= asked.at <= 2 * len(case.text):
            raise InspectorError(f"at: {asked.at} is not a place in the output")
        return one_split(self._parser(case), case, asked.at)

    def _splits(self, body: Any) -> dict[str, Any]:
        case = _case(body)
        return every_split(self._parser(case), case)

    def _compare(self, body: Any) -> dict[str, Any]:
        asked = msgspec.convert(body, _StreamRequest)
        if len(asked.stream) > _MAX_STREAM:
            raise InspectorError(f"stream: more than {_MAX_STREAM} characters")
        case, events = _complete(asked.case), read_events(asked.stream)
        parser = self._parser(case)
        stream = open_stream(parser_for_tokens(parser, case, parser.policy), case)
        stream.feed(case.text)
        stream.finish(case.finish_reason)
        return compare(events, stream.result(), parser.format)

    def _template(self, body: Any) -> dict[str, Any]:
        case = _case(body)
        if case.template:
            return template_view(known_of("the template", None, ChatTemplate(case.template)), case.tools)
        if case.model:
            parser, template = self._models.find(case.model)
            return template_view(known_of(case.model, parser, template), case.tools)
        if not case.format:
            raise InspectorError("paste a template, or name a model or a format")
        return template_view(known_of(case.format, self._parser(case), None), case.tools)

    def _parser(self, case: Case) -> OutputParser:
        """Return the parser for a case: for the model, the template or the format that it names, or for a guess."""
        policy = Policy.from_mapping(case.policy)
        if case.model:
            parser, _ = self._models.find(case.model)
            return OutputParser.from_format(parser.format, policy=policy) if case.policy else parser
        if case.template:
            return OutputParser.from_template(ChatTemplate(case.template), policy=policy)
        return OutputParser.from_format(_format(case), policy=policy)


def _format(case: Case) -> Format:
    text = case.format.strip()
    if text.startswith("{"):
        return Format.from_json(text)
    if text:
        return named(text)  # reads no files
    if not case.text:
        raise InspectorError("paste an output, or name a format")
    if len(case.text) > _GUESSED:
        raise InspectorError(f"format: name one; only outputs of at most {_GUESSED} characters are guessed")
    best = guess(case.text, case.tools)[0]
    return named(best.name, reasoning=best.reasoning)


def _case(body: Any) -> Case:
    return _complete(msgspec.convert(body, Case))


def _complete(case: Case) -> Case:
    """Check a case, and take its text from its tokens if it has them, or from an API's answer if its text is one."""
    if sum(map(bool, (case.format, case.template, case.model))) > 1:
        raise InspectorError("format, template and model exclude each other")
    if case.tokens:
        case.text = "".join(text for _, text in case.tokens)
        if len(case.text) > MAX_TEXT:
            raise InspectorError(f"tokens: more than {MAX_TEXT} characters")
    elif answer := answer_in(case.text):
        if problem := answer.problem("the text"):
            raise InspectorError(problem)
        case.text = answer.outputs[0].text
    return case
