import pickle
import struct

import numpy as np
import pytest

import mxnet as mx

# Written by MXNet 1.9.1: nd.save(f, {'a': [[1, 2], [3, 4]] float32, 'b': [5, 6] int64}).
NAMED = bytes.fromhex(
    "120100000000000000000000000000000200000000000000c9fa93f90000000002000000020000000000000002000000000000000100000000000000000000000000"
    "803f000000400000404000008040c9fa93f90000000001000000020000000000000001000000000000000600000005000000000000000600000000000000020000"
    "0000000000010000000000000061010000000000000062")
# Written by MXNet 1.9.1: [csr of [[0, 2], [3, 0], [0, 0]], row_sparse of [[0, 0], [3, 4]]].
SPARSE = bytes.fromhex(
    "120100000000000000000000000000000200000000000000c9fa93f90200000001000000020000000000000002000000030000000000000002000000000000000100"
    "0000000000000000000006000000010000000400000000000000060000000100000002000000000000000000004000004040000000000000000001000000000000"
    "000200000000000000020000000000000001000000000000000000000000000000c9fa93f901000000020000000100000000000000020000000000000002000000"
    "020000000000000002000000000000000100000000000000000000000600000001000000010000000000000000004040000080400100000000000000"
    "0000000000000000")
# pickle.dumps(mx.nd.array([1.5]), 2) of MXNet 1.9.1.
PICKLE = bytes.fromhex(
    "8002636d786e65742e6e6461727261792e6e6461727261790a4e4441727261790a71004e8571015271027d7103580600000068616e646c657104635f5f6275696c74"
    "696e5f5f0a6279746561727261790a7105635f636f646563730a656e636f64650a71065829000000c389c3bac293c3b90000000001000000010000000000000001"
    "00000000000000000000000000c3803f710758060000006c6174696e31710886710952710a85710b52710c73622e")


def test_writes_the_bytes_of_mxnet(tmp_path):
    f = str(tmp_path / "x.params")
    mx.nd.save(f, {"a": mx.nd.array([[1, 2], [3, 4]]), "b": mx.nd.array([5, 6], dtype="int64")})
    assert (tmp_path / "x.params").read_bytes() == NAMED


def test_writes_sparse_arrays_as_mxnet_does(tmp_path):
    f = str(tmp_path / "x.params")
    mx.nd.save(f, [mx.nd.array([[0, 2], [3, 0], [0, 0]]).tostype("csr"), mx.nd.array([[0, 0], [3, 4]]).tostype("row_sparse")])
    assert (tmp_path / "x.params").read_bytes() == SPARSE


def test_reads_what_mxnet_wrote():
    arrays = mx.nd.load_frombuffer(NAMED)
    assert list(arrays) == ["a", "b"]
    np.testing.assert_array_equal(arrays["a"].asnumpy(), [[1, 2], [3, 4]])
    assert arrays["b"].dtype is np.int64 and arrays["b"].asnumpy().tolist() == [5, 6]
    csr, rows = mx.nd.load_frombuffer(SPARSE)
    assert (csr.stype, rows.stype) == ("csr", "row_sparse")
    np.testing.assert_array_equal(csr.asnumpy(), [[0, 2], [3, 0], [0, 0]])
    np.testing.assert_array_equal(rows.asnumpy(), [[0, 0], [3, 4]])


def test_reads_the_versions_before_1_0():
    values = struct.pack("<2f", 1.5, -2)
    header, tail = struct.pack("<3Q", 0x112, 0, 1), struct.pack("<Q", 0)
    version_0 = header + struct.pack("<II", 1, 2) + struct.pack("<iii", 1, 0, 0) + values + tail
    version_1 = header + struct.pack("<Iiq", 0xF993FAC8, 1, 2) + struct.pack("<iii", 1, 0, 0) + values + tail
    for buffer in (version_0, version_1):
        array, = mx.nd.load_frombuffer(buffer)
        assert array.asnumpy().tolist() == [1.5, -2]


