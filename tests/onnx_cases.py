"""ONNX's own tests, which come with the package onnx, run by the importer: those of single operators, and of whole models in files."""
import collections
import fnmatch
import gc
import glob
import json
import os
import pathlib
import warnings
from typing import NamedTuple

import numpy as np
import onnx
from onnx.backend.test import loader

import mxnet as mx
from mxnet.contrib.onnx.onnx2mx.import_onnx import GraphProto
from onnx_checks import run as by_runtime
from onnx_networks import NETWORKS

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "real")
NUMBERS = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split())
_BFLOAT16 = 2 ** -6  # the tolerance of ONNX's own runner: two units in the last place


def cases(kind):
    """The tests of a kind whose inputs and outputs are tensors of numbers, in the order of their names: onnx.backend.test.case.test_case.TestCase."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the references overflow on purpose
        found = [case if kind == "node" else _in_files(case) for case in loader.load_model_tests(kind=kind)]
    return sorted(filter(_numeric, found), key=lambda case: case.name)


def _numeric(case):
    infos = [*case.model.graph.input, *case.model.graph.output]
    arrays = [array for inputs, outputs in case.data_sets for array in [*inputs, *outputs]]
    return all(info.type.WhichOneof("value") == "tensor_type" for info in infos) and all(
        isinstance(array, (np.ndarray, np.generic)) and array.dtype.name in NUMBERS for array in arrays)


def _in_files(case):
    """A test with its model and data read. Models of kind "real" have constant weights here, and what they compute stands beside them."""
    if case.model_dir is None:
        from onnx.backend.test.runner import Runner
        path = pathlib.Path(loader.DATA_DIR, "light", pathlib.PurePosixPath(case.url).name)
        case.model = onnx.load(path)
        known = {tensor.name for tensor in case.model.graph.initializer}
        inputs = [Runner.generate_dummy_data(info, seed=0, name=case.model_name, random=False) for info in case.model.graph.input
                  if info.name not in known]
        case.data_sets = [(inputs, [_array(f"{path.with_suffix('')}_output_0.pb")])]
        return case
    case.model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
    case.data_sets = [tuple([_array(os.path.join(folder, f"{what}_{i}.pb")) for i in range(len(glob.glob(os.path.join(folder, f"{what}_*.pb"))))]
                            for what in ("input", "output")) for folder in sorted(glob.glob(os.path.join(case.model_dir, "test_data_set*")))]
    return case


def _array(path):
    """The array in a file; None where it holds a sequence or an optional value."""
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(pathlib.Path(path).read_bytes())
        return onnx.numpy_helper.to_array(tensor)
    except Exception:
        return None


def computed(model, inputs, folder=None):
    """Import a model and run it.

    Parameters
    ----------
    model : onnx.ModelProto
    inputs : list of numpy.ndarray
        In the order of the file.
    folder : str, optional
        Where its external data are.

    Returns
    -------
    list of numpy.ndarray
    """
    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    with mx.np_shape():
        out, args, auxs = GraphProto(folder, model.functions).from_onnx(model.graph, opset)
        known = {tensor.name for tensor in model.graph.initializer}
        names = [value.name for value in model.graph.input if value.name not in known]
        used = set(out.list_arguments())
        given = {name: mx.nd.array(array, dtype=array.dtype) for name, array in zip(names, map(np.asarray, inputs)) if name in used}
        executor = out.bind(mx.cpu(), {**given, **args}, aux_states=auxs, grad_req="null")
        return [output.asnumpy() for output in executor.forward(is_train=False)]


def difference(found, expected, rtol=1e-3, atol=1e-7):
    """What differs between two lists of arrays, in a few words; None if nothing does. The tolerances are those of ONNX's own runner."""
    if len(found) != len(expected):
        return f"{len(found)} outputs, expected {len(expected)}"
    for a, b in zip(found, map(np.asarray, expected)):
        if a.shape != b.shape:
            return f"shape {a.shape}, expected {b.shape}"
        tolerance = rtol
        if b.dtype.name == "bfloat16" and a.dtype.names == ("bfloat16",):
            a, b, tolerance = a.view(b.dtype).astype("float32"), b.astype("float32"), _BFLOAT16
        if a.dtype != b.dtype:
            return f"type {a.dtype}, expected {b.dtype}"
        if not (np.allclose(a, b, tolerance, atol, equal_nan=True) if a.dtype.kind == "f" else np.array_equal(a, b)):
            return "other values"
    return None


