import numpy as np
import pytest

import mxnet as mx
from mxnet.onnx.mx2onnx.sizes import entry_shapes, entry_types


def shape_of(sym, example, declared, parameters=None):
    return entry_shapes(sym.handle, example, parameters or {}, declared)[id(sym.handle[0][0]), 0]


def test_sizes_that_vary_with_the_inputs_are_none():
    x = mx.sym.var("x")
    sym = mx.sym.transpose(mx.sym.tile(x, reps=(2, 1)))
    assert shape_of(sym, {"x": (3, 4)}, {"x": (3, 4)}) == (4, 6)
    assert shape_of(sym, {"x": (3, 4)}, {"x": ("N", 4)}) == (4, None)


def test_sizes_that_the_network_fixes_stay():
    sym = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=5, name="fc")
    assert shape_of(sym, {"x": (3, 4)}, {"x": (None, None)}, {"fc_weight": (5, 4), "fc_bias": (5,)}) == (None, 5)


def test_sizes_that_belong_together_change_together():
    sym = mx.sym.var("x") + mx.sym.var("y")
    assert shape_of(sym, {"x": (3, 4), "y": (3, 4)}, {"x": ("N", 4), "y": ("N", 4)}) == (None, 4)
    # No other size than a smaller one fits here.
    cut = mx.sym.slice_like(mx.sym.var("x"), mx.sym.var("y"))
    assert shape_of(cut, {"x": (3, 4), "y": (3, 4)}, {"x": (3, 4), "y": (None, 4)}) == (None, 4)


def test_shapes_that_do_not_fit_or_do_not_suffice():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    with pytest.raises(mx.MXNetError, match="elemwise_add"):
        shape_of(x + y, {"x": (3, 4), "y": (2, 4)}, {"x": (3, 4), "y": (2, 4)})
    with pytest.raises(mx.MXNetError, match="the shape of output 0 of 'y' does not follow from the shapes of the inputs"):
        shape_of(mx.sym.dot(x, y), {"x": (3, 4)}, {"x": (3, 4)})


def test_types():
    x = mx.sym.var("x")
    sym = mx.sym.cast(x, dtype="float16")
    types = entry_types(sym.handle, {"x": np.dtype("int64")}, {})
    assert sorted(str(t) for t in types.values()) == ["float16", "int64"]
