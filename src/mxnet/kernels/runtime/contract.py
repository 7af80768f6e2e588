"""What a kernel demands of its arguments. It is checked before the kernel first runs for a set of shapes, and the verdict kept with the shapes.

A kernel reads and writes behind pointers: nothing but this keeps it inside of its arrays. The check costs tens of microseconds, its
verdict one look into a dictionary; the verdict also knows what would have to be worked out for each call: sizes, and what the results are like.
"""
import ctypes
import functools
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import torch

from ...base import MXNetError
from ...suggestions import shortened
from . import libraries
from .denormals import HEAVY, zeroed
from .heap import own_heap
from .libraries import load

_LETTERS = {"p": ctypes.c_void_p, "l": ctypes.c_int64, "f": ctypes.c_float, "d": ctypes.c_double, "i": ctypes.c_int}
_MOST_VERDICTS = 1 << 10  # programs whose shapes never repeat must not fill the memory
_LARGEST = (1 << 31) - 1
_ARRAY = re.compile(r"(\w+) \(([^()]*)\)(?: (last|strided))?(?: (optional)| filled (-?\d+))?(?: if (\w+))?")
_ORDERS = {None: torch.contiguous_format, "last": torch.channels_last, "strided": None}
_OWN = (torch.Tensor, torch.nn.Parameter)


class _Array(NamedTuple):
    """What an array must be, or be made like: `text` is how it was declared."""

    name: str
    dtype: str
    dims: tuple[str, ...]
    order: Optional[torch.memory_format]
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
        return cls(name, dtype, tuple(d.strip() for d in dims.split(",")), _ORDERS[order], bool(optional), None if fill is None else int(fill),
                   condition, text)


class _Unfit(Exception):
    """What is wrong with the arguments."""


class Gate:
    """Demands on arrays and numbers.

    Parameters
    ----------
    name : str
        Of what lies behind, for messages.
    takes : dict of str to str
        The arrays, each as ``"float32 (n, c, h, w) last optional"``: the type; the size along each axis, a name, a number or an expression
        of other names; ``last`` for channels last in memory and ``strided`` for any order, else it is contiguous; ``optional`` where None may
        come. A type of one letter stands for any, the same wherever the letter stands. All arrays lie on a CPU.
    integers : tuple of str
        Names of whole numbers that come with the arrays.
    where : dict of str to str, optional
        Further names, as expressions.
    demands : tuple of str
        Expressions that have to be true.
    work : str
        An expression: how much there is to do.
    """

    def __init__(self, name: str, takes: Mapping[str, str], integers: Sequence[str] = (), where: Mapping[str, str] | None = None,
                 demands: Sequence[str] = (), work: str = "0"):
        self.name, self.integers, self.demands, self.work = name, tuple(integers), tuple(demands), work
        self._takes, self._where = dict(takes), dict(where or {})
        self._verdicts: dict[tuple, Any] = {}
        _gates.append(self)

    @functools.cached_property
    def takes(self) -> list[_Array]:
        """The arrays, as they were declared."""
        return [_Array.parsed(*item) for item in self._takes.items()]

    def verdict(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int] = (), least: int = 0) -> Any:
        """What was found out about arguments like these: None if they are not fit, or there is less than `least` to do."""
        try:
            key = (least, *integers, *[None if a is None else (a.shape, a.stride(), a.dtype, a.is_cpu, type(a)) for a in arrays])
            return self._verdicts[key]
        except KeyError:
            pass
        except (AttributeError, RuntimeError, TypeError):  # what has no strides, or is no tensor at all
            return None
        if not all(a is None or a.layout is torch.strided for a in arrays):
            return None  # not kept: dense ones may look the same
        if len(self._verdicts) >= _MOST_VERDICTS:
            self._verdicts.clear()
        try:
            found = self._judge(self._solve(arrays, integers), least)
        except _Unfit:  # torch's operators may take them, or say what is wrong
            found = None
        if all(hasattr(i, "__index__") for i in integers):  # 1.0 is refused, and would be found as 1
            self._verdicts[key] = found
        return found

    def refusal(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int] = ()) -> MXNetError:
        """The error that says what is wrong."""
        try:
            self._solve(arrays, integers)
            reason = "it cannot run on this machine"
        except _Unfit as unfit:
            reason = str(unfit)
        return MXNetError(f"kernel {self.name}: {reason}")

    def forget(self) -> None:
        """Judge everything anew."""
        self._verdicts.clear()

    def _judge(self, names: dict[str, Any], least: int) -> Any:
        return names if eval(self.work, _NOTHING, names) >= least else None

    def _solve(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int]) -> dict[str, Any]:
        """What all names stand for."""
        if len(arrays) != len(self.takes) or len(integers) != len(self.integers):
            raise _Unfit(f"it takes {len(self.takes)} arrays and {len(self.integers)} integers, received {len(arrays)} and {len(integers)}")
        names: dict[str, Any] = {}
        for name, value in zip(self.integers, integers):
            try:
                names[name] = operator.index(value)
            except TypeError:
                raise _Unfit(f"`{name}` must be a whole number, received {shortened(value)}") from None
            if abs(names[name]) > _LARGEST:
                raise _Unfit(f"`{name}` must lie within 32 bits, received {value}")
        for array, tensor in zip(self.takes, arrays):
            if tensor is not None:
                self._check(array, tensor, names)
            elif not array.optional:
                raise _Unfit(f"`{array.name}` must be {array.text}, received None")
        names.update({a.name: t is not None for a, t in zip(self.takes, arrays)})
        for name, text in self._where.items():
            try:
                names[name] = eval(text, _NOTHING, names)
            except ZeroDivisionError:
                raise _Unfit(f"{name} = {text} does not exist for {_told(names)}") from None
        for array, tensor in zip(self.takes, arrays):  # now that all names are known
            if tensor is not None and tuple(tensor.shape) != tuple(eval(d, _NOTHING, names) for d in array.dims):
                raise _Unfit(f"`{array.name}` must be {array.text} for {_told(names)}, received {_like(tensor)}")
        for demand in self.demands:
            if not eval(demand, _NOTHING, names):
                raise _Unfit(f"{demand} does not hold for {_told(names)}")
        return names

    @staticmethod
    def _check(array: _Array, tensor: torch.Tensor, names: dict[str, Any]) -> None:
        """Type, axes and order of one array; learns the names of sizes."""
        if type(tensor) not in _OWN or tensor.layout is not torch.strided:
            raise _Unfit(f"`{array.name}` must be a dense tensor of torch's own, received {getattr(tensor, 'layout', type(tensor))}")
        dtype = str(tensor.dtype).removeprefix("torch.")
        wanted = names.setdefault(array.dtype, dtype) if len(array.dtype) == 1 else array.dtype
        if dtype != wanted or not tensor.is_cpu or tensor.dim() != len(array.dims) \
                or not (array.order is None or tensor.is_contiguous(memory_format=array.order)):
            raise _Unfit(f"`{array.name}` must be {array.text} on a CPU, received {_like(tensor)}")
        for dim, size in zip(array.dims, tensor.shape):
            if dim.isidentifier():
                names.setdefault(dim, size)


