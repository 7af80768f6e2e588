"""The features of this installation.

Example
-------
>>> import mxnet as mx
>>> mx.runtime.Features().is_enabled('DIST_KVSTORE')
True
"""
from __future__ import annotations

import collections
import importlib.util
import os
from typing import NamedTuple

import torch

from . import opencv, processor
from . import threads as thread_policy
from .graph.int8 import gemm
from .kernels.runtime import libraries
from .suggestions import did_you_mean

__all__ = ["Feature", "Features", "Threads", "feature_list", "threads"]

# The prefixes of OpenMP's, MKL's and OpenCV's variables about threads.
_OF_THREADS = ("OMP_", "GOMP_", "MKL_", "OPENCV_FOR_THREADS_NUM")


class Feature(collections.namedtuple("Feature", ["name", "enabled"])):
    """A feature: its `name`, and the flag `enabled`.

    Example
    -------
    >>> mx.runtime.Feature('CUDA', False)
    ✖ CUDA
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


def _has(module):
    return importlib.util.find_spec(module) is not None


def _facts():
    """Return MXNet's features in its order, then those of this package only, each with a flag for its availability."""
    build = torch.__config__.show()
    cuda = torch.version.cuda is not None
    cpu = processor.flags()
    return [
        ("CUDA", cuda), ("CUDNN", cuda and torch.backends.cudnn.is_available()),
        ("NCCL", cuda and torch.distributed.is_available() and torch.distributed.is_nccl_available()),
        ("CUDA_RTC", False), ("TENSORRT", False),
        ("CPU_SSE", "sse" in cpu), ("CPU_SSE2", "sse2" in cpu), ("CPU_SSE3", "pni" in cpu), ("CPU_SSE4_1", "sse4_1" in cpu),
        ("CPU_SSE4_2", "sse4_2" in cpu), ("CPU_SSE4A", "sse4a" in cpu), ("CPU_AVX", "avx" in cpu), ("CPU_AVX2", "avx2" in cpu),
        ("OPENMP", torch.backends.openmp.is_available()), ("SSE", "sse" in cpu), ("F16C", "f16c" in cpu), ("JEMALLOC", False),
        ("BLAS_OPEN", "BLAS_INFO=open" in build), ("BLAS_ATLAS", False), ("BLAS_MKL", torch.backends.mkl.is_available()),
        ("BLAS_APPLE", "BLAS_INFO=accelerate" in build), ("LAPACK", torch._C.has_lapack),
        ("MKLDNN", torch.backends.mkldnn.is_available()), ("OPENCV", _has("cv2")), ("CAFFE", False), ("PROFILER", True),
        ("DIST_KVSTORE", torch.distributed.is_available()),
        ("CXX14", False), ("INT64_TENSOR_SIZE", True), ("SIGNAL_HANDLER", False), ("DEBUG", False), ("TVM_OP", False),
        ("OPENVINO", _has("openvino")), ("COMPILED_KERNELS", libraries.available()),
        # Calibrated networks of 8-bit integers run on OpenVINO's kernels where it is installed, else on oneDNN's in torch, which need VNNI.
        ("INT8_OPENVINO", _has("openvino")), ("INT8_ONEDNN", gemm.available()),
        ("INT8_VNNI", bool({"avx512_vnni", "avx_vnni"} & cpu)), ("INT8_AMX", "amx_int8" in cpu),
        ("BF16_AVX512", "avx512_bf16" in cpu), ("BF16_AMX", "amx_bf16" in cpu),
    ]


def feature_list() -> list[Feature]:
    """Return all features, enabled or not.

    Example
    -------
    >>> [feature for feature in mx.runtime.feature_list() if feature.name == 'PROFILER']
    [✔ PROFILER]
    """
    return [Feature(name, bool(enabled)) for name, enabled in _facts()]


class Features(collections.OrderedDict):
    """The features by name; every call returns the same object.

    Example
    -------
    >>> features = mx.runtime.Features()
    >>> features.is_enabled('PROFILER')
    True
    """

    instance = None

    def __new__(cls) -> Features:
        if cls.instance is None:
            cls.instance = super().__new__(cls)
            collections.OrderedDict.__init__(cls.instance, ((f.name, f) for f in feature_list()))
        return cls.instance

    def __init__(self) -> None:
        """Do nothing: the object is filled once, in ``__new__``."""

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Return True if a feature, such as ``'CUDA'``, is enabled.

        Raises
        ------
        RuntimeError
            If there is no feature of that name.
        """
        feature_name = feature_name.upper()
        if feature_name not in self:
            raise RuntimeError(f"There is no feature '{feature_name}'; the features are {list(self)}{did_you_mean(feature_name, self)}")
        return self[feature_name].enabled


class Threads(NamedTuple):
    """The numbers of threads in this process, and the reason for them; see `threads`.

    Example
    -------
    >>> threads = mx.runtime.threads()
    >>> isinstance(threads, mx.runtime.Threads), threads.count >= 1
    (True, True)
    """

    count: int
    full: int
    cores: float
    reason: str
    openvino: int
    opencv: int
    variables: dict[str, str]


def threads() -> Threads:
    """Return the numbers of threads of this process, and the reason for them.

    Returns
    -------
    Threads
        ``count``: threads that share an operator called from this thread. ``full``: their number where no other program is busy. ``cores``: cores
        that the process may use, by its affinity and the quotas of its control groups. ``reason``: a text. ``openvino``: threads that the next
        graph is compiled for. ``opencv``: OpenCV's threads, or those that it gets when the first image needs it. ``variables``: the environment
        variables about threads that are set.

    Example
    -------
    >>> import mxnet as mx
    >>> found = mx.runtime.threads()
    >>> 1 <= found.count <= found.full == found.openvino
    True
    """
    return Threads(torch.get_num_threads(), thread_policy.usual(), thread_policy.usable(), thread_policy.policy.reason, thread_policy.usual(),
                   opencv.count(), {name: value for name, value in sorted(os.environ.items()) if name.startswith(_OF_THREADS)})
