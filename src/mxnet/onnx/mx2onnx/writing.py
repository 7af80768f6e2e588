"""Writing of ONNX files: parameters are copied from their arrays to the disk one by one, so that memory never holds a second copy of all."""
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np

from .builder import Value

_GRAPH, _INITIALIZER, _RAW_DATA = b"\x3a", b"\x2a", b"\x4a"  # ModelProto.graph, GraphProto.initializer, TensorProto.raw_data, each with a length


def declared(onnx: Any, model: Any, parameters: Sequence[Value]) -> Any:
    """Return a copy of a model for ONNX's checker, with the large parameters as inputs, since it checks types and shapes alone."""
    copy = type(model)()
    copy.CopyFrom(model)
    for value in parameters:
        if value.array.nbytes <= 1024:  # type: ignore[union-attr]  # shapes follow from some
            copy.graph.initializer.append(onnx.numpy_helper.from_array(value.array, value.name))
            continue
        copy.graph.input.append(onnx.helper.make_tensor_value_info(value.name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    return copy


def write_model(onnx: Any, stream: IO[bytes], model: Any, parameters: Sequence[Value]) -> None:
    """Write a model together with its parameters, which it does not hold yet."""
    graph = model.graph.SerializeToString()
    heads = [_tensor_head(onnx, value) for value in parameters]
    sizes = [len(head) + value.array.nbytes for head, value in zip(heads, parameters)]  # type: ignore[union-attr]
    length = len(graph) + sum(len(_INITIALIZER) + len(varint(size)) + size for size in sizes)
    rest = type(model)()
    rest.CopyFrom(model)
    rest.ClearField("graph")
    stream.write(rest.SerializeToString() + _GRAPH + varint(length) + graph)
    for value, head, size in zip(parameters, heads, sizes):
        stream.write(_INITIALIZER + varint(size) + head)
        write_array(stream.write, value.array)


def _tensor_head(onnx: Any, value: Value) -> bytes:
    """Return a TensorProto up to its data."""
    head = onnx.TensorProto(dims=value.array.shape, data_type=onnx.helper.np_dtype_to_tensor_dtype(value.dtype),  # type: ignore[union-attr]
                            name=value.name).SerializeToString()
    return head + _RAW_DATA + varint(value.array.nbytes)  # type: ignore[union-attr]


def write_array(write: Callable[[Any], Any], array: Any) -> None:
    """Write an array's numbers, in row-major order and with the lowest byte first."""
    array = np.ascontiguousarray(array)
    if sys.byteorder == "big":
        array = array.byteswap()
    write(memoryview(array.reshape(-1).view(np.uint8)))


def varint(number: int) -> bytes:
    """Return a number as protobuf writes it.

    Example
    -------
    >>> varint(300).hex()
    'ac02'
    """
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*encoded, number))
