"""Renders a message as the text of the assistant's turn.

* Every marker is written in its canonical spelling, white space included. Nothing else is written between the parts.
* The text is the model's output: it begins after the generation prompt and ends before the end-of-turn token. A turn of
  several messages (gpt-oss) has the markup between them. It lacks the close of the last one, which is the end-of-turn
  token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...format import Body, Channels, Content, Format, JsonBody, NamedBody, Tools
from ...format._markers import text_of
from ...format._spelling import escape, json_text
from .arguments import arguments_text, json_arguments
from .message import AssistantMessage, MessageCall, read_message

__all__ = ["content_header", "empty_block", "opening", "render", "wraps"]


def render(fmt: Format, message: Any, *, start_index: int = 0, prompt_opened: bool | None = None) -> str:
    """Return the assistant turn as the Format's models write it after the generation prompt.

    If an output begins in reasoning, a message without reasoning is written with an empty block, so that its content is
    not read as reasoning. The block's open marker is left out if the prompt has written it.

    Args:
        message: a dict, struct or object with ``reasoning`` (or ``reasoning_content``), ``content``, ``tool_calls``.
        start_index: number of calls in the history, from which formats that number calls continue.
        prompt_opened: state in which the generation prompt leaves reasoning. ``True``: open, so the open marker is left
            out. ``False``: closed. ``None``: no prompt is known, and the Format decides.

    Raises:
        ValueError: the format has no place for a part of the message, or arguments are not a JSON object. Text is
            written even if it does not parse back; ``expressible`` checks that.
        TypeError: ``message`` is not a message.
    """
    read = read_message(message)
    if fmt.channels is not None:
        return _channels_text(fmt, fmt.channels, read, start_index, prompt_opened)
    _check_places(fmt, read)
    parts: list[str] = []
    if fmt.reasoning is not None and (read.reasoning or empty_block(fmt, prompt_opened)):
        if not prompt_opened:
            parts.append(text_of(fmt.reasoning.open))
        parts += (read.reasoning, fmt.reasoning.close.text)
    if read.content:
        wrap = wraps(fmt, read)
        parts += (read.content,) if wrap is None else (wrap.open.text, read.content, wrap.close.text)
    if read.calls:
        tools = fmt.tools[0]
        if read.content:
            parts.append(tools.lead)
        parts.append(_calls_text(fmt, tools, read.calls, start_index))
    return "".join(parts)


def _check_places(fmt: Format, message: AssistantMessage) -> None:
    if message.reasoning and fmt.reasoning is None:
        raise ValueError(f"no_reasoning: {fmt.name} has no place for reasoning")
    if message.calls and not fmt.tools:
        raise ValueError(f"no_calls: {fmt.name} has no calls")


def empty_block(fmt: Format, prompt_opened: bool | None) -> bool:
    """True if a turn without reasoning must be written with an empty block."""
    reasoning = fmt.reasoning
    if reasoning is None or prompt_opened is not None:
        return reasoning is not None and prompt_opened is True
    return reasoning.start == "open" or reasoning.open is None


def wraps(fmt: Format, message: AssistantMessage) -> Content | None:
    """Return the markers around this message's content, if any."""
    content = fmt.content
    if content is None or (content.written == "with_reasoning" and not message.reasoning):
        return None
    return content


def opening(tools: Tools) -> str:
    """Return the markup before the first call's name or object."""
    body = tools.body
    name_open = body.name_open if isinstance(body, NamedBody) else None
    return text_of(tools.section_open, tools.list_open, tools.call_open, name_open)


# -- Calls --------------------------------------------------------------------------------------------------------


def _calls_text(fmt: Format, tools: Tools, calls: tuple[MessageCall, ...], start_index: int) -> str:
    texts = [
        text_of(tools.call_open) + _body_text(fmt, tools.body, call, i, start_index) + text_of(tools.call_close)
        for i, call in enumerate(calls)
    ]
    inside = text_of(tools.separator).join(texts)
    return f"{text_of(tools.section_open, tools.list_open)}{inside}{text_of(tools.list_close, tools.section_close)}"


def _body_text(fmt: Format, body: Body, call: MessageCall, i: int, start_index: int) -> str:
    if isinstance(body, JsonBody):
        return _json_body(fmt, body, call, i + start_index)
    call_id = f"{body.id_open.text}{call.id}" if body.id_open is not None and call.id else ""
    return (
        f"{text_of(body.name_open)}{_call_name(fmt, body, call, i, start_index)}{call_id}{text_of(body.name_close)}"
        f"{arguments_text(call, body.arguments)}{text_of(body.arguments_close)}"
    )


