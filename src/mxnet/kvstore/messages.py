"""The messages of workers and servers: a line of JSON, then the bytes of tensors, over the connections of `multiprocessing.connection`.

`torch.distributed.rpc` is not used: its TensorPipe is not maintained any more, and it unpickles received data, which may execute any code. Nor are
Gloo's messages, where one lost worker ends the waiting for all others. A connection of Python's library authenticates with the key of the job,
frames messages, and refuses those that are longer than expected; nothing here is unpickled.
"""
from __future__ import annotations

import json
import math
import os
import socket
from collections.abc import Sequence
from multiprocessing.connection import Client
from typing import TYPE_CHECKING, Any

import torch

from ..base import MXNetError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection, Listener

_HEAD = 1 << 20  # the longest line
_DTYPES = {name: getattr(torch, name) for name in ("float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool")}
#: The maximal bytes of a tensor without an expected size; keys are divided at far smaller sizes.
LARGEST = 1 << 40


def connect(address: tuple[str, int], key: bytes) -> Connection:
    """Return a connection over TCP to the listener with this address and key."""
    return _undelayed(Client(address, "AF_INET", authkey=key))


def accept(listener: Listener) -> Connection:
    """Wait for the next connection to a listener, and return it."""
    return _undelayed(listener.accept())


def _undelayed(connection):
    # Otherwise a tensor is sent when the other side has confirmed its line, 40 ms later.
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def send(connection: Connection, head: Any, tensors: Sequence[torch.Tensor] = ()) -> None:
    """Send a dict, followed by tensors."""
    tensors = [t.detach().to("cpu").contiguous() for t in tensors]
    described = [[str(t.dtype).removeprefix("torch."), list(t.shape)] for t in tensors]
    line = json.dumps({**head, "tensors": described}).encode()
    if len(line) > _HEAD:
        raise MXNetError(f"a message between worker and server must be shorter than {_HEAD} bytes, this one has {len(line)}: name fewer keys at a "
                         "time")
    connection.send_bytes(line)
    for tensor in tensors:
        if tensor.numel():
            connection.send_bytes(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()))


def receive(connection: Connection, largest: int = LARGEST) -> tuple[Any, list[torch.Tensor]]:
    """Receive the next message, and return ``(dict, tensors)``.

    Raises
    ------
    MXNetError
        If it is malformed, or its tensors have over `largest` bytes together; the connection is unusable then.
    EOFError, OSError
        If the other side is gone.
    """
    line = _bytes(connection, _HEAD)
    try:
        head = json.loads(line)
        described = [(_DTYPES[name], tuple(shape)) for name, shape in head.pop("tensors")]
        sizes = [math.prod(shape) * dtype.itemsize for dtype, shape in described]
        if not all(isinstance(n, int) and n >= 0 for _, shape in described for n in shape) or sum(sizes) > largest:
            raise ValueError(f"the sizes of its tensors are out of range: {described!r:.100}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MXNetError(f"a message of another process of the job is malformed: {error!r:.200}") from None
    tensors = []
    for (dtype, shape), size in zip(described, sizes):
        content = bytearray(_bytes(connection, size)) if size else bytearray()
        if len(content) != size:
            raise MXNetError(f"a message of another process of the job is malformed: {len(content)} bytes came for a tensor of {size}")
        tensors.append(torch.frombuffer(content, dtype=dtype).view(shape) if size else torch.empty(shape, dtype=dtype))
    return head, tensors


def _bytes(connection, longest):
    # Longer messages are refused before they are read, and memory grows only with the received bytes.
    try:
        return connection.recv_bytes(longest)
    except OSError as error:
        if "bad message length" in str(error):
            raise MXNetError(f"a message of another process of the job is longer than the {longest} bytes expected") from None
        raise
