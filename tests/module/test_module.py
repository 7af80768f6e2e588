"""Module: training, prediction, parameters, shapes. Literal numbers come from MXNet 1.9.1."""
from collections import namedtuple

import numpy as np
import pytest

import mxnet as mx
from interrupt_checks import at_each_point
from module_checks import BIAS, TWO, WEIGHT, X, Y, bound, iterator, network, start, weights
from mxnet import MXNetError

TRAINED = [[-0.57501000, -0.08506402, 0.35685566], [0.52529514, 0.08506402, -0.25742602]]


@pytest.mark.parametrize("context, loads, kvstore", [
    (mx.cpu(), None, "local"), (TWO, None, "local"), (TWO, None, "device"), (TWO, [1, 3], "local")])
def test_fit_trains_the_same_on_any_number_of_devices(context, loads, kvstore):
    module = mx.mod.Module(network(), context=context, work_load_list=loads)
    data = iterator()
    module.fit(data, num_epoch=3, kvstore=kvstore, arg_params=start(),
               optimizer_params={"learning_rate": .5, "momentum": .9, "wd": .1})
    np.testing.assert_allclose(weights(module), TRAINED, rtol=1e-5)
    np.testing.assert_allclose(module.get_params()[0]["fc_bias"].asnumpy(), [-0.0774758, 0.0774758], rtol=1e-4)
    (name, value), = module.score(data, "ce")
    assert name == "cross-entropy" and value == pytest.approx(0.6231201, rel=1e-5)


def test_without_kvstore_each_device_goes_its_own_way():
    module, data = bound(TWO)
    module.init_optimizer(kvstore=None, optimizer_params={"learning_rate": .5})
    module.forward_backward(next(data))
    module.update()
    first, second = (a.asnumpy() for a in module._exec_group.param_arrays[0])
    assert abs(first - second).max() > 1e-3
    np.testing.assert_allclose(weights(module), (first + second) / 2, rtol=1e-6)


def test_optimizer_outside_the_kvstore_gives_the_same(monkeypatch):
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    module = mx.mod.Module(network(), context=TWO)
    module.fit(iterator(), num_epoch=3, arg_params=start(), optimizer_params={"learning_rate": .5, "momentum": .9, "wd": .1})
    assert module._updater is not None
    np.testing.assert_allclose(weights(module), TRAINED, rtol=1e-5)


def test_fixed_parameters_stay_and_adam_moves_the_others():
    module, data = bound(fixed_param_names=["fc_bias"])
    with pytest.warns(UserWarning, match="has no effect: there are parameters already"):
        module.fit(data, num_epoch=2, optimizer="adam", optimizer_params={"learning_rate": .05})
    np.testing.assert_allclose(weights(module), [[-.08055569, -.39628965, .18939586], [-.11944435, .39628965, .21060415]], rtol=1e-4)
    assert module.get_params()[0]["fc_bias"].asnumpy().tolist() == [.5, -.5]
    np.testing.assert_allclose(module.predict(data).asnumpy()[:2], [[.70697039, .29302967], [.63381428, .36618569]], rtol=1e-4)


def test_forward_follows_other_batch_shapes():
    module, _ = bound(TWO)
    module.forward(mx.io.DataBatch([mx.nd.array(X)], [mx.nd.array(Y)]))
    assert module.get_outputs()[0].shape == (8, 2)
    module.backward()
    module.init_optimizer()
    module.update()
    Batch = namedtuple("Batch", ["data"])
    module.forward(Batch([mx.nd.array(X[:6])]), is_train=False)
    assert module.get_outputs()[0].shape == (6, 2)
    assert [o.shape for o in module.get_outputs(merge_multi_context=False)[0]] == [(3, 2), (3, 2)]
    assert module.label_shapes[0].shape == (6,)


