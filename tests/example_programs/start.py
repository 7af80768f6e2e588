"""Starts a program of MXNet's, with what only its age needs: ``start.py PROGRAM ARGUMENT ...``. Runs under Remex and under MXNet 1.9.1 alike."""
import os
import runpy
import sys
import time

import numpy

for _name, _kind in (("bool", bool), ("int", int), ("float", float), ("object", object)):
    if _name not in vars(numpy):  # NumPy 1.24 took them away
        setattr(numpy, _name, _kind)
if not hasattr(time, "clock"):  # Python 3.8 did
    time.clock = time.process_time

import mxnet  # noqa: E402


def _accepts_any_content():
    """Data sets that tests made have other checksums than the published ones."""
    for module in list(sys.modules.values()):
        if module.__name__.startswith("mxnet") and "check_sha1" in vars(module):
            module.check_sha1 = lambda *_: True


if __name__ == "__main__":
    assert mxnet.__version__ == "1.9.1"
    import mxnet.gluon.contrib.data.text  # noqa: F401
    _accepts_any_content()
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
