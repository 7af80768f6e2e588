import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

RNG = np.random.default_rng(6)
X, Y = mx.sym.var("x"), mx.sym.var("y")


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape,reverse", [((0, -1), 0), ((-3, 0), 0), ((0, -4, 2, -1, 0), 0), ((-2,), 0), ((-1, 0), 1), ((0, 3, -1, -4, 0), 1),
                                           ((-1, -3), 1), ((0, 0, -2, 1), 0)])
def test_reshape_codes_for_fixed_and_for_varying_sizes(shape, reverse):
    sym = mx.sym.reshape(X, shape=shape, reverse=reverse)
    check(sym, {"x": real(4, 6, 5)})
    check(sym, {"x": real(4, 6, 5)}, varying=[(4, None, None)], others=[{"x": real(4, 12, 7)}])


def test_reshape_like_parts():
    check(mx.sym.reshape_like(X, Y, lhs_begin=0, lhs_end=2, rhs_begin=1, rhs_end=-1), {"x": real(2, 6, 5), "y": real(9, 4, 3, 9)})
    check(mx.sym.reshape_like(X, Y), {"x": real(2, 6), "y": real(3, 4)}, varying=[("N", 6), ("M", 4)], others=[{"x": real(4, 6), "y": real(6, 4)}])


@pytest.mark.parametrize("sym", [
    mx.sym.Flatten(X), mx.sym.transpose(X), mx.sym.transpose(X, axes=(1, 0, 2)), mx.sym.SwapAxis(X, dim1=0, dim2=2), mx.sym.expand_dims(X, axis=-1),
    mx.sym.tile(X, reps=(2, 1, 3, 2)), mx.sym.tile(X, reps=(2,)), mx.sym.repeat(X, repeats=2), mx.sym.repeat(X, repeats=3, axis=-2),
    mx.sym.reverse(X, axis=1), mx.sym.slice(X, begin=(None, 3, 4), end=(None, None, 0), step=(None, -1, -2)), mx.sym.slice(X, begin=(1,), end=(2,)),
    mx.sym.slice_axis(X, axis=-1, begin=-3, end=None), mx.sym.slice_axis(X, axis=0, begin=0, end=1), mx.sym.shape_array(X), mx.sym.size_array(X),
    mx.sym.split(X, num_outputs=2, axis=1), mx.sym.split_v2(X, (1, 3), axis=2), mx.sym.split(X, num_outputs=4, axis=1, squeeze_axis=True),
])
def test_one_input(sym):
    check(sym, {"x": real(2, 4, 5)}, varying=[("N", 4, 5)], others=[{"x": real(3, 4, 5)}])


def test_two_inputs():
    check(mx.sym.concat(X, Y, dim=-1), {"x": real(2, 3), "y": real(2, 4)})
    check(mx.sym.stack(X, Y, axis=-1), {"x": real(2, 3), "y": real(2, 3)})
    check(mx.sym.slice_like(X, Y, axes=(-1,)), {"x": real(2, 4), "y": real(1, 3)}, varying=[(2, 4), (None, None)],
          others=[{"x": real(2, 4), "y": real(4, 2)}])
    check(mx.sym.broadcast_like(X, Y), {"x": real(2, 1), "y": real(2, 3)}, varying=[(2, 1), (2, None)], others=[{"x": real(2, 1), "y": real(2, 7)}])
    check(mx.sym.broadcast_like(X, Y, lhs_axes=(1,), rhs_axes=(-1,)), {"x": real(2, 1), "y": real(5, 3)})
    check(mx.sym.Crop(X, Y, num_args=2, offset=(1, 2)), {"x": real(1, 2, 6, 7), "y": real(1, 1, 3, 4)})
    check(mx.sym.Crop(X, num_args=1, h_w=(3, 2), center_crop=True), {"x": real(1, 2, 6, 7)})


def test_broadcasts_and_blocks():
    check(mx.sym.broadcast_to(X, shape=(0, 3)), {"x": real(2, 1)}, varying=[(None, 1)], others=[{"x": real(5, 1)}])
    check(mx.sym.broadcast_axis(X, axis=(0, 2), size=(2, 3)), {"x": real(1, 4, 1)})
    check(mx.sym.depth_to_space(X, block_size=2), {"x": real(1, 4, 2, 3)})
    check(mx.sym.space_to_depth(X, block_size=2), {"x": real(1, 1, 4, 6)})
    check(mx.sym.squeeze(X), {"x": real(1, 3, 1)})
    check(mx.sym.squeeze(X, axis=0), {"x": real(1, 3, 1)})


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad(mode):
    check(mx.sym.pad(X, mode=mode, pad_width=(0, 0, 0, 0, 1, 2, 2, 1), constant_value=7), {"x": real(1, 2, 4, 4)})


def test_a_split_of_a_varying_size_is_refused():
    with pytest.raises(mx.MXNetError, match=r"SliceChannel 's' cannot be written to an ONNX file: axis 1, which is split, has a size that may vary"):
        check(mx.sym.split(X, num_outputs=2, name="s"), {"x": real(2, 4)}, varying=[(2, None)])
