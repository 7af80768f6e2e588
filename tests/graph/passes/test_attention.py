"""Attention as one operator: what is recognised, what is not, and that values and gradients are those of the operators one by one."""
import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import mxnet as mx
from kernel_limits import used_from
from mxnet import nd
from mxnet.contrib import amp
from mxnet.graph import GraphRunner
from mxnet.graph.passes import attention
from mxnet.graph.program import copied

CPU = torch.device("cpu")
S = mx.sym
SHAPES = {"qkv": (12, 2, 2 * 3 * 4), "q": (12, 2, 2 * 4), "kv": (9, 2, 2 * 2 * 4), "a": (4, 12, 5), "b": (4, 9, 5), "bt": (4, 5, 9), "c": (4, 9, 3)}


@pytest.fixture(autouse=True)
def blocks_for_few_scores(monkeypatch):
    """Several blocks of heads and of rows, although the arrays are small."""
    used_from(monkeypatch, 1, attention)
    monkeypatch.setattr(attention, "BLOCK", 50)


def numbers(*shape, seed, dtype=torch.float64):
    return torch.from_numpy(np.random.RandomState(seed).normal(size=shape)).to(dtype)


def selfatt(p=0.0, **dropout):
    qkv = S.var("qkv")
    weights = S.Dropout(S.softmax(S.contrib.interleaved_matmul_selfatt_qk(qkv, heads=2)), p=p, **dropout)
    return S.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=2)


def encdec(change=lambda scores: scores):
    kv = S.var("kv")
    scores = S.contrib.interleaved_matmul_encdec_qk(S.var("q"), kv, heads=2)
    return S.contrib.interleaved_matmul_encdec_valatt(kv, S.softmax(change(scores)), heads=2)


def dots(change=lambda scores: scores, softmax=S.softmax, p=0.0):
    scores = S.batch_dot(S.contrib.div_sqrt_dim(S.var("a")), S.var("b"), transpose_b=True)
    return S.batch_dot(S.Dropout(softmax(change(scores)), p=p), S.var("c"))


def with_lengths(scores):
    return S.softmax(scores, S.var("length"), use_length=True)


def inputs_of(symbol, dtype=torch.float64, **special):
    found = []
    for i, name in enumerate(symbol.list_inputs()):
        if name in special:
            found.append(special[name])
        else:
            found.append(numbers(*SHAPES[name], seed=i, dtype=dtype).requires_grad_())
    return found


def run(function, inputs):
    """The result, and the gradients of the inputs that have one."""
    out = function(*inputs)
    out = out[0] if isinstance(out, (list, tuple)) else out
    needed = [t for t in inputs if t.requires_grad]
    return [out.detach(), *torch.autograd.grad(out, needed, numbers(*out.shape, seed=9, dtype=out.dtype))]


def module_of(symbol, is_train=True):
    return copied(GraphRunner(symbol).lowered(is_train, CPU, []))


def compare(symbol, inputs, tolerance=1e-12):
    """Whether the pass, which must find one attention, leaves values and gradients as they are."""
    plain, module = module_of(symbol), module_of(symbol)
    assert attention.apply(module) == ["fusion: 1 x attention"]
    module.recompile()
    calls = []
    forward = attention._forward
    attention._forward = lambda *a: calls.append(1) or forward(*a)
    try:
        found = run(module, inputs)
    finally:
        attention._forward = forward
    for f, e in zip(found, run(plain, inputs)):
        assert f.dtype is e.dtype
        torch.testing.assert_close(f, e, rtol=tolerance, atol=tolerance)
    assert calls == [1]
    return module


def names(module):
    return [n.op for n in module.graph.nodes].count("call_function")


MASK = torch.where(numbers(4, 12, 9, seed=5) > 0, 0.0, -1e9).double()
PATTERNS = {
    "selfatt": (lambda: selfatt(), {}),
    "selfatt with lengths": (lambda: selfatt_with_lengths(), {"length": torch.arange(48, dtype=torch.int32).reshape(4, 12) % 14}),
    "encdec": (lambda: encdec(), {}),
    "encdec with a mask": (lambda: encdec(lambda s: S.broadcast_add(s, S.var("mask"))), {"mask": MASK[:1]}),
    "dots": (lambda: dots(), {}),
    "dots with a mask": (lambda: dots(lambda s: S.elemwise_add(s, S.var("mask"))), {"mask": MASK}),
    "a mask first": (lambda: dots(lambda s: S.broadcast_add(S.var("mask"), s * 0.5)), {"mask": MASK[:, :1]}),
    "scaled": (lambda: dots(lambda s: S.identity(s * 0.25) / 2), {}),
    "transposed keys": (lambda: S.batch_dot(S.softmax(S.batch_dot(S.var("a"), S.var("bt"))), S.var("c")), {}),
    "dots with lengths": (lambda: dots(softmax=with_lengths), {"length": torch.arange(48).reshape(4, 12) % 11}),
    "the same array thrice": (lambda: same_thrice(), {}),
}


