"""ONNX files: `import_model`, `import_to_gluon` and `get_model_metadata` read them, `export_model` writes them (as ``mx.onnx`` does)."""
from ...onnx import export_model
from . import onnx2mx
from .onnx2mx.import_model import get_model_metadata, import_model
from .onnx2mx.import_to_gluon import import_to_gluon
