"""Measures cells: Format × dialect → compiled, sound, accepted. Run as a program it writes ``grammar_matrix.json``.

    python -m tests.grammar.measure --samples 200 --write

Rules of this module:

* Sampling is in two ways of tokenising: every marker spelled as text, and special tokens by id.
* Per cell there are four requests (``SCENES``); the samples are shared out between them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from untemplate import OutputParser
from untemplate.format import Format
from untemplate.grammar import Grammar, GrammarError, make_grammar
from untemplate.render import expressible, render

from .cells import HUGE, MESSAGES, TOOLS, formats, opened, problem
from .engines import Engine, LarkEngine, StructuralTagEngine, Vocabulary

MATRIX = Path(__file__).parents[1] / "data" / "grammar_matrix.json"
DIALECTS = ("gbnf", "lark", "structural_tag")


@dataclass(frozen=True)
class Scene:
    """One kind of request."""

    name: str
    choice: Any
    strict: bool = True
    parallel: bool = True
    reasoning: str | None = None

    def applies(self, fmt: Format) -> bool:
        has = fmt.reasoning is not None or (fmt.channels is not None and bool(fmt.channels.reasoning))
        return self.reasoning is None or has


SCENES = (
    Scene("required", "required"),
    Scene("auto", "auto"),
    Scene("any object", "required", strict=False),
    Scene("named, one call", {"type": "function", "function": {"name": "get_weather_map"}}, parallel=False),
    Scene("reasoning open", "required", reasoning="open"),
)


@dataclass
class Cell:
    """What was found."""

    compiled: bool = True
    samples: int = 0
    unsound: int = 0
    renders: int = 0
    refused: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return self.compiled and self.samples > 0 and not self.unsound

    @property
    def accepted(self) -> bool:
        return self.compiled and self.renders > 0 and not self.refused

    def fault(self, text: str) -> None:
        if len(self.examples) < 5:
            self.examples.append(text[:1500])


_LLAMA: list[Any] = []


def llama() -> Any:
    from .llama import Llama

    if not _LLAMA:
        _LLAMA.append(Llama())
    return _LLAMA[0]


def grammar_of(fmt: Format, scene: Scene, dialect: str, tokens: dict[str, int] | None) -> Grammar:
    return make_grammar(
        fmt, TOOLS, scene.choice, parallel_tool_calls=scene.parallel, strict=scene.strict, dialect=dialect,
        reasoning=scene.reasoning, tokens=tokens,
    )  # fmt: skip


def engine_of(grammar: Grammar, vocabulary: Vocabulary) -> Engine:
    return LarkEngine(grammar, vocabulary) if grammar.dialect == "lark" else StructuralTagEngine(grammar, vocabulary)


def samples(grammar: Grammar, vocabulary: Vocabulary, count: int, seed: int) -> Iterator[tuple[str, list[int]] | str]:
    """``count`` outputs that end, or as many as twelve tries for each give; a text says what went wrong."""
    switches = [t for t in (vocabulary.ids.get(t.value) for t in grammar.triggers) if t is not None]
    found = 0
    if grammar.dialect == "gbnf":
        likely = [[t, 6.0] for t in switches]
        server = llama()
        bias = server.bias + likely if likely and not grammar.lazy else server.bias
        for attempt in range(count * 12):
            answer = server.complete(grammar.text, seed * 100000 + attempt, logit_bias=bias)
            if answer is not None and not HUGE.search(answer[0]):
                found += 1
                yield answer
                if found >= count:
                    return
        return
    engine = engine_of(grammar, vocabulary)
    rng = random.Random(seed)
    for _ in range(count * 12):
        try:
            ids = engine.sample(rng, 400, switches)
        except AssertionError as error:
            yield f"DEAD END: {error}"
            return
        # Bytes that are no UTF-8 are no text to anybody; some engines let them through.
        if ids is None or HUGE.search(vocabulary.text(ids)) or "\ufffd" in vocabulary.text(ids):
            continue
        found += 1
        yield vocabulary.text(ids), ids
        if found >= count:
            return


def measure(name: str, dialect: str, count: int, *, by_id: bool = False, accept: bool = True) -> Cell:
    """One cell."""
    fmt = formats()[name]
    cell = Cell()
    if dialect == "gbnf" and by_id:
        return cell
    vocabulary = Vocabulary(frozenset(fmt.special_tokens)) if by_id else Vocabulary()
    if dialect == "gbnf":
        vocabulary = llama().vocabulary
    tokens = vocabulary.tokens() if by_id else None
    parser = OutputParser(vocabulary if by_id else None, format=fmt)
    scenes = [s for s in SCENES if s.applies(fmt)]
    for scene in scenes:
        try:
            grammar = grammar_of(fmt, scene, dialect, tokens)
            prompt = opened(fmt) if scene.reasoning == "open" else None
            for sample in samples(grammar, vocabulary, max(count // len(scenes), 1), len(scene.name)):
                if isinstance(sample, str):
                    cell.unsound += 1
                    cell.fault(f"{scene.name}: {sample}")
                    continue
                text, ids = sample
                calls = scene.choice != "auto" or grammar.lazy
                why = problem(parser, text, ids if by_id else (), strict=scene.strict, calls=calls, prompt=prompt)
                cell.samples += 1
                if why is not None:
                    cell.unsound += 1
                    cell.fault(f"{scene.name}: {why}: {text!r}")
        except (GrammarError, ValueError, RuntimeError) as error:
            cell.compiled = False
            cell.fault(f"{scene.name}: {type(error).__name__}: {error}")
            return cell
    if accept:
        completeness(fmt, dialect, vocabulary, tokens, cell)
    return cell


def completeness(fmt: Format, dialect: str, vocabulary: Vocabulary, tokens: dict[str, int] | None, cell: Cell) -> None:
    """What ``render`` writes is accepted."""
    groups: dict[Grammar, list[str]] = {}
    for message in MESSAGES:
        if expressible(fmt, message, tools=TOOLS) is not None:
            continue
        calls = bool(message.get("tool_calls"))
        text = render(fmt, message)
        # Lazy grammars begin where calls begin: there the whole output is what ``required`` describes.
        plain = calls and not message.get("content") and dialect == "gbnf"
        if dialect == "gbnf" and not plain:
            continue
        scene = SCENES[0] if plain else SCENES[1]
        groups.setdefault(grammar_of(fmt, scene, dialect, tokens), []).append(text)
    for grammar, texts in groups.items():
        if dialect == "gbnf":
            from .llama import accepted

            verdicts = accepted(grammar.text, texts)
        else:
            engine = engine_of(grammar, vocabulary)
            verdicts = []
            for text in texts:
                ids = vocabulary.encode(text)
                verdicts.append(engine.accepts(ids) == len(ids) + 1)
        for text, verdict in zip(texts, verdicts, strict=True):
            cell.renders += 1
            if not verdict:
                cell.refused += 1
                cell.fault(f"refused: {text!r}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--samples", type=int, default=200)
    options.add_argument("--dialects", default=",".join(DIALECTS))
    options.add_argument("--formats", default="")
    options.add_argument("--by-id", action="store_true", help="special tokens by id only")
    options.add_argument("--write", action="store_true", help=f"write {MATRIX.name}")
    options.add_argument("--json", default="", help="write the cells here")
    chosen = options.parse_args()
    table: dict[str, dict[str, dict[str, Any]]] = {}
    bad = 0
    for name in formats():
        if chosen.formats and name not in chosen.formats.split(","):
            continue
        for dialect in chosen.dialects.split(","):
            begun = time.perf_counter()
            cell = measure(name, dialect, chosen.samples, by_id=chosen.by_id)
            took = time.perf_counter() - begun
            fine = cell.sound and cell.accepted
            bad += not fine
            print(
                f"{name:24} {dialect:15} compiled={cell.compiled} sound={cell.samples - cell.unsound}/{cell.samples} "
                f"accepted={cell.renders - cell.refused}/{cell.renders} {took:.1f}s{'' if fine else '   <--'}",
                flush=True,
            )
            for example in cell.examples:
                print("     ", example[:700])
            table.setdefault(name, {})[dialect] = {
                "compiled": cell.compiled, "sound": cell.sound, "accepted": cell.accepted, "samples": cell.samples,
                "renders": cell.renders,
            }  # fmt: skip
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(table, indent=1) + "\n")
    if chosen.write:
        MATRIX.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    print(f"{bad} cells fall short")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
