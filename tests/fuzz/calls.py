"""Hostile calls of every registered operator: as a function of ``mx.nd`` or ``mx.np``, in a bound graph, in a `CachedOp`, with gradients.

A case is JSON: the operator, how it is called, its inputs (shape, type, and the values that fill it, again and again), attributes, and `out`.
It starts from one of the operator's records (``tests/ops/records.py``), or from anything where it has none, and goes wrong from there.

What is promised of a call:

- It ends within `campaign`'s 10 seconds, and no signal ends the process.
- It takes no more memory than `campaign`'s budget on top of four times its inputs and results (a result, its gradient, and their conversions). The
  results are those that the operator's own shape rule tells, whether the call ended well or not: who asks for 300 GB of zeros may have them, or
  an `MXNetError`, as in MXNet, and who asks for one number out of as many may not. The process has a limit of memory a little above the budget,
  so that what is refused there is measured, too.
- It raises nothing but an `MXNetError`, however wrong shapes, values, types and attributes are. Python's own `TypeError` is reserved for what
  is wrong for any function (an argument given twice, too many of them, unknown ones of the few that are written in Python) and for an `out`
  that is no array; no case here does that.
"""
import contextlib
import functools
import json
import math
import pathlib
import sys

import numpy as np
import torch

import mxnet as mx
from mxnet.gluon.cached_op import CachedOp
from mxnet.ndarray.functions import operator_function
from mxnet.ops.registry import OPERATORS, get
from mxnet.symbol.functions import operator_function as symbol_function
from mxnet.symbol.inference import run_on_meta

from . import hostile
from .campaign import Target

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))
from records import RECORDS, Sample  # noqa: E402

_ELEMENTS = 256  # values that a case spells out
_REAL = {"float32", "float64", "float16", "bfloat16"}
_WIDTHS = {"int8": 8, "uint8": 8, "int32": 32, "int64": 64}


@functools.cache
def operators():
    """The names of all operators, of each one the first."""
    get("_np_copy")  # those of NumPy are loaded on demand
    return sorted({op.name for op in OPERATORS.values()})


# -- cases -----------------------------------------------------------------------------------------------------------

def _plain(value):
    """What JSON can hold, for an attribute of a record."""
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return value.item()
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(np.dtype(value))


@functools.cache
def _samples(name):
    found = []
    for sample in RECORDS.get(name) or [Sample([np.ones((2, 3), "float32")] * max(1, get(name).num_inputs)), Sample([])]:
        inputs = []
        for array in map(np.asarray, sample.inputs):
            values = array.ravel()[:_ELEMENTS]
            values = values.tolist() if array.dtype.kind != "f" else [round(float(v), 4) for v in values.tolist()]
            inputs.append({"shape": list(array.shape), "dtype": array.dtype.name, "values": values})
        found.append((inputs, {k: _plain(v) for k, v in sample.attributes.items()}))
    return found


def _change_input(rng, inputs):
    at = rng.randrange(len(inputs))
    array = {"shape": [2], "dtype": "float32", "values": [1], **({} if inputs[at] is None or "same" in inputs[at] else inputs[at])}
    way = rng.randrange(10)
    if way < 4:
        array["shape"] = hostile.shape(rng, array["shape"])
    elif way < 6:
        array["dtype"] = rng.choice(hostile.DTYPES)
    elif way < 8:
        values = list(array["values"]) or [0]
        for _ in range(rng.choice((1, 1, 2, len(values)))):
            values[rng.randrange(len(values))] = hostile.element(rng)
        array["values"] = values if rng.random() < 0.7 else [hostile.element(rng)]
    elif way == 8:
        array["sliced"] = True
    else:
        inputs[at] = rng.choice((None, {"same": rng.randrange(len(inputs))}))
        return
    inputs[at] = array


def _change_all(rng, inputs):
    """All inputs alike, so that what is common to them does not give the fault away."""
    known = [a for a in inputs if a and "shape" in a]
    if known and rng.random() < 0.5:
        dtype = rng.choice(hostile.DTYPES)
        inputs[:] = [{**a, "dtype": dtype} if a in known else a for a in inputs]
    elif known:
        size, axis = rng.choice((0, 1, 2, 5)), rng.randrange(3)
        for a in known:
            if axis < len(a["shape"]):
                a["shape"] = [*a["shape"][:axis], size, *a["shape"][axis + 1:]]


def _change_count(rng, inputs):
    if inputs and rng.random() < 0.5:
        del inputs[rng.randrange(len(inputs))]
    else:
        more = rng.choice(inputs) if inputs else {"shape": hostile.shape(rng), "dtype": "float32", "values": [hostile.element(rng)]}
        inputs.insert(rng.randrange(len(inputs) + 1), more)


