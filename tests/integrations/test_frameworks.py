"""docs/frameworks.md has the code of its examples, and is right about other ways to use the frameworks.

The examples run against a gateway, as do the variants here: ``make test-integrations``.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from tests.test_examples import NEEDS, gateway, promised, ran

ROOT = Path(__file__).parents[2]
TOOL, *SNIPPETS = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs" / "frameworks.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
)
EXAMPLES = ["langchain", "deepseek", "llamaindex", "pydantic_ai", "openai_agents"]


def example(name: str) -> Path:
    return ROOT / "examples" / f"frameworks_{name}.py"


def read(code: str) -> tuple[str, list[str]]:
    """Return the statements and the comments: lines of a page are shorter than those of an example."""
    return ast.unparse(ast.parse(code)), re.findall(r"# .*", code)


@pytest.mark.parametrize(("name", "snippet"), list(zip(EXAMPLES, SNIPPETS, strict=True)), ids=EXAMPLES)
def test_the_page_shows_the_example(name: str, snippet: str):
    code = example(name).read_text("utf-8").partition('"""\n\n')[2]
    assert TOOL in code
    assert read(code.replace(TOOL, "")) == read(snippet)


QUESTION = '"What is the weather in Lisbon?"'
SUMMED = {
    "message = model": "parts = list(model",
    f".invoke({QUESTION})": f".stream({QUESTION}))\nmessage = sum(parts[1:], parts[0])",
}
DRAINED = {
    "model = OpenAIChatModel": "async def drain(context, events):\n    async for _ in events:\n        pass\n\n\n"
    "model = OpenAIChatModel",
    f"run_sync({QUESTION}": f"run_sync({QUESTION}, event_stream_handler=drain",
}
STREAMED = {
    "result = asyncio.run(": "async def run():\n    result = Runner.run_streamed(agent, QUESTION)\n"
    "    async for _ in result.stream_events():\n        pass\n    return result\n\n\nresult = asyncio.run(",
    f"Runner.run(agent, {QUESTION})": "run()",
    "agent, QUESTION": f"agent, {QUESTION}",
}
CHAT = {"OpenAIResponsesModel": "OpenAIChatCompletionsModel"}
DROPPED = {", use_responses_api=True": "", "# ['reasoning', ": "# ["}
VARIANTS = {
    "langchain-chat": ("langchain", DROPPED),
    "langchain-streamed": ("langchain", SUMMED),
    "deepseek-streamed": ("deepseek", SUMMED),
    "llamaindex-streamed": ("llamaindex", {"response = llm.chat_with": "*_, response = llm.stream_chat_with"}),
    "pydantic_ai-streamed": ("pydantic_ai", DRAINED),
    "openai_agents-streamed": ("openai_agents", STREAMED),
    "openai_agents-chat": ("openai_agents", CHAT),
    "openai_agents-chat-streamed": ("openai_agents", {**CHAT, **STREAMED}),
}
"""Name → example, and what is written in place of what. But for reasoning that is dropped, they print the same."""


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_prints_the_same(variant: str, tmp_path: Path):
    name, changes = VARIANTS[variant]
    if importlib.util.find_spec(NEEDS[example(name).name]) is None:
        pytest.skip(f"needs {NEEDS[example(name).name]} (make test-integrations)")
    code = example(name).read_text("utf-8")
    for old, new in changes.items():
        assert old in code
        code = code.replace(old, new)
    file = tmp_path / "variant.py"
    with gateway("serve", "replay:hermes+qwen3") as url:
        file.write_text(code.replace("http://127.0.0.1:8000", url), "utf-8")
        done = ran(file, tmp_path)
    assert (done.stdout, done.returncode) == (promised(file), 0), done.stderr
