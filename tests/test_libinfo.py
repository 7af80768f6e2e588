import mxnet as mx
from mxnet import libinfo


def test_versions():
    assert mx.__version__ == "1.9.1"
    assert libinfo.remex_version.count(".") == 2


def test_paths(monkeypatch, tmp_path):
    for name in ("MXNET_LIBRARY_PATH", "MXNET_INCLUDE_PATH", "MXNET_CONF_PATH"):
        monkeypatch.delenv(name, raising=False)
    assert libinfo.find_lib_path() == [] and libinfo.find_conf_path() == [] and libinfo.find_include_path() == ""
    library, config = tmp_path / "libmxnet.so", tmp_path / "tvmop.conf"
    library.touch()
    config.touch()
    monkeypatch.setenv("MXNET_LIBRARY_PATH", str(library))
    monkeypatch.setenv("MXNET_CONF_PATH", str(config))
    monkeypatch.setenv("MXNET_INCLUDE_PATH", str(tmp_path))
    assert libinfo.find_lib_path() == [str(library)] and libinfo.find_lib_path("libother") == []
    assert libinfo.find_conf_path() == [str(config)] and libinfo.find_include_path() == str(tmp_path)
