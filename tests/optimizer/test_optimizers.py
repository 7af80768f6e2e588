"""What optimizers make of weights, next to what MXNet 1.9.1 makes of them."""
import warnings

import numpy as np
import pytest

import mxnet as mx
from mxnet.test_utils import assert_almost_equal

GRADIENTS = [[1.0, -0.5, 2.0], [0.5, 0.25, -1.0], [-2.0, 1.0, 0.1]]
START = [1.0, -2.0, 0.5]

# (name, arguments, the weight after three steps with learning_rate=0.1, wd=0.1, rescale_grad=0.5), from MXNet 1.9.1
DENSE = [
    ('sgd', {}, [0.996544, -1.97847, 0.431639]),
    ('sgd', {'momentum': 0.9}, [0.863524, -1.89558, 0.294479]),
    ('sgd', {'momentum': 0.9, 'clip_gradient': 0.3}, [0.846966, -1.87558, 0.443727]),
    ('nag', {'momentum': 0.9}, [0.879855, -1.88849, 0.253964]),
    ('nag', {}, [0.996544, -1.97847, 0.43164]),
    ('signum', {}, [0.9, -1.7, 0.2]),
    ('signum', {'momentum': 0.0}, [0.873289, -2.04159, 0.38614]),
    ('signum', {'wd_lh': 0.1}, [0.873289, -1.64359, 0.18814]),
    ('ftml', {}, [0.926958, -1.93729, 0.428284]),
    ('dcasgd', {}, [0.996696, -1.97848, 0.431743]),
    ('adam', {}, [0.812097, -1.8109, 0.339395]),
    ('adam', {'clip_gradient': 0.3}, [0.773799, -1.81853, 0.395901]),
    ('adagrad', {}, [0.915302, -1.97415, 0.426946]),
    ('rmsprop', {}, [0.79414, -1.85268, 0.296752]),
    ('rmsprop', {'centered': True, 'clip_weights': 0.9}, [0.0434177, -0.613045, -0.1541]),
    ('adadelta', {}, [0.728586, -1.46944, 0.361584]),
    ('ftrl', {}, [0.327807, -0.417473, 0.219655]),
    ('adamax', {}, [0.827785, -1.83614, 0.357211]),
    ('nadam', {}, [0.921993, -1.93106, 0.418351]),
    ('lars', {'momentum': 0.9, 'eta': 0.1}, [0.969211, -1.98073, 0.47534]),
    ('lamb', {'lower_bound': 0.5, 'upper_bound': 1.0}, [0.885245, -1.965, 0.35063]),
    ('lamb', {'bias_correction': False}, [0.748825, -1.95935, 0.225138]),
    ('lbsgd', {'momentum': 0.9, 'batch_scale': 2}, [0.951906, -1.97342, 0.469625]),
    ('lbsgd', {'warmup_strategy': 'lars'}, [0.971306, -1.97401, 0.466494]),
    ('test', {}, [0.75, -1.625, 1.05]),
]

# (name, arguments, how the weight is stored, the weight after gradients of row 0 and of rows 0 and 2), from MXNet 1.9.1
SPARSE = [
    ('sgd', {'momentum': 0.9, 'wd': 0.1}, 'default', [[0.8266, 1.7977], [3.0, 4.0], [4.9, 5.89]]),
    ('sgd', {'momentum': 0.9, 'wd': 0.1}, 'row_sparse', [[0.8266, 1.7977], [3.0, 4.0], [4.9, 5.89]]),
    ('sgd', {'momentum': 0.9, 'lazy_update': False, 'wd': 0.1}, 'default', [[0.8266, 1.7977], [2.9133, 3.8844], [4.8055, 5.7766]]),
    ('sgd', {'momentum': 0.9, 'lazy_update': False, 'wd': 0.1}, 'row_sparse', [[0.8266, 1.7977], [2.9133, 3.8844], [4.8055, 5.7766]]),
    ('sgd', {'wd': 0.1}, 'default', [[0.8806, 1.8607], [3.0, 4.0], [4.9, 5.89]]),
    ('sgd', {'wd': 0.1}, 'row_sparse', [[0.8806, 1.8607], [3.0, 4.0], [4.9, 5.89]]),
    ('sgd', {'lazy_update': False, 'wd': 0.1}, 'default', [[0.8806, 1.8607], [2.9403, 3.9204], [4.8505, 5.8306]]),
    ('sgd', {'lazy_update': False, 'wd': 0.1}, 'row_sparse', [[0.8806, 1.8607], [2.9403, 3.9204], [4.8505, 5.8306]]),
    ('adam', {'wd': 0.1}, 'default', [[0.800046, 1.80004], [3.0, 4.0], [4.92559, 5.92559]]),
    ('adam', {'wd': 0.1}, 'row_sparse', [[0.800046, 1.80004], [3.0, 4.0], [4.92559, 5.92559]]),
    ('adam', {'lazy_update': False, 'wd': 0.1}, 'default', [[0.800046, 1.80004], [2.8001, 3.80007], [4.80337, 5.8025]]),
    ('adam', {'lazy_update': False, 'wd': 0.1}, 'row_sparse', [[0.800046, 1.80004], [2.8001, 3.80007], [4.80337, 5.8025]]),
    ('adagrad', {}, 'default', [[0.829289, 1.82929], [3.0, 4.0], [4.9, 5.9]]),
    ('adagrad', {}, 'row_sparse', [[0.829289, 1.82929], [3.0, 4.0], [4.9, 5.9]]),
    ('ftrl', {'wd': 0.1}, 'default', [[0.268232, 0.599358], [0.0, 0.0], [-0.0324503, -0.0324503]]),
    ('ftrl', {'wd': 0.1}, 'row_sparse', [[0.268232, 0.599358], [3.0, 4.0], [1.62185, 1.95298]]),
    ('groupadagrad', {}, 'default', [[0.829292, 1.82929], [3.0, 4.0], [4.9, 5.9]]),
    ('groupadagrad', {}, 'row_sparse', [[0.829292, 1.82929], [3.0, 4.0], [4.9, 5.9]]),
]


