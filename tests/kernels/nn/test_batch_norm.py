import platform

import pytest
import torch

from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.nn import batch_norm as fused
from mxnet.kernels.runtime import contract, libraries
from mxnet.ops import get
from mxnet.ops.nn.training_layers import batch_norm
from residual import numbers


def clear():
    kernels.load.cache_clear()
    contract.forget()


@pytest.mark.skipif(kernels.load("nn/batch_norm") is None, reason="no C++ compiler")
@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("fix_gamma", [True, False])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 5e-2)])
def test_the_kernel_computes_what_torch_does(relu, residual, fix_gamma, dtype, tolerance, monkeypatch):
    if residual and not relu:
        residual = False
    results = []
    for limit in (0, 1 << 40):
        used_from(monkeypatch, limit, fused)
        # Sizes that no vector and no block of rows divides, and a mean far from zero.
        x, extra = ((numbers(3, 19, 7, 9, seed=s) + 10 * (s == 0)).to(dtype).contiguous(memory_format=torch.channels_last).requires_grad_()
                    for s in (0, 1))
        gamma, beta = (numbers(19, seed=s).requires_grad_() for s in (2, 3))
        mean, var = torch.zeros(19), torch.ones(19)
        out = batch_norm(x, gamma, beta, mean, var, *((extra,) if residual else ()), relu=relu, training=True, eps=1e-3, momentum=0.8,
                               fix_gamma=fix_gamma)
        out.backward(numbers(3, 19, 7, 9, seed=4).to(dtype))
        results.append([out, x.grad, beta.grad, mean, var, *([] if fix_gamma else [gamma.grad]), *([extra.grad] if residual else [])])
    for k, t in zip(*results):
        assert k.dtype is t.dtype
        wrong = (k.float() - t.float()).abs() > tolerance * t.detach().float().abs().max()
        # In half precision a sum near zero falls on either side of ReLU's kink.
        assert wrong.float().mean() <= (0.06 if dtype is torch.bfloat16 else 0)


