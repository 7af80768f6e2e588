"""Writes inference_oracle.jsonl.gz: what MXNet 1.9.1 infers of shapes and types where some are not given.

Run it with the Python of the oracle, from this folder, after a sample was added to `tests/ops/records.py`: ``/opt/oracle/bin/python
record_inference.py``. Each line is a case, which `ask` answers on any MXNet, and its answer.
"""
import gzip
import json
import pathlib
import sys
import warnings

import numpy as np

import mxnet as mx

FILE = pathlib.Path(__file__).parent / "inference_oracle.jsonl.gz"
SAMPLES = 2  # of each operator


def ask(operator, attributes, count, numpy, kind, given):
    """The shapes (or types) of arguments, outputs and auxiliary states, or None if MXNet refuses.

    `given` has a shape (or type) for each of the `count` inputs, or None. With `numpy` unknown sizes are -1, otherwise 0.
    """
    nodes = [{"op": "null", "name": f"in{i}", "inputs": []} for i in range(count)]
    nodes.append({"op": operator, "name": "node", "attrs": attributes, "inputs": [[i, 0, 0] for i in range(count)]})
    graph = {"nodes": nodes, "arg_nodes": list(range(count)), "heads": [[count, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}
    known = {f"in{i}": tuple(g) if isinstance(g, list) else g for i, g in enumerate(given) if g is not None}
    try:
        with mx.util.np_shape(numpy), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            symbol = mx.sym.load_json(json.dumps(graph))
            groups = symbol.infer_shape_partial(**known) if kind == "shape" else symbol.infer_type_partial(**known)
    except mx.base.MXNetError:
        return None
    return [[None if s is None else list(s) if kind == "shape" else np.dtype(s).name for s in g] for g in groups]


def cases_of(operator, sample):
    """The arguments of `ask` for a sample of the records."""
    attributes, numpy = {k: str(v) for k, v in sample.attributes.items()}, operator.startswith("_np")
    count, unknown = len(sample.inputs), -1 if operator.startswith("_np") else 0
    shapes, types = [list(a.shape) for a in sample.inputs], [a.dtype.name for a in sample.inputs]
    for i in range(count):
        one_unknown = [[unknown if k == axis else s for k, s in enumerate(shapes[i])] for axis in range(len(shapes[i]))]
        for shape in [None, [unknown] * len(shapes[i]), *one_unknown]:
            yield operator, attributes, count, numpy, "shape", [*shapes[:i], shape, *shapes[i + 1:]]
        yield operator, attributes, count, numpy, "shape", [s if k == i else None for k, s in enumerate(shapes)]
    for dtype in ("float32", "float16"):
        converted = [dtype if t == "float32" else t for t in types]
        for i in range(count):
            yield operator, attributes, count, numpy, "type", [None if k == i else t for k, t in enumerate(converted)]
            yield operator, attributes, count, numpy, "type", [t if k == i else None for k, t in enumerate(converted)]


def main():
    sys.path.insert(0, str(FILE.parent.parent / "ops"))
    from records import RECORDS
    lines = {}
    for operator in sorted(set(RECORDS) - {"reset_arrays"}):  # which has no outputs: MXNet crashes at such a graph
        for sample in RECORDS[operator][:SAMPLES]:
            for case in cases_of(operator, sample):
                lines.setdefault(json.dumps(case), None)
    text = "".join(f"[{case}, {json.dumps(ask(*json.loads(case)))}]\n" for case in lines)
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{len(lines)} cases")


if __name__ == "__main__":
    main()
