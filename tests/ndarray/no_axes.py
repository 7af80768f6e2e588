"""What is done with arrays without axes and without elements. `record_no_axes.py` does it with MXNet 1.9.1, `test_no_axes.py` here."""
import contextlib
import copy
import os
import pickle
import tempfile

import numpy as np

import mxnet as mx


def saved(data, save=mx.nd.save, load=mx.nd.load):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "arrays")
        save(path, data)
        return load(path)


def gradient(x):
    x.attach_grad()
    with mx.autograd.record():
        y = x * x
    y.backward()
    return x.grad


def stored(x):
    store = mx.kv.create("local")
    store.init("a", x)
    store.push("a", x)
    out = x.copy()
    store.pull("a", out=out)
    return out


def parameter(x):
    made = mx.gluon.Parameter("p", shape=x.shape)
    made.initialize(mx.init.One())
    made.set_data(x)
    return made.data()


def assigned(key, value=7):
    def write(x):
        x[key] = value(x) if callable(value) else value
        return x
    return write


ARRAYS = {
    "nd": lambda: mx.nd.array(5.0), "nd int32": lambda: mx.nd.array(5, dtype="int32"), "nd no rows": lambda: mx.nd.array(np.zeros((0, 3))),
    "np": lambda: mx.np.array(5.0), "np int32": lambda: mx.np.array(5, dtype="int32"), "np sum": lambda: mx.np.ones(3).sum(),
    "np no rows": lambda: mx.np.array(np.zeros((0, 3))), "np no columns": lambda: mx.np.zeros((2, 0)), "nd one": lambda: mx.nd.ones(1),
}
ACTS = {
    "itself": lambda x: x, "pickle": lambda x: pickle.loads(pickle.dumps(x)), "copy": copy.copy, "deepcopy": copy.deepcopy,
    "x.copy": lambda x: x.copy(),
    "nd.save": saved, "nd.save list": lambda x: saved([x, x]), "nd.save dict": lambda x: saved({"a": x}),
    "npx.save": lambda x: saved(x, mx.npx.save, mx.npx.load), "npx.save dict": lambda x: saved({"a": x}, mx.npx.save, mx.npx.load),
    "copyto": lambda x: x.copyto(mx.cpu(1)), "as_in_context": lambda x: x.as_in_context(mx.cpu(1)), "astype": lambda x: x.astype("float64"),
    "asnumpy": lambda x: x.asnumpy(), "asscalar": lambda x: float(x.asscalar()), "item": lambda x: x.item(), "bool": bool,
    "tolist": lambda x: x.tolist(),
    "float": lambda x: float(x) if isinstance(x, mx.np.ndarray) else None, "T": lambda x: x.T, "shape": lambda x: list(x.shape),
    "detach": lambda x: x.detach(),
    "as_nd_ndarray": lambda x: x.as_nd_ndarray(), "as_np_ndarray": lambda x: x.as_np_ndarray(),
    "dlpack": lambda x: mx.nd.from_dlpack(x.to_dlpack_for_read()), "x[()]": lambda x: x[()], "x[...]": lambda x: x[...], "x[None]": lambda x: x[None],
    "x[:]": lambda x: x[:], "x[:] = 7": assigned(slice(None)), "x[...] = 7": assigned(Ellipsis), "x[()] = 7": assigned(()),
    "x[...] = x * 2": assigned(Ellipsis, lambda x: x * 2), "x + x": lambda x: x + x, "1 + x": lambda x: 1 + x, "x == x": lambda x: x == x,
    "-x": lambda x: -x,
    "x ** 2": lambda x: x ** 2, "x / 2": lambda x: x / 2, "reshape 1": lambda x: x.reshape((1,)), "reshape -1": lambda x: x.reshape(-1),
    "reshape ()": lambda x: x.reshape(()), "flatten": lambda x: x.flatten(), "sum": lambda x: x.sum(), "sum axis": lambda x: x.sum(axis=0),
    "max": lambda x: x.max(), "argmax": lambda x: x.argmax(), "squeeze": lambda x: x.squeeze(), "gradient": gradient, "kvstore": stored,
    "set_data": parameter, "nd.array": mx.nd.array, "np.array": mx.np.array, "take": lambda x: mx.nd.take(mx.nd.arange(8), x),
    "np.take": lambda x: mx.np.take(mx.np.arange(8), x), "np.take clip": lambda x: mx.np.take(mx.np.arange(8), x, mode="clip"),
    "np.take wrap": lambda x: mx.np.take(mx.np.arange(8), x, mode="wrap"), "np index": lambda x: mx.np.arange(8)[x],
    "np.stack": lambda x: mx.np.stack([x, x]),
    "np.add": lambda x: mx.np.add(x, mx.np.ones(2)), "np.dot": lambda x: mx.np.dot(x, x), "nd.sin": mx.nd.sin, "np.sin": mx.np.sin,
    "DataLoader": lambda x: next(iter(mx.gluon.data.DataLoader([x, x], 2))), "eval": lambda x: mx.sym.Variable("a").eval(ctx=mx.cpu(), a=x)[0],
}
SCOPES = {"off": (), "np_shape": (mx.util.np_shape,), "np": (mx.util.np_shape, mx.util.np_array)}

