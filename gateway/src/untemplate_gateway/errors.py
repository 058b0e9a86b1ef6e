"""Errors that clients see.

Every failure reaches the client as an `ApiError`, which each dialect writes in its own shape. Its message contains no
internal detail; what only the operator should see is in ``detail``, which is logged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from untemplate.errors import UntemplateError


class ApiError(UntemplateError):
    """A request that fails.

    Args:
        status: the HTTP status.
        message: for people; names the field and the valid values.
        type: OpenAI's type (``invalid_request_error`` …).
        param: the path of the field that is wrong (``messages[0].role``).
        code: a stable slug (``model_not_found`` …).
        headers: further headers of the response (``Retry-After``).
        detail: for the log only.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        self.code = code
        self.headers = headers or {}
        self.detail = detail

    def renamed(self, names: Mapping[str, str]) -> ApiError:
        """Return the error with the client's name of the field instead of the gateway's own.

        Args:
            names: own name → the client's. Where they differ, places inside the field do not match and are left out.
        """
        head = re.match(r"\w*", self.param or "")
        name = names.get(head[0]) if head is not None else None
        if name is not None and self.param is not None:
            if self.message.startswith(f"{self.param}: "):
                self.message = name + self.message[len(self.param) :]
            self.param = name
        return self


class EngineError(ApiError):
    """A failure of the engine or the upstream; the request may have been valid."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 502,
        code: str | None = None,
        headers: dict[str, str] | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(
            status, message, type="server_error", code=code or "engine_error", headers=headers, detail=detail
        )


def bad_request(param: str | None, message: str, *, code: str | None = None) -> ApiError:
    """Return the error for an invalid field."""
    return ApiError(400, f"{param}: {message}" if param else message, param=param, code=code)


def unsupported(param: str, why: str = "is not supported") -> ApiError:
    """Return the error for a field that this model or engine cannot follow."""
    return ApiError(400, f"{param}: {why}", param=param, code="unsupported_parameter")


def not_found(message: str, *, code: str = "not_found", param: str | None = None) -> ApiError:
    """Return the error for something that does not exist."""
    return ApiError(404, message, type="not_found_error", param=param, code=code)


def overloaded(problem: str, wait: int = 1, *, code: str = "overloaded") -> ApiError:
    """Return the error for a limit that has been reached.

    Args:
        wait: seconds to the next attempt.
    """
    headers = {"Retry-After": str(wait)}
    return ApiError(429, f"{problem}; try again", type="rate_limit_error", code=code, headers=headers)


def shutting_down() -> ApiError:
    """Return the error for a request that comes, or still runs, when the server ends."""
    problem, headers = "the server is shutting down", {"Retry-After": "5"}
    return ApiError(503, problem, type="server_error", code="shutting_down", headers=headers)


def client_left() -> ApiError:
    """Return the error for a request whose client is gone; only the log has it."""
    return ApiError(499, "the client closed the connection")


def took_too_long(seconds: float) -> ApiError:
    """Return the error for a request that reaches ``request_timeout``."""
    return ApiError(504, f"the request took longer than {seconds:g} seconds", type="server_error", code="timeout")


def not_loaded(name: str) -> ApiError:
    """Return the error for a model whose engine could not be started."""
    problem = f"the model {name!r} could not be loaded; the server's log has the reason"
    return ApiError(503, problem, type="server_error", code="model_not_loaded", headers={"Retry-After": "10"})
