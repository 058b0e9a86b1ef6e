"""Vectors that are not renderings as they are: other spellings, cuts, quotations, mistakes, and outputs made to break
parsers. Each is made from a rendering by a change whose meaning a rule of the specification states, so no expectation
comes from a parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from untemplate import OutputParser
from untemplate.format import Format

Vector = dict[str, Any]
_FRAME: Final = ("section_open", "section_close", "call_open", "call_close")
_DEEP: Final = 100


class Family:
    """One format, and what its vectors are made from."""

    def __init__(self, name: str, parser: OutputParser, messages: dict[str, Any]) -> None:
        self.name = name
        self.parser = parser
        self.form: dict[str, Any] = json.loads(parser.format.to_json(indent=None))
        self._messages = messages
        frames = self.form.get("tools", [])
        self.frame: dict[str, Any] = frames[0] if frames else {}
        self.body: dict[str, Any] = self.frame.get("body", {"kind": "json"})
        self.arguments: str = (
            "json"
            if self.body.get("kind", "json") == "json"
            else self.body.get("arguments", {"kind": "json"}).get("kind", "json")
        )
        self.channels = "channels" in self.form
        openers = [text_of(self.frame[key]).strip() for key in ("section_open", "call_open") if key in self.frame]
        if not openers and self.body.get("name_open"):
            openers = [text_of(self.body["name_open"]).strip()]
        self.opener: str = openers[0] if openers else ""
        """The marker that begins the calls; empty if they are bare or messages."""

    def add(self, kind: str, message: dict[str, Any]) -> None:
        """Add a message."""
        self._messages[kind] = message

    def message(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = self._messages[kind]
        return found

    def output(self, kind: str, form: dict[str, Any] | None = None) -> str | None:
        """Return the rendering of a message, or None if the format cannot express it."""
        parser = self.parser if form is None else OutputParser.from_format(Format.from_json(json.dumps(form)))
        message = self._messages.get(kind)
        if message is None:
            return None
        return None if parser.expressible(message) is not None else parser.render(message)

    def expect(self, kind: str) -> dict[str, Any]:
        message = self.message(kind)
        calls = [
            {"name": one["name"], "arguments": _readable(one["arguments"]), "status": "ok"}
            for one in (call["function"] for call in message.get("tool_calls", ()))
        ]
        return {"reasoning": message.get("reasoning", ""), "content": message["content"], "tool_calls": calls}

    def vector(
        self, kind: str, level: str, output: str, expect: dict[str, Any], rules: tuple[str, ...], why: str
    ) -> Vector:
        return {
            "id": f"{self.name}/{kind}", "format": self.name, "level": level, "output": output, "expect": expect,
            "rules": list(rules), "why": why,
        }  # fmt: skip


def _readable(arguments: str) -> str:
    return json.dumps(json.loads(arguments), ensure_ascii=False)


def text_of(marker: Any) -> str:
    return str(marker["text"] if isinstance(marker, dict) else marker)


def vectors_of(family: Family) -> Iterator[Vector]:
    """Yield the vectors of a format."""
    yield from _spellings(family)
    yield from _around(family)
    yield from _mistakes(family)
    yield from _cuts(family)
    yield from _quotations(family)
    yield from _hostile(family)
    yield from _tokens(family)


def said(content: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"reasoning": "", "content": content, "tool_calls": list(calls)}


# -- other spellings ----------------------------------------------------------------------------------------------


def _spellings(family: Family) -> Iterator[Vector]:
    usual = family.output("all-parts") or family.output("content-and-call")
    kind = "all-parts" if family.output("all-parts") else "content-and-call"
    if usual is None:
        return
    why = "The white space of a marker has no meaning."
    for suffix, change in (("bare-markers", str.strip), ("more-white-space", lambda text: f"\n{text}\n")):
        form = _with_markers(family.form, change, all_parts=suffix == "bare-markers")
        output = family.output(kind, form)
        if output is not None and output != usual:
            yield family.vector(suffix, "slipped", output, family.expect(kind), ("M2", "M3", "T1"), why)
    for number, form in enumerate(_accepted(family.form)):
        output = family.output(kind, form)
        if output is not None and output != usual:
            why = "A marker may be written in each of its spellings."
            yield family.vector(f"accepted-{number}", "slipped", output, family.expect(kind), ("F3", "U2"), why)


def _with_markers(form: dict[str, Any], change: Any, *, all_parts: bool) -> dict[str, Any]:
    """Return a Format with its markers changed where white space has no meaning."""
    made: dict[str, Any] = json.loads(json.dumps(form))
    for frame in made.get("tools", []):
        for key in _FRAME:
            if key in frame:
                frame[key] = change(text_of(frame[key]))
        body = frame.get("body", {})
        arguments = body.get("arguments", {})
        for part, keys in ((body, ("name_close", "arguments_close")), (arguments, ("key_open", "value_close"))):
            for key in keys:
                if all_parts and key in part and text_of(part[key]).strip():
                    part[key] = text_of(part[key]).strip()
    if "reasoning" in made:
        for key in ("open", "close"):
            if key in made["reasoning"]:
                made["reasoning"][key] = change(text_of(made["reasoning"][key]))
    return made


def _accepted(form: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the Format with each further spelling of a marker that a renderer writes in its place."""
    for frame in form.get("tools", [])[:1]:
        for key in _FRAME:
            marker = frame.get(key)
            for spelling in marker["accepted"] if isinstance(marker, dict) else ():
                made = json.loads(json.dumps(form))
                usual = marker["text"]
                space = usual[: len(usual) - len(usual.lstrip())] or ("\n" if spelling[0].isalpha() else "")
                made["tools"][0][key] = {"text": space + spelling, "accepted": [usual]}
                yield made


