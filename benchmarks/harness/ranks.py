"""Ranks of a distributed job: on this machine, or in network namespaces with a link of a given bandwidth between them.

A rank is a `worker_processes.Process` with torchrun's variables; a request is sent to all ranks before the first answer is awaited.
"""
import contextlib
import json
import os
import select
import socket
import subprocess

from harness import worker_processes


class Link:
    """Two network namespaces with a link of so many Mbit/s in each direction between them. Needs root, and Linux's `ip` and `tc`.

    ``Link.missing()`` returns the reason why none can be made here; '' if one can.
    """

    def __init__(self, megabits):
        self.names = [f"remex-{os.getpid()}-{id(self):x}-{side}" for side in "ab"]
        self.addresses = ["10.77.0.1", "10.77.0.2"]
        try:
            for name in self.names:
                _ip("netns", "add", name)
            _ip("link", "add", "eth0", "netns", self.names[0], "type", "veth", "peer", "name", "eth0", "netns", self.names[1])
            for name, address in zip(self.names, self.addresses):
                _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
                for device in "lo", "eth0":
                    _ip("-n", name, "link", "set", device, "up")
                _run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{megabits}mbit", "burst", "128kb", "latency", "50ms")
        except BaseException:
            self.close()
            raise

    @staticmethod
    def missing():
        try:
            Link(1000).close()
        except (OSError, subprocess.CalledProcessError) as error:
            message = (getattr(error, "stderr", None) or str(error)).strip()
            return f"no network namespaces with shaped links here: {message.splitlines()[-1] if message else error}"
        return ""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


def _ip(*command):
    _run("ip", *command)


def free_port():
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Ranks:
    """Processes that run one worker program as the ranks of a job.

    Parameters
    ----------
    command : list of str
    count : int
    link : Link, optional
        Rank i runs at its side i.
    env : dict of str, optional
    """

    def __init__(self, command, count, link=None, env=None):
        self.running = []
        address, port = (link.addresses[0], 29500) if link else ("127.0.0.1", free_port())
        common = {"WORLD_SIZE": str(count), "MASTER_ADDR": address, "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
                  "GLOO_SOCKET_IFNAME": "eth0" if link else "lo", **(env or {})}
        try:
            for rank in range(count):
                where = ["ip", "netns", "exec", link.names[rank]] if link else []
                variables = [f"{name}={value}" for name, value in {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}.items()]
                path = worker_processes.environment(command[0])["PYTHONPATH"]
                self.running.append(worker_processes.Process([*where, "env", f"PYTHONPATH={path}", *variables, *command], False))
        except BaseException:
            self.close()
            raise

    def ask(self, **request):
        """The answers of all ranks to one request, in order."""
        for rank in self.running:
            try:
                print(json.dumps(request), file=rank.process.stdin, flush=True)
            except BrokenPipeError:
                raise worker_processes.Failed(rank._death()) from None
        return [self._answer(rank) for rank in self.running]

    def _answer(self, rank):
        if not select.select([rank.process.stdout], [], [], worker_processes.ANSWER_LIMIT)[0]:
            raise worker_processes.Failed(f"no answer in {worker_processes.ANSWER_LIMIT} s")
        line = rank.process.stdout.readline()
        if not line:
            raise worker_processes.Failed(rank._death())
        answer = json.loads(line)
        if "error" in answer:
            raise worker_processes.Failed(answer["error"])
        return answer

    def close(self):
        for rank in self.running:
            rank.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
