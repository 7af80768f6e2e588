"""Contracts of kernels: preconditions on a kernel's arguments, checked before its first run for a set of shapes. The result is cached by shapes.

A kernel reads and writes through pointers, and only this check keeps it inside its arrays. A check takes tens of microseconds; a repeated one is a
dictionary lookup. The cached result of a `Kernel` is a `Plan`, which also holds the sizes and the shapes of the results for each call.
"""
import ctypes
import functools
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import torch

from ... import openmp
from ...base import MXNetError
from ...suggestions import shortened
from . import libraries
from .denormals import HEAVY, zeroed
from .heap import own_heap
from .libraries import load
from .parameters import field_names

_LETTERS: dict[str, Any] = {"p": ctypes.c_void_p, "l": ctypes.c_int64, "f": ctypes.c_float, "d": ctypes.c_double, "i": ctypes.c_int}
_LETTER_OF = {kind: letter for letter, kind in _LETTERS.items()}
_MOST_CHECKED = 1 << 10  # programs whose shapes never repeat must not fill the memory
_LARGEST = (1 << 31) - 1
_ARRAY = re.compile(r"(\w+) \(([^()]*)\)(?: (last|strided|flat))?(?: (optional)| filled (-?\d+))?(?: if (\w+))?")
_ORDERS = {None: torch.contiguous_format, "last": torch.channels_last, "strided": None, "flat": torch.contiguous_format}
_CPU = torch.device("cpu")
_OWN = (torch.Tensor, torch.nn.Parameter)


class _Array(NamedTuple):
    """The declared type, axes and memory order of an argument or a result; `text` is the declaration."""

    name: str
    dtype: str
    dims: tuple[str, ...]
    order: Optional[torch.memory_format]
    flat: bool
    optional: bool
    fill: Optional[int]
    condition: Optional[str]
    text: str

    @classmethod
    def parsed(cls, name: str, text: str) -> "_Array":
        match = _ARRAY.fullmatch(text)
        if match is None:
            raise ValueError(f"{name}: {text!r} declares no array")
        dtype, dims, order, optional, fill, condition = match.groups()
        return cls(name, dtype, tuple(d.strip() for d in dims.split(",")), _ORDERS[order], order == "flat", bool(optional),
                   None if fill is None else int(fill), condition, text)


class _Violation(Exception):
    """A violated precondition, described by the message."""


