"""One run's connection to a server: requests of Chat Completions, and texts that its model is forced to write."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from ..output_parser import OutputParser
from . import reading
from .client import Answer, NoAnswer, Server
from .model import Capabilities, Observation, Result
from .reading import Malformed
from .ways import forced

__all__ = ["ASKED", "Refused", "Session"]

ASKED = "Say something."
"""The user's message of requests whose text is forced."""


class Refused(Exception):
    """The server refuses a request; the message is one line."""


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
        self.prompts: dict[bool, str | None] = {}
        """The prompts that the server makes for `ASKED` without and with reasoning, if it shows them."""
        self.path = ""
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

    def forcing(self, raw: str, tools: Sequence[Any] = (), *, thinks: bool = False) -> dict[str, Any]:
        """Return a request that makes the model write ``raw``; with ``thinks`` after a prompt that lets it reason."""
        body = self.request(max_tokens=len(raw.encode()) + 64, tools=list(tools) or None, **self.thinking(thinks))
        return forced(self.found.way, body, raw, self.tokens, self.end)

    def thinking(self, on: bool) -> dict[str, Any]:
        """Return the fields that switch reasoning on or off; none if the server does not take them."""
        return {"chat_template_kwargs": {"enable_thinking": on}} if self.switches else {}

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
        return await self.server.post(path, body)

    async def judged(self, result: Result, judging: Awaitable[None]) -> Result:
        """Wait for the coroutine that fills in the result. A request that the server refuses cannot be tested; an error
        of the server, a response of another shape or none at all is a failure.
        """
        try:
            await judging
        except Refused as error:
            result.reason = str(error)
            result.verdict = "fail" if result.reason.startswith("HTTP 5") else "cannot"
        except (Malformed, NoAnswer) as error:
            result.verdict, result.reason = "fail", str(error)
        result.replay = self.server.curl(self.path, self.body)
        return result
