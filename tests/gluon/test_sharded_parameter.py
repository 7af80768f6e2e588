"""Parameters whose rows are divided."""
import numpy as np
import pytest

import mxnet as mx
from job_checks import outputs


def _parameter(contexts, init="xavier", shape=(3000, 700)):
    mx.random.seed(4)
    parameter = mx.gluon.ShardedParameter("some_weight", shape=shape, init=init)
    parameter.initialize(ctx=[mx.cpu(i) for i in range(contexts)])
    return parameter


def _next_number(contexts):
    _parameter(contexts)
    return mx.nd.random.uniform().asscalar()


def test_values_do_not_depend_on_the_division():
    one, three = _parameter(1), _parameter(3)
    assert [part.shape for part in three.list_data()] == [(1000, 700)] * 3 and one.shape == three.shape == (3000, 700)
    whole = one.data().asnumpy()
    assert np.array_equal(whole, np.concatenate([part.asnumpy() for part in three.list_data()]))
    bound = np.sqrt(3 / 1850)  # of the whole weight
    assert 0.99 * bound < abs(whole).max() <= bound
    assert len(np.unique(whole[:, 0])) > 2900  # blocks have other numbers
    first, second = (_next_number(contexts) for contexts in (1, 3))
    assert first == second  # the generators go on as if a single number had been drawn


def test_moving_and_loading(tmp_path):
    parameter = _parameter(3, "normal", (7, 2))
    whole = parameter._reduce().asnumpy()
    parameter.reset_ctx([mx.cpu(0), mx.cpu(1)])
    assert [part.shape for part in parameter.list_data()] == [(3, 2), (4, 2)] == [part.shape for part in parameter.list_grad()]
    assert np.array_equal(parameter._reduce().asnumpy(), whole)
    layer = mx.gluon.nn.ShardedDense(7, in_units=2)
    layer.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    layer.save_parameters(str(tmp_path / "a"))
    dense = mx.gluon.nn.Dense(7, in_units=2)
    dense.load_parameters(str(tmp_path / "a"))
    assert np.array_equal(dense.weight.data().asnumpy(), layer.weight._reduce().asnumpy())
    dense.weight.set_data(mx.nd.arange(14).reshape((7, 2)))
    dense.save_parameters(str(tmp_path / "b"))
    layer.load_parameters(str(tmp_path / "b"))
    other = mx.gluon.nn.ShardedDense(7)
    other.load_parameters(str(tmp_path / "b"), ctx=[mx.cpu(0), mx.cpu(1)])
    for split in layer, other:
        assert split.weight.data(mx.cpu(1)).asnumpy().tolist() == [[6, 7], [8, 9], [10, 11], [12, 13]]


def test_errors():
    with pytest.raises(mx.MXNetError, match="'some_weight' is split, and Orthogonal needs the whole weight; use one of Constant, MSRAPrelu, "):
        _parameter(1, mx.init.Orthogonal(), (4, 4))
    with pytest.raises(mx.MXNetError, match="2 rows can't be divided among 1 ranks with 3 contexts each; use fewer"):
        _parameter(3, "normal", (2, 2))


def test_states_of_contexts(tmp_path):
    contexts = [mx.cpu(0), mx.cpu(1)]
    head = mx.gluon.nn.ShardedDense(9, in_units=5)
    head.initialize(ctx=contexts)
    trainer = mx.gluon.Trainer(head.collect_params(), "adam")

    def step():
        with mx.autograd.record():
            loss = mx.gluon.loss.ShardedSoftmaxCELoss()(head(mx.nd.ones((2, 5))), mx.nd.array([3, 8]))
        loss.backward()
        trainer.step(2)
    step()
    trainer.save_states(str(tmp_path / "states"))
    before = [updater.states[1][0].asnumpy() for updater in trainer._updaters]
    kept = head.weight._reduce(), head.bias._reduce()
    step()
    expected = head.weight._reduce().asnumpy()
    head.weight.set_data(kept[0])
    head.bias.set_data(kept[1])
    trainer.load_states(str(tmp_path / "states"))
    assert [np.array_equal(updater.states[1][0].asnumpy(), own) for updater, own in zip(trainer._updaters, before)] == [True, True]
    step()
    assert np.array_equal(head.weight._reduce().asnumpy(), expected)


def test_ranks_begin_alike_and_refuse_other_ways_to_train():
    found = outputs("""
        mx.random.seed(kv.rank)
        layer = mx.gluon.nn.ShardedDense(5, in_units=3)
        layer.initialize()
        whole = layer.weight._reduce().asnumpy()
        print(layer.weight.rows(), layer.weight.data().shape, whole.shape, round(float(abs(whole).sum()), 4))
        trainer = mx.gluon.Trainer(layer.collect_params(), 'sgd', kvstore=kv, update_on_kvstore=True)
        try:
            trainer.save_states('never')
        except mx.MXNetError as error:
            print(str(error).split(',')[0])
        kv._type = 'dist_async'
        try:
            mx.gluon.Trainer(layer.collect_params(), 'sgd', kvstore=kv).step(1)
        except ValueError as error:
            print(str(error).split(',')[0])
        kv._type = 'dist_sync'
    """, kind="dist_sync")
    assert [lines[0].split(")")[0] for lines in found] == ["(0, 2", "(2, 5"]
    assert found[0][0].split(")")[-1] == found[1][0].split(")")[-1]
    assert [lines[1:] for lines in found] == [["save_states: the kvstore has the states of some parameters",
                                               "Trainer: split layers need workers in step"]] * 2


@pytest.mark.parametrize("optimizer", [mx.optimizer.LAMB, mx.optimizer.LARS, mx.optimizer.LANS, lambda: mx.optimizer.LBSGD(warmup_strategy="lars")])
def test_optimizers_that_scale_by_norms_are_refused(optimizer):
    head = mx.gluon.nn.ShardedDense(5, in_units=3, prefix="head_")
    head.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    with pytest.raises(mx.MXNetError, match="Trainer: head_bias, head_weight: divided by rows, and .* needs the norms of whole weights"):
        mx.gluon.Trainer(head.collect_params(), optimizer())
    alone = mx.gluon.nn.ShardedDense(5, in_units=3)
    alone.initialize()
    mx.gluon.Trainer(alone.collect_params(), optimizer())
    mx.gluon.Trainer(head.collect_params(), mx.optimizer.LBSGD(warmup_strategy="linear"))


@pytest.mark.parametrize("units, expected", [
    ((7, 8), ["initialize of head_weight: worker 0 and worker 1 do not do the same: shape is [7, 3] on worker 0 and [8, 3] on worker 1",
              "initialize of head_weight: worker 1 and worker 0 do not do the same: shape is [8, 3] on worker 1 and [7, 3] on worker 0"]),
    ((7, 1), ["initialize of head_weight: worker 1 has failed with the error: Parameter 'head_weight': 1 rows can't be divided among 2 ranks with 1 "
              "contexts each; use fewer", "Parameter 'head_weight': 1 rows can't be divided among 2 ranks with 1 contexts each; use fewer"])])
def test_ranks_with_other_rows_refuse_to_begin(units, expected):
    lines = outputs(f"""
        layer = mx.gluon.nn.ShardedDense({units}[kv.rank], in_units=3, prefix='head_')
        try:
            layer.weight.initialize()
        except mx.MXNetError as error:
            print(error)
    """, kind="dist_sync")
    for (line,), text in zip(lines, expected):
        assert line.startswith(text), line
