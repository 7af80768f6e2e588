"""In-place concatenation, a pass of the `kernels` backend: convolutions write to their channels of the concatenated array."""
import torch

from ....kernels.runtime.strided_output import StridedOutputLayer, new_images
from ....ops.shape.joining import concat
from ...instrumentation import record_origins
from ...program import FxNode, Program, attributes_of, calls, holds


class ConcatBuffer:
    """Allocates the output (N, C, H, W), channels last, of a concatenation, to which the parts are written."""

    __name__ = "concat_buffer"

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape

    def __call__(self) -> torch.Tensor:
        return new_images(self.shape)


def copy_into(buffer: torch.Tensor, part: torch.Tensor, first: int) -> torch.Tensor:
    """Copy a part into the channels of the buffer from `first` on; return the buffer."""
    buffer[:, first:first + part.shape[1]] = part
    return buffer


def complete(buffer: torch.Tensor, *parts: torch.Tensor) -> torch.Tensor:
    """Return the buffer; the parts are arguments so that they are computed before."""
    return buffer


def apply(program: Program) -> list[str]:
    """Let convolutions whose only reader is a concatenation write to its buffer; return the lines of a report."""
    graph, count = program.graph, 0
    place: dict[FxNode, int] = {}
    for node in list(graph.nodes):
        place[node] = len(place)
        shape = program.shape(node) if calls(node, concat) else None
        if shape is None or len(shape) != 4 or attributes_of(node)["dim"] != 1 or not holds(node, "layout_agnostic"):
            continue
        values = [v for v in map(program.values.get, node.args) if isinstance(v, torch.Tensor) and v.dtype is torch.float32 and v.dim() == 4]
        if len(values) < len(node.args):
            continue
        direct = [part for part in node.args if isinstance(part.target, StridedOutputLayer) and len(part.users) == 1 and node.args.count(part) == 1]
        if not direct:
            continue
        with graph.inserting_before(min(direct, key=place.__getitem__)):
            buffer = graph.call_function(ConcatBuffer(shape), ())
        parts, first = [], 0
        for part, value in zip(node.args, values):
            if part in direct:
                part.kwargs = {"into": buffer, "first": first}
            else:
                with graph.inserting_before(node):
                    part = graph.call_function(copy_into, (buffer, part, first))
            parts.append(part)
            first += value.shape[1]
        with graph.inserting_before(node):
            new = graph.call_function(complete, (buffer, *parts))
        record_origins(new, node)
        program.values[new] = program.values[node]
        node.replace_all_uses_with(new)
        graph.erase_node(node)
        count += len(direct)
    return [f"kernels: {count} x convolution into a concatenation"] if count else []
