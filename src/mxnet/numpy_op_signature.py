"""The look-up of public functions in ``mx.np`` and ``mx.npx`` by an operator's name."""
from . import numpy, numpy_extension


def _get_builtin_op(op_name):
    """Return the function for ``_np_<name>`` or ``_npx_<name>``; None for other names.

    Raises
    ------
    ValueError
        If there is no such function.
    """
    for prefix, module in (("_npx__image_", "image"), ("_npx_", None), ("_np_", numpy)):
        if op_name.startswith(prefix):
            where = module if module is numpy else numpy_extension if module is None else numpy_extension.image
            function = getattr(where, op_name[len(prefix):], None)
            if function is None:
                raise ValueError(f"Cannot find operator {op_name[len(prefix):]} in module {where.__name__}")
            return function
    return None
