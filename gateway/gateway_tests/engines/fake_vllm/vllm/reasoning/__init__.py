from types import MappingProxyType

from ..entrypoints.openai.chat_completion.protocol import DeltaMessage


class ThinkParser:
    """``<think>`` (1), ``</think>`` (2), as vLLM's ``deepseek_r1`` reads them."""

    def __init__(self, tokenizer):
        assert tokenizer.get_vocab()["</think>"] == 2

    def is_reasoning_end(self, ids):
        return 2 in ids

    def extract_content_ids(self, ids):
        return ids[ids.index(2) + 1 :] if 2 in ids else []

    def extract_reasoning_streaming(self, before, now, delta, before_ids, now_ids, ids):
        delta = delta.replace("<think>", "")
        if "boom" in delta:
            raise IndexError("list index out of range")
        if 2 in ids:
            reasoning, _, content = delta.partition("</think>")
            return DeltaMessage(reasoning_content=reasoning or None, content=content or None)
        return DeltaMessage(reasoning_content=delta) if delta else None


class ReasoningParserManager:
    reasoning_parsers = MappingProxyType({"deepseek_r1": ThinkParser})

    @classmethod
    def get_reasoning_parser(cls, name):
        if name not in cls.reasoning_parsers:
            raise KeyError(f"Reasoning parser '{name}' not found.")
        return cls.reasoning_parsers[name]
