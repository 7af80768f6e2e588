"""Hostile calls of what is written in Python above the operators: the functions of ``mx.np`` and ``mx.npx``, arrays' methods, Python's operators
on arrays, and indexing.

A case is JSON: what is called, and its arguments. Beside what `calls` promises, Python's own errors may be raised here, as NumPy and MXNet's
Python files raise them: a `TypeError` or an `AttributeError` for an argument of a wrong kind, a `ValueError` or a `KeyError` for a wrong value, a
`NotImplementedError` for what MXNet refuses with one, an `IndexError` for an index out of range, and an `OverflowError` or a `ZeroDivisionError` by
Python's numbers, for one that C has no type for and a division by zero. What is left are the errors of torch, OpenCV and our own mistakes: a
bare `RuntimeError`, an `AssertionError`, a `NameError`, ... What size a result would have nobody knows here, so that memory is only limited.
"""
import functools
import inspect
import json
import operator
import sys

import mxnet as mx

from . import hostile
from .calls import _array, _listed, _look
from .campaign import Target

_LEFT_OUT = {
    # These have to do with files, or hold for the whole process.
    "save", "savez", "load", "genfromtxt", "loadtxt", "savetxt", "tofile", "dump", "fromfile", "set_np", "reset_np", "set_np_shape", "set_np_array",
    "use_np", "np_shape", "np_array", "waitall", "from_dlpack", "to_dlpack", "to_dlpack_for_read", "to_dlpack_for_write", "from_torch",
    "set_printoptions", "seed", "get_include", "printoptions", "wait_to_read", "wait_to_write",
    # These raise a RuntimeError of NumPy's own.
    "cov", "corrcoef",
    # These call functions that they are given.
    "foreach", "while_loop", "cond", "cond_fn", "apply_along_axis", "apply_over_axes", "piecewise", "vectorize", "fromfunction", "frompyfunc",
}
_OPERATORS = "add sub mul truediv mod pow matmul and_ or_ xor lt le eq ne gt ge iadd isub imul itruediv imod neg abs invert floordiv".split()


@functools.cache
def _functions():
    """By their names."""
    found = {}
    for space in ("np", "npx", "np.linalg", "np.random", "npx.random", "npx.image", "nd.random", "nd.linalg", "nd.image", "nd.contrib"):
        module = functools.reduce(getattr, space.split("."), mx)
        for name in dir(module):
            value = getattr(module, name, None)
            if name[0] != "_" and name not in _LEFT_OUT and callable(value) and not inspect.isclass(value):
                found[f"{space}.{name}"] = value
    return found


@functools.cache
def _methods():
    found = {f"operator.{n}": getattr(operator, n) for n in _OPERATORS}
    for kind in (mx.nd.NDArray, mx.np.ndarray):
        for name, value in inspect.getmembers(kind, callable):
            if name[0] != "_" and name not in _LEFT_OUT:
                found[f"{'np' if kind is mx.np.ndarray else 'nd'}.{name}"] = value
    return found


