"""OpenAI's Responses (``/v1/responses``)."""

from ..base import Dialect
from ..objects import error_object
from .request import ResponsesRequest, read_responses
from .response import ResponsesWriter, respond_responses

RESPONSES = Dialect(
    name="responses",
    request=ResponsesRequest,
    read=read_responses,
    respond=respond_responses,
    writer=ResponsesWriter,
    error=error_object,
    fields={
        "messages": "input",
        "response_format": "text.format",
        "reasoning_effort": "reasoning.effort",
        "logprobs": "include",
    },
)
