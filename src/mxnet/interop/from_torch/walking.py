"""From a graph that torch has exported to a Symbol."""
from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx
from torch.export.graph_signature import InputKind, OutputKind

from ... import name as naming
from ... import symbol as sym
from ...base import MXNetError
from ...ops.grad_mode import no_grad
from ...symbol import Symbol
from .exporting import export
from .registry import converter, writes
from .values import Call, NoCounterpart, Value, is_static, key

NUMERIC = (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)
# Operators whose results look at the memory of their first input: what is then written to one changes the other.
_VIEWS = {"alias", "chunk", "contiguous", "detach", "diagonal", "expand", "flatten", "narrow", "permute", "reshape", "select", "slice", "split",
          "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unflatten", "unsqueeze", "view"}
# Those that give the right values on constants of size 1 where the size varies.
_SPREADING = {"add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or",
              "bitwise_not", "neg", "rsub", "to", "_to_copy", "unsqueeze", "expand", "masked_fill", "where", "clone", "contiguous", "alias",
              "__and__", "__or__", "detach", "lift_fresh_copy", "zeros_like", "ones_like", "full_like"}

# Those that spread such constants themselves.
_JOINING = {"cat", "concat", "concatenate", "stack", "maximum", "minimum", "pow", "remainder", "floor_divide", "scaled_dot_product_attention"}


class Translation(NamedTuple):
    """A module as a Symbol.

    Attributes
    ----------
    outputs : list of Symbol
    inputs : list of str
    parameters : dict of str to torch.Tensor
        The module's own parameters and buffers, under torch's names, and constants that the graph has built in.
    trained : set of str
        Those that have gradients.
    """

    outputs: list[Symbol]
    inputs: list[str]
    parameters: dict[str, torch.Tensor]
    trained: set[str]


def translate(module: torch.nn.Module, examples: Sequence[Any], kwargs: Mapping[str, Any] | None = None, dynamic_shapes: Any = None) -> Translation:
    """Return a module of torch's as a Symbol.

    Parameters
    ----------
    module : torch.nn.Module
        In the mode in which it is: what it computes only in training is lost if it is in `eval` mode. Dropout and batch normalization are operators
        that follow MXNet's modes.
    examples : sequence of torch.Tensor or NDArray
        Positional arguments, of the shapes and types to come. The first size may vary, if the module allows it.
    kwargs : dict, optional
        Further arguments.
    dynamic_shapes : optional
        As for `torch.export.export`: which other sizes may vary.

    Returns
    -------
    Translation

    Raises
    ------
    NoCounterpart
        If an operator has none in MXNet; the text names it.
    MXNetError
        If torch can't export the module.
    """
    program = export(module, examples, kwargs, dynamic_shapes)
    with naming.NameManager(), no_grad():
        return _Walk(program, module.training).run()


