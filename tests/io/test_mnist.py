import gzip
import logging
import struct

import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.io import mnist


@pytest.fixture
def files(tmp_path):
    images = np.arange(120, dtype=np.uint8).reshape(10, 4, 3)
    (tmp_path / "images").write_bytes(struct.pack(">4I", 2051, 10, 4, 3) + images.tobytes())
    (tmp_path / "labels").write_bytes(struct.pack(">2I", 2049, 10) + bytes(range(10)))
    return {"image": str(tmp_path / "images"), "label": str(tmp_path / "labels"), "silent": True}


def labels(it):
    return [b.label[0].asnumpy().tolist() for b in it]


def test_values(files):
    it = mx.io.MNISTIter(batch_size=3, shuffle=False, **files)
    assert it.provide_data == [("data", (3, 1, 4, 3))] and it.provide_label == [("softmax_label", (3,))]
    batch = next(it)
    assert batch.data[0].asnumpy()[1, 0, 0].tolist() == [12 / 256, 13 / 256, 14 / 256]
    assert batch.data[0].dtype == np.float32
    it.reset()
    assert labels(it) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_flat_and_type(files):
    it = mx.io.MNISTIter(batch_size=3, shuffle=False, flat=True, dtype="float64", **files)
    assert it.provide_data == [("data", (3, 12))] and it.provide_data[0].dtype == np.float64
    assert next(it).data[0].asnumpy()[2, 11] == 35 / 256


def test_shuffle(files):
    it = mx.io.MNISTIter(batch_size=5, seed=3, **files)
    first = labels(it)
    assert sorted(sum(first, [])) == list(range(10)) and first != [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    it.reset()
    batch = next(it)
    assert (batch.data[0].asnumpy()[:, 0, 0, 0] * 256 == batch.label[0].asnumpy() * 12).all()
    assert labels(mx.io.MNISTIter(batch_size=5, seed=3, **files)) == first != labels(mx.io.MNISTIter(batch_size=5, seed=4, **files))


def test_parts(files):
    assert [labels(mx.io.MNISTIter(batch_size=3, shuffle=False, num_parts=3, part_index=i, **files)) for i in range(3)] == [
        [[0, 1, 2]], [[3, 4, 5]], [[6, 7, 8]]]


def test_compressed(files, tmp_path):
    with open(files["image"], "rb") as plain, gzip.open(tmp_path / "images.gz", "wb") as packed:
        packed.write(plain.read())
    it = mx.io.MNISTIter(batch_size=10, shuffle=False, **{**files, "image": str(tmp_path / "images.gz")})
    assert next(it).data[0].asnumpy()[9, 0, 3, 2] == 119 / 256


@pytest.mark.parametrize("name, content, message", [
    ("image", b"abc", "invalid mnist format: expected an idx file of unsigned bytes with 3 axes"),
    ("image", struct.pack(">4I", 2051, 10, 4, 3) + b"x" * 119, r"truncated: shape \(10, 4, 3\) needs 120 bytes after the header, the file has 119"),
    ("image", struct.pack(">4I", 2051, 2**32 - 1, 2**32 - 1, 2**32 - 1), "truncated"),
    ("label", struct.pack(">2I", 2049, 9) + b"x" * 9, "has 10 images and .* has 9 labels"),
    ("label", b"\x1f\x8bnonsense", "cannot be decompressed"),
])
def test_damaged(files, tmp_path, name, content, message):
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(MXNetError, match=message):
        mx.io.MNISTIter(**{**files, name: str(tmp_path / "bad")})


def test_invalid(files):
    with pytest.raises(MXNetError, match="10 images are fewer than batch_size=128"):
        mx.io.MNISTIter(**files)
    with pytest.raises(MXNetError, match="cannot open nowhere"):
        mx.io.MNISTIter(image="nowhere", label=files["label"])
    with pytest.raises(MXNetError, match="part_index must be from 0"):
        mx.io.MNISTIter(num_parts=2, part_index=2, **files)


def test_logging_can_be_set_up_afterwards(files, monkeypatch):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    mx.io.MNISTIter(batch_size=3, **{**files, "silent": False})
    assert not root.handlers  # with one `logging.basicConfig` would do nothing


def test_shuffled_order_is_mxnets():
    assert mnist.shuffled(10, 3) == [6, 5, 3, 0, 7, 8, 2, 4, 9, 1]
    assert mnist.shuffled(200, 0)[:12] == [199, 182, 31, 195, 14, 151, 58, 53, 146, 68, 165, 107]
    order = mnist.shuffled(60000, 1)  # numbers of the remainder, which are drawn anew, shift all that follows
    assert [i % 256 for i in order[:12]] == [31, 141, 156, 165, 86, 13, 207, 35, 243, 195, 79, 38] and sorted(order) == list(range(60000))
