"""Loading of operator libraries at run time."""
from __future__ import annotations

import os
from typing import NoReturn

from .base import MXNetError, MXNetNotImplementedError


def load(path: str, verbose: bool = True) -> NoReturn:
    """Raise an error: libraries of operators compiled for MXNet (``lib_api.h``) can't be loaded here.

    Parameters
    ----------
    path : str
        The absolute path of a ``.so`` or ``.dll`` file.
    verbose : bool
        Has no effect.

    Raises
    ------
    MXNetError
        Always; the text depends on the validity of `path`.

    Example
    -------
    >>> mx.library.load('libcustom.so')   # raises
    Traceback (most recent call last):
        ...
    mxnet.base.MXNetError: library.load: libcustom.so does NOT exist
    """
    if not os.path.exists(path):
        raise MXNetError(f"library.load: {path} does NOT exist")
    if not os.path.isabs(path):
        raise MXNetError(f"library.load: {path} is not an absolute path")
    if not path.endswith((".so", ".dll")):
        raise MXNetError(f"library.load: {path} is NOT a library file (.so or .dll)")
    raise MXNetNotImplementedError(f"library.load: {path} is compiled against MXNet's C interface, and this build has no libmxnet to load it "
                                   "into; write the operators in Python, as mx.operator.CustomOp or mx.autograd.Function, over torch's own "
                                   "extensions (torch.utils.cpp_extension) where they must be compiled")
