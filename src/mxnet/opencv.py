"""The lazy import of OpenCV, with the number of threads of an operator."""
import functools
import os
import sys
from typing import Any

from . import threads

_VARIABLE = "OPENCV_FOR_THREADS_NUM"  # OpenCV's own setting, which takes precedence


@functools.cache
def load() -> Any:
    """Return the module ``cv2``. If this call imports it, OpenCV's number of threads is set to that of `threads.policy`.

    A program that has imported ``cv2`` itself, or has set ``OPENCV_FOR_THREADS_NUM``, keeps the number of threads that OpenCV has.
    """
    ours = "cv2" not in sys.modules
    import cv2
    if ours:
        if _VARIABLE not in os.environ:
            cv2.setNumThreads(threads.usual())
        if hasattr(os, "register_at_fork"):
            # OpenCV's threads do not survive a fork. 0 leaves its pool unchanged, 1 would wait for these threads. The hook is written in C: a
            # Python function could lose a Ctrl-C.
            os.register_at_fork(after_in_child=functools.partial(cv2.setNumThreads, 0))
    return cv2


def count() -> int:
    """Return the number of OpenCV's threads, or the number that it will have when it is imported."""
    if "cv2" in sys.modules:
        return int(sys.modules["cv2"].getNumThreads())
    text = os.environ.get(_VARIABLE, "")
    return int(text) if text.isdigit() and int(text) else threads.usual()
