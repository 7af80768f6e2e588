"""Which operators run in which precision under AMP: one module for each low-precision type."""
from . import symbol_bf16, symbol_fp16
