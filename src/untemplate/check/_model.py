"""The values of a check: messages, observations, results, the report.

Capabilities (found by probing) + Case (raw text, expected message) ─Way─▶ request ─▶ Observation ─▶ Result
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

import msgspec

Verdict = Literal["pass", "soft", "fail", "cannot"]
VERDICTS: Final[dict[Verdict, str]] = {
    "pass": "passed",
    "soft": "differ in white space, or in a reading on which servers differ",
    "fail": "failed",
    "cannot": "cannot be tested here",
}
"""Verdict → its meaning in a count."""


class Call(msgspec.Struct, frozen=True):
    """A tool call, as a client receives it."""

    name: str
    arguments: str
    """JSON text."""


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An assistant message, independent of the API that carried it."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[Call, ...] = ()
    finish_reason: str = ""
    """``stop``, ``length`` or ``tool_calls``; the words of other APIs are translated."""

    @property
    def size(self) -> int:
        """Number of characters of its texts."""
        return len(self.reasoning) + len(self.content) + sum(len(c.name) + len(c.arguments) for c in self.calls)


class Observation(msgspec.Struct, kw_only=True):
    """A response."""

    message: Message
    stream: bool = False
    deltas: list[Any] = []
    """The deltas of a stream, as they came."""
    raw: str | None = None
    """The raw output, if the server reports it."""
    logged: str | None = None
    """Text of the tokens whose log probabilities were reported: with most engines the raw output, elsewhere content."""
    token_ids: list[int] | None = None
    usage: dict[str, Any] | None = None
    fields: frozenset[str] = frozenset()
    """Names of the message's fields that were not empty."""
    problems: list[str] = []
    """Violations of the protocol, such as a name that was sent twice."""
    choices: int = 1
    """Number of choices in the response."""


class Capabilities(msgspec.Struct, kw_only=True):
    """The abilities of a server, found by probing."""

    server: str = ""
    """``untemplate``, ``vllm``, ``sglang``, ``llama.cpp``, ``ollama``, ``tensorrt-llm``, or empty if unknown."""
    version: str = ""
    model: str = ""
    format: str = ""
    """Name of the Format by which its output is read."""
    apis: tuple[str, ...] = ()
    """Those of ``chat``, ``completions``, ``responses`` and ``messages`` that it has."""
    way: str = ""
    """The way by which a given text is forced; empty if no way works."""
    way_without_tools: str = ""
    """A way that works only in requests without tools, where `way` is empty or ``prefix``."""
    continues: str = ""
    """Name of the way by which the model continues an assistant message, from `_ways.CONTINUED`; empty if none does."""
    refused: dict[str, str] = {}
    """Way → the reason why it does not work."""
    token_ids: bool = False
    logprobs: bool = False
    reports_raw: bool = False
    tokenizes: bool = False


class Result(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One check with its verdict and evidence."""

    id: str
    """Unique and stable: ``given/hermes/empty/stream``."""
    verdict: Verdict
    title: str = ""
    reason: str = ""
    """One line: the first difference, or why it cannot be tested."""
    raw: str | None = None
    """The text that the server's model wrote."""
    got: Any = None
    expected: Any = None
    first_difference: Any = None
    """The event of a stream at which it leaves the expected message, with its index."""
    issue: str = ""
    """The known upstream issue, as ``owner/repository#number``."""
    replay: str = ""
    """A shell command that sends the request again."""
    counts: dict[str, Any] = {}
    """Figures over repetitions, with intervals."""


class Cause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault of the server, and the checks that it fails."""

    cause: str
    """One line, the same for all these checks."""
    ids: tuple[str, ...]
    """Names of the checks."""
    only: str = ""
    """``whole`` or ``stream``, if only such responses fail."""
    example: str = ""
    """Name of the check that the evidence below is of."""
    reason: str = ""
    raw: str | None = None
    got: Any = None
    expected: Any = None
    first_difference: Any = None
    issue: str = ""
    replay: str = ""


class Report(msgspec.Struct, kw_only=True):
    """The outcome of a run."""

    untemplate: str
    """Version of untemplate."""
    url: str
    date: str
    """UTC, ISO 8601."""
    capabilities: Capabilities
    results: list[Result]
    causes: list[Cause] = []
    """The failures, grouped by their cause."""
    requests: int = 0
    tokens: int = 0
    """Tokens of prompts and outputs, as the server counts them."""
    seconds: float = 0.0
    stopped: str = ""
    """The reason why the run ended early."""
    schema: int = 1

    def count(self, verdict: Verdict) -> int:
        return sum(result.verdict == verdict for result in self.results)

    @property
    def failed(self) -> bool:
        """True if a check failed."""
        return self.count("fail") > 0


def json_of(text: str) -> Any:
    """Return the value of JSON text; ``None`` if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
