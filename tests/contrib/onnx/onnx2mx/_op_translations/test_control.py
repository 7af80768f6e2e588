import numpy as np
import pytest
from onnx import TensorProto, helper

from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

X = np.arange(6, dtype="float32").reshape(3, 2)


def info(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def branches():
    return {key: helper.make_graph([node(operator, "x", "z")], operator, [], [info("z")])
            for key, operator in (("then_branch", "Abs"), ("else_branch", "Neg"))}


def test_a_branch():
    chosen = node("If", "c", **branches())
    for truth, expected in ((True, [1, 2]), (False, [-1, -2])):
        assert run(model_of([chosen], {"x": (2,)}, {"c": np.array(truth)}), x=np.float32([1, 2]))[0].tolist() == expected
        assert run(model_of([chosen], {"x": (2,), "c": ()}, types={"c": 9}), x=np.float32([1, 2]), c=np.array(truth))[0].tolist() == expected


def loop(names, outputs, steps=(), keep="true"):
    """A loop whose graph adds `x` to what goes round, collects that, and goes on while `keep`."""
    body = helper.make_graph([node("Add", "before x", "after"), *steps, node("Identity", keep, "goes_on"), node("Mul", "after after", "row")], "body",
                             [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("before")],
                             [info("goes_on", TensorProto.BOOL, []), info("after"), info("row")])
    return node("Loop", names, outputs, body=body)


def test_a_loop_of_a_known_count():
    made = loop("n true start", "last rows")
    constants = {"n": np.array(3), "true": np.array(True), "start": np.ones((3, 2), "f")}
    last, rows = agrees(made, {"x": X}, constants, "last rows", rtol=1e-5)
    assert last.tolist() == (1 + 3 * X).tolist() and rows.shape == (3, 3, 2)


def test_a_loop_whose_count_and_end_are_values():
    small = [node("ReduceSum", "after", "sum", keepdims=0), node("Less", "sum limit", "small")]
    made = loop("n true start", "last rows", small, "small")
    constants = {"true": np.array(True), "start": np.zeros((3, 2), "f"), "limit": np.float32(25)}
    for count, expected in ((9, 2), (1, 1)):
        _, rows = agrees(made, {"x": X, "n": np.array(count)}, constants, "last rows")
        assert len(rows) == expected


def test_loops_without_end_are_refused():
    inputs = [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v")]
    body = helper.make_graph([node("Identity", "c", "d"), node("Identity", "v", "w")], "body", inputs, [info("d", TensorProto.BOOL, []), info("w")])
    model = model_of([node("Loop", "n - x", "y", body=body)], {"x": (1,), "n": ()}, types={"n": 7})
    with pytest.raises(MXNetError, match="loops took more than 65536 iterations"):
        run(model, x=X[0, :1], n=np.array(2 ** 62))


@pytest.mark.parametrize("attributes", [{}, {"scan_input_directions": [1]}, {"scan_output_directions": [1], "scan_output_axes": [1]}])
@pytest.mark.parametrize("open_size", [False, True])
def test_a_graph_for_each_part(attributes, open_size):
    body = helper.make_graph([node("Add", "before part", "after"), node("Mul", "after part", "row")], "body", [info("before"), info("part")],
                             [info("after"), info("row")])
    made = node("Scan", "s x", "last rows", body=body, num_scan_inputs=1, **attributes)
    agrees(made, {"s": np.float32([1, 2]), "x": X}, None, "last rows", shapes={"x": ("length", 2)} if open_size else None)
