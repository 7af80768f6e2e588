import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

RNG = np.random.default_rng(4)
X = mx.sym.var("x")


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("fix_gamma", [True, False])
@pytest.mark.parametrize("axis", [1, -1])
def test_batch_norm_takes_its_moving_averages(fix_gamma, axis):
    sym = mx.sym.BatchNorm(X, name="b", fix_gamma=fix_gamma, axis=axis, eps=0.01)[0]
    params = {"b_gamma": real(3), "b_beta": real(3), "b_moving_mean": real(3), "b_moving_var": real(3) ** 2}
    check(sym, {"x": real(2, 3, 4, 3)}, params, rtol=1e-4, atol=1e-5)


def test_layer_norm_along_an_axis():
    for axis in (1, -1):
        sym = mx.sym.LayerNorm(X, name="n", axis=axis)[0]
        check(sym, {"x": real(2, 4, 4)}, {"n_gamma": real(4), "n_beta": real(4)}, varying=[(None, 4, 4)], others=[{"x": real(5, 4, 4)}],
              rtol=1e-4, atol=1e-5)


def test_instance_and_group_norm():
    params = {"n_gamma": real(4), "n_beta": real(4)}
    check(mx.sym.InstanceNorm(X, name="n"), {"x": real(2, 4, 5)}, params, rtol=1e-4, atol=1e-5)
    params = {"n_gamma": real(2), "n_beta": real(2)}  # one for each group
    check(mx.sym.GroupNorm(X, name="n", num_groups=2)[0], {"x": real(2, 4, 5)}, params, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["channel", "instance", "spatial"])
def test_l2_normalization(mode):
    check(mx.sym.L2Normalization(X, mode=mode), {"x": real(2, 3, 4, 5)})


def test_lrn():
    check(mx.sym.LRN(X, nsize=3, alpha=0.1, knorm=1), {"x": real(2, 5, 3, 3)})