def failure(case):
    """Why a test fails; None if it passes."""
    for inputs, outputs in case.data_sets:
        try:
            found = computed(case.model, inputs, case.model_dir)
        except Exception as error:  # whatever it is, it is a failure to be counted
            return f"{type(error).__name__}: {error}"
        reason = difference(found, outputs, case.rtol, case.atol)
        if reason is not None:
            return reason
    return None


# What is known not to pass, by name, with the reason.
_DRAWN = "the reference draws random numbers with NumPy's generator; ours are others"
KNOWN = {
    "test_bernoulli*": _DRAWN,
    "test_training_dropout": _DRAWN,
    "test_training_dropout_default": _DRAWN,
    "test_training_dropout_mask": _DRAWN,
    "test_training_dropout_default_mask": _DRAWN,
    "test_dft_inverse*": "the reference is a transform in float32, whose rounding (2e-7) stands where ours, in float64, has 3e-15",
    "test_roialign_mode_max": "the largest of weighted pixels, which is no pooling of anything that MXNet's operators give",
    "test_scan_sum": "opset 8's Scan, over batches of sequences with lengths; opset 9 replaced it in 2019",
    "test_attention_4d_causal_fp16*": "one number of many differs by one unit in the last place of float16, which is 1.0005e-3 of it",
    "test_quantizelinear_uint16": "arrays of uint16 are computed as int32, which has another range",
    "test_bitcast_uint16_to_int16": "arrays of uint16 are computed as int32, which has other bits",
    "test_bitcast_uint32_to_int32": "arrays of uint32 are computed as int64, which has other bits",
    "test_ai_onnx_ml_tree_ensemble_*": "trees of decisions: another domain than ONNX's own",
    "test_gradient_of_add*": "an operator that differentiates a graph: mx.autograd does",
}


def known_failure(name):
    """Why a test is known not to pass; None if it is not."""
    return next((reason for pattern, reason in KNOWN.items() if fnmatch.fnmatchcase(name, pattern)), None)


def networks():
    """The names of the networks of Gluon's zoo, and of those of `onnx_networks`."""
    from mxnet.gluon.model_zoo.vision import _models
    return [*sorted(_models), *NETWORKS]


def _network(name):
    """A network, and inputs for it."""
    rng = np.random.default_rng(1)
    if name in NETWORKS:
        make, inputs = NETWORKS[name]
        return make(), inputs(rng)
    size = 299 if "inception" in name else 64 if name.startswith(("resnet", "mobilenet")) else 224
    return mx.gluon.model_zoo.vision.get_model(name, classes=10), [rng.uniform(-1, 1, (1, 3, size, size)).astype(np.float32)]


class Trip(NamedTuple):
    """How a network came back that was written as an ONNX file and read.

    Attributes
    ----------
    difference, by_runtime : float
        The largest difference of the outputs, in parts of their largest number, as they are computed here, and by ONNX Runtime.
    operators : (list of str, list of str)
        Of the network that was written and the one read, without those that ONNX's graphs have no counterpart for.
    changed : str or None
        The first difference between the file and the file of what was read from it, see `changed`; None if they hold the same graph.
    """

    difference: float
    by_runtime: float
    operators: tuple
    changed: str | None


def round_trip(name, folder, opset=None):
    """Write a network of `networks` as an ONNX file, read it back, and write it again; returns a `Trip`."""
    mx.random.seed(1)
    net, inputs = _network(name)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    arrays = [mx.nd.array(values, dtype=values.dtype) for values in inputs]
    expected = _listed(net(*arrays))
    net.export(str(folder / "net"))
    del net  # weights are hundreds of megabytes: not more than one copy of them at a time
    path, again = str(folder / "net.onnx"), str(folder / "back.onnx")
    _write(folder / "net", inputs, path, opset)
    named = dict(zip([value.name for value in onnx.load(path).graph.input], inputs))
    _trim()
    runtime = by_runtime(path, named)
    _trim()
    back = mx.contrib.onnx.import_to_gluon(path)
    found = _listed(back(*arrays))
    back.hybridize()
    back(*arrays)
    back.export(str(folder / "back"))
    del back
    _write(folder / "back", named, again, opset)
    _trim()
    symbols = [mx.sym.load(f"{folder}/{prefix}-symbol.json") for prefix in ("net", "back")]
    trip = Trip(_apart(found, expected), _apart(runtime, expected), tuple(map(_operators, symbols)), changed(onnx.load(path), onnx.load(again)))
    _trim()
    return trip


