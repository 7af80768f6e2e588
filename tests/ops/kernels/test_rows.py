import pytest
import torch

from mxnet.ops import kernels
from mxnet.ops.kernels import rows

needs_compiler = pytest.mark.skipif(kernels.load("rows") is None, reason="no C++ compiler")
DATA = torch.arange(1.0, 13).view(4, 3)


def results(function, *tensors):
    tensors = [t.clone().requires_grad_() for t in tensors]
    out = function(*tensors)
    out.backward(torch.arange(1.0, out.numel() + 1).view(out.shape))
    return [out.tolist(), *[t.grad.tolist() for t in tensors]]


@pytest.fixture(params=[0, 1 << 62], ids=["kernel", "torch"])
def either(request, monkeypatch):
    monkeypatch.setattr(rows, "_WORTHWHILE", request.param)


def test_rows_of_one_index_add_up(either):
    out, gradient = results(lambda d: rows.select(d, torch.tensor([2, 0, 2])), DATA)
    assert out == [[7, 8, 9], [1, 2, 3], [7, 8, 9]] and gradient == [[4, 5, 6], [0, 0, 0], [8, 10, 12], [0, 0, 0]]


def test_the_chosen_rows_and_zeros_between_them(either):
    out, gradient = results(lambda d: rows.chosen(d, torch.tensor([True, False, False, True])), DATA)
    assert out == [[1, 2, 3], [10, 11, 12]] and gradient == [[1, 2, 3], [0, 0, 0], [0, 0, 0], [4, 5, 6]]


def test_replaced_rows_pass_their_gradient_to_the_others(either):
    out, d_old, d_others = results(lambda d, o: rows.replace(d, torch.tensor([3, 1]), o), DATA, -DATA[:2])
    assert out == [[1, 2, 3], [-4, -5, -6], [7, 8, 9], [-1, -2, -3]]
    assert d_old == [[1, 2, 3], [0, 0, 0], [7, 8, 9], [0, 0, 0]] and d_others == [[10, 11, 12], [4, 5, 6]]


def test_rows_outside_are_refused(either):
    with pytest.raises(IndexError):
        rows.replace(DATA, torch.tensor([4]), DATA[:1])
    with pytest.raises(IndexError):
        rows.select(DATA, torch.tensor([4]))


def test_one_number_of_each_row(either):
    out, gradient = results(lambda d: rows.picked(d, torch.tensor([[2], [0], [1], [1]])), DATA)
    assert out == [[3], [4], [8], [11]] and gradient == [[0, 0, 1], [2, 0, 0], [0, 3, 0], [0, 4, 0]]


@needs_compiler
@pytest.mark.parametrize("first, lengths, expected", [(False, [1, 9, -1], [[1, 2, 0.5], [0.5, 5, 0.5], [0.5, 8, 0.5], [0.5, 11, 0.5]]),
                                                      (True, [2, 0, 3, 1], [[1, 2, .5], [.5, .5, .5], [7, 8, 9], [10, .5, .5]])])
def test_sequences_end_at_their_length(first, lengths, expected, monkeypatch):
    monkeypatch.setattr(rows, "_WORTHWHILE", 0)
    out, gradient = results(lambda d: rows.mask(d, torch.tensor(lengths), 0.5, first), DATA)
    assert out == expected
    assert gradient == [[0 if x == 0.5 else i * 3 + j + 1 for j, x in enumerate(row)] for i, row in enumerate(expected)]


@pytest.mark.parametrize("function", [lambda d: rows.select(d, torch.tensor([2, 0, 2])), lambda d: rows.picked(d, torch.tensor([[2], [0], [1], [1]])),
                                      lambda d: rows.chosen(d, torch.tensor([True, False, True, True])),
                                      lambda d: rows.replace(d, torch.tensor([3, 1]), DATA[:2])])
def test_the_gradient_can_be_differentiated(function, either):
    data = DATA.clone().requires_grad_()
    gradient, = torch.autograd.grad((function(data) ** 3).sum(), data, create_graph=True)
    second, = torch.autograd.grad(gradient.sum(), data)
    passes, = torch.autograd.grad(function(data).sum(), data)
    assert second.tolist() == (6 * DATA * passes).tolist()


@needs_compiler
def test_what_is_written_past_the_caches():
    index = torch.tensor([5, 99998, 5, 0])
    data = torch.zeros(100_000, 45, requires_grad=True)
    rows.select(data, index).backward(torch.ones(4, 45))
    assert data.grad.sum(1).nonzero().flatten().tolist() == [0, 5, 99998] and data.grad[5].tolist() == [2.0] * 45


def test_none_of_the_rows(either):
    out, gradient = results(lambda d: rows.chosen(d, torch.zeros(4, dtype=torch.bool)), DATA)
    assert out == [] and gradient == [[0, 0, 0]] * 4
    out, gradient = results(lambda d: rows.select(d, torch.zeros(0, dtype=torch.int64)), DATA)
    assert out == [] and gradient == [[0, 0, 0]] * 4


def test_results_that_no_cache_holds():
    old, index = torch.arange(4097 * 1025, dtype=torch.float32).reshape(4097, 1025), torch.arange(0, 4097, 3)
    others = -old[:len(index)].clone()
    assert torch.equal(rows.replace(old, index, others), old.index_copy(0, index, others))
