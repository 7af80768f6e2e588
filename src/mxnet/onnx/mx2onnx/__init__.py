"""Export of a Symbol and its parameters to an ONNX file."""
from ._export_model import export_model, get_operator_support
