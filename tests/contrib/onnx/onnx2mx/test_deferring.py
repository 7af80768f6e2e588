from onnx import helper

from mxnet.contrib.onnx.onnx2mx.deferring import free_names
from onnx_import_checks import node


def test_what_nodes_take_from_outside():
    assert free_names([node("Add", "a b", "c"), node("Mul", "c d", "e")]) == {"a", "b", "d"}
    inner = helper.make_graph([node("Add", "i outer", "t"), node("Mul", "t c", "u")], "g", [helper.make_empty_tensor_value_info("i")],
                              [helper.make_empty_tensor_value_info("u"), helper.make_empty_tensor_value_info("passed")])
    assert free_names([node("Neg", "a", "c"), node("Loop", "n - v", "w", body=inner)]) == {"a", "n", "v", "outer", "passed"}
