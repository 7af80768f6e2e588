import pytest
import torch

from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.gemm import csr

pytestmark = pytest.mark.skipif(kernels.load("gemm/csr") is None, reason="no C++ compiler")
STARTS, COLUMNS, VALUES = torch.tensor([0, 2, 2, 5]), torch.tensor([3, 0, 1, 3, 3]), torch.tensor([1.0, 2, 3, 4, 5])  # one entry stands there twice
MATRIX = torch.tensor([[2.0, 0, 0, 1], [0, 0, 0, 0], [0, 3, 0, 9]])


@pytest.fixture(autouse=True)
def small(monkeypatch):
    used_from(monkeypatch, 0, csr)


@pytest.mark.parametrize("width", [1, 3, 70_001])  # the last one is written past the caches
def test_rows_are_scaled_and_added_up(width):
    table, gradient = torch.arange(4.0 * width).view(4, width) % 97, torch.arange(3.0 * width).view(3, width) % 89
    assert torch.equal(csr.product(STARTS, COLUMNS, VALUES, table), MATRIX @ table)
    assert torch.equal(csr.transposed_product(STARTS, COLUMNS, VALUES, 4, gradient), MATRIX.t() @ gradient)


def test_a_matrix_without_numbers_makes_zeros():
    none = torch.zeros(3, dtype=torch.int64), torch.empty(0, dtype=torch.int64), torch.empty(0)
    assert csr.product(*none, torch.ones(4, 2)).tolist() == [[0, 0], [0, 0]]
    assert csr.transposed_product(*none, 1, torch.ones(2, 2)).tolist() == [[0, 0]]


def test_what_lies_outside_of_the_matrix_is_passed_over():
    starts, columns = torch.tensor([-5, 2, 1 << 40]), torch.tensor([4, -1, 2, 0])
    values = torch.tensor([1.0, 1, 2, 3])
    assert csr.product(starts, columns, values, torch.ones(4, 2)).tolist() == [[0, 0], [5, 5]]
    assert csr.transposed_product(starts, columns, values, 4, torch.ones(2, 1)).tolist() == [[3], [0], [2], [0]]


def test_a_gradient_that_is_no_matrix_of_its_own_is_read_in_order():
    gradient = torch.arange(6.0).view(2, 3).t()
    assert csr.transposed_product(STARTS, COLUMNS, VALUES, 4, gradient).tolist() == (MATRIX.t() @ gradient).tolist()


def test_what_has_no_kernel_is_left_to_torch(monkeypatch):
    table = torch.ones(4, 2)
    assert csr.product(STARTS, COLUMNS, VALUES.double(), table.double()) is None
    assert csr.product(STARTS.int(), COLUMNS, VALUES, table) is None
    assert csr.transposed_product(STARTS, COLUMNS, VALUES, 4, table) is None  # rows do not fit
    used_from(monkeypatch, 11, csr)
    assert csr.product(STARTS, COLUMNS, VALUES, table) is None