@pytest.mark.skipif(kernels.load("nn/batch_norm") is None, reason="no C++ compiler")
@pytest.mark.parametrize("channels", [3, 16, 37, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_results_are_rounded_once_and_a_nan_stays_in_its_channel(channels, dtype):
    x, added, dout = (numbers(4, channels, 5, 6, seed=s).to(dtype).contiguous(memory_format=torch.channels_last) for s in range(3))
    x[1, 2, 3, 4] = float("nan")
    gamma, beta, mean, var = numbers(channels, seed=3), numbers(channels, seed=4), torch.zeros(channels), torch.ones(channels)
    out, average, deviation = fused._forward((x, added, gamma, beta, mean, var), (), (1e-3, 0.9, True, False))
    dx, kept, dgamma, dbeta = fused._backward((dout, x, out, gamma, beta, average, deviation), (), (True, False))
    wide = [t.double() for t in (x, added, gamma, beta)]
    wide = [t.requires_grad_() for t in wide]
    expected = torch.relu(torch.nn.functional.batch_norm(wide[0], None, None, wide[2], wide[3], True, 0.1, 1e-3) + wide[1])
    others = [c for c in range(channels) if c != 2]
    tolerance = {"rtol": 2 ** -8 if dtype is torch.bfloat16 else 1e-4, "atol": 1e-5}
    assert out[:, 2].isnan().all() and dx[:, 2].isnan().all()
    torch.testing.assert_close(out[:, others].double(), expected[:, others], **tolerance)
    expected[:, others].backward(torch.where(out > 0, dout, 0).double()[:, others])
    for found, grad in ((kept, wide[1].grad), (dx, wide[0].grad)):
        torch.testing.assert_close(found[:, others].double(), grad[:, others], **tolerance)
    for found, grad in ((dgamma, wide[2].grad), (dbeta, wide[3].grad)):
        torch.testing.assert_close(found[others].double(), grad[others], rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(kernels.load("nn/batch_norm") is None, reason="no C++ compiler")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("channels", [5, 16, 24, 48, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_results_are_the_same_to_the_last_bit_where_they_are_written_past_the_caches(channels, dtype, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    x, added, dout = (numbers(3, channels, 7, 9, seed=s).to(dtype).contiguous(memory_format=torch.channels_last) for s in range(3))
    gamma, beta = numbers(channels, seed=3), numbers(channels, seed=4)
    for residual in (None, added):
        found = []
        for past in (False, True):
            moving = torch.zeros(channels), torch.ones(channels)
            out, mean, deviation = fused._forward((x, residual, gamma, beta, *moving), (), (1e-3, 0.9, True, past))
            found.append([out, *fused._backward((dout, x, None if residual is None else out, gamma, beta, mean, deviation), (), (True, past))])
        for one, other in zip(*found):
            assert one is other is None or torch.equal(one, other)


@pytest.mark.parametrize("cache, limit", [(32 << 20, 16 << 20), (480 << 20, 64 << 20), (0, 64 << 20)])
def test_results_are_written_past_the_caches_from_half_of_the_last_one_on(cache, limit, monkeypatch):
    fused._large.cache_clear()
    monkeypatch.setattr(fused.processor, "last_cache", lambda: cache)
    assert fused._past(torch.empty(limit, dtype=torch.int8)) and not fused._past(torch.empty(limit - 1, dtype=torch.int8))
    fused._large.cache_clear()


def test_processors_without_wide_vectors_round_the_same(monkeypatch, tmp_path):
    if kernels.load("nn/batch_norm") is None or platform.machine() != "x86_64":
        pytest.skip("no C++ compiler, or none for AVX2")
    monkeypatch.setattr(libraries, "FLAGS", [f for f in libraries.FLAGS if not f.startswith("-march")] + ["-mavx2", "-mfma"])
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    clear()
    try:
        test_results_are_rounded_once_and_a_nan_stays_in_its_channel(37, torch.bfloat16)
    finally:
        clear()


def test_without_a_compiler_torch_computes(monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", "/nonexistent/compiler")
    clear()
    try:
        assert kernels.load("nn/batch_norm") is None
        used_from(monkeypatch, 0, fused)
        x = numbers(2, 3, 4, 4, seed=0).contiguous(memory_format=torch.channels_last)
        out = batch_norm(x, torch.ones(3), torch.zeros(3), torch.zeros(3), torch.ones(3), training=True, relu=True)
        expected = torch.relu(get("BatchNorm").fn(x, torch.ones(3), torch.zeros(3), torch.zeros(3), torch.ones(3), training=True))
        torch.testing.assert_close(out, expected)
    finally:
        clear()


def test_a_kernel_is_compiled_once(monkeypatch, tmp_path):
    if kernels.load("nn/batch_norm") is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    clear()
    try:
        kernels.load("nn/batch_norm")
        made, = (tmp_path / "kernels").iterdir()
        before = made.stat().st_mtime_ns
        clear()
        kernels.load("nn/batch_norm")
        assert [p.stat().st_mtime_ns for p in (tmp_path / "kernels").iterdir()] == [before]
    finally:
        clear()


@pytest.mark.skipif(kernels.load("nn/batch_norm") is None, reason="no C++ compiler")
@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("wrong", [torch.ones(1), torch.ones(8), torch.ones(19, dtype=torch.float16), torch.ones(19, dtype=torch.float64),
                                   torch.ones(1).expand(19), torch.ones(38)[::2]], ids=lambda t: f"{t.dtype}-{t.shape[0]}-{t.stride()[0]}")
def test_the_kernel_never_reads_what_is_not_one_number_for_each_channel(position, wrong, monkeypatch):
    """A network whose layers do not fit, or a file's one-element gamma, once read and wrote beside the arrays."""
    used_from(monkeypatch, 0, fused)
    monkeypatch.setattr(fused._Fused, "apply", lambda *_: pytest.fail("the kernel was called"))
    x = numbers(2, 19, 3, 3, seed=0).contiguous(memory_format=torch.channels_last)
    vectors = [torch.ones(19) for _ in range(4)]
    vectors[position] = wrong
    try:
        out = batch_norm(x, *vectors, training=True, fix_gamma=False)
    except RuntimeError:  # torch's own: the sizes or types do not belong together
        return
    assert out.shape == x.shape and out.isfinite().all()
