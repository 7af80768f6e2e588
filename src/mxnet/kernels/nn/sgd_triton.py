"""The Triton kernel of `sgd_on_gpu`. The module imports triton, so it is imported at the first use only.

A program updates a piece of a weight. Its row of `table` has the addresses of weight, gradient, momentum and copy, and the number of elements of the
piece.
"""
import triton
import triton.language as tl


@triton.jit
def _address(place, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    address = tl.load(place).to(tl.pointer_type(TYPE))
    return tl.multiple_of(address, 16) if ALIGNED else address


@triton.jit
def move(table, momentum, rate, decay, scale, clip, GRADIENT: tl.constexpr, REMEMBERS: tl.constexpr, COPIES: tl.constexpr, CLIPS: tl.constexpr,
         DECAYS: tl.constexpr, ALIGNED: tl.constexpr, PIECE: tl.constexpr, BLOCK: tl.constexpr):
    """Update ``mom = momentum * mom - rate * clip(scale * grad) - decay * weight``, ``weight += mom``; the copy has the gradient's type."""
    row = table + tl.program_id(0).to(tl.int64) * 5
    weight = _address(row, tl.float32, ALIGNED)
    gradient = _address(row + 1, GRADIENT, ALIGNED)
    moment = _address(row + 2, tl.float32, ALIGNED)
    copy = _address(row + 3, GRADIENT, ALIGNED)
    count = tl.load(row + 4).to(tl.int32)
    for start in range(0, PIECE, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < count
        w = tl.load(weight + at, mask=inside, other=0.0)
        g = tl.load(gradient + at, mask=inside, other=0.0).to(tl.float32) * scale
        if CLIPS:  # by comparisons, so that NaN stays
            g = tl.where(g > clip, clip, g)
            g = tl.where(g < -clip, -clip, g)
        change = -rate * g
        if REMEMBERS:
            change += momentum * tl.load(moment + at, mask=inside, other=0.0)
        if DECAYS:
            change -= decay * w
        if REMEMBERS:
            tl.store(moment + at, change, mask=inside)
        w += change
        tl.store(weight + at, w, mask=inside)
        if COPIES:
            tl.store(copy + at, w.to(GRADIENT), mask=inside)
