"""Embedding in OpenVINO."""
import torch
from openvino import opset15 as ops

from ..conversion import Call, Value, constant, converts
from ..indexing import row_indices
from ..integers import parameters, results
from ..integers import weights as as_real


@converts("Embedding", "_contrib_SparseEmbedding")
def embedding(call: Call, data: Value, weight: Value) -> Value:
    return ops.gather(weight, row_indices(call, data, call.in_shapes[1][0]), constant(0, torch.int64))


@converts("_contrib_quantized_embedding", integers=True)
def quantized_embedding(call: Call, data: Value, *table: Value) -> list:
    _, values, low, high = call.constants
    if values is None or low is None or high is None:
        return call.refuse("weights that are computed")
    array = parameters(call, "weight", values, low, high)
    rows = as_real(values, torch.tensor([[array.unit]]))
    return results(array.like(ops.gather(rows, row_indices(call, data, call.in_shapes[1][0]), constant(0, torch.int64))))
