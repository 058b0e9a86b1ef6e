"""Questions of people who need a tool. Each contains all arguments.

* The last phrasing of each list is for the evaluation only (the last two if the list has more than ten).
* A value in the question is spelled as in the call. In one question, a preposition belongs to one parameter only.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from tools import Param, Tool, spoken

LOOKUPS = [
    "What is the {noun} {main}?", "Tell me the {noun} {main}.", "I need the {noun} {main}.", "Can you {verb} the {noun} {main}?",
    "Please {verb} the {noun} {main}.", "{Verb} the {noun} {main}", "{Noun} {main}?", "What's the {noun} {main}?",
    "Give me the {noun} {main}, please.", "Could you tell me the {noun} {main}?", "How is the {noun} {main}?",
    "I want to know the {noun} {main}.", "Show me the {noun} {main}", "what is the {noun} {main}", "{noun} {main} please",
    "Do you know the {noun} {main}?", "Hi, what is the {noun} {main}?", "Use {tool} {main}.", "{noun} {main}",
    "Find out the {noun} {main}", "Get me the {noun} {main}.", "I am looking for the {noun} {main}.", "Please tell me the {noun} {main}",
    "I have a question: what is the {noun} {main}?", "What about the {noun} {main}?", "We need the {noun} {main}.", "Let me know the {noun} {main}.",
    "Could I have the {noun} {main}?", "What {noun} is there {main}?", "Quick question, what's the {noun} {main}?", "Tell me what the {noun} is {main}",
    "Hey, {noun} {main}?", "please give me the {noun} {main}", "The {noun} {main}?", "I'd like the {noun} {main}.", "Would you know the {noun} {main}?",
    "My boss wants the {noun} {main}.", "Say the {noun} {main}", "Is there any {noun} {main}?", "I ask for the {noun} {main}.",
    "May I know the {noun} {main}?", "Any idea what the {noun} is {main}?",
]  # fmt: skip
ACTIONS = [
    "{Verb} a {noun} {main}.", "Please {verb} a {noun} {main}.", "Can you {verb} a {noun} {main}?", "I want to {verb} a {noun} {main}.",
    "{Verb} the {noun} {main}", "Could you {verb} the {noun} {main}?", "I need to {verb} a {noun} {main}.", "{verb} {noun} {main}",
    "Please {verb} my {noun} {main}", "Help me {verb} a {noun} {main}.", "Let's {verb} a {noun} {main}.", "Use {tool} {main}.",
    "Hi, please {verb} a {noun} {main}.", "{Verb} {noun} {main}, please.", "I'd like to {verb} a {noun} {main}.", "Go ahead and {verb} the {noun} {main}",
    "You should {verb} a {noun} {main}.", "{Verb} me a {noun} {main}", "We have to {verb} a {noun} {main}.", "{Verb} another {noun} {main}",
    "Would you please {verb} the {noun} {main}?", "Please, {verb} that {noun} {main}", "Make sure to {verb} the {noun} {main}.", "Hey, {verb} a {noun} {main}",
    "Could you please {verb} a {noun} {main}?", "Now {verb} the {noun} {main}", "Let us {verb} a {noun} {main}", "Do {verb} the {noun} {main}",
    "I was told to {verb} a {noun} {main}.", "Quickly {verb} a {noun} {main}", "You can {verb} the {noun} {main}", "I must {verb} the {noun} {main}.",
    "Would you {verb} a {noun} {main}?",
    "I'd like you to {verb} a {noun} {main}.", "It's time to {verb} the {noun} {main}.",
]  # fmt: skip
INVENTIONS = [
    "{Verb} {noun} {main}.", "Please {verb} {noun} {main}.", "Can you {verb} {noun} {main}?", "Use {tool} {main}.", "{verb} {noun} {main}",
    "Call {tool} {main}.", "I need a {verb} {noun} {main}.", "Run {tool} {main}", "Run {verb} {noun} {main}.", "Do a {verb} {noun} {main}, please.",
    "{Verb} the {noun} {main}", "Could you {verb} {noun} {main}?", "I want you to {verb} {noun} {main}.", "Try {tool} {main}.",
    "Please use {tool} {main}", "Could you run {tool} {main}?", "I need {tool} {main}", "Let's {verb} {noun} {main}.", "Do {tool} {main}",
    "Start {tool} {main}", "I'd like to {verb} {noun} {main}.", "{tool} {main}", "Would you {verb} {noun} {main}?", "Make a {verb} {noun} {main}",
    "Hey, {verb} {noun} {main}", "Give me a {verb} {noun} {main}", "Call the {tool} tool {main}", "Now {verb} the {noun} {main}.",
    "Help me {verb} {noun} {main}", "It is time to {verb} the {noun} {main}", "We want {tool} {main}",
    "Go and {verb} {noun} {main}.", "Time for {tool} {main}.",
]  # fmt: skip
BARES = [
    "{Verb} the {noun}.", "{Verb} {noun}", "Please {verb} the {noun}.", "Can you {verb} the {noun}?", "I want to {verb} the {noun}.",
    "{verb} my {noun} please", "Use {tool}.", "{Verb} all the {noun}", "Could you {verb} my {noun}?", "Run {tool}, please.",
    "{Verb} the {noun}, please", "Hi, {verb} the {noun}", "I need you to {verb} the {noun}.", "Let's {verb} the {noun}", "Would you {verb} the {noun}?",
    "Go and {verb} the {noun}", "Just {verb} the {noun}", "Please {verb} all the {noun}", "Hey, {verb} my {noun}",
    "I'd like you to {verb} the {noun}.", "Now {verb} the {noun} again.",
]  # fmt: skip
MENTIONS = [
    "with {p} {v}", "{p} {v}", "with the {p} {v}", "{p}: {v}", "{p} = {v}", "using {p} {v}", "with {p} set to {v}", "for {p} {v}",
    "where the {p} is {v}", "and {p} {v}", "with {v} as {p}", "with {v} as the {p}", "the {p} is {v}", "the {p} being {v}", "where {p} = {v}",
    "my {p} is {v}", "({p} {v})", "[{p}: {v}]", "with {p}={v}", "{p} should be {v}", "use {v} as {p}", "let {p} be {v}", "{v} ({p})",
    "make the {p} {v}", "{v} is the {p}", "given {p} {v}", "taking {v} for the {p}",
]  # fmt: skip
YES = [
    "with {p}", "{p} on", "with {p} enabled", "{p}: yes", "{p} true", "with {p} on", "{p} = true", "{p}: on", "and use {p}", "turn on {p}",
    "{p} yes", "and turn {p} on",
]  # fmt: skip
NO = [
    "without {p}", "{p} off", "with {p} disabled", "{p}: no", "{p} false", "no {p}", "{p} = false", "{p}: off", "don't use {p}", "turn off {p}",
    "with {p} off", "and leave {p} off",
]  # fmt: skip
# Questions for an everyday tool that lack the required values.
BEGUN = [
    "I want {wanted}.",
    "I need {wanted}",
    "I would like {wanted}, please.",
    "Hi, I want {wanted}",
]
BEGUN_LOOKUPS = [
    *BEGUN,
    "What's {wanted}?",
    "Tell me {wanted}",
    "Can you tell me {wanted}?",
    "{wanted}?",
    "How is {wanted}?",
]
BEGUN_ACTIONS = [*BEGUN, "{Do}", "Please {do}", "Can you {do}?", "{Do}, please", "Could you {do} for me?"]
HELD_PHRASINGS = 2
T = TypeVar("T")


def phrasing(rng: random.Random, texts: Sequence[T], held: bool) -> T:
    """Return one text of a list. The last two are held out, or only the last one of a short list."""
    count = HELD_PHRASINGS if len(texts) > 10 else 1
    return rng.choice(texts[-count:] if held else texts[:-count])


class Asker:
    """Turns a tool and arguments into a question."""

    def __init__(self, rng: random.Random, held_phrasings: bool = False) -> None:
        self.rng = rng
        self.held = held_phrasings

    def said(self, value: Any, quote: bool = False) -> str:
        """Return a value as a question spells it."""
        if isinstance(value, list):
            parts = [self.said(v, quote) for v in value]
            return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
        text = value if isinstance(value, str) else json.dumps(value)
        return f'"{text}"' if quote and isinstance(value, str) else text

    def mention(self, param: Param, value: Any, used: set[str], main: bool = False) -> str:
        """Return a parameter and its value in words. ``used`` has the prepositions that already belong to a parameter."""
        rng, words = self.rng, param.words
        if isinstance(value, bool):
            return phrasing(rng, YES if value else NO, self.held and rng.random() < 0.5).format(p=words)
        if isinstance(value, dict):
            inner = " and ".join(f"{spoken(k)} {self.said(v)}" for k, v in value.items())
            return rng.choice(["with {p} {v}", "{p}: {v}", "with the {p} {v}", "{p} {v}"]).format(p=words, v=inner)
        several = isinstance(value, str) and (" " in value or not value[0].isalnum())
        text = self.said(
            value,
            rng.random() < (0.85 if isinstance(value, str) and value.count(" ") > 1 else 0.35 if several else 0.12),
        )
        if param.preposition and param.preposition not in used and rng.random() < 0.7:
            used.add(param.preposition)
            return f"{param.preposition} {text}"
        free = param.schema["type"] == "string" and "enum" not in param.schema
        if main and free and rng.random() < 0.6:
            forms = ["{v}", "of {v}", "for the {p} {v}", "of {p} {v}"]
            if "for" not in used:
                forms += ["for {v}", "for {v}"]
                used.add("for")
            return rng.choice(forms).format(p=words, v=text)
        return phrasing(rng, MENTIONS, self.held and rng.random() < 0.5).format(p=words, v=text)

    def question(self, tool: Tool, arguments: dict[str, Any]) -> str:
        """Return a question that mentions all arguments."""
        rng = self.rng
        if tool.questions and arguments.keys() >= {p.name for p in tool.params if p.required}:
            return self._everyday(tool, arguments)
        if tool.questions:
            do = tool.wanted.removeprefix("to ")
            texts = BEGUN_ACTIONS if do != tool.wanted else BEGUN_LOOKUPS
            return phrasing(rng, texts, self.held).format(wanted=tool.wanted, do=do, Do=do.capitalize())
        texts = {"lookup": LOOKUPS, "action": ACTIONS, "invented": INVENTIONS, "bare": BARES}[tool.family]
        pattern = phrasing(rng, texts, self.held)
        known = [p for p in tool.params if p.name in arguments]
        prepositions = [p.preposition for p in tool.params]
        used = {p for p in prepositions if prepositions.count(p) > 1}
        pieces = [self.mention(p, arguments[p.name], used, main=i == 0 and p.required) for i, p in enumerate(known)]
        if len(pieces) > 2 and rng.random() < 0.2:
            tail = pieces[1:]
            rng.shuffle(tail)
            pieces = [pieces[0], *tail]
        joined = pieces[0] if pieces else ""
        for i, piece in enumerate(pieces[1:]):
            joined += rng.choice([", ", " and ", " ", ", "] if i == len(pieces) - 2 else [", ", " "]) + piece
        text = pattern.format(
            verb=tool.verb,
            Verb=tool.verb.capitalize(),
            noun=tool.noun,
            Noun=tool.noun.capitalize(),
            tool=tool.name,
            main=joined,
        )
        return re.sub(r"\band and\b", "and", re.sub(r" ([.?,])(?= |$)", r"\1", " ".join(text.split())))

    def _everyday(self, tool: Tool, arguments: dict[str, Any]) -> str:
        rng = self.rng
        text = phrasing(rng, tool.questions, self.held)
        ending = text[-1] if text[-1] in ".?" else ""
        body = text.removesuffix(ending)
        for param in tool.params:
            if param.name not in arguments:
                continue
            said = self.said(arguments[param.name])
            if param.key and f"{{{param.key}}}" in body:
                body = body.replace(f"{{{param.key}}}", said)
            elif param.phrases:
                body += " " + rng.choice(param.phrases).replace("{v}", said).replace("{q}", f'"{said}"')
            else:
                body += rng.choice([" ", ", "]) + self.mention(param, arguments[param.name], set())
        if rng.random() < 0.08 and not body.startswith('"'):
            body = rng.choice(["Hi! ", "Hello, ", "Please: ", "Hey, ", "ok, "]) + body
        return body + ending
