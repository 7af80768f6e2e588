"""Which nodes of our graph each layer of a compiled model computes: OpenVINO joins some, and adds others, such as changes of layout."""
from collections.abc import Iterable, Iterator
from typing import Any

from ...ndarray.dispatch import Call
from ..observed import call_of, nodes_of
from ..program import FxNode, Program

_SEPARATOR = "\x1f"  # stands in no name of a program's


def mark(node: FxNode, outputs: Iterable[Any], inputs: Iterable[Any]) -> None:
    """Name what a converter has made for a node after it: OpenVINO keeps these names where it joins operations."""
    owners = nodes_of(node)
    if not owners:
        return
    for number, made in enumerate(_between(outputs, inputs)):
        made.set_friendly_name(_SEPARATOR.join(("", owners[0].op.name, owners[0].name, str(number), "")))


def _between(outputs: Iterable[Any], inputs: Iterable[Any]) -> Iterator[Any]:
    """The operations that lead from the inputs to the outputs, and have no name of ours."""
    stops = {i.get_node().get_name() for i in inputs}
    stack = [o.get_node() for o in outputs]
    seen = set(stops)
    while stack:
        found = stack.pop()
        if found.get_name() in seen or _SEPARATOR in found.get_friendly_name():
            continue
        seen.add(found.get_name())
        if found.get_type_name() not in ("Constant", "Parameter"):
            yield found
        stack += [value.get_node() for value in found.input_values()]


def names(model: Any, program: Program) -> dict[str, Call]:
    """By name of a layer of a compiled model, what it computes of the program."""
    kinds, found = {}, {}
    for layer in model.get_runtime_model().get_ops():
        information = layer.get_rt_info()
        origins = str(information["originalLayersNames"].astype(str)) if "originalLayersNames" in information else ""
        kinds[layer.get_friendly_name()] = str(information["layerType"].astype(str)) if "layerType" in information else layer.get_type_name()
        found[layer.get_friendly_name()] = {part.split(_SEPARATOR)[2] for part in origins.split(",") if part.count(_SEPARATOR) == 4}
    layer_of = {name: layer for layer, names in found.items() for name in names}
    for node in reversed(program.graph.nodes):
        for owner in nodes_of(node)[:1]:
            # A convolution whose weights took up a factor that followed loses its name: it became part of what reads it.
            if owner.name not in layer_of:
                layer = next((layer_of[n.name] for user in node.users for n in nodes_of(user)[:1] if n.name in layer_of), None)
                if layer is not None:
                    layer_of[owner.name] = layer
                    found[layer].add(owner.name)
    order = [owner for node in program.graph.nodes for owner in nodes_of(node)[:1]]
    calls = {}
    for layer, names_of in found.items():
        owners = [n for n in order if n.name in names_of]
        if owners and kinds[layer] != "Reorder":
            calls[layer] = call_of(owners, "", f"by OpenVINO's {kinds[layer]}")
        else:
            calls[layer] = Call(kinds[layer], "+".join(n.name for n in owners), "added by OpenVINO")
    return calls
