"""The layout of the parameter vector of `RNN`.

All weights come first, then all biases. Each kind is ordered by layer, then by direction (``l``, then ``r``), then by group: from the input
(``i2h``), from the state (``h2h``), and the projection of an LSTM (``h2r``, which has no bias). The rows of a group are ordered by gate, with a row
for each hidden unit.
"""
import functools
import math
from collections.abc import Iterator
from typing import NamedTuple, Optional

from ...base import MXNetError

# The gates of each mode in the order of their rows, as the suffixes that the names of their own arrays have.
GATES: dict[str, tuple[str, ...]] = {"rnn_relu": ("",), "rnn_tanh": ("",), "lstm": ("_i", "_f", "_c", "_o"), "gru": ("_r", "_z", "_o")}


class Part(NamedTuple):
    """A weight or bias in the vector: of all gates, or of one."""

    layer: int
    direction: str
    group: str
    kind: str
    shape: tuple[int, ...]
    gate: str = ""

    @property
    def name(self) -> str:
        """The parameter's name in cells and layers, without their prefix: ``l0_i2h_weight``, for one gate ``l0_i2h_f_weight``."""
        return f"{self.direction}{self.layer}_{self.group}{self.gate}_{self.kind}"


class Layout:
    """The parts of one vector.

    Attributes
    ----------
    parts : tuple of Part
        In the order of the vector.
    shapes, sizes : tuple
        Of the parts.
    total : int
        The size of the vector.
    cells : tuple of tuple of int
        For each layer and direction the positions, among the parts, of its two weights, its two biases and perhaps its projection.

    Example
    -------
    >>> layout = layout_of("lstm", input_size=3, state_size=2, num_layers=1, directions=1)
    >>> [(part.name, part.shape) for part in layout.parts]
    [('l0_i2h_weight', (8, 3)), ('l0_h2h_weight', (8, 2)), ('l0_i2h_bias', (8,)), ('l0_h2h_bias', (8,))]
    >>> [part.name for part, place in layout.by_gate()][:2], layout.total
    (['l0_i2h_i_weight', 'l0_i2h_f_weight'], 56)
    """

    def __init__(self, mode: str, input_size: int, state_size: int, num_layers: int, directions: int, projection_size: Optional[int]) -> None:
        if mode not in GATES:
            raise MXNetError(f"unknown mode {mode!r} of recurrent layers; expected one of {', '.join(map(repr, GATES))}")
        self._gates = GATES[mode]
        rows, fed_back = len(self._gates) * state_size, projection_size or state_size
        weights, biases = [], []
        for layer in range(num_layers):
            for direction in "lr"[:directions]:
                columns = {"i2h": input_size if layer == 0 else fed_back * directions, "h2h": fed_back}
                weights += [Part(layer, direction, group, "weight", (rows, n)) for group, n in columns.items()]
                if projection_size:
                    weights.append(Part(layer, direction, "h2r", "weight", (projection_size, state_size)))
                biases += [Part(layer, direction, group, "bias", (rows,)) for group in columns]
        self.parts = (*weights, *biases)
        self.shapes = tuple(part.shape for part in self.parts)
        self.sizes = tuple(map(math.prod, self.shapes))
        self.total = sum(self.sizes)
        each = 3 if projection_size else 2
        self.cells = tuple((each * i, each * i + 1, len(weights) + 2 * i, len(weights) + 2 * i + 1, *range(each * i + 2, each * (i + 1)))
                           for i in range(num_layers * directions))

    def by_gate(self) -> Iterator[tuple[Part, slice]]:
        """Each part of one gate, and where it lies in the vector."""
        start = 0
        for part, size in zip(self.parts, self.sizes):
            gates = ("",) if part.group == "h2r" else self._gates
            shape, step = (part.shape[0] // len(gates), *part.shape[1:]), size // len(gates)
            for gate in gates:
                yield part._replace(shape=shape, gate=gate), slice(start, start + step)
                start += step


@functools.lru_cache(maxsize=256)
def layout_of(mode: str, input_size: int, state_size: int, num_layers: int, directions: int, projection_size: Optional[int] = None) -> Layout:
    """The layout for layers of `state_size` units, which are projected to `projection_size` unless that is None.

    `directions` is 2 for layers that also run backwards.

    Raises
    ------
    MXNetError
        If there is no such mode.
    """
    return Layout(mode, input_size, state_size, num_layers, directions, projection_size)


def layout_of_vector(total: int, mode: str, state_size: int, num_layers: int, directions: int, projection_size: Optional[int] = None) -> Layout:
    """Return the layout of a vector of `total` elements, from which the input's size is computed.

    Raises
    ------
    MXNetError
        If no size of the input makes so many.
    """
    projection = () if projection_size is None else (projection_size,)  # the cache's keys distinguish None from a missing argument
    empty = layout_of(mode, 0, state_size, num_layers, directions, *projection).total
    per_input = directions * len(GATES[mode]) * state_size
    layout = layout_of(mode, max(total - empty, 0) // per_input, state_size, num_layers, directions, *projection)
    if layout.total != total:
        raise MXNetError(f"{num_layers} {mode} layers of {state_size} units have {empty} parameters and {per_input} more for each input feature, "
                         f"received a vector of {total}; were they made for another cell?")
    return layout
