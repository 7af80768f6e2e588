"""Stores on servers, in real processes."""
import json
import signal
import time

import pytest

import mxnet as mx
from job_checks import Job, outputs

WORK = """
import json
kv.init(['w', 'r'], [mx.nd.ones((2, 3)) * (kv.rank + 1), mx.nd.ones((4, 2)).tostype('row_sparse')])
kv.init('big', mx.nd.arange(1000).reshape((500, 2)))
kv.init('flat', mx.nd.arange(1001).reshape((1, 1001)))
w, b, f = mx.nd.zeros((2, 3)), mx.nd.zeros((500, 2)), mx.nd.zeros((1, 1001))
kv.push('w', w)
try:
    kv.pull('w', out=w)
except mx.MXNetError as error:
    print(error)
for call in (lambda: kv.push('x', w), lambda: kv.push('w', b), lambda: kv.init('w', w), lambda: kv.pull('r', out=w, ignore_sparse=False),
             lambda: kv._set_updater(print), lambda: kv.row_sparse_pull('r', out=mx.nd.sparse.zeros('row_sparse', (4, 2)), row_ids=mx.nd.array([4]))):
    try:
        call()
    except mx.MXNetError as error:
        print(error)
kv._barrier()  # the other's push was refused, too
kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, momentum=0.5, param_idx2name={}))
kv._barrier()
kv.push('w', [mx.nd.ones((2, 3)) * (kv.rank + 1), mx.nd.ones((2, 3), mx.cpu(1))])
kv.pushpull(['big', 'flat'], [mx.nd.ones((500, 2)), mx.nd.ones((1, 1001))], out=[b, f])
kv._barrier()
kv.pull(['w', 'big', 'flat'], out=[w, b, f])
kv._barrier()
print(np.unique(w.asnumpy()).tolist() in ([-5.0], [-5.5]), b.asnumpy()[[0, 499]].tolist(), f.asnumpy()[0, [0, 1000]].tolist())
v = mx.nd.zeros((4, 2))
v[kv.rank] = 1
kv.push('r', v.tostype('row_sparse'))
kv._barrier()
o = mx.nd.sparse.zeros('row_sparse', (4, 2))
kv.row_sparse_pull('r', out=o, row_ids=mx.nd.array([3, 0, 0]))
print(o.asnumpy().tolist(), kv.get_num_dead_node(6), kv.rank, kv.num_workers, kv.type)

if kv.rank == 0:
    kv.save_optimizer_states(os.environ['STATES'], dump_optimizer=True)
    states, sgd = mx.optimizer.pickles.loads(open(os.environ['STATES'], 'rb').read())
    print(type(sgd).__name__, {k: (s.shape, s.asnumpy().ravel()[[0, -1]].tolist()) for k, s in sorted(states.items()) if k != 'w'})
    for s in states.values():
        s[:] = 8
    open(os.environ['STATES'], 'wb').write(mx.optimizer.pickles.dumps((states, sgd)))
    kv.load_optimizer_states(os.environ['STATES'])
    kv.pushpull('big', mx.nd.zeros((500, 2)), out=b)
    print(b.asnumpy()[[0, 499]].tolist())  # half of 8 further
kv._barrier()

kv.set_gradient_compression({'type': '2bit', 'threshold': 0.5})
zip_ = mx.kv.create('dist_async')  # knows nothing of the other
zip_.set_gradient_compression({'type': '2bit', 'threshold': 0.5})
zip_.init('w', mx.nd.zeros((2, 3)))
zip_.set_optimizer(mx.optimizer.create('test'))
zip_.push('w', mx.nd.ones((2, 3)) * 0.4)
zip_.push('w', mx.nd.ones((2, 3)) * 0.2)
zip_._barrier()
zip_.pull('w', out=w)
if kv.rank == 0:
    mx.profiler.set_config(profile_all=True, filename=os.environ['STATES'] + '.json', profile_process='server')
    mx.profiler.set_state('run', profile_process='server')
    kv.pushpull('big', mx.nd.zeros((500, 2)), out=b)
    mx.profiler.dump(profile_process='server')
    print(sorted(f for f in os.listdir(os.path.dirname(os.environ['STATES'])) if f.endswith('.json')))
    try:
        kv._send_command_to_servers(7, '')
    except mx.MXNetError as error:
        print(error)
print(np.unique(w.asnumpy()).tolist())
"""