def _trim():
    """Give free memory back to the system: it would be kept for the next network."""
    gc.collect()
    mx.memory.trim()


def changed(first, second):
    """Return the first difference of two models' graphs, in a few words; None if they are the same but for names.

    Values are followed from the outputs: the same operators with the same attributes on the same values, the same constants and parameters, and
    inputs of the same names.
    """
    graphs = [_Lookup(model.graph) for model in (first, second)]
    pairs = list(zip(*([info.name for info in graph.outputs] for graph in graphs)))
    if len(graphs[0].outputs) != len(graphs[1].outputs):
        return f"{len(graphs[0].outputs)} outputs, then {len(graphs[1].outputs)}"
    same = {}
    while pairs:
        pair = pairs.pop()
        if same.setdefault(pair[0], pair[1]) != pair[1]:
            return f"{pair[0]!r} is {same[pair[0]]!r} and {pair[1]!r}"
        nodes = [graph.makers.get(name) for graph, name in zip(graphs, pair)]
        if None in nodes:
            if nodes != [None, None] or not _same_value(*(graph.arrays.get(name, name) for graph, name in zip(graphs, pair))):
                return f"{pair[0]!r} and {pair[1]!r}: {[node and node.op_type for node in nodes]}"
            continue
        described = [(node.op_type, node.domain, list(node.output).index(name), len(node.input), _attributes(node))
                     for node, name in zip(nodes, pair)]
        if described[0] != described[1]:
            return f"{pair[0]!r} is {described[0]}, then {described[1]}"
        fresh = [inputs for inputs in zip(nodes[0].input, nodes[1].input) if same.get(inputs[0]) != inputs[1]]
        pairs += fresh
    counts = [collections.Counter(node.op_type for node in graph.nodes) for graph in graphs]
    return None if counts[0] == counts[1] else f"nodes that nothing follows from: {counts[0] - counts[1]}, {counts[1] - counts[0]}"


class _Lookup:
    def __init__(self, graph):
        self.nodes, self.outputs = graph.node, graph.output
        self.makers = {name: node for node in graph.node for name in node.output if name}
        self.arrays = {tensor.name: tensor for tensor in graph.initializer}


def _same_value(a, b):
    """Compare inputs by their names, and constants by what they hold."""
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return (a.data_type, a.dims[:]) == (b.data_type, b.dims[:]) and (a.raw_data or onnx.numpy_helper.to_array(a).tobytes()) == (
        b.raw_data or onnx.numpy_helper.to_array(b).tobytes())


def _attributes(node):
    return sorted((attribute.name, attribute.SerializeToString(deterministic=True)) for attribute in node.attribute)


def _listed(outputs):
    return [out.asnumpy() for out in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]


def _write(prefix, inputs, path, opset):
    """Write a network for inputs by name; where they have none, in the order of the network's own."""
    sym = mx.sym.load(f"{prefix}-symbol.json")
    if isinstance(inputs, dict):
        inputs = [inputs[name] for name in sym.list_inputs() if name in inputs]
    mx.onnx.export_model(f"{prefix}-symbol.json", f"{prefix}-0000.params", [v.shape for v in inputs], [v.dtype for v in inputs], path, check=False,
                         opset_version=opset)


def _apart(found, expected):
    return max(float(np.abs(a.astype(float) - b).max() / max(np.abs(b).max(), 1e-9)) for a, b in zip(found, expected, strict=True))


def _operators(sym):
    """The operators of a network in the order of the alphabet, without those that have no counterpart in ONNX's graphs."""
    nodes = json.loads(sym.tojson())["nodes"]
    names = (node["attrs"]["act_type"] if node["op"] == "Activation" else node["op"] for node in nodes)
    left_out = ("null", "Dropout", "_copy", "Flatten")
    return sorted({"elemwise_add": "broadcast_add"}.get(name, name) for name in names if name not in left_out)