def test_batches_already_cut_for_the_devices():
    whole, _ = bound(TWO)
    whole.forward(mx.io.DataBatch([mx.nd.array(X[:4])], [mx.nd.array(Y[:4])]), is_train=False)
    cut, _ = bound(TWO)
    parts = [mx.io.DataBatch([mx.nd.array(X[i:i + 2])], [mx.nd.array(Y[i:i + 2])]) for i in (0, 2)]
    cut.forward(parts, is_train=False)
    np.testing.assert_array_equal(cut.get_outputs()[0].asnumpy(), whole.get_outputs()[0].asnumpy())
    metric = mx.metric.Accuracy()
    cut.update_metric(metric, [p.label for p in parts], pre_sliced=True)
    assert metric.num_inst == 4
    parts[1].data[0] = mx.nd.array(X[:3])
    with pytest.raises(MXNetError, match="must have the same shape"):
        cut.forward(parts)


def test_input_gradients():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    module = mx.mod.Module(a + 2 * b, data_names=["b", "a"], label_names=None, context=TWO)
    module.bind([("b", (4, 3)), ("a", (4, 3))], inputs_need_grad=True)
    module.init_params()
    module.forward(mx.io.DataBatch([mx.nd.ones((4, 3)), mx.nd.ones((4, 3))]))
    module.backward([mx.nd.ones((4, 3))])
    b_grad, a_grad = module.get_input_grads()
    assert (a_grad.asnumpy() == 1).all() and (b_grad.asnumpy() == 2).all() and a_grad.shape == (4, 3)
    other, _ = bound()
    with pytest.raises(MXNetError, match="inputs_need_grad=True"):
        other.get_input_grads()


def test_grad_req_add_collects_gradients():
    module = mx.mod.Module(network())
    module.bind([("data", (4, 3))], [("softmax_label", (4,))], grad_req="add")
    module.init_params(arg_params=start())
    batch = mx.io.DataBatch([mx.nd.array(X[:4])], [mx.nd.array(Y[:4])])
    module.forward_backward(batch)
    once = module._exec_group.grad_arrays[0][0].asnumpy()
    module.forward_backward(batch)
    np.testing.assert_allclose(module._exec_group.grad_arrays[0][0].asnumpy(), 2 * once, rtol=1e-6)


def test_two_bit_compression_between_devices():
    module, data = bound(TWO, compression_params={"type": "2bit", "threshold": .1})
    module.init_optimizer(kvstore="device", optimizer_params={"learning_rate": .5})
    batch = next(data)
    for _ in range(3):
        module.forward_backward(batch)
        module.update()
    np.testing.assert_allclose(weights(module), [[.025, -.2, .275], [-.225, .2, .125]], atol=1e-6)


def test_set_params_missing_and_extra():
    module, _ = bound()
    some = {"fc_weight": mx.nd.zeros((2, 3))}
    with pytest.raises(RuntimeError, match="'fc_bias' is not presented"):
        module.set_params(some, {})
    module.set_params(some, {}, allow_missing=True)
    assert not weights(module).any() and module.get_params()[0]["fc_bias"].asnumpy().tolist() == [.5, -.5]
    extra = {**start(), "other": mx.nd.zeros((1,))}
    with pytest.raises(ValueError, match="other"):
        module.set_params(extra, {}, allow_missing=True)
    module.set_params(extra, {}, allow_missing=True, allow_extra=True)
    with pytest.raises(MXNetError, match=r"'fc_weight': the given value has shape \(3, 2\), the network needs \(2, 3\)"):
        module.set_params({**start(), "fc_weight": mx.nd.zeros((3, 2))}, {})


def test_auxiliary_states_are_averaged_over_devices():
    net = mx.sym.BatchNorm(mx.sym.var("data"), name="bn", momentum=0., fix_gamma=False)
    module = mx.mod.Module(net, label_names=None, context=TWO)
    module.bind([("data", (4, 2))])
    module.init_params()
    module.forward(mx.io.DataBatch([mx.nd.array([[0, 0], [0, 0], [4, 8], [4, 8]])]), is_train=True)
    module._params_dirty = True
    assert module.get_params()[1]["bn_moving_mean"].asnumpy().tolist() == [2, 4]


