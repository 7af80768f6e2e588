"""Insertion of casts into a finished graph, and the resulting types of its parameters."""
from __future__ import annotations

from typing import Any

import torch

from ...ops.dtypes import NAME_TO_FLAG, NAME_TO_TORCH, name_of
from ...ops.elemwise.unary import amp_cast, amp_multicast
from ...symbol import inference
from ...symbol.node import Node, topological

_FLOAT32 = torch.float32

class Conversion:
    """Copies a graph with casts where operators need another type.

    Parameters
    ----------
    target : str
        The low precision, ``'float16'`` or ``'bfloat16'``.
    target_ops, fp32_ops, widest_ops : collection of str
        Which operators get inputs of low precision, of float32, of one common type.
    conditional_ops : list of (str, str, list of str)
        Operators, an attribute, and its values with which they get float32.
    excluded : collection of str
        Names of nodes that get float32.
    data_names : collection of str
        Variables that are data, not parameters.
    cast_params : bool
        Parameters that only low-precision operators use get that type, instead of a cast.
    """

    def __init__(self, target: str, target_ops: Any, fp32_ops: Any, widest_ops: Any, conditional_ops: Any, excluded: Any, data_names: Any,
                 cast_params: bool):
        self.target = NAME_TO_TORCH[target]
        self.target_ops, self.fp32_ops, self.widest_ops = set(target_ops), set(fp32_ops), set(widest_ops)
        self.conditions = {}
        for name, attribute, values in conditional_ops:
            self.conditions.setdefault(name, []).append((attribute, values))
        self.excluded, self.data_names, self.cast_params = set(excluded), set(data_names), cast_params
        self.copies = {}  # id of an old node -> new node
        # For each type: where to get an old entry's values in that type.
        self.known = {_FLOAT32: {}, self.target: {}}

    def run(self, outputs: list[Any]) -> list[Any]:
        """Return the outputs of the new graph; all are float32."""
        for node in topological(outputs):
            new = self.copies[id(node)] = Node(node.op, node.name, dict(node.attrs))
            if node.name in self.excluded:
                self._convert_to_fp32(node, new)
            elif node.op is None:
                continue
            elif node.op.name in self.fp32_ops:
                self._convert_to_fp32(node, new)
            elif node.op.name in self.target_ops:
                self._convert_to_target(node, new)
            elif node.op.name in self.widest_ops:
                self._convert_to_widest(node, new)
            elif self._condition_holds(node):
                self._note(node, new, [_FLOAT32] * node.num_outputs())
                mutated = node.op.mutated_indices
                new.inputs = [self._plain(e) if i in mutated and e not in self.known[_FLOAT32] else self._in_type(e, _FLOAT32)
                              for i, e in enumerate(node.inputs)]
            else:
                self._keep(node, new)
        return [self._in_type(e, _FLOAT32) for e in outputs]

    # -- entries -----------------------------------------------------------------------------------------------------------

    def _plain(self, entry):
        return self.copies[id(entry[0])], entry[1]

    def _in_type(self, entry, dtype):
        """Return the entry with the values of an old entry in a type, adding a cast if there is none yet."""
        converted = self.known[dtype].get(entry)
        if converted is None:
            name = name_of(dtype)
            cast = Node(amp_cast, f"{entry[0].name}{_suffix(entry)}_amp_cast_{name}", {"dtype": name}, [self._plain(entry)])
            converted = self.known[dtype][entry] = cast, 0
        return converted

    def _note(self, node, new, types):
        for i, dtype in enumerate(types):
            if dtype in self.known:
                self.known[dtype][node, i] = new, i

    def _type_of(self, entry):
        return next((dtype for dtype in (self.target, _FLOAT32) if entry in self.known[dtype]), None)

    # -- kinds of nodes ------------------------------------------------------------------------------------------------------

    def _convert_to_fp32(self, node, new):
        self._note(node, new, [_FLOAT32] * node.num_outputs())
        new.inputs = [self._plain(e) if e[0].op is None and e not in self.known[_FLOAT32] else self._in_type(e, _FLOAT32)
                      for e in node.inputs]

    def _convert_to_target(self, node, new):
        in_types, out_types = _types_of_use(node, self.target)
        self._note(node, new, out_types)
        for i, entry in enumerate(node.inputs):
            is_param = self.cast_params and entry[0].op is None
            # Some inputs stay float32 beside low-precision data, and inputs that the operator writes to must be variables.
            unchanged = i in node.op.mutated_indices or in_types[i] not in (self.target, None)
            if entry in self.known[self.target] or not (unchanged or is_param and entry[0].name not in self.data_names):
                new.inputs.append(self._in_type(entry, self.target))
                continue
            new.inputs.append(self._plain(entry))
            if is_param:
                self.known[self.target][entry] = self._plain(entry)

    def _convert_to_widest(self, node, new):
        if any(self._type_of(e) is None for e in node.inputs):
            first = node.inputs[0]
            cast = Node(amp_multicast, f"{first[0].name}{_suffix(first)}_amp_multicast",
                        {"num_outputs": str(len(node.inputs))}, [self._plain(e) for e in node.inputs])
            new.inputs = [(cast, i) for i in range(len(node.inputs))]
            return
        dtype = _FLOAT32 if any(e in self.known[_FLOAT32] for e in node.inputs) else self.target
        self._note(node, new, [dtype] * node.num_outputs())
        new.inputs = [self._in_type(e, dtype) for e in node.inputs]

    def _condition_holds(self, node):
        return any(node.attrs.get(attribute) in values for attribute, values in self.conditions.get(node.op.name, ()))

    def _keep(self, node, new):
        first = self._type_of(node.inputs[0]) if node.inputs else None
        if first is not None:
            self._note(node, new, _types_of_use(node, first)[1])
        new.inputs = [self._plain(e) for e in node.inputs]


