"""A safe reader of this package's and MXNet's pickles: arrays, optimizers and schedulers, and nothing else.

Python's unpickler calls any function named in a file with arguments from the file, and NumPy's reconstructors are not safe for untrusted input:
they read pointers from bytes. Therefore `Machine` interprets the file. It supports a few names, builds their objects itself, and limits the memory
of all objects to a few times the size of the file.
"""
from __future__ import annotations

import importlib
import io
import numbers
import pickle
import pickletools
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base import MXNetError
from ..context import Context
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray
from . import numpy_pickles
from .base import Optimizer
from .numpy_pickles import PENDING

_MODULES = ("mxnet.optimizer", "mxnet.lr_scheduler", "mxnet.ndarray", "mxnet.context", "mxnet.numpy")
# The limit of bytes and entries to build: a factor of the file's size, and a constant. Arrays exist as bytes and as values.
_PER_BYTE, _EXTRA = 4, 1 << 16
_MAX_HEIGHT = 32  # of nested lists
_MAX_INTEGER = 1 << 63


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, bytes, int, float, np.number))


class _Function:
    """The replacement of a name in a file: a function of this package, called with the machine and the file's arguments."""

    def __init__(self, name: str, call: Callable[..., Any]):
        self.name, self.call = name, call


def _bytearray(machine: Machine, raw: Any = b"", encoding: Any = "latin-1", *_: Any) -> bytearray:
    if isinstance(raw, str):  # Python 2 and early protocols store bytes as text
        raw = raw.encode(encoding if encoding in ("latin-1", "latin1") else "ascii")
    if not isinstance(raw, (bytes, bytearray)):
        raise ValueError(f"a bytearray is made of bytes, received {type(raw).__name__}")
    machine.charge(len(raw))
    return bytearray(raw)


def _bytes(machine: Machine, *given: Any) -> bytes:
    if given:
        raise ValueError(f"only empty bytes are made so, received {len(given)} arguments")
    return b""


