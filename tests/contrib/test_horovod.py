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


DIVIDED = """
import mxnet.contrib.horovod as hvd
from mxnet import nd, sym
hvd.init()
rank, size, batch, classes, width = hvd.rank(), hvd.size(), 4, 6, 5
numbers = np.random.RandomState(0)
X, Y = numbers.uniform(-1, 1, (4, size * batch, 3)).astype('float32'), numbers.randint(0, classes * size, (4, size * batch)).astype('float32')
start = {'body_weight': numbers.uniform(-1, 1, (width, 3)), 'body_bias': np.zeros(width), 'head': numbers.uniform(-1, 1, (classes * size, width)),
         'norm_gamma': np.ones(width), 'norm_beta': np.zeros(width)}
start = {name: nd.array(value) for name, value in start.items()}
moving = {'norm_moving_mean': nd.zeros(width), 'norm_moving_var': nd.ones(width)}
settings = dict(learning_rate=0.5, momentum=0.9, wd=0.01, rescale_grad=1 / (size * batch))

class Summing(mx.optimizer.Optimizer):  # has nothing but another optimizer, whose attributes are its own
    def __init__(self, optimizer):
        self._optimizer = optimizer
    def __getattr__(self, name):
        return getattr(self._optimizer, name)
    def create_state_multi_precision(self, index, weight):
        return self._optimizer.create_state_multi_precision(index, weight)
    def update_multi_precision(self, index, weight, grad, state):
        for i, g in zip(index, grad) if isinstance(index, (tuple, list)) else [(index, grad)]:
            hvd.allreduce_(g, average=False, name=str(i))
        self._optimizer.update_multi_precision(index, weight, grad, state)

def features():
    dense = sym.FullyConnected(sym.var('data'), num_hidden=width, name='body')
    return sym.Activation(sym.BatchNorm(dense, fix_gamma=False, name='norm'), act_type='tanh')  # over the batch of a rank, or of a context

def from_all(part):
    whole = nd.zeros((size * len(part), *part.shape[1:]))
    whole[rank * len(part):(rank + 1) * len(part)] = part
    return hvd.allreduce_(whole, average=False)

body = mx.mod.Module(sym.Group([features(), sym.BlockGrad(sym.var('softmax_label'))]))
body.bind([('data', (batch, 3))], [('softmax_label', (batch,))])
body.init_params(None, start, moving, allow_extra=True)
body.init_optimizer('local', Summing(mx.optimizer.SGD(**settings)))
rows = start['head'][rank * classes:(rank + 1) * classes].copy()
momentum = nd.zeros_like(rows)

label = sym.var('softmax_label')
cosines = sym.FullyConnected(sym.L2Normalization(features()), sym.L2Normalization(sym.var('head', shape=(classes * size, width))), no_bias=True,
                             num_hidden=classes * size)
net = sym.SoftmaxOutput((cosines - 0.3 * sym.one_hot(label, depth=classes * size)) * 4, label, name='softmax')
whole = mx.mod.Module(net, context=[mx.cpu(i) for i in range(size)])
whole.bind([('data', (size * batch, 3))], [('softmax_label', (size * batch,))])
whole.init_params(None, start, moving)
whole.init_optimizer('device', mx.optimizer.SGD(**settings))

far = []
for x, y in zip(X, Y):
    own = slice(rank * batch, (rank + 1) * batch)
    body.forward(mx.io.DataBatch([nd.array(x[own])], [nd.array(y[own])]), is_train=True)
    found, labels = map(from_all, body.get_outputs())
    found.attach_grad()
    rows.attach_grad()
    with mx.autograd.record():
        hot = nd.one_hot(labels - rank * classes, depth=classes)
        logits = (nd.dot(nd.L2Normalization(found), nd.L2Normalization(rows), transpose_b=True) - 0.3 * hot) * 4
    largest = nd.zeros((len(labels), size))
    largest[:, rank] = logits.max(axis=1)
    shares = nd.exp(logits - hvd.allreduce_(largest, average=False).max(axis=1, keepdims=True))
    shares = shares / hvd.allreduce(shares.sum(axis=1, keepdims=True), average=False)
    loss = -nd.log(hvd.allreduce((shares * hot).sum(axis=1), average=False)).mean().asscalar()
    logits.backward(out_grad=shares - hot)
    nd.sgd_mom_update(rows, rows.grad, momentum, out=rows, lr=0.5, momentum=0.9, wd=0.01, rescale_grad=1 / (size * batch))
    body.backward([hvd.allreduce(found.grad, average=False)[own]])
    body.update()
    whole.forward_backward(mx.io.DataBatch([nd.array(x)], [nd.array(y)]))
    whole.update()
    far.append(abs(loss + np.log(whole.get_outputs()[0].asnumpy()[np.arange(len(y)), y.astype(int)]).mean()))
params = whole.get_params()[0]
far += [abs(value.asnumpy() - params[name].asnumpy()).max() for name, value in body.get_params()[0].items()]
print(max(far) < 1e-5, abs(rows.asnumpy() - params['head'].asnumpy()[rank * classes:(rank + 1) * classes]).max() < 1e-5)
"""


def test_a_classifier_that_a_program_divides_itself():
    assert outputs(DIVIDED) == [["True True"]] * 2
