import math

import numpy as np
import pytest
import torch

import mxnet as mx
from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.elementwise import pointwise

pytestmark = pytest.mark.skipif(kernels.load("elementwise/pointwise") is None, reason="no C++ compiler")
INF, NAN = math.inf, math.nan


@pytest.fixture(autouse=True)
def kernels_for_all(monkeypatch):
    used_from(monkeypatch, 0, pointwise)


def same(found, expected):
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=0, equal_nan=True)
    assert [math.copysign(1, x) for x in found.tolist() if x == 0] == [math.copysign(1, x) for x in expected if x == 0]


def nearly_all_to_the_last_bit(found, expected):
    apart = (found.view(torch.int32) - expected.float().view(torch.int32)).abs()
    assert apart.max() <= 1 and apart.float().mean() < 1e-3


def test_gamma_is_right_to_the_last_bit():
    values = torch.cat([torch.linspace(-44, 36, 9973), torch.logspace(-37, 1, 500), -torch.logspace(-37, 1, 500)])
    wide = values.double()
    floor = wide.floor()
    expected = torch.lgamma(wide).exp() * torch.where((wide < 0) & (floor % 2 != 0), -1, 1)
    found = pointwise.gamma(values)
    poles = (values <= 0) & (values == values.floor())
    torch.testing.assert_close(found[~poles], expected[~poles].float(), rtol=1.3e-7, atol=1.5e-45)
    assert found[poles].isnan().all()


def test_gamma_at_the_ends():
    # Asked of MXNet 1.9.1.
    same(pointwise.gamma(torch.tensor([0, -0.0, 1, -1, 36, -41.5, -60.5, -61.5, INF, -INF, NAN, 1e-39, 1e20, -1e20])),
         [INF, -INF, 1, NAN, INF, 0.0, -0.0, 0.0, INF, NAN, NAN, INF, INF, NAN])


def test_cube_roots_are_right_to_the_last_bit():
    values = torch.cat([torch.logspace(-45, 38, 9973), torch.linspace(0.5, 9, 9973), torch.tensor([2.0 ** i for i in range(-149, 128)])])
    values = torch.cat([values, -values])
    expected = torch.copysign(values.double().abs().pow(1 / 3), values)
    nearly_all_to_the_last_bit(pointwise.cube_root(values), expected)
    whole = torch.arange(-250.0, 250)
    same(pointwise.cube_root(whole ** 3), whole.tolist())
    same(pointwise.cube_root(torch.tensor([0, -0.0, INF, -INF, NAN])), [0, -0.0, INF, -INF, NAN])


@pytest.mark.parametrize("function, expected, low, high", [
    (pointwise.arcsinh, torch.asinh, 1e-37, 3e38), (pointwise.arccosh, torch.acosh, 1.0, 3e38)])
def test_inverse_hyperbolic_functions_are_right_to_the_last_bit(function, expected, low, high):
    values = torch.cat([torch.logspace(math.log10(low), math.log10(high), 9973, dtype=torch.float64).float().clamp(low, high),
                        1 + torch.arange(999) * 2.0 ** -23 if low == 1 else torch.linspace(0.0005, 0.0015, 999)])
    values = values if low == 1 else torch.cat([values, -values])
    nearly_all_to_the_last_bit(function(values), expected(values.double()))


@pytest.mark.parametrize("scalar", [3.5, -3.5, 1.0, 7e-3, 1e30, INF, NAN, 0.0])
def test_remainders_are_those_of_the_c_library(scalar):
    values = torch.cat([torch.linspace(-9, 9, 999), torch.logspace(-44, 37, 500), -torch.logspace(-44, 37, 500), torch.arange(-40.0, 40) / 8,
                        torch.tensor([0.0, -0.0, INF, -INF, NAN])])
    scalar = torch.tensor(scalar).item()

    def expected(x):
        if x == 0 or math.isnan(x) or math.isinf(scalar) or math.isnan(scalar):
            return 0.0 if x == 0 else NAN
        rest = math.fmod(scalar, x)
        return rest + x if rest and (rest < 0) != (x < 0) else rest

    found = pointwise.rest_by(values, scalar)
    torch.testing.assert_close(found, torch.tensor([expected(x) for x in values.tolist()]), rtol=0, atol=0, equal_nan=True)


