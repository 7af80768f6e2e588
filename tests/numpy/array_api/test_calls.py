import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd

xp = mx.np.array_api


def test_autograd_records_the_functions():
    x = xp.asarray([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = xp.sum(xp.multiply(xp.exp(x), 2.0))
    y.backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), 2 * onp.exp([1, 2, 3]), rtol=1e-6)


def test_python_numbers_take_the_type_of_the_array_beside_them():
    assert (xp.add(xp.asarray([1], dtype=xp.uint8), 1).dtype, xp.multiply(2, xp.asarray([1.0], dtype=xp.float64)).dtype) == (xp.uint8, xp.float64)
    assert xp.add(xp.asarray([1.0]), 1j).dtype == xp.complex64
    with pytest.raises(TypeError, match="the number 1.5 does not go together with an array of the type int64; convert the array with astype"):
        xp.add(xp.asarray([1]), 1.5)


def test_arrays_are_expected():
    with pytest.raises(TypeError, match=r"exp: mx.np arrays expected, received \[1.0\] of type list; make one with asarray"):
        xp.exp([1.0])
    with pytest.raises(TypeError, match="sin: floating-point numbers expected, received int64; convert with astype"):
        xp.sin(xp.asarray([1]))


def test_torch_s_refusals_are_errors_of_mxnet():
    with pytest.raises(mx.MXNetError, match="^add: .*x1|add"):
        xp.add(xp.ones(2), xp.ones(3))


def test_types_are_those_of_numpy():
    values = ([1], [1.0], [1j], [True])
    assert [xp.asarray(v).dtype for v in values] == [xp.int64, xp.float32, xp.complex64, xp.bool]
    with pytest.raises(TypeError, match="data type 'float3' not understood"):
        xp.zeros(2, dtype="float3")


def test_a_hybridized_block_runs_step_by_step():
    class Net(mx.gluon.HybridBlock):
        def forward(self, x):
            return xp.exp(x)

    mx.npx.set_np()
    try:
        net = Net()
        net.hybridize()
        with pytest.warns(UserWarning, match="array_api"):
            outs = [net(mx.np.zeros(2)).tolist() for _ in range(4)]
    finally:
        mx.npx.reset_np()
    assert outs == [[1.0, 1.0]] * 4