class Kernel(Gate):
    """A function of a compiled library, behind its gate.

    C's parameters are pointers to the arrays that it takes and to those that are made for its results, its sizes, its numbers, and the number of
    threads. Called with arrays, integers and numbers, it returns a list of the results.

    Parameters
    ----------
    library, entry : str
        ``{T}`` in the entry is the type that T stands for.
    takes, integers, where, demands, work
        As for `Gate`.
    makes : dict of str to str
        The results; ``filled 0`` where the function leaves some out, and ``if name`` where there is one only if that array or number came.
    sizes : tuple of str
        Expressions, int64 each.
    packed : bool
        The sizes come as a pointer to all of them.
    numbers : str
        A letter for each number that the caller gives: ``f`` for float, ``d`` for double, ``i`` for int, ``l`` for int64. No address may depend on
        one.
    threads : bool
        Whether it asks for the number of threads.
    multiplies : str
        An expression: how many multiplications that is. From `denormals.HEAVY` on numbers that are too small to be normal count as zero.

    Raises
    ------
    MXNetError
        From a call, if the arguments do not meet the demands.
    """

    def __init__(self, library: str, entry: str, takes: Mapping[str, str], makes: Mapping[str, str] | None = None, *, integers: Sequence[str] = (),
                 where: Mapping[str, str] | None = None, demands: Sequence[str] = (), work: str = "0", sizes: Sequence[str] = (),
                 packed: bool = False, numbers: str = "", threads: bool = True, multiplies: str = "0"):
        super().__init__(f"{library}.{entry}", takes, integers, where, demands, work)
        self.library, self.entry, self.sizes, self.packed, self.numbers, self.threads = library, entry, tuple(sizes), packed, numbers, threads
        self._makes, self._multiplies = dict(makes or {}), multiplies

    @functools.cached_property
    def makes(self) -> list[_Array]:
        """The results, as they were declared."""
        return [_Array.parsed(*item) for item in self._makes.items()]

    def plan(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int] = (), least: int = 0) -> Optional["Plan"]:
        """How to run on arguments like these; None if the kernel can't, or there is less than `least` to do, which needs no compiler."""
        return self.verdict(arrays, integers, least)

    def __call__(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int] = (), numbers: Sequence[float] = ()) -> list:
        plan = self.verdict(arrays, integers)
        if plan is None:
            raise self.refusal(arrays, integers)
        return plan(arrays, numbers)

    def available(self, **types: str) -> bool:
        """Whether it is compiled and has an entry for these types."""
        return self._function(types) is not None

    def _function(self, names: Mapping[str, Any]) -> Optional[Callable]:
        letters = "p" * (len(self.takes) + len(self.makes)) + ("p" if self.packed else "l" * len(self.sizes)) + self.numbers + "i" * self.threads
        return _function(self.library, self.entry.format_map(names), letters, "{" not in self.entry)

    def _solve(self, arrays: Sequence[Optional[torch.Tensor]], integers: Sequence[int]) -> dict[str, Any]:
        names = super()._solve(arrays, integers)
        for array in self.makes:
            if any(size < 0 for size in _sizes(array, names)):
                raise _Unfit(f"its result would be {array.text} for {_told(names)}")
        return names

    def _judge(self, names: dict[str, Any], least: int) -> Optional["Plan"]:
        function = self._function(names) if super()._judge(names, least) else None
        if function is None:
            return None
        if self.makes and not any(math.prod(_sizes(array, names)) for array in self.makes):
            function = _idle  # else counts without limit would be gone through for no result
        work = eval(self._multiplies, _NOTHING, names)
        sizes = [eval(size, _NOTHING, names) for size in self.sizes]
        return Plan(self, function, sizes, names, work >= HEAVY)


