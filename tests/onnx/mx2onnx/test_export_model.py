import os
import sys

import numpy as np
import onnx
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.onnx.mx2onnx import _export_model
from onnx_checks import run

X = mx.sym.var("x")
FC = mx.sym.FullyConnected(X, num_hidden=2, name="fc")
PARAMS = {"fc_weight": mx.nd.array([[1, 2, 3], [4, 5, 6]]), "fc_bias": mx.nd.array([1, -1])}


def export(path, sym=FC, params=PARAMS, shapes=((1, 3),), types="float32", **options):
    assert mx.onnx.export_model(sym, params, list(shapes), types, str(path), **options) == str(path)
    return onnx.load(path)


def test_the_file_of_a_small_network(tmp_path):
    model = export(tmp_path / "a.onnx")
    assert (model.ir_version, model.opset_import[0].version, model.producer_name) == (7, 13, "remex")
    graph = model.graph
    assert [(n.op_type, list(n.input), list(n.output)) for n in graph.node] == [("Gemm", ["x", "fc_weight", "fc_bias"], ["fc"])]
    assert sorted(i.name for i in graph.initializer) == ["fc_bias", "fc_weight"] and [i.name for i in graph.input] == ["x"]
    assert run(model, {"x": np.array([[1, 0, -1]], np.float32)})[0].tolist() == [[-1.0, -3.0]]
    assert os.listdir(tmp_path) == ["a.onnx"]


def test_paths_and_two_dicts_and_old_names_of_arguments(tmp_path):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(3, in_units=4), gluon.nn.BatchNorm(in_channels=3))
    net.initialize()
    net.hybridize()
    x = mx.nd.array([[1, 2, 3, 4]])
    expected = net(x).asnumpy()
    net.export(str(tmp_path / "net"), epoch=7)
    first = export(tmp_path / "a.onnx", str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0007.params"), [(1, 4)])
    np.testing.assert_allclose(run(first, {"data": x.asnumpy()})[0], expected, rtol=1e-5)
    symbol, args, states = mx.model.load_checkpoint(str(tmp_path / "net"), 7)
    second = export(tmp_path / "b.onnx", symbol, [args, states], [(1, 4)])
    mx.onnx.export_model(symbol, {**args, **states}, onnx_file_path=str(tmp_path / "c.onnx"), input_shape=[(1, 4)], input_type=np.float32)
    assert first == second == onnx.load(tmp_path / "c.onnx")


def test_varying_sizes_have_their_names(tmp_path):
    model = export(tmp_path / "a.onnx", dynamic=True, dynamic_input_shapes=[("batch", 3)])
    sizes = [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    assert sizes == ["batch", 3] and run(model, {"x": np.ones((5, 3), np.float32)})[0].shape == (5, 2)
    model = export(tmp_path / "a.onnx", dynamic=True)
    assert run(model, {"x": np.ones((4, 3), np.float32)})[0].shape == (4, 2)


def test_shape_inference_adds_what_lies_between(tmp_path):
    plain, inferred = (export(tmp_path / "a.onnx", mx.sym.relu(FC), run_shape_inference=i) for i in (False, True))
    assert len(plain.graph.value_info) == 0 and [v.name for v in inferred.graph.value_info] == ["fc"]


def test_large_models_have_a_file_of_parameters(tmp_path):
    params = {"fc_weight": mx.nd.array(np.arange(1000).reshape(2, 500)), "fc_bias": mx.nd.array([1, -1])}
    model = export(tmp_path / "a.onnx", FC, params, [(1, 500)], large_model=True)
    assert sorted(os.listdir(tmp_path)) == ["a.onnx", "a.onnx.data"] and os.path.getsize(tmp_path / "a.onnx.data") == 4000
    assert run(model, {"x": np.ones((1, 500), np.float32)})[0].tolist() == [[124751.0, 374749.0]]
    with pytest.raises(mx.MXNetError, match="run_shape_inference needs a model in one piece"):
        export(tmp_path / "a.onnx", FC, params, [(1, 500)], large_model=True, run_shape_inference=True)


def test_what_is_too_large_for_one_file_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(_export_model, "_LARGEST", 30)
    with pytest.raises(mx.MXNetError, match=r"an ONNX file can't have over 2 GB: pass large_model=True"):
        export(tmp_path / "a.onnx")
    assert os.listdir(tmp_path) == []


def test_a_file_that_was_there_stays_where_export_fails(tmp_path):
    (tmp_path / "a.onnx").write_bytes(b"before")
    with pytest.raises(mx.MXNetError, match=r"CTCLoss 'ctc' cannot be written to an ONNX file: there is no conversion function for this operator\. "
                                            r"mx\.onnx\.get_operator_support\(\) lists those that there are"):
        export(tmp_path / "a.onnx", mx.sym.CTCLoss(X, mx.sym.var("l"), name="ctc")[0], {}, [(4, 2, 3), (2, 2)])
    assert (tmp_path / "a.onnx").read_bytes() == b"before" and os.listdir(tmp_path) == ["a.onnx"]


@pytest.mark.parametrize("shapes,options,message", [
    ([], {}, r"in_shapes must have 1 shapes, one for each variable that is no parameter \(x\), received 0"),
    ([(1, 3), (2, 2)], {}, r"in_shapes must have 1 shapes, .* received 2: \[\(1, 3\), \(2, 2\)\]"),
    (["a"], {}, "in_shapes must be a list of tuples of integers, one for each input; received 'a' as one of them"),
    ([(1, 3)], {"types": ["float32", "int32"]}, r"in_types must be one type, or 1 of them, one for each input \(x\); received 2"),
    ([(1, 3)], {"dynamic_input_shapes": [(None, 3)]}, "dynamic_input_shapes has no effect without dynamic=True"),
    ([(1, 3)], {"dynamic": True, "dynamic_input_shapes": [(None,)]}, r"expected the lengths \[2\], received \[\(None,\)\]"),
    ([(1, 4)], {}, r"fc \(FullyConnected\).*weight"),
    ([(1, 3)], {"opset_version": 9}, "opset_version must be from 12 to 28, received 9"),
])
def test_wrong_arguments(tmp_path, shapes, options, message):
    with pytest.raises(mx.MXNetError, match=message):
        export(tmp_path / "a.onnx", shapes=shapes, **options)
    assert os.listdir(tmp_path) == []


def test_in_shapes_must_be_given_and_objects_must_be_of_one_kind(tmp_path):
    with pytest.raises(mx.MXNetError, match="in_shapes must give the shape of each input: x"):
        mx.onnx.export_model(FC, PARAMS, onnx_file_path=str(tmp_path / "a.onnx"))
    with pytest.raises(ValueError, match="sym and params are either both paths, or a Symbol and a dict .* received Symbol and str"):
        export(tmp_path / "a.onnx", FC, "a.params")


def test_without_the_package_the_command_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"ONNX files need the packages onnx and protobuf: pip install 'remexnet\[onnx\]'") as error:
        export(tmp_path / "a.onnx")
    assert isinstance(error.value, mx.MXNetError)


def test_operators_that_can_be_written():
    names = mx.onnx.get_operator_support()
    assert names == sorted(names) and {"null", "Convolution", "_plus_scalar", "broadcast_add"} <= set(names)
    assert mx.onnx.get_operator_support(12) == names
    with pytest.raises(mx.MXNetError, match="opset_version must be 12 or later, received 9"):
        mx.onnx.get_operator_support(9)
