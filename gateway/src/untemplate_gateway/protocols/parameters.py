"""Fields that the requests of several APIs share, and how they become parts of a `Generation`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from untemplate.grammar._limits import MAX_ALTERNATIVES, MAX_CHARACTERS, MAX_DEPTH

from ..errors import bad_request
from ..generation import Constraint, Sampling
from ..notes import Notes
from .fields import Closed, Open, about, unknown
from .turns import schema_format

Count = Annotated[int, Meta(ge=1, le=1 << 31)]
Limit = Annotated[int, Meta(ge=-1, le=1 << 31, extra={"expected": "an integer from 1, or -1 for no limit"})]
TokenId = Annotated[int, Meta(ge=0, le=(1 << 31) - 1, extra={"expected": "a token id"})]
PromptTokens = Annotated[list[TokenId], Meta(min_length=1, extra={"expected": "a list of token ids"})]
Choices = Annotated[int, Meta(ge=1, le=128)]
TokenBudget = Annotated[int, Meta(ge=0, le=1 << 31)]
TopLogprobs = Annotated[int, Meta(ge=0, le=20)]
StopSequences = Annotated[list[str], Meta(max_length=64)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

# Sampling parameters, as all APIs describe them.
_Share = Annotated[float, Meta(ge=0, le=1)]
_Penalty = Annotated[float, Meta(ge=-2, le=2)]
Temperature = Annotated[
    Annotated[float, Meta(ge=0, le=10)] | None, about("Sampling temperature; 0 always takes the likeliest token.")
]
TopP = Annotated[_Share | None, about("Sample from the likeliest tokens that together have this probability.")]
TopK = Annotated[
    Annotated[int, Meta(ge=-1, le=1 << 31)] | None, about("Sample from this many of the likeliest tokens; -1 for all.")
]
MinP = Annotated[
    _Share | None, about("Least probability of a token, as a fraction of the likeliest token's probability.")
]
PresencePenalty = Annotated[_Penalty | None, about("Penalty on tokens that have occurred.")]
FrequencyPenalty = Annotated[_Penalty | None, about("Penalty on tokens, growing with each occurrence.")]
RepetitionPenalty = Annotated[
    Annotated[float, Meta(ge=0.01, le=10)] | None,
    about("Factor that makes tokens less likely once they have occurred; 1 for none."),
]
Seed = Annotated[
    Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)] | None,
    about("Random seed; further choices (`n`) use the following seeds."),
]
Stop = Annotated[
    str | StopSequences | None,
    about(
        "Strings that end the content, at most 64. They have no effect in reasoning, markup and arguments.",
        expected="a string or a list of strings",
    ),
]


class Untemplate(Closed):
    """Additional reports in the response."""

    diagnostics: Annotated[
        bool | None, about("Report the status of each tool call, and diagnostics of the output.")
    ] = None
    raw: Annotated[bool | None, about("Include the raw output of the model.")] = None


ModelName = Annotated[str | None, about("Name of the model; may be left out where the gateway serves one only.")]
Streamed = Annotated[bool | None, about("Send the response as a stream while it is generated.")]
Reports = Annotated[
    Untemplate | None, about("Reports to add to the response. The header `X-Untemplate` asks for the same.")
]


class Request(Open):
    """Fields of every request for output."""

    model: ModelName = None
    stream: Streamed = None
    untemplate: Reports = None


def common(asked: Request | SampledRequest, body: dict[str, Any], notes: Notes | None) -> dict[str, Any]:
    """Return the fields of every request, as arguments of a `Generation`."""
    wanted = asked.untemplate or Untemplate()
    return {
        "model": asked.model or "",
        "stream": asked.stream or False,
        "diagnostics": wanted.diagnostics or False,
        "raw": wanted.raw or False,
        "extra": unknown(type(asked), body),
        "notes": notes or Notes(),
    }


class SamplingFields(Open):
    """Sampling parameters and stop strings, under the names of OpenAI and vLLM."""

    temperature: Temperature = None
    top_p: TopP = None
    top_k: TopK = None
    min_p: MinP = None
    presence_penalty: PresencePenalty = None
    frequency_penalty: FrequencyPenalty = None
    repetition_penalty: RepetitionPenalty = None
    logit_bias: Annotated[
        dict[str, Annotated[float, Meta(ge=-100, le=100)]] | None,
        about("Token id (as text) → value that is added to its logit, from -100 to 100."),
    ] = None
    seed: Seed = None
    stop: Stop = None
    stop_token_ids: Annotated[
        Annotated[list[TokenId], Meta(max_length=64, extra={"expected": "a list of token ids"})] | None,
        about("Tokens that end the output, without being a part of it. Needs an engine that reports token ids."),
    ] = None
    min_tokens: Annotated[
        Annotated[int, Meta(ge=0, le=1 << 31)] | None,
        about("Least tokens of output, for engines that know the setting."),
    ] = None
    ignore_eos: Annotated[
        bool | None, about("Ignore the token that ends an output, for engines that know the setting.")
    ] = None


class StructuredOutputs(Open):
    """A restriction of the output, as vLLM nests it."""

    json: Annotated[dict[str, Any] | str | None, about("JSON schema, or its text.")] = None
    json_object: Annotated[bool | None, about("Any JSON object.")] = None
    regex: Annotated[str | None, about("Regular expression.")] = None
    choice: Annotated[list[str] | None, about("Texts, one of which is the output.")] = None
    grammar: Annotated[str | None, about("Grammar in the language of the engine.")] = None


class SampledRequest(SamplingFields):
    """Sampling parameters, stop strings and restrictions of the output, under the names that OpenAI, vLLM, SGLang and
    llama.cpp use."""

    model: ModelName = None
    stream: Streamed = None
    untemplate: Reports = None
    repeat_penalty: Annotated[RepetitionPenalty, about("The name of `repetition_penalty` in llama.cpp.")] = None
    structured_outputs: Annotated[StructuredOutputs | None, about("Constrain the whole output, as vLLM nests it.")] = (
        None
    )
    guided_json: Annotated[dict[str, Any] | str | None, about("The older name of `structured_outputs.json`.")] = None
    guided_regex: Annotated[str | None, about("The older name of `structured_outputs.regex`.")] = None
    guided_choice: Annotated[list[str] | None, about("The older name of `structured_outputs.choice`.")] = None
    guided_grammar: Annotated[str | None, about("The older name of `structured_outputs.grammar`.")] = None
    json_schema: Annotated[
        dict[str, Any] | str | None, about("The name of `structured_outputs.json` in llama.cpp and SGLang.")
    ] = None
    regex: Annotated[str | None, about("The name of `structured_outputs.regex` in SGLang.")] = None
    ebnf: Annotated[str | None, about("The name of `structured_outputs.grammar` in SGLang.")] = None
    grammar: Annotated[str | None, about("The name of `structured_outputs.grammar` in llama.cpp.")] = None


_RESTRICTIONS = {
    "guided_json": "json",
    "json_schema": "json",
    "guided_regex": "regex",
    "regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
    "ebnf": "grammar",
    "grammar": "grammar",
}
"""Field of a request → the kind of restriction."""


def _schema(field: str, value: dict[str, Any] | str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    try:
        found = msgspec.json.decode(value)
    except msgspec.DecodeError:
        found = None
    if not isinstance(found, dict):
        raise bad_request(field, "must be a JSON schema")
    return found


def _constraint(fields: Open, given: dict[str, Any] | None, name: str) -> dict[str, Any]:
    """Return the restriction of the output, as arguments of a `Generation`.

    Args:
        given: the response format by the API's own field.
        name: of that field.
    """
    found = {name: value for name in _RESTRICTIONS if (value := getattr(fields, name, None)) is not None}
    nested = getattr(fields, "structured_outputs", None)
    for kind in ("json", "json_object", "regex", "choice", "grammar") if nested is not None else ():
        value = getattr(nested, kind)
        if value not in (None, False):
            found[f"structured_outputs.{kind}"] = value
    if given is not None:
        if found:
            raise bad_request(name, "excludes other restrictions of the output")
        return {"response_format": given}
    if not found:
        return {}
    if len(found) > 1:
        raise bad_request(min(found), f"excludes {max(found)}")
    [(field, value)] = found.items()
    kind = _RESTRICTIONS.get(field, field.rpartition(".")[2])
    if kind == "json_object":
        return {"response_format": {"type": "json_object"}}
    if kind == "json":
        return {"response_format": schema_format(_schema(field, value))}
    if not value:
        raise bad_request(field, "must not be empty")
    _check_size(field, value)
    return {"constraint": Constraint(kind, tuple(value) if isinstance(value, list) else value, field)}


def _check_size(field: str, value: str | list[str]) -> None:
    """Refuse restrictions that an engine could not work with: it takes seconds for them, or breaks."""
    if isinstance(value, list):
        if len(value) > MAX_ALTERNATIVES or sum(map(len, value)) > MAX_CHARACTERS:
            most = f"{MAX_ALTERNATIVES:,} texts with {MAX_CHARACTERS:,} characters together"
            raise bad_request(field, f"may hold at most {most}")
        return
    if len(value) > MAX_CHARACTERS or value.count("|") > MAX_ALTERNATIVES:
        most = f"{MAX_CHARACTERS:,} characters and {MAX_ALTERNATIVES:,} alternatives"
        raise bad_request(field, f"may have at most {most}")
    depth = deepest = 0
    for character in _LITERAL.sub("", value):
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise bad_request(field, f"may be nested at most {MAX_DEPTH} levels deep")


_LITERAL: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|\[(?:[^\]\\]|\\.)*\]?', re.DOTALL)
"""Matches text and character classes in grammars."""


def sampled(fields: Open, given: dict[str, Any] | None = None, name: str = "response_format") -> dict[str, Any]:
    """Return sampling parameters, stop strings and the restriction of the output, as arguments of a `Generation`.

    Args:
        given: the response format by the API's own field.
        name: of that field.

    Raises:
        ApiError: a value is wrong, or there are several restrictions.
    """
    return {
        "stop": stop_strings(getattr(fields, "stop", None)),
        "sampling": _sampling(fields),
        **_constraint(fields, given, name),
    }


def _sampling(fields: Open) -> Sampling:
    found = {name: getattr(fields, name, None) for name in Sampling.__struct_fields__}
    if found["repetition_penalty"] is None:
        found["repetition_penalty"] = getattr(fields, "repeat_penalty", None)
    for token in found["logit_bias"] or ():
        if not (token.isascii() and token.isdecimal() and len(token) < 10):
            raise bad_request("logit_bias", f"{token[:20]!r} is not a token id")
    return Sampling(**found)


def limit_of(limit: int | None, field: str) -> int | None:
    """Return the most tokens of an output; ``None`` for no limit.

    Raises:
        ApiError: the limit is 0.
    """
    if limit == 0:
        raise bad_request(field, "must be an integer from 1, or -1 for no limit, got 0")
    return None if limit is None or limit < 0 else limit


class PromptedRequest(SampledRequest):
    """Fields of requests that a chat template renders."""

    parallel_tool_calls: Annotated[bool | None, about("`false` allows one tool call at most in a response.")] = None
    enable_thinking: Annotated[bool | None, about("Switch reasoning on or off; the default is the template's.")] = None
    thinking_budget: Annotated[
        TokenBudget | None,
        about("Most tokens of reasoning; after them the gateway closes it and the model continues with its answer."),
    ] = None
    chat_template_kwargs: Annotated[
        dict[str, Any] | None, about("Variables for the chat template. They override all other fields.")
    ] = None
    documents: Annotated[list[dict[str, Any]] | None, about("Documents, for chat templates that know them.")] = None
    include_reasoning: Annotated[bool | None, about("`false` generates and counts reasoning without sending it.")] = (
        None
    )


def prompted(
    asked: PromptedRequest,
    body: dict[str, Any],
    notes: Notes | None,
    given: dict[str, Any] | None,
    name: str = "response_format",
) -> dict[str, Any]:
    """Return the fields that requests with messages share, as arguments of a `Generation`. The rest as `sampled`."""
    return {
        **common(asked, body, notes),
        **sampled(asked, given, name),
        "parallel_tool_calls": asked.parallel_tool_calls is not False,
        "template_kwargs": asked.chat_template_kwargs or {},
        "documents": asked.documents,
        "include_reasoning": asked.include_reasoning is not False,
    }


class StreamOptions(Closed, ignored="include_obfuscation continuous_usage_stats"):
    """Options of a streamed response."""

    include_usage: Annotated[bool | None, about("End the stream with a chunk that reports the usage.")] = None


def usage_in_stream(options: StreamOptions | None, stream: bool) -> bool:
    """True if the stream is to end with its usage.

    Raises:
        ApiError: there are options, but the response is not streamed.
    """
    if options is None:
        return False
    if not stream:
        raise bad_request("stream_options", "needs stream: true")
    return options.include_usage or False


def stop_strings(stop: str | list[str] | None) -> tuple[str, ...]:
    """Return the stop strings without duplicates; empty ones are left out."""
    if not stop:
        return ()
    return tuple(dict.fromkeys(one for one in ([stop] if isinstance(stop, str) else stop) if one))


def prompts_of(value: str | list[int | str | list[int]], field: str) -> list[str | list[int]]:
    """Return raw prompts, at least one: each is text or token ids.

    Args:
        value: one prompt, or a list of them.

    Raises:
        ApiError: names the field.
    """
    several = isinstance(value, list) and not all(isinstance(part, int) for part in value)
    return [_prompt(part, field) for part in (value if several and isinstance(value, list) else [value])]


def _prompt(value: Any, field: str) -> str | list[int]:
    if isinstance(value, str):
        return value
    tokens = [token for token in value if isinstance(token, int)] if isinstance(value, list) else []
    if not tokens or tokens != value:
        raise bad_request(field, "must be a string, a list of token ids, or a list of these")
    return tokens
