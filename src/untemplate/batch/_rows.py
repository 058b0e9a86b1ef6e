"""One row: its columns are read, its output is parsed, and a record is made.

* A row never raises. A row that cannot be parsed becomes a record with an error, which has the row itself.
* Tools are read once for each distinct JSON text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, Final

import msgspec

from .._internal.backends.call_log import no_warnings
from .._internal.guess import Sample
from .._internal.output_parser import OutputParser
from .._internal.saved import OUTPUT, Output, answer_of, failure_of
from .._internal.suggestions import did_you_mean
from .._internal.tokens.decoding import load_tokenizer
from .._internal.tokens.spans import Straddling, TokenSpan
from ..errors import IncompatibleFormatsError, UnknownFormatError
from ..format import ElementArguments, Format, TaggedArguments
from ..formats import named
from ..messages import Diagnostic, ParsedOutput, Span
from ..policy import Policy
from ..tools import ToolSet

__all__ = [
    "Columns",
    "Record",
    "Refused",
    "RowError",
    "RowParser",
    "Settings",
    "columns_of",
    "encode_record",
    "ids_of",
    "lacks_output",
    "names_of",
]

_MOST_TOOLS: Final = 4096
"""Tool lists that are kept; beyond that all are forgotten."""
_SPLIT: Final = ": jq -c '.choices[] as $one | .choices = [$one]' makes a row of each"
_OTHER_NAMES: Final = ("text", "completion", "generated_text")
"""Names that other programs give the column of outputs."""
_RESULT: Final = frozenset(
    ("row", "file", "format", "message", "finish_reason", "statuses", "reasons", "diagnostics", "spans", "tokens",
     "straddling", "error")
)  # fmt: skip


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
            if name in _RESULT:
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


class Refused(Exception):
    """A row that cannot be parsed. The arguments are those of `RowError`."""

    def __init__(self, code: str, column: str, problem: str) -> None:
        super().__init__(problem)
        self.code: str = code
        self.column: str = column
        self.problem: str = problem

    def record(self, values: Any, row: int, file: str) -> Record:
        """Return the record of the row."""
        data = ""
        if isinstance(values, bytes):
            try:
                values = values.decode()
            except UnicodeDecodeError:
                values, data = None, base64.b64encode(values).decode()
        return Record(row=row, file=file, error=RowError(self.code, self.problem, self.column, values, data))


_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of reading JSON."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_RAWS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENCODER: Final = msgspec.json.Encoder()


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
            return refused.record(values, row, file)

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
        prompt, prompt_ids = _prompt(values, self._columns.prompt)
        finish_reason = _text(values, self._columns.finish_reason, "finish_reason", "stop")
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
        name = _text(values, column, "format", None)
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


def _seed(row: int, file: str, text: str) -> bytes:
    """Return a seed for the ids of calls: the same in every run, and others in each row."""
    return blake2b(f"{row}:{file}:{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def columns_of(values: Any) -> JsonRow | MappingRow:
    """Return the columns of a row: a line of JSON (bytes), or a mapping.

    Raises:
        Refused: it is neither.
    """
    if isinstance(values, Mapping):
        return MappingRow(values)
    if not isinstance(values, bytes):
        raise Refused("json", "", f"expected a mapping of columns, got {_kind(values)}")
    try:
        return JsonRow(_RAWS.decode(values))
    except msgspec.ValidationError as error:
        raise Refused("json", "", f"not a JSON object: {error}") from None
    except _NOT_JSON as error:
        value = with_surrogates(values)
        if isinstance(value, dict):
            return MappingRow(value)
        raise Refused("json", "", f"not JSON: {error}") from None


def with_surrogates(data: bytes) -> Any:
    """Return a JSON value that has half a character as an escape, which msgspec refuses; ``None`` if it is not one."""
    if not _SURROGATE.search(data):
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def names_of(values: Any) -> tuple[str, ...]:
    """Return the names of a row's columns; none if it is not a row."""
    try:
        return columns_of(values).names()
    except Refused:
        return ()


class JsonRow:
    """Columns of a JSON object, decoded when they are read."""

    __slots__ = ("_raws",)

    def __init__(self, raws: dict[str, msgspec.Raw]) -> None:
        self._raws = raws

    def names(self) -> tuple[str, ...]:
        return tuple(self._raws)

    def has(self, name: str) -> bool:
        return name in self._raws

    def get(self, name: str) -> Any:
        raw = self._raws.get(name)
        try:
            return None if raw is None else msgspec.json.decode(raw)
        except _NOT_JSON as error:
            value = with_surrogates(bytes(raw or b""))
            if value is not None:
                return value
            raise Refused("json", name, f"not JSON: {error}") from None

    def key(self, name: str) -> bytes | None:
        """Return a key for the value, if it is not null."""
        raw = self._raws.get(name)
        return None if raw is None or (key := bytes(raw)) == b"null" else key

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        names = [name for name in self._raws if name not in _RESULT] if "*" in names else names
        for name in names:
            self.get(name)  # raises here, not in a reader of the results
        return {name: self._raws[name] for name in names if name in self._raws}


