"""Calls operators on Symbols for the functions that `mxnet.numpy.functions` defines."""
from collections.abc import Callable
from typing import Any, NoReturn

from ...context import current_context
from ...numpy.frontend import InputTypeError
from ...ops.registry import get
from ...suggestions import shortened
from ..compose import create
from ..functions import operator_function
from ..symbol import Symbol


class Symbols:
    """The front end of Symbols, the counterpart of `mxnet.numpy.frontend.Arrays`."""

    kind: type = Symbol  # of results: `symbol` puts its own class here

    def is_array(self, x: object) -> bool:
        """Return True if `x` is a Symbol."""
        return isinstance(x, Symbol)

    def call(self, name: str, *inputs: Any, out: Any = None, **attrs: Any) -> Any:
        """Return the operator's results as Symbols; attributes that are None are left at their defaults."""
        if out is not None and not isinstance(out, Symbol):
            raise TypeError(f"{name}: a Symbol has no values to write to; out=None expected, received {type(out).__name__}")
        op = get(name)
        for x in inputs:
            if x is not None and not isinstance(x, Symbol):
                raise InputTypeError(f"{name}: inputs must be Symbols, received {shortened(x)} of type {type(x).__name__}")
        hint = name.removeprefix("_npi_").removeprefix("_np_").removeprefix("_npx_").lstrip("_").lower()
        made = create(op, list(inputs), {k: v for k, v in attrs.items() if v is not None}, None, hint)
        entries = made._outputs
        return self.kind(entries) if len(entries) == 1 else [self.kind([e]) for e in entries]

    def call_scalar(self, name: str, x: Symbol, scalar: float, out: Any = None) -> Any:
        """Return the result of an operator on a Symbol and a number."""
        return self.call(name, x, scalar=float(scalar), is_int=not isinstance(scalar, float), out=out)

    def truth(self, x: Any) -> Any:
        """Return a boolean scalar as a Symbol, whose value is known only at run time."""
        return x

    def context(self, ctx: Any) -> Any:
        """Return the context for an argument ``ctx=None``."""
        return current_context() if ctx is None else ctx

    def ndim(self, x: Symbol) -> NoReturn:
        """Raise an error, since the number of axes of a Symbol is unknown.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError("this function needs the number of axes of its input, which a Symbol does not know; use npx.nonzero or give "
                                  "an argument for each axis")


symbols = Symbols()


def npx_function(operator: str) -> Callable:
    """Return the function ``mx.sym.npx.<name>`` for an operator named ``_npx_<name>``."""
    function = operator_function(operator)

    def call(*args: Any, **kwargs: Any) -> Any:
        entries = function(*args, **kwargs)._outputs
        return symbols.kind(entries) if len(entries) == 1 else [symbols.kind([e]) for e in entries]

    call.__name__ = call.__qualname__ = operator.removeprefix("_npx_")
    call.__doc__ = function.__doc__
    call.__signature__ = function.__signature__  # type: ignore[attr-defined]  # read by inspect
    return call
