"""Trainings that are killed and go on. Real processes, which a launcher starts again."""
import os
import pathlib
import subprocess

import numpy as np
import pytest

import mxnet as mx
from forked import python
from mxnet import MXNetError
from mxnet.resumption import Saves

PROGRAM = """
import os, signal, sys
import numpy as np
import mxnet as mx
kind, folder, epochs, die, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
kv = mx.kv.create('dist_sync') if 'RANK' in os.environ else None
rank, workers = (kv.rank, kv.num_workers) if kv else (0, 1)
first = os.environ.get('TORCHELASTIC_RUN_ID', '.0').endswith('.0')
numbers = np.random.RandomState(5)
x, y = numbers.rand(48, 6).astype('float32')[rank::workers], numbers.randint(0, 3, 48).astype('float32')[rank::workers]
np.random.seed(rank)
mx.random.seed(11 + rank)
steps = 0
def stepped(*_):
    global steps
    steps += 1
    if first and rank == workers - 1 and steps == die:
        os.kill(os.getpid(), signal.SIGKILL)
adam = ('adam', {'learning_rate': 0.05, 'lr_scheduler': mx.lr_scheduler.FactorScheduler(5, 0.9)})
if kind == 'module':
    net = mx.sym.Dropout(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=8, name='a'), p=0.5)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.BatchNorm(net, name='n'), num_hidden=3, name='b'), name='softmax')
    module = mx.mod.Module(net)
    module.fit(mx.io.NDArrayIter(x, y, 4, shuffle=True), num_epoch=epochs, kvstore=kv or 'local', optimizer=adam[0], optimizer_params=adam[1],
               batch_end_callback=stepped, resume=folder, save_every=2)
    weights = {n: a.asnumpy() for part in module.get_params() for n, a in part.items()}
else:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(8), mx.gluon.nn.Dropout(0.5), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), *adam, kvstore=kv or 'device')
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    progress = mx.gluon.Progress(folder, net, trainer, mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(x, y), 4, shuffle=True), every=2)
    for _ in progress.epochs(epochs):
        for a, b in progress.batches():
            with mx.autograd.record():
                lost = loss(net(a), b)
            lost.backward()
            trainer.step(4 * workers)
            stepped()
    weights = {str(i): p.data().asnumpy() for i, p in enumerate(net.collect_params().values())}
np.savez(f'{out}{rank}.npz', steps=steps, **weights)
if kv:
    kv._barrier()
"""


def run(tmp_path, workers, kind, folder, epochs=3, die=0, restarts=0):
    (tmp_path / "program.py").write_text(PROGRAM)
    launcher = ["-m", "mxnet.tools.launch", "-n", str(workers), "-s", "0", "--launcher", "local", "--max-restarts", str(restarts), "--preload", "",
                *python()]
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(mx.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
    program = ["program.py", kind, folder, str(epochs), str(die), folder]
    done = subprocess.run([*python(), *(launcher if workers else []), *program], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200)
    assert (done.returncode == 0) == bool(restarts or not die), done.stderr
    return [dict(np.load(tmp_path / f"{folder}{i}.npz")) for i in range(max(workers, 1))] if not done.returncode else done


@pytest.mark.parametrize("kind", ["module", "gluon"])
def test_a_job_with_a_killed_worker_ends_with_the_weights_of_an_undisturbed_one(tmp_path, kind):
    whole = run(tmp_path, 2, kind, "whole")
    again = run(tmp_path, 2, kind, "again", die=9, restarts=1)
    assert [w["steps"] for w in whole] == [18, 18] and [a["steps"] for a in again] == [10, 10]
    for a, b in zip(whole, again):
        assert all((a[name] == b[name]).all() for name in a if name != "steps")


@pytest.mark.parametrize("kind", ["module", "gluon"])
def test_one_process(tmp_path, kind):
    whole = run(tmp_path, 0, kind, "whole")[0]
    assert run(tmp_path, 0, kind, "again", die=17).returncode == -9
    (tmp_path / "again" / "000000099-0of1.unfinished").mkdir()  # what a killed process may leave is no save
    again = run(tmp_path, 0, kind, "again")[0]
    assert (whole.pop("steps"), again.pop("steps")) == (36, 20)
    assert all((whole[name] == again[name]).all() for name in whole)


def test_a_job_goes_on_with_fewer_and_with_more_workers(tmp_path):
    run(tmp_path, 2, "gluon", "job", epochs=1)
    assert [w["steps"] for w in run(tmp_path, 1, "gluon", "job", epochs=2)] == [12]
    grown = run(tmp_path, 3, "gluon", "job", epochs=4)
    assert [w["steps"] for w in grown] == [8, 8, 8]
    for other in grown[1:]:  # each has its own moving averages
        assert all((grown[0][name] == other[name]).all() for name in ("0", "1", "2", "3", "6", "7"))


def test_what_is_wrong(tmp_path):
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), name="softmax")
    data = mx.io.NDArrayIter(mx.nd.ones((4, 3)), mx.nd.zeros(4), 2)
    with pytest.raises(MXNetError, match=r"fit: save_every=3 is a number of batches from 1 on, and needs resume="):
        mx.mod.Module(net).fit(data, num_epoch=1, save_every=3)
    folder = tmp_path / "saves"
    mx.mod.Module(net).fit(data, num_epoch=1, resume=folder)
    assert os.listdir(folder) == ["000000001-0of1"]
    (folder / "\u00b2-0of1").mkdir()  # a digit, but no number
    for text in ("[]", '{"epoch": 1e999, "batch": 0}', "[" * 100_000):
        (folder / "000000001-0of1" / "summary.json").write_text(text)
        with pytest.raises(MXNetError, match="000000001-0of1 is no complete save of a training: .*; remove it to begin anew"):
            mx.mod.Module(net).fit(data, num_epoch=2, resume=folder)

    class Uneven:
        type, rank, num_workers = "dist_async", 0, 2
    with pytest.raises(MXNetError, match="resume: the workers of a kvstore of type 'dist_async' are at different batches; use 'dist_sync'"):
        Saves(folder, Uneven())
