import contextlib
import json
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from multiprocessing.connection import Listener

import pytest
import torch

from mxnet import MXNetError
from mxnet.kvstore import messages


def carried(head, tensors, **options):
    here, there = Pipe()
    sender = threading.Thread(target=messages.send, args=(here, head, tensors))
    sender.start()
    try:
        return messages.receive(there, **options)
    finally:
        sender.join()


def test_what_is_sent_arrives():
    tensors = [torch.arange(6.0).view(2, 3).t(), torch.tensor(3, dtype=torch.int64), torch.empty(0, 4), torch.tensor([1.5], dtype=torch.bfloat16),
               torch.ones(70000, dtype=torch.uint8)]
    head, found = carried({"do": "push", "keys": [["w", 1]]}, tensors)
    assert head == {"do": "push", "keys": [["w", 1]]}
    assert all(a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all()) for a, b in zip(found, tensors, strict=True))


def test_both_sides_send_small_parts_at_once():
    with Listener(("127.0.0.1", 0), authkey=b"key") as listener, ThreadPoolExecutor() as pool:
        accepted = pool.submit(messages.accept, listener)
        with messages.connect(listener.address, b"key") as here, accepted.result() as there:
            for connection in here, there:
                with socket.socket(fileno=os.dup(connection.fileno())) as same:
                    assert same.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
            messages.send(here, {}, [torch.ones(1)])
            assert messages.receive(there) == ({}, [torch.ones(1)])


@pytest.mark.parametrize("tensors, reason", [
    ([["float32", [1 << 50]]], "the sizes of its tensors are out of range"),
    ([["float32", [-1]]], "the sizes of its tensors are out of range"),
    ([["float32", [0.5]]], "the sizes of its tensors are out of range"),
    ([["object", [1]]], "KeyError"),
    ([["float32"]], "not enough values to unpack"),
    (7, "TypeError"),
])
def test_hostile_sizes_are_refused_before_anything_is_read(tensors, reason):
    here, there = Pipe()
    here.send_bytes(json.dumps({"tensors": tensors}).encode())
    with pytest.raises(MXNetError, match=f"a message of another process of the job is malformed: .*{reason}"):
        messages.receive(there)


@pytest.mark.parametrize("line", [b"[]", b"{", b"{}", b"\xff"])
def test_lines_that_are_none(line):
    here, there = Pipe()
    here.send_bytes(line)
    with pytest.raises(MXNetError, match="is malformed"):
        messages.receive(there)


def test_long_lines_and_wrong_lengths():
    here, there = Pipe()

    def send():
        with contextlib.suppress(OSError):  # nobody reads to the end
            here.send_bytes(bytes(2 << 20))
    threading.Thread(target=send).start()
    with pytest.raises(MXNetError, match="longer than the 1048576 bytes expected"):
        messages.receive(there)
    for content, reason in ((bytes(3), "3 bytes came for a tensor of 4"), (bytes(5), "longer than the 4 bytes expected")):
        here, there = Pipe()
        here.send_bytes(json.dumps({"tensors": [["float32", [1]]]}).encode())
        here.send_bytes(content)
        with pytest.raises(MXNetError, match=reason):
            messages.receive(there)
    with pytest.raises(MXNetError, match="out of range"):
        carried({}, [torch.ones(2)], largest=7)
    with pytest.raises(MXNetError, match="a message between worker and server must be shorter than 1048576 bytes"):
        messages.send(here, {"keys": ["w" * (1 << 20)]})
