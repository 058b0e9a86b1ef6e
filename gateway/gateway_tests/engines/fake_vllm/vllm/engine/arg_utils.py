from dataclasses import dataclass


@dataclass
class AsyncEngineArgs:
    model: str = ""
    dtype: str = "auto"
    max_model_len: int | None = None
    gpu_memory_utilization: float = 0.9
    enforce_eager: bool = False
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_backend: str = "mp"
    trust_remote_code: bool = False
    reasoning_parser: str = ""
    seed: int = 0

    def __post_init__(self):
        assert not self.reasoning_parser
