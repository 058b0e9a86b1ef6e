"""vLLM's endpoint for tokens (``/inference/v1/generate``): token ids in, token ids out."""

from ..base import Dialect
from ..objects import error_object
from .request import FIELDS, TokensRequest, read_generate
from .response import GenerateWriter, respond_generate

__all__ = ["GENERATE", "GenerateWriter", "TokensRequest", "read_generate"]

GENERATE = Dialect(
    name="generate",
    request=TokensRequest,
    read=read_generate,
    respond=respond_generate,
    writer=GenerateWriter,
    error=error_object,
    fields=FIELDS,
)
