import numpy as np
import pytest
import torch

from mxnet import kernels
from mxnet.kernels.nn import nms
from mxnet.ops.spatial import boxes as operators

needs_compiler = pytest.mark.skipif(kernels.load("nn/nms") is None, reason="no C++ compiler")


def boxes(count):
    random = np.random.RandomState(3)
    # On a coarse grid, so that overlaps are equal to thresholds, and boxes to each other; some have negative sides.
    start = random.randint(0, 12, (count, 2))
    found = np.concatenate([start, start + random.randint(-1, 8, (count, 2))], 1).astype("float32")
    if count > 5:
        found[1, 2], found[3], found[4, 1] = np.nan, np.inf, -np.inf
    return found


@needs_compiler
@pytest.mark.parametrize("count", [0, 1, 2, 300])
@pytest.mark.parametrize("threshold, border, limit, inclusive", [(0.5, 0, None, False), (0.5, 0, None, True), (0.7, 1, 20, False), (0.0, 1, 0, False),
                                                                 (1 / 3, 0, 7, True)])
@pytest.mark.parametrize("classes", [False, True])
def test_the_kernel_suppresses_what_numpy_does(count, threshold, border, limit, inclusive, classes, without_kernels):
    classes = np.random.RandomState(1).randint(0, 3, count) if classes else None
    arguments = boxes(count), threshold, classes, border, limit, inclusive
    with without_kernels():
        expected = operators.greedy_suppression(*arguments)
    np.testing.assert_array_equal(operators.greedy_suppression(*arguments), expected)
    assert count < 300 or 0 < expected.sum() < 300 or limit == 0


@needs_compiler
@pytest.mark.parametrize("rows, columns", [(0, 3), (3, 0), (1, 1), (200, 33)])
def test_the_kernel_computes_the_overlaps_that_torch_does(rows, columns, without_kernels):
    lhs, rhs = torch.from_numpy(boxes(rows)), torch.from_numpy(boxes(columns)).flip(0)
    with without_kernels():
        expected = operators.overlaps(lhs, rhs)
    torch.testing.assert_close(operators.overlaps(lhs, rhs), expected, rtol=0, atol=0, equal_nan=True)


@needs_compiler
def test_boxes_in_any_memory_layout():
    lhs = torch.from_numpy(boxes(20))
    turned = lhs.t().contiguous().t()
    torch.testing.assert_close(operators.overlaps(turned, turned), operators.overlaps(lhs, lhs), equal_nan=True)
    np.testing.assert_array_equal(operators.greedy_suppression(np.asfortranarray(boxes(20)), 0.3), operators.greedy_suppression(boxes(20), 0.3))


def test_other_types_are_not_for_the_kernel():
    wide = boxes(3).astype("float64")
    assert nms.suppress(wide, 0.5, None, 0, None, False) is None
    assert nms.overlaps(torch.from_numpy(wide), torch.from_numpy(wide)) is None
    assert nms.overlaps(torch.zeros(1, 4, requires_grad=True), torch.zeros(1, 4)) is None


def test_suppression_by_hand():
    corners = np.array([[0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30], [0, 0, 10, 5]], "float32")
    assert operators.greedy_suppression(corners, 0.5).tolist() == [True, False, True, True]
    assert operators.greedy_suppression(corners, 0.5, inclusive=True).tolist() == [True, False, True, False]
    assert operators.greedy_suppression(corners, 0.5, np.array([0, 1, 0, 0])).tolist() == [True, True, True, True]
