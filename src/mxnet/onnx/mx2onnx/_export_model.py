"""`export_model`: from files or objects to an ONNX file."""
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base import MXNetError
from ...files import atomic_write, begin, commit
from ...symbol import Symbol
from . import checking, writing
from ._export_helper import load_module
from ._export_onnx import OPSETS, chosen_opset, described, graph_proto, onnx_package
from .registry import CONVERTERS, VARIABLE

_LARGEST = 2**31 - 1  # bytes that a message of protobuf may have


def get_operator_support(opset_version: int | None = None) -> list[str]:
    """Return the names of the operators that `export_model` can write.

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
                 input_type: Any = None, input_shape: Any = None, large_model: bool = False, *, opset_version: int | None = None,
                 check: bool | None = None) -> str:
    """Write a network as an ONNX file.

    The file appears whole or not at all. The file computes the network's inference: `Dropout` is left out, `BatchNorm`
    takes its moving averages. A label, such as ``softmax_label``, is no input of the file.

    Parameters
    ----------
    sym : str or Symbol
        The network, or the path of its ``-symbol.json``.
    params : str, dict, or list of two dicts
        The parameters by name (arguments and auxiliary states, in one dict or two), or the path of the ``.params`` file.
    in_shapes : list of tuple of int
        The shape of each input: each variable that is no parameter, in the order of ``sym.list_inputs()``.
    in_types : one type, or a list with one for each input
        A name or a NumPy type.
    onnx_file_path : str
        Where the file is written.
    verbose : bool
        Log each node.
    dynamic : bool
        True if the sizes of the inputs may differ when the file runs.
    dynamic_input_shapes : list of tuple, optional
        With `dynamic`, the sizes that may vary, each given as None or as a name. Without it all may vary.
    run_shape_inference : bool
        Add the shapes of everything in between to the file.
    input_type, input_shape
        Older names of `in_types` and `in_shapes`.
    large_model : bool
        Put the parameters into a file of their own, ``<onnx_file_path>.data``: a network of over 2 GB cannot be one file.
    opset_version : int, optional
        The version of ONNX's operators, from 12 to 28. By default it is 13, which every runtime since 2020 reads, and 22 for bfloat16.
    check : bool, optional
        Score random inputs with ONNX Runtime and here, and log the largest difference (level INFO). By default that is done where onnxruntime is
        installed, and a file that computes something else is a warning; with True it is an error.

    Returns
    -------
    str
        `onnx_file_path`.

    Raises
    ------
    ImportError
        If the package onnx is missing, or with ``check=True`` onnxruntime.
    MXNetError
        If an operator cannot be written, or shapes and types do not fit the inputs or the network. The text names the node. With ``check=True``
        also if ONNX Runtime cannot run the file or computes something else; the file is there nevertheless.
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
    onnx = onnx_package()
    sym, params = _loaded(sym, params)
    network = described(sym, params, in_shapes if input_shape is None else input_shape, in_types if input_type is None else input_type,
                        dynamic, dynamic_input_shapes)
    opset = chosen_opset(network, opset_version)
    graph, parameters = graph_proto(network, opset, verbose)
    size = sum(v.array.nbytes for v in parameters)
    if size > _LARGEST and not large_model:
        raise MXNetError(f"the parameters have {size / 1e9:.1f} GB, and an ONNX file can't have over 2 GB: pass large_model=True, which puts them "
                         "into a file of their own")
    imports = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=onnx.helper.find_min_ir_version_for(imports), producer_name="remex")
    path = os.fspath(onnx_file_path)
    if large_model:
        _write_apart(onnx, model, parameters, path, run_shape_inference)
    else:
        _examine(onnx, model, parameters, run_shape_inference)
        with atomic_write(path) as stream:
            writing.write_model(onnx, stream, model, parameters)
    logging.info("wrote %s: %d nodes, inputs %s", path, len(graph.node), ", ".join(f"{n} {shape}" for n, (shape, _) in network.inputs.items()))
    if check is not False:
        checking.report(network, path, check is True)
    return onnx_file_path


def _examine(onnx: Any, model: Any, parameters: Sequence[Any], run_shape_inference: bool) -> None:
    """Run ONNX's checker on a model, and add the shapes of intermediate values on request."""
    copy = writing.declared(onnx, model, parameters)
    onnx.checker.check_model(copy)
    if run_shape_inference:
        inferred = onnx.shape_inference.infer_shapes(copy).graph
        for name in ("value_info", "output"):
            model.graph.ClearField(name)
            getattr(model.graph, name).extend(getattr(inferred, name))


def _write_apart(onnx: Any, model: Any, parameters: Any, path: str, run_shape_inference: bool) -> None:
    """Write the model, and beside it a file of its parameters; both replace existing files together."""
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
            writing.write_array(data.stream.write, value.array)
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
