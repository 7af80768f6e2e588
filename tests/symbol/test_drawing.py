"""Drawings of Symbols for notebooks."""
import re

import pytest

import mxnet as mx
from chromium import Chromium
from mxnet.symbol import drawing


def network():
    data = mx.sym.var("data")
    net = mx.sym.Convolution(data, name="conv1", num_filter=8, kernel=(3, 3), stride=(2, 2))
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn1"), name="relu1", act_type="relu")
    side = mx.sym.Convolution(net, name="a_convolution_with_a_long_name", num_filter=8, kernel=(1, 1))
    net = mx.sym.elemwise_add(net, side, name="sum")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, name="fc1", num_hidden=10), name="softmax")


def test_a_drawing_has_layers_and_no_parameters():
    text = network()._repr_html_()
    names = re.findall(r'font-weight="600">([^<]*)<', text)
    assert set(names) == {"data", "conv1", "bn1", "relu1", "a_convolution_with_a_long_name", "sum", "fc1", "softmax", "softmax_label"}
    assert "Convolution (3,3) (2,2) 8" in text and "FullyConnected 10" in text and "_weight" not in text
    assert text.count("<path") == 9 and text.startswith("<svg ") and text.endswith("</svg>")


def test_rows_follow_the_order_of_the_computation():
    nodes = [node for node in network()._nodes() if node.op is not None or not node.name.endswith(drawing.WEIGHT_ENDINGS)]
    levels = {node.name: drawing._levels(nodes)[id(node)] for node in nodes}
    assert levels == {"data": 0, "conv1": 1, "bn1": 2, "relu1": 3, "a_convolution_with_a_long_name": 4, "sum": 5, "fc1": 6, "softmax_label": 0,
                      "softmax": 7}


def test_names_are_escaped_and_large_graphs_are_text():
    assert "&lt;b&gt;" in mx.sym.var("<b>")._repr_html_() and "<b>" not in mx.sym.var("<b>")._repr_html_()
    x = mx.sym.var("x")
    for _ in range(300):
        x = x + 1
    assert "301 nodes; mx.viz.plot_network(symbol) draws it" in x._repr_html_()


@pytest.mark.timeout(120)
def test_labels_fit_into_their_boxes_and_boxes_do_not_overlap(tmp_path):
    (tmp_path / "net.html").write_text(f"<!doctype html><meta charset=utf-8><body>{network()._repr_html_()}")
    with Chromium() as browser:
        browser.open((tmp_path / "net.html").as_uri())
        outside = browser.run("""[...document.querySelectorAll('svg g > g')].filter((group) => {
            const box = group.querySelector('rect').getBBox();
            return [...group.querySelectorAll('text')].some((label) => {
                const text = label.getBBox();
                return text.x < box.x || text.x + text.width > box.x + box.width || text.y < box.y || text.y + text.height > box.y + box.height;
            });
        }).map((group) => group.textContent)""")
        assert outside == []
        boxes = browser.run("[...document.querySelectorAll('svg rect')].map((rect) => [rect.x.baseVal.value, rect.y.baseVal.value, "
                            "rect.width.baseVal.value, rect.height.baseVal.value])")
        assert len(boxes) == 9
        for i, (x, y, width, height) in enumerate(boxes):
            assert all(x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y for x2, y2, width2, height2 in boxes[:i])
