import pytest
import torch

from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.memory import gather_scatter

needs_compiler = pytest.mark.skipif(kernels.load("memory/gather_scatter") is None, reason="no C++ compiler")
DATA = torch.arange(1.0, 13).view(4, 3)


def results(function, *tensors):
    tensors = [t.clone().requires_grad_() for t in tensors]
    out = function(*tensors)
    out.backward(torch.arange(1.0, out.numel() + 1).view(out.shape))
    return [out.tolist(), *[t.grad.tolist() for t in tensors]]


@pytest.fixture(params=[0, 1 << 62], ids=["kernel", "torch"])
def either(request, monkeypatch):
    used_from(monkeypatch, request.param, gather_scatter)


def test_rows_of_one_index_add_up(either):
    out, gradient = results(lambda d: gather_scatter.select(d, torch.tensor([2, 0, 2])), DATA)
    assert out == [[7, 8, 9], [1, 2, 3], [7, 8, 9]] and gradient == [[4, 5, 6], [0, 0, 0], [8, 10, 12], [0, 0, 0]]


def test_the_chosen_rows_and_zeros_between_them(either):
    out, gradient = results(lambda d: gather_scatter.chosen(d, torch.tensor([True, False, False, True])), DATA)
    assert out == [[1, 2, 3], [10, 11, 12]] and gradient == [[1, 2, 3], [0, 0, 0], [0, 0, 0], [4, 5, 6]]


def test_replaced_rows_pass_their_gradient_to_the_others(either):
    out, d_old, d_others = results(lambda d, o: gather_scatter.replace(d, torch.tensor([3, 1]), o), DATA, -DATA[:2])
    assert out == [[1, 2, 3], [-4, -5, -6], [7, 8, 9], [-1, -2, -3]]
    assert d_old == [[1, 2, 3], [0, 0, 0], [7, 8, 9], [0, 0, 0]] and d_others == [[10, 11, 12], [4, 5, 6]]


def test_rows_outside_are_refused(either):
    with pytest.raises(IndexError):
        gather_scatter.replace(DATA, torch.tensor([4]), DATA[:1])
    with pytest.raises(IndexError):
        gather_scatter.select(DATA, torch.tensor([4]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8])
def test_one_number_of_each_row(dtype, either):
    out, gradient = results(lambda d: gather_scatter.picked(d, torch.tensor([2, 0, 1, 1], dtype=dtype)), DATA)
    assert out == [3, 4, 8, 11] and gradient == [[0, 0, 1], [2, 0, 0], [0, 3, 0], [0, 4, 0]]


@pytest.mark.parametrize("index, nearest", [([-7, 9, 2, 3], [0, 2, 2, 2]), ([2.9, -0.5, -1e30, 1e12], [2, 0, 0, 2]),
                                            ([float("nan"), float("-inf"), 1.0, 0.99], [0, 0, 1, 0])])
def test_what_lies_outside_counts_as_the_nearest(index, nearest, either):
    out, gradient = results(lambda d: gather_scatter.picked(d, torch.tensor(index)), DATA)
    assert out == [3 * i + n + 1 for i, n in enumerate(nearest)]
    assert gradient == [[(i + 1) * (j == n) for j in range(3)] for i, n in enumerate(nearest)]


@needs_compiler
@pytest.mark.parametrize("n, width", [(1, 1), (5, 40000), (3000, 7), (300, 301), (4200, 1024)])  # the last is written past the caches
def test_numbers_return_to_their_places(n, width, monkeypatch):
    used_from(monkeypatch, 0, gather_scatter)
    data, index, values = torch.rand(n, width, requires_grad=True), torch.randint(width, (n,), dtype=torch.int32), torch.arange(1.0, n + 1)
    out = gather_scatter.picked(data, index)
    out.backward(values)
    assert torch.equal(out, data[torch.arange(n), index.long()])
    assert torch.equal(data.grad, torch.zeros(n, width).scatter(1, index.long().view(-1, 1), values.view(-1, 1)))


def test_the_gradient_of_a_picked_number_has_a_gradient(either):
    data = DATA.clone().requires_grad_()
    gradient, = torch.autograd.grad((gather_scatter.picked(data, torch.tensor([2.0, 0, 1, 1])) ** 3).sum(), data, create_graph=True)
    gradient.sum().backward()
    assert data.grad.tolist() == [[0, 0, 18], [24, 0, 0], [0, 48, 0], [0, 66, 0]]


@needs_compiler
@pytest.mark.parametrize("first, lengths, expected", [(False, [1, 9, -1], [[1, 2, 0.5], [0.5, 5, 0.5], [0.5, 8, 0.5], [0.5, 11, 0.5]]),
                                                      (True, [2, 0, 3, 1], [[1, 2, .5], [.5, .5, .5], [7, 8, 9], [10, .5, .5]])])
def test_sequences_end_at_their_length(first, lengths, expected, monkeypatch):
    used_from(monkeypatch, 0, gather_scatter)
    out, gradient = results(lambda d: gather_scatter.mask(d, torch.tensor(lengths), 0.5, first), DATA)
    assert out == expected
    assert gradient == [[0 if x == 0.5 else i * 3 + j + 1 for j, x in enumerate(row)] for i, row in enumerate(expected)]


