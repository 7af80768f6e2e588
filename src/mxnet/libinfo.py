"""The version, and the paths of files of this installation."""
from __future__ import annotations

import os

# The MXNet release with this interface: client libraries compare it.
__version__ = "1.9.1"
remex_version = "0.1.0"


def find_lib_path(prefix: str = "libmxnet") -> list[str]:
    """Return the paths of MXNet's native library: none, since this package is Python on torch.

    If ``MXNET_LIBRARY_PATH`` is an existing file, its path is returned, for programs that load a library of their own with it.
    """
    path = os.environ.get("MXNET_LIBRARY_PATH", "")
    return [path] if path and os.path.isfile(path) and os.path.basename(path).startswith(prefix) else []


def find_include_path() -> str:
    """Return the folder of C headers, for custom operator libraries: ``$MXNET_INCLUDE_PATH``, else an empty string."""
    path = os.environ.get("MXNET_INCLUDE_PATH", "")
    return path if os.path.isdir(path) else ""


def find_conf_path(prefix: str = "tvmop") -> list[str]:
    """Return the configuration files of TVM operators that ``MXNET_CONF_PATH`` lists."""
    path = os.environ.get("MXNET_CONF_PATH", "")
    return [path] if path and os.path.isfile(path) and os.path.basename(path).startswith(prefix) else []
