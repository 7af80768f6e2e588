"""Jobs whose workers are killed, and that go on with the step that was under way. Real processes, which a launcher starts again."""
import os
import pathlib
import signal
import subprocess

import numpy as np
import pytest

import mxnet as mx
from forked import python
from mxnet import gluon
from mxnet.gluon.rescue import Rescue

_PROGRAM = """
import os, signal, sys
import numpy as np
import mxnet as mx
folder, kills, out = sys.argv[1], eval(sys.argv[2]), sys.argv[3]
kv = mx.kv.create('dist_sync')
rank, workers, attempt = kv.rank, kv.num_workers, int(os.environ['TORCHELASTIC_RUN_ID'].split('.')[1])
numbers = np.random.RandomState(5)
x, y = numbers.rand(48, 6).astype('float32')[rank::workers], numbers.randint(0, 3, 48).astype('float32')[rank::workers]
np.random.seed(rank)
mx.random.seed(11 + rank)
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Dense(8), mx.gluon.nn.Dropout(0.5), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(3))
net.initialize(mx.init.Xavier())
net.hybridize()
trainer = mx.gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': 0.05}, kvstore=kv)
loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(x, y), 4, shuffle=True)
progress = mx.gluon.Progress(folder, net, trainer, data, rescue=True)
die = kills[attempt] if attempt < len(kills) else (None,)
steps = 0
sums = trainer._allreduce_grads
def exchanged():
    if die[0] == rank and steps == die[1] and die[2] == 'before':
        os.kill(os.getpid(), signal.SIGKILL)
    sums()
    if die[0] == rank and steps == die[1] and die[2] == 'after':
        os.kill(os.getpid(), signal.SIGKILL)
trainer._allreduce_grads = exchanged
for _ in progress.epochs(2):
    for a, b in progress.batches():
        with mx.autograd.record():
            lost = loss(net(a), b)
        lost.backward()
        trainer.step(4 * workers)
        steps += 1
        with open(f'{out}{rank}.steps', 'a') as file:
            print(attempt, progress.epoch, progress.batch, file=file)
np.savez(f'{out}{rank}.npz', **{str(i): p.data().asnumpy() for i, p in enumerate(net.collect_params().values())})
kv._barrier()
"""


def _run(tmp_path, name, kills):
    (tmp_path / "program.py").write_text(_PROGRAM)
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(mx.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
    launcher = ["-m", "mxnet.tools.launch", "-n", "3", "-s", "0", "--launcher", "local", "--max-restarts", str(len(kills))]
    program = ["--preload", "", *python(), "program.py", name, repr(kills), name]  # forks already
    done = subprocess.run([*python(), *launcher, *program], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    steps = [(tmp_path / f"{name}{rank}.steps").read_text().splitlines() for rank in range(3)]
    return [dict(np.load(tmp_path / f"{name}{rank}.npz")) for rank in range(3)], steps


def test_killed_workers_cost_no_more_than_the_step(tmp_path):
    whole, _ = _run(tmp_path, "whole", [])
    # One dies in a step, before it has sent anything; the other at the end of an epoch, after it has.
    again, steps = _run(tmp_path, "again", [(1, 2, "before"), (0, 1, "after")])
    every = {f"{epoch} {batch}" for epoch in range(2) for batch in range(4)}
    for rank in range(3):
        assert all((whole[rank][name] == again[rank][name]).all() for name in whole[rank]), rank
        done = [line.split(" ", 1)[1] for line in steps[rank]]
        assert len(done) == len(set(done)) and len(every - set(done)) <= (rank == 0)  # none twice; rank 0 died in one that the others completed
    assert not [name for name in os.listdir(tmp_path / "again") if name.startswith("rescue-")]


def _rescue(folder, rank=0):
    array = mx.nd.array([1.5, 2.5])
    return Rescue(str(folder), rank, 2, lambda: {"mean/0": array}), array


@pytest.fixture
def default_signal():
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def _alone(doing, *numbers):
    return [list(numbers)]


@pytest.mark.usefixtures("default_signal")
def test_notes_and_weights(tmp_path):
    rescue, array = _rescue(tmp_path)
    data = mx.io.NDArrayIter(mx.nd.arange(12), batch_size=2)
    for steps in range(1, 6):
        data.next()
        array[:] = steps
        rescue.note(steps, 0, steps, data)
    assert sorted(os.listdir(tmp_path)) == ["note-0of2-0", "note-0of2-1", "note-0of2-2"]
    assert rescue.newest(0, _alone) is None
    rescue.save(4, lambda path: pathlib.Path(path, "weights").write_text("w"))
    rescue.save(2, lambda path: pathlib.Path(path, "weights").write_text("old"))
    assert rescue.newest(4, _alone) is None
    path, note = rescue.newest(3, _alone)
    assert pathlib.Path(path, "weights").read_text() == "w" and (note.steps, note.epoch, note.batch) == (4, 0, 4)
    other = mx.io.NDArrayIter(mx.nd.arange(12), batch_size=2)
    rescue.restore(note, other)
    assert array.asnumpy().tolist() == [4, 4] and other.next().data[0].asnumpy().tolist() == [8, 9]
    os.remove(tmp_path / "note-0of2-1")  # a worker without its note: nobody takes these weights
    assert rescue.newest(3, _alone) is None
    rescue.remove()
    assert sorted(os.listdir(tmp_path)) == ["note-0of2-0", "note-0of2-2"]


def _training(folder):
    mx.random.seed(1)
    np.random.seed(1)
    net = gluon.nn.Sequential()
    net.add(gluon.nn.Dense(3, in_units=2), gluon.nn.Dropout(0.5), gluon.nn.BatchNorm(in_channels=3))
    net.initialize()
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(mx.nd.arange(16).reshape((8, 2)), mx.nd.ones((8, 3))), 2, shuffle=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9})
    progress = gluon.Progress(folder, net, trainer, data, rescue=True)
    for _ in progress.epochs(2):
        for x, y in progress.batches():
            with mx.autograd.record():
                loss = ((net(x) - y) ** 2).sum()
            loss.backward()
            trainer.step(2)
            yield progress.epoch, progress.batch
    yield [p.data().asnumpy() for p in net.collect_params().values()]


