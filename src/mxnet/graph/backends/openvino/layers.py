"""The mapping from layers of a compiled model to nodes of our graph: OpenVINO merges nodes, and adds others, such as layout changes."""
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ....ndarray.dispatch import Call
from ...instrumentation import call_of, nodes_of
from ...program import FxNode, Program

_SEPARATOR = "\x1f"  # occurs in no name of a program


def mark(node: FxNode, outputs: Iterable[Any], inputs: Iterable[Any]) -> None:
    """Name a converter's operations after their node: OpenVINO keeps these names where it merges operations."""
    owners = nodes_of(node)
    if not owners:
        return
    for number, operation in enumerate(_between(outputs, inputs)):
        operation.set_friendly_name(_SEPARATOR.join(("", owners[0].op.name, owners[0].name, str(number), "")))


def _between(outputs: Iterable[Any], inputs: Iterable[Any]) -> Iterator[Any]:
    """Yield the operations between the inputs and the outputs that have no name of ours."""
    stops = {i.get_node().get_name() for i in inputs}
    stack = [o.get_node() for o in outputs]
    seen = set(stops)
    while stack:
        operation = stack.pop()
        if operation.get_name() in seen or _SEPARATOR in operation.get_friendly_name():
            continue
        seen.add(operation.get_name())
        if operation.get_type_name() not in ("Constant", "Parameter"):
            yield operation
        stack += [value.get_node() for value in operation.input_values()]


def names(model: Any, program: Program) -> dict[str, Call]:
    """Return the profile entry of each layer of a compiled model, by the layer's name."""
    kinds, owners_of = {}, {}
    for layer in model.get_runtime_model().get_ops():
        information = layer.get_rt_info()
        origins = str(information["originalLayersNames"].astype(str)) if "originalLayersNames" in information else ""
        kinds[layer.get_friendly_name()] = str(information["layerType"].astype(str)) if "layerType" in information else layer.get_type_name()
        owners_of[layer.get_friendly_name()] = {part.split(_SEPARATOR)[2] for part in origins.split(",") if part.count(_SEPARATOR) == 4}
    layer_of = {name: layer for layer, names in owners_of.items() for name in names}
    for node in reversed(program.graph.nodes):
        for owner in nodes_of(node)[:1]:
            # A convolution whose weights absorbed a following factor loses its name: it became part of its reader.
            if owner.name not in layer_of:
                layer = next((layer_of[n.name] for user in node.users for n in nodes_of(user)[:1] if n.name in layer_of), None)
                if layer is not None:
                    layer_of[owner.name] = layer
                    owners_of[layer].add(owner.name)
    order = [owner for node in program.graph.nodes for owner in nodes_of(node)[:1]]
    calls = {}
    for layer, names_of in owners_of.items():
        owners = [n for n in order if n.name in names_of]
        if owners and kinds[layer] != "Reorder":
            calls[layer] = call_of(owners, "", f"by OpenVINO's {kinds[layer]}")
        else:
            calls[layer] = Call(kinds[layer], "+".join(n.name for n in owners), "added by OpenVINO")
    return calls


class Averages:
    """Computes the times of one run from averages: OpenVINO reports each layer's average time since compilation, in whole microseconds.

    The time of recent runs is the difference of two sums. In these runs, at least the last half, a layer has a share of the total
    time; in this run it gets the same share. So layers never exceed the total time, and follow a machine that becomes slower or faster.
    """

    def __init__(self) -> None:
        self._runs, self._total = 0, 0
        # Sums up to the last two runs whose number is a power of two: runs, ns of all layers together, ns of each layer.
        self._marks: list[tuple[int, int, Sequence[float]]] = [(0, 0, ()), (0, 0, ())]

    def shares(self, averages: Sequence[int], total: int) -> list[int]:
        """Return the ns of each layer in a run of `total` ns, after which these are the averages."""
        self._runs, self._total = self._runs + 1, self._total + total
        sums = [(average + 500) * self._runs for average in averages]  # averages are truncated to microseconds
        _, before, known = self._marks[0]
        known = known if len(known) == len(sums) else [0] * len(sums)
        scale = total / max(self._total - before, sum(sums) - sum(known), 1)
        if self._runs & self._runs - 1 == 0:
            self._marks = [self._marks[1], (self._runs, self._total, sums)]
        return [max(int((s - k) * scale), 0) for s, k in zip(sums, known)]