def selfatt_with_lengths():
    qkv = S.var("qkv")
    weights = with_lengths(S.contrib.interleaved_matmul_selfatt_qk(qkv, heads=2))
    return S.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=2)


def same_thrice(b=None):
    b = S.var("b") if b is None else b
    return S.batch_dot(S.softmax(S.batch_dot(b, b, transpose_b=True)), b)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("block", [50, 250, 1 << 18])
def test_patterns_become_one_operator(pattern, block, monkeypatch):
    monkeypatch.setattr(attention, "BLOCK", block)
    make, special = PATTERNS[pattern]
    symbol = make()
    compare(symbol, inputs_of(symbol, **special))


def test_more_leading_axes():
    symbol = dots()
    inputs = [numbers(2, 2, *SHAPES[name][1:], seed=i).requires_grad_() for i, name in enumerate(symbol.list_inputs())]
    compare(symbol, inputs)


@pytest.mark.parametrize("pattern", ["selfatt", "dots", "selfatt with lengths"])
def test_gradients_can_be_differentiated(pattern):
    make, special = PATTERNS[pattern]
    symbol = make()
    module = module_of(symbol)
    attention.apply(module)
    module.recompile()
    found = []
    for function in (module, module_of(symbol)):
        inputs = inputs_of(symbol, **special)
        needed = [t for t in inputs if t.requires_grad]
        first = torch.autograd.grad((function(*inputs)[0] ** 2).sum(), needed, create_graph=True)
        found.append(torch.autograd.grad(sum((g ** 2).sum() for g in first), needed))
    for f, e in zip(*found):
        torch.testing.assert_close(f, e, rtol=1e-9, atol=1e-10)


def not_fused():
    def twice():
        weights = S.softmax(S.batch_dot(S.var("a"), S.var("b"), transpose_b=True))
        return S.batch_dot(weights, S.var("c")) + S.sum(weights)

    def returned():
        weights = S.softmax(S.batch_dot(S.var("a"), S.var("b"), transpose_b=True))
        return S.Group([S.batch_dot(weights, S.var("c")), weights])

    def scores_returned():
        scores = S.batch_dot(S.var("a"), S.var("b"), transpose_b=True)
        return S.Group([S.batch_dot(S.softmax(scores), S.var("c")), scores])

    def other_heads():
        scores = S.contrib.interleaved_matmul_selfatt_qk(S.var("qkv"), heads=2)
        return S.contrib.interleaved_matmul_selfatt_valatt(scores.get_children()[0], S.softmax(scores), heads=4)

    def other_values():
        scores = S.contrib.interleaved_matmul_selfatt_qk(S.var("qkv"), heads=2)
        return S.contrib.interleaved_matmul_selfatt_valatt(S.var("other"), S.softmax(scores), heads=2)

    scores = S.batch_dot(S.var("a"), S.var("b"), transpose_b=True)
    return {
        "weights used twice": twice, "weights returned": returned, "scores returned": scores_returned,
        "another number of heads": other_heads, "values from elsewhere": other_values,
        "another axis": lambda: dots(softmax=lambda s: S.softmax(s, axis=1)),
        "a temperature": lambda: dots(softmax=lambda s: S.softmax(s, temperature=2.0)),
        "a type": lambda: dots(softmax=lambda s: S.softmax(s, dtype="float32")),
        "another softmax": lambda: dots(softmax=S.log_softmax),
        "dropout always": lambda: selfatt(p=0.5, mode="always"),
        "dropout of whole rows": lambda: selfatt(p=0.5, axes=(1,)),
        "dropout of everything": lambda: selfatt(p=1.0),
        "dropout finer than the random numbers": lambda: selfatt(p=1e-4),
        "dropout twice": lambda: dots(softmax=lambda s: S.Dropout(S.softmax(s), p=0.5), p=0.5),
        "a mask that is scaled": lambda: dots(lambda s: S.broadcast_add(s, S.var("mask")) * 2),
        "two masks": lambda: dots(lambda s: S.broadcast_add(S.broadcast_add(s, S.var("mask")), S.var("other"))),
        "scores added to themselves": lambda: S.batch_dot(S.softmax(scores + scores * 2), S.var("c")),
        "ReLU": lambda: dots(S.relu),
        "transposed queries": lambda: S.batch_dot(S.softmax(S.batch_dot(S.var("a"), S.var("b"), transpose_a=True)), S.var("c")),
        "transposed weights": lambda: S.batch_dot(S.softmax(scores), S.var("c"), transpose_a=True),
        "transposed values": lambda: S.batch_dot(S.softmax(scores), S.var("c"), transpose_b=True),
    }


