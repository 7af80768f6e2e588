"""Networks as ONNX files, for other runtimes: `export_model`. `mxnet.contrib.onnx` reads them."""
from .mx2onnx import export_model, get_operator_support
