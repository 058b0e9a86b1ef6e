"""One run's connection to a server: requests of Chat Completions, and texts that its model is forced to write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from .._internal.output_parser import OutputParser
from . import _reading as reading
from ._client import Answer, Late, NoAnswer, Server
from ._model import Capabilities, Observation, Result
from ._reading import Malformed
from ._ways import CONTINUED, forced

ASKED = "Say something."
"""The user's message of requests whose text is forced."""


class Refused(Exception):
    """The server refuses a request; the message is one line."""


class Prompt(msgspec.Struct, frozen=True):
    """A prompt that the server's chat template makes."""

    text: str
    ids: tuple[int, ...] | None = None
    """Its token ids, where the server shows them."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A state in which the server's model begins to write."""

    thinks: bool = False
    """True to let the model reason, where the request can switch it."""
    prefix: str = ""
    """Beginning of the assistant's message that the model continues."""
    prompt: str | None = None
    """The prompt, if the server shows it."""


class Session:
    """A server with what is known of it."""

    def __init__(self, server: Server, parser: OutputParser, found: Capabilities) -> None:
        self.server = server
        self.parser = parser
        self.found = found
        self.tokens: dict[str, int] = {}
        """Special tokens of the Format that are one token of the server's model."""
        self.end: int | None = None
        """Id of the token that ends a turn."""
        self.switches = False
        """True if the server takes the field that switches reasoning on and off."""
        self.starts: dict[bool, Start] = {}
        """The states in which the answer to `ASKED` begins, without and with reasoning."""
        self.sent: int = 0
        self.answered: int = 0
        """Number of requests of this session, and of those that were answered."""
        self.path: str = ""
        self.body: Any = {}
        """The last request, for its replay command."""

    @property
    def ending(self) -> str:
        """Text of the token that ends a turn; empty for a Format without one."""
        turn = self.parser.format.turn
        return turn.end.text.strip() if turn is not None and turn.end is not None else ""

    def request(self, text: str = ASKED, **fields: Any) -> dict[str, Any]:
        """Return a request of Chat Completions."""
        body = {"model": self.found.model, "messages": [{"role": "user", "content": text}], "temperature": 0}
        body |= fields
        return {key: value for key, value in body.items() if value is not None}

    def forcing(self, raw: str, tools: Sequence[Any], start: Start, way: str) -> dict[str, Any]:
        """Return a request that makes the model write ``raw`` after a start."""
        body = self.started(self.request(max_tokens=len(raw.encode()) + 64, tools=list(tools) or None), start)
        return forced(way, body, raw, self.tokens, self.end)

    def started(self, body: dict[str, Any], start: Start) -> dict[str, Any]:
        """Return a request after whose prompt the model begins in the given state."""
        body = {**body, **self.thinking(start.thinks)}
        if start.prefix:
            fields, marks = CONTINUED[self.found.continues]
            body |= {"messages": [*body["messages"], {"role": "assistant", "content": start.prefix, **marks}], **fields}
        return body

    def thinking(self, on: bool) -> dict[str, Any]:
        """Return the fields that switch reasoning on or off; none if the server does not take them."""
        return {"chat_template_kwargs": {"enable_thinking": on}} if self.switches else {}

    async def start(self, *, thinks: bool = False, prefix: str = "") -> Start:
        """Return a start with its prompt, if the server shows it."""
        start = Start(thinks=thinks, prefix=prefix)
        shown = await self.prompt(self.started(self.request(), start))
        return msgspec.structs.replace(start, prompt=None if shown is None else shown.text)

    async def prompt(self, body: dict[str, Any]) -> Prompt | None:
        """Return the prompt of a request of Chat Completions, from the server's own template, if it shows it."""
        asked = {"add_generation_prompt": True, **body}
        value = await self._asked("/apply-template", asked)
        if isinstance(value.get("prompt"), str):
            return Prompt(value["prompt"])
        tokens = (await self._asked("/tokenize", asked)).get("tokens")
        if not isinstance(tokens, list):
            return None
        value = await self._asked("/detokenize", {"model": self.found.model, "tokens": tokens})
        text = value.get("prompt", value.get("text"))
        return Prompt(text, tuple(tokens)) if isinstance(text, str) else None

    async def complete(self, prompt: Prompt, *, max_tokens: int) -> Observation:
        """Send a request of Completions and return the raw output as content.

        Raises:
            Refused: the server answers with an error.
            Malformed: the response is not one of Completions.
            NoAnswer: the server did not answer, or broke off.
        """
        text = prompt.text if prompt.ids is None else list(prompt.ids)
        body = {"model": self.found.model, "prompt": text, "max_tokens": max_tokens, "temperature": 0}
        extra = {"skip_special_tokens": False, "return_token_ids": True}
        answer = await self.post("/completions", body | extra)
        if answer.status == 400:  # a server that takes no fields but its own
            answer = await self.post("/completions", body)
        if not answer.ok:
            raise Refused(answer.problem)
        return reading.completion(answer)

    async def _asked(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await self._sent(path, body, root=True)
        except NoAnswer:
            return {}
        return answer.value if answer.ok and isinstance(answer.value, dict) else {}

    async def chat(self, body: dict[str, Any], *, stream: bool = False) -> Observation:
        """Send a request of Chat Completions.

        Raises:
            Refused: the server answers with an error.
            Malformed: the response is not one of Chat Completions.
            NoAnswer: the server did not answer, or broke off.
        """
        answer = await self.answer(body, stream=stream)
        if not answer.ok:
            raise Refused(answer.problem)
        return reading.chat(answer)

    async def answer(self, body: dict[str, Any], *, stream: bool = False) -> Answer:
        """Send a request and return the answer, whatever its status."""
        if stream:
            body = {**body, "stream": True}
        if self.found.token_ids:
            body = {**body, "return_token_ids": True}
        if self.found.reports_raw:
            body = {**body, "untemplate": {"raw": True}}
        return await self.post("/chat/completions", body)

    async def post(self, path: str, body: Any) -> Answer:
        """Send a request of any API."""
        self.path, self.body = path, body
        return await self._sent(path, body)

    async def _sent(self, path: str, body: Any, *, root: bool = False) -> Answer:
        self.sent += 1
        answer = await self.server.post(path, body, root=root)
        self.answered += 1
        return answer

    async def judged(self, result: Result, judging: Awaitable[None]) -> Result:
        """Wait for the coroutine that fills in the result. A request that the server refuses, or does not answer in
        time, cannot be tested; an error of the server, a response of another shape or none at all is a failure.
        """
        try:
            await judging
        except Refused as error:
            result.reason = str(error)
            result.verdict = "fail" if result.reason.startswith("HTTP 5") else "cannot"
        except Late as error:
            result.verdict, result.reason = "cannot", str(error)
        except (Malformed, NoAnswer) as error:
            result.verdict, result.reason = "fail", str(error)
        result.replay = self.server.curl(self.path, self.body)
        return result


ServerCheck = tuple[str, Callable[[Session], Awaitable[list[Result]]]]
"""A check of a server: its name, and the function that asks the server."""
