"""Products on the kernel of convolution, and those that it leaves to others."""
import numpy as np
import pytest
import torch

from kernel_limits import used_from
from mxnet import MXNetError, kernels
from mxnet.kernels.gemm import conv_gemm
from mxnet.kernels.runtime import contract

pytestmark = pytest.mark.skipif(kernels.load("conv/convolution") is None, reason="no C++ compiler")


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.RandomState(seed).normal(size=shape).astype("float32"))


@pytest.mark.parametrize("sizes", [(1, 16, 16), (50, 48, 80), (33, 160, 32), (7, 20, 16), (7, 16, 20)], ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_the_three_products(sizes, turned, monkeypatch):
    calls, run = [], contract.Plan.__call__
    monkeypatch.setattr(conv_gemm, "_leaves", lambda: False)
    used_from(monkeypatch, 0, conv_gemm)
    monkeypatch.setattr(contract.Plan, "__call__", lambda *a: calls.append(1) or run(*a))
    count, units, width = sizes
    rows, weight, bias, dout = numbers(count, width), numbers(units, width, seed=1), numbers(units, seed=2), numbers(count, units, seed=3)
    expected = rows @ weight.t() + bias, dout @ weight, dout.t() @ rows
    if turned:
        rows, weight, dout = (t.t().contiguous().t() for t in (rows, weight, dout))
    found = conv_gemm.forward(rows, weight, bias), conv_gemm.backward_data(dout, weight), conv_gemm.backward_weight(dout, rows)
    for f, e in zip(found, expected):
        torch.testing.assert_close(f, e, rtol=1e-4, atol=1e-4)
    assert len(calls) == (3 if units % 16 == width % 16 == 0 else 0)


@pytest.mark.parametrize("mkl, maker, leaves", [(True, "GenuineIntel", True), (True, "AuthenticAMD", False), (False, "GenuineIntel", False)])
def test_mkl_is_preferred_on_its_own_processors(mkl, maker, leaves, monkeypatch):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: mkl)
    monkeypatch.setattr(conv_gemm.processor, "maker", lambda: maker)
    assert conv_gemm._leaves.__wrapped__() is leaves
    monkeypatch.setattr(conv_gemm, "_leaves", lambda: leaves)
    calls, plan = [], contract.Kernel.plan
    monkeypatch.setattr(contract.Kernel, "plan", lambda *a: calls.append(1) or plan(*a))
    conv_gemm.forward(numbers(4, 16), numbers(16, 16), None)
    assert len(calls) == (0 if leaves else 1)


def test_small_ones_need_no_kernel(monkeypatch):
    monkeypatch.setattr(contract, "_function", lambda *_: pytest.fail("it was compiled"))
    assert conv_gemm.forward(torch.ones(2, 16), torch.ones(16, 16), torch.zeros(16)).sum() == 512


@pytest.mark.parametrize("sizes", [(1, 512, 160), (50, 257, 512), (3, 2048, 32), (0, 256, 512)], ids=str)
def test_a_weight_that_stays_is_packed_once(sizes, monkeypatch):
    calls, run = [], contract.Plan.__call__
    monkeypatch.setattr(conv_gemm.matmul, "prefers_onednn_layout", lambda dtype: False)
    monkeypatch.setattr(conv_gemm, "_leaves", lambda: False)
    monkeypatch.setattr(contract.Plan, "__call__", lambda plan, *a: calls.append(plan._kernel.name) or run(plan, *a))
    count, width, units = sizes
    rows, weight, bias = numbers(count, width), numbers(units, width, seed=1), numbers(units, seed=2)
    multiply, expected = conv_gemm.prepacked(weight), (rows.double() @ weight.double().t() + bias).float()
    weight.zero_()
    for given in (rows, rows.t().contiguous().t()):
        torch.testing.assert_close(multiply(given, bias), expected, rtol=1e-5, atol=1e-4)
    assert calls == ["conv/prepacked_conv.pack_float32", "conv/prepacked_conv.forward_float32", "conv/prepacked_conv.forward_float32"]
    with pytest.raises(MXNetError, match=r"kernel conv/prepacked_conv.forward_float32: `packed` must be float32 \(k \* c\) for .*c=8"):
        multiply(numbers(3, 8), bias)


@pytest.mark.parametrize("units, leaves, dtype", [(200, False, torch.float32), (32, False, torch.float32), (256, True, torch.float32),
                                                  (256, False, torch.bfloat16)], ids=str)
def test_weights_that_no_kernel_packs_stay_as_they_are(units, leaves, dtype, monkeypatch):
    monkeypatch.setattr(conv_gemm.matmul, "prefers_onednn_layout", lambda dtype: False)
    monkeypatch.setattr(conv_gemm, "_leaves", lambda: leaves)
    rows, weight, bias = torch.ones(3, 400, dtype=dtype), torch.ones(units, 400, dtype=dtype), torch.full((units,), 2, dtype=dtype)
    multiply = conv_gemm.prepacked(weight)
    assert multiply(rows, bias).eq(402).all()
    weight.zero_()
    assert multiply(rows, bias).eq(2).all()
