"""What the tests of optimizers share: three steps next to those of MXNet 1.9.1."""
import numpy as np

import mxnet as mx

GRADIENTS = [[1.0, -0.5, 2.0], [0.5, 0.25, -1.0], [-2.0, 1.0, 0.1]]
START = [1.0, -2.0, 0.5]


def run(updater, weight, gradients=GRADIENTS):
    for g in gradients:
        updater(0, mx.nd.array(g, dtype=weight.dtype), weight)
    return weight


def make(name, **kwargs):
    return mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, **kwargs))


def check_steps(name, kwargs, expected, dtype):
    """The weight after three steps with wd=0.1, rescale_grad=0.5; in float16 with a copy in float32."""
    half = dtype == "float16"
    weight = run(make(name, wd=0.1, rescale_grad=0.5, **({"multi_precision": True} if half else {}), **kwargs), mx.nd.array(START, dtype=dtype))
    assert weight.dtype == np.dtype(dtype)
    np.testing.assert_allclose(weight.asnumpy(), expected, rtol=3e-3 if half else 2e-5)


def check_rows(name, kwargs, stype, expected):
    """The weight after gradients of row 0 and of rows 0 and 2, with rescale_grad=0.5."""
    updater = make(name, rescale_grad=0.5, **kwargs)
    weight = mx.nd.array([[1, 2], [3, 4], [5, 6]]).tostype(stype)
    for rows in ([0], [0, 2]):
        updater(0, mx.nd.sparse.row_sparse_array((np.ones((len(rows), 2)), rows), shape=(3, 2), dtype="float32"), weight)
    np.testing.assert_allclose(weight.asnumpy(), expected, rtol=2e-5)
