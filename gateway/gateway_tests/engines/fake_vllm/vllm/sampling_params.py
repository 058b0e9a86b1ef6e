from dataclasses import dataclass
from enum import Enum
from typing import Any


class RequestOutputKind(Enum):
    CUMULATIVE = 0
    DELTA = 1


@dataclass
class StructuredOutputsParams:
    structural_tag: str | None = None


@dataclass
class SamplingParams:
    max_tokens: int | None = 16
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    logprobs: int | None = None
    logit_bias: dict[int, float] | None = None
    structured_outputs: StructuredOutputsParams | None = None
    unknown: Any = None
