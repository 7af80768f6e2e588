"""How batches get into the bound arrays of a module."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.module import executor_group
from mxnet.ndarray import mutation_tracking


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
    mutation_tracking.watch([target._data], watcher)
    executor_group._copy("x", mx.nd.ones((3, 4)), target)
    assert watcher.stale


def test_outputs_of_all_devices_become_one():
    from mxnet.module.executor_group import _merge_multi_context
    outputs = [[mx.nd.ones(1), mx.nd.zeros(1, ctx=mx.cpu(1))]] * 2
    assert [x.asnumpy().tolist() for x in _merge_multi_context(outputs, [0, -1])] == [[1, 0], [1]]


def test_devices_of_a_joined_batch_norm_meet():
    out = mx.sym.contrib.SyncBatchNorm(mx.sym.var("data"), ndev=2, key="k", name="bn", fix_gamma=False)
    module = mx.mod.Module(out, context=[mx.cpu(0), mx.cpu(1)], label_names=[])
    module.bind([("data", (4, 2))], inputs_need_grad=True)
    module.init_params(mx.init.One())
    module.forward(mx.io.DataBatch([mx.nd.array([[0, 1], [2, 5], [4, 2], [10, 0]])], []), is_train=True)
    module.backward([mx.nd.array([[1, 0], [0, 2], [3, 1], [0, -1]])])
    # Of MXNet 1.9.1, in a run in which its threads did not lock one another up.
    assert np.allclose(module.get_outputs()[0].asnumpy(), [[-1.069007, -.534446], [-.534503, 1.603338], [0, 0], [1.60351, -1.068892]], atol=1e-6)
    assert np.allclose(module.get_input_grads()[0].asnumpy(),
                       [[-.07635218, .03808749], [-.30542779, -.11426243], [.53450334, .26722309], [-.15272345, -.19104812]], atol=1e-6)
    assert np.allclose([[a.asnumpy() for a in per_device] for per_device in module._exec_group.grad_arrays],
                       [[[-1.0690068, 3.206677], [0, 1.0688924]], [[1, 2], [3, 0]]], atol=1e-6)
    assert np.allclose([[a.asnumpy() for a in per_device] for per_device in module._exec_group.aux_arrays],
                       [[[.4, .2]] * 2, [[2.3, 1.25]] * 2], atol=1e-6)
