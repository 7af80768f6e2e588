"""From ONNX to Symbols: what a file says is checked in `reading`, and translated by `translator` with the table in `registry`."""
from . import _op_translations, import_model, import_onnx, import_to_gluon
