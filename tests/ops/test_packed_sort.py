"""Orders of 32-bit numbers are those of torch's stable sort."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.ops import packed_sort


def _data(dtype, shape):
    generator = torch.Generator().manual_seed(6)
    low, high = (0, 200) if dtype is torch.uint8 else (-100, 100)
    data = torch.randint(low, high, shape, generator=generator).to(dtype)
    if dtype is torch.float32:
        flat = data.view(-1)
        flat[::7], flat[1::9], flat[2::11], flat[3::13], flat[4::17] = torch.nan, -0.0, torch.inf, -torch.inf, 0.0
        flat[5::19] = -torch.tensor(torch.nan)
        flat[6::23] = 1e-45
    return data


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_equal_elements_and_numbers_that_are_none_stand_where_torch_puts_them(dtype, descending):
    data = _data(dtype, (4, 50, 30))
    for axis in (0, 1, 2):
        expected = torch.sort(data, dim=axis, descending=descending, stable=True)[1]
        for count in (1, 2, data.shape[axis] // 3, data.shape[axis]):
            found = packed_sort.first(data, axis, count, descending)
            assert found.is_contiguous() and torch.equal(found, expected.narrow(axis, 0, count))


def test_the_extremes_of_integers():
    data = torch.tensor([0, 2 ** 31 - 1, -2 ** 31, -1, 2 ** 31 - 1], dtype=torch.int32)
    assert packed_sort.first(data, 0, 5, True).tolist() == [1, 4, 0, 3, 2] and packed_sort.first(data, 0, 5, False).tolist() == [2, 3, 0, 1, 4]


def test_which_tensors_suit():
    rows = torch.zeros(100, 100)
    assert packed_sort.suits(rows, 1, 2) and packed_sort.suits(rows.int(), 1, 100) and packed_sort.suits(rows.requires_grad_().detach(), 1, 2)
    for data, count in ((rows.double(), 2), (rows.long(), 2), (rows.to("meta"), 2), (rows[:2], 2), (rows, 1), (rows[:, :0], 0)):
        assert not packed_sort.suits(data, 1, count)


@pytest.mark.parametrize("axis, k", [(0, 3), (1, 3), (0, 20), (1, 1)])
@pytest.mark.parametrize("ret_typ", ["value", "both"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_gradients_go_to_the_elements_that_were_found(dtype, ret_typ, axis, k):
    data = mx.nd.array([[(i * 37 + j * 11) % 80 for j in range(80)] for i in range(60)], dtype=dtype)
    data.attach_grad()
    with mx.autograd.record():
        found = mx.nd.topk(data, axis=axis, k=k, ret_typ=ret_typ)
        y = (found[0] if ret_typ == "both" else found) * 2
    y.backward()
    numbers = data.asnumpy()
    best, mask = (-numbers).argsort(axis, kind="stable").take(range(k), axis), np.zeros_like(numbers)
    np.put_along_axis(mask, best, 2, axis)
    assert (data.grad.asnumpy() == mask).all() and data.grad.dtype == data.dtype
    assert (y.asnumpy() == np.take_along_axis(numbers, best, axis) * 2).all() and (ret_typ == "value" or (found[1].asnumpy() == best).all())


def test_integers_that_are_recorded_are_ordered_once(monkeypatch):
    seen = []
    for name in ("topk", "sort"):
        call = getattr(torch, name)
        monkeypatch.setattr(torch, name, lambda data, *args, call=call, **kwargs: (seen.append(data.dtype), call(data, *args, **kwargs))[1])
    data = mx.nd.array([3, 1, 2, 9, 5, 4, 7, 8, 6], dtype="int32")
    data.attach_grad()
    with mx.autograd.record():
        y = mx.nd.topk(data, k=1, ret_typ="value") + mx.nd.sort(data)[1:2]
        ranks = mx.nd.argsort(data)
    y.backward()
    assert y.asnumpy().tolist() == [11] and data.grad.asnumpy().tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert ranks.asnumpy().tolist() == [1, 2, 0, 5, 4, 8, 6, 7, 3] and seen == [torch.int32] * 3