class Contract:
    """Preconditions on arrays and numbers.

    Parameters
    ----------
    name : str
        The name of the function that the contract protects, for messages.
    takes : dict of str to str
        The arrays, each as ``"float32 (n, c, h, w) last optional"``: the type; the size along each axis, a name, a number or an expression
        of other names; ``last`` for channels last in memory and ``strided`` for any order, else it is contiguous; ``flat`` where only the number of
        elements counts, for which the one axis stands; ``optional`` where None may come.
        A type of one letter stands for any, the same wherever the letter stands. All arrays lie on a CPU.
    integers : tuple of str
        Names of whole numbers that come with the arrays.
    where : dict of str to str, optional
        Further names, as expressions.
    preconditions : tuple of str
        Expressions that must be true.
    work : str
        An expression for the amount of work.
    """

    def __init__(self, name: str, takes: Mapping[str, str], integers: Sequence[str] = (), where: Mapping[str, str] | None = None,
                 preconditions: Sequence[str] = (), work: str = "0"):
        self.name, self.integers, self.preconditions, self.work = name, tuple(integers), tuple(preconditions), work
        self._takes, self._where = dict(takes), dict(where or {})
        self._checked: dict[tuple, Any] = {}
        _contracts.append(self)

    @functools.cached_property
    def takes(self) -> list[_Array]:
        """The declared arrays."""
        return [_Array.parsed(*item) for item in self._takes.items()]

    def check(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int] = (), least: int = 0) -> Any:
        """Return the cached result for arguments of these shapes and types; None if they violate a precondition, or the work is below `least`."""
        try:
            key = (least, *integers, *[None if a is None else (a.shape, a.stride(), a.dtype, a.is_cpu, type(a)) for a in arrays])
            return self._checked[key]
        except KeyError:
            pass
        except (AttributeError, RuntimeError, TypeError):  # an argument without strides, or no tensor at all
            return None
        if not all(a is None or a.layout is torch.strided for a in arrays):
            return None  # not cached: dense tensors may have the same key
        if len(self._checked) >= _MOST_CHECKED:
            self._checked.clear()
        try:
            found = self._result(self._solve(arrays, integers), least)
        except _Violation:  # torch's operators may accept them, or raise their own error
            found = None
        if all(hasattr(i, "__index__") for i in integers):  # 1.0 is rejected, and has the same hash as 1
            self._checked[key] = found
        return found

    def error(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int] = ()) -> MXNetError:
        """Return the error that describes the violated precondition."""
        try:
            self._solve(arrays, integers)
            reason = "it cannot run on this machine"
        except _Violation as violation:
            reason = str(violation)
        return MXNetError(f"kernel {self.name}: {reason}")

    def forget(self) -> None:
        """Clear the cached results of checks."""
        self._checked.clear()

    def _result(self, names: dict[str, Any], least: int) -> Any:
        return names if eval(self.work, _NOTHING, names) >= least else None

    def _solve(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int]) -> dict[str, Any]:
        """Return the values of all names, after checking every precondition."""
        if len(arrays) != len(self.takes) or len(integers) != len(self.integers):
            raise _Violation(f"it takes {len(self.takes)} arrays and {len(self.integers)} integers, received {len(arrays)} and {len(integers)}")
        names: dict[str, Any] = {}
        for name, value in zip(self.integers, integers):
            try:
                names[name] = operator.index(value)
            except TypeError:
                raise _Violation(f"`{name}` must be a whole number, received {shortened(value)}") from None
            if abs(names[name]) > _LARGEST:
                raise _Violation(f"`{name}` must lie within 32 bits, received {value}")
        for array, tensor in zip(self.takes, arrays):
            if tensor is not None:
                self._check_array(array, tensor, names)
            elif not array.optional:
                raise _Violation(f"`{array.name}` must be {array.text}, received None")
        names.update({a.name: t is not None for a, t in zip(self.takes, arrays)})
        for name, text in self._where.items():
            try:
                names[name] = eval(text, _NOTHING, names)
            except ZeroDivisionError:
                raise _Violation(f"{name} = {text} does not exist for {_listed(names)}") from None
        for array, tensor in zip(self.takes, arrays):  # now that all names are known
            if tensor is not None and _shape(array, tensor) != tuple(eval(d, _NOTHING, names) for d in array.dims):
                raise _Violation(f"`{array.name}` must be {array.text} for {_listed(names)}, received {_like(tensor)}")
        for precondition in self.preconditions:
            if not eval(precondition, _NOTHING, names):
                raise _Violation(f"{precondition} does not hold for {_listed(names)}")
        return names

    @staticmethod
    def _check_array(array: _Array, tensor: torch.Tensor, names: dict[str, Any]) -> None:
        """Check type, number of axes and memory order of one array, and add its sizes to `names`."""
        if type(tensor) not in _OWN or tensor.layout is not torch.strided:
            raise _Violation(f"`{array.name}` must be a dense tensor of torch's own, received {getattr(tensor, 'layout', type(tensor))}")
        dtype = str(tensor.dtype).removeprefix("torch.")
        wanted = names.setdefault(array.dtype, dtype) if len(array.dtype) == 1 else array.dtype
        if dtype != wanted or not tensor.is_cpu or len(_shape(array, tensor)) != len(array.dims) \
                or not (array.order is None or tensor.is_contiguous(memory_format=array.order)):
            raise _Violation(f"`{array.name}` must be {array.text} on a CPU, received {_like(tensor)}")
        for dim, size in zip(array.dims, _shape(array, tensor)):
            if dim.isidentifier():
                names.setdefault(dim, size)


