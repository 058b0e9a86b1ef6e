from types import MappingProxyType

from ..entrypoints.openai.chat_completion.protocol import DeltaFunctionCall, DeltaMessage, DeltaToolCall


class CallParser:
    """Parses ``[name` … `]``: emits the name when the bracket opens, and arguments as they arrive; the last ``}`` only
    at the end.
    """

    def __init__(self, tokenizer, tools=None):
        self.prev_tool_call_arr = []
        self.streamed_args_for_tool = []
        self.tools = tools

    def extract_tool_calls_streaming(self, before, now, delta, before_ids, now_ids, ids, request):
        assert request.tools == self.tools
        if "crash" in delta:
            raise ValueError("cannot parse")
        if "[" not in now:
            return DeltaMessage(content=delta)
        if not self.streamed_args_for_tool:
            if "{" not in now:
                return None
            name = now[now.index("[") + 1 : now.index("{")]
            self.prev_tool_call_arr.append({"name": name, "arguments": {"x": 1}})
            self.streamed_args_for_tool.append("")
            call = DeltaToolCall(index=0, id="call-1", function=DeltaFunctionCall(name=name))
            return DeltaMessage(tool_calls=[call])
        self.streamed_args_for_tool[0] += '{"x"'
        return DeltaMessage(tool_calls=[DeltaToolCall(index=0, function={"arguments": '{"x"'})])


class ToolParserManager:
    tool_parsers = MappingProxyType({"bracket": CallParser})

    @classmethod
    def get_tool_parser(cls, name):
        if name not in cls.tool_parsers:
            raise KeyError(f"Tool parser '{name}' not found.")
        return cls.tool_parsers[name]

    @classmethod
    def list_registered(cls):
        return sorted(cls.tool_parsers)