def _change_attribute(rng, declared, attributes):
    if not declared or rng.random() < 0.02:  # unknown ones
        attributes[rng.choice(("kernel", "axis", "no_such", "ctx", "num_args"))] = hostile.anything(rng)
        return
    name = rng.choice(list(declared))
    given = attributes.get(name)
    if isinstance(given, list) and given and rng.random() < 0.5:
        given = list(given)
        given[rng.randrange(len(given))] = hostile.integer(rng)
        attributes[name] = given
    elif name in attributes and rng.random() < 0.05:
        del attributes[name]
    else:
        attributes[name] = hostile.attribute(rng, declared[name])


def _receivers(rng, inputs):
    if rng.random() < 0.3 and inputs:
        return [{"input": rng.randrange(len(inputs))}]
    near = [a["shape"] for a in inputs if a and "shape" in a] or [[2]]
    return [{"shape": rng.choice(near) if rng.random() < 0.5 else hostile.shape(rng, rng.choice(near)), "dtype": rng.choice(hostile.DTYPES),
             "values": [1]} for _ in range(rng.choice((1, 1, 1, 2, 3)))]


def _size(value):
    """The product of those numbers that are large but not too large: the sizes of results that take seconds rather than be refused."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return math.prod(map(_size, value))
    return abs(value) if isinstance(value, (int, float)) and 16 < abs(value) < 1 << 28 else 1


@functools.cache
def _prepare():
    """Import what shape inference imports late, for seconds: an alarm in the middle of it would leave it broken."""
    run_on_meta(get("softmax"), [(2, 3)], {})


def make(rng):
    """A case, as bytes."""
    _prepare()
    op = get(rng.choice(operators()))
    inputs, attributes = rng.choice(_samples(op.name))
    inputs, attributes = [dict(a) for a in inputs], dict(attributes)
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 2, 3, 6))):
        draw = rng.random()
        if draw < 0.05:
            _change_count(rng, inputs)
        elif draw < 0.15:
            _change_all(rng, inputs)
        elif inputs and draw < (0.55 if op.attributes else 0.95):
            _change_input(rng, inputs)
        else:
            _change_attribute(rng, op.attributes, attributes)
    if _size(attributes) > 1 << 22:
        attributes = dict(rng.choice(_samples(op.name))[1])
    if not op.variadic:
        del inputs[op.num_inputs:]  # one too many is a TypeError
        if operator_function(op.name).__module__ != "mxnet.ndarray.op":
            attributes = {k: v for k, v in attributes.items() if k in op.attributes}
    case = {"op": op.name, "inputs": inputs, "attributes": attributes, "gradient": rng.random() < 0.5, "training": rng.random() < 0.5}
    if rng.random() < 0.1:
        case["out"] = _receivers(rng, inputs)
    return json.dumps(case).encode()


# -- running them ----------------------------------------------------------------------------------------------------

def _number(value, dtype):
    """`value` as one of `dtype`; integers wrap around, so that a case says what it means on every machine."""
    if dtype == "bool":
        return bool(value)
    if dtype in _REAL:
        return float(value)
    bits = _WIDTHS.get(dtype, 64)
    value = int(value) if math.isfinite(value) else 0
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) and dtype != "uint8" else value


def _array(given, kind):
    dtype = given["dtype"]
    values = [_number(v, dtype) for v in given["values"]] or [0]
    shape = list(given["shape"])
    if sliced := given.get("sliced") and bool(shape):
        shape[0] += 1
    values = np.resize(np.array(values, "float64" if dtype in _REAL else dtype), shape)
    tensor = torch.from_numpy(values)
    if dtype in _REAL:
        tensor = tensor.to(getattr(torch, dtype))
    return kind._new(tensor[1:] if sliced else tensor, mx.cpu())


def _arrays(given, kind):
    arrays = []
    for array in given:
        arrays.append(None if array is None else _array(array, kind) if "shape" in array else None)
    for i, array in enumerate(given):
        if array is not None and "same" in array:
            arrays[i] = arrays[array["same"]] if array["same"] < len(arrays) else None
    return arrays


def _attributes(given):
    """JSON's lists are tuples."""
    def tuples(value):
        return tuple(map(tuples, value)) if isinstance(value, list) else value
    return {k: tuples(v) for k, v in given.items()}


def _look(arrays):
    """Read what came out, where that is little; what could not be computed says so when it is waited for."""
    for array in arrays:
        if array is not None:
            array.asnumpy() if array.size < 1 << 16 else array.wait_to_read()


def _listed(results):
    return list(results) if isinstance(results, (list, tuple)) else [] if results is None else [results]


