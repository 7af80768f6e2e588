"""Targets for the reader of ONNX files: models of a few nodes, with their bytes changed, or the model that they stand for."""
import base64

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import mxnet as mx

from .making import file, target


def _model(nodes, inputs, constants, opset=17):
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    arrays = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_empty_tensor_value_info("y")], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString()


def _models():
    node, ones = helper.make_node, np.ones
    layers = [node("Conv", ["x", "w"], ["a"], strides=[2, 2], pads=[1, 1, 1, 1]), node("Relu", ["a"], ["b"]),
              node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2]), node("Flatten", ["c"], ["d"]), node("Gemm", ["d", "v"], ["e"], transB=1),
              node("Softmax", ["e"], ["y"], axis=1)]
    shapes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]), node("Concat", ["n", "minus"], ["t"], axis=0),
              node("Reshape", ["x", "t"], ["r"]), node("Slice", ["r", "zero", "two", "one"], ["p"]), node("Tile", ["p", "times"], ["y"])]
    recurrent = [node("LSTM", ["x", "w", "r"], ["a"], hidden_size=2), node("Squeeze", ["a", "one"], ["b"]),
                 node("Resize", ["b", "", "s"], ["y"], mode="linear")]
    return [_model(layers, {"x": (1, 2, 8, 8)}, {"w": ones((3, 2, 3, 3), "f"), "v": ones((2, 27), "f")}),
            _model(shapes, {"x": ("n", 3, 4)}, {"zero": np.array([0]), "one": np.array([1]), "two": np.array([2]), "minus": np.array([-1]),
                                                "times": np.array([1, 3])}),
            _model(recurrent, {"x": (3, 2, 4)}, {"w": ones((1, 8, 4), "f"), "r": ones((1, 8, 2), "f"), "one": np.array([1]),
                                                 "s": np.float32([1, 1, 2])})]


def _graph(name, nodes, inputs, outputs):
    kinds = {"i": TensorProto.INT64, "c": TensorProto.BOOL, "d": TensorProto.BOOL}
    return helper.make_graph(nodes, name, *([helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), None) for n in names.split()]
                                            for names in (inputs, outputs)))


def _models_of_parts():
    """Models with graphs in them, sequences, functions, and operators whose arguments are arrays."""
    node, ones = helper.make_node, np.ones
    body = _graph("body", [node("Add", ["v", "x"], ["w"]), node("Identity", ["c"], ["d"]), node("Mul", ["w", "w"], ["r"])], "i c v", "d w r")
    step = _graph("step", [node("Add", ["v", "p"], ["w"]), node("Relu", ["w"], ["r"])], "v p", "w r")
    branches = {key: _graph(key, [node(operator, ["x"], ["z"])], "", "z") for key, operator in (("then_branch", "Abs"), ("else_branch", "Neg"))}
    loops = [node("Loop", ["n", "", "x"], ["a", "b"], body=body), node("Scan", ["a", "b"], ["e", "f"], body=step, num_scan_inputs=1),
             node("ReduceSum", ["f"], ["g"], keepdims=0), node("Greater", ["g", "t"], ["h"]),
             node("If", ["h"], ["y"], **branches)]
    each = _graph("each", [node("Neg", ["p"], ["q"])], "p", "q")
    sequences = [node("SplitToSequence", ["x", "s"], ["a"], axis=1), node("SequenceMap", ["a"], ["b"], body=each),
                 node("SequenceInsert", ["b", "x", "z"], ["c"]), node("ConcatFromSequence", ["c"], ["e"], axis=1),
                 node("Unique", ["e"], ["f", "", "g"], sorted=0), node("TopK", ["f", "s"], ["y", ""])]
    small = [node("QuantizeLinear", ["x", "t", "u"], ["a"]),
             node("QLinearConv", ["a", "t", "u", "w", "t", "u", "t", "u"], ["b"], pads=[1, 1, 1, 1]),
             node("DequantizeLinear", ["b", "t", "u"], ["c"]), node("ScatterND", ["c", "p", "q"], ["d"], reduction="max"),
             node("MaxPool", ["d"], ["e", "f"], kernel_shape=[2, 2]), node("MaxUnpool", ["e", "f"], ["y"], kernel_shape=[2, 2])]
    signals = [node("HannWindow", ["n"], ["a"]), node("STFT", ["x", "n", "a"], ["b"]), node("DFT", ["b", "n", "z"], ["c"]),
               node("CenterCropPad", ["c", "m"], ["d"]), node("CumSum", ["d", "z"], ["e"]), node("Tile", ["e", "m"], ["y"])]
    functions = [node("Attention", ["x", "x", "x"], ["a"], is_causal=1), node("RotaryEmbedding", ["a", "c", "c"], ["b"]),
                 node("GroupNormalization", ["b", "g", "g"], ["c2"], num_groups=1), node("MeanVarianceNormalization", ["c2"], ["y"])]
    numbers = {"n": np.array(3), "t": np.float32(0.5), "z": np.array(0), "s": np.array(2)}
    return [_model(loops, {"x": (2, 3)}, {k: numbers[k] for k in "nt"}), _model(sequences, {"x": (2, 4)}, {k: numbers[k] for k in "sz"}),
            _model(small, {"x": (1, 2, 4, 4)}, {"t": numbers["t"], "u": np.uint8(3), "w": ones((2, 2, 3, 3), "uint8"), "p": np.array([[0, 1]]),
                                                "q": ones((1, 4, 4), "f")}, 18),
            _model(signals, {"x": ("b", 12, 1)}, {"n": numbers["n"], "z": numbers["z"], "m": np.array([2, 3, 2, 2])}, 18),
            _model(functions, {"x": (1, 2, 3, 4)}, {"c": ones((1, 3, 2), "f"), "g": ones(2, "f")}, 23)]


