"""Triton kernels of `batch_norm_on_gpu`, over rows of channels. The module imports triton, so it is imported at the first use only.

A program processes a block of channels and a part of the rows tile by tile and writes the part's sums; a second kernel joins the parts of each
channel in a fixed order, so that results are deterministic. Sums are float32. The forward pass shifts the data by the first row of each part, and
joins the means and sums of squares by the method of Chan, Golub and LeVeque (1983): a mean far from zero loses no precision. The sums process two
tiles in each iteration, for twice the memory in flight. Offsets within a tile have 32 bits, those of tiles 64.
"""
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows", "part_rows"])
def statistics(data, sums, rows, channels, part_rows, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
    """Write the mean of each part of the rows, and the sum of the squares around it: `sums` is (2, parts, channels)."""
    part = tl.program_id(1)
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    r = tl.arange(0, ROWS)
    inside = c < channels
    first = part * part_rows
    count = tl.minimum(rows - first, part_rows)
    source = data + first.to(tl.int64) * channels
    tile = r[:, None] * channels + c[None, :]
    around = tl.load(source + c, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros((ROWS, CHANNELS), tl.float32)
    square = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in range(0, count, 2 * ROWS):
        there = (start + r < count)[:, None] & inside[None, :]
        below = (start + ROWS + r < count)[:, None] & inside[None, :]
        value = tl.load(source + tile, mask=there, other=0.0)
        next_value = tl.load(source + ROWS * channels + tile, mask=below, other=0.0)
        value = tl.where(there, value.to(tl.float32) - around[None, :], 0.0)
        next_value = tl.where(below, next_value.to(tl.float32) - around[None, :], 0.0)
        total += value + next_value
        square += value * value + next_value * next_value
        source += 2 * ROWS * channels
    whole = tl.sum(total, 0)
    shift = whole / count.to(tl.float32)
    here = sums + part * channels + c
    tl.store(here, around + shift, mask=inside)
    tl.store(here + tl.num_programs(1) * channels, tl.maximum(tl.sum(square, 0) - whole * shift, 0.0), mask=inside)


@triton.jit(do_not_specialize=["rows", "part_rows", "parts"])
def join_statistics(sums, bias, moving_mean, moving_var, mean, inverse, rows, channels, part_rows, parts, eps, momentum,
                    BIASED: tl.constexpr, PARTS: tl.constexpr, CHANNELS: tl.constexpr):
    """Write the mean and ``1 / sqrt(var + eps)`` of each channel and update the moving moments, as if `bias` had been added to the data."""
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    p = tl.arange(0, PARTS)
    inside = c < channels
    there = (p < parts)[:, None] & inside[None, :]
    count = tl.where(p < parts, tl.minimum(rows - p * part_rows, part_rows), 0).to(tl.float32)[:, None]
    place = p[:, None] * channels + c[None, :]
    around = tl.load(sums + c, mask=inside, other=0.0)
    away = tl.where(there, tl.load(sums + place, mask=there, other=0.0) - around[None, :], 0.0)
    spread = tl.load(sums + parts * channels + place, mask=there, other=0.0)
    size = rows.to(tl.float32)
    shift = tl.sum(away * count, 0) / size
    away = tl.where(there, away - shift[None, :], 0.0)
    var = tl.sum(spread + away * away * count, 0) / size
    average = around + shift
    tl.store(mean + c, average, mask=inside)
    tl.store(inverse + c, tl.where(var + eps == 0.0, 0.0, 1.0 / tl.sqrt(var + eps)), mask=inside)
    if BIASED:
        average += tl.load(bias + c, mask=inside, other=0.0).to(tl.float32)
    old_mean = tl.load(moving_mean + c, mask=inside, other=0.0)
    old_var = tl.load(moving_var + c, mask=inside, other=0.0)
    tl.store(moving_mean + c, old_mean * momentum + average * (1 - momentum), mask=inside)
    tl.store(moving_var + c, old_var * momentum + var * (1 - momentum), mask=inside)


@triton.jit(do_not_specialize=["rows", "part_rows"])
def normalize(data, residual, gamma, beta, mean, inverse, out, rows, channels, part_rows, SCALED: tl.constexpr, ADDS: tl.constexpr,
              RECTIFIES: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
    """Write ``relu((data - mean) * inverse * gamma + beta + residual)``, last part first, as its rows are still cached."""
    part = tl.num_programs(1) - 1 - tl.program_id(1)
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    r = tl.arange(0, ROWS)
    inside = c < channels
    first = part * part_rows
    count = tl.minimum(rows - first, part_rows)
    offset = first.to(tl.int64) * channels
    tile = r[:, None] * channels + c[None, :]
    scale = tl.load(inverse + c, mask=inside, other=0.0)
    if SCALED:
        scale *= tl.load(gamma + c, mask=inside, other=0.0)
    average = tl.load(mean + c, mask=inside, other=0.0)
    shift = tl.load(beta + c, mask=inside, other=0.0)
    source = data + offset
    added = residual + offset
    target = out + offset
    for start in range(0, count, ROWS):
        there = (start + r < count)[:, None] & inside[None, :]
        value = tl.load(source + tile, mask=there, other=0.0).to(tl.float32)
        value = (value - average[None, :]) * scale[None, :] + shift[None, :]
        if ADDS:
            value += tl.load(added + tile, mask=there, other=0.0).to(tl.float32)
        if RECTIFIES:
            value = tl.where(value <= 0.0, 0.0, value)  # a NaN stays one
        tl.store(target + tile, value.to(out.dtype.element_ty), mask=there)
        source += ROWS * channels
        added += ROWS * channels
        target += ROWS * channels


@triton.jit(do_not_specialize=["rows", "part_rows"])
def gradient_sums(dout, data, out, gamma, beta, mean, inverse, kept, sums, rows, channels, part_rows, SCALED: tl.constexpr,
                  RECTIFIES: tl.constexpr, ADDS: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
    """Write for each part of the rows the sums of the gradient and of its products with ``data - mean``: `sums` is (2, parts, channels).

    The ReLU's gradient is 0 where its result was 0: with `ADDS` the mask comes from `out`, and the masked gradient is written to `kept`.
    """
    part = tl.program_id(1)
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    r = tl.arange(0, ROWS)
    inside = c < channels
    first = part * part_rows
    count = tl.minimum(rows - first, part_rows)
    offset = first.to(tl.int64) * channels
    tile = r[:, None] * channels + c[None, :]
    scale = tl.load(inverse + c, mask=inside, other=0.0)
    if SCALED:
        scale *= tl.load(gamma + c, mask=inside, other=0.0)
    average = tl.load(mean + c, mask=inside, other=0.0)
    shift = tl.load(beta + c, mask=inside, other=0.0)
    coming = dout + offset
    source = data + offset
    result = out + offset
    target = kept + offset
    total = tl.zeros((ROWS, CHANNELS), tl.float32)
    product = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in range(0, count, 2 * ROWS):
        there = (start + r < count)[:, None] & inside[None, :]
        below = (start + ROWS + r < count)[:, None] & inside[None, :]
        change = tl.load(coming + tile, mask=there, other=0.0)
        next_change = tl.load(coming + ROWS * channels + tile, mask=below, other=0.0)
        value = tl.load(source + tile, mask=there, other=0.0)
        next_value = tl.load(source + ROWS * channels + tile, mask=below, other=0.0)
        if RECTIFIES and ADDS:
            before = tl.load(result + tile, mask=there, other=0.0)
            next_before = tl.load(result + ROWS * channels + tile, mask=below, other=0.0)
            change = tl.where(before <= 0.0, 0.0, change)
            next_change = tl.where(next_before <= 0.0, 0.0, next_change)
            tl.store(target + tile, change, mask=there)
            tl.store(target + ROWS * channels + tile, next_change, mask=below)
        value = value.to(tl.float32) - average[None, :]
        next_value = next_value.to(tl.float32) - average[None, :]
        change = change.to(tl.float32)
        next_change = next_change.to(tl.float32)
        if RECTIFIES and not ADDS:
            change = tl.where(value * scale[None, :] + shift[None, :] <= 0.0, 0.0, change)
            next_change = tl.where(next_value * scale[None, :] + shift[None, :] <= 0.0, 0.0, next_change)
        total += change + next_change
        product += change * value + next_change * next_value
        coming += 2 * ROWS * channels
        source += 2 * ROWS * channels
        result += 2 * ROWS * channels
        target += 2 * ROWS * channels
    here = sums + part * channels + c
    tl.store(here, tl.sum(total, 0), mask=inside)
    tl.store(here + tl.num_programs(1) * channels, tl.sum(product, 0), mask=inside)


@triton.jit(do_not_specialize=["parts"])
def join_gradient_sums(sums, inverse, dgamma, dbeta, dbias, channels, parts, BIASED: tl.constexpr, PARTS: tl.constexpr,
                       CHANNELS: tl.constexpr):
    """Write the gradients of gamma and beta, and zeros as that of the bias."""
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    p = tl.arange(0, PARTS)
    inside = c < channels
    there = (p < parts)[:, None] & inside[None, :]
    place = p[:, None] * channels + c[None, :]
    total = tl.sum(tl.load(sums + place, mask=there, other=0.0), 0)
    product = tl.sum(tl.load(sums + parts * channels + place, mask=there, other=0.0), 0)
    tl.store(dbeta + c, total, mask=inside)
    tl.store(dgamma + c, product * tl.load(inverse + c, mask=inside, other=0.0), mask=inside)
    if BIASED:
        tl.store(dbias + c, tl.zeros((CHANNELS,), tl.float32).to(dbias.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["rows", "part_rows"])
def gradient(dout, data, gamma, beta, mean, inverse, dgamma, dbeta, dx, rows, channels, part_rows, SCALED: tl.constexpr, RECTIFIES: tl.constexpr,
             ROWS: tl.constexpr, CHANNELS: tl.constexpr):
    """Write the gradient of the data; with `RECTIFIES` (no residual) `dout` counts as 0 where the recomputed ReLU is 0."""
    part = tl.num_programs(1) - 1 - tl.program_id(1)
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    r = tl.arange(0, ROWS)
    inside = c < channels
    first = part * part_rows
    count = tl.minimum(rows - first, part_rows)
    offset = first.to(tl.int64) * channels
    tile = r[:, None] * channels + c[None, :]
    deviation = tl.load(inverse + c, mask=inside, other=0.0)
    scale = deviation
    if SCALED:
        scale *= tl.load(gamma + c, mask=inside, other=0.0)
    average = tl.load(mean + c, mask=inside, other=0.0)
    shift = tl.load(beta + c, mask=inside, other=0.0)
    size = rows.to(tl.float32)
    constant = tl.load(dbeta + c, mask=inside, other=0.0) / size
    slope = tl.load(dgamma + c, mask=inside, other=0.0) * deviation / size
    coming = dout + offset
    source = data + offset
    target = dx + offset
    for start in range(0, count, ROWS):
        there = (start + r < count)[:, None] & inside[None, :]
        change = tl.load(coming + tile, mask=there, other=0.0).to(tl.float32)
        value = tl.load(source + tile, mask=there, other=0.0).to(tl.float32) - average[None, :]
        if RECTIFIES:
            change = tl.where(value * scale[None, :] + shift[None, :] <= 0.0, 0.0, change)
        value = scale[None, :] * (change - constant[None, :] - value * slope[None, :])
        tl.store(target + tile, value.to(dx.dtype.element_ty), mask=there)
        coming += ROWS * channels
        source += ROWS * channels
        target += ROWS * channels
