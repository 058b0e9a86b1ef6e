"""openai-harmony's stream parser for gpt-oss. Its vocabulary is fetched from the web when it is first used."""

from __future__ import annotations

from typing import Any

from openai_harmony import HarmonyEncodingName, Role, StreamableParser, load_harmony_encoding

from .program import Unsupported, name_of, serve

SETTINGS = (None,)
REASONING = "analysis"


def answer(request: dict[str, Any], form: dict[str, Any], setting: None) -> dict[str, Any]:
    if name_of(request) != "gpt-oss":
        raise Unsupported("it reads gpt-oss only")
    if "tokens" in request:
        raise Unsupported("its vocabulary has no further special tokens")
    encoding = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
    parser = StreamableParser(encoding, role=Role.ASSISTANT)
    for token in encoding.encode("".join(request["pieces"]), allowed_special="all"):
        parser.process(token)
    texts: dict[str, list[str]] = {"reasoning": [], "content": []}
    calls = []
    found = [(m.channel, m.recipient, "".join(part.text for part in m.content)) for m in parser.messages]
    if parser.current_content:
        found.append((parser.current_channel, parser.current_recipient, parser.current_content))
    for channel, recipient, text in found:
        if recipient and recipient not in ("assistant", "user", "all"):
            calls.append((recipient.removeprefix("functions."), text))
        else:
            texts["reasoning" if channel == REASONING else "content"].append(text)
    return {"reasoning": "\n".join(texts["reasoning"]), "content": "\n".join(texts["content"]), "calls": calls}


if __name__ == "__main__":
    serve(SETTINGS, answer)