_SIZES = (-1, 0, 1, 2, 3, 7, 255, 65536, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -2**63)
_PLACES = ("../../../etc/passwd", "/etc/passwd", "/dev/zero", "a.onnx", ".", "", "\0", "a/../../b", "x" * 5000, "file:///etc/passwd", "~/.profile")


def _external(graph, rng):
    """An array whose data stand in a file, somewhere."""
    if graph.initializer:
        tensor = rng.choice(graph.initializer)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", rng.choice(_PLACES)), ("offset", rng.choice(_SIZES)), ("length", rng.choice(_SIZES))):
            if rng.random() < 0.8:
                tensor.external_data.add(key=key, value=str(value))


def _contradiction(graph, rng):
    """A size, of an array or of what is said about a value, that is another than the data have."""
    infos = [*graph.input, *graph.output, *graph.value_info]
    if rng.random() < 0.5 and graph.initializer:
        dims = rng.choice(graph.initializer).dims
        if dims and rng.random() < 0.7:
            dims[rng.randrange(len(dims))] = rng.choice(_SIZES)
        else:
            dims.extend([rng.choice(_SIZES)] * rng.choice((1, 40)))
    elif infos:
        axes = rng.choice(infos).type.tensor_type.shape.dim
        if axes and rng.random() < 0.7:
            rng.choice(axes).dim_value = rng.choice(_SIZES)
        else:
            axes.add().dim_value = rng.choice(_SIZES)


def _cycle(graph, rng):
    """A node that takes what it, or one behind it, returns."""
    outputs = [name for node in graph.node for name in node.output]
    node = rng.choice(graph.node)
    if node.input and outputs:
        node.input[rng.randrange(len(node.input))] = rng.choice(outputs)


def _twice(graph, rng):
    """A name that two things have."""
    names = [name for node in graph.node for name in (*node.input, *node.output)]
    node = rng.choice(graph.node)
    if node.output and names:
        node.output[rng.randrange(len(node.output))] = rng.choice(names)


def _type(graph, rng):
    """Another type of an array or of an input."""
    things = [*graph.initializer, *(info.type.tensor_type for info in graph.input)]
    if things:
        thing = rng.choice(things)
        setattr(thing, "data_type" if isinstance(thing, TensorProto) else "elem_type", rng.choice((0, 1, 2, 6, 7, 8, 9, 10, 11, 14, 16, 17, 25, 99)))


