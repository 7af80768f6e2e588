import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

X = mx.sym.var("x")
VALUES = np.random.default_rng(1).permutation(24).reshape(2, 3, 4).astype(np.float32)


@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("kind", ["value", "indices", "both", "mask"])
def test_topk(axis, kind):
    for ascending in (True, False):
        check(mx.sym.topk(X, axis=axis, k=2, ret_typ=kind, is_ascend=ascending, dtype="int32"), {"x": VALUES})


@pytest.mark.parametrize("axis", [1, None])
def test_sort_and_argsort(axis):
    check(mx.sym.sort(X, axis=axis), {"x": VALUES})
    check(mx.sym.argsort(X, axis=axis, is_ascend=False), {"x": VALUES})
    check(mx.sym.argsort(X, axis=axis), {"x": VALUES.astype(np.int64)})


def test_a_varying_number_of_elements():
    check(mx.sym.argsort(X, axis=0), {"x": VALUES}, varying=[(None, 3, 4)], others=[{"x": np.concatenate([VALUES, VALUES + 100])}])
