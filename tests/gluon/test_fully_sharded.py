"""Fully sharded weights on 2 and 3 ranks beside data parallelism: weights, what each rank keeps, checkpoints."""
import pathlib

import numpy as np
import pytest

import mxnet as mx
from job_checks import outputs
from mxnet import gluon
from simulated_gpus import gpus

TESTS = pathlib.Path(__file__).parents[1]
_PROGRAM = """
    from mxnet import gluon, nd
    rank, count = kv.rank, kv.num_workers
    numbers = np.random.RandomState(0)
    X = numbers.rand(8, 12, 20).astype('float32')
    Y = numbers.randint(0, 7, (8, 12)).astype('float32')
    own = slice(rank, None, count)
    loss = gluon.loss.SoftmaxCELoss()

    def build(hybridize=False, deferred=False):
        mx.random.seed(3)
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Dense(31, in_units=0 if deferred else 20, activation='tanh'), gluon.nn.BatchNorm(),
                gluon.nn.Dense(30, in_units=0 if deferred else 31, activation='relu'), gluon.nn.Dense(7, in_units=0 if deferred else 30))
        net.initialize(mx.init.Xavier())
        if hybridize:
            for layer in net:
                layer.hybridize()
        return net

    def trainer_of(net, **options):
        return gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': 0.01, 'wd': 0.01}, kvstore='dist_sync', **options)

    def train(net, trainer, steps):
        for step in steps:
            with mx.autograd.record():
                out = loss(net(nd.array(X[step % 8, own])), nd.array(Y[step % 8, own]))
            out.backward()
            trainer.step(12)

    def values(net):
        return [p._reduce().asnumpy() for p in net.collect_params().values() if p.grad_req != 'null']

    def far(one, other):
        return max(float(abs(a - b).max()) for a, b in zip(one, other))
"""

_EQUAL = _PROGRAM + """
    whole = build()
    train(whole, trainer_of(whole), range(100))
    for hybridize in False, True:
        net = build(hybridize)
        trainer = trainer_of(net, shard='full')
        train(net, trainer, range(100))
        print(far(values(whole), values(net)) < 1e-5, [p.list_data()[0].shape for p in net.collect_params().values()][:1])
    own = [sum(s.size for part in (trainer._updaters[0].states[i],) for s in part) for i in trainer._updaters[0].states]
    print(sum(own) < 0.7 * 2 * sum(p.shape[0] * (p.shape[1] if len(p.shape) > 1 else 1) for p in net.collect_params().values()))
    print((net(nd.array(X[0])).asnumpy() == net(nd.array(X[0])).asnumpy()).all(), net[0].weight.data().shape, net[0].weight.grad().shape)
"""


def test_weights_after_100_steps_are_those_of_data_parallelism():
    for workers, shapes in (2, ["(15, 20)", "(16, 20)"]), (3, ["(10, 20)", "(10, 20)", "(11, 20)"]):
        expected = [[f"True [{shape}]"] * 2 + ["True", f"True (31, 20) {shape}"] for shape in shapes]
        assert outputs(_EQUAL, workers=workers, kind="dist_sync") == expected


def test_deferred_weights_files_and_checkpoints(tmp_path):
    program = _PROGRAM + """
    folder = os.environ['FOLDER']
    net = build(deferred=True)
    trainer = trainer_of(net, shard='full')
    train(net, trainer, range(3))
    trainer.save_training(folder, net, batch=3).wait()
    net.save_parameters(f'{folder}/whole{rank}')
    trainer.save_states(f'{folder}/states{rank}')
    train(net, trainer, range(3, 6))
    for whole in True, False:
        other = build()
        again = trainer_of(other, shard='full' if whole else None)
        if whole:
            other.load_parameters(f'{folder}/whole0')
            again.load_states(f'{folder}/states0')
        else:
            again.resume_training(folder, other)
        train(other, again, range(3, 6))
        print(far(values(net), values(other)) < 1e-6)
    fresh = build()
    gluon.fully_shard(fresh.collect_params())
    fresh.load_parameters(f'{folder}/whole1')
    print(fresh[0].weight.list_data()[0].shape, (fresh[0].weight.data().asnumpy() == mx.nd.load(f'{folder}/whole0')['0.weight'].asnumpy()).all())
    """
    assert outputs(program, workers=2, kind="dist_sync", env={"FOLDER": str(tmp_path)}) == [
        ["True", "True", f"({rows}, 20) True"] for rows in (15, 16)]


