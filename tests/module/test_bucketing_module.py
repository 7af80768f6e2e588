"""BucketingModule: shared parameters and memory, switching, checkpoints."""
import random

import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError


def sym_gen(length):
    data, label = mx.sym.var("data"), mx.sym.var("softmax_label")
    embedded = mx.sym.Embedding(data, input_dim=7, output_dim=3, name="embed")
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.LSTMCell(4, prefix="l0_"))
    outputs, _ = stack.unroll(length, embedded, merge_outputs=True)
    pred = mx.sym.FullyConnected(mx.sym.reshape(outputs, shape=(-1, 4)), num_hidden=7, name="pred")
    return mx.sym.SoftmaxOutput(pred, mx.sym.reshape(label, shape=(-1,)), name="softmax"), ("data",), ("softmax_label",)


def batch(length, size=2):
    data = mx.nd.array(np.arange(size * length).reshape(size, length) % 7)
    return mx.io.DataBatch([data], [data], bucket_key=length, provide_data=[mx.io.DataDesc("data", data.shape)],
                           provide_label=[mx.io.DataDesc("softmax_label", data.shape)])


def made(**kwargs):
    module = mx.mod.BucketingModule(sym_gen, default_bucket_key=5)
    module.bind([("data", (2, 5))], [("softmax_label", (2, 5))], **kwargs)
    module.init_params(mx.init.Xavier(factor_type="in", magnitude=2.34))
    return module


def test_buckets_share_parameters_and_the_optimizer():
    module = made()
    module.init_optimizer(optimizer_params={"learning_rate": 1., "momentum": .9})
    module.forward_backward(batch(3))
    module.update()
    assert module._curr_bucket_key == 3 and module.output_shapes == [("softmax_output", (6, 7))]
    small, big = module._buckets[3]._exec_group.execs[0], module._buckets[5]._exec_group.execs[0]
    for name in ("embed_weight", "l0_i2h_weight", "pred_bias"):
        assert small.arg_dict[name]._data.data_ptr() == big.arg_dict[name]._data.data_ptr()
    assert module._buckets[3]._optimizer is module._buckets[5]._optimizer
    updated = module.get_params()[0]["pred_bias"].asnumpy()
    assert abs(updated).max() > 0
    module.forward(batch(5), is_train=False)
    np.testing.assert_array_equal(module._buckets[5]._exec_group.execs[0].arg_dict["pred_bias"].asnumpy(), updated)


def test_prepare_binds_ahead_and_returns():
    module = made()
    module.prepare(batch(3))
    assert sorted(module._buckets) == [3, 5] and module._curr_bucket_key == 5


def test_training_over_buckets_learns():
    sentences = [[1, 2, 3, 4, 5]] * 8 + [[1, 2, 3]] * 8
    data = mx.rnn.BucketSentenceIter(sentences, 4, buckets=[3, 5], invalid_label=0)
    module = mx.mod.BucketingModule(sym_gen, default_bucket_key=data.default_bucket_key)
    mx.random.seed(1)
    random.seed(1)  # the iterator shuffles with this
    np.random.seed(1)
    module.fit(data, num_epoch=12, eval_metric=mx.metric.Perplexity(0), initializer=mx.init.Xavier(), optimizer="adam",
               optimizer_params={"learning_rate": .05})
    assert module.score(data, mx.metric.Perplexity(0))[0][1] < 2  # 5 before training


def test_checkpoint_round_trip(tmp_path):
    module = made()
    module.forward(batch(3), is_train=False)
    expected = module.get_outputs()[0].asnumpy()
    prefix = str(tmp_path / "b")
    module.save_checkpoint(prefix, 4)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b-0004.params", "b-3-symbol.json", "b-5-symbol.json", "b.buckets"]
    loaded = mx.mod.BucketingModule.load(prefix, 4, sym_gen, 5)
    loaded.bind([("data", (2, 5))], [("softmax_label", (2, 5))])
    loaded.forward(batch(3), is_train=False)
    np.testing.assert_allclose(loaded.get_outputs()[0].asnumpy(), expected, rtol=1e-6)
    with pytest.raises(MXNetError, match="the default bucket 9 is not among the saved ones"):
        mx.mod.BucketingModule.load(prefix, 4, sym_gen, 9)
    again = mx.mod.BucketingModule.load_dict({5: sym_gen(5)[0]}, sym_gen, 5, *module.get_params())
    again.bind([("data", (2, 5))], [("softmax_label", (2, 5))])
    again.forward(batch(3), is_train=False)
    np.testing.assert_allclose(again.get_outputs()[0].asnumpy(), expected, rtol=1e-6)


def test_parameters_survive_binding_again():
    module = made()
    before = module.get_params()[0]["embed_weight"].asnumpy().copy()
    module.bind([("data", (3, 5))], [("softmax_label", (3, 5))], force_rebind=True)
    np.testing.assert_array_equal(module.get_params()[0]["embed_weight"].asnumpy(), before)


