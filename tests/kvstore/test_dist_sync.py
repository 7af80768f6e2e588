"""Stores of workers in step, in real processes; what is right for one process is said in test_kvstore.py."""
import json
import re
import signal

import pytest

import mxnet as mx
from job_checks import Job, outputs


def test_values_of_all_workers():
    found = outputs("""
        kv.init('w', mx.nd.ones((2,)) * (kv.rank + 5))
        a = mx.nd.zeros((2,))
        kv.pull('w', out=a)
        print(kv.rank, kv.num_workers, kv.type, a.asnumpy().tolist())  # the value of worker 0

        kv.push('w', [mx.nd.ones((2,)) * (kv.rank + 1), mx.nd.ones((2,), mx.cpu(1))])
        kv.pull('w', out=a)
        print(a.asnumpy().tolist())

        kv.init(['h', 'r'], [mx.nd.ones((3,), dtype='float16'), mx.nd.ones((4, 2)).tostype('row_sparse')])
        h = mx.nd.ones((3,), dtype='float16') * (kv.rank + 1)
        kv.pushpull('h', h)
        print(h.asnumpy().tolist(), h.dtype.__name__)
        large = [mx.nd.ones((1100, 1100)) * (kv.rank + 1), mx.nd.arange(5) * kv.rank]
        kv.init(['x', 'y'], large)
        kv.pushpull(['x', 'y'], large)
        print(large[0].asnumpy().min(), large[0].asnumpy().max(), large[1].asnumpy().tolist())

        if kv.rank == 0:  # the others take it over
            kv.set_optimizer(mx.optimizer.create('test', rescale_grad=2))
        v = mx.nd.zeros((4, 2))
        v[kv.rank] = 1
        kv.push('r', v.tostype('row_sparse'))
        before = kv._group.sent
        kv.push('r', v.tostype('row_sparse'))
        print(kv._group.sent - before)  # counts, a number and two values to each of the others
        o = mx.nd.sparse.zeros('row_sparse', (4, 2))
        kv.row_sparse_pull('r', out=o, row_ids=mx.nd.array([0, 3]))
        print(o.asnumpy().tolist())
        kv.push('r', mx.nd.sparse.zeros('row_sparse', (4, 2)))
        kv._barrier()
        print(kv.get_num_dead_node(6), kv.is_capable('optimizer'))
        for name in 'a', 'b':
            try:
                kv.push(*(('w', a) if (name == 'a') == (kv.rank == 0) else ('h', h)))
            except mx.MXNetError as error:
                print(error)
                break
        """, kind="dist_sync", workers=3)
    for rank, lines in enumerate(found):
        other = 1 if rank == 0 else 0
        assert lines[:9] == [
            f"{rank} 3 dist_sync [5.0, 5.0]", "[9.0, 9.0]", "[6.0, 6.0, 6.0] float16", "6.0 6.0 [0.0, 3.0, 6.0, 9.0, 12.0]", "48",
            "[[5.0, 5.0], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]", "0 True",
            f"push of key {'h' if rank else 'w'!r}: worker {rank} and worker {other} do not do the same: worker {other} calls "
            f"push of key {'w' if rank else 'h'!r}. All workers of a synchronous kvstore init, push and pull the same keys with the same shapes and "
            "types in the same order, and compress alike"]


