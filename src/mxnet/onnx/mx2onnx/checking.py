"""Comparison of an ONNX file with the network that it was written from."""
import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...base import MXNetError
from ...context import cpu
from ...graph.int8.quantize import is_quantized
from ...ndarray import array, zeros
from ...ops import dtypes
from ...remote import is_remote
from ...symbol import Symbol
from .builder import floating
from .network import Network

LOG = logging.getLogger(__name__)
_TOLERANCE = 1e-3  # of the largest number of an output; of the type's own precision, where that is less
_OF_INTEGERS = 0.05  # for layers on 8-bit integers: a number between two of them may be rounded to either, which changes later results


def report(network: Network, path: str, strict: bool) -> None:
    """Log the differences of ONNX Runtime's outputs from those of the network.

    Parameters
    ----------
    network : Network
    path : str
        The file that was written from it.
    strict : bool
        Raise errors instead of warnings, and for skipped cases: a runtime that is not installed, and networks that draw random numbers.

    Raises
    ------
    ImportError
        If `strict`, and onnxruntime is not installed.
    MXNetError
        If `strict`, and ONNX Runtime cannot run the file, or computes something else.
    """
    if strict:
        logging.info("%s: what ONNX Runtime computes differs by at most %.3g", path, largest_difference(network, path))
        return
    if is_remote(path) or _is_stochastic(network):
        return
    try:
        logging.info("%s: what ONNX Runtime computes differs by at most %.3g", path, largest_difference(network, path))
    except ImportError:
        LOG.debug("%s is not checked: onnxruntime is not installed", path)
    except MXNetError as error:
        logging.warning("%s; the file is written nevertheless", error)


def _is_stochastic(network: Network) -> bool:
    sym: Any = Symbol(network.outputs)
    return any(node.op is not None and node.op.stochastic for node in sym._nodes())


def largest_difference(network: Network, path: str) -> float:
    """Return the largest difference of ONNX Runtime's outputs from the network's, for random inputs of the shapes that the file was written with.

    Parameters
    ----------
    network : Network
    path : str
        The file. ONNX Runtime has no operators on bfloat16 for CPUs, so that such a file is computed in float32.

    Raises
    ------
    ImportError
        If onnxruntime is not installed.
    MXNetError
        If it cannot run the file, or computes something else.
    """
    inputs = _random(network)
    results, largest = _by_runtime(path, inputs, _is_narrow(network)), 0.0
    for number, (a, b) in enumerate(zip(results, _here(network, inputs))):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise MXNetError(f"{path}: output {number} is {a.dtype} of shape {a.shape} in ONNX Runtime, and {b.dtype} of shape {b.shape} here")
        difference = float(np.max(np.abs(a.astype(float) - b.astype(float)), initial=0))
        if not difference <= _tolerance(network, b.dtype) * max(1.0, float(np.max(np.abs(b.astype(float)), initial=0))):
            raise MXNetError(f"{path}: output {number} differs by {difference:.3g} in ONNX Runtime")
        largest = max(largest, difference)
    return largest


def _is_narrow(network: Network) -> bool:
    return any(array.dtype.name == "bfloat16" for array in network.parameters.values()) or any(
        dtype.name == "bfloat16" for _, dtype in network.inputs.values())


def _tolerance(network: Network, dtype: np.dtype) -> float:
    sym: Any = Symbol(network.outputs)
    types = [dtype, *(array.dtype for array in network.parameters.values())]
    if _is_narrow(network):
        return 8 * 2.0 ** -7
    if np.dtype(np.int8) in types or any(node.op is not None and is_quantized(node) for node in sym._nodes()):
        return _OF_INTEGERS
    return max(_TOLERANCE, *(float(np.finfo(t).eps) * 8 for t in types if t.kind == "f"), 0.0)


def _random(network: Network) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {name: (generator.uniform(-1, 1, shape) if floating(dtype) else generator.integers(0, 2, shape)).astype(dtype)
            for (name, shape), (_, dtype) in zip(network.example.items(), network.inputs.values())}


def _by_runtime(path: str, inputs: Mapping[str, np.ndarray], narrow: bool) -> list[np.ndarray]:
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(f"check=True takes the package onnxruntime ({error}); install it, or leave check out") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # The nodes as they stand in the file: kernels on integers that take their place overflow where the processor has no VNNI.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(_in_float32(path) if narrow else path, options, providers=["CPUExecutionProvider"])
        used = {given.name for given in session.get_inputs()}
        return session.run(None, {name: _as_float32(values) for name, values in inputs.items() if name in used})
    except Exception as error:  # its own classes, by kind of failure
        raise MXNetError(f"{path}: ONNX Runtime cannot run it: {error}") from error


def _as_float32(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32) if values.dtype.name == "bfloat16" else values


def _in_float32(path: str) -> bytes:
    """Return a model with bfloat16 as the same in float32."""
    import onnx
    model = onnx.load(path, load_external_data=False)
    narrow, wide = onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT
    tensors = [*model.graph.initializer, *(a.t for node in model.graph.node for a in node.attribute if a.type == onnx.AttributeProto.TENSOR)]
    infos = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    onnx.load_external_data_for_model(model, path.rpartition("/")[0])
    for tensor in tensors:
        if tensor.data_type == narrow:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
    for info in infos:
        if info.type.tensor_type.elem_type == narrow:
            info.type.tensor_type.elem_type = wide
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name in ("to", "dtype") and attribute.i == narrow:
                attribute.i = wide
    return model.SerializeToString()


def _here(network: Network, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    sym: Any = Symbol(network.outputs)
    values = {name: array(_as_float32(content), dtype=content.dtype) for name, content in {**network.parameters, **inputs}.items()}
    names = sym.list_arguments()
    shapes, _, _ = sym.infer_shape(**{name: value.shape for name, value in values.items() if name in names})
    arguments = {name: values[name] if name in values else zeros(shape) for name, shape in zip(names, shapes)}  # labels are no inputs of the file
    states = {name: values[name] for name in sym.list_auxiliary_states()}
    outputs = sym.bind(cpu(), arguments, aux_states=states, grad_req="null").forward(is_train=False)
    return [(output.astype("float32") if output.dtype == dtypes.BFLOAT16_BITS else output).asnumpy() for output in outputs]
