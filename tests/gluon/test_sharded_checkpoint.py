"""Networks with split layers on 1, 2 and 4 ranks: weights are those of the whole network, and checkpoints go from one number of ranks to another."""
import json
import os
import textwrap

import numpy as np
import pytest

import mxnet as mx
from job_checks import outputs
from mxnet.optimizer import pickles
from sharded_checks import PROGRAM

# Batches of 8 samples, of which the ranks have different numbers.
_JOB = PROGRAM + """
    rank, count = kv.rank, kv.num_workers
    limits = {1: [0, 8], 2: [0, 5, 8], 4: [0, 3, 4, 6, 8]}[count]
    own, folder = slice(limits[rank], limits[rank + 1]), os.environ['FOLDER']
    net = build(True)
    trainer = trainer_of(net)
"""

_SAVE = _JOB + """
    last = train(net, trainer, range(3), True, own)
    expected, losses = reference(3)
    print(far(net, expected) < 1e-6, abs(last - losses[own]).max() < 1e-5, [p.shape[0] for p in net[2].weight.list_data()])
    gluon.save_shards(folder, net, trainer)
    net.save_parameters(f'{folder}/whole.{rank}')
    trainer.save_states(f'{folder}/states.{rank}')
"""

_LOAD = _JOB + """
    expected, losses = reference(5)
    for whole in True, False:
        net = build(True)
        trainer = trainer_of(net)
        if whole:
            net.load_parameters(f'{folder}/whole.0')
            trainer.load_states(f'{folder}/states.0')
        else:
            gluon.load_shards(folder, net, trainer)
        last = train(net, trainer, range(3, 5), True, own)
        print(far(net, expected) < 1e-6, abs(last - losses[own]).max() < 1e-5)
    logits = net(nd.array(X[5, own]).tostype('csr'))
    plain = build(False)
    for p, value in zip(plain._collect_params_with_prefix().values(), values(net, True)):
        p.set_data(nd.array(value.T if p.shape == (6, 11) else value))
    out = plain(nd.array(X[5, own])).asnumpy()
    print(np.allclose(logits.gather().asnumpy(), out, atol=1e-6), (logits.argmax().asnumpy() == out.argmax(1)).all(),
          (logits.topk(6)[1].asnumpy() == (-out).argsort(1)[:, :6]).all())
"""


def test_jobs_of_two_and_four_ranks(tmp_path):
    environment = {"FOLDER": str(tmp_path)}
    assert outputs(_SAVE, workers=2, kind="dist_sync", env=environment) == [["True True [4]"], ["True True [5]"]]
    assert sorted(name[23:] for name in os.listdir(tmp_path) if name.startswith("shard-")) == [
        "00000-of-00002.params", "00000-of-00002.states", "00001-of-00002.params", "00001-of-00002.states"]
    lines = ["True True", "True True", "True True True"]
    assert outputs(_LOAD, workers=4, kind="dist_sync", env=environment) == [lines] * 4
    with open(tmp_path / "shards.json") as file:
        assert json.load(file)["ranks"] == 2


def _net():
    net = mx.gluon.nn.ShardedDense(4, in_units=2)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    return net


def test_a_checkpoint_without_states_and_one_of_another_network(tmp_path):
    net = _net()
    mx.gluon.save_shards(tmp_path, net)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    with pytest.raises(mx.gluon.utils.UsageError, match="has no states for the trainer; it was saved without one"):
        mx.gluon.load_shards(tmp_path, net, trainer)
    other = mx.gluon.nn.ShardedDense(5, in_units=2)
    other.initialize()
    with pytest.raises(mx.MXNetError, match=r"rows of shape \(5, 2\) expected for 'weight', the checkpoint has \(4, 2\); build"):
        mx.gluon.load_shards(tmp_path, other)
    with pytest.raises(mx.gluon.DeferredInitializationError):
        other = mx.gluon.nn.ShardedDense(4)
        other.initialize()
        mx.gluon.load_shards(tmp_path, other)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"checkpoint": "../../../../etc/", "ranks": 1, "trainer": false}',
                                     b'{"checkpoint": "0123456789abcdef", "ranks": 1000000000, "trainer": false}', b"[" * 100000,
                                     b'{"checkpoint": "0123456789abcdef", "ranks": 1, "trainer": false, "divided": {"params": ["a"], "states": []}}',
                                     b'{"checkpoint": "0123456789abcdef", "ranks": 1, "trainer": false, "divided": {"params": {}, "states": ["a"]}}',
                                     b'{"checkpoint": "0123456789abcdef", "ranks": 2, "trainer": true, "divided": {"params": {"a":0}, "states":[]}}'])
