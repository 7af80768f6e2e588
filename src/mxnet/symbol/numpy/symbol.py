"""The Symbol of ``mx.sym.np``."""
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...numpy import functions as _functions  # noqa: F401  (fills the table)
from ...numpy.frontend import TABLE
from ...numpy.functions.elementwise import binary
from ...suggestions import shortened
from ..symbol import Symbol
from .frontend import symbols

if TYPE_CHECKING:
    from ._attached import Methods as _Base  # a Symbol, with the members attached later: methods, Python's arithmetic
else:
    _Base = Symbol

_FUNCTIONS = TABLE[""]


class _Symbol(_Base):
    """A Symbol with NumPy's semantics: its operators and methods are those of ``mx.np`` arrays.

    ``s.as_np_ndarray()`` makes one of a Symbol, ``s.as_nd_ndarray()`` goes back; both share the graph.
    """

    __slots__ = ()

    def as_nd_ndarray(self) -> Symbol:
        """Return the same graph as a Symbol of ``mx.sym``."""
        return Symbol(self._outputs)

    def as_np_ndarray(self) -> "_Symbol":
        """Return the Symbol itself."""
        return self

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self._outputs)

    def __getitem__(self, key: Any) -> Any:
        if len(self._outputs) > 1:
            return super().__getitem__(key)
        return _sliced(self, key)

    def __iter__(self) -> Iterator:
        if len(self._outputs) > 1:
            return super().__iter__()
        raise TypeError("a Symbol with one output cannot be iterated over: its sizes are known only when it runs")

    def __len__(self) -> int:
        if len(self._outputs) > 1:
            return len(self._outputs)
        raise TypeError("a Symbol with one output has no len(): its sizes are known only when it runs")

    def __hash__(self) -> int:
        return id(self) >> 4

    @property
    def T(self) -> "_Symbol":  # noqa: N802
        """The axes in reverse order."""
        return self.transpose()

    def reshape(self, *args: Any, order: str = "C") -> "_Symbol":
        """Another shape: sizes, or a tuple of them; one may be -1."""
        if order != "C":
            raise NotImplementedError(f"reshape: order must be 'C', received {shortened(order)}")
        if not args:
            raise TypeError("reshape: a shape expected, received nothing")
        shape = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        return symbols.call("_np_reshape", self, newshape=tuple(shape), order=order)

    def flatten(self, order: str = "C") -> "_Symbol":  # type: ignore[override]  # NumPy's, not that of mx.sym
        """Return the elements in one axis."""
        return self.reshape(-1, order=order)

    def transpose(self, *axes: Any) -> "_Symbol":  # type: ignore[override]  # NumPy's, not that of mx.sym
        """Return the axes in another order, by default reversed."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = tuple(axes[0] or ())
        return symbols.call("_np_transpose", self, axes=tuple(axes) or "None")

    def astype(self, dtype: Any, order: str | None = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> "_Symbol":
        """Return the values converted to `dtype`."""
        if order not in (None, "K", "C") or casting != "unsafe" or not subok:
            raise ValueError(f"astype supports order 'K' or 'C', casting 'unsafe' and subok True only, received {order!r}, {casting!r} and {subok!r}")
        return symbols.call("_npi_cast", self, dtype=dtype)

    def copy(self, order: str = "C") -> "_Symbol":
        """Return a copy."""
        if order != "C":
            raise NotImplementedError(f"only order='C' is supported, received {order}")
        return symbols.call("_np_copy", self)

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> "_Symbol":  # type: ignore[override]  # NumPy's, not that of mx.sym
        """Values limited to the range from `min` to `max`."""
        return _FUNCTIONS["clip"](symbols, self, min, max, out)


symbols.kind = _Symbol


def _sliced(symbol: _Symbol, key: Any) -> _Symbol:
    """Return a Symbol's entries along its axes: slices and integers, one for each leading axis."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(not isinstance(k, (int, slice)) or isinstance(k, bool) for k in keys):
        raise TypeError(f"a Symbol can be indexed with integers and slices only, received {shortened(key)}; "
                        "use np.take, np.expand_dims or npx.gather_nd")
    begin, end, step, codes = [], [], [], []
    for k in keys:
        if isinstance(k, slice):
            begin.append(k.start)
            end.append(k.stop)
            step.append(k.step)
            codes.append(-2)
        else:
            begin.append(k)
            end.append(k + 1 if k != -1 else None)
            step.append(None)
            codes.append(-3)
    out = symbols.call("_npi_slice", symbol, begin=tuple(begin), end=tuple(end), step=tuple(step))
    return symbols.call("_npx_reshape", out, newshape=(*codes, -4)) if -3 in codes else out


