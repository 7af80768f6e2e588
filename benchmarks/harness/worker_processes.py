"""Worker processes of the compared libraries: they are started, get requests one at a time, and are closed."""
import contextlib
import functools
import json
import os
import select
import subprocess
import sys
import tempfile

from harness import common, tasks

ANSWER_LIMIT = 900  # seconds for one answer; torch.compile of a deep network takes minutes


def environment(python, sources=os.path.join(common.ROOT, "src")):
    """Return a worker's environment: the harness, and the package in `sources`, except for MXNet, whose package has the same name."""
    own = [sources] if python == sys.executable else []
    return {**os.environ, "OMP_NUM_THREADS": common.threads(), "PYTHONPATH": os.pathsep.join([common.BENCHMARKS, *own])}


class Failed(Exception):
    """A peer that could not answer a request; the text goes into the table."""


class Process:
    """One peer's process. `ask` sends a request and waits for the answer, so only one process computes at a time."""

    def __init__(self, command, cold, **options):
        env = environment(command[0], **options)
        if "own-threads" in command and "OMP_NUM_THREADS" not in os.environ:  # MXNet's default
            del env["OMP_NUM_THREADS"]
        if cold:  # a first call must not load the compiled code of an earlier run
            env["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=env)

    def ask(self, **request):
        """Send a request and return the answer; raise `Failed` if the worker reports an error, dies, or does not answer in time."""
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise Failed(self._death()) from None
        if not select.select([self.process.stdout], [], [], ANSWER_LIMIT)[0]:
            raise Failed(f"no answer in {ANSWER_LIMIT} s")
        line = self.process.stdout.readline()
        if not line.endswith("\n"):  # it was killed, perhaps while it wrote
            raise Failed(self._death())
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def _death(self):
        code = self.process.wait()
        self.log.seek(0)
        last = self.log.read().strip().splitlines()[-1:] or [""]
        return f"ended with status {code}: {last[0][:160]}"

    def close(self):
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):  # an unread request is still buffered
            self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()


class Pool:
    """The processes of the current network, by peer."""

    def __init__(self, mxnet_python, folder):
        self.mxnet_python, self.folder, self.group, self.running = mxnet_python, folder, None, {}

    def get(self, peer, row):
        """Return the peer's process for this row: a new one when the network or the kind of work changes, and always for cold work."""
        cold = row["task"] in tasks.COLD
        group = row["task"], row["network"], row.get("mode")
        if group != self.group:
            self.close()
            self.group = group
        if cold:
            self.close(peer)
        if peer not in self.running:
            self.running[peer] = Process(tasks.command(peer, self.mxnet_python, self.folder), cold)
        return self.running[peer]

    def close(self, *peers):
        """End these processes, or all."""
        for peer in peers or list(self.running):
            if peer in self.running:
                self.running.pop(peer).close()


def missing(peer, mxnet_python):
    """Return the reason why a peer cannot take part; '' if it can."""
    command = tasks.command(peer, mxnet_python, "")
    if command is None:
        return "not installed (no path given: --mxnet-python, --plain-python, --nncf-python)"
    return "" if _version(command[0], peer.needs) else f"not installed ({peer.needs} cannot be imported)"


def version(peer, mxnet_python):
    """Return the version of the library that a peer uses, '' if it is missing."""
    command = tasks.command(peer, mxnet_python, "")
    return _version(command[0], peer.needs) if command else ""


@functools.lru_cache
def _version(python, module):
    env = environment(python)
    code = f"import {module} as m; own = getattr(m.libinfo, 'remex_version', '') if hasattr(m, 'libinfo') else ''; print(own or m.__version__)"
    process = subprocess.run([python, "-W", "ignore", "-c", code], capture_output=True, text=True, env=env)
    return process.stdout.strip()
