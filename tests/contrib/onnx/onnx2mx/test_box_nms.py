"""`box_nms` in files that were written here; and other uses of ONNX's operator, which stay in its form."""
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import mxnet as mx
from mxnet.contrib.onnx.onnx2mx import box_nms
from onnx_checks import exported, run


def _boxes(rows=2, count=9):
    rng = np.random.default_rng(3)
    corner = rng.uniform(0, 2, (rows, count, 2))
    parts = rng.integers(0, 2, (rows, count, 1)), rng.uniform(0, 1, (rows, count, 1)), corner, corner + rng.uniform(1, 4, (rows, count, 2))
    return np.concatenate(parts, 2).astype(np.float32)


def _imported(model):
    sym, args, auxs = mx.contrib.onnx.import_model(model)
    assert not args and not auxs
    return sym


def _operators(sym):
    return [node.op.name for node in sym._nodes() if node.op is not None]


@pytest.mark.parametrize("opset", [13, 22])
@pytest.mark.parametrize("options", [
    dict(overlap_thresh=0.4, valid_thresh=0.1, topk=5, coord_start=2, score_index=1, id_index=0),
    dict(overlap_thresh=0.3, coord_start=2, score_index=1, id_index=0, force_suppress=True, out_format="center"),
    dict(overlap_thresh=0.3, valid_thresh=0.2, coord_start=2, score_index=1, id_index=0, background_id=0, in_format="center"),
    dict(overlap_thresh=0.3, coord_start=2, score_index=1, in_format="center", out_format="corner"),
])
def test_it_comes_back_as_one_operator(options, opset, tmp_path):
    x = _boxes()
    sym = mx.sym.contrib.box_nms(mx.sym.var("x"), name="nms", **options)
    path = str(tmp_path / "nms.onnx")
    onnx.save(exported(sym, {"x": x}, opset_version=opset), path)
    back = _imported(path)
    assert _operators(back) == ["_contrib_box_nms"]
    expected = sym.eval(x=mx.nd.array(x))[0].asnumpy()
    assert (expected[..., 0] >= 0).any() and (expected == -1).any()
    np.testing.assert_allclose(back.eval(x=mx.nd.array(x))[0].asnumpy(), expected, 1e-5, 1e-6)


def test_a_batch_of_open_size(tmp_path):
    x = _boxes()
    sym = mx.sym.contrib.box_nms(mx.sym.var("x"), coord_start=2, score_index=1, id_index=0, name="nms")
    path = str(tmp_path / "nms.onnx")
    onnx.save(exported(sym, {"x": x}, None, [("batch", 9, 6)]), path)
    assert _operators(_imported(path)) == ["_contrib_box_nms"]


def test_another_constant_is_another_graph(tmp_path):
    """The scores of invalid boxes are no lowest number: the nodes are no longer those of `box_nms`."""
    model = exported(mx.sym.contrib.box_nms(mx.sym.var("x"), coord_start=2, score_index=1, id_index=0, name="nms"), {"x": _boxes()})
    assert [node.op_type for node in box_nms.replaced(model.graph, 13, None)] == ["box_nms"]
    lowest = next(t for t in model.graph.initializer if t.data_type == TensorProto.FLOAT and numpy_helper.to_array(t).min() < -1e38 and not t.dims)
    lowest.CopyFrom(numpy_helper.from_array(np.array(-5, np.float32), lowest.name))
    assert len(box_nms.replaced(model.graph, 13, None)) == len(model.graph.node)


def test_a_value_that_is_used_elsewhere_keeps_the_nodes():
    model = exported(mx.sym.contrib.box_nms(mx.sym.var("x"), coord_start=2, score_index=1, id_index=0, name="nms"), {"x": _boxes()})
    inner = next(node for node in model.graph.node if node.op_type == "ScatterND").output[0]
    model.graph.output.add(name=inner).type.tensor_type.elem_type = TensorProto.FLOAT
    assert len(box_nms.replaced(model.graph, 13, None)) == len(model.graph.node)


def _other(path):
    """A file with NonMaxSuppression in another place: the chosen boxes, as many as there are."""
    nodes = [helper.make_node("Relu", ["boxes"], ["b"]), helper.make_node("NonMaxSuppression", ["b", "scores", "most", "iou"], ["chosen"]),
             helper.make_node("Slice", ["chosen", "two", "three", "one"], ["column"]), helper.make_node("Squeeze", ["column", "one"], ["flat"]),
             helper.make_node("Gather", ["b", "flat"], ["out"], axis=1)]
    arrays = {"most": np.array([3]), "iou": np.array([0.5], np.float32), "one": np.array([1]), "two": np.array([2]), "three": np.array([3])}
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, (1, 6, 4)),
                                           helper.make_tensor_value_info("scores", TensorProto.FLOAT, (1, 1, 6))],
                              [helper.make_tensor_value_info("out", TensorProto.FLOAT, (1, None, 4))],
                              [numpy_helper.from_array(array, name) for name, array in arrays.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def test_parts_that_stay_in_onnx_form_are_written_again(tmp_path):
    path, again = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    _other(path)
    sym, args, _ = mx.contrib.onnx.import_model(path)
    shapes = {"boxes": (1, 6, 4), "scores": (1, 1, 6)}
    names = [name for name in sym.list_inputs() if name in shapes]
    mx.onnx.export_model(sym, args, [shapes[name] for name in names], "float32", again, check=False)
    model = onnx.load(again)
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["Relu", "NonMaxSuppression", "Slice", "Squeeze", "Gather"]
    assert [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim] == [1, 0, 4]
    rng = np.random.default_rng(0)
    inputs = {name: rng.random(shape, np.float32) for name, shape in shapes.items()}
    (expected,) = onnxruntime.InferenceSession(path).run(None, inputs)
    assert expected.shape[1] == 3
    np.testing.assert_array_equal(run(model, inputs)[0], expected)
    with pytest.raises(mx.MXNetError, match="it holds nodes of opset 13, to be run as they are; pass opset_version=13"):
        mx.onnx.export_model(sym, args, [shapes[name] for name in names], "float32", again, check=False, opset_version=15)
