"""Requests of OpenAI's Responses.

Requests may refer to stored responses; the gateway puts their items in place before it reads the request. Items of
reasoning, text and calls that follow each other become one message of the assistant.

Source: OpenAI API reference, "Responses".
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

from ...errors import bad_request
from ...generation import Generation, Thinking
from ...notes import Notes
from ..fields import Closed, Open, about, read_as
from ..parameters import Effort, Limit, PromptedRequest, TopLogprobs, limit_of, prompted
from ..tools import Filled, ToolChoice, read_tool_choice
from ..turns import called, data_url, file_part, image_part, plain, text_part, tool_result, without
from .tools import SERVER_TOOLS, ResponsesTool, flat_name, read_tools, shell_arguments

_NO_PROMPTS: Final = "the gateway stores no prompt templates: send instructions and input"
_NO_FILES: Final = "the gateway stores and fetches no files: send the image as image_url, a text as file_data"
_LOGPROBS: Final = "message.output_text.logprobs"


# -- Items of the input ------------------------------------------------------------------------------------------


class _Text(Closed, tag_field="type", ignored="annotations logprobs prompt_cache_breakpoint"):
    text: Annotated[str, about("The text.")]


class InputText(_Text, tag="input_text"):
    """Text of the user."""


class OutputText(_Text, tag="output_text"):
    """Text of the assistant."""


class PlainText(_Text, tag="text"):
    """Text."""


class Refusal(Closed, tag_field="type", tag="refusal"):
    """A refusal of the assistant."""

    refusal: Annotated[str, about("The text.")]


class InputImage(Closed, tag_field="type", tag="input_image", ignored="prompt_cache_breakpoint"):
    """An image, for engines that render messages themselves."""

    image_url: Annotated[Filled | None, about("URL of the image, or a data URL.")] = None
    file_id: Annotated[None, about("Not supported.", refused=_NO_FILES)] = None
    detail: Annotated[str | None, about("Resolution in which the model sees the image.")] = None


class InputFile(Closed, tag_field="type", tag="input_file", ignored="detail prompt_cache_breakpoint"):
    """A file that is text."""

    file_data: Annotated[Filled | None, about("The file as a data URL in base64.")] = None
    filename: Annotated[str | None, about("Name of the file, which comes before its text.")] = None
    file_id: Annotated[None, about("Not supported.", refused=_NO_FILES)] = None
    file_url: Annotated[None, about("Not supported.", refused=_NO_FILES)] = None


Parts = list[InputText | OutputText | PlainText | Refusal | InputImage | InputFile]


class MessageItem(Closed, tag_field="type", tag="message", ignored="id status phase"):
    """A message. Its `type` may be left out."""

    role: Annotated[Literal["user", "assistant", "system", "developer"], about("Author of the message.")]
    content: Annotated[str | Parts, about("The content.", expected="a string or a list of parts")]


class ReasoningPart(Open):
    """A part of earlier reasoning."""

    text: Annotated[str, about("The text.")]


class ReasoningItem(Closed, tag_field="type", tag="reasoning", ignored="encrypted_content id status"):
    """Earlier reasoning."""

    content: Annotated[list[ReasoningPart] | None, about("The reasoning.")] = None
    summary: Annotated[list[ReasoningPart] | None, about("Summary, which is used if there is no content.")] = None


class CustomCallItem(Closed, tag_field="type", tag="custom_tool_call", ignored="id status"):
    """An earlier call of a custom tool."""

    call_id: Annotated[Filled, about("Id of the call, repeated by its output.")]
    name: Annotated[Filled, about("Name of the tool.")]
    input: Annotated[str, about("The text for the tool.")]
    namespace: Annotated[str | None, about("Namespace of the tool.")] = None


class ShellCallItem(Closed, tag_field="type", tag="local_shell_call", ignored="status"):
    """An earlier call of the local shell."""

    action: Annotated[dict[str, Any], about("The command.")]
    call_id: Annotated[str | None, about("Id of the call, repeated by its output.")] = None
    id: Annotated[str | None, about("Id of the item, if the call has none.")] = None


class CallItem(Closed, tag_field="type", tag="function_call", ignored="id status caller"):
    """An earlier tool call."""

    call_id: Annotated[Filled, about("Id of the call, repeated by its output.")]
    name: Annotated[Filled, about("Name of the function.")]
    arguments: Annotated[str, about("The arguments as JSON text.")]
    namespace: Annotated[str | None, about("Namespace of the function.")] = None


class CallOutputItem(Closed, tag_field="type", tag="function_call_output", ignored="id status name caller"):
    """The result of a tool call."""

    call_id: Annotated[str, about("Id of the call.")]
    output: Annotated[str | Parts, about("The result.", expected="a string or a list of parts")]


class CustomOutputItem(CallOutputItem, tag="custom_tool_call_output"):
    """The result of a call of a custom tool."""


class ShellOutputItem(Closed, tag_field="type", tag="local_shell_call_output", ignored="status"):
    """The result of a call of the local shell."""

    output: Annotated[str, about("The result.")]
    id: Annotated[str | None, about("Id of the call.")] = None
    call_id: Annotated[str | None, about("Id of the call.")] = None


CalledItem = CallItem | CustomCallItem | ShellCallItem
AnsweredItem = CallOutputItem | CustomOutputItem | ShellOutputItem
Item = MessageItem | ReasoningItem | CalledItem | AnsweredItem
_SKIPPED: Final = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "computer_call"),
    *("computer_call_output", "mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"),
    *("tool_search_call", "tool_search_output", "compaction", "ghost_snapshot"),
)
"""Items of tools that OpenAI's servers run, and of clients' own records."""


# -- The request -------------------------------------------------------------------------------------------------


class TextOutput(Closed, tag_field="type", tag="text"):
    """Free text."""


class JsonOutput(Closed, tag_field="type", tag="json_object"):
    """Any JSON object."""


class SchemaOutput(Closed, tag_field="type", tag="json_schema"):
    """JSON that fits a schema."""

    schema: Annotated[dict[str, Any], about("The JSON schema.")]
    name: Annotated[str | None, about("Name of the schema.")] = None
    description: Annotated[str | None, about("Purpose of the schema.")] = None
    strict: Annotated[bool | None, about("Constrain the output to the schema.")] = None


class TextSettings(Closed):
    """Settings of the text."""

    format: Annotated[TextOutput | JsonOutput | SchemaOutput | None, about("Constrain the text.")] = None
    verbosity: Annotated[Literal["low", "medium", "high"] | None, about("Accepted and ignored.")] = None


class ReasoningEffort(Closed, ignored="context mode"):
    """Settings of reasoning."""

    effort: Annotated[Effort | None, about("Effort of reasoning, for templates that know it.")] = None
    summary: Annotated[
        Literal["auto", "concise", "detailed"] | None, about("Send the reasoning as its summary, in full.")
    ] = None
    generate_summary: Annotated[
        Literal["auto", "concise", "detailed"] | None, about("The older name of `summary`.")
    ] = None


class ConversationId(Closed):
    """A stored conversation."""

    id: Annotated[Filled, about("Its id.")]


class ConversationRequest(Open):
    """A conversation to store."""

    items: Annotated[list[dict[str, Any]] | None, about("Its first items.", expected="a list of items")] = None
    metadata: Annotated[dict[str, str] | None, about("Repeated by the response.")] = None


class ItemsRequest(Open):
    """Items to add to a conversation."""

    items: Annotated[list[dict[str, Any]], about("The items.", expected="a list of items")]


class ResponsesRequest(
    PromptedRequest,
    kw_only=True,
    ignored="client_metadata stream_options service_tier max_tool_calls prompt_cache_options prompt_cache_retention"
    " skip_special_tokens spaces_between_special_tokens",
):
    """A Responses request."""

    input: Annotated[
        str | list[Item],
        about("The conversation.", expected="a string or a list of items"),
    ]
    instructions: Annotated[str | None, about("System message that comes first.")] = None
    tools: Annotated[list[ResponsesTool] | None, about("Tools that the model may call.")] = None
    tool_choice: Annotated[ToolChoice | None, about("Require, allow or forbid tool calls.")] = None
    text: Annotated[TextSettings | None, about("Settings of the text.")] = None
    reasoning: Annotated[ReasoningEffort | None, about("Settings of reasoning.")] = None
    max_output_tokens: Annotated[Limit | None, about("Most tokens of output, reasoning included.")] = None
    top_logprobs: Annotated[TopLogprobs | None, about("Number of likely tokens to report at each place.")] = None
    include: Annotated[
        list[str] | None, about(f"`{_LOGPROBS}` reports log probabilities; other values are ignored.")
    ] = None
    metadata: Annotated[dict[str, str] | None, about("Repeated by the response.")] = None
    user: Annotated[str | None, about("Repeated by the response.")] = None
    safety_identifier: Annotated[str | None, about("Repeated by the response.")] = None
    prompt_cache_key: Annotated[str | None, about("Repeated by the response.")] = None
    truncation: Annotated[Literal["auto", "disabled"] | None, about("Accepted and ignored.")] = None
    previous_response_id: Annotated[str | None, about("Id of the stored response that the input continues.")] = None
    conversation: Annotated[
        Filled | ConversationId | None,
        about(
            "Stored conversation, or its id: its items come before the input, and input and output are added to it.",
            expected="a string or an object",
        ),
    ] = None
    prompt: Annotated[None, about("Not supported.", refused=_NO_PROMPTS)] = None
    background: Annotated[
        bool | None, about("Generate the response after the request was answered; `GET /v1/responses/{id}` reads it.")
    ] = None
    store: Annotated[bool | None, about("`false` stores no response for later requests.")] = None


def read_responses(body: dict[str, Any], notes: Notes | None = None) -> Generation:
    """Read a request."""
    notes = notes or Notes()
    asked = read_as(ResponsesRequest, _prepared(body, notes), notes=notes)
    messages = _messages(asked.input)
    if asked.instructions:
        messages.insert(0, {"role": "system", "content": asked.instructions})
    tools, given = read_tools(asked.tools or ())
    effort = asked.reasoning.effort if asked.reasoning is not None else None
    response_format, text = _text(asked.text)
    return Generation(
        **prompted(asked, body, notes, response_format, "text.format"),
        messages=messages,
        tools=tools or None,
        tool_choice=read_tool_choice(asked.tool_choice, tools),
        max_tokens=limit_of(asked.max_output_tokens, "max_output_tokens"),
        logprobs=(asked.top_logprobs or 0) if _LOGPROBS in (asked.include or ()) else None,
        thinking=Thinking(enabled=asked.enable_thinking, effort=effort, budget=asked.thinking_budget),
        repeated={
            "instructions": asked.instructions,
            "metadata": asked.metadata or {},
            "user": asked.user,
            "safety_identifier": asked.safety_identifier,
            "prompt_cache_key": asked.prompt_cache_key,
            "reasoning": {"effort": effort, "summary": _summary(asked.reasoning)},
            "tools": body.get("tools") or [],
            "previous_response_id": asked.previous_response_id,
            "background": asked.background or False,
            "conversation": _conversation(asked.conversation),
            "given": given,
            "text": text,
            "tool_choice": body.get("tool_choice") or "auto",
            "top_logprobs": asked.top_logprobs,
        },
    )


def _conversation(given: str | ConversationId | None) -> dict[str, str] | None:
    return None if given is None else {"id": given if isinstance(given, str) else given.id}


def _summary(given: ReasoningEffort | None) -> str | None:
    return None if given is None else given.summary or given.generate_summary


def _prepared(body: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """Return the body with the type of every item, which messages may leave out, and without items and tools that only
    OpenAI's servers know.
    """
    if not isinstance(body, dict):
        return body
    changed = dict(body)
    if "tools" in body:
        why = "tools of type {} are not available here"
        changed["tools"] = without(body["tools"], SERVER_TOOLS, "tools", why, notes)
    items = without(body.get("input"), _SKIPPED, "input", "items of type {} are not known to the model", notes)
    if isinstance(items, list):
        changed["input"] = [_with_type(item, i) for i, item in enumerate(items)]
    return changed


def _with_type(item: Any, i: int) -> Any:
    if not isinstance(item, dict):
        return item
    if item.get("type") == "item_reference":
        raise bad_request(f"input[{i}].id", f"no item {str(item.get('id'))[:64]!r} is stored here")
    return {**item, "type": "message"} if item.get("type") in (None, "") else item


def _messages(given: str | list[Item]) -> list[dict[str, Any]]:
    """Return the input as messages of Chat Completions."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    turns = _Turns()
    for i, item in enumerate(given):
        turns.add(item, f"input[{i}]")
    if not turns.messages:
        raise bad_request("input", "must not be empty")
    return turns.messages


