"""From ONNX to Symbols: `reading` checks the content of a file, and `translator` translates it with the table in `registry`."""
from . import _op_translations, import_model, import_onnx, import_to_gluon