class MappingRow:
    """Columns of a mapping. Arrays become lists."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def names(self) -> tuple[str, ...]:
        return tuple(self._values)

    def has(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str) -> Any:
        value: Any = self._values.get(name)
        return value.tolist() if hasattr(value, "tolist") else value

    def key(self, name: str) -> str | bytes | None:
        value = self.get(name)
        if value is None or isinstance(value, str):
            return value
        try:
            return _ENCODER.encode(value)
        except (TypeError, ValueError, UnicodeEncodeError) as error:
            raise Refused("type", name, f"expected a list of tools or JSON text: {error}") from None

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        names = [name for name in self._values if name not in _RESULT] if "*" in names else names
        return {name: self.get(name) for name in names if name in self._values}


def _value(values: JsonRow | MappingRow, column: str | None, usual: str) -> Any:
    name = column or usual
    if column is not None and not values.has(name):
        raise Refused("missing", name, f"the row has no column {name!r}")
    return values.get(name)


def _text(values: JsonRow | MappingRow, column: str | None, usual: str, default: str | None) -> Any:
    """Return a column of text. Without a default it must be there."""
    value = _value(values, column, usual)
    if isinstance(value, str):
        return value
    name = column or usual
    if value is not None:
        raise Refused("type", name, f"expected text, got {_kind(value)}")
    if default is None:
        raise Refused("missing", name, f"the row has no column {name!r}" if not values.has(name) else "is null")
    return default


def _output(values: JsonRow | MappingRow, columns: Columns, context: dict[str, Any]) -> Output:
    """Return the raw output of a row. The finish reason of an answer is set in the context."""
    found = _found_output(values, columns.output)
    if found.finish_reason is not None and columns.finish_reason is None:
        context["finish_reason"] = found.finish_reason
    return found


def _found_output(values: JsonRow | MappingRow, column: str | None) -> Output:
    """Return the raw output of a row: its column, or if that is not named, what is in the answer that the row is."""
    try:
        return Output(_text(values, column, OUTPUT, None))
    except Refused:
        if column is not None:
            raise
        row = {name: values.get(name) for name in values.names()}
        answer = answer_of(row)
        if answer is None:
            _explain_missing(row)
            raise
    if problem := answer.problem("the row"):
        raise Refused("value", OUTPUT, problem)
    if (count := len(answer.outputs)) > 1:
        raise Refused("value", OUTPUT, f"the row is {answer.what} with {count} choices; a row has one{_SPLIT}")
    return answer.outputs[0]


def _explain_missing(row: Mapping[str, Any]) -> None:
    """Refuse a row without an output, if it shows why.

    Raises:
        Refused: its request failed, or a column with another name has the output.
    """
    if failure := failure_of(row):
        raise Refused("failed", OUTPUT, failure) from None
    for name in _OTHER_NAMES:
        if OUTPUT not in row and isinstance(row.get(name), str):
            hint = f"; {name!r} has text (--output-column {name})"
            raise Refused("missing", OUTPUT, f"the row has no column {OUTPUT!r}{hint}") from None


def lacks_output(values: Any, column: str | None) -> str:
    """Return the reason why a row has no raw output, for an error about all rows; empty if it has one."""
    names = names_of(values)
    if not names:
        return "rows are JSON objects, one in each line"
    try:
        _found_output(columns_of(values), column)
    except Refused as refused:
        if refused.code in ("value", "failed"):
            return refused.problem
        return f"its columns: {', '.join(names)}; --output-column names one"
    return ""


def ids_of(values: JsonRow | MappingRow, name: str) -> list[int]:
    """Return a column of token ids.

    Raises:
        Refused: it is missing, or of another type.
    """
    value = _value(values, name, name)
    if not isinstance(value, list):
        raise Refused("type", name, f"expected a list of token ids, got {_kind(value)}")
    if bool in map(type, value):
        at = [type(i) for i in value].index(bool)
        raise Refused("value", name, f"token_ids[{at}]: expected a token id (int), got bool: {value[at]}")
    return value


def _prompt(values: JsonRow | MappingRow, column: str | None) -> tuple[str | None, list[int] | None]:
    """Return the prompt as text, or as token ids."""
    value = _value(values, column, "prompt")
    if value is None or isinstance(value, str):
        return value, None
    if isinstance(value, list) and all(type(i) is int for i in value):
        return None, value
    raise Refused("type", column or "prompt", f"expected text or a list of token ids, got {_kind(value)}")


@cache
def _types_by_tools(fmt: Format) -> bool:
    """True if values of calls have their types from the tools: between tags a number looks like a text."""
    written = [getattr(tools.body, "arguments", None) for tools in fmt.tools]
    return any(
        isinstance(one, ElementArguments) or (isinstance(one, TaggedArguments) and not one.writes_types)
        for one in written
    )


def _kind(value: Any) -> str:
    """Return the kind of a value in the words of JSON."""
    kinds = {dict: "an object", list: "a list", bool: "a boolean", int: "a number", float: "a number", str: "text"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


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
        return _ENCODER.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError):  # lone surrogates, or objects of the caller
        return json.dumps(msgspec.to_builtins(value, enc_hook=repr)).encode()