@functools.cache
def _keywords(table, name):
    try:
        return [p.name for p in inspect.signature(table()[name]).parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    except (TypeError, ValueError):
        return []


# -- cases -----------------------------------------------------------------------------------------------------------

def _array_case(rng):
    values = [rng.choice((0, 1, 2, 3, 0.5, -1.5, hostile.element(rng))) for _ in range(rng.choice((1, 4, 7)))]
    shape = rng.choice(([2, 3], [3], [2, 2], [], [3, 3], [2, 3, 4], [0], [4, 2, 2, 2]))
    return {"array": {"shape": shape if rng.random() < 0.7 else hostile.shape(rng, shape), "dtype": rng.choice(["float32"] * 6 + hostile.DTYPES),
                      "values": values}}


def _argument(rng):
    draw = rng.random()
    if draw < 0.45:
        return _array_case(rng)
    if draw < 0.55:
        return [_array_case(rng) for _ in range(rng.randrange(4))]
    if draw < 0.75:
        return rng.randrange(-3, 5)
    if draw < 0.85:
        return [rng.randrange(-2, 5) for _ in range(rng.randrange(4))]
    return hostile.anything(rng)


def _make_call(table, arrays):
    def make(rng):
        name = rng.choice(sorted(table()))
        arguments = [_array_case(rng) for _ in range(arrays)] + [_argument(rng) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]
        keywords = _keywords(table, name)
        named = {rng.choice(keywords): _argument(rng) for _ in range(rng.choice((0, 0, 1, 1, 2)))} if keywords else {}
        return json.dumps({"call": name, "arguments": arguments, "named": {k: v for k, v in named.items() if k != "self"},
                           "gradient": rng.random() < 0.2}).encode()
    return make


def _key(rng):
    draw = rng.random()
    if draw < 0.3:
        return {"slice": [rng.choice((None, 0, 1, -1, hostile.integer(rng))) for _ in range(3)]}
    if draw < 0.5:
        return rng.choice((0, 1, -1, 5, hostile.integer(rng)))
    if draw < 0.65:
        return _array_case(rng)
    return rng.choice(("...", None, True, False, [0, 1], [[0, 1], [1, 0]], [], [True, False], [hostile.integer(rng)], 0.5, "text", [None]))


def _make_index(rng):
    key = _key(rng) if rng.random() < 0.5 else {"tuple": [_key(rng) for _ in range(rng.randrange(5))]}
    case = {"kind": rng.choice(("nd", "np")), "array": _array_case(rng), "key": key, "gradient": rng.random() < 0.2}
    if rng.random() < 0.5:
        case["value"] = _argument(rng)
    return json.dumps(case).encode()


# -- running them ----------------------------------------------------------------------------------------------------

def _value(given, kind):
    if isinstance(given, dict):
        if "array" in given:
            return _array(given["array"], kind)
        return slice(*given["slice"]) if "slice" in given else tuple(_value(v, kind) for v in given["tuple"])
    if isinstance(given, list):
        return [_value(v, kind) for v in given]
    return ... if given == "..." else given


def _arrays_in(value):
    if isinstance(value, mx.nd.NDArray):
        return [value]
    return [a for v in value for a in _arrays_in(v)] if isinstance(value, (list, tuple)) else []


def _called(function, numpy, arguments, named, gradient):
    marked = [a for a in _arrays_in([arguments, list(named.values())]) if a._data.is_floating_point()] if gradient else []
    with mx.np_shape(numpy), mx.util.np_array(numpy):
        for array in marked:
            array.attach_grad()
        with mx.autograd.record() if marked else mx.autograd.pause():
            results = function(*arguments, **named)
        found = [r for r in _listed(results) if isinstance(r, mx.nd.NDArray)]
        if marked and found:
            mx.autograd.backward(found)
        _look([r for r in found if r.stype == "default"])


def _run_call(table):
    def run(case):
        case = json.loads(case)
        name = case["call"]
        kind = mx.nd.NDArray if name.startswith("nd.") else mx.np.ndarray
        mx.random.seed(0)
        arguments, named = _value(case["arguments"], kind), {k: _value(v, kind) for k, v in case["named"].items()}
        _called(table()[name], kind is mx.np.ndarray, arguments, named, case["gradient"])
    return run


def _run_index(case):
    case = json.loads(case)
    kind = mx.np.ndarray if case["kind"] == "np" else mx.nd.NDArray
    array, key = _value(case["array"], kind), _value(case["key"], kind)
    if "value" in case:
        _called(operator.setitem, case["kind"] == "np", [array, key, _value(case["value"], kind)], {}, case["gradient"])
    else:
        _called(operator.getitem, case["kind"] == "np", [array, key], {}, case["gradient"])


_ALLOWED = (mx.MXNetError, TypeError, AttributeError, ValueError, KeyError, NotImplementedError, IndexError, OverflowError, ZeroDivisionError)


def _target(name, make, run, share):
    return Target(f"frontends.{name}", make, run, _ALLOWED, share, lambda case: sys.maxsize)


TARGETS = [_target("functions", _make_call(_functions, 0), _run_call(_functions), 4),
           _target("methods", _make_call(_methods, 1), _run_call(_methods), 4), _target("indexing", _make_index, _run_index, 4)]
