"""What a graph returns owns its memory: where lowering copies outputs, and what every backend returns."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.gluon import nn
from mxnet.gluon.cached_op import CachedOp
from mxnet.graph import ownership
from mxnet.graph.backends import registry
from mxnet.graph.runtime.runner import GraphRunner

S = mx.sym
x, w = S.var("x"), S.var("w")
y = x * 2


def copies(*outputs):
    """Which outputs of the lowered graph are copied."""
    module = GraphRunner(S.Group(outputs)).lowered(False, torch.device("cpu"), [])
    end = next(n for n in reversed(module.graph.nodes) if n.op == "output")
    return [i for i, node in enumerate(end.args[0]) if node.target is ownership.owned]


@pytest.mark.parametrize("outputs, copied", [
    ([S.reshape(x, shape=(-1,))], [0]), ([S.flatten(S.expand_dims(x, axis=0))], [0]), ([S.squeeze(x)], [0]), ([x], []), ([S.reshape_like(x, w)], [0]),
    ([S.relu(S.reshape(x, shape=(-1,)))], []), ([S.reshape(y, shape=(-1,))], []), ([y, S.reshape(y, shape=(-1,))], [1]), ([y, y], [1]),
    ([S.flatten(y), y, x], [1]), ([S.identity(x), S.BlockGrad(x)], []), ([S.transpose(x)], []), ([x, S.flatten(x)], [1]),
    (list(S.split(x, num_outputs=2)), []), ([S.flatten(S.split(x, num_outputs=2)[0]), S.split(x, num_outputs=2)[1]], [])])
def test_only_outputs_that_would_share_memory_are_copied(outputs, copied):
    assert copies(*outputs) == copied


def test_distinct_copies_what_shares_memory():
    given, new = torch.zeros(4), torch.ones(4)
    results = ownership.distinct([given, given[1:], new, new.view(2, 2), given + 1], [given])
    assert [r.tolist() for r in results] == [[0, 0, 0, 0], [0, 0, 0], [1, 1, 1, 1], [[1, 1], [1, 1]], [1, 1, 1, 1]]
    assert results[2] is new
    assert len({r.untyped_storage().data_ptr() for r in (given, *results)}) == 6


def networks():
    weight, dense = S.var("c_weight"), S.var("f_weight")
    conv = S.Convolution(x, weight=weight, kernel=(3, 3), num_filter=4, pad=(1, 1), name="c")
    relu = S.relu(conv)
    pool = S.Pooling(relu, global_pool=True, kernel=(1, 1), pool_type="avg")
    layer = S.FullyConnected(S.flatten(pool), weight=dense, num_hidden=3, name="f")
    joined = S.concat(S.Convolution(relu, kernel=(1, 1), num_filter=4, name="d"), S.Convolution(relu, kernel=(1, 1), num_filter=4, name="e"), dim=1)
    return {
        "reshape": [S.reshape(x, shape=(0, -1))], "flatten and the same": [S.flatten(pool), pool, S.reshape(pool, shape=(-1,))],
        "relu and its input": [relu, conv], "a weight": [layer, dense, S.reshape(dense, shape=(-1,))],
        "of a weight": [layer, S.relu(dense), S.transpose(dense)],
        "the weights of a convolution": [conv, weight], "dropout, which is taken out": [layer, S.Dropout(layer, p=0.5)],
        "dropout of a shape": [layer, S.reshape(S.Dropout(S.flatten(x), p=0.5), shape=(-1,))],
        "a concatenation and its parts": [joined, S.slice_axis(joined, axis=1, begin=0, end=4)], "a constant": [layer, S.ones((2, 3))],
        "batch norm": [S.relu(S.BatchNorm(conv, name="b")), conv]}


@pytest.mark.parametrize("backend", ["native", "kernels", "openvino"])
@pytest.mark.parametrize("name", networks())
def test_what_a_backend_returned_stays(name, backend):
    if not registry.can_run(registry.get(backend), torch.device("cpu")):
        pytest.skip(f"{backend} cannot run here")
    symbol = S.Group(networks()[name])
    shapes, _, states = symbol.infer_shape(x=(2, 3, 8, 8))
    arrays = {n: mx.nd.random.uniform(shape=s) for n, s in zip(symbol.list_arguments() + symbol.list_auxiliary_states(), shapes + states)}
    weights = [i for i, n in enumerate(symbol.list_inputs()) if n != "x"]
    op = CachedOp(symbol, [("param_indices", weights)], backend=backend)
    results = [op(*[arrays[n] for n in symbol.list_inputs()]) for _ in range(3)]
    flat = [r for result in results for r in (result if isinstance(result, list) else [result])]
    values = [r.asnumpy() for r in flat]
    for array in arrays.values():
        array[:] = 50
    op(*[arrays[n] for n in symbol.list_inputs()])
    for i, result in enumerate(flat):
        assert result._data.is_contiguous()
        np.testing.assert_array_equal(result.asnumpy(), values[i])
        result[:] = 7
    assert all((array.asnumpy() == 50).all() for array in arrays.values())


def test_a_block_that_returns_its_input_or_weight_returns_copies():
    class Handing(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.weight = self.params.get("weight", shape=(2,), init="ones")

        def hybrid_forward(self, F, x, weight):
            return x, weight, weight, F.broadcast_mul(x, weight)

    net = Handing()
    net.initialize()
    net.hybridize()
    given = mx.nd.array([1, 2])
    for out in net(given)[:3]:
        out[:] = 9
    assert given.asnumpy().tolist() == [1, 2] and net.weight.data().asnumpy().tolist() == [1, 1]
    assert [out.asnumpy().tolist() for out in net(given)] == [[1, 2], [1, 1], [1, 1], [1, 2]]


def test_an_executors_output_is_not_the_bound_argument():
    bound = mx.nd.array([[1, 2], [3, 4]])
    executor = S.reshape(x, shape=(-1,)).bind(mx.cpu(), {"x": bound})
    executor.forward()[0][:] = 0
    assert bound.asnumpy().tolist() == [[1, 2], [3, 4]]


def test_gradients_flow_through_copied_outputs():
    net = nn.HybridLambda(lambda F, x: (F.reshape(x, (-1,)), F.expand_dims(x, axis=0), x * 2))
    net.hybridize()
    given = mx.nd.array([[1, 2], [3, 4]])
    given.attach_grad()
    with mx.autograd.record():
        flat, raised, double = net(given)
        total = (flat * 3).sum() + raised.sum() + double.sum()
    given[:] = 50
    total.backward()
    assert flat.asnumpy().tolist() == [1, 2, 3, 4]
    assert given.grad.asnumpy().tolist() == [[6, 6], [6, 6]]