# -- text around calls --------------------------------------------------------------------------------------------


def _around(family: Family) -> Iterator[Vector]:
    end = family.form.get("turn", {}).get("end")
    for kind in ("content", "call"):
        output = family.output(kind)
        if output is None or end is None or output.endswith(text_of(end)):
            continue
        why = "The end of the turn is dropped."
        yield family.vector(f"{kind}-turn-end", "clean", output + text_of(end), family.expect(kind), ("M8",), why)
    call = family.output("call")
    if call is None or family.channels:
        return
    expect = family.expect("call")
    why = "Content that goes on after a call keeps the white space before it."
    space = call[len(call.rstrip(" \n")) :]
    after = {**expect, "content": f"{space}\n\nThat is all."}
    yield family.vector("text-after-call", "slipped", f"{call}\n\nThat is all.", after, ("M4", "T12"), why)
    yield family.vector(
        "white-space-after-call", "slipped", f"{call}\n \n", expect, ("M4",), "White space after calls is dropped."
    )
    if call.startswith(family.opener or "\0") or call.lstrip("\n").startswith(family.opener or "\0"):
        none = family.vector(
            "no-tools", "clean", call, said(call), ("T9",), "No tools were offered, so nothing is a call."
        )
        yield none | {"tools": []}


# -- mistakes -----------------------------------------------------------------------------------------------------


def _mistakes(family: Family) -> Iterator[Vector]:
    for kind, status, rule in (
        ("unknown-tool", "unknown_tool", "U1"),
        ("wrong-type", "invalid_arguments", "U1"),
    ):
        output = family.output(kind)
        if output is not None and not (status == "unknown_tool" and _is_bare(family)):
            expect = family.expect(kind)
            expect["tool_calls"][0]["status"] = status
            rules = (rule, "V4") if family.arguments != "json" and kind == "wrong-type" else (rule,)
            yield family.vector(kind, "slipped", output, expect, rules, "A status says what is wrong with a call.")
    output = family.output("two-calls")
    if output is None:
        return
    first, second = family.expect("two-calls")["tool_calls"]
    written = _written(output, first["arguments"])
    if written is None:
        return
    broken = written.replace("world.", 'world.",, "')
    bad = {**first, "arguments": broken, "status": "invalid_json"}
    yield family.vector(
        "broken-json", "slipped", output.replace(written, broken), said("", bad, second), ("P6", "U3"),
        "Broken JSON is passed on as written, and the next call is read normally.",
    )  # fmt: skip
    if not _is_bare(family) and not family.body.get("name_is_key"):
        text = json.dumps(written)
        yield family.vector(
            "arguments-in-a-string", "slipped", output.replace(written, text), said("", first, second), ("A2", "U2"),
            "Arguments in a JSON string are the text of the string.",
        )  # fmt: skip
    yield from _without_closes(family)