def test_the_graph_holds_no_gathered_weight():
    program = _PROGRAM + """
    from mxnet.gluon import fully_sharded
    net = build()
    trainer = trainer_of(net, shard='full')
    train(net, trainer, range(2))
    gatherer = fully_sharded._gatherer()
    with mx.autograd.record():
        out = loss(net(nd.array(X[0, own])), nd.array(Y[0, own]))
    import gc
    gc.collect()
    print(sum(not entry[0].expired() for entry in gatherer._whole.values()), gatherer._flight is not None)
    out.backward()
    trainer.step(12)
    print(sum(not entry[0].expired() for entry in gatherer._whole.values()), gatherer._flight)
    """
    assert outputs(program, workers=2, kind="dist_sync") == [["0 True", "0 None"]] * 2


def test_writes_to_rows_reach_a_weight_that_is_gathered_ahead(tmp_path):
    """After a step the evaluation of one weight leaves it in flight, for its next use."""
    program = _PROGRAM + """
    from mxnet.gluon import fully_sharded
    folder, gatherer, x = os.environ['FOLDER'], fully_sharded._gatherer(), nd.array(X[0])
    net = gluon.nn.Sequential()
    net.add(gluon.nn.BatchNorm(in_channels=20), gluon.nn.Dense(7, in_units=20))
    net.initialize(mx.init.Normal(1))
    trainer, weight = trainer_of(net, shard='full'), net[1].weight
    gluon.save_shards(f'{folder}/shards', net, trainer)
    trainer.save_training(f'{folder}/training', net).wait()
    good = net(x).asnumpy()

    def write(number, where=(0, 1)):
        if rank in where:
            weight.list_data()[0][:] = number

    changes = {'load_shards': lambda: gluon.load_shards(f'{folder}/shards', net, trainer),
               'resume_training': lambda: trainer.resume_training(f'{folder}/training', net),
               'rows': lambda: write(7), 'rows of one rank': lambda: write(3, [1]), 'no rows': lambda: write(5, []),
               'torch': lambda: weight.list_data()[0].as_torch().fill_(2), 'set_data': lambda: weight.set_data(nd.ones((7, 20))),
               'initialize': lambda: net.initialize(force_reinit=True), 'cast': lambda: net.cast('float64')}
    for name, change in changes.items():
        train(net, trainer, range(1))
        net(x)
        flies = gatherer._flight is not None
        change()
        out = net(x.astype(weight.dtype)).asnumpy()
        gatherer.cut()
        same = (net(x.astype(weight.dtype)).asnumpy() == (good if name in ('load_shards', 'resume_training') else out)).all()
        print(name, flies, same and (net(x.astype(weight.dtype)).asnumpy() == out).all())
    """
    cases = ["load_shards", "resume_training", "rows", "rows of one rank", "no rows", "torch", "set_data", "initialize", "cast"]
    assert outputs(program, workers=2, kind="dist_sync", env={"FOLDER": str(tmp_path)}) == [[f"{name} True True" for name in cases]] * 2


def test_gradients_of_a_weight_that_is_used_twice_of_retained_graphs_and_of_autograd_grad():
    program = _PROGRAM + """
    net = gluon.nn.Dense(20, in_units=20, use_bias=False)
    net.initialize(mx.init.Normal(0.3))
    mx.gluon.fully_shard(net.collect_params())
    weight, x = net.weight, nd.array(X[0])
    def gradient(times):
        with mx.autograd.record():
            y = x
            for _ in range(times):
                y = net(y)
            y = y.sum()
        return y
    first, last = (20 * rank // count, 20 * (rank + 1) // count)
    gradient(1).backward()
    once = count * X[0].sum(0)
    print(np.allclose(weight.grad().asnumpy(), once, rtol=1e-5))
    whole = weight.data().asnumpy()
    gradient(2).backward()
    twice = count * (np.outer(whole.sum(0), X[0].sum(0)) + (X[0] @ whole.T).sum(0))
    print(np.allclose(weight.grad().asnumpy(), twice[first:last], rtol=1e-4))
    rows = weight.list_data()
    print(np.allclose(mx.autograd.grad(gradient(1), rows)[0].asnumpy(), once, rtol=1e-5),
          np.allclose(weight.grad().asnumpy(), twice[first:last], rtol=1e-4))
    weight.grad_req = 'add'
    weight.zero_grad()
    for _ in range(2):
        gradient(1).backward()
    print(np.allclose(weight.grad().asnumpy(), 2 * once, rtol=1e-5))
    """
    assert outputs(program, workers=2, kind="dist_sync") == [["True", "True", "True True", "True"]] * 2


