"""All kernels in Triton compile for GPUs of the oldest and of a recent kind, without a GPU: NVIDIA's assembler is in triton's wheel."""
import importlib.util

import pytest

from mxnet.kernels.nn import updates_on_gpu
from mxnet.kernels.runtime import channel_kernels
from mxnet.kernels.runtime.triton_kernels import OLDEST, OPTIONS
from triton_programs import needs_triton

pytestmark = needs_triton
TARGETS = (10 * OLDEST[0] + OLDEST[1], "bf16"), (90, "fp32")
TILE = {"ROWS": 64, "CHANNELS": 64}
JOINED = {"PARTS": channel_kernels.PARTS, "CHANNELS": channel_kernels.TILE // channel_kernels.PARTS}
WINDOW = dict(zip(("KERNEL_H", "KERNEL_W", "STRIDE_H", "STRIDE_W", "PAD_H", "PAD_W"), (3, 3, 2, 2, 1, 1)))
# By module and kernel: its pointers to data of the layer's type, those to other types, its floats, and sets of constants.
KERNELS = {
    "batch_norm_triton": {
        "statistics": ("data", {"sums": "fp32"}, "", [TILE]),
        "join_statistics": ("bias", dict.fromkeys(("sums", "moving_mean", "moving_var", "mean", "inverse"), "fp32"), "eps momentum",
                            [{"BIASED": True, **JOINED}]),
        "normalize": ("data residual out", dict.fromkeys(("gamma", "beta", "mean", "inverse"), "fp32"), "",
                      [{"SCALED": True, "ADDS": adds, "RECTIFIES": True, **TILE} for adds in (True, False)]),
        "gradient_sums": ("dout data out kept", dict.fromkeys(("gamma", "beta", "mean", "inverse", "sums"), "fp32"), "",
                          [{"SCALED": True, "RECTIFIES": True, "ADDS": adds, **TILE} for adds in (True, False)]),
        "join_gradient_sums": ("dbias", dict.fromkeys(("sums", "inverse", "dgamma", "dbeta"), "fp32"), "", [{"BIASED": True, **JOINED}]),
        "gradient": ("dout data dx", dict.fromkeys(("gamma", "beta", "mean", "inverse", "dgamma", "dbeta"), "fp32"), "",
                     [{"SCALED": True, "RECTIFIES": True, **TILE}])},
    "bias_triton": {
        "add_bias": ("data bias", {}, "", [{"RECTIFIES": True, **TILE}]),
        "gradient_sums": ("dout out dx", {"sums": "fp32"}, "", [{"RECTIFIES": True, "WRITES": True, **TILE}]),
        "join_gradient_sums": ("dbias", {"sums": "fp32"}, "", [JOINED])},
    "max_pooling_triton": {
        "max_pool": ("data bias out", {"marks": "u8"}, "",
                     [{**WINDOW, "PIXELS": 32, "CHANNELS": 64, "ADDS": joined, "RECTIFIES": joined} for joined in (True, False)]),
        "max_pool_gradient": ("dout dx", {"marks": "u8"}, "", [{**WINDOW, "PIXELS": 32, "CHANNELS": 64}])},
    "scoring_triton": {
        "finish": ("data scale shift residual out", {}, "ceiling",
                   [{"SCALES": True, "ADDS": True, "RECTIFIES": True, "LIMITS": True, "BLOCK": 1024}]),
        "max_pool": ("data out", {}, "", [{**WINDOW, "BLOCK": 1024}])}}
# The number of each rule's states.
RULES = {"sgd": 1, "nag": 1, "adam": 2, "adamw": 2, "adabelief": 2, "adamax": 2, "nadam": 2, "rmsprop": 1, "rmsprop_centered": 3, "adagrad": 1,
         "adadelta": 2, "ftrl": 2, "ftml": 3, "signum": 1, "dcasgd": 2}


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def compiled(module, kernel, capability, pointers, floats, constants):
    """The machine code of a kernel; pointers are aligned, and other numbers are integers."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = getattr(importlib.import_module("mxnet.kernels.nn." + module), kernel)
    signature, attributes, values = {}, {}, {}
    for i, name in enumerate(function.arg_names):
        if name in pointers:
            signature[name], attributes[i,] = "*" + pointers[name], [["tt.divisibility", 16]]
        elif name in constants:
            signature[name], values[i,] = "constexpr", constants[name]
        else:
            signature[name] = "fp32" if name in floats or floats == "all" else "i32"
    source = ASTSource(function, signature, values, attributes)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 8, **OPTIONS}).asm["cubin"]


@pytest.mark.parametrize("module", KERNELS)
def test_layers(module):
    import triton

    members = vars(importlib.import_module("mxnet.kernels.nn." + module))
    assert {n for n, value in members.items() if isinstance(value, triton.JITFunction) and not n.startswith("_")} == set(KERNELS[module])
    for kernel, (typed, others, floats, variants) in KERNELS[module].items():
        for constants in variants:
            for capability, kind in TARGETS:
                assert compiled(module, kernel, capability, {**dict.fromkeys(typed.split(), kind), **others}, floats.split(), constants)


def test_updates():
    import triton.language as tl

    for rule, states in RULES.items():
        for capability, kind in TARGETS:
            half = kind != "fp32"
            constants = {"RULE": rule, "STATES": states, "GRADIENT": tl.float16 if half else tl.float32, "COPY": tl.bfloat16 if half else tl.float32,
                         "COPIES": half, "CLIPS": half, "COUPLES": half, "DECAYS": half, "ALIGNED": True,
                         "PIECE": updates_on_gpu._PIECE, "BLOCK": updates_on_gpu._BLOCK}
            assert compiled("updates_triton", "move", capability, {"table": "i64"}, "all", constants)
