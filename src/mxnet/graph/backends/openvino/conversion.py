"""From nodes of a graph to OpenVINO's operations.

A converter is a function for one operator (or several), registered by name::

    @converts("Flatten")
    def flatten(call, data):
        return call.reshape(data, call.out_shape)

It stands at the path of the file that defines the operator: for ``ops/nn/pooling.py`` in ``graph/backends/openvino/nn/pooling.py``. An operator
without a converter stays on `native`. A converter gets the `Call` and the inputs as outputs of OpenVINO nodes, and returns one output or a
list of them. All shapes are known and fixed. What it can't express it refuses with `call.refuse(reason)`: that node stays on `native` too.
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

# A node of OpenVINO's or an output of one: its own annotations know only nodes, where outputs do as well.
Value: TypeAlias = Any
Converter: TypeAlias = Callable[..., Any]
CONVERTERS: dict[str, Converter] = {}  # by operator
ON_INTEGERS: set[str] = set()  # those whose converters take and return `Ranged` (see `integers`)
TYPES = {torch.float32: ov.Type.f32, torch.float16: ov.Type.f16, torch.bfloat16: ov.Type.bf16, torch.int32: ov.Type.i32, torch.int64: ov.Type.i64,
         torch.int8: ov.Type.i8, torch.uint8: ov.Type.u8, torch.bool: ov.Type.boolean}
# Types that may pass from one node to the next. Half precision has a result type of its own in MXNet, whose rounding
# OpenVINO would skip, and double precision would become single.
COMPUTED = {torch.float32, torch.int32, torch.int64, torch.bool, torch.uint8, torch.int8}


class Unsupported(Exception):
    """This node can't be expressed; the text says why."""


class Call:
    """One use of an operator: its attributes, and the shapes and types of what goes in and out."""

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
        """The shape of the first input."""
        return self.in_shapes[0]

    @property
    def out_shape(self) -> tuple[int, ...]:
        return self.out_shapes[0]

    def refuse(self, reason: str) -> NoReturn:
        raise Unsupported(f"{self.name}: {reason}")

    def axis(self, value: int, ndim: int | None = None) -> int:
        """An axis counted from the front."""
        return value % (len(self.shape) if ndim is None else ndim)

    def known(self, i: int) -> np.ndarray | None:
        """The value of an input as a NumPy array, or None if it is not known ahead."""
        return None if self.constants[i] is None else self.constants[i].numpy()

    # -- what many converters need --------------------------------------------------------------------------------------

    def const(self, value: Any, dtype: torch.dtype | None = None) -> Value:
        """A constant of the first input's type, or of `dtype` (a torch type)."""
        return constant(value, dtype or self.in_types[0])

    def float(self, value: Any) -> Value:
        return constant(value, torch.float32)

    def floats(self) -> None:
        """Refuse what is not all float32."""
        if any(t is not torch.float32 for t in (*self.in_types, *self.out_types)):
            self.refuse("integers")

    def reshape(self, x: Value, shape: Iterable[int]) -> Value:
        return ops.reshape(x, ints(shape), False).output(0)

    def transpose(self, x: Value, axes: Iterable[int]) -> Value:
        return ops.transpose(x, ints(axes)).output(0)

    def per_channel(self, x: Value, ndim: int, axis: int = 1) -> Value:
        """A vector with one value a channel, shaped to broadcast along `axis` of `ndim`."""
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
    """Register the decorated function as the converter of these operators, which may compute with quantized arrays."""
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
    """The outputs of the OpenVINO nodes that compute what the fx node does.

    Raises
    ------
    Unsupported
        If there is no converter for it, or not for these attributes, shapes or types.
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
    """The operator that alone reads the first output of a node; None if there are several, or none."""
    parts = [user for user in node.users if user.target is item]
    first = [part for part in parts if part.args[1] == 0] if parts else [node]
    readers = [reader for part in first for reader in part.users]
    return operator_of(readers[0]) if len(readers) == 1 else None


def magnitude(largest: Value, dtype: torch.dtype) -> Value:
    """The divisor of numbers that are to be squared, so that nothing overflows: their `largest` magnitude, or 1 where that is tiny or infinite."""
    least, infinity, one = (constant(number, dtype) for number in (torch.finfo(dtype).tiny, math.inf, 1.0))
    return ops.select(ops.logical_and(ops.greater(largest, least), ops.less(largest, infinity)), largest, one).output(0)


def plain(value: Value) -> Value:
    """An input as an output of an OpenVINO node: integers as such."""
    return value.integers() if hasattr(value, "integers") else value


def _output(value: Value) -> Value:
    return value.output(0) if hasattr(value, "output") else value