def run(updater, weight, gradients=GRADIENTS):
    for g in gradients:
        updater(0, mx.nd.array(g, dtype=weight.dtype), weight)
    return weight


def make(name, **kwargs):
    return mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, **kwargs))


@pytest.mark.parametrize("name, kwargs, expected", DENSE)
def test_three_steps(name, kwargs, expected):
    weight = run(make(name, wd=0.1, rescale_grad=0.5, **kwargs), mx.nd.array(START))
    np.testing.assert_allclose(weight.asnumpy(), expected, rtol=2e-5)


@pytest.mark.parametrize("name, kwargs, expected", [c for c in DENSE if c[0] != "test"])
def test_three_steps_in_float64(name, kwargs, expected):
    weight = run(make(name, wd=0.1, rescale_grad=0.5, **kwargs), mx.nd.array(START, dtype="float64"))
    assert weight.dtype == np.float64
    np.testing.assert_allclose(weight.asnumpy(), expected, rtol=2e-5)


@pytest.mark.parametrize("name, kwargs, expected", [c for c in DENSE if c[0] != "test"])
def test_multi_precision_steps_in_float32(name, kwargs, expected):
    weight = run(make(name, wd=0.1, rescale_grad=0.5, multi_precision=True, **kwargs), mx.nd.array(START, dtype="float16"))
    assert weight.dtype == np.float16
    np.testing.assert_allclose(weight.asnumpy(), expected, rtol=3e-3)


@pytest.mark.parametrize("name, kwargs, stype, expected", SPARSE)
def test_row_sparse_gradients(name, kwargs, stype, expected):
    updater = make(name, rescale_grad=0.5, **kwargs)
    weight = mx.nd.array([[1, 2], [3, 4], [5, 6]]).tostype(stype)
    for rows in ([0], [0, 2]):
        updater(0, mx.nd.sparse.row_sparse_array((np.ones((len(rows), 2)), rows), shape=(3, 2), dtype="float32"), weight)
    np.testing.assert_allclose(weight.asnumpy(), expected, rtol=2e-5)


def test_group_adagrad():
    updater = mx.optimizer.get_updater(mx.optimizer.create("groupadagrad", learning_rate=0.1, rescale_grad=0.5))
    weight = mx.nd.array([START, [0, 1, 2]])
    for g in GRADIENTS:
        updater(0, mx.nd.array([g, [1, 1, 1]]), weight)
    np.testing.assert_allclose(weight.asnumpy(), [[0.9924319, -2.030022, 0.4113362], [-0.2284426, 0.7715574, 1.7715575]], rtol=1e-5)
    np.testing.assert_allclose(updater.states[0].asnumpy(), [[0.964375], [0.75]], rtol=1e-6)


def test_group_adagrad_refuses_vectors_and_decay():
    opt = mx.optimizer.create("groupadagrad")
    with pytest.raises(mx.MXNetError, match=r"weight 0 has shape \(3,\)"):
        opt.create_state(0, mx.nd.ones((3,)))
    opt.wd = 0.1
    weight = mx.nd.ones((2, 2))
    with pytest.raises(mx.MXNetError, match="Weight decay is not supported"):
        opt.update(0, weight, weight, opt.create_state(0, weight))


def test_adagrad_refuses_decay_of_rows():
    opt = mx.optimizer.AdaGrad(wd=0.1)
    weight = mx.nd.ones((2, 2))
    with pytest.raises(mx.MXNetError, match="wd=0.1"):
        opt.update(0, weight, weight.tostype("row_sparse"), opt.create_state(0, weight))


