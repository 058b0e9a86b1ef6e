"""Jinja for chat templates, with the limits of ``_limits.py``.

A template has everything that Hugging Face's ``apply_chat_template`` provides: the immutable sandbox, ``trim_blocks``
and ``lstrip_blocks``, ``break`` and ``continue``, ``{% generation %}``, ``tojson`` without HTML escapes,
``raise_exception`` and ``strftime_now``. The differences are:

* ``from_json`` and ``fromjson`` read JSON, as templates for llama.cpp and OpenVINO expect. A filter or test that nobody
  knows fails where it is used, not when the template is compiled.
* A template may change lists that it made itself, as Kimi K2's does.
* ``lipsum``, ``urlize`` and ``format`` of safe text are missing, and ``random`` always returns the same item.
* Limits apply. The compiled template must count, so a subclass of Jinja's generator writes its code (``_codegen.py``).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from string import Formatter
from time import thread_time
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MethodType
from typing import Any, Final, cast

from jinja2 import Template, TemplateSyntaxError, nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateRuntimeError
from jinja2.ext import Extension, loopcontrols
from jinja2.filters import make_attrgetter
from jinja2.lexer import Token, TokenStream
from jinja2.nodes import CallBlock, ContextReference
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import Namespace, _PassArg
from markupsafe import Markup

from ..errors import TemplateError, TemplateLimitError, TemplateRaised
from ._branches import Branch, branches_of, choices_of, fields_of
from ._codegen import Generator, MeteredContext, count
from ._inputs import Inputs
from ._limits import COMPILE_LIMIT, ELEMENT, MAX_SOURCE, MAX_TOKENS
from ._meter import CHANGES, Meter, filter_guard, grown, hash_guard

__all__ = ["CLOSED", "OPENED", "CompiledTemplate", "compile_source"]

# Private characters around the text inside ``{% generation %}``, where they are asked for.
OPENED: Final = "\uf8f0"
CLOSED: Final = "\uf8f1"


@dataclass(frozen=True, slots=True)
class CompiledTemplate:
    """A compiled template, the texts in its source and the names of its variables."""

    template: Template
    literals: tuple[str, ...]
    variables: tuple[str, ...]
    lines: Mapping[str, int]
    """First line of each literal (also without outer white space), name and attribute in the source."""

    branches: tuple[Branch, ...]
    choices: Mapping[str, tuple[str, ...]]
    """The constant strings that each variable is compared with."""
    fields: frozenset[str]
    """Attributes and constant keys that are read."""

    def run(
        self,
        variables: dict[str, Any],
        inputs: Inputs,
        now: Callable[[], datetime],
        marks: bool = False,
        ran: bytearray | None = None,
    ) -> str:
        """Render the template.

        Args:
            variables: copies made by ``inputs``.
            now: the clock.
            marks: put text inside ``{% generation %}`` between `OPENED` and `CLOSED`.
            ran: takes a 1 for each branch that runs.

        Raises:
            TemplateError: the template failed; the error has its line.
        """
        pieces: list[str] = []
        meter = Meter(inputs.ids, inputs.characters, now, bytearray(len(self.branches)) if ran is None else ran)
        meter.marks = marks
        left = meter.size
        try:
            context = cast("MeteredContext", self.template.new_context(variables))
            context.meter = meter
            for piece in self.template.root_render_func(context):
                left -= len(piece)
                if left < 0:
                    raise TemplateLimitError("the template writes too much")
                pieces.append(piece)
            return "".join(pieces)
        except Exception as error:
            raise _translated(error, _line(error)) from None


def compile_source(source: str) -> CompiledTemplate:
    """Compile a template.

    Raises:
        TemplateLimitError: it is too long, or nested too deeply.
        TemplateError: it is not valid Jinja.
    """
    if len(source) > MAX_SOURCE:
        raise TemplateLimitError(f"the template is too long: {len(source)} characters, at most {MAX_SOURCE}")
    try:
        tree = _ENVIRONMENT.parse(source)
        literals, lines = _literals(tree), _lines(tree)
        for loop in tree.find_all(nodes.For):
            if loop.test is not None:  # the condition of a loop is evaluated outside every block
                tick = nodes.Filter(nodes.Const(count([loop.test])), _TICK, [], [], None, None)
                loop.test = nodes.And(tick, loop.test).set_lineno(loop.lineno).set_environment(_ENVIRONMENT)
        generator = Generator(_ENVIRONMENT, None, None)
        branches, generator.branches = branches_of(tree)
        choices, fields = choices_of(tree), fields_of(tree)
        generator.visit(tree)
        code = compile(generator.stream.getvalue(), "<template>", "exec")  # type: ignore[attr-defined]
    except TemplateSyntaxError as error:
        raise TemplateError(f"not a template that Jinja can read: {error.message}", line=error.lineno) from None
    except (RecursionError, MemoryError):
        raise TemplateLimitError("the template is nested too deeply") from None
    except SyntaxError as error:
        raise TemplateLimitError(f"the template is nested too deeply ({error.msg})") from None
    except TemplateError:
        raise
    except Exception as error:
        raise TemplateError(f"not a template that Jinja can read: {_message(error)}") from None
    template = Template.from_code(_ENVIRONMENT, code, _ENVIRONMENT.make_globals(None))
    return CompiledTemplate(
        template, literals, tuple(sorted(generator.undeclared)), lines, tuple(branches), choices, fields
    )


def _literals(tree: nodes.Template) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for node in tree.find_all((nodes.TemplateData, nodes.Const)):
        text = node.data if isinstance(node, nodes.TemplateData) else cast("nodes.Const", node).value
        if isinstance(text, str) and text:
            found[text] = None
    return tuple(found)


def _lines(tree: nodes.Template) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in tree.find_all((nodes.TemplateData, nodes.Const, nodes.Name, nodes.Getattr)):
        text = getattr(
            node, {nodes.TemplateData: "data", nodes.Const: "value", nodes.Name: "name"}.get(type(node), "attr")
        )
        for key in (text, text.strip()) if isinstance(text, str) else ():
            found[key] = min(found.get(key, node.lineno), node.lineno)
    return found


# -- Errors -------------------------------------------------------------------------------------------------------


def _line(error: BaseException) -> int | None:
    """Return the innermost line of the template in the traceback."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if template is not None:
            line = template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return line


