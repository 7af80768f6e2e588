"""Models of a few nodes, run by ONNX Runtime and here."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

import mxnet as mx
from mxnet.contrib.onnx.onnx2mx.import_onnx import GraphProto
from onnx_checks import run as by_runtime


def model_of(nodes, inputs, constants=None, outputs=("y",), opset=17, types=None):
    """A model.

    Parameters
    ----------
    nodes : list of onnx.NodeProto
    inputs : dict of str to shape
        A text stands for a size that is left open.
    constants : dict of str to numpy.ndarray
    types : dict of str to int
        Of inputs and outputs that are not float32; 0 leaves it open.
    """
    def info(name, shape):
        number = (types or {}).get(name, TensorProto.FLOAT)
        if number == 0:
            value = helper.make_empty_tensor_value_info(name)
            return value
        return helper.make_tensor_value_info(name, number, shape)

    graph = helper.make_graph(nodes, "graph", [info(name, shape) for name, shape in inputs.items()],
                              [info(name, None) for name in outputs], [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])
    made.ir_version = 8
    return made


def node(operator, inputs, outputs=("y",), **attributes):
    """A node; inputs and outputs as a text of names."""
    split = [x.split() if isinstance(x, str) else list(x) for x in (inputs, outputs)]
    return helper.make_node(operator, [("" if n == "-" else n) for n in split[0]], split[1], name=f"the_{operator.lower()}", **attributes)


def run(model, **inputs):
    """What the import of a model computes, as a list of numpy arrays."""
    out, args, auxs = GraphProto().from_onnx(model.graph, model.opset_import[0].version)
    given = {name: mx.nd.array(np.reshape(x, np.shape(x) or (1,)), dtype=np.asarray(x).dtype) for name, x in inputs.items()}
    names = out.list_arguments()
    executor = out.bind(mx.cpu(), {**{n: x for n, x in given.items() if n in names}, **args}, aux_states=auxs, grad_req="null")
    return [output.asnumpy() for output in executor.forward(is_train=False)]


def unnamed(model):
    """The model without names of nodes: the runtime refuses two that are alike."""
    made = type(model)()
    made.CopyFrom(model)
    for each in made.graph.node:
        each.name = ""
    return made


def agrees(nodes, inputs, constants=None, outputs="y", opset=17, shapes=None, rtol=1e-5, atol=1e-6):
    """Assert that a model computes the same here and in ONNX Runtime; returns what it computes.

    Parameters
    ----------
    nodes : onnx.NodeProto or list of these
    inputs, constants : dict of str to numpy.ndarray
    outputs : str
        Names.
    shapes : dict of str to shape, optional
        What the file says of inputs, if not all of their shapes.
    """
    nodes = nodes if isinstance(nodes, list) else [nodes]
    inputs = {name: np.asarray(x) for name, x in inputs.items()}
    types = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in inputs.items()}
    shapes = {name: (shapes or {}).get(name, x.shape) for name, x in inputs.items()}
    model = model_of(nodes, shapes, constants, outputs.split(), opset, {**types, **dict.fromkeys(outputs.split(), 0)})
    found, expected = run(model, **inputs), by_runtime(unnamed(model), inputs)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        b = np.asarray(b)
        assert a.shape == (b.shape or (1,))
        np.testing.assert_allclose(a, b.reshape(a.shape), rtol, atol)
    return found
