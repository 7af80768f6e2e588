"""The server's process: uvicorn, signals, and a graceful end."""
from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..base import MXNetError
from .app import application
from .metrics import Metrics
from .repository import Repository
from .service import Service
from .settings import Limits, Settings

_log = logging.getLogger("mxnet.serve")
_QUIET = 1.0  # seconds in which no request comes before connections without one are closed
_HEAD_TIMEOUT, _KEEP_ALIVE = 15, 65  # seconds; load balancers keep connections for 60
_SO_ATTACH_FILTER = 26  # Linux; Python has no name for it


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits of a request's head: in bytes (431), and in time."""

    most_bytes = Limits.headers

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes, self._in_head = 0, False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(_HEAD_TIMEOUT, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request; those of its head are counted."""
        counted = self._in_head or self.cycle is None  # else a head may begin somewhere in these bytes, behind a body
        super().data_received(data)
        self._head_bytes += len(data) if counted and self._in_head else 0
        if self._head_bytes > self.most_bytes and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request's head."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        if self._timer is None:
            self._timer = self.loop.call_later(_HEAD_TIMEOUT, self.timeout_keep_alive_handler)

    def on_headers_complete(self) -> None:
        """End a request's head."""
        self._in_head, self._head_bytes = False, 0
        self._stop_timer()
        super().on_headers_complete()


class _Uvicorn(uvicorn.Server):
    """uvicorn without its handlers of signals, which end the process by the signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """A service on a socket.

    Parameters
    ----------
    settings : Settings
    announce : callable
        Is told the server's address when it listens, and again when it is ready.
    """

    def __init__(self, settings: Settings, announce: Callable[[str], None] = _log.info) -> None:
        self._settings, self._announce = settings, announce

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT; return the exit status: 0, or 1 if a model could not be loaded."""
        try:
            import uvloop
        except ImportError:  # not for all systems
            return asyncio.run(self._serve())
        return uvloop.run(self._serve())

    async def _serve(self) -> int:
        metrics = Metrics()
        service = Service(Repository(self._settings, metrics), self._settings, metrics)
        listening = _listening(self._settings.host, self._settings.port)
        host, port = listening.getsockname()[:2]
        address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        limits = self._settings.limits
        Protocol.most_bytes = limits.headers
        config = uvicorn.Config(application(service), http=Protocol, ws="none", lifespan="off", log_config=None, access_log=False,
                                server_header=False, limit_concurrency=limits.connections, timeout_keep_alive=_KEEP_ALIVE)
        server = _Uvicorn(config)
        stop = asyncio.Event()
        reload = asyncio.Event()
        self._handle_signals(stop, reload)
        serving = asyncio.create_task(server.serve([listening]))
        while not (server.started or serving.done()):
            await asyncio.sleep(0.01)
        loading = asyncio.create_task(self._load(service, address, stop))
        reloading = asyncio.create_task(_reload(service, reload))
        self._announce(f"listening on {address}")
        await asyncio.wait([asyncio.create_task(stop.wait()), serving], return_when=asyncio.FIRST_COMPLETED)
        service.stopping = True
        await asyncio.sleep(self._settings.grace)
        service.closing = True
        await _stop_accepting(server, listening)
        await _drained(server)
        server.should_exit = True
        await serving
        reloading.cancel()
        loading.cancel()
        failed = (await asyncio.gather(loading, return_exceptions=True))[0]
        await service.close()
        return 1 if failed is False else 0

    async def _load(self, service: Service, address: str, stop: asyncio.Event) -> bool:
        try:
            await service.repository.start()
        except Exception as error:
            _log.error("%s", error, exc_info=not isinstance(error, MXNetError))
            stop.set()
            return False
        self._announce(f"ready: {', '.join(service.repository.models)} on {address}")
        return True

    @staticmethod
    def _handle_signals(stop: asyncio.Event, reload: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        for name, event in (("SIGTERM", stop), ("SIGINT", stop), ("SIGHUP", reload)):
            number = getattr(signal, name, None)
            if number is not None:
                try:
                    loop.add_signal_handler(number, event.set)
                except NotImplementedError:  # Windows
                    signal.signal(number, lambda *_, event=event: loop.call_soon_threadsafe(event.set))


async def _reload(service: Service, reload: asyncio.Event) -> None:
    while True:
        await reload.wait()
        reload.clear()
        try:
            await service.repository.rescan()
        except MXNetError as error:
            _log.error("reloading: %s", error)


async def _stop_accepting(server: uvicorn.Server, listening: socket.socket) -> None:
    """Close the listening socket without a loss: what has connected by now is accepted, and nobody connects from now on."""
    if _drop_handshakes(listening):
        for _ in range(10):  # in each of which the loop looks who has connected
            await asyncio.sleep(0.01)
    for accepting in server.servers:
        accepting.close()


def _drop_handshakes(listening: socket.socket) -> bool:
    """Have the kernel drop what begins a connection, and return whether it can: a socket that closes resets connections that it has not accepted.

    Whoever is dropped tries again after a second, and is refused by then.
    """
    if sys.platform != "linux":
        return False
    # Load the flags of the TCP header; drop the packet if SYN is one of them, else keep all of it.
    instructions = [(0x30, 0, 0, 13), (0x45, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in instructions))
    try:
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(instructions), ctypes.addressof(program)))
    except OSError:  # a sandbox
        return False
    return True


async def _drained(server: uvicorn.Server) -> None:
    """Wait until connections are quiet: a client may be sending a request on one that is idle, and uvicorn would close that at once."""
    last, quiet_since = -1, asyncio.get_running_loop().time()
    while server.server_state.connections and asyncio.get_running_loop().time() - quiet_since < _QUIET:
        state = server.server_state
        if state.tasks or state.total_requests != last:
            last, quiet_since = state.total_requests, asyncio.get_running_loop().time()
        await asyncio.sleep(0.01)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048, reuse_port=False)
    except OSError as error:
        raise MXNetError(f"can't listen on {host}, port {port}: {error.strerror or error}") from error
