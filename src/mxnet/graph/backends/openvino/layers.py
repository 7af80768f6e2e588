"""Which nodes of our graph each layer of a compiled model computes: OpenVINO joins some, and adds others, such as changes of layout."""
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ....ndarray.dispatch import Call
from ...instrumentation import call_of, nodes_of
from ...program import FxNode, Program

_SEPARATOR = "\x1f"  # stands in no name of a program's


def mark(node: FxNode, outputs: Iterable[Any], inputs: Iterable[Any]) -> None:
    """Name what a converter has made for a node after it: OpenVINO keeps these names where it joins operations."""
    owners = nodes_of(node)
    if not owners:
        return
    for number, operation in enumerate(_between(outputs, inputs)):
        operation.set_friendly_name(_SEPARATOR.join(("", owners[0].op.name, owners[0].name, str(number), "")))


def _between(outputs: Iterable[Any], inputs: Iterable[Any]) -> Iterator[Any]:
    """The operations that lead from the inputs to the outputs, and have no name of ours."""
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
    """By name of a layer of a compiled model, what it computes of the program."""
    kinds, owners_of = {}, {}
    for layer in model.get_runtime_model().get_ops():
        information = layer.get_rt_info()
        origins = str(information["originalLayersNames"].astype(str)) if "originalLayersNames" in information else ""
        kinds[layer.get_friendly_name()] = str(information["layerType"].astype(str)) if "layerType" in information else layer.get_type_name()
        owners_of[layer.get_friendly_name()] = {part.split(_SEPARATOR)[2] for part in origins.split(",") if part.count(_SEPARATOR) == 4}
    layer_of = {name: layer for layer, names in owners_of.items() for name in names}
    for node in reversed(program.graph.nodes):
        for owner in nodes_of(node)[:1]:
            # A convolution whose weights took up a factor that followed loses its name: it became part of what reads it.
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
    """Makes times of one run of averages over all: of each layer OpenVINO tells the average, in whole microseconds, since the model was compiled.

    What the runs from some on took is the difference of two sums. Of so many runs, at least the last half, a layer has its share of the time of the
    whole; of this run it gets the same. So layers never take longer than what they lie in, and follow a machine that becomes slower or faster.
    """

    def __init__(self) -> None:
        self._runs, self._whole = 0, 0
        # Sums up to the last two runs whose number is a power of two: runs, ns of the whole, ns of each layer.
        self._marks: list[tuple[int, int, Sequence[float]]] = [(0, 0, ()), (0, 0, ())]

    def shares(self, averages: Sequence[int], total: int) -> list[int]:
        """The ns of each layer in a run that has taken `whole` ns, behind which these are the averages."""
        self._runs, self._whole = self._runs + 1, self._whole + total
        sums = [(average + 500) * self._runs for average in averages]  # a part of a microsecond is cut off
        _, before, known = self._marks[0]
        known = known if len(known) == len(sums) else [0] * len(sums)
        scale = total / max(self._whole - before, sum(sums) - sum(known), 1)
        if self._runs & self._runs - 1 == 0:
            self._marks = [self._marks[1], (self._runs, self._whole, sums)]
        return [max(int((s - k) * scale), 0) for s, k in zip(sums, known)]