# Functions of mx.np on arrays without axes and without elements, along an axis or all.
OPERANDS = {"scalar": lambda: mx.np.array(2.0), "integer": lambda: mx.np.array(1, dtype="int32"), "truth": lambda: mx.np.array(True, dtype="bool"),
            "empty": lambda: mx.np.zeros((0,)), "no rows": lambda: mx.np.zeros((0, 3))}
FUNCTIONS = """abs absolute add all amax amin any arccos arcsinh arctan arctan2 argmax argmin around array_split atleast_1d atleast_2d average
bitwise_and
broadcast_to cbrt ceil clip column_stack concatenate copysign cos cumsum degrees diag diff dot dstack einsum equal exp expand_dims expm1 fix flip
floor
full_like greater hstack hypot inner insert invert isfinite isnan lcm ldexp less log log1p logical_not max maximum mean min minimum mod moveaxis
multiply
negative nan_to_num nonzero ones_like outer pad power prod ravel reciprocal repeat reshape resize roll rot90 round sign sin sort split sqrt square
squeeze
stack std subtract sum swapaxes take tan tanh tensordot tile trace transpose tril true_divide trunc unique var vdot vstack where zeros_like""".split()
CALLS = {"f(x)": lambda f, x: f(x), "f(x, axis=0)": lambda f, x: f(x, axis=0), "f(x, axis=-1)": lambda f, x: f(x, axis=-1),
         "f(x, axis=1)": lambda f, x: f(x, axis=1), "f(x, keepdims=True)": lambda f, x: f(x, keepdims=True), "f([x, x])": lambda f, x: f([x, x]),
         "f(x, 2.5)": lambda f, x: f(x, 2.5), "f(x, 1)": lambda f, x: f(x, 1), "f(x, vector)": lambda f, x: f(x, mx.np.array([1.0, 2.0])),
         "f(vector, x)": lambda f, x: f(mx.np.array([1.0, 2.0]), x)}


def cases():
    """Names, each with a function without parameters."""
    for scope, settings in SCOPES.items():
        for array, make in ARRAYS.items():
            for act, apply in ACTS.items():
                yield f"{scope}: {array}: {act}", settings, lambda make=make, apply=apply: apply(make())
    for name in FUNCTIONS:
        for operand, make in OPERANDS.items():
            for call, apply in CALLS.items():
                yield f"np.{name}: {operand}: {call}", SCOPES["np"], lambda name=name, make=make, apply=apply: apply(getattr(mx.np, name), make())


def described(result):
    """Class, type, shape and values of an array, of those in a list or dict, or a value of Python's."""
    if isinstance(result, (list, tuple)):
        return [described(r) for r in result]
    if isinstance(result, dict):
        return {k: described(v) for k, v in result.items()}
    if isinstance(result, np.ndarray):
        return ["numpy", result.dtype.name, list(result.shape), result.tolist()]
    if isinstance(result, mx.nd.NDArray):
        return [type(result).__name__, np.dtype(result.dtype).name, list(result.shape), np.round(result.asnumpy().astype("f8"), 4).tolist()]
    return result if isinstance(result, (bool, int, float, str, type(None))) else type(result).__name__


def outcome(settings, run):
    with contextlib.ExitStack() as stack:
        for setting in settings:
            stack.enter_context(setting(True))
        return described(run())