class Plan:
    """How a kernel runs on arguments of which its gate has approved: only for arguments like those that it was asked about.

    Attributes
    ----------
    names : dict
        What the names in the kernel's declaration stand for.
    makers : list of callable or None
        Each makes an array for one of the results; None where there is none.
    heavy : bool
        Whether it multiplies so much that denormal numbers count as zero meanwhile.
    """

    __slots__ = ("names", "makers", "heavy", "_kernel", "_function", "_numbers", "_sizes", "_threads")

    def __init__(self, kernel: Kernel, function: Callable, sizes: Sequence[int], names: dict[str, Any], heavy: bool):
        self._kernel, self._function, self.names, self._numbers, self._threads = kernel, function, names, len(kernel.numbers), kernel.threads
        self.makers, self.heavy = [_maker(array, names) for array in kernel.makes], heavy
        self._sizes = ((ctypes.c_int64 * len(sizes))(*sizes),) if kernel.packed else tuple(sizes)

    def __call__(self, arrays: Sequence[Optional[torch.Tensor]], numbers: Sequence[float] = ()) -> list:
        if len(numbers) != self._numbers:
            raise MXNetError(f"kernel {self._kernel.name} takes {self._numbers} numbers, received {len(numbers)}")
        made = [None if make is None else make() for make in self.makers]
        try:
            pointers = [None if a is None else a.data_ptr() for a in (*arrays, *made)]
        except RuntimeError as error:  # a sparse tensor, which looks like a dense one that was approved
            raise MXNetError(f"kernel {self._kernel.name}: {error}") from None
        try:
            arguments = (*pointers, *self._sizes, *numbers, torch.get_num_threads()) if self._threads else (*pointers, *self._sizes, *numbers)
            if self.heavy:
                with zeroed(HEAVY):
                    self._function(*arguments)
            else:
                self._function(*arguments)
        except (ctypes.ArgumentError, OverflowError) as error:
            raise MXNetError(f"kernel {self._kernel.name}: {error}") from None
        return made

    def bound(self, pointers: Sequence[ctypes.c_void_p | int | None], numbers: Sequence[float], threads: int) -> tuple[Callable, tuple]:
        """The kernel's function and its arguments, for who calls it many times on memory of his own.

        Parameters
        ----------
        pointers : list of ctypes.c_void_p, int or None
            To the arrays and the results, which are like those that the plan is for. Where a c_void_p leads the caller may change between calls.
        numbers : list of float
        threads : int
        """
        if len(numbers) != self._numbers or len(pointers) != len(self._kernel.takes) + len(self.makers):
            raise MXNetError(f"kernel {self._kernel.name} takes {len(self._kernel.takes) + len(self.makers)} pointers and {self._numbers} numbers, "
                             f"received {len(pointers)} and {len(numbers)}")
        return self._function, (*pointers, *self._sizes, *numbers, *([threads] if self._threads else []))


_NOTHING: dict[str, Any] = {"__builtins__": {"min": min, "max": max}}
_gates: list[Gate] = []


def _idle(*arguments: Any) -> None:
    """In place of a kernel whose results are empty."""


def _sizes(array: _Array, names: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(eval(dim, _NOTHING, dict(names)) for dim in array.dims)


def _maker(array: _Array, names: Mapping[str, Any]) -> Optional[Callable[[], torch.Tensor]]:
    if array.condition is not None and not names[array.condition]:
        return None
    shape, dtype = _sizes(array, names), getattr(torch, names.get(array.dtype, array.dtype))
    if array.fill is not None:
        return functools.partial(torch.full, shape, array.fill, dtype=dtype, device="cpu")
    return functools.partial(torch.empty, shape, dtype=dtype, device="cpu", memory_format=array.order)


def _told(names: Mapping[str, Any]) -> str:
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
    """Judge everything anew, and look for the libraries again."""
    _function.cache_clear()
    for gate in _gates:
        gate.forget()
