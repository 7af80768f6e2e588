"""From the nodes of an ONNX graph to those of a Symbol."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import symbol, util
from ....base import MXNetError
from ....ops import dtypes
from ....ops.registry import get
from ....symbol.compose import create
from ....symbol.inference import infer_node, infer_node_types
from . import box_nms, deferring
from .reading import BFLOAT16, UnknownValue, UnsupportedFeature, element_type, read_tensor, stored_type
from .values import Value
from .walking import Walker


class Translator(Walker):
    """Imports one graph as a Symbol. Nodes that cannot be imported before sizes and values are known become one node at the end, see `deferring`.

    Parameters are those of `Walker`.

    Attributes
    ----------
    params : dict of str to numpy.ndarray
        The arrays that became variables.
    """

    iterations_left = 256

    def __init__(self, opset: int, folder: str | None = None, functions: Sequence[Any] = ()):
        super().__init__(opset, folder, functions)
        self.params, self.inputs = {}, []
        self._shapes, self._types, self._finished = [{}], {}, [set()]
        self._made, self._names, self._given = [], set(), set()

    # -- the graph -----------------------------------------------------------------------------------------------------

    def graph(self, graph: Any) -> list[Any]:
        """Import a graph.

        Parameters
        ----------
        graph : onnx.GraphProto

        Returns
        -------
        list of Value
            The outputs, each with an entry.

        Raises
        ------
        MXNetError
            If the graph is invalid, or uses a feature that cannot be imported; the message names the node.
        """
        self.refuse_unknown(graph)
        arrays = {}
        for tensor in graph.initializer:
            if not tensor.name.strip():
                raise MXNetError("an initializer has no name")
            arrays[tensor.name] = read_tensor(tensor, self.folder, f"the initializer '{tensor.name}'")
        if graph.sparse_initializer:
            raise UnsupportedFeature("the graph has sparse initializers, which cannot be imported")
        self._names.update(arrays, (value.name for value in graph.input))
        for name, sizes in self._open_sizes([value for value in graph.input if value.name not in arrays]):
            self._input(name, sizes)
        for name, array in arrays.items():
            self._scope[name] = self.array(array, name)
        nodes = box_nms.replaced(graph, self.opset, self.folder)
        self.nodes(nodes)
        missing = [info.name for info in graph.output if self._scope.get(info.name) is None]
        if missing:
            raise MXNetError(f"the output '{missing[0]}' is made by no node")
        later = deferring.finish(self, nodes, self._scope, [info for info in graph.output if self._scope[info.name].later])
        return [later.get(info.name) or self._output(info) for info in graph.output]

    def _open_sizes(self, values):
        """Yield each input with its shapes, and decide on the numbers that stand for open sizes."""
        named, numbers, sizes = {}, _numbers(), []
        for value in values:
            kind = value.type.tensor_type
            if value.type.WhichOneof("value") not in ("tensor_type", None):
                raise UnsupportedFeature(f"the input '{value.name}' is no array ({value.type.WhichOneof('value')}), and cannot be imported")
            shape = None
            if kind.HasField("shape"):
                shape = []
                for axis, dim in enumerate(kind.shape.dim):
                    if dim.dim_value > 0 or dim.HasField("dim_value") and util.is_np_shape() and not dim.dim_value:
                        shape.append((dim.dim_value, dim.dim_value))
                        continue
                    key = dim.dim_param or (value.name, axis)
                    if key not in named:
                        # Windows and strides need room; a sequence must not outgrow the table of its positions.
                        room = 64 if len(kind.shape.dim) > 3 and axis > 1 else 16 if len(kind.shape.dim) == 3 and axis == 2 else 1
                        named[key] = tuple(room * n for n in next(numbers))
                    shape.append(named[key])
            sizes.append((value, shape))
        if named:
            self._left_open = ", ".join(f"axis {key[1]} of '{key[0]}'" if isinstance(key, tuple) else f"{key!r}" for key in named)
            self._trials = 2
            self._shapes, self._finished = [{}, {}], [set(), set()]
        return sizes

    def _input(self, info, sizes):
        number = info.type.tensor_type.elem_type
        dtype = element_type(number, f"the input '{info.name}'") if number else np.dtype("float32")
        stored = "bfloat16" if number == BFLOAT16 else (stored_type(number) if number else None) or dtype
        made = symbol.var(info.name, dtype=None if stored == np.float32 else stored)
        exact = sizes == [] and util.is_np_shape()
        value = Value(info.name, entry=made._outputs[0], scalar=sizes == [] and not exact, boolean=dtype.kind == "b")
        shapes = [None] * self._trials if sizes is None else [tuple(size[i] for size in sizes) if sizes or exact else (1,)
                                                              for i in range(self._trials)]
        self._declare(value.entry[0], shapes, stored)
        if exact:
            value = self.op("_np_reshape", value, newshape=(1,), is_scalar=True, is_boolean=value.boolean)
        if stored != dtype:  # nothing computes with it
            value = self.op("Cast", value, dtype=dtype.name, is_scalar=value.scalar)
        value.name = info.name
        self._scope[info.name] = value
        self.inputs.append(info.name)
        if sizes is not None:
            self.note_sizes(value)

    def _declare(self, node, shapes, dtype):
        self._made.append(node)  # so that its id stays its own
        for known, shape in zip(self._shapes, shapes):
            known[id(node), 0] = shape
        self._types[id(node), 0] = dtypes.to_torch(dtype)

    def _output(self, info):
        value = self._scope[info.name]
        if value.sequence is not None:
            raise UnsupportedFeature(f"the output '{info.name}' is a sequence or an optional value; a network's outputs are arrays")
        if self.entry(value)[0].op is None:
            value = self.op("_copy", value, is_scalar=value.scalar, is_boolean=value.boolean)
        number = info.type.tensor_type.elem_type
        wanted = stored_type(number)
        if wanted is None and value.boolean:
            wanted = np.dtype("bool")
        if number == BFLOAT16 or wanted is not None and self.dtype(value) not in (None, wanted):
            value = self.op("Cast", value, dtype="bfloat16" if number == BFLOAT16 else wanted.name, is_scalar=value.scalar)
        if value.scalar and util.is_np_shape():
            value = self.op("_np_reshape", value, newshape=())
        return value

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def too_many_iterations(self) -> Exception:
        raise UnknownValue("at most 256 iterations of loops are written out")

    def named(self, node: Any, results: Any, before: Any) -> None:
        if node.name and node.name not in self._given and results and results[0] is not None and results[0].entry is not None:
            head = results[0].entry[0]
            if head.op is not None and any(head is new for new in self._made[before:]):
                head.name = node.name
                self._given.add(node.name)

    def count(self) -> int:
        return len(self._made)

    def deferred(self, node: Any, inputs: Any, error: Any) -> Any:
        if self._depth:
            return None
        return [Value(name, later=True) for name in node.output]

    # -- operands and operators ---------------------------------------------------------------------------------------

    def entry(self, value: Value) -> Any:
        """Return the output of a node that has the value; a variable, for a known array."""
        if value.entry is not None:
            return value.entry
        if value.later:
            raise UnknownValue(f"the value '{value.name}' is computed when the network runs")
        if value.sequence is not None:
            raise MXNetError(f"the value '{value.name}' is a sequence or an optional value, where an array was expected")
        array = value.array
        if array is None:
            made = value.recipe() if value.recipe is not None else None
            if made is None or made is value:
                raise UnknownValue(f"the value '{value.name}' follows from sizes that the file leaves open, in a way that cannot be imported")
            value.entry, value.scalar, value.boolean = self.entry(made), made.scalar, made.boolean
            return value.entry
        if value.recipe is not None and _is_filled(array):  # computed while importing: no parameter
            filled = self.op("_full", shape=array.shape, value=array.reshape(-1)[0].item(), dtype=array.dtype.name)
            value.entry = filled.entry
            return value.entry
        if not array.size and not util.is_np_shape():
            raise UnsupportedFeature(f"the array '{value.name}' of shape {array.shape} has no elements; import the file within mx.np_shape(), where "
                                     "there are such arrays")
        name = value.name or "constant"
        for number in itertools.count():
            unique = f"{name}_{number}" if number else name
            if unique not in self.params and (not number or unique not in self._names) and unique not in self.inputs:
                break
        self.params[unique] = array = array.reshape(array.shape or (1,))
        node = symbol.var(unique, shape=array.shape, dtype=None if array.dtype == np.float32 else array.dtype)._outputs[0][0]
        self._declare(node, [array.shape] * self._trials, array.dtype)
        value.scalar, value.boolean, value.entry = not value.arrays[0].shape, array.dtype.kind == "b", (node, 0)
        return value.entry

    def op(self, name: str, *inputs: Any, is_scalar: bool = False, is_boolean: bool = False, **attributes: Any) -> Any:
        operator = get(name)
        symbols = [symbol.Symbol([self.entry(value)]) for value in inputs]
        made = create(operator, symbols, attributes, None, operator.name.strip("_").lower())
        node = made._outputs[0][0]
        self._made.append(node)
        outputs = range(node.num_outputs())
        for known, finished in zip(self._shapes, self._finished):
            known.update(((id(node), i), None) for i in outputs)
            try:
                infer_node(node, known, finished)
            except MXNetError:
                if self._trials == 1:
                    raise
                # The numbers that stand for open sizes need not suit the network.
        self._types.update(((id(node), i), None) for i in outputs)
        infer_node_types(node, self._types)
        values = tuple(Value("", entry=(node, i), scalar=is_scalar, boolean=is_boolean) for i in outputs)
        return values[0] if len(values) == 1 else values

    def undone(self, value: Value, name: str, **attributes: Any) -> Value | None:
        node, i = self.entry(value)
        if node.op is None or i or node.op.name != get(name).name:
            return None
        parsed = node.op.with_defaults(node.parsed())
        if any(parsed[key] != wanted for key, wanted in attributes.items()):
            return None
        return Value("", entry=node.inputs[0], boolean=value.boolean)

    def dtype(self, value: Value) -> np.dtype[Any] | None:
        if value.entry is None and value.arrays is not None:
            return value.arrays[0].dtype
        node, i = self.entry(value)
        torch_type = self._types.get((id(node), i))
        return None if torch_type is None or dtypes.name_of(torch_type) == "bfloat16" else np.dtype(dtypes.to_numpy(torch_type))

    def known_shapes(self, value: Value) -> list[Any] | None:
        if value.arrays is not None:
            return [array.shape for array in value.arrays]
        if value.scalar:
            return [()] * self._trials
        node, i = self.entry(value)
        shapes = [known.get((id(node), i)) for known in self._shapes]
        return None if any(shape is None or min(shape, default=0) < 0 for shape in shapes) else shapes

    def rank(self, value: Value) -> int:
        """Return the number of axes of the value in ONNX; errors as for `shapes`."""
        if value.arrays is None and not value.scalar and value.entry is not None:  # a shape with open sizes will do
            partial = self._shapes[0].get((id(value.entry[0]), value.entry[1]))
            if partial is not None:
                return len(partial)
        return super().rank(value)


def _is_filled(array):
    """Return True for an array of one finite number, of some sizes and a type that `_full` has."""
    if array.size < 2 or array.dtype.name not in ("float16", "float32", "float64", "int8", "uint8", "int32", "int64"):
        return False
    first = array.reshape(-1)[0]
    return abs(float(first)) < 2 ** 53 and bool((array == first).all())


def _numbers():
    """Iterate over pairs of substitutes for open sizes: primes, so that products of sizes are distinct."""
    primes = [n for n in range(7, 1000) if all(n % m for m in range(2, 32) if m < n)]
    for i in itertools.count():
        yield (primes[2 * i], primes[2 * i + 1]) if 2 * i + 1 < len(primes) else (1009 + 2 * i, 2003 + 4 * i)
