"""The environment variables of MXNet, and the effect of each here.

`VARIABLES` is the one table: every variable that MXNet documents, its default, and its effect, or the reason why it has none. Modules
read theirs through `get_bool`, `get_choice`, `get_int`, `get_float` and `get_str`, which take the default from the table.

Example
-------
>>> from mxnet import environment
>>> environment.VARIABLES['MXNET_OPTIMIZER_AGGREGATION_SIZE'].default
'60'
"""
from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple

from .base import MXNetError

__all__ = ["VARIABLES", "Variable", "configure", "describe", "get_bool", "get_choice", "get_float", "get_int", "get_str"]


class Variable(NamedTuple):
    """An environment variable: its default as text (None: unset), True if it has an effect here, and a sentence about that."""

    name: str
    default: str | None
    acts: bool
    note: str


_THREADS = "torch runs operators on one pool of threads; OMP_NUM_THREADS or torch.set_num_threads sizes it, see docs/performance.md"
_MEMORY = "torch's allocator plans memory; see PYTORCH_CUDA_ALLOC_CONF"
_BULK = "a graph runs as a whole; there are no segments to size"
_TREE = "torch.distributed and NCCL choose the reduction themselves"
_PLAN = "no memory plan is computed ahead of a run"
_NATIVE = "there is no native MXNet library to load or to call"
_RANDOM = "a GPU has one generator, which all operators share"
_MEET = "tells each process of a distributed job its part, see docs/distributed.md"
_TCP = "TCP resends what is lost"
_TEST = "MXNet's own tests read it, in a module that is no part of the package"

_BUCKET = "apache-mxnet"
REPOSITORY = f"https://{_BUCKET}.s3-accelerate.dualstack.amazonaws.com/"

