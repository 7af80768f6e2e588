"""Checks of Symbols, optimizers and blocks: results, gradients, agreement of devices and types, speed."""
from __future__ import annotations

import inspect
import json
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import autograd, symbol, util
from .. import name as naming
from .. import ndarray as nd
from ..initializer import Initializer
from ..ndarray import NDArray
from ..suggestions import shortened
from ..symbol import Symbol
from .arrays import create_sparse_array
from .compare import assert_almost_equal, default_dtype, default_numeric_eps, get_tolerance, get_tols
from .system import default_context

if TYPE_CHECKING:
    from ..context import Context
    from ..executor import Executor
    from ..gluon import Block

_FLOATS = (np.float16, np.float32, np.float64)


def simple_forward(sym: Symbol, ctx: Context | None = None, is_train: bool = False, **inputs: Any) -> Any:
    """Return the outputs of a Symbol as NumPy arrays, for inputs by name; a single output without a list.

    Example
    -------
    >>> x = mx.sym.var('x')
    >>> mx.test_utils.simple_forward(x * 2, x=mx.nd.array([3]).asnumpy())
    array([6.], dtype=float32)
    """
    executor = sym.bind(ctx or default_context(), args={name: nd.array(value) for name, value in inputs.items()})
    outputs = [o.asnumpy() for o in executor.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def _check_dtype(dtype, as_numpy=True):
    if not (dtype in _FLOATS or (as_numpy and isinstance(dtype, str) and dtype == "asnumpy")):
        raise ValueError(f"dtype must be float16, float32 or float64{', or asnumpy' if as_numpy else ''}; received {shortened(dtype)}")


def _to_ndarray(value, ctx, dtype):
    return nd.array(value, ctx=ctx, dtype=value.dtype if isinstance(dtype, str) and dtype == "asnumpy" else dtype)


def _named(what, names, values):
    """Return values by name; a list of values is in the order of the names."""
    if isinstance(values, dict):
        if set(values) != set(names):
            raise ValueError(f"Symbol {what} and keys of the given ones do not match: the Symbol has {sorted(names)}, given are {sorted(values)}")
        return dict(values)
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"the {what} must be a dict or a list, received {type(values).__name__}")
    return dict(zip(names, values))


def _parse_location(sym, location, ctx, dtype):
    named = _named("arguments", sym.list_arguments(), location)
    return {name: _to_ndarray(value, ctx, dtype) if isinstance(value, np.ndarray) else value for name, value in sorted(named.items())}


def _parse_aux_states(sym, aux_states, ctx, dtype):
    if aux_states is None:
        return None
    return {name: _to_ndarray(value, ctx, dtype) for name, value in _named("aux_states", sym.list_auxiliary_states(), aux_states).items()}


def numeric_grad(executor: Executor, location: Mapping[str, Any], aux_states: Any = None, eps: float = 1e-4, use_forward_train: bool = True,
                 dtype: Any = default_dtype()) -> dict[str, np.ndarray]:
    """Compute the gradient of the sum of an executor's first output by finite differences.

    Parameters
    ----------
    executor : Executor
    location : dict of str to numpy.ndarray
        The values of its arguments.
    aux_states : dict of str to numpy.ndarray, optional
        The auxiliary states, which are set before every run.
    eps : float
        The difference between the two points of a central difference.
    use_forward_train : bool
        Run forward in training mode.
    dtype : type
        The type of the results.

    Returns
    -------
    dict of str to numpy.ndarray

    Example
    -------
    >>> import numpy as np
    >>> x = mx.sym.var('x')
    >>> executor = (x * x).bind(mx.cpu(), {'x': mx.nd.array([3])})
    >>> mx.test_utils.numeric_grad(executor, {'x': np.array([3], np.float32)}, eps=0.01)['x'].round(1)
    array([6.], dtype=float32)
    """
    _check_dtype(dtype, as_numpy=False)

    def assign(name, values):
        target = executor.arg_dict[name]
        target[:] = nd.cast_storage(nd.array(values, dtype=dtype), stype=target.stype)

    def output():
        for name, values in (aux_states or {}).items():
            target = executor.aux_dict[name]
            target[:] = nd.cast_storage(nd.array(values, dtype=dtype), stype=target.stype)
        executor.forward(is_train=use_forward_train)
        return executor.outputs[0].asnumpy()

    for name, values in location.items():
        if executor.arg_dict[name].stype == "default":
            assign(name, values)
    gradients = {name: np.zeros(values.shape, dtype=dtype) for name, values in location.items()}
    for name, values in location.items():
        if values.dtype.kind != "f":
            continue
        moved = np.array(values, order="C")
        flat, flat_gradient = moved.reshape(-1), gradients[name].reshape(-1)
        for i, value in enumerate(flat.copy()):
            flat[i] = value + eps / 2
            assign(name, moved)
            above = output()
            flat[i] = flat[i] - eps
            assign(name, moved)
            flat_gradient[i] = (above - output()).sum() / eps
            flat[i] = value
        assign(name, values)
    return gradients


