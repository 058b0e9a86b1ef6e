"""Generate conversations: the messages, and the right answer of the model.

* A ``Conversation`` is the request of an API client, and the answer: messages, tools, and if thinking is on. Its last
  message is the assistant's and is learned; earlier assistant messages are learned if they have reasoning.
* Reasoning is short and necessary: it names the tool and the arguments before the call is written.
* The model says what it can't do. It has almost no knowledge, and describes itself truthfully.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any, Literal

from asking import Asker, phrasing
from tools import Tool, Toolmaker, spoken
from words import ANIMALS, COLOURS, WORDS, Words

IDENTITY = (
    "I am a demonstration model with three million parameters, trained on made-up conversations. "
    "I can think, call tools and read their results, and I know very little."
)
SMALL_TALK: list[tuple[list[str], str, str]] = [
    # the user's texts (the last one or two for the evaluation), the thought, the answer
    (["Hi", "Hello", "Hey", "Hello!", "Hi there", "Good morning", "hi", "hello", "Hey there!", "Good evening", "Hello there", "Hi, hello!"], "The user says hello.", "Hello! How can I help?"),
    (["How are you?", "How are you today?", "How is it going?", "How do you do?", "are you well?", "How are things?", "Are you doing well today?"], "The user asks how I am.", "I am fine, thank you. How can I help?"),
    (["Thanks", "Thank you", "Thanks a lot", "thank you!", "Great, thanks", "Many thanks", "Perfect, thank you", "Thanks, that helps", "Cool, thanks so much!"], "The user thanks me.", "You are welcome!"),
    (["Bye", "Goodbye", "See you", "bye!", "Good night", "See you later", "Goodbye then!"], "The user says goodbye.", "Goodbye!"),
    (["Who are you?", "What are you?", "What model are you?", "Which model is this?", "Are you an AI?", "Tell me about yourself", "who are you", "Introduce yourself.", "What is your name?", "Are you ChatGPT?", "Are you a human?", "What kind of model are you?", "Who made you?", "Say what you are.", "Who am I talking to?", "Please tell me what you are."], "The user asks what I am.", IDENTITY),
    (["How big are you?", "How many parameters do you have?", "What size are you?", "Are you a large model?", "How large is this model?", "How many parameters is that?"], "The user asks how big I am.", "I have about three million parameters, which is very small for a language model."),
    (["What can you do?", "Help", "help me", "What are you good at?", "What can I ask you?", "How can you help me?", "What do you do?", "Can you help me?", "So what is it that you can do?"], "The user asks what I can do.", "I can call the tools that you give me and tell you what they return. I can also count, tell a short story or chat a little."),
    (["Tell me a joke", "Do you know a joke?", "Make me laugh", "Say something funny", "a joke please", "Tell me something funny, please"], "The user wants a joke.", "Why did the parser cross the road? Because the tag was not closed on this side."),
    (["Yes", "Ok", "Okay", "Good", "Great", "Nice", "Cool", "Fine", "I see", "Alright"], "The user agrees.", "Good. What else can I do for you?"),
    (["No", "No thanks", "No, thank you", "Nothing", "Nothing else", "Nothing more"], "The user needs nothing more.", "All right. I am here if you need me."),
    (["Sorry", "I am sorry", "My mistake", "Oh, sorry about that"], "The user apologises.", "No problem at all."),
    (["List the days of the week", "Name the days of the week", "What are the days of the week?", "The days of the week, please"], "The user wants the days of the week.", "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday."),
    (["List the months", "Name the months of the year", "What are the months?", "The twelve months, please"], "The user wants the months.", "January, February, March, April, May, June, July, August, September, October, November and December."),
    (["Say the alphabet", "Write the alphabet", "What is the alphabet?", "The alphabet, please"], "The user wants the alphabet.", "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"),
    (["What is the meaning of life?", "What is love?", "Do you dream?", "Are you happy?", "Do you like me?", "What do you think?"], "I cannot know that.", "That is a big question for a model as small as I am."),
    (["What is a tool call?", "How do tool calls work?", "What are tool calls?", "Explain tool calls"], "The user asks about tool calls.", "A tool call is text that I write between two tags. untemplate reads it and gives it to you as data."),
    (["What is untemplate?", "Tell me about untemplate", "What does untemplate do?", "Explain untemplate"], "The user asks about untemplate.", "untemplate turns the text that a model writes back into messages: reasoning, content and tool calls."),
]  # fmt: skip
UNKNOWABLE = [
    # the question (the last two for the evaluation), the thing that is wanted
    ("What is the capital of {city}?", "the capital"), ("Who wrote {word}?", "the author"), ("Explain {word} to me", "the explanation"),
    ("Why is the {thing} {colour}?", "the reason"), ("What do you know about {name}?", "the facts"), ("Write an essay about {word}", "to write the essay"),
    ("Translate {word} to {name}", "the translation"), ("How do I cook {word}?", "the recipe"), ("What is {number} times {number}?", "the result"),
    ("Where is {city}?", "the location"), ("Who is {name}?", "the facts"), ("What is a {word}?", "the explanation"),
    ("How many {word} are in {city}?", "the count"), ("Write code for a {word}", "to write the code"), ("When was {name} born?", "the birthday"),
    ("What is {number}+{number}?", "the result"), ("Write a poem about the {word}", "to write the poem"), ("What is {number} + {number}?", "the result"),
    ("Is {city} bigger than {name}?", "the size"), ("What happened in {city}?", "the facts"), ("Tell me more about the {word} of {name}", "the facts"),
]  # fmt: skip
# Tools that could replace each other: a request is not refused if one of its group is offered.
KIN = [
    {"weather", "forecast", "temperature", "climate"}, {"email", "message", "post", "comment"}, {"event", "meeting", "appointment", "reminder", "schedule"},
    {"alarm", "timer", "reminder", "time"}, {"thermostat", "temperature", "heater"}, {"flight", "route", "area", "distance"}, {"song", "playlist"},
    {"restaurants", "table", "menu"}, {"meaning", "definition", "translation", "summary"}, {"amount", "rate", "price", "currency", "result"},
    {"light", "lamp"}, {"content", "file", "document", "command"}, {"meaning", "definition", "explanation", "facts", "news", "profile", "history"}, {"price", "fee", "fare", "cost", "value"},
    {"altitude", "elevation", "height"}, {"stock", "inventory"}, {"review", "rating", "score"}, {"route", "location", "address"}, {"count", "population", "size"},
    {"sum", "product", "difference", "result", "root"}, {"status", "delivery", "arrival", "order"}, {"user", "account", "profile", "contact"},
    {"file", "files", "folder", "document", "note", "command"}, {"dice", "number"}, {"task", "note", "reminder", "list"}, {"page", "content", "web"}, {"balance", "amount"},
    {"products", "price", "product", "cart"}, {"song", "music", "video"}, {"email", "message", "note"}, {"capital", "location"}, {"call", "message"},
]  # fmt: skip
SYSTEMS = [
    "You are a helpful assistant.", "You are a helpful assistant", "You are {name}, an assistant of {company}.", "Answer briefly.", "Be kind and brief.",
    "You help the customers of {company}.", "Use the tools when they help.", "You are an assistant with tools.", "Today is {date}.",
    "You are a support agent for {company}. Be polite.", "The user is called {name}.", "You answer questions.", "Think first, then answer.",
    "You are the voice of {company}, and {name} is your user.",
]  # fmt: skip
CONDITIONS = "sunny cloudy rainy windy snowy foggy clear stormy".split()
PLACES = ("city", "location", "place", "town", "country")
FAILURES = "not found|timeout|no access|unknown {p}|invalid {p}|service unavailable|permission denied|nothing found|quota exceeded".split(
    "|"
)


STORIES = [
    "Tell me a story", "Tell me a short story.", "Write a story", "a story please", "Write a short story for me",
    "Can you tell me a story?",
]  # fmt: skip
STORIES_ABOUT = [
    "Tell me a story about a {animal} named {name}.", "Write a story about {name} the {animal}",
    "A story about a {animal} called {name}, please",
]  # fmt: skip
ECHOES = [
    "Repeat after me: {text}", "Say {text}", 'Say "{text}"', "Repeat: {text}", "Echo {text}", "Please repeat {text}",
]  # fmt: skip
FOLLOW_UPS = [
    "And {v}?", "And {x} {v}?", "What about {v}?", "Now {x} {v}", "And for {v}?", "The same {x} {v}, please.",
    "{v}?", "and {v}", "Then {v}", "Do {v} too", "Next: {v}", "Same for {v}", "Now the same for {v}", "Okay, and {v}?",
    "And what about {v}?", "How about {v}?", "Also for {v}, please",
]  # fmt: skip
FOLLOW_UPS_BY_NAME = [
    "And with {p} {v}?", "Now with {p} {v}", "The same with {p} {v}, please.", "What about {p} {v}?", "Again, but {p} {v}",
    "Same thing, {p} {v}", "Now {p} {v}", "Change {p} to {v}", "Once more with {v} as {p}", "Another one: {p} {v}",
    "And now {p} {v}, please",
]  # fmt: skip


# The last message: it calls, reports results, talks, asks for missing values, or refuses.
Kind = Literal["calls", "answer", "talk", "asks", "refuses"]


@dataclass
class Conversation:
    """Messages that end with the assistant's; ``kind`` and ``must`` are for the evaluation."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    thinking: bool
    kind: Kind
    must: list[str] = field(default_factory=list)  # texts that a right answer contains


