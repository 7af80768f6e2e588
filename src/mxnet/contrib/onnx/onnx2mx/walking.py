"""Traversal of the nodes of an ONNX graph: the common part of `translator` (to Symbols) and `running` (on arrays)."""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ....base import MXNetError
from .functions import builtin_function
from .reading import UnknownValue, UnsupportedFeature, onnx_package, read_attributes, read_tensor
from .registry import FOLDS, TRANSLATIONS, operator_name
from .values import Value

_DEEPEST = 32  # calls of functions in functions
_LARGEST = 1 << 24  # elements of an array that importing computes


class Walker:
    """A visitor of the nodes of a graph. Subclasses define the calls of operators: `entry`, `op`, `dtype`, `known_shapes`.

    Parameters
    ----------
    opset : int
        The version of ONNX's operators that the file was written for.
    folder : str, optional
        The file's, for arrays in files of their own.
    functions : sequence of onnx.FunctionProto
        The operators that the file defines itself.

    Attributes
    ----------
    node_outputs, node_type : int and str
        Of the node that is being imported: its number of outputs, and its operator.
    open_inputs : list of bool
        Of a node that is computed: which inputs follow from open sizes.
    sources : dict
        Where sizes that the file leaves open can be read, see `reshaping.source`.
    """

    nodes_left = 1 << 17  # that may be gone through, so that functions which call one another many times over come to an end
    iterations_left = 0  # of loops

    def __init__(self, opset: int, folder: str | None = None, functions: Sequence[Any] = ()):
        self.opset, self.folder = opset, folder
        self.functions = {(f.domain, f.name): f for f in functions}
        self.node_outputs, self.node_type, self.open_inputs, self.sources = 0, "", [], {}
        self._trials, self._scope, self._depth, self._outer, self._left_open = 1, {}, 0, None, ""

    # -- methods of subclasses ------------------------------------------------------------------------------------------

    def entry(self, value: Value) -> Any:
        """Return the operand with the value, in the form that `op` takes."""
        raise NotImplementedError

    def op(self, name: str, *inputs: Any, is_scalar: bool = False, is_boolean: bool = False, **attributes: Any) -> Any:
        """Call one of MXNet's operators.

        Parameters
        ----------
        name : str
        *inputs : Value
        is_scalar, is_boolean : bool
            As `scalar` and `boolean` of `Value`.
        **attributes
            Of the operator.

        Returns
        -------
        Value, or tuple of Value if the operator has several outputs
        """
        raise NotImplementedError

    def dtype(self, value: Value) -> np.dtype[Any] | None:
        """Return the numpy type of a value; None where that is not known."""
        raise NotImplementedError

    def undone(self, value: Value, name: str, **attributes: Any) -> Value | None:
        """Return the input of the operator that made a value, if it is this one with these attributes; None if it is not, or not known."""

    def known_shapes(self, value: Value) -> list[Any] | None:
        """Return the value's ONNX shape for each set of sizes, or None if it is unknown."""
        raise NotImplementedError

    def deferred(self, node: Any, inputs: Any, error: Any) -> Any:
        """Return placeholders for the outputs of a node that needs values known only at run time, or None to raise `error`."""

    def count(self) -> int:
        """Return the number of operators called so far."""
        return 0

    def named(self, node: Any, results: Any, before: Any) -> None:
        """Receive the results of a node, and the number of operators called before it."""

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def refuse_unknown(self, graph: Any) -> None:
        """Raise an error for a graph with unsupported nodes.

        Raises
        ------
        UnsupportedFeature
            The text names all of their operators.
        """
        unknown = {}
        for node in all_nodes(graph):
            name = operator_name(node)
            if name not in TRANSLATIONS and (node.domain, node.op_type) not in self.functions and builtin_function(node, self.opset) is None:
                unknown.setdefault(name, node.name or f"that makes '{next(iter(node.output), '')}'")
        if unknown:
            named = ", ".join(f"{operator} (node {where})" for operator, where in unknown.items())
            raise UnsupportedFeature(f"no operators here compute these of the file: {named}")

    def initializers(self, tensors: Iterable[Any]) -> None:
        """Put the arrays of a graph into the scope."""
        for tensor in tensors:
            self._scope[tensor.name] = self.array(read_tensor(tensor, self.folder, f"the initializer '{tensor.name}'"), tensor.name)

    def nodes(self, nodes: Iterable[Any]) -> None:
        """Import nodes in their order, into the scope.

        Raises
        ------
        MXNetError
            If one is invalid, or uses a feature that cannot be imported; the message names it.
        """
        for node in nodes:
            self.nodes_left -= 1
            if self.nodes_left < 0:
                raise MXNetError("the graph has too many nodes, counting those of functions and loops each time that they are called")
            name = f"node '{node.name}'" if node.name else f"the node that makes {list(node.output)[:3]}"
            label = f"{name} ({operator_name(node)})"
            try:
                results = self._node(node)
            except UnknownValue as error:
                raise UnknownValue(f"{label}: {error}") from error
            except UnsupportedFeature as error:
                raise UnsupportedFeature(f"{label}: {error}") from error
            except Exception as error:  # errors in translations caused by damaged files
                text = str(error) if isinstance(error, MXNetError) else f"its inputs or attributes are not what the operator takes ({error!r:.200})"
                raise MXNetError(f"{label}: {text}") from error
            for name, value in itertools.zip_longest(node.output, results):
                if not name:
                    continue
                if value is None:
                    raise UnsupportedFeature(f"{label}: its output '{name}' cannot be imported")
                if name in self._scope:
                    raise MXNetError(f"{label}: '{name}' has been made before")
                value.name = value.name or name
                self._scope[name] = value

    def _node(self, node):
        inputs = []
        for name in node.input:
            if name and name not in self._scope:
                raise MXNetError(f"the input '{name}' is no input of the graph, no initializer, and made by no node before")
            inputs.append(self._scope[name] if name else None)
        try:
            return self._results(node, inputs, read_attributes(node, self.folder, self._outer))
        except UnknownValue as error:
            results = self.deferred(node, inputs, error)
            if results is None:
                raise
            return results

    def _results(self, node, inputs, attributes):
        operator = operator_name(node)
        used = max((i + 1 for i, name in enumerate(node.output) if name), default=0)
        if any(value is not None and value.later for value in inputs):
            raise UnknownValue("its inputs are computed when the network runs")
        own = self.functions.get((node.domain, node.op_type))
        if own is not None:
            return self._call(own, inputs, attributes, node.output)
        if operator not in TRANSLATIONS:
            return self._builtin(node, inputs, attributes)

        def run():
            given, named = TRANSLATIONS[operator].arguments(inputs, attributes, self.array)
            self.node_outputs, self.node_type = used, node.op_type
            before = self.count()
            results = TRANSLATIONS[operator].function(self, *given, **named)
            results = results if isinstance(results, (list, tuple)) else [results]
            self.named(node, results, before)
            return results

        folded = self._fold(operator, inputs, attributes, len(node.output))
        if folded is None:
            return run()
        for i, value in enumerate(folded):
            value.recipe = lambda i=i: run()[i]
        return folded

    def _builtin(self, node, inputs, attributes):
        """Import a node of an operator that ONNX defines as a function of others."""
        types = [onnx_package().TypeProto() for _ in inputs]
        for value, made in zip(inputs, types):
            if value is not None and value.sequence is None:
                kind, shapes = self.dtype(value), self.known_shapes(value)
                if kind is not None:
                    made.tensor_type.elem_type = onnx_package().helper.np_dtype_to_tensor_dtype(np.dtype(bool) if value.boolean else kind)
                for size in self.sizes(value) if shapes is not None else ():
                    made.tensor_type.shape.dim.add(**({} if size is None else {"dim_value": size}))
        definition = builtin_function(_resolved(node, attributes), self.opset, types)
        if definition is None:
            raise UnsupportedFeature("no operator here computes this")
        function, defaults = definition
        return self._call(function, inputs, {**read_attributes(defaults, self.folder), **attributes}, node.output)

    def _fold(self, operator, inputs, attributes, outputs):
        """Return the results of a node on known arrays; None if an input is unknown, or there is no folding rule for the operator."""
        rule = FOLDS.get(operator)
        if rule is None or not inputs or any(value is not None and value.arrays is None for value in inputs):
            return None
        trials = []
        self.node_outputs = outputs
        self.open_inputs = [value is not None and value.array is None for value in inputs]
        for trial in range(self._trials):
            arrays = [None if value is None else value.arrays[trial] for value in inputs]
            given, named = rule.arguments(arrays, attributes, np.asarray)
            with np.errstate(all="ignore"):
                results = rule.function(self, *given, **named)
            if results is None:
                return None
            results = [np.asarray(array) for array in (results if isinstance(results, (list, tuple)) else [results])]
            if any(array.size > _LARGEST and array.size > max(a.size for a in arrays if a is not None) for array in results):
                return None
            trials.append(results)
            if all(value is None or value.array is not None for value in inputs):  # the same in every trial
                trials *= self._trials
                break
        return [Value("", list(arrays)) for arrays in zip(*trials)]

    def _call(self, function, inputs, attributes, outputs):
        if self._depth >= _DEEPEST:
            raise MXNetError(f"functions call one another more than {_DEEPEST} deep")
        defaults = read_attributes(function, self.folder, None, "attribute_proto")
        before = self._scope, self._outer, self.opset
        self._scope = dict(itertools.zip_longest(function.input, inputs[:len(function.input)]))
        self._outer = {**defaults, **attributes}
        self.opset = next((entry.version for entry in function.opset_import if entry.domain in ("", "ai.onnx")), self.opset)
        self._depth += 1
        try:
            self.nodes(function.node)
            wanted = [name for name, outside in zip(function.output, outputs) if outside]
            missing = [name for name in wanted if name not in self._scope]
            if missing:
                raise MXNetError(f"the function's output '{missing[0]}' is made by no node")
            return [self._scope.get(name) for name in function.output[:len(outputs)]]
        finally:
            self._scope, self._outer, self.opset = before
            self._depth -= 1

    def branch(self, graph: Any, inputs: Sequence[Value] = ()) -> list[Value]:
        """Import a graph within this one, which sees its values.

        Parameters
        ----------
        graph : onnx.GraphProto
        inputs : sequence of Value
            The values of its own inputs.

        Returns
        -------
        list of Value
        """
        if len(inputs) != len(graph.input):
            raise MXNetError(f"a graph within the node takes {len(graph.input)} inputs, received {len(inputs)}")
        if self._depth >= _DEEPEST:
            raise MXNetError(f"graphs stand in one another more than {_DEEPEST} deep")
        outside, self._scope = self._scope, dict(self._scope)
        self._scope.update((info.name, value) for info, value in zip(graph.input, inputs))
        self._depth += 1
        try:
            self.initializers(graph.initializer)
            self.nodes(graph.node)
            missing = [value.name for value in graph.output if value.name not in self._scope]
            if missing:
                raise MXNetError(f"the output '{missing[0]}' of a graph within it is made by no node")
            return [self._scope[value.name] for value in graph.output]
        finally:
            self._scope = outside
            self._depth -= 1

    # -- services to translations --------------------------------------------------------------------------------------

    def array(self, array: Any, name: str = "") -> Value:
        """Return a `Value` of a known array; `name` becomes the name of its variable in the Symbol."""
        return Value(name, [np.asarray(array)] * self._trials)

    def iterate(self) -> None:
        """Count an iteration of a loop, and end loops that take too many."""
        self.iterations_left -= 1
        if self.iterations_left < 0:
            self.too_many_iterations()

    def too_many_iterations(self) -> Exception:
        """Raise the error that ends a loop."""
        raise NotImplementedError

    def small(self, shape: Sequence[int], what: str) -> tuple[int, ...]:
        """Return a shape, of which an array is about to be made.

        Raises
        ------
        MXNetError
            If it has more than 2**24 elements.
        """
        if math.prod(shape) > _LARGEST:
            raise MXNetError(f"{what} takes an array of shape {tuple(shape)[:8]}; at most {_LARGEST} elements are computed while importing")
        return tuple(shape)

    def shapes(self, value: Value) -> list[Any]:
        """Return the value's shape for each set of sizes.

        Raises
        ------
        UnknownValue
            If it is not known.
        """
        known = self.known_shapes(value)
        if known is None:
            remedy = f"; it leaves open {self._left_open}: write the file with numbers for them" if self._left_open else ""
            raise UnknownValue(f"the shape of '{value.name or 'an intermediate value'}' must be known for this, and does not follow from what "
                               f"the file says of its inputs{remedy}")
        return known

    def sizes(self, value: Value) -> tuple[int | None, ...]:
        """Return the value's shape, with None for sizes that the file leaves open; errors as for `shapes`."""
        return tuple(column[0] if len(set(column)) == 1 else None for column in zip(*self.shapes(value)))

    def size(self, value: Value, axis: int, what: str = "this") -> int:
        """Return one size of the value; raise an error if the file leaves it open."""
        length = self.sizes(value)[axis]
        if length is None:
            raise UnknownValue(f"{what} needs the size of axis {axis} of '{value.name or 'an intermediate value'}', which the file leaves open")
        return length

    def fixed(self, value: Value, what: str = "this") -> tuple[int, ...]:
        """All sizes of the value, none of which the file may leave open."""
        return tuple(self.size(value, axis, what) for axis in range(self.rank(value)))

    def rank(self, value: Value) -> int:
        """Return the number of axes of the value in ONNX; errors as for `shapes`."""
        return len(self.shapes(value)[0])

    def axis(self, value: Value, axis: int, beyond: int = 0) -> int:
        """Return an axis counted from the front.

        Parameters
        ----------
        value : Value
        axis : int
        beyond : int
            The number of axes beyond those of `value`.

        Raises
        ------
        MXNetError
            If there is no such axis.
        """
        rank = self.rank(value) + beyond
        if not -rank <= axis < rank:
            raise MXNetError(f"axis {axis} of an array of {rank} axes; expected {-rank} to {rank - 1}")
        return axis % rank if rank else 0

    def note_sizes(self, value: Value) -> None:
        """Record where open sizes can be read when the network runs."""
        for axis, numbers in enumerate(zip(*self.shapes(value))):
            if len(set(numbers)) > 1:
                self.sources.setdefault(numbers, (value, axis))


def _resolved(node, attributes):
    """Return the node with the values of attributes that refer to those of the function that it is in: bodies may depend on them."""
    if not any(attribute.ref_attr_name for attribute in node.attribute):
        return node
    onnx = onnx_package()
    made = onnx.NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            made.attribute.append(attribute)
        elif attribute.name in attributes:
            value = attributes[attribute.name]
            made.attribute.append(onnx.helper.make_attribute(attribute.name, onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray)
                                                             else value))
    return made


def all_nodes(graph: Any) -> Iterator[Any]:
    """Yield the nodes of a graph and of those within it."""
    graphs = [graph]
    while graphs:
        for node in graphs.pop().node:
            yield node
            for attribute in node.attribute:
                graphs += [attribute.g] if attribute.HasField("g") else attribute.graphs
