"""Files of the package safetensors."""
import builtins

import pytest

import mxnet as mx

NO_NAMES = "arrays in .*a.safetensors need names, received 1 without; save a dict"


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    plain = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "safetensors":
            raise ImportError(f"No module named {name!r}")
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    path = str(tmp_path / "a.safetensors")
    with pytest.raises(ImportError, match=r"take the package safetensors; install it with: pip install 'remexnet\[safetensors\]'"):
        mx.nd.save(path, {"a": mx.nd.ones((1,))})
    assert not list(tmp_path.iterdir())


def test_a_list_has_no_names(tmp_path):
    pytest.importorskip("safetensors")
    with pytest.raises(ValueError, match=NO_NAMES):
        mx.nd.save(str(tmp_path / "a.safetensors"), mx.nd.ones((1,)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_other_programs_read_what_is_written(tmp_path, dtype):
    torch_files = pytest.importorskip("safetensors.torch")
    path = str(tmp_path / "a.safetensors")
    array = mx.nd.array([[1, 0], [2, 3]], dtype=dtype)
    mx.nd.save(path, {"a": array, "again": array, "part": array[1:]})
    found = torch_files.load_file(path)
    assert str(found["a"].dtype) == f"torch.{dtype}" and found["again"].tolist() == found["a"].tolist() == array._data.tolist()
    back = mx.nd.load(path)
    assert back["part"]._data.dtype == found["a"].dtype and back["part"]._data.tolist() == array._data.tolist()[1:]


def test_what_is_written_by_others(tmp_path):
    torch_files, torch = pytest.importorskip("safetensors.torch"), pytest.importorskip("torch")
    path = str(tmp_path / "a.safetensors")
    torch_files.save_file({"w": torch.tensor([1.5, 2.0], dtype=torch.bfloat16), "n": torch.tensor(3)}, path)
    found = mx.npx.load(path)
    assert type(found["w"]) is mx.np.ndarray and found["w"]._data.tolist() == [1.5, 2.0] and found["n"].item() == 3
    torch_files.save_file({"w": torch.zeros(2, dtype=torch.float8_e5m2)}, path)
    with pytest.raises(mx.MXNetError, match="a.safetensors: 'w' has elements of type float8_e5m2; known are float32, "):
        mx.nd.load(path)


@pytest.mark.parametrize("change", [lambda c: b"", lambda c: c[:-1], lambda c: b"\xff" * 8 + c[8:], lambda c: c.replace(b"F32", b"X32"),
                                    lambda c: c.replace(b"[2]", b"[9]")])
def test_damaged_files(tmp_path, change):
    pytest.importorskip("safetensors")
    path = tmp_path / "a.safetensors"
    mx.nd.save(str(path), {"a": mx.nd.ones((2,))})
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(mx.MXNetError, match="a.safetensors: not a valid .safetensors file: "):
        mx.nd.load(str(path))


def test_sparse_arrays_are_refused_and_the_file_stays(tmp_path):
    pytest.importorskip("safetensors")
    path = str(tmp_path / "a.safetensors")
    mx.nd.save(path, {"a": mx.nd.ones((2,))})
    with pytest.raises(mx.MXNetError, match="files hold dense arrays, received 'x' of storage type csr"):
        mx.nd.save(path, {"x": mx.nd.ones((2, 2)).tostype("csr")})
    assert list(mx.nd.load(path)) == ["a"]
