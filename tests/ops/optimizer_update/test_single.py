"""Updates of one weight. The numbers come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

WEIGHT, GRADIENT = [1.0, -2.0, 0.5], [0.1, -0.4, 2.0]
STATES = {"mom": [0.5, 0.1, -0.2], "mean": [0.5, 0.1, -0.2], "var": [0.2, 0.3, 0.4], "n": [4.2, 4.3, 4.4], "g": [0.1, 0.2, 0.3],
          "delta": [0.01, -0.02, 0.03], "z": [0.5, -0.4, 0.3], "d": [1.0, 2.0, 3.0], "v": [0.2, 0.3, 0.4]}
COMMON = {"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5, "clip_gradient": 0.4}
# operator, its states, attributes, the new weight, the new states
CASES = [
    ("sgd_update", [], {**COMMON},
     [0.994, -1.978, 0.4595], []),
    ("sgd_mom_update", ["mom"], {**COMMON, "momentum": 0.9},
     [1.444, -1.888, 0.2795], [[0.444, 0.112, -0.2205]]),
    ("nag_mom_update", ["mom"], {**COMMON, "momentum": 0.9},
     [1.3936, -1.8772, 0.26105], [[0.444, 0.112, -0.2205]]),
    ("adam_update", ["mean", "var"], {**COMMON},
     [0.8979852, -2.01242, 0.5221426], [[0.456, 0.06799999, -0.14], [0.1998036, 0.2997484, 0.39976]]),
    ("rmsprop_update", ["n"], {**COMMON, "clip_weights": 0.9},
     [0.9, -0.9, 0.4804541], [[3.99018, 4.08742, 4.188]]),
    ("rmspropalex_update", ["n", "g", "delta"], {**COMMON},
     [1.005993, -2.007075, 0.5072333], [[3.99018, 4.08742, 4.188], [0.098, 0.179, 0.305], [0.005992689, -0.007075363, 0.007233288]]),
    ("ftrl_update", ["z", "n"], {**COMMON, "lamda1": 0.3},
     [-0.007994141, 0.003487005, -0.006727756], [[0.5439013, -0.4075485, 0.5110104], [4.2025, 4.34, 4.56]]),
    ("ftml_update", ["d", "v", "z"], {"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5, "clip_grad": 0.4, "t": 2},
     [0.9855592, -1.965191, 0.4862992], [[63.98519, 78.37115, 90.50602], [0.1998036, 0.2997484, 0.39976], [-63.06119, 154.0143, -44.01301]]),
    ("signsgd_update", [], {**COMMON},
     [0.899, -1.898, 0.3995], []),
    ("signum_update", ["mom"], {**COMMON, "momentum": 0.9, "wd_lh": 0.05},
     [1.095, -1.89, 0.3975], [[0.444, 0.112, -0.2205]]),
    ("lamb_update_phase1", ["mean", "var"], {"t": 2, "wd": 0.01, "rescale_grad": 0.5, "clip_gradient": 0.4},
     [0.2495297, 0.01008666, -0.04710468], [[0.455, 0.06999999, -0.14], [0.1998025, 0.29974, 0.39976]]),
]
internal = mx.nd._internal


def close(array, values):
    np.testing.assert_allclose(array.asnumpy(), values, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name, states, attributes, weight, new_states", CASES, ids=[c[0] for c in CASES])
def test_update(name, states, attributes, weight, new_states):
    w, g, arrays = mx.nd.array(WEIGHT), mx.nd.array(GRADIENT), [mx.nd.array(STATES[s]) for s in states]
    result = getattr(mx.nd, name)(w, g, *arrays, **attributes)
    close(result, weight)
    for a, expected in zip(arrays, new_states, strict=True):
        close(a, expected)
    assert w.asnumpy().tolist() == WEIGHT and g.asnumpy().tolist() == mx.nd.array(GRADIENT).asnumpy().tolist()


@pytest.mark.parametrize("name, states, attributes, weight, _", CASES[:3], ids=["sgd", "sgd_mom", "nag_mom"])
def test_mixed_precision(name, states, attributes, weight, _):
    w, g = mx.nd.array(WEIGHT, dtype="float16"), mx.nd.array(GRADIENT, dtype="float16")
    w32, arrays = w.astype("float32"), [mx.nd.array(STATES[s]) for s in states]
    result = getattr(mx.nd, "mp_" + name)(w, g, *arrays, w32, out=w, **attributes)
    assert result.dtype == np.float16 and w32.dtype == np.float32
    np.testing.assert_allclose(w32.asnumpy(), weight, rtol=2e-3)
    np.testing.assert_allclose(w.asnumpy(), w32.asnumpy(), rtol=1e-3)


def test_without_decay_and_clipping():
    w, g, m = mx.nd.array(WEIGHT), mx.nd.array(GRADIENT), mx.nd.array(STATES["mom"])
    close(mx.nd.sgd_update(w, g, lr=0.1), [0.99, -1.96, 0.3])
    close(mx.nd.sgd_mom_update(w, g, m, lr=0.1, momentum=0.5), [1.24, -1.91, 0.2])
    close(m, [0.24, 0.09, -0.3])


def test_zero_clips_everything():
    close(mx.nd.sgd_update(mx.nd.array(WEIGHT), mx.nd.array(GRADIENT), lr=0.1, clip_gradient=0), WEIGHT)


def test_out_is_the_weight_itself():
    w = mx.nd.array(WEIGHT)
    w.attach_grad()
    result = mx.nd.sgd_mom_update(w, mx.nd.array(GRADIENT), mx.nd.zeros((3,)), lr=1, out=w)
    assert result is w
    close(w, [0.9, -1.6, -1.5])


class TestAdamW:
    def update(self, scale, dtype="float32"):
        w, g = mx.nd.array(WEIGHT, dtype=dtype), mx.nd.array(GRADIENT, dtype=dtype)
        mean, var = mx.nd.array(STATES["mean"]), mx.nd.array(STATES["var"])
        inputs = [w, g, mean, var, mx.nd.array([scale])]
        name = "_adamw_update"
        if dtype == "float16":
            inputs.insert(4, w.astype("float32"))
            name = "_mp_adamw_update"
        getattr(internal, name)(*inputs, lr=0.1, eta=0.7, wd=0.01, clip_gradient=0.4, out=w)
        return w, mean, var

    def test_values(self):
        w, mean, var = self.update(0.5)
        close(w, [0.921746, -1.99495, 0.5119998])
        close(mean, [0.455, 0.07, -0.14])
        close(var, [0.1998025, 0.29974, 0.39976])

    def test_mixed_precision(self):
        w, mean, _ = self.update(0.5, "float16")
        np.testing.assert_allclose(w.asnumpy(), [0.921746, -1.99495, 0.5119998], rtol=2e-3)
        np.testing.assert_allclose(mean.asnumpy(), [0.455, 0.07, -0.14], rtol=1e-3)

    @pytest.mark.parametrize("scale", [0, float("inf"), float("nan")])
    @pytest.mark.parametrize("dtype", ["float32", "float16"])
    def test_an_overflow_changes_nothing(self, scale, dtype):
        w, mean, var = self.update(scale, dtype)
        close(w, WEIGHT)
        close(mean, STATES["mean"])
        close(var, STATES["var"])

    def test_scale_of_many_numbers(self):
        with pytest.raises(MXNetError, match=r"`rescale_grad` must hold one number, received shape \(3,\)"):
            internal._adamw_update(*[mx.nd.ones((3,))] * 5, lr=0.1, eta=1)


class TestLamb:
    def test_without_correction(self):
        mean, var = mx.nd.zeros((1,)), mx.nd.zeros((1,))
        g = mx.nd.lamb_update_phase1(mx.nd.array([2]), mx.nd.array([1]), mean, var, t=1, wd=0.1, bias_correction=False)
        close(g, [0.1 / (0.001 ** 0.5 + 1e-6) + 0.2])

    @pytest.mark.parametrize("norm, bounds, expected", [
        (3, {}, [0.985, -1.94, 0.2]), (3, {"upper_bound": 1}, [0.995, -1.98, 0.4]), (0, {}, [0.99, -1.96, 0.3]),
        (1, {"lower_bound": 3}, [0.985, -1.94, 0.2])])
    def test_second_phase(self, norm, bounds, expected):
        w, g, r1, r2 = mx.nd.array(WEIGHT), mx.nd.array(GRADIENT), mx.nd.array([norm]), mx.nd.array([2])
        close(mx.nd.lamb_update_phase2(w, g, r1, r2, lr=0.1, **bounds), expected)

    def test_mixed_precision(self):
        w32 = mx.nd.array(WEIGHT)
        w, mean, var = w32.astype("float16"), mx.nd.array(STATES["mean"]), mx.nd.array(STATES["var"])
        gradient = mx.nd.array(GRADIENT, dtype="float16")
        g = mx.nd.mp_lamb_update_phase1(w, gradient, mean, var, w32, t=2, wd=0.01, rescale_grad=0.5, clip_gradient=0.4)
        assert g.dtype == np.float32
        np.testing.assert_allclose(g.asnumpy(), [0.2495297, 0.01008666, -0.04710468], rtol=1e-3)
        w = mx.nd.mp_lamb_update_phase2(w, mx.nd.array(GRADIENT), mx.nd.array([3]), mx.nd.array([2]), w32, lr=0.1)
        assert w.dtype == np.float16
        close(w32, [0.985, -1.94, 0.2])


def test_group_adagrad():
    w, g, h = mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[1, -1], [2, 0.5]]), mx.nd.array([[0.5], [0.25]])
    new = mx.nd.contrib.group_adagrad_update(w, g, h, lr=0.1, rescale_grad=0.5, clip_gradient=0.8)
    close(new, [[0.9422653, 2.057735], [2.896829, 3.967759]])
    close(h, [[0.75], [0.60125]])


def test_adagrad():
    w, g, h = mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[1, -1], [2, 0.5]]), mx.nd.array([[0.5, 0.2], [0.25, 0.1]])
    close(mx.nd.sparse.adagrad_update(w, g, h, lr=0.1, rescale_grad=0.5, clip_gradient=0.8), [[0.942265, 2.074536], [2.9152, 3.937983]])
    close(h, [[0.75, 0.45], [0.89, 0.1625]])


def test_missing_rate():
    with pytest.raises(MXNetError, match="required argument `lr`"):
        mx.nd.sgd_update(mx.nd.ones((1,)), mx.nd.ones((1,)))


def test_states_of_another_shape():
    with pytest.raises(MXNetError, match="sgd_mom_update"):
        mx.nd.sgd_mom_update(mx.nd.ones((2,)), mx.nd.ones((2,)), mx.nd.ones((3,)), lr=1)


@pytest.mark.parametrize("name, inputs, attributes", [
    ("sgd_update", 1, {"lr": 0.1}), ("adam_update", 3, {"lr": 0.1}), ("mp_sgd_mom_update", 3, {"lr": 0.1}),
    ("lamb_update_phase1", 3, {"t": 1, "wd": 0}), ("ftml_update", 4, {"lr": 0.1, "t": 1})])
def test_gradients_and_states_do_not_broadcast(name, inputs, attributes):
    others = [mx.nd.ones((3,))] * inputs
    with pytest.raises(MXNetError, match=f"{name}: the gradient and the states must have the shape of the weight, \\(2, 3\\); received \\(3,\\)"):
        getattr(mx.nd, name)(mx.nd.ones((2, 3)), *others, **attributes)


def test_ftml_refuses_averages_beyond_one():
    w = mx.nd.ones((2,))
    with pytest.raises(MXNetError, match="`beta1` must be a number from 0 to 1, received 2"):
        mx.nd.ftml_update(w, w, w, w, w, lr=0.1, t=1, beta1=2)