@pytest.mark.parametrize("name, kwargs", [("sgd", {"momentum": 0.9}), ("sgd", {}), ("lars", {"momentum": 0.9}), ("lamb", {})])
@pytest.mark.parametrize("multi_precision", [False, True])
def test_several_weights_at_once_are_updated_as_one_by_one(name, kwargs, multi_precision):
    rng = np.random.RandomState(0)
    names = dict(enumerate(["a_weight", "b_bias", "c_weight"]))
    dtype = "float16" if multi_precision else "float32"
    start = [rng.randn(*s) for s in ((4, 5), (3,), (2, 2))]
    weights = []
    for together in (False, True):
        updater = make(name, wd=0.1, param_idx2name=names, multi_precision=multi_precision, **kwargs)
        rng.seed(1)
        ws = [mx.nd.array(w, dtype=dtype) for w in start]
        for _ in range(3):
            gs = [mx.nd.array(rng.randn(*w.shape), dtype=dtype) for w in ws]
            if together:
                updater([0, 1, 2], gs, ws)
            else:
                for i in range(3):
                    updater(i, gs[i], ws[i])
        weights.append(ws)
    for one, other in zip(*weights):
        assert_almost_equal(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("clip", [None, 0.3])
def test_one_pass_over_a_large_weight_does_the_same(clip):
    rng = np.random.RandomState(0)
    size = 1 << 19  # from where on SGD with momentum takes one pass
    w, g = rng.randn(size).astype("float32"), rng.randn(size).astype("float32")
    weight, updater = mx.nd.array(w), make("sgd", momentum=0.9, wd=0.1, rescale_grad=0.5, clip_gradient=clip)
    mom = np.zeros_like(w)
    for _ in range(2):
        updater(0, mx.nd.array(g), weight)
        scaled = 0.5 * g if clip is None else np.clip(0.5 * g, -clip, clip)
        mom = 0.9 * mom - 0.1 * (scaled + 0.1 * w)
        w = w + mom
    np.testing.assert_allclose(weight.asnumpy(), w, rtol=1e-4, atol=1e-6)


def test_gradients_are_left_alone():
    for name in ("sgd", "adam", "adadelta", "nag", "rmsprop", "adamax", "nadam", "dcasgd"):
        grad = mx.nd.array([1.0, 2.0])
        make(name, rescale_grad=0.5, wd=0.1)(0, grad, mx.nd.ones((2,)))
        assert grad.asnumpy().tolist() == [1.0, 2.0], name


def test_sgld_draws_noise_of_the_right_size():
    mx.random.seed(1)
    weight = mx.nd.zeros((20000,))
    make("sgld")(0, mx.nd.ones((20000,)), weight)
    assert abs(weight.asnumpy().mean() + 0.05) < 0.01
    assert abs(weight.asnumpy().std() - np.sqrt(0.1)) < 0.01


def test_dcasgd_with_momentum():
    weight = run(make("dcasgd", momentum=0.9), mx.nd.array(START))
    w, before, mom = np.array(START), np.array(START), np.zeros(3)
    for g in np.array(GRADIENTS):
        mom = 0.9 * mom - 0.1 * (g + 0.04 * g * g * (w - before))
        before, w = w, w + mom
    np.testing.assert_allclose(weight.asnumpy(), w, rtol=1e-5)


def test_lbsgd_adds_gradients_up():
    updater = make("lbsgd", batch_scale=2, warmup_epochs=0)
    weight, grad = mx.nd.zeros((1,)), mx.nd.array([1.0])
    updater(0, grad, weight)
    assert weight.asscalar() == 0
    grad[:] = 3  # the next batch, in the same array
    updater(0, grad, weight)
    np.testing.assert_allclose(weight.asnumpy(), [-0.4], rtol=1e-6)  # 0.1 * 2 * (1 + 3) / 2


def test_half_precision_warns():
    with pytest.warns(UserWarning, match="SGD: weights of half precision lose small updates"):
        mx.optimizer.SGD().create_state_multi_precision(0, mx.nd.ones((2,), dtype="float16"))


def test_only_arrays_are_updated():
    with pytest.raises(mx.MXNetError, match="`grad` is ndarray"):
        mx.optimizer.SGD().update(0, mx.nd.ones((2,)), np.ones(2), None)


def test_weights_being_trained_are_written_in_place():
    weight = mx.nd.ones((2,))
    weight.attach_grad()
    with mx.autograd.record():
        loss = (weight * weight).sum()
    loss.backward()
    tensor = weight.as_torch()
    make("sgd", momentum=0.9)(0, weight.grad, weight)
    np.testing.assert_allclose(tensor.detach().numpy(), [0.8, 0.8], rtol=1e-6)
    with mx.autograd.record():
        (weight * weight).sum().backward()
    np.testing.assert_allclose(weight.grad.asnumpy(), [1.6, 1.6], rtol=1e-6)


def test_no_optimizer_warns_about_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("adam", "nag", "ftml", "signum"):
            run(make(name), mx.nd.array(START))
