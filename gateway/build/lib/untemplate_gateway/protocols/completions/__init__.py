"""OpenAI's older Completions (``/v1/completions``): a raw prompt in, the raw output out."""

from ..base import Dialect
from ..objects import error_object
from .request import CompletionsRequest, read_completions
from .response import CompletionsWriter, respond_completions

__all__ = ["COMPLETIONS", "CompletionsRequest", "CompletionsWriter", "read_completions"]

COMPLETIONS = Dialect(
    name="completions",
    request=CompletionsRequest,
    read=read_completions,
    respond=respond_completions,
    writer=CompletionsWriter,
    error=error_object,
)