def test_the_gradient_of_the_remainder():
    # Asked of MXNet 1.9.1.
    values = torch.tensor([0, -0.0, 1, -1, 2, -2, INF, -INF, NAN, 0.3, 7])
    same(pointwise.rest_by_back(values, torch.ones(11), 3.5), [-INF, INF, -3, 4, -1, 2, -0.0, 0.0, NAN, -11, -0.0])


def test_softsign_and_its_gradient():
    values = torch.tensor([0, -0.0, 1, -3, INF, -INF, NAN, 1e30])
    same(pointwise.softsign(values), [0, -0.0, 0.5, -0.75, NAN, NAN, NAN, 1])
    same(pointwise.softsign_back(values, torch.ones(8)), [1, 1, 0.25, 0.0625, 0, 0, NAN, 0])


def test_what_is_recorded_or_in_another_order_is_left_to_torch():
    assert pointwise.softsign(torch.ones(3, requires_grad=True)) is None
    assert pointwise.softsign(torch.ones(3, 4).t()) is None and pointwise.softsign(torch.ones(3).double()) is None


# Asked of MXNet 1.9.1, with a gradient of 2 coming in.
NUMBERS = [0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.25, -0.25, 0.49999997, -0.49999997, 8388609, -8388609, 4194304.5, INF, -INF, NAN]
BORDERS = [0, -0.0, 1, -1, 0.75, -0.5, 3, INF, -INF, NAN]
LEFT, RIGHT = [1, 2, 3, NAN, 1, NAN, INF, -INF, 0], [2, 1, 3, 1, NAN, NAN, INF, INF, 0]
OPERATORS = {
    "rint": (mx.nd.rint, [NUMBERS], [0, -0.0, 0, -1, 1, -2, 2, -3, 0, -0.0, 0, -0.0, 8388609, -8388609, 4194304, INF, -INF, NAN], [[0] * 18]),
    "round": (mx.nd.round, [NUMBERS], [0, -0.0, 1, -1, 2, -2, 3, -3, 0, -0.0, 0, -0.0, 8388609, -8388609, 4194305, INF, -INF, NAN], [[0] * 18]),
    "clip": (lambda x: mx.nd.clip(x, -0.5, 0.75), [BORDERS], [0, -0.0, 0.75, -0.5, 0.75, -0.5, 0.75, 0.75, -0.5, NAN],
             [[2, 2, 0, 0, 2, 2, 0, 0, 0, 2]]),
    "clip, borders exchanged": (lambda x: mx.nd.clip(x, 0.75, -0.5), [BORDERS], [-0.5, -0.5, -0.5, 0.75, -0.5, 0.75, -0.5, -0.5, 0.75, NAN],
                                [[0] * 9 + [2]]),
    "hard_sigmoid": (lambda x: mx.nd.hard_sigmoid(x, alpha=0.25, beta=0.5), [[0, -2, 2, 1, -1, 3, -3, INF, -INF]],
                     [0.5, 0, 1, 0.75, 0.25, 1, 0, 1, 0], [[0.5, 0, 0, 0.5, 0.5, 0, 0, 0, 0]]),
    "arcsinh": (mx.nd.arcsinh, [[0.75, -0.75, 0, -0.0, INF, -INF, NAN, 1e-5]], [math.log(2), -math.log(2), 0, -0.0, INF, -INF, NAN, 1e-5],
                [[1.6, 1.6, 2, 2, 0, 0, NAN, 2]]),
    "arccosh": (mx.nd.arccosh, [[1.25, 1, 0.5, -3, INF, NAN]], [math.log(2), 0, NAN, NAN, INF, NAN], [[8 / 3, INF, NAN, 0.5 ** 0.5, 0, NAN]]),
    "cbrt": (mx.nd.cbrt, [[8, -0.125, 0, -0.0, INF, NAN]], [2, -0.5, 0, -0.0, INF, NAN], [[1 / 6, 8 / 3, INF, INF, 0, NAN]]),
    "quadratic": (lambda x: mx.nd.contrib.quadratic(x, a=1.5, b=-2, c=0.25), [[0, 1, -2, 0.5, INF, NAN]], [0.25, -0.25, 10.25, -0.375, INF, NAN],
                  [[-4, 2, -16, -1, INF, NAN]]),
    "maximum": (mx.nd._internal._maximum, [LEFT, RIGHT], [2, 2, 3, NAN, NAN, NAN, INF, INF, 0],
                [[0, 2, 2, 0, 0, 0, 2, 0, 2], [2, 0, 0, 0, 0, 0, 0, 2, 0]]),
    "minimum": (mx.nd._internal._minimum, [LEFT, RIGHT], [1, 1, 3, NAN, NAN, NAN, INF, -INF, 0],
                [[2, 0, 2, 0, 0, 0, 2, 2, 2], [0, 2, 0, 0, 0, 0, 0, 0, 0]]),
    "_maximum_scalar": (lambda x: mx.nd._internal._maximum_scalar(x, scalar=0.5), [[0.5, 1, 0, -3, INF, -INF, NAN]],
                        [0.5, 1, 0.5, 0.5, INF, 0.5, NAN], [[2, 2, 0, 0, 2, 0, 0]]),
    "_minimum_scalar": (lambda x: mx.nd._internal._minimum_scalar(x, scalar=0.5), [[0.5, 1, 0, -3, INF, -INF, NAN]],
                        [0.5, 0.5, 0, -3, 0.5, -INF, NAN], [[2, 0, 2, 2, 0, 2, 0]]),
    "_rdiv_scalar": (lambda x: mx.nd._internal._rdiv_scalar(x, scalar=1.5), [[0.5, -2, 0, -0.0, INF, NAN]],
                     [3, -0.75, INF, -INF, 0, NAN], [[-12, -0.75, -INF, -INF, -0.0, NAN]]),
    "where": (mx.nd.where, [[1, 0, -1, NAN, 0, 0.5], [1, 2, 3, 4, 5, 6], [-1, -2, -3, -4, -5, -6]], [1, -2, 3, 4, -5, 6],
              [[0] * 6, [2, 0, 2, 2, 0, 2], [0, 2, 0, 0, 2, 0]]),
    "mod": (mx.nd._internal._mod, [[7, -7, 7, -7, 5.5, 3, 0, 1], [3, 3, -3, -3, 0.5, 0, 2, NAN]], [1, 2, -2, -1, 0, 0, 0, NAN],
            [[2] * 8, [-4, 6, 6, -4, -22, -INF, -0.0, NAN]]),
    "square": (mx.nd.square, [[3, -0.5, 0, INF, NAN]], [9, 0.25, 0, INF, NAN], [[12, -2, 0, INF, NAN]]),
    "elemwise_div": (mx.nd.elemwise_div, [[1, -6, 0, 3], [2, 4, 8, -8]], [0.5, -1.5, 0, -0.375],
                     [[1, 0.5, 0.25, -0.25], [-0.5, 0.75, -0.0, -0.09375]]),
    "add_n": (mx.nd.add_n, [[1e8, 1], [1, 2], [-1e8, 4], [0.5, 8]], [0.5, 15], [[2, 2]] * 4),
}


