"""Generate tools, most of them invented: names, schemas, and values for their parameters.

* A call can always be derived from the text. The question shares words with the tool's name or description. The
  parameter's name, its description or a preposition identifies an argument. Values are copied letter for letter.
* Arguments have the order of the schema. Parameters that the question does not mention are left out.
* Names of tools and of parameters have two groups, as ``words.py`` describes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from everyday import COMMANDS, CUISINES, DISHES, EVERYDAY, MONEY, ROOMS, SIGNS, SYNONYMS
from words import COLOURS, COUNTRIES, DAYS, LANGUAGES, WORDS, Words

TOPICS = """weather forecast temperature humidity price population altitude distance status balance score traffic recipe
definition translation summary schedule capital currency rate stock address phone birthday age weight height size colour
owner author title rating review menu location route area length speed pressure voltage level version size budget salary
deadline progress history profile address timezone language climate elevation volume discount tax fee fare rent value
quality safety capacity duration delay arrival departure gate platform seat room floor inventory warranty""".split()
OBJECTS = """email message meeting reminder alarm ticket order note task event appointment booking invoice payment light
door window heater playlist song video photo document folder account user group channel post comment table flight hotel
taxi parcel timer thermostat printer backup server database page project contact list file report subscription""".split()
LOOKUP_VERBS = "get find check fetch look_up read query show search retrieve".split()
ACTION_VERBS = """create send book set delete add start stop play order update cancel move print open close schedule
remove share archive assign convert record publish rename save""".split()

STRING_PARAMS: dict[str, tuple[str, str]] = {
    # name: (kind of its values, a preposition that identifies it, if any)
    "city": ("city", "in"), "location": ("city", "in"), "place": ("city", "in"), "town": ("city", "in"),
    "country": ("country", "in"), "destination": ("city", "to"), "origin": ("city", "from"), "from": ("name", "from"),
    "to": ("name", "to"), "recipient": ("person", "to"), "receiver": ("person", "to"), "sender": ("person", "from"),
    "person": ("person", "for"), "customer": ("person", "for"), "guest": ("person", "for"), "owner": ("person", "for"),
    "name": ("name", "called"), "title": ("phrase", "titled"), "label": ("name", "labelled"), "subject": ("phrase", "about"),
    "topic": ("phrase", "about"), "query": ("phrase", "for"), "text": ("phrase", ""), "message": ("phrase", "saying"),
    "note": ("phrase", "saying"), "body": ("phrase", "saying"), "product": ("thing", ""), "item": ("thing", ""),
    "date": ("date", "on"), "day": ("day", "on"), "time": ("time", "at"), "start": ("time", "from"), "end": ("time", "until"),
    "deadline": ("date", "by"), "email": ("email", ""), "address": ("email", ""), "file": ("file", ""), "path": ("file", ""),
    "filename": ("file", ""), "id": ("code", ""), "code": ("code", ""), "order_id": ("code", ""), "reference": ("code", ""),
    "room": ("name", "in"), "device": ("thing", ""), "colour": ("colour", "in"), "language": ("language", "in"),
    "category": ("word", ""), "keyword": ("word", ""), "tag": ("word", ""), "company": ("name", ""), "street": ("name", ""),
    "song": ("phrase", ""), "artist": ("person", "by"), "user": ("person", "for"), "username": ("lower", "as"),
    "currency": ("upper", "in"), "symbol": ("upper", ""), "channel": ("lower", "in"), "team": ("name", "for"),
}  # fmt: skip
INTEGER_PARAMS = """days count limit quantity amount number people guests minutes hours seats pages level volume year port
width height size age nights copies floor max_results duration percent rooms weeks retries priority""".split()
NUMBER_PARAMS = "amount price temperature weight distance latitude longitude rate radius budget factor height".split()
BOOLEAN_PARAMS = """urgent notify verbose recursive public private alerts repeat sound breakfast insurance encrypted
details wifi shuffle loop metric dark_mode gift express backup""".split()
LIST_PARAMS = "tags items names cities colours products files people words topics labels guests attendees ids".split()
ENUMS: dict[str, tuple[Sequence[str], str]] = {
    "unit": (["celsius", "fahrenheit", "kelvin"], "in"), "units": (["metric", "imperial"], "in"),
    "priority": (["low", "normal", "high", "urgent"], ""), "size": (["small", "medium", "large"], ""),
    "format": (["pdf", "html", "text", "json", "csv"], "as"), "mode": (["fast", "slow", "eco", "auto", "silent"], ""),
    "sort": (["newest", "oldest", "cheapest", "best"], ""), "state": (["on", "off"], ""),
    "direction": (["up", "down", "left", "right"], ""), "travel_class": (["economy", "business", "first"], "in"),
    "transport": (["car", "bike", "train", "bus", "walk"], "by"), "color": (COLOURS, "in"), "status": (["open", "closed", "pending", "done"], ""),
    "frequency": (["daily", "weekly", "monthly"], ""), "level": (["beginner", "advanced", "expert"], ""),
    "type": (["single", "double", "suite"], ""), "category": (["books", "music", "food", "sports", "games"], ""),
}  # fmt: skip
# Names of everyday tools, of their nouns and of their parameters. Training uses them whatever their checksum is.
KNOWN = frozenset(
    text.lower()
    for names, _, _, noun, rows, _ in EVERYDAY
    for text in (*names, noun, *rows, *(other for kind, _, _ in rows.values() for other in SYNONYMS.get(kind, ())))
)


@dataclass
class Param:
    """One parameter: its schema, its values, and the ways in which a question mentions it."""

    name: str
    schema: dict[str, Any]
    required: bool
    draw: Callable[[], Any]
    preposition: str = ""
    phrases: list[str] = field(default_factory=list)  # phrases of its own for a question
    parts: list[Param] = field(default_factory=list)
    key: str = ""  # its name in the questions of an everyday tool

    @property
    def words(self) -> str:
        """Return the name as a question would write it."""
        return spoken(self.name)


@dataclass
class Tool:
    """One tool, and the questions that ask for it."""

    name: str
    description: str
    params: list[Param]
    family: str
    verb: str
    noun: str
    questions: list[str] = field(default_factory=list)  # the questions of an everyday tool
    spec: dict[str, Any] = field(default_factory=dict)

    @property
    def wanted(self) -> str:
        """Return the goal of a person who needs this tool."""
        if self.family == "lookup":
            return f"the {self.noun}"
        return f"to {self.verb} the {self.noun}" if self.noun else f"to {self.verb}"

    def arguments(self, rng: random.Random, optional: float = 0.45) -> dict[str, Any]:
        """Return values for the required parameters, and for some of the others."""
        return {p.name: p.draw() for p in self.params if p.required or rng.random() < optional}


def spoken(name: str) -> str:
    """Return ``max_results`` or ``maxResults`` as words."""
    text = "".join(f" {c.lower()}" if c.isupper() else c for c in name)
    return text.replace("_", " ").replace("-", " ").replace(".", " ").strip()


def styled(rng: random.Random, words: Sequence[str], style: str) -> str:
    """Return words as an identifier."""
    if style == "camel":
        return words[0] + "".join(w.capitalize() for w in words[1:])
    if style == "kebab":
        return "-".join(words)
    if style == "dot" and len(words) > 1:
        return words[0] + "." + "_".join(words[1:])
    return "_".join(words)


class Toolmaker:
    """Makes tools. ``held_names`` uses only names that training never sees, ``held_values`` only such values."""

    def __init__(
        self, rng: random.Random, held_names: bool = False, held_values: bool = False, everyday: float = 0.3
    ) -> None:
        self.rng = rng
        self.share = 0.0 if held_names else everyday
        self.names = Words(rng, held_names, KNOWN)
        self.values = Words(rng, held_values)

    def value(self, kind: str) -> Any:
        """Return a value of a kind that a question can spell."""
        values, rng = self.values, self.rng
        match kind:
            case "city":
                return values.city()
            case "person":
                return values.person()
            case "country":
                return values.pick(COUNTRIES)
            case "day":
                return rng.choice(DAYS)
            case "colour":
                return rng.choice(COLOURS) if not values.held else values.invented()
            case "language":
                return values.pick(LANGUAGES)
            case "word":
                return values.pick(WORDS) if rng.random() < 0.4 else values.invented()
            case "lower":
                return values.invented()
            case "upper":
                return values.invented(1, 1)[:4].upper()
            case "money":
                return rng.choice(MONEY)
            case "room":
                return rng.choice(ROOMS) if rng.random() < 0.8 else values.invented()
            case "cuisine":
                return values.pick(CUISINES)
            case "order":
                return values.code() if rng.random() < 0.55 else str(values.number(1000, 99999))
            case "dish":
                return values.pick(DISHES) if rng.random() < 0.6 else values.invented()
            case "sign":
                return values.pick(SIGNS)
            case "title":
                words = [
                    values.pick(WORDS) if rng.random() < 0.4 else values.invented() for _ in range(rng.randint(1, 3))
                ]
                return " ".join(w.capitalize() for w in words) if rng.random() < 0.7 else " ".join(words).capitalize()
            case "restaurant":
                name = values.name()
                return rng.choice([name, name, f"{name}'s", f"The {name}", f"Chez {name}"])
            case "command":
                if rng.random() < 0.3:
                    return rng.choice(COMMANDS)
                verb = rng.choice(["cat", "python", "rm", "head", "wc -l", "git add", "open", "cp -r", "less", "./run"])
                return f"{verb} {values.file() if rng.random() < 0.6 else values.invented()}"
            case "folder":
                return (
                    rng.choice(["", "/", "~/"]) + values.invented() + rng.choice(["", "", "/" + values.invented(1, 2)])
                )
            case "url":
                host = f"{rng.choice(['', 'www.'])}{values.invented()}.{rng.choice(['com', 'org', 'net', 'io'])}"
                return (
                    rng.choice(["https://", "https://", "http://", ""])
                    + host
                    + rng.choice(["", f"/{values.invented(1, 2)}"])
                )
            case "people":
                return list(dict.fromkeys(values.person() for _ in range(rng.randint(1, 3))))
            case "percent":
                return rng.randint(1, 100)
            case "days":
                return values.number(1, rng.choice((10, 60, 200)))
            case "number":
                whole = rng.random() < 0.7
                return values.number(1, 2000) if whole else round(values.number(1, 5000) / 10, 1)
            case "query":
                return rng.choice([values.invented, values.phrase, values.name, values.thing])()
            case "expression":
                signs = [rng.choice("+-*/") for _ in range(1 if rng.random() < 0.7 else 2)]
                text = str(values.number(1, rng.choice((20, 100, 1000))))
                space = rng.choice((" ", " ", ""))
                for sign in signs:
                    text += f"{space}{sign}{space}{values.number(1, rng.choice((20, 100, 1000)))}"
                return text
            case _:
                return getattr(values, kind)()

    def param(self, taken: set[str], required: bool, string: bool = False) -> Param:
        """Return one more parameter, with a name that is not in ``taken``."""
        rng = self.rng
        while True:
            param = self._string() if string else self._any(taken)
            if param.name not in taken:
                taken.add(param.name)
                param.required = required
                if rng.random() < 0.35:
                    param.schema["description"] = rng.choice(
                        [
                            f"The {param.words}",
                            f"{param.words.capitalize()} to use",
                            param.words.capitalize(),
                            f"the {param.words} of the request",
                        ]
                    )
                return param

    def _name(self, names: Sequence[str], invent: float) -> str:
        """Return a parameter's name: from the list, made of two words, or invented."""
        rng = self.rng
        kind = rng.random()
        if kind < invent:
            return self.names.invented(1, 2)
        name = rng.choice(names)
        if kind < invent + 0.08 and "_" not in name:
            other = rng.choice(["new", "main", "first", "target", "source", "final", "home", self.names.invented(1, 2)])
            name = styled(rng, [other, name], "camel" if rng.random() < 0.25 else "snake")
        return name if self.names.allows(name) else self.names.invented(1, 2)

    def _string(self) -> Param:
        rng = self.rng
        name = self._name(list(STRING_PARAMS), 0.18)
        kind, preposition = STRING_PARAMS.get(name, ("", ""))
        if not kind or rng.random() < 0.1:
            kind = rng.choice("name name city person phrase thing code date word lower lower email file time".split())
            preposition = preposition if kind in ("name", "city", "person") else ""
        return Param(name, {"type": "string"}, True, lambda: self.value(kind), preposition)

    def _any(self, taken: set[str] = frozenset()) -> Param:  # type: ignore[assignment]
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return self._string()
        if kind < 0.55:
            top = rng.choice((9, 20, 100, 1000, 10000))
            return Param(
                self._name(INTEGER_PARAMS, 0.15),
                {"type": "integer"},
                True,
                lambda: self.values.number(-9 if rng.random() < 0.05 else 1, top),
            )
        if kind < 0.63:
            digits = rng.choice((1, 1, 2))
            return Param(
                self._name(NUMBER_PARAMS, 0.15), {"type": "number"}, True,
                lambda: round(self.values.number(1, 2000) / 10**digits, digits) if rng.random() < 0.7 else self.values.number(1, 300),
            )  # fmt: skip
        if kind < 0.74:
            return Param(self._name(BOOLEAN_PARAMS, 0.15), {"type": "boolean"}, True, lambda: rng.random() < 0.6)
        if kind < 0.88:
            name = rng.choice(list(ENUMS))
            options, preposition = ENUMS[name]
            options = rng.sample(list(options), min(len(options), rng.randint(2, 4)))
            if rng.random() < 0.4 or not self.names.allows(name):
                name, preposition = self._name(["mode", "style", "kind", "variant", "option", "profile"], 0.5), ""
                if rng.random() < 0.6:
                    options = list(dict.fromkeys(self.values.invented(1, 2) for _ in range(rng.randint(2, 4))))
            return Param(name, {"type": "string", "enum": options}, True, lambda: rng.choice(options), preposition)
        if kind < 0.97:
            name = self._name(LIST_PARAMS, 0.15)
            if rng.random() < 0.25:
                return Param(
                    name, {"type": "array", "items": {"type": "integer"}}, True,
                    lambda: list(dict.fromkeys(self.values.number(1, 200) for _ in range(rng.randint(1, 4)))),
                )  # fmt: skip
            item = rng.choice(["name", "word", "lower", "person", "city"])
            return Param(
                name, {"type": "array", "items": {"type": "string"}}, True,
                lambda: list(dict.fromkeys(self.value(item) for _ in range(rng.randint(1, 4)))),
            )  # fmt: skip
        taken = set(taken)
        parts = []
        while len(parts) < 2:
            part = self._string() if rng.random() < 0.7 else self._any()
            if part.name not in taken and part.schema["type"] in ("string", "integer"):
                taken.add(part.name)
                parts.append(part)
        schema = {"type": "object", "properties": {p.name: p.schema for p in parts}}
        name = self._name(["address", "settings", "options", "filter", "contact", "range"], 0.3)
        return Param(name, schema, True, lambda: {p.name: p.draw() for p in parts}, parts=parts)

    def tool(self) -> Tool:
        """Return a tool whose name is in the right group."""
        if self.rng.random() < self.share:
            return self.everyday()
        while True:
            tool = self._tool()
            if self.names.allows(tool.name):
                return tool

    def everyday(self) -> Tool:
        """Return a common tool."""
        rng = self.rng
        names, descriptions, family, noun, rows, questions = rng.choice(EVERYDAY)
        name = rng.choice(names)
        # Questions use the verb of this tool for lookups; for actions they use the verb of the first name.
        verb = spoken(name if family == "lookup" else names[0]).split()[0]
        varied = rng.random() < 0.5
        if varied:
            name = self._renamed(name, family)
        kinds = [kind for kind, _, _ in rows.values()]
        params: list[Param] = []
        for key, (kind, schema, phrases) in rows.items():
            if varied and phrases and rng.random() < 0.35:
                continue
            taken = {p.name for p in params} | rows.keys()
            other = key
            if varied and rng.random() < 0.45:
                synonyms = SYNONYMS.get(kind, [])
                if kinds.count(kind) > 1:
                    other = f"{key}_{kind}"
                elif key in synonyms:
                    other = rng.choice(synonyms)
                other = f"{noun}_{key}" if rng.random() < 0.15 else other
                if rng.random() < 0.2:
                    other = styled(rng, other.split("_"), "camel")
                if other in taken or not self.names.allows(other):
                    other = key
            schema = dict(schema)
            if rng.random() < 0.5:
                schema.pop("description", None)
            elif "description" not in schema and rng.random() < 0.3:
                schema["description"] = rng.choice([f"The {spoken(key)}", spoken(key).capitalize()])
            if kind == "enum":
                draw = lambda options=schema["enum"]: rng.choice(options)  # noqa: E731
            else:
                draw = lambda kind=kind: self.value(kind)  # noqa: E731
            params.append(Param(other, schema, not phrases, draw, phrases=phrases, key=key))
        while varied and len(params) < 4 and rng.random() < 0.35:
            extra = self.param({p.name for p in params} | rows.keys(), False)
            if extra.schema["type"] in ("integer", "number", "boolean") or "enum" in extra.schema:
                params.append(extra)
        description = rng.choice(descriptions)
        tool = Tool(name, description, params, family, verb, noun, questions)
        tool.spec = self._spec(tool)
        return tool

    def _renamed(self, name: str, family: str) -> str:
        """Return another name with the same meaning."""
        rng = self.rng
        words = spoken(name).split()
        if family == "lookup":
            if words[0] in LOOKUP_VERBS:
                words = words[1:] or words
            if rng.random() < 0.6:
                words = [*rng.choice(LOOKUP_VERBS).split("_"), *words]
            elif rng.random() < 0.4:
                words = [*words, rng.choice(["info", "lookup", "tool", "service"])]
        elif rng.random() < 0.3:
            words = [*words, rng.choice(["tool", "now", "v2", "action", "for_user"])]
        other = styled(rng, words, rng.choices(["snake", "camel", "kebab", "dot"], (60, 25, 10, 5))[0])
        return other if self.names.allows(other) else name

    def _tool(self) -> Tool:
        """Return a tool of some family."""
        rng = self.rng
        style = rng.choices(["snake", "camel", "kebab", "dot"], (88, 6, 4, 2))[0]
        family = rng.choices(["lookup", "action", "invented", "bare"], (40, 30, 24, 6))[0]
        invented_noun = rng.random() < 0.35
        taken: set[str] = set()
        if family == "lookup":
            verb, noun = rng.choice(LOOKUP_VERBS), self._noun(TOPICS, invented_noun)
            if rng.random() < 0.12:
                noun = f"{self._noun(WORDS, invented_noun)} {noun}"
            params = [self.param(taken, True, string=True)]
            params += [self.param(taken, rng.random() < 0.35) for _ in range(rng.choices((0, 1, 2), (55, 33, 12))[0])]
            words = [*verb.split("_"), *noun.split()]
            if rng.random() < 0.15:
                words = (
                    noun.split() if rng.random() < 0.5 else [*noun.split(), rng.choice(["lookup", "info", "search"])]
                )
            entity = params[0].words
            description = rng.choice([
                f"Get the {noun} of a {entity}", f"Look up the {noun} for a {entity}", f"Returns the {noun}",
                f"Find the {noun} by {entity}", f"{noun.capitalize()} of a {entity}", f"Gives the current {noun} for a given {entity}.",
            ])  # fmt: skip
        elif family == "action":
            verb, noun = rng.choice(ACTION_VERBS), self._noun(OBJECTS, invented_noun)
            params = [self.param(taken, True, string=rng.random() < 0.6)]
            params += [
                self.param(taken, rng.random() < 0.5) for _ in range(rng.choices((0, 1, 2, 3), (30, 44, 20, 6))[0])
            ]
            words = [verb, *noun.split()]
            description = rng.choice(
                [
                    f"{verb.capitalize()} a {noun}",
                    f"{verb.capitalize()}s the {noun}",
                    f"Used to {verb} a {noun}.",
                    f"{verb} one {noun}",
                ]
            )
        elif family == "invented":
            verb, noun = self.names.invented(1, 2), self.names.invented(1, 2)
            words = [verb] if rng.random() < 0.4 else [verb, noun]
            noun = noun if len(words) == 2 else ""
            params = [self.param(taken, True)]
            params += [self.param(taken, rng.random() < 0.5) for _ in range(rng.choices((0, 1, 2), (42, 43, 15))[0])]
            description = rng.choice(
                [
                    f"{verb.capitalize()} something",
                    f"Runs {' '.join(words)}",
                    f"The {verb} tool",
                    f"{' '.join(words).capitalize()} with {params[0].words}",
                ]
            )
        else:
            verb = rng.choice(["list", "get", "show", "count", "refresh", "check"])
            noun = (
                self._noun(OBJECTS, invented_noun) + "s"
                if verb in ("list", "count")
                else self._noun(TOPICS, invented_noun)
            )
            words, params = [verb, *noun.split()], []
            description = rng.choice(
                [f"{verb.capitalize()} the {noun}", f"{verb.capitalize()} {noun}", f"Used to {verb} the {noun}."]
            )
        tool = Tool(styled(rng, words, style), description, params, family, verb.replace("_", " "), noun)
        tool.spec = self._spec(tool)
        return tool

    def sibling(self, tool: Tool) -> Tool | None:
        """Return a tool that does something else with the same thing; ``None`` if this group has no name for one."""
        for _ in range(20):
            other = self._tool()
            name = styled(self.rng, [other.verb, *tool.noun.split()], "snake")
            if other.family == "action" and other.verb != tool.verb and self.names.allows(name):
                break
        else:
            return None
        other = replace(other, name=name, noun=tool.noun, description=f"{other.verb.capitalize()} a {tool.noun}")
        other.spec = self._spec(other)
        return other

    def _noun(self, nouns: Sequence[str], invented: bool) -> str:
        return self.names.invented() if invented else self.names.pick(nouns)

    def _spec(self, tool: Tool) -> dict[str, Any]:
        """Return the JSON schema, written in one of the ways that people use."""
        rng = self.rng
        parameters: dict[str, Any] = {"type": "object", "properties": {p.name: p.schema for p in tool.params}}
        required = [p.name for p in tool.params if p.required]
        if required or rng.random() < 0.5:
            parameters["required"] = required
        if rng.random() < 0.08:
            parameters["additionalProperties"] = False
        function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": parameters}
        if rng.random() < 0.1:
            del function["description"]
        if not tool.params and rng.random() < 0.3:
            del function["parameters"]
        elif rng.random() < 0.12:
            parameters["additionalProperties"] = False
            function["strict"] = True
        return {"type": "function", "function": function}
