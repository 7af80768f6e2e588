"""Conversion of a graph's nodes to OpenVINO's operations.

A converter is a function for one operator (or several), registered by name::

    @converts("Flatten")
    def flatten(call, data):
        return call.reshape(data, call.out_shape)

It stands at the path of the file that defines the operator: for ``ops/nn/pooling.py`` in ``graph/backends/openvino/nn/pooling.py``. An operator
without a converter stays on `native`. A converter gets the `Call` and the inputs as outputs of OpenVINO nodes, and returns one output or a
list of them. All shapes are known and fixed. Unsupported cases are rejected by `call.refuse(reason)`: such a node stays on `native` too.
"""
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
import openvino as ov
import torch
from openvino import opset15 as ops
from torch import fx

from ....ops.registry import Operator
from ...program import Program, attributes_of, item, operator_of

# A node of OpenVINO's or an output of one: its annotations only allow nodes, where outputs work as well.
Value: TypeAlias = Any
Converter: TypeAlias = Callable[..., Any]
CONVERTERS: dict[str, Converter] = {}  # by operator
ON_INTEGERS: set[str] = set()  # operators whose converters take and return `Ranged` (see `integers`)
TYPES = {torch.float32: ov.Type.f32, torch.float16: ov.Type.f16, torch.bfloat16: ov.Type.bf16, torch.int32: ov.Type.i32, torch.int64: ov.Type.i64,
         torch.int8: ov.Type.i8, torch.uint8: ov.Type.u8, torch.bool: ov.Type.boolean}
# Types that may pass from one node to the next. Half precision has a result type of its own in MXNet, whose rounding
# OpenVINO would skip, and double precision would become single.
COMPUTED = {torch.float32, torch.int32, torch.int64, torch.bool, torch.uint8, torch.int8}


class Unsupported(Exception):
    """Raised if a node cannot be converted, with the reason."""


