import asyncio
from dataclasses import dataclass, field
from typing import Any


class EngineDeadError(Exception):
    pass


class EngineGenerateError(Exception):
    pass


class VLLMClientError(Exception):
    pass


@dataclass
class Logprob:
    logprob: float
    decoded_token: str | None


@dataclass
class Completion:
    text: str
    token_ids: list[int]
    finish_reason: str | None = None
    logprobs: Any = None


@dataclass
class Output:
    outputs: list[Completion]
    prompt_token_ids: list[int]
    num_cached_tokens: int | None = None


class Tokenizer:
    chat_template = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"
    bos_token = "<s>"
    eos_token = None

    def get_vocab(self):
        return {"<s>": 0, "<think>": 1, "</think>": 2, **{chr(i): i for i in range(32, 127)}}

    def encode(self, text, add_special_tokens=True, split_special_tokens=False):
        ids, special = [], {"<s>": 0, "<think>": 1, "</think>": 2}
        while text:
            name = None if split_special_tokens else next((n for n in special if text.startswith(n)), None)
            ids.append(special[name] if name else ord(text[0]))
            text = text[len(name) if name else 1 :]
        return [0] * add_special_tokens + ids

    def decode(self, ids, skip_special_tokens=True):
        return "".join({0: "<s>", 1: "<think>", 2: "</think>"}.get(i, chr(i)) for i in ids)


@dataclass
class Config:
    max_model_len: int = 128

    def get_diff_sampling_param(self):
        return {"temperature": 0.6, "max_tokens": 9}


@dataclass
class AsyncLLM:
    arguments: Any
    model_config: Config = field(default_factory=Config)
    script: list[Any] = field(default_factory=list)
    """The outputs: completions, or exceptions; ``None`` waits for ever."""
    requests: list[Any] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    dead: bool = False
    closed: int = 0

    @property
    def errored(self):
        return self.dead

    @classmethod
    def from_engine_args(cls, arguments):
        if arguments.model == "too/big":
            raise RuntimeError("CUDA out of memory")
        return cls(arguments)

    async def get_tokenizer(self):
        return Tokenizer()

    async def check_health(self):
        if self.dead:
            raise EngineDeadError("EngineCore encountered an issue")

    async def abort(self, request_id):
        self.aborted.append(request_id)

    def shutdown(self):
        self.closed += 1

    async def generate(self, prompt, sampling_params, request_id):
        self.requests.append((prompt, sampling_params, request_id))
        for one in self.script:
            if one is None:
                await asyncio.sleep(60)
            if isinstance(one, Exception):
                raise one
            yield Output([one], prompt["prompt_token_ids"], 2)
