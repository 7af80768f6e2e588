"""Arrays as tables in notebooks."""
import re

import pytest

import mxnet as mx
from mxnet import nd


def cells(x):
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", x._repr_html_())]


def test_matrices_and_vectors():
    x = nd.array([[1, 2.5], [-3, 1e-9]])
    assert cells(x) == [["1", "2.5"], ["-3", "1e-09"]] and "&lt;NDArray 2x2 @cpu(0)&gt; float32" in x._repr_html_()
    assert cells(nd.array([1, 2], dtype="int32")) == [["1", "2"]]
    assert cells(mx.np.array([True, False], dtype="bool")) == [["True", "False"]]
    assert "&lt;ndarray 2 @cpu(0)&gt; float16" in mx.np.array([1, 2], dtype="float16")._repr_html_()


def test_long_axes_show_their_ends():
    rows = cells(nd.arange(40 * 30).reshape((40, 30)))
    assert [row[0] for row in rows] == ["0", "30", "60", "90", "120", "⋮", "1050", "1080", "1110", "1140", "1170"]
    assert rows[0] == ["0", "1", "2", "3", "4", "⋯", "25", "26", "27", "28", "29"] and len(cells(nd.zeros((12, 12)))) == 12


@pytest.mark.parametrize("x, text", [
    (nd.ones((1, 1, 2)), "<pre>[[[1. 1.]]]\n&lt;NDArray 1x1x2 @cpu(0)&gt;</pre>"), (mx.np.array(3), "<pre>array(3.)</pre>"),
    (nd.ones((2, 2)).tostype("csr"), "<pre>&lt;CSRNDArray 2x2 @cpu(0)&gt;</pre>"), (mx.np.zeros((0, 2)), "<pre>array([], shape=(0, 2))</pre>")])
def test_others_are_text(x, text):
    assert x._repr_html_() == text


def test_bfloat16_and_views():
    assert cells(nd.array([[1, 2], [3, 4]], dtype="bfloat16").T) == [["1", "3"], ["2", "4"]]