class _Case:
    """A case taken apart."""

    def __init__(self, case):
        with contextlib.suppress(mx.MXNetError):
            mx.nd.waitall()  # of the case before
        case = json.loads(case)
        self.op = get(case["op"])
        self.numpy = self.op.name.startswith("_np")
        self.kind = mx.np.ndarray if self.numpy else mx.nd.NDArray
        self.arrays = _arrays(case["inputs"], self.kind)
        self.attributes = _attributes(case["attributes"])
        self.gradient, self.training = case["gradient"], case["training"]
        given = [o for o in case.get("out", ()) if o.get("input", -1) < len(self.arrays)]
        out = [_array(o, self.kind) if "shape" in o else self.arrays[o["input"]] for o in given]
        self.out = [o for o in out if o is not None] or None
        if self.op.stochastic:
            mx.random.seed(0)

    def marked(self):
        """The inputs that want a gradient."""
        found = [a for a in self.arrays if a is not None and a._data.is_floating_point()] if self.gradient else []
        for array in found:
            array.attach_grad()
        return found


def _differentiate(call, marked, training):
    with mx.autograd.record(training) if marked else mx.autograd.Scope(False, training):
        results = _listed(call())
    if marked:
        mx.autograd.backward(results)
        _look([a.grad for a in marked])
    _look(results)


def _imperative(case):
    case = _Case(case)
    with mx.np_shape(case.numpy):
        function = operator_function(case.op.name, case.kind if case.numpy else None)
        out = case.out and {"out": case.out[0] if len(case.out) == 1 else case.out}
        _differentiate(lambda: function(*case.arrays, **case.attributes, **(out or {})), case.marked(), case.training)


def _symbol(case):
    """The call as a graph, and its inputs in the graph's order."""
    given = {f"x{i}": a for i, a in enumerate(case.arrays) if a is not None}
    variables = [None if a is None else mx.sym.var(f"x{i}") for i, a in enumerate(case.arrays)]
    if case.numpy:
        variables = [v and v.as_np_ndarray() for v in variables]
    symbol = symbol_function(case.op.name)(*variables, **case.attributes)
    return symbol, {n: given[n] for n in symbol.list_inputs() if n in given}


def _bound(case):
    case = _Case(case)
    with mx.np_shape(case.numpy):
        symbol, given = _symbol(case)
        symbol.infer_shape_partial(**{n: a.shape for n, a in given.items()})
        symbol.infer_type_partial(**{n: a._data.dtype for n, a in given.items()})
        executor = symbol.simple_bind(mx.cpu(), "write" if case.gradient else "null", {n: a._data.dtype for n, a in given.items()},
                                      **{n: a.shape for n, a in given.items()})
        executor.copy_params_from({n: a for n, a in given.items() if n in executor.arg_dict},
                                  {n: a for n, a in given.items() if n in executor.aux_dict})
        outputs = executor.forward(case.training)
        _look(outputs)
        if case.gradient:
            executor.backward([o.ones_like() for o in outputs])
            _look(executor.grad_arrays)


def _cached(case, flags=()):
    case = _Case(case)
    with mx.np_shape(case.numpy):
        symbol, given = _symbol(case)
        if len(given) == len(symbol.list_inputs()):
            function = CachedOp(symbol, flags)
            _differentiate(lambda: function(*given.values()), case.marked(), case.training)


def _compiled(case):
    _cached(case, {"static_alloc": True, "static_shape": True})


def granted(case):
    """The bytes that a call may take besides the budget."""
    case = _Case(case)
    inputs = [a for a in case.arrays if a is not None]
    size = 0  # of what is there besides the inputs
    with contextlib.suppress(Exception):  # a call that is wrong has no result
        # As the call found them: 3.0 is refused, but found where 3 was parsed before.
        attributes = {k: v for k, v in case.attributes.items() if v is not None}
        parsed, shapes = case.op.parse_cached(attributes), [a.shape for a in inputs]
        results = []
        try:
            if case.op.shape_inference is not None:
                missing = [None] * (len(case.op.input_names(parsed, len(shapes))) - len(shapes))  # a graph makes arrays for them
                made, results = case.op.shape_inference([*shapes, *missing], [None] * case.op.outputs(parsed), **case.op.with_defaults(parsed))
                size = sum(math.prod(s) for s in made[len(shapes):] if s is not None and min(s, default=0) >= 0)
            if not results or any(s is None or min(s, default=0) < 0 for s in results):
                results = run_on_meta(case.op, shapes, parsed, [a._data.dtype for a in inputs]) or ()
        except RuntimeError as error:
            if "overflow" in str(error):  # more than any address
                return sys.maxsize
        size += sum(math.prod(s) for s in results)
        if case.op.name == "_npi_bincount":  # whose result no rule can tell
            size += max([parsed.get("minlength", 0), *inputs[0]._data.reshape(-1).tolist()])
        if size > 1 << 40:
            return sys.maxsize  # a result that nobody has the memory for
    return 4 * 8 * (sum(a.size for a in inputs) + size)


# Graphs take ten times as long as calls, compiled ones thirty times.
TARGETS = [Target("calls.nd", make, _imperative, granted=granted, share=40), Target("calls.bound", make, _bound, granted=granted, share=2),
           Target("calls.cached", make, _cached, granted=granted, share=2), Target("calls.compiled", make, _compiled, granted=granted)]
