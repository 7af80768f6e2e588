"""The check that this package's folder contains no files of Apache MXNet, which has the same import name."""
import os
import sys

DISTRIBUTION = "remexnet"  # the name on package indexes
_FOLDER = os.path.dirname(os.path.abspath(__file__))
# In every release of Apache MXNet 1.x on every system, and not here.
_FOREIGN = os.path.join("_ctypes", "ndarray.py")


def check(folder: str = _FOLDER) -> None:
    """Check that no file of Apache MXNet is in a folder, by one look at the file system.

    Parameters
    ----------
    folder : str
        The folder of the package ``mxnet``.

    Raises
    ------
    ImportError
        If there is one. ``pip install mxnet`` replaces a part of this package's modules, and neither package works then.

    Example
    -------
    >>> from mxnet import installation
    >>> installation.check()
    """
    try:
        os.stat(os.path.join(folder, _FOREIGN))
    except OSError:
        return
    pip = f"{sys.executable or 'python'} -m pip"
    raise ImportError(
        f"{folder} contains files of two packages: {DISTRIBUTION} (Remex) and Apache MXNet, whose import name is mxnet too. `pip install mxnet`, "
        f"or a package that requires it, installed the second one over the first, so that neither works. Remove both and install Remex again:\n"
        f"    {pip} uninstall -y mxnet {DISTRIBUTION}\n"
        f"    {pip} install {DISTRIBUTION}\n"
        f"docs/install.md shows how to install packages that require mxnet beside Remex.", name="mxnet")
