"""Programs run as the processes of a job: real processes, which meet at a store in this one, at a port that the system chose."""
import contextlib
import os
import pathlib
import subprocess
import textwrap

import torch.distributed as dist

import mxnet
from forked import python

LIMIT = 300  # seconds, for machines that are busy; a job takes about five


class Job:
    """Processes that run a program each.

    Parameters
    ----------
    program : str
        Python, run by all workers; ``kv`` is there if `kind` is given.
    workers, servers : int
    kind : str, optional
        The type of the store.
    env : dict of str, optional
    """

    def __init__(self, program, workers=2, servers=0, kind=None, env=None):
        head = "import os, sys, time\nimport numpy as np\nimport mxnet as mx\n" + (f"kv = mx.kv.create({kind!r})\n" if kind else "")
        self.store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        common = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(pathlib.Path(mxnet.__file__).parent.parent),
                  "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": str(self.store.port),
                  "DMLC_NUM_WORKER": str(workers), "DMLC_NUM_SERVER": str(servers), "MXNET_KVSTORE_JOIN_TIMEOUT": str(LIMIT), **(env or {})}
        self.servers = [self._start("import mxnet", {**common, "DMLC_ROLE": "server", "DMLC_SERVER_ID": str(i)}) for i in range(servers)]
        self.workers = [self._start(head + textwrap.dedent(program), {**common, "DMLC_ROLE": "worker", "DMLC_WORKER_ID": str(i)})
                        for i in range(workers)]

    @staticmethod
    def _start(program, env):
        return subprocess.Popen([*python(), "-c", program], env=env, text=True, **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.workers + self.servers:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                with contextlib.suppress(OSError):  # what was never read may be left in it
                    pipe.close()

    def end(self, of=None):
        """``(status, output, errors)`` of the workers (or the given processes), when they have ended."""
        found = []
        for process in self.workers if of is None else of:
            out, err = process.communicate(timeout=LIMIT)
            found.append((process.returncode, out, err))
        return found


def outputs(program, **options):
    """What each worker has printed, of a job in which nothing goes wrong."""
    with Job(program, **options) as job:
        ended = job.end()
        assert [status for status, _, _ in ended] == [0] * len(ended), "\n".join(err for _, _, err in ended)
        served = job.end(job.servers)
        assert [status for status, _, _ in served] == [0] * len(served), "\n".join(err for _, _, err in served)
        return [out.split("\n")[:-1] for _, out, _ in ended]
