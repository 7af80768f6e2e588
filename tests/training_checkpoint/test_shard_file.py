import errno
import json
import os
import struct

import pytest
import torch

from mxnet import MXNetError
from mxnet.training_checkpoint import shard_file


def _write(path):
    tensors = [("a", (2, 2), torch.arange(4.0)), ("b", (3,), torch.tensor([1, 2, 3], dtype=torch.bfloat16)), ("c", (0,), torch.zeros(0))]
    return shard_file.write(str(path), tensors, {"about": "me"})


def test_a_file_is_one_of_safetensors(tmp_path):
    package = pytest.importorskip("safetensors.torch")
    _write(tmp_path / "a.safetensors")
    found = package.load_file(str(tmp_path / "a.safetensors"))
    assert found["a"].tolist() == [[0, 1], [2, 3]] and found["b"].tolist() == [1, 2, 3] and found["c"].shape == (0,)


def test_parts_are_read(tmp_path):
    size = _write(tmp_path / "a")
    metadata, places = shard_file.read_header(str(tmp_path / "a"), size)
    assert metadata == {"about": "me"} and size == (tmp_path / "a").stat().st_size
    target = torch.zeros(2)
    with open(tmp_path / "a", "rb") as file:
        shard_file.read_into(file, places["a"], 1, target)
        assert target.tolist() == [1, 2]
        half = torch.zeros(2, dtype=torch.bfloat16)
        shard_file.read_into(file, places["b"], 1, half)
    assert half.tolist() == [2, 3]


@pytest.mark.parametrize("header, text", [
    (b"{", "JSONDecodeError"), (b"[]", "damaged"), (b"{}", "KeyError: '__metadata__'"), (b"[" * 100000, "RecursionError"),
    ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, "a tensor of shape .2. is not from byte 0 to 4"),
    ({"a": {"dtype": "F32", "shape": [1 << 70], "data_offsets": [0, 1 << 72]}}, "is not from byte 0 to"),
    ({"a": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}}, "is no shape"),
    ({"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}, "KeyError: 'F99'"),
    ({"a": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}, "is not from byte -4 to 0"),
])
def test_damaged_headers(tmp_path, header, text):
    if isinstance(header, dict):
        header = json.dumps({"__metadata__": {}, **header}).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(16)
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(MXNetError, match=text):
        shard_file.read_header(str(tmp_path / "a"), len(content))


def test_a_header_longer_than_the_file_is_not_allocated(tmp_path):
    (tmp_path / "a").write_bytes(struct.pack("<Q", 1 << 62) + bytes(8))
    with pytest.raises(MXNetError, match="is damaged: it has 16 bytes of 16"):
        shard_file.read_header(str(tmp_path / "a"), 16)
    with pytest.raises(MXNetError, match="is damaged: it has 16 bytes of 20"):
        shard_file.read_header(str(tmp_path / "a"), 20)


def test_types_that_files_do_not_have(tmp_path):
    with pytest.raises(MXNetError, match="received torch.complex64 of 'a'"):
        shard_file.write(str(tmp_path / "a"), [("a", (1,), torch.zeros(1, dtype=torch.complex64))], {})


@pytest.mark.parametrize("refusal", ["none", "unknown", "opening", "writing"])
def test_files_of_several_blocks(tmp_path, monkeypatch, refusal):
    """With direct writes, and where the system has none, or the file system refuses to open or to write so."""
    direct = getattr(os, "O_DIRECT", 0)
    if refusal == "unknown":
        monkeypatch.delattr(os, "O_DIRECT", raising=False)
    refused = []

    def refuse(function, when):
        def call(*arguments):
            if when(*arguments) and not refused:
                refused.append(arguments)
                raise OSError(errno.EINVAL, "refused")
            return function(*arguments)
        return call
    if refusal == "opening":
        monkeypatch.setattr(os, "open", refuse(os.open, lambda path, flags, *mode: flags & direct))
    if refusal == "writing":
        monkeypatch.setattr(os, "write", refuse(os.write, lambda file, content: True))
    values = torch.arange(9 << 20, dtype=torch.int32).to(torch.uint8)[:(9 << 20) - 3]
    path = str(tmp_path / "a")
    size = shard_file.write(path, [("a", (len(values),), values), ("b", (1,), torch.tensor([7.0]))], {})
    assert len(refused) == (direct != 0 and refusal in ("opening", "writing"))
    assert size == os.path.getsize(path)
    _, places = shard_file.read_header(path, size)
    found, last = torch.empty_like(values), torch.empty(1)
    with open(path, "rb") as file:
        shard_file.read_into(file, places["a"], 0, found)
        shard_file.read_into(file, places["b"], 0, last)
    assert torch.equal(found, values) and last.tolist() == [7]
    with pytest.raises(MXNetError):  # an existing file is not overwritten
        shard_file.write(path, [], {})
