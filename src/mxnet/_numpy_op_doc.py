"""The public functions of NumPy operators, under the operators' names: ``_np_sum`` is ``mx.np.sum``.

Their signatures and docstrings document the operators.
"""
from . import numpy as _numpy
from .numpy_op_signature import _get_builtin_op
from .ops.registry import OPERATORS as _OPERATORS

_np__random_shuffle = _numpy.random.shuffle
globals().update({_name: _get_builtin_op(_name) for _name in _OPERATORS if _name.startswith("_np_")})
globals().update({_name: _get_builtin_op(_name) for _name in ("_npx_constraint_check", "_npx_nonzero", "_npx_reshape")})
