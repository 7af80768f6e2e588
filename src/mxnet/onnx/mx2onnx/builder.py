"""The ONNX graph that converters write to: values, nodes, constants, each under a name of its own."""
import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...base import MXNetError

INT64 = np.dtype(np.int64)
_TYPES = {  # result types that differ from the first input's
    **dict.fromkeys(("Shape", "Size", "ArgMax", "ArgMin", "NonZero", "NonMaxSuppression"), INT64),
    **dict.fromkeys(("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor", "Not", "IsNaN"), np.dtype(bool)),
}
_SAY_THEIR_TYPE = {"RandomUniform", "RandomNormal", "Multinomial"}
# From which opset on an attribute is an input.
_AXES = {**dict.fromkeys(("Squeeze", "Unsqueeze", "ReduceSum"), 13),
         **dict.fromkeys(("ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2"), 18)}
_INPUTS = {("Split", "split"): 13, **{(kind, "axes"): opset for kind, opset in _AXES.items()}}
_FLOATS = {np.dtype(t) for t in (np.float16, np.float32, np.float64)}


class Unsupported(Exception):
    """Raised for a use of an operator that cannot be written to an ONNX file; the message gives the reason."""


def numpy_type(name: str) -> np.dtype:
    """Return NumPy's type for a type name of MXNet's; bfloat16 is that of the package onnx.

    Raises
    ------
    MXNetError
        If the package onnx has no bfloat16.
    """
    if name != "bfloat16":
        return np.dtype(name)
    import onnx
    dtype = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
    if dtype.name != name:
        raise MXNetError(f"networks in bfloat16 are written with onnx 1.18 or later; {onnx.__version__} is installed")
    return dtype


def floating(dtype: np.dtype) -> bool:
    """Return True for floating-point types, including bfloat16, which is a type of the package onnx and no floating type to NumPy."""
    return dtype in _FLOATS or dtype.name == "bfloat16"


def lowest(dtype: np.dtype) -> float:
    """Return the lowest finite number of a floating type."""
    return -float(np.uint32(0x7F7F0000).view(np.float32)) if dtype.name == "bfloat16" else float(np.finfo(dtype).min)


class Value:
    """A tensor of the ONNX graph.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype
    shape : tuple of int or None, or None
        As far as it is known when the file is written: None for a size that may vary, and in place of the tuple where nothing is known.
    array : numpy.ndarray or None
        Its content, where that is known: a parameter or another constant.
    """

    __slots__ = ("name", "dtype", "shape", "array")

    def __init__(self, name: str, dtype: np.dtype, shape: tuple | None = None, array: np.ndarray | None = None):
        self.name, self.dtype, self.shape, self.array = name, dtype, shape, array

    def __repr__(self) -> str:
        return f"<{self.name}: {self.dtype} {self.shape}>"

    @property
    def ndim(self) -> int:
        if self.shape is None:
            raise Unsupported(f"the number of axes of {self.name} is not known")
        return len(self.shape)

    @property
    def fixed(self) -> bool:
        """True if all sizes are known."""
        return self.shape is not None and None not in self.shape


class Integers(Value):
    """Quantized integers, with their real values in the graph: the results of DequantizeLinear, or the sums that int32 values represent.

    Attributes
    ----------
    unit : float
        The scale: the real number for the integer 1.
    """

    __slots__ = ("unit", "_real")

    def __init__(self, name: str, dtype: np.dtype, shape: tuple | None, array: np.ndarray | None, unit: float, real: Value | None = None):
        super().__init__(name, dtype, shape, array)
        self.unit, self._real = unit, real

    def real(self, on: "Builder") -> Value:
        """Return the real numbers."""
        if self._real is None:
            zero = np.zeros((), self.dtype)
            self._real = on.DequantizeLinear(self, np.array(self.unit, np.float32), zero, dtype=np.float32, out_shape=self.shape)
        return self._real


class Node:
    """One node of the ONNX graph."""

    __slots__ = ("kind", "inputs", "outputs", "attributes", "name")

    def __init__(self, kind: str, inputs: list, outputs: list, attributes: dict, name: str):
        self.kind, self.inputs, self.outputs, self.attributes, self.name = kind, inputs, outputs, attributes, name


