import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from mxnet import MXNetError
from mxnet.contrib.onnx.onnx2mx.reading import (
    UnsupportedFeature,
    element_type,
    onnx_package,
    opset_of,
    read_attributes,
    read_model,
    read_tensor,
    stored_type,
)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool"])
def test_arrays_as_bytes_and_as_numbers(dtype):
    array = np.array([[0, 1, 2], [3, 100, 5]]).astype(dtype)
    raw = numpy_helper.from_array(array, "a")
    listed = helper.make_tensor("a", raw.data_type, array.shape, array.reshape(-1))
    for tensor in (raw, listed):
        found = read_tensor(tensor)
        assert found.dtype == dtype and found.tolist() == array.tolist()


def test_types_without_a_counterpart():
    assert read_tensor(helper.make_tensor("a", TensorProto.BFLOAT16, [2], [1.5, -2.0])).tolist() == [1.5, -2]
    assert read_tensor(numpy_helper.from_array(np.uint32([2 ** 32 - 1]))).tolist() == [2 ** 32 - 1]
    with pytest.raises(UnsupportedFeature, match="the array 'a' has the element type string, which no array here can have"):
        read_tensor(helper.make_tensor("a", TensorProto.STRING, [1], [b"x"]))
    with pytest.raises(UnsupportedFeature, match="numbers of 2\\*\\*63 and more"):
        read_tensor(numpy_helper.from_array(np.uint64([2 ** 63])))
    assert element_type(TensorProto.UINT16, "x") == np.int32 and stored_type(TensorProto.UINT16) == np.uint16 and stored_type(8) is None
    with pytest.raises(UnsupportedFeature, match="x has the element type 99"):
        element_type(99, "x")


def damaged(**fields):
    tensor = TensorProto(name="a", data_type=TensorProto.FLOAT, dims=[2], raw_data=bytes(8))
    for name, value in fields.items():
        if name == "dims":
            del tensor.dims[:]
            tensor.dims.extend(value)
        else:
            setattr(tensor, name, value)
    return tensor


@pytest.mark.parametrize("tensor, text", [
    (damaged(raw_data=bytes(7)), "has 7 bytes of data, its shape \\(2,\\) and type take 8"), (damaged(dims=[2 ** 40]), "has 8 bytes of data"),
    (damaged(dims=[-2]), "no negative size"), (damaged(dims=[1] * 40), "at most 32 axes"), (damaged(dims=[2 ** 62] * 4), "has 8 bytes of data"),
    (TensorProto(name="a", data_type=1, dims=[2], float_data=[1]), "has 1 numbers, its shape \\(2,\\) takes 2")])
def test_sizes_that_are_not_those_of_the_data(tensor, text):
    with pytest.raises(MXNetError, match=text):
        read_tensor(tensor)


def external(location, **entries):
    tensor = TensorProto(name="a", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def test_arrays_in_files_of_their_own(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "data.bin").write_bytes(np.float32([0, 1, 2]).tobytes())
    (tmp_path / "secret.bin").write_bytes(bytes(64))
    assert read_tensor(external("data.bin", offset=4, length=8), str(folder)).tolist() == [1, 2]
    assert read_tensor(external("data.bin"), str(folder)).tolist() == [0, 1]
    for location in ("../secret.bin", str(tmp_path / "secret.bin"), "x/../../secret.bin", "", "."):
        with pytest.raises(MXNetError, match="outside of the model's folder"):
            read_tensor(external(location), str(folder))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(MXNetError, match="outside of the model's folder"):
        read_tensor(external("link.bin"), str(folder))
    for entries, text in (({"offset": 8}, "takes bytes 8 to 16 of 'data.bin'; the file has 12 bytes"), ({"offset": -4}, "takes bytes -4 to 4"),
                          ({"length": 12}, "has 12 bytes of data"), ({"offset": "x"}, "expected integers")):
        with pytest.raises(MXNetError, match=text):
            read_tensor(external("data.bin", **entries), str(folder))
    with pytest.raises(MXNetError, match="there is no such file"):
        read_tensor(external("other.bin"), str(folder))
    with pytest.raises(MXNetError, match="a zero byte"):
        read_tensor(external("a\0b"), str(folder))
    with pytest.raises(MXNetError, match="import the model by its path"):
        read_tensor(external("data.bin"))


def test_attributes():
    node = helper.make_node("X", [], [], i=3, f=0.5, s="text", ints=[1, 2], floats=[0.5], strings=["a", "b"], t=numpy_helper.from_array(np.arange(2)))
    found = read_attributes(node)
    assert found.pop("t").tolist() == [0, 1]
    assert found == {"i": 3, "f": 0.5, "s": "text", "ints": (1, 2), "floats": (0.5,), "strings": ("a", "b")}


def test_damaged_attributes():
    node = helper.make_node("X", [], [], a=3)
    node.attribute.append(node.attribute[0])
    with pytest.raises(MXNetError, match="the attribute 'a' is given twice"):
        read_attributes(node)
    del node.attribute[1]
    node.attribute[0].ref_attr_name = "b"
    with pytest.raises(MXNetError, match="'a' refers to that of a function, and the node is in none"):
        read_attributes(node)
    assert read_attributes(node, outer={"b": 7}) == {"a": 7} and read_attributes(node, outer={}) == {}
    node.attribute[0].ref_attr_name = ""
    node.attribute[0].type = 13
    with pytest.raises(UnsupportedFeature, match="of a kind that cannot be imported"):
        read_attributes(node)
    node.attribute[0].type, node.attribute[0].s = 3, b"\xff"
    with pytest.raises(MXNetError, match="no text in UTF-8"):
        read_attributes(node)


def test_files(tmp_path):
    path = tmp_path / "a.onnx"
    path.write_bytes(b"\xff\xff\xff")
    with pytest.raises(MXNetError, match="a.onnx is no ONNX model, or is damaged"):
        read_model(path)
    path.write_bytes(b"")
    with pytest.raises(MXNetError, match="a.onnx holds no ONNX graph"):
        read_model(path)
    with pytest.raises(FileNotFoundError, match="b.onnx"):
        read_model(tmp_path / "b.onnx")
    model = onnx_package().ModelProto()
    with pytest.raises(MXNetError, match="does not say for which version"):
        opset_of(model, path)
    model.opset_import.add(domain="", version=13)
    assert opset_of(model, path) == 13