class Kernel(Contract):
    """A function of a compiled library, called only with arguments that meet its contract.

    C's parameters are pointers to the arrays that it takes and to those that are made for its results, its sizes, its numbers, and the number of
    threads. Called with arrays, integers and numbers, it returns a list of the results.

    Parameters
    ----------
    library, entry : str
        ``{T}`` in the entry is the type that T stands for.
    takes, integers, where, preconditions, work
        As for `Contract`.
    makes : dict of str to str
        The results; ``filled 0`` where the function leaves some out, and ``if name`` where there is one only if that array or number came.
    sizes : tuple of str, or dict of str to str
        Expressions, int64 each; with `parameters` those of the fields whose value is not that of the name which the field has.
    parameters : type, optional
        A struct of `mxnet.kernels.runtime.parameters`: the sizes are its fields, and the function takes a pointer to it.
    numbers : str, or type
        A letter for each number that the caller gives: ``f`` for float, ``d`` for double, ``i`` for int, ``l`` for int64; or a struct of which each
        field is such a number, and to which the function takes a pointer. No address may depend on a number.
    threads : bool
        True if the function has a parameter for the number of threads.
    limits_threads : bool
        True if the function itself uses fewer threads for little work. It then gets all also where operators run on one, see `openmp.most`.
    multiplies : str
        An expression for the number of multiplications. From `denormals.HEAVY` on, denormal numbers count as zero during the call.

    Raises
    ------
    MXNetError
        From a call, if the arguments violate a precondition.
    """

    def __init__(self, library: str, entry: str, takes: Mapping[str, str], makes: Mapping[str, str] | None = None, *, integers: Sequence[str] = (),
                 where: Mapping[str, str] | None = None, preconditions: Sequence[str] = (), work: str = "0",
                 sizes: Sequence[str] | Mapping[str, str] = (), parameters: Optional[type[ctypes.Structure]] = None,
                 numbers: str | type[ctypes.Structure] = "", threads: bool = True, limits_threads: bool = False, multiplies: str = "0"):
        self.team: Callable[[], int] = openmp.most if limits_threads else torch.get_num_threads
        self.library, self.entry, self.threads, self.parameters = library, entry, threads, parameters
        self._makes, self._multiplies = dict(makes or {}), multiplies
        if parameters is None:
            self.sizes = tuple(sizes)
        else:
            expressions: Any = sizes
            given, names = dict(expressions), field_names(parameters)
            if not given.keys() <= set(names):
                raise ValueError(f"{library}.{entry}: {parameters.__name__} has the fields {', '.join(names)}, received {', '.join(given)}")
            self.sizes = tuple(given.get(name, name) for name in names)
        self.number_struct = None if isinstance(numbers, str) else numbers
        self.numbers = numbers if isinstance(numbers, str) else "".join(_LETTER_OF[field[1]] for field in numbers._fields_)
        super().__init__(f"{library}.{entry}", takes, integers, where, preconditions, work)

    @functools.cached_property
    def makes(self) -> list[_Array]:
        """The declared results."""
        return [_Array.parsed(*item) for item in self._makes.items()]

    def plan(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int] = (), least: int = 0) -> Optional["Plan"]:
        """Return the plan for arguments of these shapes; None if the kernel cannot take them, or the work is below `least` (needs no compiler)."""
        return self.check(arrays, integers, least)

    def __call__(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int] = (), numbers: Sequence[float] = ()) -> list:
        plan = self.check(arrays, integers)
        if plan is None:
            raise self.error(arrays, integers)
        return plan(arrays, numbers)

    def available(self, **types: str) -> bool:
        """Return True if the library is there and has an entry for these types."""
        return self._function(types) is not None

    def _function(self, names: Mapping[str, Any]) -> Optional[Callable]:
        letters = "".join(("p" * (len(self.takes) + len(self.makes)), "l" * len(self.sizes) if self.parameters is None else "p",
                           self.numbers if self.number_struct is None else "p", "i" * self.threads))
        return _function(self.library, self.entry.format_map(names), letters, "{" not in self.entry)

    def _solve(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int]) -> dict[str, Any]:
        names = super()._solve(arrays, integers)
        for array in self.makes:
            if any(size < 0 for size in _sizes(array, names)):
                raise _Violation(f"its result would be {array.text} for {_listed(names)}")
        return names

    def _result(self, names: dict[str, Any], least: int) -> Optional["Plan"]:
        function = self._function(names) if super()._result(names, least) else None
        if function is None:
            return None
        if self.makes and not any(math.prod(_sizes(array, names)) for array in self.makes):
            function = _idle  # the kernel would loop over unbounded counts for no result
        work = eval(self._multiplies, _NOTHING, names)
        sizes = [eval(size, _NOTHING, names) for size in self.sizes]
        return Plan(self, function, sizes, names, work >= HEAVY)


