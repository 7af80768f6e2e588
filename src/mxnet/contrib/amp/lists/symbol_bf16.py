"""Which operators run in bfloat16, which in float32, and which in the type of their inputs.

The lists follow from those of float16, with more left to float32: bfloat16 has 8 significant bits to float16's 11, and MXNet has fewer
operators for it. So most of what float16 runs in the type of its inputs runs in float32 here.
"""
from . import symbol_fp16 as _fp16

BF16_FUNCS = "Convolution FullyConnected".split()

BF16_FP32_FUNCS = "BatchNorm BatchNormWithReLU LRN Pooling Concat concat _add abs clip relu sqrt square tanh shuffle _shuffle".split()

# Inputs that stay float32 where the operator itself is told to run in bfloat16.
BF16_USE_FP32_PARAMS = {name: ["", *"gamma beta moving_mean moving_var".split()] for name in ("BatchNorm", "BatchNormWithReLU")}

CONDITIONAL_FP32_FUNCS = list(_fp16.CONDITIONAL_FP32_FUNCS)

_DETECTION = [name for name in _fp16.FP32_FUNCS if name.startswith("_contrib_MultiBox")]
_ATTENTION = [name for name in _fp16.WIDEST_TYPE_CASTS if name.startswith("_contrib_interleaved_matmul")]
# These exist for GPUs only, or are what AMP itself inserts.
_NO_COUNTERPART = "CuDNNBatchNorm _TensorRT amp_cast amp_multicast".split()

WIDEST_TYPE_CASTS = [name for name in (*_fp16.WIDEST_TYPE_CASTS, *_DETECTION)
                     if name not in BF16_FP32_FUNCS and name != "broadcast_mul" and name not in _ATTENTION]

FP32_FUNCS = [name for name in (*_fp16.FP16_FUNCS, *_fp16.FP16_FP32_FUNCS, *_fp16.FP32_FUNCS, "broadcast_mul")
              if name not in BF16_FUNCS and name not in BF16_FP32_FUNCS and name not in _DETECTION and name not in _NO_COUNTERPART]

LOSS_OUTPUT_FUNCTIONS = list(_fp16.LOSS_OUTPUT_FUNCTIONS)