def _binary_method(name: str, reflected: bool = False) -> Callable:
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, Symbol) and not isinstance(other, _Symbol):
            raise TypeError(f"{other.name} is a Symbol of mx.sym, and one of mx.sym.np is expected; call as_np_ndarray() on it, or "
                            "as_nd_ndarray() on the other")
        pair = (other, self) if reflected else (self, other)
        return binary(symbols, name, *pair)

    return method


for _name, _suffix in {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "mod": "mod", "power": "pow", "bitwise_and": "and",
                       "bitwise_or": "or", "bitwise_xor": "xor"}.items():
    setattr(_Symbol, f"__{_suffix}__", _binary_method(_name))
    setattr(_Symbol, f"__r{_suffix}__", _binary_method(_name, True))
for _name, _suffix in {"equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"}.items():
    setattr(_Symbol, f"__{_suffix}__", _binary_method(_name))
_Symbol.__neg__ = lambda self: self * -1.0  # type: ignore[method-assign]  # as setattr above
_Symbol.__abs__ = lambda self: symbols.call("_npi_abs", self)  # type: ignore[method-assign]  # as setattr above
_Symbol.__invert__ = lambda self: symbols.call("_npi_bitwise_not", self)  # type: ignore[method-assign]  # as setattr above
_Symbol.__matmul__ = lambda self, other: symbols.call("_npi_matmul", self, other)  # type: ignore[method-assign]  # as setattr above


def _method(name: str) -> Callable:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _FUNCTIONS[name](symbols, self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"``mx.sym.np.{name}`` of this Symbol."
    return method


def _reduction(name: str, *parameters: str) -> Callable:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.update(zip(parameters, args))
        return _FUNCTIONS[name](symbols, self, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"``mx.sym.np.{name}`` of this Symbol, with the arguments {', '.join(parameters)}."
    return method


for _name in ("all", "any", "max", "min"):
    setattr(_Symbol, _name, _reduction(_name, "axis", "out", "keepdims"))
for _name in ("sum", "prod", "mean"):
    setattr(_Symbol, _name, _reduction(_name, "axis", "dtype", "out", "keepdims"))
for _name in ("std", "var"):
    setattr(_Symbol, _name, _reduction(_name, "axis", "dtype", "out", "ddof", "keepdims"))
for _name in ("argmax", "argmin", "argsort", "broadcast_to", "cumsum", "dot", "repeat", "round", "sort", "squeeze", "swapaxes", "take"):
    setattr(_Symbol, _name, _method(_name))


def _unsupported(name: str) -> Callable:
    def method(self: Any, *args: Any, **kwargs: Any) -> None:
        raise AttributeError(f"_Symbol object has no attribute {name}; use the function of mx.sym.np or mx.sym.npx instead")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Not a method of NumPy's Symbols: use the function of ``mx.sym.np`` or ``mx.sym.npx``."
    return method


for _name in """reshape_like zeros_like ones_like broadcast_axes broadcast_like pad split slice slice_axis slice_like one_hot pick topk
                argmax_channel abs sign shape_array size_array expand_dims tile flip depth_to_space space_to_depth diag nansum nanprod norm rint
                fix floor ceil trunc sin cos tan arcsin arccos arctan degrees radians sinh cosh tanh arcsinh arccosh arctanh exp expm1 log log10
                log2 log1p sqrt rsqrt cbrt rcbrt square reciprocal relu sigmoid softmax log_softmax softmin""".split():
    setattr(_Symbol, _name, _unsupported(_name))