def test_states_carry_over():
    cell = mx.rnn.RNNCell(2, prefix="r_")
    begin = cell.begin_state(func=mx.sym.Variable)
    output, states = cell(mx.sym.var("data"), begin)
    module = mx.mod.Module(mx.sym.Group([output] + states), label_names=None, state_names=[s.name for s in begin])
    module.bind([("data", (1, 3))], for_training=False)
    module.init_params(mx.init.One())
    batch = mx.io.DataBatch([mx.nd.zeros((1, 3))])
    module.set_states(value=0)
    module.forward(batch)
    assert not module.get_outputs()[0].asnumpy().any()
    module.set_states(value=1)
    module.forward(batch)
    first = module.get_outputs()[0].asnumpy()
    np.testing.assert_allclose(first, np.full((1, 2), np.tanh(2)), rtol=1e-5)
    module.set_states(states=module.get_outputs(merge_multi_context=False)[1:])
    module.forward(batch)
    np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), np.full((1, 2), np.tanh(2 * np.tanh(2))), rtol=1e-5)
    assert module.get_states(merge_multi_context=False)[0][0].shape == (1, 2)
    with pytest.raises(MXNetError, match="either states or value"):
        module.set_states()


@pytest.mark.filterwarnings("ignore:label_shapes describe")
def test_bind_again_needs_force(caplog):
    module, data = bound()
    module.bind(data.provide_data, data.provide_label)
    assert "Already bound, ignoring bind()" in caplog.text
    module.bind([("data", (2, 3))], for_training=False, force_rebind=True)
    assert module.data_shapes[0].shape == (2, 3) and module.label_shapes is None
    module.forward(mx.io.DataBatch([mx.nd.array(X[:2])]))
    logits = X[:2] @ WEIGHT.T + BIAS
    np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), np.exp(logits) / np.exp(logits).sum(1, keepdims=True), rtol=1e-5)
    with pytest.raises(MXNetError, match="for_training=True"):
        module.backward()


def test_optimizer_objects_and_the_names_they_get():
    module, data = bound()
    module.init_optimizer(optimizer=mx.optimizer.SGD(learning_rate=1, rescale_grad=.25))
    assert module._optimizer.idx2name == {0: "fc_weight", 1: "fc_bias"}
    module.init_optimizer(optimizer="adam")  # ignored
    assert isinstance(module._optimizer, mx.optimizer.SGD)
    with pytest.warns(UserWarning, match=r"rescale_grad is 1.0, not 1.0/batch_size/num_workers = 0.25"):
        module.init_optimizer(optimizer=mx.optimizer.SGD(), force_init=True)
    with pytest.raises(MXNetError, match="expected an Optimizer or the name of one, received 5"):
        module.init_optimizer(optimizer=5, force_init=True)
    split, _ = bound(TWO)
    split.init_optimizer(kvstore=None)
    assert split._optimizer.idx2name == {0: "fc_weight", 1: "fc_weight", 2: "fc_bias", 3: "fc_bias"}


def test_learning_rate_multipliers_of_the_network_count():
    weight = mx.sym.var("fc_weight", lr_mult=0.)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), weight, num_hidden=2, name="fc"), name="softmax")
    module = mx.mod.Module(net)
    module.fit(iterator(), num_epoch=1, arg_params=start(), optimizer_params={"learning_rate": .5})
    np.testing.assert_array_equal(weights(module), WEIGHT)
    assert abs(module.get_params()[0]["fc_bias"].asnumpy() - BIAS).max() > .01


