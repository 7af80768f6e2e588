"""Arithmetic that keeps arrays sparse where the operation allows it, and Python's operators on sparse arrays."""
from collections.abc import Callable
from typing import Any

from ..arithmetic import FUNCTIONS
from ..functions import operator_function
from ..ndarray import NDArray
from .arrays import BaseSparseNDArray

# `name` of [[0, 2], [0, 0]], in the format csr, and itself or 2.
_EXAMPLES = {"add": [[0.0, 4.0], [0.0, 0.0]], "subtract": [[0.0, 0.0], [0.0, 0.0]], "multiply": [[0.0, 4.0], [0.0, 0.0]],
             "divide": [[0.0, 1.0], [0.0, 0.0]]}


def _elementwise(name: str, operator: str) -> Callable[[Any, Any], Any]:
    broadcasting, same_shape = FUNCTIONS[name], operator_function(operator)

    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, NDArray) and isinstance(rhs, NDArray) and lhs.shape == rhs.shape:
            return same_shape(lhs, rhs)
        return broadcasting(lhs, rhs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Element-wise `{name}` of two arrays or numbers. Arrays of one shape stay sparse where the operation allows it; others are
    broadcast.

    Example
    -------
    >>> x = mx.nd.array([[0, 2], [0, 0]]).tostype('csr')
    >>> y = mx.nd.sparse.{name}(x, {2 if name in ("multiply", "divide") else "x"})
    >>> y.stype, y.asnumpy().tolist()
    ('csr', {_EXAMPLES[name]})
    """
    return function


add, subtract, multiply, divide = (_elementwise(*names) for names in (("add", "elemwise_add"), ("subtract", "elemwise_sub"),
                                                                      ("multiply", "elemwise_mul"), ("divide", "elemwise_div")))
# Python's operators on sparse arrays are these, while nd.add and the others broadcast always, which gives dense results.
for _name, _function in (("add", add), ("sub", subtract), ("mul", multiply), ("truediv", divide)):
    setattr(BaseSparseNDArray, f"__{_name}__", _function)
    setattr(BaseSparseNDArray, f"__r{_name}__", lambda self, other, _function=_function: _function(other, self))
