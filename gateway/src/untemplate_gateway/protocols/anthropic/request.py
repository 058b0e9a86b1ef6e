"""Requests of Anthropic's Messages.

Blocks become messages of Chat Completions: thinking becomes ``reasoning_content``, ``tool_use`` a tool call, and each
``tool_result`` a message of its own, at its place among the other blocks. Signatures of thinking are ignored.

Source: Anthropic API reference, "Messages".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from ...errors import bad_request, unsupported
from ...generation import Generation, Sampling, Thinking
from ...notes import Notes
from ..arguments import arguments_text
from ..fields import Closed, about, read_as
from ..parameters import Count, Request, StopSequences, Temperature, TopK, TopP, common, stop_strings
from ..tools import Filled, function_tool
from ..turns import (
    assistant,
    called,
    choice_of,
    document_part,
    grouped,
    image_part,
    is_prefill,
    names_of,
    plain,
    schema_format,
    text_part,
    tool_result,
)
from .tools import prepared

# -- Blocks of the content ---------------------------------------------------------------------------------------


class TextBlock(Closed, tag_field="type", tag="text", ignored="cache_control citations"):
    """Text."""

    text: Annotated[str, about("The text.")]


class Base64Source(Closed, tag_field="type", tag="base64"):
    """An image in base64."""

    media_type: Annotated[Filled, about("Media type of the image.")]
    data: Annotated[Filled, about("The image in base64.")]


class UrlSource(Closed, tag_field="type", tag="url"):
    """An image at a URL."""

    url: Annotated[Filled, about("URL of the image.")]


class ImageBlock(Closed, tag_field="type", tag="image", ignored="cache_control"):
    """An image, for engines that render messages themselves."""

    source: Annotated[Base64Source | UrlSource, about("The image.")]


class TextSource(Closed, tag_field="type", tag="text", ignored="media_type"):
    """The text of a document."""

    data: Annotated[str, about("The text.")]


class ContentSource(Closed, tag_field="type", tag="content"):
    """The text of a document, in parts."""

    content: Annotated[str | list[TextBlock], about("The text.", expected="a string or a list of text blocks")]


class DocumentBlock(Closed, tag_field="type", tag="document", ignored="cache_control citations context"):
    """A document that is text."""

    source: Annotated[TextSource | ContentSource, about("The document.")]
    title: Annotated[str | None, about("Title, which comes before the text.")] = None


class ToolUseBlock(Closed, tag_field="type", tag="tool_use", ignored="cache_control caller toolset_name"):
    """An earlier tool call; only in assistant messages."""

    id: Annotated[Filled, about("Id of the call, repeated by its result.")]
    name: Annotated[Filled, about("Name of the tool.")]
    input: Annotated[dict[str, Any], about("The arguments.")]


PartBlock = TextBlock | ImageBlock | DocumentBlock


class ToolResultBlock(Closed, tag_field="type", tag="tool_result", ignored="cache_control toolset_name"):
    """The result of a tool call; only in user messages."""

    tool_use_id: Annotated[Filled, about("Id of the call.")]
    content: Annotated[str | list[PartBlock] | None, about("The result.", expected="a string or a list of blocks")] = (
        None
    )
    is_error: Annotated[bool | None, about("`true` marks the result as an error, by text before it.")] = None


class ThinkingBlock(Closed, tag_field="type", tag="thinking", ignored="signature cache_control"):
    """Earlier reasoning; only in assistant messages."""

    thinking: Annotated[str, about("The reasoning.")]


class RedactedThinkingBlock(Closed, tag_field="type", tag="redacted_thinking", ignored="data cache_control"):
    """Reasoning that another server has encrypted. It is ignored."""


Block = TextBlock | ImageBlock | DocumentBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock | RedactedThinkingBlock


class AnthropicMessage(Closed):
    """A message."""

    role: Annotated[Literal["user", "assistant", "system"], about("Author of the message.")]
    content: Annotated[str | list[Block], about("The content.", expected="a string or a list of blocks")]


# -- The request -------------------------------------------------------------------------------------------------


class AnthropicTool(Closed, ignored="cache_control eager_input_streaming input_examples allowed_callers defer_loading"):
    """A tool."""

    name: Annotated[Filled, about("Name of the tool.")]
    input_schema: Annotated[dict[str, Any], about("JSON schema of the arguments.")]
    description: Annotated[str | None, about("Purpose of the tool, for the model.")] = None
    strict: Annotated[bool | None, about("Constrain the arguments to the schema while they are generated.")] = None
    type: Annotated[
        Literal["custom"] | None,
        about("Kind of tool.", refused="tools that the server runs ({got}) are not supported, only custom ones"),
    ] = None


class AnthropicToolChoice(Closed):
    """Requires, allows or forbids tool calls."""

    type: Annotated[
        Literal["auto", "any", "tool", "none"], about("`any` requires a call of some tool, `tool` of the named one.")
    ]
    name: Annotated[Filled | None, about("Name of the tool, for `tool`.")] = None
    disable_parallel_tool_use: Annotated[bool | None, about("Allow one tool call at most.")] = None


class ThinkingSettings(Closed):
    """Settings of reasoning."""

    type: Annotated[
        Literal["enabled", "disabled", "adaptive", "between_tools"],
        about("`adaptive` and `between_tools` leave it to the chat template."),
    ]
    budget_tokens: Annotated[Count | None, about("Most tokens of reasoning; required for `enabled`.")] = None
    display: Annotated[
        Literal["summarized", "omitted"] | None, about("`omitted` generates reasoning without sending it.")
    ] = None


class OutputFormat(Closed, ignored="name"):
    """A JSON schema for the output."""

    type: Annotated[Literal["json_schema"], about("Kind of format.")]
    schema: Annotated[dict[str, Any], about("The JSON schema.")]


class OutputConfig(Closed):
    """Settings of the output."""

    effort: Annotated[
        Literal["low", "medium", "high", "xhigh", "max"] | None,
        about("Effort of reasoning, for templates that know it."),
    ] = None
    format: Annotated[OutputFormat | None, about("Constrain the output; without a grammar, by the prompt.")] = None


class CountTokensRequest(
    Request,
    kw_only=True,
    forbid_unknown_fields=True,
    ignored="metadata service_tier cache_control inference_geo speed diagnostics betas context_management",
    refused="container mcp_servers",
):
    """A request to count the tokens of a prompt."""

    max_tokens: Annotated[Count | None, about("Most tokens of output, reasoning included.")] = None
    messages: Annotated[Annotated[list[AnthropicMessage], Meta(min_length=1)], about("The conversation.")]
    system: Annotated[
        str | list[TextBlock] | None, about("System message.", expected="a string or a list of text blocks")
    ] = None
    tools: Annotated[list[AnthropicTool] | None, about("Tools that the model may call.")] = None
    tool_choice: Annotated[AnthropicToolChoice | None, about("Require, allow or forbid tool calls.")] = None
    thinking: Annotated[ThinkingSettings | None, about("Settings of reasoning.")] = None
    output_config: Annotated[OutputConfig | None, about("Settings of the output.")] = None
    output_format: Annotated[OutputFormat | None, about("The older place of `output_config.format`.")] = None
    stop_sequences: Annotated[
        StopSequences | None,
        about("Strings that end the content, at most 64. They have no effect in thinking, markup and arguments."),
    ] = None
    temperature: Temperature = None
    top_p: TopP = None
    top_k: TopK = None
    chat_template_kwargs: Annotated[
        dict[str, Any] | None, about("Variables for the chat template. They override all other fields.")
    ] = None


class MessagesRequest(CountTokensRequest, kw_only=True, forbid_unknown_fields=False):
    """A Messages request."""

    max_tokens: Annotated[Count, about("Most tokens of output, reasoning included.")]


def read_messages(body: dict[str, Any], notes: Notes | None = None) -> Generation:
    """Read a request for output."""
    return _read(MessagesRequest, body, notes or Notes())


def read_count_tokens(body: dict[str, Any], notes: Notes | None = None) -> Generation:
    """Read a request to count tokens."""
    return _read(CountTokensRequest, body, notes or Notes())


def _read(kind: type[CountTokensRequest], body: dict[str, Any], notes: Notes) -> Generation:
    asked = read_as(kind, prepared(body, notes), notes=notes)
    messages = _system(asked.system)
    for i, message in enumerate(asked.messages):
        messages += _turn(message, f"messages[{i}]")
    tools = [function_tool(tool.name, tool.description, tool.input_schema, tool.strict) for tool in asked.tools or ()]
    choice = asked.tool_choice
    return Generation(
        **common(asked, body, notes),
        messages=messages,
        tools=tools or None,
        tool_choice=None if choice is None else _tool_choice(choice, tools),
        parallel_tool_calls=choice is None or choice.disable_parallel_tool_use is not True,
        response_format=_response_format(asked),
        stop=stop_strings(asked.stop_sequences),
        max_tokens=asked.max_tokens,
        sampling=Sampling(temperature=asked.temperature, top_p=asked.top_p, top_k=asked.top_k),
        thinking=_thinking(asked.thinking, asked.output_config),
        template_kwargs=asked.chat_template_kwargs or {},
        continue_final_message=is_prefill(messages, "messages"),
        include_reasoning=asked.thinking is None or asked.thinking.display != "omitted",
    )


def _system(system: str | list[TextBlock] | None) -> list[dict[str, Any]]:
    return [{"role": "system", "content": _text(system)}] if system else []


def _text(given: str | list[TextBlock]) -> str:
    return given if isinstance(given, str) else "\n".join(block.text for block in given)


def _turn(message: AnthropicMessage, path: str) -> list[dict[str, Any]]:
    """Return a message; tool results in it are messages of their own, before and after its other blocks."""
    role, content = message.role, message.content
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    if role == "assistant":
        return [_assistant(content, f"{path}.content")]
    if not content:
        raise bad_request(f"{path}.content", "must not be empty")
    return grouped(role, [_piece(block, role, f"{path}.content[{i}]") for i, block in enumerate(content)])


def _piece(block: Block, role: str, path: str) -> dict[str, Any]:
    if isinstance(block, ToolResultBlock) and role == "user":
        return _result(block)
    if isinstance(block, PartBlock):
        return _part(block)
    raise _misplaced(block, role, path)


def _misplaced(block: Block, role: str, path: str) -> Exception:
    kind = block.__struct_config__.tag
    return unsupported(f"{path}.type", f"blocks of type {kind} are not supported in {role} messages")


def _part(block: PartBlock) -> dict[str, Any]:
    """Return a block as a part of Chat Completions."""
    if isinstance(block, TextBlock):
        return text_part(block.text)
    source = block.source
    if isinstance(source, TextSource | ContentSource):
        text = source.data if isinstance(source, TextSource) else _text(source.content)
        return document_part(text, getattr(block, "title", None))
    return image_part(source.url if isinstance(source, UrlSource) else f"data:{source.media_type};base64,{source.data}")


def _assistant(blocks: Sequence[Block], path: str) -> dict[str, Any]:
    """Return a message of the assistant."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for i, block in enumerate(blocks):
        if isinstance(block, TextBlock):
            texts.append(block.text)
        elif isinstance(block, ThinkingBlock):
            thoughts.append(block.thinking)
        elif isinstance(block, ToolUseBlock):
            calls.append(called(block.id, block.name, arguments_text(block.input, f"{path}[{i}].input")))
        elif not isinstance(block, RedactedThinkingBlock):
            raise _misplaced(block, "assistant", f"{path}[{i}]")
    return assistant(texts, thoughts, calls)