def test_ranks_that_use_other_weights_get_an_error():
    program = _PROGRAM + """
    net = build()
    trainer = trainer_of(net, shard='full')
    try:
        net[0 if rank else 2].weight.data()
    except mx.MXNetError as error:
        print('do not do the same' in str(error))
    """
    assert outputs(program, workers=2, kind="dist_sync") == [["True"]] * 2


def test_one_process_keeps_its_weights():
    net = gluon.nn.Dense(4, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", shard="full")
    assert type(net.weight) is gluon.Parameter and trainer.learning_rate == 0.01
    with pytest.raises(gluon.utils.UsageError, match="shard is None or 'full', received 'half'"):
        gluon.Trainer(net.collect_params(), "sgd", shard="half")


def test_optimizers_and_stores_that_need_all_rows_are_refused():
    program = _PROGRAM + """
    for optimizer, store in ('lamb', 'dist_sync'), ('sgd', 'device'):
        try:
            gluon.Trainer(build().collect_params(), optimizer, kvstore=store, shard='full')
        except gluon.utils.UsageError as error:
            print(str(error)[:74])
    """
    assert outputs(program, workers=2, kind="dist_sync") == [[
        "Trainer: fully sharded weights are updated by rows, and LAMB needs whole o",
        "Trainer: with fully sharded weights the others need a kvstore in step, rec"]] * 2
    assert mx.gluon.fully_shard([]) is None


def build(ctx):
    mx.random.seed(3)
    net = gluon.nn.HybridSequential(prefix="net_")  # a trainer numbers by names
    with net.name_scope():
        net.add(gluon.nn.Dense(31, in_units=20, activation="tanh"), gluon.nn.BatchNorm(), gluon.nn.Dense(7, in_units=31))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    return net


def trainer_of(net, **options):
    return gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}, **options)


def train(net, trainer, ctx, steps=6):
    numbers = np.random.RandomState(0)
    loss = gluon.loss.SoftmaxCELoss()
    for _ in range(steps):
        x, y = mx.nd.array(numbers.rand(12, 20), ctx=ctx), mx.nd.array(numbers.randint(0, 7, 12), ctx=ctx)
        with mx.autograd.record():
            out = loss(net(x), y)
        out.backward()
        trainer.step(12)
    return [parameter._reduce().asnumpy() for parameter in net.collect_params().values()]


