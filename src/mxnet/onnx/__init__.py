"""Networks as ONNX files, for other runtimes: `export_model`. Reading them is `mxnet.contrib.onnx`'s."""
from .mx2onnx import export_model, get_operator_support
