"""The streams that every comparison runs: formats × shapes × ways to cut the output.

Outputs are written by `OutputParser.render`, so each one means exactly one message. This message is kept with the
stream as the right answer. All data is plain and can be written as JSON, because parsers run in other processes and
environments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from untemplate import OutputParser

SEVERAL = 8
"""Tokens per delta where a delta holds several."""

WAYS = ("text", "ids", "several", "several ids", "whole", "whole ids")
"""One token per delta, several tokens per delta, and all at once; each as text only and with token ids."""

FAMILIES: dict[str, str | None] = {
    "hermes": "qwen3",
    "qwen3_coder": "qwen3",
    "deepseek_v3": "deepseek_r1",
    "deepseek_v31": "deepseek_r1",
    "deepseek_v32": "deepseek_r1",
    "glm45": "glm45",
    "kimi_k2": "deepseek_r1",
    "gpt-oss": "gpt-oss",
    "gemma4": "gemma4",
    "mistral": "mistral",
    "minimax_m2": "minimax_m2",
    "cohere_command3": "cohere_command3",
    "seed_oss": "seed_oss",
    "step3p5": "step3p5",
    "nemotron_v3": "nemotron_v3",
    "hunyuan_a13b": "hunyuan_a13b",
    "granite4": None,
    "llama3_json": None,
    "pythonic": None,
    "phi4_mini_json": None,
    "internlm": None,
    "jamba": None,
    "xlam": None,
}
"""Names of formats → the format of their reasoning."""

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "A tool of the benchmarks.",
            "parameters": {
                "type": "object",
                "properties": {key: {"type": "string"} for key in keys},
                "required": list(keys),
            },
        },
    }
    for name, keys in {"get_weather": ("city", "unit"), "write_file": ("path", "text")}.items()
]

PROSE = (
    "The harbour was quiet in the morning, and the boats came back one after the other with what the night had given "
    "them. Nobody spoke much; there were crates to carry, ropes to dry and a price to agree on before the market "
    "opened at seven. By noon, the quay was empty again: only gulls, a dog, and two old men who talked of rain.\n\n"
    "She counted the money twice, wrote 1,250 in the book, and put the rest (about 40) into the tin on the shelf. "
    "It's never enough, she thought, but it isn't nothing either; the roof would last until spring, more or less.\n"
)
CODE = (
    "def area(shape):\n"
    '    """Return the area of a circle or a square."""\n'
    "    if shape['kind'] == \"circle\":\n"
    "        return 3.14159 * shape['r'] ** 2\n"
    "    side = shape.get('side', 0)\n"
    "    return side * side  # a square\n\n\n"
)
INLINE_CODE = (
    "Call `area(shape)`: its `kind` is `circle` or `square`, `r` or `side` its size. `int` and `float` do, `None` does "
    "not; if `kind` is unknown, `shape.get('side', 0)` makes it `0`, and `List<Shape>` is `list[Shape]`.\n\n"
)
SIGNS = (
    "    for (int i = 0; i < n && a[i] <= limit; i++) {\n"
    "        if (a[i] < best[0]) best[0] = a[i], at[i] = b[a[i]] << 2;\n"
    "        std::vector<int> row = rows[i]; total += row[0] < row[1] ? row[0] : row[1];\n"
    "    }\n"
)
"""Code with the characters that markers begin with."""
LIST = (
    "Before you leave:\n\n"
    "- **Tickets**: one per person\n- **Water**: two litres\n  - more in summer\n- A map\n\n"
    "1. Take the tram to the harbour\n2. Change there\n3. Get off at the last stop\n\n"
)
LINES = re.sub(r"[^A-Za-z]+", "\n", PROSE) + "And so on. "


@dataclass(frozen=True)
class Message:
    """A parsed message, in the form in which answers are compared: each call as (name, arguments)."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[tuple[str, Any], ...] = ()

    def same_as(self, other: Message) -> bool:
        """True if both messages mean the same. Outer white space is ignored, because parsers strip it differently."""
        return (self.reasoning.strip(), self.content.strip(), self.calls) == (
            other.reasoning.strip(),
            other.content.strip(),
            other.calls,
        )

    @classmethod
    def build(cls, reasoning: str | None, content: str | None, calls: Iterable[tuple[str, str]]) -> Message:
        """Return the message with the calls' JSON arguments decoded; broken JSON stays a string."""
        return cls(reasoning or "", content or "", tuple((name, _decoded(arguments)) for name, arguments in calls))


