"""Traits: properties of an operator beyond its signature, for graph passes, mixed precision, inference and the front ends.

A trait is an option of ``@op(...)`` or a registration below the function, so that no other code lists operators by name. Where a trait
depends on how the operator is used, it is a function of all attributes, as `Operator.with_defaults` gives them::

    @op("Pooling", layout_agnostic=lambda a: a["layout"] in (None, "NCHW"), compute_bound=True)
"""
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Literal, Optional, Union

Attributes = dict[str, Any]
ByUse = Union[bool, Callable[[Attributes], bool]]
Precision = Literal["low", "float32", "widest", "inputs", "cast", None]

# The bfloat16 list of an operator that declares float16's only: MXNet has fewer operators for bfloat16, which has 8 significant
# bits to float16's 11, so that most operators that float16 runs unconverted run in float32.
_BFLOAT16: dict[Precision, Precision] = {"low": "float32", "inputs": "float32"}


class Traits:
    """The traits of an operator, with their defaults.

    Attributes
    ----------
    stochastic : bool or function of the attributes
        It draws random numbers. `training` is among the attributes if the operator declares it. Registration fails where a function can
        reach a generator and does not set this trait.
    data_dependent : bool
        Its computation may depend on more than shapes and types: a loop, a branch, an operator of the user's.
    data_dependent_shape : bool
        The shapes of its results depend on values of its inputs.
    synchronizes : bool or function of the attributes
        In training a device's call synchronizes with those of other devices (`rendezvous`).
    layout_agnostic : bool or function of the attributes
        Its result lies in memory as its (first) input does, with channels first or last, and has the same values either way.
    result_type : 'data', 'inputs' or None
        The result always has the type of the first input; or the one type that all inputs have. None: neither, or it is not known.
    inplace_safe : bool or function of the attributes
        Its result is a new array that its own gradient does not read: what follows may compute in the same memory.
    compute_bound : bool
        It computes enough to outweigh the call of another runtime.
    complete_rule : bool
        For floating inputs of one type its shape rule determines its results completely, which have the type of the data; no run is needed.
        `complete_rule` may also be ``'mixed'``: the same for one result, whatever the types of the other inputs; or ``'shape'``: it determines
        the shapes of its results for any types.
    method : bool or str
        It is a method of arrays and Symbols, under its own or that name.
    arithmetic : str or None
        The operation that it computes on its two inputs, or on its one input and `scalar`: ``'add'``, ``'multiply'`` or ``'divide'``.
    is_relu : bool or function of the attributes
        It computes max(x, 0) and nothing else.
    stops_gradient : bool
        Nothing flows back through it.
    is_cast : bool
        It gives its input another type, and nothing else.
    by_rows : bool
        An entry of its result along the first axis depends on the same entry of its one input only.
    changes_storage : bool
        It only changes how values are stored, which tensors don't show.
    names_input : bool
        MXNet passes monitors the name of its one input; that of others of one input `data` it calls ``input0``.
    names_output : bool
        MXNet has a name for its outputs; amp's casts behind others are named after the output's number.
    leaves_size_open : bool or function of the attributes
        A source whose attributes may leave its length to what uses it; `sized` then gives it one.
    float32_when : tuple of str and tuple of str, or None
        An attribute, and its values with which mixed precision runs the operator in float32.
    amp : 'low', 'float32', 'widest', 'inputs', 'cast' or None, or a pair of these
        Under mixed precision it runs in low precision, in float32, in the widest type of its inputs, or as they come; ``'cast'`` marks what
        mixed precision inserts itself. None: MXNet has it in no list. A pair says it for float16 and bfloat16.
    """

    stochastic: ByUse = False
    data_dependent: bool = False
    data_dependent_shape: bool = False
    synchronizes: ByUse = False
    layout_agnostic: ByUse = False
    result_type: Optional[Literal["data", "inputs"]] = None
    inplace_safe: ByUse = False
    compute_bound: bool = False
    complete_rule: Union[bool, Literal["mixed", "shape"]] = False
    method: Union[bool, str] = False
    arithmetic: Optional[str] = None
    is_relu: ByUse = False
    stops_gradient: bool = False
    is_cast: bool = False
    by_rows: bool = False
    changes_storage: bool = False
    names_input: bool = False
    names_output: bool = False
    leaves_size_open: ByUse = False
    float32_when: Optional[tuple[str, tuple[str, ...]]] = None
    amp: Union[Precision, tuple[Precision, Precision]] = "inputs"
    inputs: tuple[str, ...] = ()

    def set_traits(self, name: str, given: dict[str, Any]) -> None:
        """Take the traits that a registration names.

        Raises
        ------
        TypeError
            If there is no such trait.
        """
        for trait, value in given.items():
            if trait not in _KNOWN:
                raise TypeError(f"operator {name}: there is no option or trait `{trait}`; traits are {', '.join(_KNOWN)}")
            setattr(self, trait, value)
        if name.startswith("_np") and "amp" not in given:  # the lists were made before the operators of mx.np were
            self.amp = None

    def holds(self, trait: str, attributes: Attributes) -> bool:
        """Return True if a trait, which may be a function of the attributes, holds for a use with these."""
        value = getattr(self, trait)
        return value(attributes) if callable(value) else bool(value)

    @property
    def weights(self) -> tuple[str, ...]:
        """The inputs that hold a network's parameters, which rarely change."""
        return tuple(n for n in self.inputs if n in _WEIGHTS)

    def precision(self, low: str) -> Precision:
        """Which of mixed precision's lists the operator is in, for ``'float16'`` or ``'bfloat16'``."""
        if isinstance(self.amp, tuple):
            return self.amp[low == "bfloat16"]
        return _BFLOAT16.get(self.amp, self.amp) if low == "bfloat16" else self.amp


# The operators' names for inputs that hold a network's weights.
_WEIGHTS = {"weight", "bias", "gamma", "beta", "moving_mean", "moving_var", "running_mean", "running_var", "parameters", "min_weight", "max_weight",
            "min_bias", "max_bias"}
_KNOWN = tuple(n for n in typing.get_type_hints(Traits) if n != "inputs")


def reaches_generator(fn: Any) -> bool:
    """Return True if a function, or a function of this package that it references or wraps, references a generator of `random_state`."""
    fn = getattr(fn, "raw", fn)
    if not isinstance(fn, types.FunctionType) or not fn.__module__.startswith(_PACKAGE):
        return False
    if fn.__module__ == _STATE:  # by name, as modules that draw import this one
        return fn.__name__ in _SOURCES
    reaches = _reaching.get(fn)
    if reaches is None:
        _reaching[fn] = False  # during the search, as functions may reference each other
        reaches = _reaching[fn] = any(map(reaches_generator, _named(fn, fn.__code__)))
    return reaches


def _named(fn: types.FunctionType, code: types.CodeType) -> Iterator[Any]:
    """Yield the objects that a function references from outside."""
    names = fn.__globals__
    for name in code.co_names:
        if name in names:
            yield names[name]
            if isinstance(names[name], types.ModuleType) and names[name].__name__ == _STATE:
                yield from (getattr(names[name], source) for source in _SOURCES if source in code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _named(fn, constant)
    yield getattr(fn, "__wrapped__", None)
    for cell in (fn.__closure__ or ()) if code is fn.__code__ else ():
        try:
            yield cell.cell_contents
        except ValueError:  # an empty cell, of a function that references itself
            pass


_PACKAGE = __package__.partition(".")[0] + "."
_STATE, _SOURCES = f"{__package__}.random_state", ("bank", "generator", "source")
_reaching: dict[types.FunctionType, bool] = {}