class _Walk:
    """One pass through a graph."""

    def __init__(self, program: torch.export.ExportedProgram, training: bool) -> None:
        self._program, self.training = program, training
        self._values: dict[fx.Node, Any] = {}
        self._order = {node: i for i, node in enumerate(program.graph.nodes)}
        self._bases: dict[fx.Node, fx.Node] = {}  # of views: whose memory they look at
        self._buffers: dict[fx.Node, str] = {}
        self._inputs: list[str] = []
        self._sizes: dict[str, tuple[Symbol, int]] = {}  # inputs that have a size that varies, and the axis
        self._tensors: dict[str, torch.Tensor] = {}
        self._trained: set[str] = set()
        self._node: fx.Node | None = None

    def run(self) -> Translation:
        signature = self._program.graph_signature
        given = [spec for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT and hasattr(spec.arg, "name")]
        placeholders = {node.name: node for node in self._program.graph.nodes if node.op == "placeholder"}
        tensors = [spec for spec in given if isinstance(placeholders[spec.arg.name].meta.get("val"), torch.Tensor)]
        for spec in signature.input_specs:
            node = placeholders[spec.arg.name]
            if spec.kind is not InputKind.USER_INPUT:
                self._stored(node, spec)
            elif isinstance(node.meta.get("val"), torch.Tensor):
                self._input(node, "data" if len(tensors) == 1 else node.name)
        for node in self._program.graph.nodes:
            self._node = node
            if node.op == "call_function":
                self._call(node)
        self._node = None
        outputs = self._outputs(signature)
        used = {name for output in outputs for name in output.list_inputs()}
        return Translation(outputs, self._inputs, {n: t for n, t in self._tensors.items() if n in used}, self._trained & used)

    # -- what comes in and goes out ------------------------------------------------------------------------------------------

    def _input(self, node: fx.Node, name: str) -> None:
        value = node.meta["val"]
        variable = sym.var(name)
        self._inputs.append(name)
        self._values[node] = Value(value.shape, value.dtype, variable).of_type(value.dtype)
        for axis, size in enumerate(value.shape):
            if not is_static(size):
                self._sizes.setdefault(key(size), (variable, axis))

    def _stored(self, node: fx.Node, spec: Any) -> None:
        """A parameter, a buffer or a constant of the module's."""
        name, program = spec.target, self._program
        if name in program.state_dict:
            tensor = program.state_dict[name]
        elif name in program.constants:
            tensor = program.constants[name]
        else:
            raise MXNetError(f"from_torch: {name} of the module is no tensor, which no Symbol can hold")
        is_parameter = spec.kind is InputKind.PARAMETER
        if is_parameter and tensor.requires_grad:
            self._trained.add(name)
        if not is_parameter:
            self._buffers[node] = name
        known = next((n for n, t in self._tensors.items() if t is tensor), None) or name  # one that two modules share stays one

        def make() -> Symbol:
            self._tensors.setdefault(known, tensor)
            return sym.var(known)

        if is_parameter:
            self._tensors.setdefault(known, tensor)
        self._values[node] = Value(tensor.shape, tensor.dtype, constant=None if is_parameter else tensor.detach(), make=make).of_type(tensor.dtype)

    def _outputs(self, signature: Any) -> list[Symbol]:
        outputs = []
        results = next(node for node in self._program.graph.nodes if node.op == "output").args[0]
        for spec, node in zip(signature.output_specs, results):
            value = self._values.get(node) if isinstance(node, fx.Node) else None
            if spec.kind is OutputKind.USER_OUTPUT:
                if isinstance(node, fx.Node) and isinstance(node.meta.get("val"), torch.Tensor):
                    outputs.append(self._argument(node).symbol)
            elif spec.kind is OutputKind.BUFFER_MUTATION and value is not None and not spec.target.endswith("num_batches_tracked"):
                raise NoCounterpart(f"from_torch: the module writes to its buffer {spec.target}, and only batch normalization does so in MXNet")
        if not outputs:
            raise MXNetError("from_torch: the module returns no tensor")
        # A variable that is returned as it is would be no output of an operator.
        return [sym.identity(s) if s._outputs[0][0].op is None else s for s in outputs]

    # -- what operators ask for ------------------------------------------------------------------------------------------------

    def place(self) -> str:
        """Return the path of the node in the module, for errors."""
        stack = (self._node.meta.get("nn_module_stack") or {}) if self._node is not None else {}
        paths = [path for path, _ in stack.values() if path]
        return f", in {paths[-1]}" if paths else ""

    def constant(self, tensor: torch.Tensor) -> Value:
        """A value that is a parameter of the network without a gradient, if it is needed as an array."""
        def make() -> Symbol:
            name = f"constant{sum(n.startswith('constant') for n in self._tensors)}"
            while name in self._tensors:
                name += "_"
            data = tensor.detach()
            if data.dtype is torch.bool:
                data = data.float()
            # MXNet has no arrays without axes.
            self._tensors[name] = data.reshape(1).clone() if data.dim() == 0 else data.contiguous().clone()
            return sym.var(name)

        value = Value(tensor.shape, torch.float32 if tensor.dtype is torch.bool else tensor.dtype, constant=tensor.detach(), make=make)
        value.is_literal = True
        return value

    def array_of_size(self, size: Any, call: Call) -> tuple[Symbol, int]:
        """An input one of whose sizes is this one, which varies, and the axis."""
        array = self._sizes.get(key(size))
        if array is None:
            raise call.refuse(f"an array is spread to the size {key(size)}, which no input has")
        return array

    # -- nodes -----------------------------------------------------------------------------------------------------------------

    def _call(self, node: fx.Node) -> None:
        target, meta = node.target, node.meta.get("val")
        if target is operator.getitem:
            parts = self._values.get(node.args[0])  # type: ignore[arg-type]  # a node
            if parts is not None:
                self._values[node] = parts[node.args[1]]
                self._bases[node] = self._base(node.args[0])
            return
        if not isinstance(target, torch._ops.OpOverload):
            if isinstance(meta, NUMERIC) or meta is None:
                return  # arithmetic of sizes, which the shapes of results show
            raise NoCounterpart(f"from_torch: {target} (node {node.name}{self.place()}) has no counterpart in MXNet: torch.export left control flow "
                                "or a function of Python's in the graph")
        if isinstance(meta, NUMERIC) or meta is None:
            return
        name = target._schema.name.removeprefix("aten::")
        if writes(target) and self._skips_write(node):
            return
        function = converter(target)
        arguments = self._arguments(node)
        folded = self._folded(node, name, arguments)
        if folded is not None:
            result: Any = folded
        elif function is None:
            raise NoCounterpart(f"from_torch: operator {target} (node {node.name}{self.place()}) has no counterpart in MXNet")
        else:
            call = Call(node.name, target, meta, self)
            result = function(call, *(arguments if name.rstrip("_") in _SPREADING | _JOINING else _whole(call, arguments)))
        self._values[node] = result = _typed(result, meta)
        if name.rstrip("_") in _VIEWS and isinstance(node.args[0], fx.Node):
            self._bases[node] = self._base(node.args[0])
        if writes(target):
            self._written(node, node.args[0], result)

    def _arguments(self, node: fx.Node) -> list[Any]:
        """The arguments in the order of the schema."""
        given = dict(node.kwargs)
        arguments = []
        for i, argument in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]  # an OpOverload
            if i < len(node.args):
                arguments.append(self._argument(node.args[i]))
            elif argument.name in given:
                arguments.append(self._argument(given[argument.name]))
            else:
                arguments.append(argument.default_value)
        return arguments

    def _argument(self, arg: Any) -> Any:
        if isinstance(arg, fx.Node):
            if arg not in self._values:
                return arg.meta.get("val")
            if self._values[arg] is None:
                raise NoCounterpart(f"from_torch: a result of operator {arg.args[0].target} (node {arg.name}{self.place()}) is used that "  # type: ignore[union-attr]
                                    "MXNet's operator does not give")
            return self._values[arg]
        if isinstance(arg, (list, tuple)):
            return [self._argument(a) for a in arg]
        return arg

    def _folded(self, node: fx.Node, name: str, arguments: Sequence[Any]) -> Any:
        """The result, if it depends on constants alone."""
        leaves = torch.utils._pytree.tree_leaves(list(arguments))
        values = [leaf for leaf in leaves if isinstance(leaf, Value)]
        if any(v.constant is None for v in values) or torch.Tag.nondeterministic_seeded in node.target.tags:  # type: ignore[union-attr]
            return None
        meta = node.meta["val"]
        shapes = [tuple(m.shape) for m in (meta if isinstance(meta, (list, tuple)) else [meta]) if isinstance(m, torch.Tensor)]
        varies = any(not all(map(is_static, s)) for s in [*shapes, *[v.shape for v in values]])
        if varies and not (name.rstrip("_") in _SPREADING or not values and name in ("full", "ones", "zeros", "empty", "new_full")):
            return None
        if not varies and any(isinstance(leaf, torch.SymInt) and not is_static(leaf) for leaf in leaves):
            return None
        tensors = torch.utils._pytree.tree_map(self._plain, list(arguments))
        schema = node.target._schema.arguments  # type: ignore[union-attr]
        positional = [t for t, a in zip(tensors, schema) if not a.kwarg_only]
        named = {a.name: t for t, a in zip(tensors, schema) if a.kwarg_only}
        if writes(node.target):
            positional[0] = positional[0].clone()
        result = node.target(*positional, **named)  # type: ignore[operator]
        if isinstance(result, (list, tuple)):
            return [self._of_shape(r, m) for r, m in zip(result, meta)]
        return self._of_shape(result, meta)

    @staticmethod
    def _plain(leaf: Any) -> Any:
        if isinstance(leaf, Value):
            return leaf.constant
        if isinstance(leaf, torch.SymInt):
            return int(leaf) if is_static(leaf) else 1
        return leaf

    def _of_shape(self, tensor: torch.Tensor, meta: torch.Tensor) -> Value:
        value = self.constant(tensor)
        value.shape = tuple(meta.shape)
        return value

    # -- writes ----------------------------------------------------------------------------------------------------------------

    def _skips_write(self, node: fx.Node) -> bool:
        """Return True if a write is one to a buffer that MXNet does not have."""
        name = self._buffers.get(node.args[0])  # type: ignore[arg-type]  # what is written to is a node
        if name is None:
            return False
        if not name.endswith("num_batches_tracked"):
            raise NoCounterpart(f"from_torch: the module writes to its buffer {name}, and only batch normalization does so in MXNet")
        self._values[node] = self._values[node.args[0]]  # type: ignore[index]
        return True

    def _base(self, node: Any) -> fx.Node:
        """Return the node whose memory a view looks at."""
        return self._bases.get(node, node)

    def _written(self, node: fx.Node, target: Any, result: Any) -> None:
        """Let later uses of what an operator has written to be uses of its result."""
        base = self._base(target)
        family = [n for n in (*self._bases, base) if n is not target and n is not node and self._base(n) is base]
        if any(self._order[user] > self._order[node] for n in family for user in n.users):
            raise NoCounterpart(f"from_torch: operator {node.target} (node {node.name}{self.place()}) writes to a part or a view of an array that is "
                                "read later; MXNet's graphs write to nothing")
        self._values[target] = result



def _whole(call: Call, arguments: Any) -> Any:
    """The arguments, with constants of size 1 where the size varies spread to that size."""
    def spread(leaf: Any) -> Any:
        if not isinstance(leaf, Value) or leaf.constant is None or tuple(leaf.constant.shape) == leaf.shape:
            return leaf
        return Value(leaf.shape, leaf.dtype, call.broadcast(leaf, leaf.shape)).of_type(torch.bool if leaf.truth else leaf.dtype)

    return torch.utils._pytree.tree_map(spread, arguments)


def _typed(result: Any, meta: Any) -> Any:
    """The results, as values of the types that they have in torch."""
    if isinstance(result, Value):
        first = meta if isinstance(meta, torch.Tensor) else meta[0]
        return result.of_type(first.dtype)
    return [None if value is None else value.of_type(m.dtype) for value, m in zip(result, meta)]