def _encode(machine: Machine, text: Any, encoding: Any = "latin1", *_: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise ValueError(f"bytes are stored as text in latin1, received {type(text).__name__} in {encoding!r:.40}")
    machine.charge(len(text))
    return text.encode("latin1")


def _collection(kind: type) -> Callable[..., Any]:
    def make(machine: Machine, items: Any = (), *more: Any) -> Any:
        if more or not isinstance(items, (list, tuple)):
            raise ValueError(f"a {kind.__name__} is made of a list, received {type(items).__name__} and {len(more)} more arguments")
        machine.charge(len(items))
        return kind(machine.key(i) for i in items)
    return make


def _ordered_dict(machine: Machine, *given: Any) -> OrderedDict:
    if given:
        raise ValueError(f"an OrderedDict starts empty, received {len(given)} arguments")
    return OrderedDict()


def _complex(machine: Machine, real: Any, imaginary: Any) -> complex:
    if not all(isinstance(part, (int, float)) for part in (real, imaginary)):
        raise ValueError(f"a complex number is made of two numbers, received {type(real).__name__} and {type(imaginary).__name__}")
    return complex(real, imaginary)


def _reconstructor(machine: Machine, cls: Any, base: Any = None, state: Any = None) -> Any:
    if base is not object or state is not None:
        raise ValueError(f"an object starts empty, received the base {getattr(base, '__name__', type(base).__name__)} and a state of type "
                         f"{type(state).__name__}")
    return machine.new(cls)


_OF_PYTHON: dict[str, Callable[..., Any]] = {"bytearray": _bytearray, "bytes": _bytes, "set": _collection(set), "frozenset": _collection(frozenset),
                                             "complex": _complex}
_KNOWN: dict[tuple[str, str], Any] = {
    **{(module, name): _Function(name, call) for module in ("builtins", "__builtin__") for name, call in _OF_PYTHON.items()},
    **{(module, "object"): object for module in ("builtins", "__builtin__")},
    **{(module, "_reconstructor"): _Function("_reconstructor", _reconstructor) for module in ("copyreg", "copy_reg")},
    ("_codecs", "encode"): _Function("encode", _encode),
    ("collections", "OrderedDict"): _Function("OrderedDict", _ordered_dict),
    **{(module, name): _Function(name, call) for module in numpy_pickles.MODULES for name, call in numpy_pickles.FUNCTIONS.items()},
    **{("numpy", name): getattr(np, name) for name in numpy_pickles.SCALARS},
}


def _is_ours(value: Any) -> bool:
    """Return True if the object is a class of arrays, optimizers, schedulers or contexts, or derived from one of them."""
    return isinstance(value, type) and issubclass(value, (NDArray, Optimizer, LRScheduler, Context))


def _lookup(what: str, module: str, name: str) -> Any:
    """Return the function or class for a name in a file; raise an error for all other names."""
    known = _KNOWN.get((module, name))
    if known is not None:
        return known
    value = sys.modules.get(module)
    if any(module == m or module.startswith(m + ".") for m in _MODULES):
        try:
            value = importlib.import_module(module)
        except ImportError:
            value = None
    # A class of the program, such as its own optimizer, is found if its module is loaded. A file causes no other imports.
    value = getattr(value, name, None)
    if not _is_ours(value):
        raise MXNetError(f"{what} is refused: it holds {module}.{name}, and only arrays, optimizers and learning rate schedulers are "
                         "read (a class of your own must be defined, and derived from these, before the file is read)")
    return value


def _is_built_in(cls: type) -> bool:
    return cls.__module__ == "mxnet" or cls.__module__.startswith("mxnet.")


class Machine:
    """An interpreter of the instructions of a pickle."""

    def __init__(self, data: bytes, what: str):
        self.stream, self.what = io.BytesIO(data), what
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.unfinished = 0  # arrays without their state yet
        self.left = _PER_BYTE * len(data) + _EXTRA

    def charge(self, count: int) -> None:
        """Add `count` bytes or entries to the memory of the file's objects, and check the limit."""
        self.left -= count
        if self.left < 0:
            raise ValueError(f"it asks for more memory than a file of its length can hold: {count} bytes or entries, {self.left + count} remain")

    def key(self, value: Any) -> Any:
        """Check a value to be hashed, and return it: only types with a fast hash that runs no user code are allowed."""
        parts = value if isinstance(value, tuple) else (value,)
        self.charge(len(parts))
        if not all(_plain(p) for p in parts):
            raise ValueError(f"{type(value).__name__} stands where a name or number should")
        return value

    def run(self) -> Any:
        """Run the instructions, and return the object."""
        for opcode, argument, _ in pickletools.genops(self.stream):
            if opcode.name == "STOP":
                if len(self.stack) != 1 or self.marks or self.unfinished:
                    raise ValueError(f"it ends before its object is complete: {len(self.stack)} objects, {len(self.marks)} open marks, "
                                     f"{self.unfinished} unfinished arrays")
                return self.stack.pop()
            action = _ACTIONS.get(opcode.name)
            if action is None:
                raise ValueError(f"instruction {opcode.name} is not one that arrays and optimizers need")
            action(self, argument)
        raise ValueError("it has no end")

    def push(self, value: Any) -> None:
        if isinstance(value, int) and not -_MAX_INTEGER <= value < 2 * _MAX_INTEGER:
            raise ValueError(f"an integer has {value.bit_length()} bits, at most 64 are expected")
        self.stack.append(value)

    def pop_mark(self) -> list[Any]:
        """Pop and return the values that were pushed since the last mark."""
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def top(self, kind: type) -> Any:
        if self.marks and len(self.stack) <= self.marks[-1] or not isinstance(self.stack[-1], kind):
            raise ValueError(f"a {kind.__name__} should stand here")
        return self.stack[-1]

    def get(self, number: Any) -> None:
        value = self.memo[int(number)]
        if isinstance(value, PENDING):
            value = value.result
            if value is None:
                raise ValueError("an array is used before it is complete")
        self.push(value)

    def set_items(self, items: Sequence[Any]) -> None:
        if len(items) % 2:
            raise ValueError(f"a key has no value: pairs expected, received {len(items)} items")
        into = self.top(dict)
        for key, value in zip(items[::2], items[1::2]):
            into[self.key(key)] = value

    def new(self, cls: Any) -> Any:
        """Return an empty object of an allowed class."""
        if cls is Context:
            return Context("cpu")
        if not _is_ours(cls):
            raise ValueError(f"{cls!r} is no class of arrays, optimizers or schedulers")
        # Constructors never receive arguments from the file.
        return cls(None) if issubclass(cls, NDArray) else cls.__new__(cls)

    def call(self, function: Any, arguments: Any) -> Any:
        """Implement REDUCE: return the result of a function for arguments from the file."""
        if not isinstance(arguments, tuple):
            raise ValueError(f"arguments are a tuple, received {type(arguments).__name__}")
        if isinstance(function, _Function):
            result = function.call(self, *arguments)
            self.unfinished += isinstance(result, PENDING)
            return result
        if not _is_ours(function):
            raise ValueError(f"{getattr(function, '__name__', type(function).__name__)} is not called on behalf of a file")
        if issubclass(function, NDArray) and arguments == (None,):
            return self.new(function)
        if function is Context and len(arguments) <= 2 and all(_plain(a) for a in arguments):
            return Context(*arguments)
        if _is_built_in(function):
            raise ValueError(f"{function.__name__} is called with arguments that pickles of it do not have")
        return function(*arguments)  # a class of the program with its own pickling

    def build(self, state: Any) -> None:
        """Implement BUILD: set the state of the object on top of the stack."""
        made = self.stack[-1]
        if isinstance(made, PENDING):
            self.unfinished -= made.result is None
            self.stack[-1] = made.finish(self, state)
            return
        if not _is_ours(type(made)):
            raise ValueError(f"a {type(made).__name__} has no state")
        if isinstance(made, NDArray):
            self._fill(made, state)
            return
        slots = None
        if isinstance(state, tuple) and len(state) == 2:
            state, slots = state
        own = getattr(type(made), "__setstate__", None)
        if own is not None and not _is_built_in(type(made)) and not (isinstance(made, Optimizer) and own is Optimizer.__setstate__):
            own(made, state if slots is None else (state, slots))
            return
        if not isinstance(state, dict) or slots:
            raise ValueError(f"the state of a {type(made).__name__} is a dict")
        self.charge(len(state))
        for name in state:
            if not isinstance(name, str) or name.startswith("__") or callable(getattr(type(made), name, None)):
                raise ValueError(f"{name!r} is no attribute that a {type(made).__name__} may have in a file")
        if isinstance(made, Context):
            self.stack[-1].__init__(Context.devtype2str[state["device_typeid"]], self.key(state["device_id"]))
        elif isinstance(made, Optimizer):
            made.__setstate__(dict(state))
            _check_optimizer(made)
        else:
            vars(made).update(state)
            _check_scheduler(made)

    def _fill(self, array: NDArray, state: Any) -> None:
        """Set the values of an NDArray."""
        own = getattr(type(array), "__setstate__", None)
        if own is not None and own is not NDArray.__setstate__ and not _is_built_in(type(array)):
            own(array, state)
            return
        handle = state.get("handle") if isinstance(state, dict) else None
        if not isinstance(handle, (bytes, bytearray)):
            raise ValueError(f"the state of an array is a dict whose `handle` has its bytes, received {type(state).__name__}, with "
                             f"{type(handle).__name__} as `handle`")
        self.charge(len(handle))
        array.__setstate__({"handle": handle})


_NUMBER: Any = (numbers.Real, np.bool_)
_COUNT = numbers.Integral
_OPTIMIZER = {"rescale_grad": _NUMBER, "lr": (*_NUMBER, type(None)), "wd": _NUMBER, "clip_gradient": (*_NUMBER, type(None)), "num_update": _COUNT,
              "begin_num_update": _COUNT, "aggregate_num": (_COUNT, float), "multi_precision": (*_NUMBER, np.bool_), "lr_mult": dict, "wd_mult": dict,
              "idx2name": dict, "_all_index_update_counts": dict, "_index_update_count": dict, "lr_scheduler": (LRScheduler, type(None)),
              "sym_info": (tuple, list)}
_SCHEDULER = {"base_lr": _NUMBER, "warmup_steps": _NUMBER, "warmup_begin_lr": _NUMBER, "warmup_final_lr": _NUMBER, "warmup_mode": str}


def _check_fields(made: Any, fields: Mapping[str, Any]) -> None:
    for name, kind in fields.items():
        if not isinstance(getattr(made, name, ...), kind):
            raise ValueError(f"the {type(made).__name__}'s `{name}` is missing or of another type: {getattr(made, name, None)!r:.80}")


_SCHEDULERS: dict[str, dict[str, Any]] = {
    "FactorScheduler": {"step": _NUMBER, "factor": _NUMBER, "stop_factor_lr": _NUMBER, "count": _NUMBER},
    "MultiFactorScheduler": {"step": list, "factor": _NUMBER, "cur_step_ind": _COUNT, "count": _NUMBER},
    **dict.fromkeys(("PolyScheduler", "CosineScheduler"), {"base_lr_orig": _NUMBER, "max_update": _COUNT, "final_lr": _NUMBER, "max_steps": _COUNT}),
}


def _check_scheduler(made: LRScheduler) -> None:
    """Check a scheduler's fields: the conditions of its constructor, and those that its calls rely on."""
    _check_fields(made, _SCHEDULER)
    if not _is_built_in(type(made)):
        return
    _check_fields(made, _SCHEDULERS.get(type(made).__name__, {}))
    own = vars(made)
    steps = own.get("step", 1)
    steps = steps if isinstance(steps, list) else [steps]
    power = own.get("power", 1)
    if not (all(isinstance(s, _NUMBER) and s >= 1 for s in steps) and -1 <= own.get("factor", 1) <= 1 and own.get("cur_step_ind", 0) >= 0
            and own.get("max_steps", 1) >= 1 and own.get("max_update", 1) - own.get("max_steps", 1) in (0, made.warmup_steps)
            and isinstance(power, _NUMBER) and 0 <= power < 1 << 16):
        raise ValueError(f"the {type(made).__name__}'s numbers do not go together: {own!r:.200}")


def _check_optimizer(made: Optimizer) -> None:
    _check_fields(made, _OPTIMIZER)
    counts = (made._index_update_count, *made._all_index_update_counts.values())
    if not all(isinstance(c, dict) and all(isinstance(n, _COUNT) for n in c.values()) for c in counts):
        raise ValueError(f"the {type(made).__name__}'s numbers of updates are none")
    if not all(isinstance(v, _NUMBER) for table in (made.lr_mult, made.wd_mult) for v in table.values()):
        raise ValueError(f"the {type(made).__name__}'s multipliers are no numbers")
    if _is_built_in(type(made)):
        # It must have the fields of a new optimizer, with numbers where that has numbers.
        for name, value in vars(type(made)()).items():
            if name not in vars(made):
                raise ValueError(f"the {type(made).__name__} lacks its `{name}`")
            own = getattr(made, name)
            if (isinstance(value, _NUMBER) or value is None and name not in _OPTIMIZER) and not (
                    isinstance(own, _NUMBER) or own is None and (value is None or name == "lr")):
                raise ValueError(f"the {type(made).__name__}'s `{name}` is no number: {getattr(made, name)!r:.80}")


def _check_heights(root: Any, most: int) -> None:
    """Refuse lists that contain themselves, or unfold to more than `most` entries: a traversal of them would not end."""
    sizes: dict[int, int] = {}
    pending, height = [(root, False)], 0
    alive: set[int] = set()  # the containers on the path from the root
    while pending:
        value, done = pending.pop()
        if isinstance(value, (_Function, PENDING)):
            raise ValueError(f"it holds {value.name if isinstance(value, _Function) else type(value).__name__}, a function or an array that is "
                             "not complete")
        children = (value if isinstance(value, (list, tuple, set, frozenset)) else value.values() if isinstance(value, dict)
                    else vars(value).values() if isinstance(value, (Optimizer, LRScheduler)) else None)
        if children is None:
            continue
        if done:
            alive.discard(id(value))
            sizes[id(value)] = 1 + sum(sizes.get(id(c), 1) for c in children)
            if sizes[id(value)] > most:
                raise ValueError(f"its lists unfold to {sizes[id(value)]} entries, more than a file of its length can hold ({most})")
        elif id(value) in alive:
            raise ValueError("it holds a list that holds itself")
        elif id(value) not in sizes:
            alive.add(id(value))
            height = len(alive)
            if height > _MAX_HEIGHT:
                raise ValueError(f"its lists are nested {height} deep, at most {_MAX_HEIGHT} are expected")
            pending.append((value, True))
            pending.extend((c, False) for c in children)


def _nothing(machine: Machine, argument: Any) -> None:
    pass


def _tuple_of(count: int) -> Callable[[Machine, Any], None]:
    def act(machine: Machine, _: Any) -> None:
        if len(machine.stack) - (machine.marks[-1] if machine.marks else 0) < count:
            raise ValueError(f"a tuple of {count} items lacks some: {len(machine.stack)} objects are there")
        items = machine.stack[-count:]
        machine.stack[-count:] = [tuple(items)]
    return act


def _push(machine: Machine, value: Any) -> None:
    machine.push(value)


def _append(machine: Machine, _: Any) -> None:
    value = machine.stack.pop()
    machine.top(list).append(value)


def _set_item(machine: Machine, _: Any) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine.set_items([key, value])


def _add_items(machine: Machine, _: Any) -> None:
    items = machine.pop_mark()
    machine.top(set).update(machine.key(i) for i in items)


def _dict(machine: Machine, _: Any) -> None:
    items = machine.pop_mark()
    machine.push({})
    machine.set_items(items)


def _duplicate(machine: Machine, _: Any) -> None:
    if isinstance(machine.top(object), PENDING):
        raise ValueError("an array is used before it is complete")
    machine.push(machine.stack[-1])


def _put(machine: Machine, number: Any) -> None:
    machine.memo[len(machine.memo) if number is None else int(number)] = machine.top(object)


def _stack_global(machine: Machine, _: Any) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise ValueError(f"a name is a text, received {type(module).__name__} and {type(name).__name__}")
    machine.push(_lookup(machine.what, module, name))


def _reduce(machine: Machine, _: Any) -> None:
    arguments, function = machine.stack.pop(), machine.stack.pop()
    machine.push(machine.call(function, arguments))


def _new_object(machine: Machine, _: Any) -> None:
    arguments, cls = machine.stack.pop(), machine.stack.pop()
    if arguments != ():
        raise ValueError(f"an object starts empty, received arguments in a {type(arguments).__name__}")
    machine.push(machine.new(cls))


def _build(machine: Machine, _: Any) -> None:
    state = machine.stack.pop()
    machine.build(state)


_ACTIONS = {
    **dict.fromkeys(("PROTO", "FRAME"), _nothing),
    **dict.fromkeys(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "UNICODE", "BINUNICODE",
                     "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "STRING", "BINSTRING",
                     "SHORT_BINSTRING"), _push),
    "NONE": lambda m, _: m.push(None), "NEWTRUE": lambda m, _: m.push(True), "NEWFALSE": lambda m, _: m.push(False),
    "EMPTY_LIST": lambda m, _: m.push([]), "EMPTY_TUPLE": lambda m, _: m.push(()), "EMPTY_DICT": lambda m, _: m.push({}),
    "EMPTY_SET": lambda m, _: m.push(set()),
    "MARK": lambda m, _: m.marks.append(len(m.stack)), "POP_MARK": lambda m, _: m.pop_mark(), "POP": lambda m, _: m.stack.pop(),
    "DUP": _duplicate, "TUPLE": lambda m, _: m.push(tuple(m.pop_mark())), "TUPLE1": _tuple_of(1), "TUPLE2": _tuple_of(2), "TUPLE3": _tuple_of(3),
    "LIST": lambda m, _: m.push(m.pop_mark()), "DICT": _dict, "FROZENSET": lambda m, _: m.push(frozenset(m.key(i) for i in m.pop_mark())),
    "APPEND": _append, "APPENDS": lambda m, _: _extend(m), "SETITEM": _set_item, "SETITEMS": lambda m, _: m.set_items(m.pop_mark()),
    "ADDITEMS": _add_items,
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda m, number: m.get(number)),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _put),
    "GLOBAL": lambda m, names: m.push(_lookup(m.what, *names.split(" ", 1))), "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce, "NEWOBJ": _new_object, "BUILD": _build,
}


def _extend(machine: Machine) -> None:
    items = machine.pop_mark()
    machine.top(list).extend(items)


def loads(data: bytes, what: str = "the pickled data") -> Any:
    """Return the object in a pickle that `mxnet` wrote.

    Parameters
    ----------
    data : bytes
    what : str
        The name of the data in messages, such as the file's name.

    Raises
    ------
    MXNetError
        If it is damaged, exceeds the memory limit for its length, or contains anything but arrays, optimizers, schedulers and plain Python
        values.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise MXNetError(f"{what} must be bytes, received {type(data).__name__}")
    machine = Machine(bytes(data), what)
    try:
        value = machine.run()
        _check_heights(value, _PER_BYTE * len(data) + _EXTRA)
    except MXNetError as error:
        if str(error).startswith(what):
            raise
        raise MXNetError(f"{what} can't be read near byte {machine.stream.tell()} of {len(data)}: {error}") from error
    except Exception as error:
        # A damaged pickle may cause nearly any exception.
        raise MXNetError(f"{what} can't be read near byte {machine.stream.tell()} of {len(data)}: {error or type(error).__name__}") from error
    return value


def dumps(value: Any) -> bytes:
    """Return the pickle of a value."""
    return pickle.dumps(value)