def _message(error: BaseException) -> str:
    message = getattr(error, "message", None) or str(error)
    return str(message)[:500] or type(error).__name__


def _translated(error: Exception, line: int | None) -> TemplateError:
    if isinstance(error, TemplateError):
        error.line = error.line or line
        return error
    if isinstance(error, RecursionError):
        return TemplateLimitError("the template calls itself too deeply", line=line)
    if isinstance(error, MemoryError):
        return TemplateLimitError("the template needs too much memory", line=line)
    if isinstance(error, OverflowError):
        return TemplateLimitError(_message(error), line=line)
    if isinstance(error, SecurityError):
        return TemplateError(f"the sandbox forbids this: {_message(error)}", line=line)
    if isinstance(error, TemplateRuntimeError):  # an undefined value, or a filter that nobody knows
        return TemplateError(_message(error), line=line)
    if isinstance(error, TypeError) and "no loader" in str(error):
        return TemplateError("a chat template cannot include or import another", line=line)
    return TemplateError(f"{type(error).__name__}: {_message(error)}", line=line)


# -- The environment ----------------------------------------------------------------------------------------------


class _Generation(Extension):
    """``{% generation %}``, which marks the model's text for training masks."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

    def parse(self, parser: Parser) -> CallBlock:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = self.call_method("_body", [ContextReference()])
        return cast("CallBlock", CallBlock(call, [], [], body).set_lineno(line))

    def _body(self, context: MeteredContext, caller: Callable[[], str]) -> str:
        text = caller()
        return f"{OPENED}{text}{CLOSED}" if context.meter.marks else text

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        deadline = thread_time() + COMPILE_LIMIT
        for number, token in enumerate(stream):
            if number > MAX_TOKENS:
                raise TemplateLimitError(f"the template is too long: more than {MAX_TOKENS} tokens")
            if thread_time() > deadline:
                raise TemplateLimitError("the template takes too long to read")
            yield token


class _Formatter(SandboxedFormatter):
    """``str.format`` with bounded widths."""

    def __init__(self, env: _Environment) -> None:
        super().__init__(env)
        self.left = 1_000_000

    def format_field(self, value: Any, format_spec: str) -> str:
        if any(len(number) > 3 for number in "".join(c if c.isdigit() else " " for c in format_spec).split()):
            raise grown("a column is too wide")
        hash_guard(value)
        text = str(Formatter.format_field(self, value, format_spec))
        self.left -= len(text)
        if self.left < 0:
            raise grown("a formatted text is too long")
        return text


class _Environment(ImmutableSandboxedEnvironment):
    context_class = MeteredContext
    code_generator_class = Generator
    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return (type(obj) is list and attr in CHANGES) or super().is_safe_attribute(obj, attr, value)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if type(argument) is tuple:
            hash_guard(argument)
        return super().getitem(obj, argument)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        if not isinstance(value, (MethodType, BuiltinMethodType)) or value.__name__ not in ("format", "format_map"):
            return None
        form, mapped = value.__self__, value.__name__ == "format_map"
        if not isinstance(form, str):
            return None
        if isinstance(form, Markup):
            raise SecurityError("Markup.format is not available")

        def wrapper(*args: Any, **kwargs: Any) -> str:
            if mapped:
                args, kwargs = (), dict(*args, **kwargs)
            return _Formatter(self).vformat(form, args, kwargs)

        return wrapper

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        context = cast("MeteredContext", __context)
        kind = type(__obj)
        if kind is Macro:
            return context.call(__obj, *args, **kwargs)
        if not __self.is_safe_callable(__obj):
            raise SecurityError(f"{__obj!r} is not safely callable")
        meter = context.meter
        if kind is BuiltinFunctionType or (kind is MethodType and isinstance(__obj.__self__, str)):
            given = {k: v for k, v in kwargs.items() if k not in ("_loop_vars", "_block_vars")}
            args = meter.method(__obj.__self__, __obj.__name__, args, given)
        elif kind is not FunctionType:
            args = tuple(list(value) if isinstance(value, Iterator) else value for value in args)
            for value in args:
                meter.flat(value)
        return meter.made(context.call(__obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        meter = cast("MeteredContext", context).meter
        if operator == "+":
            return meter.made(left + right)
        if operator == "*":
            meter.multiply(left, right)
        elif operator == "**":
            meter.power(left, right)
        else:
            meter.percent(left, right)
        return meter.made(self.binop_table[operator](left, right))


# -- Filters, tests, globals --------------------------------------------------------------------------------------


@pass_context
def _tojson(
    context: MeteredContext,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write JSON as Hugging Face does: without HTML escapes, and with the options of ``json.dumps``."""
    meter = context.meter
    meter.flat(value)
    meter.indent(indent)
    if indent is None and separators is None:
        return str(meter.made(json.dumps(value, ensure_ascii=ensure_ascii, sort_keys=sort_keys)))
    encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    pieces = context.buffer()
    pieces.extend(encoder.iterencode(value))
    return str(meter.made("".join(pieces)))


