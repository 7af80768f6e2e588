import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

X, LENGTHS = mx.sym.var("x"), mx.sym.var("lengths")
VALUES = np.arange(1, 25, dtype=np.float32).reshape(4, 3, 2)


@pytest.mark.parametrize("name", ["SequenceMask", "SequenceLast"])
@pytest.mark.parametrize("axis", [0, 1])
def test_along_each_axis(name, axis):
    lengths = np.array([4, 1, 2] if axis == 0 else [3, 1, 2, 2], np.float32)
    extra = {"value": -7} if name == "SequenceMask" else {}
    check(getattr(mx.sym, name)(X, LENGTHS, use_sequence_length=True, axis=axis, **extra), {"x": VALUES, "lengths": lengths})
    check(getattr(mx.sym, name)(X, axis=axis), {"x": VALUES})


def test_masks_of_varying_length():
    sym = mx.sym.SequenceMask(X, LENGTHS, use_sequence_length=True)
    check(sym, {"x": VALUES, "lengths": np.array([4, 1, 2], np.float32)}, varying=[("T", "N", 2), ("N",)],
          others=[{"x": np.ones((6, 2, 2), np.float32), "lengths": np.array([5, 2], np.float32)}])


def test_reversed_sequences():
    check(mx.sym.SequenceReverse(X), {"x": VALUES})
    check(mx.sym.SequenceReverse(X, LENGTHS, use_sequence_length=True), {"x": VALUES, "lengths": np.array([4, 1, 2], np.float32)})
