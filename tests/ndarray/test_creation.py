import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd


@pytest.mark.parametrize("make, expected", [
    (lambda: nd.zeros(2), [0, 0]), (lambda: nd.ones((1, 2)), [[1, 1]]), (lambda: nd.full((2,), 7), [7, 7]), (lambda: nd.arange(3), [0, 1, 2]),
    (lambda: nd.arange(1, 8, 3), [1, 4, 7]), (lambda: nd.arange(2, repeat=2), [0, 0, 1, 1]), (lambda: nd.arange(3, 0, -1.5), [3, 1.5]),
    (lambda: nd.linspace(0, 1, 3), [0, 0.5, 1]), (lambda: nd.linspace(0, 1, 2, endpoint=False), [0, 0.5]), (lambda: nd.linspace(5, 9, 1), [5]),
    (lambda: nd.eye(2), [[1, 0], [0, 1]]), (lambda: nd.eye(2, 3, -1), [[0, 0, 0], [1, 0, 0]])])
def test_values(make, expected):
    found = make()
    assert found.asnumpy().tolist() == expected and found.dtype is np.float32 and found.context == mx.cpu()


@pytest.mark.parametrize("make", [
    lambda **kw: nd.zeros((2,), **kw), lambda **kw: nd.full((2,), 1, **kw), lambda **kw: nd.arange(2, **kw), lambda **kw: nd.eye(2, **kw),
    lambda **kw: nd.linspace(0, 1, 2, **kw), lambda **kw: nd.empty((2,), **kw), lambda **kw: nd.array([1], **kw)])
def test_types_and_contexts(make):
    found = make(dtype="int32", ctx=mx.cpu(1))
    assert found.dtype is np.int32 and found.context == mx.cpu(1)
    with mx.cpu(2):
        assert make().context == mx.cpu(2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "bool"])
@pytest.mark.parametrize("count", [1, 1 << 16, (1 << 20) + 1])
def test_zeros_where_other_numbers_were(count, dtype, monkeypatch):
    dirty = torch.empty(count + 1, dtype=getattr(torch, dtype)).fill_(1)[:count]
    monkeypatch.setattr("mxnet.ndarray.dense.torch.empty", lambda shape, dtype, device: dirty.view(shape))
    found = nd.zeros((1, count), dtype=dtype)
    assert found.shape == (1, count) and not found._data.any()
    monkeypatch.undo()
    assert nd.ones((2,), dtype=dtype)._data.all()


def test_sparse_sources_and_targets():
    assert [nd.zeros((2, 2), stype=s).stype for s in ("default", "csr", "row_sparse")] == ["default", "csr", "row_sparse"]
    assert nd.empty((2, 2), stype="csr").stype == "csr"
    csr = nd.array([[0, 1], [2, 0]]).tostype("csr")
    assert nd.array(csr).stype == "csr" and nd.array(csr).asnumpy().tolist() == [[0, 1], [2, 0]]


def test_what_is_refused():
    with pytest.raises(mx.MXNetError, match="infer_range=True needs a Symbol"):
        nd.arange(3, infer_range=True)
    with pytest.raises(TypeError, match=r"eye got unexpected arguments \['order'\]"):
        nd.eye(2, order="C")
    with pytest.raises(TypeError, match=r"got unexpected arguments \['order'\]"):
        nd.ones((2,), order="C")


def test_memory_of_numpy_is_shared_and_no_longer_the_caller_s_to_write():
    source = np.arange(3, dtype="int64")
    shared = nd.from_numpy(source)
    assert shared.dtype is np.int64 and shared._data.data_ptr() == source.ctypes.data and not source.flags.writeable
    other = np.arange(3, dtype="int64")
    copied = nd.from_numpy(other, zero_copy=False)
    copied[:] = 9
    assert other.tolist() == [0, 1, 2] and copied.dtype is np.int64
    with pytest.raises(ValueError, match="zero_copy needs a C-contiguous array"):
        nd.from_numpy(np.ones((2, 3)).T)


def test_capsules_share_memory():
    x = nd.array([1, 2])
    for capsule in (nd.to_dlpack_for_read(x), nd.to_dlpack_for_write(x)):
        assert nd.from_dlpack(capsule)._data.data_ptr() == x._data.data_ptr()
    assert nd.from_dlpack(torch.ones(2)).asnumpy().tolist() == [1, 1]


def test_concatenate():
    a, b = nd.array([[1, 2]]), nd.array([[3, 4]])
    assert nd.concatenate([a, b]).asnumpy().tolist() == [[1, 2], [3, 4]]
    assert nd.concatenate([a, b], axis=1).asnumpy().tolist() == [[1, 2, 3, 4]]
    assert nd.concatenate([a], always_copy=False) is a and nd.concatenate([a]) is not a
    with pytest.raises(mx.MXNetError, match="at least one array is needed"):
        nd.concatenate([])
    with pytest.raises(mx.MXNetError, match=r"shapes must agree outside axis 0, received \[\(1, 2\), \(1, 3\)\]"):
        nd.concatenate([a, nd.ones((1, 3))])


