import numpy as np
import pytest

import mxnet as mx
from openvino_checks import check, numbers, refusal, registered_in


@pytest.mark.parametrize("name", registered_in("reduce"))
def test_each_gives_what_its_operator_gives(name):
    check(name)


def test_what_stays_on_torch():
    assert refusal("sum", np.array([[1, 2]], "int32")) == "sum: integers"
    assert refusal("norm", numbers(2, 3), out_dtype="float32") == "norm: another type"


@pytest.mark.parametrize("values, norm", [([3e20, -4e20], 5e20), ([3e-25, 4e-25], 5e-25), ([0, 0], 0), ([3, 4], 5), ([np.inf, 1], np.inf)])
def test_two_norms_neither_overflow_nor_underflow(values, norm):
    for function in (lambda F, x: F.norm(x, axis=1), lambda F, x: F.broadcast_hypot(x.slice_axis(1, 0, 1), x.slice_axis(1, 1, 2))):
        net = mx.gluon.nn.HybridLambda(function)
        net.hybridize(backend="openvino")
        out = [net(mx.nd.array([values])).asnumpy().ravel() for _ in range(2)][1]
        np.testing.assert_allclose(out, [norm], rtol=1e-6)
