import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check, run

RNG = np.random.default_rng(5)
X = mx.sym.var("x")


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("pool_type", ["max", "avg", "sum", "lp"])
@pytest.mark.parametrize("convention", ["valid", "full"])
@pytest.mark.parametrize("pad", [(0, 0), (1, 1), (2, 3)])
def test_windows_of_each_kind(pool_type, convention, pad):
    for counted in (True, False) if pool_type == "avg" else (None,):
        sym = mx.sym.Pooling(X, kernel=(3, 4), stride=(2, 3), pad=pad, pool_type=pool_type, pooling_convention=convention, p_value=2,
                             count_include_pad=counted)
        check(sym, {"x": real(2, 3, 8, 9)}, varying=[(None, 3, None, None)], others=[{"x": real(1, 3, 9, 11)}], opsets=(13,))


@pytest.mark.parametrize("pool_type, p", [("max", 2), ("avg", 2), ("sum", 2), ("lp", 2), ("lp", 1), ("lp", 3)])
def test_over_everything(pool_type, p):
    check(mx.sym.Pooling(X, global_pool=True, pool_type=pool_type, p_value=p), {"x": real(2, 3, 4, 5)})


def test_windows_of_padding_only_have_the_lowest_value():
    sym = mx.sym.Pooling(X, kernel=(2,), stride=(3,), pad=(2,), pool_type="max", pooling_convention="full")
    model = check(sym, {"x": real(1, 1, 4)})
    assert run(model, {"x": np.zeros((1, 1, 4), np.float32)})[0].ravel().tolist() == [np.finfo(np.float32).min, 0, np.finfo(np.float32).min]


def test_channels_last_and_the_same_size():
    check(mx.sym.Pooling(X, kernel=(2, 2), stride=(2, 2), pool_type="avg", layout="NHWC"), {"x": real(2, 6, 4, 3)})
    check(mx.sym.Pooling(X, kernel=(3,), stride=(2,), pool_type="max", pooling_convention="same"), {"x": real(2, 3, 7)})
