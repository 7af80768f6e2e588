"""The limits of the service: sizes, times, and the batching of requests."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..context import Context, cpu

if TYPE_CHECKING:
    from .tensors import TensorSpec


@dataclass(frozen=True)
class Limits:
    """Bounds of what one request, and all of them together, may take.

    Attributes
    ----------
    body : int
        Bytes of one request's body (413 beyond).
    json : int
        Bytes of JSON in it, which Python holds in up to 30 times the memory (413 beyond).
    memory : int
        Bytes of all bodies that are being received or wait for an answer (429 beyond).
    tensors : int
        Inputs, and named outputs, of one request.
    queue : int
        Requests of one model that wait or are being decoded (429 beyond).
    pixels : int
        Height times width of an image.
    timeout : float
        Seconds from a request's first byte to its answer (408 while its body is incomplete, 504 after that).
    headers : int
        Bytes of a request's line and headers.
    connections : int
        Open connections (503 beyond).
    archive : int
        Bytes of an unpacked model archive.
    """

    body: int = 64 << 20
    json: int = 16 << 20
    memory: int = 1 << 30
    tensors: int = 64
    queue: int = 256
    pixels: int = 32_000_000
    timeout: float = 30.0
    headers: int = 64 << 10
    connections: int = 1024
    archive: int = 8 << 30


@dataclass(frozen=True)
class Batching:
    """The choice of the size of batches.

    Attributes
    ----------
    bound : float
        Seconds in which a request is to be answered that finds one batch running and no queue: two batches fit into it.
    largest : int
        The most rows of a batch, whatever the bound allows; 1 turns batching off.
    """

    bound: float = 0.1
    largest: int = 64


@dataclass(frozen=True)
class Settings:
    """The settings of a server: its models and limits.

    Attributes
    ----------
    models : list of str
        As `sources.discover` takes them.
    declared : list of (str or None, TensorSpec)
        Inputs that the command line gives, of the model of that name or of all.
    ctx : Context
        Where networks run.
    host : str
    port : int
        0 takes a free one.
    limits : Limits
    batching : Batching
    allow_code : bool
        Run handlers of archives.
    control : str
        Who may load and unload models by requests: ``local`` (clients on this machine), ``any`` or ``off``.
    grace : float
        Seconds for which new connections are taken after SIGTERM, while the server says that it is not ready.
    """

    models: list[str]
    declared: list[tuple[str | None, TensorSpec]] = field(default_factory=list)
    ctx: Context = field(default_factory=cpu)
    host: str = "127.0.0.1"
    port: int = 8080
    limits: Limits = Limits()
    batching: Batching = Batching()
    allow_code: bool = False
    control: str = "local"
    grace: float = 0.0