@pytest.mark.parametrize("offload", [mx.cpu_pinned(), mx.cpu()])
def test_the_host_has_what_a_gpu_uses_in_turns(offload, tmp_path):
    net = build(mx.cpu())
    trainer = trainer_of(net)
    expected = train(net, trainer, mx.cpu())
    with gpus():
        net = build(mx.gpu(1))
        trainer = trainer_of(net, shard="full", offload=offload)
        found = train(net, trainer, mx.gpu(1))
        host = mx.Context(offload.device_type, 1)
        weight, bias = net[0].weight, net[0].bias
        assert weight.list_ctx() == [mx.gpu(1)] and weight.data().ctx == weight.data(mx.gpu(1)).ctx == mx.gpu(1)
        assert weight.list_data()[0].ctx == weight.grad().ctx == host and bias.data().ctx == mx.gpu(1)
        states = {trainer._params[i].name: [array.ctx for array in state] for i, state in trainer._updaters[0].states.items()}
        assert states[weight.name] == [host] * 2 and states[bias.name] == [mx.gpu(1)] * 2
        net.save_parameters(str(tmp_path / "weights"))
        trainer.save_states(str(tmp_path / "states"))
        again = build(mx.gpu(1))
        resumed = trainer_of(again, shard="full", offload=offload)
        again.load_parameters(str(tmp_path / "weights"))
        resumed.load_states(str(tmp_path / "states"))
        assert again[0].weight.list_data()[0].ctx == host
        for one, other in zip(train(net, trainer, mx.gpu(1)), train(again, resumed, mx.gpu(1))):
            np.testing.assert_allclose(one, other, atol=1e-6)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_ranks_keep_their_rows_in_the_memory_of_the_host():
    found = outputs(_PROGRAM + f"""
    sys.path.insert(0, {str(TESTS)!r})
    from simulated_gpus import gpus

    def trained(ctx, **options):
        net = build()
        net.collect_params().reset_ctx(ctx)
        trainer = trainer_of(net, **options)
        for step in range(4):
            with mx.autograd.record():
                out = loss(net(nd.array(X[step, own], ctx=ctx)), nd.array(Y[step, own], ctx=ctx))
            out.backward()
            trainer.step(12)
        return net, values(net)

    _, expected = trained(mx.cpu())
    with gpus():
        net, numbers = trained(mx.gpu(1), shard='full', offload=mx.cpu_pinned())
        weight = net[0].weight
        print(weight.list_data()[0].ctx, weight.list_data()[0].shape, weight.data().ctx, far(expected, numbers) < 1e-5)
    """, kind="dist_sync")
    assert found == [[f"cpu_pinned(1) ({rows}, 20) gpu(1) True"] for rows in (15, 16)]


def test_without_a_gpu_offloading_has_no_effect():
    net = build(mx.cpu())
    with pytest.warns(UserWarning, match=r"offload=cpu_pinned\(0\) has no effect: the weights are on cpu\(0\), which is the host's memory already"):
        trainer = trainer_of(net, shard="full", offload=mx.cpu_pinned())
    found = train(net, trainer, mx.cpu())
    other = build(mx.cpu())
    for one, two in zip(found, train(other, trainer_of(other), mx.cpu())):
        np.testing.assert_allclose(one, two, atol=1e-6)


def test_the_warning_of_offloading_without_a_gpu_points_to_the_line_of_the_program():
    """It comes from different depths."""
    built, initialized, fresh, deferred = build(mx.cpu()), gluon.nn.Dense(3, in_units=2), gluon.nn.Dense(3, in_units=2), gluon.nn.Dense(3)
    initialized.initialize()
    gluon.fully_shard({**fresh.collect_params(), **deferred.collect_params()}, mx.cpu())
    deferred.initialize()
    for warns in (lambda: trainer_of(built, shard="full", offload=mx.cpu()), lambda: gluon.fully_shard(initialized.collect_params(), mx.cpu()),
                  lambda: fresh.initialize(), lambda: deferred(mx.nd.ones((1, 2)))):
        with pytest.warns(UserWarning, match="has no effect") as caught:
            warns()
        assert {warning.filename for warning in caught} == {__file__}


def test_arguments_of_offloading():
    net = build(mx.cpu())
    with pytest.raises(gluon.utils.UsageError, match="pass shard='full' with offload=cpu"):
        trainer_of(net, offload=mx.cpu())
    with pytest.raises(gluon.utils.UsageError, match=r"offload is mx.cpu_pinned\(\) or mx.cpu\(\), received gpu"):
        trainer_of(net, shard="full", offload=mx.gpu())
    with pytest.raises(gluon.utils.UsageError, match="offload is mx.cpu_pinned.*received True"):
        trainer_of(net, shard="full", offload=True)


def test_ranks_that_gather_weights_of_different_types_get_errors():
    found = outputs("""
        net = mx.gluon.nn.Dense(4, in_units=3, prefix='layer_')
        net.initialize()
        mx.gluon.Trainer(net.collect_params(), 'sgd', kvstore='dist_sync', shard='full')
        if kv.rank:
            net.cast('float64')
        try:
            net.weight.data()
        except mx.MXNetError as error:
            print(str(error).split('. ')[0])
    """, kind="dist_sync")
    types = ["float32", "float64"]
    assert found == [[f"gather of layer_weight: worker {rank} and worker {1 - rank} do not do the same: dtype is {types[rank]} on worker {rank} and "
                      f"{types[1 - rank]} on worker {1 - rank}"] for rank in range(2)]