def test_monitors_watch_later_buckets_too():
    module = made()
    monitor = mx.mon.Monitor(1, pattern="softmax_output")
    module.install_monitor(monitor)
    monitor.tic()
    module.forward(batch(3), is_train=False)
    assert [name for _, name, _ in monitor.toc()] == ["softmax_output"]


def test_errors():
    with pytest.raises(MXNetError, match="needs default_bucket_key"):
        mx.mod.BucketingModule(sym_gen)
    module = mx.mod.BucketingModule(sym_gen, 5)
    assert module.data_names == ("data",) and module.output_names == ["softmax_output"]
    with pytest.raises(MXNetError, match="not bound"):
        module.switch_bucket(3, None)
    with pytest.raises(MXNetError, match="there are no buckets yet"):
        module.save_checkpoint("x", 1)
    with pytest.raises(MXNetError, match="needs arg_params"):
        mx.mod.BucketingModule.load_dict({5: None}, sym_gen, 5)


def of_layers(layers):
    """A `sym_gen` of networks whose layers are those that `layers` names for each bucket."""
    def generate(key):
        out = mx.sym.var("data")
        for name in layers[key]:
            out = mx.sym.BatchNorm(out, name=name, fix_gamma=False) if name == "norm" else mx.sym.FullyConnected(out, num_hidden=3, name=name)
        return mx.sym.SoftmaxOutput(out, name="softmax"), ("data",), ("softmax_label",)
    return generate


def sums(key):
    """Two layers side by side, in another order in each bucket."""
    data = mx.sym.var("data")
    left, right = (mx.sym.FullyConnected(data, num_hidden=3, name=f"fc{i}") for i in ((0, 1) if key == 5 else (1, 0)))
    return mx.sym.SoftmaxOutput(left + right * 2, name="softmax"), ("data",), ("softmax_label",)


def rows(key):
    data = mx.nd.array(np.random.RandomState(key).randn(4, 3))
    return mx.io.DataBatch([data], [mx.nd.array([0, 1, 2, 0])], bucket_key=key, provide_data=[mx.io.DataDesc("data", (4, 3))],
                           provide_label=[mx.io.DataDesc("softmax_label", (4,))])


def trained(generate, keys, kvstore="local"):
    module = mx.mod.BucketingModule(generate, default_bucket_key=5)
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params()
    random_state = np.random.RandomState(0)
    arguments, states = module.get_params()
    module.set_params({name: mx.nd.array(random_state.randn(*arguments[name].shape)) for name in sorted(arguments)}, states)
    module.init_optimizer(kvstore, optimizer_params={"learning_rate": .1, "momentum": .9})
    for key in keys:
        module.forward_backward(rows(key))
        module.update()
    return module


@pytest.mark.parametrize("layers, missing", [
    ("first last", "first_bias, first_weight"), ("norm last", "norm_beta, norm_gamma, norm_moving_mean, norm_moving_var")])
def test_a_bucket_with_parameters_of_its_own_is_refused(layers, missing):
    with pytest.raises(MXNetError, match=f"the network of bucket 7 has the parameters {missing}, which that of the default bucket 5 does not have. "
                                         "The network of default_bucket_key must have the parameters of all buckets"):
        trained(of_layers({5: ["last"], 7: layers.split()}), [5, 7])


# What MXNet gives with a KVStore, whose keys are names. Without one it numbers the parameters of each bucket anew, and mixes up their momenta.
@pytest.mark.parametrize("kvstore", [None, "store"])
@pytest.mark.parametrize("generate, first, last", [
    (of_layers({5: ["a", "b"], 7: ["b"]}), ("a_weight", [2.2262626, 1.8536025, -.99474853]), ("b_weight", [.81018263, 1.4969617, -.77438956])),
    (sums, ("fc0_weight", [2.2595007, 1.6678884, -.9462161]), ("fc1_weight", [.4109332, .93294454, -.11906534]))])
def test_each_parameter_keeps_its_momentum_where_buckets_order_them_differently(generate, first, last, kvstore):
    module = trained(generate, [5, 7, 5, 7, 7, 5], kvstore and mx.kv.create("local"))
    parameters, _ = module.get_params()
    for name, values in (first, last):
        np.testing.assert_allclose(parameters[name].asnumpy()[0], values, rtol=1e-5)


def test_parameters_that_the_current_bucket_does_not_have_are_read_and_written_too():
    module = trained(of_layers({5: ["first", "last"], 7: ["last"]}), [5, 7])
    parameters, _ = module.get_params()
    in_use = module._buckets[5]._exec_group.execs[0].arg_dict["first_bias"]
    np.testing.assert_array_equal(parameters["first_bias"].asnumpy(), in_use.asnumpy())
    module.set_params({name: mx.nd.zeros_like(value) for name, value in parameters.items()}, {})
    assert not in_use.asnumpy().any()
