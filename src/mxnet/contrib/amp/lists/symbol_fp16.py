"""The lists of operators that run in float16, in float32, and in the type of their inputs.

Every operator is in one list: in `FP16_FUNCS` if it is safe and much faster in float16 (matrix products, convolutions), in `FP32_FUNCS`
if it loses too much (exponents, powers, reductions, normalizations, losses), in `WIDEST_TYPE_CASTS` if its inputs must be of one type,
else in `FP16_FP32_FUNCS`. The lists follow from the operators' traits (``mxnet.ops.traits``).
"""
from .derived import conditional, losses, spellings

# Names of sparse forms, and of an old sum, that MXNet lists otherwise than the operator.
_AS_THEY_COME = ["_add", "_sparse_sinh", "_sparse_FullyConnected", "_sparse_concat"]
_WIDEST = ["_sparse_sum"]
# Operators that exist in MXNet only: fused nodes, gradients and helpers that our graphs do not contain.
OTHER_OPERATORS = """_sg_mkldnn_conv _sg_mkldnn_fully_connected _TensorRT _split_v2_backward _broadcast_backward _CrossDeviceCopy _NoGradient
_CachedOp _CustomFunction""".split()

FP16_FUNCS = sorted(spellings("float16", "low", without=_AS_THEY_COME))
FP16_FP32_FUNCS = spellings("float16", "inputs", "cast", besides=[*_AS_THEY_COME, *OTHER_OPERATORS])
FP32_FUNCS = spellings("float16", "float32", without=[*_AS_THEY_COME, *_WIDEST, "linalg_syevd"], besides=["_NDArray", "_Native"])
WIDEST_TYPE_CASTS = spellings("float16", "widest", without=_AS_THEY_COME, besides=_WIDEST)

CONDITIONAL_FP32_FUNCS = conditional("float16")
LOSS_OUTPUT_FUNCTIONS = losses()