def _call_name(fmt: Format, body: NamedBody, call: MessageCall, i: int, start_index: int) -> str:
    """Return the text between ``name_open`` and ``name_close``.

    A call whose id follows the Format's pattern keeps its index, because templates write the id back. Other calls are
    numbered in order, through the whole conversation if ids contain the number.
    """
    index = body.index_base + i
    if "{index}" in fmt.ids:
        given = _own_index(fmt.ids, call)
        index = index + start_index if given is None else given
    variables = {"name": escape(call.name, body.escape), "index": str(index), "id": call.id or str(index)}
    return re.sub(r"\{(\w+)\}", lambda found: variables.get(found.group(1), found.group()), body.name)


def _own_index(pattern: str, call: MessageCall) -> int | None:
    before, _, after = pattern.replace("{name}", call.name).partition("{index}")
    digits = call.id[len(before) : len(call.id) - len(after)]
    # int() and str.isdecimal() take the digits of every alphabet.
    return int(digits) if call.id == before + digits + after and re.fullmatch("[0-9]{1,18}", digits) else None


def _json_body(fmt: Format, body: JsonBody, call: MessageCall, index: int) -> str:
    """Return a call as one JSON object.

    An id that the model makes itself (``Format.ids`` is a pattern) is always written, and first (Cohere). Any other id
    comes from the history and is written last, if there is one (the templates of Mistral Nemo and Apriel).
    """
    arguments = json_arguments(call)
    if body.name_is_key:
        return f"{{{json_text(call.name)}: {arguments}}}"
    members = [f"{json_text(key)}: {json_text(value)}" for key, value in body.constants]
    call_members = [f"{json_text(body.name_key)}: {json_text(call.name)}"]
    call_members.append(f"{json_text(body.arguments_key)}: {arguments}")
    if body.nested_key is not None:
        call_members = [f"{json_text(body.nested_key)}: {{{', '.join(call_members)}}}"]
    if body.id_key is not None and "{" in fmt.ids:
        own = _own_index(fmt.ids, call)
        call_id = fmt.ids.replace("{name}", call.name).replace("{index}", str(index if own is None else own))
        members.append(f"{json_text(body.id_key)}: {json_text(call_id)}")
    members += call_members
    if body.id_key is not None and "{" not in fmt.ids and call.id:
        members.append(f"{json_text(body.id_key)}: {json_text(call.id)}")
    return "{" + ", ".join(members) + "}"


# -- Channels -----------------------------------------------------------------------------------------------------


def _channels_text(
    fmt: Format, channels: Channels, message: AssistantMessage, start_index: int, prompt_opened: bool | None
) -> str:
    """Return messages with headers, joined as the model joins them. The generation prompt has opened the first."""
    close = text_of(channels.close)
    written: list[tuple[str, str]] = []
    if message.reasoning or prompt_opened:
        if not channels.has_reasoning:
            raise ValueError("no_reasoning: no channel of the format holds reasoning")
        header = "" if prompt_opened else reasoning_header(channels)
        written.append((header + message.reasoning, close))
    if message.content:
        written.append((content_header(channels, before_calls=bool(message.calls)) + message.content, close))
    call_close = close if channels.call_close is None else channels.call_close.text
    written += [(text, call_close) for text in _call_messages(fmt, channels, message.calls, start_index)]
    joint = channels.open.text + channels.role
    texts = [text + (closed + joint if i < len(written) - 1 else "") for i, (text, closed) in enumerate(written)]
    return "".join(texts)


def _call_messages(fmt: Format, channels: Channels, calls: tuple[MessageCall, ...], start_index: int) -> Iterator[str]:
    """Yield the messages of calls, headers included: one for each call, or one for all."""
    if calls and fmt.tools and channels.calls_together:
        yield call_header(channels, "") + _calls_text(fmt, fmt.tools[0], calls, start_index)
        return
    for i, call in enumerate(calls, start_index):
        text = _calls_text(fmt, fmt.tools[0], (call,), i) if fmt.tools else json_arguments(call)
        yield call_header(channels, call.name) + text


def reasoning_header(channels: Channels) -> str:
    """Return the header of a message of reasoning, without its opener."""
    if channels.reasoning_body is not None:
        return channels.reasoning_body.text
    return _header(channels, channels.reasoning[0])


def content_header(channels: Channels, *, before_calls: bool = False) -> str:
    """Return the header of a message of content, without its opener. ``before_calls``: calls follow it in this turn."""
    channel = channels.preamble if before_calls else None
    return _header(channels, channel or channels.content[0]) if channels.content else channels.body.text


def _header(channels: Channels, channel: str) -> str:
    return text_of(channels.channel or channels.recipient) + channel + channels.body.text


def call_header(channels: Channels, name: str) -> str:
    """Return the header of a call, without its opener."""
    parts: list[str] = []
    if channels.channel is not None and channels.call_channel is not None:
        parts += (channels.channel.text, channels.call_channel)
    if channels.call_name:
        parts += (text_of(channels.recipient), channels.namespace, name)
    if channels.constraint is not None and channels.call_constraint is not None:
        parts += (channels.constraint.text, channels.call_constraint)
    return "".join(parts) + (channels.call_body or channels.body).text
