"""Selection of a parser, fallback and strict validation, by vllm.rs's names."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Iterator
from typing import Any

from untemplate import OutputParser
from untemplate._internal import cli
from untemplate.formats import UnknownFormatError, named, names
from untemplate.policy import Policy, strict_from_environment
from untemplate.selection import select

from .table import Table

TABLE = Table("selection", "untemplate.selection")
add, row = TABLE.add, TABLE.row
NAMES = {
    "passthrough": "passthrough",
    "json": "json",
    "mistral": "mistral",
    "qwen": "hermes",
    "qwen_coder": "qwen3_coder",
    "pythonic": "pythonic",
    "llama": "llama3_json",
    "deepseek": "deepseek_v3",
    "glm45_moe": "glm45",
    "glm47_moe": "glm47",
    "step3": "step3",
    "kimik2": "kimi_k2",
    "minimax_m2": "minimax_m2",
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        },
    }
]
VALID = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
INVALID = VALID.replace("1", '"x"')
UNKNOWN = VALID.replace('"f"', '"g"')
BROKEN = "<tool_call>\nnonsense\n</tool_call>"
VARIABLE = "VLLM_RS_STRICT_TOOL_CALL"

# -- names --------------------------------------------------------------------------------------------------------

for name, ours in NAMES.items():
    add("untemplate.formats:named", f"{name} is a name, for {ours}", lambda n=name, o=ours: (named(n).name, o))
    add("select", f"--enforce-parser {name} chooses {ours}", lambda n=name, o=ours: (_enforced(n), (o, "enforced")))
    add("untemplate.formats:names", f"{name} is in the list of names", lambda n=name: (n in names(), True))


def _enforced(name: str) -> tuple[str, str]:
    chosen = select("some/model", enforce=name)
    return chosen.format.name, chosen.source


@row("select", "an unknown name is an error that lists the valid names")
def _() -> Any:
    try:
        select("some/model", enforce="nothing")
    except ValueError as error:
        return (type(error), all(name in str(error) for name in NAMES)), (UnknownFormatError, True)
    return None, "an error"


@row("select", "a name that is enforced comes first")
def _() -> Any:
    return select("Qwen/Qwen3-8B", enforce="mistral").format.name, "mistral"


@row("select", "without it the model's type and id choose")
def _() -> Any:
    with _quiet():
        chosen = select("mistralai/Mistral-Nemo-Instruct-2407"), select("x/y", model_type="kimi_k2")
    return [(one.format.name, one.source) for one in chosen], [("mistral_v3", "catalogue"), ("kimi_k2", "catalogue")]


@row("select", "at last there is passthrough")
def _() -> Any:
    with _quiet():
        chosen = select("nobody/nothing-known")
    return (chosen.format.name, chosen.source), ("passthrough", "passthrough")


for arguments, expected in ((["--enforce-parser", "qwen_coder"], 0), (["--enforce-parser", "nothing"], 2)):
    add(
        "untemplate._internal.cli:main",
        f"the command takes {' '.join(arguments)} with the exit code {expected}",
        lambda a=arguments, e=expected: (_command("parse", *a)[0], e),
    )
add(
    "untemplate._internal.cli:main",
    "the command's error leads to the valid names",
    lambda: (
        _command("parse", "--enforce-parser", "nothing")[1],
        "untemplate: error: --enforce-parser: unknown format 'nothing'; `untemplate formats` lists all names\n",
    ),
    differs="the command's error names `untemplate formats`",
)


def _command(*arguments: str) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    stdin = io.TextIOWrapper(io.BytesIO(b"text"))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _stdin(stdin):
        try:
            code = cli.main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
    return code, err.getvalue()


@contextlib.contextmanager
def _stdin(stream: Any) -> Iterator[None]:
    import sys

    before, sys.stdin = sys.stdin, stream
    try:
        yield
    finally:
        sys.stdin = before


# -- streams and fallback -----------------------------------------------------------------------------------------


def qwen(**policy: Any) -> OutputParser:
    return OutputParser.named("qwen", policy=Policy(**policy) if policy else None)


def _stream(output: str, *, size: int = 1, **policy: Any) -> tuple[str, list[tuple[str, str]]]:
    stream = qwen(**policy).stream(tools=TOOLS)
    deltas = [delta for at in range(0, len(output), size) for delta in stream.feed(output[at : at + size])]
    deltas += stream.finish("stop")
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        for call in delta.tool_calls or ():
            said = calls.setdefault(call.index, ["", ""])
            if call.function is not None:
                said[0] += call.function.name or ""
                said[1] += call.function.arguments or ""
    return "".join(delta.content or "" for delta in deltas), [(name, text) for name, text in calls.values()]


PARSED = {
    "a call": (VALID, ("", [("f", '{"a": 1}')])),
    "text": ("a b", ("a b", [])),
    "text and a call": (f"a\n{VALID}", ("a", [("f", '{"a": 1}')])),
    "two calls": (f"{VALID}\n{VALID}", ("", [("f", '{"a": 1}')] * 2)),
    "a region that holds no call": (BROKEN, (BROKEN, [])),
    "a part of an opener": ("a <tool_", ("a <tool_", [])),
}
for what, (output, expected) in PARSED.items():
    for size in (1, 5, 100):
        add(
            "untemplate._internal.stream:Stream.feed",
            f"streamed by {size}: {what}",
            lambda o=output, e=expected, s=size: (_stream(o, size=s), e),
        )
    add(
        "untemplate._internal.output_parser:OutputParser.parse_complete_with_fallback",
        f"whole, with the fallback: {what}",
        lambda o=output, e=expected: (_fallback(o), e),
    )


def _fallback(output: str) -> tuple[str, list[tuple[str, str]]]:
    found = qwen().parse_complete_with_fallback(output, tools=TOOLS)
    return found.content or "", [(c.function.name, c.function.arguments) for c in found.tool_calls]


for what, output in {"an opener alone": "<tool_call>", "a name that is cut": '<tool_call>\n{"na'}.items():
    add(
        "untemplate._internal.output_parser:OutputParser.parse_complete_with_fallback",
        f"whole, with the fallback: {what} is text",
        lambda output=output: (_fallback(output), (output, [])),
    )
    add(
        "untemplate.policy:Policy",
        f"streamed, with cut_calls=content: {what} is text",
        lambda output=output: (_stream(output, cut_calls="content"), (output, [])),
    )
    add(
        "untemplate.policy:Policy",
        f"streamed: {what} is left out",
        lambda output=output: (_stream(output), ("", [])),
        differs="A call that is cut before its name is complete is left out of a stream",
    )


@row("untemplate._internal.stream:Stream.feed", "a call's arguments are streamed in fragments")
def _() -> Any:
    stream = qwen().stream(tools=TOOLS)
    parts = [
        call.function.arguments
        for letter in VALID
        for delta in stream.feed(letter)
        for call in delta.tool_calls or ()
        if call.function and call.function.arguments
    ]
    return (len(parts) > 1, "".join(parts)), (True, '{"a": 1}')


@row("untemplate._internal.output_parser:OutputParser.parse_complete_with_fallback", "a call that is cut becomes text")
def _() -> Any:
    return _fallback(VALID[:40]), (VALID[:40], [])


@row(
    "untemplate._internal.output_parser:OutputParser.parse_complete_with_fallback",
    "broken JSON is a call if a policy repairs it",
)
def _() -> Any:
    output = VALID.replace("1}", "1,}")
    found = qwen(repair="syntax").parse_complete_with_fallback(output, tools=TOOLS)
    return ([call.function.arguments for call in found.tool_calls], _fallback(output)), (['{"a": 1}'], (output, []))


# -- strict validation --------------------------------------------------------------------------------------------

for value, strict in ((None, False), ("0", False), ("false", False), ("1", True), ("true", True)):
    add(
        "untemplate.policy:strict_from_environment",
        f"{VARIABLE}={value} is {'strict' if strict else 'lenient'}",
        lambda v=value, s=strict: (strict_from_environment({} if v is None else {VARIABLE: v}), s),
    )
    for what, output in {
        "a wrong type": INVALID,
        "a tool that was not offered": UNKNOWN,
        "a valid call": VALID,
    }.items():
        kept = not strict or output == VALID
        fate = None if output == VALID else "dropped" if strict else "kept"
        add(
            "untemplate._internal.output_parser:OutputParser.parse",
            f"{VARIABLE}={value}: {what} is {'kept' if kept else 'dropped'}, and the warning is {fate}",
            lambda v=value, o=output, k=kept, f=fate: (_with_environment(v, o), (k, f)),
        )


def _with_environment(value: str | None, output: str) -> tuple[bool, str | None]:
    """Return whether the call comes back, and the first word of the warning."""
    seen: list[str] = []
    with _environment(value), _log(seen):
        found = OutputParser.named("qwen").parse(output, tools=TOOLS)
    return bool(found.tool_calls), seen[0].partition(" ")[0] if seen else None


@contextlib.contextmanager
def _environment(value: str | None) -> Iterator[None]:
    before = os.environ.pop(VARIABLE, None)
    if value is not None:
        os.environ[VARIABLE] = value
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


@contextlib.contextmanager
def _log(seen: list[str]) -> Iterator[None]:
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())

    log, handler = logging.getLogger("untemplate"), Handler(logging.WARNING)
    propagates, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagates


def _quiet() -> Any:
    return _log([])


@row("untemplate.policy:Policy", "strict validation streams a valid call, too")
def _() -> Any:
    stream = qwen(strict=True).stream(tools=TOOLS)
    deltas = stream.feed(VALID) + stream.finish("stop")
    return [call.function.name for delta in deltas for call in delta.tool_calls or () if call.function], ["f"]


@row("untemplate.policy:Policy", "strict validation drops an invalid call of a stream")
def _() -> Any:
    with _quiet():
        stream = qwen(strict=True).stream(tools=TOOLS)
        deltas = stream.feed(INVALID) + stream.finish("stop")
    return [call for delta in deltas for call in delta.tool_calls or ()], []
