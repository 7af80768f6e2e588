"""Stores whose workers update the weights themselves, in real processes."""
import pytest
import torch

import mxnet as mx
from job_checks import outputs
from mxnet.kvstore.collective import P3KVStore

WORK = """
for kind in 'horovod', 'byteps', 'p3', 'dist_device_sync':  # the last one is p3, by DMLC_PS_VAN_TYPE
    kv = mx.kv.create(kind)
    a, b = mx.nd.ones((3, 40)) * (kv.rank + 1), mx.nd.array([7])
    out = mx.nd.zeros((3, 40))
    kv.broadcast('a', a, out=out)
    kv.broadcast(['b'], [b], out=[[b]])
    print(kv.type, kv.rank, kv.num_workers, getattr(kv, 'local_rank', kv.rank), kv.is_capable('optimizer'), np.unique(out.asnumpy()))
    kv.pushpull(['a', 'b'], [[a, a.copyto(mx.cpu(1))], [b]])
    kv.pushpull('a', a * 2, out=out)
    print(np.unique(a.asnumpy()), b.asnumpy(), np.unique(out.asnumpy()))
    net = mx.gluon.nn.Dense(1, use_bias=False, in_units=1)
    net.initialize(mx.init.One())
    trainer = mx.gluon.Trainer(net.collect_params(), 'sgd', dict(learning_rate=0.5), kvstore=kind)
    with mx.autograd.record():
        loss = net(mx.nd.array([[kv.rank + 1.0]]))
    loss.backward()
    trainer.step(2)
    print(net.weight.data().asscalar())
    for call in (lambda: kv.pushpull('a', a.tostype('row_sparse')), lambda: kv.set_optimizer(mx.optimizer.SGD()),
                 lambda: kv.set_gradient_compression({'type': '2bit'}),
                 lambda: kv.row_sparse_pull('a', out=a.tostype('row_sparse'), row_ids=b)):
        try:
            call()
        except Exception as error:
            print(type(error).__name__, error)
    kv.pushpull('a', a) if kind != 'p3' else None
try:
    mx.kv.create('dist_async')
except mx.MXNetError as error:
    print(error)
"""


def test_large_values_travel_in_slices(monkeypatch):
    class Net:
        sent: list[int] = []

        def begin_sum(self, part, doing):
            self.sent.append(part.numel())
            return lambda: 2 * part

    values = [torch.arange(10.0).reshape(2, 5), torch.ones(3)]
    for length, sent in (("4", [4, 4, 2, 3]), ("10", [10, 3])):
        monkeypatch.setenv("MXNET_KVSTORE_SLICE_THRESHOLD", length)
        net = Net()
        net.sent = []
        sums = P3KVStore._begin_sums(None, ["a", "b"], values, "push", net)
        assert [s.tolist() for s in sums] == [[[0, 2, 4, 6, 8], [10, 12, 14, 16, 18]], [2, 2, 2]] and net.sent == sent


def test_sums_and_broadcasts():
    found = outputs(WORK, env={"DMLC_PS_VAN_TYPE": "p3", "MXNET_KVSTORE_SLICE_THRESHOLD": "50"})
    for rank, lines in enumerate(found):
        expected = []
        for kind in ("horovod", "byteps", "p3", "p3"):
            expected += [f"{kind} {rank} 2 {rank} False [1.]", "[6.] [14.] [24.]", "0.25"]
            if kind == "p3":
                expected += ["MXNetError push of key 'a': a kvstore of type 'p3' takes dense arrays, received a row_sparse one; use 'dist_sync'",
                             "MXNetError a kvstore of type 'p3' does not update values, its workers do (update_on_kvstore=False); or use 'dist_sync'",
                             "MXNetError a kvstore of type 'p3' does not compress gradients; use 'dist_sync'",
                             "MXNetError row_sparse_pull: a kvstore of type 'p3' keeps dense values; use 'dist_sync'"]
            else:
                expected += [f"MXNetError pushpull of key 'a': a kvstore of type '{kind}' adds up dense arrays, received row_sparse for 'a'; use "
                             "'dist_sync'",
                             "NotImplementedError ", "AttributeError 'CollectiveKVStore' object has no attribute 'set_gradient_compression'",
                             "AttributeError 'CollectiveKVStore' object has no attribute 'row_sparse_pull'"]
        assert lines == [*expected, "kvstore.create: 'dist_async' does not go with DMLC_PS_VAN_TYPE=p3, whose workers go in step; use 'dist_sync'"]


@pytest.mark.parametrize("kind", ["horovod", "byteps", "p3", "dist_sync"])
def test_types_that_span_processes(kind):
    assert mx.kvstore.base.spans_processes(kind) and not mx.kvstore.base.spans_processes("device")
