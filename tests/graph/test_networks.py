"""Networks of the zoo, and graphs made at random: every backend and pass computes what the operators one by one compute."""
import numpy as np
import pytest
import torch

import mxnet as mx
from kernel_limits import used_from
from mxnet.gluon.model_zoo import vision
from mxnet.graph import GraphRunner, lower

# The smallest images that each takes, to be quick.
ZOO = {"alexnet": 64, "vgg11_bn": 32, "resnet18_v1": 48, "resnet18_v2": 48, "mobilenet0_25": 64, "mobilenet_v2_0_25": 64, "squeezenet1_1": 224,
       "densenet121": 224, "inception_v3": 299}


@pytest.mark.parametrize("name", ZOO)
def test_zoo_on_openvino(name):
    pytest.importorskip("openvino")
    mx.random.seed(0)
    net = getattr(vision, name)(classes=10)
    net.initialize(mx.init.Xavier())
    x = mx.nd.random.uniform(shape=(1, 3, ZOO[name], ZOO[name]))
    expected = net(x).asnumpy()
    net.hybridize(backend="openvino")
    found = net(x).asnumpy()
    assert "openvino: the whole graph" in net.explain()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def _layers(random, a, b, made, channels):
    """What may be put on top of a and b; each is made when called."""
    return [
        lambda: mx.sym.Convolution(a, kernel=(3, 3), pad=(1, 1), num_filter=channels, num_group=int(random.choice([1, 2, 8])), name=f"c{made}"),
        lambda: mx.sym.Convolution(a, kernel=(1, 1), num_filter=channels, no_bias=True, name=f"c{made}"),
        lambda: mx.sym.BatchNorm(a, fix_gamma=bool(random.randint(2)), name=f"b{made}"),
        lambda: mx.sym.relu(mx.sym.BatchNorm(a, fix_gamma=False, name=f"b{made}")),
        lambda: mx.sym.relu(mx.sym.BatchNorm(a, name=f"b{made}") + b),
        lambda: mx.sym.Activation(a, act_type=str(random.choice(["relu", "tanh", "sigmoid", "softsign"]))),
        lambda: mx.sym.LeakyReLU(a, act_type=str(random.choice(["leaky", "elu", "gelu"]))),
        lambda: a + b, lambda: a * b, lambda: mx.sym.broadcast_mul(a, mx.sym.Pooling(b, global_pool=True, pool_type="avg")),
        lambda: mx.sym.Pooling(a, kernel=(3, 3), pad=(1, 1), pool_type=str(random.choice(["max", "avg"]))),
        lambda: mx.sym.slice_axis(mx.sym.Concat(a, b, dim=1), axis=1, begin=4, end=4 + channels),
        lambda: mx.sym.Convolution(mx.sym.Concat(a, b, dim=1), kernel=(1, 1), num_filter=channels, name=f"c{made}"),
        lambda: mx.sym.transpose(mx.sym.transpose(a, axes=(0, 2, 3, 1)) * 0.5, axes=(0, 3, 1, 2)),
        lambda: mx.sym.softmax(a, axis=1), lambda: mx.sym.clip(a, -1, 1), lambda: mx.sym.Dropout(a, p=0.0),
    ]


def random_graph(seed, channels=8):
    """A Symbol of convolutions, norms, activations, sums, poolings and reshapes that meet at random, and its inputs."""
    random = np.random.RandomState(seed)
    x = mx.sym.var("x")
    images = [mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=channels, name="c_first")]
    for made in range(random.randint(4, 12)):
        a, b = (images[random.randint(len(images))] for _ in range(2))
        images.append(_layers(random, a, b, made, channels)[random.randint(17)]())
    out = mx.sym.FullyConnected(mx.sym.Flatten(images[-1]), num_hidden=3, name="fc")
    shapes, _, aux_shapes = out.infer_shape(x=(2, 3, 6, 6))
    sizes = {**dict(zip(out.list_arguments(), shapes)), **dict(zip(out.list_auxiliary_states(), aux_shapes))}
    inputs = []
    for name in out.list_inputs():
        low, high = (0.5, 1.5) if "var" in name or "gamma" in name else (-0.5, 0.5)
        inputs.append(torch.from_numpy(random.uniform(low, high, sizes[name]).astype("float32")))
    return out, inputs


@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_on_openvino(seed):
    pytest.importorskip("openvino")
    out, inputs = random_graph(seed)
    expected = lower(out.handle, False, torch.device("cpu"))(*inputs)
    found = GraphRunner(out, backend="openvino")(inputs)
    for f, e in zip(found, expected):
        torch.testing.assert_close(f, e, rtol=1e-3, atol=1e-4 * max(e.abs().max().item(), 1.0))


@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_train_through_the_passes(seed, monkeypatch):
    from mxnet.kernels.conv import convolution
    from mxnet.kernels.nn import batch_norm
    used_from(monkeypatch, 0, batch_norm, convolution)
    out, inputs = random_graph(seed, channels=16)
    inputs = [t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t for t in inputs]
    aux = set(out.list_auxiliary_states())
    results = []
    for run in (lower(out.handle, True, torch.device("cpu")), lambda *leaves: GraphRunner(out)(list(leaves), is_train=True)):
        leaves = [t.clone().requires_grad_(n not in aux) for n, t in zip(out.list_inputs(), inputs)]
        y, = run(*leaves)
        y.backward(torch.linspace(-1, 1, 6).reshape(2, 3))
        results.append([y.detach(), *(t.detach() for t in leaves if not t.requires_grad),
                        *(torch.zeros(()) if t.grad is None else t.grad for t in leaves if t.requires_grad)])
    scale = max(t.abs().max().item() for t in results[0])
    for f, e in zip(*results[::-1]):
        torch.testing.assert_close(f, e, rtol=2e-3, atol=2e-5 * max(scale, 1.0))
