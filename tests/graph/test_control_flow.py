"""How loops and branches run. Values are those of MXNet 1.9.1."""
import pytest
import torch

import mxnet as mx
from mxnet import nd, sym
from mxnet.graph import GraphRunner


@pytest.fixture(autouse=True)
def fresh_names():
    with mx.name.NameManager():
        yield


def loop():
    x, s, w = sym.var("x"), sym.var("s"), sym.var("w")
    h = w * 2
    out, state = sym.contrib.foreach(lambda row, state: (row * h + state, state * w + row), x, s)
    return sym.Group([out, state])


def test_foreach_over_nothing_has_the_right_shape():
    with mx.np_shape():
        out = loop().eval(x=nd.zeros((0, 2)), s=nd.array([1, 2]), w=nd.array([2, 3]))
    assert out[0].shape == (0, 2) and out[1].asnumpy().tolist() == [1, 2]


def test_dropout_in_a_loop_follows_the_mode():
    out, _ = sym.contrib.foreach(lambda row, s: (sym.Dropout(row, p=0.5), s), sym.var("x"), sym.var("s"))
    exe = out.bind(mx.cpu(), {"x": nd.ones((4, 50)), "s": nd.zeros((1,))})
    assert exe.forward(is_train=False)[0].asnumpy().min() == 1
    assert exe.forward(is_train=True)[0].asnumpy().min() == 0


def test_mistakes_that_show_when_it_runs():
    x = sym.var("x")
    with pytest.raises(mx.MXNetError, match=r"_cond0: the condition must be a single value, received shape \(2,\)"):
        sym.contrib.cond(x, lambda: x, lambda: x).eval(x=nd.ones((2,)))
    with pytest.raises(mx.MXNetError, match="_foreach needs the graphs of its branches"):
        mx.nd._internal._foreach(nd.ones((2,)), num_outputs=1, num_out_data=1, in_state_locs=(), in_data_locs=(0,), remain_locs=())
    text = sym.contrib.cond(x, lambda: x, lambda: x).tojson().replace('"subgraphs"', '"graphs"')
    with pytest.raises(mx.MXNetError, match="_cond has 3 subgraphs, the file holds 0"):
        sym.load_json(text)


def test_in_a_hybridized_block():
    class Cumulative(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x, s):
            return F.contrib.foreach(lambda row, state: (row + state, row + state), x, s)[0]

    block = Cumulative()
    x, s = nd.array([[1.], [2.], [3.]]), nd.array([10.])
    expected = [[11], [13], [16]]
    assert block(x, s).asnumpy().tolist() == expected
    block.hybridize()
    assert block(x, s).asnumpy().tolist() == expected


def test_a_loop_over_numbers():
    out, state = mx.sym.contrib.foreach(lambda x, y: (x * 2 + y, y + x), mx.sym.var("d"), mx.sym.var("s"))
    both = mx.sym.Group([out, state])
    assert both.infer_shape(d=(3,), s=(1,)) == ([(3,), (1,)], [(3, 1), (1,)], [])
    executor = both.bind(mx.cpu(), {"d": mx.nd.array([1, 2, 3]), "s": mx.nd.array([10])}, args_grad={"d": mx.nd.zeros(3), "s": mx.nd.zeros(1)})
    stacked, last = executor.forward(is_train=True)
    assert stacked.asnumpy().tolist() == [[12], [15], [19]] and last.asnumpy().tolist() == [16]
    executor.backward([mx.nd.ones((3, 1)), mx.nd.ones(1)])
    assert executor.grad_dict["d"].asnumpy().tolist() == [5, 4, 3]


def test_arrays_that_a_loop_runs_over_must_be_of_one_length():
    both = sym.contrib.foreach(lambda rows, s: (rows[0] + rows[1], s), [sym.var("a"), sym.var("b")], sym.var("s"))[0]
    runner = GraphRunner(both, backend="NONE")
    tensors = {"a": torch.ones(3, 1), "b": torch.ones(2, 1), "s": torch.ones(1)}
    with pytest.raises(mx.MXNetError, match=r"the arrays looped over must have first axes of one length, received \[2, 3\]"):
        runner([tensors[n] for n in runner.input_names])


def test_results_are_never_the_inputs_themselves():
    kept = sym.contrib.cond(sym.var("p"), lambda: sym.var("x"), lambda: sym.var("y"))
    runner = GraphRunner(kept, backend="NONE")
    tensors = {"p": torch.ones(1), "x": torch.tensor([3.0]), "y": torch.tensor([4.0])}
    found, = runner([tensors[n] for n in runner.input_names])
    assert found.tolist() == [3] and found.data_ptr() != tensors["x"].data_ptr()
