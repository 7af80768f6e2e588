"""NumPy's files: what they hold, and what is refused of damaged ones."""
import io
import struct
import zipfile

import numpy as np
import pytest

import mxnet as mx


def _file(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    return str(path)


def _npz(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def _npy(shape, descr="<f4", data=b"", version=1):
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_numpy_reads_what_is_written_and_the_other_way_round(tmp_path, dtype):
    mx.util.set_version("2.0")
    path = str(tmp_path / "a.npz")
    mx.nd.save(path, {"a": mx.nd.array([[1, 0], [2, 3]], dtype=dtype), "b": mx.nd.array([1], dtype="int64")})
    with np.load(path) as found:
        assert found["a"].dtype == dtype and found["a"].tolist() == np.array([[1, 0], [2, 3]], dtype).tolist() and found["b"].tolist() == [1]
    np.savez_compressed(path, x=np.array([[1, 0]], dtype), y=np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]), z=np.array([1, 2], ">i4"))
    found = mx.nd.load(path)
    assert found["x"].asnumpy().tolist() == np.array([[1, 0]], dtype).tolist() and found["x"].dtype == np.dtype(dtype)
    assert found["y"].asnumpy().tolist() == [[1, 2], [3, 4]] and found["z"].asnumpy().tolist() == [1, 2]


def test_lists_get_names(tmp_path):
    mx.util.set_version("2.0")
    path = str(tmp_path / "a.npz")
    mx.nd.save(path, [mx.nd.ones((2,)), mx.nd.zeros((1,))])
    assert {name: array.asnumpy().tolist() for name, array in mx.nd.load(path).items()} == {"arr_0": [1, 1], "arr_1": [0]}
    mx.nd.save(path, {})
    assert mx.nd.load(path) == {}


def test_the_content_tells_the_format(tmp_path):
    path = str(tmp_path / "net.params")  # so MXNet 2 calls them
    with open(path, "wb") as f:
        np.savez(f, weight=np.ones((2, 3), "float32"))
    assert mx.nd.load(path)["weight"].shape == (2, 3)
    np.save(tmp_path / "a.npy", np.arange(3))
    assert mx.nd.load(str(tmp_path / "a.npy")).asnumpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("save, array", [(mx.nd.save, mx.nd.ones((2,))), (mx.npx.save, mx.np.ones((2,)))], ids=["nd", "npx"])
@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_mxnets_own_format_under_any_name_without_set_version(tmp_path, save, array, name):
    """1.9.1 reads the file: its list begins with 0x112."""
    path = str(tmp_path / name)
    save(path, array)
    assert (tmp_path / name).read_bytes()[:24] == struct.pack("<QQQ", 0x112, 0, 1)
    assert mx.nd.load(path)[0].asnumpy().tolist() == [1, 1]


def test_a_npy_file_is_numpys_after_set_version(tmp_path):
    path = str(tmp_path / "a.npy")
    mx.util.set_version("2.0")
    mx.npx.save(path, mx.np.ones((2,)))
    assert np.load(path).tolist() == mx.npx.load(path).tolist() == [1, 1]
    with pytest.raises(ValueError, match="holds one array without a name, received 2"):
        mx.npx.save(path, [mx.np.ones(1), mx.np.ones(1)])


@pytest.mark.parametrize("array, kind", [(mx.nd.ones((2,)).astype("bfloat16"), "type bfloat16"),
                                         (mx.nd.ones((2, 2)).tostype("csr"), "storage type csr")])
def test_what_numpy_does_not_have_is_refused_and_leaves_the_file(tmp_path, array, kind):
    mx.util.set_version("2.0")
    path = str(tmp_path / "a.npz")
    mx.nd.save(path, {"a": mx.nd.ones((1,))})
    with pytest.raises(mx.MXNetError, match=f"NumPy's files hold no array of {kind}, received 'x'"):
        mx.nd.save(path, {"x": array})
    assert list(mx.nd.load(path)) == ["a"] and [p.name for p in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize("content, text", [
    (_npz(a=_npy((1 << 40,))), r"'a' of shape \(1099511627776,\) and type float32 has 0 bytes"),
    (_npz(a=_npy((2, -2))), r"'a' has the shape \(2, -2\)"),
    (_npz(a=_npy((2,), data=b"1234")), r"'a' of shape \(2,\) and type float32 has 4 bytes"),
    (_npz(a=_npy((1,), "|O", b"12345678")), "'a' has elements of type '|O'"),
    (_npz(a=_npy((1,), "<c8", b"12345678")), "'a' has elements of type '<c8'"),
    (_npz(a=_npy((1,), [("x", "<f4")], b"1234")), "the header of 'a' is damaged: TypeError"),
    (_npz(a=_npy((1,), data=b"1234", version=9)), "'a' is of version 9.0; known are 1.0, 2.0, 3.0"),
    (_npz(a=b"nothing"), "'a' does not begin as a .npy file"),
    (_npz(a=b"\x93NUMPY\1\0\x04\0(((("), "the header of 'a' is damaged: SyntaxError"),
    (_npz(a=b"\x93NUMPY\2\0\xff\xff\xff\0"), "the header of 'a' has 16777215 bytes"),
    (_npz(a=_npy((1,), data=b"1234"))[:-10], "not a zip file"),
    (b"PK\x03\x04", "not a zip file"),
    (b"\x93NUMPY", "'the array' ends early"),
    (_npy((1 << 40,)), r"'the array' of shape \(1099511627776,\)"),
])
def test_damaged_files(tmp_path, content, text):
    with pytest.raises(mx.MXNetError, match=f"a.npz: not a valid .np[yz] file: .*{text}|{text}"):
        mx.nd.load(_file(tmp_path, content))


def test_a_size_that_deflate_cannot_reach_is_refused(tmp_path):
    content = bytearray(_npz(a=_npy((4,), data=b"\0" * 16)))
    at = content.rindex(b"PK\x01\x02")
    content[at + 24:at + 28] = struct.pack("<I", 1 << 31)  # the uncompressed size in the directory
    with pytest.raises(mx.MXNetError, match="'a' can't have 2147483648 bytes"):
        mx.nd.load(_file(tmp_path, bytes(content)))


def test_savez(tmp_path):
    path = str(tmp_path / "net.params")
    mx.npx.savez(path, mx.np.ones((2,)), bias=mx.np.zeros(()))
    found = mx.npx.load(path)
    assert {name: (type(array), array.tolist()) for name, array in found.items()} == {"arr_0": (mx.np.ndarray, [1, 1]), "bias": (mx.np.ndarray, 0)}
    with pytest.raises(ValueError, match="two arrays are called 'arr_0'"):
        mx.npx.savez(path, mx.np.ones(1), arr_0=mx.np.ones(1))
    with pytest.raises(TypeError, match="npx.savez takes mx.np arrays, received NDArray as x"):
        mx.npx.savez(path, x=mx.nd.ones(1))
