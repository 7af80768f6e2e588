import pytest
import torch

import mxnet as mx
from mxnet.interop.from_torch import translate
from torch_checks import Function, check, real

X = real(2, 3)


def test_names_and_inputs():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Linear(3, 2)
            self.register_buffer("scale", torch.tensor([2.0, 3.0]))

        def forward(self, first, second=None):
            return {"sum": self.body(first) * self.scale, "first": self.body(second)}

    found = translate(Two(), (X,), {"second": X})
    assert found.inputs == ["first", "second"] and len(found.outputs) == 2
    assert sorted(found.parameters) == ["body.bias", "body.weight", "scale"] and found.trained == {"body.weight", "body.bias"}
    check(Two(), X, kwargs={"second": X + 1})


def test_a_graph_is_written_alike_each_time():
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    first, second = (translate(module, (X,)).outputs[0].tojson() for _ in range(2))
    assert first == second


def test_tied_weights_are_one_parameter():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.scores = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5)
            self.scores.weight = self.words.weight

        def forward(self, ids):
            return self.scores(self.words(ids))

    block = check(Tied(), torch.tensor([[1, 2], [0, 4]]), gradient=False)
    assert sorted(block.params) == ["scores.bias", "words.weight"]


def test_an_input_that_is_returned():
    check(lambda x: (x, x + 1), X)


def test_what_depends_on_no_input_is_computed_once():
    found = check(lambda x: x + torch.arange(3).float().exp().flip(0) * 2, X)._cached_graph[1]
    assert [node.op.name for node in found._nodes() if node.op is not None] == ["broadcast_add"]


def test_writes_to_views_are_refused():
    def function(x):
        y = x * 2
        y[:, 0].mul_(3)
        return y

    with pytest.raises(mx.MXNetError, match=r"operator aten.mul_.Tensor \(node mul_\) writes to a part or a view of an array that is read later"):
        check(function, X)


def test_writes_to_buffers_are_refused():
    class Count(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x):
            self.calls.add_(1)
            return x + self.calls

    with pytest.raises(mx.MXNetError, match="writes to its buffer calls, and only batch normalization does so in MXNet"):
        translate(Count(), (X,))


def test_operators_without_a_counterpart_are_named_with_their_place():
    class Sort(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.svdvals(x)

    with pytest.raises(mx.MXNetError, match=r"operator aten._linalg_svd.default \(node .*, in 1.0\) has no counterpart in MXNet"):
        translate(torch.nn.Sequential(torch.nn.Identity(), torch.nn.Sequential(Sort())), (X,))


def test_results_that_mxnet_does_not_give_are_refused():
    pool = torch.nn.MaxPool2d(2, return_indices=True)
    with pytest.raises(mx.MXNetError, match="a result of operator aten.max_pool2d_with_indices.default .* that MXNet's operator does not give"):
        translate(pool, (torch.ones(1, 1, 4, 4),))
    check(lambda x: pool(x)[0], torch.linspace(-1, 1, 16).reshape(1, 1, 4, 4))


def test_an_input_that_is_not_used_is_an_input_still():
    block = mx.gluon.from_torch(Function(lambda x, y: x * 2), X, X)
    with pytest.warns(UserWarning, match="its 1-th input has no influence on the output"):
        assert block(mx.nd.ones((2, 3)), mx.nd.ones((2, 3))).asnumpy().tolist() == [[2] * 3] * 2


def test_constants_that_are_spread_over_the_batch_keep_their_size():
    class Positions(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.places = torch.nn.Embedding(4, 3)
            self.register_buffer("ids", torch.arange(4)[None])

        def forward(self, x):
            return x + self.places(self.ids[:, :x.shape[1]].expand(x.shape[0], -1))

    check(Positions(), torch.linspace(-1, 1, 18).reshape(2, 3, 3))
