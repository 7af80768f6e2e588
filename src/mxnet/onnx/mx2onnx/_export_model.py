"""`export_model`: from files or objects to an ONNX file."""
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base import MXNetError
from ...files import atomic_write, begin, commit
from ...ops import dtypes
from ...symbol import Symbol
from ._export_helper import load_module
from .network import Network, parameter_arrays, variables
from .registry import CONVERTERS, VARIABLE

OPSETS = (12, 13)
_IR_VERSION = 7  # of the time of opset 13: every runtime since then reads it
_LARGEST = 2**31 - 1  # bytes that a message of protobuf may have


class MissingONNX(MXNetError, ImportError):
    """The package `onnx` is not installed."""


def _onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingONNX(f"ONNX files need the packages onnx and protobuf: pip install 'remex[onnx]' ({error})") from error
    return onnx


def get_operator_support(opset_version: int | None = None) -> list[str]:
    """The names of the operators that `export_model` can write.

    Parameters
    ----------
    opset_version : int, optional
        The version of ONNX's operators: 12 or later. All that can be written can be in each.

    Raises
    ------
    MXNetError
        If the version is below 12.

    Example
    -------
    >>> names = mx.onnx.get_operator_support()
    >>> "Convolution" in names, "CTCLoss" in names
    (True, False)
    """
    if opset_version is not None and opset_version < OPSETS[0]:
        raise MXNetError(f"opset_version must be {OPSETS[0]} or later, received {opset_version}")
    return sorted({*CONVERTERS, VARIABLE})


def export_model(sym: Any, params: Any, in_shapes: Sequence | None = None, in_types: Any = np.float32, onnx_file_path: str = "model.onnx",
                 verbose: bool = False, dynamic: bool = False, dynamic_input_shapes: Sequence | None = None, run_shape_inference: bool = False,
                 input_type: Any = None, input_shape: Any = None, large_model: bool = False, *, opset_version: int = 13) -> str:
    """Write a network as an ONNX file.

    The file appears whole or not at all. What the network computes is what it computes for inference: `Dropout` is left out, `BatchNorm`
    takes its moving averages. A label, such as ``softmax_label``, is no input of the file.

    Parameters
    ----------
    sym : str or Symbol
        The network, or the path of its ``-symbol.json``.
    params : str, dict, or list of two dicts
        The parameters by name (arguments and auxiliary states, in one dict or two), or the path of the ``.params`` file.
    in_shapes : list of tuple of int
        The shape of each input: each variable that is no parameter, in the order of ``sym.list_inputs()``.
    in_types : data type or list of data types
        The type of all inputs, or of each.
    onnx_file_path : str
        Where the file is written.
    verbose : bool
        Log each node.
    dynamic : bool
        Whether the sizes of the inputs may be others when the file runs.
    dynamic_input_shapes : list of tuple, optional
        With `dynamic`, which sizes may: None, or a name for the size, stands in place of each. Without it all may.
    run_shape_inference : bool
        Add the shapes of everything in between to the file.
    input_type, input_shape
        Older names of `in_types` and `in_shapes`.
    large_model : bool
        Put the parameters into a file of their own, ``<onnx_file_path>.data``: a network of over 2 GB cannot be one file.
    opset_version : int
        The version of ONNX's operators, 12 or 13.

    Returns
    -------
    str
        `onnx_file_path`.

    Raises
    ------
    ImportError
        If the package onnx is missing.
    MXNetError
        If an operator cannot be written, or shapes and types do not fit the inputs or the network. The text names the node.
    ValueError
        If `sym` and `params` are neither paths nor objects.

    Example
    -------
    >>> data = mx.sym.var("data")
    >>> net = mx.sym.FullyConnected(data, num_hidden=3, name="fc")
    >>> params = {"fc_weight": mx.nd.ones((3, 4)), "fc_bias": mx.nd.zeros((3,))}
    >>> mx.onnx.export_model(net, params, [(2, 4)], "float32", "fc.onnx")  # doctest: +SKIP
    'fc.onnx'
    """
    onnx = _onnx()
    if opset_version not in OPSETS:
        raise MXNetError(f"opset_version must be one of {', '.join(map(str, OPSETS))}, received {opset_version!r}")
    sym, params = _loaded(sym, params)
    network = _network(sym, params, in_shapes if input_shape is None else input_shape, in_types if input_type is None else input_type,
                       dynamic, dynamic_input_shapes)
    on, inputs, outputs = network.convert(opset_version, verbose)
    used = {v.name: v for node in on.nodes for v in node.inputs if v is not None and v.array is not None}
    size = sum(v.array.nbytes for v in used.values())
    if size > _LARGEST and not large_model:
        raise MXNetError(f"the parameters have {size / 1e9:.1f} GB, and an ONNX file can't have over 2 GB: pass large_model=True, which puts them "
                         "into a file of their own")

    helper = onnx.helper

    def declared(value, shape):
        return helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)

    graph = helper.make_graph(
        [helper.make_node(n.kind, [v.name if v is not None else "" for v in n.inputs], [v.name for v in n.outputs], name=n.name,
                          **{k: helper.np_dtype_to_tensor_dtype(a) if isinstance(a, np.dtype) else _tensor(onnx, a) for k, a in n.attributes.items()})
         for n in on.nodes],
        "mxnet_converted_model",
        [declared(v, network.inputs[v.name][0]) for v in inputs], [declared(v, v.shape) for v in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset_version)], ir_version=_IR_VERSION, producer_name="remex")
    path = os.fspath(onnx_file_path)
    if large_model:
        _write_apart(onnx, model, used.values(), path, run_shape_inference)
    else:
        graph = model.graph
        graph.initializer.extend(onnx.numpy_helper.from_array(v.array, v.name) for v in used.values())
        onnx.checker.check_model(model)
        if run_shape_inference:
            model = onnx.shape_inference.infer_shapes(model)
        with atomic_write(path) as stream:
            stream.write(model.SerializeToString())
    logging.info("wrote %s: %d nodes, inputs %s", path, len(on.nodes), ", ".join(f"{v.name} {network.inputs[v.name][0]}" for v in inputs))
    return onnx_file_path


