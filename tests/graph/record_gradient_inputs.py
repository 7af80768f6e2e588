"""Asks MXNet 1.9.1 what the gradient of each operator reads: ``/opt/oracle/bin/python tests/graph/record_gradient_inputs.py``.

It writes ``src/mxnet/graph/runtime/monitored.json``: from a description (see `mxnet.graph.runtime.monitoring.entries`) to the operators that it
holds for. A process that MXNet crashes or hangs is replaced; operators of its oldest kind hang whenever a monitor is set, and are written by hand
below.
"""
import collections
import ctypes
import json
import os
import pathlib
import pickle
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG = ROOT / "build" / "gradient_inputs.pkl"
SECONDS = 12
# By hand: those that hang, and those whose description depends on attributes or on how many inputs there are.
BY_HAND = {"Activation[act_type=relu]": "g0 o0", "Activation": "g0 o0 i0", "Concat": "g0 i*", "_rnn_param_concat": "g0 i*", "_split_v2": "g*",
           "SliceChannel": "g*", "SwapAxis": "g0", "Pad": "g0", "pick": "g0 i1 -> 0", "where": "g0 i0 -> 1 2", "batch_dot": "g0 i0 i1",
           "BatchNorm": "g0 o1 o2 i0 i1 i2 i3 i4", "LinearRegressionOutput": "i1 o0", "LogisticRegressionOutput": "i1 o0",
           "MAERegressionOutput": "i1 o0"}


def description(operator, inputs, attributes):
    """Return what the gradient of one call reads, in words; None where it has none, or several parts."""
    import numpy as np

    import mxnet as mx
    names = [f"in{i}" for i in range(len(inputs))]
    nodes = [{"op": "null", "name": n, "inputs": []} for n in names]
    nodes.append({"op": operator, "name": "node", "inputs": [[i, 0, 0] for i in range(len(names))], "attrs": attributes})
    net = mx.sym.load_json(json.dumps({"nodes": nodes, "arg_nodes": list(range(len(names))), "node_row_ptr": list(range(len(nodes) + 1)),
                                       "heads": [[len(names), 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}))
    arrays = {n: mx.nd.array(a, dtype=a.dtype) for n, a in zip(names, inputs)}
    states = {n: arrays.pop(n) for n in net.list_auxiliary_states()}
    gradients = {n: mx.nd.zeros(a.shape, dtype=a.dtype) for n, a in arrays.items() if np.dtype(a.dtype).kind == "f"}
    executor = net.bind(mx.cpu(), arrays, gradients, {n: "write" if n in gradients else "null" for n in arrays}, states)
    seen = []

    def callback(name, array):
        array = mx.nd.NDArray(ctypes.cast(array, mx.base.NDArrayHandle), writable=False)
        seen.append((name.decode(), array.asnumpy().copy()))

    executor.set_monitor_callback(callback, True)
    executor.forward(is_train=True)
    forward = [(n, v) for n, v in seen if n.startswith("node_")][len(inputs):]
    seen.clear()
    random = np.random.RandomState(3)
    heads = [mx.nd.array(random.uniform(0.5, 2, o.shape), dtype=o.dtype) for o in executor.outputs]
    executor.backward(heads)
    known = [(f"g{i}", h.asnumpy()) for i, h in enumerate(heads)] + [(f"i{i}", a) for i, a in enumerate(inputs)]
    known += [(f"o{i}", v) for i, (_, v) in enumerate(forward)]
    told = [(n, v) for n, v in seen if not n.startswith(("_head", "zeros_without")) and not (n.startswith("in") and n[2:].isdigit())]
    if not told:
        return "-" if seen else None  # handed on as it is, or not differentiable
    if any(not n.startswith("node_backward_") for n, _ in told):
        return None
    words, unknown = [], 1
    for name, value in told:
        suffix = name[len("node_backward_"):]
        if suffix in [f"output{k}" for k in range(9)] or suffix == "output" and name == told[-1][0] and value is told[-1][1]:
            continue
        source = next((k for k, v in known if v.shape == value.shape and v.dtype == value.dtype and np.array_equal(v, value)), "?")
        if source == "?" and words and words[-1].rpartition("=")[2].startswith("g"):  # the gradient of another output
            source, unknown = f"g{unknown}", unknown + 1
        words.append(source if suffix == f"input{len(words)}" else f"{suffix}={source}")
    return " ".join(words)


def ask(operators):
    """In the oracle's process: note an answer for each."""
    sys.path.insert(0, str(ROOT / "tests" / "ops"))
    from records import RECORDS
    with LOG.open("ab") as log:
        for operator in operators:
            pickle.dump((operator, None), log)
            log.flush()
            sample = RECORDS[operator][0]
            try:
                answer = description(operator, sample.inputs, {k: str(v) for k, v in sample.attributes.items()})
            except Exception:  # not differentiable, or not to be bound
                answer = None
            pickle.dump((operator, answer), log)
            log.flush()


def answers():
    found = {}
    with LOG.open("rb") as log:
        while True:
            try:
                found.update([pickle.load(log)])
            except (EOFError, pickle.UnpicklingError):
                return found


def main():
    sys.path.insert(0, str(ROOT / "tests" / "ops"))
    from records import EXEMPT, RECORDS
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_bytes(b"")
    while todo := [n for n in RECORDS if n not in EXEMPT and n not in BY_HAND and n not in answers()]:
        process = subprocess.Popen([sys.executable, __file__, json.dumps(todo)], env={**os.environ, "MXNET_SUBGRAPH_BACKEND": "NONE"})
        size, since = -1, time.monotonic() + 60
        while process.poll() is None and time.monotonic() < since + SECONDS:
            time.sleep(0.5)
            if LOG.stat().st_size != size:
                size, since = LOG.stat().st_size, time.monotonic()
        process.kill()
        process.wait()
    table = collections.defaultdict(list)
    for operator, words in {**answers(), **BY_HAND}.items():
        if words:
            table[words].append(operator)
    lines = [f"{json.dumps(words)}: {json.dumps(' '.join(sorted(table[words])))}" for words in sorted(table)]
    (ROOT / "src" / "mxnet" / "graph" / "monitored.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ask(json.loads(sys.argv[1]))
    else:
        main()