def test_compression():
    found = outputs("""
        kv.set_gradient_compression({'type': '2bit', 'threshold': 0.5})
        kv.init(['w', 'v'], [mx.nd.ones((160,)), mx.nd.ones((3,))])
        o = [mx.nd.zeros((160,)), mx.nd.zeros((3,))]
        for scale in 1, 2:
            before = kv._group.sent
            kv.pushpull(['w', 'v'], [mx.nd.ones((160,)) * 0.3 * scale, mx.nd.array([0.6, -0.6, 0.4]) * (kv.rank + 1)], out=o)
            print([sorted(set(a.asnumpy().tolist())) for a in o], kv._group.sent - before)
        try:
            kv.init('h', mx.nd.ones((3,), dtype='float16'))
            kv.push('h', mx.nd.ones((3,), dtype='float16'))
        except mx.MXNetError as error:
            print(error)
        for kind in '1bit', 'fp16', 'bf16':
            kv = mx.kv.create('dist_sync')
            kv.set_gradient_compression({'type': kind})
            kv.init('w', mx.nd.ones((160,)))
            before = kv._group.sent
            kv.pushpull('w', mx.nd.ones((160,)) * (0.7 + kv.rank / 10), out=o[0])
            print(kind, sorted(set(o[0].asnumpy().tolist())), kv._group.sent - before)
        """, kind="dist_device_sync")
    assert found[0] == found[1] == [
        "[[0.0], [-1.0, 0.5, 1.0]] 44", "[[1.0], [-1.0, 1.0]] 44",  # 40 bytes instead of 640, and 4 instead of 12
        "push of key 'h': gradient compression is for float32, received float16",
        "1bit [2.0] 20", "fp16 [1.5] 320", "bf16 [1.5] 320"]


TRAINING = """
def net():
    mx.random.seed(7)
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(16, activation='tanh', in_units=10), mx.gluon.nn.Dense(4, in_units=16))
    net.initialize(mx.init.Xavier())
    return net

def batches(rank, workers):
    data = np.random.RandomState(3).randn(100, 8, 10).astype('float32')
    for batch in data:
        label = np.abs(batch[:, :4]).argmax(1).astype('float32')
        yield mx.nd.array(batch[rank::workers]), mx.nd.array(label[rank::workers])

def gluon(kind, rank, workers, **options):
    block = net()
    trainer = mx.gluon.Trainer(block.collect_params(), 'adam', dict(learning_rate=0.01), kvstore=kind, **options)
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    for x, y in batches(rank, workers):
        with mx.autograd.record():
            value = loss(block(x), y)
        value.backward()
        trainer.step(8)
    return [p.data().asnumpy().ravel() for p in block.collect_params().values()]

def module(kind, rank, workers):
    x = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=16, name='a')
    x = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.tanh(x), num_hidden=4, name='b'), name='softmax')
    mod = mx.mod.Module(x, context=mx.cpu())
    mod.bind([('data', (8 // workers, 10))], [('softmax_label', (8 // workers,))])
    mx.random.seed(5)
    mod.init_params(mx.init.Xavier())
    mod.init_optimizer(kind, 'sgd', dict(learning_rate=0.05, momentum=0.9))
    for x, y in batches(rank, workers):
        mod.forward_backward(mx.io.DataBatch([x], [y]))
        mod.update()
    return [value.asnumpy().ravel() for _, value in sorted(mod.get_params()[0].items())]
"""


def test_training_is_that_of_one_process_with_the_whole_batch():
    found = outputs(TRAINING + """
import json
kv = mx.kv.create('dist_sync')
for weights in (gluon('dist_sync', kv.rank, 2), gluon('dist_device_sync', kv.rank, 2, update_on_kvstore=False), module(kv, kv.rank, 2)):
    print(json.dumps([w.tolist() for w in weights]))
""")
    assert found[0] == found[1]  # to the last bit
    scope = {"mx": mx, "np": mx.test_utils.np}
    exec(TRAINING, scope)
    alone = scope["gluon"]("local", 0, 1)
    for line, expected in zip(found[0], [alone, alone, scope["module"]("local", 0, 1)]):
        for mine, theirs in zip(json.loads(line), expected):
            assert abs(mx.nd.array(mine) - mx.nd.array(theirs)).max().asscalar() < 1e-5


