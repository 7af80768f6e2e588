import numpy as np
import pytest

from mxnet.onnx.mx2onnx.builder import Builder, Unsupported, Value


def built(opset=13):
    on = Builder(opset)
    on.scope = "n"
    return on, Value(on.unique("x"), np.dtype("float16"), (2, None, 3))


def test_nodes_take_numbers_lists_and_arrays():
    on, x = built()
    y = on.Add(x, 1.5)
    z = on.Slice(y, [0], np.array([2], np.int32))
    assert [(n.kind, [v.name for v in n.inputs]) for n in on.nodes] == [("Add", ["x", "constant"]), ("Slice", ["n/Add", "constant_1", "constant_2"])]
    constants = on.nodes[0].inputs[1:] + on.nodes[1].inputs[1:]
    assert [c.dtype.name for c in constants] == ["float16", "int64", "int32"] and z.dtype == np.float16


def test_names_are_unique_and_equal_constants_one():
    on, x = built()
    assert [on.Relu(x).name for _ in range(3)] == ["n/Relu", "n/Relu_1", "n/Relu_2"]
    assert on.const([1, 2], np.int64) is on.const((1, 2), np.int64) is not on.const([1, 2], np.int32)


def test_types_of_results():
    on, x = built()
    assert (on.Shape(x).dtype, on.Less(x, x).dtype, on.Where(on.Less(x, x), x, x).dtype) == (np.int64, np.bool_, np.float16)
    assert [v.dtype.name for v in on.TopK(x, [1], outputs=2, dtype="float32")] == ["float32"] * 2


def test_what_is_known_is_computed_at_once():
    on, _ = built()
    c = on.const(np.arange(6).reshape(2, 3), np.int64)
    out = on.concat([on.slice(on.transpose(c, (1, 0)), 1, 3), on.reshape(on.unsqueeze(on.cast(c, "int64"), 0), [-1, 2])], 0)
    assert out.array.tolist() == [[1, 4], [2, 5], [0, 1], [2, 3], [4, 5]] and on.nodes == []


def test_sizes_known_and_varying():
    on, x = built()
    assert on.dim(x, 0) == 2 and isinstance(on.dim(x, 1), Value) and on.times(2, 3) == 6 and on.over(7, 2) == 3
    assert on.sizes([2, 3]).array.tolist() == [2, 3] and on.sizes([2, on.dim(x, 1)]).array is None


def test_axes_are_attributes_before_opset_13():
    for opset, attributes, count in ((12, {"axes": [0]}, 1), (13, {}, 2)):
        on, x = built(opset)
        on.unsqueeze(x, 0)
        assert on.nodes[0].attributes == attributes and len(on.nodes[0].inputs) == count


def test_an_unknown_number_of_axes_is_refused():
    with pytest.raises(Unsupported, match="the number of axes of x is not known"):
        Value("x", np.dtype("float32")).ndim
