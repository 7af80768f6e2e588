import json

import numpy as np
import pytest

from mxnet.serve.errors import RequestError
from mxnet.serve.tensors import TensorSpec, checked_shape, from_bytes, from_nested, parsed_json, to_nested

FLOAT, INT8, BOOL = (np.dtype(t) for t in (np.float32, np.int8, np.bool_))


def refused(text):
    return pytest.raises(RequestError, match=text)


def test_numbers_may_be_flat_or_nested():
    for data in ([1, 2.5, 3, 4], [[1, 2.5], [3, 4]]):
        array = from_nested(data, (2, 2), FLOAT, "x")
        assert array.tolist() == [[1, 2.5], [3, 4]] and array.dtype == FLOAT
    assert from_nested([], (0,), FLOAT, "x").shape == (0,)
    assert from_nested([True, False], (2,), BOOL, "x").tolist() == from_nested([1, 0], (2,), BOOL, "x").tolist() == [True, False]


@pytest.mark.parametrize("data, shape, dtype, text", [
    ([1, 2, 3], (10**9,), FLOAT, r"shape \[1000000000\] has 1000000000 elements, 'data' is of shape \[3\]"),
    ([[1, 2], [3, 4]], (4,), FLOAT, r"'data' is of shape \[2, 2\]"),
    ([[1, 2], [3]], (3,), FLOAT, "nested unevenly"),
    ([[1], 2], (2,), FLOAT, "nested unevenly"),
    ([1, "2"], (2,), FLOAT, "elements of FP32 expected, received '2'"),
    ([1, "x" * 10**6], (2,), FLOAT, "elements of FP32 expected, received 'xxx"),
    ([1, None], (2,), FLOAT, "received None"),
    ([True, 1.5], (2,), FLOAT, "received True"),
    ([1, 1e39], (2,), FLOAT, "does not fit FP32"),
    ([10**400], (1,), FLOAT, "does not fit FP32"),
    ([1.0], (1,), INT8, "elements of INT8 expected, received 1.0"),
    ([128], (1,), INT8, "does not fit INT8"),
    ([2**70], (1,), INT8, "does not fit INT8"),
    ([2], (1,), BOOL, "does not fit BOOL"),
    ([True, 0], (2,), BOOL, "received 0"),
    ("1", (1,), FLOAT, "must be a list of numbers, received '1'"),
    (None, (1,), FLOAT, "received None"),
])
def test_numbers_that_do_not_fit(data, shape, dtype, text):
    with refused(text):
        from_nested(data, shape, dtype, "x")


def test_lists_may_not_be_nested_without_an_end():
    data = [1]
    for _ in range(40):
        data = [data]
    with refused("more than 32 deep"):
        from_nested(data, (1,), FLOAT, "x")


def test_bytes():
    assert from_bytes(memoryview(b"\1\0\0\0"), (1, 1), np.dtype(np.int32), "x").tolist() == [[1]]
    with refused(r"shape \[1000000, 1000000\] of FP32 has 4000000000000 bytes, received 4"):
        from_bytes(memoryview(b"\0\0\0\0"), (10**6, 10**6), FLOAT, "x")
    with refused("each BOOL must be a byte 0 or 1"):
        from_bytes(memoryview(b"\2"), (1,), BOOL, "x")


@pytest.mark.parametrize("shape", [None, 3, [1.0], [-1], [True], ["1"], [1] * 33, {"a": 1}])
def test_shapes_that_are_none(shape):
    with refused("'shape' must be a list of at most 32 integers"):
        checked_shape(shape, "x")


def test_shapes_that_the_model_does_not_take():
    spec = TensorSpec("data", FLOAT, (-1, 3))
    spec.check((7, 3))
    for shape in ((7, 4), (7,), (0, 3), (7, 3, 1)):
        with refused(r"the input 'data' has shape \[-1, 3\], received"):
            spec.check(shape)


def test_json():
    assert parsed_json(b'{"a": [1]}', 100) == {"a": [1]}
    for content, text in ((b"{", "is no JSON"), (b"[NaN]", "NaN is no number"), (b"[" * 100_000, "is no JSON"), (b"\xff", "is no JSON"),
                          (b"1" * 5000, "is no JSON")):
        with refused(text):
            parsed_json(content, 10**6)
    with pytest.raises(RequestError, match="at most 3 bytes is taken, received 4") as caught:
        parsed_json(b"1234", 3)
    assert caught.value.status == 413


def test_what_is_not_finite_becomes_null():
    assert json.dumps(to_nested(np.array([[1, np.inf], [np.nan, -np.inf]], np.float32))) == "[[1.0, null], [null, null]]"
    assert to_nested(np.array([[1, 2]], np.float16), flat=True) == [1, 2]