def _suffix(entry):
    node, i = entry
    if node.op is None:
        return ""
    return f"_{node.op.list_output_names(node.parsed())[i]}" if node.op.names_output else f"_{i}"


def _types_of_use(node, first):
    """Return the types of a node's inputs and outputs if its first input is of type `first`; None where that does not settle them."""
    if not node.inputs:
        return [], [None] * node.num_outputs()
    alone = Node(node.op, node.name, node.attrs, [(Node(None, str(i), {}), 0) for i in range(len(node.inputs))])
    types, _ = inference.infer_types([(alone, i) for i in range(alone.num_outputs())], {"0": first})
    return [types[id(n), 0] for n, _ in alone.inputs], [types[id(alone), i] for i in range(alone.num_outputs())]


def set_param_types(outputs: list[Any], target: str, data_names: Any, param_names: Any, cast_params: bool) -> None:
    """Write the types that the variables of a converted graph have now into their ``__dtype__``.

    Parameters
    ----------
    outputs : list of (Node, int)
    target : str
    data_names : collection of str
        Variables that are float32.
    param_names : collection of str
        Variables to annotate.
    cast_params : bool
        Give variables that nothing but casts to the low precision use that type.
    """
    variables = [node for node in topological(outputs) if node.op is None]
    # The annotations were valid for the graph without casts.
    annotated = {id(node): node.attrs.pop("__dtype__") for node in variables if "__dtype__" in node.attrs}
    types, nodes = inference.infer_types(outputs, dict.fromkeys(data_names, _FLOAT32))
    chosen = {id(node): types[id(node), 0] for node in variables}
    if cast_params:
        _choose_for_casts(nodes, NAME_TO_TORCH[target], chosen)
    by_name = {node.name: chosen[id(node)] or _FLOAT32 for node in variables}
    for node in variables:
        if node.name in param_names:
            node.attrs["__dtype__"] = str(NAME_TO_FLAG[name_of(by_name[node.name])])
        elif id(node) in annotated:
            node.attrs["__dtype__"] = annotated[id(node)]


def _choose_for_casts(nodes, target, chosen):
    """Set the type of variables without one to that of the casts after them, unless these differ."""
    inferred, visited = dict(chosen), {}
    for node in nodes:
        if node.op is None or node.op.amp != "cast":
            continue
        sources = [child for child, _ in node.inputs]
        if node.op is amp_cast:
            dtype = node.parsed()["dtype"]
        elif all(child.op is None for child in sources):
            dtype = target
        else:
            continue
        for child in sources:
            if child.op is not None:
                continue
            if child.name not in visited:
                if chosen[id(child)] is None:
                    visited[child.name] = chosen[id(child)] = dtype
            elif visited[child.name] != dtype:
                chosen[id(child)] = inferred[id(child)]
