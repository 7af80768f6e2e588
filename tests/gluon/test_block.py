"""Block: names, children, parameters, hooks, files."""
import re

import numpy as np
import pytest

import mxnet as mx
from block_checks import Net
from mxnet import gluon
from mxnet.gluon import nn


def test_names(net):
    assert (net.prefix, net.name) == ("n_", "n")
    assert list(net.collect_params().keys()) == ["n_dense0_weight", "n_dense0_bias", "n_dense1_weight", "n_dense1_bias"]
    assert sorted(net._collect_params_with_prefix()) == ["a.bias", "a.weight", "b.bias", "b.weight", "c.bias", "c.weight"]
    assert net.b.weight is net.c.weight
    with mx.name.NameManager():
        assert [nn.Dense(1).prefix, nn.Dense(1).prefix, nn.Conv2D(1, 1).name] == ["dense0_", "dense1_", "conv0"]


def test_nested_name_scopes():
    with mx.name.NameManager():
        net = nn.HybridSequential()
        with net.name_scope():
            net.add(nn.Conv2D(4, 3), nn.Dense(1))
            inner = nn.HybridSequential()
            with inner.name_scope():
                inner.add(nn.Dense(2))
            net.add(inner, nn.Dense(3))
        plain = nn.HybridSequential(prefix="")
        with plain.name_scope():
            plain.add(nn.Dense(1))
    names = [n for n in list(net.collect_params()) + list(plain.collect_params()) if n.endswith("weight")]
    assert names == ["hybridsequential0_conv0_weight", "hybridsequential0_dense0_weight",
                     "hybridsequential0_hybridsequential0_dense0_weight", "hybridsequential0_dense1_weight", "dense0_weight"]


def test_name_scope_is_left_after_an_error(net):
    with pytest.raises(KeyError), net.name_scope():
        raise KeyError
    assert not nn.Dense(1, prefix=None).prefix.startswith("n_")


def test_collect_params_select(net):
    assert list(net.collect_params(".*dense0|.*bias").keys()) == ["n_dense0_weight", "n_dense0_bias", "n_dense1_bias"]


def test_repr(net):
    assert repr(net) == "Net(\n  (a): Dense(3 -> 2, linear)\n  (b): Dense(2 -> 2, linear)\n  (c): Dense(2 -> 2, linear)\n)"


def test_attributes_keep_their_type(net):
    with pytest.raises(TypeError, match="Changing attribute type for a from .*Dense'> to <class 'int'> is not allowed"):
        net.a = 3
    net.a = nn.Dense(4, in_units=3)
    assert net._children["a"] is net.a
    with pytest.raises(AssertionError, match="Attribute weight of .* is a Parameter already"):
        net.a.weight = gluon.Parameter("w")


def test_children_of_hybrid_blocks(net):
    with pytest.raises(ValueError, match="(?s)A child of a HybridBlock must be a HybridBlock too, received .* take HybridSequential"):
        net.register_child(nn.Sequential())


def test_blocks_in_a_list_are_warned_of():
    net = nn.Sequential()
    net.layers = [nn.Dense(1)]
    with pytest.warns(UserWarning, match="Sequential.layers is a list with unregistered Blocks"):
        net.collect_params()
    net.add(net.layers[0])
    assert len(net.collect_params().keys()) == 2


def test_forward_must_be_defined():
    with pytest.raises(NotImplementedError, match="Block must define forward"):
        gluon.Block()(1)
    with pytest.raises(NotImplementedError, match="HybridBlock must define hybrid_forward"):
        gluon.HybridBlock()(mx.nd.ones((1,)))


def test_hooks(net):
    calls = []
    before = net.a.register_forward_pre_hook(lambda block, args: calls.append(("before", block.name, args[0].shape)))
    after = net.a.register_forward_hook(lambda block, args, out: calls.append(("after", block.name, out.shape)))
    net(mx.nd.ones((4, 3)))
    assert calls == [("before", "n_dense0", (4, 3)), ("after", "n_dense0", (4, 2))]
    before.detach()
    with after:
        net(mx.nd.ones((4, 3)))
    net(mx.nd.ones((4, 3)))
    assert len(calls) == 3