@pytest.mark.parametrize("function", [
    lambda d: gather_scatter.select(d, torch.tensor([2, 0, 2])), lambda d: gather_scatter.picked(d, torch.tensor([[2], [0], [1], [1]])),
    lambda d: gather_scatter.chosen(d, torch.tensor([True, False, True, True])),
    lambda d: gather_scatter.replace(d, torch.tensor([3, 1]), DATA[:2]), lambda d: gather_scatter.nearest(d, torch.tensor([9.0, 0, 3])),
    lambda d: gather_scatter.scattered(d, torch.tensor([5, 0, 2, 1]), 6)])
def test_the_gradient_can_be_differentiated(function, either):
    data = DATA.clone().requires_grad_()
    gradient, = torch.autograd.grad((function(data) ** 3).sum(), data, create_graph=True)
    second, = torch.autograd.grad(gradient.sum(), data)
    passes, = torch.autograd.grad(function(data).sum(), data)
    assert second.tolist() == (6 * DATA * passes).tolist()


@needs_compiler
def test_what_is_written_past_the_caches():
    index = torch.tensor([5, 99998, 5, 0])
    data = torch.zeros(100_000, 169, requires_grad=True)  # 68 MB, which no processor keeps for one core
    gather_scatter.select(data, index).backward(torch.ones(4, 169))
    assert data.grad.sum(1).nonzero().flatten().tolist() == [0, 5, 99998] and data.grad[5].tolist() == [2.0] * 169
    marks = gather_scatter.marked(torch.arange(-1, 4100, dtype=torch.int32), 4101, 3.0, 0.0)
    assert marks[0].count_nonzero() == 0 and torch.equal(marks[1:], 3 * torch.eye(4101)[:4100])


def test_none_of_the_rows(either):
    out, gradient = results(lambda d: gather_scatter.chosen(d, torch.zeros(4, dtype=torch.bool)), DATA)
    assert out == [] and gradient == [[0, 0, 0]] * 4
    out, gradient = results(lambda d: gather_scatter.select(d, torch.zeros(0, dtype=torch.int64)), DATA)
    assert out == [] and gradient == [[0, 0, 0]] * 4


def test_results_that_no_cache_holds():
    old, index = torch.arange(4097 * 1025, dtype=torch.float32).reshape(4097, 1025), torch.arange(0, 4097, 3)
    others = -old[:len(index)].clone()
    assert torch.equal(gather_scatter.replace(old, index, others), old.index_copy(0, index, others))


@pytest.mark.parametrize("index, nearest", [(torch.tensor([2, 0, 2]), [2, 0, 2]), (torch.tensor([2.9, -0.5, -7, 99, float("nan")]), [2, 0, 0, 3, 0]),
                                            (torch.tensor([1, 9], dtype=torch.uint8), [1, 3]), (torch.tensor([-9, 3], dtype=torch.int32), [0, 3])])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 1), (4, 1, 3)])
def test_the_nearest_rows(index, nearest, shape, either):
    out, gradient = results(lambda d: gather_scatter.nearest(d, index), DATA.view(shape))
    assert out == DATA.view(shape)[nearest].tolist()
    expected = torch.zeros(4, 3).index_add(0, torch.tensor(nearest), torch.arange(1.0, len(nearest) * 3 + 1).view(-1, 3))
    assert gradient == expected.view(shape).tolist()


def test_scattered_rows(either):
    out, gradient = results(lambda d: gather_scatter.scattered(d, torch.tensor([5, 0, 2, 1]), 6), DATA)
    assert out == [[4, 5, 6], [10, 11, 12], [7, 8, 9], [0, 0, 0], [0, 0, 0], [1, 2, 3]]
    assert gradient == [[16, 17, 18], [1, 2, 3], [7, 8, 9], [4, 5, 6]]
    assert gather_scatter.scattered(DATA[:1], torch.tensor([-1]), 2).tolist() == [[0, 0, 0], [1, 2, 3]]
    with pytest.raises(IndexError):
        gather_scatter.scattered(DATA[:1], torch.tensor([2]), 2)


@needs_compiler
def test_marks_lie_inside(monkeypatch):
    used_from(monkeypatch, 0, gather_scatter)
    # Asked of MXNet 1.9.1.
    assert gather_scatter.marked(torch.tensor([1, -0.5, -1, 2.9, 3, float("nan")]), 3, 2.0, -1.0).tolist() == [
        [-1, 2, -1], [2, -1, -1], [-1, -1, -1], [-1, -1, 2], [-1, -1, -1], [-1, -1, -1]]
    assert gather_scatter.marked(torch.tensor([1, -1, 5], dtype=torch.int32), 2, 1.0, 0.0).tolist() == [[0, 1], [0, 0], [0, 0]]
    assert gather_scatter.marked(torch.zeros(2, dtype=torch.float16), 2, 1.0, 0.0) is None


@pytest.mark.parametrize("shape, axis", [((3, 5, 9), 1), ((4, 200), 0), ((2, 3, 4, 5), 1), ((7, 3), 0), ((3, 7), 1), ((1, 1, 70), 1)])
def test_sums_of_what_came_before(shape, axis, either):
    data = torch.randint(-9, 9, shape).float()
    out, gradient = results(lambda d: gather_scatter.summed(d, axis), data)
    assert out == data.cumsum(axis).tolist()
    dout = torch.arange(1.0, data.numel() + 1).view(shape)
    assert gradient == dout.flip(axis).cumsum(axis).flip(axis).tolist()


@needs_compiler
def test_sums_are_added_up_in_double_precision(monkeypatch):
    used_from(monkeypatch, 0, gather_scatter)
    data = torch.tensor([1e8, 1, -1e8]).view(3, 1).expand(3, 8).contiguous()
    assert gather_scatter.summed(data, 0)[2].tolist() == [1.0] * 8
