"""Writes array_oracle.npz: what MXNet 1.9.1 computes for each case of `array_cases.py`.

Run it with the Python of the oracle, from this folder, after a case was added: ``/opt/oracle/bin/python record_array_oracle.py``.
"""
import ctypes
import pathlib
import sys

import numpy as np
from mxnet._ctypes.ndarray import _imperative_invoke

import mxnet as mx
from mxnet.base import _LIB, OpHandle, c_str, check_call

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from array_cases import CASES, head_gradient  # noqa: E402


def handle(name):
    found = OpHandle()
    check_call(_LIB.NNGetOpHandle(c_str(name), ctypes.byref(found)))
    return found.value


def run(case):
    arrays = [mx.nd.array(i, dtype=i.dtype) for i in case["inputs"]]
    names, values = list(case["attributes"]), [str(v) for v in case["attributes"].values()]
    for i in case["grad"]:
        arrays[i].attach_grad()
    with mx.autograd.record() if case["grad"] else mx.autograd.pause():
        outputs = _imperative_invoke(handle(case["operator"]), arrays, names, values, None, False, False)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    if case["grad"]:
        mx.autograd.backward(outputs, [mx.nd.array(head_gradient(o.shape, o.dtype), dtype=o.dtype) for o in outputs])
    return [o.asnumpy() for o in outputs], [arrays[i].grad.asnumpy() for i in case["grad"]]


records = {}
for number, case in enumerate(CASES):
    outputs, gradients = run(case)
    records[f"{number}.operator"] = np.array(case["operator"])
    records.update({f"{number}.output{i}": o for i, o in enumerate(outputs)})
    records.update({f"{number}.gradient{i}": g for i, g in zip(case["grad"], gradients)})
np.savez_compressed(pathlib.Path(__file__).parent / "array_oracle.npz", **records)
print(f"{len(CASES)} cases, {len(records)} arrays")