def test_hybridizing_with_hooks_warns(net):
    net.a.register_forward_hook(lambda *args: None)
    with pytest.warns(UserWarning, match="has forward hooks or pre-hooks and is being hybridized"):
        net.hybridize()


def test_apply_visits_children_first(net):
    seen = []
    assert net.apply(lambda block: seen.append(block.name)) is net
    assert seen == ["n_dense0", "n_dense1", "n_dense2", "n"]


def test_cast(net):
    net.cast("float64")
    assert net(mx.nd.ones((1, 3), dtype="float64")).dtype == np.float64


def test_save_and_load_parameters(net, tmp_path):
    path = str(tmp_path / "n.params")
    net.save_parameters(path)
    assert sorted(mx.nd.load(path)) == ["a.bias", "a.weight", "b.bias", "b.weight", "c.bias", "c.weight"]
    other = Net()
    other.load_parameters(path, ctx=mx.cpu(1))
    assert other.collect_params().list_ctx() == [mx.cpu(1)]
    x = mx.nd.ones((1, 3))
    np.testing.assert_array_equal(other(x.as_in_context(mx.cpu(1))).asnumpy(), net(x).asnumpy())
    net.save_parameters(path, deduplicate=True)
    assert sorted(mx.nd.load(path)) == ["a.bias", "a.weight", "c.bias", "c.weight"]
    Net().load_parameters(path)


def test_load_parameters_checks(net, tmp_path):
    path = str(tmp_path / "n.params")
    net.a.save_parameters(path)
    assert sorted(mx.nd.load(path)) == ["bias", "weight"]
    arrays = {"a.weight": mx.nd.ones((2, 3)), "a.bias": mx.nd.ones((2,)), "x.y": mx.nd.ones((1,))}
    mx.nd.save(path, arrays)
    with pytest.raises(AssertionError, match=r"n.params' lacks Parameter 'b.weight', it has "):
        net.load_parameters(path)
    before = net.a.weight.data().asnumpy()
    with pytest.raises(ValueError, match=r"has 'x.y', the network has no such Parameter, only .*'a.weight'"):
        net.load_parameters(path, allow_missing=True)
    np.testing.assert_array_equal(net.a.weight.data().asnumpy(), before)  # nothing was loaded by halves
    net.load_parameters(path, allow_missing=True, ignore_extra=True)
    assert net.a.weight.data().asnumpy().tolist() == [[1] * 3] * 2
    mx.nd.save(path, {n: a.astype("float16") for n, a in arrays.items()})
    with pytest.raises(AssertionError, match="dtype incompatible expected float32 vs saved float16"):
        net.load_parameters(path, allow_missing=True, ignore_extra=True)
    net.load_parameters(path, allow_missing=True, ignore_extra=True, cast_dtype=True, dtype_source="saved")
    assert net.a.weight.dtype == np.float16 and net.b.weight.data().dtype == np.float32
    mx.nd.save(path, [mx.nd.ones((1,))])
    with pytest.raises(mx.MXNetError, match="holds a list of arrays without names"):
        net.load_parameters(path)
    with pytest.raises(mx.MXNetError, match=re.escape(str(tmp_path / "none.params"))):
        net.load_parameters(str(tmp_path / "none.params"))


def test_old_files_by_name(net, tmp_path):
    path = str(tmp_path / "n.params")
    with pytest.warns(UserWarning, match="save_params is deprecated"):
        net.save_params(path)
    assert sorted(mx.nd.load(path)) == ["dense0_bias", "dense0_weight", "dense1_bias", "dense1_weight"]
    other = Net(prefix="other_")
    with pytest.warns(UserWarning, match="load_params is the old name"):
        other.load_params(path)
    np.testing.assert_array_equal(other.a.weight.data().asnumpy(), net.a.weight.data().asnumpy())
    mx.nd.save(path, {f"arg:{n}": p.data() for n, p in net.collect_params().items()})
    Net(prefix="n_").collect_params().load(path)


