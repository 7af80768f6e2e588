import numpy as np
import pytest

import mxnet as mx
from onnx_checks import exported, run

X = mx.sym.var("x")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_lie_where_they_should(dtype):
    sym = mx.sym.Group([mx.sym.random_uniform(low=2, high=3, shape=(1000,), dtype=dtype),
                        mx.sym.random_normal(loc=5, scale=0.1, shape=(500, 2), dtype=dtype),
                        mx.sym.random.uniform_like(X, low=-1, high=0), mx.sym.random.normal_like(X, loc=9, scale=0.5)])
    uniform, normal, *like = run(exported(sym, {"x": np.zeros((50, 20), dtype)}), {"x": np.zeros((50, 20), dtype)})
    assert uniform.shape == (1000,) and uniform.dtype == dtype and 2 <= uniform.min() < 2.1 and 2.9 < uniform.max() < 3
    assert normal.shape == (500, 2) and normal.dtype == dtype and abs(normal.mean() - 5) < 0.03 and 0.08 < normal.std() < 0.12
    assert [v.shape for v in like] == [(50, 20)] * 2 and -1 <= like[0].min() < like[0].max() < 0 and abs(like[1].mean() - 9) < 0.2


def test_draws_by_probabilities():
    probabilities = np.array([[0, 1, 0], [0.5, 0, 0.5]], np.float32)
    for shape, expected in ((1, (2,)), (200, (2, 200))):
        sym = mx.sym.sample_multinomial(X, shape=() if shape == 1 else (shape,), name="m")
        (found,) = run(exported(sym, {"x": probabilities}), {"x": probabilities})
        assert found.shape == expected and found.dtype == np.int32
        assert set(found[0].ravel().tolist()) == {1} and set(found[1].ravel().tolist()) <= {0, 2}
    assert set(found[1].tolist()) == {0, 2}


def test_as_many_as_an_input_that_may_vary_are_refused():
    with pytest.raises(mx.MXNetError, match="_random_uniform 'r' .*: it draws as many numbers as an input has elements, whose number may vary"):
        exported(X + mx.sym.random_uniform(shape=(0, 3), name="r"), {"x": np.zeros((2, 3), np.float32)}, dynamic_shapes=[(None, 3)])
