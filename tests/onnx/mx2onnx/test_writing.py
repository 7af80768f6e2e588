import io

import numpy as np
import onnx
import pytest

from mxnet.onnx.mx2onnx.builder import Value
from mxnet.onnx.mx2onnx.writing import declared, varint, write_model

ARRAYS = {"weight": np.arange(600, dtype=np.float32).reshape(20, 30), "flags": np.array([True, False]), "half": np.float16([1.5]),
          "number": np.array(7, np.int64), "empty": np.zeros((0, 3), np.float32), "turned": np.arange(12).reshape(3, 4).T}


def made():
    helper = onnx.helper
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (20, 30)) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "weight"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7, producer_name="test")
    return model, [Value(name, array.dtype, array.shape, array) for name, array in ARRAYS.items()]


def test_what_is_written_piece_by_piece_is_what_protobuf_writes_at_once():
    model, values = made()
    stream = io.BytesIO()
    write_model(onnx, stream, model, values)
    read = onnx.load_model_from_string(stream.getvalue())
    assert [t.name for t in read.graph.initializer] == list(ARRAYS)
    for tensor, array in zip(read.graph.initializer, ARRAYS.values()):
        found = onnx.numpy_helper.to_array(tensor)
        assert found.dtype == array.dtype.newbyteorder("=") and found.shape == array.shape and (found == array).all()
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.ascontiguousarray(a) if a.ndim else a, n) for n, a in ARRAYS.items())
    assert read == onnx.load_model_from_string(model.SerializeToString())
    assert len(stream.getvalue()) == len(model.SerializeToString())


def test_the_checker_sees_small_arrays_and_the_types_of_large_ones():
    model, values = made()
    copy = declared(onnx, model, values)
    onnx.checker.check_model(copy)
    assert [v.name for v in copy.graph.input] == ["x", "weight"] and len(copy.graph.initializer) == len(ARRAYS) - 1
    assert not model.graph.initializer and len(model.graph.input) == 1


@pytest.mark.parametrize("number, expected", [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2 ** 31, "8080808008")])
def test_numbers(number, expected):
    assert varint(number).hex() == expected
