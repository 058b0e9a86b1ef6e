"""Compare `--parser-backend vllm` with vLLM's own classes, called as vLLM's server calls them: `make test-vllm`.

usage: python -m tests.vllm_serve.agreement

The outputs are those of vLLM's parsers that have a Format of the same name: six messages, as its models write them, and
each of them cut at five places, and all records of the corpus for that Format. Each is parsed whole and streamed, one
token at a time. Exits with 1 if a message differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).with_name("plugins")))

from untemplate_outcomes import tokenizer  # type: ignore[import-not-found]
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager

from tests.vllm_serve.overhead import pieces
from untemplate import OutputParser
from untemplate.check._cases import corpus
from untemplate.errors import UntemplateError
from untemplate.format import Format
from untemplate.formats import names
from untemplate.integrations._vllm_parsers import VllmOutputParser

TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
        },
    }
]
CALLS: Final = [
    {
        "id": f"callid00{number}",
        "type": "function",
        "function": {"name": "get_weather", "arguments": json.dumps(arguments)},
    }
    for number, arguments in enumerate(({"city": "New York", "days": 3}, {"city": "Zürich"}))
]
MESSAGES: Final[list[dict[str, Any]]] = [
    {"content": "Rain, and 3 < 4."},
    {"reasoning": "Where?", "content": "In Rome."},
    {"tool_calls": CALLS[:1]},
    {"tool_calls": CALLS},
    {"reasoning": "Look it up.", "tool_calls": CALLS},
    {"content": "A moment.", "tool_calls": CALLS[:1]},
]
LEFT_OUT: Final = ("openai", "openai_gptoss", "gptoss", "hy_v4")
"""vLLM's server reads gpt-oss with an encoding from the network. Its parser for Hunyuan 4 takes any token that may
begin reasoning, and the tokenizer here has those of all families.
"""
Message = tuple[str, str, list[tuple[str, str]]]


def pairs() -> Iterator[tuple[str | None, str | None]]:
    """Yield the names of tool and reasoning parser to combine."""
    reasoning = set(ReasoningParserManager.list_registered()) & set(names("reasoning")) - set(LEFT_OUT)
    tools = set(ToolParserManager.list_registered()) & set(names("tool")) - set(LEFT_OUT)
    yield from ((tool, tool if tool in reasoning else None) for tool in sorted(tools))
    yield from ((None, name) for name in sorted(reasoning - tools))
    yield from (("hermes", "qwen3"), ("qwen3_coder", "qwen3"), ("deepseek_v31", "deepseek_v3"))


def outputs(parser: OutputParser, name: str | None) -> Iterator[str]:
    """Yield outputs of the models of a Format."""
    for message in MESSAGES:
        wire = {"role": "assistant", **message}
        if parser.expressible(wire) is None:
            text = parser.render(wire)
            yield text
            yield from (text[: len(text) * share // 6] for share in range(1, 6))
    yield from (record.raw for record in corpus() if record.format == name)


def message(found: Any) -> Message:
    calls = [(call.function.name, call.function.arguments) for call in found.tool_calls]
    return found.reasoning or "", found.content or "", calls


def streamed(deltas: Sequence[Any]) -> Message:
    reasoning = content = ""
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        reasoning += delta.reasoning or ""
        content += delta.content or ""
        for part in delta.tool_calls or ():
            call = calls.setdefault(part.index, ["", ""])
            call[0] += (part.function and part.function.name) or ""
            call[1] += (part.function and part.function.arguments) or ""
    return reasoning, content, [(name, arguments) for name, arguments in calls.values()]


def own(parser: VllmOutputParser, text: str, parts: Sequence[tuple[str, list[int]]]) -> tuple[Message, Message]:
    """Return what the gateway's backend makes of an output, whole and streamed."""
    ids = [token for _, tokens in parts for token in tokens]
    whole = message(parser.parse(text, token_ids=ids, tools=TOOLS, prompt_token_ids=()))
    stream = parser.stream(tools=TOOLS, prompt_token_ids=())
    deltas = [delta for part in parts for delta in stream.feed(*part)]
    return whole, streamed([*deltas, *stream.finish("stop")])


def theirs(cls: Any, text: str, parts: Sequence[tuple[str, list[int]]]) -> tuple[Message, Message]:
    """Return what vLLM's server makes of an output; all of the text if the parser raises, as the gateway does."""
    request = ChatCompletionRequest(
        model="", messages=[{"role": "user", "content": ""}], tools=TOOLS, tool_choice="auto"
    )
    ids = [token for _, tokens in parts for token in tokens]
    try:
        parser = cls(tokenizer(), request.tools, chat_template_kwargs={})
        parser.set_prompt_token_ids([])
        reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=ids)
        whole = reasoning or "", content or "", [(call.name, call.arguments) for call in calls or ()]
    except Exception:
        whole = "", text, []
    parser = cls(tokenizer(), request.tools, chat_template_kwargs={})
    deltas: list[Any] = []
    try:
        for number, part in enumerate(parts, 1):
            deltas.append(parser.parse_delta(*part, request, [], finished=number == len(parts)))
    except Exception:
        return whole, ("", "raised", [])
    return whole, streamed([delta for delta in deltas if delta is not None])


def main() -> int:
    total = same = finished = raised = 0
    for tool, reasoning in pairs():
        label = f"{tool or '-'} + {reasoning or '-'}"
        try:
            fmt = OutputParser.named(tool or "passthrough", reasoning=reasoning)
            cls = ParserManager.get_parser(tool, reasoning, enable_auto_tools=True)
            parser = VllmOutputParser(tokenizer(), reasoning, tool, format=fmt.format)
            cls(tokenizer(), None, chat_template_kwargs={})
        except (UntemplateError, ValueError, TypeError, RuntimeError, AttributeError, KeyError, ImportError) as error:
            print(f"{label}: left out: {type(error).__name__}: {str(error)[:100]}")
            continue
        for text in dict.fromkeys(outputs(fmt, tool or reasoning)):
            parts = pieces(text, special(fmt.format))
            if not parts:
                continue
            found, expected = own(parser, text, parts), theirs(cls, text, parts)
            for way in (0, 1):
                total += 1
                if found[way] == expected[way]:
                    same += 1
                elif expected[way][1] == "raised":
                    raised += 1
                elif way and _without_end(found[way]) == _without_end(expected[way]):
                    finished += 1
                else:
                    print(f"{label}, {'streamed' if way else 'whole'}: {text!r}\n  {found[way]}\n  {expected[way]}")
    wrong = total - same - finished - raised
    print(
        f"--parser-backend vllm agrees with vLLM's own classes on {same} of {total} outputs. In {finished} it adds "
        f"arguments that vLLM's parser knows and does not send. In {raised} the parser raised, and the text was kept. "
        f"{wrong} differ."
    )
    return 1 if wrong else 0


def special(fmt: Format) -> list[str]:
    return sorted(fmt.special_tokens)


def _without_end(found: Message) -> tuple[str, str, list[str]]:
    return found[0], found[1], [name for name, _ in found[2]]


if __name__ == "__main__":
    sys.exit(main())
