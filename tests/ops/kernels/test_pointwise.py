import math

import pytest
import torch

from mxnet.ops import kernels
from mxnet.ops.kernels import pointwise

pytestmark = pytest.mark.skipif(kernels.load("pointwise") is None, reason="no C++ compiler")
INF, NAN = math.inf, math.nan


@pytest.fixture(autouse=True)
def kernels_for_all(monkeypatch):
    monkeypatch.setattr(pointwise, "_WORTHWHILE", 0)


def same(found, expected):
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=0, equal_nan=True)
    assert [math.copysign(1, x) for x in found.tolist() if x == 0] == [math.copysign(1, x) for x in expected if x == 0]


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