class Builder:
    """A collection of nodes. ``on.Add(x, y)`` adds a node of the kind ``Add`` and returns its output.

    An input may be a `Value`, None (left out), a number (a constant of the type of the first value among the inputs), a list or tuple of
    integers (a constant of type int64) or an array (a constant). ``outputs=2`` gives a tuple; ``dtype`` is the type of the outputs
    where it does not follow from the kind, ``out_shape`` their shape where a later step needs it.

    Attributes
    ----------
    opset : int
    out : list of Value
        Of which shapes and types the results of the node are that is being converted.
    """

    def __init__(self, opset: int):
        self.opset = opset
        self.nodes: list[Node] = []
        self.out: list[Value] = []
        self.scope = ""
        self._names: set[str] = set()
        self._constants: dict[tuple, Value] = {}
        self._truths: dict[int, Value] = {}  # the truth values that a value is a cast of, by its id
        self._fills: dict[int, tuple[Value, np.ndarray]] = {}  # the sizes and the number of an array of one number

    def unique(self, name: str) -> str:
        """Return `name`, or, if it is in use, a new name that begins with it."""
        candidate, count = name, 0
        while candidate in self._names:
            count += 1
            candidate = f"{name}_{count}"
        self._names.add(candidate)
        return candidate

    def __getattr__(self, kind: str) -> Any:
        if not kind[0].isupper():
            raise AttributeError(kind)
        return functools.partial(self._node, kind)

    def _node(self, kind: str, *inputs: Any, outputs: int = 1, dtype: Any = None, out_shape: tuple | None = None, **attributes: Any) -> Any:
        for axes in [name for name in attributes if self.opset >= _INPUTS.get((kind, name), self.opset + 1)]:
            inputs = (*inputs, attributes.pop(axes))
        if any(isinstance(i, Integers) and i.dtype == np.int32 for i in inputs):
            raise Unsupported("its input is int32 sums of products, which are written where they are requantized only; calibrate the network")
        like = next((i.dtype for i in inputs if isinstance(i, Value)), np.dtype(np.float32))
        values = [i if i is None or isinstance(i, Value) else self._literal(i, like) for i in inputs]
        if dtype is None:
            dtype = _TYPES.get(kind) or (values[1].dtype if kind == "Where" else like)
        made = [Value(self.unique(f"{self.scope}/{kind}"), np.dtype(dtype), out_shape) for _ in range(outputs)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        if kind in _SAY_THEIR_TYPE:
            attributes["dtype"] = np.dtype(dtype)
        self.nodes.append(Node(kind, values, made, attributes, made[0].name))
        return made[0] if outputs == 1 else tuple(made)

    def _literal(self, value: Any, like: np.dtype) -> Value:
        if isinstance(value, (list, tuple)):
            return self.const(value, INT64)
        return self.const(value, value.dtype if isinstance(value, np.ndarray) else like)

    @property
    def shape(self) -> tuple:
        """The shape of the first result."""
        return self.out[0].shape  # type: ignore[return-value]

    @property
    def dtype(self) -> np.dtype:
        """The type of the first result."""
        return self.out[0].dtype

    # -- constants, and constant folding -------------------------------------------------------------------------------

    def const(self, value: Any, dtype: Any) -> Value:
        """Return a constant; equal small ones are shared."""
        array = np.asarray(value, dtype)
        key = (array.dtype, array.shape, array.tobytes()) if array.size <= 64 else (id(array),)
        if key not in self._constants:
            self._constants[key] = Value(self.unique("constant"), array.dtype, array.shape, array)
        return self._constants[key]

    def given(self, name: str, array: np.ndarray) -> Value:
        """Return the value of a parameter, under its own name."""
        return Value(self.unique(name), array.dtype, array.shape, array)

    def cast(self, x: Value, dtype: Any) -> Value:
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if x.array is not None and x.array.size <= 64:
            return self.const(x.array.astype(dtype), dtype)
        if dtype.kind == "b" and id(x) in self._truths:
            truth = self._truths[id(x)]
            if truth.shape is None:
                truth.shape = x.shape
            return truth
        made = self.Cast(x, to=dtype, dtype=dtype, out_shape=x.shape)
        if x.dtype == bool:
            self._truths[id(made)] = x
        return made

    def fill(self, sizes: Value, number: Any, dtype: Any, shape: tuple | None = None) -> Value:
        """Return an array of one number, of sizes that a value holds."""
        made = self.ConstantOfShape(sizes, value=np.array([number], dtype), dtype=dtype, out_shape=shape)
        self._fills[id(made)] = sizes, np.asarray(number, dtype)
        return made

    def filling(self, x: Value) -> tuple[Value, np.ndarray] | None:
        """Return the sizes and the number of an array that `fill` made, None for others."""
        return self._fills.get(id(x))

    def keep_only(self, results: Iterable[Value]) -> None:
        """Remove the nodes that none of these values follows from."""
        needed, live = {id(value) for value in results}, []
        for node in reversed(self.nodes):
            if any(id(made) in needed for made in node.outputs):
                live.append(node)
                needed.update(id(value) for value in node.inputs if value is not None)
        self.nodes = live[::-1]

    def reshape(self, x: Value, shape: Any) -> Value:
        """Reshape `x` to other sizes: a list of `dim`s, of which one may be -1, or a value that holds them."""
        if not isinstance(shape, Value):
            fixed = all(not isinstance(s, Value) for s in shape)
            if fixed and x.array is not None:
                return self._computed(x.array.reshape(shape))
            if fixed and x.fixed and x.shape and 0 not in x.shape:  # with all sizes known, as the file is written again after an import
                shape = [x.shape[i] if size == 0 else size for i, size in enumerate(shape)]  # type: ignore[index]
                rest = math.prod(x.shape) // math.prod(size for size in shape if size != -1)  # type: ignore[arg-type]
                shape = [rest if size == -1 else size for size in shape]
            if fixed and x.shape == tuple(shape):
                return x
            known = tuple(shape) if fixed and all(s > 0 for s in shape) else None
            return self.Reshape(x, self.sizes(shape), out_shape=known)
        return self.Reshape(x, shape)

    def transpose(self, x: Value, axes: Sequence[int]) -> Value:
        if list(axes) == list(range(len(axes))):
            return x
        if x.array is not None:
            return self._computed(x.array.transpose(axes))
        return self.Transpose(x, perm=list(axes), out_shape=None if x.shape is None else tuple(x.shape[a] for a in axes))

    def concat(self, values: Iterable[Value], axis: int) -> Value:
        values = list(values)
        if len(values) == 1:
            return values[0]
        if all(v.array is not None for v in values):
            return self._computed(np.concatenate([v.array for v in values], axis))
        return self.Concat(*values, axis=axis)

    def slice(self, x: Value, begin: int, end: int, axis: int = 0, step: int = 1) -> Value:
        """Slice `x` between two positions along an axis."""
        if x.array is not None and axis >= 0:
            return self._computed(x.array[(slice(None),) * axis + (slice(begin, end, step),)])
        return self.Slice(x, [begin], [end], [axis], None if step == 1 else [step])

    def unsqueeze(self, x: Value, *axes: int) -> Value:
        if x.array is not None:
            return self._computed(np.expand_dims(x.array, axes))
        return self.Unsqueeze(x, axes=list(axes))

    def squeeze(self, x: Value, *axes: int) -> Value:
        if x.array is not None:
            return self._computed(x.array.squeeze(axes))
        return self.Squeeze(x, axes=list(axes))

    def sum(self, x: Value, axes: Iterable[int], keepdims: bool) -> Value:
        return self.ReduceSum(x, axes=list(axes), keepdims=int(keepdims))

    def split(self, x: Value, sizes: Sequence[int], axis: int) -> list[Value]:
        """Split a value into pieces of these sizes along an axis."""
        if len(sizes) == 1:
            return [x]
        if x.array is not None:
            return [self._computed(part) for part in np.split(x.array, np.cumsum(sizes)[:-1], axis)]
        return list(self.Split(x, split=list(sizes), axis=axis, outputs=len(sizes)))

    def per_channel(self, x: Value, ndim: int, axis: int = 1) -> Value:
        """Reshape a vector to broadcast along `axis` of `ndim`."""
        shape = [1] * ndim
        shape[axis] = -1
        return self.reshape(x, shape)

    def _computed(self, array: np.ndarray) -> Value:
        return self.const(np.ascontiguousarray(array) if array.ndim else array, array.dtype)

    # -- sizes, known now or when the file runs -------------------------------------------------------------------------

    def dim(self, x: Value, axis: int) -> Any:
        """Return a size: an integer where it is known, otherwise a value of shape (1,)."""
        size = x.shape[axis] if x.shape is not None else None
        if size is not None:
            return size
        return self.Gather(self.Shape(x), [axis], dtype=INT64)

    def dims(self, x: Value) -> list:
        return [self.dim(x, i) for i in range(x.ndim)]

    def sizes(self, dims: Sequence) -> Value:
        """Return a value that holds these `dim`s."""
        if all(not isinstance(d, Value) for d in dims):
            return self.const([int(d) for d in dims], INT64)
        return self.Concat(*[d if isinstance(d, Value) else self.const([d], INT64) for d in dims], axis=0, dtype=INT64)

    def times(self, a: Any, b: Any) -> Any:
        """Return the product of two `dim`s."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            return a * b
        return self.Mul(*(d if isinstance(d, Value) else self.const([d], INT64) for d in (a, b)))

    def over(self, a: Any, b: Any) -> Any:
        """Return the quotient of two `dim`s."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            return a // b
        return self.Div(*(d if isinstance(d, Value) else self.const([d], INT64) for d in (a, b)))