def _without_closes(family: Family) -> Iterator[Vector]:
    output = family.output("call")
    assert output is not None
    closes = [text_of(family.frame[key]).strip() for key in ("section_close", "call_close") if key in family.frame]
    for close, name in zip(closes, ("one", "two"), strict=False):
        if not output.rstrip().endswith(close):
            return
        output = output.rstrip().removesuffix(close)
        yield family.vector(
            f"without-{name}-close", "slipped", output, family.expect("call"), ("K5", "P1"),
            "A call with whole arguments is whole.",
        )  # fmt: skip


def _written(output: str, arguments: str) -> str | None:
    """Return JSON arguments as an output has them; None if it has them in another form."""
    compact = json.dumps(json.loads(arguments), ensure_ascii=False, separators=(",", ":"))
    return next((text for text in (arguments, compact) if output.count(text) == 1), None)


def _is_bare(family: Family) -> bool:
    return not family.opener and not family.channels


# -- cuts ---------------------------------------------------------------------------------------------------------


def _cuts(family: Family) -> Iterator[Vector]:
    call, two = family.output("call"), family.output("two-calls")
    if call is not None and call.count("Hello, world.") == 1:
        cut = call[: call.index("Hello, world.") + 9]
        arguments = '{"path": "notes/a.txt", "text": "Hello, wo'
        written = _written(call, family.expect("call")["tool_calls"][0]["arguments"])
        if written is not None:
            arguments = written[: written.index("Hello, world.") + 9]
        expect = said("", {"name": "write_file", "arguments": arguments, "status": "incomplete"})
        rules = ("K2",) if family.arguments == "json" else ("K2", "K6")
        why = "A cut call is never completed."
        yield _cut(family.vector("cut-in-a-value", "cut", cut, expect, rules, why))
    if call is not None and two is not None:
        size = next((i for i, (a, b) in enumerate(zip(call, two, strict=False)) if a != b), min(len(call), len(two)))
        why = "The first call is whole."
        yield _cut(
            family.vector(
                "cut-after-a-call", "cut", two[:size].rstrip("< \n"), family.expect("call"), ("K5", "K7"), why
            )
        )
    output = family.output("content-and-call")
    if output is None or len(family.opener) < 4 or output.count(family.opener) != 1:
        return
    at = output.index(family.opener)
    if output.startswith("I write it."):
        cut = output[: at + len(family.opener) // 2]
        why = "The beginning of a marker is text."
        yield _cut(family.vector("cut-in-the-opener", "cut", cut, said(cut), ("M7",), why))
        cut = output[: at + len(family.opener)]
        why = "An opener that the output ends in is dropped."
        yield _cut(family.vector("cut-after-the-opener", "cut", cut, said("I write it."), ("K3",), why))


def _cut(vector: Vector) -> Vector:
    return vector | {"finish_reason": "length"}


# -- quotations ---------------------------------------------------------------------------------------------------


def _quotations(family: Family) -> Iterator[Vector]:
    if not family.opener or family.form.get("reasoning", {}).get("start") == "open":
        return
    text = f"Begin with {family.opener} to call a tool."
    yield family.vector("names-the-opener", "quoted", text, said(text), ("T7",), "A marker in a sentence is text.")
    call = (family.output("call") or "").strip()
    line = (family.output("call", _with_markers(family.form, str.strip, all_parts=True)) or "").strip()
    if not call.startswith(family.opener):
        return
    quotations = {
        "in-a-json-string": (json.dumps({"note": call}, ensure_ascii=False), "Q1"),
        "in-a-block-quote": ("It wrote:\n\n" + "\n".join(f"> {one}" for one in call.split("\n")), "Q2"),
        "in-a-diff": ("The change:\n\n```diff\n" + "\n".join(f"+{one}" for one in call.split("\n")) + "\n```", "Q3"),
    }
    if "\n" not in line and "`" not in line and "|" not in line.replace(family.opener, ""):
        quotations["in-a-table"] = (f"| tool | output |\n|---|---|\n| it | {line} |", "Q2")
    if "\n" not in line and "`" not in line:
        quotations["in-double-backticks"] = (f"It writes ``{line}`` here.", "Q4")
        quotations["in-a-code-tag"] = (f"It writes <code>{line}</code> here.", "Q6")
    for kind, (text, rule) in quotations.items():
        why = "The text before the opener shows that the call is quoted."
        shown = (rule, "Q11") if rule in ("Q1", "Q4", "Q6") and "section_open" in family.frame else (rule,)
        yield family.vector(kind, "quoted", text, said(text), shown, why)
    if "`" in call:
        return
    fenced = f"```\n{call}\n```"
    expect = {**family.expect("call"), "content": "```\n```"}
    yield family.vector("in-a-fence", "quoted", fenced, expect, ("Q3", "M3"), "A call in a code fence is a call.")


# -- outputs made to break parsers --------------------------------------------------------------------------------


def _hostile(family: Family) -> Iterator[Vector]:
    if family.form.get("reasoning", {}).get("start") == "open":
        return
    markers = sorted({one for one in _markers(family.form) if len(one) > 3})
    short = "Look: " + " ".join(f"{one[:-1]};" for one in markers) + " done."
    if markers and not any(one in short for one in markers):
        yield family.vector(
            "hostile-markers-cut-short", "hostile", short, said(short), ("G1", "M7"),
            "A marker without its last character is text.",
        )  # fmt: skip
    odd = "a\u0000b\u0001 \u2028\ufeff\u200b\U0001f3f4\u200d c" + " \n\t" * 500 + "d\r\n"
    yield family.vector(
        "hostile-characters", "hostile", odd, said(odd), ("G1", "M1", "M7"), "Text without markers is unchanged."
    )
    if family.opener and not family.channels:
        many = "Look: " + f"{family.opener} x " * 40 + "is (only) text."
        yield family.vector(
            "hostile-openers", "hostile", many, said(many), ("G1", "T7"), "An opener before other text is text."
        )
    for kind in ("deep-argument", "own-call-in-an-argument"):
        output = family.output(kind) if family.arguments == "json" else None
        if output is not None:
            why = "What is in a JSON string is text, and the depth of JSON has no limit here."
            yield family.vector(f"hostile-{kind}", "hostile", output, family.expect(kind), ("A1", "A4"), why)


def _markers(value: Any) -> Iterator[str]:
    """Yield all literals of a Format, without white space at their ends."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in ("version", "name", "turn", "kind", "ids", "special_tokens", "optional", "start"):
                yield from _markers(part)
    elif isinstance(value, list):
        for part in value:
            yield from _markers(part)
    elif isinstance(value, str) and not value.isalpha() and "{" not in value:
        yield value.strip()


def deep_argument() -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(_DEEP):
        value = {"a": [value]}
    return {"options": value}


# -- tokens -------------------------------------------------------------------------------------------------------


def _tokens(family: Family) -> Iterator[Vector]:
    special = set(family.form.get("special_tokens", ()))
    if family.form.get("reasoning", {}).get("start") == "open" or family.channels:
        return
    tokens = [("Hi", False), ("<|unknown_7|>", True), (" there", False), (".", False)]
    yield _with_tokens(
        family.vector("ids-unknown-token", "ids", "", said("Hi there."), ("I4",), "It is no text of the message."),
        tokens,
    )
    call = (family.output("call") or "").strip()
    if family.opener not in special or not call.startswith(family.opener) or family.opener in call[1:]:
        return
    after = call[len(family.opener) :]
    rest = [(piece, piece in special) for piece in _pieces(after, special)]
    proven = [("It says ", False), ('"', False), (family.opener, True), *rest]
    content = 'It says "'
    yield _with_tokens(
        family.vector(
            "ids-proven-in-quotes", "ids", "", family.expect("call") | {"content": content}, ("I1", "I3"),
            "A token that proves the opener outweighs the text before it.",
        ),
        proven,
    )  # fmt: skip
    spelled = [("Look: ", False), (family.opener[:1], False), (family.opener[1:], False), (" is a token.", False)]
    yield _with_tokens(
        family.vector(
            "ids-spelled", "ids", "", said(f"Look: {family.opener} is a token."), ("I2",), "Ordinary tokens spell text."
        ),
        spelled,
    )


def _pieces(text: str, special: set[str]) -> Iterator[str]:
    """Cut a text at special tokens, and the rest into pieces of three characters."""
    by_length = sorted(map(re.escape, special), key=len, reverse=True)
    for part in re.split(f"({'|'.join(by_length)})", text):
        yield from [part] if part in special else [part[i : i + 3] for i in range(0, len(part), 3)]


def _with_tokens(vector: Vector, tokens: list[tuple[str, bool]]) -> Vector:
    return vector | {"output": "".join(text for text, _ in tokens), "tokens": [list(one) for one in tokens]}
