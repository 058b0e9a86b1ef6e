"""Fields that the requests of several APIs share, and how they become parts of a `Generation`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from ..errors import bad_request
from ..generation import Sampling
from .fields import Closed, Ignored, Open, about

__all__ = [
    "Count",
    "Effort",
    "Penalty",
    "PromptedRequest",
    "RepetitionPenalty",
    "Request",
    "SampledRequest",
    "Seed",
    "Share",
    "Stop",
    "StreamOptions",
    "TokenBudget",
    "TokenId",
    "TopK",
    "TopLogprobs",
    "stop_strings",
    "usage_in_stream",
]

Count = Annotated[int, Meta(ge=1, le=1 << 31)]
TokenId = Annotated[int, Meta(ge=0, le=(1 << 31) - 1, extra={"expected": "a token id"})]
TokenBudget = Annotated[int, Meta(ge=0, le=1 << 31)]
TopK = Annotated[int, Meta(ge=-1, le=1 << 31)]
TopLogprobs = Annotated[int, Meta(ge=0, le=20)]
Seed = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
RepetitionPenalty = Annotated[float, Meta(ge=0.01, le=10)]
Stop = Annotated[list[str], Meta(max_length=64)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Untemplate(Closed):
    """Additional reports in the response."""

    diagnostics: Annotated[
        bool | None, about("Report the status of each tool call, and diagnostics of the output.")
    ] = None
    raw: Annotated[bool | None, about("Include the raw output of the model.")] = None


class Request(Open):
    """Fields of every request for output."""

    model: Annotated[str | None, about("Name of the model; may be left out where the gateway serves one only.")] = None
    stream: Annotated[bool | None, about("Send the response as a stream while it is generated.")] = None
    untemplate: Annotated[
        Untemplate | None, about("Reports to add to the response. The header `X-Untemplate` asks for the same.")
    ] = None

    def reports(self) -> dict[str, Any]:
        """Return the reports that are asked for, as arguments of a `Generation`."""
        asked = self.untemplate
        if asked is None:
            return {}
        return {"diagnostics": asked.diagnostics or False, "raw": asked.raw or False}


class SampledRequest(Request):
    """Sampling parameters and stop strings, under the names that OpenAI, vLLM and llama.cpp use."""

    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None, about("Sampling temperature; 0 always takes the likeliest token.")
    ] = None
    top_p: Annotated[Share | None, about("Sample from the likeliest tokens that together have this probability.")] = (
        None
    )
    top_k: Annotated[TopK | None, about("Sample from this many of the likeliest tokens; -1 for all.")] = None
    min_p: Annotated[
        Share | None, about("Least probability of a token, as a fraction of the likeliest token's probability.")
    ] = None
    presence_penalty: Annotated[Penalty | None, about("Penalty on tokens that have occurred.")] = None
    frequency_penalty: Annotated[Penalty | None, about("Penalty on tokens, growing with each occurrence.")] = None
    repetition_penalty: Annotated[
        RepetitionPenalty | None, about("Factor that makes tokens less likely once they have occurred; 1 for none.")
    ] = None
    logit_bias: Annotated[
        dict[str, Annotated[float, Meta(ge=-100, le=100)]] | None,
        about("Token id (as text) → value that is added to its logit, from -100 to 100."),
    ] = None
    seed: Annotated[Seed | None, about("Random seed; further choices (`n`) use the following seeds.")] = None
    stop: Annotated[
        str | Stop | None,
        about(
            "Strings that end the content, at most 64. They have no effect in reasoning, markup and arguments.",
            expected="a string or a list of strings",
        ),
    ] = None

    def sampling(self) -> Sampling:
        """Return the sampling parameters.

        Raises:
            ApiError: a key of ``logit_bias`` is not a token id.
        """
        for token in self.logit_bias or ():
            if not (token.isascii() and token.isdecimal() and len(token) < 10):
                raise bad_request("logit_bias", f"{token[:20]!r} is not a token id")
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            repetition_penalty=self.repetition_penalty,
            logit_bias=self.logit_bias,
            seed=self.seed,
        )


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
    include_reasoning: Annotated[bool | None, about("`false` generates and counts reasoning without sending it.")] = (
        None
    )


class StreamOptions(Closed):
    """Options of a streamed response."""

    include_usage: Annotated[bool | None, about("End the stream with a chunk that reports the usage.")] = None
    include_obfuscation: Ignored = None
    continuous_usage_stats: Ignored = None


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