def test_moveaxis():
    x = nd.zeros((1, 2, 3))
    assert [nd.moveaxis(x, *a).shape for a in ((0, 2), (-1, 0), ([0, 1], [2, 0]))] == [(2, 3, 1), (3, 1, 2), (2, 3, 1)]
    for source, destination, text in ((3, 0, r"source \[3\] names axes that an array of 3 axes does not have"),
                                      ([0, 0], [1, 2], r"source \[0, 0\] names an axis twice"),
                                      ([0], [1, 2], "a destination for each source expected")):
        with pytest.raises(ValueError, match=text):
            nd.moveaxis(x, source, destination)


def test_histogram():
    x = nd.array([0.5, 1.5, 1.7, 2.5])
    counts, edges = nd.histogram(x, bins=3, range=(0, 3))
    assert counts.asnumpy().tolist() == [1, 2, 1] and edges.asnumpy().tolist() == [0, 1, 2, 3]
    counts, edges = nd.histogram(x, bins=2)
    assert counts.asnumpy().tolist() == [1, 3] and edges.asnumpy().tolist() == [0.5, 1.5, 2.5]
    assert nd.histogram(x, nd.array([0, 2, 3]))[0].asnumpy().tolist() == [3, 1]
    assert nd.histogram(nd.array([2, 2]), bins=2)[1].asnumpy().tolist() == [1.5, 2, 2.5]
    with pytest.raises(ValueError, match="bins"):
        nd.histogram(x, bins="auto")


def test_split_v2():
    x = nd.array([[1, 2, 3], [4, 5, 6]])
    assert [p.asnumpy().tolist() for p in nd.split_v2(x, 3, axis=1, squeeze_axis=True)] == [[1, 4], [2, 5], [3, 6]]
    assert [p.shape for p in nd.split_v2(x, (1, 2), axis=1)] == [(2, 1)] * 3
    assert [p.shape for p in x.split_v2(2)] == [(1, 3)] * 2
    with pytest.raises(ValueError, match="3 entries of axis 1 make no 2 equal parts"):
        nd.split_v2(x, 2, axis=1)
    with pytest.raises(ValueError, match="indices_or_sections must be an int or a tuple of ints"):
        nd.split_v2(x, 0.5)


def test_onehot_encode():
    out = nd.zeros((2, 3))
    assert nd.onehot_encode(nd.array([2, 0]), out) is out and out.asnumpy().tolist() == [[0, 0, 1], [1, 0, 0]]


def test_imdecode():
    import cv2
    picture = np.arange(24, dtype="uint8").reshape(2, 4, 3)
    content = cv2.imencode(".png", picture[..., ::-1])[1].tobytes()
    found = nd.imdecode(content)
    assert found.dtype is np.float32 and found.asnumpy()[0].tolist() == picture.transpose(2, 0, 1).tolist()
    assert nd.imdecode(content, clip_rect=(1, 0, 3, 1)).shape == (1, 3, 1, 2)
    assert nd.imdecode(content, mean=nd.full((3, 2, 4), 1)).asnumpy().min() == -1
    out = nd.zeros((2, 3, 2, 4))
    assert nd.imdecode(content, out=out, index=1) is out and out[0].asnumpy().max() == 0 and out[1].asnumpy().max() == 23
    assert nd.imdecode(content, channels=1).shape == (1, 1, 2, 4)


def test_helpers_of_indexing():
    assert [nd.get_indexing_dispatch_code(k) for k in (1, (slice(2), None), True, [0], (0, nd.array([1])), "a")] == [0, 0, 0, 1, 1, -1]
    assert nd.indexing_key_expand_implicit_axes((Ellipsis, 1), (2, 3)) == (slice(None), 1)
    assert nd.get_oshape_of_gather_nd_op((2, 3, 4), (2, 5)) == (5, 4)
    with pytest.raises(ValueError, match=r"indices of shape \(3, 5\) select up to axis 3, data has 2"):
        nd.get_oshape_of_gather_nd_op((2, 3), (3, 5))


def test_waitall_returns():
    assert nd.waitall() is None


def test_a_type_may_be_that_of_an_array():
    y = nd.ones((2,), dtype="int32")
    for made in (nd.zeros((2,), dtype=y), nd.full((2,), 3, dtype=y), nd.empty((2,), dtype=y), nd.arange(3, dtype=y), nd.array([1, 2], dtype=y),
                 nd.ones((2,)).astype(y)):
        assert made.dtype is np.int32
    with pytest.raises(TypeError, match="not understood"):
        nd.ones((2,)).astype(np.ones(2, "int64"))


@pytest.mark.parametrize("make", [mx.nd.zeros, mx.nd.ones, mx.nd.empty])
def test_an_array_without_memory_for_it_is_an_mxnet_error(make):
    with pytest.raises(mx.MXNetError, match="type float32 can't be made"):
        make((1 << 24, 1 << 24))