class Plan:
    """A prepared call of a kernel, valid only for arguments with the shapes, types and strides that were checked.

    Attributes
    ----------
    names : dict
        The values of the names in the kernel's declaration.
    makers : list of callable or None
        Each makes an array for one of the results; None where there is none.
    heavy : bool
        True if the call multiplies enough that denormal numbers count as zero during it.
    """

    __slots__ = ("names", "makers", "heavy", "_kernel", "_function", "_numbers", "_sizes", "_threads", "_number_struct")

    def __init__(self, kernel: Kernel, function: Callable, sizes: Sequence[int], names: dict[str, Any], heavy: bool):
        self._kernel, self._function, self.names, self._numbers, self._threads = kernel, function, names, len(kernel.numbers), kernel.threads
        self.makers, self.heavy = [_maker(array, names) for array in kernel.makes], heavy
        self._sizes = tuple(sizes) if kernel.parameters is None else (ctypes.byref(kernel.parameters(*sizes)),)
        self._number_struct = kernel.number_struct

    def __call__(self, arrays: Sequence[Optional[torch.Tensor]], numbers: Sequence[float] = ()) -> list:
        if len(numbers) != self._numbers:
            raise MXNetError(f"kernel {self._kernel.name} takes {self._numbers} numbers, received {len(numbers)}")
        made = [None if make is None else make() for make in self.makers]
        try:
            pointers = [None if a is None else a.data_ptr() for a in (*arrays, *made)]
        except RuntimeError as error:  # a sparse tensor with the shape and strides of a checked dense one
            raise MXNetError(f"kernel {self._kernel.name}: {error}") from None
        try:
            given = numbers if self._number_struct is None else (ctypes.byref(self._number_struct(*numbers)),)
            arguments = (*pointers, *self._sizes, *given, self._kernel.team()) if self._threads else (*pointers, *self._sizes, *given)
            if self.heavy:
                with zeroed(HEAVY):
                    self._function(*arguments)
            else:
                self._function(*arguments)
        except (ctypes.ArgumentError, OverflowError, TypeError) as error:
            raise MXNetError(f"kernel {self._kernel.name}: {error}") from None
        return made

    def bound(self, pointers: Sequence[ctypes.c_void_p | int | None], numbers: Sequence[float], threads: int) -> tuple[Callable, tuple]:
        """Return the kernel's function and its arguments, for repeated calls on memory that the caller manages.

        Parameters
        ----------
        pointers : list of ctypes.c_void_p, int or None
            To the arrays and the results, of the shapes of the plan. The caller may change the address in a c_void_p between calls.
        numbers : list of float
        threads : int
        """
        if len(numbers) != self._numbers or len(pointers) != len(self._kernel.takes) + len(self.makers):
            raise MXNetError(f"kernel {self._kernel.name} takes {len(self._kernel.takes) + len(self.makers)} pointers and {self._numbers} numbers, "
                             f"received {len(pointers)} and {len(numbers)}")
        given = numbers if self._number_struct is None else (ctypes.byref(self._number_struct(*numbers)),)
        return self._function, (*pointers, *self._sizes, *given, *([threads] if self._threads else []))


_NOTHING: dict[str, Any] = {"__builtins__": {"min": min, "max": max}}
_contracts: list[Contract] = []


def _idle(*arguments: Any) -> None:
    """Do nothing, in place of a kernel whose results are empty."""


def _shape(array: _Array, tensor: torch.Tensor) -> tuple[int, ...]:
    return (tensor.numel(),) if array.flat else tuple(tensor.shape)


def _sizes(array: _Array, names: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(eval(dim, _NOTHING, dict(names)) for dim in array.dims)


def _maker(array: _Array, names: Mapping[str, Any]) -> Optional[Callable[[], torch.Tensor]]:
    if array.condition is not None and not names[array.condition]:
        return None
    shape, dtype = _sizes(array, names), getattr(torch, names.get(array.dtype, array.dtype))
    if array.fill is not None:
        return functools.partial(torch.full, shape, array.fill, dtype=dtype, device="cpu")
    strides = torch.empty(shape, device="meta", memory_format=array.order).stride()
    return functools.partial(torch.empty_strided, shape, strides, dtype=dtype, device=_CPU)  # in half the time of `empty`


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in names.items() if not isinstance(v, bool))


def _like(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)} with strides {tensor.stride()} on {tensor.device}"


@functools.cache
def _function(library: str, entry: str, letters: str, needed: bool) -> Optional[Callable]:
    found = libraries.symbol(load(library), entry, needed)
    if found is None:
        return None
    own_heap()
    found.restype, found.argtypes = None, [_LETTERS[letter] for letter in letters]
    return found


def forget() -> None:
    """Clear the cached results of all contracts, and load the libraries again at the next call."""
    _function.cache_clear()
    for contract in _contracts:
        contract.forget()