_TABLE = [
    # Paths
    ("MXNET_HOME", None, True, "the folder for downloaded data and models instead of ~/.mxnet"),
    ("MXNET_GLUON_REPO", REPOSITORY, True, "where Gluon downloads data and models from"),
    ("MXNET_LIBRARY_PATH", None, True, "what libinfo.find_lib_path returns; nothing here loads it"),
    ("MXNET_INCLUDE_PATH", None, True, "what libinfo.find_include_path returns"),
    ("MXNET_CONF_PATH", None, True, "what libinfo.find_conf_path returns"),
    # Threads
    ("MXNET_GPU_WORKER_NTHREADS", "2", False, "a CUDA stream is the queue of its GPU; no threads feed it"),
    ("MXNET_GPU_COPY_NTHREADS", "2", False, "CUDA copies without threads of ours"),
    ("MXNET_CPU_WORKER_NTHREADS", "1", False, _THREADS),
    ("MXNET_CPU_PRIORITY_NTHREADS", "4", False, _THREADS),
    ("MXNET_CPU_NNPACK_NTHREADS", "4", False, "NNPACK is not used"),
    ("MXNET_MP_WORKER_NTHREADS", "1", False, "a forked process computes with one thread; torch.set_num_threads changes that"),
    ("MXNET_MP_OPENCV_NUM_THREADS", "0", False, "OpenCV computes with one thread in a DataLoader's worker; cv2.setNumThreads changes that there"),
    ("MXNET_CPU_PARALLEL_SIZE", "200000", False, "torch decides from which size on an operator uses several threads"),
    ("MXNET_USE_OPERATOR_TUNING", "1", False, "torch decides from which size on an operator uses several threads"),
    ("MXNET_ENABLE_OPERATOR_TUNING", "1", False, "torch decides from which size on an operator uses several threads"),
    ("MXNET_USE_NUM_CORES_OPERATOR_TUNING", "0", False, "torch decides from which size on an operator uses several threads"),
    # Memory
    ("MXNET_IMAGE_MAX_PIXELS", "134217728", True, "images of more pixels are refused by their header (MXNet has no such variable)"),
    ("MXNET_CPU_MEM_POOL_TYPE", "Naive", True, "Unpooled: the C allocator gives memory back to the system at once"),
    ("MXNET_GPU_MEM_POOL_TYPE", "Naive", True, "Unpooled: torch's caching of GPU memory is off; Round: sizes are rounded up"),
    ("MXNET_GPU_MEM_POOL_RESERVE", "5", False, "torch takes what it needs; torch.cuda.set_per_process_memory_fraction limits it"),
    ("MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "24", False, _MEMORY),
    ("MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE", "2097152", False, _MEMORY),
    ("MXNET_EXEC_ENABLE_INPLACE", "true", False, _PLAN),
    ("NNVM_EXEC_MATCH_RANGE", "16", False, _PLAN),
    ("MXNET_EXEC_NUM_TEMP", "1", False, _PLAN),
    ("MXNET_CPU_TEMP_COPY", "4", False, "operators take temporary memory from torch's allocator"),
    ("MXNET_GPU_TEMP_COPY", "1", False, "operators take temporary memory from torch's allocator"),
    ("MXNET_BACKWARD_DO_MIRROR", "0", True, "1: graphs that train keep a part of their activations, and compute the others again in backward"),
    ("MXNET_CPU_PARALLEL_RAND_COPY", "1", False, "there is one set of CPU generators in each thread, as MXNet's default has it"),
    ("MXNET_GPU_PARALLEL_RAND_COPY", "4", False, _RANDOM),
    ("MXNET_GPU_CUDNN_DROPOUT_STATE_COPY", "4", False, _RANDOM),
    # The engine
    ("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice", True, "NaiveEngine: each GPU operator ends before the next starts (CPU operators always do)"),
    ("MXNET_EXEC_BULK_EXEC_INFERENCE", "1", True, "0: graphs for inference run operator by operator, never compiled"),
    ("MXNET_EXEC_BULK_EXEC_TRAIN", "1", True, "0: graphs for training run operator by operator, as they are"),
    ("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "15", False, _BULK),
    ("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN_FWD", None, False, _BULK),
    ("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN_BWD", None, False, _BULK),
    ("MXNET_ENABLE_CUDA_GRAPHS", None, True,
     "1: graphs on GPUs are captured as CUDA graphs at once; 0: never; unset: at once with hybridize(static_alloc=True, static_shape=True), "
     "else when the same shapes have come several times"),
    ("MXNET_CUDA_GRAPHS_VERBOSE", "0", False, "explain() of a block says what was captured, or why it was not"),
    ("MXNET_CUDA_GRAPHS_MAX_LOG_ENTRIES", "0", False, "explain() of a block says what was captured, or why it was not"),
    ("MXNET_GPU_WORKER_NSTREAMS", "1", False, "torch orders the kernels of a backward pass itself"),
    # Graphs
    ("MXNET_SUBGRAPH_BACKEND", None, True, "who runs graphs: openvino, inductor, TensorRT, auto, ...; NONE: torch; MKLDNN: the default"),
    ("MXNET_ELIMINATE_COMMON_EXPR", "1", True, "0: equal operations on equal inputs are computed each time"),
    ("MXNET_USE_FUSION", "1", True, "0: operators are not fused and keep their layout"),
    ("MXNET_FUSION_VERBOSE", "0", True, "1: what the passes did to a graph is logged"),
    ("MXNET_QUANTIZATION_VERBOSE", "0", True, "1: quantization says what it does to the logger of its module, where it is given none"),
    ("MXNET_DISABLE_MKLDNN_CONV_OPT", "0", True, "1: get_backend_symbol('MKLDNN') leaves convolutions alone"),
    ("MXNET_DISABLE_MKLDNN_FC_OPT", "0", True, "1: ... fully connected layers"),
    ("MXNET_DISABLE_MKLDNN_TRANSFORMER_OPT", "0", True, "1: ... the products of interleaved attention"),
    ("MXNET_DISABLE_MKLDNN_FUSE_CONV_BN", "0", True, "1: it fuses no batch norms with convolutions"),
    ("MXNET_DISABLE_MKLDNN_FUSE_CONV_RELU", "0", True, "1: it fuses no activations with convolutions"),
    ("MXNET_DISABLE_MKLDNN_FUSE_CONV_SUM", "0", True, "1: it fuses no sums with convolutions"),
    ("MXNET_DISABLE_MKLDNN_FUSE_FC_ELTWISE", "0", True, "1: it fuses nothing with fully connected layers"),
    ("MXNET_DISABLE_MKLDNN_QFC_FUSE_ALL", "0", True, "1: quantized fully connected layers return int32"),
    ("MXNET_DISABLE_MKLDNN_QFC_FLOAT_OUTPUT", "0", True, "1: ... never real numbers"),
    ("MXNET_DISABLE_MKLDNN_QEM_FUSE_ALL", "0", True, "1: quantized products of elements return int32"),
    ("MXNET_DISABLE_MKLDNN_QEM_FLOAT_OUTPUT", "0", True, "1: ... never real numbers"),
    ("MXNET_DISABLE_MKLDNN_QTRANSFORMER_FUSE_ALL", "0", True, "1: quantized products of attention return int32"),
    ("MXNET_DISABLE_MKLDNN_QTRANSFORMER_FLOAT_OUTPUT", "0", True, "1: ... never real numbers"),
    # Arithmetic
    ("MXNET_ENFORCE_DETERMINISM", "0", True, "1: torch.use_deterministic_algorithms; an operator that has none raises"),
    ("MXNET_SAFE_ACCUMULATION", "0", False, "torch always sums 16-bit numbers in 32 bits"),
    ("MXNET_FC_TRUE_FP16", "0", True, "1: cuBLAS may sum float16 products in float16"),
    ("MXNET_CUDA_ALLOW_TENSOR_CORE", "1", True, "0: float32 is multiplied in full precision on GPUs, not as TF32"),
    ("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "0", True, "1: all float32 products on GPUs may be TF32, those of dot and mx.np too"),
    ("MXNET_CUDNN_AUTOTUNE_DEFAULT", "1", True, "0: kernels don't race; 1, if it is set: cuDNN tries which convolution algorithm is fastest"),
    ("MXNET_CUDA_LIB_CHECKING", "1", False, "torch checks its CUDA libraries itself"),
    ("MXNET_CUDNN_LIB_CHECKING", "1", False, "torch checks its CUDA libraries itself"),
    ("MXNET_CONVOLUTION_ALGORITHM", "fastest", True,
     "exact: graphs never convolve by fewer multiplications, which round more, nor by numbers in parts (MXNet has no such variable)"),
    ("MXNET_MKLDNN_ENABLED", "1", True, "0: torch doesn't call oneDNN"),
    ("MXNET_MKLDNN_CACHE_NUM", "-1", False, "torch sizes oneDNN's cache of primitives; see LRU_CACHE_CAPACITY"),
    ("MXNET_MKLDNN_FORCE_FC_AB_FORMAT", "0", False, "weights keep their layout"),
    ("MXNET_USE_MKLDNN_RNN", "1", False, "RNN layers have one implementation"),
    # Training
    ("MXNET_OPTIMIZER_AGGREGATION_SIZE", "60", True, "how many weights one update of SGD, LARS or LAMB handles; 4 in MXNet, but more are faster"),
    ("MXNET_UPDATE_AGGREGATION_SIZE", None, True, "how many weights Module hands to the updater at once"),
    ("MXNET_UPDATE_ON_KVSTORE", "1", True, "0: workers update the weights, not the key-value store"),
    ("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "1", True, "0: nothing is logged when a sparse array is computed as a dense one"),
    # Communication
    ("MXNET_KVSTORE_REDUCTION_NTHREADS", "4", False, _THREADS),
    ("MXNET_KVSTORE_BIGARRAY_BOUND", "1000000", True, "dist_async: values of so many elements are divided among all servers"),
    ("MXNET_KVSTORE_SHARD", "0", True, "1: each worker of dist_sync keeps a part of the optimizer's states (MXNet has no such variable)"),
    ("MXNET_KVSTORE_SLICE_THRESHOLD", "40000", True, "p3: values travel in slices of so many elements"),
    ("MXNET_KVSTORE_USETREE", "0", False, _TREE),
    ("MXNET_KVSTORE_LOGTREE", "0", False, _TREE),
    ("MXNET_KVSTORE_TREE_ARRAY_BOUND", "10000000", False, _TREE),
    ("MXNET_KVSTORE_TREE_BACKTRACK", "0", False, _TREE),
    ("MXNET_KVSTORE_TREE_LINK_USAGE_PENALTY", "0.7", False, _TREE),
    ("MXNET_ENABLE_GPU_P2P", "1", False, "torch uses peer-to-peer copies wherever the driver offers them"),
    ("DMLC_ROLE", None, True, _MEET),
    ("DMLC_PS_ROOT_URI", None, True, _MEET),
    ("DMLC_PS_ROOT_PORT", None, True, _MEET),
    ("DMLC_NUM_WORKER", None, True, _MEET),
    ("DMLC_NUM_SERVER", None, True, _MEET),
    ("DMLC_WORKER_ID", None, True, _MEET + "; without it workers draw their ranks"),
    ("DMLC_SERVER_ID", None, True, _MEET + "; without it servers draw their ranks"),
    ("DMLC_INTERFACE", None, True, "the network interface by which the processes of a distributed job talk"),
    ("MXNET_KVSTORE_JOIN_TIMEOUT", "300", True, "seconds that processes of a distributed job wait for one another (MXNet has no such variable)"),
    ("PS_HEARTBEAT_INTERVAL", "1", True, "how often, in seconds, the processes of a distributed job say that they are alive"),
    ("PS_HEARTBEAT_TIMEOUT", "60", True, "after how many seconds of silence a process of a distributed job is taken for dead"),
    ("DMLC_PS_VAN_TYPE", None, True, "p3: the types dist_sync and their like are p3"),
    ("DMLC_PS_WATER_MARK", None, False, "torch.distributed has no such limit"),
    ("PS_VERBOSE", "0", False, "TORCH_DISTRIBUTED_DEBUG and TORCH_CPP_LOG_LEVEL=INFO say what torch.distributed does"),
    ("PS_RESEND", "0", False, _TCP),
    ("PS_RESEND_TIMEOUT", "1000", False, _TCP),
    # Profiling and debugging
    ("MXNET_PROFILER_AUTOSTART", "0", True, "1: profiling starts with the program, into profile.json"),
    ("MXNET_PROFILER_MODE", None, True, "what autostart records besides graphs: 2 (operators) + 4 (calls of the API) + 8 (memory); unset: all"),
    ("DMLC_LOG_STACK_TRACE_DEPTH", "0", False, "errors carry Python's traceback"),
    ("MXNET_ENABLE_CYTHON", "1", False, _NATIVE),
    ("MXNET_ENFORCE_CYTHON", "0", False, _NATIVE),
    ("MXNET_TEST_SEED", None, False, _TEST),
    ("MXNET_MODULE_SEED", None, False, _TEST),
    ("MXNET_TEST_COUNT", None, False, _TEST),
]
VARIABLES = {row[0]: Variable(*row) for row in _TABLE}

_TRUE, _FALSE = frozenset(("1", "true", "yes", "on")), frozenset(("", "0", "false", "no", "off"))


def get_str(name: str) -> Any:
    """Return the variable's value as text, or its default; None if it has neither."""
    return os.environ.get(name) or VARIABLES[name].default


def get_bool(name: str) -> bool:
    """Return the variable as a truth value: 1, true, yes, on; 0, false, no, off.

    Raises
    ------
    MXNetError
        If it is something else.
    """
    text = (get_str(name) or "").strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _malformed(name, "0 or 1")


def get_choice(name: str, *choices: str) -> Any:
    """Return the variable's value, one of `choices`.

    Raises
    ------
    MXNetError
        If it is something else.
    """
    choice = get_str(name)
    if choice not in choices:
        raise _malformed(name, " or ".join(choices))
    return choice


def get_int(name: str) -> Any:
    """Return the variable as an integer; None if it is unset and has no default.

    Raises
    ------
    MXNetError
        If it is no integer.
    """
    return _number(name, int, "an integer")


def get_float(name: str) -> Any:
    """Return the variable as a number; None if it is unset and has no default.

    Raises
    ------
    MXNetError
        If it is no number.
    """
    return _number(name, float, "a number")


def _number(name, kind, expected):
    text = get_str(name)
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        raise _malformed(name, expected) from None


def _malformed(name, expected):
    return MXNetError(f"the environment variable {name} must be {expected}, received {os.environ.get(name)!r}; "
                      f"its default is {VARIABLES[name].default!r}")


def describe() -> str:
    """Return the table as text, with the values that are set, for bug reports."""
    lines = []
    for v in VARIABLES.values():
        value = os.environ.get(v.name)
        lines.append(f"{v.name}={'' if v.default is None else v.default}{'' if value is None else f' (set to {value!r})'}: "
                     f"{'' if v.acts else 'no effect, '}{v.note}")
    return "\n".join(lines)


def configure() -> None:
    """Apply the variables that are global settings of torch. Called once, at import; starts neither CUDA nor a thread."""
    import torch
    if hasattr(os, "register_at_fork"):
        # A forked child has none of OpenMP's threads and would wait for them forever; it computes with one, as MXNet's does. The hook is
        # written in C: a Python function could lose a Ctrl-C.
        os.register_at_fork(after_in_child=functools.partial(torch.set_num_threads, 1))
    if get_str("MXNET_ENGINE_TYPE") == "NaiveEngine":
        os.environ.setdefault("CUDA_LAUNCH_BLOCKING", "1")
    _configure_gpu_memory()
    backends = torch.backends
    # By default cuDNN does not benchmark its algorithms, which takes 10 s in the first step of a ResNet-50: its heuristic choices are as fast.
    backends.cudnn.benchmark = "MXNET_CUDNN_AUTOTUNE_DEFAULT" in os.environ and get_int("MXNET_CUDNN_AUTOTUNE_DEFAULT") > 0
    # As MXNet on CUDA 11: kernels/gemm/tensor_cores.py has the layers that are multiplied as TF32 besides convolutions and recurrent ones.
    if not get_bool("MXNET_CUDA_ALLOW_TENSOR_CORE"):
        backends.cudnn.allow_tf32 = backends.cuda.matmul.allow_tf32 = False
    elif get_bool("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION"):
        backends.cudnn.allow_tf32 = backends.cuda.matmul.allow_tf32 = True
    if not torch.sparse.check_sparse_tensor_invariants.is_enabled():
        torch.sparse.check_sparse_tensor_invariants.disable()  # an explicit setting: otherwise torch warns users, who can't do anything about it
    if get_bool("MXNET_FC_TRUE_FP16"):
        backends.cuda.matmul.allow_fp16_accumulation = True
    if get_bool("MXNET_ENFORCE_DETERMINISM"):
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        backends.cudnn.benchmark = False
    if not get_bool("MXNET_MKLDNN_ENABLED"):
        backends.mkldnn.set_flags(False)


def _configure_gpu_memory():
    # torch reads these when CUDA starts, so that setting the environment does not start CUDA.
    pool = get_str("MXNET_GPU_MEM_POOL_TYPE")
    if pool not in ("Naive", "Round", "Unpooled"):
        raise _malformed("MXNET_GPU_MEM_POOL_TYPE", "Naive, Round or Unpooled")
    if pool == "Unpooled":
        os.environ.setdefault("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
    elif pool == "Round":
        os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:1")