def test_pickles_go_both_ways():
    assert pickle.loads(PICKLE).asnumpy().tolist() == [1.5]
    assert pickle.dumps(mx.nd.array([1.5]), 2) == PICKLE
    csr = mx.nd.array([[0, 2], [3, 0]]).tostype("csr")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(csr)).asnumpy(), [[0, 2], [3, 0]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int8", "int32", "int64", "bool", "bfloat16"])
def test_every_type_survives(tmp_path, dtype):
    f = str(tmp_path / "x.params")
    x = mx.nd.array([0, 1, 1], dtype=dtype)
    mx.nd.save(f, x)
    y, = mx.nd.load(f)
    assert y.dtype == x.dtype
    assert y.asnumpy().tobytes() == x.asnumpy().tobytes()


@pytest.mark.parametrize("length", range(len(NAMED)))
def test_every_truncation_is_an_error_that_names_the_place(length):
    with pytest.raises(mx.MXNetError, match="buffer: not a valid NDArray file: .* at byte"):
        mx.nd.load_frombuffer(NAMED[:length])


def test_lengths_are_checked_before_anything_is_allocated():
    claims_more = NAMED[:16] + struct.pack("<Q", 2 ** 60) + NAMED[24:]
    with pytest.raises(mx.MXNetError, match="the number of arrays, 1152921504606846976, is more than the file can hold"):
        mx.nd.load_frombuffer(claims_more)
    huge_axis = NAMED[:36] + struct.pack("<q", 2 ** 50) + NAMED[44:]
    with pytest.raises(mx.MXNetError, match="the values of array 0 needs .* bytes and .* are left"):
        mx.nd.load_frombuffer(huge_axis)
    many_axes = NAMED[:32] + struct.pack("<i", 10 ** 6) + NAMED[36:]
    with pytest.raises(mx.MXNetError, match="array 0 has 1000000 axes"):
        mx.nd.load_frombuffer(many_axes)


def test_sparse_indices_are_checked():
    bad = bytearray(SPARSE)
    at = SPARSE.index(struct.pack("<4q", 0, 1, 2, 2)) + 32
    bad[at:at + 8] = struct.pack("<q", 77)  # a column of the csr array
    with pytest.raises(mx.MXNetError, match=r"column indices must be in \[0, 2\)"):
        mx.nd.load_frombuffer(bytes(bad))


@pytest.mark.parametrize("flag, name", [(0, "float32"), (3, "uint8"), (7, "bool")])
def test_sparse_indices_of_another_type_than_integers_are_refused(flag, name):
    bad = bytearray(SPARSE)
    at = SPARSE.index(struct.pack("<i", 6))  # the type of the first indices
    bad[at:at + 4] = struct.pack("<i", flag)
    with pytest.raises(mx.MXNetError, match=f"array 0 has indices of type {name}; they must be signed integers"):
        mx.nd.load_frombuffer(bytes(bad))


def test_errors_name_the_file(tmp_path):
    missing = str(tmp_path / "missing.params")
    with pytest.raises(mx.MXNetError, match="cannot read .*missing.params: No such file"):
        mx.nd.load(missing)
    with pytest.raises(mx.MXNetError, match="cannot write .*nowhere"):
        mx.nd.save(str(tmp_path / "nowhere" / "x.params"), mx.nd.ones((1,)))
    with pytest.raises(TypeError, match="must have names as keys and NDArrays as values"):
        mx.nd.save(missing, {"a": 3})


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    f = str(tmp_path / "x.params")
    mx.nd.save(f, mx.nd.ones((2,)))
    from mxnet.ndarray import serialization

    def interrupted(array):
        yield b"half"
        raise KeyboardInterrupt

    monkeypatch.setattr(serialization, "_array_chunks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mx.nd.save(f, mx.nd.zeros((2,)))
    monkeypatch.undo()
    assert mx.nd.load(f)[0].asnumpy().tolist() == [1, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["x.params"]
