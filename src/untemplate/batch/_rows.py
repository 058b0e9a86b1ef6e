"""One row: its columns are read, its output is parsed, and a record is made.

* A row never raises. A row that cannot be parsed becomes a record with an error, which has the row itself.
* Tools are read once for each distinct JSON text.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from hashlib import blake2b
from typing import Any, Final

import msgspec

from .._internal.backends.call_log import no_warnings
from .._internal.guess import Sample
from .._internal.output_parser import OutputParser
from .._internal.saved import OUTPUT, Output
from .._internal.suggestions import did_you_mean
from .._internal.tokens.decoding import load_tokenizer
from .._internal.tokens.spans import Straddling, TokenSpan
from ..errors import IncompatibleFormatsError, UnknownFormatError
from ..format import ElementArguments, Format, TaggedArguments
from ..formats import named
from ..messages import Diagnostic, ParsedOutput, Span
from ..policy import Policy
from ..tools import ToolSet
from ._columns import (
    ENCODER,
    RESULT_COLUMNS,
    JsonRow,
    MappingRow,
    Refused,
    columns_of,
    ids_of,
    output_of,
    prompt_of,
    text_of,
)

__all__ = ["Columns", "Record", "RowError", "RowParser", "Settings", "encode_record", "refused_record"]

_MOST_TOOLS: Final = 4096
"""Tool lists that are kept; beyond that all are forgotten."""


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """Names of the columns. A column that is named must be in each row; ``None``: read under its usual name (the name
    of the field) where a row has it."""

    output: str | None = None
    """Raw output. If it is not named, a row may also be an API's answer with the raw output in it."""
    ids: str | None = None
    """Token ids of the output, instead of its text; used only if named."""
    tools: str | None = None
    """Tools of the request: a list, or JSON text; null and an empty text, as of a CSV file: not known."""
    prompt: str | None = None
    """The prompt, as text or token ids."""
    finish_reason: str | None = None
    """The engine's finish reason."""
    format: str | None = None
    """Name of the row's format; used only if named."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that rows are parsed with. They can be sent to other processes."""

    format: Format | None = None
    """``None``: each row names its own."""
    policy: Policy | None = None
    tokenizer: Any = None
    """A tokenizer, or the file, folder or hub id that it is loaded from; needed for token ids."""
    columns: Columns = Columns()
    keep: tuple[str, ...] = ()
    """Columns that are copied to the records; ``*``: all."""
    spans: bool = False
    """Add the regions of each output, and of its tokens where there are ids."""

    def check(self) -> Settings:
        """Return these settings.

        Raises:
            ValueError: they do not fit together.
        """
        if self.format is None and self.columns.format is None:
            raise ValueError("format: rows need a format, or a column that names it")
        if self.columns.ids is not None and self.tokenizer is None:
            raise ValueError("tokenizer: token ids need one")
        for name in self.keep:
            if name in RESULT_COLUMNS:
                raise ValueError(f"keep: {name!r} is a column of the results")
        return self


