"""An ONNX file beside the network that it was written from."""
from typing import Any

import numpy as np

from ...base import MXNetError
from ...context import cpu
from ...ndarray import array, zeros
from ...symbol import Symbol
from .network import Network

_TOLERANCE = 1e-3  # of the largest number of an output; of the type's own precision, where that is less


def largest_difference(network: Network, path: str) -> float:
    """How far the outputs of ONNX Runtime lie from those here, for random inputs of the shapes that the file was written with.

    Parameters
    ----------
    network : Network
    path : str
        The file.

    Raises
    ------
    ImportError
        If onnxruntime is not installed.
    MXNetError
        If it cannot run the file, or computes something else.
    """
    inputs = _random(network)
    found, largest = _by_runtime(path, inputs), 0.0
    for number, (a, b) in enumerate(zip(found, _here(network, inputs))):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise MXNetError(f"{path}: output {number} is {a.dtype} of shape {a.shape} in ONNX Runtime, and {b.dtype} of shape {b.shape} here")
        difference = float(np.max(np.abs(a.astype(float) - b.astype(float)), initial=0))
        precision = float(np.finfo(b.dtype).eps) * 8 if b.dtype.kind == "f" else 0
        if not difference <= max(_TOLERANCE, precision) * max(1.0, float(np.max(np.abs(b.astype(float)), initial=0))):
            raise MXNetError(f"{path}: output {number} differs by {difference:.3g} in ONNX Runtime")
        largest = max(largest, difference)
    return largest


def _random(network: Network) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {name: (generator.uniform(-1, 1, shape) if dtype.kind == "f" else generator.integers(0, 2, shape)).astype(dtype)
            for (name, shape), (_, dtype) in zip(network.example.items(), network.inputs.values())}


def _by_runtime(path: str, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(f"check=True takes the package onnxruntime ({error}); install it, or leave check out") from error
    try:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        used = {given.name for given in session.get_inputs()}
        return session.run(None, {name: values for name, values in inputs.items() if name in used})
    except Exception as error:  # its own classes, by kind of failure
        raise MXNetError(f"{path}: ONNX Runtime cannot run it: {error}") from error


def _here(network: Network, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    sym: Any = Symbol(network.outputs)
    values = {name: array(content, dtype=content.dtype) for name, content in {**network.parameters, **inputs}.items()}
    names = sym.list_arguments()
    shapes, _, _ = sym.infer_shape(**{name: value.shape for name, value in values.items() if name in names})
    arguments = {name: values[name] if name in values else zeros(shape) for name, shape in zip(names, shapes)}  # labels are no inputs of the file
    states = {name: values[name] for name in sym.list_auxiliary_states()}
    return [output.asnumpy() for output in sym.bind(cpu(), arguments, aux_states=states, grad_req="null").forward(is_train=False)]
