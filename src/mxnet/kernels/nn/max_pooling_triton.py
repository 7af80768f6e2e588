"""Triton kernels of `max_pooling_on_gpu`, over images with their channels last. The module imports triton, so it is imported at the first use only.

A program processes a tile of pixels and channels. Divisions of pixels' numbers are made once a row of the tile. Numbers of pixels have 32 bits,
offsets of elements 64.
"""
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["pixels", "height", "width", "rows", "columns"])
def max_pool(data, bias, out, marks, channels, pixels, height, width, rows, columns, KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr,
             STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr, PAD_H: tl.constexpr, PAD_W: tl.constexpr, PIXELS: tl.constexpr,
             CHANNELS: tl.constexpr, ADDS: tl.constexpr, RECTIFIES: tl.constexpr):
    """Write ``relu(largest value of each window + bias)``, and 1 + the value's offset in the window, or 0 where the ReLU's result is 0.

    The value is the first largest one, or the last NaN, as torch's is.
    """
    across = tl.cdiv(channels, CHANNELS)
    c = tl.program_id(0) % across * CHANNELS + tl.arange(0, CHANNELS)
    pixel = tl.program_id(0) // across * PIXELS + tl.arange(0, PIXELS)
    inside = (c < channels)[None, :]
    there = pixel < pixels
    top = pixel // columns % rows * STRIDE_H - PAD_H
    left = pixel % columns * STRIDE_W - PAD_W
    image = pixel // columns // rows
    place = data + (((image * height + top) * width + left).to(tl.int64)[:, None] * channels + c[None, :])
    best = tl.full((PIXELS, CHANNELS), float("-inf"), tl.float32)
    first = tl.maximum(-top, 0) * KERNEL_W + tl.maximum(-left, 0)  # in the data, for windows of -inf
    offset = tl.zeros((PIXELS, CHANNELS), tl.int32) + first[:, None]
    for i in tl.static_range(KERNEL_H):
        for j in tl.static_range(KERNEL_W):
            in_data = there & (top + i >= 0) & (top + i < height) & (left + j >= 0) & (left + j < width)
            value = tl.load(place + (width.to(tl.int64) * i + j) * channels, mask=in_data[:, None] & inside, other=float("-inf")).to(tl.float32)
            larger = (value > best) | (value != value)
            best = tl.where(larger, value, best)
            offset = tl.where(larger, i * KERNEL_W + j, offset)
    result = pixel.to(tl.int64)[:, None] * channels + c[None, :]
    mark = offset + 1
    if ADDS:
        best += tl.load(bias + c, mask=c < channels, other=0.0).to(tl.float32)[None, :]
    best = best.to(out.dtype.element_ty).to(tl.float32)
    if RECTIFIES:
        mark = tl.where(best <= 0.0, 0, mark)
        best = tl.where(best <= 0.0, 0.0, best)  # a NaN stays one
    tl.store(out + result, best.to(out.dtype.element_ty), mask=there[:, None] & inside)
    tl.store(marks + result, mark.to(tl.uint8), mask=there[:, None] & inside)


@triton.jit(do_not_specialize=["cells", "cell_rows", "cell_columns", "height", "width", "rows", "columns"])
def max_pool_gradient(dout, marks, dx, channels, cells, cell_rows, cell_columns, height, width, rows, columns, KERNEL_H: tl.constexpr,
                      KERNEL_W: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr, PAD_H: tl.constexpr, PAD_W: tl.constexpr,
                      PIXELS: tl.constexpr, CHANNELS: tl.constexpr):
    """Write the gradient of the data: for each pixel the sum over the windows in which it is the largest.

    The padded data is divided into cells of a stride's size, each of which begins where a window does. So which windows cover a pixel, and at which
    offset, depends on its place in the cell only, and is known to the compiler.
    """
    across = tl.cdiv(channels, CHANNELS)
    c = tl.program_id(0) % across * CHANNELS + tl.arange(0, CHANNELS)
    cell = tl.program_id(0) // across * PIXELS + tl.arange(0, PIXELS)
    inside = (c < channels)[None, :]
    there = cell < cells
    row = cell // cell_columns % cell_rows
    column = cell % cell_columns
    image = cell // cell_columns // cell_rows
    window = ((image * rows + row) * columns + column).to(tl.int64)[:, None] * channels + c[None, :]
    top = row * STRIDE_H - PAD_H
    left = column * STRIDE_W - PAD_W
    target = dx + (((image * height + top) * width + left).to(tl.int64)[:, None] * channels + c[None, :])
    exists = (there & (row < rows) & (column < columns))[:, None] & inside
    own_mark = tl.load(marks + window, mask=exists, other=0)  # of the window that begins where the cell does: all its pixels may be covered
    own_change = tl.load(dout + window, mask=exists, other=0.0).to(tl.float32)
    for a in tl.static_range(STRIDE_H):
        for b in tl.static_range(STRIDE_W):
            total = tl.zeros((PIXELS, CHANNELS), tl.float32)
            for t in tl.static_range((KERNEL_H - a + STRIDE_H - 1) // STRIDE_H):
                for u in tl.static_range((KERNEL_W - b + STRIDE_W - 1) // STRIDE_W):
                    at = 1 + (a + t * STRIDE_H) * KERNEL_W + b + u * STRIDE_W
                    if t + u == 0:
                        total += tl.where(own_mark == at, own_change, 0.0)
                    else:
                        exists = (there & (row >= t) & (row - t < rows) & (column >= u) & (column - u < columns))[:, None] & inside
                        place = window - (columns.to(tl.int64) * t + u) * channels
                        mark = tl.load(marks + place, mask=exists, other=0)
                        change = tl.load(dout + place, mask=exists, other=0.0).to(tl.float32)
                        total += tl.where(mark == at, change, 0.0)
            in_data = there & (top + a >= 0) & (top + a < height) & (left + b >= 0) & (left + b < width)
            tl.store(target + (width.to(tl.int64) * a + b) * channels, total.to(dx.dtype.element_ty), mask=in_data[:, None] & inside)
