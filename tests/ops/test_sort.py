"""Errors, ties and names of sort, argsort and topk; values are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError


def test_equal_elements_keep_their_order():
    x = mx.nd.array([1, 1, 0, 1])
    assert mx.nd.argsort(x, is_ascend=False).asnumpy().tolist() == [0, 1, 3, 2]
    assert mx.nd.topk(x, k=3).asnumpy().tolist() == [0, 1, 3]
    assert mx.nd.topk(mx.nd.array([1, 1, 1, 2]), k=3, is_ascend=True, dtype="int32").asnumpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("call, message", [
    (lambda x: mx.nd.topk(x, k=5), "`k` must not exceed the size of the axis, which is 4, received 5"),
    (lambda x: mx.nd.topk(x, axis=3), r"topk: `axis` must be in \[-2, 1\]"),
    (lambda x: mx.nd.sort(x, axis=5), r"sort: `axis` must be in \[-2, 1\]"),
    (lambda x: mx.nd.topk(x, ret_typ="all"), "`ret_typ` must be one of 'both', 'indices', 'mask', 'value'"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call(mx.nd.zeros((3, 4)))


def test_output_names():
    x = mx.sym.var("x")
    assert mx.sym.topk(x, name="t").list_outputs() == ["t_output"]
    assert mx.sym.topk(x, ret_typ="both", name="t").list_outputs() == ["t_output0", "t_output1"]
    assert mx.sym.sort(x, name="s").list_outputs() == ["s_output0"]
    assert mx.sym.argsort(x, name="s").list_outputs() == ["s_output"]


def test_types():
    x = mx.sym.var("x")
    assert mx.sym.topk(x, ret_typ="both").infer_type(x="float16")[1] == [np.float16, np.float32]
    assert mx.sym.argsort(x, dtype="int64").infer_type(x="float16")[1] == [np.int64]
    assert mx.nd.topk(mx.nd.zeros((3,), dtype="int32"), ret_typ="mask").dtype == np.int32


@pytest.mark.parametrize("ascends", [False, True])
@pytest.mark.parametrize("shape, axis", [((3 * 131_072 + 5,), 0), ((2, 131_072), 1), ((131_075, 2), 0)])
def test_topk_of_a_long_axis(shape, axis, ascends):
    planted = {7: 5, 16_384: 9, 131_071: 7, shape[axis] - 1: 6}  # position -> value: in the first parts, and in the last, which may be short
    values = np.zeros(shape[axis], "int32")
    for position, value in planted.items():
        values[position] = -value if ascends else value
    x = mx.nd.array(np.moveaxis(np.broadcast_to(values, (*shape[:axis], *shape[axis + 1:], shape[axis])), -1, axis), dtype="int32")
    best, places = mx.nd.topk(x, axis=axis, k=len(planted), ret_typ="both", is_ascend=ascends, dtype="int32")
    order = sorted(planted, key=planted.get, reverse=True)
    np.testing.assert_array_equal(np.moveaxis(places.asnumpy(), axis, -1).reshape(-1, len(order)), [order] * (x.size // shape[axis]))
    np.testing.assert_array_equal(best.asnumpy(), np.take_along_axis(x.asnumpy(), places.asnumpy().astype(int), axis))


def test_topk_of_a_long_axis_has_a_gradient_and_finds_nan():
    x = mx.nd.zeros(200_000)
    x[150_000], x[3] = np.nan, 2
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.topk(x, k=2, ret_typ="value")
    y.backward(mx.nd.array([10, 20]))
    np.testing.assert_array_equal(y.asnumpy(), [np.nan, 2])
    assert x.grad[150_000].asscalar() == 10 and x.grad[3].asscalar() == 20 and x.grad.sum().asscalar() == 30