def _tensor(onnx: Any, value: Any) -> Any:
    return onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value


def _write_apart(onnx: Any, model: Any, parameters: Any, path: str, run_shape_inference: bool) -> None:
    """Write the model, and beside it a file of its parameters; both take their places together."""
    if run_shape_inference:
        raise MXNetError("run_shape_inference needs a model in one piece: leave it or large_model out")
    data = begin(f"{path}.data")
    main = None
    try:
        position = 0
        for value in parameters:
            if value.array.nbytes <= 1024:  # shapes and axes, which readers want to see
                model.graph.initializer.append(onnx.numpy_helper.from_array(value.array, value.name))
                continue
            tensor = model.graph.initializer.add(name=value.name, data_type=onnx.helper.np_dtype_to_tensor_dtype(value.array.dtype),
                                                 dims=value.array.shape, data_location=onnx.TensorProto.EXTERNAL)
            for key, content in (("location", os.path.basename(path) + ".data"), ("offset", position), ("length", value.array.nbytes)):
                tensor.external_data.add(key=key, value=str(content))
            data.stream.write(memoryview(np.ascontiguousarray(value.array)).cast("B"))
            position += value.array.nbytes
        main = begin(path)
        main.stream.write(model.SerializeToString())
        commit(main, data)
    finally:
        data.discard()
        if main is not None:
            main.discard()


def _loaded(sym: Any, params: Any) -> tuple[Symbol, Mapping[str, Any]]:
    if isinstance(sym, (str, os.PathLike)) and isinstance(params, (str, os.PathLike)):
        return load_module(os.fspath(sym), os.fspath(params))
    if isinstance(sym, Symbol):
        if isinstance(params, Mapping):
            return sym, params
        if isinstance(params, (list, tuple)) and len(params) == 2 and all(isinstance(p, Mapping) for p in params):
            return sym, {**params[0], **params[1]}
    raise ValueError("sym and params are either both paths, or a Symbol and a dict of parameters (or a list of two: arguments and auxiliary states); "
                     f"received {type(sym).__name__} and {type(params).__name__}")


def _network(sym: Symbol, params: Mapping[str, Any], shapes: Any, types: Any, dynamic: bool, dynamic_shapes: Any) -> Network:
    """Check what was said about the inputs.

    Raises
    ------
    MXNetError
        If there are more or fewer shapes or types than inputs, or `dynamic_shapes` does not fit them.
    """
    outputs = sym._outputs
    arrays = parameter_arrays(params)
    found = variables(outputs)
    label = f"{outputs[-1][0].name}_label"
    names = list(dict.fromkeys(n.name for n in found if n.name not in arrays and n.name != label))
    if shapes is None:
        raise MXNetError(f"in_shapes must give the shape of each input: {', '.join(names)}")
    shapes = [_shape(s) for s in ([shapes] if shapes and isinstance(shapes[0], int) else shapes)]
    if len(shapes) != len(names):
        losses = _labels(sym)
        unlabelled = [n for n in names if n not in losses]
        if len(shapes) != len(unlabelled):
            raise MXNetError(f"in_shapes must have {len(names)} shapes, one for each variable that is no parameter ({', '.join(names)}), "
                             f"received {len(shapes)}: {shapes}")
        names = unlabelled
    types = list(types) if isinstance(types, (list, tuple)) else [types] * len(names)
    if len(types) != len(names):
        raise MXNetError(f"in_types must be one type, or {len(names)} of them, one for each input ({', '.join(names)}); "
                         f"received {len(types)}: {types}")
    types = [np.dtype(dtypes.TORCH_TO_NAME[dtypes.to_torch(t)]) for t in types]
    if not dynamic:
        if dynamic_shapes is not None:
            raise MXNetError("dynamic_input_shapes has no effect without dynamic=True; pass that too, or leave it out")
        declared = shapes
    elif dynamic_shapes is None:
        declared = [(None,) * len(s) for s in shapes]
    else:
        declared = [tuple(s) for s in dynamic_shapes]
        if [len(s) for s in declared] != [len(s) for s in shapes]:
            raise MXNetError(f"dynamic_input_shapes must have a shape for each of in_shapes, with as many sizes: expected the lengths "
                             f"{[len(s) for s in shapes]}, received {declared}")
    return Network(outputs, {n: (d, t) for n, d, t in zip(names, declared, types)}, dict(zip(names, shapes)),
                   {n.name: arrays[n.name] for n in found if n.name in arrays})


def _shape(shape: Any) -> tuple[int, ...]:
    try:
        return tuple(int(s) for s in shape)
    except (TypeError, ValueError):
        raise MXNetError(f"in_shapes must be a list of tuples of integers, one for each input; received {shape!r} as one of them") from None


def _labels(sym: Symbol) -> set[str]:
    """The variables that output layers made for their labels."""
    return {n.name for node in sym._nodes() if node.op is not None and node.op.is_loss(node.parsed())
            for n, _ in node.inputs[1:] if n.op is None and n.name == f"{node.name}_label"}
