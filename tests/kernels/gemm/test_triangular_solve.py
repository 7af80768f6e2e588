import pytest
import torch

from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.gemm import triangular_solve

pytestmark = pytest.mark.skipif(kernels.load("gemm/triangular_solve") is None, reason="no C++ compiler")


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    used_from(monkeypatch, 0, triangular_solve)
    monkeypatch.setattr(triangular_solve, "_COLUMNS", 0)


def triangular(*shape, upper):
    generator = torch.Generator().manual_seed(shape[-1])
    made = torch.randn(*shape, shape[-1], generator=generator) + 3 * torch.eye(shape[-1])  # the other triangle is not to be read
    return made, (torch.triu(made) if upper else torch.tril(made))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("shape, columns", [((1,), 1), ((5,), 3), ((2, 7), 16), ((2, 3, 12), 17), ((13,), 65), ((3, 64), 70), ((0, 4), 2),
                                            ((2, 33), 128)])
def test_solutions_are_those_of_double_precision(upper, left, shape, columns, monkeypatch):
    a, triangle = triangular(*shape, upper=upper)
    a = a / shape[-1] ** 0.5 + torch.eye(shape[-1])  # so that no solution grows
    triangle = torch.triu(a) if upper else torch.tril(a)
    b = torch.randn(*shape[:-1], *((shape[-1], columns) if left else (columns, shape[-1])), generator=torch.Generator().manual_seed(1))
    with monkeypatch.context() as alone:
        alone.setattr(torch.linalg, "solve_triangular", None)
        found = triangular_solve.solve_triangular(a, b, upper=upper, left=left)
    expected = torch.linalg.solve_triangular(triangle.double(), b.double(), upper=upper, left=left)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5 * (float(expected.abs().max()) if expected.numel() else 1))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("shape, columns", [((1,), 1), ((2, 3, 12), 17), ((13,), 65), ((3, 64), 70), ((0, 4), 2)])
def test_products_are_those_of_double_precision(upper, left, shape, columns):
    a, triangle = triangular(*shape, upper=upper)
    b = torch.randn(*shape[:-1], *((shape[-1], columns) if left else (columns, shape[-1])), generator=torch.Generator().manual_seed(1))
    found = triangular_solve.multiply_triangular(a, b, upper=upper, left=left)
    expected = triangle.double() @ b.double() if left else b.double() @ triangle.double()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)


def test_products_that_are_recorded_are_left_to_torch():
    a = torch.eye(3, requires_grad=True)
    assert triangular_solve.multiply_triangular(a, torch.eye(3), upper=False) is None
    with torch.no_grad():
        assert triangular_solve.multiply_triangular(a, torch.eye(3), upper=False).tolist() == torch.eye(3).tolist()


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [True, False])
def test_gradients(upper, left):
    results = []
    for solve, dtype in ((triangular_solve.solve_triangular, torch.float32), (torch.linalg.solve_triangular, torch.float64)):
        a = (triangular(2, 5, upper=upper)[1]).to(dtype).requires_grad_()
        b = torch.linspace(-1, 1, 40, dtype=dtype).reshape(2, 5, 4)
        b = (b if left else b.mT).detach().requires_grad_()
        first = torch.autograd.grad((solve(a, b, upper=upper, left=left) ** 2).sum(), (a, b), create_graph=True)
        second = torch.autograd.grad((first[0] ** 2).sum() + (first[1] ** 2).sum(), (a, b))
        results.append([t.detach().double() for t in (*first, *second)])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("shape", [(1, 1), (3, 2, 2), (2, 17, 17), (64, 64), (2, 100, 100), (0, 3, 3)])
def test_inverses(shape, monkeypatch):
    a = torch.randn(shape, generator=torch.Generator().manual_seed(shape[-1]))
    monkeypatch.setattr(torch.linalg, "inv", None)
    found = triangular_solve.inverse(a).double()
    assert found.shape == shape
    identity = torch.eye(shape[-1], dtype=torch.float64).expand(shape)
    scale = float((found.abs().amax((-1, -2)) * a.double().abs().amax((-1, -2))).max()) if a.numel() else 1
    torch.testing.assert_close(found @ a.double(), identity, rtol=0, atol=1e-6 * shape[-1] * max(scale, 1))


def test_pivots_are_looked_for():
    a = torch.tensor([[0.0, 0, 2], [4, 0, 0], [0, 5, 0]])
    assert triangular_solve.inverse(a).tolist() == torch.tensor([[0, 0.25, 0], [0, 0, 0.2], [0.5, 0, 0]]).tolist()


@pytest.mark.parametrize("bad", [[[1.0, 2], [2, 4]], [[0.0, 0], [0, 0]]])
def test_what_has_no_inverse(bad):
    with pytest.raises(torch.linalg.LinAlgError, match=r"Batch element 1\): The diagonal element \d is zero"):
        triangular_solve.inverse(torch.stack([torch.eye(2), torch.tensor(bad)]))


def test_gradient_of_an_inverse():
    a = torch.tensor([[2.0, 1], [1, 3]], requires_grad=True)
    b = a.detach().double().requires_grad_()
    first, expected = (torch.autograd.grad((f(x) ** 3).sum(), x, create_graph=True)[0]
                       for f, x in ((triangular_solve.inverse, a), (torch.linalg.inv, b)))
    torch.testing.assert_close(first.double(), expected, rtol=1e-5, atol=1e-6)
    second, wanted = (torch.autograd.grad((g ** 2).sum(), x)[0] for g, x in ((first, a), (expected, b)))
    torch.testing.assert_close(second.double(), wanted, rtol=1e-4, atol=1e-6)
