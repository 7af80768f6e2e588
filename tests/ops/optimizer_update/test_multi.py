"""Updates of many weights in one call: each must come out as the update of one weight does."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

RATES, DECAYS = (0.1, 0.2), (0.01, 0.03)
COMMON = {"rescale_grad": 0.5, "clip_gradient": 0.4}
internal = mx.nd._internal


def arrays(seed, dtype="float32"):
    draw = np.random.RandomState(seed)
    return [mx.nd.array(draw.randn(*s), dtype=dtype) for s in ((3, 2), (5,))]


def flat(*columns):
    return [a for group in zip(*columns) for a in group]


def assert_same(found, expected):
    for f, e in zip(found, expected, strict=True):
        assert f.dtype == e.dtype
        np.testing.assert_array_equal(f.asnumpy(), e.asnumpy())


@pytest.mark.parametrize("preloaded", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("momentum", [False, True])
def test_sgd(momentum, mixed, preloaded):
    dtype = "float16" if mixed else "float32"
    columns = [arrays(0, dtype), arrays(1, dtype)]
    attributes = dict(COMMON)
    if momentum:
        columns.append(arrays(2))
        attributes["momentum"] = 0.9
    if mixed:
        columns.append([w.astype("float32") for w in columns[0]])
    copies = [[a.copy() for a in column] for column in columns]
    middle = ("mp_" if mixed else "") + "sgd_" + ("mom_" if momentum else "") + "update"
    # The rates as float32 holds them, since an array of them cannot hold more.
    rates, decays = ([float(np.float32(v)) for v in values] for values in (RATES, DECAYS))
    expected = [getattr(mx.nd, middle)(*group, lr=lr, wd=wd, **attributes) for group, lr, wd in zip(zip(*copies), rates, decays)]
    if preloaded:
        found = getattr(mx.nd, "preloaded_multi_" + middle)(*flat(*columns), mx.nd.array(RATES), mx.nd.array(DECAYS), num_weights=2, **attributes)
    else:
        found = getattr(mx.nd, "multi_" + middle)(*flat(*columns), lrs=rates, wds=decays, num_weights=2, **attributes)
    assert_same(found, expected)
    assert_same(flat(*columns[2:]), flat(*copies[2:]))


def test_one_weight_is_no_list():
    w, g = mx.nd.ones((2,)), mx.nd.ones((2,))
    assert mx.nd.multi_sgd_update(w, g, lrs=(0.5,), wds=(0,), num_weights=1, out=w) is w
    assert w.asnumpy().tolist() == [0.5, 0.5]


def test_out():
    (a, b), gradients = arrays(0), arrays(1)
    before = a.asnumpy()
    mx.nd.multi_sgd_update(a, gradients[0], b, gradients[1], lrs=(1, 1), wds=(0, 0), num_weights=2, out=[a, b])
    np.testing.assert_allclose(a.asnumpy(), before - gradients[0].asnumpy(), rtol=1e-6)


@pytest.mark.parametrize("mixed", [False, True])
def test_adamw(mixed):
    dtype = "float16" if mixed else "float32"
    columns = [arrays(0, dtype), arrays(1, dtype), arrays(2), [mx.nd.abs(a) for a in arrays(3)]]
    if mixed:
        columns.append([w.astype("float32") for w in columns[0]])
    copies = [[a.copy() for a in column] for column in columns]
    scale, prefix = mx.nd.array([0.5]), "mp_" if mixed else ""
    expected = [getattr(internal, f"_{prefix}adamw_update")(*group, scale, lr=lr, wd=wd, eta=eta, clip_gradient=0.4)
                for group, lr, wd, eta in zip(zip(*copies), RATES, DECAYS, (0.7, 0.8))]
    found = getattr(internal, f"_multi_{prefix}adamw_update")(*flat(*columns), scale, lrs=RATES, wds=DECAYS, etas=(0.7, 0.8), clip_gradient=0.4,
                                                              num_weights=2)
    assert_same(found, expected)
    assert_same(flat(*columns[2:]), flat(*copies[2:]))
    unchanged = getattr(internal, f"_multi_{prefix}adamw_update")(*flat(*columns), mx.nd.array([0]), lrs=RATES, wds=DECAYS, etas=(0.7, 0.8),
                                                                  num_weights=2)
    assert_same(unchanged, columns[0])


def test_lamb():
    # Values of MXNet 1.9.1.
    first = [mx.nd.array(v) for v in ([1.0, -2.0, 0.5], [0.1, -0.4, 2.0], [0.5, 0.1, -0.2], [0.2, 0.3, 0.4])]
    second = [mx.nd.array(v) for v in ([1.0, 2.0], [0.3, -0.1], [0, 0], [0, 0])]
    found = internal._multi_lamb_update(*first, *second, learning_rates=(0.1, 0.2), wds=(0.01, 0.02), step_count=(2, 1), num_tensors=2,
                                        rescale_grad=0.5, upper_bound=2.0)
    np.testing.assert_allclose(found[0].asnumpy(), [0.8011369, -2.008039, 0.5197189], rtol=1e-5)
    np.testing.assert_allclose(found[1].asnumpy(), [0.7087181, 2.274144], rtol=1e-5)
    np.testing.assert_allclose(first[2].asnumpy(), [0.455, 0.07, -0.08], rtol=1e-5)
    np.testing.assert_allclose(second[3].asnumpy(), [2.25e-05, 2.5e-06], rtol=1e-4)


def test_lamb_mixed_precision():
    w32, g = mx.nd.array([1.0, 2.0]), mx.nd.array([0.25, -0.5], dtype="float16")
    states = [mx.nd.zeros((2,)) for _ in range(4)]
    attributes = {"learning_rates": (0.1,), "wds": (0.02,), "step_count": (1,), "num_tensors": 1}
    expected = internal._multi_lamb_update(w32.copy(), g.astype("float32"), *states[:2], **attributes)
    found = internal._multi_mp_lamb_update(w32.astype("float16"), g, *states[2:], w32, **attributes)
    assert found.dtype == np.float16
    assert_same([w32, states[2]], [expected, states[0]])


@pytest.mark.parametrize("call, message", [
    (lambda w: mx.nd.multi_sgd_update(w, w, w, lrs=(1,), wds=(0,), num_weights=1),
     "multi_sgd_update: 1 weights take 2 inputs, 2 for each; received 3"),
    (lambda w: mx.nd.multi_sgd_update(w, w, lrs=(1, 2), wds=(0,), num_weights=1),
     "`lrs` must have one entry for each of the 1 weights, received 2"),
    (lambda w: mx.nd.preloaded_multi_sgd_update(w, w, num_weights=1), "1 weights take 4 inputs, 2 for each and 2 for all; received 2"),
    (lambda w: mx.nd.preloaded_multi_sgd_update(w, w, w, w, num_weights=1),
     "must hold one learning rate and one weight decay for each of the 1 weights, "
     "received 3 and 3")])
def test_refusals(call, message):
    with pytest.raises(MXNetError, match=message):
        call(mx.nd.ones((3,)))


def test_mixed_precision_lamb_measures_the_half_precision_weight():
    weight, grad = (mx.nd.array([v], dtype="float16") for v in (1.1845703125, 0.68505859375))
    weight32 = mx.nd.array([0.685])
    mx.nd._internal._multi_mp_lamb_update(weight, grad, mx.nd.array([2]), mx.nd.array([1.5]), weight32, learning_rates=(0.1,), wds=(0,),
                                          step_count=(1,), num_tensors=1, out=weight)
    assert weight.asnumpy().tolist() == [0.56640625]
    assert weight32.asscalar() == pytest.approx(0.5665382, abs=1e-5)  # MXNet squares in half precision


def test_states_of_another_shape_are_refused():
    with pytest.raises(MXNetError, match="must have the shape of the weight, \\(2, 3\\); received \\(3,\\)"):
        mx.nd.multi_sgd_update(mx.nd.ones((2, 3)), mx.nd.ones((3,)), lrs=(0.1,), wds=(0,), num_weights=1)
