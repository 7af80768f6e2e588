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
