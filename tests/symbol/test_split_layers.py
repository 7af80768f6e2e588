"""Layers of the group ``sharded`` in executors: outputs and gradients are those of the network that is not divided."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import sym
from mxnet.symbol import split_layers

CPUS = [mx.cpu(i) for i in range(3)]


def network(group=None, **options):
    """Four hidden units and 7 classes of samples with 5 features, or of sequences of them; `group` has the last layer."""
    x = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=4, name="body", flatten=options.get("flatten", True)), act_type="tanh")
    with mx.AttrScope(**({"ctx_group": group} if group else {})):
        return sym.FullyConnected(x, num_hidden=7, name="head", **options)


def run(net, group2ctx=None, shape=(6, 5), grad_req="write"):
    executor = net.simple_bind(mx.cpu(), grad_req=grad_req, group2ctx=group2ctx, data=shape)
    numbers = np.random.RandomState(0)
    for array in executor.arg_arrays:
        array[:] = numbers.uniform(-1, 1, array.shape)
    executor.forward(is_train=True)
    executor.backward(mx.nd.array(numbers.uniform(-1, 1, executor.outputs[0].shape)))
    return [executor.outputs[0].asnumpy(), *(g.asnumpy() for g in executor.grad_arrays if g is not None)]


@pytest.mark.parametrize("options, shape", [({}, (6, 5)), ({"no_bias": True}, (6, 5)), ({"flatten": False}, (2, 3, 5))])
def test_values_and_gradients(options, shape):
    expected = run(network(**options), shape=shape)
    for places in CPUS[:1], CPUS[:2], tuple(CPUS), CPUS[1]:
        found = run(network("sharded", **options), {"sharded": places}, shape)
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_gradients_of_some_arguments():
    requests = {"head_weight": "write", "data": "write"}
    for a, b in zip(run(network("sharded"), {"sharded": CPUS}, grad_req=requests), run(network(), grad_req=requests)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_an_executor_over_arrays_of_the_program():
    net = sym.SoftmaxOutput(network("sharded"), sym.var("label"))
    numbers = np.random.RandomState(1)
    args = {n: mx.nd.array(numbers.uniform(-1, 1, s)) for n, s in zip(net.list_arguments(), net.infer_shape(data=(2, 5))[0])}
    args["label"] = mx.nd.array([6, 0])
    grads = {n: mx.nd.zeros(a.shape) for n, a in args.items()}
    executor = net.bind(mx.cpu(), args, args_grad=grads, group2ctx={"sharded": CPUS})
    out, = executor.forward(is_train=True)
    executor.backward()
    np.testing.assert_allclose(grads["head_bias"].asnumpy(), out.asnumpy().sum(0) - np.eye(7)[[6, 0]].sum(0), atol=1e-6)
    args["head_weight"][:] = 0
    args["head_bias"][:] = 0
    assert executor.forward()[0].asnumpy() == pytest.approx(1 / 7)


def test_a_weight_of_normalized_rows_and_its_parts():
    with mx.AttrScope(ctx_group="sharded"):
        weight = sym.L2Normalization(sym.var("w", shape=(7, 5), lr_mult=2.0), mode="instance")
        net = sym.FullyConnected(sym.var("data"), weight, num_hidden=7, no_bias=True, name="head")
    divided, parts = split_layers.split(net, CPUS[:2], separate=True)
    assert parts == {"w": [("w[0]", 0, 0, 3, 7), ("w[1]", 1, 3, 7, 7)]}
    assert divided.list_arguments() == ["data", "w[0]", "w[1]"]
    assert divided.infer_shape(data=(2, 5)) == ([(2, 5), (3, 5), (4, 5)], [(2, 7)], [])
    assert divided.attr_dict()["w[1]"]["__lr_mult__"] == "2.0"
    data, rows = mx.nd.ones((1, 5)), mx.nd.arange(1, 36).reshape((7, 5))
    args = {"data": data, "w[0]": rows[:3], "w[1]": rows[3:]}
    out = divided.bind(mx.cpu(), args, group2ctx={"sharded": CPUS[:2]}).forward()[0]
    np.testing.assert_allclose(out.asnumpy(), (rows / rows.norm(axis=1, keepdims=True)).sum(1).asnumpy()[None], rtol=1e-5)


def refused(net, message, contexts=CPUS, **options):
    with pytest.raises(mx.MXNetError, match=message):
        split_layers.split(net, contexts, **options)


def test_what_can_not_be_divided():
    data = sym.var("data")
    with mx.AttrScope(ctx_group="sharded"):
        refused(sym.Convolution(data, num_filter=8, kernel=(1, 1), name="conv"), "conv: the group 'sharded' .* received Convolution with the weight")
        few = sym.FullyConnected(data, num_hidden=2, name="few")
        sparse = sym.FullyConnected(data, sym.var("w", stype="row_sparse"), num_hidden=8, name="sparse")
        computed = sym.FullyConnected(data, sym.softmax(sym.var("w"), axis=0), num_hidden=8, name="computed")
        alone = sym.FullyConnected(data, sym.var("w"), num_hidden=8)
    refused(few, "few: its 2 units can't be divided among 1 ranks with 3 contexts each; use fewer")
    refused(sparse, "sparse: its weight w is declared as a sparse array", separate=True)
    refused(computed, r"computed: its weight is computed by softmax\d+ \(softmax\) out of others", separate=True)
    refused(alone + sym.sum(sym.var("w")), "w is the weight of a layer of the group 'sharded', which is divided, and has other users", separate=True)


def test_groups_of_contexts_are_checked():
    net = network("sharded")
    with pytest.raises(mx.MXNetError, match=r"group2ctx\['other'\] must be a Context, received \[cpu\(0\)\]; only the layers of the group 'sharded'"):
        net.simple_bind(mx.cpu(), group2ctx={"other": [mx.cpu(0)]}, data=(2, 5))
    with pytest.raises(mx.MXNetError, match=r"group2ctx\['sharded'\] must be a Context, or a list of them, received \[\]"):
        net.simple_bind(mx.cpu(), group2ctx={"sharded": []}, data=(2, 5))