def test_servers_keep_and_update(tmp_path):
    found = outputs(WORK, kind="dist_async", servers=2, env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000", "STATES": str(tmp_path / "states")})
    for rank, lines in enumerate(found):
        assert lines[0].startswith("server ")
        assert lines[0].endswith(": push of key 'w': an asynchronous kvstore can't wait for all values to add up, it needs an optimizer; call "
                                 "set_optimizer first")
        assert lines[1:7] == [
            "key 'x' has not been inited: call init or broadcast with it first", "push: key 'w' was inited with shape (2, 3), received (500, 2)",
            "duplicate init of key 'w': init or broadcast was called with this key before",
            "a distributed kvstore does not pull row_sparse arrays as a whole (ignore_sparse=False); use row_sparse_pull",
            "functions can't be sent to the servers, which update the values: use set_optimizer",
            "row_sparse_pull: row_ids of key 'r' must be from 0 to 3, received 4 to 4"]
        # Two gradients, one after the other, with momentum: -1 and then -1.5.
        assert lines[7:9] == ["True [[-2.5, -1.5], [995.5, 996.5]] [-2.5, 997.5]",
                              f"[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0]] 0 {rank} 2 dist_async"]
        assert lines[-1] == "[1.0]"
    assert found[0][11:13] == ["['rank0_states.json', 'rank1_states.json']", "server 0: server 0 knows no command 7"]
    assert found[0][9:11] == ["SGD {'big': ((500, 2), [-1.5, -1.5]), 'flat': ((1, 1001), [-1.5, -1.5]), 'r': ((4, 2), [-1.0, 0.0])}",
                              "[[1.5, 2.5], [999.5, 1000.5]]"]


TRAINER = """
x = mx.gluon.Parameter('x', shape=(4,), lr_mult=0.5)
x.initialize(init='ones')
trainer = mx.gluon.Trainer([x], 'sgd', dict(learning_rate=1.0), kvstore=kv)
with mx.autograd.record():
    y = x.data() * (kv.rank + 1)
y.backward()
trainer.step(1)
kv._barrier()
kv.pull(0, out=x.data())
print(x.data().asnumpy().tolist())
print('ready', flush=True)
if kv.rank == 1:
    time.sleep(100)
sys.stdin.readline()
for i in range(3):
    kv.pushpull(0, mx.nd.zeros((4,)), out=x.data())
print(kv.get_num_dead_node(4, 1), flush=True)
sys.stdin.readline()
try:
    while True:
        kv.pull(0, out=x.data())
except mx.MXNetError as error:
    print(error)
"""


def test_others_go_on_without_a_worker_but_not_without_a_server():
    with Job(TRAINER, kind="dist_async", servers=1, env={"PS_HEARTBEAT_INTERVAL": "0.25", "PS_HEARTBEAT_TIMEOUT": "5"}) as job:
        for worker in job.workers:
            assert [worker.stdout.readline() for _ in range(2)] == ["[-0.5, -0.5, -0.5, -0.5]\n", "ready\n"]
        job.workers[1].kill()
        job.workers[1].wait()
        while json.loads(job.store.get("remex//0/alive"))[1]["worker 1"] < 1:  # second of silence
            time.sleep(0.05)
        job.workers[0].stdin.write("\n")
        job.workers[0].stdin.flush()
        assert job.workers[0].stdout.readline() == "1\n"
        job.servers[0].send_signal(signal.SIGTSTP)
        job.workers[0].stdin.write("\n")
        job.workers[0].stdin.flush()
        status, out, err = job.end(job.workers[:1])[0]
        assert out.startswith("worker 0 waits for server 0 in vain (server 0: silent for "), (out, err)


def test_there_must_be_servers():
    (line,), = outputs("""
        try:
            mx.kv.create('dist_async')
        except mx.MXNetError as error:
            print(error)
        """, workers=1)
    assert line == "a kvstore of type 'dist_async' keeps its values on servers, and the job has none: launch it with -s 1 or more"


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_what_parameters_say_is_sent_along(optimizer):
    from mxnet.kvstore.dist_async import _for_servers
    parameter = mx.gluon.Parameter("x", shape=(1,), lr_mult=0.5, wd_mult=0)
    made = mx.optimizer.create(optimizer, param_dict={0: parameter, 1: mx.gluon.Parameter("y", shape=(1,))})
    sent = mx.optimizer.pickles.loads(mx.optimizer.pickles.dumps(_for_servers(made)))
    assert (sent.lr_mult, sent.wd_mult, made.lr_mult) == ({0: 0.5}, {0: 0}, {})
