"""Arithmetic that keeps arrays sparse where the operation allows it, and Python's operators on sparse arrays."""
from collections.abc import Callable
from typing import Any

from ..arithmetic import FUNCTIONS
from ..functions import operator_function
from ..ndarray import NDArray
from .arrays import BaseSparseNDArray


def _elementwise(name: str, operator: str) -> Callable[[Any, Any], Any]:
    broadcasting, same_shape = FUNCTIONS[name], operator_function(operator)

    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, NDArray) and isinstance(rhs, NDArray) and lhs.shape == rhs.shape:
            return same_shape(lhs, rhs)
        return broadcasting(lhs, rhs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"Element-wise `{name}` of two arrays or numbers. Arrays of one shape stay sparse where the operation allows it; "
                        "others are broadcast.")
    return function


add, subtract, multiply, divide = (_elementwise(*names) for names in (("add", "elemwise_add"), ("subtract", "elemwise_sub"),
                                                                      ("multiply", "elemwise_mul"), ("divide", "elemwise_div")))
# Python's operators on sparse arrays are these, while nd.add and the others broadcast always, which gives dense results.
for _name, _function in (("add", add), ("sub", subtract), ("mul", multiply), ("truediv", divide)):
    setattr(BaseSparseNDArray, f"__{_name}__", _function)
    setattr(BaseSparseNDArray, f"__r{_name}__", lambda self, other, _function=_function: _function(other, self))
