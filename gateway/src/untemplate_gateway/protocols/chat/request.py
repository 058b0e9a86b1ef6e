"""Requests of Chat Completions.

Fields that vLLM, SGLang, llama.cpp and OpenRouter add to the API are read under their names. Message fields that the
gateway does not know go to the chat template.

Source: OpenAI API reference, "Chat Completions".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from ...errors import bad_request, unsupported
from ...generation import Generation, Thinking
from ...notes import Notes
from ..fields import Closed, Open, about, read_as
from ..parameters import (
    Choices,
    Effort,
    Limit,
    PromptedRequest,
    StreamOptions,
    TokenBudget,
    TopLogprobs,
    limit_of,
    prompted,
    usage_in_stream,
)
from ..tools import ChatCall, ChatTool, ToolChoice, read_call, read_tool_choice, read_tools
from ..turns import data_url, file_part, is_text


class ChatFile(Open):
    """A file."""

    file_data: Annotated[str | None, about("The file as a data URL in base64.")] = None
    filename: Annotated[str | None, about("Name of the file, which comes before its text.")] = None


class ChatPart(Open):
    """A part of a message's content. Engines that render messages themselves may take other parts than text."""

    type: Annotated[str, about("Kind of part: `text`, `refusal`, `file` or a kind that the engine knows.")]
    text: Annotated[str | None, about("The text of a `text` part.")] = None
    refusal: Annotated[str | None, about("The text of a `refusal` part.")] = None
    file: Annotated[ChatFile | None, about("The file of a `file` part.")] = None


class ChatMessage(Open):
    """A message. Further fields go to the chat template."""

    role: Annotated[
        Literal["system", "developer", "user", "assistant", "tool", "function"], about("Author of the message.")
    ]
    content: Annotated[
        str | list[ChatPart] | None,
        about("The content. Only assistant messages may leave it out.", expected="a string or a list of parts"),
    ] = None
    reasoning: Annotated[str | None, about("Reasoning of an assistant message.")] = None
    reasoning_content: Annotated[str | None, about("The same as `reasoning`.")] = None
    name: Annotated[str | None, about("Name of the author or, in tool messages, of the function.")] = None
    tool_call_id: Annotated[str | None, about("Id of the call that a tool message answers.")] = None
    tool_calls: Annotated[list[ChatCall] | None, about("Tool calls of an assistant message.")] = None


class TextFormat(Open, tag_field="type", tag="text"):
    """Free text."""


class JsonFormat(Open, tag_field="type", tag="json_object"):
    """Any JSON object."""


class NamedSchema(Open):
    """A JSON schema with a name."""

    schema: Annotated[dict[str, Any], about("The JSON schema.")]
    name: Annotated[str | None, about("Name of the schema.")] = None
    strict: Annotated[bool | None, about("Constrain the output to the schema.")] = None


class JsonSchemaFormat(Open, tag_field="type", tag="json_schema"):
    """JSON that fits a schema."""

    json_schema: Annotated[NamedSchema, about("The schema.")]


class ReasoningSettings(Closed, ignored="exclude summary"):
    """Reasoning settings, as OpenRouter nests them."""

    effort: Annotated[Effort | None, about("Effort of reasoning.")] = None
    enabled: Annotated[bool | None, about("Switch reasoning on or off.")] = None
    max_tokens: Annotated[TokenBudget | None, about("Most tokens of reasoning.")] = None


class ChatRequest(
    PromptedRequest,
    kw_only=True,
    ignored="user metadata store service_tier safety_identifier prompt_cache_key prompt_cache_retention verbosity"
    " prediction add_generation_prompt skip_special_tokens spaces_between_special_tokens separate_reasoning"
    " reasoning_format",
):
    """A Chat Completions request."""

    messages: Annotated[Annotated[list[ChatMessage], Meta(min_length=1)], about("The conversation.")]
    tools: Annotated[list[ChatTool] | None, about("Tools that the model may call.")] = None
    tool_choice: Annotated[ToolChoice | None, about("Require, allow or forbid tool calls.")] = None
    response_format: Annotated[
        TextFormat | JsonFormat | JsonSchemaFormat | None,
        about("Constrain the content; without a grammar, by the prompt."),
    ] = None
    n: Annotated[Choices | None, about("Number of choices.")] = None
    stream_options: Annotated[StreamOptions | None, about("Options of a streamed response.")] = None
    max_completion_tokens: Annotated[Limit | None, about("Most tokens of output, reasoning included.")] = None
    max_tokens: Annotated[Limit | None, about("The older name of `max_completion_tokens`.")] = None
    logprobs: Annotated[bool | None, about("Report log probabilities of the content's tokens.")] = None
    top_logprobs: Annotated[
        TopLogprobs | None, about("Number of likely tokens to report at each place; needs `logprobs`.")
    ] = None
    reasoning_effort: Annotated[Effort | None, about("Effort of reasoning, for templates that know it.")] = None
    reasoning: Annotated[ReasoningSettings | None, about("Reasoning settings, as OpenRouter nests them.")] = None
    thinking_token_budget: Annotated[TokenBudget | None, about("The same as `thinking_budget`.")] = None
    continue_final_message: Annotated[
        bool | None, about("Continue the last message, which must be the assistant's.")
    ] = None
    modalities: Annotated[list[str] | None, about("Kinds of output: only `text`.")] = None
    return_token_ids: Annotated[bool | None, about("Return the token ids of the prompt and of the output.")] = None