def check_numeric_gradient(sym: Symbol, location: Any, aux_states: Any = None, numeric_eps: float | None = None, rtol: float | None = None,
                           atol: float | None = None, grad_nodes: Any = None, use_forward_train: bool = True, ctx: Context | None = None,
                           grad_stype_dict: Mapping[str, str] | None = None, dtype: Any = default_dtype()) -> None:
    """Compare the gradients of a Symbol with finite differences.

    The Symbol's single output is multiplied by random numbers, so that gradients of its elements can't cancel.

    Parameters
    ----------
    sym : Symbol
    location : dict or list of numpy.ndarray or NDArray
        The values of its arguments.
    aux_states : dict or list of numpy.ndarray, optional
    numeric_eps : float, optional
        The step of the differences; the default depends on the type.
    rtol, atol : float, optional
    grad_nodes : list of str, or dict of str to str, optional
        The arguments to check, with the ``grad_req`` of each in a dict; by default all.
    use_forward_train : bool
        Compute the differences in training mode.
    ctx : Context, optional
    grad_stype_dict : dict of str to str, optional
        The storage types of gradients.
    dtype : type

    Raises
    ------
    AssertionError
        If a gradient disagrees.

    Example
    -------
    >>> import mxnet as mx, numpy as np
    >>> mx.test_utils.check_numeric_gradient(mx.sym.square(mx.sym.var('x')), [np.array([1.0, 2.0])])
    """
    _check_dtype(dtype, as_numpy=False)
    ctx = ctx or default_context()
    location = _parse_location(sym, location, ctx, dtype)
    aux_states = _parse_aux_states(sym, aux_states, ctx, dtype)
    location_npy = {name: value.asnumpy() for name, value in location.items()}
    aux_npy = {name: value.asnumpy() for name, value in aux_states.items()} if aux_states else None
    if isinstance(grad_nodes, dict):
        grad_req = dict(grad_nodes)
    else:
        grad_req = dict.fromkeys(sym.list_arguments() if grad_nodes is None else grad_nodes, "write")

    _, out_shapes, _ = sym.infer_shape(**{name: value.shape for name, value in location.items()})
    projection = symbol.Variable("__random_proj")
    numpy_symbol = type(sym) is not Symbol and hasattr(sym, "as_nd_ndarray")
    out = (sym * projection.as_np_ndarray()).as_nd_ndarray() if numpy_symbol else sym * projection
    location["__random_proj"] = nd.array(np.random.rand(*out_shapes[0]) + 0.1, ctx=ctx, dtype=dtype)
    before = {name: np.random.normal(0, 0.01, size=location[name].shape) for name in (*grad_req, "__random_proj")}
    gradients = {name: nd.array(value, ctx=ctx, dtype=dtype) for name, value in before.items()}
    for name, stype in (grad_stype_dict or {}).items():
        if name in gradients and stype in ("row_sparse", "csr"):
            gradients[name] = nd.zeros(gradients[name].shape, ctx, gradients[name].dtype, stype)

    executor = symbol.make_loss(out).bind(ctx, grad_req=grad_req, args=location, args_grad=gradients, aux_states=aux_states)
    executor.forward(is_train=True)
    eps = get_tolerance(executor.outputs[0], numeric_eps, default_numeric_eps())
    if dtype is not np.float64 and eps < 1e-5:
        raise ValueError(f"check_numeric_gradient: numeric_eps {eps} is too small for {np.dtype(dtype).name}; use at least 1e-5")
    executor.backward()
    numeric = numeric_grad(executor, location_npy, aux_npy, eps=eps, use_forward_train=use_forward_train, dtype=dtype)
    for name, req in grad_req.items():
        _compare_gradient(req, name, numeric[name], executor.grad_dict[name], before[name], rtol, atol, "NUMERICAL")