def _decoded(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


@dataclass(frozen=True)
class Stream:
    """One output cut into deltas, and the message that it means."""

    format: str
    reasoning: str | None
    shape: str
    way: str
    deltas: list[tuple[str, list[int]]]
    expected: Message
    tools: list[dict[str, Any]] = field(default_factory=list)
    vocabulary: dict[str, int] = field(default_factory=dict)
    special: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.format} / {self.shape} / {self.way}"

    @property
    def whole(self) -> bool:
        return self.way.startswith("whole")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Stream:
        expected = dict(data["expected"])
        expected["calls"] = tuple((name, arguments) for name, arguments in expected["calls"])
        deltas = [(text, ids) for text, ids in data["deltas"]]
        return cls(**{**data, "expected": Message(**expected), "deltas": deltas})


# -- Tokens -------------------------------------------------------------------------------------------------------

WORD = r" ?[A-Za-z]{1,6}|\d{1,3}| +(?= )|\s|[^\sA-Za-z\d]"
"""A token of ordinary text: about four characters of English, as from real tokenizers."""


TRAILING = r"[A-Za-z]{1,6}[ \n]?|\d{1,3}[ \n]?| +(?= )|\s|[^\sA-Za-z\d][ \n]?"
"""The same with the space behind the word: so do engines cut that send text at the ends of words."""


def tokens(text: str, special: Sequence[str], word: str = WORD) -> list[str]:
    """Return the tokens of `text`. A special token is one token; the tokens joined give `text` again."""
    longest_first = sorted(special, key=len, reverse=True)
    return re.findall("|".join([*map(re.escape, longest_first), word]), text)


def vocabulary(pieces: Iterable[str], special: Sequence[str]) -> dict[str, int]:
    """Return ids for the special tokens, then for all other pieces in the order of their appearance."""
    return {piece: number for number, piece in enumerate(dict.fromkeys([*special, *pieces]))}


def cut(pieces: Sequence[str], ids: dict[str, int], way: str) -> list[tuple[str, list[int]]]:
    """Return the deltas of an output, as (text, token ids)."""
    size = {"text": 1, "ids": 1, "several": SEVERAL, "several ids": SEVERAL}.get(way, len(pieces) or 1)
    with_ids = way.endswith("ids")
    groups = [pieces[i : i + size] for i in range(0, len(pieces), size)]
    return [("".join(group), [ids[p] for p in group] if with_ids else []) for group in groups]


# -- Shapes -------------------------------------------------------------------------------------------------------