def test_damaged_indices(tmp_path, content):
    (tmp_path / "shards.json").write_bytes(content)
    with pytest.raises(mx.MXNetError, match="is no index of a checkpoint"):
        mx.gluon.load_shards(tmp_path, _net())


def test_a_save_replaces_the_one_before(tmp_path):
    net = _net()
    mx.gluon.save_shards(tmp_path, net)
    first = set(os.listdir(tmp_path))
    net.weight.set_data(mx.nd.array([[1, 2], [3, 4], [5, 6], [7, 8]]))
    mx.gluon.save_shards(tmp_path, net)
    assert set(os.listdir(tmp_path)) & first == {"shards.json"}
    other = _net()
    mx.gluon.load_shards(tmp_path, other)
    assert [part.asnumpy().tolist() for part in other.weight.list_data()] == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]


# Weights that 1, 2 and 3 ranks divide, that 3 ranks do not (2 rows), and that 2 do not either (1 row); layers that are always split.
_DIVIDED = """
    from mxnet import gluon, nd
    from mxnet.gluon.sharded_parameter import gathered_states
    from mxnet.optimizer import pickles

    def build(count, seed):
        mx.random.seed(seed)
        net = gluon.nn.Sequential(prefix='net_')
        with net.name_scope():
            net.add(gluon.nn.Dense(7, in_units=4, use_bias=False), gluon.nn.Dense(2, in_units=7), gluon.nn.Dense(1, in_units=2),
                    gluon.nn.ShardedEmbedding(5, 3, sparse_grad=False), gluon.nn.ShardedDense(9, in_units=1))
        net.initialize(mx.init.Normal(1))
        return net, gluon.Trainer(net.collect_params(), 'adam', kvstore='dist_sync' if count > 1 else None, shard='full')

    def content(net, trainer):
        arrays = [p._reduce() for p in net._collect_params_with_prefix().values()]
        states, optimizer = pickles.loads(gathered_states(trainer._updaters, trainer._params), 'states')
        return [a.asnumpy() for a in arrays + [a for i in sorted(states) for a in states[i]]], optimizer.num_update

    def save(folder, count):
        net, trainer = build(count, count)
        for _ in range(2):
            with mx.autograd.record():
                weights = [p.data() for p in trainer._params]
                total = sum((weight * nd.random.normal(shape=weight.shape)).sum() for weight in weights)
            total.backward()
            trainer.step(1)
        gluon.save_shards(f'{folder}/{count}', net, trainer)
        arrays, updates = content(net, trainer)
        np.savez(f'{folder}/whole{count}.npz', *arrays, updates)

    def load(folder, count, writers):
        net, trainer = build(count, 9)
        gluon.load_shards(f'{folder}/{writers}', net, trainer)
        arrays, updates = content(net, trainer)
        expected = list(np.load(f'{folder}/whole{writers}.npz').values())
        return len(expected) == len(arrays) + 1 == 25 and updates == expected.pop() and all((a == b).all() for a, b in zip(arrays, expected))
"""
_DIVIDED_JOB = _DIVIDED + """
    if WRITE:
        save(os.environ['FOLDER'], kv.num_workers)
    for writers in READ:
        print(load(os.environ['FOLDER'], kv.num_workers, writers))
"""