def _result(block: ToolResultBlock) -> dict[str, Any]:
    """Return a tool's result. Chat templates have no field for errors, so an error is marked in the text."""
    content: Any = block.content or ""
    if not isinstance(content, str):
        content = plain([_part(part) for part in content])
    if block.is_error:
        if isinstance(content, str):
            content = f"Error: {content}" if content else "Error"
        else:
            content.insert(0, text_part("Error"))
    return tool_result(block.tool_use_id, content)


_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}


def _tool_choice(choice: AnthropicToolChoice, tools: Sequence[dict[str, Any]]) -> Any:
    """Return ``tool_choice`` in the shape of Chat Completions."""
    name = choice.name
    if choice.type != "tool":
        if name is not None:
            raise unsupported("tool_choice.name")
        return _CHOICES[choice.type]
    if name is None:
        raise bad_request("tool_choice.name", "is required")
    return choice_of(name, names_of(tools), "tool_choice.name")


def _thinking(given: ThinkingSettings | None, output: OutputConfig | None) -> Thinking:
    effort = None if output is None else output.effort
    if given is None or given.type not in ("enabled", "disabled"):
        return Thinking(effort=effort)  # the chat template decides
    if given.type == "disabled":
        return Thinking(enabled=False, effort=effort)
    if given.budget_tokens is None:
        raise bad_request("thinking.budget_tokens", "is required")
    return Thinking(enabled=True, effort=effort, budget=given.budget_tokens)


def _response_format(asked: CountTokensRequest) -> dict[str, Any] | None:
    form = asked.output_format
    if asked.output_config is not None:
        form = asked.output_config.format or form
    return None if form is None else schema_format(form.schema)