@pytest.fixture(params=[0, 1 << 62], ids=["kernel", "torch"])
def either(request, monkeypatch):
    used_from(monkeypatch, request.param, pointwise)


@pytest.mark.parametrize("shape", [(-1,), (1, 1, 1, -1)], ids=["flat", "images"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_and_their_gradients(name, shape, either):
    function, inputs, expected, gradients = OPERATORS[name]
    arrays = [mx.nd.array(x).reshape(shape) for x in inputs]
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        out = function(*arrays)
    out.backward(mx.nd.ones_like(out) * 2)
    for found, wanted in zip([out, *[a.grad for a in arrays]], [expected, *gradients]):
        assert found.shape == arrays[0].shape
        same(torch.from_numpy(found.asnumpy().reshape(-1)), torch.tensor(wanted).float().tolist())


@pytest.mark.parametrize("name", ["arcsinh", "cbrt", "clip", "hard_sigmoid", "quadratic", "square", "elemwise_div", "where", "maximum",
                                  "_maximum_scalar", "_rdiv_scalar"])
def test_gradients_of_gradients(name, either):
    function, inputs, *_ = OPERATORS[name]
    arrays = [mx.nd.array([0.5, -0.25, 0.125]) * (i + 1) for i in range(len(inputs))]
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        first = mx.autograd.grad(function(*arrays), [arrays[-1]], create_graph=True)[0]
        total = (first * first * arrays[-1]).sum()
    total.backward()
    tensors = [torch.from_numpy(a.asnumpy()).requires_grad_() for a in arrays]
    last = tensors[-1]
    found = {"arcsinh": lambda: last.asinh(), "cbrt": lambda: last.sign() * last.abs() ** (1 / 3), "clip": lambda: last * 1,
             "hard_sigmoid": lambda: last * 0.25 + 0.5, "quadratic": lambda: 1.5 * last * last - 2 * last,
             "square": lambda: last * last, "elemwise_div": lambda: tensors[0] / last, "where": lambda: last * 0,
             "_maximum_scalar": lambda: last.clamp(min=0.5), "_rdiv_scalar": lambda: 1.5 / last,
             "maximum": lambda: torch.stack([last[0], last[1] * 0, last[2]])}[name]()
    first, = torch.autograd.grad(found.sum(), last, create_graph=True)
    (first * first * last).sum().backward()
    torch.testing.assert_close(torch.from_numpy(arrays[-1].grad.asnumpy()), last.grad, rtol=1e-6, atol=1e-6)


def test_choices_by_conditions_of_all_types(either):
    x, y = torch.tensor([1.0, 2, 3]), torch.tensor([-1.0, -2, -3])
    for dtype in (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32, torch.float64):
        assert pointwise.choose(torch.tensor([1, 0, 1]).to(dtype), x, y).tolist() == [1, -2, 3]
    assert pointwise.choose(torch.tensor([[True], [False]]), x, y).tolist() == [[1, 2, 3], [-1, -2, -3]]


def test_images_with_channels_last_stay_so():
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    found = pointwise.round_down(x)
    assert found.is_contiguous(memory_format=torch.channels_last) and torch.equal(found, x.round())
    dout = torch.randn(2, 3, 4, 5)
    assert torch.equal(pointwise.clip_back(x.contiguous(), dout.contiguous(memory_format=torch.channels_last), -0.5, 0.5), dout * (x.abs() <= 0.5))
    assert pointwise.clip_back(x, dout, -0.5, 0.5) is None  # two orders


def test_remainders_of_two_arrays_are_those_of_numpy():
    lhs, rhs = torch.randn(2, 3000) * torch.logspace(-6, 6, 3000)
    rhs = rhs.flip(0)
    found = pointwise.rest_of(lhs, rhs)
    assert torch.equal(found, torch.from_numpy(np.mod(lhs.numpy(), rhs.numpy())))
    found = pointwise.rest_of(torch.tensor([5.0, -5, INF, 3, 1e30, 1]), torch.tensor([INF, 3, 2, 0, 3, NAN]))
    same(found, [5, 1, NAN, 0, math.fmod(1.0000000150474662e30, 3), NAN])


def test_rates_by_norms():
    # Asked of MXNet 1.9.1.
    given = [1.0, 2, 3, 4, 0.5], [4.0, 0, 9, 16, 1], [1, 1, 0, 4, NAN], [0.5, 0.5, 0.5, 0, 0]
    rates = pointwise.adapted_rates(*map(torch.tensor, given), 0.5, 2, 0.25)
    same(rates, torch.tensor([0.3076923191547394, 2.0, 3.0, 1.8823529481887817, 0.5]).tolist())
