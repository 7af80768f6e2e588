"""Devices, environment variables, standard error, and repetition of tests."""
from __future__ import annotations

import contextlib
import functools
import os
import platform
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .. import context, util
from ..context import current_context
from ..ndarray import waitall

if TYPE_CHECKING:
    from ..context import Context


def default_context() -> Context:
    """Return the device of tests: the current one."""
    return current_context()


def set_default_context(ctx: Context) -> None:
    """Set the default device of new arrays in this thread."""
    context.Context.default_ctx = ctx


default_device, set_default_device = default_context, set_default_context  # MXNet 2's names


def list_gpus() -> range:
    """Return the numbers of the GPUs, as a range."""
    return range(util.get_gpu_count())


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Set environment variables for a ``with`` block, and restore them afterwards.

    Parameters
    ----------
    *args
        A name and a value, or a dict of them. None removes a variable.

    Example
    -------
    >>> import os
    >>> from mxnet.test_utils import environment
    >>> with environment('MXNET_TEST_SEED', '7'):
    ...     print(os.environ['MXNET_TEST_SEED'])
    7
    """
    if len(args) == 1 and isinstance(args[0], dict):
        wanted = args[0]
    elif len(args) == 2:
        wanted = {args[0]: args[1]}
    else:
        raise ValueError(f"environment: expected a dict, or a name and a value; received {args}")
    before = {name: os.environ.get(name) for name in wanted}

    def apply(variables):
        for name, value in variables.items():
            util.setenv(name, value)

    apply(wanted)
    try:
        yield
    finally:
        waitall()
        apply(before)


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    """Discard the output to standard error in a ``with`` block, including that of native code."""
    numbers = {2}  # native code's; Python's stream may be another file
    with contextlib.suppress(AttributeError, OSError):
        numbers.add(sys.stderr.fileno())
    copies = {number: os.dup(number) for number in numbers}
    try:
        with open(os.devnull, "w") as nowhere:
            for number in numbers:
                os.dup2(nowhere.fileno(), number)
            yield
    finally:
        for number, copy in copies.items():
            os.dup2(copy, number)
            os.close(copy)


def retry(n: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that repeats a test up to `n` times until it raises no AssertionError."""
    if n <= 0:
        raise ValueError(f"retry: a test must be tried at least once, received {n}")

    def decorate(test):
        @functools.wraps(test)
        def tried(*args, **kwargs):
            for left in range(n - 1, -1, -1):
                try:
                    test(*args, **kwargs)
                    return
                except AssertionError:
                    if not left:
                        raise
                    waitall()
        return tried
    return decorate


def is_cd_run() -> bool:
    """Return True in a job of MXNet's delivery pipeline (``CD_JOB=1``)."""
    return os.environ.get("CD_JOB") == "1"


def is_aarch64_run() -> bool:
    """Return True if the machine is a 64-bit ARM."""
    return platform.machine() == "aarch64"


def has_tvm_ops() -> bool:
    """Return False: operators made with TVM are not available."""
    return False


def is_op_runnable() -> bool:
    """Return True: all operators run on the current device."""
    return True
