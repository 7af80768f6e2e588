"""Operators on images: the `mx.nd.image` family, and OpenCV's decoding, resizing and padding (`_cv*`).

Images are (H, W, C), or (N, H, W, C) where an operator takes batches; `to_tensor` turns them into (C, H, W).
"""
from . import color_jitter, opencv, transforms
