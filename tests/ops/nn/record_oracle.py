"""Writes oracle.json: what MXNet 1.9.1 computes for each case of `oracle_cases.py`.

Run it with the Python of the oracle, from this folder, after a case was added: ``/opt/oracle/bin/python record_oracle.py``.
"""
import json
import pathlib
import sys

import numpy as np

import mxnet as mx

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from oracle_cases import CASES, head_gradient, values  # noqa: E402


def function(name):
    for namespace in (mx.nd, mx.nd._internal, mx.nd.contrib):
        found = getattr(namespace, name.replace("_contrib_", "") if namespace is mx.nd.contrib else name, None)
        if found is not None:
            return found
    raise LookupError(name)


def rounded(array):
    """Six digits of each number, and what else a comparison needs."""
    numbers = [float(f"{v:.6g}") for v in array.astype("float64").ravel()]
    return {"shape": list(array.shape), "dtype": array.dtype.name, "values": numbers}


def as_aux(name):
    """How many inputs at the end are auxiliary states in a Symbol only."""
    return {"IdentityAttachKLSparseReg": 1, "BatchNorm_v1": 2}.get(name, 0)


def record(name, inputs, attributes, train):
    arrays = [mx.nd.array(values(spec, i), dtype=values(spec, i).dtype) for i, spec in enumerate(inputs)]
    for i, (a, spec) in enumerate(zip(arrays, inputs)):
        plain_numbers = isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], list)
        if a.dtype in (np.float16, np.float32, np.float64) and not (plain_numbers and i):
            a.attach_grad()
    if as_aux(name):
        symbol = getattr(mx.sym, name)(mx.sym.Variable("data"), name="layer", **attributes)
        arguments = arrays[:-as_aux(name)]
        executor = symbol.bind(mx.cpu(), arguments, [a.grad for a in arguments], aux_states=arrays[-as_aux(name):])
        outputs = executor.forward(is_train=train)
        if train:
            heads = [mx.nd.array(head_gradient(outputs[0].shape, "float32")), *(mx.nd.zeros_like(o) for o in outputs[1:])]
            executor.backward(heads)
    else:
        with mx.autograd.record(train_mode=train):
            outputs = function(name)(*arrays, **attributes)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        head = mx.nd.array(head_gradient(outputs[0].shape, outputs[0].dtype), dtype=outputs[0].dtype)
        mx.autograd.backward([outputs[0]], [head], train_mode=train)
    gradients = [None if a.grad is None or as_aux(name) and (not train or i >= len(arguments)) else rounded(a.grad.asnumpy())
                 for i, a in enumerate(arrays)]
    return {"operator": name, "outputs": [rounded(o.asnumpy()) for o in outputs], "gradients": gradients,
            "inputs_after": [rounded(a.asnumpy()) for a in arrays[1:]] if "Norm" in name or as_aux(name) else None}


if __name__ == "__main__":
    records = []
    for case in CASES:
        try:
            records.append(record(*case))
        except mx.MXNetError as error:
            raise SystemExit(f"{case}: {error}") from error
    with open("oracle.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in records) + "\n]\n")
    print(f"{len(records)} cases recorded")
