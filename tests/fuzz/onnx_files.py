"""A target for the reader of ONNX files: models of a few nodes, with their bytes changed."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

import mxnet as mx

from .making import file, target


def _model(nodes, inputs, constants):
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    arrays = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_empty_tensor_value_info("y")], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


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


def _read(case):
    path = file(case, "a.onnx")
    mx.contrib.onnx.get_model_metadata(path)
    mx.contrib.onnx.import_model(path)


TARGETS = [target("onnx_files.models", _models, _read, share=2)]
