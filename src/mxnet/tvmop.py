"""Operators compiled by TVM. MXNet loads them where it was built with ``USE_TVM_OP``; here there are none, and nothing needs them."""
from .runtime import Features  # noqa: F401
