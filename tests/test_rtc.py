"""Without a GPU: what is asked of torch, and what users are told."""
import ctypes

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import rtc


@pytest.fixture
def compiled(monkeypatch):
    """What torch's compiler is asked for, and what the kernels it gives are called with."""
    calls = []

    def compile_kernel(source, name, nvcc_options=None):
        calls.append((source, name, nvcc_options))
        if "error" in source:
            raise RuntimeError("Kernel compilation failed:\nexpected a ;")
        return lambda **kwargs: calls.append(kwargs)

    class Device:
        def __init__(self, device):
            pass

        def __enter__(self):
            pass

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "_compile_kernel", compile_kernel, raising=False)
    monkeypatch.setattr(torch.cuda, "device", Device)
    return calls


class Gpu(mx.Context):
    """Stands for a GPU; its memory is the host's."""

    torch_device = torch.device("cpu")


def test_there_must_be_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(mx.MXNetError, match="there is no GPU that torch can use"):
        rtc.CudaModule("")


def test_signatures():
    assert rtc.parse_signature("const float *x, double * y,int  alpha, __half*") == [
        (True, np.float32), (True, np.float64), (False, np.int32), (True, np.float16)]
    with pytest.raises(ValueError, match="Invalid function prototype: .* received 'float x y z'"):
        rtc.parse_signature("float x y z")
    with pytest.raises(TypeError, match=r"Unsupported kernel argument type bool x. Supported types are: float, double"):
        rtc.parse_signature("bool x")


@pytest.mark.parametrize("number, dtype", [(3.5, np.float32), (-2, np.int8), (2.25, np.float64), (-7, np.int64), (250, np.uint8),
                                           (1.5, np.float16)])
def test_numbers_reach_the_kernel_byte_by_byte(number, dtype):
    passed = rtc.as_passed(number, dtype)
    memory = bytes(ctypes.c_int(passed) if isinstance(passed, int) else ctypes.c_double(passed))  # as torch's launcher passes it
    assert np.frombuffer(memory, dtype)[0] == number


def test_a_kernel_is_compiled_once_and_launched(compiled):
    module = rtc.CudaModule("source", options="-O1", exports=("axpy<float>",))
    kernel = module.get_kernel("axpy<float>", "const float *x, float *y, float alpha, int n")
    ctx = Gpu("gpu", 0)
    x, y = mx.nd.ones((3,)), mx.nd.zeros((3,))
    x._ctx = y._ctx = ctx
    for _ in range(2):
        kernel.launch([x, y, 1.0, 3], ctx, (1, 1, 1), (3, 1, 1), shared_mem=8)
    source, *launches = compiled
    assert source == ("source", "axpy<float>", ["-O1"])
    assert [(k["grid"], k["block"], k["shared_mem"]) for k in launches] == [((1, 1, 1), (3, 1, 1), 8)] * 2
    assert launches[0]["args"][0].data_ptr() == x._data.data_ptr()
    assert launches[0]["args"][2:] == [np.float32(1).view(np.int32), 3]


def test_what_does_not_fit_the_signature(compiled):
    module = rtc.CudaModule("source", exports="axpy")
    with pytest.raises(mx.MXNetError, match="saxpy is not among the exports of the module, which are axpy"):
        module.get_kernel("saxpy", "float *x")
    kernel, ctx = module.get_kernel("axpy", "float *x, float a"), Gpu("gpu", 0)
    x = mx.nd.ones((3,))
    for args, where, grid, words in [
            ([x, 1], mx.cpu(), (1, 1, 1), r"kernels run on GPUs, received cpu\(0\)"), ([x, 1], ctx, (1, 1), "must be tuples of 3 integers"),
            ([x], ctx, (1, 1, 1), "expects 2 arguments, received 1"),
            ([x, x], ctx, (1, 1, 1), "argument 0 of kernel axpy must be an array of float32"),
            ([1, 1], ctx, (1, 1, 1), "argument 0 of kernel axpy must be an NDArray, received int"),
            ([x, 1], ctx, (1, 1, 1), r"must be an array of float32 on gpu\(0\), received float32 on cpu\(0\)")]:
        with pytest.raises(mx.MXNetError, match=words):
            kernel.launch(args, where, grid, (1, 1, 1))
    x._ctx = ctx
    with pytest.raises(mx.MXNetError, match="argument 1 of kernel axpy must be a number, received NDArray"):
        kernel.launch([x, x], ctx, (1, 1, 1), (1, 1, 1))


def test_a_kernel_that_does_not_compile(compiled):
    kernel, ctx = rtc.CudaModule("error").get_kernel("f", "int a"), Gpu("gpu", 0)
    with pytest.raises(mx.MXNetError, match="(?s)kernel f does not compile: .*expected a ;"):
        kernel.launch([1], ctx, (1, 1, 1), (1, 1, 1))