def test_wrong_names_and_shapes():
    with pytest.raises(ValueError, match=r"data_names=\['image'\].*no argument 'image'.*\n\tdata\n\tsoftmax_label"):
        mx.mod.Module(network(), data_names=["image"])
    with pytest.warns(UserWarning, match="no argument 'target'"):
        mx.mod.Module(network(), label_names=["target"])
    with pytest.raises(ValueError, match="data_shapes describe"):
        mx.mod.Module(network()).bind([("image", (2, 3))])
    module = mx.mod.Module(network())
    module.bind([("data", np.array([2, 3]))], [("softmax_label", (2,))])
    assert module.data_shapes[0].shape == (2, 3)
    with pytest.raises(TypeError, match="'data' must be a tuple of integers"):
        mx.mod.Module(network()).bind([("data", mx.nd.array([10, 10]))])
    with pytest.raises(MXNetError, match="work_load_list needs one entry per context: 2"):
        mx.mod.Module(network(), context=TWO, work_load_list=[1])
    with pytest.raises(ValueError, match="can't be divided among devices"):
        mx.mod.Module(network(), context=[mx.cpu(i) for i in range(5)]).bind([("data", (4, 3))], [("softmax_label", (4,))])
    with pytest.raises(MXNetError, match="a batch size of 4 expected, .* received 'softmax_label'"):
        mx.mod.Module(network()).bind([("data", (4, 3))], [("softmax_label", (5,))])
    with pytest.raises(MXNetError, match="inputs_need_grad=True needs for_training=True"):
        mx.mod.Module(network()).bind([("data", (4, 3))], for_training=False, inputs_need_grad=True)


@pytest.mark.parametrize("context", [mx.cpu(), TWO])
def test_labels_that_do_not_fit(context):
    module, _ = bound(context)
    data = [mx.nd.array(X[:4])]
    with pytest.raises(MXNetError, match=r"'softmax_label' has shape \(3,\), the module is bound to 4 samples"):
        module.forward(mx.io.DataBatch(data, [mx.nd.array(Y[:3])]))
    with pytest.raises(MXNetError, match=r"'softmax_label' has shape \(\d, 2\), the module is bound to \(\d,\)"):
        module.forward(mx.io.DataBatch(data, [mx.nd.ones((4, 2))]))
    with pytest.raises(MXNetError, match="holds 2 arrays, the module is bound to 1: softmax_label"):
        module.forward(mx.io.DataBatch(data, [mx.nd.ones((4,))] * 2))


def test_integer_data_follow_the_declared_type():
    net = mx.sym.Embedding(mx.sym.var("data", dtype="int32"), input_dim=5, output_dim=2, name="emb")
    module = mx.mod.Module(net, label_names=None)
    module.bind([mx.io.DataDesc("data", (3,))], for_training=False)
    assert module._exec_group.execs[0].arg_dict["data"].dtype == np.int32


def test_groups_of_operators_on_other_devices():
    with mx.AttrScope(ctx_group="one"):
        a = mx.sym.var("a") * 2
    with mx.AttrScope(ctx_group="two"):
        net = a + mx.sym.var("b")
    for groups in ({"one": mx.cpu(2), "two": [mx.cpu(3)]}, [{"one": mx.cpu(2), "two": mx.cpu(3)}] * 2):
        module = mx.mod.Module(net, ["a", "b"], None, context=TWO, group2ctxs=groups)
        module.bind([("a", (2, 5)), ("b", (2, 5))], inputs_need_grad=True)
        module.init_params()
        module.forward(mx.io.DataBatch([mx.nd.ones((2, 5))] * 2))
        module.backward([mx.nd.ones((2, 5))])
        grads = module.get_input_grads(merge_multi_context=False)
        assert grads[0][0].context == mx.cpu(2) and grads[1][0].context == mx.cpu(3)
        assert (grads[0][0].asnumpy() == 2).all()
    with pytest.raises(MXNetError, match=r"group2ctxs\['one'\] needs 1 or 2 contexts, received 3"):
        mx.mod.Module(net, ["a", "b"], None, context=TWO, group2ctxs={"one": [mx.cpu()] * 3}).bind([("a", (2, 5)), ("b", (2, 5))])


@pytest.fixture
def all_are_large(monkeypatch):
    monkeypatch.setattr("mxnet.module.module._LARGE", 1)