class _Turns:
    """Joins items to messages."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._last: Open | None = None

    def add(self, item: Item, path: str) -> None:
        if isinstance(item, MessageItem):
            self._message(item, path)
        elif isinstance(item, ReasoningItem):
            text = "".join(part.text for part in item.content or item.summary or ())
            if item.content or item.summary:
                turn = self._turn()
                turn["reasoning_content"] = turn.get("reasoning_content", "") + text
        elif isinstance(item, CalledItem):
            self._turn().setdefault("tool_calls", []).append(_call(item))
        else:
            content = item.output if isinstance(item, ShellOutputItem) else _content(item.output, f"{path}.output")
            id = item.call_id or getattr(item, "id", None) or ""
            self.messages.append(tool_result(id, content))
        self._last = item

    def _message(self, item: MessageItem, path: str) -> None:
        content = _content(item.content, f"{path}.content")
        if item.role != "assistant":
            self.messages.append({"role": item.role, "content": content})
            return
        # Two message items in a row are two messages; otherwise the text joins its neighbours.
        turn = self._turn(new=isinstance(self._last, MessageItem))
        if not isinstance(content, str):
            if any(part["type"] != "text" for part in content):
                raise bad_request(f"{path}.content", "an assistant message can hold text only")
            content = "".join(part["text"] for part in content)
        turn["content"] = (turn["content"] or "") + content

    def _turn(self, new: bool = False) -> dict[str, Any]:
        """Return the message of the assistant that items are added to."""
        if new or not self.messages or self.messages[-1]["role"] != "assistant":
            self.messages.append({"role": "assistant", "content": None})
        return self.messages[-1]


def _call(item: CalledItem) -> dict[str, Any]:
    """Return an earlier call as it was offered to the model: as a call of a function."""
    if isinstance(item, ShellCallItem):
        return called(item.call_id or item.id or "", "local_shell", shell_arguments(item.action))
    if isinstance(item, CustomCallItem):
        arguments = json.dumps({"input": item.input}, ensure_ascii=False)
    else:
        arguments = item.arguments
    return called(item.call_id, flat_name(item.name, item.namespace), arguments)


def _content(given: str | Parts, path: str) -> Any:
    """Return text, or parts in the shape of Chat Completions."""
    return given if isinstance(given, str) else plain([_part(part, f"{path}[{i}]") for i, part in enumerate(given)])


def _part(part: _Text | Refusal | InputImage | InputFile, path: str) -> dict[str, Any]:
    if isinstance(part, _Text):
        return text_part(part.text)
    if isinstance(part, Refusal):
        return text_part(part.refusal)
    if isinstance(part, InputFile):
        if part.file_data is None:
            raise bad_request(f"{path}.file_data", "is required")
        return file_part(*data_url(part.file_data), part.filename, f"{path}.file_data")
    if part.image_url is None:
        raise bad_request(f"{path}.image_url", "is required")
    return image_part(part.image_url, **({} if part.detail is None else {"detail": part.detail}))


def _text(given: TextSettings | None) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the response format, and ``text`` as the response repeats it."""
    form = None if given is None else given.format
    if form is None or isinstance(form, TextOutput):
        return None, {"format": {"type": "text"}}
    if isinstance(form, JsonOutput):
        return {"type": "json_object"}, {"format": {"type": "json_object"}}
    schema: dict[str, Any] = {"name": form.name or "response", "schema": form.schema}
    if form.description is not None:
        schema["description"] = form.description
    if form.strict is not None:
        schema["strict"] = form.strict
    return {"type": "json_schema", "json_schema": schema}, {"format": {"type": "json_schema", **schema}}