def test_weights_and_states_that_other_numbers_of_ranks_divide(tmp_path):
    here = {"mx": mx, "np": np}
    exec(textwrap.dedent(_DIVIDED), here)

    def job(workers, write, *read):
        program = _DIVIDED_JOB.replace("WRITE", str(write)).replace("READ", str(read))
        assert outputs(program, workers=workers, kind="dist_sync", env={"FOLDER": str(tmp_path)}) == [["True"] * len(read)] * workers

    here["save"](str(tmp_path), 1)
    job(2, True, 1, 2)
    job(3, True, 1, 2, 3)
    job(2, False, 3)
    half = mx.gluon.nn.Sequential()  # its first weight has as many rows as the first of two ranks
    half.add(mx.gluon.nn.Dense(3, in_units=4, use_bias=False), mx.gluon.nn.Dense(2, in_units=7), mx.gluon.nn.Dense(1, in_units=2),
             mx.gluon.nn.ShardedEmbedding(5, 3), mx.gluon.nn.ShardedDense(9, in_units=1))
    half.initialize()
    with pytest.raises(mx.gluon.utils.UsageError, match=r"_weight' from saved params: shape incompatible expected \(3, 4\) vs saved \(7, 4\)"):
        mx.gluon.load_shards(tmp_path / "2", half)
    for writers in 1, 2, 3:
        assert here["load"](str(tmp_path), 1, writers)
        index = json.loads((tmp_path / str(writers) / "shards.json").read_text())  # as it was before it told which weights are divided
        (tmp_path / str(writers) / "shards.json").write_text(json.dumps({name: index[name] for name in ("checkpoint", "ranks", "trainer")}))
        assert here["load"](str(tmp_path), 1, writers)


def test_names_that_the_checkpoint_or_the_network_lacks(tmp_path):
    one, other = mx.gluon.nn.ShardedDense(4, in_units=2), mx.gluon.nn.ShardedDense(4, in_units=2, use_bias=False)
    one.initialize(mx.init.One())
    other.initialize(mx.init.Zero())
    extra, missing = "has 'bias', the network has no such Parameter, only 'weight'", "lacks Parameter 'bias'"
    for saved, loading, message in (one, other, extra), (other, one, missing):
        mx.gluon.save_shards(tmp_path, saved)
        before = loading.weight.data().asnumpy()
        with pytest.raises(mx.gluon.utils.UsageError, match=message):
            mx.gluon.load_shards(tmp_path, loading)
        assert (loading.weight.data().asnumpy() == before).all()


def test_states_with_a_number_for_each_row(tmp_path):
    """GroupAdaGrad has them; each context has those of its rows."""
    def build():
        table = mx.gluon.nn.ShardedEmbedding(5, 3)
        table.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
        return table, mx.gluon.Trainer(table.collect_params(), "groupadagrad", {"learning_rate": 1})

    table, trainer = build()
    with mx.autograd.record():
        squares = [(rows * rows + rows).sum() for rows in table.weight.list_data()]
    mx.autograd.backward(squares)
    trainer.step(1)
    mx.gluon.save_shards(tmp_path / "shards", table, trainer)

    def states(of):
        of.save_states(str(tmp_path / "states"))
        return pickles.loads((tmp_path / "states").read_bytes(), "states")[0][0].asnumpy()

    expected = states(trainer)
    assert expected.shape == (5, 1) and expected.all()
    _, resumed = build()
    resumed.load_states(str(tmp_path / "states"))
    assert (states(resumed) == expected).all()
    other, resumed = build()
    mx.gluon.load_shards(tmp_path / "shards", other, resumed)
    assert (states(resumed) == expected).all()


