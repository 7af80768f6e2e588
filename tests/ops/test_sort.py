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
