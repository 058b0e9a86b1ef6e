"""Run streams through mlx-lm's state machine and tool parsers, as its server does.

`TextStateMachine` finds the markers in the text and sorts it into reasoning, content and the text of calls. A tool
parser decodes a call when it has ended; its arguments are not streamed. A server gives a message that is not streamed
to the same machine, token by token; the streams in one piece give it the whole text at once, which is less work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import mlx_lm
from mlx_lm.generate import TextStateMachine, make_text_state_machine
from mlx_lm.server import ToolCallFormatter
from mlx_lm.tokenizer_utils import TokenizerWrapper
from tokenizers import AddedToken, Tokenizer, models
from transformers import PreTrainedTokenizerFast

from . import assembly

PARSERS = {
    "hermes": "json_tools",
    "qwen3_coder": "qwen3_coder",
    "glm45": "glm47",
    "kimi_k2": "kimi_k2",
    "gemma4": "gemma4",
    "mistral": "mistral",
    "minimax_m2": "minimax_m2",
    "step3p5": "qwen3_coder",
    "nemotron_v3": "qwen3_coder",
    "granite4": "json_tools",
}
"""Formats → the tool parsers that mlx-lm chooses by the chat template."""


def tokenizer(stream: dict[str, Any]) -> TokenizerWrapper:
    """Return a tokenizer with the format's special tokens, by which mlx-lm knows the markers of reasoning."""
    special = stream["special"]
    words = Tokenizer(models.WordLevel({special[0]: 0}, unk_token=special[0]))
    words.add_tokens([AddedToken(token, normalized=False) for token in special])
    made = PreTrainedTokenizerFast(tokenizer_object=words, eos_token=special[0], unk_token=special[0])
    tools = import_module(f"mlx_lm.tool_parsers.{PARSERS[stream['format']]}")
    return TokenizerWrapper(
        made,
        tool_call_start=tools.tool_call_start,
        tool_call_end=tools.tool_call_end,
        tool_parser=tools.parse_tool_call,
    )


class Candidate:
    """One stream, begun in one state of the machine; the server reads the state from the prompt."""

    kind = "mlx-lm"

    def __init__(self, stream: dict[str, Any], made: TokenizerWrapper, state: str) -> None:
        self.name = PARSERS[stream["format"]]
        self._machine = make_text_state_machine(made)
        self._parser = made.tool_parser
        self._state = state
        self._tools = stream["tools"]
        self._texts = [text for text, _ in stream["deltas"]]
        self._streamed = not stream["way"].startswith("whole")

    def prepare(self) -> Callable[[Callable[[Any], object] | None], object]:
        opened = self._machine.make_state(self._state)
        decoded = ToolCallFormatter(self._parser, self._tools, self._streamed)
        texts, first = self._texts, self._state

        def run(take: Callable[[Any], object] | None) -> None:
            state, before, pending = opened, first, ""
            split = TextStateMachine.split
            for text in texts:
                reasoning, content = "", ""
                calls: list[str] = []
                state, segments = split(state, text)
                for kind, piece in segments:
                    if kind == "reasoning":
                        reasoning += piece
                    elif kind == "tool":
                        pending += piece
                    else:
                        if before == "tool":
                            calls.append(pending)
                            pending = ""
                        content += piece
                    before = kind
                found = decoded(calls) if calls else ()
                if take is not None:
                    take((reasoning, content, found))
            state, _ = TextStateMachine.discard(state)
            found = decoded([pending]) if before == "tool" and pending else ()
            if take is not None:
                take(("", "", found))

        return run

    def message(self, results: list[Any]) -> dict[str, Any]:
        functions = [call["function"] for _, _, calls in results for call in calls]
        pieces = [(index, function["name"], function["arguments"]) for index, function in enumerate(functions)]
        texts = [(reasoning, content, ()) for reasoning, content, _ in results]
        return assembly.message([*texts, (None, None, pieces)])


def version() -> dict[str, str]:
    return {"name": "mlx-lm", "version": mlx_lm.__version__}


def candidates(stream: dict[str, Any]) -> Iterator[Candidate]:
    """Yield the two states that an output can begin in, the ordinary one first. mlx-lm's machine gets text only."""
    if stream["format"] not in PARSERS or stream["deltas"][0][1]:
        return
    made = tokenizer(stream)
    yield Candidate(stream, made, "normal")
    if made.has_thinking:
        yield Candidate(stream, made, "reasoning")
