"""How batches get into the bound arrays of a module."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.module import executor_group
from mxnet.ndarray import writes


@pytest.mark.parametrize("kind", ["bytes", "turned", "another type", "large", "sparse"])
def test_batches_are_copied(kind, monkeypatch):
    values = np.arange(12, dtype="float32").reshape(3, 4)
    source = mx.nd.array(values)
    if kind == "turned":
        source = mx.nd.from_torch(source.as_torch().t().contiguous().t())
    elif kind == "another type":
        source = source.astype("float64")
    elif kind == "large":
        monkeypatch.setattr(executor_group, "_FEW_BYTES", 47)
    elif kind == "sparse":
        source = source.tostype("csr")
    target = mx.nd.zeros((3, 4))
    assert executor_group._plain(source, target) is (kind == "bytes")
    executor_group._copy("x", source, target)
    np.testing.assert_array_equal(target.asnumpy(), values)


def test_what_is_compiled_with_an_array_built_in_hears_of_a_copied_batch():
    class Watcher:
        stale = compares = False
    watcher, target = Watcher(), mx.nd.zeros((3, 4))
    writes.watch([target._data], watcher)
    executor_group._copy("x", mx.nd.ones((3, 4)), target)
    assert watcher.stale


def test_outputs_of_all_devices_become_one():
    from mxnet.module.executor_group import _merge_multi_context
    outputs = [[mx.nd.ones(1), mx.nd.zeros(1, ctx=mx.cpu(1))]] * 2
    assert [x.asnumpy().tolist() for x in _merge_multi_context(outputs, [0, -1])] == [[1, 0], [1]]
