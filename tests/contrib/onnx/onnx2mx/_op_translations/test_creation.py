import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import mxnet as mx
from onnx_import_checks import agrees, model_of, node, run

X = np.arange(6, dtype="float32").reshape(2, 3)


def test_constants():
    for attributes, expected in (({"value": numpy_helper.from_array(np.float32([1, 2, 3]))}, [1, 2, 3]), ({"value_float": 2.0}, 2),
                                 ({"value_floats": [1.0, 2.0, 5.0]}, [1, 2, 5])):
        (found,) = agrees([node("Constant", "", "c", **attributes), node("Add", "x c")], {"x": X})
        assert found.tolist() == (X + expected).tolist()
    assert agrees([node("Constant", "", "c", value_ints=[3, 2]), node("Reshape", "x c")], {"x": X})[0].shape == (3, 2)
    with pytest.raises(mx.MXNetError, match="expected one attribute with the value, received 2"):
        run(model_of([node("Constant", "", value_int=1, value_float=1.0)], {}))


def test_arrays_of_one_number():
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [7.0])
    agrees([node("ConstantOfShape", "s", "c", value=value), node("Add", "x c")], {"x": X}, {"s": np.array([2, 3])})
    nodes = [node("Shape", "x", "s"), node("ConstantOfShape", "s", "c", value=value), node("Add", "x c")]
    for shape in (X.shape, ("a", 3), ("a", "b")):
        agrees(nodes, {"x": X}, shapes={"x": shape})


def test_ranges():
    nodes = [node("Shape", "x", "s"), node("Gather", "s one", "n"), node("Range", "zero n step", "r"), node("Cast", "r", to=1)]
    for shape in (X.shape, ("a", "b")):
        assert agrees(nodes, {"x": X}, {"one": np.array(1), "zero": np.array(0), "step": np.array(1)}, shapes={"x": shape})[0].tolist() == [0, 1, 2]


def test_diagonals():
    agrees(node("EyeLike", "x", k=1), {"x": X})
    agrees(node("EyeLike", "x", dtype=TensorProto.INT32), {"x": X})


def test_random_numbers():
    nodes = [node("RandomUniform", "", "a", shape=[3, 1000], low=2.0, high=4.0), node("RandomNormal", "", "b", shape=[3000], mean=5.0, scale=0.1),
             node("RandomUniformLike", "x", "c", high=9.0), node("RandomNormalLike", "x", "d"), node("Multinomial", "x", "e", sample_size=50),
             node("Bernoulli", "p", "f")]
    names = tuple("abcdef")
    model = model_of(nodes, {"x": (2, 3), "p": (2,)}, outputs=names, types={"e": 6})
    mx.random.seed(1)
    a, b, c, d, e, f = run(model, x=np.float32([[-99, 0, -99], [0, -99, -99]]), p=np.float32([0, 1]))
    assert a.shape == (3, 1000) and 2 <= a.min() < 2.1 and 3.9 < a.max() <= 4 and abs(b.mean() - 5) < 0.02 and abs(b.std() - 0.1) < 0.01
    assert c.shape == d.shape == (2, 3) and e.dtype == np.int32 and e.tolist() == [[1] * 50, [0] * 50] and f.tolist() == [0, 1]