def scaled(source: str, characters: int) -> str:
    """Return `source` repeated up to a length, and cut at the end of a word, so that no parser strips its end."""
    return (source * (characters // len(source) + 1))[:characters].rpartition(" ")[0].strip()


def _call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"call_{number:05}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def _weather(number: int) -> dict[str, Any]:
    return _call(number, "get_weather", {"city": f"City number {number}", "unit": "celsius"})


def _file(number: int, characters: int, source: str = CODE) -> dict[str, Any]:
    return _call(number, "write_file", {"path": "src/area.py", "text": scaled(source, characters)})


SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "plain": lambda size: {"content": scaled(PROSE, size)},
    "reasoning": lambda size: {"reasoning": scaled(PROSE, size * 3 // 4), "content": scaled(PROSE, size // 4)},
    "one call": lambda size: {"tool_calls": [_weather(0)]},
    "long argument": lambda size: {"tool_calls": [_file(0, size)]},
    "20 calls": lambda size: {"tool_calls": [_weather(number) for number in range(20)]},
    "mixed": lambda size: {
        "reasoning": scaled(PROSE, size // 4),
        "content": scaled(PROSE, size // 4),
        "tool_calls": [_weather(0), _file(1, size // 2, PROSE), _weather(2)],
    },
}
"""Shapes of a message, by the number of characters that the growing ones have."""

WRITTEN: dict[str, Callable[[int], dict[str, Any]]] = {
    "prose": lambda size: {"content": scaled(PROSE, size)},
    "trailing spaces": lambda size: {"content": scaled(PROSE, size)},
    "inline code": lambda size: {"content": scaled(INLINE_CODE, size)},
    "fence": lambda size: {"content": f"This is it:\n\n```python\n{scaled(CODE, size)}\n```"},
    "signs": lambda size: {"content": f"This is it:\n\n```c\n{scaled(SIGNS, size)}\n```"},
    "list": lambda size: {"content": scaled(LIST, size)},
    "lines": lambda size: {"content": scaled(LINES, size)},
    "code argument": lambda size: {"tool_calls": [_file(0, size)]},
    "signs argument": lambda size: {"tool_calls": [_file(0, size, SIGNS)]},
    "numbers": lambda size: {"tool_calls": [_call(0, "write_file", {"path": "a", "text": _numbers(size)})]},
}
"""Shapes of text that models write, next to prose."""
WRITTEN_FAMILIES = {name: FAMILIES[name] for name in ("hermes", "qwen3_coder", "minimax_m2")}
"""Formats in which these are measured: markers begin with `<`, with `<` around arguments, and with `<` and `[`."""


def _numbers(size: int) -> list[float]:
    return [round(number * 7.31 % 1000, number % 3) for number in range(size // 7)]


def make(
    format: str,
    reasoning: str | None,
    shape: str,
    *,
    size: int = 4_096,
    ways: Iterable[str] = WAYS,
) -> Iterator[Stream]:
    """Yield a shape in a format, cut in all ways; nothing if the format cannot express it."""
    parser = OutputParser.named(format, reasoning=reasoning)
    message = {"role": "assistant", **(SHAPES.get(shape) or WRITTEN[shape])(size)}
    if parser.expressible(message) is not None:
        message.pop("reasoning", None)
        if shape == "mixed":
            message.pop("content", None)
    if len(message) == 1 or (shape == "reasoning" and "reasoning" not in message):
        return
    if parser.expressible(message) is not None:
        return
    calls = [call["function"] for call in message.get("tool_calls", [])]
    expected = Message.build(
        message.get("reasoning"), message.get("content"), [(call["name"], call["arguments"]) for call in calls]
    )
    special = list(parser.format.special_tokens)
    pieces = tokens(parser.render(message), special, TRAILING if shape in ("trailing spaces", "lines") else WORD)
    ids = vocabulary(pieces, special)
    for way in ways:
        yield Stream(format, reasoning, shape, way, cut(pieces, ids, way), expected, TOOLS, ids, special)


def every(
    families: dict[str, str | None] = FAMILIES,
    shapes: Iterable[str] = tuple(SHAPES),
    *,
    size: int = 4_096,
    ways: Iterable[str] = WAYS,
) -> list[Stream]:
    """Return the streams of all formats and shapes, in all ways."""
    return [
        stream
        for format, reasoning in families.items()
        for shape in shapes
        for stream in make(format, reasoning, shape, size=size, ways=tuple(ways))
    ]


def written(*, size: int = 4_096, ways: Iterable[str] = ("text", "ids")) -> list[Stream]:
    """Return the streams of text that models write, prose first in each format."""
    return every(WRITTEN_FAMILIES, tuple(WRITTEN), size=size, ways=ways)
