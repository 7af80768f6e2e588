import pytest

import mxnet as mx
from mxnet import MXNetError

DEVICES = [mx.cpu(i) for i in range(3)]


def ones(ctx=mx.cpu(), value=1.0):
    return mx.nd.full((2, 2), value, ctx=ctx)


def full(value):
    return [[value, value], [value, value]]


def test_type_names_ignore_case():
    assert mx.kv.create("Device").type == "device"


def test_creation_errors():
    with pytest.raises(TypeError, match="name must be a string, received 3"):
        mx.kv.create(3)
    with pytest.raises(MXNetError, match="unknown type 'distant'; the types of this release are local, .*device, nccl, dist, dist_sync.*teststore"):
        mx.kv.create("distant")
    with pytest.raises(ValueError, match="Unknown capability: x"):
        mx.kv.create().is_capable("x")


def test_nccl_needs_cuda():
    import torch
    if torch.cuda.is_available():
        assert mx.kv.create("nccl").type == "nccl"
    else:
        with pytest.raises(MXNetError, match="'nccl' needs a GPU"):
            mx.kv.create("nccl")


def test_stores_of_other_makers():
    @mx.kv.KVStoreBase.register
    class Mine(mx.kv.KVStoreBase):
        pass

    try:
        assert isinstance(mx.kv.create("mine"), Mine)
        with pytest.warns(UserWarning, match="replaces .*Mine"):
            mx.kv.KVStoreBase.register(Mine)
        with pytest.raises(NotImplementedError):
            mx.kv.create("mine").broadcast(1, ones(), ones())
    finally:
        del mx.kv.KVStoreBase.kv_registry["mine"]


def test_the_store_for_tests():
    store = mx.kv.create("teststore")
    values = [ones(d, i + 1) for i, d in enumerate(DEVICES)]
    store.pushpull(1, values)
    assert [v.asnumpy().tolist() for v in values] == [full(6)] * 3
    assert not store.is_capable("optimizer") and store.type == "teststore"
    with pytest.raises(NotImplementedError):
        store.set_optimizer(mx.optimizer.SGD())
