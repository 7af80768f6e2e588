"""`TorchModule` through `as_torch` of blocks."""
import copy
import pickle

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.gluon import nn


@pytest.fixture(autouse=True)
def seeds():
    mx.random.seed(5)
    torch.manual_seed(5)


def convolutional():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(16, 3), nn.BatchNorm(), nn.GlobalAvgPool2D(),
            nn.Dropout(0.5), nn.Dense(4))
    net.initialize(mx.init.Xavier())
    return net


IMAGES = torch.linspace(-1, 1, 2 * 3 * 16 * 16).reshape(2, 3, 16, 16)


def scores(net):
    return net(mx.nd.from_torch(IMAGES)).asnumpy()


def test_training_in_torch_is_training_in_gluon():
    """SGD with momentum, three steps; the other network takes the same steps in Gluon. Dropout is left out: generators differ."""
    torch_net, gluon_net = convolutional(), convolutional()
    for net in (torch_net, gluon_net):
        net[6]._rate = 0
        net(mx.nd.from_torch(IMAGES))
    for own, other in zip(torch_net.collect_params().values(), gluon_net.collect_params().values()):
        other.set_data(own.data())
    module = torch_net.as_torch()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    gluon_net.hybridize()
    trainer = mx.gluon.Trainer(gluon_net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    labels, loss = torch.tensor([1, 3]), mx.gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(3):
        optimizer.zero_grad()
        error = torch.nn.functional.cross_entropy(module(IMAGES), labels)
        error.backward()
        optimizer.step()
        with mx.autograd.record():
            expected = loss(gluon_net(mx.nd.from_torch(IMAGES)), mx.nd.array([1, 3]))
        expected.backward()
        trainer.step(2)
        assert error.item() == pytest.approx(expected.mean().asscalar(), rel=1e-4)
    for own, other in zip(torch_net.collect_params().values(), gluon_net.collect_params().values()):
        np.testing.assert_allclose(own.data().asnumpy(), other.data().asnumpy(), rtol=1e-3, atol=1e-5)
    assert abs(torch_net[1].running_mean.data().asnumpy()).max() > 0.01


def test_training_in_gluon_is_seen_in_torch_and_by_what_was_compiled():
    net = convolutional()
    net.hybridize(static_alloc=True, static_shape=True)
    before = scores(net)
    module = net.as_torch().eval()
    with torch.no_grad():
        np.testing.assert_allclose(module(IMAGES).numpy(), before, atol=1e-5)
        for parameter in module.parameters():
            parameter.mul_(1.5)
        changed = scores(net)
        assert abs(changed - before).max() > 1e-3
        np.testing.assert_allclose(module(IMAGES).numpy(), changed, atol=1e-5)
        net[7].bias.set_data(mx.nd.array([1, 2, 3, 4]))
        np.testing.assert_allclose(module(IMAGES).numpy() - changed, np.broadcast_to([[1, 2, 3, 4]], (2, 4)), atol=1e-5)


def test_modes():
    net = convolutional()
    module = net.as_torch(IMAGES)
    mean = dict(module.named_buffers())["1.running_mean"]
    module.eval()
    assert torch.equal(module(IMAGES), module(IMAGES)) and not mean.any()
    module.train()
    assert not torch.equal(module(IMAGES), module(IMAGES)) and mean.any()
    assert list(mean.shape) == [16] and net[1].running_mean.data().asnumpy().tolist() == mean.tolist()


def test_names_are_those_of_save_parameters(tmp_path):
    net = convolutional()
    module = net.as_torch(IMAGES)
    net.save_parameters(str(tmp_path / "net.params"))
    assert sorted(module.state_dict()) == sorted(mx.nd.load(str(tmp_path / "net.params")))
    assert sorted(name for name, _ in module.named_buffers()) == ["1.running_mean", "1.running_var", "4.running_mean", "4.running_var"]


def test_a_name_that_torch_uses_gets_an_underscore():
    data = mx.sym.var("data")
    block = mx.gluon.SymbolBlock(mx.sym.broadcast_mul(data, mx.sym.var("half", shape=(1, 2))), data)
    block.initialize(mx.init.One())
    assert list(block.as_torch(torch.ones(3, 2)).state_dict()) == ["half_"]


def test_parameters_used_twice_are_one():
    shared = nn.Dense(3, in_units=3)
    net = nn.HybridSequential()
    net.add(shared, nn.Dense(3, in_units=3, params=shared.params))
    net.initialize()
    assert len(list(net.as_torch().parameters())) == 2


def test_copies_have_memory_of_their_own():
    net = convolutional()
    module = net.as_torch(IMAGES).eval()
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        with torch.no_grad():
            expected = module(IMAGES)
            assert torch.allclose(other(IMAGES), expected, atol=1e-5)
            for parameter in other.parameters():
                parameter.zero_()
            assert torch.equal(module(IMAGES), expected)


def test_the_block_follows_the_module_into_another_type():
    net = convolutional()
    module = net.as_torch(IMAGES).double()
    assert net[0].weight.dtype == "float64" and net[0].weight.data().dtype == np.float64
    with torch.no_grad():
        next(module.parameters()).fill_(2)
    assert net[0].weight.data().asnumpy().min() == 2
    module.to(memory_format=torch.contiguous_format)
    assert next(module.parameters()).is_contiguous()
    with torch.no_grad():
        next(module.parameters()).fill_(3)
    assert net[0].weight.data().asnumpy().min() == 3
    assert module.eval()(IMAGES.double()).dtype is torch.float64


def test_the_module_follows_the_block_into_another_type():
    net = convolutional()
    module = net.as_torch(IMAGES).eval()
    net.cast("float64")
    assert module(IMAGES.double()).dtype is torch.float64
    net[7].bias.set_data(mx.nd.array([9, 9, 9, 9], dtype="float64"))
    assert dict(module.named_parameters())["7.bias"].tolist() == [9, 9, 9, 9]


def test_functional_calls_use_the_tensors_that_they_are_given():
    net = nn.Dense(2, in_units=2)
    net.initialize(mx.init.One())
    module = net.as_torch()
    tensors = {"weight": torch.zeros(2, 2), "bias": torch.tensor([3.0, 4.0])}
    assert torch.func.functional_call(module, tensors, (torch.ones(1, 2),)).tolist() == [[3, 4]]
    assert module(torch.ones(1, 2)).tolist() == [[2, 2]]
    jacobian = torch.func.jacrev(lambda x: module(x))(torch.ones(2, 2))
    assert jacobian.sum().item() == 8
    per_sample = torch.func.vmap(lambda x: module(x[None])[0])(torch.ones(3, 2))
    assert per_sample.tolist() == [[2, 2]] * 3


def test_autocast():
    net = convolutional()
    module = net.as_torch(IMAGES).eval()
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        out = module(IMAGES)
    assert out.dtype is torch.bfloat16
    np.testing.assert_allclose(out.float().numpy(), scores(net), atol=0.05)


@pytest.mark.parametrize("training", [False, True])
def test_export(training):
    net = convolutional()
    net[6]._rate = 0
    module = net.as_torch(IMAGES).train(training)
    exported = torch.export.export(module, (IMAGES,), dynamic_shapes=(({0: torch.export.Dim.DYNAMIC},),)).module()
    data = torch.cat([IMAGES, IMAGES + 1])
    other = copy.deepcopy(module)
    assert torch.allclose(exported(data), other(data), atol=1e-4)
    assert torch.allclose(dict(module.named_buffers())["1.running_var"], dict(other.named_buffers())["1.running_var"], rtol=1e-4)


def test_compile_takes_the_whole_graph():
    """By a backend that compiles nothing: what torch.compile's front end makes of the module, with its gradient."""
    net = convolutional()
    net[6]._rate = 0
    module = net.as_torch(IMAGES)
    reference = copy.deepcopy(module)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    out, expected = compiled(IMAGES), reference(IMAGES)
    assert torch.allclose(out, expected, atol=1e-4)
    out.square().sum().backward()
    expected.square().sum().backward()
    for own, other in zip(module.parameters(), reference.parameters()):
        assert torch.allclose(own.grad, other.grad, rtol=1e-3, atol=1e-4)
    assert torch.allclose(dict(module.named_buffers())["4.running_mean"], dict(reference.named_buffers())["4.running_mean"], atol=1e-5)


def test_dropout_draws_torchs_numbers_in_a_compiled_graph():
    net = nn.HybridSequential()
    net.add(nn.Dropout(0.25), nn.Dropout(0.5, axes=(1,)))
    module = net.as_torch()
    out = torch.compile(module, fullgraph=True, backend="aot_eager")(torch.ones(400, 3))
    assert sorted(set(out.round(decimals=3).flatten().tolist())) == pytest.approx([0, 2.667])
    assert 0.3 < (out != 0).float().mean() < 0.45


@pytest.mark.filterwarnings("ignore:`torch.jit.trace")
def test_what_cannot_be_traced_is_named():
    data = mx.sym.var("data")
    block = mx.gluon.SymbolBlock(mx.sym.broadcast_add(data, mx.sym.random.uniform(shape=(1, 2), name="noise")), data)
    module = block.as_torch(torch.ones(1, 2))
    assert module(torch.ones(1, 2)).shape == (1, 2)
    with pytest.raises(Exception, match=r"operator _random_uniform \(node noise\) draws random numbers of MXNet's generators"):
        torch.export.export(module, (torch.ones(1, 2),))
    with pytest.raises(mx.MXNetError, match="torch.jit.trace can't look into a module made by as_torch"):
        torch.jit.trace(module, (torch.ones(1, 2),))


def test_lists_of_arguments_and_results():
    net = mx.gluon.rnn.LSTM(4, input_size=3)
    net.initialize()
    module = net.as_torch(torch.ones(5, 2, 3), [torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)])
    out, states = module(torch.ones(5, 2, 3), [torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)])
    expected, _ = net(mx.nd.ones((5, 2, 3)), net.begin_state(2))
    np.testing.assert_allclose(out.detach().numpy(), expected.asnumpy(), atol=1e-6)
    assert [tuple(s.shape) for s in states] == [(1, 2, 4), (1, 2, 4)]
    with pytest.raises(mx.MXNetError, match="a list of 2 expected, received Tensor"):
        module(torch.ones(5, 2, 3), torch.zeros(1, 2, 4))
    with pytest.raises(mx.MXNetError, match="a torch tensor expected, received NDArray; an NDArray's is x.as_torch"):
        module(mx.nd.ones((5, 2, 3)))