def _split_in_two(tmp_path, change):
    """Save a layer with momentum as one rank, rewrite its files as those of two by `change`, and return a layer and a trainer to load them."""
    layer = mx.gluon.nn.ShardedDense(4, in_units=2, use_bias=False)
    layer.initialize()
    trainer = mx.gluon.Trainer(layer.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    mx.gluon.save_shards(tmp_path, layer, trainer)
    index = json.loads((tmp_path / "shards.json").read_text())
    tag, optimizer = index["checkpoint"], mx.optimizer.SGD(momentum=0.9)
    rows = {i: mx.nd.array([[i, i], [i, i]]) for i in (1, 2)}
    for rank, (i, state) in enumerate(zip(rows, change(rows))):
        mx.nd.save(str(tmp_path / f"shard-{tag}-{rank:05d}-of-00002.params"), {"weight": rows[i]})
        (tmp_path / f"shard-{tag}-{rank:05d}-of-00002.states").write_bytes(pickles.dumps((state, optimizer)))
    (tmp_path / "shards.json").write_text(json.dumps({**index, "ranks": 2, "divided": {"params": {"weight": 4}, "states": [0]}}))
    return layer, trainer


def test_files_whose_states_do_not_fit_one_another(tmp_path):
    layer, trainer = _split_in_two(tmp_path, lambda rows: ({0: rows[1]}, {0: rows[2]}))
    mx.gluon.load_shards(tmp_path, layer, trainer)
    assert trainer._updaters[0].states[0].asnumpy().tolist() == layer.weight.data().asnumpy().tolist() == [[1, 1], [1, 1], [2, 2], [2, 2]]
    layer, trainer = _split_in_two(tmp_path, lambda rows: ({}, {}))
    mx.gluon.load_shards(tmp_path, layer, trainer)
    assert 0 not in trainer._updaters[0].states
    for change, text in [(lambda rows: ({0: rows[1]}, {}), "some files of the checkpoint lack the state of Parameter '.*weight': it is damaged"),
                         (lambda rows: ({0: rows[1]}, {0: mx.nd.ones((3, 2))}), "the checkpoint have states of different shapes: it is damaged"),
                         (lambda rows: ({0: rows[1]}, {0: mx.nd.ones((2, 3))}), "the checkpoint have states of different shapes: it is damaged")]:
        layer, trainer = _split_in_two(tmp_path, change)
        with pytest.raises(mx.MXNetError, match=text):
            mx.gluon.load_shards(tmp_path, layer, trainer)


def test_an_optimizer_that_is_refused_does_not_come_with_a_checkpoint(tmp_path):
    layers = [mx.gluon.nn.ShardedDense(4, in_units=2) for _ in range(2)]
    for layer, contexts in zip(layers, ([mx.cpu()], [mx.cpu(0), mx.cpu(1)])):
        layer.initialize(ctx=contexts)
    saved = mx.gluon.Trainer(layers[0].collect_params(), "lamb")
    mx.gluon.save_shards(tmp_path, layers[0], saved)
    saved.save_states(str(tmp_path / "states"))
    trainer = mx.gluon.Trainer(layers[1].collect_params(), "sgd", kvstore=None)
    for load in (lambda: mx.gluon.load_shards(tmp_path, layers[1], trainer), lambda: trainer.load_states(str(tmp_path / "states"))):
        with pytest.raises(mx.MXNetError, match="divided by rows, and LAMB needs the norms of whole weights"):
            load()
        assert isinstance(trainer._optimizer, mx.optimizer.SGD) and not trainer._updaters[0].states


def test_one_rank_alone_that_saves_ends_in_errors_on_all():
    found = outputs("""
        layer, loss = mx.gluon.nn.ShardedDense(4, in_units=2, prefix='head_'), mx.gluon.loss.ShardedSoftmaxCELoss()
        layer.initialize()
        try:
            layer.save_parameters('never') if kv.rank == 0 else loss(layer(mx.nd.ones((2, 2))), mx.nd.array([0, 1]))
        except mx.MXNetError as error:
            print(str(error).split('. ')[0])
    """, kind="dist_sync")
    assert found == [["values of head_weight: worker 0 and worker 1 do not do the same: worker 1 calls the loss of head_weight"],
                     ["the loss of head_weight: worker 1 and worker 0 do not do the same: worker 0 calls values of head_weight"]]
