"""The lists of operators that run in bfloat16, in float32, and in the type of their inputs.

bfloat16 has 8 significant bits to float16's 11, and MXNet has fewer operators for it: most of what float16 runs in the type of its inputs
runs in float32 here. The lists follow from the operators' traits (``mxnet.ops.traits``).
"""
from .derived import conditional, losses, spellings
from .symbol_fp16 import OTHER_OPERATORS

# Sparse forms that MXNet lists otherwise than the operator.
_SPARSE_FP32 = [f"_sparse_{name}" for name in "FullyConnected abs clip concat relu sqrt square tanh".split()]
_SPARSE_WIDEST = ["_sparse_broadcast_mul", "_sparse_sum"]
# Fused with ReLU; that of ours has another name.
_FUSED = "BatchNormWithReLU"

BF16_FUNCS = sorted(spellings("bfloat16", "low", without=_SPARSE_FP32))
BF16_FP32_FUNCS = spellings("bfloat16", "inputs", without=[*_SPARSE_FP32, "CuDNNBatchNorm"], besides=["_add", _FUSED])
FP32_FUNCS = spellings("bfloat16", "float32", without=[*_SPARSE_WIDEST, "linalg_syevd"],
                       besides=[*_SPARSE_FP32, "_NDArray", "_Native", *(name for name in OTHER_OPERATORS if name != "_TensorRT")])
WIDEST_TYPE_CASTS = spellings("bfloat16", "widest", without=["_add"], besides=_SPARSE_WIDEST)

# Inputs that stay float32 where the operator itself runs in bfloat16.
BF16_USE_FP32_PARAMS = {name: ["", *"gamma beta moving_mean moving_var".split()] for name in ("BatchNorm", _FUSED)}

CONDITIONAL_FP32_FUNCS = conditional("bfloat16")
LOSS_OUTPUT_FUNCTIONS = losses()