@pass_context
def _from_json(context: MeteredContext, value: str | bytes) -> Any:
    """Read JSON text."""
    context.meter.charge(ELEMENT * len(value))
    return json.loads(value)


@pass_context
def _joined(context: MeteredContext, value: Iterable[Any], d: Any = "", attribute: str | int | None = None) -> str:
    items = list(value) if attribute is None else list(map(make_attrgetter(context.environment, attribute), value))
    meter = context.meter
    meter.joined(items, len(meter.text(d)))
    return str(_JOIN(context.eval_ctx, items, d))


@pass_context
def _summed(context: MeteredContext, value: Iterable[Any], attribute: str | int | None = None, start: Any = 0) -> Any:
    items = value if attribute is None else map(make_attrgetter(context.environment, attribute), value)
    if not isinstance(start, (list, tuple)):
        return context.meter.made(sum(items, start))
    for item in items:
        start = context.meter.made(start + item)
    return start


@pass_context
def _random(context: MeteredContext, value: Any) -> Any:
    """Return the same item every time, so that the output does not depend on chance."""
    items = list(value)
    return random.Random(len(items)).choice(items) if items else context.environment.undefined("No random item")


@pass_context
def _tick(context: MeteredContext, steps: int) -> bool:
    return context.meter.tick(steps)