class Call:
    """A call of an operator: its attributes, and the shapes and types of its inputs and outputs."""

    def __init__(self, name: str, attributes: Mapping[str, Any], in_values: Sequence[torch.Tensor], out_values: Sequence[torch.Tensor],
                 constants: Sequence[Any], target: Any = None, reader: Operator | None = None):
        self.name, self.target, self.reader = name, target, reader
        self.attributes = attributes
        self.constants = constants
        self.in_shapes = [tuple(v.shape) for v in in_values]
        self.in_types = [v.dtype for v in in_values]
        self.out_shapes = [tuple(v.shape) for v in out_values]
        self.out_types = [v.dtype for v in out_values]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.attributes[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def shape(self) -> tuple[int, ...]:
        """The first input's shape."""
        return self.in_shapes[0]

    @property
    def out_shape(self) -> tuple[int, ...]:
        return self.out_shapes[0]

    def refuse(self, reason: str) -> NoReturn:
        raise Unsupported(f"{self.name}: {reason}")

    def axis(self, value: int, ndim: int | None = None) -> int:
        """Return an axis counted from the front."""
        return value % (len(self.shape) if ndim is None else ndim)

    def known(self, i: int) -> np.ndarray | None:
        """Return the value of a constant input as a NumPy array; None for other inputs."""
        return None if self.constants[i] is None else self.constants[i].numpy()

    # -- helpers of converters ------------------------------------------------------------------------------------------

    def const(self, value: Any, dtype: torch.dtype | None = None) -> Value:
        """Return a constant of the first input's type, or of `dtype` (a torch type)."""
        return constant(value, dtype or self.in_types[0])

    def float(self, value: Any) -> Value:
        return constant(value, torch.float32)

    def floats(self) -> None:
        """Reject the call unless all types are float32."""
        if any(t is not torch.float32 for t in (*self.in_types, *self.out_types)):
            self.refuse("integers")

    def reshape(self, x: Value, shape: Iterable[int]) -> Value:
        return ops.reshape(x, ints(shape), False).output(0)

    def transpose(self, x: Value, axes: Iterable[int]) -> Value:
        return ops.transpose(x, ints(axes)).output(0)

    def per_channel(self, x: Value, ndim: int, axis: int = 1) -> Value:
        """Return a vector with one value a channel, shaped to broadcast along `axis` of `ndim`."""
        shape = [1] * ndim
        shape[axis] = -1
        return self.reshape(x, shape)

    def cast(self, x: Value, dtype: torch.dtype) -> Value:
        return ops.convert(x, TYPES[dtype]).output(0) if x.get_element_type() != TYPES[dtype] else x


def constant(value: Any, dtype: torch.dtype) -> Value:
    array = np.asarray(value)
    if dtype is torch.bfloat16:
        return ops.convert(ops.constant(array.astype(np.float32)), "bf16").output(0)
    return ops.constant(array.astype(TYPES[dtype].to_dtype())).output(0)


def ints(values: Iterable[int]) -> Value:
    return ops.constant(np.asarray(values, np.int64)).output(0)


def converts(*names: str, integers: bool = False) -> Callable[[Converter], Converter]:
    """Register the decorated function as the converter of these operators; with `integers` it handles quantized arrays."""
    def register(function: Converter) -> Converter:
        for name in names:
            if name in CONVERTERS:
                raise ValueError(f"two converters for {name}: {CONVERTERS[name].__name__} and {function.__name__}")
            CONVERTERS[name] = function
            if integers:
                ON_INTEGERS.add(name)
        return function
    return register


def convert_node(program: Program, node: fx.Node, inputs: Sequence[Value]) -> list[Value]:
    """Return the outputs of the OpenVINO nodes that compute the fx node's results.

    Raises
    ------
    Unsupported
        If there is no converter for the operator, or for these attributes, shapes or types.
    """
    op = operator_of(node)
    converter = CONVERTERS.get(op.name) if op is not None else None
    if converter is None:
        raise Unsupported(f"{op.name if op is not None else node.target}: no converter")
    if node not in program.values:
        raise Unsupported(f"{op.name}: its shape depends on values")
    out = program.values[node]
    call = Call(op.name, attributes_of(node), [program.values[a] for a in node.args], (out,) if isinstance(out, torch.Tensor) else out,
                [program.constants.get(a) for a in node.args], node.target, _reader(node))
    for dtype in (*call.in_types, *call.out_types):
        if dtype not in COMPUTED:
            raise Unsupported(f"{op.name}: computes in {str(dtype).removeprefix('torch.')}")
    if any(0 in shape for shape in (*call.in_shapes, *call.out_shapes)):
        raise Unsupported(f"{op.name}: an array is empty")
    on_integers = op.name in ON_INTEGERS
    converted = converter(call, *(inputs if on_integers else map(plain, inputs)))
    outputs = [_output(f) for f in (converted if isinstance(converted, list) or type(converted) is tuple else (converted,))]
    for given, shape, dtype in zip(outputs, call.out_shapes, call.out_types):
        output = getattr(given, "value", given) if on_integers else given
        if output is not given:
            if given.dtype is not dtype:
                raise Unsupported(f"{op.name}: its integers are {given.dtype}, expected {dtype}")
            dtype = torch.float32
        if tuple(output.get_partial_shape().to_shape()) != shape or output.get_element_type() != TYPES[dtype]:
            raise Unsupported(f"{op.name}: OpenVINO computes {output.get_element_type()} {output.get_partial_shape()}, expected {dtype} {shape}")
    return outputs


def _reader(node: fx.Node) -> Operator | None:
    """Return the single operator that reads a node's first output; None if there are several, or none."""
    parts = [user for user in node.users if user.target is item]
    first = [part for part in parts if part.args[1] == 0] if parts else [node]
    readers = [reader for part in first for reader in part.users]
    return operator_of(readers[0]) if len(readers) == 1 else None


def magnitude(largest: Value, dtype: torch.dtype) -> Value:
    """Return a divisor that prevents overflow of squares: the `largest` magnitude, or 1 if that is tiny or infinite."""
    least, infinity, one = (constant(number, dtype) for number in (torch.finfo(dtype).tiny, math.inf, 1.0))
    return ops.select(ops.logical_and(ops.greater(largest, least), ops.less(largest, infinity)), largest, one).output(0)


def plain(value: Value) -> Value:
    """Return an input as an output of an OpenVINO node; quantized arrays as integers."""
    return value.integers() if hasattr(value, "integers") else value


def _output(value: Value) -> Value:
    return value.output(0) if hasattr(value, "output") else value