@pytest.mark.parametrize("reason", not_fused())
def test_what_must_stay_stays(reason):
    module = module_of(not_fused()[reason]())
    before = names(module)
    assert attention.apply(module) == [] and names(module) == before


def test_only_these_nodes_go():
    module = module_of(dots(lambda s: S.broadcast_add(s * 0.5, S.var("mask"))) + S.var("d"))
    attention.apply(module)
    assert [n.name.rstrip("_0123456789") for n in module.graph.nodes if n.op == "call_function"] == ["div_sqrt_dim", "attention", "elemwise_add"]


@pytest.mark.parametrize("reason", ["gradient of the mask", "few scores", "mask with four axes"])
def test_at_run_time_the_operators_take_over(reason, monkeypatch):
    symbol, mask = dots(lambda s: S.broadcast_add(s, S.var("mask"))), MASK
    if reason == "gradient of the mask":
        mask = numbers(1, 12, 9, seed=8).requires_grad_()
    elif reason == "few scores":
        used_from(monkeypatch, 4 * 12 * 9 + 1, attention)
    inputs = inputs_of(symbol, mask=mask)
    if reason == "mask with four axes":
        inputs = [t.detach().reshape(2, 2, *t.shape[1:]).requires_grad_(t.requires_grad) for t in inputs]
    module = module_of(symbol)
    assert attention.apply(module) == ["fusion: 1 x attention"]
    module.recompile()
    monkeypatch.setattr(attention, "_forward", None)
    for f, e in zip(run(module, inputs), run(module_of(symbol), inputs)):
        assert torch.equal(f, e)


def masked():
    return dots(lambda s: S.broadcast_add(s, S.var("mask")))


@pytest.mark.parametrize("make, changed, text", [
    (selfatt, {"qkv": torch.ones(12, 2, 25)}, "interleaved_matmul_selfatt_valatt: 25 features cannot be split"),
    (encdec, {"kv": torch.ones(9, 3, 16)}, "Error in operator .*interleaved_matmul_encdec_qk"),
    (dots, {"b": torch.ones(3, 9, 5)}, "batch_dot shape error"),
    (dots, {"c": torch.ones(4, 8, 3)}, "Error in operator batch_dot"),
    (dots, {"c": torch.ones(4, 9, 3).double()}, "Error in operator batch_dot"),
    (masked, {"mask": torch.ones(4, 12, 9).double()}, "broadcast_add: both inputs must have one data type"),
    (masked, {"mask": torch.ones(4, 12, 8)}, "Error in operator .*broadcast_add"),
    (lambda: dots(softmax=with_lengths), {"length": torch.ones(4, 12)}, "`length` must be of an integer type"),
])
def test_errors_name_the_operator(make, changed, text):
    symbol = make()
    runner = GraphRunner(symbol)
    runner._check = lambda inputs: None  # it would refuse most of these before they run
    with pytest.raises(mx.MXNetError, match=text):
        runner(inputs_of(symbol, torch.float32, **changed), is_train=True)
    assert runner.reports[True, CPU] == ["fusion: 1 x attention"]


def test_dropout_drops_its_share_and_the_gradient_drops_the_same():
    heads, length = 8, 64
    module = module_of(dots(p=0.25))
    attention.apply(module)
    module.recompile()
    a, b = torch.zeros(heads, length, 5), torch.zeros(heads, length, 5)
    c = torch.eye(length).expand(heads, -1, -1).clone().requires_grad_()  # so that the result is what is left of the weights
    order = {"a": a, "b": b, "c": c}
    inputs = [order[n] for n in dots(p=0.25).list_inputs()]
    mx.random.seed(3)
    weights, = module(*inputs)
    kept = weights.detach() != 0
    assert abs(kept.float().mean().item() - 0.75) < 0.02
    np.testing.assert_allclose(weights.detach()[kept], 1 / 64 / 0.75, rtol=1e-5)
    above = numbers(*weights.shape, seed=4, dtype=torch.float32)
    found, = torch.autograd.grad(weights, c, above)
    torch.testing.assert_close(found, weights.detach().mT @ above)
    mx.random.seed(3)
    assert torch.equal(module(*inputs)[0], weights)
    assert not torch.equal(module(*inputs)[0], weights)


