"""Python programs in processes of their own that have torch already: forks of one that has imported it and has done nothing else.

`python` gives the words to write for ``sys.executable``: ``subprocess.run([*python(), "-c", program])``; ``-m MODULE`` and ``FILE`` with arguments,
and ``-W ACTION`` before them, are run as always (`mxnet.tools.fork_server`). The program imports mxnet by itself, so that what depends on variables
then is found as always. Not so: what torch and OpenMP read when they are loaded (there is one thread), and the seed of hashes, which all programs
share. Tests of those, and of what ``import torch`` brings along, start ``sys.executable``.
"""
import atexit
import functools
import os
import sys

from mxnet.tools.fork_server import ForkServer


@functools.cache
def python():
    """Return the words in the place of ``sys.executable``; the process with torch begins with the first call and ends with this one."""
    if not ForkServer.available():
        return [sys.executable]
    server = ForkServer([sys.executable], ["torch"], {**os.environ, "OMP_NUM_THREADS": "1"})
    owner = os.getpid()
    atexit.register(lambda: server.close() if os.getpid() == owner else None)
    return server.command()