def trained(keep=None):
    """Parameters and predictions of a module after three epochs, and how many parameters had no memory of their own on the CPU in each batch."""
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=8, name="a")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.BatchNorm(net, name="norm"), num_hidden=3, name="b"), name="softmax")
    random = np.random.RandomState(0)
    batches = mx.io.NDArrayIter(random.randn(32, 5).astype("float32"), random.randint(0, 3, 32), 8)
    module, held, released = mx.mod.Module(net), [], []
    mx.random.seed(0)
    module.fit(batches, num_epoch=3, optimizer="adam", epoch_end_callback=keep and (lambda epoch, net, args, auxs: held.append(keep(args))),
               batch_end_callback=lambda _: released.append(len(module._released)))
    return module, batches, released, held


def test_parameters_on_the_cpu_give_up_their_memory_while_devices_train(all_are_large):
    module, _, released, _ = trained()
    assert set(released) == {8}
    found, expected = module.get_params()[0], module._exec_group.execs[0].arg_dict
    assert not module._released
    for name, value in found.items():
        np.testing.assert_array_equal(value.asnumpy(), expected[name].asnumpy())


def test_what_a_program_holds_stays_until_the_next_sync(all_are_large):
    module, _, released, held = trained(lambda args: dict(args))
    assert released[-1] == 2  # the auxiliary states, which it does not hold
    before = held[0]["a_weight"].asnumpy()
    module.forward_backward(mx.io.DataBatch([mx.nd.ones((8, 5))], [mx.nd.zeros((8,))]))
    module.update()
    np.testing.assert_array_equal(held[0]["a_weight"].asnumpy(), before)
    module.get_params()
    assert (held[0]["a_weight"].asnumpy() != before).any()


def test_released_parameters_survive_another_bind_and_checkpoints(all_are_large, tmp_path):
    module, batches, _, _ = trained()
    expected = module.predict(batches).asnumpy()
    module.forward(mx.io.DataBatch([mx.nd.ones((8, 5))], [mx.nd.zeros((8,))]), is_train=False)
    assert not module._released  # only training makes the devices' differ
    module.bind(batches.provide_data, batches.provide_label, force_rebind=True)
    np.testing.assert_array_equal(module.predict(batches).asnumpy(), expected)
    module.save_checkpoint(str(tmp_path / "net"), 1)
    loaded = mx.mod.Module.load(str(tmp_path / "net"), 1)
    loaded.bind(batches.provide_data, batches.provide_label, for_training=False)
    np.testing.assert_array_equal(loaded.predict(batches).asnumpy(), expected)


def test_ctrl_c_in_reshape_leaves_a_module_that_works():
    module = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), name="softmax"), context=TWO)
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params()
    rows = [6]

    def work():
        module.reshape([("data", (rows[0], 3))], [("softmax_label", (rows[0],))])

    def check():
        bound, = {d.shape[0] for d in module.data_shapes + module.label_shapes}
        module.forward(mx.io.DataBatch([mx.nd.ones((bound, 3))], [mx.nd.zeros(bound)]))
        assert module.get_outputs()[0].shape == (bound, 2)
        rows[0] = 4 if bound == 6 else 6

    assert at_each_point(work, check, step=17) > 20


NEW = {"fc_weight": [[5., 4., 3.], [2., 1., 0.]], "fc_bias": [1., -1.]}


def given(dtype="float32"):
    return {name: mx.nd.array(value, dtype=dtype) for name, value in NEW.items()}


def overwrite(module):
    arguments, states = module.get_params()
    for name, value in given().items():
        arguments[name][:] = value
    module.set_params(arguments, states)


@pytest.mark.parametrize("context, kvstore", [(mx.cpu(), None), (mx.cpu(), "local"), (TWO, "local"), (TWO, "device")])
@pytest.mark.parametrize("set_params", [
    lambda module: module.set_params(given(), {}), lambda module: module.set_params(given(), {}, allow_missing=True),
    lambda module: module.init_params(arg_params=given(), aux_params={}, force_init=True), overwrite])