@pytest.mark.usefixtures("default_signal")
def test_a_process_that_is_asked_to_end_saves_before_its_next_step(tmp_path):
    *_, whole = _training(tmp_path / "whole")
    training = _training(tmp_path / "parts")
    assert [next(training) for _ in range(2)] == [(0, 0), (0, 1)]
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SystemExit, match="143"):
        next(training)
    *steps, again = _training(tmp_path / "parts")
    assert steps == [(0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]
    assert all((a == b).all() for a, b in zip(whole, again))
    assert not [name for name in os.listdir(tmp_path / "parts") if name.startswith("rescue-")]


@pytest.mark.usefixtures("default_signal")
def test_damaged_notes(tmp_path):
    rescue, _ = _rescue(tmp_path)
    rescue.note(1, 0, 1, mx.io.NDArrayIter(mx.nd.arange(4), batch_size=2))
    rescue.save(1, lambda path: None)
    content = (tmp_path / "note-0of2-1").read_bytes()
    (tmp_path / "note-0of2-1").write_bytes(content[:100])
    with pytest.raises(mx.MXNetError, match="note-0of2-1 is damaged"):
        rescue.newest(0, _alone)
    (tmp_path / "note-0of2-1").write_bytes(content.replace(b'"steps": "1"', b'"steps": "x"'))
    with pytest.raises(mx.MXNetError, match="note-0of2-1 is damaged"):
        rescue.newest(0, _alone)


def test_trainers_that_do_not_go_with_it(tmp_path):
    net = gluon.nn.ShardedDense(4, in_units=2)
    net.initialize()
    loader = gluon.data.DataLoader(list(range(4)), batch_size=2)
    with pytest.raises(gluon.utils.UsageError, match="rescue is for data parallelism, and a lost worker has rows of split weights"):
        gluon.Progress(tmp_path, net, gluon.Trainer(net.collect_params(), "sgd"), loader, rescue=True)
    net = gluon.nn.Dense(4, in_units=2)
    net.initialize()
    with pytest.raises(gluon.utils.UsageError, match="rescue needs weights that only the Trainer updates, after all sums"):
        gluon.Progress(tmp_path, net, gluon.Trainer(net.collect_params(), "sgd", update_on_kvstore=True), loader, rescue=True)
