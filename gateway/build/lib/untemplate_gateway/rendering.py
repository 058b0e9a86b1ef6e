"""Renders prompts in a thread for work. A very large one is passed on to a worker process.

Rendering takes a quarter of a second for each megabyte, some of it in calls that keep Python's lock: streams of others
would wait for it.
"""

from __future__ import annotations

import atexit
from functools import lru_cache
from typing import Any, Final

import msgspec

from untemplate.templates import ChatTemplate, TemplateError, TemplateLimitError

from .processes import Workers, serve

APART: Final = 256 * 1024
"""Bytes of messages and tools from which on a worker process renders them."""
_WORKERS: Final = Workers("from untemplate_gateway.rendering import work; work()")


class _Source(msgspec.Struct, frozen=True):
    """A template."""

    source: str
    name: str | None
    named: tuple[tuple[str, str], ...]
    special_tokens: tuple[tuple[str, str], ...]


class _Job(msgspec.Struct):
    template: _Source
    messages: list[Any]
    arguments: dict[str, Any]


class _Answer(msgspec.Struct):
    kind: str
    """``text``, ``limit``, ``refused`` or ``failed``."""
    text: str


def render(template: ChatTemplate, messages: list[Any], **arguments: Any) -> str:
    """Return a prompt, as ``ChatTemplate.render`` does.

    Raises:
        TemplateError: as ``ChatTemplate.render``.
        Abandoned: the client has left.
    """
    job = _job(template, messages, arguments) if template.now is None else b""
    if len(job) < APART:
        return template.render(messages, **arguments)
    answer = msgspec.msgpack.decode(_WORKERS.ask(job), type=_Answer)
    if answer.kind == "text":
        return answer.text
    if answer.kind == "failed":
        raise RuntimeError(f"the prompt cannot be rendered: {answer.text}")
    raise (TemplateLimitError if answer.kind == "limit" else TemplateError)(answer.text)


def _job(template: ChatTemplate, messages: list[Any], arguments: dict[str, Any]) -> bytes:
    """Return the job of a worker process; empty if it cannot be sent."""
    source = _Source(
        template.source, template.name, tuple(template.named.items()), tuple(template.special_tokens.items())
    )
    try:
        return msgspec.msgpack.encode(_Job(source, messages, arguments))
    except (OverflowError, TypeError, UnicodeEncodeError):  # numbers beyond 64 bits
        return b""


atexit.register(_WORKERS.close)


# -- In the worker process -----------------------------------------------------------------------------------------

_JOBS: Final = msgspec.msgpack.Decoder(_Job)


def work() -> None:
    """Render prompts: the program of a worker process."""
    serve(lambda data: msgspec.msgpack.encode(_answer(_JOBS.decode(data))))


@lru_cache(16)
def _template(source: _Source) -> ChatTemplate:
    tokens = dict(source.special_tokens)
    return ChatTemplate(
        source.source,
        name=source.name,
        named=dict(source.named),
        bos_token=tokens["bos_token"],
        eos_token=tokens["eos_token"],
        special_tokens=tokens,
    )


def _answer(job: _Job) -> _Answer:
    try:
        return _Answer("text", _template(job.template).render(job.messages, **job.arguments))
    except TemplateError as error:
        return _Answer("limit" if isinstance(error, TemplateLimitError) else "refused", str(error))
    except Exception as error:
        return _Answer("failed", f"{type(error).__name__}: {error}")