def test_the_optimizer_goes_on_from_parameters_that_a_program_sets(context, kvstore, set_params):
    module, data = bound(context)
    module.init_optimizer(kvstore and mx.kv.create(kvstore), optimizer_params={"learning_rate": .1, "momentum": .9})
    for batch in data:
        module.forward_backward(batch)
        module.update()
        set_params(module)
    module.forward_backward(batch)
    module.update()
    # What MXNet gives without a KVStore. With one it goes on from the values before.
    np.testing.assert_allclose(weights(module), [[4.9473476, 3.9473057, 2.9785545], [2.0526524, 1.0526942, .0214454]], rtol=1e-5)


@pytest.mark.parametrize("context", [mx.cpu(), TWO])
@pytest.mark.parametrize("optimizer", ["sgd", "nag", "adam", "lamb"])
def test_float32_copies_take_over_what_a_program_sets(context, optimizer):
    def half():
        data = iterator()
        module = mx.mod.Module(network(), context=context)
        module.bind([mx.io.DataDesc("data", (4, 3), "float16")], data.provide_label)
        module.init_params(arg_params={name: value.astype("float16") for name, value in start().items()}, aux_params={})
        module.init_optimizer(optimizer=optimizer, optimizer_params={"learning_rate": 1e-5, "multi_precision": True})
        return module, data

    module, data = half()
    module.forward_backward(next(data))
    module.update()
    module.set_params(given("float16"), {})
    module.update()
    np.testing.assert_allclose(weights(module), NEW["fc_weight"], atol=1e-2)
    # Steps that float16 cannot tell add up, although the values are set again after each, as `fit` does after each epoch.
    module, data = half()
    module.forward_backward(next(data))
    for _ in range(400):
        module.update()
        module.set_params(*module.get_params())
    assert abs(weights(module) - WEIGHT).max() > 1e-4


def test_a_store_that_cannot_take_new_values_is_named():
    class Elsewhere(mx.kvstore.KVStore):
        def _replace(self, key, value):
            return False

    module, data = bound()
    module.init_optimizer(Elsewhere("local"))
    module.set_params(*module.get_params())
    with pytest.warns(UserWarning, match="the kvstore of type 'local' updates fc_weight, fc_bias and keeps its own values, which the next update "
                                         "brings back: set parameters before init_optimizer"):
        module.set_params(given(), {})


def test_training_survives_another_bind():
    module, data = bound()
    module.init_optimizer(optimizer_params={"learning_rate": .5})
    module.forward_backward(next(data))
    module.update()
    trained = module._exec_group.execs[0].arg_dict["fc_weight"].asnumpy()
    module.bind(data.provide_data, data.provide_label, for_training=False, force_rebind=True)
    np.testing.assert_array_equal(weights(module), trained)


@pytest.mark.parametrize("saved, loaded", [((mx.cpu(), "local"), (TWO, "local")), ((TWO, "device"), (mx.cpu(), "local")),
                                           ((mx.cpu(), "store"), (mx.cpu(1), "local"))])
@pytest.mark.parametrize("optimizer, options", [("sgd", {"momentum": .9}), ("rmsprop", {})])
def test_optimizer_states_go_to_other_devices(saved, loaded, optimizer, options, tmp_path):
    def made(context, kvstore, parameters):
        module, data = bound(context)
        module.set_params(*parameters)
        module.init_optimizer(mx.kv.create("local") if kvstore == "store" else kvstore, optimizer, {"learning_rate": .1, **options})
        return module, data

    def run(module, data):
        data.reset()
        for batch in data:
            module.forward_backward(batch)
            module.update()
        return weights(module)

    path = str(tmp_path / "states")
    module, data = made(*saved, (start(), {}))
    run(module, data)
    module.save_optimizer_states(path)
    other, _ = made(*loaded, module.get_params())
    other.load_optimizer_states(path)
    np.testing.assert_allclose(run(other, data), run(module, data), rtol=1e-4)
