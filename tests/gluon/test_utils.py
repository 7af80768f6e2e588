"""Helpers: splitting, clipping, downloads, hooks, shapes."""
import hashlib
import http.server
import pickle
import threading
from collections import OrderedDict

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import utils


def test_split_data():
    x = mx.nd.arange(10).reshape((5, 2))
    assert [p.asnumpy().tolist() for p in utils.split_data(x, 2, even_split=False)] == [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9]]]
    assert [p.shape for p in utils.split_data(mx.nd.ones((2, 6)), 3, batch_axis=1)] == [(2, 2)] * 3
    with pytest.raises(ValueError, match=r"shape \(5, 2\) cannot be evenly split into 2 slices along axis 0"):
        utils.split_data(x, 2)


def test_split_and_load():
    parts = utils.split_and_load(np.arange(4.), [mx.cpu(0), mx.cpu(1)])
    assert [p.context for p in parts] == [mx.cpu(0), mx.cpu(1)]
    assert parts[1].asnumpy().tolist() == [2, 3]
    assert utils.split_and_load(mx.nd.ones((3,)), [mx.cpu(2)])[0].context == mx.cpu(2)


def test_clip_global_norm():
    x, y = mx.nd.array([3.]), mx.nd.array([[4.]], ctx=mx.cpu(1))
    assert utils.clip_global_norm([x, y], 1.0) == 5.0
    np.testing.assert_allclose([x.asscalar(), y.asscalar()], [0.6, 0.8], rtol=1e-5)
    total = utils.clip_global_norm([x, y], 10.0, check_isfinite=False)
    assert total.shape == (1,)
    np.testing.assert_allclose(x.asscalar(), 0.6, rtol=1e-5)
    with pytest.warns(UserWarning, match=r"the norm is .* \(nan or inf\)"):
        utils.clip_global_norm([mx.nd.array([np.inf])], 1.0)
    with pytest.raises(AssertionError, match="at least one array"):
        utils.clip_global_norm([], 1.0)


class Files(http.server.BaseHTTPRequestHandler):
    failures = 0

    def do_GET(self):
        if Files.failures:
            Files.failures -= 1
            self.send_error(500)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"content")

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}/file.bin"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


SHA1 = hashlib.sha1(b"content").hexdigest()


def test_download(server, tmp_path, capsys):
    path = utils.download(server, str(tmp_path), sha1_hash=SHA1)
    assert path == str(tmp_path / "file.bin")
    assert utils.check_sha1(path, SHA1) and not utils.check_sha1(path, "0" * 40)
    Files.failures = 1
    assert utils.download(server, path) == path  # there already: the server isn't asked
    Files.failures = 1
    utils.download(server, path, overwrite=True)
    assert "4 further attempts" in capsys.readouterr().out
    Files.failures = 3
    with pytest.raises(RuntimeError, match="Failed downloading url .* the server answered 500"):
        utils.download(server, path, overwrite=True, retries=2)
    Files.failures = 0
    with pytest.raises(UserWarning, match="SHA-1 .* expected, received another"):
        utils.download(server, path, sha1_hash="0" * 40, retries=1)
    assert [p.name for p in tmp_path.iterdir()] == ["file.bin"]  # nothing half done is left


def test_download_arguments(server):
    with pytest.raises(AssertionError, match="no file name can be made"):
        utils.download("http://host/")
    with pytest.raises(AssertionError, match="at least 0, received -1"):
        utils.download(server, retries=-1)


def test_repo_url(monkeypatch):
    monkeypatch.delenv("MXNET_GLUON_REPO", raising=False)
    assert utils._get_repo_url() == "https://" + ".".join(("apache-mxnet", "s3-accelerate", "dualstack", "amazonaws", "com/"))
    monkeypatch.setenv("MXNET_GLUON_REPO", "http://mirror")
    assert utils._get_repo_file_url("gluon/models", "a.zip") == "http://mirror/gluon/models/a.zip"


def test_hook_handle():
    hooks = OrderedDict()
    handle = utils.HookHandle()
    handle.attach(hooks, print)
    assert list(hooks.values()) == [print]
    with pytest.raises(AssertionError, match="this handle holds a hook already"):
        handle.attach(hooks, print)
    copy = pickle.loads(pickle.dumps((hooks, handle)))[1]
    with handle:
        pass
    assert not hooks
    handle.detach()
    copy.detach()


def test_shape_is_known():
    assert [utils.shape_is_known(s) for s in (None, (), (2, 0), (2, 3))] == [False, False, False, True]
    with mx.util.np_shape(True):
        assert [utils.shape_is_known(s) for s in ((), (2, 0), (2, -1))] == [True, True, False]
    with pytest.raises(AssertionError, match="less than 0"):
        utils.shape_is_known((-2,))


def test_brief_print_list():
    assert utils._brief_print_list("abc") == "'a', 'b', 'c'"
    assert utils._brief_print_list("abcdefghij") == "'a', 'b', 'c', ..., 'g', 'h', 'i', 'j'"


@pytest.mark.parametrize("scope", [False, True])
def test_clip_global_norm_of_arrays_of_numpy(scope):
    with mx.util.np_shape(scope), mx.util.np_array(scope):
        arrays = [mx.np.array([3.0, 4.0]), mx.np.array([[12.0]]), *([mx.np.array(84.0)] if scope else [])]
        total = utils.clip_global_norm(arrays, 1.0, check_isfinite=False)
        assert type(total) is mx.np.ndarray and total.asnumpy().tolist() == [85.0 if scope else 13.0]
        size = 85 if scope else 13
        np.testing.assert_allclose(arrays[0].asnumpy(), [3 / size, 4 / size], rtol=1e-6)
        np.testing.assert_allclose(arrays[1].asnumpy(), [[12 / size]], rtol=1e-6)
        assert utils.clip_global_norm(arrays, 2.0) == pytest.approx(1.0) and (not scope or arrays[2].shape == ())
