"""Requests of Ollama's API.

Options that affect sampling are obeyed or refused; options of the model loader are ignored. A request without messages
(or prompt) asks for no output, but for the model to be loaded or unloaded: see `load_of`.

Source: Ollama, "API" (docs/api.md) and api/types.go; ollama-python for what clients require.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ...errors import bad_request, unsupported
from ...generation import Generation, Thinking
from ...notes import Notes
from ..arguments import arguments_text
from ..fields import Closed, Open, about, read_as
from ..parameters import (
    FrequencyPenalty,
    MinP,
    PresencePenalty,
    RepetitionPenalty,
    Request,
    Seed,
    Stop,
    Temperature,
    TopK,
    TopLogprobs,
    TopP,
    common,
    sampled,
)
from ..tools import Filled, Function, function_tool
from ..turns import called, image_part, is_prefill, schema_format, text_part
from .context import from_numbers

_OWN_TEMPLATE = "the model's own template is used; to use none, send raw: true"


class OllamaOptions(
    Closed,
    ignored="numa num_ctx num_batch num_gpu main_gpu low_vram f16_kv logits_all vocab_only use_mmap use_mlock"
    " embedding_only num_thread num_keep repeat_last_n penalize_newline mirostat_tau mirostat_eta",
):
    """Sampling parameters."""

    num_predict: Annotated[
        Annotated[int, Meta(ge=-2, le=1 << 31)] | None, about("Most tokens of output; 0, -1 and -2 for no limit.")
    ] = None
    stop: Stop = None
    temperature: Temperature = None
    top_p: TopP = None
    top_k: TopK = None
    min_p: MinP = None
    presence_penalty: PresencePenalty = None
    frequency_penalty: FrequencyPenalty = None
    repeat_penalty: RepetitionPenalty = None
    seed: Seed = None
    mirostat: Annotated[
        Annotated[float, Meta(ge=0, le=0)] | None, about("Not supported.", refused="only 0 is supported")
    ] = None
    tfs_z: Annotated[
        Annotated[float, Meta(ge=1, le=1)] | None, about("Not supported.", refused="only 1 is supported")
    ] = None
    typical_p: Annotated[
        Annotated[float, Meta(ge=1, le=1)] | None, about("Not supported.", refused="only 1 is supported")
    ] = None


class OllamaRequest(Request, ignored="truncate shift"):
    """Fields of both kinds of request."""

    keep_alive: Annotated[
        float | str | None,
        about(
            "0 asks to unload the model, which only the operator can do; other values are ignored.",
            expected="seconds or a duration (5m)",
        ),
    ] = None
    format: Annotated[
        Literal["", "json"] | dict[str, Any] | None,
        about(
            "Constrain the content to JSON or to a JSON schema; without a grammar, by the prompt.",
            expected="json or a JSON schema",
        ),
    ] = None
    think: Annotated[
        bool | Literal["low", "medium", "high", "max"] | None,
        about(
            "Switch reasoning on or off, or set its effort.", expected="true, false or one of low, medium, high, max"
        ),
    ] = None
    chat_template_kwargs: Annotated[
        dict[str, Any] | None, about("Variables for the chat template. They override all other fields.")
    ] = None
    logprobs: Annotated[bool | None, about("Report log probabilities of the content's tokens.")] = None
    top_logprobs: Annotated[TopLogprobs | None, about("Number of likely tokens to report at each place.")] = None
    options: Annotated[OllamaOptions | None, about("Sampling parameters.")] = None


class OllamaCalledFunction(Closed, ignored="index description"):
    """The function of an earlier tool call."""

    name: Annotated[Filled, about("Name of the function.")]
    arguments: Annotated[dict[str, Any] | None, about("The arguments.")] = None


class OllamaCall(Closed, ignored="type"):
    """An earlier tool call."""

    function: Annotated[OllamaCalledFunction, about("The function that was called.")]
    id: Annotated[str | None, about("Id of the call; calls without one are matched with results by their order.")] = (
        None
    )


class OllamaMessage(Closed):
    """A message."""

    role: Annotated[Literal["system", "user", "assistant", "tool"], about("Author of the message.")]
    content: Annotated[str | None, about("The content.")] = None
    images: Annotated[
        list[str] | None, about("Images in base64 or as data URLs, for engines that render messages themselves.")
    ] = None
    thinking: Annotated[str | None, about("Reasoning of an assistant message.")] = None
    tool_calls: Annotated[list[OllamaCall] | None, about("Tool calls of an assistant message.")] = None
    tool_name: Annotated[str | None, about("Name of the function that a tool message answers for.")] = None
    name: Annotated[str | None, about("The same as `tool_name`.")] = None
    tool_call_id: Annotated[str | None, about("Id of the call that a tool message answers.")] = None


class OllamaFunction(Function, forbid_unknown_fields=True):
    """A function that the model may call."""


class OllamaTool(Closed, ignored="items"):
    """A tool."""

    function: Annotated[OllamaFunction, about("The function.")]
    type: Annotated[
        Literal["function", ""] | None,
        about("Kind of tool.", refused="tools of type {got} are not supported, only function"),
    ] = None


class OllamaChatRequest(OllamaRequest, kw_only=True):
    """An Ollama chat request."""

    messages: Annotated[Annotated[list[OllamaMessage], Meta(min_length=1)], about("The conversation.")]
    tools: Annotated[list[OllamaTool] | None, about("Tools that the model may call.")] = None


class GenerateRequest(OllamaRequest, kw_only=True, refused="suffix width height steps"):
    """An Ollama generate request."""

    prompt: Annotated[str, about("The prompt.")]
    system: Annotated[str | None, about("System message.")] = None
    images: Annotated[
        list[str] | None, about("Images in base64 or as data URLs, for engines that render messages themselves.")
    ] = None
    raw: Annotated[bool | None, about("Use the prompt as it is, without chat template, and return the raw output.")] = (
        None
    )
    template: Annotated[Literal[""] | None, about("Not supported.", refused=_OWN_TEMPLATE)] = None
    context: Annotated[list[int] | None, about("The conversation so far, as the last response returned it.")] = None


# -- Loading -----------------------------------------------------------------------------------------------------


class Load(msgspec.Struct, frozen=True):
    """A request to load or unload a model."""

    model: str
    unload: bool
    chat: bool
    """True if it came to ``/api/chat``."""


class _LoadRequest(Open):
    model: str | None = None
    keep_alive: Annotated[float | str | None, about("", expected="seconds or a duration (5m)")] = None


def load_of(body: dict[str, Any], *, chat: bool) -> Load | None:
    """Return what a request without messages or prompt asks for; ``None`` for a request for output.

    Args:
        chat: True for ``/api/chat``, False for ``/api/generate``.

    Raises:
        ApiError: ``model`` or ``keep_alive`` is wrong.
    """
    if body.get("messages" if chat else "prompt") not in (None, [], ""):
        return None
    if not chat and body.get("images") not in (None, []):
        return None
    asked = read_as(_LoadRequest, body)
    return Load(asked.model or "", _unloads(asked.keep_alive), chat)


def _unloads(keep_alive: float | str | None) -> bool:
    """True if ``keep_alive`` (seconds, or a duration such as ``1h30m``) is 0."""
    if isinstance(keep_alive, str):
        if keep_alive.strip("0123456789.+-hmsnuµ") or not any(c in "0123456789" for c in keep_alive):
            raise bad_request("keep_alive", "must be seconds or a duration (5m)")
        return all(c not in "123456789" for c in keep_alive)
    return keep_alive == 0


# -- Requests for output -----------------------------------------------------------------------------------------


def read_chat(body: dict[str, Any], notes: Notes | None = None) -> Generation:
    """Read a chat request."""
    asked = read_as(OllamaChatRequest, body, notes=notes)
    turns = _Turns()
    for i, message in enumerate(asked.messages):
        turns.add(message, f"messages[{i}]")
    functions = [tool.function for tool in asked.tools or ()]
    return Generation(
        messages=turns.messages,
        tools=[function_tool(one.name, one.description, one.parameters, one.strict) for one in functions] or None,
        continue_final_message=is_prefill(turns.messages, "messages"),
        **_fields(asked, body, notes),
    )


def read_generate(body: dict[str, Any], notes: Notes | None = None) -> Generation:
    """Read a generate request."""
    asked = read_as(GenerateRequest, body, notes=notes)
    fields = _fields(asked, body, notes)
    if asked.raw:
        for name in ("images", "system", "context"):
            if getattr(asked, name):
                raise unsupported(name, "cannot be combined with raw: true")
        return Generation(prompt=asked.prompt, parse=False, **fields)
    turns = from_numbers(asked.context) if asked.context else []
    if asked.system:
        others = (turn for turn in turns if turn["role"] != "system")
        turns = [{"role": "system", "content": asked.system}, *others]
    return Generation(
        messages=[*turns, {"role": "user", "content": _with_images(asked.prompt, asked.images)}],
        repeated={"context": [*turns, {"role": "user", "content": asked.prompt}]},
        **fields,
    )


def _fields(asked: OllamaRequest, body: dict[str, Any], notes: Notes | None) -> dict[str, Any]:
    """Return what both kinds of request have, as arguments of a `Generation`."""
    _unloads(asked.keep_alive)
    options, think = asked.options or OllamaOptions(), asked.think
    form = schema_format(asked.format) if isinstance(asked.format, dict) else {"type": "json_object"}
    most = options.num_predict
    return {
        **common(asked, body, notes),
        **sampled(options, form if asked.format else None),
        "logprobs": (asked.top_logprobs or 0) if asked.logprobs else None,
        "thinking": Thinking(enabled=True, effort=think) if isinstance(think, str) else Thinking(enabled=think),
        "template_kwargs": asked.chat_template_kwargs or {},
        "stream": asked.stream is not False,
        "max_tokens": most if most is not None and most > 0 else None,
    }


class _Turns:
    """Messages in the shape of Chat Completions.

    Older clients send calls without ids and results with only the name of their tool: both are matched by order.
    """

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._count = 0
        self._open: list[tuple[str, str]] = []
        """(name, id) of the calls without a result."""

    def add(self, message: OllamaMessage, path: str) -> None:
        role, content = message.role, _with_images(message.content or "", message.images)
        found: dict[str, Any] = {"role": role, "content": content}
        calls = [
            self._call(call, f"{path}.tool_calls[{i}].function.arguments")
            for i, call in enumerate(message.tool_calls or ())
        ]
        if role == "assistant":
            if message.thinking:
                found["reasoning_content"] = message.thinking
            if calls:
                found["tool_calls"] = calls
                found["content"] = content or None
                self._open = [(call["function"]["name"], call["id"]) for call in calls]
        elif calls:
            raise bad_request(f"{path}.tool_calls", "only assistant messages can have tool calls")
        if role == "tool":
            name = message.tool_name or message.name
            found["tool_call_id"] = self._answered(name, message.tool_call_id)
            if name:
                found["name"] = name
        self.messages.append(found)

    def _call(self, call: OllamaCall, path: str) -> dict[str, Any]:
        self._count += 1
        id = call.id or f"call_{self._count - 1}"
        return called(id, call.function.name, arguments_text(call.function.arguments or {}, path))

    def _answered(self, name: str | None, id: str | None) -> str:
        """Return the id of the call that a result belongs to: the call of that id, else the first one of the tool,
        else the first one."""
        for match in self._open:
            if match[1] == id or (not id and name in (None, "", match[0])):
                self._open.remove(match)
                return match[1]
        return id or (self._open.pop(0)[1] if self._open else "")


_MAGIC = (("/9j/", "image/jpeg"), ("iVBOR", "image/png"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))
"""First characters of an image in base64, and its media type."""


def _with_images(text: str, images: list[str] | None) -> Any:
    if not images:
        return text
    return ([text_part(text)] if text else []) + [image_part(_url(image)) for image in images]


def _url(image: str) -> str:
    if image.startswith("data:"):
        return image
    kind = next((kind for start, kind in _MAGIC if image.startswith(start)), "image/jpeg")
    return f"data:{kind};base64,{image}"