_TICK = "tick of the meter"


def _metered(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that calls the meter. It takes the context, so Jinja does not run it during compilation."""
    guard = filter_guard(name)
    passes = _PassArg.from_obj(function)
    walks = name in ("sort", "unique", "min", "max", "groupby")

    @pass_context
    def metered(context: MeteredContext, /, *args: Any, **kwargs: Any) -> Any:
        meter = context.meter
        if walks and args and not isinstance(args[0], (list, tuple, dict, str)):
            args = (list(args[0]), *args[1:])
        guard(meter, *args, **kwargs)
        if passes is None:
            return meter.made(function(*args, **kwargs))
        first = (
            context if passes is _PassArg.context
            else context.eval_ctx if passes is _PassArg.eval_context
            else context.environment
        )  # fmt: skip
        return meter.made(function(first, *args, **kwargs))

    return metered


def _compared(function: Callable[..., bool]) -> Callable[..., bool]:
    """Return a test that first measures its operands."""

    @pass_context
    def compared(context: MeteredContext, value: Any, *args: Any) -> bool:
        context.meter.flat(value)
        for arg in args:
            context.meter.seen(arg)
        return function(value, *args)

    return compared


@pass_context
def _raise_exception(context: MeteredContext, message: Any = "") -> None:
    raise TemplateRaised(context.meter.text(message))


@pass_context
def _strftime_now(context: MeteredContext, format: str) -> str:
    return context.meter.now().strftime(format)


class _Dict:
    """The part of ``dict`` that templates need."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, keys: Iterable[Any], value: Any = None) -> dict[Any, Any]:
        return dict.fromkeys(keys, value)


class _Namespace(Namespace):
    """``namespace`` without private names, as in transformers."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *rest = args
        attributes = dict(*rest, **kwargs)
        for name in attributes:
            _public(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _public(name)
        super().__setitem__(name, value)


def _public(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace has no private name {name!r}")


def _environment() -> _Environment:
    environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    filters = environment.filters
    tests = cast("dict[str, Any]", environment.tests)
    global _JOIN
    _JOIN = filters["join"]
    del filters["urlize"]
    for name, function in filters.items():
        filters[name] = _metered(name, function)
    filters.update({"from_json": _from_json, "fromjson": _from_json})
    filters.update({"tojson": _tojson, "join": _joined, "sum": _summed, "random": _random, _TICK: _tick})
    for name in _COMPARING:
        tests[name] = _compared(tests[name])
    del environment.globals["lipsum"]
    environment.globals.update(raise_exception=_raise_exception, strftime_now=_strftime_now)
    environment.globals.update(dict=_Dict(), namespace=_Namespace)
    return environment


_COMPARING = (
    "eq", "==", "equalto", "ne", "!=", "gt", ">", "greaterthan", "ge", ">=", "lt", "<", "lessthan", "le", "<=", "in",
    "lower", "upper",
)  # fmt: skip
_JOIN: Callable[..., Any]
_ENVIRONMENT = _environment()
