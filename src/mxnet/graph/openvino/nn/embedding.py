"""Embedding in OpenVINO."""
import torch
from openvino import opset15 as ops

from ..conversion import Call, Value, constant, converts
from ..indexing import row_indices


@converts("Embedding", "_contrib_SparseEmbedding")
def embedding(call: Call, data: Value, weight: Value) -> Value:
    return ops.gather(weight, row_indices(call, data, call.in_shapes[1][0]), constant(0, torch.int64))