def _compare_gradient(req, name, expected, received, before, rtol, atol, what, equal_nan=False):
    """Compare the gradient array `received`, whose old value is `before`, with the expected result for `req`."""
    names = f"{what}_{name}", f"BACKWARD_{name}"
    if req == "add":
        received = (received.asnumpy() if isinstance(received, NDArray) else received) - before
    elif req == "null":
        expected = before
    elif req != "write":
        raise ValueError(f"Invalid grad_req {req} for argument {name}; expected 'write', 'add' or 'null'")
    if req == "null" and received is None:
        return
    assert_almost_equal(expected, received, rtol, atol, names, equal_nan=equal_nan)


def check_symbolic_forward(sym: Symbol, location: Any, expected: Any, rtol: float | None = None, atol: float | None = None, aux_states: Any = None,
                           ctx: Context | None = None, equal_nan: bool = False, dtype: Any = default_dtype()) -> list[NDArray]:
    """Compare the outputs of a Symbol with expected ones.

    Parameters
    ----------
    sym : Symbol
    location : dict or list of numpy.ndarray or NDArray
        The values of its arguments.
    expected : dict or list of numpy.ndarray
        The outputs, by name or in order.
    rtol, atol : float, optional
    aux_states : dict or list of numpy.ndarray, optional
    ctx : Context, optional
    equal_nan : bool
    dtype : type or 'asnumpy'
        The type to compute in; ``'asnumpy'`` for that of each numpy array.

    Returns
    -------
    list of NDArray
        The outputs.

    Example
    -------
    >>> import mxnet as mx, numpy as np
    >>> outputs = mx.test_utils.check_symbolic_forward(mx.sym.square(mx.sym.var('x')), [np.array([1.0, 2.0])], [np.array([1.0, 4.0])])
    """
    _check_dtype(dtype)
    ctx = ctx or default_context()
    location = _parse_location(sym, location, ctx, dtype)
    aux_states = _parse_aux_states(sym, aux_states, ctx, dtype)
    if isinstance(expected, dict):
        expected = [expected[name] for name in sym.list_outputs()]
    gradients = {name: nd.zeros(value.shape, ctx=ctx, dtype=value.dtype) for name, value in location.items()}
    executor = sym.bind(ctx=ctx, args=location, args_grad=gradients, aux_states=aux_states)
    executor.forward(is_train=False)
    for name, want, got in zip(sym.list_outputs(), expected, executor.outputs):
        assert_almost_equal(want, got, rtol, atol, (f"EXPECTED_{name}", f"FORWARD_{name}"), equal_nan=equal_nan)
    return executor.outputs