def test_blocks_of_any_kind():
    class Twice(gluon.Block):
        def forward(self, x):
            return [x * 2, x.asnumpy()]

    net = nn.Sequential()
    net.add(nn.Dense(1, in_units=1, use_bias=False), Twice())
    net.initialize(mx.init.One())
    net.hybridize()
    double, values = net(mx.nd.array([[3.]]))
    assert double.asscalar() == 6 and values == 3
    with pytest.warns(UserWarning, match="as a HybridSequential it runs faster"):
        only = nn.Sequential()
        only.add(nn.Dense(1))
        only.hybridize()


def test_shared_parameters():
    def make():
        net = mx.gluon.nn.HybridSequential()
        with net.name_scope():
            net.add(mx.gluon.nn.Dense(3, in_units=2), mx.gluon.nn.Dense(1, in_units=3))
        return net

    one, other = make(), make()
    one.initialize()
    other.initialize()
    other.hybridize()
    x = mx.nd.ones((1, 2))
    assert other(x) != one(x)
    assert other.share_parameters(one.collect_params()) is other
    assert other[0].weight is one[0].weight and other[1].bias is one[1].bias and other(x) == one(x)
    assert set(other.collect_params()) == set(one.collect_params())
    one[0].weight.set_data(mx.nd.zeros((3, 2)))
    assert other(x) == one(x)
    third = make()
    third.share_parameters({"0.weight": one[0].weight})
    assert third[0].weight is one[0].weight and third[0].bias is not one[0].bias
    assert sorted(third._collect_params_with_prefix()) == ["0.bias", "0.weight", "1.bias", "1.weight"]


def test_what_cannot_be_shared():
    net = mx.gluon.nn.Dense(1, in_units=1)
    with pytest.warns(UserWarning, match="has no place for gamma"):
        net.share_parameters({"gamma": net.weight})
    with pytest.raises(ValueError, match="share_parameters: a dict of Parameters expected, received <class 'list'>"):
        net.share_parameters([net.weight])
    assert net.share_parameters(None) is net


def test_tied_weights_are_updated_once():
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(2, in_units=2, use_bias=False), mx.gluon.nn.Dense(2, in_units=2, use_bias=False))
    net[1].share_parameters(net[0].collect_params())
    net.initialize(mx.init.One())
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    assert len(trainer._params) == 1
    with mx.autograd.record():
        loss = net(mx.nd.ones((1, 2))).sum()
    loss.backward()
    trainer.step(1)
    assert net[1].weight.data().asnumpy().tolist() == [[-1, -1], [-1, -1]]


def test_parameters_named_by_their_attribute():
    class Scale(mx.gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.factor = mx.gluon.Parameter(shape=(2,), init="ones")

        def hybrid_forward(self, F, x, factor):
            return F.broadcast_mul(x, factor)

    net = mx.gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(Scale(), Scale())
    assert list(net.collect_params()) == ["net_scale0_factor", "net_scale1_factor"]
    net.initialize()
    net.hybridize()
    assert net(mx.nd.ones((1, 2))).asnumpy().tolist() == [[1, 1]]
    net.setattr("grad_req", "null")
    assert net[0].factor.grad_req == "null"
    net.setattr("grad_req", "write")
    with mx.autograd.record():
        out = net(mx.nd.ones((1, 2)))
    out.backward()
    assert net[0].factor.grad().asnumpy().tolist() == [1, 1]
    net.zero_grad()
    assert net[0].factor.grad().asnumpy().tolist() == [0, 0]
    net.reset_ctx(mx.cpu(1))
    assert net[1].factor.list_ctx() == [mx.cpu(1)]
