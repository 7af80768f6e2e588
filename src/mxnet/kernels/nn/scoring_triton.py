"""Triton kernels of `scoring_on_gpu`, over images with their channels last. The module imports triton, so it is imported at the first use only.

A program computes a block of consecutive results in float32 and rounds once.
"""
import triton
import triton.language as tl


@triton.jit
def finish(data, scale, shift, residual, out, total, channels, ceiling, SCALES: tl.constexpr, ADDS: tl.constexpr, RECTIFIES: tl.constexpr,
           LIMITS: tl.constexpr, BLOCK: tl.constexpr):
    """Write ``relu(data * scale + shift + residual)``; `out` may be `data`."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < total
    channel = place % channels
    value = tl.load(data + place, mask=inside, other=0.0).to(tl.float32)
    if SCALES:
        value = value * tl.load(scale + channel, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(shift + channel, mask=inside, other=0.0).to(tl.float32)
    if ADDS:
        value += tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
    if RECTIFIES:
        value = tl.where(value < 0.0, 0.0, value)  # NaN stays
    if LIMITS:
        value = tl.where(value > ceiling, ceiling, value)
    tl.store(out + place, value.to(out.dtype.element_ty), mask=inside)


@triton.jit
def max_pool(data, out, total, channels, height, width, rows, columns, KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr, STRIDE_H: tl.constexpr,
             STRIDE_W: tl.constexpr, PAD_H: tl.constexpr, PAD_W: tl.constexpr, BLOCK: tl.constexpr):
    """Write the largest value of each window."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < total
    channel = place % channels
    pixel = place // channels
    top = (pixel // columns) % rows * STRIDE_H - PAD_H
    left = pixel % columns * STRIDE_W - PAD_W
    image = pixel // columns // rows * height
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for i in tl.static_range(KERNEL_H):
        for j in tl.static_range(KERNEL_W):
            there = inside & (top + i >= 0) & (top + i < height) & (left + j >= 0) & (left + j < width)
            value = tl.load(data + ((image + top + i) * width + left + j) * channels + channel, mask=there, other=float("-inf")).to(tl.float32)
            best = tl.where((value > best) | (value != value), value, best)  # NaN counts as the largest
    tl.store(out + place, best.to(out.dtype.element_ty), mask=inside)
