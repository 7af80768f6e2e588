import os
import pathlib
import subprocess

import mxnet as mx
from forked import python
from job_checks import outputs

WORK = """
import mxnet.contrib.horovod as hvd
try:
    hvd.size()
except ValueError as error:
    print(error)
hvd.init()
hvd.init()
rank = hvd.rank()
print(rank, hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.is_initialized())
a = mx.nd.array([1, 2]) * (rank + 1)
print(hvd.allreduce(a).asnumpy(), hvd.allreduce(a, average=False, prescale_factor=2.0).asnumpy(), a.asnumpy()[0] == rank + 1)
print(hvd.allreduce_(a, name='a') is a, a.asnumpy(), [x.asnumpy().tolist() for x in hvd.grouped_allreduce([a, mx.nd.ones((1, 1))], False)])
print(hvd.allgather(mx.nd.ones((rank + 1, 2)) * rank).asnumpy().tolist(), hvd.broadcast(mx.nd.array([rank]), 1).asnumpy())

def net(seed):
    mx.random.seed(seed)
    net = mx.gluon.nn.Dense(1, in_units=2)
    net.initialize(mx.init.Normal())
    return net

x = mx.nd.array([[1, 2], [3, 5], [2, -1], [0, 4]])
mine = net(rank)
hvd.broadcast_parameters(mine.collect_params(), root_rank=0)
trainer = hvd.DistributedTrainer(mine.collect_params(), hvd.DistributedOptimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9)))
alone = net(0)
trainer_alone = mx.gluon.Trainer(alone.collect_params(), 'sgd', dict(learning_rate=0.1, momentum=0.9))
for step in range(5):
    for block, part, by in (mine, x[rank::2], trainer), (alone, x, trainer_alone):
        with mx.autograd.record():
            loss = (block(part) - 1) ** 2
        loss.backward()
        by.step(len(part))
print(bool(abs(mine.weight.data() - alone.weight.data()).max() < 1e-6))

mod = mx.mod.Module(mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=1, no_bias=True, name='f'),
                                                  mx.sym.var('softmax_label')))
mod.bind([('data', (2, 2))], [('softmax_label', (2, 1))])
mod.init_params(mx.init.One())
mod.init_optimizer(kvstore=None, optimizer=hvd.DistributedOptimizer(mx.optimizer.SGD(learning_rate=0.1, rescale_grad=0.5)))
mod.forward_backward(mx.io.DataBatch([x[rank::2]], [mx.nd.zeros((2, 1))]))
mod.update()
print(mod.get_params()[0]['f_weight'].asnumpy().astype('float64').round(4).tolist())
try:
    hvd.broadcast(a, 2)
except mx.MXNetError as error:
    print(error)
try:
    hvd.broadcast_parameters([a])
except ValueError as error:
    print(error)
hvd.shutdown()
print(hvd.is_initialized())
"""


def test_programs_of_two_workers():
    found = outputs(WORK)
    # The gradient of each row is (its sum) * row; 3 (1, 2), 8 (3, 5), 1 (2, -1), 4 (0, 4), the mean of which is (7.25, 15.25).
    for rank, lines in enumerate(found):
        assert lines == [
            "this process has not joined its job: call hvd.init() first", f"{rank} 2 {rank} 2 True", "[1.5 3. ] [ 6. 12.] True",
            "True [1.5 3. ] [[3.0, 6.0], [[2.0]]]", "[[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]] [1.]", "True", "[[0.275, -0.525]]",
            "broadcast: root_rank must be from 0 to 1, received 2", "broadcast_parameters: a dict of parameters expected, received <class 'list'>",
            "False"]


def test_a_job_of_one():
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DMLC_", "RANK", "WORLD_SIZE"))}
    done = subprocess.run([*python(), "-c", """
import mxnet as mx, mxnet.contrib.horovod as hvd
hvd.init()
print(hvd.rank(), hvd.size(), hvd.allreduce(mx.nd.array([1, 2])).asnumpy(), mx.kv.create('horovod').num_workers)
for call in (lambda: hvd.allreduce(mx.nd.ones((2, 2)).tostype('row_sparse')), lambda: hvd.allreduce(1.0), lambda: mx.kv.create('dist_sync')):
    try:
        call()
    except mx.MXNetError as error:
        print(error)
"""], env={**env, "PYTHONPATH": str(pathlib.Path(mx.__file__).parent.parent)}, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["0 1 [1. 2.] 1", "allreduce: dense NDArrays expected, received a row_sparse one",
                         "allreduce: dense NDArrays expected, received a float"]
    assert "no launcher has started this one" in lines[3]
