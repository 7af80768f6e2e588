"""Mixed precision: casts that change nothing go, others stay, and the values are the same."""
import numpy as np
import torch

import mxnet as mx
from mxnet import nd
from mxnet.graph.passes import amp_casts
from mxnet.graph.program import copied, operator_of
from mxnet.graph.runtime.runner import GraphRunner

CPU = torch.device("cpu")


def low(x):
    return mx.sym.amp_cast(x, dtype="bfloat16")


def block():
    """What AMP makes of two convolutions whose normalized results are added."""
    x = mx.sym.var("x")
    a, b = (mx.sym.Convolution(low(x), low(mx.sym.var(f"w{i}")), kernel=(3, 3), pad=(1, 1), num_filter=4, no_bias=True) for i in (1, 2))
    a = mx.sym.BatchNorm(a, fix_gamma=False, name="norm")
    a, b = mx.sym.amp_multicast(low(a), b, num_outputs=2)
    return mx.sym.relu(a + b)


def inputs(names):
    random = np.random.RandomState(0)
    shapes = {"x": (2, 3, 8, 8), "w1": (4, 3, 3, 3), "w2": (4, 3, 3, 3)}
    return [torch.from_numpy(random.uniform(0.5, 1, shapes.get(name, (4,))).astype("float32")) for name in names]


def lowered(symbol):
    runner = GraphRunner(symbol)
    tensors = inputs(runner.input_names)
    return copied(runner.lowered(True, CPU, tensors)), tensors


def names(module):
    return [op.name for n in module.graph.nodes if (op := operator_of(n)) is not None]


def test_casts_to_the_same_type_go():
    module, tensors = lowered(block())
    expected = module(*(t.clone() for t in tensors))[0]
    assert amp_casts.apply(module) == ["mixed precision: 2 x cast to the same type dropped"]
    module.recompile()
    assert "amp_multicast" not in names(module) and names(module).count("amp_cast") == 3  # of the data and of two weights
    found = module(*(t.clone() for t in tensors))[0]
    assert found.dtype is torch.bfloat16 and torch.equal(found, expected)


def test_casts_that_change_something_stay():
    x, w = mx.sym.var("x"), mx.sym.var("w1")
    y = mx.sym.Convolution(low(x), low(w), kernel=(3, 3), num_filter=4, no_bias=True)
    wide = mx.sym.Convolution(x, mx.sym.var("w2"), kernel=(3, 3), num_filter=4, no_bias=True)
    a, b = mx.sym.amp_multicast(y, wide, num_outputs=2)
    module, _ = lowered(mx.sym.Group([mx.sym.amp_cast(y, dtype="float32"), a + b]))
    before = names(module)
    assert amp_casts.apply(module) == [] and names(module) == before


def test_a_network_trains_in_bfloat16_with_everything_fused():
    symbol = block()
    arrays = dict(zip(symbol.list_inputs(), inputs(symbol.list_inputs())))
    shapes = {k: tuple(v.shape) for k, v in arrays.items()}
    executor = symbol.simple_bind(mx.cpu(), **shapes)
    for name, value in arrays.items():
        executor.aux_dict.get(name, executor.arg_dict.get(name))[:] = nd.array(value.numpy())
    out = executor.forward(is_train=True)[0]
    executor.backward(nd.ones(out.shape, dtype="bfloat16"))
    runner = executor._runner
    assert runner.reports[True, CPU][:2] == ["mixed precision: 2 x cast to the same type dropped",
                                             "layout: 2 convolutions with channels last, 1 arrays reordered before and 1 after them"]
    assert "fusion: 1 x batch norm + add + relu" in runner.reports[True, CPU]
    # Both weights are read through a cast alone, so their order in memory matters, too.
    assert [runner.input_names[i] for i in runner.channels_last] == ["w1", "w2"]
    gradient = executor.grad_dict["w2"]
    assert gradient.dtype == np.float32 and np.isfinite(gradient.asnumpy()).all() and np.abs(gradient.asnumpy()).max() > 0


def test_a_cast_of_one_array_to_the_widest_type_goes():
    symbol = mx.sym.relu(mx.sym.amp_multicast(low(mx.sym.var("x")), num_outputs=1))
    module, tensors = lowered(symbol)
    assert amp_casts.apply(module) == ["mixed precision: 1 x cast to the same type dropped"]
    assert names(module) == ["amp_cast", "relu"] and module(*tensors)[0].dtype is torch.bfloat16


def test_on_gpus_inputs_are_cast_at_once():
    """On tensors of a CPU: the pass itself asks for no device."""
    module, tensors = lowered(block())
    tensors = [t.clone().requires_grad_() if t.dim() > 1 else t for t in tensors]
    amp_casts.apply(module)

    def results():
        module.recompile()
        out = module(*(t.clone() if not t.requires_grad else t for t in tensors))[0]
        return [out, *torch.autograd.grad(out.float().square().sum(), [t for t in tensors if t.requires_grad])]

    expected = results()
    assert amp_casts.together(module) == ["mixed precision: 3 inputs cast to bfloat16 at once"]
    assert "amp_cast" not in names(module)
    found = results()
    assert [t.dtype for t in found] == [torch.bfloat16, *[torch.float32] * 3]
    assert all(torch.equal(a, b) for a, b in zip(found, expected))


def test_casts_at_once_leave_other_types_and_missing_gradients():
    whole, w, unused = torch.tensor([1, 2]), torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
    a, b, c = amp_casts.cast_together(torch.float16, whole, w, unused)
    assert a.dtype is torch.int64 and a.tolist() == [1, 2] and a.data_ptr() != whole.data_ptr()
    assert b.dtype is c.dtype is torch.float16
    (b * 2).sum().backward()
    assert w.grad.dtype is torch.float32 and w.grad.tolist() == [2, 2, 2] and unused.grad is None


def test_one_cast_stays_alone():
    module, _ = lowered(mx.sym.exp(low(mx.sym.var("x"))))
    assert amp_casts.together(module) == [] and names(module).count("amp_cast") == 1
