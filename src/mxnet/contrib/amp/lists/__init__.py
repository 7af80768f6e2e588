"""AMP's lists of operators by precision: one module for each low-precision type."""
from . import symbol_bf16, symbol_fp16
