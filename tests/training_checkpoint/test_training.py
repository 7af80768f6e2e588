"""Trainings of five kinds, saved by two ranks, and resumed by two, three and one: the weights are those of one process that was not interrupted."""
import json
import os
import textwrap

from job_checks import outputs

_PROGRAM = """
    from mxnet import gluon, nd
    kv = mx.kv.create('dist_sync') if 'DMLC_ROLE' in os.environ else None
    rank, count = (kv.rank, kv.num_workers) if kv else (0, 1)
    numbers = np.random.RandomState(0)
    X = numbers.rand(6, 12, 60).astype('float32')
    Y = numbers.randint(0, 9, (6, 12)).astype('float32')
    own = slice(rank, None, count)

    def data(*shape):
        return nd.array(np.random.RandomState(len(shape) + shape[0]).uniform(-0.2, 0.2, shape))

    class Gluon:
        def __init__(self, kind):
            self.loss = gluon.loss.ShardedSoftmaxCELoss() if kind == 'split' else gluon.loss.SoftmaxCELoss()
            head = gluon.nn.ShardedDense(9, in_units=80) if kind == 'split' else gluon.nn.Dense(9, in_units=80)
            self.net = gluon.nn.Sequential()
            self.net.add(gluon.nn.Dense(80, in_units=60, activation='tanh'), head)
            self.net.initialize()
            self.net[0].weight.set_data(data(80, 60))
            head.weight.set_data(data(9, 80))
            store = mx.kv.create('dist_sync', shard=kind == 'sharded') if kv else None
            self.trainer = gluon.Trainer(self.net.collect_params(), 'adam', {'learning_rate': 0.01, 'lr_scheduler':
                mx.lr_scheduler.FactorScheduler(2, 0.5)}, kvstore=store, update_on_kvstore=False if kind == 'trainer' else None)

        def step(self, i):
            with mx.autograd.record():
                loss = self.loss(self.net(nd.array(X[i, own])), nd.array(Y[i, own]))
            loss.backward()
            self.trainer.step(12)

        def save(self, folder, **at):
            return self.trainer.save_training(folder, self.net, **at)

        def resume(self, folder):
            return self.trainer.resume_training(folder, self.net)

        def values(self):
            return [p._reduce().asnumpy() for p in self.net._collect_params_with_prefix().values()]

    class Module:
        def __init__(self, kind):
            net = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=80, name='a'), act_type='tanh')
            net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=9, name='b'), name='softmax')
            self.module = mx.mod.Module(net)
            size = len(Y[0, own])
            self.module.bind([('data', (size, 60))], [('softmax_label', (size,))])
            self.module.init_params(arg_params={'a_weight': data(80, 60), 'b_weight': data(9, 80), 'a_bias': nd.zeros(80), 'b_bias': nd.zeros(9)})
            self.module.init_optimizer(kvstore=mx.kv.create('dist_sync') if kv else 'local', optimizer='adam', optimizer_params={
                'learning_rate': 0.01, 'lr_scheduler': mx.lr_scheduler.FactorScheduler(2, 0.5)})

        def step(self, i):
            self.module.forward_backward(mx.io.DataBatch([nd.array(X[i, own])], [nd.array(Y[i, own])]))
            self.module.update()

        def save(self, folder, **at):
            return self.module.save_training(folder, **at)

        def resume(self, folder):
            return self.module.resume_training(folder)

        def values(self):
            found = self.module.get_params()[0]
            return [found[name].asnumpy() for name in ('a_weight', 'a_bias', 'b_weight', 'b_bias')]

    KINDS = 'store', 'trainer', 'sharded', 'split', 'module'

    def made(kind):
        mx.random.seed(5)
        return (Module if kind == 'module' else Gluon)(kind)

    def path(kind):
        return os.path.join(os.environ['FOLDER'], kind)

    def far(one, other):
        return max(float(abs(a - b).max()) for a, b in zip(one, other))
"""

_SAVE = _PROGRAM + """
    pending = []
    for kind in KINDS:
        training = made(kind)
        for i in range(3):
            training.step(i)
        pending.append(training.save(path(kind), epoch=2, batch=3))
        for i in range(3, 6):
            training.step(i)
        np.savez(path(kind) + f'.{rank}.npz', *training.values())
    for one in pending:
        one.wait()
    print([sorted(os.listdir(path(kind))) for kind in KINDS] == [['training-000000001']] * 5)
"""

_RESUME = _PROGRAM + """
    for kind in KINDS:
        training = made(kind)
        at = training.resume(path(kind))
        for i in range(3, 6):
            training.step(i)
        with np.load(path(kind) + '.0.npz') as saved:
            distance = far(training.values(), [saved[name] for name in saved.files])
        print(kind, *at, distance == 0 if at.exact else distance < 1e-6)
"""


def test_trainings_resumed_on_two_three_and_one_rank(tmp_path, monkeypatch, capsys):
    environment = {"FOLDER": str(tmp_path)}
    assert outputs(_SAVE, workers=2, env=environment) == [["True"]] * 2
    kinds = ["store", "trainer", "sharded", "split", "module"]
    assert outputs(_RESUME, workers=2, env=environment) == [[f"{kind} 2 3 True True" for kind in kinds]] * 2
    assert outputs(_RESUME, workers=3, env=environment) == [[f"{kind} 2 3 False True" for kind in kinds]] * 3
    monkeypatch.setenv("FOLDER", str(tmp_path))
    exec(textwrap.dedent("    import os\n    import numpy as np\n    import mxnet as mx\n" + _RESUME), {})  # one rank, in this process
    assert capsys.readouterr().out.splitlines() == [f"{kind} 2 3 False True" for kind in kinds]
    for kind, shares in ("store", True), ("sharded", True), ("split", False):
        sizes = [os.path.getsize(tmp_path / kind / "training-000000001" / f"rank-0000{rank}-of-00002.safetensors") for rank in range(2)]
        assert min(sizes) > 0.2 * sum(sizes) or not shares, (kind, sizes)
    with open(tmp_path / "split" / "training-000000001" / "index.json") as file:
        assert json.load(file)["ranks"] == 2
