"""Triton kernels of `bias_on_gpu`, over rows of channels. The module imports triton, so it is imported at the first use only.

Programs share the rows, and the sums of parts are joined in a fixed order, as in `batch_norm_triton`. Sums are float32.
"""
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows", "part_rows"])
def add_bias(data, bias, rows, channels, part_rows, RECTIFIES: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
    """Overwrite the data by ``relu(data + bias)``, last part first, as its rows are still cached."""
    part = tl.num_programs(1) - 1 - tl.program_id(1)
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    r = tl.arange(0, ROWS)
    inside = c < channels
    first = part * part_rows
    count = tl.minimum(rows - first, part_rows)
    tile = r[:, None] * channels + c[None, :]
    shift = tl.load(bias + c, mask=inside, other=0.0).to(tl.float32)
    place = data + first.to(tl.int64) * channels
    for start in range(0, count, ROWS):
        there = (start + r < count)[:, None] & inside[None, :]
        value = tl.load(place + tile, mask=there, other=0.0).to(tl.float32) + shift[None, :]
        if RECTIFIES:
            value = tl.where(value <= 0.0, 0.0, value)  # a NaN stays one
        tl.store(place + tile, value.to(data.dtype.element_ty), mask=there)
        place += ROWS * channels


@triton.jit(do_not_specialize=["rows", "part_rows"])
def gradient_sums(dout, out, dx, sums, rows, channels, part_rows, RECTIFIES: tl.constexpr, WRITES: tl.constexpr, ROWS: tl.constexpr,
                  CHANNELS: tl.constexpr):
    """Write the sum of the gradient over each part of the rows: `sums` is (parts, channels).

    With `RECTIFIES` the gradient counts as 0 where the ReLU's result `out` is 0; with `WRITES` that gradient is written to `dx`. The last part is
    first, as its rows are still cached. An iteration processes two tiles, for twice the memory in flight.
    """
    part = tl.num_programs(1) - 1 - tl.program_id(1)
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    r = tl.arange(0, ROWS)
    inside = c < channels
    first = part * part_rows
    count = tl.minimum(rows - first, part_rows)
    offset = first.to(tl.int64) * channels
    tile = r[:, None] * channels + c[None, :]
    below = ROWS * channels
    coming = dout + offset
    result = out + offset
    target = dx + offset
    total = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in range(0, count, 2 * ROWS):
        there = (start + r < count)[:, None] & inside[None, :]
        next_there = (start + ROWS + r < count)[:, None] & inside[None, :]
        change = tl.load(coming + tile, mask=there, other=0.0)
        next_change = tl.load(coming + below + tile, mask=next_there, other=0.0)
        if RECTIFIES:
            value = tl.load(result + tile, mask=there, other=0.0)
            next_value = tl.load(result + below + tile, mask=next_there, other=0.0)
            change = tl.where(value <= 0.0, 0.0, change)
            next_change = tl.where(next_value <= 0.0, 0.0, next_change)
        if WRITES:
            tl.store(target + tile, change, mask=there)
            tl.store(target + below + tile, next_change, mask=next_there)
        total += change.to(tl.float32) + next_change.to(tl.float32)
        coming += 2 * below
        result += 2 * below
        target += 2 * below
    tl.store(sums + part * channels + c, tl.sum(total, 0), mask=inside)


@triton.jit(do_not_specialize=["parts"])
def join_gradient_sums(sums, dbias, channels, parts, PARTS: tl.constexpr, CHANNELS: tl.constexpr):
    """Write the gradient of the bias: the sums of all parts."""
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    p = tl.arange(0, PARTS)
    inside = c < channels
    there = (p < parts)[:, None] & inside[None, :]
    total = tl.sum(tl.load(sums + p[:, None] * channels + c[None, :], mask=there, other=0.0), 0)
    tl.store(dbias + c, total.to(dbias.dtype.element_ty), mask=inside)
