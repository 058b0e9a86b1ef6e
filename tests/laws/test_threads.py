"""One parser in many threads: streams share no mutable state."""

from __future__ import annotations

import threading
from typing import Any

from untemplate import OutputParser


def test_64_threads_share_one_parser() -> None:
    """Each thread gets the same answers as alone (vllm#34932: 38 % success at 150 workers)."""
    parser = OutputParser.named("qwen3_coder", reasoning="qwen3")
    outputs = [
        f"<think>{i}</think>Look.\n<tool_call>\n<function=f{i}>\n<parameter=n>\n{i}\n</parameter>\n</function>\n</tool_call>"
        for i in range(64)
    ]
    alone = [parser.parse(raw, seed=i) for i, raw in enumerate(outputs)]
    together: list[Any] = [None] * len(outputs)
    start = threading.Barrier(len(outputs))

    def work(i: int) -> None:
        start.wait()
        for _ in range(5):
            stream = parser.stream(seed=i, collect=True)
            for c in outputs[i]:
                stream.feed(c)
            stream.finish()
            together[i] = stream.result()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(outputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
