"""The shapes and types of all entries of a network, and the sizes that may vary when the file runs."""
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from ...base import MXNetError
from ...ops import dtypes
from ...ops.shapes import known
from ...symbol.inference import infer_shapes, infer_types
from ...symbol.node import Entry
from .builder import numpy_type
from .operators.onnx_graph import declared_shapes, is_onnx_graph


def entry_shapes(outputs: Sequence[Entry], example: Mapping[str, tuple[int, ...]], parameters: Mapping[str, tuple[int, ...]],
                 declared: Mapping[str, tuple]) -> dict[tuple[int, int], tuple]:
    """Return the shapes of all entries of a graph, with None for each size that varies with the inputs.

    Varying sizes are found by trials: shapes are inferred for the example and for inputs with other sizes where `declared` leaves them open,
    and where the results differ a size varies. An open size that the network does not allow to change (channels) counts as the example's.

    Raises
    ------
    MXNetError
        If the shapes do not fit the network, or do not determine all of its shapes.
    """
    def infer(inputs: Mapping[str, tuple[int, ...]]) -> dict[tuple[int, int], tuple[int, ...]]:
        shapes, nodes = infer_shapes(outputs, {**parameters, **inputs})
        data_dependent = set()  # parts of imported graphs whose sizes follow from values, and what follows from them
        for node in nodes:
            if node.op is not None and (is_onnx_graph(node.op) or any(id(source) in data_dependent for source, _ in node.inputs)):
                data_dependent.add(id(node))
                if is_onnx_graph(node.op):
                    shapes.update(((id(node), i), shape) for i, shape in enumerate(declared_shapes(node.parsed()["graph"])))  # type: ignore
                continue
            for i in range(node.num_outputs()):
                if not known(shapes[id(node), i]):
                    raise MXNetError(f"the shape of output {i} of '{node.name}' does not follow from the shapes of the inputs, "
                                     f"{dict(inputs)}; export needs that of every variable that is no parameter")
        return shapes  # type: ignore[return-value]

    shapes = infer(example)
    open_sizes = [(name, axis) for name, shape in declared.items() for axis, size in enumerate(shape) if not isinstance(size, int)]
    if not open_sizes:
        return shapes

    def other(sizes: Mapping[tuple[str, int], int]) -> dict[tuple[int, int], tuple[int, ...]] | None:
        try:
            return infer({name: tuple(sizes.get((name, axis), s) for axis, s in enumerate(shape)) for name, shape in example.items()})
        except MXNetError:
            return None

    # A doubled size keeps its divisors.
    trial = other({(name, axis): 2 * example[name][axis] for name, axis in open_sizes})
    if trial is None:
        groups: dict[object, list] = {}  # sizes that are meant to be one: of one name, or equal and of the same axis
        for name, axis in open_sizes:
            size = declared[name][axis]
            groups.setdefault(size if isinstance(size, str) else (axis, example[name][axis]), []).append((name, axis))
        free: dict[tuple[str, int], int] = {}
        for group in (*groups.values(), *([one] for many in groups.values() if len(many) > 1 for one in many)):
            for change in (lambda s: 2 * s, lambda s: s + 1, lambda s: s - 1, lambda s: s // 2):
                changed = {(name, axis): change(example[name][axis]) for name, axis in group}
                if free.keys() >= changed.keys() or not all(changed.values()):
                    continue
                tried = other({**free, **changed})
                if tried is not None:
                    free, trial = {**free, **changed}, tried
                    break
    if trial is None:
        return shapes
    return {entry: shape if shape is None else tuple(a if a == b else None for a, b in zip(shape, trial[entry])) for entry, shape in shapes.items()}


def entry_types(outputs: Sequence[Entry], inputs: Mapping[str, np.dtype], parameters: Mapping[str, np.ndarray]) -> dict[tuple[int, int], np.dtype]:
    """Return the element types of all entries of a graph; float32 where they are unknown."""
    given = {name: dtypes.to_torch(dtype) for name, dtype in inputs.items()}
    given.update((name, dtypes.to_torch(array.dtype)) for name, array in parameters.items())
    types, _ = infer_types(outputs, given)
    names = {entry: dtypes.TORCH_TO_NAME[t or torch.float32] for entry, t in types.items()}
    return {entry: numpy_type(name) for entry, name in names.items()}
