"""The report on the algorithms of a graph's convolutions."""
from collections import Counter

from torch import fx

from ....kernels.conv.prepacked_conv import PrepackedConv
from ....ops.nn.training_layers import ConvolutionLayer
from .batch_tiling import targets


def algorithms(module: fx.GraphModule) -> list[str]:
    """Return the algorithms that a graph's convolutions used in the last run, as lines of a report."""
    layers = [t for t in targets(module.graph) if isinstance(t, (ConvolutionLayer, PrepackedConv))]
    lines = []
    for direction in dict.fromkeys(direction for layer in layers for direction in layer.chosen):
        counts = Counter(layer.chosen[direction] for layer in layers if direction in layer.chosen)
        lines.append(f"convolutions, {direction}: {', '.join(f'{count} x {name}' for name, count in sorted(counts.items()))}")
    return lines
