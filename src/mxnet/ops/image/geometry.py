"""Sizes of resized images, and the methods of resizing."""
import random
from typing import Any, Optional

# OpenCV's numbers, which are MXNet's too.
NEAREST, LINEAR, CUBIC, AREA, LANCZOS = range(5)
METHODS = (NEAREST, LINEAR, CUBIC, AREA, LANCZOS)
BY_SIZES, AT_RANDOM = 9, 10  # MXNet's own


def shorter_side(height: int, width: int, size: int) -> tuple[int, int]:
    """Return (height, width) scaled so that the shorter side is `size`; the other side is rounded down.

    Example
    -------
    >>> shorter_side(480, 640, 240)
    (240, 320)
    """
    return (size * height // width, size) if height > width else (size, size * width // height)


def interpolation(method: int, old: Optional[tuple[int, int]] = None, new: Optional[tuple[int, int]] = None, rng: Any = random) -> int:
    """OpenCV's number for MXNet's `inter_method`.

    Parameters
    ----------
    method : int
        0 to 4 are OpenCV's: nearest, linear, cubic, area, Lanczos. 9 chooses by the sizes: cubic to enlarge, area to shrink, else linear.
        10 chooses at random.
    old, new : tuple of int, optional
        (height, width) before and after; without them 9 is cubic.
    rng : random.Random
        The generator of the random choice; by default Python's global one.

    Raises
    ------
    ValueError
        If the method is another number.
    """
    if method == BY_SIZES:
        if old is None or new is None or new[0] > old[0] and new[1] > old[1]:
            return CUBIC
        return AREA if new[0] < old[0] and new[1] < old[1] else LINEAR
    if method == AT_RANDOM:
        return rng.randrange(len(METHODS))
    if method not in METHODS:
        raise ValueError(f"Unknown interp method {method}: expected 0 to 4, 9 or 10")
    return method