class RowError(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reason why a row was not parsed.

    ``code`` is ``json`` (not a JSON object), ``missing`` (a column), ``type`` or ``value`` (of a column), ``failed``
    (its request), or ``file`` (its file cannot be read any further). ``input`` is the row as it was; ``input_base64``
    if it is not UTF-8.
    """

    code: str
    problem: str
    column: str = ""
    input: Any = None
    input_base64: str = ""


class Record(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The result of one row.

    Attributes:
        row: number of the row in its file, from 1 (of a JSONL file: of the line).
        file: name of the file, if there are several.
        format: name of the row's format, if rows name it.
        message, finish_reason: as a server returns them.
        statuses: of each call.
        reasons: of each call, why it must not run, if there is such a call.
        diagnostics: where the output does not follow its format.
        spans, tokens, straddling: regions in characters and in tokens, and tokens in several regions; on request.
        error: the reason why there is no message.
        kept: columns that were copied.
    """

    row: int
    file: str = ""
    format: str = ""
    message: dict[str, Any] | None = None
    finish_reason: str = ""
    statuses: list[str] = []
    reasons: list[str] = []
    diagnostics: list[Diagnostic] = []
    spans: list[Span] = []
    tokens: list[TokenSpan] = []
    straddling: list[Straddling] = []
    error: RowError | None = None
    kept: dict[str, Any] = {}


class RowParser:
    """Parses rows with the same settings; one per process.

    Attributes:
        spans: true if records have the regions of their outputs.
        untyped: rows so far with calls whose values have no types, because the row has no tools.

    Raises:
        ValueError: the settings do not fit together.
        TokenizerError: the tokenizer cannot be loaded.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.check()
        self.spans: bool = settings.spans
        self.untyped: int = 0
        self._columns = settings.columns
        tokenizer = settings.tokenizer
        self._tokenizer = load_tokenizer(tokenizer) if isinstance(tokenizer, str) else tokenizer
        self._parsers: dict[str, OutputParser] = {}
        self._tools: dict[str | bytes, ToolSet | None] = {}
        self._default = None if settings.format is None else self._parser(settings.format)

    def _parser(self, format: Format) -> OutputParser:
        return OutputParser.from_format(format, tokenizer=self._tokenizer, policy=self._settings.policy)

    def record(self, values: Any, row: int, file: str = "") -> Record:
        """Parse one row: a line of JSON (bytes), or a mapping of columns."""
        try:
            return self._record(columns_of(values), row, file)
        except Refused as refused:
            return refused_record(refused, values, row, file)

    def _record(self, values: JsonRow | MappingRow, row: int, file: str) -> Record:
        columns = self._columns
        parser = self._parser_of(values)
        context = self._context(values)
        record = Record(row=row, file=file, format="" if columns.format is None else parser.format.name)
        if columns.ids is None:
            output = _output(values, columns, context)
            text = output.text
            context |= output.context(parser.format)
            with no_warnings():  # the record has the statuses, and a log line names no row
                parsed = parser.parse(text, spans=self.spans, seed=_seed(row, file, text), **context)
            if problem := output.put_back(parsed):
                raise Refused("value", OUTPUT, problem)
        else:
            ids = ids_of(values, columns.ids)
            try:
                with no_warnings():
                    found = parser.parse_tokens(ids, seed=_seed(row, file, str(ids)), **context)
            except (ValueError, TypeError) as error:
                raise Refused("value", columns.ids, str(error)) from None
            parsed = found.output
            if self.spans:
                record.tokens, record.straddling = found.spans, found.straddling
        self.untyped += bool(parsed.tool_calls and context["tools"] is None and _types_by_tools(parser.format))
        _fill(record, parsed, self.spans)
        if self._settings.keep:
            record.kept = values.kept(self._settings.keep)
        return record

    def _context(self, values: JsonRow | MappingRow) -> dict[str, Any]:
        """Return what a row has of its request, as arguments of `OutputParser.parse`."""
        tools = self._tools_of(values)
        prompt, prompt_ids = prompt_of(values, self._columns.prompt)
        finish_reason = text_of(values, self._columns.finish_reason, "finish_reason", "stop")
        return {"tools": tools, "prompt": prompt, "prompt_token_ids": prompt_ids, "finish_reason": finish_reason}

    def sample(self, values: Any, row: int) -> Sample:
        """Return the output of a row as `guess_many` takes it.

        Raises:
            Refused: it cannot be parsed.
        """
        found = columns_of(values)
        context = self._context(found)
        text = _output(found, self._columns, context).text
        return Sample(text, context["tools"], context["prompt"], context["finish_reason"], row)

    def _parser_of(self, values: JsonRow | MappingRow) -> OutputParser:
        column = self._columns.format
        if column is None:
            assert self._default is not None
            return self._default
        name = text_of(values, column, "format", None)
        found = self._parsers.get(name)
        if found is None:
            try:
                found = OutputParser.from_format(named(name), tokenizer=self._tokenizer, policy=self._settings.policy)
            except UnknownFormatError as error:
                near = did_you_mean(error.suggestions)
                raise Refused("value", column, f"unknown format {name!r:.80}{near}") from None
            except IncompatibleFormatsError as error:
                raise Refused("value", column, str(error)) from None
            self._parsers[name] = found
        return found

    def _tools_of(self, values: JsonRow | MappingRow) -> Any:
        """Return the tools of a row, read once for each distinct list."""
        column = self._columns.tools
        name = column or "tools"
        key = values.key(name)
        if key is None:
            if column is not None and not values.has(name):
                raise Refused("missing", name, f"the row has no column {name!r}")
            return None
        found = self._tools.get(key, False)
        if found is not False:
            return found
        try:
            tools = values.get(name)
            if isinstance(tools, str):
                tools = msgspec.json.decode(tools) if tools and not tools.isspace() else None
            read = None if tools is None else ToolSet(tools)
        except msgspec.DecodeError as error:
            raise Refused("value", name, f"not JSON: {error}") from None
        except ValueError as error:
            raise Refused("value", name, str(error)) from None
        if len(self._tools) >= _MOST_TOOLS:
            self._tools.clear()
        self._tools[key] = read
        return read


def refused_record(refused: Refused, values: Any, row: int, file: str) -> Record:
    """Return the record of a row that cannot be parsed."""
    data = ""
    if isinstance(values, bytes):
        try:
            values = values.decode()
        except UnicodeDecodeError:
            values, data = None, base64.b64encode(values).decode()
    return Record(row=row, file=file, error=RowError(refused.code, refused.problem, refused.column, values, data))


def _seed(row: int, file: str, text: str) -> bytes:
    """Return a seed for the ids of calls: the same in every run, and others in each row."""
    return blake2b(f"{row}:{file}:{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _output(values: JsonRow | MappingRow, columns: Columns, context: dict[str, Any]) -> Output:
    """Return the raw output of a row. The finish reason of an answer is set in the context."""
    found = output_of(values, columns.output)
    if found.finish_reason is not None and columns.finish_reason is None:
        context["finish_reason"] = found.finish_reason
    return found


@cache
def _types_by_tools(fmt: Format) -> bool:
    """True if values of calls have their types from the tools: between tags a number looks like a text."""
    written = [getattr(tools.body, "arguments", None) for tools in fmt.tools]
    return any(
        isinstance(one, ElementArguments) or (isinstance(one, TaggedArguments) and not one.writes_types)
        for one in written
    )


def _fill(record: Record, parsed: ParsedOutput, spans: bool) -> None:
    record.message = parsed.message()
    record.finish_reason = parsed.finish_reason
    record.statuses = [call.status for call in parsed.tool_calls]
    if any(call.reason for call in parsed.tool_calls):
        record.reasons = [call.reason or "" for call in parsed.tool_calls]
    record.diagnostics = parsed.diagnostics
    if spans:
        record.spans = parsed.spans


def encode_record(record: Record) -> bytes:
    """Return a record as one line of JSON, with the columns that were kept at its beginning."""
    kept, record.kept = record.kept, {}
    try:
        line = _encoded(record)
        if kept:
            line = _encoded(kept)[:-1] + b"," + line[1:]
    finally:
        record.kept = kept
    return line


def _encoded(value: Any) -> bytes:
    try:
        return ENCODER.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError):  # lone surrogates, or objects of the caller
        return json.dumps(msgspec.to_builtins(value, enc_hook=repr)).encode()
