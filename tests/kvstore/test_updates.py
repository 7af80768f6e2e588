import pytest

import mxnet as mx
from job_checks import outputs
from mxnet import MXNetError, nd
from mxnet.kvstore import KVStoreBase, updates


class Exchange(KVStoreBase):
    """A store that cannot run an optimizer, and says what is asked of it."""

    type = "exchange"

    def __init__(self):
        self.asked = []

    @staticmethod
    def is_capable(capability):
        return False

    def broadcast(self, key, value, out, priority=0):
        self.asked.append(("broadcast", key))
        for target in out:
            value.copyto(target)

    def pushpull(self, key, value, out=None, priority=0):
        self.asked.append(("pushpull", key, priority))


@pytest.mark.parametrize("kind, devices, expected, runs_optimizer", [
    (None, 2, None, False), ("local", 1, None, False), ("device", 1, None, False), ("local", 2, "local", True), ("device", 2, "device", True)])
def test_which_store_is_taken(kind, devices, expected, runs_optimizer):
    store, on_store = updates.create_kvstore(kind, devices, {"w": nd.ones(3)})
    assert (store and store.type, on_store) == (expected, runs_optimizer)


def test_a_store_that_was_made_is_taken_even_for_one_device(monkeypatch):
    store = mx.kv.create("local")
    assert updates.create_kvstore(store, 1, {}) == (store, True)
    assert updates.create_kvstore(Exchange(), 2, {})[1] is False
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    assert updates.create_kvstore(store, 1, {}) == (store, False)
    with pytest.raises(TypeError, match="kvstore must be KVStore, str or None, received 3"):
        updates.create_kvstore(3, 1, {})


def test_large_weights_are_updated_on_the_devices(monkeypatch):
    monkeypatch.setattr(updates, "_BIG_WEIGHT", 2)
    assert updates.create_kvstore("local", 2, {"w": nd.ones(2)})[1] is True
    assert updates.create_kvstore("local", 2, {"w": nd.ones(3)})[1] is False
    assert updates.create_kvstore("device", 2, {"w": nd.ones(3)})[1] is True


def test_sparse_parameters_need_a_store_that_runs_the_optimizer():
    store, on_store = updates.create_sparse_kvstore("local")
    assert store.type == "local" and on_store is True
    assert updates.create_sparse_kvstore(store) == (store, True)
    with pytest.raises(TypeError, match="received None"):
        updates.create_sparse_kvstore(None)

    class Incapable(type(store)):
        def is_capable(self, capability):
            return False

    with pytest.raises(MXNetError, match="'local' does not: use 'local' or 'device'"):
        updates.create_sparse_kvstore(Incapable("local"))


def test_stores_get_the_first_values():
    arrays = [[nd.zeros(2), nd.zeros(2)]]
    store = mx.kv.create("local")
    updates.initialize_kvstore(store, arrays, {"w": nd.array([1, 2])}, ["w"], update_on_kvstore=False)
    assert arrays[0][1].asnumpy().tolist() == [0, 0]
    target = nd.zeros(2)
    store.pull("w", out=target)
    assert target.asnumpy().tolist() == [1, 2]
    for made, on_store in ((mx.kv.create("local"), True), (Exchange(), False)):
        updates.initialize_kvstore(made, arrays, {"w": nd.array([3, 4])}, ["w"], update_on_kvstore=on_store)
        assert [a.asnumpy().tolist() for a in arrays[0]] == [[3, 4]] * 2
        arrays = [[nd.zeros(2), nd.zeros(2)]]


@pytest.mark.parametrize("update", [updates.update_params_on_kvstore, updates.update_params_on_kvstore_nccl])
def test_the_store_updates(update, monkeypatch):
    monkeypatch.setenv("MXNET_UPDATE_AGGREGATION_SIZE", "1")
    store = mx.kv.create("local")
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    arrays = [[nd.array([1]), nd.array([1])], [nd.array([7])], [nd.array([2]), nd.array([2])]]
    gradients = [[nd.array([1]), nd.array([3])], [None], [nd.array([2]), nd.array([2])]]
    updates.initialize_kvstore(store, arrays, {"a": nd.array([1]), "fixed": nd.array([7]), "b": nd.array([2])}, ["a", "fixed", "b"], True)
    update(arrays, gradients, store, ["a", "fixed", "b"])
    assert [[a.asscalar() for a in per_device] for per_device in arrays] == [[-1, -1], [7], [0, 0]]


def test_sparse_gradients_go_through_push_and_pull():
    store = mx.kv.create("local")
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    weight = nd.ones((2, 2))
    gradient = nd.array([[0, 0], [1, 1]]).tostype("row_sparse")
    store.init("w", weight)
    updates.update_params_on_kvstore([[weight]], [[gradient]], store, ["w"])
    assert weight.asnumpy().tolist() == [[1, 1], [0, 0]]


def test_an_updater_gets_all_parameters_of_a_device_at_once():
    calls, arrays = [], [[nd.array([1]), nd.array([1])], [nd.array([5])] * 2]
    gradients = [[nd.array([1]), nd.array([3])], [None, None]]

    def updater(indices, grads, weights):
        calls.append((indices, [g.asscalar() for g in grads], weights))

    updates.update_params(arrays, gradients, updater, 2)
    assert [c[:2] for c in calls] == [([0], [1]), ([1], [3])] and calls[1][2][0] is arrays[0][1]
    store = mx.kv.create("local")
    store.init("w", nd.zeros(1))
    calls.clear()
    updates.update_params(arrays, gradients, updater, 2, kvstore=store, param_names=["w", "fixed"])
    assert [c[1] for c in calls] == [[4], [4]]  # the store adds up


def test_workers_that_are_seeded_differently_begin_with_the_same_weights_and_unseeded_ones_repeat_themselves():
    program = """
        print(mx.nd.random.uniform(shape=2).asnumpy().tolist())  # nobody has seeded: as in MXNet, the same in each run
        mx.random.seed(kv.rank)
        print(kv.rank == 0 or mx.nd.random.uniform(shape=1).asscalar() != 0.5488135)
        for kind in 'dist_sync', 'p3', 'horovod':
            module = mx.mod.Module(mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=1), name='softmax'))
            module.bind([('data', (2, 3))], [('softmax_label', (2, 1))])
            module.init_params(mx.init.Uniform())
            module.init_optimizer(kind)
            for step in range(3):
                module.forward_backward(mx.io.DataBatch([mx.nd.ones((2, 3)) * kv.rank], [mx.nd.ones((2, 1))]))
                module.update()
            weights = [a.asnumpy().tolist() for a in module.get_params()[0].values()]
            print(weights)
        """
    first, second = outputs(program, kind="dist_sync", env={"MXNET_UPDATE_ON_KVSTORE": "0"})
    assert first == second
    assert outputs(program, kind="dist_sync", env={"MXNET_UPDATE_ON_KVSTORE": "0"}) == [first, second]
    assert first[0] == "[0.54881352186203, 0.5928446054458618]"
