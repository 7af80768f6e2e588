"""Networks that score on a GPU: their batch norms folded, captured as a CUDA graph, and right after each change of a weight."""
import math

import numpy as np
import pytest
import torch

import mxnet as mx
from folding_checks import NETWORKS, made
from gpu_checks import GPU, close, needs_gpu
from mxnet.gluon.model_zoo import vision
from mxnet.kernels.nn import scoring_on_gpu

pytestmark = needs_gpu


def eager(net, x):
    """The network's result, operator by operator."""
    net.hybridize(False)
    return net(x).asnumpy()


def check(net, x, tolerance, **options):
    """The captured network gives what its operators give, also after a weight has changed and after a step of training."""
    expected = eager(net, x)
    net.hybridize(static_alloc=True, static_shape=True, **options)
    for _ in range(2):
        close(net(x), expected, tolerance)
    said = net.explain()
    assert "captured as a CUDA graph (1 x)" in said and "cuda: " in said, said
    weights = [p for p in net.collect_params().values() if p.name.endswith(("weight", "gamma", "running_mean"))]
    for p in weights[:6]:
        p.data()[:] = p.data() * 1.25
    changed = net(x).asnumpy()
    assert "captured as a CUDA graph (1 x)" in net.explain()
    expected = eager(net, x)
    close(changed, expected, tolerance)
    return said


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-4), ("float16", 2e-2)])
def test_networks_of_all_kinds(exact, name, dtype, tolerance):
    check(*made(NETWORKS[name](), shape=(2, 3, 64, 64), dtype=dtype, ctx=GPU), tolerance)


@pytest.mark.parametrize("batch", [1, 16])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-4), ("float16", 2e-2)])
def test_resnet50(exact, dtype, tolerance, batch):
    net, x = made(vision.resnet50_v1(), shape=(batch, 3, 224, 224), dtype=dtype, ctx=GPU)
    said = check(net, x, tolerance)
    assert "cuda: 16 x convolution + batch norm + add + relu" in said and "cuda: 33 x convolution + batch norm + relu" in said
    if dtype == "float16":
        assert " x one call of cuDNN's" in said or " x a product of matrices" in said, said


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("channels", [7, 64])
def test_kernels_give_the_numbers_of_torch(dtype, channels):
    torch.manual_seed(0)
    data, other = (torch.randn(2, channels, 17, 19, device="cuda").to(dtype).contiguous(memory_format=torch.channels_last) for _ in range(2))
    assert scoring_on_gpu.fits(data)
    for window in (((3, 3), (2, 2), (1, 1)), ((2, 2), (2, 2), (0, 0)), ((3, 2), (1, 2), (0, 1))):
        expected = torch.max_pool2d(data, *window)
        assert torch.equal(scoring_on_gpu.max_pool(data, expected.shape[2:], *window), expected)
    scale, shift = torch.linspace(-1, 1, channels, device="cuda"), torch.linspace(2, -2, channels, device="cuda")
    expected = torch.relu(data.double() * scale.view(-1, 1, 1) + shift.view(-1, 1, 1) + other.double())
    found = scoring_on_gpu.finish(data, shift, scale, other, math.inf)
    torch.testing.assert_close(found.double(), expected, rtol=torch.finfo(dtype).eps, atol=1e-5)


def test_resnet50_in_tf32():
    net, x = made(vision.resnet50_v1(), shape=(8, 3, 224, 224), ctx=GPU)
    check(net, x, 2e-2)


def test_without_a_promise_it_is_captured_when_it_proves_worth_it(exact):
    net, x = made(NETWORKS["resnet18_v1"](), ctx=GPU)
    expected = eager(net, x)
    net.hybridize()
    for _ in range(2000):
        out = net(x)
        if "captured as a CUDA graph" in net.explain():
            break
    close(out, expected)
    close(net(x), expected)
    assert "captured as a CUDA graph (1 x)" in net.explain()


def test_networks_that_share_memory_give_their_own_results(exact):
    nets = [made(NETWORKS[name](), shape=(2, 3, 64, 64), ctx=GPU, seed=i) for i, name in enumerate(("resnet18_v1", "inception", "dense"))]
    expected = [eager(net, x) for net, x in nets]
    for net, _ in nets:
        net.hybridize(static_alloc=True, static_shape=True)
    for _ in range(3):
        found = [net(x) for net, x in nets]
        for y, e in zip(found, expected):
            close(y, e)
    torch.cuda.synchronize()


def test_training_between_two_runs(exact):
    net, x = made(NETWORKS["resnet18_v1"](), shape=(8, 3, 32, 32), ctx=GPU)
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-3})
    for _ in range(3):
        with mx.autograd.record():
            loss = net(x).square().mean()
        loss.backward()
        trainer.step(1)
        scored = net(x).asnumpy()
        close(scored, eager(net, x), 1e-3)
        assert np.isfinite(scored).all()
        net.hybridize(static_alloc=True, static_shape=True)
