import numpy as np
import onnx
import pytest

import mxnet as mx
from onnx_import_checks import model_of, node

X = np.arange(6, dtype="float32").reshape(2, 3)


def saved(path, *arguments, **named):
    onnx.save(model_of(*arguments, **named), path)
    return path


def test_a_file_runs_in_a_module(tmp_path):
    path = saved(tmp_path / "a.onnx", [node("Gemm", "x w b", transB=1)], {"x": (2, 3)}, {"w": X, "b": np.float32([1, 2])})
    out, args, auxs = mx.contrib.onnx.import_model(str(path))
    module = mx.mod.Module(out, data_names=["x"], label_names=None)
    module.bind(data_shapes=[("x", (4, 3))], for_training=False)  # another batch than the file's
    module.set_params(args, auxs)
    module.forward(mx.io.DataBatch([mx.nd.ones((4, 3))]), is_train=False)
    assert module.get_outputs()[0].asnumpy().tolist() == [[4, 14]] * 4


def test_what_a_file_says(tmp_path):
    path = saved(tmp_path / "a.onnx", [node("Gather", "w x")], {"x": ("n", 3)}, {"w": X}, types={"x": 7})
    assert mx.contrib.onnx.get_model_metadata(path) == {"input_tensor_data": [("x", (0, 3), 7)], "output_tensor_data": [("y", ())]}


def test_arrays_beside_the_file(tmp_path):
    model = model_of([node("Add", "x w")], {"x": (2, 3)}, {"w": X})
    onnx.save_model(model, tmp_path / "a.onnx", save_as_external_data=True, location="a.data", size_threshold=0)
    out, args, _ = mx.contrib.onnx.import_model(tmp_path / "a.onnx")
    assert args["w"].asnumpy().tolist() == X.tolist()
    (tmp_path / "a.data").write_bytes(b"")
    with pytest.raises(mx.MXNetError, match=r"a.onnx: the initializer 'w' takes bytes 0 to 24 of 'a.data'; the file has 0 bytes"):
        mx.contrib.onnx.import_model(tmp_path / "a.onnx")


def test_errors_name_the_file_and_the_node(tmp_path):
    path = saved(tmp_path / "bad.onnx", [node("Concat", "x w", axis=1)], {"x": (2, 3)}, {"w": X[:1]})
    with pytest.raises(mx.MXNetError, match=r"bad.onnx: node 'the_concat' \(Concat\): "):
        mx.contrib.onnx.import_model(path)
    path = saved(tmp_path / "new.onnx", [node("Wiggle", "x")], {"x": (2, 3)})
    with pytest.raises(NotImplementedError, match="new.onnx: no operators here compute these of the file: Wiggle"):
        mx.contrib.onnx.import_model(path)
