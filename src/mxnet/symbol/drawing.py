"""Drawings of Symbols as SVG, for notebooks: layers from top to bottom, without parameters."""
from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from .. import display

if TYPE_CHECKING:
    from .node import Node
    from .symbol import Symbol

# The endings of parameters' names; `mx.viz` and drawings leave such variables out.
WEIGHT_ENDINGS = ("_weight", "_bias", "_beta", "_gamma", "_moving_var", "_moving_mean", "_running_var", "_running_mean")
# Fill colours by operator; variables are "null".
COLORS = {"null": "#e3e8ef", "Convolution": "#f6c4b4", "Deconvolution": "#f6c4b4", "FullyConnected": "#f6c4b4", "Activation": "#f9e8b0",
          "LeakyReLU": "#f9e8b0", "BatchNorm": "#d5d0ee", "LayerNorm": "#d5d0ee", "Pooling": "#bcd9f2", "Concat": "#fbd9ac", "Flatten": "#fbd9ac",
          "Reshape": "#fbd9ac", "SoftmaxOutput": "#cbe6b5", "softmax": "#cbe6b5", "RNN": "#f6c4b4"}
OTHER_COLOR = "#f0dbe9"
_MOST = 300  # nodes; a larger network is not drawn
_ROW, _HEIGHT, _GAP, _LETTER = 62, 34, 18, 6.7
# The attributes that a box shows, by operator.
_DETAILS = {"Convolution": ("kernel", "stride", "num_filter"), "Deconvolution": ("kernel", "stride", "num_filter"), "FullyConnected": ("num_hidden",),
            "Activation": ("act_type",), "LeakyReLU": ("act_type",), "Pooling": ("pool_type", "kernel", "stride"), "Dropout": ("p",)}


def html_of(symbol: Symbol) -> str:
    """Return the drawing of a Symbol, or its text if it has more than `_MOST` layers."""
    nodes = [node for node in symbol._nodes() if node.op is not None or not node.name.endswith(WEIGHT_ENDINGS)]
    if len(nodes) > _MOST:
        return display.plain(f"{symbol!r}: {len(nodes)} nodes; mx.viz.plot_network(symbol) draws it")
    return _svg(nodes)


def label(node: Node) -> tuple[str, str]:
    """Return the two lines in a node's box: its name; its operator, with what distinguishes it."""
    if node.op is None:
        return node.name, "input"
    attributes = node.attrs
    details = [str(attributes[key]).replace(" ", "") for key in _DETAILS.get(node.op.name, ()) if key in attributes]
    return node.name, " ".join([node.op.name, *details])


def _levels(nodes: list[Node]) -> dict[int, int]:
    """Return the row of each node: below all that it uses."""
    levels: dict[int, int] = {}
    for node in nodes:  # in the order in which they are computed
        levels[id(node)] = 1 + max((levels[id(source)] for source, _ in node.inputs if id(source) in levels), default=-1)
    return levels


def _places(nodes: list[Node], levels: dict[int, int], widths: dict[int, float]) -> tuple[dict[int, float], float]:
    """Return the horizontal middle of each box, near those above it, and the width of the drawing."""
    rows: dict[int, list[Node]] = {}
    for node in nodes:
        rows.setdefault(levels[id(node)], []).append(node)
    total_width = max(sum(widths[id(n)] + _GAP for n in row) for row in rows.values()) + _GAP
    places: dict[int, float] = {}
    for level in sorted(rows):
        row = rows[level]

        def above(node: Node) -> float:
            known = [places[id(source)] for source, _ in node.inputs if id(source) in places]
            return sum(known) / len(known) if known else total_width / 2

        row.sort(key=above)
        total = sum(widths[id(n)] for n in row) + _GAP * (len(row) - 1)
        wanted = sum(above(node) for node in row) / len(row) - total / 2
        left = min(max(wanted, _GAP), total_width - total - _GAP)
        for node in row:
            places[id(node)] = left + widths[id(node)] / 2
            left += widths[id(node)] + _GAP
    return places, total_width


def _svg(nodes: list[Any]) -> str:
    if not nodes:
        return display.plain("an empty graph")
    labels = {id(node): label(node) for node in nodes}
    widths = {key: max(len(text) for text in lines) * _LETTER + 16 for key, lines in labels.items()}
    levels = _levels(nodes)
    places, width = _places(nodes, levels, widths)
    height = (max(levels.values()) + 1) * _ROW
    edges, boxes = [], []
    for node in nodes:
        key, x, y = id(node), places[id(node)], levels[id(node)] * _ROW + 8
        for source, _ in node.inputs:
            if id(source) in places:
                edges.append(_edge(places[id(source)], levels[id(source)] * _ROW + 8 + _HEIGHT, x, y, levels[key] - levels[id(source)], widths[key]))
        first, second = (html.escape(text) for text in labels[key])
        color = COLORS.get("null" if node.op is None else node.op.name, OTHER_COLOR)
        left = x - widths[key] / 2
        boxes.append(f'<g><rect x="{left:.1f}" y="{y}" width="{widths[key]:.1f}" height="{_HEIGHT}" rx="6" fill="{color}" stroke="#0003"/>'
                     f'<text x="{x:.1f}" y="{y + 14}" font-weight="600">{first}</text><text x="{x:.1f}" y="{y + 27}">{second}</text></g>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="graph of {len(nodes)} nodes" width="{width:.0f}" height="{height}" '
            f'viewBox="0 0 {width:.0f} {height}" style="max-width:100%;height:auto" font-family="system-ui,sans-serif" font-size="11" '
            f'text-anchor="middle" fill="#1c2430"><g fill="none" stroke="#8899aa" stroke-width="1.3">{"".join(edges)}</g>{"".join(boxes)}</svg>')


def _edge(x0: float, y0: float, x1: float, y1: float, rows: int, width: float) -> str:
    """Return a line from a box to one below; past boxes in between it makes a bow."""
    bow = width / 2 + 14 if rows > 1 and abs(x0 - x1) < width else 0.0
    middle = (y1 - y0) / 2
    return f'<path d="M{x0:.1f} {y0} C{x0 + bow:.1f} {y0 + middle:.1f} {x1 + bow:.1f} {y1 - middle:.1f} {x1:.1f} {y1}"/>'


__all__ = ["COLORS", "OTHER_COLOR", "WEIGHT_ENDINGS", "html_of", "label"]