def test_blocks_over_mx_np():
    class Net(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(2, in_units=3)

        def forward(self, x):
            return mx.np.tanh(self.dense(x))

    with mx.util.np_shape(True), mx.util.np_array(True):
        net = Net()
        net.initialize()
        module = net.as_torch(torch.ones(1, 3))
        expected = net(mx.np.ones((1, 3))).asnumpy()
    np.testing.assert_allclose(module(torch.ones(1, 3)).detach().numpy(), expected, atol=1e-6)
    with torch.no_grad():
        module.eval()
        np.testing.assert_allclose(torch.export.export(module, (torch.ones(1, 3),)).module()(torch.ones(1, 3)).numpy(), expected, atol=1e-6)


def test_losses_keep_their_gradient():
    data, label = mx.sym.var("data"), mx.sym.var("label")
    block = mx.gluon.SymbolBlock(mx.sym.SoftmaxOutput(data, label), [data, label])
    x = torch.zeros(1, 2, requires_grad=True)
    block.as_torch()(x, torch.tensor([1.0])).sum().backward()
    assert x.grad.tolist() == [[0.5, -0.5]]


def test_what_is_missing_is_said():
    net = nn.Dense(2)
    net.initialize()
    with pytest.raises(mx.MXNetError, match=r"as_torch: .*no values yet.*pass arguments of the shapes to come: as_torch\(\*examples\)"):
        net.as_torch()
    net = nn.Dense(2, in_units=2)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    with pytest.raises(mx.MXNetError, match=r"has copies on \[cpu\(0\), cpu\(1\)\]; name one: as_torch\(ctx=...\)"):
        net.as_torch()
    assert net.as_torch(ctx=mx.cpu(1))(torch.ones(1, 2)).shape == (1, 2)
