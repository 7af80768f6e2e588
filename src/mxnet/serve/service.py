"""The common parts of the service's protocols: bodies of requests within limits, deadlines, and models."""
from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any

import anyio
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from .errors import RequestError, malformed
from .metrics import Metrics
from .repository import Repository, Served
from .settings import Settings

_MOST_PARTS = 64


class Service:
    """The state of a server.

    Attributes
    ----------
    repository : Repository
    stopping : bool
        Whether it is about to end: not ready, but answering.
    closing : bool
        Whether no more connections are taken, and those there are close with their next answer. Clients that are told so earlier would connect anew.
    """

    def __init__(self, repository: Repository, settings: Settings, metrics: Metrics) -> None:
        self.repository, self.limits, self.metrics, self._control = repository, settings.limits, metrics, settings.control
        self.stopping = self.closing = False
        self._memory = 0  # bytes of bodies
        self._decoders = concurrent.futures.ThreadPoolExecutor(2, "mxnet.serve.decoder")

    @property
    def ready(self) -> bool:
        """Return True once all models are loaded and warmed up, until the server begins to end."""
        return self.repository.loaded and not self.stopping

    def deadline(self, request: Request) -> float:
        """Return until when a request is to be answered, on the event loop's clock."""
        return request.scope["remex"].start + self.limits.timeout

    def served(self, request: Request, name: str, version: str | None = None) -> Served:
        """Return a version of a model for a request, which is counted as the model's; until it is answered, the model stays."""
        served, watch = self.repository.find(name, version), request.scope["remex"]
        if watch.served is not None:
            watch.served.users -= 1
        watch.served = served
        served.users += 1
        return served

    def require_control(self, request: Request) -> None:
        """Raise a `RequestError` (403) if this client may not load and unload models."""
        host = request.client.host if request.client else ""
        if self._control == "off" or self._control == "local" and host not in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
            raise RequestError(403, f"models are loaded and unloaded from this machine only (--control), received a request from {host}"
                               if self._control == "local" else f"models are not loaded and unloaded by requests (--control={self._control})")

    async def body(self, request: Request) -> bytes:
        """Return the body of a request.

        Raises
        ------
        RequestError
            If it is longer than allowed (413), compressed (415), incomplete when its time is up (408), or too much with the others' (429).
        """
        if request.headers.get("content-encoding", "identity") != "identity":
            raise RequestError(415, f"send the body uncompressed, without Content-Encoding; received {request.headers['content-encoding'][:40]!r}")
        announced = request.headers.get("content-length")
        if announced is not None and (not announced.isdigit() or len(announced) > 18 or int(announced) > self.limits.body):
            raise self._too_long()
        chunks: list[bytes] = []
        size = 0
        with anyio.CancelScope(deadline=self.deadline(request)) as scope:
            async for chunk in request.stream():
                size += len(chunk)
                if size > self.limits.body:
                    raise self._too_long()
                self._take(request, len(chunk))
                chunks.append(chunk)
        if scope.cancelled_caught:
            raise RequestError(408, f"the body did not come within {self.limits.timeout:g} s", {"Connection": "close"})
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _too_long(self) -> RequestError:
        return RequestError(413, f"a body of at most {self.limits.body} bytes is taken", {"Connection": "close"})

    def _take(self, request: Request, size: int) -> None:
        if self._memory + size > self.limits.memory:
            raise RequestError(429, f"the bodies of all requests together are too large: {self._memory + size} bytes, at most "
                               f"{self.limits.memory} are taken", {"Retry-After": "1", "Connection": "close"})
        self._memory += size
        request.scope["remex"].memory += size
        self.metrics.memory.set(self._memory)

    def release(self, size: int) -> None:
        """Give back what the body of a request took, once it is answered."""
        self._memory -= size
        self.metrics.memory.set(self._memory)

    async def parts(self, request: Request, body: bytes) -> dict[str, tuple[str, bytes]]:
        """Return the parts of a multipart body by name: their types, in lower case and without parameters, and contents.

        Raises
        ------
        RequestError
            If it can't be read (400).
        """
        async def stream() -> Any:
            yield body

        parser = MultiPartParser(request.headers, stream(), max_files=_MOST_PARTS, max_fields=_MOST_PARTS, max_part_size=self.limits.body)
        try:
            form = await parser.parse()
        except (MultiPartException, KeyError, LookupError, ValueError) as error:  # without a boundary, or in a character set that nobody knows
            raise malformed(f"the multipart body can't be read: {str(error)[:200]}") from None
        try:
            found = {}
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    found[name] = media_type(value.content_type), await value.read()
                else:
                    found[name] = "", value.encode("utf-8", "surrogatepass")
            return found
        finally:
            await form.close()

    async def decode(self, served: Served, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function makes of a body, in a thread: images take long. Those that are being decoded count as waiting."""
        served.batcher.refuse_if_full(served.decoding)
        served.decoding += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._decoders, function, *arguments)
        finally:
            served.decoding -= 1

    async def close(self) -> None:
        """Answer everything and end all threads."""
        await self.repository.close()
        self._decoders.shutdown()


def media_type(header: str | None) -> str:
    """Return the type in a Content-Type header, in lower case and without parameters."""
    return (header or "").partition(";")[0].strip().lower()
