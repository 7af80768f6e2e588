import numpy as np
import pytest
import torch

from mxnet import kernels
from mxnet.kernels.nn import optimizer_update

pytestmark = pytest.mark.skipif(kernels.load("nn/optimizer_update") is None, reason="no C++ compiler")
LR, BETA1, BETA2 = 0.1, 0.9, 0.99


def tensors(rows, width, count=None):
    random = np.random.RandomState(5)
    weight, grad, first, second = (torch.from_numpy(random.randn(n, width).astype("float32")) for n in (rows, count or rows, rows, rows))
    return weight, grad, first, second.abs_()


def expected(kind, tensors, epsilon, wd, rescale, clip):
    """The formulas, in double precision."""
    weight, grad, first, second = (t.double() for t in tensors)
    g = rescale * grad + wd * weight
    g = g.clamp(-clip, clip) if clip is not None else g
    first = BETA1 * first + (1 - BETA1) * g
    if kind == "adam":
        second = BETA2 * second + (1 - BETA2) * g * g
        return weight - LR * first / (second.sqrt() + epsilon), first, second
    second = torch.maximum(BETA2 * second, g.abs() + epsilon)
    return weight - LR * first / second, first, second


@pytest.mark.parametrize("kind", ["adam", "adamax"])
@pytest.mark.parametrize("epsilon, wd, rescale, clip", [(0, 0, 1, None), (0.1, 0.2, 0.5, None), (1e-8, 0.1, 2, 0.7), (1e-8, 0, 3, 0.5)])
def test_one_pass_computes_the_formulas(kind, epsilon, wd, rescale, clip):
    given = tensors(3, 40_001)  # more than a block, and no whole number of vectors
    wanted = expected(kind, given, epsilon, wd, rescale, clip)
    assert getattr(optimizer_update, kind)(*given, None, LR, BETA1, BETA2, epsilon, wd, rescale, clip)
    for found, value in zip((given[0], *given[2:]), wanted):
        np.testing.assert_allclose(found, value, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", ["adam", "adamax"])
def test_only_the_rows_that_are_numbered_move(kind):
    given, index = tensors(50, 30_000, 3), torch.tensor([7, 0, 49])
    before = [t.clone() for t in given]
    wanted = expected(kind, [given[0][index], given[1], given[2][index], given[3][index]], 1e-8, 0.1, 0.5, None)
    assert getattr(optimizer_update, kind)(*given, index, LR, BETA1, BETA2, 1e-8, 0.1, 0.5, None)
    others = torch.ones(50, dtype=torch.bool).index_fill_(0, index, False)
    for found, old, value in zip((given[0], *given[2:]), (before[0], *before[2:]), wanted):
        np.testing.assert_allclose(found[index], value, rtol=2e-5, atol=2e-6)
        assert torch.equal(found[others], old[others])


def test_rows_that_there_are_not_are_passed_over():
    given = tensors(40, 40_000, 2)
    before = [t.clone() for t in given]
    assert optimizer_update.adam(*given, torch.tensor([-1, 40]), LR, BETA1, BETA2, 1e-8, 0, 1, None)
    assert all(map(torch.equal, given, before))


def test_what_has_no_kernel_is_left_to_torch():
    numbers = LR, BETA1, BETA2, 0, 0, 1, None
    assert not optimizer_update.adamax(*tensors(2, 3), None, *numbers)  # too small
    assert not optimizer_update.adamax(*(t.double() for t in tensors(3, 40_000)), None, *numbers)
    assert not optimizer_update.adamax(*tensors(300, 400, 3), None, *numbers)  # a gradient of another size
    weight, grad, first, second = tensors(300, 400)
    assert not optimizer_update.adamax(weight.t(), grad.t(), first.t(), second.t(), None, *numbers)


def test_zero_divided_by_zero_and_nan_stay_no_numbers():
    weight, grad, first, second = (torch.zeros(1, 70_000) for _ in range(4))
    grad[0, 0], second[0, 1], grad[0, 2] = float("nan"), float("nan"), 1
    optimizer_update.adamax(weight, grad, first, second, None, LR, BETA1, BETA2, 0, 0, 1, None)
    assert weight[0, [0, 1, 3]].isnan().all() and weight[0, 2] == pytest.approx(-0.01) and second[0, :2].isnan().all()