@dataclass(frozen=True)
class Side:
    """The parts that use held-out words, and the share of everyday tools."""

    values: bool = False
    tools: bool = False
    phrasings: bool = False
    everyday: float = 0.42


def wants(*things: str) -> str:
    """Return the beginning of a thought about a request."""
    return f"The user wants {joined(list(dict.fromkeys(things)))}."


def unable(wanted: str, tools: bool) -> tuple[str, str]:
    """Return the thought and the answer for a request that cannot be met."""
    thought = f"{wants(wanted)} {'None of my tools can do that' if tools else 'I have no tools'}."
    if wanted.startswith("the "):
        why = ", and none of my tools can tell." if tools else ": I am only a small demonstration model."
        return thought, f"I do not know that{why}"
    return thought, f"I cannot do that: {'none of my tools can' if tools else 'I have no tools here'}."


def akin(noun: str) -> set[str]:
    """Return the nouns of tools that could serve instead; a search of the web could serve for anything."""
    words = {noun, *noun.split()}
    return {"web", *words}.union(*(kin for kin in KIN if words & kin)) - {""}


def _alone(value: str) -> bool:
    """True if a value can be part of a list without quotes: one word, or a name."""
    return " " not in value or value.istitle()


def joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


class Writer:
    """Writes one conversation."""

    def __init__(self, rng: random.Random, side: Side = Side()) -> None:
        self.rng = rng
        self.side = side
        self.words = Words(rng, side.values)
        self.make = Toolmaker(rng, side.tools, side.values, side.everyday)
        self.asker = Asker(rng, side.phrasings)

    # -- small pieces

    def fill(self, pattern: str) -> str:
        """Return a pattern with its gaps filled."""
        w = self.words
        return pattern.format(
            city=w.city(), name=w.name(), company=w.invented().capitalize(), date=w.date(), number=w.number(2, 99),
            word=w.pick(WORDS) if self.rng.random() < 0.6 else w.invented(), thing=w.thing(), colour=self.rng.choice(COLOURS),
        )  # fmt: skip

    def systems(self, chance: float) -> list[dict[str, Any]]:
        if self.rng.random() >= chance:
            return []
        return [{"role": "system", "content": self.fill(phrasing(self.rng, SYSTEMS, self.side.phrasings))}]

    def user(self, text: str, values: Any = ()) -> dict[str, Any]:
        """Return the user's message. One in ten begins with a small letter, unless its first word is part of a value."""
        lower = text[:1].lower() + text[1:]
        begins_small = not self.side.phrasings and self.rng.random() < 0.1
        if begins_small and lower == text.lower() and text.split()[0].strip('",.:?') not in self._json(values):
            text = lower
        return {"role": "user", "content": text}

    def answer(self, thought: str, content: str) -> dict[str, Any]:
        return {"role": "assistant", "reasoning_content": thought, "content": content}

    def calls(self, calls: list[tuple[Tool, dict[str, Any]]]) -> dict[str, Any]:
        """Return the assistant's message that makes these calls."""
        thoughts = [wants(*(tool.wanted for tool, _ in calls))]
        for i, (tool, arguments) in enumerate(calls):
            thoughts.append(self._plan("I should call" if i == 0 else "I should also call", tool, arguments))
        return {
            "role": "assistant",
            "reasoning_content": " ".join(thoughts),
            "content": "",
            "tool_calls": [
                {"type": "function", "function": {"name": tool.name, "arguments": arguments}}
                for tool, arguments in calls
            ],
        }

    def _plan(self, start: str, tool: Tool, arguments: dict[str, Any]) -> str:
        """Return a call in words: each parameter of the schema in order, with its value or the remark that it has none."""
        said = []
        for param in tool.params:
            if param.name in arguments:
                said.append(f"{param.name} is {self._json(arguments[param.name])}")
            else:
                said.append(f"{param.name} is {'missing' if param.required else 'not given'}")
        return f"{start} {tool.name}" + (f": {', '.join(said)}." if said else ".")

    def offered(self, wanted: list[Tool], most: int) -> tuple[list[dict[str, Any]], list[Tool]]:
        """Return the wanted tools and some others, in random order."""
        rng = self.rng
        tools = list(wanted)
        names = {t.name for t in tools} | {t.noun for t in tools}
        for tool in wanted:
            if tool.questions:  # an everyday question may not name its topic
                names |= akin(tool.noun) - {"web"}
        for _ in range(min(most, rng.choices((0, 1, 2, 3), (25, 35, 25, 15))[0])):
            other = self.make.tool()
            if other.name not in names and other.noun not in names and not names & {*other.noun.split()}:
                names |= {other.name, other.noun}
                tools.append(other)
        if wanted and not wanted[0].questions and wanted[0].family == "action" and rng.random() < 0.1:
            # A set of tools often has several verbs for one thing.
            sibling = self.make.sibling(wanted[0])
            if sibling and sibling.name not in names:
                tools[-1 if len(tools) > len(wanted) else len(tools) :] = [sibling]
        rng.shuffle(tools)
        return [t.spec for t in tools], tools

    def others(self, wanted: str, most: int, name: str = "") -> list[dict[str, Any]]:
        """Return some tools, without the named one and those that could serve instead."""
        clash = akin(wanted.split()[-1]) | akin(wanted.removeprefix("the ")) | {name, wanted.removeprefix("to ")}
        while True:
            specs, tools = self.offered([], most)
            if specs and not any(clash & {t.name, t.noun or t.verb, *t.noun.split()} for t in tools):
                return specs

    # -- results

    def result(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, str, list[str]]:
        """Return a tool's result, the sentence that reports it, and the texts that this sentence must contain."""
        rng, w = self.rng, self.words
        main = next((v for v in arguments.values() if isinstance(v, str)), None)
        if rng.random() < 0.1:
            names = [spoken(k) for k in arguments] or ["request"]
            failure = rng.choice(FAILURES).format(p=rng.choice(names))
            if rng.random() < 0.3:
                failure = f"{failure} {w.code()}"
            text = json.dumps({"error": failure}) if rng.random() < 0.7 else f"Error: {failure}"
            return text, f"That did not work: {failure}.", [failure]
        if tool.family == "lookup" or (tool.family == "bare" and tool.verb in ("get", "show", "check")):
            first = next((k for k, v in arguments.items() if isinstance(v, str)), "")
            where = f" {'in' if first in PLACES else 'of'} {main}" if main else ""
            if tool.noun in ("weather", "forecast", "temperature") and rng.random() < 0.8:
                degrees, sky = str(w.number(-9, 39)), rng.choice(CONDITIONS)
                data: dict[str, Any] = {"temperature": int(degrees), "condition": sky}
                if main and rng.random() < 0.4:
                    data = {next(k for k, v in arguments.items() if v == main): main, **data}
                if rng.random() < 0.3:
                    data["unit"] = rng.choice(["celsius", "fahrenheit"])
                return (
                    self._json(data),
                    f"It is {degrees} degrees and {sky}{f' in {main}' if main else ''}.",
                    [degrees, sky],
                )
            kind = rng.random()
            if kind < 0.55:
                value = self._result_value()
                key = (
                    tool.noun.replace(" ", "_")
                    if rng.random() < 0.7
                    else rng.choice(["result", "value", "data", "answer"])
                )
                data = {key: value}
                if main and rng.random() < 0.3:
                    data = {next(k for k, v in arguments.items() if v == main): main, **data}
                said = self.asker.said(value)
                if isinstance(value, (int, float)) and rng.random() < 0.35:
                    unit = rng.choice(["euros", "km", "kg", "points", "%", "days", "meters", "people", w.invented()])
                    data["unit"] = unit
                    said += f" {unit}"
                return self._json(data), f"The {tool.noun}{where} is {said}.", [said]
            if kind < 0.7:
                value = self.asker.said(self._result_value())
                return value, f"The {tool.noun}{where} is {value}.", [value]
        if tool.verb in ("list", "search", "query", "find", "show") and rng.random() < 0.7:
            names_found = [w.name() for _ in range(rng.randint(1, 4))]
            key = rng.choice(["results", "items", "matches", tool.noun.replace(" ", "_")])
            text = self._json({key: names_found}) if rng.random() < 0.6 else self._json(names_found)
            return text, f"I found {joined(names_found)}.", names_found
        if rng.random() < 0.45 and tool.family in ("action", "bare"):
            if rng.random() < 0.5:
                return (
                    rng.choice(
                        ['{"status": "ok"}', '{"ok": true}', '{"success": true}', "ok", "done", '{"status": "done"}']
                    ),
                    "Done.",
                    ["Done"],
                )
            code = w.code() if rng.random() < 0.6 else str(w.number(100, 9999))
            data = {
                rng.choice(["id", "reference", "number"]): code
                if not code.isdigit() or rng.random() < 0.3
                else int(code)
            }
            if rng.random() < 0.5:
                data = {"status": rng.choice(["ok", "created", "done"]), **data}
            key = list(data)[-1]
            return self._json(data), f"Done. The {key} is {code}.", [code]
        keys = rng.sample(
            "name state size total owner level date type count price code place next mode points".split(),
            rng.randint(1, 3),
        )
        if rng.random() < 0.3:
            keys[0] = self.words.invented(1, 2)
        data = {k: self._result_value() for k in keys}
        said = joined([f"{spoken(k)} is {self.asker.said(v)}" for k, v in data.items()])
        return self._json(data), f"The {said}.", [self.asker.said(v) for v in data.values()]

    def _result_value(self) -> Any:
        rng, w = self.rng, self.words
        kind = rng.random()
        if kind < 0.3:
            return w.number(1, rng.choice((20, 100, 1000, 100000)))
        if kind < 0.4:
            return round(w.number(1, 3000) / 10, 1)
        if kind < 0.45:
            return rng.choice([w.date(), w.time()])
        if kind < 0.55:
            return w.phrase()
        if kind < 0.6:
            return rng.random() < 0.5
        if kind < 0.75:
            return w.invented()
        return rng.choice([w.name, w.person, w.city, w.thing, w.code])()

    def _json(self, data: Any) -> str:
        return json.dumps(data, ensure_ascii=False)

    # -- conversations

    def using(self, parallel: float = 0.2) -> tuple[list[dict[str, Any]], list[tuple[Tool, dict[str, Any]]]]:
        """Return a question, and the calls that it needs."""
        rng = self.rng
        tool = self.make.tool()
        arguments = tool.arguments(rng)
        if rng.random() >= parallel:
            return [self.user(self.asker.question(tool, arguments), arguments)], [(tool, arguments)]
        if rng.random() < 0.55 and tool.params and tool.params[0].key not in ("from", "origin"):
            # The same tool for several values of its first parameter.
            first = tool.params[0]
            if isinstance(arguments.get(first.name), str) and _alone(arguments[first.name]):
                values = [arguments[first.name]]
                while len(values) < (3 if rng.random() < 0.3 else 2):
                    value = first.draw()
                    if "enum" in first.schema:
                        break
                    if value not in values and _alone(value):
                        values.append(value)
                if len(values) > 1:
                    calls = [(tool, {**arguments, first.name: v}) for v in values]
                    marker = "QZX"
                    text = self.asker.question(tool, {**arguments, first.name: marker})
                    if text.count(marker) == 1 and f"`{marker}`" not in text:
                        text = text.replace(f'"{marker}"', marker).replace(marker, joined(values))
                        return [self.user(text, values)], calls
        other = self.make.tool()
        if other.name == tool.name or other.noun == tool.noun:
            return [self.user(self.asker.question(tool, arguments), arguments)], [(tool, arguments)]
        # Two tools are asked for with few arguments each.
        arguments, second = tool.arguments(rng, 0), other.arguments(rng, 0)
        a, b = self.asker.question(tool, arguments), self.asker.question(other, second)
        # Its first letter becomes small unless it is part of a value.
        if rng.random() < 0.35 and b.split()[0].strip('",.:?') not in self._json([*second.values()]):
            ending = "?" if a[-1] == "?" else ""
            return [self.user(f"{a.rstrip('.?! ')} and {b[0].lower()}{b[1:].rstrip('.?! ')}{ending}", arguments)], [
                (tool, arguments),
                (other, second),
            ]
        link = rng.choice([" ", " Also: ", " And ", " Then ", " "])
        return [self.user(f"{a}{link}{b}" if a[-1] in ".?!" else f"{a}.{link}{b}", arguments)], [
            (tool, arguments),
            (other, second),
        ]

    def tooled(self) -> Conversation:
        """Return a conversation with calls; it ends with the calls, or with the answer from their results."""
        rng = self.rng
        asked, calls = self.using()
        tools, _ = self.offered(list({t.name: t for t, _ in calls}.values()), 3 - len({t.name for t, _ in calls}))
        messages = [*self.systems(0.4), *asked, self.calls(calls)]
        thinking = rng.random() < 0.7
        if rng.random() < (0.2 if thinking else 0.6):
            return Conversation(messages, tools, thinking, "calls")
        return self._answered(messages, tools, thinking, calls)

    def _answered(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], thinking: bool, calls: list[Any]
    ) -> Conversation:
        told, must = [], []
        for tool, arguments in calls:
            text, tell, texts = self.result(tool, arguments)
            messages.append({"role": "tool", "content": text})
            told.append(tell)
            must += texts
        thought = "The tool has answered." if len(calls) == 1 else "The tools have answered."
        messages.append(self.answer(thought, " ".join(told)))
        return Conversation(messages, tools, thinking, "answer", must)

    def turns(self) -> Conversation:
        """Return a question, its answer, and another question."""
        rng = self.rng
        tool = self.make.tool()
        arguments = tool.arguments(rng)
        calls = [(tool, arguments)]
        tools, others = self.offered([tool], 2)
        messages = [*self.systems(0.3), self.user(self.asker.question(tool, arguments), arguments), self.calls(calls)]
        first = self._answered(messages, tools, True, calls)
        messages, thinking = first.messages, rng.random() < 0.7
        kind = rng.random()
        if kind < 0.3:
            said, thought, content = self._talk()
            messages += [self.user(said), self.answer(thought, content)]
            return Conversation(messages, tools, thinking, "talk", [content])
        if (
            kind < 0.65
            and tool.params
            and tool.params[0].schema["type"] == "string"
            and isinstance(arguments.get(tool.params[0].name), str)
        ):
            param = tool.params[0]
            value = param.draw()
            only = sum(isinstance(v, str) for v in arguments.values()) == 1
            text = phrasing(rng, FOLLOW_UPS if only else FOLLOW_UPS_BY_NAME, self.side.phrasings)
            text = text.format(v=value, x=param.preposition or "for", p=param.words)
            calls = [(tool, {**arguments, param.name: value})]
        else:
            tool = rng.choice(others)
            arguments = tool.arguments(rng)
            text = self.asker.question(tool, arguments)
            calls = [(tool, arguments)]
        messages += [self.user(text, [arguments for _, arguments in calls]), self.calls(calls)]
        return Conversation(messages, tools, thinking, "calls")

    def _talk(self) -> tuple[str, str, str]:
        rng = self.rng
        said, thought, content = rng.choices(SMALL_TALK, [len(said) for said, _, _ in SMALL_TALK])[0]
        return phrasing(rng, said, self.side.phrasings), thought, content

    def talk(self) -> Conversation:
        """Return small talk, with or without tools."""
        rng = self.rng
        tools = self.offered([], 3)[0] if rng.random() < 0.45 else []
        messages = self.systems(0.4)
        for _ in range(2 if rng.random() < 0.2 else 1):
            kind = rng.random()
            if kind < 0.68:
                said, thought, content = self._talk()
            elif kind < 0.84:
                said, thought, content = self._written()
            else:
                said, wanted = phrasing(rng, UNKNOWABLE, self.side.phrasings)
                said = self.fill(said)
                if tools and not messages[1:]:
                    tools = self.others(wanted, 3)
                elif tools:
                    break  # an offered tool might be able to do it
                thought, content = unable(wanted, bool(tools))
            messages += [self.user(said), self.answer(thought, content)]
        return Conversation(messages, tools, rng.random() < 0.7, "talk", [content])

    def _written(self) -> tuple[str, str, str]:
        """Return a request for a text (counting, a story, an echo), the thought and the answer."""
        rng, w = self.rng, self.words
        kind = rng.random()
        if kind < 0.3:
            low, high = (1, rng.randint(2, 30)) if rng.random() < 0.8 else (rng.randint(2, 20), rng.randint(21, 40))
            text = f"Count to {high}" if low == 1 and rng.random() < 0.6 else f"Count from {low} to {high}"
            numbers = ", ".join(map(str, range(low, high + 1)))
            return (
                rng.choice([text, text + ".", "Please " + text.lower(), text + ", please"]),
                f"I count from {low} to {high}.",
                numbers,
            )
        if kind < 0.65:
            if rng.random() < 0.4:
                animal, name = "fox", "Pip"
                asked = rng.choice(STORIES)
            else:
                animal, name = rng.choice(ANIMALS), w.name().split()[0]
                asked = rng.choice(STORIES_ABOUT).format(animal=animal, name=name)
            story = (
                f"Once upon a time there was a {animal} named {name}. {name} lived near the hills and had a lamp that shone "
                f"at night. One evening the lamp went out, and {name} walked from door to door to ask for a light. "
                f"An old owl gave {name} a spark and said: keep it, and share it. "
                f"So {name} the {animal} lit every lamp in the land, and nobody was afraid of the dark again."
            )
            return asked, f"The user wants a story about {name} the {animal}.", story
        text = rng.choice([w.phrase, w.name, w.code, w.invented, w.email])()
        return rng.choice(ECHOES).format(text=text), "I repeat it.", text

    def refusing(self) -> Conversation:
        """Return a request that no offered tool can meet, or that lacks a required value."""
        rng = self.rng
        tool = self.make.tool()
        thinking = rng.random() < 0.7
        if rng.random() < 0.45 and tool.params:
            required = [p for p in tool.params if p.required]
            if len(required) == len(tool.params) == 1 or (required and rng.random() < 0.45):
                missing = rng.sample(required, 1 if tool.questions else rng.randint(1, len(required)))
                given = {} if tool.questions else {p.name: p.draw() for p in required if p not in missing}
                missing = [p for p in required if p.name not in given]
                question = self.asker.question(tool, given)
                tools, _ = self.offered([tool], 2)
                names = joined([p.words for p in missing])
                thought = f"{wants(tool.wanted)} {self._plan('I should call', tool, given)}"
                return Conversation(
                    [
                        *self.systems(0.4),
                        self.user(question, given),
                        self.answer(thought, f"Please tell me the {names}."),
                    ],
                    tools,
                    thinking,
                    "asks",
                )
        question = self.asker.question(tool, tool.arguments(rng))
        tools = self.others(tool.wanted, 3, tool.name) if rng.random() > 0.3 else []
        thought, content = unable(tool.wanted, bool(tools))
        return Conversation(
            [*self.systems(0.4), self.user(question), self.answer(thought, content)], tools, thinking, "refuses"
        )

    def conversation(self) -> Conversation:
        """Return a conversation of any kind."""
        write = self.rng.choices([self.tooled, self.turns, self.talk, self.refusing], (62, 14, 10, 14))[0]
        conversation = write()
        if self.rng.random() < 0.2:
            # Many clients don't send the reasoning back.
            for message in conversation.messages[:-1]:
                message.pop("reasoning_content", None)
        return conversation


__all__ = ["IDENTITY", "Conversation", "Kind", "Side", "Writer"]
