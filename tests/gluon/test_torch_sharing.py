import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.gluon import nn
from mxnet.gluon.model_zoo import vision


@pytest.mark.parametrize("name", ["resnet18_v1", "mobilenetv2_0.25", "mobilenet0.25"])
def test_networks_of_the_zoo(name):
    mx.random.seed(1)
    net = vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier())
    x = torch.linspace(-1, 1, 2 * 3 * 64 * 64).reshape(2, 3, 64, 64)
    module = net.as_torch(x).eval()
    with torch.no_grad():
        found = module(x)
        np.testing.assert_allclose(found.numpy(), net(mx.nd.from_torch(x)).asnumpy(), rtol=1e-3, atol=1e-4)
        exported = torch.export.export(module, (x,), dynamic_shapes=(({0: torch.export.Dim.DYNAMIC},),)).module()
        np.testing.assert_allclose(exported(x).numpy(), found.numpy(), rtol=1e-3, atol=1e-4)


def test_parameters_that_are_fixed_have_no_gradient():
    net = nn.Dense(2, in_units=2)
    net.initialize()
    net.bias.grad_req = "null"
    assert {name: p.requires_grad for name, p in net.as_torch().named_parameters()} == {"weight": True, "bias": False}


def test_a_block_that_was_called_needs_no_example():
    net = nn.Dense(2)
    net.initialize()
    net(mx.nd.ones((1, 3)))
    assert net.as_torch()(torch.ones(4, 3)).shape == (4, 2)


def test_sparse_parameters_are_refused():
    net = nn.Embedding(3, 2, sparse_grad=True)
    net.initialize()
    assert net.as_torch()(torch.tensor([1.0])).shape == (1, 2)
    data = mx.sym.var("data")
    block = mx.gluon.SymbolBlock(mx.sym.broadcast_mul(data, mx.sym.var("w", shape=(1, 2))), data)
    block.params["w"]._stype = "row_sparse"
    with pytest.raises(mx.MXNetError, match="Parameter 'w' is stored as row_sparse, which torch has no parameters for"):
        block.as_torch(torch.ones(1, 2))


def test_a_forward_that_must_be_run_needs_examples():
    class Net(mx.gluon.HybridBlock):
        def forward(self, x):
            return x * 2

    with pytest.raises(mx.MXNetError, match=r"the `forward` of .* is traced by running it; pass arguments of the shapes to come"):
        Net().as_torch()
    assert Net().as_torch(torch.ones(2))(torch.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(mx.MXNetError, match="examples are torch tensors, NDArrays and lists of these, received int"):
        nn.Dense(2).as_torch(3)