def check_symbolic_backward(sym: Symbol, location: Any, out_grads: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
                            aux_states: Any = None, grad_req: Any = "write", ctx: Context | None = None, grad_stypes: Any = None,
                            equal_nan: bool = False, dtype: Any = default_dtype()) -> dict[str, NDArray]:
    """Compare the gradients of a Symbol with expected ones.

    Parameters
    ----------
    sym : Symbol
    location : dict or list of numpy.ndarray or NDArray
        The values of its arguments.
    out_grads : list or dict of numpy.ndarray or NDArray, or None
        The gradients of the outputs.
    expected : dict or list of numpy.ndarray
        The gradients of the arguments, by name or in order.
    rtol, atol : float, optional
    aux_states : dict or list of numpy.ndarray, optional
    grad_req : str, list or dict
        ``'write'``, ``'add'`` or ``'null'``.
    ctx : Context, optional
    grad_stypes : dict of str to str, optional
        The storage types of gradients.
    equal_nan : bool
    dtype : type or 'asnumpy'

    Returns
    -------
    dict of str to NDArray
        The gradients.

    Example
    -------
    >>> x = mx.sym.var('x')
    >>> _ = mx.test_utils.check_symbolic_backward(x * x, [mx.nd.array([3])], [mx.nd.ones(1)], [mx.nd.array([6])])
    """
    _check_dtype(dtype)
    ctx = ctx or default_context()
    location = _parse_location(sym, location, ctx, dtype)
    aux_states = _parse_aux_states(sym, aux_states, ctx, dtype)
    arguments = sym.list_arguments()
    if isinstance(expected, (list, tuple)):
        expected = dict(zip(arguments, expected))
    before = {name: np.random.normal(size=value.shape) for name, value in sorted(expected.items())}
    gradients = {}
    for name, value in before.items():
        stype = (grad_stypes or {}).get(name) or "default"
        if stype == "default":
            gradients[name] = nd.array(value, ctx=ctx, dtype=expected[name].dtype if isinstance(dtype, str) else dtype)
        else:
            gradients[name] = create_sparse_array(value.shape, stype, density=0.0)
    if isinstance(grad_req, str):
        grad_req = dict.fromkeys(arguments, grad_req)
    elif isinstance(grad_req, (list, tuple)):
        grad_req = dict(zip(arguments, grad_req))
    executor = sym.bind(ctx=ctx, args=location, args_grad=gradients, aux_states=aux_states, grad_req=grad_req)
    executor.forward(is_train=True)

    def prepared(value):
        return _to_ndarray(value, ctx, dtype) if isinstance(value, np.ndarray) else value

    if isinstance(out_grads, dict):
        out_grads = {name: prepared(value) for name, value in out_grads.items()}
    elif out_grads is not None:
        out_grads = [prepared(value) for value in out_grads]
    executor.backward(out_grads)
    for name in expected:
        _compare_gradient(grad_req[name], name, expected[name], gradients[name], before[name], rtol, atol, "EXPECTED", equal_nan)
    return gradients


def check_speed(sym: Symbol, location: Any = None, ctx: Context | None = None, N: int = 20, grad_req: str | None = None, typ: str = "whole",
                **kwargs: Any) -> float:
    """Measure the time of one run of a Symbol, in seconds.

    Parameters
    ----------
    sym : Symbol
    location : dict of str to numpy.ndarray, optional
        The arguments' values; random by default, with the shapes in `kwargs`.
    ctx : Context, optional
    N : int
        The number of runs in the average.
    grad_req : str, optional
    typ : str
        ``'whole'``: forward and backward; ``'forward'``: inference.
    **kwargs
        Shapes by name, for `Symbol.simple_bind`.

    Example
    -------
    >>> net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2, name='fc')
    >>> mx.test_utils.check_speed(net, N=2, data=(2, 3)) > 0   # seconds for a step
    True
    """
    if typ not in ("whole", "forward"):
        raise ValueError(f"typ must be 'whole' or 'forward', received {shortened(typ)}")
    shapes = kwargs if location is None else {name: value.shape for name, value in location.items()}
    executor = sym.simple_bind(grad_req=grad_req or "write", ctx=ctx or default_context(), **shapes)
    if location is None:
        location = {name: np.random.normal(size=array.shape) for name, array in executor.arg_dict.items()}
    for name, value in location.items():
        executor.arg_dict[name][:] = value

    def run():
        executor.forward(is_train=typ == "whole")
        if typ == "whole":
            executor.backward(out_grads=executor.outputs)

    run()
    nd.waitall()
    start = time.perf_counter()
    for _ in range(N):
        run()
    nd.waitall()
    return (time.perf_counter() - start) / N


