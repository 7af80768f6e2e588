import pytest
import torch

import mxnet as mx
from mxnet.interop.from_torch.exporting import export
from torch_checks import check, real


def test_the_batch_may_vary_also_where_the_example_is_one():
    block = mx.gluon.from_torch(torch.nn.Linear(3, 2), torch.ones(1, 3))
    assert block(mx.nd.ones((4, 3))).shape == (4, 2)
    assert block(mx.nd.ones((1, 3))).shape == (1, 2)


def test_modules_that_need_their_size():
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x.reshape(6) * torch.arange(6.0)

    assert mx.gluon.from_torch(Fixed(), torch.ones(2, 3))(mx.nd.ones((2, 3))).asnumpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_further_sizes_may_vary():
    block = check(lambda x: x.transpose(1, 2).reshape(x.shape[0], x.shape[2], 2, 2), real(2, 4, 3),
                  dynamic_shapes=(({0: torch.export.Dim.AUTO, 2: torch.export.Dim.AUTO},),))
    assert block(mx.nd.ones((3, 4, 7))).shape == (3, 7, 2, 2)


def test_what_has_no_counterpart_is_taken_apart_and_nothing_else():
    class Loss(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.cosine_similarity(x, x + 1).relu()

    names = [str(node.target) for node in export(Loss(), (real(2, 3),), None, None).graph.nodes if node.op == "call_function"]
    assert "aten.relu.default" in names and "aten.cosine_similarity.default" not in names
    check(Loss(), real(2, 3))


def test_what_torch_cannot_export_says_so():
    class Decides(torch.nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(mx.MXNetError, match=r"from_torch: torch.export can't export Decides: "):
        mx.gluon.from_torch(Decides(), torch.ones(2))


def test_arrays_are_examples_too():
    block = mx.gluon.from_torch(torch.nn.Linear(3, 2), mx.nd.ones((2, 3)))
    assert block(mx.nd.ones((4, 3))).shape == (4, 2)
