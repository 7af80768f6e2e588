"""The table of operators that can be imported, and its lookup, under MXNet's names for both."""
from . import _op_translations  # noqa: F401  (fills the table)
from .registry import TRANSLATIONS

_convert_map = TRANSLATIONS

# MXNet's name of the function -> the operator, where it is not the operator's own name in lower case.
_OPERATORS = {
    "_cos": "Cos", "_elu": "Elu", "_log": "Log", "_prelu": "PRelu", "_selu": "Selu", "_sin": "Sin", "_slice": "Slice", "_tan": "Tan",
    "absolute": "Abs", "add_n": "Sum", "arccos": "Acos", "arcsin": "Asin", "arctan": "Atan", "avg_pooling": "AveragePool",
    "batch_norm": "BatchNormalization", "deconv": "ConvTranspose", "divide": "Div", "exponent": "Exp", "fully_connected": "FC",
    "global_avgpooling": "GlobalAveragePool", "global_lppooling": "GlobalLpPool", "global_maxpooling": "GlobalMaxPool",
    "instance_norm": "InstanceNormalization", "leaky_relu": "LeakyRelu", "lesser": "Less", "linalg_gemm": "Gemm", "local_response_norm": "LRN",
    "log_softmax": "LogSoftmax", "logical_and": "And", "logical_not": "Not", "logical_or": "Or", "logical_xor": "Xor", "lp_pooling": "LpPool",
    "matrix_multiplication": "MatMul", "max_pooling": "MaxPool", "max_roi_pooling": "MaxRoiPool", "maximum": "Max", "minimum": "Min",
    "multiply": "Mul", "negative": "Neg", "power": "Pow", "random_normal": "RandomNormalLike", "random_uniform": "RandomUniformLike",
    "reduce_l1": "ReduceL1", "reduce_l2": "ReduceL2", "reduce_log_sum": "ReduceLogSum", "reduce_log_sum_exp": "ReduceLogSumExp",
    "reduce_max": "ReduceMax", "reduce_mean": "ReduceMean", "reduce_min": "ReduceMin", "reduce_prod": "ReduceProd", "reduce_sum": "ReduceSum",
    "reduce_sum_square": "ReduceSumSquare", "sample_multinomial": "Multinomial", "squareroot": "Sqrt", "subtract": "Sub",
}
_LOWER = {name.lower(): name for name in TRANSLATIONS}


def __getattr__(name):
    operator = _OPERATORS.get(name) or _LOWER.get(name)
    if operator not in TRANSLATIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return TRANSLATIONS[operator].function
