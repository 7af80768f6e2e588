"""One case of `differential.py`, run by whichever mxnet is importable: the tool imports this with Remex, and starts it with MXNet 1.9.1.

As a program it reads cases from standard input and writes what came of each to standard output, until the input ends. It must run on
the old Python and NumPy of MXNet 1.9.1.
"""
import contextlib
import os
import pickle
import struct
import sys
import warnings

import numpy as np

LARGEST = 1 << 20  # numbers in a result that is still compared


def pack(array):
    """An array in a form that every NumPy reads."""
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    if array.dtype.itemsize == 2 and array.dtype.kind == "V":  # bfloat16, which NumPy doesn't know
        array = (array.view("uint16").astype("uint32") << 16).view("float32")
    return array.dtype.name, array.shape, array.tobytes()


def unpack(packed):
    dtype, shape, content = packed
    return np.frombuffer(content, dtype).reshape(shape)


def one_line(error):
    """Return an error's message, without the location in MXNet's sources."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    lines = [line for line in lines if line and not line.startswith(("Traceback", "File "))]
    return " ".join(lines)[:300]


def head_gradient(shape, dtype):
    """The incoming gradient: different numbers without order."""
    if np.dtype(dtype).kind in "iu":
        return (np.arange(int(np.prod(shape))) * 271 % 7 + 1).astype(dtype).reshape(shape)
    return (((np.arange(int(np.prod(shape))) * 271 + 7) % 499) / 250.0 - 1).astype(dtype).reshape(shape)


def evaluate(mx, invoke, case, seed=1):
    """Outputs, gradients and changed inputs of a case, or the error that it raised.

    Parameters
    ----------
    mx : module
    invoke : callable
        ``invoke(operator name, arrays, attributes as strings, out, numpy)`` returns a list of arrays.
    case : dict
        `operator`, `inputs` (packed), `attributes`, `gradient` (positions), `grad_req`, `training`; `out`: the positions of the inputs
        that receive the results, or None; `semantics`: ``"legacy"``, ``"np_shape"`` (sizes of 0 and no axes are what they say), or
        ``"numpy"`` (arrays of ``mx.np`` besides); `bfloat16`: whether float32 inputs are converted.
    """
    try:
        with warnings.catch_warnings(), contextlib.ExitStack() as stack:
            warnings.simplefilter("ignore")
            if case["semantics"] != "legacy":
                stack.enter_context(mx.util.np_shape(True))
            if case["semantics"] == "numpy":
                stack.enter_context(mx.util.np_array(True))
            return _evaluate(mx, invoke, case, seed)
    except Exception as error:
        return {"error": type(error).__name__, "kinds": [c.__name__ for c in type(error).__mro__], "message": one_line(error)}


def _evaluate(mx, invoke, case, seed):
    mx.random.seed(seed)
    numpy = case["semantics"] == "numpy"
    make = mx.np.array if numpy else mx.nd.array
    given = [unpack(p) for p in case["inputs"]]
    arrays = [make(a, dtype=a.dtype) for a in given]
    if case["bfloat16"]:
        arrays = [invoke("Cast", [a], {"dtype": "bfloat16"}, None, numpy)[0] if g.dtype == "float32" else a for a, g in zip(arrays, given)]
        given = [unpack(pack(a.asnumpy())) for a in arrays]
    for i in case["gradient"]:
        arrays[i].attach_grad(case["grad_req"])
        if case["grad_req"] == "add":
            arrays[i].grad[:] = 1
    out = None if case["out"] is None else [arrays[i] for i in case["out"]]
    with contextlib.ExitStack() as stack:
        if case["gradient"]:
            stack.enter_context(mx.autograd.record(train_mode=case["training"]))
        else:
            stack.enter_context(mx.autograd.train_mode() if case["training"] else mx.autograd.predict_mode())
        outputs = invoke(case["operator"], arrays, case["attributes"], out, numpy)
    result = {"outputs": [], "gradients": {}, "inputs": {}}
    for output in outputs:
        if output.size > LARGEST:
            raise OverflowError("the result is too large to be compared")
        result["outputs"].append(pack(output.asnumpy()))
    for i, (array, before) in enumerate(zip(arrays, given)):
        if not case["gradient"]:
            after = unpack(pack(array.asnumpy()))
            if not np.array_equal(after, before, equal_nan=after.dtype.kind == "f"):
                result["inputs"][i] = pack(after)
    if case["gradient"]:
        try:
            mx.autograd.backward(outputs, [make(head_gradient(o.shape, o.dtype), dtype=o.dtype) for o in outputs], train_mode=case["training"])
            result["gradients"] = {i: pack(arrays[i].grad.asnumpy()) for i in case["gradient"]}
        except mx.base.MXNetError as error:
            result["gradients"] = {"error": one_line(error)}
    return result


def _mxnet_invoke():
    """Call any operator of MXNet 1.9.1 by its name."""
    import ctypes

    from mxnet._ctypes.ndarray import _imperative_invoke

    from mxnet.base import _LIB, OpHandle, c_str, check_call
    handles = {}

    def invoke(name, arrays, attributes, out, numpy):
        if name not in handles:
            handle = OpHandle()
            check_call(_LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)))
            handles[name] = handle.value
        outputs = _imperative_invoke(handles[name], arrays, list(attributes), list(attributes.values()), out, numpy, False)
        return outputs if isinstance(outputs, list) else [outputs]
    return invoke


def main():
    # MXNet prints to standard output, too: that goes to the errors, and the answers keep the pipe.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    import mxnet as mx
    invoke = _mxnet_invoke()
    while True:
        size = sys.stdin.buffer.read(8)
        if not size:
            return
        case = pickle.loads(sys.stdin.buffer.read(struct.unpack("<q", size)[0]))
        answer = pickle.dumps(evaluate(mx, invoke, case), protocol=4)
        answers.write(struct.pack("<q", len(answer)) + answer)
        answers.flush()


if __name__ == "__main__":
    main()