def read_chat(body: dict[str, Any], notes: Notes | None = None) -> Generation:
    """Read a request."""
    asked = read_as(ChatRequest, body, notes=notes)
    messages = [
        _message(message, raw, f"messages[{i}]")
        for i, (message, raw) in enumerate(zip(asked.messages, body["messages"], strict=True))
    ]
    tools, custom = read_tools(asked.tools or (), body.get("tools") or ())
    tool_choice = read_tool_choice(asked.tool_choice, tools)
    if asked.continue_final_message and messages[-1]["role"] != "assistant":
        raise bad_request("continue_final_message", "the last message must be the assistant's")
    if any(kind != "text" for kind in asked.modalities or ()):
        raise unsupported("modalities", "only text is supported")
    named = "max_tokens" if asked.max_completion_tokens is None else "max_completion_tokens"
    free = asked.response_format is None or isinstance(asked.response_format, TextFormat)
    return Generation(
        **prompted(asked, body, notes, None if free else body["response_format"]),
        messages=messages,
        tools=tools or None,
        tool_choice=tool_choice,
        n=asked.n or 1,
        max_tokens=limit_of(getattr(asked, named), named),
        include_usage=usage_in_stream(asked.stream_options, asked.stream or False),
        logprobs=_logprobs(asked),
        thinking=_thinking(asked),
        continue_final_message=asked.continue_final_message or False,
        repeated={"custom": custom} if custom else {},
        token_ids=asked.return_token_ids or False,
    )


def _message(message: ChatMessage, raw: dict[str, Any], path: str) -> dict[str, Any]:
    """Return a message with its unknown fields, and with its tool calls and reasoning in one shape."""
    role = message.role
    found = {key: value for key, value in raw.items() if value is not None}
    if isinstance(message.content, list):
        found["content"] = [
            _part(part, one, f"{path}.content[{i}]")
            for i, (part, one) in enumerate(zip(message.content, raw["content"], strict=True))
        ]
    elif message.content is None and role != "assistant":
        raise bad_request(f"{path}.content", "is required")
    if role == "tool" and message.tool_call_id is None:
        raise bad_request(f"{path}.tool_call_id", "is required")
    if role == "assistant":
        found.pop("tool_calls", None)
        if message.tool_calls:
            found["tool_calls"] = [
                read_call(call, f"{path}.tool_calls[{i}]") for i, call in enumerate(message.tool_calls)
            ]
        reasoning = found.pop("reasoning", None)
        if reasoning is not None:
            found.setdefault("reasoning_content", reasoning)
    elif message.tool_calls is not None:
        raise bad_request(f"{path}.tool_calls", "only assistant messages can have tool calls")
    return found


def _part(part: ChatPart, raw: dict[str, Any], path: str) -> dict[str, Any]:
    """Return a part; a file that is text as text."""
    if part.type in ("text", "refusal", "file") and getattr(part, part.type) is None:
        raise bad_request(f"{path}.{part.type}", "is required")
    if part.type == "file" and part.file is not None:
        media_type, data = data_url(part.file.file_data or "")
        if is_text(media_type):
            return file_part(media_type, data, part.file.filename, f"{path}.file.file_data")
    return raw


def _logprobs(asked: ChatRequest) -> int | None:
    if asked.top_logprobs and not asked.logprobs:
        raise bad_request("top_logprobs", "needs logprobs: true")
    return (asked.top_logprobs or 0) if asked.logprobs else None


def _thinking(asked: ChatRequest) -> Thinking:
    nested = asked.reasoning or ReasoningSettings()
    budgets = asked.thinking_budget, nested.max_tokens, asked.thinking_token_budget
    return Thinking(
        enabled=nested.enabled if asked.enable_thinking is None else asked.enable_thinking,
        effort=nested.effort or asked.reasoning_effort,
        budget=next((budget for budget in budgets if budget is not None), None),
    )