def _attribute(graph, rng):
    """A number among a node's attributes, or an attribute too many."""
    attributes = [a for node in graph.node for a in node.attribute]
    if not attributes or rng.random() < 0.2:
        rng.choice(graph.node).attribute.append(helper.make_attribute(rng.choice(("axis", "axes", "to", "block_size", "group")), rng.choice(_SIZES)))
        return
    attribute = rng.choice(attributes)
    if attribute.ints:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(_SIZES)
    else:
        attribute.i = rng.choice(_SIZES)


def _operator(graph, rng):
    """Another operator for the same inputs."""
    rng.choice(graph.node).op_type = rng.choice(graph.node).op_type


def altered(data, rng, others):
    """A model that protobuf can read, and that is wrong: see the functions above."""
    model = ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        rng.choice((_external, _contradiction, _contradiction, _cycle, _twice, _type, _attribute, _operator))(model.graph, rng)
    return model.SerializeToString()


def _models_as_written():
    """Networks as `export_model` writes them: on 8-bit integers, and with the operators of newer opsets."""
    node, real = helper.make_node, np.float32
    integers = [node("QuantizeLinear", ["x", "s", "z"], ["a"]), node("DequantizeLinear", ["a", "s", "z"], ["b"]),
                node("DequantizeLinear", ["w", "t", "v"], ["c"], axis=0), node("DequantizeLinear", ["i", "t"], ["d"], axis=0),
                node("Conv", ["b", "c", "d"], ["e"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Relu", ["e"], ["f"]),
                node("QuantizeLinear", ["f", "s", "u"], ["g"]), node("DequantizeLinear", ["g", "s", "u"], ["y"])]
    newer = [node("LayerNormalization", ["x", "g", "h"], ["a"], axis=-1), node("Gelu", ["a"], ["b"], approximate="tanh"),
             node("ReduceMax", ["b", "o"], ["c"], keepdims=1), node("ReduceL2", ["b", "o"], ["d"]), node("Sub", ["c", "d"], ["e"]),
             node("Split", ["e", "p"], ["f", "k"], axis=0), node("Pad", ["f", "q", ""], ["y"], mode="edge")]
    return [_model(integers, {"x": ("n", 2, 4, 4)}, {"s": real(0.1), "z": np.int8(0), "u": np.uint8(0), "w": np.ones((3, 2, 3, 3), np.int8),
                                                     "t": real([0.1, 0.2, 0.3]), "v": np.zeros(3, np.int8), "i": np.int32([1, 2, 3])}, 21),
            _model(newer, {"x": (3, 4)}, {"g": np.ones(4, "f"), "h": np.zeros(4, "f"), "o": np.array([1]), "p": np.array([1, 2]),
                                          "q": np.array([0, 1, 1, 0])}, 28)]


def _read(case):
    path = file(case, "a.onnx")
    mx.contrib.onnx.get_model_metadata(path)
    mx.contrib.onnx.import_model(path)


def _part(case):
    """A part that is imported when the network runs, with the bytes of a model in its node."""
    with mx.autograd.predict_mode():
        mx.nd.contrib.onnx_graph(mx.nd.ones((2, 3)), graph=base64.b64encode(case).decode())


def _parts():
    node = helper.make_node
    body = _graph("body", [node("Add", ["v", "x"], ["w"]), node("Identity", ["c"], ["d"])], "i c v", "d w")
    return [_model([node("Loop", ["n", "", "x"], ["a"], body=body), node("Gather", ["a", "z"], ["y"])], {"x": (2, 3)},
                   {"n": np.array(3), "z": np.array(1)}),
            _model([node("Shape", ["x"], ["s"]), node("SequenceConstruct", ["x", "x"], ["q"]), node("SequenceAt", ["q", "z"], ["a"]),
                    node("NonZero", ["a"], ["b"]), node("Cast", ["b"], ["c"], to=1), node("ReduceMax", ["c", "o"], ["y"])], {"x": (2, 3)},
                   {"z": np.array(1), "o": np.array([0])})]


TARGETS = [target("onnx_files.models", _models, _read, structure=altered, share=2),
           target("onnx_files.parts", _models_of_parts, _read, structure=altered, share=2),
           target("onnx_files.written", _models_as_written, _read, structure=altered, share=2),
           target("onnx_files.node", _parts, _part)]
