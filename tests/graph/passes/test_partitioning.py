import gc
import linecache

import torch

import mxnet as mx
from mxnet.graph import lower
from mxnet.graph.passes import partitioning
from mxnet.graph.program import Program, calls
from mxnet.ops import get


def program(symbol, *inputs, weights=()):
    return Program(lower(symbol.handle, False, torch.device("cpu")), list(inputs), weights)


def accepts(*names):
    return lambda node: calls(node, *map(get, names))


X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def test_what_a_backend_takes_becomes_few_pieces():
    x = mx.sym.var("x")
    p = program(mx.sym.exp(mx.sym.negative(mx.sym.sqrt(mx.sym.square(x)))), X)
    pieces = partitioning.partition(p, accepts("square", "sqrt", "exp"))
    assert sorted(len([n for n in piece.graph.nodes if n.op == "call_function"]) for piece in pieces.values()) == [1, 2]
    assert [n.op for n in p.graph.nodes] == ["placeholder", "call_module", "call_function", "call_module", "output"]
    torch.testing.assert_close(p.module(X)[0], torch.exp(-X))


def test_a_piece_knows_its_inputs_and_which_of_them_are_fixed():
    x, w = mx.sym.var("x"), mx.sym.var("w")
    p = program(mx.sym.dot(mx.sym.negative(x), w), X, torch.eye(2), weights={1})
    piece, = partitioning.partition(p, accepts("dot")).values()
    assert [tuple(t.shape) for t in piece.inputs] == [(2, 2), (2, 2)] and piece.weights == {1}
    assert piece.constants[piece.placeholders[1]].tolist() == [[1, 0], [0, 1]]
    assert [tuple(piece.values[n].shape) for n in piece.outputs] == [(2, 2)]


def test_pieces_that_are_not_worth_it_stay():
    x = mx.sym.var("x")
    p = program(mx.sym.dot(x, x), X)
    assert partitioning.partition(p, accepts("dot"), lambda nodes: False) == {}
    assert [calls(n, get("dot")) for n in p.graph.nodes if n.op == "call_function"] == [True]
    assert list(partitioning.partition(program(mx.sym.dot(x, x), X), accepts("dot"), partitioning.worthwhile)) == ["part0"]


def test_only_what_computes_much_is_worthwhile():
    def found(symbol, *inputs):
        return partitioning.worthwhile([n for n in program(symbol, *inputs).graph.nodes if n.op == "call_function"])

    x = mx.sym.var("x")
    assert not found(mx.sym.exp(x) + 1, X)
    assert found(mx.sym.exp(mx.sym.dot(x, x)), X)
    assert found(mx.sym.softmax(x), X)


def test_a_function_takes_the_place_of_a_piece():
    x = mx.sym.var("x")
    p = program(mx.sym.negative(mx.sym.exp(x)), X)
    (name, piece), = partitioning.partition(p, accepts("exp")).items()
    seen = []

    def run(*inputs):
        seen.append(len(inputs))
        return [inputs[0] * 100]

    partitioning.replace(p, name, piece, run)
    p.module.recompile()
    assert p.module(X)[0].tolist() == [[-100, -200], [-300, -400]] and seen == [1]
    assert not hasattr(p.module, name)


def test_sources_end_with_their_modules():
    def work():
        p = program(mx.sym.exp(mx.sym.negative(mx.sym.sqrt(mx.sym.square(mx.sym.var("x"))))), X)
        partitioning.partition(p, accepts("square", "sqrt", "exp"))
        p.module.recompile()
        p.module(X)
        gc.collect()
        return set(linecache.cache) - before

    from torch.fx.graph_module import _loader
    before = set(linecache.cache)
    first = work()
    assert first
    gc.collect()
    assert not [name for name in _loader.eval_cache if name not in before]
    assert first <= set(linecache.cache)  # somebody may be going through it while garbage is collected
    second = work()
    assert second and not first & set(linecache.cache)
