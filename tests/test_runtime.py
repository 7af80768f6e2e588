import os

import pytest
import torch

import mxnet as mx
from mxnet import opencv, threads
from mxnet.kernels.runtime import libraries

GROUPS = {
    "GPU": "CUDA CUDNN NCCL CUDA_RTC TENSORRT",
    "instructions": "CPU_SSE CPU_SSE2 CPU_SSE3 CPU_SSE4_1 CPU_SSE4_2 CPU_SSE4A CPU_AVX CPU_AVX2",
    "threads, types, memory": "OPENMP SSE F16C JEMALLOC",
    "linear algebra": "BLAS_OPEN BLAS_ATLAS BLAS_MKL BLAS_APPLE LAPACK",
    "libraries": "MKLDNN OPENCV CAFFE",
    "parts": "PROFILER DIST_KVSTORE CXX14",
    "build": "INT64_TENSOR_SIZE SIGNAL_HANDLER DEBUG",
    "compilers": "TVM_OP",
    "this package's own": "OPENVINO COMPILED_KERNELS INT8_OPENVINO INT8_ONEDNN INT8_VNNI INT8_AMX BF16_AVX512 BF16_AMX",
}
NAMES = [name for group in GROUPS.values() for name in group.split()]


def test_the_features_of_mxnet_in_its_order():
    assert [f.name for f in mx.runtime.feature_list()] == NAMES
    assert list(mx.runtime.Features()) == NAMES
    assert mx.runtime.Features() is mx.runtime.Features()


def test_facts():
    features = mx.runtime.Features()
    assert features.is_enabled("cuda") == (torch.version.cuda is not None)
    assert features.is_enabled("MKLDNN") == torch.backends.mkldnn.is_available()
    assert features.is_enabled("COMPILED_KERNELS") == libraries.available()
    assert features.is_enabled("DIST_KVSTORE") == torch.distributed.is_available()
    assert features.is_enabled("LAPACK") and features["INT64_TENSOR_SIZE"].enabled and not features.is_enabled("TVM_OP")
    assert repr(features).startswith("[✔ CUDA" if features["CUDA"].enabled else "[✖ CUDA")


@pytest.mark.parametrize("flags, enabled", [("avx2", ""), ("avx2 avx_vnni", "INT8_VNNI"),
                                            ("avx512_vnni avx512_bf16 amx_int8 amx_bf16", "INT8_VNNI INT8_AMX BF16_AVX512 BF16_AMX")])
def test_low_precision_follows_from_the_processor(monkeypatch, flags, enabled):
    monkeypatch.setattr(mx.runtime.processor, "flags", lambda: set(flags.split()))
    names = "INT8_VNNI INT8_AMX BF16_AVX512 BF16_AMX".split()
    assert [f.name for f in mx.runtime.feature_list() if f.name in names and f.enabled] == enabled.split()


def test_unknown_feature():
    with pytest.raises(RuntimeError, match="There is no feature 'WINGS'; the features are \\['CUDA', "):
        mx.runtime.Features().is_enabled("wings")


def test_threads_and_the_reason(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("OMP_", "GOMP_", "MKL_", "OPENCV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    monkeypatch.setattr(threads, "usable", lambda: 2.5)
    monkeypatch.setattr(threads.policy, "reason", "1.0 of 2 cores are free")
    monkeypatch.setattr(threads.policy, "full", 4)
    monkeypatch.setattr(threads.policy, "count", torch.get_num_threads())
    monkeypatch.setattr(opencv, "count", lambda: 3)
    assert mx.runtime.threads() == (torch.get_num_threads(), 4, 2.5, "1.0 of 2 cores are free", 4, 3, {"OMP_WAIT_POLICY": "passive"})
