"""The service as an ASGI application."""
from __future__ import annotations

import asyncio
import logging
import time
import urllib.parse
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import page, predictions, v2
from .errors import RequestError
from .repository import Served
from .service import Service

_log = logging.getLogger("mxnet.serve")
_access = logging.getLogger("mxnet.serve.access")
_ROUTES = ("/v2", "/predictions", "/invocations", "/ping", "/metrics")  # what metrics tell apart; clients can't add to them


def application(service: Service) -> ASGIApp:
    """Return the application with all faces of a service."""
    app = Starlette(routes=[*v2.routes(service), *predictions.routes(service), *page.routes(service)],
                    exception_handlers={RequestError: _refused, HTTPException: _refused, ClientDisconnect: _gone})
    app.router.redirect_slashes = False
    return Watched(app, service)


def _refused(request: Request, error: Any) -> Response:
    """Return an error in the form of the face that it belongs to."""
    status = error.status if isinstance(error, RequestError) else error.status_code
    message = error.message if isinstance(error, RequestError) else f"{error.detail}: {request.method} {request.url.path[:200]}"
    content = {"error": message} if request.url.path.startswith("/v2") else {"code": status, "type": type(error).__name__, "message": message}
    return JSONResponse(content, status, headers=error.headers)


def _gone(request: Request, error: Any) -> Response:
    return Response(status_code=499)  # nobody reads it


class Watch:
    """The record of a request that is being answered: when it began, the bytes of its body, the model, and the response's status and size.

    It began at `start` on the event loop's clock, which deadlines are on, and at `began` on a finer one.
    """

    __slots__ = ("start", "began", "memory", "served", "status", "sent")

    def __init__(self, start: float) -> None:
        self.start, self.began, self.memory, self.status, self.sent = start, time.perf_counter(), 0, 0, 0
        self.served: Served | None = None


class Watched:
    """Around the application: times, counts and logs requests, answers failures with 500, and closes connections in the end."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":  # uvicorn is told to keep WebSockets and the lifespan to itself
            raise RuntimeError(f"an HTTP request is expected, received {scope['type']}")
        watch = scope["remex"] = Watch(asyncio.get_running_loop().time())

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                watch.status = message["status"]
                if self._service.closing:
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            else:
                watch.sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            _log.exception("%s %s failed", scope["method"], scope["path"][:200])
            if not watch.status:
                await JSONResponse({"error": "the server failed; its log says why"}, 500)(scope, receive, watched)
        finally:
            self._service.release(watch.memory)
            if watch.served is not None:
                watch.served.users -= 1
            self._count(scope, watch, time.perf_counter() - watch.began)

    def _count(self, scope: Scope, watch: Watch, seconds: float) -> None:
        path, name = scope["path"], watch.served.source.name if watch.served is not None else ""
        route = next((r for r in _ROUTES if path == r or path.startswith(r + "/")), "/")
        self._service.metrics.requests.labels(route, name, str(watch.status)).inc()
        if watch.served is not None and watch.status == 200 and scope["method"] != "GET":
            watch.served.metrics.latency.observe(seconds)
        if _access.isEnabledFor(logging.INFO):
            client = scope.get("client") or ("-",)
            _access.info('%s "%s %s" %d %d %.1f ms', client[0], scope["method"], urllib.parse.quote(path[:500]), watch.status, watch.sent,
                         seconds * 1e3)
