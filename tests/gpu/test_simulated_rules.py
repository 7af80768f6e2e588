"""What simulated GPUs refuse and note, and what broke on GPUs before there were any of these tests."""
import subprocess

import numpy as np
import pytest
import torch

import mxnet as mx
import simulated_gpus
from forked import python
from mxnet.ops import differentiation
from mxnet.ops.nn import rnn
from simulated_gpus import OnGPU, Watch, gpus


@pytest.fixture
def gpu():
    with gpus() as (first, _):
        yield first


def test_devices_do_not_mix(gpu):
    x = torch.ones(2, device="cuda:0")
    for other in (torch.ones(2), torch.ones(2, device="cuda:1"), x.cpu(), x.to("cpu", torch.int32), torch.zeros(2).copy_(x), x.to("cuda:1")):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            x + other
    assert (x + torch.tensor(2.0)).numpy(force=True).tolist() == [3, 3]  # a number may lie anywhere
    assert x.is_cuda and not x.is_cpu and str(x.device) == "cuda:0" and x.to("cuda:1").get_device() == 1
    with pytest.raises(RuntimeError, match="invalid device ordinal 2"):
        torch.ones(2, device="cuda:2")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()


@pytest.mark.parametrize("name, wait", [
    ("_local_scalar_dense", lambda x: x.sum().item()), ("_local_scalar_dense", lambda x: bool(x.any())), ("copy to the host", lambda x: x.cpu()),
    ("copy to the host", lambda x: x.tolist()), ("copy to the host", lambda x: torch.ones(2).copy_(x)), ("nonzero", lambda x: x.nonzero()),
    ("nonzero of a mask", lambda x: x[x > 0]), ("equal", lambda x: torch.equal(x, x)), ("_unique2", lambda x: x.unique())])
def test_waits_are_noted(gpu, name, wait):
    x = torch.ones(2, device="cuda")
    with Watch() as watch:
        x = x * 2 + 1
        assert watch.waits == watch.copies == []
        wait(x)
    assert (set(watch.waits), watch.copies) == ({name}, [])


@pytest.mark.parametrize("copy", [lambda x: torch.tensor([1.0, 2.0], device="cuda"), lambda x: torch.ones(2).cuda(), lambda x: x.new_tensor([1, 2]),
                                  lambda x: x.copy_(torch.ones(2)), lambda x: torch.ones(2).to(x.device)])
def test_copies_are_noted(gpu, copy):
    x = torch.ones(2, device="cuda")
    with Watch() as watch:
        assert isinstance(copy(x), OnGPU)
    assert (watch.waits, watch.copies) == ([], ["copy from the host"])
    with Watch() as watch:
        torch.ones(2).to("cuda", non_blocking=True)
        torch.full((2,), 3.0, device="cuda")
    assert watch.copies == []


def test_results_that_out_makes_room_for(gpu):
    x, out = torch.ones(2, 3, device="cuda"), torch.empty(0, device="cuda")
    assert torch.eq(x, x, out=out) is out
    assert out.shape == (2, 3) and out.cpu().tolist() == [[1, 1, 1]] * 2


def test_constants_of_gradients_lie_where_they_belong(gpu):
    x = torch.tensor([2.0, 0.0, 3.0], device="cuda").requires_grad_()
    torch.autograd.backward(x.prod())  # torch's C++ takes ones and zeros
    assert x.grad.cpu().tolist() == [0, 6, 0]

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * torch.ones(3)

    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        differentiation.backward([Wrong.apply(x)], [torch.ones(3, device="cuda")])


def test_sparse_tensors(gpu):
    weight = torch.ones(4, 2, device="cuda").requires_grad_()
    rows = torch.nn.functional.embedding(torch.tensor([0, 2], device="cuda"), weight, sparse=True)
    torch.autograd.backward(rows.sum())
    assert weight.grad.is_sparse and str(weight.grad.device) == "cuda:0"
    assert weight.grad.to_dense().cpu().tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]


def test_arrays_of_no_axes_keep_their_shape(gpu):
    """NumPy's ascontiguousarray gives them one."""
    found = mx.np.array(2.5, ctx=gpu).asnumpy()
    assert found.shape == () and found == 2.5
    turned = mx.nd.array([[1, 2], [3, 4]], ctx=gpu).T.asnumpy()
    assert turned.flags.c_contiguous and turned.tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize("mode", sorted(rnn.TORCH_FUNCTIONS))