@pytest.mark.parametrize("pattern", ["selfatt", "dots"])
def test_the_gradient_of_dropout_is_that_of_what_was_computed(pattern):
    symbol = selfatt(p=0.3) if pattern == "selfatt" else dots(p=0.3)
    module = module_of(symbol)
    attention.apply(module)
    module.recompile()

    def seeded(*inputs):
        mx.random.seed(5)
        return module(*inputs)[0]

    assert torch.autograd.gradcheck(seeded, inputs_of(symbol), fast_mode=True)
    assert torch.autograd.gradgradcheck(seeded, inputs_of(symbol), fast_mode=True)


def test_dropout_does_nothing_outside_training():
    module = module_of(selfatt(p=0.5), is_train=False)
    assert attention.apply(module) == ["fusion: 1 x attention"]
    module.recompile()
    inputs = inputs_of(selfatt())
    torch.testing.assert_close(module(*inputs), module_of(selfatt())(*inputs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_types(pattern, dtype):
    make, special = PATTERNS[pattern]
    symbol = make()
    special = {k: v.clamp(-1e4).to(dtype) if k == "mask" else v for k, v in special.items()}
    compare(symbol, inputs_of(symbol, dtype, **special), {torch.float32: 1e-5, torch.bfloat16: 6e-2, torch.float16: 8e-3}[dtype])


@pytest.mark.parametrize("make, dtype", [(selfatt, "float16"), (dots, "float16"), (dots, "bfloat16")])
def test_mixed_precision(make, dtype):
    """AMP lets the projections run in half precision and the softmax in float32, and casts what comes between."""
    low = {name: S.FullyConnected(S.var(f"x_{name}"), num_hidden=SHAPES[name][-1], flatten=False, no_bias=True, name=f"fc_{name}")
           for name in make().list_inputs()}
    symbol = amp.convert_symbol(make()(**low), target_dtype=dtype)
    inputs = [numbers(*(SHAPES[n[2:]] if n.startswith("x_") else (SHAPES[n[3:-7]][-1],) * 2), seed=i, dtype=torch.float32).requires_grad_()
              for i, n in enumerate(symbol.list_inputs())]
    assert any(n.op == "call_function" and n.kwargs.get("dtype") is torch.float32 for n in module_of(symbol).graph.nodes)
    compare(symbol, inputs, 0.2 if dtype == "bfloat16" else 2e-2)


class Encoder(mx.gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.project, self.out = (mx.gluon.nn.Dense(units, flatten=False) for units in (48, 16))
            self.dropout = mx.gluon.nn.Dropout(0.0)

    def hybrid_forward(self, F, x, length):
        qkv = self.project(x)
        weights = F.softmax(F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=2), length, use_length=True)
        return x + self.out(F.contrib.interleaved_matmul_selfatt_valatt(qkv, self.dropout(weights), heads=2))


def test_a_network_end_to_end():
    results = []
    for hybrid in (False, True):
        mx.random.seed(1)
        net = Encoder()
        net.initialize(mx.init.Xavier())
        if hybrid:
            net.hybridize()
        x = nd.array(numbers(6, 3, 16, seed=1).numpy(), dtype="float32")
        length = nd.array(np.arange(36).reshape(6, 6) % 6 + 1, dtype="int32")
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
        x.attach_grad()
        for _ in range(3):
            with mx.autograd.record():
                loss = (net(x, length) ** 2).sum()
            loss.backward()
            trainer.step(6)
        results.append([loss.asnumpy(), x.grad.asnumpy(), *[p.data().asnumpy() for p in net.collect_params().values()], net(x, length).asnumpy()])
    assert "fusion: 1 x attention" in net._cached_op.handle.explain()
    for f, e in zip(*results):
        np.testing.assert_allclose(f, e, rtol=1e-4, atol=1e-5)


def test_no_scores_are_kept():
    module = module_of(selfatt(p=0.5))
    attention.apply(module)
    module.recompile()
    shapes = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: shapes.append(tuple(t.shape)) or t, lambda t: t):
        module(*inputs_of(selfatt()))
    assert shapes == [SHAPES["qkv"]]


def test_other_backends_get_the_operators():
    """The pass rewrites native's copy of the graph, not the one that OpenVINO converts."""
    runner = GraphRunner(selfatt())
    inputs = inputs_of(selfatt())
    runner(inputs, is_train=True)
    assert runner.reports[True, CPU] == ["fusion: 1 x attention"]
    assert names(runner.lowered(True, CPU, inputs)) == names(module_of(selfatt())) == 4


def test_several_are_counted_and_may_follow_one_another():
    symbol = same_thrice(same_thrice())
    module = module_of(symbol)
    assert attention.apply(module) == ["fusion: 2 x attention"]
    module.recompile()
    inputs = inputs_of(symbol)
    for f, e in zip(run(module, inputs), run(module_of(symbol), inputs)):
        torch.testing.assert_close(f, e, rtol=1e-12, atol=1e-12)


@pytest.fixture
def on_gpu(monkeypatch):
    """Torch's attention, as on a GPU; the list tells of its calls."""
    calls, function = [], attention._by_torch
    monkeypatch.setattr(attention, "_on_gpu", lambda sources: True)
    monkeypatch.setattr(attention.tensor_cores, "suits", lambda *sources: True)
    monkeypatch.setattr(attention, "_by_torch", lambda *a: calls.append(a[0]) or function(*a))
    return calls


def with_mask(scores):
    return S.broadcast_add(scores, S.var("mask"))


@pytest.mark.parametrize("make, special", [
    (selfatt, {}), (encdec, {}), (dots, {}), (lambda: encdec(lambda scores: scores * 0.5), {}),
    (lambda: dots(with_mask), {"mask": numbers(4, 12, 9, seed=5, dtype=torch.float32)}),
    (lambda: dots(with_mask), {"mask": numbers(1, 1, 9, seed=5, dtype=torch.float32)}),
    (lambda: encdec(with_mask), {"mask": numbers(1, 1, 9, seed=5, dtype=torch.float32)}),
    (lambda: encdec(with_mask), {"mask": numbers(4, 1, 9, seed=5, dtype=torch.float32)})])
def test_on_a_gpu_torchs_attention_is_called(make, special, on_gpu):
    symbol = make()
    inputs = inputs_of(symbol, torch.float32, **special)
    plain, module = module_of(symbol), module_of(symbol)
    assert attention.apply(module) == ["fusion: 1 x attention"]
    module.recompile()
    for found, expected in zip(run(module.forward, inputs), run(plain.forward, inputs)):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(module.forward(*inputs)[0], plain.forward(*inputs)[0], rtol=1e-4, atol=1e-5)
    assert len(on_gpu) == 2


class Operators(TorchDispatchMode):
    """Counts the operators that read or write memory."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name not in ("transpose", "permute", "view", "detach", "unbind", "_unsafe_view"):
            self.names.append(name)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("batch_first", [True, False])
def test_on_a_gpu_interleaved_projections_are_read_in_place(batch_first, on_gpu):
    module = module_of(selfatt())
    attention.apply(module)
    module.recompile()
    projections = numbers(*((4, 7) if batch_first else (7, 4)), 24, seed=1, dtype=torch.float32).requires_grad_()
    with Operators() as forward:
        out = module.forward(projections.transpose(0, 1) if batch_first else projections)[0]
    above = torch.ones(4, 7, 8).transpose(0, 1)
    with Operators() as backward:
        gradient, = torch.autograd.grad(out, projections, above)
    assert forward.names == ["_scaled_dot_product_flash_attention_for_cpu"]
    assert backward.names == ["_scaled_dot_product_flash_attention_for_cpu_backward", "stack"]
    assert out.shape == (7, 4, 8) and gradient.is_contiguous()


def test_on_a_gpu_too_gradients_can_be_differentiated_and_taken_again(on_gpu):
    symbol = dots()
    inputs, found = inputs_of(symbol, torch.float32), []
    plain, module = module_of(symbol), module_of(symbol)
    attention.apply(module)
    module.recompile()
    for forward in (module.forward, plain.forward):
        out = forward(*inputs)[0]
        again = [torch.autograd.grad(out.square().sum(), inputs[0], retain_graph=True)[0] for _ in range(2)]
        gradient, = torch.autograd.grad(out.square().sum(), inputs[0], create_graph=True)
        found.append([*again, gradient, *torch.autograd.grad(gradient.square().sum(), inputs)])
    for a, b in zip(*found):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    assert len(on_gpu) == 1


@pytest.mark.parametrize("make, change", [
    (lambda: dots(p=0.5), {}), (lambda: dots(lambda scores: scores, with_lengths), {"length": torch.full((4, 12), 5)}),
    (lambda: dots(with_mask), {"mask": numbers(4, 12, 9, seed=5, dtype=torch.float32).requires_grad_()})])
def test_on_a_gpu_the_operators_compute_what_torchs_attention_cannot(make, change, on_gpu, monkeypatch):
    monkeypatch.setattr(attention, "_suits", lambda *a: False)
    symbol = make()
    module = module_of(symbol)
    attention.apply(module)
    module.recompile()
    module.forward(*inputs_of(symbol, torch.float32, **change))
    assert not on_gpu
