import pytest

import mxnet as mx
from mxnet.gluon.nested import flatten, has_arrays_only, kinds_and_contexts, regroup


def test_flatten_andregroup():
    a, b = mx.nd.ones((1,)), mx.nd.ones((2,))
    flat, fmt = flatten((a, [b, None], []), "input")
    assert fmt == [0, [0, -1], []] and flat[0] is a and flat[1] is b and flat[2] is None
    assert regroup(flat, fmt) == [a, [b, None], []]
    pair = mx.sym.split(mx.sym.var("x"), num_outputs=2)
    assert flatten([pair, pair[0]], "output")[1] == [2, 0]
    assert regroup([1, 2, 3], [2, 0]) == [[1, 2], 3]
    with pytest.raises(ValueError, match=r"lists of them; received as input: 3, <class 'int'>"):
        flatten([a, 3], "input")
    with pytest.raises(ValueError, match="was None when the block was traced must stay None, received"):
        regroup([a, b], [0, -1])
    with pytest.raises(ValueError, match="Unsupported encoded format -2"):
        regroup([a], [-2])


def test_formats_of_arrays_only():
    assert has_arrays_only([0, [0, [0]]]) and has_arrays_only(0)
    assert not has_arrays_only([0, [-1]]) and not has_arrays_only([2])


def test_kinds_and_contexts():
    a, b = mx.nd.ones((1,), ctx=mx.cpu(1)), mx.nd.ones((1,))
    assert kinds_and_contexts([None, [a, (b,)]]) == (False, True, {mx.cpu(0), mx.cpu(1)}, mx.cpu(1))
    assert kinds_and_contexts([mx.sym.var("x"), a]) == (True, True, {mx.cpu(1)}, mx.cpu(1))
    assert kinds_and_contexts(3) == (False, False, set(), None)


def test_the_names_of_mxnet():
    block = mx.gluon.block
    assert (block._flatten, block._regroup, block._gather_type_ctx_info) == (flatten, regroup, kinds_and_contexts)
