"""Requests that are answered with an error."""
from __future__ import annotations

from ..base import MXNetError


class RequestError(MXNetError):
    """The reason why a request is not served.

    Parameters
    ----------
    status : int
        HTTP's status, such as 400.
    message : str
        What was expected, and what came.
    headers : dict of str to str, optional
        Further headers of the response, such as ``Retry-After``.

    Example
    -------
    >>> from mxnet.serve.errors import RequestError
    >>> RequestError(404, "there is no model 'a'").status
    404
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


def malformed(message: str) -> RequestError:
    """Return the error for a request that can't be read or does not fit the model (status 400)."""
    return RequestError(400, message)