def test_recurrent_layers_tell_cudnn_to_keep_what_gradients_need(gpu, mode, monkeypatch):
    told, function = [], rnn.TORCH_FUNCTIONS[mode]
    monkeypatch.setitem(rnn.TORCH_FUNCTIONS, mode, lambda *arguments: told.append(arguments[6]) or function(*arguments))
    size = {"lstm": 4, "gru": 3}.get(mode, 1) * 4 * (3 + 4 + 2)
    inputs = [mx.nd.ones((5, 2, 3), ctx=gpu), mx.nd.ones(size, ctx=gpu) / 10, mx.nd.zeros((1, 2, 4), ctx=gpu)]
    inputs += [mx.nd.zeros((1, 2, 4), ctx=gpu)] * (mode == "lstm")
    inputs[1].attach_grad()
    mx.nd.RNN(*inputs, state_size=4, num_layers=1, mode=mode)
    with mx.autograd.record():
        out = mx.nd.RNN(*inputs, state_size=4, num_layers=1, mode=mode)
    out.backward()
    assert told == [False, True] and (inputs[1].grad.asnumpy() != 0).any()


def test_batch_norm_has_a_weight_where_it_has_a_bias(gpu):
    """CUDA has no gradient of a batch norm with a bias alone: simulated GPUs refuse it as early as in the forward pass."""
    x, (gamma, beta, mean, var) = mx.nd.array(np.arange(12).reshape(2, 3, 2), ctx=gpu), [mx.nd.ones(3, ctx=gpu) for _ in range(4)]
    with pytest.raises(RuntimeError, match="CUDA does not take this"):
        torch.batch_norm(x._data, None, beta._data, mean._data, var._data, True, 0.1, 1e-3, True)
    for a in (x, gamma, beta):
        a.attach_grad()
    with mx.autograd.record():
        out = mx.nd.BatchNorm(x, gamma, beta, mean, var, fix_gamma=True)
    out.backward()
    assert out.asnumpy()[:, 0].ravel() == pytest.approx([1 + v / np.sqrt(9.25 + 1e-3) for v in (-3.5, -2.5, 2.5, 3.5)], rel=1e-5)
    assert beta.grad.asnumpy().tolist() == [4, 4, 4] and gamma.grad.asnumpy().tolist() == [0, 0, 0]


def test_instance_norm_has_at_most_five_axes(gpu, monkeypatch):
    axes, function = [], torch.instance_norm
    monkeypatch.setattr(torch, "instance_norm", lambda data, *rest, **named: axes.append(data.dim()) or function(data, *rest, **named))
    x = np.random.RandomState(0).rand(2, 3, 2, 1, 2, 2, 2)
    found = mx.nd.InstanceNorm(mx.nd.array(x, ctx=gpu), mx.nd.ones(3, ctx=gpu), mx.nd.zeros(3, ctx=gpu), eps=1e-5).asnumpy()
    flat = x.reshape(2, 3, -1)
    expected = (flat - flat.mean(-1, keepdims=True)) / np.sqrt(flat.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found.reshape(flat.shape), expected, rtol=1e-4, atol=1e-5)
    assert set(axes) == {3}


def test_sparse_tensors_warn_nobody():
    """Torch warns once in a process, unless it was told whether to check."""
    program = "import mxnet, torch; torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (2,))"
    done = subprocess.run([*python(), "-W", "error", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_rounded_down_next_is_divided_by_a_tensor(monkeypatch):
    """A GPU multiplies by the reciprocal of a number: 49 / 49 is 0.99999994 then."""
    divisors, ordinary = [], simulated_gpus.run

    def run(func, args, kwargs):
        if func._schema.name == "aten::div":
            divisors.append(args[1])
        return ordinary(func, args, kwargs)

    monkeypatch.setattr(simulated_gpus, "run", run)
    with gpus() as (gpu, _):
        x = mx.np.array([1, 2, 3], ctx=gpu)
        assert mx.np.percentile(x, mx.np.array([50, 100], ctx=gpu), interpolation="lower").asnumpy().tolist() == [2, 3]
        mx.nd.ROIPooling(mx.nd.ones((1, 1, 8, 8), ctx=gpu), mx.nd.array([[0, 0, 0, 6, 6]], ctx=gpu), pooled_size=(7, 7), spatial_scale=1)
    assert len(divisors) >= 3 and all(type(d) is simulated_gpus.OnGPU for d in divisors)
