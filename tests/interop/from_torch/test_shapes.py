import pytest
import torch
import torch.nn.functional as F

import mxnet as mx
from torch_checks import Function, check, real

X = real(2, 6, 4)


def test_functions():
    check([
        lambda x: x.reshape(x.shape[0], -1), lambda x: x.view(x.shape[0] * 6, 4), lambda x: x.flatten(1), lambda x: x.flatten(0, 1),
        lambda x: x.unflatten(1, (2, 3)),
        lambda x: x.reshape(-1, 2, 3, 4).permute(0, 2, 1, 3).reshape(x.shape[0], 6, 4), lambda x: x.transpose(1, 2),
        lambda x: x.transpose(0, -1).contiguous(),
        lambda x: x.unsqueeze(1), lambda x: x[:, None].squeeze(1), lambda x: x.mT, lambda x: x.permute(-1, 0, 1),
        lambda x: x[:, 1:3], lambda x: x[:, -2:], lambda x: x[:, ::2], lambda x: x[:, 2], lambda x: x[..., -1], lambda x: x[:, 1:-1, :3],
        lambda x: x.narrow(1, 2, 3),
        lambda x: x.split(2, 1), lambda x: x.split([1, 2, 3], dim=1), lambda x: x.chunk(3, dim=1)[1], lambda x: x.unbind(2)[1] + x.unbind(2)[3],
        lambda x: torch.cat((x, x * 2), 1), lambda x: torch.cat((x[:, :1], x), -2), lambda x: torch.stack((x, x + 1), 1),
        lambda x: torch.stack((x, -x), -1),
        lambda x: x.flip(1), lambda x: x.roll(2, 1), lambda x: x.roll((1, -1), (1, 2)), lambda x: x.repeat(1, 2, 3),
        lambda x: x[:, :1].expand(-1, 5, -1) * 2,
        lambda x: x.index_select(1, torch.tensor([3, 0])), lambda x: x[:, torch.tensor([[1, -1]])], lambda x: F.pad(x[:, None], (1, 2, 0, 1)),
        lambda x: F.pad(x[:, None], (1, 2, 0, 1), mode="reflect"), lambda x: F.pad(x[:, None], (1, 1), value=2.5),
        lambda x: F.pad(x, (1, 2, 3, 0)), lambda x: F.pad(x[:, None], (0, 0, 1, 0, 0, 2)), lambda x: F.pad(x, (0, 0, 1, 2), value=-1.0),
        lambda x: F.pad(x, (2, 1), mode="replicate"),
        lambda x: F.pixel_shuffle(x.reshape(-1, 8, 3, 1), 2), lambda x: F.channel_shuffle(x.reshape(-1, 6, 2, 2), 3),
    ], X)


def test_a_parameter_is_spread_over_the_batch():
    class Prepend(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.token = torch.nn.Parameter(real(1, 1, 4))

        def forward(self, x):
            return torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1)

    check(Prepend(), X)


def test_constants_along_the_batch():
    check(lambda x: torch.cat((torch.zeros(x.shape[0], 1, 4), x), 1) + torch.arange(7.0)[:, None], X)


def test_embedding():
    module = torch.nn.Embedding(5, 3)
    block = check(module, torch.tensor([[1, 4], [0, 2]]))
    assert list(block.params) == ["weight"]


def test_rows_of_padding_have_no_gradient():
    module = torch.nn.Embedding(5, 3, padding_idx=2)
    with torch.no_grad():
        module.weight.fill_(0.5)
    block = check(module, torch.tensor([[1, 4], [0, 2]]))
    assert block.params["weight"].grad().asnumpy().any(1).tolist() == [True, True, False, False, True]


@pytest.mark.parametrize("option", ["scale_grad_by_freq", "sparse"])
def test_gradients_of_another_kind_are_refused(option):
    with pytest.raises(mx.MXNetError, match=f"aten.embedding.default .* where `{option}` is set"):
        mx.gluon.from_torch(torch.nn.Embedding(5, 3, **{option: True}), torch.tensor([[1, 4]]))


def test_gather():
    check(lambda x, i: x.gather(2, i), X, torch.tensor([1, 0, 3, 3, 2, 1]).reshape(1, 6, 1).expand(2, 6, 1).contiguous())
    with pytest.raises(mx.MXNetError, match="aten.gather.default .* where more than one element is picked along the axis"):
        check(lambda x: x.gather(1, torch.zeros(2, 3, 4, dtype=torch.int64)), X)


def test_counting_along_a_size_that_varies():
    block = check(lambda x: x + torch.arange(x.shape[1])[:, None] - torch.arange(2, x.shape[1] + 2).float()[:, None] * 0.5, X,
                  dynamic_shapes=(({0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO},),))
    assert block(mx.nd.zeros((1, 3, 1))).asnumpy().ravel().tolist() == [-1, -0.5, 0]


def test_several_axes_are_indexed():
    places = torch.tensor([3, -1, 0])
    check([lambda x: x[torch.arange(x.shape[0])[:, None], places],
           lambda x: x[torch.arange(x.shape[0])[:, None, None], places[:, None], places[:2]]], X)
    with pytest.raises(mx.MXNetError, match="aten.index.Tensor .* where other axes than the first ones are indexed by several arrays, or one by a m"):
        mx.gluon.from_torch(Function(lambda x: x[:, places, places]), X)