def test_a_trainers_own_store_keeps_no_sums_but_hands_them_over():
    found = outputs("""
        def trained(store):
            net = mx.gluon.nn.Dense(3, in_units=2)
            net.initialize(mx.init.One())
            trainer = mx.gluon.Trainer(net.collect_params(), 'sgd', optimizer_params={'learning_rate': 0.5}, kvstore=store, update_on_kvstore=False)
            trainer._prepare()
            for step in range(4):  # the last two send while backward runs
                with mx.autograd.record():
                    loss = net(mx.nd.array([[1, trainer._kvstore.rank]])).sum()
                loss.backward()
                trainer.allreduce_grads()
                weight, bias = net.weight.grad(), net.bias.grad()
                weight *= 2  # others that came in the same memory do not change
                trainer.update(2)
            kept = mx.nd.zeros((3, 2))
            trainer._kvstore.pull(trainer._param2idx[net.weight.name], kept)
            print(weight.asnumpy().tolist(), bias.asnumpy().tolist(), kept.asnumpy().tolist(),
                  abs(weight._data.data_ptr() - bias._data.data_ptr()) in (12, 24), weight._data.untyped_storage().nbytes(), weight._owns_memory())
        trained('dist_sync')
        trained(mx.kv.create('dist_sync'))
        """)
    sums = "[[4.0, 2.0], [4.0, 2.0], [4.0, 2.0]] [2.0, 2.0, 2.0]"
    for lines in found:
        assert lines == [f"{sums} [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]] True 24 True", f"{sums} [[2.0, 1.0], [2.0, 1.0], [2.0, 1.0]] False 24 True"]


def test_optimizer_states_are_saved_and_loaded(tmp_path):
    found = outputs(f"""
        kv.init('w', mx.nd.ones((2,)))
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.5))
        kv.push('w', mx.nd.ones((2,)))
        kv._barrier()
        if kv.rank == 0:
            kv.save_optimizer_states({str(tmp_path / 'states')!r}, dump_optimizer=True)
        kv._barrier()
        again = mx.kv.create('dist_sync')
        again.init('w', mx.nd.ones((2,)))
        again.set_optimizer(mx.optimizer.SGD())
        again.load_optimizer_states({str(tmp_path / 'states')!r})
        w = mx.nd.zeros((2,))
        for store in kv, again:
            store.pushpull('w', mx.nd.ones((2,)), out=w)
            print(w.asnumpy().tolist())
        """, kind="dist_sync")
    # The sum of 2 gradients: -1, then -1 and half of the first step.
    assert found == [["[-1.5, -1.5]", "[-0.5, -0.5]"]] * 2


def test_stores_need_a_launcher(monkeypatch):
    for name in ("RANK", "DMLC_NUM_WORKER", "DMLC_PS_ROOT_URI", "DMLC_ROLE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(mx.MXNetError, match="no launcher has started this one: run it as `python -m mxnet.tools.launch -n 2"):
        mx.kv.create("dist_sync")


LOOP = """
kv.init('w', mx.nd.ones((2,)))
print('ready', flush=True)
try:
    while True:
        kv.push('w', mx.nd.ones((2,)))
except mx.MXNetError as error:
    print(error)
"""


@pytest.mark.parametrize("victim, how, message", [
    (1, signal.SIGKILL, r"worker {rank} has lost worker 1, which died or ended early"),
    (0, signal.SIGTSTP, r"worker {rank} waits in vain \(worker 0: silent for \d+ s\)"),
])
def test_a_lost_worker_is_an_error_for_all_others(victim, how, message):
    with Job(LOOP, workers=3, kind="dist_sync", env={"PS_HEARTBEAT_TIMEOUT": "5", "PS_HEARTBEAT_INTERVAL": "0.25"}) as job:
        for worker in job.workers:
            assert worker.stdout.readline() == "ready\n"
        job.workers[victim].send_signal(how)
        for rank in {0, 1, 2} - {victim}:
            _, out, err = job.end([job.workers[rank]])[0]
            assert re.match("push of key 'w': " + message.format(rank=rank), out), (out, err)
            assert "start it again from its last checkpoint" in out
