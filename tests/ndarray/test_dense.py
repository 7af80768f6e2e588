import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.ndarray import dense, dispatch
from mxnet.ndarray.dense import dense_array, filled, place, sizes


@pytest.mark.parametrize("source, dtype, expected", [
    ([1, 2], np.float32, [1, 2]), (np.array([1, 2]), np.float32, [1, 2]), (3, np.float32, 3), ((1, 2.5), np.float32, [1, 2.5]),
    (np.float64(2), np.float32, 2), (torch.tensor([1, 2]), np.float32, [1, 2]), ([[True, False]], np.float32, [[1, 0]]),
    (nd.array([1, 2], dtype="int8"), np.int8, [1, 2]), ([nd.array([1, 2]), nd.array([3, 4])], np.float32, [[1, 2], [3, 4]]),
    (np.arange(4).reshape(2, 2).T, np.float32, [[0, 2], [1, 3]]), (np.longdouble(1.5), np.float32, 1.5)])
def test_anything_like_an_array_becomes_one(source, dtype, expected):
    found = dense_array(source)
    assert found.dtype is dtype and found.asnumpy().tolist() == expected and found._data.is_contiguous()


def test_values_are_copied():
    for source in (np.ones(2, "float32"), torch.ones(2), nd.ones(2)):
        dense_array(source)[:] = 5
        assert source.sum() == 2
    fixed = np.ones(2, "float32")
    fixed.flags.writeable = False
    dense_array(fixed)[:] = 5  # without torch's warning about memory that may not be written
    assert fixed.tolist() == [1, 1]


def test_bfloat16_passes_through_its_bits():
    source = nd.array([1.5, -2], dtype="bfloat16")
    assert dense_array(source.asnumpy(), dtype="bfloat16").astype("float32").asnumpy().tolist() == [1.5, -2]


@pytest.mark.parametrize("source", [[[1], [1, 2]], "abc", object()])
def test_what_is_no_array(source):
    with pytest.raises(TypeError, match="array: numbers, and a type that arrays hold, expected"):
        dense_array(source)
    with pytest.raises(TypeError, match="array: numbers, and a type that arrays hold, expected"):
        dense_array([1], dtype="no type")


def test_sizes():
    assert sizes(3) == (3,) and sizes(np.int64(2)) == (2,) and sizes([1, 2.0]) == (1, 2)
    for wrong in ((2, 0), (), -1):
        with pytest.raises(mx.MXNetError, match=r"is not complete: every size must be at least 1; .* need mx.np_shape\(\)"):
            sizes(wrong)
    with mx.np_shape():
        assert sizes((2, 0)) == (2, 0) and sizes(()) == ()
        with pytest.raises(mx.MXNetError, match=r"shape \(-1,\) is not complete: every size must be at least 0$"):
            sizes(-1)


def test_place():
    assert place(mx.cpu(3)) == (mx.cpu(3), torch.device("cpu"))
    with mx.cpu(2):
        assert place(None)[0] == mx.cpu(2)


def test_filled_writes_to_out_and_takes_annotations():
    out = nd.zeros((2,), dtype="int32")
    assert filled((2,), 5, None, "float32", {"out": out, "name": "x", "__mood__": "good"}) is out and out.asnumpy().tolist() == [5, 5]
    with pytest.raises(TypeError, match=r"got unexpected arguments \['mood'\]"):
        filled((2,), 5, None, "float32", {"mood": "good"})


def test_a_profiler_sees_the_operator_that_a_graph_would_call(monkeypatch):
    seen = []
    monkeypatch.setattr(dispatch, "observer", object())
    monkeypatch.setattr(dense, "invoke", lambda op, arrays, attributes, out: seen.append((op.name, attributes["shape"], attributes.get("value"))))
    for value in (0, 1, 5):
        filled(2, value, None, "float32", {})
    assert seen == [("_zeros", (2,), None), ("_ones", (2,), None), ("_full", (2,), 5)]


@pytest.mark.parametrize("source, dtype, expected", [
    (["1", "2"], "int32", [1, 2]), (np.array(["1.5", "inf"]), None, [1.5, float("inf")]),
    ([b"1", 2], None, [1, 2]), (["1", "2"], "bool", [True, True]), ("3", None, 3), ([[1.0, None]], None, [[1, None]]), (None, None, None)])
def test_texts_of_numbers_and_missing_ones(source, dtype, expected):
    found = nd.array(source, dtype=dtype).asnumpy()
    np.testing.assert_array_equal(found, np.array(expected, dtype=dtype or "float32"))


@pytest.mark.parametrize("source, dtype", [(["1.5"], "int32"), (["a"], None), ([1.0, None], "int32"), ([[1, 2], [3]], None), ({"a": 1}, None)])
def test_what_is_no_number(source, dtype):
    with pytest.raises(TypeError, match="array: numbers, and a type that arrays hold, expected: "):
        nd.array(source, dtype=dtype)