def check_consistency(sym: Symbol | Sequence[Symbol], ctx_list: Sequence[dict[str, Any]], scale: float = 1.0, grad_req: Any = "write",
                      arg_params: Mapping[str, Any] | None = None, aux_params: Mapping[str, Any] | None = None, rtol: Any = None, atol: Any = None,
                      raise_on_err: bool = True, ground_truth: Mapping[str, Any] | None = None, equal_nan: bool = False, use_uniform: bool = False,
                      rand_type: Any = np.float64) -> Any:
    """Compare the outputs and gradients of a Symbol on several devices and in several types.

    Parameters
    ----------
    sym : Symbol or list of Symbol
        One Symbol, or one for each of `ctx_list`.
    ctx_list : list of dict
        The arguments of `Symbol.simple_bind`: ``{'ctx': mx.cpu(), 'data': (2, 3), 'type_dict': {'data': np.float32}}``.
    scale : float
        The scale of random arguments.
    grad_req : str or dict
    arg_params, aux_params : dict of str to numpy.ndarray, optional
        Values instead of random ones and zeros; missing ones are added to `arg_params`.
    rtol, atol : float or dict, optional
    raise_on_err : bool
        If False, only print the differences.
    ground_truth : dict of str to NDArray, optional
        The reference results, instead of those of the most precise type.
    equal_nan : bool
    use_uniform : bool
        Draw arguments uniformly instead of normally.
    rand_type : type
        The type of random arguments, before they are cast.

    Returns
    -------
    dict of str to NDArray
        The reference results.

    Example
    -------
    >>> net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2, name='fc')
    >>> _ = mx.test_utils.check_consistency(net, [{'ctx': mx.cpu(i), 'data': (2, 3)} for i in range(2)])
    """
    if len(ctx_list) < 2:
        raise ValueError("check_consistency: at least two entries of ctx_list are needed to compare")
    symbols = [sym] * len(ctx_list) if isinstance(sym, Symbol) else sym
    arguments, outputs = symbols[0].list_arguments(), symbols[0].list_outputs()
    if len(symbols) != len(ctx_list) or any(s.list_arguments() != arguments or s.list_outputs() != outputs for s in symbols):
        raise ValueError("check_consistency: one Symbol for each entry of ctx_list is needed, all with the same arguments and outputs")
    executors = [s.simple_bind(grad_req=grad_req, **config) for s, config in zip(symbols, ctx_list)]
    _fill(executors, {} if arg_params is None else arg_params, {} if aux_params is None else aux_params, scale, use_uniform, rand_type,
          grad_req)
    dtypes = [np.dtype(e.outputs[0].dtype) for e in executors]
    best = int(np.argmax([d.itemsize for d in dtypes]))
    truth = ground_truth
    for executor in executors:
        executor.forward(is_train=False)

    def compare(phase, i, name, array, expected, rtol, atol):
        try:
            assert_almost_equal(array, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
        except AssertionError as error:
            print(f"{phase} Err: ctx {i} ({array.dtype} on {array.context}) vs ctx {best} at {name}")
            if raise_on_err:
                raise
            traceback.print_exc()
            print(error)

    reference = ground_truth if ground_truth is not None else dict(executors[best].output_dict)
    for i, executor in enumerate(executors):
        if i != best:
            for name, array in zip(outputs, executor.outputs):
                compare("Predict", i, name, array, reference[name], rtol, atol)
    if truth is None:
        truth = dict(executors[best].output_dict)
    if grad_req == "null":
        return truth

    for executor in executors:
        executor.forward(is_train=True)
    coarsest = [min((np.dtype(o.dtype) for o in same), key=lambda d: d.itemsize) for same in zip(*(e.outputs for e in executors))]
    seeds = [o.astype(d).asnumpy() for o, d in zip(executors[0].outputs, coarsest)]
    for executor in executors:
        executor.backward([nd.array(seed, ctx=o.context, dtype=o.dtype).tostype(o.stype) for seed, o in zip(seeds, executor.outputs)])
    if ground_truth is None:
        truth = {**executors[best].output_dict, **executors[best].grad_dict}
    for i, executor in enumerate(executors):
        if i == best:
            continue
        for name, array in zip(outputs + arguments, list(executor.outputs) + list(executor.grad_arrays)):
            expected = truth[name]
            if expected is None or array is None:
                if expected is not array:
                    raise AssertionError(f"the gradient of {name} is there on ctx {i if array is not None else best} only")
                continue
            # A gradient is at most as precise as the outputs of its executor.
            less = [a.astype(min(np.dtype(a.dtype), d, key=lambda t: t.itemsize)) for a, d in ((array, dtypes[i]), (expected, dtypes[best]))]
            compare("Train", i, name, array, expected, *get_tols(*less, rtol, atol))
    return truth


def _fill(executors, arg_params, aux_params, scale, use_uniform, rand_type, grad_req):
    for name, array in sorted(executors[0].arg_dict.items()):
        if name not in arg_params:
            values = np.random.uniform(-0.92 * scale, 0.92 * scale, array.shape) if use_uniform else np.random.normal(0, scale, array.shape)
            arg_params[name] = np.asarray(values).astype(rand_type)
    for name in executors[0].aux_dict:
        aux_params.setdefault(name, 0)
    for executor in executors:
        for name, array in executor.arg_dict.items():
            array[:] = arg_params[name]
        for name, array in executor.aux_dict.items():
            array[:] = aux_params[name]
        if grad_req == "add":
            for array in executor.grad_arrays:
                array[:] = 0


def same_symbol_structure(sym1: Symbol, sym2: Symbol) -> bool:
    """Return True if two Symbols have the same operators in the same order, regardless of names and attributes.

    Example
    -------
    >>> x, y = mx.sym.var('x'), mx.sym.var('y')
    >>> mx.test_utils.same_symbol_structure(x + 1, y + 1)
    True
    """
    return all(a["op"] == b["op"] for a, b in zip(*(json.loads(s.tojson())["nodes"] for s in (sym1, sym2))))


class _FromDict(Initializer):
    def __init__(self, values):
        super().__init__()
        self._values = values

    def _init_weight(self, name, arr):
        arr[()] = self._values[name]


@util.use_np
def check_gluon_hybridize_consistency(net_builder: Callable[..., Block], data_l: Sequence[NDArray], numpy_func: Callable[..., Any] | None = None,
                                      test_grad: bool = True, rtol: float | None = 1e-4, atol: float | None = 1e-4) -> None:
    """Compare a block's outputs and gradients, with and without hybridization, and with and without recording.

    Parameters
    ----------
    net_builder : callable
        ``net_builder(prefix=...)`` makes the block; without a prefix, if it takes none.
    data_l : list of mx.np.ndarray
        Its inputs.
    numpy_func : callable, optional
        Computes the same output from numpy arrays.
    test_grad : bool
        Also compare the gradients of the inputs.
    rtol, atol : float

    Example
    -------
    >>> mx.test_utils.check_gluon_hybridize_consistency(lambda: mx.gluon.nn.Dense(2, in_units=3), [mx.nd.ones((1, 3))])
    """
    start = first_out = first_grads = None
    parameters = inspect.signature(net_builder).parameters.values()
    prefix = {"prefix": "net_"} if any(p.name == "prefix" or p.kind is p.VAR_KEYWORD for p in parameters) else {}
    for hybridize in (False, True):
        for record in (False, True) if test_grad else (False,):
            with naming.NameManager():  # the same names each time
                net = net_builder(**prefix)
            net.initialize(*([] if start is None else [_FromDict(start)]))
            if hybridize:
                net.hybridize()
            inputs = [x.copy() for x in data_l]
            if record:
                for x in inputs:
                    x.attach_grad()
                with autograd.record():
                    out = net(*inputs)
                out.backward(out)
            else:
                out = net(*inputs)
            if start is None:
                start = {p.name: p.data().asnumpy() for p in net.collect_params().values()}
                first_out = out.asnumpy()
            assert_almost_equal(out.asnumpy(), first_out, rtol=rtol, atol=atol)
            if record:
                grads = [x.grad.asnumpy() for x in inputs]
                first_grads = first_grads or grads
                for got, want in zip(grads, first_grads):
                    assert_almost_equal(got, want, rtol=rtol, atol=atol)
    if numpy_func is not None:
        assert_almost_equal(first_out, numpy_func(*[x.asnumpy() for x in data_l]), rtol=rtol, atol=atol)
