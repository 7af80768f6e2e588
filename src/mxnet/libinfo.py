"""Versions, and where files of this installation are."""
import os

# The release of MXNet whose interface this is: client libraries compare it.
__version__ = "1.9.1"
remex_version = "0.1.0"


def find_lib_path(prefix="libmxnet"):
    """Paths of MXNet's native library: none, for everything here is Python on torch.

    ``MXNET_LIBRARY_PATH`` is honoured if it names an existing file, for programs that load a library of their own with it.
    """
    path = os.environ.get("MXNET_LIBRARY_PATH", "")
    return [path] if path and os.path.isfile(path) and os.path.basename(path).startswith(prefix) else []


def find_include_path():
    """The folder of C headers, for custom operator libraries: ``$MXNET_INCLUDE_PATH``, else an empty string."""
    path = os.environ.get("MXNET_INCLUDE_PATH", "")
    return path if os.path.isdir(path) else ""


def find_conf_path(prefix="tvmop"):
    """Configuration files of TVM operators: those that ``MXNET_CONF_PATH`` names."""
    path = os.environ.get("MXNET_CONF_PATH", "")
    return [path] if path and os.path.isfile(path) and os.path.basename(path).startswith(prefix) else []
